"""One evaluation of a clique tree: evidence comes and goes, cliques are split, and nothing stale is ever read.

The reference is the outer product of the same tables.
"""

from math import log

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st
from scipy.stats import chi2

import markovia as mk
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.exact import junction_tree, tree_plan, tree_state
from markovia.inference.exact.tree_plan import CompiledTree, TreeStructure, forget_plans, plan_for
from markovia.inference.exact.tree_state import OutOfRange, TreeState
from markovia.inference.problem import Problem
from markovia.kernels.clique_trees.program_sections import BLOCK, KEPT

seeds = st.integers(0, 2**32 - 1)


class Model:
    """Tables over numbered variables, a tree of them, and the whole joint table to compare with."""

    def __init__(self, cards, scopes, tables, order=None):
        self.variables = [Variable(f"x{i}", range(c)) for i, c in enumerate(cards)]
        self.by_name = {v.name: v for v in self.variables}
        self.cards, self.scopes, self.tables = cards, scopes, tables
        plan = plan_for(TreeStructure(cards, scopes), order=order)
        self.tree = CompiledTree(plan, self.variables, tables)

    def findings(self, given):
        return read_evidence(self.by_name, given)

    def joint(self, given):
        """Return the weights of all configurations, without rescaling."""
        n = len(self.cards)
        weights = np.ones(self.cards)
        for scope, table in zip(self.scopes, self.tables, strict=True):
            order = np.argsort(scope)
            shape = [self.cards[i] if i in scope else 1 for i in range(n)]
            weights = weights * np.transpose(table, order).reshape(shape)
        for name, finding in self.findings(given).items():
            i = int(name[1:])
            weights = weights * finding.weights().reshape([-1 if k == i else 1 for k in range(n)])
        return weights

    def state(self, given=None, maximise=False):
        state = TreeState(self.tree, maximise)
        state.set_evidence(self.findings(given))
        return state

    def problem(self, given=None):
        factors = [
            Factor([self.variables[i] for i in scope], table)
            for scope, table in zip(self.scopes, self.tables, strict=True)
        ]
        return Problem(self.by_name, factors, self.findings(given))


def random_model(rng, most=9, zeros=0.15):
    n = int(rng.integers(1, most + 1))
    cards = rng.integers(1, 4, size=n).tolist()
    scopes = [[i] for i in range(n) if rng.random() < 0.4]
    scopes += [rng.permutation(n)[: rng.integers(1, min(3, n) + 1)].tolist() for _ in range(n)]
    rest = set(range(n)) - {i for s in scopes for i in s}
    scopes += [[i] for i in rest]
    tables = [rng.random([cards[i] for i in s]) + 1e-3 for s in scopes]
    tables = [t * (rng.random(t.shape) >= zeros) for t in tables]
    return Model(cards, scopes, tables)


def random_evidence(rng, model):
    given = {}
    for v in model.variables:
        kind = rng.random()
        if kind < 0.25:
            given[v.name] = int(rng.integers(len(v)))
        elif kind < 0.45:
            given[v.name] = (rng.random(len(v)) * (rng.random(len(v)) < 0.8) + 1e-9).tolist()
        elif kind < 0.5 and len(v) > 1:
            given[v.name] = mk.Not(int(rng.integers(len(v))))
    return given


def marginals(state):
    state.distribute()
    return {s: state.marginal(s) for s in range(len(state.code)) if state.code[s] < 0}


def check_state(model, state, given, cliques=None, rtol=1e-10):
    """Compare the mass, the posteriors and the clique beliefs of a state with the joint table."""
    weights = model.joint(given)
    total = weights.sum()
    log_mass = state.collect()
    if total == 0.0:
        assert log_mass == -np.inf
        return
    assert log_mass == pytest.approx(log(total), abs=rtol * 10)
    state.distribute(cliques)
    plan, slot_of = state.plan, model.tree.slot_of
    number = {slot_of[v.name]: i for i, v in enumerate(model.variables)}
    axes = range(len(model.cards))
    for c in range(plan.n_cliques) if cliques is None else cliques:
        free = [number[s] for s in state.free_slots(c).tolist()]
        expected = weights.sum(axis=tuple(a for a in axes if a not in free)) / total
        expected = np.transpose(expected, np.argsort(np.argsort(free))).reshape(state.dims(c))
        assert np.allclose(state.belief(c), expected, rtol=rtol, atol=1e-14)
        for s in plan.clique_slots(c)[plan.n_separator[c] :].tolist():
            if state.code[s] < 0:
                i = number[s]
                one = weights.sum(axis=tuple(a for a in axes if a != i)) / total
                assert np.allclose(state.marginal(s), one, rtol=rtol, atol=1e-14)


# -- incremental evidence ----------------------------------------------------------------------------------------


@sampled(seed=seeds)
@settings(max_examples=60)
def test_evidence_that_comes_changes_and_goes_leaves_no_trace(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    state = model.state()
    given = {}
    for _ in range(8):
        if rng.random() < 0.3:
            given = {n: f for n, f in given.items() if rng.random() < 0.5}
        else:
            given = {**given, **random_evidence(rng, model)}
        state.set_evidence(model.findings(given))
        log_mass = state.collect()
        fresh = model.state(given)
        assert fresh.collect() == pytest.approx(log_mass, abs=1e-12)
        if log_mass == -np.inf:
            assert model.joint(given).sum() == 0.0
            continue
        if rng.random() < 0.3:
            continue  # the downward pass is not always asked for
        if rng.random() < 0.5:
            some = sorted(rng.permutation(state.plan.n_cliques)[: rng.integers(1, 4)].tolist())
            check_state(model, state, given, some)
            continue
        found, expected = marginals(state), marginals(fresh)
        assert all(np.allclose(found[s], expected[s], rtol=1e-12, atol=1e-15) for s in expected)
        check_state(model, state, given)


@sampled(seed=seeds)
@settings(max_examples=40)
def test_maxima_follow_evidence_that_comes_and_goes(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng)
    state = model.state(maximise=True)
    for _ in range(5):
        given = random_evidence(rng, model)
        state.set_evidence(model.findings(given))
        weights = model.joint(given)
        best = state.collect()
        if weights.max() == 0.0:
            assert best == -np.inf
            continue
        assert best == pytest.approx(log(weights.max()), abs=1e-10)
        slots = state.walk_best()
        code = np.where(state.code >= 0, state.code, slots)
        chosen = weights[tuple(int(code[model.tree.slot_of[v.name]]) for v in model.variables)]
        assert chosen == pytest.approx(weights.max(), rel=1e-10)


def chain(rng, n=30, card=3):
    scopes = [[i, i + 1] for i in range(n - 1)]
    lasting = 2.0 * np.eye(card)  # evidence at one end is felt at the other
    return Model([card] * n, scopes, [rng.random((card, card)) + lasting for _ in scopes])


def poisoned(state):
    """Spoil the stored tables, so that those which are computed again can be told from the others."""
    tables = state.packed[1][state.tables_at : state.posterior_at]
    tables[:] = np.nan
    return tables


def computed_again(state, tables):
    plan = state.plan
    return {c for c in range(plan.n_cliques) if not np.isnan(tables[plan.table_at[c]])}


def path_to_root(plan, cliques):
    found = set()
    for c in cliques:
        while c >= 0:
            found.add(c)
            c = int(plan.parent[c])
    return found


@pytest.mark.parametrize("said", [1, [0.2, 0.5, 1.0], mk.Not(0)], ids=["hard", "soft", "negative"])
@pytest.mark.parametrize("name", ["x0", "x13", "x29"])
def test_only_the_path_from_the_evidence_to_the_root_is_computed_again(said, name):
    model = chain(np.random.default_rng(1))
    state = model.state()
    state.collect()
    plan, slot = state.plan, model.tree.slot_of[name]
    assert (plan.table_at >= 0).all()
    holding = [c for c in range(plan.n_cliques) if slot in plan.clique_slots(c)]
    touched = holding if isinstance(said, int) else [int(plan.home[slot])]
    for given in ({name: said}, {}):
        inside = poisoned(state)
        state.set_evidence(model.findings(given))
        assert state.collect() == pytest.approx(log(transfer(model, given)), abs=1e-11)
        assert computed_again(state, inside) == path_to_root(plan, touched)
        inside = poisoned(state)
        state.set_evidence(model.findings(given) if isinstance(said, int) else state.findings)
        state.collect()
        assert computed_again(state, inside) == set()


def transfer(model, given):
    """Return the mass of a chain by multiplying its matrices."""
    weights = [np.ones(c) for c in model.cards]
    for name, finding in model.findings(given).items():
        weights[int(name[1:])] = finding.weights()
    row = weights[0]
    for table, weight in zip(model.tables, weights[1:], strict=True):
        row = (row @ table) * weight
    return row.sum()


def test_a_message_that_does_not_change_stops_the_wave():
    tables = [np.ones((2, 2)), np.array([[0.5, 0.25], [0.125, 1.0]]), np.array([[0.5, 1.0], [1.0, 0.25]])]
    model = Model([2] * 4, [[0, 1], [1, 2], [2, 3]], tables, order=[0, 1, 2, 3])
    state = model.state()
    state.collect()
    inside = poisoned(state)
    state.set_evidence(model.findings({"x0": 1}))  # x0 tells nothing about x1
    state.collect()
    assert computed_again(state, inside) == {int(state.plan.home[model.tree.slot_of["x0"]])}


def test_a_question_about_one_variable_goes_down_to_it_and_no_further():
    model = chain(np.random.default_rng(2))
    state = model.state()
    state.collect()
    state.distribute()
    state.set_evidence(model.findings({"x29": 0, "x0": 0}))
    state.collect()
    state.marginals[:] = np.nan
    plan, slot = state.plan, model.tree.slot_of["x15"]
    home = int(plan.home[slot])
    state.distribute([home])
    written = {s for s in range(30) if not np.isnan(state.marginals[plan.marginal_at[s]])}
    assert written == set(plan.clique_slots(home)[plan.n_separator[home] :].tolist())
    whole = model.state({"x29": 0, "x0": 0})
    whole.collect()
    assert np.allclose(state.marginal(slot), marginals(whole)[slot], rtol=1e-12)


def test_impossible_evidence_is_noticed_and_forgotten():
    rng = np.random.default_rng(3)
    tables = [rng.random(3), np.eye(3), np.eye(3), rng.random((3, 3))]
    model = Model([3] * 4, [[0], [0, 1], [1, 2], [2, 3]], tables)
    state = model.state()
    for given in (
        {},
        {"x0": 0, "x2": 1},
        {"x0": 0, "x1": [0.0, 1.0, 1.0]},
        {"x0": 0},
        {"x3": [0.0, 0.5, 0.5]},
    ):
        state.set_evidence(model.findings(given))
        check_state(model, state, given)


# -- large cliques and threads -----------------------------------------------------------------------------------


@pytest.fixture
def split_everything(monkeypatch):
    """Give threads work however small the tree is; say how often a clique was split."""
    calls = {"up": 0, "down": 0}
    up, down = TreeState.collect_large, TreeState.distribute_large

    def collect_large(self, c):
        calls["up"] += 1
        return up(self, c)

    def distribute_large(self, c):
        calls["down"] += 1
        return down(self, c)

    monkeypatch.setattr(tree_plan, "PARALLEL", 1)
    monkeypatch.setattr(tree_plan, "STRETCH", 16)
    for module in (tree_plan, tree_state):
        monkeypatch.setattr(module, "SPLIT", 8)
    monkeypatch.setattr(TreeState, "collect_large", collect_large)
    monkeypatch.setattr(TreeState, "distribute_large", distribute_large)
    forget_plans()
    yield calls
    forget_plans()


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_split_cliques_and_parallel_subtrees_give_the_same_answers(split_everything, monkeypatch, threads):
    monkeypatch.setenv("MARKOVIA_THREADS", str(threads))
    rng = np.random.default_rng(4)
    for _ in range(25):
        model = random_model(rng, zeros=0.1)
        state, best = model.state(), model.state(maximise=True)
        for _ in range(3):
            given = random_evidence(rng, model)
            state.set_evidence(model.findings(given))
            check_state(model, state, given)
            best.set_evidence(model.findings(given))
            top = model.joint(given).max()
            assert best.collect() == pytest.approx(log(top) if top > 0 else -np.inf, abs=1e-10)
    assert min(split_everything.values()) > 10


def big_model(rng, size, zeros=0.0, tail=3):
    """Return a model with one clique of 2**size entries, pairwise factors, and chains of cliques that hang on it."""
    pairs = [[i, j] for i in range(size) for j in range(i) if rng.random() < 0.35 or j == i - 1]
    first = [list(range(k, k + 6)) for k in range(0, size - 5, 5)]
    ends = [[size + k, rng.integers(size).item(), size + k - 1] for k in range(1, tail)]
    scopes = [*pairs, *first, [size, 0, 1], *ends]
    whole = [[0, i] for i in range(1, size)]
    n = size + tail
    shapes = [[2] * len(s) for s in scopes]
    tables = [(rng.random(s) + 0.05) * (rng.random(s) >= zeros) for s in shapes]
    scopes += [*whole, list(range(size))]
    tables += [rng.random((2, 2)) + 0.1 for _ in whole] + [rng.random([2] * size) + 0.01]
    return Model([2] * n, scopes, tables)


@pytest.mark.parametrize(
    ("size", "threads", "split"),
    [
        pytest.param(
            size, threads, split, marks=[pytest.mark.slow] * (((size == 13) + threads + split) % 2 == 0)
        )
        for size in (13, 16)  # in blocks, not stored
        for threads in (1, 2)
        for split in (False, True)
    ],
)
def test_cliques_larger_than_a_block_are_summed_right(request, monkeypatch, size, threads, split):
    monkeypatch.setenv("MARKOVIA_THREADS", str(threads))
    if split:
        calls = request.getfixturevalue("split_everything")
    rng = np.random.default_rng(size)
    model = big_model(rng, size, zeros=0.02)
    plan = model.tree.plan
    assert plan.largest > (BLOCK if size == 13 else KEPT)
    assert (plan.table_at < 0).any() == (size == 16)
    state, best = model.state(), model.state(maximise=True)
    for given in ({}, {"x2": 1, f"x{size}": [0.2, 0.9]}, {"x2": [0.5, 0.1]}, {"x3": 0, "x5": 1, "x7": 0}):
        state.set_evidence(model.findings(given))
        check_state(model, state, given)
        best.set_evidence(model.findings(given))
        weights = model.joint(given)
        assert best.collect() == pytest.approx(log(weights.max()), abs=1e-10)
        code = np.where(best.code >= 0, best.code, best.walk_best())
        chosen = weights[tuple(int(code[model.tree.slot_of[v.name]]) for v in model.variables)]
        assert chosen == pytest.approx(weights.max(), rel=1e-10)
    if split:
        assert min(calls.values()) >= 3


def test_one_thread_and_two_agree_on_a_tree_worth_splitting(monkeypatch):
    rng = np.random.default_rng(6)
    n, card = 16, 9
    scopes = [[i, (i + 1) % n, (i + 2) % n] for i in range(n)]
    tables = [rng.random([card] * 3) + 0.01 for _ in scopes]
    given = {"x3": 2, "x8": rng.random(card).tolist()}
    answers = []
    for threads in ("1", "2"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        forget_plans()
        model = Model([card] * n, scopes, tables)
        assert model.tree.plan.total > tree_plan.PARALLEL
        state = model.state(given)
        answers.append((state.collect(), marginals(state)))
    forget_plans()
    (mass_1, one), (mass_2, two) = answers
    assert mass_1 == pytest.approx(mass_2, abs=1e-12)
    assert all(np.allclose(one[s], two[s], rtol=1e-12, atol=0.0) for s in one)


# -- the range of doubles ----------------------------------------------------------------------------------------


def test_small_numbers_that_multiply_are_scaled_on_the_way():
    tables = [np.array([[1e-200, 1e-201], [3e-200, 1e-200]]) for _ in range(40)]
    model = Model([2, 2], [[0, 1]] * 40, tables)
    state = model.state()
    logs = 40 * np.log(tables[0])
    top = logs.max()
    assert state.collect() == pytest.approx(top + log(np.exp(logs - top).sum()), rel=1e-13)


@pytest.mark.parametrize(
    "tables",
    [
        [np.array([[1e-300, 1e300], [1.0, 1.0]])],
        [np.array([[1e-200, 1.0], [1.0, 1.0]])] * 6,
        [np.array([[1.0, 1e-160], [1e-160, 1.0]])] * 3,
    ],
    ids=["one table", "one product", "both ways"],
)
def test_a_product_beyond_doubles_is_refused_and_the_engine_answers_in_logs(tables):
    model = Model([2, 2], [[0, 1]] * len(tables), tables)
    with pytest.raises(OutOfRange):
        model.state().collect()
    logs = sum(np.log(t) for t in tables)
    given = {"x0": 0, "x1": 0}
    problem = model.problem(given)
    assert mk.engines.JunctionTree().log_mass(problem) == pytest.approx(logs[0, 0], rel=1e-12)


def test_likelihoods_from_1e_minus_300_to_1e300_are_not_taken_for_zeros():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1, 0], [0, 1]])
    given = {"a": [1e300, 1e-300], "b": 1}
    assert bn.log_evidence(given=given, engine="junction-tree") == pytest.approx(
        log(0.5) + log(1e-300), rel=1e-12
    )
    assert bn.query("a", given=given, engine="junction-tree")[1] == 1.0


def test_tables_that_findings_cut_small_are_multiplied_in_logs(monkeypatch):
    """1e-200 twice against each state: the products vanish in doubles, and the two states are as probable as each other."""
    monkeypatch.setattr(junction_tree, "FEW", 0)  # a tree of what findings leave, from the first question on
    for tiny, often in ((1e-200, 2), (1e-80, 6)):
        factors = []
        for i in range(2 * often):
            seen = [tiny, 1.0] if i < often else [1.0, tiny]
            factors.append(mk.Factor(["a", f"c{i}"], np.column_stack([[0.5, 0.5], seen])))
        names = {"a": 2, **{f"c{i}": 2 for i in range(2 * often)}}
        for state, log_mass in ((0, 2 * often * log(0.5) + log(2)), (1, often * log(tiny) + log(2))):
            given = dict.fromkeys([f"c{i}" for i in range(2 * often)], state)
            found = mk.MarkovNetwork(names, factors).query("a", given=given, engine="junction-tree")
            assert found.values == pytest.approx([0.5, 0.5], rel=1e-12)
            fresh = mk.MarkovNetwork(names, factors)
            log_z = mk.MarkovNetwork(names, factors).log_partition(engine="junction-tree")
            assert fresh.log_evidence(given=given, engine="junction-tree") + log_z == pytest.approx(
                log_mass, rel=1e-12
            )


# -- walks -------------------------------------------------------------------------------------------------------


def misfit(counts, expected):
    """Return the probability that draws from the expected distribution misfit as much (Pearson's chi-square)."""
    kept = expected > 0
    assert counts[~kept].sum() == 0
    statistic = ((counts[kept] - expected[kept]) ** 2 / expected[kept]).sum()
    return chi2.sf(statistic, kept.sum() - 1) if kept.sum() > 1 else 1.0


@pytest.mark.parametrize("seed", range(6))
def test_draws_have_the_joint_distribution(seed):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6)
    given = {"x0": (rng.random(model.cards[0]) + 0.1).tolist()}
    weights = model.joint(given)
    state = model.state(given)
    if state.collect() == -np.inf:
        assert weights.sum() == 0.0
        return
    n = 40_000
    slots = state.draw(n, np.random.default_rng(7))
    codes = [slots[model.tree.slot_of[v.name]] for v in model.variables]
    counts = np.bincount(np.ravel_multi_index(codes, model.cards), minlength=weights.size)
    assert misfit(counts, n * weights.ravel() / weights.sum()) > 1e-5


def test_draws_from_a_clique_that_is_not_stored_have_its_distribution():
    rng = np.random.default_rng(8)
    model = big_model(rng, 16)
    given = {"x4": 1, "x9": [0.3, 0.7]}
    state = model.state(given)
    state.collect()
    assert (state.plan.table_at < 0).any()
    n = 40_000
    slots = state.draw(n, np.random.default_rng(9))
    weights = model.joint(given)
    for names in (["x0", "x9", "x16"], ["x15", "x17", "x18"], ["x1", "x8", "x12"]):
        axes = [int(v[1:]) for v in names]
        table = weights.sum(axis=tuple(a for a in range(weights.ndim) if a not in axes))
        codes = [slots[model.tree.slot_of[v]] for v in names]
        counts = np.bincount(np.ravel_multi_index(codes, table.shape), minlength=table.size)
        assert misfit(counts, n * table.ravel() / table.sum()) > 1e-5


@sampled(seed=seeds, m=st.integers(1, 40))
@settings(max_examples=60)
def test_the_m_best_are_the_largest_entries_in_order(seed, m):
    rng = np.random.default_rng(seed)
    model = random_model(rng, 6)
    given = {"x0": 0} if rng.random() < 0.5 else {}
    problem = model.problem(given)
    found = mk.engines.JunctionTree().best(problem, problem.free, m)
    weights = model.joint(given)
    ranked = np.sort(weights[weights > 0])[::-1][:m]
    assert len(found) == len(ranked)
    assert np.allclose([a.log_weight for a in found], np.log(ranked), rtol=0.0, atol=1e-10)
    assert len({tuple(a.codes.items()) for a in found}) == len(found)
    for a in found:
        at = tuple(given.get(v.name, a.codes.get(v.name)) for v in model.variables)
        assert log(weights[at]) == pytest.approx(a.log_weight, abs=1e-10)


def test_a_tree_without_variables_has_mass_one():
    model = Model([], [], [])
    assert model.state().collect() == 0.0


@pytest.mark.parametrize("engine", ["junction-tree", "auto"])
def test_an_answer_that_needed_logarithms_says_who_gave_it(engine):
    mk.engines.load_kernels()
    a, b = mk.Variable("a", 2), mk.Variable("b", 2)
    wide = np.array([[1e300, 1e-300], [1e-300, 1e-300]])
    model = mk.MarkovNetwork([a, b], [mk.Factor.of((a, b), wide)])
    for info in (model.query("a", engine=engine).info, model.map(engine=engine).info):
        assert info.engine == "variable-elimination"
        assert info.details.arithmetic == "logarithms"
