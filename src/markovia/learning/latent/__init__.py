"""Learning with hidden groups: mixtures, admixtures, processes."""
