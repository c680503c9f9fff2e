"""Cut, check and span a flat factor graph."""
