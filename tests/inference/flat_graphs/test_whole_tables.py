"""Cutting evidence out of all tables at once gives the same flat graph as cutting one table after the other."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import UnknownEngine
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.flat_graph import build_flat_graph, flat_graph, from_factors
from markovia.inference.flat_graphs.flat_tables import whole_tables
from markovia.inference.markov_chains.gibbs import binary_pairs
from markovia.inference.problem import Problem
from model_strategies import random_case, random_findings

INTEGERS = (
    "cards",
    "starts",
    "scope_ptr",
    "scope",
    "strides",
    "table_ptr",
    "edge_ptr",
    "edges",
    "edge_factor",
)


def by_one(problem, targets, absorb):
    factors = [part.build() for part in problem.parts(targets)]
    seen = {n for f in factors for n in f.names} | set(targets or ())
    free = [n for n in problem.free if targets is None or n in seen]
    return from_factors([problem.variables[n] for n in free], factors, absorb=absorb)


@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("seed", range(25))
def test_cutting_all_tables_at_once_is_cutting_one_after_the_other(seed, kind):
    rng = np.random.default_rng([seed, 8])
    case = random_case([seed, 8], kind, max_entries=3_000)
    variables = {n: case.model.variable(n) for n in case.model.variables}
    findings = read_evidence(variables, random_findings(case, rng))
    problem = Problem(variables, case.model.pieces(), findings, {})
    free = problem.free
    if not free:
        return
    for targets in (None, free, [free[int(rng.integers(len(free)))]]):
        for absorb in (True, False):
            found, expected = (
                build_flat_graph(problem, targets, absorb=absorb),
                by_one(problem, targets, absorb),
            )
            assert found.variables == expected.variables
            for field in INTEGERS:
                assert np.array_equal(getattr(found, field), getattr(expected, field)), field
            assert np.allclose(found.values, expected.values, rtol=1e-12, atol=0)
            assert np.allclose(found.unary, expected.unary, rtol=1e-12, atol=0)
            assert np.isclose(found.log_scale, expected.log_scale, rtol=1e-12)


def test_the_tables_are_kept_for_the_next_evidence_and_not_after_an_edit():
    model = mk.examples.asia()
    first = model._problem({"xray": "yes"})
    flat_graph(first, ["lung"])
    kept = whole_tables(first)
    assert kept is not None
    assert whole_tables(model._problem({"dysp": "no"})) is kept
    model.replace("smoke", [0.1, 0.9])
    changed = model._problem({"dysp": "no"})
    assert whole_tables(changed) is not kept
    exact = model.query("smoke", given={"dysp": "no"})
    loopy = model.query("smoke", given={"dysp": "no"}, engine="loopy-bp")
    assert loopy.allclose(exact, atol=0.02)


def test_variables_without_tables_and_models_without_variables_are_cut_too():
    lonely = mk.MarkovNetwork({"a": 3, "b": 2}, [Factor(["b"], [1.0, 3.0])])
    graph = flat_graph(lonely._problem(None))
    assert graph.names == ("a", "b")
    assert np.allclose(graph.unary, [1, 1, 1, 1 / 3, 1])
    assert len(flat_graph(lonely._problem({"a": 0, "b": 1})).variables) == 0
    assert np.isclose(flat_graph(lonely._problem({"a": 0, "b": 1})).log_scale, np.log(3.0))


@pytest.mark.parametrize("engine", ["loopy-bp", "max-product"])
def test_soft_evidence_may_be_given_twice(engine):
    model = mk.examples.asia()
    asked = [model.map(given={"xray": [0.3, 0.6]}, engine=engine).to_dict() for _ in range(2)]
    assert asked[0] == asked[1]
    if engine == "loopy-bp":
        found = [model.query("lung", given={"xray": [0.3, 0.6]}, engine=engine) for _ in range(2)]
        other = model.query("lung", given={"xray": [0.6, 0.3]}, engine=engine)
        assert found[0].allclose(found[1])
        assert not found[0].allclose(other, atol=1e-3)


def test_listed_log_odds_are_those_of_fields_and_couplings():
    model = mk.generators.ising_grid(5, 6, 0.3, np.where(np.arange(30).reshape(5, 6) % 2, 0.4, -0.2))
    pairs = binary_pairs(flat_graph(model._problem(None)))
    assert len(pairs.first) == 30
    rng = np.random.default_rng(0)
    for _ in range(20):
        bits = rng.integers(2, size=30)
        for i in range(30):
            near = slice(pairs.ptr[i], pairs.ptr[i + 1])
            z = pairs.field[i] + pairs.coupling[near] @ bits[pairs.other[near]]
            place = pairs.first[i] + (bits[pairs.other[near]] << np.arange(near.stop - near.start)).sum()
            assert np.isclose(pairs.odds[place], z)
            assert np.isclose(pairs.chance[place], 1 / (1 + np.exp(-z)))


def test_log_odds_are_not_listed_where_all_variables_differ():
    model = mk.generators.ising_grid(30, 30, "random", "random", seed=1)
    assert len(binary_pairs(flat_graph(model._problem(None))).first) == 0


def test_many_factors_share_read_only_tables():
    a, b = Variable("a", 2), Variable("b", 2)
    table = np.array([1.0, 2.0])
    table.setflags(write=False)
    made = Factor.many([(a,), (b,)], [table, table])
    assert [f.names for f in made] == [("a",), ("b",)]
    assert made[0].values is made[1].values


def test_kernels_of_engines_are_loaded_by_name():
    assert mk.engines.load_kernels(["loopy-bp"]) > 0
    with pytest.raises(UnknownEngine):
        mk.engines.load_kernels("loopy")
