"""Covariances of codes: categories, and functions that go together."""

import numpy as np

import markovia as mk

k = mk.covariances


def test_categories_are_the_same_or_not_whatever_their_codes():
    codes = np.array([[0.0, 5.0], [0.0, 7.0], [-3.0, 5.0]])
    K = k.Categorical([0.2, 0.6]).value(codes)
    np.testing.assert_allclose(K, [[1, 0.6, 0.2], [0.6, 1, 0.12], [0.2, 0.12, 1]])
    assert (k.Categorical([0.2, 0.6]).value(10.0 * codes) == K).all()


def test_an_index_is_the_matrix_of_its_codes():
    W, kappa = np.array([[1.0, 0.2], [-0.4, 0.3], [0.2, 1.0]]), np.array([0.1, 0.2, 0.3])
    codes = np.array([[2.0], [0.0], [1.0], [2.0]])
    B = W @ W.T + np.diag(kappa)
    i = codes[:, 0].astype(int)
    np.testing.assert_allclose(k.Index(W=W, kappa=kappa).value(codes), B[np.ix_(i, i)])
    np.testing.assert_allclose(k.Index(B).diagonal(codes), np.diagonal(B)[i])


def test_outputs_of_one_process_have_a_kronecker_covariance():
    x, B = np.linspace(0.0, 1.0, 4), np.array([[2.0, 0.7], [0.7, 1.0]])
    both = np.array([(t, float(i)) for i in range(2) for t in x])
    cov = k.RBF(0.4, columns=0) * k.Index(B, column=1)
    np.testing.assert_allclose(cov.value(both), np.kron(B, k.RBF(0.4).value(x[:, None])), rtol=1e-13)


def test_an_index_that_was_not_said_starts_with_as_many_functions_as_there_are():
    codes = np.array([[0.0], [2.0], [1.0], [3.0]])
    for rank in (1, 2, 3):
        found = k.Index(rank=rank).started(codes, np.zeros(4))
        assert found.hypers()["index.W"].value.shape == (4, rank)
        np.testing.assert_allclose(found.diagonal(codes), 1.0, atol=1e-2)
        assert np.linalg.matrix_rank(found.hypers()["index.W"].value) == rank
