"""Decomposable scores."""
