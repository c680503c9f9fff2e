"""Sparse symmetric matrices: orderings, Cholesky factors, selected inverses."""
