"""Scores of directed graphs, for `mk.learn_structure(score=...)`."""

from markovia.learning.structure.scores import BIC, LocalScore

__all__ = ["BIC", "LocalScore"]
