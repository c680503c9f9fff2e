"""Probabilities of causation against linear programs over all kinds of units, and on models that determine them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import markovia as mk
from markovia.causal.counterfactuals.necessity import causation_bounds
from markovia.errors import InvalidArgument, UnknownVariable

KINDS = [(0, 0), (0, 1), (1, 0), (1, 1)]  # the outcome without and with the treatment


def world(rng, monotone=False):
    """Return P(treatment, kind) of a confounded world."""
    p = rng.dirichlet(np.ones(8)).reshape(2, 4)
    if monotone:
        p[:, 2] = 0.0
        p /= p.sum()
    return p


def seen(p):
    joint = np.zeros((2, 2))
    for x in (0, 1):
        for k, kind in enumerate(KINDS):
            joint[x, kind[x]] += p[x, k]
    experiment = tuple(sum(p[:, k].sum() for k, kind in enumerate(KINDS) if kind[x]) for x in (0, 1))
    return joint, experiment


def by_linear_program(joint, experiment, monotone):
    """Return bounds on PN, PS, PNS and the effect on the treated over every P(treatment, kind)."""
    cells = [(x, k) for x in (0, 1) for k in KINDS]
    rows = [[float(c[0] == x and c[1][x] == y) for c in cells] for x in (0, 1) for y in (0, 1)]
    right = list(joint.ravel())
    if experiment is not None:
        rows += [[float(c[1][x]) for c in cells] for x in (0, 1)]
        right += list(experiment)
    limits = [(0, 0 if monotone and c[1] == (1, 0) else None) for c in cells]
    goals = [
        [float(c == (1, (0, 1))) / joint[1, 1] for c in cells],
        [float(c == (0, (0, 1))) / joint[0, 0] for c in cells],
        [float(c[1] == (0, 1)) for c in cells],
        [float(c[0] == 1) * (c[1][1] - c[1][0]) / joint[1].sum() for c in cells],
    ]
    found = []
    for goal in goals:
        ends = [s * linprog(s * np.array(goal), A_eq=rows, b_eq=right, bounds=limits).fun for s in (1, -1)]
        found.append(tuple(ends))
    return found


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.booleans(), st.booleans())
def test_the_bounds_of_tian_and_pearl_are_those_of_all_possible_worlds(seed, experimental, monotone):
    joint, experiment = seen(world(np.random.default_rng(seed), monotone))
    given_ = experiment if experimental else None
    ours = causation_bounds(joint, given_, monotone=monotone)
    for mine, theirs in zip(ours, by_linear_program(joint, given_, monotone), strict=True):
        assert mine == pytest.approx(theirs, abs=1e-7)


def test_rows_are_counted_and_experiments_narrow_the_bounds():
    """Pearl's example of a drug: deaths 16/1000 and 14/1000 in the experiment, 2/1000 and 28/1000 seen."""
    counts = {(1, 1): 2, (1, 0): 998, (0, 1): 28, (0, 0): 972}
    rows = pd.DataFrame([{"drug": x, "death": y} for (x, y), n in counts.items() for _ in range(n)])
    found = mk.causal.necessity(rows, "drug", "death", experiment={1: 0.016, 0: 0.014})
    assert found.necessity == pytest.approx((1.0, 1.0))
    assert found.both == pytest.approx((0.002, 0.016))
    wide = mk.causal.necessity(rows, "drug", "death")
    assert wide.necessity == (0.0, 1.0)
    point = mk.causal.necessity(rows, "drug", "death", treated=0, control=1, exogenous=True, monotone=True)
    assert point.both == pytest.approx((0.026, 0.026))
    assert point.necessity == pytest.approx((26 / 28, 26 / 28))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10**6))
def test_a_structural_model_determines_what_it_says_of_kinds_of_units(seed):
    p = world(np.random.default_rng(seed))
    m = mk.StructuralModel()
    m.add("kind", p=p.sum(0))
    m.add("x", parents=["kind"], p=(p / p.sum(0)).T)
    table = np.array(KINDS)
    m.add("y", lambda kind, x: table[kind, x], states=2)
    found = mk.causal.necessity(m, "x", "y")
    joint, _ = seen(p)
    assert found.necessity == pytest.approx((p[1, 1] / joint[1, 1],) * 2)
    assert found.sufficiency == pytest.approx((p[0, 1] / joint[0, 0],) * 2)
    assert found.both == pytest.approx((p[:, 1].sum(),) * 2)
    assert found.on_treated == pytest.approx(((p[1, 1] - p[1, 2]) / p[1].sum(),) * 2)


def test_an_unconfounded_table_has_the_bounds_of_an_exogenous_experiment():
    bn = mk.BayesianNetwork("x->y", tables="random", seed=2)
    found = mk.causal.necessity(bn, "x", "y")
    joint = bn.query(["x", "y"]).values
    expected = causation_bounds(joint, tuple(joint[:, 1] / joint.sum(1)))
    for mine, theirs in zip(
        (found.necessity, found.sufficiency, found.both, found.on_treated), expected, strict=True
    ):
        assert mine == pytest.approx(theirs, abs=1e-9)
    monotone = mk.causal.necessity(bn, "x", "y", mechanism="monotone")
    assert monotone.necessity[0] == monotone.necessity[1]
    assert "monotone" in str(monotone)


def test_three_states_compare_the_two_that_are_named():
    bn = mk.BayesianNetwork("x->y", states={"x": 3, "y": 3}, tables="random", seed=5)
    found = mk.causal.necessity(bn, "x", "y", treated=2, control=1, event=0, mechanism="independent")
    assert found.necessity[0] == pytest.approx(1 - bn["y"].row(x=1)[0])
    assert found.sufficiency[0] == pytest.approx(bn["y"].row(x=2)[0])


def test_wrong_questions_on_causation_get_one_sentence():
    rows = {"x": [0, 0], "y": [0, 1]}
    with pytest.raises(InvalidArgument, match="constant"):
        mk.causal.necessity(rows, "x", "y")
    with pytest.raises(InvalidArgument, match="own outcome"):
        mk.causal.necessity(rows, "x", "x")
    with pytest.raises(UnknownVariable):
        mk.causal.necessity(rows, "z", "y")
    with pytest.raises(InvalidArgument, match="contradict"):
        causation_bounds([[0.25, 0.25], [0.1, 0.4]], (0.9, 0.8))
    with pytest.raises(InvalidArgument, match="never prevents"):
        causation_bounds([[0.25, 0.25], [0.25, 0.25]], (0.7, 0.3), monotone=True)


def test_rows_in_words_are_compared_by_what_the_words_mean_and_never_by_the_alphabet():
    rng = np.random.default_rng(4)
    on = rng.random(400) < 0.4
    died = rng.random(400) < np.where(on, 0.5, 0.2)
    plain = mk.causal.necessity({"drug": on.astype(int), "death": died}, "drug", "death", exogenous=True)
    named = {"drug": np.where(on, "treated", "untreated"), "death": died}
    found = mk.causal.necessity(named, "drug", "death", exogenous=True)
    assert (found.necessity, found.both) == (plain.necessity, plain.both)
    assert "drug = treated against untreated, death = True" in str(found)
    letters = {"drug": np.where(on, "A", "B"), "death": died}
    with pytest.raises(InvalidArgument, match="nothing tells which of 'A', 'B'"):
        mk.causal.necessity(letters, "drug", "death", exogenous=True)
    for said in ({"treated": "A"}, {"control": "B"}):
        assert mk.causal.necessity(letters, "drug", "death", exogenous=True, **said).both == plain.both
