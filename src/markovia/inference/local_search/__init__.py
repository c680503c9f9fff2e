"""Most probable states by search."""
