"""Which causal effects the observed distribution determines, and the formulas."""
