"""Gaussian factors: the canonical form, linear-Gaussian conditionals, sparse fields."""
