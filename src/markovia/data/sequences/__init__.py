"""Sequences of observations in flat arrays."""
