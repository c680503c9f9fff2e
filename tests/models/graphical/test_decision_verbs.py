"""Networks with decisions and utilities in them: what every verb of a network says of them."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from random_diagrams import joint_outcomes, random_diagram


@pytest.fixture
def diagram():
    bn = mk.BayesianNetwork()
    bn.add("rain", [0.7, 0.3], states=["no", "yes"])
    bn.add("forecast", [[0.9, 0.1], [0.2, 0.8]], states=["dry", "wet"], parents=["rain"])
    bn.add("umbrella", mk.Decision(["take", "leave"]), parents=["forecast"])
    bn.add(
        "wet", [[[1, 0], [1, 0]], [[0.9, 0.1], [0, 1]]], states=["no", "yes"], parents=["rain", "umbrella"]
    )
    bn.add("comfort", mk.Utility([100, 0]), parents=["wet"])
    bn.add("burden", mk.Utility([-20, 0]), parents=["umbrella"])
    return bn


def without(bn):
    """Return the followed diagram as a network that never had a decision or a utility."""
    made = bn.follow(bn.decide())
    plain = mk.BayesianNetwork()
    for n in made.variables:
        if n not in made.utilities:
            plain.add(n, made[n].values, states=made.states(n), parents=made.parents(n))
    return plain


def test_a_followed_network_answers_as_one_that_never_had_decisions(diagram):
    made, plain = diagram.follow(diagram.decide()), without(diagram)
    rows = plain.sample(20, seed=1)
    assert made.sample(5, seed=0).equals(plain.sample(5, seed=0))
    assert made.marginals(given={"wet": "yes"}).keys() == plain.marginals(given={"wet": "yes"}).keys()
    np.testing.assert_allclose(made.log_prob(rows), plain.log_prob(rows))
    np.testing.assert_allclose(made.score(rows), plain.score(rows))
    evidence = [{"wet": "yes"}, {"forecast": "dry", "umbrella": None}]
    np.testing.assert_allclose(made.log_evidence(evidence), plain.log_evidence(evidence))
    np.testing.assert_allclose(made.joint().values, plain.joint().values)
    assert made.map().to_dict() == plain.map().to_dict()
    assert made.predict(rows.drop(columns="rain"), "rain").equals(
        plain.predict(rows.drop(columns="rain"), "rain")
    )
    assert made.to_markov_network().query("rain")["yes"] == pytest.approx(0.3)
    assert len(made.to_factor_graph().factors) == len(plain.to_factor_graph().factors)
    assert made.treewidth() == plain.treewidth()
    assert made.independent("rain", "umbrella", given="forecast") == plain.independent(
        "rain", "umbrella", given="forecast"
    )
    for engine in ("junction-tree", "variable-elimination", "enumeration", "conditioning", "loopy-bp"):
        told = made.query("rain", {"wet": "yes"}, engine=engine)["yes"]
        assert told == pytest.approx(plain.query("rain", {"wet": "yes"}, engine=engine)["yes"])


def test_open_decisions_refuse_what_depends_on_them_alone(diagram):
    assert diagram.query("rain", given={"forecast": "wet"})["yes"] == pytest.approx(0.24 / 0.31)
    assert diagram.log_evidence({"forecast": "wet"}) == pytest.approx(np.log(0.31))
    assert diagram.query("wet", given={"umbrella": "leave"})["yes"] == pytest.approx(0.3)
    assert diagram.do(umbrella="leave").query("wet")["yes"] == pytest.approx(0.3)
    for ask in (
        lambda: diagram.query("wet"),
        lambda: diagram.query("rain", given={"wet": "yes"}),
        diagram.marginals,
        diagram.map,
        diagram.joint,
        diagram.to_markov_network,
        lambda: diagram.sample(2),
        diagram.expected_utility,
        diagram.utility,
    ):
        with pytest.raises(mk.errors.IncompleteModel, match="not decided"):
            ask()


def test_distributions_are_learned_and_decisions_stay(diagram):
    rows = diagram.follow({"umbrella": [0.5, 0.5]}).sample(4_000, seed=0)
    learned = mk.BayesianNetwork()
    for n in diagram.variables:
        if n in diagram.decisions:
            learned.add(n, mk.Decision(["take", "leave"]), parents=diagram.parents(n))
        elif n in diagram.utilities:
            learned.add(n, mk.Utility(diagram[n].worth), parents=diagram.parents(n))
        else:
            learned.add(n, states=diagram.states(n), parents=diagram.parents(n))
    assert learned.fit(rows) is learned
    assert learned.fit_ is not None
    assert learned.decisions == ["umbrella"]
    assert learned.decide().value == pytest.approx(diagram.decide().value, abs=2.5)
    np.testing.assert_allclose(learned["wet"].values, diagram["wet"].values, atol=0.05)


def test_a_dynamic_network_with_a_decision_is_learned():
    process = mk.DynamicBayesianNetwork()
    truth = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]])
    process.add("s", np.full((2, 2, 2), 0.5), states=2, parents=["s@-1", "a@-1"], initial=[0.5, 0.5])
    process.add("a", mk.Decision(2), parents=["s"])
    process.add("r", mk.Utility([[0, 1], [2, 0]]), parents=["s", "a"])
    rng = np.random.default_rng(0)
    walks = []
    for _ in range(200):
        s, a = np.zeros(12, dtype=int), rng.integers(0, 2, 12)
        for t in range(1, 12):
            s[t] = rng.random() < truth[s[t - 1], a[t - 1], 1]
        walks.append({"s": s, "a": a})
    process.fit(walks)
    np.testing.assert_allclose(process.transition["s"].values, truth, atol=0.06)
    assert process.transition.decisions == ["a"]
    assert process.decide(discount=0.9).value > 0


def test_copies_pickles_and_edits_keep_what_is_decided(diagram):
    value = diagram.decide().value
    assert copy.deepcopy(diagram).decide().value == value
    kept = pickle.loads(pickle.dumps(diagram))
    assert kept.decide().value == value
    assert diagram.compare(kept) == []
    policy = pickle.loads(pickle.dumps(diagram.decide()))
    assert policy.act("umbrella", forecast="wet") == "take"
    assert policy.reached["umbrella"].sum() == pytest.approx(1.0)
    renamed = diagram.copy()
    renamed.rename({"umbrella": "brolly", "comfort": "joy"})
    renamed.rename_states("brolly", {"take": "with", "leave": "without"})
    assert renamed.decide().act("brolly", forecast="wet") == "with"
    renamed.remove("burden")
    assert renamed.decide().value == pytest.approx(97.0)  # always with it
    assert [d.where for d in diagram.compare(diagram.follow(diagram.decide()))] == ["umbrella"]
    assert diagram.validate() is None
    assert isinstance(diagram.decide().to_pandas(), pd.DataFrame)


@pytest.mark.parametrize("seed", range(6))
def test_every_engine_answers_about_a_followed_diagram(seed):
    bn = random_diagram(seed, n_chance=4)
    made = bn.follow(bn.decide())
    names, column, p, _ = joint_outcomes(made)
    target = names[0]
    truth = [p[column[target] == k].sum() for k in range(len(made.states(target)))]
    for engine in mk.engines.__all__:
        kind = getattr(mk.engines, engine)
        if getattr(kind, "kinds", frozenset({"table"})) != frozenset({"table"}) or not getattr(
            kind, "exact", False
        ):
            continue
        if "joint" not in getattr(kind, "answers", ("joint",)):
            continue
        np.testing.assert_allclose(made.query(target, engine=kind()).values, truth, atol=1e-9)


def test_policies_are_written_in_many_ways(diagram):
    table = mk.BayesianNetwork()
    worth = diagram.expected_utility({"umbrella": "take"})
    for form in (
        "take",
        [1.0, 0.0],
        {"take": 1.0, "leave": 0.0},
        lambda: "take",
        lambda forecast: "take",
        [[1, 0], [1, 0]],
    ):
        assert diagram.expected_utility({"umbrella": form}) == pytest.approx(worth)
    mixed = diagram.expected_utility({"umbrella": [0.5, 0.5]})
    assert mixed == pytest.approx((worth + diagram.expected_utility({"umbrella": "leave"})) / 2)
    with pytest.raises(mk.errors.UnknownVariable):
        diagram.follow({"rain": "no"})
    with pytest.raises(mk.errors.InvalidArgument):
        diagram.follow("take")
    with pytest.raises(mk.errors.MarkoviaError):
        diagram.follow({"umbrella": lambda rain: "take"})
    assert len(table) == 0


def test_only_utilities_depend_on_utilities(diagram):
    with pytest.raises(mk.errors.InvalidGraph, match="whose children are utilities"):
        diagram.add("x", lambda comfort: comfort > 0)
    with pytest.raises(mk.errors.InvalidGraph, match="whose children are utilities"):
        diagram.add("x", [[0.5, 0.5], [0.5, 0.5]], parents=["comfort"])
    with pytest.raises(mk.errors.InvalidGraph, match="whose children are utilities"):
        diagram.replace("rain", [[0.5, 0.5]], parents=["comfort"])
    diagram.add("total", mk.Utility(lambda comfort, burden: comfort + burden))
    assert "x" not in diagram


def test_a_followed_process_is_filtered_beside_its_utilities():
    process = mk.DynamicBayesianNetwork()
    moves = [[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.1, 0.9]]]
    process.add("s", moves, states=2, parents=["s@-1", "a@-1"], initial=[0.5, 0.5])
    process.add("seen", [[0.8, 0.2], [0.3, 0.7]], states=2, parents=["s"])
    process.add("a", mk.Decision(2), parents=["s"])
    process.add("r", mk.Utility([[0, 1], [2, 0]]), parents=["s", "a"])
    made = process.follow({"a": lambda s: 1 - s})
    evidence = {"seen": [0, 1, 1]}
    last = made.filter(evidence)["s"][0][-1]
    named = {f"seen@{t}": s for t, s in enumerate(evidence["seen"])}
    np.testing.assert_allclose(last, made.query("s@2", given=named).values)
    np.testing.assert_allclose(made.log_prob(evidence), made.unroll(3).log_evidence(named))
    with pytest.raises(mk.errors.IncompleteModel, match=r"do\(\{'a@0'"):
        process.query("s@1")
