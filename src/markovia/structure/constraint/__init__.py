"""PC, FCI, RFCI."""
