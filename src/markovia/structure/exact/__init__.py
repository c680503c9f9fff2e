"""Proven best graphs."""
