"""Recipes for modules: settings that make one from a random key."""
