"""Independent draws with weights (particle filters build on it)."""
