"""The structured support vector machine, against the margin machine of several classes that it is on single tokens."""

import warnings

import numpy as np
import pytest
from sklearn.svm import LinearSVC

import markovia as mk


def machine(C, **settings):
    plain = {"fit_intercept": False, "start_end": False, "random_state": 0}
    return mk.crf.StructuredSVM(C=C, **{**plain, **settings})


def test_on_single_tokens_it_is_the_machine_of_crammer_and_singer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    y = np.argmax(X @ rng.normal(size=(3, 3)) + 0.5 * rng.normal(size=(90, 3)), axis=1)

    def cost(W):
        scores = X @ W.T
        right = scores[np.arange(90), y]
        short = scores + 1.0 - right[:, None]
        short[np.arange(90), y] = 0.0
        return (W**2).sum() / 2.0 + short.max(axis=1).sum()

    theirs = LinearSVC(
        C=1.0, multi_class="crammer_singer", fit_intercept=False, tol=1e-8, max_iter=100_000
    ).fit(X, y)
    ours = machine(2.0).fit([x[None] for x in X], [[c] for c in y])  # twice the C of |w|^2 / 2 + C sum(slack)
    assert ours.objective_ == pytest.approx(cost(ours.coef_))
    assert cost(theirs.coef_) <= ours.objective_ <= 1.002 * cost(theirs.coef_)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=0.05)


def test_the_objective_is_what_the_right_labelling_falls_short_by():
    """By all labellings of a short sequence: each has to score as much less than the right one as it has wrong labels."""
    rng = np.random.default_rng(1)
    X, Y = [rng.normal(size=(3, 2)) for _ in range(8)], [rng.integers(2, size=3).tolist() for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = machine(3.0, max_iter=20).fit(X, Y)
    W, T = model.coef_, model.transitions_

    def score(x, y):
        return sum(W[b] @ row for row, b in zip(x, y, strict=True)) + T[y[0], y[1]] + T[y[1], y[2]]

    total = (np.sum(W**2) + np.sum(T**2)) / 3.0
    for x, y in zip(X, Y, strict=True):
        total += max(
            score(x, z) + sum(a != b for a, b in zip(y, z, strict=True)) - score(x, y)
            for z in np.ndindex(2, 2, 2)
        )
    assert model.objective_ == pytest.approx(total)


def test_it_is_the_chain_with_that_solver():
    X = [["a", "b"], ["b", "b"], ["a"]]
    Y = [["U", "V"], ["V", "V"], ["U"]]
    one = mk.crf.StructuredSVM(random_state=0).fit(X, Y)
    two = mk.crf.ChainCRF(solver="max-margin", tol=1e-4, random_state=0).fit(X, Y)
    assert one.state_features_ == two.state_features_
    assert one.score(X, Y) == 1.0
