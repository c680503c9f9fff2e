"""Tables from counts; priors; posteriors."""
