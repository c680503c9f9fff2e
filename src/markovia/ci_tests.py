"""Tests of conditional independence, for `mk.learn_structure(test=...)` and `mk.independence_test(test=...)`.

Examples
--------
>>> import markovia as mk
>>> rows = mk.examples.sprinkler().sample(2000, seed=1)
>>> mk.independence_test(rows, "cloudy", "wet", given=["rain", "sprinkler"], test=mk.ci_tests.G2(alpha=0.01)).independent
True
"""

from markovia.structure.ci_tests.ci_tests import CITest, Oracle
from markovia.structure.ci_tests.fisher_z_test import FisherZ
from markovia.structure.ci_tests.kernel_ci_test import KCI, HSICTest
from markovia.structure.ci_tests.mixed_test import MixedTest
from markovia.structure.ci_tests.permutation_information_test import PermutationCMI
from markovia.structure.ci_tests.table_tests import G2, ChiSquare

__all__ = ["G2", "KCI", "CITest", "ChiSquare", "FisherZ", "HSICTest", "MixedTest", "Oracle", "PermutationCMI"]
