"""Learning hidden chains from sequences."""
