"""Counterfactual identification: formulas over the observed distribution against enumeration of all hidden causes."""

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.causal.identification.counterfactual import (
    effect_on_treated,
    identify_counterfactual,
    natural_effects,
    path_specific,
)
from markovia.causal.identification.events import Event
from markovia.errors import InvalidArgument, NoOverlap, NotIdentifiable
from markovia.graphs import MixedGraph


class Hidden:
    """Binary variables v0, v1, ... that are random functions of their parents, of a cause shared along each bidirected edge
    and of one of their own; everything is known by enumeration."""

    def __init__(self, seed, size, edges=None, shared=None):
        rng = random.Random(seed)
        self.names = [f"v{i}" for i in range(size)]
        pairs = [(j, i) for i in range(size) for j in range(i)]
        self.edges = [e for e in pairs if rng.random() < 0.5] if edges is None else edges
        self.shared = [e for e in pairs if rng.random() < 0.25] if shared is None else shared
        weights = [0.2 + 0.6 * rng.random() for _ in range(len(self.shared) + 2 * size)]
        self.causes = list(itertools.product((0, 1), repeat=len(weights)))
        self.mass = np.array(
            [np.prod([w if u else 1 - w for w, u in zip(weights, us, strict=True)]) for us in self.causes]
        )
        self.above = {i: [a for a, b in self.edges if b == i] for i in range(size)}
        self.near = {
            i: [k for k, e in enumerate(self.shared) if i in e]
            + [len(self.shared) + i, len(self.shared) + size + i]
            for i in range(size)
        }
        self.answers = [{} for _ in range(size)]
        self.rng = rng

    def world(self, us, do):
        values = {}
        for i in range(len(self.names)):
            key = tuple(values[j] for j in self.above[i]), tuple(us[k] for k in self.near[i])
            values[i] = do[i] if i in do else self.answers[i].setdefault(key, int(self.rng.random() < 0.5))
        return values

    def value(self, us, event):
        do = {int(n[1:]): self.value(us, v) if isinstance(v, Event) else v for n, v in event.do.items()}
        return self.world(us, do)[int(event.variable[1:])]

    def probability(self, events):
        return sum(
            w
            for us, w in zip(self.causes, self.mass, strict=True)
            if all(self.value(us, e) == e.value for e in events)
        )

    def observed(self):
        """A network without hidden variables that has the same observed distribution: each given all before it."""
        table = np.zeros([2] * len(self.names))
        for us, w in zip(self.causes, self.mass, strict=True):
            table[tuple(self.world(us, {}).values())] += w
        bn = mk.BayesianNetwork()
        for i, name in enumerate(self.names):
            joint = table.sum(axis=tuple(range(i + 1, len(self.names))))
            whole = joint.sum(axis=-1, keepdims=True)
            rows = np.divide(joint, whole, out=np.full(joint.shape, 0.5), where=whole > 0)
            bn.add(name, rows, states=[0, 1], parents=self.names[:i])
        return bn

    def graph(self):
        directed = [f"v{a} --> v{b}" for a, b in self.edges]
        return MixedGraph([*directed, *(f"v{a} <-> v{b}" for a, b in self.shared)], nodes=self.names)


def random_event(rng, names, nested=True):
    variable = rng.choice(names)
    do = {}
    for name in names:
        if name != variable and rng.random() < 0.25:
            inner = {n: rng.randrange(2) for n in names if n != name and rng.random() < 0.3}
            do[name] = Event(name, do=inner) if nested and rng.random() < 0.2 else rng.randrange(2)
    return Event(variable, rng.randrange(2), do=do)


@settings(max_examples=120)
@given(st.integers(0, 10**9))
def test_formulas_give_what_enumeration_of_hidden_causes_gives(seed):
    rng = random.Random(seed)
    hidden = Hidden(seed, rng.choice([3, 4]))
    events = [random_event(rng, hidden.names) for _ in range(rng.choice([1, 1, 2]))]
    facts = [random_event(rng, hidden.names, nested=False) for _ in range(rng.choice([0, 1, 2]))]
    below = hidden.probability(facts)
    if below < 1e-6:
        return
    try:
        found = identify_counterfactual(hidden.graph(), events, facts)
        answer = found.probability(hidden.observed())
    except (NotIdentifiable, NoOverlap):
        return
    assert answer == pytest.approx(hidden.probability([*events, *facts]) / below, abs=1e-9)
    if not facts:
        opened = identify_counterfactual(hidden.graph(), [Event(events[0].variable, do=events[0].do)])
        table = opened.evaluate(hidden.observed())
        assert table[events[0].value] == pytest.approx(hidden.probability(events[:1]), abs=1e-9)


def test_enough_random_questions_are_identified_to_mean_something():
    rng = random.Random(0)
    identified = 0
    for seed in range(100):
        hidden = Hidden(seed, 4)
        try:
            identify_counterfactual(
                hidden.graph(), [random_event(rng, hidden.names)], [random_event(rng, hidden.names)]
            )
            identified += 1
        except (NotIdentifiable, InvalidArgument):
            pass
    assert 30 < identified < 95


def test_two_outcomes_of_one_person_are_not_identified_even_by_experiments():
    with pytest.raises(NotIdentifiable, match="y has its own hidden causes, and x would have two values"):
        identify_counterfactual("x -> y", [Event("y", 1, do={"x": 1}), Event("y", 0, do={"x": 0})])


def test_consistency_makes_a_fact_of_a_world_that_is_the_real_one():
    hidden = Hidden(3, 2, edges=[(0, 1)], shared=[(0, 1)])
    found = identify_counterfactual(hidden.graph(), [Event("v1", 1, do={"v0": 1}), Event("v0", 1)])
    assert found.probability(hidden.observed()) == pytest.approx(hidden.observed().query(["v0", "v1"])[1, 1])
    with pytest.raises(NotIdentifiable):
        identify_counterfactual(hidden.graph(), Event("v1", 1, do={"v0": 1}), Event("v0", 0))


def test_events_that_exclude_each_other_have_probability_zero_and_cannot_be_given():
    bn = Hidden(1, 2, edges=[(0, 1)], shared=[]).observed()
    both = [Event("v1", 1, do={"v0": 1}), Event("v1", 0, do={"v0": 1})]
    assert identify_counterfactual("v0 -> v1", both).probability(bn) == 0
    with pytest.raises(InvalidArgument, match="exclude each other"):
        identify_counterfactual("v0 -> v1", Event("v0", 1), both)


def test_the_effect_on_the_treated_weighs_by_those_who_had_the_treatment():
    bn = mk.BayesianNetwork()
    bn.add("z", [0.6, 0.4], states=[0, 1])
    bn.add("x", [[0.9, 0.1], [0.3, 0.7]], states=[0, 1], parents=["z"])
    bn.add("y", [[[0.9, 0.1], [0.5, 0.5]], [[0.6, 0.4], [0.2, 0.8]]], states=[0, 1], parents=["x", "z"])
    share = bn.query("z", given={"x": 1})
    expected = share[0] * 0.1 + share[1] * 0.5
    assert effect_on_treated(bn, "x", "y", had=1, instead=0).evaluate(bn)[1] == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_natural_effects_are_those_of_nested_worlds(seed):
    hidden = Hidden(seed, 3, edges=[(0, 1), (0, 2), (1, 2)], shared=[])
    found = natural_effects(hidden.graph(), "v0", "v2", "v1", treated=1, control=0).evaluate(
        hidden.observed()
    )

    def mean(own, theirs):
        return hidden.probability([Event("v2", 1, do={"v0": own, "v1": Event("v1", do={"v0": theirs})})])

    assert found["direct"] == pytest.approx(mean(1, 0) - mean(0, 0))
    assert found["indirect"] == pytest.approx(mean(0, 1) - mean(0, 0))
    assert found["total"] == pytest.approx(mean(1, 1) - mean(0, 0))


def test_a_confounder_that_treatment_changes_leaves_natural_effects_open():
    with pytest.raises(NotIdentifiable):
        natural_effects("x -> l; l -> m; l -> y; x -> m; m -> y; x -> y", "x", "y", "m", treated=1, control=0)
    with pytest.raises(NotIdentifiable):
        natural_effects("x -> m -> y; x -> y; m <-> y", "x", "y", "m", treated=1, control=0)


def test_the_effect_along_a_path_is_that_of_nested_worlds_and_a_recanting_witness_forbids_it():
    # v0 -> v1 -> v3, v0 -> v2 -> v3, v0 -> v3
    hidden = Hidden(5, 4, edges=[(0, 1), (0, 2), (0, 3), (1, 3), (2, 3)], shared=[])
    found = path_specific(hidden.graph(), "v0", "v3", [["v0", "v2", "v3"]], treated=1, control=0)
    world = {"v0": 0, "v1": Event("v1", do={"v0": 0}), "v2": Event("v2", do={"v0": 1})}
    assert found.evaluate(hidden.observed())[1] == pytest.approx(
        hidden.probability([Event("v3", 1, do=world)])
    )
    with pytest.raises(NotIdentifiable):
        path_specific(
            "x -> w; w -> m; w -> y; m -> y", "x", "y", [["x", "w", "m", "y"]], treated=1, control=0
        )
    with pytest.raises(InvalidArgument, match="x -> y is no directed path"):
        path_specific("x -> m -> y", "x", "y", [["x", "y"]], treated=1, control=0)


def test_what_an_intervention_does_not_touch_is_the_same_in_both_worlds():
    bn = Hidden(2, 3, edges=[(0, 2), (1, 2)], shared=[]).observed()
    found = identify_counterfactual("v0 -> v2 <- v1", [Event("v0"), Event("v0", do={"v1": 1})]).evaluate(bn)
    assert found.factor().names == ("v0", "v0[v1=1]")
    np.testing.assert_allclose(found.values, np.diag(bn.query("v0").values), atol=1e-12)


def test_natural_effects_on_a_state_are_those_of_its_probability():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5], states=["no", "yes"])
    bn.add("m", [[0.8, 0.2], [0.3, 0.7]], states=["low", "high"], parents=["x"])
    table = [[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]]
    bn.add("y", table, states=["ill", "well"], parents=["x", "m"])
    found = natural_effects(bn, "x", "y", "m", treated="yes", control="no")
    well, ill = found.evaluate(bn, "well"), found.evaluate(bn, "ill")
    assert well == pytest.approx({"total": 0.49, "direct": 0.24, "indirect": 0.15})
    assert ill == pytest.approx({k: -v for k, v in well.items()})


def test_facts_of_nested_worlds_are_divided_by_their_own_probability():
    answered = 0
    for seed in range(40):
        rng = random.Random(seed)
        hidden = Hidden(seed, 3, shared=[])
        fact = Event("v2", 1, do={"v1": Event("v1", do={"v0": rng.randrange(2)})})
        event = random_event(rng, hidden.names, nested=False)
        below = hidden.probability([fact])
        if 1e-6 < below < 0.999:
            try:
                found = identify_counterfactual(hidden.graph(), event, fact).probability(hidden.observed())
            except (NotIdentifiable, NoOverlap):
                continue
            answered += 1
            assert found == pytest.approx(hidden.probability([event, fact]) / below, abs=1e-9)
    assert answered > 8
