"""Distributions and their exponential-family face."""
