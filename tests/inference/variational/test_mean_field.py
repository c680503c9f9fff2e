"""Naive and structured mean field: bounds that never fall and never pass log Z, worked examples, clusters."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.flat_graphs.consistent_states import configuration, consistent_states
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.variational.mean_field_clusters import clusters_of, grid_positions
from model_strategies import log_sum, log_weights, random_case, random_findings, tries

MeanField, Structured = mk.engines.MeanField, mk.engines.StructuredMeanField


def problem_of(model, given=None):
    return model._problem(given)


def two_spins():
    return mk.MarkovNetwork.ising({("a", "b"): 0.5}, {"a": 0.2, "b": -0.1})


def check_trace(trace, scale):
    assert len(trace)
    assert np.all(np.diff(trace) >= -1e-10 * (1.0 + abs(scale)))


def test_two_spins_give_the_worked_numbers():
    model = two_spins()
    assert model.log_partition() == pytest.approx(1.5221363, abs=1e-7)
    answers = model.marginals(engine=MeanField(tolerance=1e-12))
    assert answers["a"].mean() == pytest.approx(0.1965451, abs=1e-7)
    assert answers["b"].mean() == pytest.approx(-0.0017274, abs=1e-7)
    info = answers["a"].info
    assert info.details.elbo == pytest.approx(1.4061636, abs=1e-7)
    assert info.mass_bound == "lower"
    assert info.converged
    assert not info.exact


@pytest.mark.parametrize("kind", ["directed", "certain", "structured", "undirected", "factor graph"])
def test_the_bound_never_falls_and_never_passes_log_z(kind):
    engine = MeanField(restarts=2)
    for seed in tries(200):
        case = random_case(seed, kind, max_entries=500)
        given = random_findings(case, np.random.default_rng(seed), 0.2)
        log_z = float(log_sum(log_weights(case, given)))
        problem = problem_of(case.model, given)
        answer = engine.marginals(problem, problem.free)
        if log_z == -np.inf:
            assert answer.log_mass == -np.inf, seed
            continue
        assert answer.log_mass <= log_z + 1e-9 * (1 + abs(log_z)), seed
        check_trace(answer.record.details.elbo_trace, log_z)
        assert answer.record.details.elbo == answer.record.details.elbo_trace[-1]
        q = {t.names[0]: t for t in answer.tables}
        assert mk.variational.elbo(problem, q) == pytest.approx(answer.log_mass, abs=1e-8), seed


@pytest.mark.parametrize("clusters", ["auto", "blocks", "chains", "trees"])
def test_structured_bounds_never_fall_and_lie_between_naive_and_log_z(clusters):
    engine = Structured(clusters, block=2, restarts=2)
    naive = MeanField(restarts=2, tolerance=1e-5)
    for seed in tries(90):
        case = random_case(seed + 5000, max_entries=500)
        given = random_findings(case, np.random.default_rng(seed), 0.2)
        log_z = float(log_sum(log_weights(case, given)))
        problem = problem_of(case.model, given)
        answer = engine.marginals(problem, problem.free)
        if log_z == -np.inf:
            assert answer.log_mass == -np.inf, seed
            continue
        slack = 1e-9 * (1 + abs(log_z))
        assert naive.marginals(problem, problem.free).log_mass - slack <= answer.log_mass <= log_z + slack, (
            seed
        )
        check_trace(answer.record.details.elbo_trace, log_z)
        if answer.record.exact:
            assert answer.log_mass == pytest.approx(log_z, abs=1e-9)


def test_the_reported_bound_is_that_of_the_clusters():
    model = mk.generators.ising_grid(2, 4, coupling="random", field="random", seed=2)
    clusters = [["x0_0", "x0_1", "x1_0", "x1_1"], ["x0_2", "x0_3", "x1_2", "x1_3"]]
    engine = Structured(clusters)
    q = [model.query(c, engine=engine) for c in clusters]
    found = model.log_partition(engine=engine)
    assert mk.variational.elbo(model, q) == pytest.approx(found, abs=1e-8)
    assert mk.variational.kl(q, model) == pytest.approx(model.log_partition() - found, abs=1e-8)


def test_higher_order_factors_that_cross_clusters_keep_the_bound_right():
    rng = np.random.default_rng(4)
    names = "abcdef"
    for _ in range(15):
        scopes = [rng.permutation(list(names))[:3].tolist() for _ in range(5)]
        tables = [np.exp(rng.normal(size=(2, 2, 2))) * (rng.random((2, 2, 2)) > 0.15) for _ in scopes]
        model = mk.MarkovNetwork(
            dict.fromkeys(names, 2), [mk.Factor(s, t) for s, t in zip(scopes, tables, strict=True)]
        )
        log_z = model.log_partition()
        if log_z == -np.inf:
            continue
        engine = Structured([["a", "b", "c"], ["d", "e", "f"]])
        problem = problem_of(model)
        answer = engine.marginals(problem, problem.free)
        q = [engine.joint(problem, c).tables[0] for c in ("abc", "def")]
        assert answer.log_mass <= log_z + 1e-9
        assert mk.variational.elbo(model, q) == pytest.approx(answer.log_mass, abs=1e-7)
        check_trace(answer.record.details.elbo_trace, log_z)


@pytest.mark.parametrize(("coupling", "field"), [(0.5, None), (0.3, 0.2), ("random", "random"), (-0.4, 0.3)])
def test_larger_blocks_of_an_ising_grid_give_better_bounds(coupling, field):
    grid = mk.generators.ising_grid(8, 8, coupling=coupling, field=field, seed=3)
    naive = grid.log_partition(engine="mean-field")
    small = grid.log_partition(engine=Structured("blocks", block=2))
    large = grid.log_partition(engine=Structured("blocks", block=4))
    assert naive <= small <= large <= grid.log_partition() + 1e-9
    assert large - naive > 0.1


def test_models_without_couplings_and_forests_are_exact():
    alone = mk.MarkovNetwork({"a": 2, "b": 3}, [mk.Factor(["a"], [3, 5]), mk.Factor(["b"], [1, 0, 2])])
    assert alone.log_partition(engine="mean-field") == pytest.approx(np.log(24.0))
    chain = mk.generators.ising_grid(1, 6, coupling="random", field="random", seed=1)
    answer = chain.query("x0_2", engine="structured-mean-field")
    assert answer.info.exact
    assert answer.allclose(chain.query("x0_2"), atol=1e-9)


@pytest.mark.parametrize("name", ["mean-field", "structured-mean-field"])
def test_everything_observed_and_trivial_models_work(name):
    model = two_spins()
    assert model.log_partition(given={"a": 1, "b": -1}, engine=name) == pytest.approx(-0.5 + 0.2 + 0.1)
    single = mk.MarkovNetwork({"a": 1, "b": 2}, [])
    assert single.log_partition(engine=name) == pytest.approx(np.log(2))
    with pytest.raises(mk.errors.ImpossibleEvidence):
        mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])]).query("a", engine=name)
    xor = mk.MarkovNetwork(
        dict.fromkeys("abc", 2), [mk.Factor(list(p), [[0, 1], [1, 0]]) for p in ("ab", "bc", "ca")]
    )
    with pytest.raises(
        mk.errors.ImpossibleEvidence
    ):  # three variables that all differ: only a search sees it
        xor.query("a", engine=name)


@pytest.mark.parametrize("name", ["mean-field", "structured-mean-field"])
def test_best_states_have_the_weight_they_claim(name):
    for seed in range(25):
        case = random_case(seed + 300, max_entries=300)
        logs = log_weights(case)
        if logs.max() == -np.inf:
            continue
        found = case.model.map(engine=name)
        at = tuple(found[n] for n in case.cards)
        assert found.log_weight == pytest.approx(float(logs[at]), abs=1e-9), seed
        assert found.bound >= found.log_prob


def test_joints_keep_the_dependence_that_a_product_loses():
    model = mk.MarkovNetwork.ising({("a", "b"): 1.0, ("b", "c"): 1.0, ("a", "c"): 0.2})
    joint = model.query(["a", "b"], engine="mean-field")
    assert joint[1, 1] + joint[-1, -1] > 0.8


def test_the_same_seed_gives_the_same_answer():
    grid = mk.generators.ising_grid(6, 6, coupling=0.8, seed=1)
    one, two = (grid.marginals(engine=MeanField(seed=7)) for _ in range(2))
    assert all(np.array_equal(one[n].values, two[n].values) for n in one)


def test_time_limits_stop_the_ascent_with_a_valid_bound():
    grid = mk.generators.ising_grid(12, 12, coupling="random", field="random", seed=1)
    log_z = grid.log_partition()
    for name in ("mean-field", "structured-mean-field"):
        assert grid.log_partition(engine=name, time_limit=1e-4) <= log_z


def test_a_run_that_is_cut_short_warns():
    grid = mk.generators.ising_grid(6, 6, coupling="random", seed=1)
    with pytest.warns(mk.errors.ConvergenceWarning, match="max_iterations"):
        grid.query("x0_0", engine=MeanField(max_iterations=2))


def test_slices_of_a_sweep_change_nothing(monkeypatch):
    grid = mk.generators.ising_grid(5, 5, coupling="random", field="random", seed=1)
    whole = grid.log_partition(engine="mean-field")
    monkeypatch.setattr("markovia.inference.variational.mean_field.SLICE", 30.0)
    assert grid.log_partition(engine="mean-field") == pytest.approx(whole, abs=1e-9)


@pytest.mark.parametrize(
    "settings",
    [
        {"restarts": 0},
        {"max_iterations": 1.5},
        {"tolerance": -1},
        {"time_limit": 0},
        {"seed": "x"},
        {"tolerance": "small"},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(mk.errors.InvalidArgument):
        MeanField(**settings)
    with pytest.raises(mk.errors.InvalidArgument):
        Structured(**settings)


def test_clusters_that_make_no_sense_are_refused():
    model = two_spins()
    for wrong in ("squares", ["a", "b"]):
        with pytest.raises(mk.errors.InvalidArgument):
            Structured(wrong)
    with pytest.raises(mk.errors.InvalidArgument):
        Structured(block=0)
    with pytest.raises(mk.errors.UnknownVariable):
        model.log_partition(engine=Structured([["a", "z"]]))
    with pytest.raises(mk.errors.InvalidArgument, match="twice"):
        model.log_partition(engine=Structured([["a"], ["a", "b"]]))


# -- clusters and starts ------------------------------------------------------------------------------------------


def test_grids_are_recognised_whatever_the_order_of_their_variables():
    rng = np.random.default_rng(0)
    for rows, cols in ((2, 2), (3, 5), (4, 4)):
        grid = mk.generators.ising_grid(rows, cols, coupling="random", seed=1)
        names = rng.permutation(grid.variables).tolist()
        shuffled = mk.MarkovNetwork({n: grid.states(n) for n in names}, grid.pieces())
        graph = flat_graph(problem_of(shuffled))
        at = grid_positions(graph)
        assert at is not None
        assert {tuple(sorted(at.max(axis=0) + 1))} == {tuple(sorted((rows, cols)))}
    ring = mk.generators.ising_grid(3, 3, periodic=True)
    assert grid_positions(flat_graph(problem_of(ring))) is None
    loop = mk.MarkovNetwork.ising(
        {("a", "b"): 1.0, ("b", "c"): 1.0, ("c", "d"): 1.0, ("d", "e"): 1.0, ("e", "a"): 1.0}
    )
    assert grid_positions(flat_graph(problem_of(loop))) is None


@pytest.mark.parametrize("kind", ["auto", "blocks", "chains", "trees"])
def test_clusters_are_a_partition_and_trees_have_no_loops(kind):
    for seed in tries(40):
        case = random_case(seed + 900, max_entries=3000)
        graph = flat_graph(problem_of(case.model))
        clusters = clusters_of(graph, kind, 2, list(case.cards))
        assert sorted(i for c in clusters for i in c) == list(range(len(graph.cards)))
        if kind not in ("chains", "trees"):
            continue
        for cluster in clusters:
            inside = [len(set(graph.members(f).tolist()) & set(cluster)) for f in range(graph.n_factors)]
            links = sum(k - 1 for k in inside if k > 1)
            assert links == len(cluster) - 1  # connected and without loops


def test_arc_consistency_keeps_every_possible_state_and_the_search_finds_one():
    for seed in tries(200):
        case = random_case(seed + 40, ["certain", "undirected"][seed % 2], max_entries=300)
        graph = flat_graph(problem_of(case.model))
        states = consistent_states(graph)
        logs = log_weights(case)
        possible = np.isfinite(logs)
        codes, certain = configuration(graph, states, np.random.default_rng(seed))
        assert (codes is None) == (not possible.any())
        assert certain == (not possible.any())
        if codes is None:
            continue
        assert np.isfinite(logs[tuple(codes)])
        for i in range(len(graph.cards)):
            others = tuple(k for k in range(possible.ndim) if k != i)
            alive = states.alive[graph.starts[i] : graph.starts[i + 1]]
            assert not np.any(possible.any(axis=others) & ~alive)
        if states.free:
            grids = np.ix_(
                *[
                    np.flatnonzero(states.alive[a:b])
                    for a, b in zip(graph.starts, graph.starts[1:], strict=False)
                ]
            )
            assert possible[grids].all()
