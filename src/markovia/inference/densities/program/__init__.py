"""Engines that see a model as one smooth log density of an unconstrained vector."""
