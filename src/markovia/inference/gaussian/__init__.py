"""Exact inference with Gaussians: linear systems, strong elimination, mixtures as answers."""
