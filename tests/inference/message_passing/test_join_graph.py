"""Join-graph propagation and the symmetries it breaks first."""

from math import sqrt

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.flat_graphs.symmetry import break_symmetries, is_symmetry
from markovia.inference.message_passing.join_graph import JoinGraph
from markovia.io.uai_results import read_evid, read_mar
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings
from places import BENCHMARKS


def problem_of(model, given=None):
    return model._problem(given or {}, "junction-tree")


def random_grid(n, strength, seed):
    rng = np.random.default_rng(seed)
    factors = [mk.Factor([f"{i}_{j}"], rng.random(2) + 0.2) for i in range(n) for j in range(n)]
    for i in range(n):
        for j in range(n):
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < n and b < n:
                    w = strength * rng.normal()
                    factors.append(mk.Factor([f"{i}_{j}", f"{a}_{b}"], np.exp([[w, -w], [-w, w]])))
    return mk.MarkovNetwork({f"{i}_{j}": 2 for i in range(n) for j in range(n)}, factors)


def hellinger(found, truth):
    gaps = [((np.sqrt(a.values) - np.sqrt(b.values)) ** 2).sum() for a, b in zip(found, truth, strict=True)]
    return float(np.mean([sqrt(0.5 * g) for g in gaps]))


def test_larger_clusters_come_closer_until_the_answer_is_exact():
    errors = {bound: [] for bound in (4, 64, 1 << 20)}
    for seed in range(5):
        problem = problem_of(random_grid(7, 0.7, seed))
        truth = mk.engines.JunctionTree().marginals(problem, problem.free)
        for bound in errors:
            found = JoinGraph(max_entries=bound, damping=0.3).marginals(problem, problem.free)
            errors[bound].append(hellinger(found.tables, truth.tables))
            assert found.record.exact == (bound == 1 << 20)
            assert found.record.details.largest_cluster <= bound
            if found.record.exact:
                assert found.log_mass == pytest.approx(truth.log_mass, abs=1e-9)
    assert np.mean(errors[64]) < 0.6 * np.mean(errors[4])
    assert max(errors[1 << 20]) < 1e-7


@pytest.mark.parametrize("seed", range(40))
def test_bounded_clusters_keep_what_is_impossible_impossible(seed):
    case = random_case(seed, kind="certain", max_entries=2000)
    given = random_findings(case, np.random.default_rng(seed), rate=0.2)
    logs = log_weights(case, given)
    log_z = float(log_sum(logs))
    problem = problem_of(case.model, given)
    found = JoinGraph(max_entries=3).marginals(problem, problem.free)
    if found.log_mass == -np.inf:
        assert log_z == -np.inf
        return
    for name, table in zip(problem.free, found.tables, strict=True):
        assert table.values.sum() == pytest.approx(1.0)
        if log_z > -np.inf:
            possible = log_marginal(case, logs, [name]) > -np.inf
            assert (table.values[possible] > 0).all()


def test_the_answer_does_not_depend_on_the_number_of_threads(monkeypatch):
    monkeypatch.setattr("markovia.inference.message_passing.cluster_messages.WORTH_THREADS", 64)
    problem = problem_of(random_grid(8, 1.0, 3))
    answers = []
    for threads in ("1", "2"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        answers.append(JoinGraph(max_entries=256, max_iterations=7).marginals(problem, problem.free))
    for a, b in zip(answers[0].tables, answers[1].tables, strict=True):
        np.testing.assert_array_equal(a.values, b.values)


def test_a_time_limit_is_respected_and_larger_clusters_are_tried(monkeypatch):
    monkeypatch.setattr("markovia.inference.message_passing.join_graph.TREE_ENTRIES_A_SECOND", 0.0)
    monkeypatch.setattr("markovia.inference.message_passing.join_graph.ENTRIES_A_SECOND", 0.0)
    problem = problem_of(random_grid(18, 0.6, 1))
    small = JoinGraph(max_entries=16).marginals(problem, problem.free)
    found = JoinGraph(time_limit=1.5).marginals(problem, problem.free)
    truth = mk.engines.JunctionTree().marginals(problem, problem.free)
    assert found.record.details.max_entries >= 1024
    assert hellinger(found.tables, truth.tables) < hellinger(small.tables, truth.tables)


def test_a_tree_that_fits_the_time_is_left_to_the_junction_tree():
    grid = random_grid(15, 0.6, 2)
    found = grid.query("0_0", engine=JoinGraph(time_limit=60))
    assert found.info.exact
    assert found.info.engine == "junction-tree"


def test_flipping_all_spins_is_a_symmetry_and_a_field_breaks_it():
    magnet = mk.generators.ising_grid(3, 4, coupling=0.4)
    graph = flat_graph(problem_of(magnet))
    broken = break_symmetries(graph)
    assert len(broken.mirrors) == 1
    (exchange,) = broken.mirrors[0]
    np.testing.assert_array_equal(exchange, np.arange(24) ^ 1)
    assert is_symmetry(graph, exchange)
    wrong = exchange.copy()
    wrong[:2] = [0, 1]
    assert not is_symmetry(graph, wrong)
    with_field = problem_of(magnet, {magnet.variables[0]: [1.0, 2.0]})
    assert not break_symmetries(flat_graph(with_field)).mirrors


@pytest.mark.parametrize("seed", range(20))
def test_broken_symmetries_keep_the_mass_and_give_the_marginals_back(seed):
    rng = np.random.default_rng(seed)
    n, states = 6, int(rng.integers(2, 4))
    names = [f"v{i}" for i in range(n)]
    factors = []
    for a in range(n):
        for b in range(a):
            if rng.random() < 0.5:
                same, other = rng.random(2).round(1) + 0.1
                factors.append(mk.Factor([names[b], names[a]], np.where(np.eye(states) > 0, same, other)))
    if seed % 3 == 0:
        factors.append(mk.Factor([names[0]], [1.0] + [0.5] * (states - 1)))
    model = mk.MarkovNetwork(dict.fromkeys(names, states), factors)
    graph = flat_graph(problem_of(model))
    broken = break_symmetries(graph)
    codes = np.indices((states,) * n).reshape(n, -1).T
    truth, found = (np.exp(g.log_weights(codes)) for g in (graph, broken.graph))
    assert found.sum() == pytest.approx(truth.sum())

    def marginals(weights):
        return np.concatenate([np.bincount(codes[:, i], weights, states) for i in range(n)]) / weights.sum()

    np.testing.assert_allclose(broken.restored(marginals(found)), marginals(truth), atol=1e-12)
    if factors and (states == 2 or seed % 3):
        assert broken.mirrors or seed % 3 == 0


def test_breaking_symmetries_makes_a_model_with_many_modes_exact_where_messages_would_choose_one():
    # a ring of three pairs that prefer to be alike, very strongly: two mirror images
    rng = np.random.default_rng(1)
    names = [f"v{i}" for i in range(9)]
    factors = [
        mk.Factor([names[a], names[b]], np.exp(np.array([[1.0, -1.0], [-1.0, 1.0]]) * (1.0 + rng.random())))
        for a in range(9)
        for b in range(a)
    ]
    problem = problem_of(mk.MarkovNetwork(dict.fromkeys(names, 2), factors))
    found = JoinGraph(max_entries=4).marginals(problem, problem.free)
    assert found.record.details.symmetries == 1
    for table in found.tables:
        np.testing.assert_allclose(table.values, [0.5, 0.5], atol=1e-12)
    truth = mk.engines.JunctionTree().log_mass(problem)
    assert found.log_mass == pytest.approx(truth, abs=1e-3)
    without = JoinGraph(max_entries=4, symmetry=False).log_mass(problem)
    assert abs(without - truth) > 0.1


@pytest.mark.parametrize(
    "settings", [{"max_entries": 0}, {"max_entries": 2.5}, {"damping": 1}, {"symmetry": 1}]
)
def test_settings_out_of_range_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        JoinGraph(**settings)


def test_a_pedigree_of_the_uai_competition_is_answered():
    home = BENCHMARKS / "uai/MAR"
    if not (home / "Pedigree_11.uai.gz").exists():
        pytest.skip("no benchmark data")
    model = mk.load(home / "Pedigree_11.uai.gz")
    (given,) = read_evid((home / "Pedigree_11.uai.evid").read_text())
    published = dict(zip(model.variables, read_mar((home / "Pedigree_11.uai.MAR").read_text()), strict=True))
    for bound, most in ((64, 0.05), (1 << 20, 2e-3)):
        problem = problem_of(model, given)
        found = JoinGraph(max_entries=bound).marginals(problem, problem.free)
        gaps = [
            sqrt(0.5 * ((np.sqrt(t.values) - np.sqrt(published[n])) ** 2).sum())
            for n, t in zip(problem.free, found.tables, strict=True)
        ]
        assert np.mean(gaps) < most
