"""Mixtures and clusters."""
