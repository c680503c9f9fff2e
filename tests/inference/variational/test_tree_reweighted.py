"""Tree-reweighted belief propagation: always above log Z, exact on trees, appearance probabilities that are valid."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs import spanning_forests
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.variational.tree_reweighted import Minimisation
from model_strategies import log_sum, log_weights, random_case, random_findings, tries

TRW = mk.engines.TreeReweighted


def complete(n, strength, seed):
    rng = np.random.default_rng(seed)
    pairs = [(f"v{i}", f"v{j}") for i in range(n) for j in range(i)]
    return mk.MarkovNetwork.ising(
        {p: float(strength * rng.normal()) for p in pairs}, {f"v{i}": float(rng.normal()) for i in range(n)}
    )


@pytest.mark.parametrize("kind", ["directed", "certain", "structured", "undirected", "factor graph"])
def test_the_bound_is_never_below_log_z(kind):
    engine = TRW()
    for seed in tries(200):
        case = random_case(seed, kind, max_entries=500)
        given = random_findings(case, np.random.default_rng(seed), 0.2)
        log_z = float(log_sum(log_weights(case, given)))
        problem = case.model._problem(given)
        answer = engine.marginals(problem, problem.free)
        if log_z == -np.inf:
            continue  # arc consistency need not see it; any value is a bound
        slack = 1e-9 * (1 + abs(log_z))
        assert answer.log_mass >= log_z - slack, seed
        assert min(answer.record.details.upper_trace, default=log_z) >= log_z - slack, seed
        assert answer.record.converged, seed
        for table in answer.tables:
            assert table.total == pytest.approx(1.0)
        if answer.record.exact:
            assert answer.log_mass == pytest.approx(log_z, abs=1e-9)


def test_any_messages_give_an_upper_bound_and_its_gradient():
    rng = np.random.default_rng(1)
    for seed in tries(60):
        case = random_case(seed + 700, ["undirected", "directed"][seed % 2], max_entries=200)
        graph = flat_graph(case.model._problem(None))
        log_z = float(log_sum(log_weights(case)))
        if log_z == -np.inf or not graph.n_factors or graph.values.min() == 0:
            continue
        forests = spanning_forests.balanced(graph, rng)
        run = Minimisation(graph, graph.log_unary, forests, np.inf)
        lam = 2.0 * rng.normal(size=len(run.lam))
        value, _, gradient = run.bound(lam)
        assert value >= log_z - 1e-9
        way = rng.normal(size=len(lam))
        slope = (run.bound(lam + 1e-5 * way)[0] - run.bound(lam - 1e-5 * way)[0]) / 2e-5
        assert gradient @ way == pytest.approx(slope, abs=1e-5 * (1 + abs(slope)))


@pytest.mark.parametrize("strength", [0.5, 2.0, 6.0])
def test_strong_couplings_and_early_stops_stay_above(strength):
    for seed in range(10):
        model = complete(6, strength, seed)
        log_z = model.log_partition()
        found = [model.log_partition(engine=TRW(max_iterations=n, seed=seed)) for n in (1, 5, 400)]
        assert min(found) >= log_z - 1e-8
        assert found[2] <= found[0] + 1e-9


def test_message_passing_and_direct_descent_reach_the_same_minimum():
    for seed in range(8):
        model = complete(5, 1.0, seed)
        graph = flat_graph(model._problem(None))
        forests = spanning_forests.balanced(graph, np.random.default_rng(0))
        passed = Minimisation(graph, graph.log_unary, forests, np.inf)
        passed.settle(2000, 1e-10, 0.0)
        descended = Minimisation(graph, graph.log_unary, forests, np.inf)
        descended._descend(2000, 1e-9)
        assert passed.best == pytest.approx(descended.best, abs=1e-6)
        np.testing.assert_allclose(passed.marginals, descended.marginals, atol=1e-4)


def test_trees_are_exact_in_value_and_marginals():
    for seed in range(20):
        case = random_case(seed + 60, "directed", max_entries=400)
        tree = mk.generators.random_tree_network(8, seed=seed)
        for model in (tree, case.model):
            if not flat_graph(model._problem(None)).is_forest:
                continue
            exact = model.marginals()
            for name, answer in model.marginals(engine="tree-reweighted").items():
                assert answer.allclose(exact[name], atol=1e-9)
                assert answer.info.exact


def test_marginals_at_the_optimum_agree_over_all_forests():
    model = mk.generators.ising_grid(4, 4, coupling="random", field="random", seed=5)
    answer = model.query("x1_1", engine=TRW(tolerance=1e-9))
    assert answer.info.error < 1e-6
    graph = flat_graph(model._problem(None))
    exact = model.marginals()
    found = model.marginals(engine="tree-reweighted")
    assert max(np.abs(found[n].values - exact[n].values).max() for n in exact) < 0.2
    assert answer.info.details.rho.shape == (graph.n_factors,)


def test_a_symmetric_cycle_has_equal_appearance_and_the_known_bound():
    ring = mk.MarkovNetwork.ising({("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "a"): 1.0})
    answer = ring.query("a", engine=TRW(rho="uniform", tolerance=1e-10))
    np.testing.assert_allclose(answer.info.details.rho, 2 / 3, atol=1e-9)
    # by symmetry every tree is a chain of two couplings 1.5: Z = 2 (2 cosh 1.5)^2
    assert answer.info.details.upper == pytest.approx(np.log(2) + 2 * np.log(2 * np.cosh(1.5)), abs=1e-9)
    assert answer[1] == pytest.approx(0.5)


def test_uniform_spanning_trees_match_an_enumeration():
    from itertools import combinations

    model = mk.MarkovNetwork.ising(
        {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "a"): 1.0, ("c", "d"): 1.0, ("d", "a"): 1.0, ("d", "e"): 1.0}
    )
    graph = flat_graph(model._problem(None))
    count, trees = np.zeros(graph.n_factors), 0
    for chosen in combinations(range(graph.n_factors), 4):
        mask = spanning_forests.greedy(graph, np.array(chosen))
        if mask.sum() == 4:
            count[list(chosen)] += 1
            trees += 1
    expected = count / trees
    np.testing.assert_allclose(spanning_forests.spanning_tree_probabilities(graph), expected, atol=1e-12)
    mixture = spanning_forests.uniform(graph, np.random.default_rng(0))
    np.testing.assert_allclose(mixture.rho, expected, atol=1e-8)


def test_trees_drawn_for_large_graphs_are_uniform(monkeypatch):
    monkeypatch.setattr(spanning_forests, "EXACT", 0)
    monkeypatch.setattr(spanning_forests, "MOST", 4000)
    model = mk.MarkovNetwork.ising(
        {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "a"): 1.0, ("c", "d"): 1.0, ("d", "a"): 1.0}
    )
    graph = flat_graph(model._problem(None))
    drawn = spanning_forests.uniform(graph, np.random.default_rng(3))
    expected = spanning_forests.spanning_tree_probabilities(graph)
    assert drawn.weights.sum() == pytest.approx(1.0)
    assert np.abs(drawn.rho - expected).max() < 4.5 * 0.5 / np.sqrt(4000)


def test_forests_have_no_loops_and_hold_every_factor():
    for seed in tries(60):
        case = random_case(seed + 20, max_entries=2000)
        graph = flat_graph(case.model._problem(None))
        if not graph.n_factors:
            continue
        found = spanning_forests.balanced(graph, np.random.default_rng(seed))
        total = np.zeros(graph.n_factors)
        for forest, weight in zip(found.forests, found.weights, strict=True):
            total[forest.factors] += weight
            links = sum(len(graph.members(f)) for f in forest.factors)
            assert links == len(graph.cards) - len(forest.roots) + len(forest.factors)
        np.testing.assert_allclose(total, found.rho, atol=1e-12)
        assert found.rho.min() > 0


def test_given_appearance_probabilities_are_used_and_checked():
    ring = mk.MarkovNetwork.ising({("a", "b"): 1.0, ("b", "c"): 0.5, ("c", "a"): -0.3})
    good = {("a", "b"): 0.9, ("b", "c"): 0.6, ("a", "c"): 0.5}
    answer = ring.query("a", engine=TRW(rho=good))
    np.testing.assert_allclose(sorted(answer.info.details.rho), [0.5, 0.6, 0.9], atol=1e-7)
    assert answer.info.details.upper >= ring.log_partition()
    with pytest.raises(mk.errors.InvalidArgument, match="mixture"):
        ring.query("a", engine=TRW(rho={("a", "b"): 0.9, ("b", "c"): 0.9, ("a", "c"): 0.9}))
    with pytest.raises(mk.errors.InvalidArgument, match="no appearance"):
        ring.query("a", engine=TRW(rho={("a", "b"): 0.9}))


def test_optimised_appearance_lowers_the_bound():
    for seed in range(3):
        model = mk.generators.ising_grid(5, 5, coupling="random", seed=seed)
        plain = model.log_partition(engine=TRW())
        better = model.log_partition(engine=TRW(optimise=10))
        assert model.log_partition() <= better < plain - 0.05


def test_impossible_and_trivial_models():
    assert mk.MarkovNetwork({"a": 1, "b": 2}, []).log_partition(engine="tree-reweighted") == pytest.approx(
        np.log(2)
    )
    with pytest.raises(mk.errors.ImpossibleEvidence):
        mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])]).query("a", engine="tree-reweighted")
    never = mk.Factor(["a", "b"], [[0, 0], [0, 1]])
    model = mk.MarkovNetwork({"a": 2, "b": 2}, [never])
    assert model.log_partition(given={"a": 0}, engine="tree-reweighted") == -np.inf
    assert model.query("a", engine="tree-reweighted")[1] == 1.0
    assert model.log_partition(given={"a": 1, "b": 1}, engine="tree-reweighted") == pytest.approx(0.0)


def test_extreme_tables_stay_finite_and_valid():
    rng = np.random.default_rng(0)
    for _ in range(30):
        tables = [10.0 ** rng.uniform(-150, 150, size=(2, 2)) for _ in range(3)]
        model = mk.MarkovNetwork(
            dict.fromkeys("abc", 2),
            [mk.Factor(list(p), t) for p, t in zip(("ab", "bc", "ca"), tables, strict=True)],
        )
        upper = model.log_partition(engine="tree-reweighted")
        log_z = model.log_partition()
        assert np.isfinite(upper)
        assert upper >= log_z - 1e-9 * (1 + abs(log_z))


def test_time_limits_keep_the_bound_valid():
    grid = mk.generators.ising_grid(12, 12, coupling="random", field="random", seed=1)
    assert grid.log_partition(engine="tree-reweighted", time_limit=1e-4) >= grid.log_partition()


@pytest.mark.parametrize(
    "settings",
    [
        {"rho": "some"},
        {"rho": 0.5},
        {"optimise": -1},
        {"damping": 1.0},
        {"max_iterations": 0},
        {"tolerance": -1.0},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        TRW(**settings)


def test_best_states_are_refused_by_name():
    with pytest.raises(mk.errors.Unanswered, match="max-product"):
        mk.examples.sprinkler().map(engine="tree-reweighted")
