"""Structural EM."""
