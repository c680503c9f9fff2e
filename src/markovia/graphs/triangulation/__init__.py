"""Elimination orders, chordal graphs, junction trees, cutsets."""
