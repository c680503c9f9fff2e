"""Covariances that are products over columns: the matrix of a grid is a Kronecker product."""

from functools import reduce

import numpy as np
import pytest

import markovia as mk

k = mk.covariances
P = mk.Parameter
AXES = [np.linspace(0.0, 1.0, 3), np.array([-1.0, 0.5, 0.7, 2.0])]
GRID = np.array([(a, b) for a in AXES[0] for b in AXES[1]])
MADE = [
    lambda: P(2.0) * k.RBF(P([0.6, 1.4])),
    lambda: k.RBF(P(0.8)) * k.Constant(P(1.5)),
    lambda: k.Matern32(P(0.5), columns=0) * P(0.7) * k.Periodic(P(0.8), P(1.7), columns=1),
    lambda: k.Periodic(P([0.6, 1.4]), P(1.3)) * k.RBF(P(2.0)),
    lambda: (k.Linear(P(1.0), columns=0) + k.Constant(1.0)) * k.Matern12(P(1.0), columns=1),
    lambda: k.Matern52(P(1.0), columns=1),
]


@pytest.mark.parametrize("make", MADE)
def test_the_matrix_of_a_grid_is_the_kronecker_product_of_factors_and_so_are_its_slopes(make):
    cov = make()
    factors = cov.factors_over_columns(2)
    each = [f.forward(axis[:, None]) for f, axis in zip(factors, AXES, strict=True)]
    matrices = [K for K, _ in each]
    K, pull = cov.forward(GRID)
    np.testing.assert_allclose(reduce(np.kron, matrices), K, rtol=1e-12)
    np.testing.assert_allclose(
        [f.diagonal([[0.3]])[0] for f in factors], [f.value([[0.3]])[0, 0] for f in factors]
    )
    W = np.random.default_rng(0).normal(size=K.shape)
    parts = W.reshape(3, 4, 3, 4)
    by_factors = {}
    for (_, back), w in zip(
        each,
        (np.einsum("iajb,ab->ij", parts, matrices[1]), np.einsum("iajb,ij->ab", parts, matrices[0])),
        strict=True,
    ):
        for key, value in back(w).items():
            by_factors[key] = by_factors.get(key, 0.0) + value
    for key, value in pull(W).items():
        np.testing.assert_allclose(by_factors[key], value, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(
    "cov",
    [k.Matern32(1.0), k.RBF(1.0) + k.RBF(2.0), k.Linear(1.0), k.Cosine(1.0), k.RBF(1.0) * k.Matern12(1.0)],
)
def test_what_is_no_such_product_says_so(cov):
    assert cov.factors_over_columns(2) is None
    assert cov.factors_over_columns(1) is not None
