"""A problem as flat arrays, and what can be read off it."""
