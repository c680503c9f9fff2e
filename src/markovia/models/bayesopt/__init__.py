"""Bayesian optimisation: the search of a minimum with few trials."""
