"""Where EM begins when some rows are told their group."""

import numpy as np
import pytest

from markovia.learning.components.gaussian import Gaussian
from markovia.learning.latent.group_em import LearningRule, Sample
from markovia.learning.latent.group_starts import few_rows, groups_of

ROWS = np.concatenate([np.linspace(-5, -3, 5000), np.linspace(3, 5, 5000)])[:, None]
TOLD = np.full(10_000, -1)
TOLD[[17, 9_981]] = 1, 0


def test_the_few_rows_of_a_start_keep_those_whose_group_is_told():
    few = few_rows(Sample(ROWS, labels=TOLD), 2, np.random.default_rng(0))
    assert few.size == 2_000
    assert sorted(few.labels[few.labels >= 0].tolist()) == [0, 1]
    assert few.rows[few.labels >= 0].tolist() == ROWS[[17, 9_981]].tolist()


def test_clusters_take_the_numbers_of_the_labels_in_them():
    blank = Gaussian(np.zeros((2, 1)), np.ones((2, 1, 1)))
    clusters = np.repeat(np.eye(2), 5000, axis=0)  # 0 on the left, where the label is 1
    found = groups_of(blank, Sample(ROWS, labels=TOLD), clusters, LearningRule({}))
    assert found.components.means[:, 0] == pytest.approx([4.0, -4.0], abs=1e-9)
