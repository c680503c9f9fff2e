"""Chow-Liu, TAN."""
