"""Orders, factors, solutions and selected inverses of sparse matrices against dense linear algebra."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from markovia.inference.gaussian.sparse_cholesky import Pattern, SparseSolution
from markovia.kernels.sparse_matrices.minimum_degree import minimum_degree


def grid(m):
    line = sparse.diags([-np.ones(m - 1), -np.ones(m - 1)], [-1, 1])
    eye = sparse.identity(m)
    return (sparse.kron(line, eye) + sparse.kron(eye, line) + 4.2 * sparse.identity(m * m)).tocsr()


def random_matrix(n, density, seed):
    half = sparse.random(n, n, density=density, random_state=seed)
    return (half @ half.T + sparse.diags(np.linspace(0.5, 2.0, n))).tocsr()


def solved(matrix, information):
    matrix.sort_indices()
    pattern = Pattern(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
    return SparseSolution(pattern, matrix.data, information)


def check(matrix):
    dense = matrix.toarray()
    n = len(dense)
    h = np.linspace(-1.0, 2.0, n)
    found, inverse = solved(matrix, h), np.linalg.inv(dense)
    np.testing.assert_allclose(found.mean, inverse @ h, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.variances(), np.diag(inverse), rtol=0, atol=1e-11)
    assert found.half_log == pytest.approx(0.5 * np.linalg.slogdet(dense)[1], abs=1e-9)
    some = np.unique([0, n // 3, n // 2, n - 1])
    np.testing.assert_allclose(found.covariance(some), inverse[np.ix_(some, some)], rtol=0, atol=1e-11)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 60), st.floats(0.0, 0.2), st.integers(0, 2**32 - 1))
def test_a_sparse_factor_gives_the_inverse_of_random_matrices(n, density, seed):
    check(random_matrix(n, density, seed))


@pytest.mark.parametrize("matrix", [grid(30), random_matrix(400, 0.03, 1), random_matrix(300, 0.2, 2)])
def test_large_blocks_go_through_blas_with_the_same_answer(matrix):
    check(matrix)


def test_parts_that_are_not_connected_and_dense_matrices_are_fine():
    check(sparse.block_diag([grid(3), random_matrix(5, 0.5, 3), sparse.identity(4)]).tocsr())
    check(sparse.csr_matrix(random_matrix(70, 1.0, 4)))


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 80), st.floats(0.0, 0.3), st.integers(0, 2**32 - 1))
def test_a_minimum_degree_order_names_every_vertex_once(n, density, seed):
    graph = sparse.random(n, n, density=density, random_state=seed, format="csr")
    graph = (graph + graph.T).tocsr()
    graph.setdiag(0)
    graph.eliminate_zeros()
    order = minimum_degree(graph.indptr.astype(np.int64), graph.indices.astype(np.int64))
    assert sorted(order) == list(range(n))


def test_a_minimum_degree_order_of_a_tree_fills_nothing_in_and_of_a_grid_little():
    chain = sparse.diags([np.ones(999), 3 * np.ones(1000), np.ones(999)], [-1, 0, 1]).tocsr()
    for matrix, most in ((chain, 1999), (grid(40), 25_000)):
        pattern = Pattern(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64))
        place = np.argsort(pattern.order)
        dense = matrix.toarray()[np.ix_(pattern.order, pattern.order)]
        assert np.count_nonzero(np.abs(np.linalg.cholesky(dense)) > 1e-12) <= most
        assert sorted(place) == list(range(len(place)))


def test_a_matrix_that_is_not_positive_definite_is_refused():
    with pytest.raises(ValueError, match="not positive definite"):
        solved(sparse.csr_matrix([[1.0, 2.0], [2.0, 1.0]]), np.zeros(2))


def test_draws_have_the_covariance_of_the_inverse():
    matrix = grid(4)
    drawn = solved(matrix, np.ones(16)).draw(100_000, np.random.default_rng(0))
    inverse = np.linalg.inv(matrix.toarray())
    # the error of a sample covariance is about sqrt(2 / n) of the variances
    np.testing.assert_allclose(
        np.cov(drawn.T), inverse, rtol=0, atol=5 * np.sqrt(2 / 100_000) * inverse.max()
    )
    np.testing.assert_allclose(
        drawn.mean(axis=0), inverse.sum(axis=1), rtol=0, atol=5 * np.sqrt(inverse.max() / 100_000)
    )
