"""Dual sweeps, cuts, local search."""
