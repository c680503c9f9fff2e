"""Recursions along sequences."""
