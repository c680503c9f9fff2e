"""Log-linear models."""
