"""What is special about variable elimination: pruning, orders, the estimate before tables are made, its range."""

import pickle
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.factors.tables.conditional import ConditionalTable
from markovia.graphs.triangulation.elimination import eliminate, follow, greedy_order
from markovia.inference.exact import arithmetic
from markovia.inference.exact.bucket_tree import BucketPlan, Net
from markovia.inference.problem import Problem
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

VE = mk.engines.VariableElimination
seeds = st.integers(0, 2**32 - 1)


def random_graph(rng, n):
    adjacency = [set() for _ in range(n)]
    for i in range(n):
        for j in range(i):
            if rng.random() < 0.3:
                adjacency[i].add(j)
                adjacency[j].add(i)
    return adjacency


# -- pruning -------------------------------------------------------------------------------------------------------


@sampled(model=bayesian_networks(), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_the_relevant_pieces_are_those_of_the_ancestors(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng)
    problem = model._problem(given)
    targets = [str(rng.choice(model.variables))]
    expected = model.graph.ancestors([*targets, *given]) | {*targets, *given}
    assert [p.variable.name for p in problem.relevant(targets)] == [
        n for n in model.variables if n in expected
    ]


def test_conditionals_that_do_not_sum_to_one_together_are_kept():
    a, b, c = (mk.Variable(n, 2) for n in "abc")
    to_b = ConditionalTable(b, [a], [[0.9, 0.1], [0.3, 0.7]])
    to_a = ConditionalTable(a, [b], [[0.6, 0.4], [0.2, 0.8]])
    again = ConditionalTable(b, [], [0.5, 0.5])
    leaf = ConditionalTable(c, [a], [[0.5, 0.5], [0.1, 0.9]])
    variables = {v.name: v for v in (a, b, c)}
    assert Problem(variables, [to_b, to_a, leaf], {}).relevant([]) == [to_b, to_a]
    assert Problem(variables, [to_b, again, leaf], {}).relevant([]) == [to_b, again]
    cyclic = Problem(variables, [to_b, to_a], {})
    assert VE().log_mass(cyclic) == pytest.approx(np.log(2 * (to_b.values * to_a.values.T).sum()))


def test_what_evidence_separates_is_never_multiplied_together():
    rng = np.random.default_rng(0)
    names = {f"{side}{i}": 2 for side in "lr" for i in range(10)} | {"gate": 2}
    factors = [mk.Factor(["l0", "gate"], rng.random((2, 2))), mk.Factor(["gate", "r0"], rng.random((2, 2)))]
    for side in "lr":
        factors += [
            mk.Factor([f"{side}{i}", f"{side}{j}"], rng.random((2, 2))) for i in range(10) for j in range(i)
        ]
    model = mk.MarkovNetwork(names, factors)
    given = {"gate": 1}
    answer = model.query([f"l{i}" for i in range(5)], given=given)
    assert answer.info.details.largest_table == 2**10
    alone = {n: 2 for n in names if n.startswith("l")} | {"gate": 2}
    left = mk.MarkovNetwork(alone, [f for f in factors if not any(n.startswith("r") for n in f.names)])
    assert answer.allclose(left.query(list(answer.names), given=given), atol=1e-12)
    assert answer.info.log_evidence == pytest.approx(model.log_evidence(given))
    assert model.log_partition(given) == pytest.approx(np.log(brute_force(model, given).sum()), rel=1e-12)


# -- orders --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("heuristic", ["min-degree", "min-fill", "min-weight", "weighted-min-fill"])
@sampled(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_a_greedy_elimination_meets_the_neighbours_that_following_its_order_meets(heuristic, seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 14))
    graph = random_graph(rng, n)
    stages = rng.integers(0, 2, n).tolist()
    steps = eliminate(graph, heuristic, rng.integers(2, 5, n).tolist(), stages)
    assert steps == follow(graph, [v for v, _ in steps])
    assert sorted(v for v, _ in steps) == list(range(n))
    assert [stages[v] for v, _ in steps] == sorted(stages)


def test_stages_hold_only_while_tables_stay_below_the_cap():
    star = [{1, 2, 3, 4}, {0}, {0}, {0}, {0}]
    stages = [0, 1, 1, 1, 1]
    assert greedy_order(star, stages=stages)[0] == 0
    capped = [v for v, _ in eliminate(star, stages=stages, cap=8)]
    assert capped[:2] == [1, 2]
    assert capped[2] == 0, "a table of eight entries is allowed, so the early stage goes on"


def chordal_model(rng, n=9):
    """A random tree of cliques."""
    bn = mk.BayesianNetwork()
    cliques = [[]]
    for i in range(n):
        parents = list(rng.permutation(cliques[rng.integers(len(cliques))])[: rng.integers(0, 3)])
        parents = [str(p) for p in parents]
        table = rng.random([2] * len(parents) + [2])
        bn.add(f"v{i}", parents=parents, p=table / table.sum(axis=-1, keepdims=True))
        cliques.append([*parents, f"v{i}"])
    return bn


@sampled(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_the_perfect_order_of_a_chordal_graph_adds_no_edge(seed):
    rng = np.random.default_rng(seed)
    model = chordal_model(rng)
    given = {"v0": 1}
    target = str(rng.choice(model.variables[1:]))
    engine = VE(order="perfect")
    assert model.query(target, given=given, engine=engine).allclose(
        model.query(target, given=given, engine="enumeration"), atol=1e-12
    )
    net = Net(model._problem(given).parts(model.variables[1:]))
    plan = engine._plan(net)
    for v, scope in zip(plan.order, plan.scopes, strict=True):
        assert set(scope) <= net.adjacency[v]
    pair = [str(t) for t in rng.permutation(model.variables[1:])[:2]]
    assert model.query(pair, given=given, engine=engine).allclose(
        model.query(pair, given=given, engine="enumeration"), atol=1e-12
    )
    best = model.map(given=given, targets=pair, engine=engine)
    assert best.log_prob == pytest.approx(model.map(given=given, targets=pair, engine="enumeration").log_prob)


def test_a_perfect_order_is_refused_where_the_graph_that_is_left_is_not_chordal():
    square = mk.MarkovNetwork(
        dict.fromkeys("abcd", 2), [mk.Factor([x, y], [[2, 1], [1, 2]]) for x, y in ("ab", "bc", "cd", "da")]
    )
    engine = VE(order="perfect")
    with pytest.raises(
        mk.errors.InvalidGraph, match=r"the cycle a - b - c - d - a has no chord; use .*min-fill"
    ):
        square.query("a", engine=engine)
    cut = engine.joint(square._problem({"c": 0}), ["a"])
    expected = square.query("a", given={"c": 0}, engine="enumeration")
    np.testing.assert_allclose(cut.tables[0].values, expected.values, atol=1e-12)
    with pytest.raises(mk.errors.InvalidArgument, match="perfect"):
        VE(order="perfekt")


# -- the estimate --------------------------------------------------------------------------------------------------


def test_too_large_gives_bytes_operations_the_budget_and_an_engine_that_would_do():
    grid = mk.generators.ising_grid(9, 9, coupling=0.3)
    with pytest.raises(mk.errors.TooLarge) as caught:
        grid.log_partition(engine=VE(max_bytes=4096))
    error = caught.value
    net = Net(grid._problem(None).parts(()))
    plan = VE()._plan(net)
    assert error.bytes == 8 * plan.need()
    assert error.operations == plan.operations(net.scopes) > sum(plan.sizes)
    message = str(error)
    for said in ("entries", "KiB)", "operations", "width 11", "the budget is 4 KiB", "engine='conditioning'"):
        assert said in message, said
    again = pickle.loads(pickle.dumps(error))
    assert (again.bytes, again.operations, str(again)) == (error.bytes, error.operations, message)


def test_too_large_says_when_no_exact_engine_will_do():
    grid = mk.generators.ising_grid(40, 40, coupling=0.3)
    with pytest.raises(mk.errors.TooLarge, match="No exact engine will do: add evidence") as caught:
        grid.query("x0_0", engine=VE(max_bytes=2**30))
    assert caught.value.bytes > 2**50
    chain = mk.BayesianNetwork("->".join(f"x{i}" for i in range(80)), tables="random", seed=0)
    with pytest.raises(
        mk.errors.TooLarge, match=r"Already the answer has .* ask for fewer variables at once"
    ):
        chain.query(chain.variables[:70])


def test_other_refusals_carry_no_estimate():
    error = mk.errors.TooLarge("too many")
    assert (str(error), error.bytes, error.operations) == ("too many", None, None)


@pytest.mark.slow
@pytest.mark.parametrize("logarithms", [False, True])
@pytest.mark.parametrize(
    "question", ["marginals", "one marginal", "log mass", "joint", "best", "marginal map", "sample"]
)
def test_no_more_memory_is_taken_than_was_estimated(monkeypatch, question, logarithms):
    if logarithms:
        monkeypatch.setattr(arithmetic, "Plain", arithmetic.Logarithmic)
    grid = mk.generators.ising_grid(12, 12, coupling=0.3)
    names, problem, engine = grid.variables, grid._problem(None), VE()
    some = names[66:74]
    net = Net(problem.parts(names))
    everything = set(range(len(names)))
    few = [net.ids[t] for t in some]
    ask, plan, stored = {
        "marginals": (lambda: engine.marginals(problem, names), engine._plan(net), everything),
        "one marginal": (lambda: engine.marginals(problem, some[:1]), engine._plan(net), None),
        "log mass": (lambda: engine.log_mass(problem), engine._plan(net), ()),
        "joint": (lambda: engine.joint(problem, some), engine._plan(net, last=few, keep=few), ()),
        "best": (lambda: engine.best(problem, names, 2), engine._plan(net, last=range(144)), everything),
        "marginal map": (lambda: engine.best(problem, some, 2), engine._plan(net, last=few), set(few)),
        "sample": (
            lambda: engine.sample(problem, 1, np.random.default_rng(0)),
            engine._plan(net),
            everything,
        ),
    }[question]
    estimate = 8 * plan.need(plan.above(few[:1]) if stored is None else stored)
    assert estimate > 10**6
    ask()
    tracemalloc.start()
    ask()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= estimate + 400_000  # what is not a table: the graph, lists, buffers
    assert peak >= 0.4 * estimate, "the estimate refuses what would fit"


def test_a_few_marginals_keep_only_the_tables_on_the_way_to_them():
    chain = mk.BayesianNetwork("->".join(f"x{i}" for i in range(30)), tables="random", seed=0)
    net = Net(chain._problem({"x29": 1}).parts(chain.variables[:29]))
    plan = VE(order=chain.variables)._plan(net)
    assert {net.variables[i].name for i in plan.above([net.ids["x26"]])} == {"x26", "x27", "x28"}
    engine = VE(order=chain.variables)
    asked = chain.marginals(given={"x29": 1}, targets=["x3", "x17"], engine=engine)
    assert list(asked) == ["x3", "x17"]
    whole = chain.marginals(given={"x29": 1})
    assert all(asked[n].allclose(whole[n], atol=1e-12) for n in asked)


def test_constrained_elimination_counts_only_what_is_maximised():
    grid = mk.generators.ising_grid(10, 10, coupling=0.3)
    targets = grid.variables[:3]
    problem = grid._problem(None)
    net = Net(problem.parts(targets))
    few = [net.ids[t] for t in targets]
    plan = VE()._plan(net, last=few)
    need = int(8 * plan.need(set(few)))
    assert need < 8 * sum(plan.sizes)
    engine = VE(max_bytes=need, marginal_map="constrained")
    (best,) = engine.best(problem, targets, 1)
    table = grid.query(targets)
    assert table.values[tuple(best.codes[t] for t in targets)] == pytest.approx(table.values.max(), rel=1e-12)
    with pytest.raises(mk.errors.TooLarge, match="the budget is"):
        VE(max_bytes=need - 1, marginal_map="constrained").best(problem, targets, 1)


def test_the_operations_of_a_plan_count_products_and_sums():
    plan = BucketPlan.of([(0, {1}), (1, set())], [2, 3])
    assert plan.sizes == [6.0, 3.0]
    assert plan.operations([(0, 1), (0,), (1,)]) == 2 * 6 + 2 * 3
    assert plan.need() == 12.0
    assert plan.need({0, 1}) == 6 + 3 + 12


# -- range and threads ---------------------------------------------------------------------------------------------


def wide_range_model(seed):
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(6)]
    scopes = [names[i : i + 2] for i in range(5)] + [["v0", "v5"]]
    return mk.MarkovNetwork(
        dict.fromkeys(names, 3),
        [mk.Factor.from_log(s, rng.uniform(-250, 250, (3, 3)) * np.log(10)) for s in scopes],
    )


def test_answers_do_not_depend_on_what_numpy_was_told_about_floating_point_errors():
    model = wide_range_model(3)
    expected = {n: p.values for n, p in model.marginals().items()}
    log_z, best = model.log_partition(), model.map()
    with np.errstate(all="raise"):
        for name, posterior in model.marginals().items():
            np.testing.assert_array_equal(posterior.values, expected[name])
        assert model.log_partition() == log_z
        assert model.map().to_dict() == best.to_dict()
        assert model.map(targets=["v0", "v3"], engine=VE(marginal_map="branch-and-bound")).to_dict()


def test_threads_that_need_logarithms_do_not_disturb_those_that_do_not():
    wide, plain = wide_range_model(5), mk.examples.asia()
    expected = {n: p.values for n, p in wide.marginals().items()}
    likely = plain.query("lung", given={"dysp": "yes"}).values

    def ask(k):
        if k % 2:
            return all(np.allclose(p.values, expected[n], rtol=1e-12) for n, p in wide.marginals().items())
        return np.allclose(plain.query("lung", given={"dysp": "yes"}).values, likely, rtol=1e-12)

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(200)))


@sampled(model=st.one_of(bayesian_networks(), markov_networks()), seed=seeds)
@settings(max_examples=60, deadline=None)
def test_logarithms_give_the_answers_of_plain_numbers(model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.3)
    if brute_force(model, given).sum() == 0:
        return
    plain = model.marginals(given=given)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arithmetic, "Plain", arithmetic.Logarithmic)
        for name, posterior in model.marginals(given=given).items():
            np.testing.assert_allclose(posterior.values, plain[name].values, atol=1e-12)
        targets = model.variables[:2]
        logs = model.map(given=given, targets=targets, engine=VE(marginal_map="branch-and-bound"))
    assert logs.log_prob == pytest.approx(model.map(given=given, targets=targets).log_prob, abs=1e-10)


def long_chain(n):
    names = [f"x{i}" for i in range(n)]
    table = [[2e-300, 1e-300], [1e-300, 2e-300]]
    pairs = [mk.Factor([a, b], table) for a, b in pairwise(names)]
    return mk.MarkovNetwork(dict.fromkeys(names, 2), pairs)


def test_many_scales_add_up_without_losing_digits():
    n = 20_000
    expected = np.log(2) + (n - 1) * (np.log(3) + np.log(1e-300))
    assert long_chain(n).log_partition() == pytest.approx(expected, rel=0, abs=1e-7)


@pytest.mark.slow
def test_the_next_best_explanations_of_a_long_chain_take_little_memory():
    chain = long_chain(3000)
    tracemalloc.start()
    found = chain.map(m=3)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [len({e[n] for n in chain.variables}) for e in found[:2]] == [1, 1]
    assert found[2].log_prob - found[0].log_prob == pytest.approx(-np.log(2), abs=1e-7)
    assert peak < 30_000_000, "a copy of the choices for every deviation would take 36 MB a result"


@pytest.mark.parametrize("axes", [(), (0,), (6,), (1, 2, 6), (2, 4), (0, 1, 5, 6), (0, 1, 2, 3, 4, 5, 6)])
def test_large_tables_are_summed_as_small_ones_are(axes):
    table = np.random.default_rng(0).random((3, 4, 5, 6, 4, 3, 4))
    assert table.size > arithmetic.LARGE
    for one in (table, table.transpose(), np.broadcast_to(table[:, :1], table.shape)):
        found = arithmetic.Plain().sum_onto(one, axes)
        assert np.allclose(found, one.sum(axis=axes), rtol=1e-13)
        assert found.shape == one.sum(axis=axes).shape
