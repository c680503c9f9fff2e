"""Engines that use conditional conjugacy: closed forms, Gibbs sampling, mean-field and stochastic variational inference."""
