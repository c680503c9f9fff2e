"""Gibbs, Metropolis, cluster moves, tempering, diagnostics."""
