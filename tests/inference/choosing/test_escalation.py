"""What "auto" does on models that are too wide for exact engines: who answers, and what the answer says of itself."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import markovia as mk
from markovia.inference.choosing import escalation
from markovia.inference.map_bounds import flow_network
from markovia.inference.map_bounds.graph_cut import GraphCut
from markovia.inference.markov_chains.chain_runs import ChainDetails
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Record
from markovia.runtime.clock import now

SECONDS = 0.5
GENEROUS = 6.0  # loading compiled code, planning, and a busy machine come on top


def glass(n, pairs, coupling, field, seed):
    """Spins coupled at random, attracting and repelling, on a random graph that no exact engine fits."""
    rng = np.random.default_rng(seed)
    pair, one = np.array([[1, -1], [-1, 1]]), np.array([1, -1])
    ends = {tuple(sorted(rng.choice(n, size=2, replace=False).tolist())) for _ in range(pairs)}
    factors = [mk.Factor([f"v{i}", f"v{j}"], np.exp(pair * rng.normal() * coupling)) for i, j in sorted(ends)]
    factors += [mk.Factor([f"v{i}"], np.exp(one * rng.normal() * field)) for i in range(n)]
    return mk.MarkovNetwork({f"v{i}": 2 for i in range(n)}, factors)


@pytest.fixture(scope="module")
def grid():
    return mk.generators.ising_grid(40, 40, coupling=0.2, seed=1)


@pytest.fixture(scope="module")
def frustrated():
    return glass(400, 3000, 0.5, 0.1, 1)


def quickly(ask):
    start = now()
    found = ask()
    assert now() - start < GENEROUS
    return found


def log_weight(model, states, given=()):
    every = {**states, **dict(given)}
    return sum(np.log(f[tuple(every[n] for n in f.names)]) for f in model.pieces())


# -- marginals -------------------------------------------------------------------------------------------------------


def test_a_grid_too_wide_is_answered_by_loopy_propagation_and_says_so(grid):
    found = grid.query("x5_5")
    assert found.info.engine == "loopy-bp"
    assert not found.info.exact
    assert found.info.converged
    assert found.info.tried == ("loopy-bp(schedule=sequential): converged",)
    assert found.values == pytest.approx([0.5, 0.5], abs=1e-6)  # no field
    everything = grid.marginals(given={"x5_5": 1})
    assert len(everything) == 1599
    assert everything["x5_6"][1] > 0.55
    assert not everything["x5_6"].info.exact


def test_evidence_of_all_kinds_on_a_wide_model(grid):
    up = grid.query("x5_5", given={"x5_6": 1, "x4_5": [0.1, 0.9], "x6_5": mk.Not(-1)}, time_limit=SECONDS)
    assert up[1] > 0.6
    assert grid.query("x5_5", given={"x5_5": 1}, time_limit=SECONDS)[1] == 1.0


def test_a_joint_query_on_a_wide_model_keeps_the_order_of_its_targets(grid):
    given = {"x1_0": 1}
    found = grid.query(["x0_1", "x0_0"], given=given)
    assert found.names == ("x0_1", "x0_0")
    assert found.values.sum() == pytest.approx(1.0)
    swapped = grid.query(["x0_0", "x0_1"], given=given)
    assert swapped.values == pytest.approx(found.values.T, abs=1e-6)


def test_the_sprinkler_is_exact_by_auto_and_biased_by_loopy_propagation():
    sprinkler = mk.examples.sprinkler()
    exact = sprinkler.query("wet")
    assert exact["yes"] == pytest.approx(0.6471, abs=1e-4)
    assert exact.info.exact
    loopy = sprinkler.query("wet", engine="loopy-bp")
    assert loopy["yes"] == pytest.approx(0.5985, abs=1e-4)
    assert not loopy.info.exact


def test_messages_that_do_not_converge_are_followed_by_others_and_the_answer_warns(frustrated):
    with pytest.warns(mk.errors.ConvergenceWarning):
        found = quickly(lambda: frustrated.query("v0", time_limit=SECONDS))
    tried = found.info.tried
    assert tried[0] == "loopy-bp(schedule=sequential): did not converge"
    assert tried[-1].startswith("gibbs")
    assert found.info.engine == "gibbs"
    assert not found.info.converged
    assert not found.info.exact
    assert found.info.diagnostics is not None


@pytest.mark.slow
def test_sampling_answers_where_messages_do_not_converge():
    model = glass(400, 3000, 0.3, 0.1, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        found = quickly(lambda: model.query(["v0", "v7"], time_limit=2 * SECONDS))
    assert found.info.tried[0] == "loopy-bp(schedule=sequential): did not converge"
    assert found.info.engine == "gibbs"
    assert found.values.sum() == pytest.approx(1.0)
    assert 0 < found.info.error < 0.5


def made(engine, converged):
    """Return the record of a run that made all draws."""
    return Record(converged=converged, details=ChainDetails(engine.chains, engine.draws, 0, 1, 1.0))


def test_gibbs_sampling_uses_the_time_it_is_given():
    """A first run says how many draws fit; the second makes them."""
    calls = []

    def attempt(engine):
        calls.append(engine)
        return escalation.Tables([], np.nan, made(engine, converged=False))

    clock = escalation.SharedTime(1000.0, now())
    assert escalation._gibbs(attempt, clock, seed=3)
    assert [c.name for c in calls] == ["gibbs", "gibbs"]
    assert calls[1].draws > 10 * calls[0].draws
    assert calls[1].draws <= escalation.MOST_DRAWS
    assert calls[1].seed == 3


def test_without_a_time_limit_a_converged_run_of_gibbs_is_enough():
    calls = []

    def attempt(engine):
        calls.append(engine)
        return escalation.Tables([], np.nan, made(engine, converged=True))

    assert escalation._gibbs(attempt, escalation.SharedTime(None, now()), seed=0)
    assert len(calls) == 1


def test_exact_answers_only_where_approximate_ones_are_not_wanted(frustrated):
    engine = mk.engines.Auto(approximate=False)
    for ask in (
        lambda: frustrated.query("v0", engine=engine),
        lambda: frustrated.log_partition(engine=engine),
        lambda: frustrated.map(engine=engine),
    ):
        with pytest.raises(mk.errors.TooLarge):
            ask()


def test_impossible_evidence_on_a_wide_model_is_found_out(grid):
    hard = mk.MarkovNetwork(
        dict.fromkeys(grid.variables, 2),
        [
            *(mk.Factor(list(p.names), p.values) for p in grid.pieces()),
            mk.Factor(["x0_0", "x9_9"], [[1, 0], [0, 1]]),
        ],
    )
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        hard.query("x5_5", given={"x0_0": 0, "x9_9": 1, "x3_3": 1}, time_limit=SECONDS)
    assert caught.value.evidence == {"x0_0": 0, "x9_9": 1}


# -- masses ----------------------------------------------------------------------------------------------------------


def test_the_log_partition_function_of_a_wide_model_warns_that_it_is_approximate(grid):
    with pytest.warns(mk.errors.ApproximateWarning, match="loopy-bp"):
        value = quickly(lambda: grid.log_partition())
    assert value == pytest.approx(1600 * np.log(2) + 3120 * np.log(np.cosh(0.2)), rel=0.01)
    bounds = quickly(lambda: grid.log_partition(bounds=True, time_limit=SECONDS))
    assert bounds.lower - 1e-6 <= value <= bounds.upper + 1e-6


def test_the_log_mass_ends_in_time_where_messages_do_not_converge(frustrated):
    with pytest.warns(mk.errors.ApproximateWarning):
        value = quickly(lambda: frustrated.log_partition(time_limit=SECONDS))
    assert np.isfinite(value)
    assert value >= 400 * np.log(2)  # convexity: the weights have mean one or more


def test_the_evidence_of_a_wide_model_is_a_number(grid):
    with pytest.warns(mk.errors.ApproximateWarning):
        assert grid.log_evidence({"x5_5": 1}) == pytest.approx(np.log(0.5), abs=0.05)


# -- draws -----------------------------------------------------------------------------------------------------------


def test_draws_from_a_wide_model_warn_and_repeat_with_the_seed(frustrated):
    with pytest.warns(mk.errors.ApproximateWarning, match="Gibbs") as said:
        rows = frustrated.sample(4, given={"v3": 1}, seed=2)
    assert [w.category for w in said] == [mk.errors.ApproximateWarning]
    assert (rows["v3"] == 1).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert rows.equals(frustrated.sample(4, given={"v3": 1}, seed=2))


# -- most probable states --------------------------------------------------------------------------------------------


def test_a_wide_attractive_grid_is_solved_by_a_graph_cut():
    rng = np.random.default_rng(0)
    grid = mk.generators.ising_grid(40, 40, coupling=0.4, seed=1)
    field = [mk.Factor([n], np.exp(rng.normal(size=2))) for n in grid.variables]
    model = mk.MarkovNetwork(
        {n: grid.states(n) for n in grid.variables},
        [
            *(mk.Factor([*p.variables], p.values) for p in grid.pieces()),
            *(mk.Factor([grid.variable(f.names[0])], f.values) for f in field),
        ],
    )
    best = quickly(lambda: model.map(time_limit=SECONDS))
    assert best.info.engine == "graph-cut"
    assert best.gap == 0.0
    assert best.info.exact
    assert best.log_weight == pytest.approx(log_weight(model, best))


def test_a_graph_cut_gets_the_time_limit_and_is_not_called_exact_where_it_ran_out(monkeypatch):
    model = mk.generators.ising_grid(40, 40, coupling=0.4, field="random", seed=1)
    given, real = [], GraphCut._solve

    def solve(self, problem):
        given.append(self.time_limit)
        return real(self, problem)

    monkeypatch.setattr(GraphCut, "_solve", solve)
    exact = model.map()
    assert given == [None]  # no limit was asked for
    assert exact.info.exact
    model.map(time_limit=30.0)
    assert 0 < given[1] <= 30.0
    monkeypatch.setattr(flow_network, "SLICE", 1)
    monkeypatch.setattr(
        GraphCut, "_solve", lambda self, problem: real(replace(self, time_limit=1e-9), problem)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        rough = model.map(time_limit=30.0)
    assert rough.info.engine == "graph-cut"
    assert not rough.info.exact
    assert not rough.info.converged
    assert rough.log_weight == pytest.approx(log_weight(model, rough))
    assert rough.log_weight <= exact.log_weight + 1e-9
    assert rough.bound >= exact.log_weight - 1e-9


@pytest.mark.slow
def test_a_wide_frustrated_model_has_a_value_and_a_finite_bound(frustrated):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        best = quickly(lambda: frustrated.map(given={"v0": 1}, time_limit=SECONDS))
    assert "v0" not in best
    assert best.log_weight == pytest.approx(log_weight(frustrated, best, {"v0": 1}))
    assert best.log_weight <= best.bound < np.inf
    assert best.info.exact == (best.gap == 0)
    assert not best.normalised
    assert np.isnan(best.log_posterior)
    assert best.info.tried == ("dual-decomposition", "map-search")


def test_marginal_map_on_a_wide_model_is_searched_and_not_called_exact(grid):
    targets = ["x0_0", "x0_1", "x1_0"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        best = quickly(lambda: grid.map(targets=targets, given={"x1_1": 1}, time_limit=SECONDS))
    assert best.to_dict() == dict.fromkeys(targets, 1)
    assert best.info.engine == "marginal-map"
    assert not best.info.exact
    assert best.bound == np.inf


def test_no_bound_proves_nothing():
    found = [Assignment({}, -3.0)]
    assert not escalation._proved(found, np.inf)
    assert not escalation._proved([], -3.0)
    assert escalation._proved(found, -3.0)
    assert not escalation._proved(found, -2.9)


# -- directed models -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def diagnosis():
    return mk.generators.qmr(300, 40, causes=250)


def test_a_diagnosis_network_too_wide_for_tables_is_answered(diagnosis):
    few = {f"f{i}": "yes" for i in range(2)}
    found = quickly(lambda: diagnosis.query("d0", given=few, time_limit=8 * SECONDS))
    assert found.info.exact  # chains of two findings side by side
    assert 0 < found["yes"] < 1
    loopy = diagnosis.query("d0", given=few, engine="loopy-bp")
    assert loopy["yes"] == pytest.approx(found["yes"], abs=0.01)
    many = {f"f{i}": "yes" for i in range(20)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        assert quickly(
            lambda: diagnosis.query("d0", given=many, time_limit=SECONDS)
        ).values.sum() == pytest.approx(1)
    with pytest.warns(mk.errors.ApproximateWarning):
        assert -20 < quickly(lambda: diagnosis.log_evidence(many, time_limit=SECONDS)) < 0
    with pytest.warns(mk.errors.ApproximateWarning, match="likelihood weighting"):
        rows = quickly(lambda: diagnosis.sample(5, given=many, seed=0))
    assert (rows["f3"] == "yes").all()


def test_a_random_network_too_wide_is_answered():
    bn = mk.generators.random_bayesian_network(250, max_parents=5, n_edges=900, seed=3)
    given = {n: bn.states(n)[0] for n in bn.variables[-40:]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        found = quickly(lambda: bn.query(bn.variables[0], given=given, time_limit=SECONDS))
    assert not found.info.exact
    assert found.values.sum() == pytest.approx(1.0)


# -- plumbing --------------------------------------------------------------------------------------------------------


def test_a_time_limit_of_auto_must_be_a_positive_number():
    for limit in (0, -1.0, "x", True, float("nan")):
        with pytest.raises(mk.errors.InvalidArgument, match="time_limit"):
            mk.engines.Auto(time_limit=limit)


def test_an_engine_that_refuses_is_listed_and_not_fatal():
    a = mk.Variable("a", [0, 1])
    problem = Problem({"a": a}, [mk.Factor([a], [1.0, 3.0])], {}, {})
    clock = escalation.SharedTime(2.0, now())
    asked = []

    def ask(engine):
        asked.append(engine.name)
        if engine.name != "likelihood-weighting":
            raise mk.errors.TooLarge("a table is too large")
        return escalation.Tables([mk.Factor([a], [0.25, 0.75])], np.nan)

    found = escalation._staged(problem, clock, 0, ask)
    assert found.record.engine == "likelihood-weighting"
    assert "gibbs: a table is too large" in found.record.tried

    def never(engine):
        raise mk.errors.TooLarge("a table is too large")

    with pytest.raises(mk.errors.Unanswered, match="a table is too large"):
        escalation._staged(problem, escalation.SharedTime(2.0, now()), 0, never)


def test_a_mass_that_no_model_can_have_is_not_plausible():
    from markovia.inference.flat_graphs.flat_graph import flat_graph
    from markovia.inference.flat_graphs.possibility import plausible_mass

    for seed in range(20):
        grid = mk.generators.ising_grid(3, 3, coupling="random", field="random", seed=seed)
        graph = flat_graph(grid._problem(None))
        exact = grid.log_partition()
        assert plausible_mass(graph, exact)
        assert plausible_mass(graph, -np.inf)
        for wrong in (exact + 1e3, exact - 1e3, 1e149, -1e149, np.nan):
            assert not plausible_mass(graph, wrong)
