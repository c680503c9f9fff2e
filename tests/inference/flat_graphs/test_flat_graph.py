"""A problem as flat arrays weighs every configuration as its tables do."""

import numpy as np
import pytest

import markovia as mk
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.flat_graph import flat_graph, from_factors
from markovia.inference.problem import Problem
from model_strategies import log_weights, random_case, random_findings


def problem_of(model, given=None):
    return Problem(
        {n: model.variable(n) for n in model.variables},
        model.pieces(),
        read_evidence({n: model.variable(n) for n in model.variables}, given),
        {},
    )


@pytest.mark.parametrize("kind", ["directed", "undirected"])
@pytest.mark.parametrize("seed", range(30))
def test_a_flat_graph_weighs_every_configuration_as_the_tables_do(seed, kind):
    case = random_case([seed, 3], kind, max_entries=3_000)
    given = random_findings(case, np.random.default_rng(seed))
    logs = log_weights(case, given)
    problem = problem_of(case.model, given)
    graph = flat_graph(problem)
    fixed = {n: f.code for n, f in problem.findings.items() if f.hard}
    codes = np.stack(np.unravel_index(np.arange(logs.size), logs.shape), axis=1)
    names = list(case.cards)
    agree = np.all([codes[:, names.index(n)] == c for n, c in fixed.items()] or [True], axis=0)
    rows = codes[agree] if fixed else codes
    found = graph.log_weights(rows[:, [names.index(n) for n in graph.names]])
    expected = logs.ravel()[agree] if fixed else logs.ravel()
    assert np.allclose(np.exp(found), np.exp(expected), rtol=1e-9)
    assert np.array_equal(np.isneginf(found), np.isneginf(expected))


def test_the_parts_of_a_flat_graph_fit_together():
    case = random_case([5, 9], "undirected", max_entries=3_000)
    graph = flat_graph(problem_of(case.model))
    for i in range(len(graph.variables)):
        mine = graph.edges[graph.edge_ptr[i] : graph.edge_ptr[i + 1]]
        assert np.all(graph.scope[mine] == i)
    for f in range(graph.n_factors):
        assert graph.table(f).max() == 1.0
        edges = slice(graph.scope_ptr[f], graph.scope_ptr[f + 1])
        assert np.all(graph.edge_factor[edges] == f)
        assert tuple(graph.strides[edges] * 8) == graph.table(f).strides
    pointers, others = graph.neighbours()
    for i, name in enumerate(graph.names):
        around = {graph.names[j] for j in others[pointers[i] : pointers[i + 1]]}
        assert around <= case.model.markov_blanket(name)


def test_a_table_inside_another_is_multiplied_into_it():
    rng = np.random.default_rng(0)
    a, b, c = Variable("a", range(2)), Variable("b", range(3)), Variable("c", range(4))
    narrow, wide, twin = rng.random((4, 3)), rng.random((2, 3, 4)), rng.random((3, 2, 4))
    factors = [Factor.of((c, b), narrow), Factor.of((a, b, c), wide), Factor.of((b, a, c), twin)]
    graph = from_factors([a, b, c], factors)
    assert graph.n_factors == 1
    assert tuple(graph.scope) == (0, 1, 2)
    expected = wide * twin.transpose(1, 0, 2) * narrow.T[None]
    assert np.allclose(graph.table(0) * np.exp(graph.log_scale), expected, rtol=1e-12)
    assert from_factors([a, b, c], factors, absorb=False).n_factors == 3


def test_the_flat_graph_of_a_model_is_remembered_until_a_table_changes():
    model = mk.examples.asia()
    memory = {}
    variables = {n: model.variable(n) for n in model.variables}
    first = flat_graph(Problem(variables, model.pieces(), {}, memory))
    assert flat_graph(Problem(variables, model.pieces(), {}, memory)) is first
    given = read_evidence(variables, {"xray": "yes"})
    other = flat_graph(Problem(variables, model.pieces(), given, memory))
    assert other is not first
    assert "xray" not in other.names
    for _ in range(2):
        soft = flat_graph(
            Problem(variables, model.pieces(), read_evidence(variables, {"xray": [0.2, 0.9]}), memory)
        )
    kept = flat_graph(
        Problem(variables, model.pieces(), read_evidence(variables, {"xray": [0.2, 0.9]}), memory)
    )
    assert kept is soft
    assert (
        flat_graph(Problem(variables, model.pieces(), read_evidence(variables, {"xray": [0.2, 0.8]}), memory))
        is not soft
    )


def test_what_cannot_matter_is_left_out_of_a_flat_graph():
    model = mk.examples.asia()
    graph = flat_graph(problem_of(model), ["smoke", "lung"])
    assert set(graph.names) == {"smoke", "lung"}
    assert graph.is_forest
    assert not flat_graph(problem_of(model)).is_forest
