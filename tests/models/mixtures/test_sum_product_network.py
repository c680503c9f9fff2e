"""Sum-product networks against junction trees, joint tables and closed forms."""

import pickle
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import markovia as mk
from markovia.errors import (
    IgnoredColumnWarning,
    ImpossibleEvidence,
    IncompleteModel,
    InvalidArgument,
    InvalidEvidence,
    TooLarge,
    UnknownVariable,
    UnsupportedModel,
)
from markovia.inference.circuits import circuit_compiler
from markovia.inference.circuits.circuit import CircuitBuilder
from markovia.learning.latent.circuit_em import learn_circuit
from markovia.models.mixtures import circuit_questions


def random_model(seed):
    """A network of six variables with zeros in its tables, directed or not."""
    rng = np.random.default_rng(seed)
    names, cards = list("abcdef"), rng.integers(1, 4, 6)
    if seed % 2:
        network = mk.BayesianNetwork()
        for i, name in enumerate(names):
            parents = [names[j] for j in rng.permutation(i)[: rng.integers(0, 3)]]
            shape = [cards[names.index(p)] for p in parents] + [cards[i]]
            table = rng.random(shape) * (rng.random(shape) < 0.8) + 1e-3 * (np.arange(cards[i]) == 0)
            network.add(
                name, states=int(cards[i]), parents=parents, p=table / table.sum(axis=-1, keepdims=True)
            )
        return network, rng
    factors = []
    for _ in range(6):
        own = [names[j] for j in rng.permutation(6)[: rng.integers(1, 4)]]
        shape = [cards[names.index(n)] for n in own]
        factors.append(mk.Factor(own, rng.random(shape) * (rng.random(shape) < 0.85) + 1e-3))
    return mk.MarkovNetwork(dict(zip(names, cards.tolist(), strict=True)), factors), rng


@pytest.mark.parametrize("seed", range(10))
def test_a_compiled_circuit_answers_as_the_junction_tree_to_rounding(seed):
    network, rng = random_model(seed)
    spn = mk.SumProductNetwork.from_network(network)
    first, second = (str(n) for n in rng.permutation(list("abcdef"))[:2])
    given = {first: 0, second: rng.random(len(network.states(second))).tolist()}
    assert spn.log_evidence(given) == pytest.approx(network.log_evidence(given), abs=1e-12)
    assert spn.log_evidence() == pytest.approx(0.0, abs=1e-12)
    expected = network.marginals(given)
    found = spn.marginals(given)
    assert list(found) == list(expected)
    for name, posterior in found.items():
        np.testing.assert_allclose(posterior.values, expected[name].values, rtol=0, atol=1e-12)
        assert posterior.info.exact
    asked = [n for n in "fbd" if n != first]
    joint = spn.query(asked, given)
    np.testing.assert_allclose(joint.values, network.query(asked, given).values, rtol=0, atol=1e-12)
    best = spn.map(given)
    assert best.info.exact
    assert best.log_prob == pytest.approx(network.map(given).log_prob, abs=1e-10)
    assert best.log_prob == pytest.approx(best.bound)
    some = [n for n in "ce" if n != first]
    assert spn.map(given, some).log_prob == pytest.approx(network.map(given, some).log_prob, abs=1e-10)
    rows = network.sample(20, seed=1)
    np.testing.assert_allclose(spn.log_prob(rows), network.log_evidence(given=rows), atol=1e-11)
    holes = rows.astype(object).mask(rng.random(rows.shape) < 0.4)
    np.testing.assert_allclose(spn.log_prob(holes), network.log_evidence(given=holes), atol=1e-11)
    np.testing.assert_allclose(
        spn.predict_proba(holes, "d"), network.predict_proba(holes.drop(columns="d"), "d"), atol=1e-11
    )


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 600
    hidden = rng.integers(0, 2, n)
    frame = pd.DataFrame(
        {
            "a": np.where(rng.random(n) < 0.15, 1 - hidden, hidden),
            "b": np.array(["x", "y", "z"])[(hidden + rng.integers(0, 2, n))],
            "c": rng.integers(0, 2, n),
            "u": rng.normal(3.0 * hidden, 1.0),
            "v": rng.normal(-hidden, 0.5),
        }
    )
    return frame, hidden


@pytest.fixture(scope="module")
def learned(table):
    return mk.SumProductNetwork(random_state=0).fit(table[0])


def test_independent_columns_part_and_dependence_is_learned(table, learned):
    frame, _ = table
    alone = mk.SumProductNetwork(min_rows=10_000).fit(frame)  # columns on their own
    assert alone.circuit_.size == 6
    assert learned.score(frame) > alone.score(frame) + 0.3
    # c depends on nothing: its posterior stays what it is
    assert learned.query("c", {"u": 3.2, "a": 1})[1] == pytest.approx(learned.query("c")[1], abs=1e-9)
    assert learned.query("a", {"u": 3.5})[1] > 0.8 > 0.2 > learned.query("a", {"u": -0.5})[1]
    assert (np.diff(learned.history_) >= -1e-9).all()
    assert learned.converged_


def test_a_learned_circuit_is_a_distribution_and_its_answers_are_those_of_its_joint(learned):
    circuit = learned.circuit_
    cards = [2, 3, 2]
    names = ["a", "b", "c"]
    rows = [dict(zip(names, [learned.states(n)[k] for n, k in zip(names, codes, strict=True)], strict=True))
            for codes in product(*map(range, cards))]  # fmt: skip
    joint = np.exp([learned.log_evidence(row) for row in rows]).reshape(cards)
    assert joint.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(learned.query(names).values, joint, atol=1e-12)
    np.testing.assert_allclose(
        learned.query("b", {"a": 1}).values, joint[1].sum(axis=1) / joint[1].sum(), atol=1e-12
    )
    # numbers: their law given the rest, by Bayes' rule on densities
    grid = np.linspace(-8.0, 12.0, 4001)
    density = np.exp(learned.log_prob(pd.DataFrame({"u": grid, "a": 1})))
    density /= density.sum()
    post = learned.query("u", {"a": 1})
    assert post.mean() == pytest.approx(float(density @ grid), abs=1e-6)
    assert post.probability(lambda u: u > 2.0) == pytest.approx(float(density[grid > 2.0].sum()), abs=0.02)
    inside = learned.log_evidence({"u": mk.Interval(1.0, 2.5), "a": 1}) - learned.log_evidence({"a": 1})
    within = (
        post.weights
        @ np.diff(norm.cdf([[1.0], [2.5]], post.means[:, 0], np.sqrt(post.covariances[:, 0, 0])), axis=0)[0]
    )
    assert np.exp(inside) == pytest.approx(within, rel=1e-9)
    far = learned.log_evidence({"u": mk.Interval(1e3, 2e3)})
    assert np.isfinite(far)
    both = learned.query(["b", "u"], {"a": 1})
    np.testing.assert_allclose(both["b"].values, learned.query("b", {"a": 1}).values, atol=1e-12)
    assert both.mean("u") == pytest.approx(post.mean())
    assert circuit.size == len(circuit.variable) + len(circuit.sums)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_numbers_changes_densities_only(table, learned, unit):
    frame = table[0].assign(u=table[0]["u"] * unit)
    other = mk.SumProductNetwork(random_state=0).fit(frame)
    np.testing.assert_allclose(other.log_prob(frame), learned.log_prob(table[0]) - np.log(unit), rtol=1e-6)


def test_missing_cells_and_columns_are_summed_out_in_learning_and_asking(table):
    rng = np.random.default_rng(1)
    frame = table[0].astype(object).mask(rng.random((600, 5)) < 0.15)
    spn = mk.SumProductNetwork(random_state=0, min_rows=60).fit(frame, continuous=["u", "v"])
    assert (np.diff(spn.history_) >= -1e-9).all()
    assert spn.query("a", {"u": 3.5})[1] > 0.8
    one = pd.DataFrame({"a": [1, None], "u": [np.nan, 2.0]}, dtype=object)
    expected = [spn.log_evidence({"a": 1}), spn.log_evidence({"u": 2.0})]
    np.testing.assert_allclose(spn.log_prob(one), expected, atol=1e-12)


def test_a_weight_of_two_is_a_row_that_comes_twice(learned, table):
    circuit = learned.circuit_
    frame = table[0].head(40)
    columns, _, _ = learned._rows(frame)
    twice = {v: np.concatenate([x, x[:10]]) for v, x in columns.items()}
    settings = {"pseudo_count": 0.1, "floors": np.full(5, 1e-3), "max_iter": 3, "tol": 0.0}
    weighted = learn_circuit(circuit, columns, np.where(np.arange(40) < 10, 2.0, 1.0), **settings).state
    repeated = learn_circuit(circuit, twice, np.ones(50), **settings).state
    np.testing.assert_allclose(weighted.means, repeated.means, atol=1e-9)
    np.testing.assert_allclose(weighted.probs, repeated.probs, atol=1e-12)
    np.testing.assert_allclose(np.exp(weighted.log_weight), np.exp(repeated.log_weight), atol=1e-12)
    nothing = learn_circuit(circuit, twice, np.append(np.ones(40), np.zeros(10)), **settings).state
    plain = learn_circuit(circuit, columns, np.ones(40), **settings).state
    np.testing.assert_allclose(nothing.means, plain.means, atol=1e-9)


def test_map_claims_no_more_than_it_knows(table, learned, monkeypatch):
    discrete = mk.SumProductNetwork(random_state=0, min_rows=40).fit(table[0][["a", "b", "c"]])
    exact = discrete.map({"c": 1})
    assert exact.info.exact
    truth = max(discrete.log_evidence({"a": a, "b": b, "c": 1}) for a in (0, 1) for b in "xyz")
    assert exact.log_prob == pytest.approx(truth, abs=1e-12)
    monkeypatch.setattr(circuit_questions, "MOST_CONFIGURATIONS", 1)
    followed = discrete.map({"c": 1})
    assert not followed.info.exact
    assert followed.log_prob == pytest.approx(discrete.log_evidence({**followed, "c": 1}), abs=1e-12)
    assert followed.log_prob <= truth + 1e-12 <= followed.bound + 1e-9
    with pytest.raises(UnsupportedModel, match="ask for fewer variables"):
        discrete.map({}, ["a", "b"])
    numbers = learned.map({"a": 1})
    assert not numbers.info.exact
    assert numbers.is_density
    assert numbers.log_prob <= numbers.bound


def test_following_the_largest_terms_may_miss_the_best_and_the_bound_says_so(monkeypatch):
    builder = CircuitBuilder([(0, 1), (0, 1)])
    likely = [builder.leaf(v, [0.1, 0.9]) for _ in range(2) for v in (0, 1)]
    parts = [[builder.leaf(v, [1.0, 0.0]) for v in (0, 1)], likely[:2], likely[2:]]
    builder.node([builder.node(part) for part in parts], [0.4, 0.3, 0.3])
    spn = mk.SumProductNetwork()
    spn.circuit_ = builder.build(["x", "y"])
    assert spn.map().to_dict() == {"x": 1, "y": 1}  # 0.6 of 0.81 against 0.4 and 0.6 of 0.01
    assert spn.map().log_prob == pytest.approx(np.log(0.486))
    monkeypatch.setattr(circuit_questions, "MOST_CONFIGURATIONS", 1)
    followed = spn.map()
    assert followed.to_dict() == {"x": 0, "y": 0}
    assert not followed.info.exact
    assert followed.log_prob == pytest.approx(np.log(0.406))
    assert followed.bound == pytest.approx(np.log(0.4 + 0.6 * 0.81))


def test_draws_follow_the_evidence(learned):
    rows = learned.sample(4000, {"a": 1, "u": mk.Interval(high=3.0)}, seed=0)
    assert list(rows.columns) == learned.variables
    assert set(rows["a"]) == {1}
    assert rows["u"].max() <= 3.0
    given = {"a": 1, "u": mk.Interval(high=3.0)}
    p = learned.query("b", given)
    for state in "xyz":
        share = (rows["b"] == state).mean()
        assert abs(share - p[state]) < 4.0 * np.sqrt(p[state] * (1 - p[state]) / 4000)
    v = learned.query("v", given)
    assert abs(rows["v"].mean() - v.mean()) < 4.0 * v.sd() / np.sqrt(4000)
    compiled = mk.SumProductNetwork.from_network(mk.examples.sprinkler())
    soft = compiled.sample(4000, {"rain": [0.2, 0.9], "wet": "yes"}, seed=1)
    q = compiled.query("rain", {"rain": [0.2, 0.9], "wet": "yes"})["yes"]
    assert abs((soft["rain"] == "yes").mean() - q) < 4.0 * np.sqrt(q * (1 - q) / 4000)


def test_a_circuit_is_saved_and_pickled(learned, tmp_path):
    learned.save(tmp_path / "spn.json")
    for again in (mk.load(tmp_path / "spn.json"), pickle.loads(pickle.dumps(learned))):
        assert again.variables == learned.variables
        assert again.query("b", {"u": 1.0})["z"] == learned.query("b", {"u": 1.0})["z"]
    assert repr(mk.SumProductNetwork()) == "SumProductNetwork(not fitted)"


def test_edges_one_row_one_column_constants_and_ties():
    one = mk.SumProductNetwork().fit({"a": ["x"], "b": [1.5]})
    assert np.isfinite(one.log_prob({"a": ["x"], "b": [1.5]})).all()
    single = mk.SumProductNetwork(pseudo_count=0.0).fit({"a": ["x", "y", "y"]})
    assert single.query("a")["y"] == pytest.approx(2 / 3)
    constant = mk.SumProductNetwork(min_rows=5, random_state=0).fit(
        {"k": [2.5] * 50, "x": np.arange(50) / 7.0, "s": ["t"] * 50}
    )
    assert constant.query("k").mean() == pytest.approx(2.5)
    assert constant.query("s")["t"] == 1.0


def test_bad_questions_are_refused_in_one_sentence(learned, monkeypatch):
    spn = mk.SumProductNetwork.from_network(mk.examples.asia())
    with pytest.raises(ImpossibleEvidence, match="lung") as caught:
        spn.query("asia", {"lung": "yes", "either": "no", "smoke": "yes"})
    assert "smoke" not in str(caught.value)
    with pytest.raises(UnknownVariable, match="lung"):
        spn.query("lungs")
    with pytest.raises(UnknownVariable, match="'w'"):
        learned.log_prob({"w": [2]})
    with pytest.warns(IgnoredColumnWarning, match="'w'"):
        assert learned.log_prob({"a": [1], "w": [2]})[0] == pytest.approx(learned.log_evidence({"a": 1}))
    with pytest.raises(InvalidEvidence, match="Jeffrey"):
        spn.query("lung", {"xray": mk.Jeffrey([0.3, 0.7])})
    with pytest.raises(UnsupportedModel, match="one number at a time"):
        learned.query(["u", "v"])
    with pytest.raises(InvalidArgument, match="'u' is observed"):
        learned.query("u", {"u": 1.0})
    with pytest.raises(UnsupportedModel, match="is a number"):
        learned.predict_proba({"a": [1]}, "u")
    with pytest.raises(IncompleteModel, match="call fit"):
        mk.SumProductNetwork().query("a")
    gaussian = mk.BayesianNetwork()
    gaussian.add("x", mk.LinearGaussian(0, {}, 1))
    with pytest.raises(UnsupportedModel, match="numbers"):
        mk.SumProductNetwork.from_network(gaussian)
    monkeypatch.setattr(circuit_compiler, "MOST_ENTRIES", 20)
    with pytest.raises(TooLarge, match="ask the network itself"):
        mk.SumProductNetwork.from_network(mk.examples.asia())
