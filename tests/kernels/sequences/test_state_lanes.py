"""One step of a hidden chain in vectors: sums, smoothing and best ways of any number of states, against NumPy's."""

import numpy as np
import pytest
from numba import njit

from markovia.kernels.plain_code import _best_step, _smooth_step, _sum_step
from markovia.kernels.pointers import pointers
from markovia.kernels.sequences.state_lanes import best_step, smooth_step, sum_step

STATES = (*range(1, 20), 40, 300)


@njit(error_model="numpy")  # not kept on disk, where it would outlive the text of what it calls
def _steps(k, numbers, origins):
    table, before, dense, ahead, now, later, out, scores = pointers(numbers)
    (where,) = pointers(origins)
    size, least = sum_step(k, table, before, dense, ahead, now)
    smooth_step(k, table, before, ahead, dense, later, out)
    top = best_step(k, table, before, dense, scores, where)
    return size, least, top


@pytest.mark.parametrize("compiled", [True, False])
def test_a_step_of_any_number_of_states_is_the_product_with_the_table_and_writes_no_further(compiled):
    rng = np.random.default_rng(0)
    for k in STATES:
        # few different entries, so that best ways tie and the first one counts; a state that nothing leads to
        table, before, dense = rng.integers(0, 4, (k, k)) / 4, rng.random(k).round(1), rng.random(k).round(1)
        table[:, k // 2] = 0.0
        written = np.full((5, k + 1), 7.0)
        ahead, now, later, out, scores = written
        origins = np.full(k + 1, 7, dtype=np.uint8 if k <= 256 else np.int64)
        if compiled:
            size, least, top = _steps(k, (table, before, dense, ahead, now, later, out, scores), (origins,))
        else:
            size, least = _sum_step(k, table.ravel(), before, dense, ahead, now)
            with np.errstate(all="ignore"):
                _smooth_step(k, table.ravel(), before, ahead, dense, later, out)
            top = _best_step(k, table.ravel(), before, dense, scores, origins)
        coming = before @ table
        ratio = np.divide(before, coming, out=np.zeros(k), where=coming > 0.0)
        ways = (before + dense)[:, None] + table
        expected = [coming, coming * dense, ratio, dense * (ratio @ table), ways.max(axis=0)]
        np.testing.assert_allclose(written[:, :k], expected, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(
            (size, least, top), ((coming * dense).sum(), (coming * dense).min(), ways.max()), rtol=1e-12
        )
        assert origins[:k].tolist() == ways.argmax(axis=0).tolist()
        assert (written[:, k] == 7.0).all()
        assert origins[k] == 7
