"""Pictures of causal effects: the paths that carry them, and what was estimated."""
