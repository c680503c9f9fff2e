"""Factorial and coupled hidden Markov models: against the dynamic network, and learned."""

import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel


def _chains(rng, sizes, coupled):
    rows = tuple(sizes) if coupled else ()
    starts = [rng.dirichlet(np.ones(n)) for n in sizes]
    return starts, [rng.dirichlet(np.ones(n), rows or n) for n in sizes]


@pytest.mark.parametrize("sizes", [[2, 3], [2, 2, 2]])
@pytest.mark.parametrize("coupled", [False, True])
def test_every_answer_is_that_of_the_dynamic_network(sizes, coupled):
    rng = np.random.default_rng(len(sizes) + coupled)
    starts, transitions = _chains(rng, sizes, coupled)
    if coupled:
        probs = [rng.dirichlet(np.ones(2), n) for n in sizes]
        model = mk.CoupledHMM(
            sizes,
            emission="categorical",
            start=starts,
            transition=transitions,
            emission_params={"probs": probs},
        )
        data = rng.integers(0, 2, (3, len(sizes))).astype(float)
        evidence = {f"x_{i}@{t}": int(data[t, i]) for t in range(3) for i in range(len(sizes))}
    else:
        probs = rng.dirichlet(np.ones(2), tuple(sizes))
        model = mk.FactorialHMM(
            sizes,
            emission="categorical",
            start=starts,
            transition=transitions,
            emission_params={"probs": probs},
        )
        data = rng.integers(0, 2, 3)
        evidence = {f"x@{t}": int(data[t]) for t in range(3)}
    network = model.network().unroll(3)
    assert model.log_prob([data])[0] == pytest.approx(network.log_evidence(evidence), abs=1e-9)
    smoothed, filtered = model.smooth([data])[0], model.filter([data])[0]
    names = [f"z_{i}@{t}" for t in range(3) for i in range(len(sizes))]
    for t in range(3):
        past = {n: v for n, v in evidence.items() if int(n.split("@")[1]) <= t}
        for i in range(len(sizes)):
            name = f"z_{i}@{t}"
            assert smoothed[i][t] == pytest.approx(network.query(name, given=evidence).values, abs=1e-9)
            assert filtered[i][t] == pytest.approx(network.query(name, given=past).values, abs=1e-9)
    best = network.map(given=evidence)
    assert model.decode([data])[0].ravel().tolist() == [best[n] for n in names]


def test_additive_means_are_one_gaussian_a_joint_state_and_are_learned():
    truth = mk.FactorialHMM(
        [2, 3],
        start=[[0.5, 0.5], [0.2, 0.3, 0.5]],
        transition=[
            [[0.9, 0.1], [0.2, 0.8]],
            [[0.9, 0.05, 0.05], [0.1, 0.8, 0.1], [0.05, 0.05, 0.9]],
        ],
        emission_params={
            "means": [[[0.0, 0.0], [6.0, 0.0]], [[0.0, 0.0], [1.0, 3.0], [2.0, -3.0]]],
            "covariance": 0.3 * np.eye(2),
        },
    )
    x, z = truth.sample(300, 4, seed=0)
    first = np.array(truth.emission_params["means"][0])
    second = np.array(truth.emission_params["means"][1])
    plain = mk.HMM(
        6,
        emission="gaussian",
        start=np.outer(*truth.start).ravel(),
        transition=np.kron(*map(np.array, truth.transition)),
        emission_params={
            "means": (first[:, None] + second[None]).reshape(6, 2),
            "covariances": np.repeat(0.3 * np.eye(2)[None], 6, axis=0),
        },
    )
    assert truth.log_prob(x) == pytest.approx(plain.log_prob(x))
    begin = {
        **truth.get_params(),
        "emission_params": {"means": [first + 0.5, second * 0.7], "covariance": np.eye(2)},
    }
    model = mk.FactorialHMM(**{**begin, "start": None, "transition": None, "random_state": 0}).fit(x)
    assert np.diff(model.history_).min() > -1e-8
    assert model.transmat_[0] == pytest.approx(np.array(truth.transition[0]), abs=0.06)
    means = model.emission_.means
    assert means[0][1] - means[0][0] == pytest.approx(first[1] - first[0], abs=0.15)
    assert means[1] - means[1][0] == pytest.approx(second - second[0], abs=0.15)
    assert model.emission_.covariance == pytest.approx(0.3 * np.eye(2), abs=0.05)
    right = np.concatenate(model.decode(x)) == np.concatenate(z)
    assert right.mean() > 0.97
    assert (clone(model).n_states, model.n_features_in_) == ([2, 3], 2)


@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
@pytest.mark.parametrize("kind", [mk.FactorialHMM, mk.CoupledHMM])
def test_learning_from_nothing_never_loses(kind, emission):
    rng = np.random.default_rng(0)
    width = 2 if kind is mk.CoupledHMM or emission == "gaussian" else 1
    x = [
        rng.normal(size=(40, width)) if emission == "gaussian" else rng.integers(0, 3, (40, width))
        for _ in range(3)
    ]
    model = kind([2, 2], emission=emission, random_state=0, max_iter=25, tol=0, n_init=2).fit(x)
    assert np.diff(model.history_).min() > -1e-8
    assert model.score(x) >= model.history_[-1] - 1e-8


def test_bad_input_is_named():
    with pytest.raises(InvalidArgument, match="n_states= has the number"):
        mk.FactorialHMM(3).fit([[0.0]])
    with pytest.raises(InvalidArgument, match="joint states; answers are exact up to 2,000"):
        mk.FactorialHMM([50, 50]).fit([[0.0]])
    with pytest.raises(IncompleteModel, match="no values yet"):
        mk.FactorialHMM([2, 2]).log_prob([[0.0]])
    with pytest.raises(InvalidArgument, match="3 columns for 2 chains"):
        mk.CoupledHMM([2, 2]).fit([np.zeros((4, 3))])
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has 0"):
        mk.CoupledHMM([2, 2], emission="categorical").fit([[[0, 1], [0.5, 1]]])
    with pytest.raises(InvalidArgument, match="has means, covariance, not mean"):
        mk.FactorialHMM([2, 2], emission_params={"mean": 1}).fit([[0.0]])
    model = mk.FactorialHMM([2, 2], random_state=0, tol=9).fit([np.random.default_rng(0).normal(size=30)])
    with pytest.raises(UnsupportedModel, match="categorical emissions are handed over"):
        model.network()
