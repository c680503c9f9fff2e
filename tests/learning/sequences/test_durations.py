"""Durations: lengths that were cut off count as the longer ones do."""

import numpy as np
import pytest

from markovia.learning.sequences.durations import CategoricalDurations


def test_a_length_that_was_cut_off_is_shared_among_longer_ones():
    before = CategoricalDurations(3, np.array([[0.5, 0.3, 0.2]]))
    found = before.learned(np.array([[4.0, 1.0, 0.0]]), np.array([[0.0, 5.0, 0.0]]))
    assert found.probs[0] == pytest.approx(np.array([4.0, 1.0 + 5 * 0.3 / 0.5, 5 * 0.2 / 0.5]) / 10)
