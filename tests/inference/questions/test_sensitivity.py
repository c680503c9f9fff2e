"""Derivatives of posteriors: against finite differences, the joint table, and the textbook formulas."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, settings
from hypothesis import given as sampled
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.exact.derivatives import mass_gradient
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

undirected = st.one_of(markov_networks(), markov_networks(kind=mk.FactorGraph))
models = st.one_of(bayesian_networks(), undirected)
seeds = st.integers(0, 2**32 - 1)


class Tables:
    """Stand-in for a model whose pieces were exchanged; `brute_force` reads it."""

    def __init__(self, model, pieces):
        self.variables, self.states = model.variables, model.states
        self._pieces = pieces

    def pieces(self):
        return self._pieces


def factors_of(model):
    return [p if isinstance(p, mk.Factor) else p.factor() for p in model.pieces()]


def with_piece(model, i, values):
    factors = factors_of(model)
    factors[i] = mk.Factor(factors[i].variables, values)
    return Tables(model, factors)


def mass(model, given, query=None):
    table = brute_force(model, given)
    for name, state in (query or {}).items():
        table = table.take([model.states(name).index(state)], axis=model.variables.index(name))
    return table.sum()


def random_query(model, rng, n=2):
    names = [str(x) for x in rng.permutation(model.variables)[: rng.integers(1, n + 1)]]
    return {x: model.states(x)[rng.integers(len(model.states(x)))] for x in names}


@sampled(model=models, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_the_gradient_of_the_mass_is_the_mass_with_an_entry_set_to_one(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng)
    problem = model._problem(given)
    found = mass_gradient(problem)
    np.testing.assert_allclose(np.exp(found.log_mass), mass(model, given), rtol=1e-10)
    fixed = {n: f.code for n, f in problem.findings.items() if f.code is not None}
    for i, factor in enumerate(factors_of(model)):
        slopes = np.zeros(factor.shape)
        slopes[tuple(fixed.get(n, slice(None)) for n in factor.names)] = np.exp(found.log_slopes[i])
        for at in np.ndindex(*factor.shape):
            alone = np.zeros(factor.shape)
            alone[at] = 1.0
            assert slopes[at] == pytest.approx(mass(with_piece(model, i, alone), given), rel=1e-9, abs=1e-300)


@sampled(model=undirected, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_derivatives_of_factors_are_exact_ratios_of_joint_tables(model, seed):
    rng = np.random.default_rng(seed)
    given, query = random_evidence(model, rng, rate=0.3), random_query(model, rng)
    total = mass(model, given)
    if total == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.sensitivity(query, given=given)
        return
    found = model.sensitivity(query, given=given)
    p = mass(model, given, query) / total
    assert found.probability == pytest.approx(p, abs=1e-12)
    for i, factor in enumerate(factors_of(model)):
        for at in np.ndindex(*factor.shape):
            alone = np.zeros(factor.shape)
            alone[at] = 1.0
            changed = with_piece(model, i, alone)
            expected = (mass(changed, given, query) - p * mass(changed, given)) / total
            scale = max(1.0, mass(changed, given) / total)
            assert found[i][at] == pytest.approx(expected, abs=1e-10 * scale)
            assert found.raw(i)[at] == found[i][at]


def row_with(table, row, x, t):
    """The table after setting an entry, the rest of its row scaled to keep the sum (equally if it was zero)."""
    new = table.copy()
    rest = [j for j in range(table.shape[-1]) if j != x]
    total = table[row].sum()
    weights = table[row][rest]
    share = weights / weights.sum() if weights.sum() > 0 else np.full(len(rest), 1 / len(rest))
    new[row][rest] = share * max(0.0, total - t)
    new[row][x] = t
    return new


@sampled(model=bayesian_networks(max_nodes=5), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_rows_move_in_proportion_and_the_function_holds_for_every_value(model, seed):
    rng = np.random.default_rng(seed)
    given, query = random_evidence(model, rng, rate=0.3), random_query(model, rng)
    assume(mass(model, given) > 1e-6)
    found = model.sensitivity(query, given=given)
    for i, name in enumerate(model.variables):
        factor = factors_of(model)[i]
        derivatives = found[name]
        at = tuple(int(rng.integers(k)) for k in factor.shape)
        row, x, now = at[:-1], at[-1], factor.values[at]
        states = {v.name: v.states[k] for v, k in zip(factor.variables, at, strict=True)}
        function = found.function(name, states)
        assert function.value == now
        assert function(now) == pytest.approx(found.probability, abs=1e-10)
        assert function.derivative(now) == pytest.approx(
            derivatives[at], abs=1e-9 * max(1, abs(derivatives[at]))
        )
        if factor.shape[-1] == 1:
            assert derivatives[at] == 0.0
            continue
        for t in (0.0, 0.3, 0.9, 1.0):
            changed = with_piece(model, i, row_with(factor.values, row, x, t))
            below = mass(changed, given)
            assert function.c * t + function.d == pytest.approx(below / mass(model, given), abs=1e-9)
            if below > 1e-6 * mass(model, given):
                assert function(t) == pytest.approx(mass(changed, given, query) / below, abs=1e-8)


@sampled(model=bayesian_networks(max_nodes=5, zeros=False), seed=seeds)
@settings(max_examples=60, deadline=None)
def test_derivatives_agree_with_finite_differences(model, seed):
    rng = np.random.default_rng(seed)
    given, query = random_evidence(model, rng, rate=0.3), random_query(model, rng)
    found = model.sensitivity(query, given=given)
    i = int(rng.integers(len(model.variables)))
    factor = factors_of(model)[i]
    at = tuple(int(rng.integers(k)) for k in factor.shape)
    h = 1e-6 * min(factor.values[at], 1 - factor.values[at])

    def probability(t):
        changed = with_piece(model, i, row_with(factor.values, at[:-1], at[-1], t))
        return mass(changed, given, query) / mass(changed, given)

    slope = (probability(factor.values[at] + h) - probability(factor.values[at] - h)) / (2 * h)
    assert found[model.variables[i]][at] == pytest.approx(slope, rel=1e-3, abs=1e-6 / min(1.0, h * 1e6))


@sampled(model=bayesian_networks(max_nodes=6, zeros=False), seed=seeds)
@settings(max_examples=60, deadline=None)
def test_raw_derivatives_are_those_of_laskey_and_darwiche(model, seed):
    """dP(y|e)/d theta = (P(y, x, u | e) - P(y | e) P(x, u | e)) / theta, for the tables the question depends on."""
    rng = np.random.default_rng(seed)
    given, query = random_evidence(model, rng, rate=0.3), random_query(model, rng, n=1)
    table = brute_force(model, given)
    narrowed = brute_force(model, {**given, **query}) if not set(query) & set(given) else None
    assume(narrowed is not None)
    found = model.sensitivity(query, given=given)
    p = narrowed.sum() / table.sum()
    for i, name in enumerate(model.variables):
        factor = factors_of(model)[i]
        axes = tuple(k for k, n in enumerate(model.variables) if n not in factor.names)
        kept = [n for n in model.variables if n in factor.names]
        order = [kept.index(n) for n in factor.names]
        family = table.sum(axis=axes).transpose(order) / table.sum()
        with_y = narrowed.sum(axis=axes).transpose(order) / table.sum()
        expected = (with_y - p * family) / factor.values
        if name in found.pieces:
            np.testing.assert_allclose(found.raw(name), expected, atol=1e-9, rtol=1e-8)
        else:
            assert not found.raw(name).any()
            assert not found[name].any()


def test_derivatives_exist_where_the_probability_is_zero():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[1.0, 0.0])
    bn.add("b", parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    found = bn.sensitivity("a=1", given={"b": 1})
    assert found.probability == 0.0
    assert found["a"].tolist() == pytest.approx([-8.0, 8.0])  # P(t) = 0.8 t / (0.1 + 0.7 t)
    assert found.function("a", a=1)(0.5) == pytest.approx(0.4 / 0.45)


def test_two_zero_components_leave_no_derivative_and_one_does():
    f, g, h = mk.Factor(["a"], [0, 0]), mk.Factor(["b"], [0, 0]), mk.Factor(["c"], [2, 3])
    both = mass_gradient(mk.MarkovNetwork({"a": 2, "b": 2, "c": 2}, [f, g, h])._problem(None))
    assert all(np.isneginf(s).all() for s in both.log_slopes.values())
    one = mass_gradient(mk.MarkovNetwork({"a": 2, "c": 2}, [f, h])._problem(None))
    assert np.isneginf(one.log_mass)
    assert np.exp(one.log_slopes[0]) == pytest.approx([5, 5])
    assert np.exp(one.log_slopes[1]) == pytest.approx([0, 0])


def test_the_query_can_be_written_in_several_ways():
    bn = mk.BayesianNetwork()
    bn.add("die", states=[1, 2, 3], p=[0.2, 0.3, 0.5])
    bn.add("big", states=[False, True], parents=["die"], p=[[1, 0], [0.5, 0.5], [0, 1.0]])
    bn.add("a=b, c", states=["x,y", "=z"], p=[0.4, 0.6])
    for query in ("die=2", " die = 2 ", ("die", 2), {"die": 2}):
        assert bn.sensitivity(query).probability == pytest.approx(0.3)
    assert bn.sensitivity("big=True").probability == pytest.approx(0.65)
    assert bn.sensitivity("big=true, die=2").probability == pytest.approx(0.15)
    assert bn.sensitivity({"big": True, "die": 3}).probability == pytest.approx(0.5)
    assert bn.sensitivity("a=b, c==z").probability == pytest.approx(0.6)
    assert bn.sensitivity("a=b, c=x,y").probability == pytest.approx(0.4)
    assert bn.sensitivity(("a=b, c", "=z")).query == {"a=b, c": "=z"}


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("die", "'die' is no question; write a variable and a state"),
        ("dye=2", "unknown variable 'dye'.*did you mean 'die'"),
        ("die=7", "unknown state '7' for 'die'"),
        ("die=1, die=2", "'die' is asked for twice"),
        ("die=1, 2", "'2' is no question"),
        ({}, "at least one variable"),
        (3, "ask for 'x=a'"),
        (("die", 9), "unknown state 9"),
    ],
)
def test_a_query_that_cannot_be_read_is_explained(query, message):
    bn = mk.BayesianNetwork()
    bn.add("die", states=[1, 2, 3], p=[0.2, 0.3, 0.5])
    with pytest.raises(mk.MarkoviaError, match=message):
        bn.sensitivity(query)


def test_asking_about_an_observed_variable_is_constant():
    bn = mk.examples.asia()
    same = bn.sensitivity("xray=yes", given={"xray": "yes"})
    assert same.probability == 1.0
    assert all(np.abs(same[n]).max() < 1e-12 for n in same)
    other = bn.sensitivity("xray=no", given={"xray": "yes"})
    assert other.probability == 0.0
    assert not any(other[n].any() for n in other)
    soft = bn.sensitivity("xray=yes", given={"xray": [0.2, 0.8]})
    assert soft.probability == pytest.approx(bn.query("xray", given={"xray": [0.2, 0.8]})["yes"], abs=1e-14)
    assert bn.sensitivity("xray=yes", given={"xray": mk.Not("yes")}).probability == 0.0


def test_the_largest_derivatives_come_first_and_as_a_frame():
    bn = mk.examples.asia()
    found = bn.sensitivity("lung=yes", given={"xray": "yes"})
    everything = found.to_pandas()
    assert list(everything.columns) == ["piece", "parameter", "value", "derivative", "raw"]
    assert len(everything) == sum(found[n].size for n in found)
    assert "dysp" not in found.pieces
    top = found.largest(4)
    assert [abs(e.derivative) for e in top] == sorted(everything["derivative"].abs(), reverse=True)[:4]
    first = top[0]
    assert (
        first.derivative
        == found[first.piece][tuple(bn.variable(n).index(s) for n, s in first.states.items())]
    )
    assert list(top.to_pandas()["parameter"]) == [e.label for e in top]
    assert first.label in str(found)
    assert len(found.largest(10**6)) == len(everything)
    assert "derivatives" in repr(found)
    with pytest.raises(mk.errors.InvalidArgument, match="n is a number of entries"):
        found.largest(0)


def test_entries_of_factors_are_named_by_position():
    mn = mk.MarkovNetwork(
        {"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[30, 5], [1, 10]]), mk.Factor(["a"], [1, 2])]
    )
    found = mn.sensitivity("a=1")
    assert found.pieces == [0, 1]
    assert found.largest(1)[0].label.startswith("factor 1 (a=")
    function = found.function(1, a=1)
    assert function(4.0) == pytest.approx(44 / (35 + 44))
    assert "factor 1 (a=1)" in str(function)
    with pytest.raises(mk.errors.InvalidArgument, match="no table 'a'"):
        found["a"]
    with pytest.raises(mk.errors.InvalidArgument, match="needs a state for 'b' too"):
        found.function(0, a=1)
    with pytest.raises(mk.errors.InvalidArgument, match="not 'c'"):
        found.function(0, {"a": 1, "c": 1})
    with pytest.raises(mk.errors.UnknownState):
        found.function(1, a=2)


def test_a_function_is_no_number_where_the_evidence_vanishes():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[1.0, 0.0], [0.5, 0.5]])
    function = bn.sensitivity("a=1", given={"b": 1}).function("b", a=1, b=1)
    assert np.isnan(function(0.0))
    assert np.isnan(function.derivative(0.0))
    assert function(0.1) == pytest.approx(1.0)


def test_long_chains_and_extreme_tables_do_not_underflow():
    n = 3000
    names = [f"x{i}" for i in range(n)]
    tiny = [[2e-300, 1e-300], [1e-300, 2e-300]]
    chain = mk.MarkovNetwork(dict.fromkeys(names, 2), [mk.Factor([a, b], tiny) for a, b in pairwise(names)])
    found = chain.sensitivity("x0=0", given={"x1": 0})
    assert found.probability == pytest.approx(2 / 3)
    assert found.function(0, x0=0, x1=0)(1e-300) == pytest.approx(0.5)
    extreme = mk.Factor(["a", "b"], [[1e300, 1e-300], [1e-200, 1e200]])
    wide = mk.MarkovNetwork({"a": 2, "b": 2}, [extreme, mk.Factor(["a"], [1e-300, 1e-250])])
    found = wide.sensitivity("a=1")
    p = 1e-50 / (1.0 + 1e-50)
    assert found.probability == pytest.approx(p, rel=1e-12)
    assert found[1][1] == pytest.approx(1e200, rel=1e-9)


def test_sensitivity_that_does_not_fit_is_refused_before_anything_is_built():
    grid = mk.generators.ising_grid(30, 30, coupling=0.5)
    with pytest.raises(mk.errors.TooLarge, match=r"the derivatives need .*width \d+.*the budget is 1 MiB"):
        grid.sensitivity("x0_0=1", max_bytes=2**20)


def test_structured_tables_and_equal_factors_have_derivatives_too():
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.7, 0.3])
    bn.add("b", p=[0.6, 0.4])
    bn.add("c", mk.local.NoisyOr({"a": 0.8, "b": 0.5}, leak=0.1), states=[0, 1])
    found = bn.sensitivity("a=1", given={"c": 1})
    table = brute_force(bn, {"c": 1})
    assert found.probability == pytest.approx(table[1].sum() / table.sum())
    assert found["c"].shape == (2, 2, 2)
    twice = mk.Factor(["a"], [1.0, 2.0])
    mn = mk.MarkovNetwork({"a": 2}, [twice, twice])
    np.testing.assert_allclose(mn.sensitivity("a=1")[0], mn.sensitivity("a=1")[1])
    assert mn.sensitivity("a=1")[0] == pytest.approx([-4 / 25, 2 / 25])
