"""What keeps a matrix from being one of covariances."""

import numpy as np

from markovia.factors.covariances.definiteness import fault_of


def test_matrices_of_covariances_have_no_fault_even_where_rounding_has():
    X = np.random.default_rng(0).normal(size=(30, 2))
    for K in (
        np.zeros((0, 0)),
        np.zeros((2, 2)),
        X @ X.T,
        np.array([[1.0, -1.0 - 1e-12], [-1.0 - 1e-12, 1.0]]),
    ):
        assert fault_of(K) is None
        assert fault_of(1e-30 * K) is None


def test_faults_are_said():
    assert fault_of(np.array([[1.0, np.inf], [np.inf, 1.0]])) == "it is inf between rows 0 and 1"
    assert fault_of(np.array([[1.0, 0.5], [0.4, 1.0]])).startswith(
        "it is not symmetric, 0.5 between rows 0 and 1"
    )
    assert (
        fault_of(np.array([[1.0, 3.0], [3.0, 1.0]]))
        == "its smallest eigenvalue at 2 rows is -2, beside a largest of 4"
    )
    assert fault_of(1e-30 * np.array([[1.0, 3.0], [3.0, 1.0]])) is not None
