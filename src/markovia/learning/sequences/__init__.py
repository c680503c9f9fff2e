"""Learning from sequences."""
