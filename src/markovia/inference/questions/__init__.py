"""Beyond posteriors."""
