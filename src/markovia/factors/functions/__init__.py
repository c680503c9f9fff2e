"""Distributions as functions of their parents, and the plates that they are repeated over."""
