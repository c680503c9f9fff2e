"""Bounds on counterfactuals of tables: every model with the same tables lies inside, and the ends are attained."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.causal.counterfactuals.bounded_posterior import BoundedPosterior


def explicit_pair(share, p0, p1):
    """Return the response distribution (00, 01, 10, 11) of a binary node with two rows, between its extremes."""
    low, high = max(0.0, p0 + p1 - 1.0), min(p0, p1)
    both = low + share * (high - low)
    return [1 - p0 - p1 + both, p1 - both, p0 - both, both]


def chain(a, b, c, shares=None):
    """a -> b -> c with tables, or with explicit response variables that have the same tables."""
    m = mk.BayesianNetwork()
    m.add("a", p=[1 - a, a])
    if shares is None:
        m.add("b", parents=["a"], p=[[1 - q, q] for q in b])
        m.add("c", parents=["b"], p=[[1 - q, q] for q in c])
        return m
    m.add("rb", p=np.clip(explicit_pair(shares[0], *b), 0, 1))
    m.add("rc", p=np.clip(explicit_pair(shares[1], *c), 0, 1))
    table = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
    m.add("b", lambda a, rb: int(table[rb, a]), states=2)
    m.add("c", lambda b, rc: int(table[rc, b]), states=2)
    return m


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_bounds_over_two_tables_are_the_extremes_of_all_pairs_of_response_distributions(seed):
    rng = np.random.default_rng(seed)
    a, b, c = rng.uniform(0.1, 0.9), rng.uniform(0.05, 0.95, 2), rng.uniform(0.05, 0.95, 2)
    facts = [{"c": 1}, {"a": 0, "c": 1}, {"a": 0, "b": 1, "c": 0}][seed % 3]
    bounds = chain(a, b, c).counterfactual("c", given=facts, do={"a": 1})
    every = [
        chain(a, b, c, shares).counterfactual("c", given=facts, do={"a": 1})[1]
        for shares in product([0, 0.3, 1], repeat=2)
    ]
    assert isinstance(bounds, BoundedPosterior)
    assert bounds.sharp
    assert bounds[1] == pytest.approx((min(every), max(every)), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_every_mechanism_lies_within_the_bounds(seed):
    bn = mk.BayesianNetwork("z->x->y->w; z->y", states={"y": 3, "x": 3}, tables="random", seed=seed)
    bounds = bn.counterfactual("y", given={"z": 1, "x": 0, "w": 1}, do={"x": 2})
    for kind in ("monotone", "gumbel", "independent"):
        one = bn.counterfactual("y", given={"z": 1, "x": 0, "w": 1}, do={"x": 2}, mechanism=kind)
        assert (bounds.lower - 1e-9 <= one.values).all()
        assert (one.values <= bounds.upper + 1e-9).all()
    assert (bounds.upper - bounds.lower > 1e-3).any()


def test_a_confounded_unit_has_the_bounds_of_a_direct_linear_program():
    """Over all 16 functions of the node of a hidden cause and a treatment, with the hidden cause averaged out."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(5)
    pu, px = 0.3, [0.2, 0.7]
    py = rng.uniform(0.1, 0.9, size=(2, 2))
    bn = mk.BayesianNetwork()
    bn.add("u", p=[1 - pu, pu])
    bn.add("x", parents=["u"], p=[[1 - q, q] for q in px])
    bn.add("y", parents=["u", "x"], p=np.stack([1 - py, py], -1))
    bounds = bn.counterfactual("y", given={"x": 0, "y": 0}, do={"x": 1})
    functions = np.array(list(product([0, 1], repeat=4))).reshape(-1, 2, 2)
    equations = [np.ones(16), *((functions[:, u, x] == 1).astype(float) for u in (0, 1) for x in (0, 1))]
    shares = [1.0, *py.ravel()]
    weight = np.array([(1 - pu) * (1 - px[0]), pu * (1 - px[1])])
    goal = sum(weight[u] * (functions[:, u, 0] == 0) * (functions[:, u, 1] == 1) for u in (0, 1))
    total = sum(weight[u] * (1 - py[u, 0]) for u in (0, 1))
    ends = [s * linprog(s * goal, A_eq=np.array(equations), b_eq=shares).fun / total for s in (1, -1)]
    assert bounds[1] == pytest.approx(tuple(ends), abs=1e-9)


def test_bounds_that_meet_are_one_answer():
    bn = mk.BayesianNetwork()
    bn.add("x", p=[0.5, 0.5])
    bn.add("y", parents=["x"], p=[[1.0, 0.0], [0.4, 0.6]])
    answer = bn.counterfactual("y", given={"x": 0, "y": 0}, do={"x": 1})
    assert answer[1] == pytest.approx(0.6)
    assert "all functions" in answer.info.note


def test_the_treated_who_need_only_a_back_door_have_one_answer():
    """The effect on the treated is identified: the table's functions do not matter unless the outcome is known."""
    bn = mk.BayesianNetwork("z->x->y; z->y", tables="random", seed=2)
    answer = bn.counterfactual("y", given={"x": 1}, do={"x": 0})
    z = np.asarray(bn.query("z", given={"x": 1}).values)
    assert answer[1] == pytest.approx(sum(z[i] * bn["y"].row(z=i, x=0)[1] for i in range(2)))


def test_where_functions_are_too_many_the_bounds_are_valid_and_say_so():
    bn = mk.BayesianNetwork(
        "z->x->y; z->y->w; x->w", states=dict.fromkeys("zxyw", 4), tables="random", seed=0
    )
    bounds = bn.counterfactual("w", given={"w": 1}, do={"x": 2})
    assert not bounds.sharp
    assert "not sharp" in bounds.info.note
    one = bn.counterfactual("w", given={"w": 1}, do={"x": 2}, mechanism="monotone")
    assert (bounds.lower - 1e-9 <= one.values).all()
    assert (one.values <= bounds.upper + 1e-9).all()
    assert (bounds.upper < 1.0).any()


def test_joint_targets_are_bounded_cell_by_cell():
    bn = mk.BayesianNetwork("x->y; x->w", tables="random", seed=3)
    facts = {"x": 0, "y": 0, "w": 1}
    joint = bn.counterfactual(["y", "w"], given=facts, do={"x": 1})
    y, w = (bn.counterfactual(n, given=facts, do={"x": 1}) for n in "yw")
    assert joint[1, 1] == pytest.approx((y[1][0] * w[1][0], y[1][1] * w[1][1]))
    assert joint.to_pandas().shape == (4, 2)
    assert list(joint)[3] == (1, 1)


def test_a_mechanism_for_some_tables_leaves_bounds_over_the_others():
    a, b, c = 0.4, [0.3, 0.8], [0.2, 0.7]
    ask = {"given": {"a": 0, "c": 1}, "do": {"a": 1}}
    some = chain(a, b, c).counterfactual("c", **ask, mechanism={"b": "monotone"})
    # rising tables: the monotone coupling is the upper end of the share of units that are 1 in both rows
    every = [chain(a, b, c, (1, share)).counterfactual("c", **ask)[1] for share in (0, 1)]
    assert some[1] == pytest.approx((min(every), max(every)), abs=1e-9)
    assert "monotone for b" in some.info.note
    assert "tables of c" in some.info.note
    assert np.exp(some.info.log_evidence) == pytest.approx(chain(a, b, c).query(["a", "c"])[0, 1])
