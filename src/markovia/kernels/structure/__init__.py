"""Scores, tests, sparse regressions."""
