"""Mean field, tree-reweighted, bounds on log Z."""
