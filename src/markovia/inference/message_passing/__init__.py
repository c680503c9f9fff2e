"""Loopy, generalised, join-graph."""
