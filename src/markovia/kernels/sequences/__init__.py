"""Recursions along sequences, for many sequences at once."""
