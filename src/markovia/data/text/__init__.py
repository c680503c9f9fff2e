"""Texts as tokens and counts."""
