"""Sums and products on graphs: context-free grammars, and circuits that answer exactly in one pass."""
