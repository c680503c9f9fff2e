"""Potentials of undirected models: pairwise, grids, canonical, log-linear."""
