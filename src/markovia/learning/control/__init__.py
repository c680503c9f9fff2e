"""Policies and values learned from trajectories and from worlds."""
