"""Elimination, junction trees, conditioning, enumeration."""
