"""Features of tokens times weights, there and back, whatever code does it."""

import numpy as np
import pytest

from markovia.data.text.tokens import NO_VALUES, FewWeights, Tokens
from markovia.kernels import plain_code
from markovia.kernels.fields import token_features
from markovia.kernels.sequences import hidden_chain


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_scores_and_sums_are_products_with_the_matrix_of_features(compiled, plain, few, monkeypatch):
    monkeypatch.setattr(plain_code, "worth_loading", lambda *_: compiled)
    rng = np.random.default_rng(3)
    n, width, k = 40, 7, 3
    counts = rng.integers(0, 10, size=n)
    ptr = np.concatenate([[0], np.cumsum(counts)])
    columns = rng.integers(0, width, size=int(ptr[-1])).astype(np.int32)
    values = NO_VALUES if plain else rng.normal(size=len(columns))
    tokens = Tokens(np.array([0, 15, n]), (0, 1), width, None, ptr, columns, values, None)
    matrix = np.zeros((n, width))
    np.add.at(matrix, (np.repeat(np.arange(n), counts), columns), 1.0 if plain else values)
    weights, beliefs = rng.normal(size=(width, k)), rng.random((n, k))
    shown = rng.random((width, k)) < (0.5 if few else 2.0)
    weights[~shown] = 0.0
    some = FewWeights(
        k, np.concatenate([[0], np.cumsum(shown.sum(axis=1))]), np.nonzero(shown)[1], weights[shown]
    )
    sums = tokens.sums(beliefs, some if few else None)
    assert np.allclose(tokens.scores(some if few else weights), matrix @ weights, atol=1e-13)
    expected = matrix.T @ beliefs
    assert np.allclose(sums, expected[shown] if few else expected, atol=1e-13)


def test_the_kernels_of_a_first_fit_and_decoding_are_bare_so_that_they_compile_quickly():
    # anything of NumPy's inside one of them, such as copying one row over another, takes seconds to compile
    for found in (
        token_features.add_scores,
        token_features.add_sums,
        hidden_chain.forward_backward,
        hidden_chain.best_paths,
    ):
        assert found.targetoptions["_nrt"] is False


def test_dense_features_are_multiplied_in_blocks_to_the_same_sums():
    rng = np.random.default_rng(0)
    n, width, k = 1300, 40, 10
    rows, weights, beliefs = rng.normal(size=(n, width)), rng.normal(size=(width, k)), rng.random((n, k))
    none = np.zeros(0, dtype=np.int64)
    tokens = Tokens(np.array([0, n]), (0,), width, rows, none, none, NO_VALUES, None)
    blocks = [one for part in tokens._blocks(k) for one in part]
    assert len(blocks) > 1
    assert blocks[0][0] == 0
    assert blocks[-1][1] == n
    np.testing.assert_allclose(tokens.scores(weights), rows @ weights, atol=1e-12)
    np.testing.assert_allclose(tokens.sums(beliefs), rows.T @ beliefs, atol=1e-10)
