"""Max-product: exactly right on forests, ties included; honest about loops."""

import warnings

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning, ImpossibleEvidence, InvalidArgument, Unanswered
from markovia.inference.message_passing import schedules
from model_strategies import log_weights, random_case, random_findings
from random_trees import forest_and_joint

SCHEDULES = ["flooding", "sequential", "residual"]


def weight_of(model, table, found):
    return table[tuple(model.states(n).index(found[n]) for n in model.variables)]


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_forests_are_solved_and_proved(schedule, damping):
    engine = mk.engines.MaxProduct(schedule=schedule, damping=damping)
    for seed in range(15):
        model, table = forest_and_joint([seed, 21], zeros=seed % 3 == 0)
        if table.sum() == 0:
            continue
        found = model.map(engine=engine)
        assert weight_of(model, table, found) == pytest.approx(table.max(), rel=1e-9)
        assert found.log_weight == pytest.approx(np.log(table.max()), abs=1e-9)
        assert found.bound == found.log_prob
        assert found.info.exact


@pytest.mark.parametrize("seed", range(20))
def test_ties_on_trees_are_broken_consistently(seed):
    """Tables of zeros and ones, or of two values, have many best configurations; mixing them would have weight zero."""
    rng = np.random.default_rng([seed, 4])
    names = [f"x{i}" for i in range(9)]
    factors = []
    for i in range(1, 9):
        j = int(rng.integers(i))
        values = np.eye(3)[rng.permutation(3)] if seed % 2 else rng.choice([1.0, 2.0], size=(3, 3))
        factors.append(mk.Factor([names[j], names[i]], values))
    model = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    best = model.map(engine="junction-tree")
    found = model.map(engine="max-product")
    assert found.log_weight == pytest.approx(best.log_weight, abs=1e-12)
    assert found.info.exact


def test_exclusive_or_on_a_tree_has_ties_everywhere():
    names = [f"x{i}" for i in range(7)]
    odd = np.array([[[0, 1], [1, 0]], [[1, 0], [0, 1]]])
    factors = [mk.Factor(names[i : i + 3], odd) for i in (0, 2, 4)]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
    found = model.map(engine="max-product")
    for i in (0, 2, 4):
        assert sum(found[n] for n in names[i : i + 3]) % 2 == 1
    assert found.log_weight == pytest.approx(0.0)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_single_loop_is_solved_when_messages_converge(schedule):
    engine = mk.engines.MaxProduct(schedule=schedule, max_iterations=300)
    solved = 0
    for seed in range(15):
        rng = np.random.default_rng([seed, 6])
        names = [f"x{i}" for i in range(6)]
        factors = [mk.Factor([names[i], names[(i + 1) % 6]], rng.random((3, 3)) + 0.05) for i in range(6)]
        model = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = model.map(engine=engine)
        best = model.map()
        assert found.log_weight <= best.log_weight + 1e-9
        assert found.bound == np.inf
        assert not found.info.exact
        if found.info.converged:
            solved += 1
            assert found.log_weight == pytest.approx(best.log_weight, abs=1e-9)
    assert solved > 5


def test_states_are_at_least_a_local_maximum():
    model = mk.generators.ising_grid(6, 6, coupling="random", field="random", seed=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = model.map(engine=mk.engines.MaxProduct(max_iterations=3))
    states = found.to_dict()
    for name in model.variables:
        other = {**states, name: -states[name]}
        assert -model.energy(other) <= found.log_weight + 1e-9
    assert found.log_weight == pytest.approx(-model.energy(states), abs=1e-9)


def test_an_attractive_grid_with_strong_fields_is_solved():
    model = mk.generators.ising_grid(8, 8, 0.2, "random", seed=5)
    found = model.map(engine=mk.engines.MaxProduct(damping=0.5))
    assert found.log_weight == pytest.approx(model.map(engine="junction-tree").log_weight, abs=1e-9)


@pytest.mark.parametrize("seed", range(15))
def test_random_models_with_evidence_are_never_beaten_and_exact_where_they_say_so(seed):
    for again in range(4):
        case = random_case([seed, again, 15], max_entries=800)
        given = random_findings(case, np.random.default_rng([seed, again]))
        logs = log_weights(case, given)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            if np.isneginf(logs.max()):
                continue
            found = case.model.map(given=given, engine="max-product")
        assert found.log_weight <= logs.max() + 1e-9
        if found.info.exact:
            assert found.log_weight == pytest.approx(logs.max(), abs=1e-9)


def test_impossible_evidence_is_noticed():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[1.0, 0.0])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1.0, 0.0], [0.0, 1.0]])
    bn.add("c", states=[0, 1], parents=["b"], p=[[1.0, 0.0], [0.0, 1.0]])
    with pytest.raises(ImpossibleEvidence):
        bn.map(given={"c": 1}, engine="max-product")


def test_gates_are_maximised_without_their_tables():
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(0)
    p = rng.random(50) * 0.4
    for i in range(50):
        bn.add(f"c{i}", states=[0, 1], p=[1 - p[i], p[i]])
    bn.add("any", mk.local.OrGate(*(f"c{i}" for i in range(50))))
    found = bn.map(given={"any": True}, engine="max-product")
    on = [i for i in range(50) if found[f"c{i}"] == 1]
    assert on == [int(np.argmax(p / (1 - p)))]
    assert found.info.exact
    expected = np.log(1 - np.delete(p, on[0])).sum() + np.log(p[on[0]])
    assert found.log_prob == pytest.approx(expected, abs=1e-9)
    assert set(found) == set(bn.variables) - {"any"}


def test_a_noisy_or_is_maximised_through_its_table():
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(0)
    causes = [f"c{i}" for i in range(10)]
    for c in causes:
        p = float(rng.random())
        bn.add(c, states=[0, 1], p=[1 - p, p])
    bn.add("y", mk.local.NoisyOr({c: float(rng.random()) for c in causes}, leak=0.01), states=[0, 1])
    for y in (0, 1):
        found = bn.map(given={"y": y}, engine="max-product")
        assert found.log_prob == pytest.approx(bn.map(given={"y": y}).log_prob, abs=1e-9)


def test_loopy_bp_decodes_with_the_same_messages():
    model, table = forest_and_joint([3, 21])
    found = model.map(engine="loopy-bp")
    assert found.log_weight == pytest.approx(np.log(table.max()), abs=1e-9)


def test_max_marginals_are_the_best_weights_of_each_state():
    model, table = forest_and_joint([5, 21])
    problem = model._problem(None)
    found = mk.engines.MaxProduct().max_marginals(problem, problem.free)
    for axis, factor in enumerate(found.tables):
        best = table.max(axis=tuple(i for i in range(table.ndim) if i != axis))
        assert np.allclose(factor.values, best / best.max(), atol=1e-12)


def test_a_run_that_does_not_converge_warns_and_restarts_never_hurt():
    model = mk.generators.ising_grid(6, 6, coupling="random", field="random", seed=8)
    strong = mk.MarkovNetwork(factors=[mk.Factor(f.variables, f.values**4) for f in model.factors])
    with pytest.warns(ConvergenceWarning, match="damping"):
        once = strong.map(engine=mk.engines.MaxProduct(max_iterations=5))
    with pytest.warns(ConvergenceWarning, match="damping"):
        more = strong.map(engine=mk.engines.MaxProduct(max_iterations=5, restarts=5, seed=1))
    assert not once.info.converged
    assert more.log_weight >= once.log_weight
    assert more.info.details.runs == 6


def test_schedules_agree_where_they_converge(monkeypatch):
    monkeypatch.setattr(schedules, "PARALLEL_FROM", 0)
    model = mk.generators.potts_grid(7, 7, 3, coupling=0.3, field="random", seed=1)
    found = [model.map(engine=mk.engines.MaxProduct(schedule=s, damping=0.2)).log_weight for s in SCHEDULES]
    assert np.allclose(found, found[0], atol=1e-9)


def test_what_it_cannot_do_is_refused():
    model = mk.examples.asia()
    with pytest.raises(Unanswered, match="marginals"):
        model.query("lung", engine="max-product")
    with pytest.raises(Unanswered, match="targets"):
        model.map(targets=["lung"], engine="max-product")
    with pytest.raises(Unanswered, match="m=3"):
        model.map(engine="max-product", m=3)
    with pytest.raises(InvalidArgument, match="schedule"):
        mk.engines.MaxProduct(schedule="x")
