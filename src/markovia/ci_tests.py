"""Tests of conditional independence, for `mk.learn_structure(test=...)` and `mk.independence_test(test=...)`.

Examples
--------
>>> import markovia as mk
>>> rows = mk.examples.sprinkler().sample(2000, seed=1)
>>> mk.independence_test(rows, "cloudy", "wet", given=["rain", "sprinkler"], test=mk.ci_tests.G2(alpha=0.01)).independent
True
"""

from markovia.learning.structure.ci_tests import CITest, Oracle
from markovia.learning.structure.fisher_z_test import FisherZ
from markovia.learning.structure.kernel_ci_test import KCI, HSICTest
from markovia.learning.structure.mixed_test import MixedTest
from markovia.learning.structure.permutation_information_test import PermutationCMI
from markovia.learning.structure.table_tests import G2, ChiSquare

__all__ = ["G2", "KCI", "CITest", "ChiSquare", "FisherZ", "HSICTest", "MixedTest", "Oracle", "PermutationCMI"]
