"""Undirected and conditional fields."""
