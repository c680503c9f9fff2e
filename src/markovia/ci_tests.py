"""Tests of conditional independence, for `mk.learn_structure(test=...)`."""

from markovia.learning.structure.ci_tests import CITest, Oracle

__all__ = ["CITest", "Oracle"]
