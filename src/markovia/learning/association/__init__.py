"""Correlation, information, HSIC, MMD."""
