"""Whether an effect can be believed: refutation, sensitivity, falsification, the report."""
