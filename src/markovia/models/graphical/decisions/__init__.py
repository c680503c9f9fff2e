"""Deciding in a network: the verbs, and observed treatments set free."""
