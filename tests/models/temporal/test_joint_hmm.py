"""Factorial and coupled hidden Markov models: against the dynamic network, and learned."""

from itertools import pairwise

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
        model = mk.series.CoupledHMM(
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
        model = mk.series.FactorialHMM(
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
    truth = mk.series.FactorialHMM(
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
    model = mk.series.FactorialHMM(
        **{**begin, "start": None, "transition": None, "random_state": 0, "tol": 0.1}
    ).fit(x)
    assert np.diff(model.history_).min() > -1e-8
    assert model.transmat_[0] == pytest.approx(np.array(truth.transition[0]), abs=0.06)
    means = model.emission_.means
    assert means[0][1] - means[0][0] == pytest.approx(first[1] - first[0], abs=0.15)
    assert means[1] - means[1][0] == pytest.approx(second - second[0], abs=0.15)
    assert model.emission_.covariance == pytest.approx(0.3 * np.eye(2), abs=0.05)
    right = np.concatenate(model.decode(x)) == np.concatenate(z)
    assert right.mean() > 0.97
    assert (clone(model).n_states, model.n_features_in_) == ([2, 3], 2)


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["gaussian", "categorical"])
@pytest.mark.parametrize("kind", [mk.series.FactorialHMM, mk.series.CoupledHMM])
def test_learning_from_nothing_never_loses(kind, emission):
    rng = np.random.default_rng(0)
    width = 2 if kind is mk.series.CoupledHMM or emission == "gaussian" else 1
    x = [
        rng.normal(size=(40, width)) if emission == "gaussian" else rng.integers(0, 3, (40, width))
        for _ in range(3)
    ]
    model = kind([2, 2], emission=emission, random_state=0, max_iter=25, tol=0, n_init=2).fit(x)
    assert np.diff(model.history_).min() > -1e-8
    assert model.score(x) >= model.history_[-1] - 1e-8


def test_bad_input_is_named():
    with pytest.raises(InvalidArgument, match="n_states= is the number of states of each chain"):
        mk.series.FactorialHMM(3).fit([[0.0]])
    with pytest.raises(InvalidArgument, match="joint states; answers are exact up to 2,000"):
        mk.series.FactorialHMM([50, 50], method="exact").fit([[0.0]])
    with pytest.raises(InvalidArgument, match="mean field is for 'gaussian' emissions"):
        mk.series.FactorialHMM([50, 50], emission="categorical").fit([[0]])
    with pytest.raises(InvalidArgument, match="method="):
        mk.series.FactorialHMM([2, 2], method="loopy").fit([[0.0]])
    with pytest.raises(IncompleteModel, match="no values yet"):
        mk.series.FactorialHMM([2, 2]).log_prob([[0.0]])
    with pytest.raises(InvalidArgument, match="3 columns for 2 chains"):
        mk.series.CoupledHMM([2, 2]).fit([np.zeros((4, 3))])
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has 0"):
        mk.series.CoupledHMM([2, 2], emission="categorical").fit([[[0, 1], [0.5, 1]]])
    with pytest.raises(InvalidArgument, match="has means, covariance, not mean"):
        mk.series.FactorialHMM([2, 2], emission_params={"mean": 1}).fit([[0.0]])
    with pytest.raises(InvalidArgument, match="joint states; answers are exact up to 2,000"):
        _loads(np.random.default_rng(0), [50, 50]).network()


def _loads(rng, sizes, d=1, noise=0.5, **options):
    starts, transitions = _chains(rng, sizes, False)
    means = [3.0 * rng.normal(size=(n, d)) for n in sizes]
    covariance = noise * (np.eye(d) + 0.3)
    return mk.series.FactorialHMM(
        sizes, start=starts, transition=transitions,
        emission_params={"means": means, "covariance": covariance}, **options,
    )  # fmt: skip


@pytest.mark.parametrize("d", [1, 2])
def test_gaussian_answers_are_those_of_the_dynamic_network(d):
    model = _loads(np.random.default_rng(d), [2, 3], d, noise=2.0)
    x = model.sample(3, seed=0)[0]
    names = ["x"] if d == 1 else ["x_0", "x_1"]
    given = {f"{name}@{t}": float(x[t, j]) for t in range(3) for j, name in enumerate(names)}
    network = model.network()
    for i in range(2):
        for t in range(3):
            truth = network.query(f"z_{i}@{t}", given=given).values
            np.testing.assert_allclose(model.smooth(x)[0][i][t], truth, atol=1e-9)


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_of_mean_field_lies_below_log_p_by_the_divergence_of_its_posterior(seed):
    """log p(x) - bound = KL(q, p(z | x)), by enumeration of all paths."""
    rng = np.random.default_rng(seed)
    model = _loads(rng, [2, 2], noise=1.0, method="mean-field")
    x = model.sample(4, seed=seed)[0]
    x[2] = np.nan
    exact = clone(model).set_params(method="exact")
    bound, truth = model.log_prob(x)[0], exact.log_prob(x)[0]
    assert bound <= truth + 1e-9
    said = model.explain(x)
    assert (said.engine, said.exact, said.mass_bound) == ("structured mean field", False, "lower")
    assert said.log_evidence == pytest.approx(bound, abs=1e-9)
    assert exact.explain(x).log_evidence == pytest.approx(truth, abs=1e-9)
    from markovia.learning.sequences.factorial_em import mean_field

    parts, _, seen = model._seen(model._read(x, None, None))
    found = mean_field(parts, seen)
    divergence, mass = 0.0, 0.0
    for first in np.ndindex(*[2] * 4):
        for second in np.ndindex(*[2] * 4):
            log_q = log_p = 0.0
            for i, path in enumerate((first, second)):
                logs = found.seen[i].logs
                own = np.log(parts.starts[i][path[0]]) + sum(
                    np.log(parts.transitions[i][a, b]) for a, b in pairwise(path)
                )
                log_p += own
                log_q += own + sum(logs[t, z] for t, z in enumerate(path)) - found.counts[i].log_probs[0]
            for t in (0, 1, 3):
                mean = sum(w[z[t], 0] for w, z in zip(parts.emission.means, (first, second), strict=True))
                variance = parts.emission.covariance[0, 0]
                log_p -= 0.5 * (np.log(2 * np.pi * variance) + (x[t, 0] - mean) ** 2 / variance)
            divergence += np.exp(log_q) * (log_q - log_p)
            mass += np.exp(log_q)
    assert mass == pytest.approx(1.0, abs=1e-9)
    assert -divergence == pytest.approx(bound, abs=1e-5)


def test_where_noise_is_small_mean_field_finds_the_exact_states():
    model = _loads(np.random.default_rng(3), [2, 2, 3], d=3, noise=0.05, method="mean-field")
    x, states = model.sample(60, n=2, seed=1)
    exact = clone(model).set_params(method="exact")
    for ours, truth in zip(model.smooth(x), exact.smooth(x), strict=True):
        for one, other in zip(ours, truth, strict=True):
            np.testing.assert_allclose(one, other, atol=0.02)
    np.testing.assert_allclose(model.log_prob(x), exact.log_prob(x), atol=0.05)
    for ours, truth, drawn in zip(model.decode(x), exact.decode(x), states, strict=True):
        assert (ours == truth).mean() > 0.99
        assert (ours == drawn).mean() > 0.95


def test_too_many_joint_states_are_learned_by_mean_field_and_the_bound_never_falls():
    sizes = [3] * 8  # 6,561 joint states
    truth = _loads(np.random.default_rng(0), sizes, d=4, noise=0.1)
    x, _ = truth.sample(150, n=2, seed=0)
    assert truth.explain(x).engine == "structured mean field"
    assert "6,561 joint states" in truth.explain(x).note
    with pytest.raises(InvalidArgument, match="6,561 joint states"):
        clone(truth).set_params(method="exact").log_prob(x)
    with pytest.raises(UnsupportedModel, match="whole sequences"):
        truth.filter(x)
    model = mk.series.FactorialHMM(sizes, random_state=0, max_iter=6, tol=0.0).fit(x)
    assert (np.diff(model.history_) > -1e-6 * np.abs(model.history_[1:])).all()
    assert model.history_[-1] > model.history_[0] + 100
    assert model.score(x) >= model.history_[-1] - 1e-6


@pytest.mark.parametrize("seed", [1, 6])
def test_learning_by_mean_field_nears_exact_learning_where_chains_move_in_different_directions(seed):
    x, _ = _loads(np.random.default_rng(seed), [2, 2], d=2, noise=0.1).sample(300, seed=2)
    begin = _loads(np.random.default_rng(seed), [2, 2], d=2, noise=1.0, max_iter=15, tol=0.0)
    exact = clone(begin).fit(x)
    ours = clone(begin).set_params(method="mean-field").fit(x)
    assert ours.history_[-1] <= exact.history_[-1] + 1e-6
    assert ours.history_[-1] > exact.history_[-1] - 0.1
    np.testing.assert_allclose(ours.emission_.joint.means, exact.emission_.joint.means, atol=0.02)
