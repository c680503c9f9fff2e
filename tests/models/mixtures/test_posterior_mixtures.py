"""Mixtures of a known number of components with a posterior over everything."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, gammaln

import markovia as mk
from markovia.errors import InvalidArgument

METHODS = ["vb", "gibbs", "collapsed-gibbs"]


def groups(component, seed=0):
    rng = np.random.default_rng(seed)
    which = np.repeat([0, 1], [120, 60])
    if component == "gaussian":
        return rng.normal(np.array([[-2.0, 0.0], [2.0, 1.0]])[which], 0.6), which
    if component == "bernoulli":
        return (rng.random((180, 8)) < np.array([0.1, 0.85])[which][:, None]).astype(float), which
    if component == "poisson":
        return rng.poisson(np.array([[1.0, 9.0], [8.0, 2.0]])[which]).astype(float), which
    laws = np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]])
    return np.array([rng.multinomial(20, laws[z]) for z in which], dtype=float), which


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("component", ["gaussian", "bernoulli", "poisson", "multinomial"])
def test_groups_and_their_parameters_are_found(component, method):
    X, which = groups(component)
    found = mk.Mixture(component, 2, method=method, max_iter=60, random_state=0).fit(X)
    truth = mk.Mixture(component, 2, random_state=0).fit(X)
    order, true = found.weights_.argsort(), truth.weights_.argsort()
    assert found.weights_[order] == pytest.approx([61 / 182, 121 / 182], abs=0.02)
    for name, value in truth.component_params_.items():
        mine = np.asarray(found.component_params_[name])[order]
        assert mine == pytest.approx(np.asarray(value)[true], abs=0.15 * np.abs(value).max())
    assert np.mean(found.predict(X) == np.where(which == 0, order[1], order[0])) > 0.97
    assert found.posterior_.n_clusters().argmax() == 2
    assert found.score(X) == pytest.approx(truth.score(X), abs=0.15)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["gibbs", "collapsed-gibbs"])
def test_draws_have_the_posterior_of_all_labellings(method):
    X = np.array([[1, 1], [1, 0], [0, 0], [0, 1], [1, 1]], dtype=float)
    k, a = 2, 0.8
    labellings = np.array(list(product(range(k), repeat=len(X))))
    logs = []
    for z in labellings:
        sizes = np.bincount(z, minlength=k)
        log = gammaln(sizes + a).sum()
        for c in range(k):
            ones = X[z == c].sum(axis=0)
            log += betaln(ones + 1.0, sizes[c] - ones + 1.0).sum()
        logs.append(log)
    p = np.exp(np.array(logs) - np.logaddexp.reduce(logs))
    expected = np.einsum("s,sij->ij", p, labellings[:, :, None] == labellings[:, None, :])
    found = mk.Mixture(
        "bernoulli", k, method=method, weight_concentration=a, max_iter=12_000, random_state=1
    ).fit(X)
    # 8,000 draws that are somewhat dependent: three errors of 1,000 independent ones
    assert found.posterior_.co_clustering() == pytest.approx(expected, abs=3 * 0.5 / np.sqrt(1_000))


def test_the_bound_never_falls_and_a_run_that_was_too_short_says_so():
    X, _ = groups("gaussian")
    found = mk.Mixture("gaussian", 2, method="vb", random_state=0).fit(X)
    assert (np.diff(found.history_) >= -1e-9).all()
    assert found.converged_
    with pytest.warns(mk.errors.ConvergenceWarning, match="raise max_iter"):
        mk.Mixture("gaussian", 3, method="vb", max_iter=3, random_state=0).fit(X)


@pytest.mark.parametrize(
    ("settings", "data", "sentence"),
    [
        ({"component": "student-t"}, None, "component"),
        ({"covariance_type": "tied"}, None, "covariance_type"),
        ({}, [[1.0, np.nan], [0.0, 1.0], [2.0, 1.0]], "without missing cells"),
    ],
)
def test_what_has_no_posterior_here_is_refused(settings, data, sentence):
    X = groups("gaussian")[0] if data is None else np.array(data)
    with pytest.raises(InvalidArgument, match=sentence):
        mk.Mixture(**{"component": "gaussian", "n_components": 2, "method": "gibbs", **settings}).fit(X)


def test_weights_of_rows_are_refused():
    X, _ = groups("gaussian")
    with pytest.raises(InvalidArgument, match="takes no weights"):
        mk.Mixture("gaussian", 2, method="vb").fit(X, sample_weight=np.arange(1.0, len(X) + 1))


def test_the_same_seed_gives_the_same_draws():
    X, _ = groups("poisson")
    one, two = (
        mk.Mixture("poisson", 2, method="gibbs", max_iter=20, random_state=3).fit(X) for _ in range(2)
    )
    assert (one.posterior_.labels == two.posterior_.labels).all()
