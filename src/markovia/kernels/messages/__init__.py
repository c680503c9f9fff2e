"""Sum/max messages, mean field, reweighted."""
