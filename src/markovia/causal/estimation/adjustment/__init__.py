"""Estimators on arrays that adjust for what the graph says."""
