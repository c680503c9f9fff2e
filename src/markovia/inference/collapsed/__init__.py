"""Samplers whose parameters are summed out: clusters, topics, features."""
