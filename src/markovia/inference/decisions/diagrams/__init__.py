"""Diagrams: what is chosen given what is seen, exactly or with a bound."""
