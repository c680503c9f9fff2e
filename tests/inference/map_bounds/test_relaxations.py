"""The quadratic program and relaxation labelling: bounds that hold, shares no worse when rounded, averages that rise."""

from itertools import combinations, product

import numpy as np
import pytest

import markovia as mk
from markovia.engines import QuadraticProgram, RelaxationLabelling
from markovia.inference import Problem
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.map_bounds.quadratic_program import finite_logs, rounded


def random_model(seed, zeros=0.0, wide=False):
    rng = np.random.default_rng(seed)
    cards = {f"v{i}": int(rng.integers(1, 4)) for i in range(int(rng.integers(2, 6)))}
    factors = [mk.Factor([v], np.exp(rng.normal(size=k))) for v, k in cards.items()]
    for scope in combinations(cards, 3 if wide and len(cards) > 2 else 2):
        table = np.exp(rng.normal(size=[cards[v] for v in scope]))
        factors.append(mk.Factor([*scope], table * (rng.random(table.shape) >= zeros)))
    return mk.MarkovNetwork(cards, factors)


def graph_of(model):
    return flat_graph(Problem({n: model.variable(n) for n in model.variables}, model.pieces(), {}))


def every_weight(graph):
    """Return the log weights of all configurations, zeros as the relaxations count them."""
    finite, shape = finite_logs(graph), tuple(graph.cards.tolist())
    codes = np.array(list(product(*map(range, shape))))
    total = finite.unary[graph.starts[:-1] + codes].sum(axis=1)
    for f in range(graph.n_factors):
        own = finite.values[graph.table_ptr[f] : graph.table_ptr[f + 1]].reshape(graph.table(f).shape)
        total = total + own[tuple(codes[:, v] for v in graph.members(f))]
    return (graph.log_scale + total).reshape(shape)


def average(weights, shares):
    for own in reversed(shares):
        weights = weights @ own
    return float(weights)


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_the_concave_program_bounds_every_configuration_and_its_shares_are_its_maximum(zeros):
    for seed in range(15):
        model = random_model(seed, zeros)
        graph = graph_of(model)
        weights = every_weight(graph)
        best = graph.log_weights(np.array(list(product(*map(range, weights.shape))))).max()
        try:
            found = model.map(engine=QuadraticProgram(tolerance=1e-8))
        except mk.errors.MarkoviaError:  # nothing is possible, or rounding met zeros only
            assert zeros
            continue
        details = found.info.details
        assert found.log_weight <= best + 1e-9 <= found.bound + 2e-9
        assert not found.info.exact or found.log_weight == pytest.approx(best, abs=1e-8)
        shares = [details.marginals[n] for n in graph.names]
        assert all(own.min() >= 0 and own.sum() == pytest.approx(1) for own in shares)
        # no shares have a larger value: not those of configurations, and not the average alone
        assert details.value >= weights.max() - 1e-6
        assert details.value >= average(weights, shares) - 1e-9
        for iterations in (1, 3):  # stopped early, the bound holds all the same
            early = model.map(engine=QuadraticProgram(max_iterations=iterations))
            assert early.bound >= best - 1e-9


def test_the_value_of_the_concave_program_of_one_pair_is_that_of_the_formula():
    # two spins that agree, centred: entries c and -c with c = 1/2 the coupling, so d = c for each state; by symmetry
    # equal shares are best, where the average is zero and each of the four shares adds d / 4
    model = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], np.exp([[1.0, 0.0], [0.0, 1.0]]))])
    found = model.map(engine="quadratic-program")
    assert found.info.details.value == pytest.approx(0.5 + 4 * 0.5 / 4)
    assert found.log_weight == pytest.approx(1.0)
    assert found.info.exact


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
@pytest.mark.parametrize("wide", [False, True], ids=["pairs", "triples"])
def test_averages_rise_and_rounding_loses_nothing(wide):
    for seed in range(12):
        model = random_model(seed, wide=wide)
        graph = graph_of(model)
        weights = every_weight(graph)
        runs = [
            model.map(engine=RelaxationLabelling(max_iterations=n, tolerance=1e-12)) for n in (1, 2, 5, 400)
        ]
        values = [average(weights, [r.info.details.marginals[v] for v in graph.names]) for r in runs]
        assert np.all(np.diff(values) >= -1e-9)
        for run, value in zip(runs, values, strict=True):
            assert run.info.details.averages[-1] == pytest.approx(value)
            assert value - 1e-9 <= run.log_weight <= weights.max() + 1e-9 <= run.bound + 2e-9
            assert not run.info.exact or run.log_weight == pytest.approx(weights.max())
        rng = np.random.default_rng(seed)
        shares = [rng.dirichlet(np.ones(k)) for k in graph.cards]
        codes = rounded(graph, finite_logs(graph), np.concatenate(shares))
        assert weights[tuple(codes)] >= average(weights, shares) - 1e-9


@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_one_sweep_of_relaxation_labelling_is_the_rule_of_rosenfeld_hummel_and_zucker():
    rng = np.random.default_rng(4)
    fields, table = rng.random((2, 3)) + 0.1, rng.random((3, 3)) + 0.1
    model = mk.MarkovNetwork(
        {"a": 3, "b": 3},
        [mk.Factor(["a"], fields[0]), mk.Factor(["b"], fields[1]), mk.Factor(["a", "b"], table)],
    )
    found = model.map(engine=RelaxationLabelling(max_iterations=1)).info.details.marginals
    # the graph puts single tables into the pair's, so shares begin equal and support counts from the least log entry
    graph = graph_of(model)
    first = [graph.unary[graph.starts[i] : graph.starts[i + 1]] for i in range(2)]
    first = [own / own.sum() for own in first]
    logs = graph.log_values.reshape(3, 3) - graph.log_values.min()
    alone = [np.log(own) - np.log(own).min() for own in first]
    for i, name in enumerate(graph.names):
        support = alone[i] + (logs @ first[1] if i == 0 else first[0] @ logs)
        np.testing.assert_allclose(found[name], first[i] * support / (first[i] @ support), atol=1e-12)


def test_larger_factors_are_refused_by_the_program_and_taken_by_the_labelling():
    model = mk.MarkovNetwork(
        dict.fromkeys("abc", 2), [mk.Factor([*"abc"], np.arange(1.0, 9.0).reshape(2, 2, 2))]
    )
    with pytest.raises(mk.errors.Unanswered, match=r"at most two.*relaxation-labelling"):
        model.map(engine="quadratic-program")
    assert model.map(engine="relaxation-labelling").to_dict() == {"a": 1, "b": 1, "c": 1}
