"""Covariance functions: what says how alike the values of a function are at two inputs."""
