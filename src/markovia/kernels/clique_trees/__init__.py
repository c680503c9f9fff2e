"""Orders, clique trees, propagation, rows of evidence."""
