"""Chains and weighted draws."""
