"""The information filter against the other forms of the Kalman filter."""

import numpy as np
import pytest

import markovia as mk

from .test_kalman_filter import random_rows, random_space


def both(space, y, lengths, **more):
    names = ("transition", "transition_cov", "observation", "observation_cov", "initial_mean")
    given = {name: getattr(space, name) for name in (*names, "transition_offset", "observation_offset")}
    cov = np.where(np.diag(space.diffuse), np.inf, space.initial_cov)
    return [
        mk.LinearStateSpace(**given, initial_cov=cov, form=form).filter(y, lengths, **more)
        for form in ("information", "square-root")
    ]


@pytest.mark.parametrize("steps", [1, 12])
@pytest.mark.parametrize("diffuse", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_all_forms_have_the_same_answers(seed, diffuse, steps):
    rng = np.random.default_rng(seed)
    n, p = 1 + seed % 4, 1 + seed % 3
    space = random_space(rng, n, p, steps, diffuse)
    lengths = [12, 7, 10]
    y, _ = random_rows(rng, lengths, p)
    found, other = both(space, y, lengths)
    np.testing.assert_allclose(found.log_prob, other.log_prob, atol=1e-8)
    for q in range(3):
        known = np.isfinite(other.cov[q]).all(axis=(1, 2))
        assert known.sum() >= (lengths[q] if not diffuse else lengths[q] - n - 2)
        np.testing.assert_array_equal(known, np.isfinite(found.cov[q]).all(axis=(1, 2)))
        np.testing.assert_allclose(found.mean[q][known], other.mean[q][known], atol=1e-8)
        np.testing.assert_allclose(found.cov[q][known], other.cov[q][known], atol=1e-8)
        product = np.einsum("tij,tj->ti", found.precision[q], found.mean[q])
        np.testing.assert_allclose(product, found.information[q], atol=1e-8)
        told = np.isfinite(other.predicted_cov[q]).all(axis=(1, 2))
        ones = found.predicted_precision[q][told] @ other.predicted_cov[q][told]
        np.testing.assert_allclose(ones, np.broadcast_to(np.eye(n), ones.shape), atol=1e-8)
        np.testing.assert_allclose(found.innovations[q][told], other.innovations[q][told], atol=1e-8)


def test_some_states_may_start_known_and_others_not():
    rng = np.random.default_rng(3)
    space = random_space(rng, 3, 1)
    space.diffuse[1] = True
    space.initial_cov[1] = space.initial_cov[:, 1] = 0.0
    y, _ = random_rows(rng, [15], 1)
    found, other = both(space, y, [15])
    assert found.predicted_precision[0][0][1].tolist() == [0.0, 0.0, 0.0]
    np.testing.assert_allclose(found.log_prob, other.log_prob, atol=1e-8)
    np.testing.assert_allclose(found.mean[0][5:], other.mean[0][5:], atol=1e-8)


def test_what_nothing_tells_is_infinite_and_has_no_likelihood():
    model = mk.LinearStateSpace(np.eye(2), np.eye(2), [[1.0, 0.0]], 1.0, form="information")
    found = model.filter([[1.0], [2.0], [3.0]])
    assert np.isinf(found.cov[0][-1, 1, 1])
    assert np.isfinite(found.cov[0][-1, 0, 0])
    assert np.isnan(found.log_prob[0])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"transition": [[1.0, 0.0], [0.0, 0.0]]}, "no inverse"),
        ({"initial_cov": np.diag([1.0, 0.0])}, "no inverse"),
        ({"observation_cov": 0.0}, "step 0 .*without noise"),
        ({"form": "other"}, "form="),
    ],
)
def test_what_has_no_precision_is_refused(change, words):
    given = {
        "transition": np.eye(2),
        "transition_cov": np.eye(2),
        "observation": [[1.0, 1.0]],
        "form": "information",
    }
    with pytest.raises(mk.MarkoviaError, match=words):
        mk.LinearStateSpace(**{**given, **change}).filter([[1.0], [2.0]])
