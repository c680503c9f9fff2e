"""The names that `markovia.ci_tests` hands out, each with its home."""

from markovia.structure.ci_tests.ci_tests import CITest as CITest, Oracle as Oracle
from markovia.structure.ci_tests.fisher_z_test import FisherZ as FisherZ
from markovia.structure.ci_tests.kernel_ci_test import KCI as KCI, HSICTest as HSICTest
from markovia.structure.ci_tests.mixed_test import MixedTest as MixedTest
from markovia.structure.ci_tests.permutation_information_test import PermutationCMI as PermutationCMI
from markovia.structure.ci_tests.table_tests import G2 as G2, ChiSquare as ChiSquare
