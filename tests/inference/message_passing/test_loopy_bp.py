"""Loopy belief propagation: exact on forests, the same fixed point in every schedule, honest about loops."""

import warnings
from itertools import product

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning, ImpossibleEvidence, InvalidArgument, TooLarge
from markovia.inference.message_passing import schedules
from model_strategies import log_marginal, log_sum, log_weights, random_case, random_findings
from random_trees import forest_and_joint

SCHEDULES = ["flooding", "sequential", "residual"]


def marginal(table, axis):
    summed = table.sum(axis=tuple(i for i in range(table.ndim) if i != axis))
    return summed / summed.sum()


@pytest.mark.parametrize("domain", ["linear", "log"])
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("damping", [0.0, 0.4])
def test_forests_are_exact_in_every_setting(schedule, domain, damping):
    engine = mk.engines.LoopyBP(schedule=schedule, domain=domain, damping=damping)
    for seed in range(12):
        model, table = forest_and_joint([seed, 1], zeros=seed % 3 == 0)
        if table.sum() == 0:
            continue
        answer = model.marginals(engine=engine)
        for i, name in enumerate(model.variables):
            assert np.allclose(answer[name].values, marginal(table, i), atol=1e-9)
            assert answer[name].info.exact
            assert answer[name].info.converged
            assert answer[name].info.details.domain == domain
        assert model.log_partition(engine=engine) == pytest.approx(np.log(table.sum()), abs=1e-9)


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("domain", ["linear", "log"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_schedules_iterate_to_the_exact_answer_on_trees_too(schedule, domain, damping, monkeypatch):
    monkeypatch.setattr(schedules.MessageGraph, "is_forest", False)
    engine = mk.engines.LoopyBP(schedule=schedule, domain=domain, damping=damping, tolerance=1e-13)
    for seed in range(6):
        model, table = forest_and_joint([seed, 2], zeros=seed % 3 == 0)
        if table.sum() == 0:
            continue
        answer = model.marginals(engine=engine)
        for i, name in enumerate(model.variables):
            assert np.allclose(answer[name].values, marginal(table, i), atol=1e-9)
            assert answer[name].info.converged
        assert model.log_partition(engine=engine) == pytest.approx(np.log(table.sum()), abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_evidence_on_random_models_is_exact_where_the_answer_says_so(seed):
    exact = 0
    for again in range(6):
        case = random_case([seed, again, 5], max_entries=800)
        given = random_findings(case, np.random.default_rng([seed, again]))
        logs = log_weights(case, given)
        if np.isneginf(log_sum(logs)):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            answer = case.model.marginals(given=given, engine="loopy-bp")
        for name, found in answer.items():
            expected = np.exp(log_marginal(case, logs, [name]) - log_sum(logs))
            assert np.isclose(found.values.sum(), 1.0)
            assert np.all(found.values[expected > 1e-12] > 0)  # propagation never rules out what is possible
            if found.info.exact:
                exact += 1
                assert np.allclose(found.values, expected, atol=1e-9)
    assert exact > 0


def loopy_models():
    rng = np.random.default_rng(3)
    yield mk.generators.ising_grid(5, 5, 0.4, 0.3)
    yield mk.generators.potts_grid(4, 4, 3, coupling="random", field="random", seed=1)
    names = [f"x{i}" for i in range(9)]
    scopes = [[str(s) for s in rng.permutation(names)[:k]] for k in (3, 4, 3, 2, 5, 3)]
    yield mk.MarkovNetwork(
        dict.fromkeys(names, 3), [mk.Factor(s, rng.random([3] * len(s)) + 0.5) for s in scopes]
    )


def test_all_schedules_and_domains_reach_the_same_fixed_point():
    for model in loopy_models():
        engines = [
            mk.engines.LoopyBP(schedule=s, domain=d, damping=damping, tolerance=1e-12, init=init, seed=1)
            for s, d, damping, init in [
                *product(SCHEDULES, ["linear", "log"], [0.0], ["uniform"]),
                *product(SCHEDULES, ["linear"], [0.5], ["random"]),
            ]
        ]
        first = model.marginals(engine=engines[0])
        for engine in engines[1:]:
            other = model.marginals(engine=engine)
            for name, found in first.items():
                assert other[name].info.converged
                assert not other[name].info.exact
                assert other[name].info.details.domain == engine.domain
                assert np.allclose(found.values, other[name].values, atol=1e-8)


def test_a_converged_fixed_point_satisfies_the_textbook_equations():
    """One round of the message equations, written out with plain loops, changes nothing."""
    model = mk.generators.ising_grid(3, 3, 0.5, 0.2)
    pairs = [f for f in model.factors if len(f.variables) == 2]
    unary = {n: np.ones(2) for n in model.variables}
    for f in model.factors:
        if len(f.variables) == 1:
            unary[f.names[0]] = unary[f.names[0]] * f.values
    messages = {(i, n): np.full(2, 0.5) for i, f in enumerate(pairs) for n in f.names}
    for _ in range(300):
        fresh = {}
        for i, n in messages:
            f = pairs[i]
            other = next(q for q in f.names if q != n)
            incoming = unary[other].copy()
            for (j, q), message in messages.items():
                if q == other and j != i:
                    incoming = incoming * message
            table = f.values if f.names[0] == n else f.values.T
            fresh[i, n] = table @ incoming / (table @ incoming).sum()
        messages = fresh
    answer = model.marginals(engine=mk.engines.LoopyBP(tolerance=1e-13))
    for n in model.variables:
        belief = unary[n] * np.prod([m for (_, q), m in messages.items() if q == n], axis=0)
        assert np.allclose(answer[n].values, belief / belief.sum(), atol=1e-10)


def test_the_sprinkler_network_has_a_loop_and_says_so():
    model = mk.examples.sprinkler()
    wrong = model.query("wet", engine="loopy-bp")
    assert wrong["yes"] == pytest.approx(0.5985, abs=1e-4)
    assert model.query("wet")["yes"] == pytest.approx(0.6471, abs=1e-4)
    assert wrong.info.converged
    assert not wrong.info.exact
    assert model.query("rain", engine="loopy-bp").info.exact  # what lies below it cannot matter


def test_a_chain_of_ten_thousand_variables_is_exact():
    n = 10_000
    rng = np.random.default_rng(0)
    tables = rng.random((n - 1, 2, 2)) + 0.05
    variables = [mk.Variable(f"x{i}", 2) for i in range(n)]
    factors = [mk.Factor([variables[i], variables[i + 1]], tables[i]) for i in range(n - 1)]
    model = mk.MarkovNetwork(variables, factors)
    logs, ahead = 0.0, np.ones(2)
    forward = [ahead]
    for t in tables:
        ahead = ahead @ t
        logs += np.log(ahead.sum())
        ahead = ahead / ahead.sum()
        forward.append(ahead)
    behind = np.ones(2)
    for t in tables[5_000:][::-1]:
        behind = t @ behind
        behind = behind / behind.sum()
    middle = forward[5_000] * behind
    answer = model.marginals(targets=["x5000", "x9999"], engine="loopy-bp")
    assert np.allclose(answer["x5000"].values, middle / middle.sum(), atol=1e-12)
    assert np.allclose(answer["x9999"].values, ahead, atol=1e-12)
    assert answer["x5000"].info.exact
    assert model.log_partition(engine="loopy-bp") == pytest.approx(logs, rel=1e-12)


def test_the_joint_of_a_factors_variables_is_its_belief():
    model, table = forest_and_joint([7, 1])
    names = model.variables
    for f in model.factors:
        if len(f.names) < 2:
            continue
        for targets in ([f.names[1], f.names[0]], list(f.names)):
            found = model.query(targets, engine="loopy-bp")
            axes = [names.index(n) for n in targets]
            expected = table.sum(axis=tuple(i for i in range(table.ndim) if i not in axes))
            expected = expected.transpose(np.argsort(np.argsort(axes))) / table.sum()
            assert np.allclose(found.values, expected, atol=1e-9)
            assert found.info.exact


def test_the_joint_of_distant_variables_is_found_by_conditioning():
    model, table = forest_and_joint([11, 1])
    names = [model.variables[0], model.variables[-1]]
    found = model.query(names, engine="loopy-bp")
    expected = table.sum(axis=tuple(range(1, table.ndim - 1))) / table.sum()
    assert np.allclose(found.values, expected, atol=1e-9)


def test_bethe_log_partition_is_a_stationary_value_on_a_single_loop():
    """On a ring the Bethe value is log of the largest eigenvalue of the transfer matrix product, to the power one."""
    rng = np.random.default_rng(2)
    tables = rng.random((4, 3, 3)) + 0.1
    names = ["a", "b", "c", "d"]
    factors = [mk.Factor([names[i], names[(i + 1) % 4]], tables[i]) for i in range(4)]
    model = mk.MarkovNetwork(dict.fromkeys(names, 3), factors)
    around = tables[0] @ tables[1] @ tables[2] @ tables[3]
    engine = mk.engines.LoopyBP(tolerance=1e-13)
    top = np.abs(np.linalg.eigvals(around)).max()
    assert model.log_partition(engine=engine) == pytest.approx(np.log(top), abs=1e-9)
    assert model.log_partition() == pytest.approx(np.log(np.trace(around)), abs=1e-9)


@pytest.mark.parametrize("domain", ["linear", "log"])
def test_impossible_evidence_is_noticed(domain):
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1.0, 0.0], [0.0, 1.0]])
    bn.add("c", states=[0, 1], parents=["a", "b"], p=[[[1, 0], [1, 0]], [[1, 0], [0.5, 0.5]]])
    engine = mk.engines.LoopyBP(domain=domain)
    with pytest.raises(ImpossibleEvidence):
        bn.marginals(given={"a": 0, "c": 1}, engine=engine)
    with pytest.raises(ImpossibleEvidence):
        bn.query(["a", "b"], given={"b": 0, "c": 1}, engine=engine)
    assert bn.query("a", given={"c": 1}, engine=engine)[1] == pytest.approx(1.0)


def test_numbers_outside_the_range_of_doubles_are_repeated_in_logarithms():
    """Two hundred opinions of 1e-30 each way underflow as products and cancel as logarithms."""
    n = 60
    hub = mk.Variable("hub", 2)
    factors = []
    for i in range(n):
        leaf = mk.Variable(f"x{i}", 2)
        odds = [1e-30, 1.0] if i % 2 else [1.0, 1e-30]
        factors.append(mk.Factor([hub, leaf], [[odds[0], 0.0], [0.0, odds[1]]]))
    factors.append(mk.Factor([hub], [0.3, 0.7]))
    model = mk.MarkovNetwork(factors=factors)
    found = model.query("hub", engine="loopy-bp")
    assert np.allclose(found.values, [0.3, 0.7], atol=1e-9)
    assert np.allclose(model.query("hub", engine=mk.engines.LoopyBP(domain="log")).values, [0.3, 0.7])


def test_a_run_that_does_not_converge_warns_and_says_what_to_try():
    model = mk.generators.ising_grid(6, 6, coupling="random", field=0.1, seed=4)
    strong = mk.MarkovNetwork(factors=[mk.Factor(f.variables, f.values**6) for f in model.factors])
    engine = mk.engines.LoopyBP(schedule="flooding", max_iterations=5)
    with pytest.warns(ConvergenceWarning, match="damping=0.5"):
        found = strong.query("x2_2", engine=engine)
    assert not found.info.converged
    assert found.info.iterations == 5
    assert found.info.error > 1e-6


def test_a_time_limit_stops_the_messages():
    model = mk.generators.ising_grid(30, 30, coupling="random", field=0.1, seed=4)
    strong = mk.MarkovNetwork(factors=[mk.Factor(f.variables, f.values**6) for f in model.factors])
    for schedule in SCHEDULES:
        engine = mk.engines.LoopyBP(schedule=schedule, max_iterations=10**9, tolerance=1e-300)
        with pytest.warns(ConvergenceWarning):
            found = strong.query("x2_2", engine=engine, time_limit=0.05)
        assert not found.info.converged
        assert found.info.seconds < 5


def test_restarts_keep_the_run_with_the_smallest_error():
    model = mk.generators.ising_grid(5, 5, coupling="random", seed=4)
    strong = mk.MarkovNetwork(factors=[mk.Factor(f.variables, f.values**4) for f in model.factors])
    once = mk.engines.LoopyBP(schedule="flooding", max_iterations=20, init="random", seed=3)
    more = mk.engines.LoopyBP(schedule="flooding", max_iterations=20, init="random", seed=3, restarts=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        first = strong.query("x2_2", engine=once)
        second = strong.query("x2_2", engine=more)
        again = strong.query(
            "x2_2",
            engine=mk.engines.LoopyBP(
                schedule="flooding", max_iterations=20, init="random", seed=3, restarts=5
            ),
        )
    assert second.info.error <= first.info.error
    assert np.array_equal(second.values, again.values)


def test_threads_change_nothing(monkeypatch):
    model = mk.generators.potts_grid(12, 12, 3, coupling="random", field="random", seed=0)
    engine = mk.engines.LoopyBP(schedule="flooding", max_iterations=7)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        alone = model.marginals(engine=engine)
        monkeypatch.setattr(schedules, "PARALLEL_FROM", 0)
        monkeypatch.setattr(schedules, "thread_count", lambda: 2)
        together = model.copy().marginals(engine=engine)
    for name, found in alone.items():
        assert np.array_equal(found.values, together[name].values)


def test_small_and_odd_models_are_answered():
    lonely = mk.MarkovNetwork({"a": 3, "b": 1})
    assert np.allclose(lonely.query("a", engine="loopy-bp").values, 1 / 3)
    assert lonely.log_partition(engine="loopy-bp") == pytest.approx(np.log(3))
    one = mk.MarkovNetwork({"a": 2}, [mk.Factor(["a"], [1.0, 3.0])])
    assert one.query("a", engine="loopy-bp")[1] == pytest.approx(0.75)
    asia = mk.examples.asia()
    everything = {n: asia.states(n)[0] for n in asia.variables}
    assert asia.log_prob(everything, engine="loopy-bp") == pytest.approx(asia.log_prob(everything))
    assert asia.query("lung", given=everything, engine="loopy-bp")[everything["lung"]] == 1.0


def test_a_table_of_twenty_variables_is_contracted():
    rng = np.random.default_rng(1)
    names = [f"x{i}" for i in range(20)]
    weights = rng.random((20, 2)) + 0.1
    table = np.ones(1)
    for w in weights:
        table = np.multiply.outer(table, w).reshape(-1)
    table = table.reshape((2,) * 20) + 0.3
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), [mk.Factor(names, table)])
    for domain in ("linear", "log"):
        found = model.marginals(targets=["x0", "x7", "x19"], engine=mk.engines.LoopyBP(domain=domain))
        for name, axis in (("x0", 0), ("x7", 7), ("x19", 19)):
            assert np.allclose(found[name].values, marginal(table, axis), atol=1e-10)


def test_tables_inside_others_are_kept_apart_on_request():
    rng = np.random.default_rng(5)
    names = ["a", "b", "c", "d"]
    scopes = [["a", "b", "c"], ["a", "b"], ["b", "c", "d"], ["a", "d"]]
    model = mk.MarkovNetwork(
        dict.fromkeys(names, 2), [mk.Factor(s, rng.random([2] * len(s)) + 0.1) for s in scopes]
    )
    merged = model.marginals(engine=mk.engines.LoopyBP(tolerance=1e-12))
    apart = model.marginals(engine=mk.engines.LoopyBP(tolerance=1e-12, absorb=False))
    exact = model.marginals()
    assert not np.allclose(merged["a"].values, apart["a"].values, atol=1e-6)
    off = [max(np.abs(found[n].values - exact[n].values).max() for n in names) for found in (merged, apart)]
    assert off[0] < off[1]


@pytest.mark.parametrize(
    "settings",
    [
        {"schedule": "random"},
        {"damping": 1.0},
        {"damping": -0.1},
        {"damping": True},
        {"domain": "logs"},
        {"tolerance": 0},
        {"max_iterations": 0},
        {"max_iterations": 2.5},
        {"time_limit": -1},
        {"init": "zeros"},
        {"seed": -1},
        {"restarts": -1},
        {"absorb": 1},
    ],
)
def test_settings_that_make_no_sense_are_refused(settings):
    with pytest.raises(InvalidArgument, match=next(iter(settings))):
        mk.engines.LoopyBP(**settings)


# -- noisy-or and gates without their tables ---------------------------------------------------------------------


def structured_network(seed):
    """Three or four children over shared parents: noisy-or, noisy-max and gates, in every orientation."""
    rng = np.random.default_rng(seed)
    bn = mk.BayesianNetwork()
    causes = [f"c{i}" for i in range(7)]
    for c in causes:
        p = 0.1 + 0.6 * rng.random()
        bn.add(c, states=[0, 1], p=[1 - p, p])
    forms = [
        mk.local.NoisyOr({c: float(rng.random()) for c in causes}, leak=0.1),
        mk.local.NoisyAnd({c: float(rng.random()) for c in causes[::-1]}, leak=0.05),
        mk.local.NoisyMax({c: rng.dirichlet(np.ones(3), size=2).tolist() for c in causes}),
        mk.local.NoisyMin({c: rng.dirichlet(np.ones(3), size=2).tolist() for c in causes}),
        mk.local.OrGate(*causes),
        mk.local.AndGate(*causes[:6]),
        mk.local.XorGate(*causes),
        mk.local.AtLeast(3, *causes),
        mk.local.Count(*causes),
        mk.local.Sum(*causes),
        mk.local.Max(*causes),
        mk.local.Min(*causes),
    ]
    chosen = rng.permutation(len(forms))[:3]
    for k, i in enumerate(chosen):
        states = range(3) if i in (2, 3) else None
        bn.add(f"y{k}", forms[i], **({} if states is None else {"states": states}))
    dense = mk.BayesianNetwork.from_conditionals(
        [mk.local.ConditionalTable(p.variable, p.parents, p.values) for p in bn.pieces()]
    )
    return bn, dense, rng


@pytest.mark.parametrize("seed", range(25))
def test_structured_conditionals_send_the_messages_of_their_tables(seed):
    bn, dense, rng = structured_network([seed, 8])
    given = {}
    for name in bn.variables:
        if rng.random() < (0.6 if name[0] == "y" else 0.15):
            states = bn.states(name)
            given[name] = (
                (rng.random(len(states)) + 0.1).tolist()
                if rng.random() < 0.4
                else states[rng.integers(len(states))]
            )
    if np.isneginf(dense.log_partition(given)):
        return
    for schedule in SCHEDULES:
        engine = mk.engines.LoopyBP(schedule=schedule, tolerance=1e-13, absorb=False, damping=0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            small, whole = (
                bn.marginals(given=given, engine=engine),
                dense.marginals(given=given, engine=engine),
            )
        assert set(small) == set(whole)
        for name, found in small.items():
            if found.info.converged and whole[name].info.converged:
                assert np.allclose(found.values, whole[name].values, atol=1e-9)
        if found.info.converged and whole[name].info.converged:
            assert bn.log_partition(given, engine=engine) == pytest.approx(
                dense.log_partition(given, engine=engine), abs=1e-8
            )


def test_a_noisy_or_of_two_hundred_parents_has_the_closed_form():
    rng = np.random.default_rng(0)
    bn = mk.BayesianNetwork()
    prior, strength = rng.random(200) * 0.05, rng.random(200)
    for i, p in enumerate(prior):
        bn.add(f"d{i}", states=["no", "yes"], p=[1 - p, p])
    bn.add(
        "f",
        mk.local.NoisyOr({f"d{i}": float(s) for i, s in enumerate(strength)}, leak=0.01),
        states=["no", "yes"],
    )
    off = 0.99 * np.prod(1 - prior * strength)
    found = bn.query("f", engine="loopy-bp")
    assert found["no"] == pytest.approx(off, rel=1e-10)
    assert found.info.exact
    for i in (0, 77, 199):
        without = off / (1 - prior[i] * strength[i])
        yes = prior[i] * (1 - without * (1 - strength[i])) / (1 - off)
        assert bn.query(f"d{i}", given={"f": "yes"}, engine="loopy-bp")["yes"] == pytest.approx(yes, rel=1e-9)
        no = prior[i] * (1 - strength[i]) / (1 - prior[i] * strength[i])
        assert bn.query(f"d{i}", given={"f": "no"}, engine="loopy-bp")["yes"] == pytest.approx(no, rel=1e-9)
    assert bn.log_prob({"f": "yes"}, engine="loopy-bp") == pytest.approx(np.log(1 - off), abs=1e-9)
    assert set(bn.marginals(engine="loopy-bp")) == set(bn.variables)


def test_a_count_of_many_coins_is_binomial():
    from math import comb

    bn = mk.BayesianNetwork()
    for i in range(60):
        bn.add(f"c{i}", states=[0, 1], p=[0.7, 0.3])
    bn.add("n", mk.local.Count(*(f"c{i}" for i in range(60))))
    found = bn.query("n", engine="loopy-bp")
    assert found.values[20] == pytest.approx(comb(60, 20) * 0.3**20 * 0.7**40, rel=1e-9)
    assert bn.query("c3", given={"n": 15}, engine="loopy-bp")[1] == pytest.approx(0.25, abs=1e-9)


@pytest.mark.slow
def test_a_diagnosis_network_with_wide_noisy_ors_runs():
    bn = mk.generators.qmr(120, 60, causes=(40, 80), seed=0)
    row = bn.sample(1, seed=1).iloc[0]
    given = {f"f{i}": row[f"f{i}"] for i in range(60)}
    answers = [
        bn.marginals(
            targets=[f"d{i}" for i in range(120)],
            given=given,
            engine=mk.engines.LoopyBP(schedule=s, damping=0.5),
        )
        for s in SCHEDULES
    ]
    for name, found in answers[0].items():
        assert found.info.converged
        assert np.allclose(found.values, answers[1][name].values, atol=1e-7)
        assert np.allclose(found.values, answers[2][name].values, atol=1e-7)


def test_logistic_conditionals_too_wide_for_a_table_are_refused():
    bn = mk.BayesianNetwork()
    for i in range(40):
        bn.add(f"x{i}", states=[0, 1], p=[0.5, 0.5])
    bn.add("y", mk.local.Logistic({f"x{i}": 0.1 for i in range(40)}), states=[0, 1])
    with pytest.raises(TooLarge):
        bn.query("y", engine="loopy-bp")
