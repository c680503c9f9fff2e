"""Graphs of causal work: text, acyclic directed mixed graphs, surgery; without probabilities."""
