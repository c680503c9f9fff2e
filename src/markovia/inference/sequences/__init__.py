"""Filtering, smoothing and decoding of sequences."""
