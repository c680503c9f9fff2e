"""Examples, generators, image models."""
