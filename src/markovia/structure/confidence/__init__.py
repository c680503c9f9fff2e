"""How sure is an edge."""
