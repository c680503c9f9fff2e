"""The kinds of graphs, and the maps between them."""
