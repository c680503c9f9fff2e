"""Sparse undirected graphs."""
