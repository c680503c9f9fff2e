"""Learned regimes: rules that act on names and frames, values from rows they were not learned from."""

import numpy as np
import pandas as pd
import pytest

from markovia.control.evaluation import evaluate
from markovia.control.regimes import learn_regime
from markovia.errors import InvalidArgument, UnknownState, UnknownVariable
from markovia.learning.control.optimal_regimes import REGIME_METHODS

STAGES = {"first": ["grade"], "second": ["answer"]}


def logged(n=1200, seed=0):
    rng = np.random.default_rng(seed)
    grade = rng.choice(["low", "high"], n)
    first = rng.choice(["wait", "treat"], n)
    answer = rng.normal(size=n) + (first == "treat") * (grade == "high")
    second = rng.choice(["wait", "treat"], n)
    days = 2.0 * answer + (second == "treat") * np.where(answer > 0, -2.0, 2.0) + rng.normal(size=n)
    days += (first == "treat") * np.where(grade == "high", 1.0, -1.5)
    return pd.DataFrame({"grade": grade, "first": first, "answer": answer, "second": second, "days": days})


@pytest.mark.parametrize("method", REGIME_METHODS)
def test_a_regime_acts_as_is_best(method):
    regime = learn_regime(logged(), stages=STAGES, reward="days", method=method, learner="linear", seed=1)
    assert [regime.act("first", grade=g) for g in ("low", "high")] == ["wait", "treat"]
    for answer in (-1.5, 1.5):
        wanted = "treat" if answer < 0 else "wait"
        assert regime.act("second", grade="low", first="wait", answer=answer) == wanted
    assert list(regime) == ["first", "second"]
    assert regime.interval[0] < regime.value < regime.interval[1]
    assert f"a regime by {method}: value" in str(regime)


def test_its_value_is_that_of_rows_it_was_not_learned_from():
    """Without any effect the best of many rules looks better than it is on the rows it was learned from."""
    rng = np.random.default_rng(3)
    found, naive = [], []
    for _ in range(40):
        frame = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef"))
        frame["done"], frame["days"] = rng.integers(0, 2, 400), rng.normal(size=400)
        regime = learn_regime(frame, stages={"done": list("abcdef")}, reward="days", seed=rng)
        found.append(regime.value)
        naive.append(
            evaluate(regime, frame, stages={"done": list("abcdef")}, reward="days", learner="linear").value
        )
    assert abs(np.mean(found)) < 3 * np.std(found) / np.sqrt(40)
    assert np.mean(naive) > 0.05


def test_a_tree_is_shown_in_the_units_of_the_data():
    frame = logged().assign(answer=lambda f: 1000.0 + 50.0 * f.answer)
    regime = learn_regime(frame, stages=STAGES, reward="days", method="tree", learner="linear", depth=1)
    threshold = float(str(regime).split("answer <= ")[1].split(":")[0])
    assert 980 < threshold < 1020
    assert "grade=low <= 0.5: treat" in str(regime)


def test_tables_know_the_histories_they_were_learned_from():
    frame = logged().drop(columns=["answer"]).assign(answer=lambda f: (f.days > 0).astype(int))
    regime = learn_regime(frame, stages=STAGES, reward="days", learner="tabular")
    one = regime.act("second", grade="low", first="wait", answer=1)
    rows = pd.DataFrame({"grade": ["low"] * 2, "first": ["wait"] * 2, "answer": [1, 0]})
    assert regime.actions("second", rows)[0] == one
    with pytest.raises(InvalidArgument, match="never logged"):
        regime.act("second", grade="low", first="wait", answer=7)


def test_the_same_seed_gives_the_same_regime_and_rows_may_come_in_any_units():
    one, two = (learn_regime(logged(), stages=STAGES, reward="days", seed=4) for _ in range(2))
    assert one.value == two.value
    for scale in (1e-9, 1e9):
        frame = logged().assign(days=lambda f, s=scale: s * f.days)
        for method in REGIME_METHODS:
            far, near = (
                learn_regime(f, stages=STAGES, reward="days", method=method, learner="linear", seed=4)
                for f in (frame, logged())
            )
            assert far.value == pytest.approx(scale * near.value, rel=1e-7)


def test_what_a_regime_cannot_do_is_refused_in_a_sentence():
    regime = learn_regime(logged(), stages=STAGES, reward="days")
    with pytest.raises(InvalidArgument, match="looks at 'answer' before 'second'"):
        regime.act("second", grade="low", first="wait")
    with pytest.raises(UnknownVariable, match="third"):
        regime.act("third")
    with pytest.raises(UnknownState, match="middle"):
        regime.act("first", grade="middle")
    with pytest.raises(UnknownState, match="unknown state 0"):
        regime.act("first", grade=0)
    with pytest.raises(InvalidArgument, match="method= is 'q'"):
        learn_regime(logged(), stages=STAGES, reward="days", method="z")
    with pytest.raises(InvalidArgument, match="share="):
        learn_regime(logged(), stages=STAGES, reward="days", share=1.0)
    with pytest.raises(InvalidArgument, match="needs stages="):
        learn_regime(logged(), reward="days")
    with pytest.raises(InvalidArgument, match="only one row"):
        learn_regime(logged()[:1], stages=STAGES, reward="days")
