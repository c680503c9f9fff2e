"""One model asked again and again by every exact engine: changing evidence, edits, copies, threads, interruptions.

Whatever an engine keeps from one query to the next must not show in the answers.
"""

import copy
import pickle
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from math import log

import numpy as np
import pytest

import markovia as mk
from exact_checks import (
    check_marginals,
    check_one_question,
    check_posterior,
    every_exact_engine,
    not_by_listing,
    some_of,
)
from markovia.inference.engine import get_engine
from markovia.inference.exact import cut_tables, junction_tree
from model_strategies import (
    KINDS,
    Case,
    brute_force,
    log_sum,
    log_weights,
    random_case,
    random_finding,
    random_findings,
)
from places import PROJECT

# -- one model, many queries ---------------------------------------------------------------------------------------


def random_step(case, given, rng):
    """Change what is known a little: add, change or retract a finding, forget everything, or say it all anew."""
    what = rng.integers(8)
    if what == 0:
        return {}
    if what == 1:
        return random_findings(case, rng, rate=0.5)
    name = str(rng.choice(list(case.cards)))
    rest = {n: said for n, said in given.items() if n != name}
    return rest if what <= 3 else {**rest, name: random_finding(case.cards[name], rng)}


def check_sequence(seed, engine, steps):
    case = random_case([seed, 11])
    rng = np.random.default_rng([seed, 12])
    given = {}
    kept = []
    for _ in range(steps):
        given = random_step(case, given, rng)
        kept.append(check_one_question(case, given, engine, rng))
    for pair in filter(None, kept):
        answer, expected = pair
        np.testing.assert_allclose(answer.values, expected, rtol=0, atol=1e-10)
    check_marginals(case, {}, log_weights(case), engine) if log_sum(log_weights(case)) > -np.inf else None


@pytest.mark.slow
@every_exact_engine
def test_evidence_entered_changed_and_retracted_leaves_no_trace(engine):
    for seed in range(15):
        check_sequence(seed, engine, 15)


@pytest.fixture
def reduced_questions(monkeypatch):
    """Let the junction tree compile what matters for each question, as it does for models too large as a whole."""
    monkeypatch.setattr(junction_tree, "SMALL", 0)
    monkeypatch.setattr(junction_tree, "WHOLE", 0)
    monkeypatch.setattr(junction_tree, "KEPT_TREES", 3)


def test_trees_kept_for_reduced_questions_leave_no_trace(reduced_questions):
    for seed in range(200, 220):
        check_sequence(seed, "junction-tree", 15)


@pytest.mark.parametrize("kind", KINDS)
def test_other_states_of_the_same_variables_are_entered_into_the_tree_of_the_question(
    reduced_questions, kind
):
    rng = np.random.default_rng(7)
    for seed in range(8):
        case = random_case([seed, 71], kind)
        names = [n for n, k in case.cards.items() if k > 1][:2]
        for _ in range(8):
            check_one_question(
                case, {n: int(rng.integers(case.cards[n])) for n in names}, "junction-tree", rng
            )


def test_a_reduced_question_is_compiled_once_for_all_states_observed(reduced_questions):
    engine, model = mk.engines.JunctionTree(), mk.examples.asia()
    trees = [
        engine.compiled(model._problem({"xray": x, "smoke": s}), ["lung"])[0]
        for x, s in product(("yes", "no"), repeat=2)
    ]
    assert all(tree is trees[0] for tree in trees)
    assert engine.compiled(model._problem({"xray": "yes"}), ["lung"])[0] is not trees[0]


def test_a_question_asked_often_moves_from_the_tree_of_the_model_to_its_own(monkeypatch):
    monkeypatch.setattr(junction_tree, "SMALL", 0)
    engine, model, rng = mk.engines.JunctionTree(), mk.examples.asia(), np.random.default_rng(3)
    expected = mk.examples.asia()
    for states in rng.choice(["yes", "no"], size=(12, 2)).tolist():
        given = dict(zip(("smoke", "bronc"), states, strict=True))
        answer = model.query("lung", given=given, engine=engine)
        by_listing = expected.query("lung", given=given, engine="enumeration")
        np.testing.assert_allclose(answer.values, by_listing.values, atol=1e-12)
    problem = model._problem({"smoke": "yes", "bronc": "no"})
    own, others = engine.compiled(problem, ["lung"])[0], engine.compiled(problem, ["xray"])[0]
    assert len(own.variables) < len(others.variables) == len(model)


def test_a_tree_for_one_target_has_it_in_its_root(reduced_questions):
    engine, model = mk.engines.JunctionTree(), mk.examples.asia()
    for name in set(model.variables) - {"xray"}:
        tree = engine.compiled(model._problem({"xray": "yes"}), [name])[0]
        assert tree.plan.home[tree.slot_of[name]] == tree.plan.n_cliques - 1


@pytest.mark.parametrize("most", [1, 100])
def test_states_found_again_are_cut_out_of_their_tables_once_and_answers_are_right(
    reduced_questions, monkeypatch, most
):
    cut, times = cut_tables.cut_piece, []
    monkeypatch.setattr(cut_tables, "cut_piece", lambda *args: times.append(args) or cut(*args))
    monkeypatch.setattr(cut_tables, "MOST_TABLES", most)
    engine, model = mk.engines.JunctionTree(), mk.examples.asia()
    states = list(product(("yes", "no"), ("yes", "no"), ([0.5, 2.0], [1.0, 0.0])))
    for rounds in range(3):
        before = len(times)
        for xray, smoke, likelihood in states:
            given = {"xray": xray, "smoke": smoke, "dysp": likelihood}
            answer = model.query("lung", given=given, engine=engine)
            np.testing.assert_allclose(
                answer.values,
                mk.examples.asia().query("lung", given=given, engine="enumeration").values,
                atol=1e-12,
            )
        assert (len(times) == before) == (rounds > 0 and most > 1)


def test_a_first_question_about_everything_compiles_the_whole_model_and_one_about_little_does_not():
    chain = mk.BayesianNetwork()
    for i in range(2 * junction_tree.FEW):
        chain.add(
            f"x{i}", parents=[f"x{i - 1}"] if i else [], p=[[0.9, 0.1], [0.3, 0.7]] if i else [0.5, 0.5]
        )
    given, engine = {f"x{junction_tree.FEW}": 1}, mk.engines.JunctionTree()
    problem = chain.copy()._problem(given)
    assert len(engine.compiled(problem, problem.free)[0].variables) == len(chain)
    assert len(engine.compiled(chain.copy()._problem(given), ["x0"])[0].variables) == junction_tree.FEW


@pytest.mark.slow
@every_exact_engine
def test_long_sequences_of_changing_evidence_leave_no_trace(engine):
    for seed in range(1000, 1120):
        check_sequence(seed, engine, 60)


@pytest.mark.slow
@every_exact_engine
def test_evidence_a_then_b_then_none_equals_fresh_answers(engine):
    for seed in range(12):
        case, fresh = random_case([seed, 21]), random_case([seed, 21])
        rng = np.random.default_rng([seed, 22])
        a, b = random_findings(case, rng), random_findings(case, rng)
        for given in (a, b, {}, a, {}):
            logs = log_weights(case, given)
            if np.isneginf(log_sum(logs)):
                with pytest.raises(mk.errors.ImpossibleEvidence):
                    case.model.marginals(given=given, engine=engine)
                continue
            check_marginals(case, given, logs, engine)
            again = check_marginals(fresh, given, logs, engine)
            for n, answer in case.model.marginals(given=given, engine=engine).items():
                np.testing.assert_allclose(answer.values, again[n].values, rtol=0, atol=1e-12)


@every_exact_engine
def test_one_engine_object_serves_many_models_in_turn(engine):
    served = get_engine(engine)
    rng = np.random.default_rng(0)
    several = [random_case([seed, 31]) for seed in range(6)]
    for k in range(60):
        case = several[k % 6]
        logs = log_weights(case, given := random_findings(case, rng, rate=0.2))
        if np.isfinite(log_sum(logs)):
            check_posterior(case, given, logs, served, some_of(rng, case.cards, 3))


@pytest.mark.slow
@every_exact_engine
def test_models_of_one_shape_with_other_numbers_and_zeros_do_not_share_answers(engine):
    for seed in range(8):
        shape = random_case([seed, 33], "undirected", max_entries=800)
        rng = np.random.default_rng([seed, 34])
        several = [shape]
        for zeros in (0.0, 0.3, 0.3, 0.6):
            tables = [
                (scope, np.where(rng.random(values.shape) < zeros, 0.0, rng.random(values.shape)))
                for scope, values in shape.tables
            ]
            factors = [mk.Factor(scope, values) for scope, values in tables]
            several.append(Case(mk.MarkovNetwork(shape.cards, factors), shape.cards, tables))
        given = random_findings(shape, rng, rate=0.2)
        for case in [*several, *several[::-1]]:
            check_one_question(case, given, engine, rng)
            check_one_question(case, {}, engine, rng)


@every_exact_engine
def test_variables_of_other_names_and_in_other_order_do_not_share_answers(engine):
    tables = {"ab": [[4.0, 1.0], [2.0, 5.0]], "bc": [[1.0, 6.0], [3.0, 1.0]]}
    orders = ["abc", "cba", "bac"]
    for names in [*orders, *orders]:
        mn = mk.MarkovNetwork(
            dict.fromkeys(names, 2), [mk.Factor(list(scope), values) for scope, values in tables.items()]
        )
        joint = np.einsum("ab,bc->abc", *(np.array(t) for t in tables.values()))
        a = joint[:, :, 1].sum(axis=1)
        assert mn.query("a", given={"c": 1}, engine=engine).values == pytest.approx(a / a.sum())
        assert list(mn.marginals(engine=engine)) == list(names)
        best = mn.map(engine=engine)
        assert best.to_dict() == {"a": 0, "b": 0, "c": 1}
        assert list(best) == list(names)


@every_exact_engine
def test_findings_changed_by_their_owner_are_read_again(engine):
    bn = mk.examples.asia()
    weights = [0.5, 0.5]
    array = np.array([0.5, 0.5])
    given = {"xray": weights, "dysp": array}
    first = bn.query("lung", given=given, engine=engine)["yes"]
    weights[:] = [0.1, 0.9]
    array[:] = [0.2, 0.8]
    again = bn.query("lung", given=given, engine=engine)["yes"]
    assert first == pytest.approx(0.055)
    assert again == pytest.approx(
        bn.copy().query("lung", given={"xray": [0.1, 0.9], "dysp": [0.2, 0.8]})["yes"]
    )
    given["dysp"] = "no"
    table = brute_force(bn, {"xray": [0.1, 0.9], "dysp": "no"})
    axis = bn.variables.index("lung")
    expected = table.sum(axis=tuple(i for i in range(8) if i != axis)) / table.sum()
    assert bn.query("lung", given=given, engine=engine).values == pytest.approx(expected)


# -- edits and copies ----------------------------------------------------------------------------------------------


def check_current(model, engine, rng):
    """All marginals, the mass and a joint, compared with the product of the pieces the model has now."""
    given = {}
    if rng.random() < 0.5:
        name = str(rng.choice(model.variables))
        given[name] = model.states(name)[rng.integers(len(model.states(name)))]
    table = brute_force(model, given)
    mass = table.sum()
    if mass == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.marginals(given=given, engine=engine)
        return
    assert model.log_partition(given=given, engine=engine) == pytest.approx(log(mass), abs=1e-9)
    answers = model.marginals(given=given, engine=engine)
    assert set(answers) == set(model.variables) - set(given)
    for name, answer in answers.items():
        axes = tuple(i for i, n in enumerate(model.variables) if n != name)
        np.testing.assert_allclose(answer.values, table.sum(axis=axes) / mass, rtol=0, atol=1e-10)
    pair = model.variables[:2]
    axes = tuple(range(len(pair), len(model.variables)))
    joint = model.query(pair, given=given, engine=engine)
    np.testing.assert_allclose(joint.values, table.sum(axis=axes) / mass, rtol=0, atol=1e-10)


def rows_for(model, parents, card, rng):
    return rng.dirichlet(np.ones(card), size=[len(model.states(q)) for q in parents])


def edit_network(bn, rng, serial):
    """Make one random edit of a Bayesian network."""
    what = rng.integers(7)
    name = str(rng.choice(bn.variables))
    card = len(bn.states(name))
    order = bn.graph.topological_order()
    earlier = [n for n in order[: order.index(name)] if n not in bn.parents(name)]
    if what == 0:
        bn.replace(name, p=rows_for(bn, bn.parents(name), card, rng))
    elif what == 1:
        parents = order[: order.index(name)][-2:]
        bn.replace(name, parents=parents, p=rows_for(bn, parents, card, rng))
    elif what == 2 and len(bn) < 9:
        parents = some_of(rng, bn.variables, 2)
        bn.add(f"new{serial}", states=3, parents=parents, p=rows_for(bn, parents, 3, rng))
    elif what == 3 and len(bn) > 2:
        leaves = [n for n in bn.variables if not bn.children(n)]
        bn.remove(leaves[0])
    elif what == 4 and earlier:
        parents = [*bn.parents(name), earlier[0]]
        bn.add_edge(earlier[0], name, p=rows_for(bn, parents, card, rng))
    elif what == 5:
        bn.rename(name, f"name{serial}")
    else:
        bn.rename_states(name, [f"{name}-{serial}-{k}" for k in range(card)])


def edit_factors(model, rng, serial):
    """Make one random edit of a Markov network or factor graph."""
    what = rng.integers(4)
    if what == 0 or not model.factors:
        scope = some_of(rng, model.variables, 3)
        values = rng.random([len(model.states(n)) for n in scope])
        model.add_factor(mk.Factor([model.variable(n) for n in scope], values))
    elif what == 1:
        model.remove_factor(int(rng.integers(len(model.factors))))
    elif what == 2 and len(model) < 9:
        model.add(f"new{serial}", 2)
    else:
        model.rename(str(rng.choice(model.variables)), f"name{serial}")


@pytest.mark.slow
@every_exact_engine
@pytest.mark.parametrize("kind", KINDS)
def test_an_edited_model_gives_fresh_answers(engine, kind):
    edit = edit_factors if kind in ("undirected", "factor graph") else edit_network
    for seed in range(3):
        model = random_case([seed, 41], kind, max_entries=200).model
        rng = np.random.default_rng([seed, 42])
        for serial in range(10):
            check_current(model, engine, rng)
            edit(model, rng, serial)
        check_current(model, engine, rng)


@every_exact_engine
def test_replacing_a_table_is_seen_by_the_next_query(engine):
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    assert bn.query("a", given={"b": 1}, engine=engine)[1] == pytest.approx(8 / 9)
    bn.replace("b", p=[[0.9, 0.1], [0.9, 0.1]])
    assert bn.query("a", given={"b": 1}, engine=engine)[1] == pytest.approx(0.5)
    bn.replace("a", p=[0.25, 0.75])
    assert bn.marginals(given={"b": 1}, engine=engine)["a"][1] == pytest.approx(0.75)
    bn.add("c", parents=["b", "a"], p=[[[1, 0], [0, 1]], [[0.5, 0.5], [0.5, 0.5]]])
    assert bn.query("a", given={"c": 0, "b": 0}, engine=engine)[0] == pytest.approx(1.0)
    bn.remove("c")
    assert bn.log_evidence(given={"b": 1}, engine=engine) == pytest.approx(log(0.1))


@every_exact_engine
def test_copies_and_originals_are_edited_apart(engine):
    makers = [
        lambda model: model.copy(),
        copy.copy,
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
    ]
    for seed, make in enumerate(makers):
        rng = np.random.default_rng([seed, 51])
        model = random_case([seed, 52], "directed", max_entries=200).model
        check_current(model, engine, rng)
        twin = make(model)
        check_current(twin, engine, rng)
        name = model.variables[-1]
        twin.replace(name, p=rows_for(twin, twin.parents(name), len(twin.states(name)), rng))
        model.add("extra", parents=[name], p=rows_for(model, [name], 2, rng))
        for either in (model, twin, model):
            check_current(either, engine, rng)
        assert "extra" not in twin


# -- threads and interruptions -------------------------------------------------------------------------------------


@every_exact_engine
@pytest.mark.parametrize("threads", [pytest.param(2, marks=pytest.mark.slow), 4])
def test_threads_that_share_a_model_get_right_answers(engine, threads):
    """All threads start at once on a model that was never asked, so that they meet in its first compilation too."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for seed in range(5):
            case = random_case([seed, 61], max_entries=2_000)
            start = threading.Barrier(threads)

            def work(thread, case=case, start=start, seed=seed):
                rng = np.random.default_rng([seed, 62, thread])
                start.wait()
                for _ in range(12):
                    check_one_question(case, random_findings(case, rng), engine, rng)

            with ThreadPoolExecutor(threads) as pool:
                for done in [pool.submit(work, t) for t in range(threads)]:
                    done.result()
    finally:
        sys.setswitchinterval(interval)


INTERRUPTED = """
import os, random, sys
import numpy as np
import markovia as mk
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings

engine, seed = sys.argv[1], int(sys.argv[2])
package = os.path.dirname(mk.__file__)
case = random_case(seed, "directed", max_entries=5_000)
rng = np.random.default_rng(seed)
asked = []
while len(asked) < 6:
    given = random_findings(case, rng, rate=0.2)
    logs = log_weights(case, given)
    if np.isfinite(log_sum(logs)):
        tables = {n: np.exp(log_marginal(case, logs, [n]) - log_sum(logs)) for n in case.cards}
        asked.append((given, tables, log_sum(logs)))
case.model.marginals(engine=engine)
case.model.map(engine=engine)


class InterruptAt:
    def __init__(self, step):
        self.left = step

    def __call__(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(package):
            return None
        self.left -= 1
        if self.left == 0:
            raise KeyboardInterrupt
        return self


dice = random.Random(seed)
step, interrupted = 1, 0
while True:
    given = dice.choice(asked)[0]
    interrupt = InterruptAt(step)
    sys.settrace(interrupt)
    try:
        case.model.marginals(given=given, engine=engine)
        case.model.map(given=given, engine=engine)
    except KeyboardInterrupt:
        interrupted += 1
    finally:
        sys.settrace(None)
    if interrupt.left > 0:
        break  # both questions take fewer steps
    for given, tables, mass in asked:
        assert abs(case.model.log_evidence(given=given, engine=engine) - mass) < 1e-9
        for name, answer in case.model.marginals(given=given, engine=engine).items():
            assert np.abs(answer.values - tables[name]).max() < 1e-10, (given, name)
    step = int(step * 1.09) + dice.randint(1, 9)
assert interrupted > 10, interrupted
print("usable and right")
"""


@pytest.mark.slow
@every_exact_engine
def test_a_query_interrupted_at_any_step_leaves_the_model_usable_and_right(engine):
    here = str(PROJECT / "tests")
    script = f"import sys; sys.path.insert(0, {here!r})\n{INTERRUPTED}"
    for seed in (3, 4):
        done = subprocess.run(
            [sys.executable, "-c", script, engine, str(seed)], capture_output=True, text=True, timeout=600
        )
        assert done.stdout.strip() == "usable and right", done.stderr[-2000:]


LONG_RUN = """
import sys, threading, time, _thread
import numpy as np
import markovia as mk

engine, n, coupling = sys.argv[1], 16, 0.3
grid = mk.generators.ising_grid(n, n, coupling=coupling)
spins = 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
within = np.exp(coupling * (spins[:, 1:] * spins[:, :-1]).sum(axis=1))
one = np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]]))
row, log_z = within, 0.0
for _ in range(n - 1):
    cube = row.reshape([2] * n)
    for axis in range(n):
        cube = np.moveaxis(np.tensordot(one, cube, axes=(1, axis)), 0, axis)
    row = cube.ravel() * within
    log_z += np.log(row.max())
    row = row / row.max()
log_z += np.log(row.sum())
grid.marginals(engine=engine)  # loads what is compiled; an interruption in the middle of that may get lost
caught = 0
for delay in (0.02, 0.1, 0.3, 0.6):
    timer = threading.Timer(delay, _thread.interrupt_main)
    try:
        timer.start()
        until = time.monotonic() + 30.0
        while time.monotonic() < until:
            corner = grid.states(grid.variables[0])[int(time.monotonic() * 1e6) % 2]
            grid.marginals(given={grid.variables[0]: corner}, engine=engine)
    except KeyboardInterrupt:
        caught += 1
    assert abs(grid.log_partition(engine=engine) - log_z) < 1e-9 * log_z
assert abs(grid.marginals(engine=engine)[grid.variables[n + 1]].values[0] - 0.5) < 1e-10
print(caught)
"""


@pytest.mark.slow
@not_by_listing
def test_a_long_run_can_be_interrupted_again_and_again(engine):
    done = subprocess.run(
        [sys.executable, "-c", LONG_RUN, engine], capture_output=True, text=True, timeout=600
    )
    assert done.stdout.strip() == "4", done.stderr[-2000:]
