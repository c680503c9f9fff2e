"""What would have happened to this unit: structural models, twin networks, bounds, attribution."""
