"""Rows of any library or file as codes, counts, matrices."""
