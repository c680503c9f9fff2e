"""Nodes that are chosen and nodes that say what an outcome is worth."""
