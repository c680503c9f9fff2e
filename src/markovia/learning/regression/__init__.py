"""GLMs."""
