"""Columns given a class that is known: sums against one-hot responsibilities, densities cell by cell, tiny pseudo-counts."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from markovia.learning.components.class_columns import CountedColumns, GaussianColumns
from markovia.learning.components.columns import CategoricalColumns
from markovia.learning.components.discrete import Bernoulli

RNG = np.random.default_rng(5)
MEMBERS = RNG.integers(0, 3, 700)
SHARES = RNG.random(700)
BITS = (RNG.random((700, 4)) < 0.3 + 0.2 * MEMBERS[:, None]).astype(float)
GAPS = np.where(RNG.random(BITS.shape) < 0.2, np.nan, BITS)
CODES = RNG.integers(-1, 3, (700, 2))


def one_hot(weights):
    return np.eye(3)[MEMBERS] * (1.0 if weights is None else weights[:, None])


@pytest.mark.parametrize("weights", [None, SHARES], ids=["rows", "weights"])
@pytest.mark.parametrize("cells", [BITS, GAPS, csr_array(BITS)], ids=["whole", "gaps", "sparse"])
def test_sums_of_ones_and_zeros_are_those_of_one_hot_responsibilities(cells, weights):
    found = Bernoulli(np.full((3, 4), 0.5)).class_sums(cells, MEMBERS, weights)
    dense = cells if isinstance(cells, np.ndarray) else cells.toarray()
    shares = one_hot(weights)
    assert found == pytest.approx(np.hstack([shares.T @ (dense == 1.0), shares.T @ (dense == 0.0)]))


@pytest.mark.parametrize("weights", [None, SHARES], ids=["rows", "weights"])
def test_sums_of_symbols_are_those_of_one_hot_responsibilities(weights):
    columns = CategoricalColumns((np.full((3, 3), 1 / 3), np.full((3, 3), 1 / 3)), (("a", "b", "c"),) * 2)
    want = [one_hot(weights).T @ (CODES[:, [j]] == np.arange(3)) for j in range(2)]
    assert columns.class_sums(CODES, MEMBERS, weights) == pytest.approx(np.hstack(want))


def test_classes_that_are_known_teach_what_responsibilities_of_one_would():
    plain = Bernoulli(np.full((3, 4), 0.5))
    block = CountedColumns(plain, 0.0)
    for part in (slice(0, 300), slice(300, 700)):  # batches add up
        block.update(BITS[part], MEMBERS[part], SHARES[part])
    block.estimate()
    assert block.component.probs == pytest.approx(plain.learned(BITS, one_hot(SHARES), {}).probs)
    logs = np.log(np.where(BITS == 1.0, block.component.probs[MEMBERS], 1 - block.component.probs[MEMBERS]))
    assert block.log_likelihood() == pytest.approx(float((SHARES[:, None] * logs).sum()))


@pytest.mark.parametrize("cells", [GAPS, csr_array(BITS)], ids=["gaps", "sparse"])
def test_a_cell_that_a_class_excludes_makes_the_row_impossible_and_a_gap_says_nothing(cells):
    probs = np.array([[0.0, 0.5, 1.0, 0.2], [0.3, 0.0, 0.6, 1.0], [0.1, 0.2, 0.3, 0.4]])
    dense = cells if isinstance(cells, np.ndarray) else cells.toarray()
    with np.errstate(divide="ignore"):
        each = np.log(
            np.where(dense[:, None] == 1.0, probs, np.where(dense[:, None] == 0.0, 1.0 - probs, 1.0))
        )
    assert Bernoulli(probs).log_densities(cells) == pytest.approx(each.sum(axis=-1))


def test_log_probabilities_of_symbols_are_summed_over_the_cells_that_are_there():
    tables = tuple(RNG.dirichlet(np.ones(3), 3) for _ in range(2))
    found = CategoricalColumns(tables, (("a", "b", "c"),) * 2).log_densities(CODES)
    want = sum(np.where(CODES[:, [j]] < 0, 0.0, np.log(tables[j][:, CODES[:, j]]).T) for j in range(2))
    assert found == pytest.approx(want)


def test_a_column_of_ones_leaves_no_weight_to_zeros_and_tiny_pseudo_counts_keep_their_digits():
    always = np.column_stack([np.ones(700), BITS[:, 0]])
    for _ in range(20):  # sums in another order differ in their last digits
        sums = Bernoulli(np.full((3, 2), 0.5)).class_sums(always, MEMBERS, RNG.random(700))
        assert (sums[:, 2] == 0.0).all()
    for alpha, zero in ((0.0, 0.0), (1e-20, 1e-20)):
        block = CountedColumns(Bernoulli(np.full((3, 2), 0.5)), alpha)
        block.update(always, MEMBERS, SHARES)
        block.estimate()
        sizes = np.bincount(MEMBERS, weights=SHARES)
        assert block.component.zeros[:, 0] == pytest.approx(zero / sizes, rel=1e-12, abs=0.0)
        assert np.isfinite(block.log_likelihood())
    # other probabilities have other complements
    assert replace(block.component, probs=np.full((3, 2), 0.4)).zeros == pytest.approx(np.full((3, 2), 0.6))


def test_merged_variances_keep_their_digits_far_from_zero():
    rows = 1e9 + RNG.normal(size=(700, 2)) + 1e3 * MEMBERS[:, None]
    block = GaussianColumns(3, 2, 0.0)
    for part in (slice(0, 50), slice(50, 700)):
        block.update(rows[part], MEMBERS[part], None)
    block.estimate()
    want = np.array([(rows[c == MEMBERS] - 1e9).var(axis=0) for c in range(3)])
    assert block.variance == pytest.approx(want, rel=1e-5)
