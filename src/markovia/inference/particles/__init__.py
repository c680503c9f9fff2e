"""Particle filters: weighted draws that move, are weighed and resampled step by step, in JAX."""
