"""Learning by stochastic gradients: the same seed gives the same weights, another seed others."""

from functools import cache

import numpy as np
import pytest

import markovia as mk


@cache
def _sentences():
    rng = np.random.default_rng(0)
    X = [[{"word": w, "odd": w % 2} for w in rng.integers(0, 6, 5).tolist()] for _ in range(24)]
    return X, [[("a", "b")[int(t["odd"] or rng.random() < 0.3)] for t in x] for x in X]


def _markov_network(method):
    def fit(seed):
        rng = np.random.default_rng(1)
        a = rng.integers(0, 2, 3000)
        rows = {"a": a, "b": np.where(rng.random(3000) < 0.8, a, 1 - a), "c": rng.integers(0, 2, 3000)}
        factors = [mk.Factor(list(pair), np.ones((2, 2))) for pair in ("ab", "bc")]
        network = mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, factors)
        network.fit(rows, seed=seed, max_iterations=20, **method)
        return network.fit_.details["fit"].weights

    return fit


def _regression(family):
    def fit(seed):
        rng = np.random.default_rng(2)
        x = rng.normal(size=(60, 2))
        y = (x @ [1.0, -2.0] + rng.normal(size=60) > 0).astype(int)
        return (
            mk.regression.GLM(family, solver="sgd", batch_size=7, max_iter=3, random_state=seed)
            .fit(x, y)
            .coef_
        )

    return fit


def _tagger(solver):
    return lambda seed: (
        mk.crf.ChainCRF(solver=solver, max_iter=2, batch_size=5, random_state=seed).fit(*_sentences()).coef_
    )


def _field(seed):
    X, Y = _sentences()
    features = [np.array([[t["word"], t["odd"]] for t in x], dtype=float) for x in X]
    return mk.crf.CRF(solver="sgd", max_iter=2, batch_size=5, random_state=seed).fit(features, Y).coef_


def _online_mixture(seed):
    rows = np.random.default_rng(3).normal(size=(300, 1))
    start = {"means": [[-1.0], [1.0]], "covariances": np.ones((2, 1, 1))}
    mixture = mk.Mixture(
        "gaussian", 2, method="online", batch_size=32, max_iter=1, params_init=start, random_state=seed
    )
    return mixture.fit(rows).component_params_["means"]


LEARNERS = {
    "markov network, a few rows a step": _markov_network({"method": "pseudo-likelihood", "optimizer": "sgd"}),
    "markov network, exact": _markov_network({"method": "exact", "optimizer": "sgd"}),
    "markov network, contrastive divergence": _markov_network({"method": "pcd"}),
    "logistic regression": _regression("binomial"),
    "chain, likelihood": _tagger("sgd"),
    "chain, max-margin": _tagger("max-margin"),
    "chain, perceptron": _tagger("perceptron"),
    "field": _field,
    "mixture, online": _online_mixture,
}


def _dense(found):
    return np.asarray(found.toarray() if hasattr(found, "toarray") else found)


@pytest.mark.filterwarnings("ignore")  # runs this short do not converge
@pytest.mark.parametrize("name", LEARNERS)
def test_the_seed_decides_which_rows_a_step_sees(name):
    once, again, other = (_dense(LEARNERS[name](seed)) for seed in (0, 0, 1))
    np.testing.assert_array_equal(once, again)
    assert np.abs(once - other).max() > 1e-6
