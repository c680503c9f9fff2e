"""Wide noisy-or, noisy-max and gates: the chain is the table, and questions that need no table are answered."""

import warnings

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.inference.flat_graphs import unfolding

KINDS = {
    "noisy-or": lambda names: mk.local.NoisyOr(
        dict(zip(names, (0.9, 0.4, 0.7, 0.2), strict=True)), leak=0.05
    ),
    "noisy-and": lambda names: mk.local.NoisyAnd(
        dict(zip(names, (0.9, 0.4, 0.7, 0.2), strict=True)), leak=0.1
    ),
    "or": lambda names: mk.local.OrGate(*names),
    "at least two": lambda names: mk.local.AtLeast(2, *names),
    "xor": lambda names: mk.local.XorGate(*names),
}


def diagnosis(kind, n=4):
    bn = mk.BayesianNetwork()
    names = [f"c{i}" for i in range(n)]
    for i, name in enumerate(names):
        bn.add(name, states=[False, True], p=[0.6 + 0.05 * i, 0.4 - 0.05 * i])
    bn.add("f", KINDS[kind](names))
    bn.add("g", mk.local.NoisyOr({"c0": 0.8, "f": 0.3}, leak=0.1))
    return bn


@pytest.fixture
def narrow(monkeypatch):
    """Every conditional with two parents or more counts as wide."""
    monkeypatch.setattr(unfolding, "WIDE", 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("given", [{}, {"g": True}, {"f": True}, {"f": True, "c1": True}])
def test_chains_answer_as_the_whole_tables_do(kind, given, narrow, monkeypatch):
    bn = diagnosis(kind)
    found = bn.marginals(given=given, engine="junction-tree")
    best = bn.map(given=given)
    mass = bn.log_evidence(given)
    draws = bn.sample(4000, given=given, seed=0)
    rows = bn.predict_proba(pd.DataFrame([given] * 3), "c2") if given else None
    monkeypatch.setattr(unfolding, "WIDE", np.inf)
    true = bn.copy().marginals(given=given, engine="enumeration")
    assert list(found) == list(true)
    for name in true:
        assert found[name].values == pytest.approx(true[name].values, abs=1e-12)
    assert mass == pytest.approx(bn.copy().log_evidence(given, engine="enumeration"))
    right = bn.copy().map(given=given, engine="enumeration")
    assert best.log_prob == pytest.approx(right.log_prob)
    assert list(draws.columns) == bn.variables
    for name in true:
        share = float((draws[name].astype(str) == "True").mean())
        assert abs(share - true[name][True]) < 5 * np.sqrt(0.25 / 4000)
    if rows is not None:
        assert rows[True].to_numpy() == pytest.approx(np.full(3, true["c2"][True]), abs=1e-12)


def test_forty_causes_of_two_findings_are_exact_and_quick():
    bn = mk.BayesianNetwork()
    for i in range(40):
        bn.add(f"c{i}", states=[False, True], p=[0.95, 0.05])
    bn.add("f", mk.local.NoisyOr({f"c{i}": 0.6 for i in range(40)}, leak=0.01))
    bn.add("g", mk.local.NoisyOr({f"c{i}": 0.3 for i in range(0, 40, 2)}, leak=0.01))
    given = {"f": True, "g": True}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mass = bn.log_evidence(given)
        p = bn.query("c0", given=given)
    # by inclusion and exclusion, each term a product over causes
    off = {"f": 0.99, "g": 0.99, "both": 0.99**2}
    odd = {"f": 0.95 + 0.05 * 0.4, "g": 1.0, "both": 0.95 + 0.05 * 0.4}
    even = {"f": 0.95 + 0.05 * 0.4, "g": 0.95 + 0.05 * 0.7, "both": 0.95 + 0.05 * 0.4 * 0.7}
    silent = {k: off[k] * odd[k] ** 20 * even[k] ** 20 for k in off}
    assert mass == pytest.approx(np.log(1 - silent["f"] - silent["g"] + silent["both"]), rel=1e-12)
    assert p.info.exact
    on = {"f": 0.4, "g": 0.7, "both": 0.28}
    with_c0 = 1 - sum((1, 1, -1)[i] * silent[k] / even[k] * on[k] for i, k in enumerate(("f", "g", "both")))
    assert p[True] == pytest.approx(0.05 * with_c0 / np.exp(mass), rel=1e-10)
    best = bn.map(given=given)
    assert set(best) == {f"c{i}" for i in range(40)}
    assert sum(best.values()) == 1  # one cause of both findings explains them
    assert bn.sample(10, given=given, seed=0)[["f", "g"]].all(axis=None)
    assert not any(" after " in name for name in bn.marginals(given=given))


@pytest.mark.parametrize("engine", ["gibbs", "importance", "parallel-tempering"])
def test_monte_carlo_answers_within_its_error(engine, narrow, monkeypatch):
    bn = diagnosis("noisy-or")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = bn.query("c0", given={"f": True}, engine=engine)
    monkeypatch.setattr(unfolding, "WIDE", np.inf)
    assert abs(found[True] - bn.copy().query("c0", given={"f": True})[True]) < 5 * found.info.error + 1e-3


def test_an_edited_table_is_unfolded_anew(narrow):
    bn = diagnosis("noisy-or")
    before = bn.query("c0", given={"f": True})[True]
    bn.replace("f", mk.local.NoisyOr({f"c{i}": 0.01 for i in range(4)}, leak=0.5))
    assert bn.query("c0", given={"f": True})[True] < before - 0.05
