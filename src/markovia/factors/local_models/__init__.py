"""Conditionals that are shorter than their tables: noisy, logical, logistic."""
