"""Objectives through which no gradient of a draw goes, on a belief network that can be enumerated."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnsupportedModel

STATES = np.array(list(product([0, 1], repeat=2)), float)


def belief_network():
    m = mk.BayesianNetwork()
    m.add("bias", mk.Parameter(np.zeros(2)))
    m.add("down", mk.Parameter(np.array([[0.5, -0.5, 0.2], [-0.3, 0.4, 0.1]])))
    m.add("low", mk.Parameter(np.zeros(3)))
    m.add("up", mk.Parameter(mk.networks.mlp(3, 2, hidden=8, layers=1)))
    m.add("h", lambda bias: dist.Bernoulli(logits=bias).to_event(1), plate="row")
    m.add("x", lambda h, down, low: dist.Bernoulli(logits=h @ down + low).to_event(1), plate="row")
    m.guide("h", lambda x, up: dist.Bernoulli(logits=up(x)).to_event(1))
    return m


def joint(m, x):
    """Return log p(h, x) for every h, by row."""
    values = m.parameters
    logits = STATES @ values["down"] + values["low"]
    seen = -(np.logaddexp(0, -logits)[:, None] * x + np.logaddexp(0, logits)[:, None] * (1 - x)).sum(-1)
    bias = values["bias"]
    return seen + (STATES * bias - np.logaddexp(0, bias)).sum(1)[:, None]


RNG = np.random.default_rng(0)
CAUSES = RNG.random((1500, 2)) < 0.5
BITS = (
    RNG.random((1500, 3)) < 1 / (1 + np.exp(-(CAUSES @ np.array([[4.0, 4, -3], [-3, 0, 4]]) - 1)))
).astype(float)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["wake-sleep", "reweighted-wake-sleep"])
def test_a_belief_network_learns_what_independent_bits_cannot_say(method):
    m = belief_network().fit({"x": BITS}, method=method, epochs=60, batch=100, seed=0, learning_rate=0.02)
    share = BITS.mean(0)
    independent = (BITS * np.log(share) + (1 - BITS) * np.log(1 - share)).sum(1).mean()
    rows, counts = np.unique(BITS, axis=0, return_counts=True)
    best = (counts / counts.sum() * np.log(counts / counts.sum())).sum()
    found = logsumexp(joint(m, BITS), axis=0).mean()
    assert found > independent + 0.8 * (best - independent), (found, independent, best)
    assert np.isnan(m.fit_.log_likelihood)  # it is no bound
    # and the guide is near the posterior, so that its weights are good
    post = m.query("h", given={"x": rows})
    assert post.info.engine == "amortised"
    logs = joint(m, rows)
    exact = np.exp(logs - logsumexp(logs, axis=0)).T @ STATES
    np.testing.assert_allclose(post.mean("h"), exact, atol=0.06)
    evidence = m.log_evidence(given={"x": rows}, by="row")
    np.testing.assert_allclose(evidence, logsumexp(logs, axis=0), atol=0.05)


def test_what_does_not_fit_is_said():
    with pytest.raises(UnsupportedModel, match=r"'h', which is discrete.*method='wake-sleep'"):
        belief_network().fit({"x": BITS}, epochs=1, seed=0)
    m = belief_network()
    m._guides = {}
    m.replace("h", lambda bias: dist.Categorical(logits=bias))
    m.replace("x", lambda h, down: dist.Bernoulli(logits=down[h]).to_event(1))
    with pytest.raises(InvalidArgument, match="trains a guide beside the model"):
        m.fit({"x": BITS}, method="wake-sleep", epochs=1, seed=0)
