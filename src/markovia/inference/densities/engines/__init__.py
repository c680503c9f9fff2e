"""Engines that see a model only as one smooth log density: samplers, tempering, variational fits."""
