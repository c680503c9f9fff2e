"""Tests of conditional independence, for `mk.learn_structure(test=...)` and `mk.independence_test(test=...)`."""

from markovia.learning.structure.ci_tests import CITest, Oracle
from markovia.learning.structure.fisher_z_test import FisherZ
from markovia.learning.structure.kernel_ci_test import KCI, HSICTest
from markovia.learning.structure.mixed_test import MixedTest
from markovia.learning.structure.permutation_information_test import PermutationCMI
from markovia.learning.structure.table_tests import G2, ChiSquare

__all__ = ["G2", "KCI", "CITest", "ChiSquare", "FisherZ", "HSICTest", "MixedTest", "Oracle", "PermutationCMI"]
