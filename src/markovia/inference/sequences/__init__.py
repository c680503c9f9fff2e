"""Exact answers about hidden chains."""
