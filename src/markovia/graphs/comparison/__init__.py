"""How far a graph is from another."""
