"""Bounds on effects that are not identified: closed forms, and the truth of random models inside them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovia as mk
from markovia.causal.identification.bounds import bounds, instrumental_inequality, mean_bounds
from markovia.errors import InvalidArgument

LIPIDS = (
    np.array([[[0.919, 0.081], [0.0, 0.0]], [[0.315, 0.073], [0.139, 0.473]]]) / 2
)  # assigned, taken, better


def model_with_hidden_cause(edges, hidden, seed, cards):
    """A random network over observed nodes and one hidden parent (4 states) of each pair in `hidden`."""
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    above = {n: [a for a, b in edges if b == n] for n in cards}
    for k, pair in enumerate(hidden):
        bn.add(f"u{k}", rng.dirichlet(np.ones(4)).tolist(), states=range(4))
        for n in pair:
            above[n].append(f"u{k}")
    for n in mk.graphs.DAG(edges, nodes=cards).topological_order():
        shape = [len(bn.variable(p).states) for p in above[n]]
        bn.add(n, rng.dirichlet(np.full(cards[n], 0.5), size=shape), states=range(cards[n]), parents=above[n])
    return bn


def test_treatment_with_imperfect_compliance_has_balke_and_pearls_bounds():
    found = bounds("z -> x -> y; x <-> y", "x", "y", mk.Factor(["z", "x", "y"], LIPIDS))
    np.testing.assert_allclose(tuple(found.difference(1, {"x": 1}, {"x": 0})), (0.392, 0.780), atol=1e-9)
    assert found.sharp
    assert found.misfit < 1e-9


@given(st.integers(0, 10**6))
def test_without_assumptions_the_others_could_be_anything(seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(6)).reshape(2, 3)
    found = bounds(
        "x -> y; x <-> y", "x", "y", mk.Factor([mk.Variable("x", [0, 1]), mk.Variable("y", [0, 1, 2])], p)
    )
    for x, y in itertools.product(range(2), range(3)):
        np.testing.assert_allclose(
            tuple(found.probability(y, x=x)), (p[x, y], p[x, y] + p[1 - x].sum()), atol=1e-8
        )


@given(st.integers(0, 10**6))
def test_an_instrument_gives_the_eight_expressions_of_balke_and_pearl(seed):
    bn = model_with_hidden_cause([("z", "x"), ("x", "y")], [("x", "y")], seed, {"z": 2, "x": 2, "y": 2})
    joint = bn.query(["z", "x", "y"]).factor().transpose(["z", "x", "y"]).values
    p = (joint / joint.sum(axis=(1, 2), keepdims=True)).transpose(2, 1, 0)  # p[y, x, z]
    lower = max(
        max(
            p[1, 1, b] + p[0, 0, a] - 1,
            p[1, 1, a] - p[1, 1, b] - p[1, 0, b] - p[0, 1, a] - p[1, 0, a],
            -p[0, 1, a] - p[1, 0, a],
            p[0, 0, a] - p[0, 1, a] - p[1, 0, a] - p[0, 1, b] - p[0, 0, b],
        )
        for a, b in ((0, 1), (1, 0))
    )
    found = bounds("z -> x -> y; x <-> y", "x", "y", bn).difference(1, {"x": 1}, {"x": 0})
    assert found.lower == pytest.approx(lower, abs=1e-7)
    truth = bn.do(x=1).query("y")[1] - bn.do(x=0).query("y")[1]
    assert found.lower - 1e-9 <= truth <= found.upper + 1e-9


CASES = {
    "front door": ([("x", "m"), ("m", "y")], [("x", "y")]),
    "back door": ([("w", "x"), ("w", "y"), ("x", "y")], []),
    "instrument and covariate": ([("z", "x"), ("w", "x"), ("w", "y"), ("x", "y")], [("x", "y")]),
    "mediator and hidden cause": ([("x", "m"), ("m", "y"), ("x", "y")], [("x", "m")]),
    "below the district": ([("x", "m"), ("m", "y")], [("x", "m")]),
    "chain of hidden causes": ([("x", "m"), ("m", "y")], [("x", "m"), ("m", "y")]),
    "hidden cause above the treatment": ([("z", "x"), ("x", "y")], [("z", "y")]),
}
POINTS = ("front door", "back door", "hidden cause above the treatment")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_the_truth_is_inside_and_identified_effects_are_points(name, seed):
    edges, hidden = CASES[name]
    cards = {"w": 3, "m": 3}  # of several sizes, so that a wrong order or radix of parents shows
    nodes = {n: cards.get(n, 2) for n in sorted({n for e in edges for n in e})}
    bn = model_with_hidden_cause(edges, hidden, seed, nodes)
    text = "; ".join([f"{a} -> {b}" for a, b in edges] + [f"{a} <-> {b}" for a, b in hidden])
    found = bounds(text, "x", "y", bn)
    assert found.sharp == (name != "chain of hidden causes")
    for x in range(2):
        truth = bn.do(x=x).query("y")[1]
        lower, upper = found.probability(1, x=x)
        assert lower - 1e-7 <= truth <= upper + 1e-7
        if name in POINTS:
            assert upper - lower < 1e-6
        else:
            assert upper - lower > 1e-4


def test_a_distribution_no_instrument_has_is_refused_and_rows_are_brought_near():
    p = np.array([[[0.9, 0.02], [0.04, 0.04]], [[0.02, 0.9], [0.04, 0.04]]]) / 2
    joint = mk.Factor(["z", "x", "y"], p)
    assert instrumental_inequality(joint, "z", "x", "y") == pytest.approx(1.8)
    with pytest.raises(InvalidArgument, match="not one this graph allows: some probability would be off by"):
        bounds("z -> x -> y; x <-> y", "x", "y", joint)
    import pandas as pd

    rows = [(z, x, y) for (z, x, y), n in np.ndenumerate((1000 * p).astype(int)) for _ in range(n)]
    found = bounds("z -> x -> y; x <-> y", "x", "y", pd.DataFrame(rows, columns=["z", "x", "y"]))
    assert found.misfit > 0.1
    assert found.probability(1, x=1).lower <= found.probability(1, x=1).upper


def test_means_between_limits_are_bounded_by_what_the_others_could_be():
    frame = {"t": np.array([1, 1, 0, 0]), "y": np.array([6.0, 8.0, 5.0, 5.0])}
    assert tuple(mean_bounds(frame, "t", "y", low=0, high=10)) == (3.5, 8.5)
    with pytest.raises(InvalidArgument, match="beyond the limits"):
        mean_bounds(frame, "t", "y", low=0, high=7)
    with pytest.raises(InvalidArgument, match="no row has t = 2"):
        mean_bounds(frame, "t", "y", low=0, high=9, value=2)


def test_a_treatment_beside_the_district_is_held_at_its_value():
    bn = model_with_hidden_cause([("x", "y"), ("w", "y")], [("w", "y")], 0, {"x": 3, "w": 2, "y": 2})
    found = bounds("x -> y; w -> y; w <-> y", ["x", "w"], "y", bn)
    for x, w in itertools.product(range(3), range(2)):
        p = bn.query(["w", "y"], given={"x": x}).factor().transpose(["w", "y"]).values
        assert tuple(found.probability(1, x=x, w=w)) == pytest.approx(
            (p[w, 1], p[w, 1] + p[1 - w].sum()), abs=1e-8
        )


def nearest(p, sign):
    """The least or greatest P(y = 1 | do(x = 1)) of an instrument among distributions as near as can be to p[z, x, y]."""
    from scipy.optimize import linprog

    kinds = list(itertools.product(range(2), repeat=4))  # x if z = 0, x if z = 1, y if x = 0, y if x = 1
    rows = [[float(k[z] == x and k[2 + x] == y) for k in kinds] for z, x, y in np.ndindex(2, 2, 2)]
    observed = (p / p.sum(axis=(1, 2), keepdims=True)).ravel()
    both = np.vstack([np.column_stack([rows, -np.ones(8)]), np.column_stack([-np.array(rows), -np.ones(8)])])
    limits = np.concatenate([observed, -observed])
    off = linprog([*np.zeros(16), 1.0], A_ub=both, b_ub=limits).fun
    cost = [sign * float(k[3]) for k in kinds] + [0.0]
    found = linprog(cost, A_ub=both, b_ub=limits, bounds=[(0, None)] * 16 + [(off, off)])
    return off, sign * found.fun


def test_rows_that_fit_no_instrument_have_the_bounds_of_the_nearest_distributions():
    import pandas as pd

    p = np.array([[[0.5, 0.2], [0.1, 0.2]], [[0.1, 0.7], [0.15, 0.05]]]) / 2
    rows = [(z, x, y) for (z, x, y), n in np.ndenumerate((1000 * p).round().astype(int)) for _ in range(n)]
    found = bounds("z -> x -> y; x <-> y", "x", "y", pd.DataFrame(rows, columns=["z", "x", "y"]))
    off, lower = nearest(p, 1)
    assert found.misfit == pytest.approx(off, abs=1e-8)
    assert off > 0.05
    assert tuple(found.probability(1, x=1)) == pytest.approx((lower, nearest(p, -1)[1]), abs=1e-5)


def test_values_that_never_occur_are_left_out_or_named():
    p = np.array([[0.1, 0.2], [0.3, 0.4]])
    seldom = mk.Factor(
        [mk.Variable("w", [0, 1, 2]), mk.Variable("x", [0, 1]), mk.Variable("y", [0, 1])],
        np.stack([0.5 * p, 0.5 * p[::-1], 0 * p]),
    )
    found = bounds("w -> x; w -> y; x -> y; x <-> y", "x", "y", seldom)
    lower = 0.5 * p[1, 1] + 0.5 * p[0, 1]
    assert tuple(found.probability(1, x=1)) == pytest.approx(
        (lower, lower + 0.5 * p[0].sum() + 0.5 * p[1].sum())
    )
    never = mk.Factor(["x", "y"], [[0.3, 0.7], [0.0, 0.0]])
    with pytest.raises(InvalidArgument, match=r"nothing is observed of some values that go with \{'x': 1\}"):
        bounds("x -> y", "x", "y", never).probability(1, x=1)
