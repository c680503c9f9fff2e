"""BayesianNetwork, MarkovNetwork, FactorGraph and their verbs."""
