"""Searches for the most probable configuration: scores, climbs, annealing, tabu and guided search, against brute force."""

import warnings

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.flat_graphs.flat_graph import flat_graph
from markovia.inference.local_search.block_icm import colours, region
from markovia.inference.local_search.search_space import search_space
from markovia.kernels.maximising import local_search
from markovia.kernels.maximising.local_search import best_moves, fill_scores
from markovia.kernels.maximising.search_records import SearchState
from markovia.runtime.seeds import kernel_seed
from model_strategies import log_weights, random_case, random_findings

SEARCHES = {
    "icm": mk.engines.IteratedConditionalModes(restarts=4, seed=1),
    "icm random": mk.engines.IteratedConditionalModes("random", restarts=4, seed=1),
    "icm greedy": mk.engines.IteratedConditionalModes("greedy", restarts=4, seed=1),
    "block-icm": mk.engines.BlockICM(seed=1),
    "block-icm colours": mk.engines.BlockICM("colours", seed=1),
    "simulated-annealing": mk.engines.SimulatedAnnealing(sweeps=60, restarts=1, seed=1),
    "tabu": mk.engines.TabuSearch(max_moves=500, patience=100, seed=1),
    "guided-local-search": mk.engines.GuidedLocalSearch(max_climbs=300, seed=1),
    "large-neighbourhood": mk.engines.LargeNeighbourhood(rounds=2, seed=1),
    "map-search": mk.engines.MapSearch(rounds=2, try_exact=False, seed=1),
}
STRONG = ["tabu", "guided-local-search", "large-neighbourhood", "map-search"]


def problem_of(model, given=None):
    return model._problem(given, "enumeration")


def answer(engine, model, given=None):
    problem = problem_of(model, given)
    return engine.best(problem, problem.free, 1)


def weight_of(case, given, codes):
    logs = log_weights(case, given)
    fixed = {n: s for n, s in given.items() if isinstance(s, int)}
    return logs[tuple(fixed.get(n, codes.get(n)) for n in case.cards)]


def grid(rows, columns, rng, strength=1.0, states=2):
    names = {f"x{r}_{c}": states for r in range(rows) for c in range(columns)}
    factors = [mk.Factor([n], np.exp(rng.normal(size=states) * strength)) for n in names]
    for r in range(rows):
        for c in range(columns):
            for a, b in ((r + 1, c), (r, c + 1)):
                if a < rows and b < columns:
                    table = np.exp(rng.normal(size=(states, states)) * strength)
                    factors.append(mk.Factor([f"x{r}_{c}", f"x{a}_{b}"], table))
    return mk.MarkovNetwork(names, factors)


# -- the table of scores -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_scores_kept_up_to_date_equal_scores_computed_from_nothing(seed):
    rng = np.random.default_rng(seed)
    case = random_case(seed)
    space = search_space(problem_of(case.model))
    codes = space.at_random(rng)
    score, fresh = np.empty(len(space.unary)), np.empty(len(space.unary))
    until, best, state = np.zeros(len(score), dtype=np.int64), codes.copy(), np.full(2, space.score(codes))
    fill_scores(space.arrays, codes, score)
    for step in range(60):
        search = SearchState(codes, score, kernel_seed(rng), best, state)
        best_moves(space.arrays, 1, 9, 9, step, until, search)
        fill_scores(space.arrays, codes, fresh)
        assert state[0] == pytest.approx(space.score(codes), abs=1e-6)
        np.testing.assert_allclose(score, fresh, rtol=1e-12, atol=1e-6)


@pytest.mark.parametrize("seed", range(8))
def test_a_difference_of_scores_is_the_gain_of_a_change(seed):
    rng = np.random.default_rng(seed)
    space = search_space(problem_of(random_case(seed).model))
    codes, score = space.at_random(rng), np.empty(len(space.unary))
    fill_scores(space.arrays, codes, score)
    before = space.score(codes)
    for v, card in enumerate(space.graph.cards):
        for s in range(card):
            changed = codes.copy()
            changed[v] = s
            row = score[space.graph.starts[v] :]
            assert row[s] - row[codes[v]] == pytest.approx(space.score(changed) - before, abs=1e-6)


@sampled(seed=st.integers(0, 10_000))
@settings(max_examples=40, deadline=None)
def test_fewer_zeros_always_score_higher(seed):
    rng = np.random.default_rng(seed)
    graph = flat_graph(problem_of(random_case(seed).model))
    space = search_space(problem_of(random_case(seed).model))
    if not len(graph.variables):
        return
    found = []
    for _ in range(20):
        codes = space.at_random(rng)
        where = (
            np.add.reduceat(codes[graph.scope] * graph.strides, graph.scope_ptr[:-1])
            if graph.n_factors
            else []
        )
        zeros = int(np.sum(graph.unary[graph.starts[:-1] + codes] == 0))
        if graph.n_factors:
            zeros += int(np.sum(graph.values[graph.table_ptr[:-1] + where] == 0))
        found.append((-zeros, space.score(codes), graph.log_weight(codes)))
    for zeros, score, log_weight in found:
        assert (zeros == 0) == (log_weight > -np.inf)
        assert all(score > s for z, s, _ in found if z < zeros)
        if zeros == 0:
            assert score + graph.log_scale == pytest.approx(log_weight, abs=1e-9)


# -- every engine ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(SEARCHES))
@pytest.mark.parametrize("seed", range(15))
def test_the_weight_given_is_that_of_the_configuration_and_never_above_the_best(name, seed):
    case = random_case(seed)
    given = random_findings(case, np.random.default_rng(seed))
    top = float(log_weights(case, given).max())
    found = answer(SEARCHES[name], case.model, given)
    if np.isneginf(top):
        assert not found or found[0].log_weight == -np.inf
        return
    assert found[0].log_weight == pytest.approx(weight_of(case, given, found[0].codes), abs=1e-8)
    assert found[0].log_weight <= top + 1e-8
    assert found.record.converged == (found[0].log_weight > -np.inf)
    if found.record.exact:
        assert found[0].log_weight == pytest.approx(top, abs=1e-8)
    values = [w for _, w in found.record.details.trace] if found.record.details else []
    assert values == sorted(values)
    if values:
        assert values[-1] == pytest.approx(found[0].log_weight, abs=1e-8)


@pytest.mark.parametrize("name", STRONG)
def test_strong_searches_find_the_best_of_small_models(name):
    hits, possible = 0, 0
    for seed in range(100, 130):
        case = random_case(seed)
        given = random_findings(case, np.random.default_rng(seed), rate=0.2)
        top = float(log_weights(case, given).max())
        if np.isneginf(top):
            continue
        possible += 1
        hits += answer(SEARCHES[name], case.model, given)[0].log_weight >= top - 1e-8
    assert possible >= 20
    assert hits >= possible - 1


@pytest.mark.parametrize("name", list(SEARCHES))
def test_the_same_seed_gives_the_same_answer(name, monkeypatch):
    model = grid(6, 6, np.random.default_rng(3), states=3)
    first = answer(SEARCHES[name], model)
    monkeypatch.setenv("MARKOVIA_THREADS", "1")
    again = answer(SEARCHES[name], model)
    assert first[0] == again[0]
    assert first.record.iterations == again.record.iterations


@pytest.mark.parametrize("name", list(SEARCHES))
def test_odd_models_are_searched_too(name):
    engine = SEARCHES[name]
    assert answer(engine, mk.MarkovNetwork({"a": 3}, []))[0].log_weight == pytest.approx(0.0)
    assert answer(engine, mk.MarkovNetwork({"a": 1, "b": 1}, []))[0].codes == {"a": 0, "b": 0}
    alone = mk.MarkovNetwork({"a": 3, "b": 1}, [mk.Factor(["a"], [1, 5, 2])])
    assert answer(engine, alone)[0].codes == {"a": 1, "b": 0}
    assert answer(engine, alone, {"a": 2, "b": 0})[0].log_weight == pytest.approx(np.log(2))
    apart = mk.MarkovNetwork(
        dict.fromkeys("abcd", 2),
        [mk.Factor(["a", "b"], [[1, 2], [7, 3]]), mk.Factor(["c", "d"], [[1, 2], [3, 9]])],
    )
    assert answer(engine, apart)[0].codes == {"a": 1, "b": 0, "c": 1, "d": 1}
    nothing = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [0, 0])])
    assert answer(engine, nothing) == []


def pigeons(n):
    """Colours that all differ along a ring: hard constraints and little else."""
    rng = np.random.default_rng(n)
    names = {f"v{i}": 3 for i in range(n)}
    differ = 1.0 - np.eye(3)
    factors = [mk.Factor([f"v{i}", f"v{(i + 1) % n}"], differ) for i in range(n)]
    factors += [mk.Factor([v], rng.random(3) + 0.1) for v in names]
    return mk.MarkovNetwork(names, factors)


@pytest.mark.parametrize("name", [*STRONG, "simulated-annealing", "block-icm"])
def test_hard_constraints_are_met(name):
    model = pigeons(15)
    best = model.map(engine="junction-tree").log_weight
    found = answer(SEARCHES[name], model)[0]
    assert -np.inf < found.log_weight <= best + 1e-9
    if name in STRONG and name != "guided-local-search":
        assert found.log_weight == pytest.approx(best)


@pytest.mark.parametrize(("schedule", "rise"), [("geometric", np.geomspace), ("linear", np.linspace)])
def test_annealing_cools_from_the_first_inverse_temperature_to_the_last(schedule, rise, monkeypatch):
    seen, real = [], local_search.sweep

    def sweep(graph, order, beta, *rest):
        seen.append(beta)
        assert sorted(order.tolist()) == list(range(12))
        return real(graph, order, beta, *rest)

    monkeypatch.setattr(local_search, "sweep", sweep)
    engine = mk.engines.SimulatedAnnealing(
        sweeps=40, restarts=0, schedule=schedule, beta_first=0.2, beta_last=9.0, seed=1
    )
    answer(engine, grid(3, 4, np.random.default_rng(0)))
    np.testing.assert_allclose(seen[:40], rise(0.2, 9.0, 40))
    assert set(seen[40:]) == {np.inf}  # at the end only what gains is taken


@pytest.mark.parametrize("beta", [0.3, 1.0, 2.5])
def test_a_sweep_draws_states_by_their_weight_to_the_power_of_the_inverse_temperature(beta):
    """P(states) is proportional to weight ** beta: two variables of three states, by the shares of many sweeps."""
    rng = np.random.default_rng(2)
    logs = rng.normal(size=(3, 3))
    model = mk.MarkovNetwork({"a": 3, "b": 3}, [mk.Factor(["a", "b"], np.exp(logs))])
    space = search_space(problem_of(model))
    codes, score, state = space.at_random(rng), np.empty(len(space.unary)), kernel_seed(rng)
    fill_scores(space.arrays, codes, score)
    counts, order, draws = np.zeros((3, 3)), np.arange(2), 20_000
    for _ in range(draws):
        local_search.sweep(space.arrays, order, beta, state, codes, score)
        counts[codes[0], codes[1]] += 1
    wanted = np.exp(beta * logs) / np.exp(beta * logs).sum()
    np.testing.assert_allclose(counts / draws, wanted, atol=0.03)


@pytest.mark.parametrize("name", list(SEARCHES))
def test_marginal_map_and_lists_are_refused(name):
    problem = problem_of(mk.examples.asia())
    with pytest.raises(mk.errors.Unanswered, match="marginal-map"):
        SEARCHES[name].best(problem, ["lung"], 1)
    with pytest.raises(mk.errors.Unanswered, match="junction-tree"):
        SEARCHES[name].best(problem, problem.free, 3)


@pytest.mark.parametrize("name", list(SEARCHES))
def test_a_time_limit_is_kept(name):
    model = grid(30, 30, np.random.default_rng(0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
        best = model.map(engine=SEARCHES[name], time_limit=0.3)
    assert best.info.seconds < 5.0
    assert best.info.engine == SEARCHES[name].name
    assert not best.info.exact
    assert best.gap == np.inf


# -- iterated conditional modes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("selection", ["cyclic", "random", "greedy"])
@pytest.mark.parametrize("seed", range(6))
def test_conditional_modes_end_where_no_single_change_helps(selection, seed):
    model = grid(5, 5, np.random.default_rng(seed), states=3)
    engine = mk.engines.IteratedConditionalModes(selection, restarts=0, seed=seed)
    found = answer(engine, model)[0]
    graph = flat_graph(problem_of(model))
    codes = np.array([found.codes[n] for n in graph.names])
    for v in range(len(codes)):
        for s in range(3):
            changed = codes.copy()
            changed[v] = s
            assert graph.log_weight(changed) <= found.log_weight + 1e-8


def test_more_restarts_never_give_less():
    model = grid(8, 8, np.random.default_rng(1))
    few = answer(mk.engines.IteratedConditionalModes(restarts=1, seed=5), model)[0].log_weight
    many = answer(mk.engines.IteratedConditionalModes(restarts=30, seed=5), model)[0].log_weight
    assert many >= few


def test_a_climb_from_a_given_start_agrees_with_the_one_that_is_traced():
    model = grid(4, 4, np.random.default_rng(2))
    start = dict.fromkeys(model.variables, 1)
    traced = model.conditional_modes(start, selection="cyclic")
    found = model.map(engine=mk.engines.IteratedConditionalModes(restarts=0, start=start))
    assert found.to_dict() == traced.states
    assert found.log_weight == pytest.approx(traced.log_weight)


# -- blocks (inventory 004 D6-D11) ----------------------------------------------------------------------------------


def test_a_grid_has_two_colours_and_a_random_forest_holds_about_two_thirds_of_it():
    model = grid(20, 20, np.random.default_rng(0))
    space = search_space(problem_of(model))
    classes = colours(space)
    assert [len(c) for c in classes] == [200, 200]
    rng = np.random.default_rng(0)
    shares = []
    for _ in range(10):
        inside = region(space, np.ones(400, dtype=np.uint8), 2.0, rng, forest=True)
        shares.append(len(inside) / 400)
        chosen = set(inside.tolist())
        links = sum(
            [1 for f in range(space.graph.n_factors) if chosen.issuperset(space.graph.members(f).tolist())]
        )
        assert links < len(chosen)
    assert 0.5 < np.mean(shares) < 0.75


def test_forests_get_further_than_single_changes_from_the_same_starts():
    single, colour, forest = [], [], []
    for seed in range(10):
        model = grid(10, 10, np.random.default_rng(seed))
        start = dict.fromkeys(model.variables, 0)
        single.append(
            answer(mk.engines.IteratedConditionalModes(restarts=0, start=start), model)[0].log_weight
        )
        blocks = mk.engines.BlockICM("colours", restarts=0, start=start)
        colour.append(answer(blocks, model)[0].log_weight)
        forest.append(answer(mk.engines.BlockICM(restarts=0, start=start, seed=seed), model)[0].log_weight)
    assert all(f >= s - 1e-9 for f, s in zip(forest, single, strict=True))
    assert np.mean(forest) > np.mean(single) + 0.5


def test_blocks_polish_the_local_maximum_of_single_changes():
    for seed in range(5):
        model = grid(8, 8, np.random.default_rng(seed))
        first = model.map(engine=mk.engines.IteratedConditionalModes(restarts=0))
        rows = [[f"x{r}_{c}" for c in range(8)] for r in range(8)]
        for blocks in ("forests", "colours", rows):
            engine = mk.engines.BlockICM(blocks, restarts=0, start=first.to_dict(), seed=0)
            assert model.map(engine=engine).log_weight >= first.log_weight - 1e-9


def test_one_block_of_everything_is_exact():
    model = grid(4, 5, np.random.default_rng(0), states=3)
    engine = mk.engines.BlockICM([model.variables], restarts=0)
    assert model.map(engine=engine).log_weight == pytest.approx(model.map(engine="junction-tree").log_weight)


def test_blocks_that_are_too_wide_or_unknown_are_refused():
    model = grid(30, 30, np.random.default_rng(0))
    with pytest.raises(mk.errors.TooLarge, match="a block of 900 variables"):
        model.map(engine=mk.engines.BlockICM([model.variables]))
    with pytest.raises(mk.errors.UnknownVariable, match="'q'"):
        model.map(engine=mk.engines.BlockICM([["q"]]))


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (lambda: mk.engines.IteratedConditionalModes("best"), "selection="),
        (lambda: mk.engines.IteratedConditionalModes(restarts=-1), "restarts="),
        (lambda: mk.engines.BlockICM("rows"), "blocks="),
        (lambda: mk.engines.BlockICM(["a", "b"]), "blocks="),
        (lambda: mk.engines.SimulatedAnnealing(schedule="log"), "schedule="),
        (lambda: mk.engines.SimulatedAnnealing(beta_first=3.0, beta_last=1.0), "beta_first"),
        (lambda: mk.engines.SimulatedAnnealing(sweeps=0), "sweeps="),
        (lambda: mk.engines.TabuSearch(tenure=0), "tenure="),
        (lambda: mk.engines.TabuSearch(time_limit=-1), "time_limit="),
        (lambda: mk.engines.GuidedLocalSearch(strength=0), "strength="),
        (lambda: mk.engines.GuidedLocalSearch(seed="x"), "seed"),
        (lambda: mk.engines.LargeNeighbourhood(table_limit=1), "table_limit="),
        (lambda: mk.engines.LargeNeighbourhood(chains=0), "chains="),
        (lambda: mk.engines.MapSearch(try_exact="yes"), "try_exact="),
    ],
)
def test_bad_settings_are_refused(make, what):
    with pytest.raises(mk.errors.InvalidArgument, match=what):
        make()


def test_a_start_without_a_variable_is_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="no state for 'lung'"):
        answer(mk.engines.TabuSearch(start={"asia": "yes", "tub": "yes", "smoke": "no"}), mk.examples.asia())


def test_a_slow_schedule_beats_a_fast_one_on_average():
    slow, fast = [], []
    for seed in range(6):
        model = grid(12, 12, np.random.default_rng(seed), strength=1.5)
        for sweeps, found in ((3, fast), (300, slow)):
            engine = mk.engines.SimulatedAnnealing(sweeps=sweeps, restarts=0, seed=seed)
            found.append(answer(engine, model)[0].log_weight)
    assert np.mean(slow) > np.mean(fast) + 1.0
