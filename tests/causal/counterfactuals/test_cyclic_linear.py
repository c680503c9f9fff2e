"""Linear equations with cycles: equilibria by iteration, separation by covariances, worlds by hand, fits by their scores."""

import pickle
from itertools import combinations, permutations

import numpy as np
import pytest

import markovia as mk
from markovia.causal import CyclicLinearModel
from markovia.errors import InvalidArgument, InvalidGraph, UnknownVariable
from markovia.graphs import DAG, MixedGraph


def random_model(rng, n=5, density=0.35, size=0.9):
    names = [f"v{i}" for i in range(n)]
    weights = {n: {} for n in names}
    for a, b in permutations(names, 2):
        if rng.random() < density:
            weights[b][a] = float(rng.uniform(0.3, size) * rng.choice([-1, 1]))
    return CyclicLinearModel(
        weights,
        intercepts={n: float(rng.normal()) for n in names},
        variances={n: float(rng.uniform(0.5, 2)) for n in names},
    )


def stable_model(rng, **settings):
    while not (model := random_model(rng, **settings)).stable or model.graph.is_acyclic():
        pass
    return model


def settled(weights, constants, held=()):
    """Return where updating all variables at once leads."""
    x = np.zeros(len(weights))
    for _ in range(20_000):
        x, before = weights @ x + constants, x
        x[list(held)] = constants[list(held)]
        if np.abs(x - before).max() < 1e-14:
            break
    return x


def test_the_equilibrium_is_where_updates_lead_and_its_networks_have_its_moments():
    rng = np.random.default_rng(0)
    for _ in range(5):
        model = stable_model(rng)
        names = model.variables
        np.testing.assert_allclose(model.mean, settled(model.weights, model.intercepts), atol=1e-9)
        # each noise moves the equilibrium by a column of the solution
        columns = [settled(model.weights, np.eye(len(names))[i]) for i in range(len(names))]
        spread = sum(v * np.outer(c, c) for v, c in zip(model.variances, columns, strict=True))
        np.testing.assert_allclose(model.covariance, spread, atol=1e-9)
        for network in (model.network(), model.field()):
            found = network.query(names)
            np.testing.assert_allclose([found.mean(n) for n in names], model.mean, atol=1e-9)
            np.testing.assert_allclose(found.covariance(), model.covariance, atol=1e-9)


def test_stability_is_said_and_a_loop_that_feeds_back_all_is_refused():
    growing = CyclicLinearModel({"x": {"y": 2.0}, "y": {"x": 2.0}})
    assert not growing.stable
    assert growing.spectral_radius == pytest.approx(2.0)
    assert "not stable" in repr(growing)
    np.testing.assert_allclose(
        growing.covariance, np.array([[5, 4], [4, 5]]) / 9
    )  # there is an equilibrium all the same
    assert CyclicLinearModel({"y": {"x": 5.0}}).stable  # without a cycle all powers end
    for weights in ({"x": {"y": 2.0}, "y": {"x": 0.5}}, {"x": {"y": 2e9}, "y": {"x": 0.5e-9}}):
        with pytest.raises(InvalidArgument, match="no unique solution"):
            CyclicLinearModel(weights)
    # a loop that a third variable damps explodes once that is held
    damped = CyclicLinearModel({"x": {"y": 1.2, "z": -1.0}, "y": {"x": 1.0}, "z": {"x": 0.9, "z2": 0.0}})
    assert damped.do({"y": 0.0}).stable
    with pytest.raises(InvalidArgument, match="with z held the equations have no unique solution"):
        CyclicLinearModel({"x": {"y": 2.0, "z": 1.0}, "y": {"x": 0.5}, "z": {"x": 1.0}}).total_effect(
            "z", "x"
        )


def test_d_separation_is_vanishing_partial_covariance():
    rng = np.random.default_rng(1)
    answers = []
    for _ in range(12):
        model = random_model(rng, 5, 0.25)
        covariance = model.covariance
        for i, j in combinations(range(5), 2):
            rest = [k for k in range(5) if k not in (i, j)]
            for given in (list(c) for k in range(4) for c in combinations(rest, k)):
                block = covariance[np.ix_([i, j, *given], [i, j, *given])]
                precision = np.linalg.inv(block)
                partial = precision[0, 1] / np.sqrt(precision[0, 0] * precision[1, 1])
                said = model.independent(f"v{i}", f"v{j}", [f"v{k}" for k in given])
                assert said == (abs(partial) < 1e-9)
                answers.append(said)
    assert 0.05 < np.mean(answers) < 0.95


def test_do_and_counterfactuals_are_the_equations_with_rows_cut():
    rng = np.random.default_rng(2)
    for _ in range(4):
        model = stable_model(rng)
        names = model.variables
        do = {names[1]: 1.5}
        try:
            done = model.do(do)
        except InvalidArgument:
            continue
        constants = model.intercepts.copy()
        constants[1] = 1.5
        if done.stable:
            by_updates = settled(model.weights, constants, held=[1])
            np.testing.assert_allclose(done.mean, np.delete(by_updates, 1), atol=1e-8)
        slope = done.mean[0] - model.do({names[1]: 0.5}).mean[0]
        assert model.total_effect(names[1], names[0]) == pytest.approx(slope)
        # a unit that is known in full: its noises are what the equations leave
        unit = rng.normal(size=len(names))
        noise = unit - model.weights @ unit - model.intercepts
        cut = model.weights.copy()
        cut[1] = 0.0
        noise[1] = 0.0
        expected = np.linalg.solve(np.eye(len(names)) - cut, constants + noise)
        facts = dict(zip(names, unit, strict=True))
        answer = model.counterfactual(names, given=facts, do=do)
        np.testing.assert_allclose([answer.mean(n) for n in names], expected, atol=1e-7)
        # nothing known: the distribution after the intervention
        blank = model.counterfactual(names[0], given=None, do=do)
        assert blank.mean() == pytest.approx(done.query(names[0]).mean())
        assert blank.var() == pytest.approx(done.query(names[0]).var())


def test_without_cycles_it_agrees_with_a_network_of_linear_gaussians():
    model = CyclicLinearModel({"y": {"x": 2.0}, "z": {"y": -1.0, "x": 0.5}}, variances={"y": 0.5})
    other = mk.BayesianNetwork()
    other.add("x", mk.LinearGaussian(0.0, {}, 1.0))
    other.add("y", mk.LinearGaussian(0.0, {"x": 2.0}, 0.5))
    other.add("z", mk.LinearGaussian(0.0, {"y": -1.0, "x": 0.5}, 1.0))
    for facts in ({"z": 1.0}, {"x": 1.0, "z": -2.0}, {"x": 1.0, "y": 0.0, "z": -2.0}):
        one = model.counterfactual("z", given=facts, do={"y": 3.0})
        two = other.counterfactual("z", given=facts, do={"y": 3.0})
        assert one.mean() == pytest.approx(two.mean())
        assert one.var() == pytest.approx(two.var(), abs=1e-9)


def test_a_fit_without_cycles_is_regressions_and_with_them_the_data_covariance():
    rng = np.random.default_rng(3)
    dag = DAG([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("d", "e"), ("a", "e")])
    rows = rng.normal(size=(400, 5)) @ rng.normal(size=(5, 5)) + 3.0
    data = dict(zip(dag.nodes, rows.T, strict=True))
    learned = CyclicLinearModel.from_data(dag, data)
    for i, name in enumerate(dag.nodes):
        parents = [dag.nodes.index(p) for p in dag.parents(name)]
        design = np.column_stack([np.ones(400), rows[:, parents]])
        coef = np.linalg.lstsq(design, rows[:, i], rcond=None)[0]
        np.testing.assert_allclose(learned.weights[i, parents], coef[1:], atol=1e-6)
        assert learned.intercepts[i] == pytest.approx(coef[0], abs=1e-5)
    assert learned.fit_.details["identified"]
    assert learned.fit_.log_likelihood == pytest.approx(gaussian_log_likelihood(learned, rows), rel=1e-9)
    # ten entries of the covariance, ten parameters: the fit is perfect
    loop = MixedGraph(["a --> x", "x --> y", "y --> x", "b --> y", "a --> b"])
    data = dict(zip(loop.nodes, rows[:, :4].T, strict=True))
    full = CyclicLinearModel.from_data(loop, data)
    assert full.fit_.converged
    best = -0.5 * 400 * (4 * np.log(2 * np.pi) + np.linalg.slogdet(np.cov(rows[:, :4].T, bias=True))[1] + 4)
    assert full.fit_.log_likelihood <= best + 1e-6


def gaussian_log_likelihood(model, rows):
    away = rows - model.mean
    precision = np.linalg.inv(model.covariance)
    size = len(rows) * (rows.shape[1] * np.log(2 * np.pi) + np.linalg.slogdet(model.covariance)[1])
    return -0.5 * (size + np.einsum("ij,jk,ik->", away, precision, away))


def test_a_cyclic_fit_is_at_the_top_of_the_likelihood_in_every_unit_and_order():
    truth = CyclicLinearModel({"x": {"y": 0.6, "a": 1.0}, "y": {"x": -0.9, "b": 1.0}}, intercepts={"a": 1.0})
    frame = truth.sample(4000, seed=1)
    model = CyclicLinearModel.from_data(truth.graph, frame)
    assert model.fit_.converged
    assert model.fit_.details["identified"]
    np.testing.assert_allclose(model.weights, truth.weights, atol=0.08)
    rows = frame[model.variables].to_numpy()
    top = gaussian_log_likelihood(model, rows)
    assert model.fit_.log_likelihood == pytest.approx(top, rel=1e-9)
    for i, j in np.argwhere(model.weights):  # any other weights, with the best variances for them, are worse
        for step in (-0.02, 0.02):
            entries = model.weights.copy()
            entries[i, j] += step
            left = rows - rows @ entries.T
            assert -(np.log(left.var(axis=0)).sum() / 2 - np.linalg.slogdet(np.eye(4) - entries)[1]) < (
                -np.log(model.variances).sum() / 2 + np.linalg.slogdet(np.eye(4) - model.weights)[1]
            )
    units = np.array([1e9, 1e-9, 1e3, 1.0])
    other = CyclicLinearModel.from_data(
        truth.graph, dict(zip(model.variables, (rows[::-1] * units).T, strict=True))
    )
    np.testing.assert_allclose(other.weights / units[:, None] * units, model.weights, atol=1e-5)
    np.testing.assert_allclose(other.covariance / np.outer(units, units), model.covariance, rtol=1e-4)
    scale = dict(zip(model.variables, units, strict=True))
    far = other.query("x", given={"y": 2.0 * scale["y"]})
    assert far.mean() / scale["x"] == pytest.approx(model.query("x", given={"y": 2.0}).mean(), rel=1e-3)
    twice = CyclicLinearModel.from_data(truth.graph, frame.assign(w=2.0), weights="w")
    np.testing.assert_allclose(twice.weights, model.weights, atol=1e-9)


def test_a_loop_without_other_causes_is_said_not_to_be_identified():
    truth = CyclicLinearModel({"x": {"y": 0.5}, "y": {"x": 0.5}})
    learned = CyclicLinearModel.from_data(truth.graph, truth.sample(500, seed=0))
    assert not learned.fit_.details["identified"]
    shared = CyclicLinearModel({"x": {"y": 0.5, "a": 1.0}, "y": {"x": 0.5, "a": 1.0}})
    assert not CyclicLinearModel.from_data(shared.graph, shared.sample(500, seed=0)).fit_.details[
        "identified"
    ]
    helped = CyclicLinearModel({"x": {"y": 0.5, "a": 1.0}, "y": {"x": 0.5}})
    assert CyclicLinearModel.from_data(helped.graph, helped.sample(500, seed=0)).fit_.details["identified"]


def test_bad_models_and_questions_are_one_sentence():
    model = CyclicLinearModel({"x": {"y": 0.5}, "y": {"x": 0.5}}, variances={"y": 0.0})
    with pytest.raises(InvalidArgument, match="'y' has no noise"):
        model.field()
    assert model.query("y", given={"x": 1.0}).mean() == pytest.approx(0.5)
    with pytest.raises(UnknownVariable):
        model.do({"q": 1.0})
    with pytest.raises(InvalidArgument, match="finite numbers"):
        model.do({"x": "high"})
    with pytest.raises(UnknownVariable):
        model.query("q")
    with pytest.raises(InvalidArgument, match="below zero"):
        CyclicLinearModel({"x": {}}, variances={"x": -1.0})
    with pytest.raises(InvalidArgument, match="are numbers"):
        CyclicLinearModel({"x": {"y": "much"}})
    with pytest.raises(InvalidArgument, match="without noise"):
        CyclicLinearModel.from_data({"x": ["y"], "y": []}, {"x": [1.0, 2.0, 3.0], "y": [2.0, 4.0, 6.0]})
    with pytest.raises(InvalidArgument, match="weights map"):
        CyclicLinearModel({"x": 0.5})
    with pytest.raises(InvalidGraph, match="joined to itself"):
        CyclicLinearModel({"x": {"x": 0.5}})
    with pytest.raises(InvalidGraph, match="directed edges"):
        CyclicLinearModel.from_data(MixedGraph(["x <-> y"]), {"x": [1.0, 2.0], "y": [1.0, 0.0]})
    assert pickle.loads(pickle.dumps(model)).query("x").var() == model.query("x").var()
    assert model.sample(3, seed=0).columns.tolist() == ["x", "y"]
