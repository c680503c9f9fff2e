"""Evaluating policies on frames: every way to write a policy, the model as the source of stages, refusals, printing."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.control.evaluation import evaluate
from markovia.errors import (
    IncompleteModel,
    InvalidArgument,
    NoOverlap,
    NotIdentifiable,
    UnknownVariable,
    UnsupportedModel,
)
from markovia.factors.decisions.decision import Decision
from markovia.factors.decisions.utility import Utility
from markovia.factors.tables.conditional import ConditionalTable
from markovia.inference.decisions.diagrams.policy import Policy
from markovia.inference.result import Info
from markovia.learning.control.off_policy import METHODS
from markovia.models.graphical.decisions.freeing import freed

STAGES = {"a1": ["l1"], "a2": ["l2"]}


def logged(n=900, seed=0):
    rng = np.random.default_rng(seed)
    l1 = rng.integers(0, 2, n)
    a1 = (rng.random(n) < 0.3 + 0.4 * l1).astype(int)
    l2 = (rng.random(n) < 0.6 - 0.3 * l1 + 0.2 * a1).astype(int)
    a2 = (rng.random(n) < 0.7 - 0.4 * l2).astype(int)
    y = (rng.random(n) < 0.2 + 0.3 * l1 * a1 + 0.3 * l2 * a2 + 0.1 * (1 - a2)).astype(int)
    return pd.DataFrame({"l1": l1, "a1": a1, "l2": l2, "a2": a2, "y": y})


def network(frame):
    """Every node after all before it: no independence is assumed."""
    names = list(frame.columns)
    model = mk.BayesianNetwork({n: names[:i] for i, n in enumerate(names)})
    model.fit(frame)
    return model


RULES = {"a1": lambda l1: l1, "a2": lambda l2, a1: int(l2 or a1)}


def tables(frame):
    model = network(frame)
    a1, a2, l1, l2 = (model.variable(n) for n in ("a1", "a2", "l1", "l2"))
    second = np.array([[[1, 0], [0, 1]], [[0, 1], [0, 1.0]]])
    return {"a1": ConditionalTable(a1, [l1], np.eye(2)), "a2": ConditionalTable(a2, [a1, l2], second)}


class Acting:
    def act(self, name, **sights):
        return sights["l1"] if name == "a1" else int(sights["l2"] or sights["a1"])


def test_all_ways_to_write_a_policy_are_worth_the_same():
    frame = logged()
    one = evaluate(RULES, frame, stages=STAGES, reward="y")
    assert one.learner == "tabular"
    rules = tables(frame)
    decided = Policy(rules, 0.0, 0.0, 0.0, Info("by hand", exact=True, seconds=0.0), {}, lambda policy: {})
    for policy in (rules, decided, Acting(), {**RULES, "a1": lambda l1: {l1: 1.0, 1 - l1: 0.0}}):
        other = evaluate(policy, frame, stages=STAGES, reward="y")
        assert (other.value, other.standard_error) == (one.value, one.standard_error)
    always = evaluate({"a1": 1, "a2": 0}, frame, stages=STAGES, reward="y")
    assert (
        always.value
        == evaluate({"a1": lambda: 1, "a2": lambda l1: 0}, frame, stages=STAGES, reward="y").value
    )


@pytest.mark.parametrize("method", ["fitted Q", "doubly robust"])
def test_a_fitted_network_that_follows_the_policy_is_worth_what_tables_say(method):
    frame = logged()
    model = network(frame)
    for name, table in tables(frame).items():
        model.replace(name, table.values, parents=table.parent_names)
    found = evaluate(RULES, frame, stages=STAGES, reward="y", method=method, learner="tabular")
    assert found.value == pytest.approx(model.query("y")[1], abs=1e-12)


def test_what_decide_returns_for_a_freed_network_is_worth_the_same_on_its_rows():
    frame = logged()
    model = network(frame)
    model.add("gain", Utility([0.0, 1.0]), parents=["y"])
    decisions = freed(model, {"a1": ["l1"], "a2": ["l2"]})
    policy = decisions.decide()
    found = evaluate(policy, frame, model, method="fitted Q", learner="tabular")
    assert found.value == pytest.approx(policy.value, abs=1e-12)
    plan = mk.causal.identify_plan(frame_graph(model), {"a1": ["l1"], "a2": ["l2"]}, "y")
    assert plan.evaluate(model, policy)[1] == pytest.approx(policy.value, abs=1e-12)


def frame_graph(model):
    return "; ".join(f"{a} -> {b}" for a, b in model.edges if b != "gain")


def test_the_model_says_stages_rewards_and_states():
    frame = logged().replace({"a1": {0: "no", 1: "yes"}, "a2": {0: "no", 1: "yes"}})
    model = mk.BayesianNetwork(
        {"l1": [], "a1": ["l1"], "l2": ["l1", "a1"], "a2": ["l2"], "y": ["l1", "a1", "l2", "a2"]}
    )
    model.fit(frame)
    model.add("gain", Utility([0.0, 5.0]), parents=["y"])
    model.add("price", Utility({"no": 0.0, "yes": -1.0}), parents=["a1"])
    policy = {"a2": lambda l2: "yes" if l2 else "no", "a1": "yes"}
    found = evaluate(policy, frame, model, learner="tabular")
    assert [s.name for s in found.overlap] == ["a1", "a2"]
    paid = frame.assign(gain=5.0 * frame.y, price=-1.0 * (frame.a1 == "yes"))
    by_hand = evaluate(
        policy,
        paid,
        stages=STAGES,
        reward={"a1": "price", "a2": "gain"},
        learner="tabular",
        method="per-decision",
    )
    assert evaluate(policy, frame, model, method="per-decision", learner="tabular").value == by_hand.value
    assert found.interval[0] < by_hand.value < found.interval[1]


def test_utilities_that_weigh_utilities_are_read_from_the_rows():
    frame = logged()
    model = network(frame)
    model.add("health", Utility([0.0, 4.0]), parents=["y"])
    model.add("cost", Utility([0.0, 1.0]), parents=["a2"])
    model.add("total", Utility(lambda health, cost: health - cost**2))
    found = evaluate(RULES, frame, model)
    by_hand = evaluate(RULES, frame.assign(t=4.0 * frame.y - frame.a2), stages=STAGES, reward="t")
    assert found.value == pytest.approx(by_hand.value, abs=1e-12)


def test_known_behaviour_takes_the_place_of_the_fit():
    frame = logged(4000)
    behaviour = {
        "a1": lambda l1: {1: 0.3 + 0.4 * l1, 0: 0.7 - 0.4 * l1},
        "a2": lambda l2: {1: 0.7 - 0.4 * l2, 0: 0.3 + 0.4 * l2},
    }
    given = evaluate(RULES, frame, stages=STAGES, reward="y", behaviour=behaviour, method="importance")
    fitted = evaluate(RULES, frame, stages=STAGES, reward="y", method="importance")
    assert abs(given.value - fitted.value) < 3 * given.standard_error
    assert fitted.standard_error < given.standard_error
    assert given.overlap[0].least == pytest.approx(0.7)


def test_histories_that_never_repeat_are_read_as_numbers():
    frame = logged()
    frame["l1"] = frame["l1"] + np.linspace(0, 0.01, len(frame))
    found = evaluate({"a1": 1, "a2": lambda l2: l2}, frame, stages=STAGES, reward="y")
    assert found.learner == "linear"
    words = logged().astype({"l1": str, "l2": "category"})
    plain = evaluate({"a1": 1, "a2": 0}, logged(), stages=STAGES, reward="y", learner="linear")
    coded = evaluate({"a1": 1, "a2": 0}, words, stages=STAGES, reward="y", learner="linear")
    assert coded.value == pytest.approx(plain.value, abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_units_and_the_order_of_rows_do_not_matter(method):
    frame = logged()
    one = evaluate(RULES, frame, stages=STAGES, reward="y", method=method)
    for scale in (1e-9, 1e9):
        other = evaluate(RULES, frame.assign(y=frame.y * scale).sample(frac=1, random_state=0), stages=STAGES, reward="y",
                         method=method)  # fmt: skip
        assert other.value == pytest.approx(scale * one.value, rel=1e-9)
        assert other.interval == pytest.approx([scale * v for v in one.interval], rel=1e-9)


def test_what_cannot_be_evaluated_is_refused_in_a_sentence():
    frame = logged()
    with pytest.raises(InvalidArgument, match="stages="):
        evaluate(RULES, frame, reward="y")
    with pytest.raises(InvalidArgument, match="reward="):
        evaluate(RULES, frame, stages=STAGES)
    with pytest.raises(IncompleteModel, match="no utility"):
        evaluate(RULES, frame, network(frame))
    with pytest.raises(InvalidArgument, match="looks at 'l2', but what is known before it is 'l1'"):
        evaluate({"a1": lambda l2: l2, "a2": 0}, frame, stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="but the stages are 'a1', 'a2'"):
        evaluate({"a1": 1}, frame, stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="comes no earlier"):
        evaluate({"a1": 1, "a2": 1}, frame, stages={"a1": ["a2"], "a2": []}, reward="y")
    with pytest.raises(UnknownVariable, match="l9"):
        evaluate(RULES, frame, stages={**STAGES, "a2": "l9"}, reward="y")
    with pytest.raises(InvalidArgument, match="missing in 'l2'"):
        evaluate(RULES, frame.assign(l2=frame.l2.where(frame.index > 3)), stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="no rows"):
        evaluate(RULES, frame[:0], stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="column of numbers"):
        evaluate(RULES, frame.assign(y="good"), stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="finite in every row"):
        evaluate(RULES, frame.assign(y=np.inf), stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="method= is"):
        evaluate(RULES, frame, stages=STAGES, reward="y", method="naive")
    with pytest.raises(InvalidArgument, match="sum to one"):
        evaluate({"a1": lambda l1: {0: 0.5}, "a2": 0}, frame, stages=STAGES, reward="y")
    with pytest.raises(InvalidArgument, match="a policy maps"):
        evaluate(7, frame, stages=STAGES, reward="y")
    loose = network(frame)
    loose.add("gain", Utility([0, 1]), parents=["y"])
    loose.equivalence_class = mk.graphs.MixedGraph(
        [f"{a} {'---' if (a, b) == ('l1', 'a1') else '-->'} {b}" for a, b in loose.edges]
    )
    with pytest.raises(NotIdentifiable, match="l1 --- a1 without a direction"):
        evaluate(RULES, frame, loose)
    decided = network(frame)
    decided.add("gain", Utility([0, 1]), parents=["y"])
    decided.replace("a1", Decision([0, 1]), parents=["l1"])
    with pytest.raises(UnsupportedModel, match=r"before free\(\)"):
        evaluate(RULES, frame, decided)


def test_what_was_never_done_is_refused():
    frame = logged()
    with pytest.raises(NoOverlap, match="takes 2, which no row"):
        evaluate({"a1": 2, "a2": 0}, frame, stages=STAGES, reward="y")
    bare = frame[(frame.l2 == 0) | (frame.a2 == 0)]
    with pytest.raises(NoOverlap, match="at 'a2' the policy takes 1 in"):
        evaluate({"a1": 1, "a2": 1}, bare, stages=STAGES, reward="y")


def test_it_prints_the_value_and_how_far_the_rows_reach():
    found = evaluate(RULES, logged(), stages=STAGES, reward="y")
    shown = str(found)
    assert shown.startswith(f"value {found.value:.5g} (95%: ")
    assert "doubly robust, tabular, 900 rows" in shown
    assert "rows that follow" in shown
    assert "<pre>" in found._repr_html_()
    few = evaluate({"a1": 1, "a2": 1}, logged(60, seed=2), stages=STAGES, reward="y", learner="linear")
    assert "effective rows follow the policy" in str(few)


@pytest.mark.slow
def test_another_process_says_the_same():
    program = (
        "import sys; sys.path.insert(0, {!r}); from test_evaluation import *; "
        "print(repr(evaluate(RULES, logged(200), stages=STAGES, reward='y', learner='linear', folds=3).value))"
    ).format(str(__file__).rsplit("/", 1)[0])
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert (
        float(said)
        == evaluate(RULES, logged(200), stages=STAGES, reward="y", learner="linear", folds=3).value
    )
