"""Gaussian parameters from data: regressions, covariances under a graph, and their posteriors."""
