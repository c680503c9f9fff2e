"""Fitting Gaussian processes: log evidence and its gradient by many methods, and one ascent for all of them."""
