"""Every exact question on random small models, each engine against a plain NumPy joint table."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

ENGINES = ["variable-elimination", "enumeration"]
models = st.one_of(bayesian_networks(), markov_networks(), markov_networks(kind=mk.FactorGraph))
seeds = st.integers(0, 2**32 - 1)


def axes_but(names, keep):
    return tuple(i for i, n in enumerate(names) if n not in keep)


@pytest.mark.parametrize("engine", ENGINES)
@sampled(model=models, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_joint_posteriors_equal_the_joint_table(engine, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng)
    table = brute_force(model, given)
    targets = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 4)]]
    if table.sum() == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.query(targets, given=given, engine=engine)
        return
    expected = table.sum(axis=axes_but(model.variables, targets)) / table.sum()
    kept = [n for n in model.variables if n in targets]
    answer = model.query(targets, given=given, engine=engine)
    assert answer.names == tuple(targets)
    np.testing.assert_allclose(
        answer.values, expected.transpose([kept.index(t) for t in targets]), atol=1e-10
    )


@pytest.mark.parametrize("engine", ENGINES)
@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_all_marginals_and_evidence_equal_the_joint_table(engine, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng)
    table = brute_force(model, given)
    mass, total = table.sum(), brute_force(model, {}).sum()
    with np.errstate(divide="ignore"):
        assert model.log_partition(given=given, engine=engine) == pytest.approx(np.log(mass), abs=1e-9)
    if mass == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.marginals(given=given, engine=engine)
        return
    assert model.log_evidence(given=given, engine=engine) == pytest.approx(np.log(mass / total), abs=1e-9)
    answers = model.marginals(given=given, engine=engine)
    observed = {n for n, v in given.items() if isinstance(v, str | int)}
    assert list(answers) == [n for n in model.variables if n not in observed]
    for name, posterior in answers.items():
        expected = table.sum(axis=axes_but(model.variables, [name])) / mass
        np.testing.assert_allclose(posterior.values, expected, atol=1e-10)
        assert posterior.info.log_evidence == pytest.approx(np.log(mass / total), abs=1e-9)
        assert posterior.info.engine == engine
        assert posterior.info.exact


@pytest.mark.parametrize("engine", ENGINES)
@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_the_m_best_explanations_are_the_largest_entries(engine, model, seed):
    rng = np.random.default_rng(seed)
    given = random_evidence(model, rng, rate=0.3)
    table = brute_force(model, given)
    if table.sum() == 0:
        return
    total = brute_force(model, {}).sum()
    m = int(rng.integers(1, 6))
    targets = (
        None
        if rng.random() < 0.5
        else [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 4)]]
    )
    free = [n for n in model.variables if not isinstance(given.get(n), str | int)]
    asked = free if targets is None else targets
    marginal = table.sum(axis=axes_but(model.variables, asked))
    ranked = np.sort(marginal[marginal > 0])[::-1][:m]
    found = model.map(given=given, targets=targets, m=m, engine=engine)
    assert len(found) == len(ranked)
    seen = set()
    for explanation, weight in zip(found, ranked, strict=True):
        assert explanation.log_prob == pytest.approx(np.log(weight / total), abs=1e-9)
        assert explanation.log_posterior == pytest.approx(np.log(weight / table.sum()), abs=1e-9)
        assert explanation.bound == explanation.log_prob
        assert explanation.gap == 0.0
        index = tuple(model.states(n).index(explanation[n]) for n in model.variables if n in asked)
        assert marginal[index] == pytest.approx(weight, rel=1e-9)
        seen.add(index)
    assert len(seen) == len(found)


@pytest.mark.parametrize("engine", ENGINES)
def test_draws_given_evidence_follow_the_posterior(engine):
    bn = mk.examples.asia()
    given = {"dysp": "yes", "xray": [0.3, 0.7], "tub": mk.Not("yes")}
    n = 40_000
    rows = bn.sample(n, given=given, seed=1, engine=engine)
    assert (rows["dysp"] == "yes").all()
    assert (rows["tub"] == "no").all()
    for name, posterior in bn.marginals(given=given).items():
        for state in bn.states(name):
            p = posterior[state]
            seen = (rows[name] == state).mean()
            assert abs(seen - p) < 4.5 * np.sqrt(p * (1 - p) / n) + 1e-9, (name, state)
    joint = bn.query(["lung", "bronc"], given=given)
    p = joint["yes", "no"]
    seen = ((rows["lung"] == "yes") & (rows["bronc"] == "no")).mean()
    assert abs(seen - p) < 4.5 * np.sqrt(p * (1 - p) / n)


@sampled(model=bayesian_networks(max_nodes=5), seed=seeds)
@settings(max_examples=100, deadline=None)
def test_impossible_evidence_names_a_minimal_conflict(model, seed):
    rng = np.random.default_rng(seed)
    evidence = {n: model.states(n)[rng.integers(len(model.states(n)))] for n in model.variables}
    if brute_force(model, evidence).sum() > 0:
        return
    with pytest.raises(mk.errors.ImpossibleEvidence) as caught:
        model.query(model.variables[0], given=evidence)
    named = caught.value.evidence
    assert named.items() <= evidence.items()
    assert brute_force(model, named).sum() == 0
    for name in named:
        rest = {k: v for k, v in named.items() if k != name}
        assert brute_force(model, rest).sum() > 0


@pytest.mark.parametrize("order", ["min-fill", "min-degree", "min-weight", "weighted-min-fill"])
def test_the_elimination_order_does_not_change_the_answer(order):
    bn = mk.examples.asia()
    engine = mk.engines.VariableElimination(order=order)
    got = bn.query(["lung", "tub"], given={"dysp": "yes"}, engine=engine)
    assert got.allclose(bn.query(["lung", "tub"], given={"dysp": "yes"}, engine="enumeration"), atol=1e-12)


def test_a_user_order_is_followed_and_checked():
    bn = mk.examples.sprinkler()
    good = mk.engines.VariableElimination(order=["rain", "sprinkler", "cloudy", "wet"])
    assert bn.query("wet", engine=good)["yes"] == pytest.approx(0.6471)
    bad = mk.engines.VariableElimination(order=["rain"])
    with pytest.raises(mk.errors.InvalidArgument, match="leaves out"):
        bn.query("wet", engine=bad)


def test_too_large_is_raised_before_allocating_and_names_the_numbers():
    grid = mk.generators.ising_grid(40, 40, coupling=0.3)
    engine = mk.engines.VariableElimination(max_bytes=2**20)
    with pytest.raises(mk.errors.TooLarge, match=r"entries .* width \d+; the budget is 1 MiB"):
        grid.log_partition(engine=engine)
    with pytest.raises(mk.errors.TooLarge, match="variable-elimination"):
        grid.log_partition(engine="enumeration")


def test_long_chains_of_tiny_weights_do_not_underflow():
    n = 20_000
    names = [f"x{i}" for i in range(n)]
    chain = mk.MarkovNetwork(
        dict.fromkeys(names, 2),
        [mk.Factor([a, b], [[2e-300, 1e-300], [1e-300, 2e-300]]) for a, b in pairwise(names)],
    )
    expected = np.log(2) + (n - 1) * (np.log(3) + np.log(1e-300))
    assert chain.log_partition() == pytest.approx(expected, rel=1e-12)
    assert chain.query("x0")[0] == pytest.approx(0.5)


def test_a_query_ignores_barren_nodes_that_have_no_affordable_table():
    bn = mk.BayesianNetwork()
    parents = [f"d{i}" for i in range(40)]
    for name in parents:
        bn.add(name, p=[0.9, 0.1])
    bn.add("finding", mk.local.NoisyOr(dict.fromkeys(parents, 0.3), leak=0.01), states=[0, 1])
    assert bn.query("d3")[1] == pytest.approx(0.1)


def test_unknown_engines_are_named_with_the_nearest():
    bn = mk.examples.sprinkler()
    with pytest.raises(mk.errors.UnknownEngine, match="did you mean 'enumeration'"):
        bn.query("rain", engine="enumeraton")
    with pytest.raises(mk.errors.UnknownEngine):
        bn.query("rain", engine=3)


def mixture_of_opinions(n):
    """A cause, n witnesses that all point to one state, and a certain one that points to the other."""
    bn = mk.BayesianNetwork()
    bn.add("c", p=[0.5, 0.5])
    for i in range(n):
        bn.add(f"f{i}", parents=["c"], p=[[0.99, 0.01], [0.01, 0.99]])
    bn.add("z", parents=["c"], p=[[0.0, 1.0], [1.0, 0.0]])
    return bn, {**{f"f{i}": 1 for i in range(n)}, "z": 1}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("n", [100, 170, 400])
def test_unlikely_evidence_is_not_called_impossible(engine, n):
    bn, given = mixture_of_opinions(n)
    expected = np.log(0.5) + n * np.log(0.01)
    assert bn.log_evidence(given, engine=engine) == pytest.approx(expected, rel=1e-12)
    assert bn.query("c", given=given, engine=engine)[0] == 1.0
    assert bn.marginals(given=given, engine=engine)["c"][0] == 1.0
    assert bn.map(given=given, engine=engine)["c"] == 0
    assert (bn.sample(5, given=given, seed=0, engine=engine)["c"] == 0).all()
    assert bn.log_prob([given])[0] == pytest.approx(expected, rel=1e-12)


def test_beliefs_stay_numbers_when_messages_span_hundreds_of_orders():
    bn = mk.BayesianNetwork()
    bn.add("c", p=[0.5, 0.5])
    bn.add("x", parents=["c"], p=[[1.0, 0.0], [0.0, 1.0]])
    for i in range(156):
        bn.add(f"f{i}", parents=["x"], p=[[0.99, 0.01], [0.01, 0.99]])
    bn.add("y", parents=["c"], p=[[0.3, 0.7], [0.6, 0.4]])
    bn.add("w", parents=["c", "y"], p=[[[0.2, 0.8], [0.5, 0.5]], [[0.9, 0.1], [0.4, 0.6]]])
    bn.add("z", parents=["c"], p=[[0.0, 1.0], [1.0, 0.0]])
    given = {**{f"f{i}": 1 for i in range(156)}, "z": 1}
    answers = bn.marginals(given=given)
    assert answers["x"].values.tolist() == [1.0, 0.0]
    assert answers["y"].values == pytest.approx([0.3, 0.7])
    assert answers["w"].values == pytest.approx([0.3 * 0.2 + 0.7 * 0.5, 0.3 * 0.8 + 0.7 * 0.5])


@sampled(seed=seeds)
@settings(max_examples=80)
def test_tables_over_five_hundred_orders_of_magnitude_are_handled(seed):
    rng = np.random.default_rng(seed)
    cards = {f"v{i}": int(rng.integers(1, 4)) for i in range(5)}
    logs = []
    for _ in range(6):
        scope = [str(s) for s in rng.permutation(list(cards))[: rng.integers(1, 4)]]
        table = rng.uniform(-300, 300, [cards[s] for s in scope]) * np.log(10)
        logs.append((scope, np.where(rng.random(table.shape) < 0.15, -np.inf, table)))
    model = mk.MarkovNetwork(cards, [mk.Factor.from_log(s, t) for s, t in logs])
    whole = np.zeros(list(cards.values()))
    for factor in model.factors:
        axes = [model.variables.index(n) for n in factor.names]
        view = [1] * len(cards)
        for a in axes:
            view[a] = whole.shape[a]
        whole = whole + factor.log_values.transpose(np.argsort(axes)).reshape(view)
    top = whole.max()
    if np.isneginf(top):
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.query("v0")
        return
    log_z = top + np.log(np.exp(whole - top).sum())
    for engine in ENGINES:
        assert model.log_partition(engine=engine) == pytest.approx(log_z, rel=1e-9, abs=1e-9)
        for name, posterior in model.marginals(engine=engine).items():
            axis = axes_but(model.variables, [name])
            np.testing.assert_allclose(posterior.values, np.exp(whole - log_z).sum(axis=axis), atol=1e-9)
        best = model.map(engine=engine)
        at = tuple(model.states(n).index(best[n]) for n in model.variables)
        assert whole[at] == pytest.approx(top, rel=1e-12, abs=1e-9)


def test_a_wide_table_is_never_built_and_cut_before_it_is_too_large():
    causes = [f"d{i}" for i in range(60)]
    bn = mk.BayesianNetwork()
    for name in causes:
        bn.add(name, p=[0.9, 0.1])
    bn.add("finding", mk.local.NoisyOr(dict.fromkeys(causes, 0.3), leak=0.01), states=[0, 1])
    given = {**dict.fromkeys(causes[1:], 0), "finding": 1}
    on, off = 0.1 * (1 - 0.99 * 0.7), 0.9 * 0.01
    assert bn.query("d0", given=given)[1] == pytest.approx(on / (on + off))
    narrow = mk.BayesianNetwork()
    for name in causes[:24]:
        narrow.add(name, p=[0.9, 0.1])
    narrow.add("finding", mk.local.NoisyOr(dict.fromkeys(causes[:24], 0.3), leak=0.01), states=[0, 1])
    chain = narrow.query("d0", given={"finding": 1}, engine=mk.engines.VariableElimination(max_bytes=10**6))
    assert chain[1] == pytest.approx(0.1 * (1 - 0.99 * 0.7 * 0.97**23) / (1 - 0.99 * 0.97**24))
    assert narrow["finding"]._table is None
    small = mk.engines.VariableElimination(max_bytes=10**3)
    with pytest.raises(mk.errors.TooLarge, match="the budget is"):
        narrow.query([f"d{i}" for i in range(10)], given={"finding": 1}, engine=small)


def test_a_class_is_no_engine_and_settings_are_checked():
    bn = mk.examples.sprinkler()
    with pytest.raises(mk.errors.UnknownEngine, match=r"write engine=VariableElimination\(\)"):
        bn.query("rain", engine=mk.engines.VariableElimination)
    with pytest.raises(mk.errors.InvalidArgument, match="order="):
        mk.engines.VariableElimination(order=3)
    with pytest.raises(mk.errors.InvalidArgument, match="unknown order heuristic"):
        mk.engines.VariableElimination(order="best")
    with pytest.raises(mk.errors.InvalidArgument, match="number of bytes"):
        mk.engines.VariableElimination(max_bytes="1GB")


def test_variables_named_like_arguments_can_be_asked_for():
    bn = mk.BayesianNetwork()
    bn.add("self", p=[0.3, 0.7])
    bn.add("name", parents=["self"], p=[[0.9, 0.1], [0.2, 0.8]])
    joint = bn.query(["self", "name"])
    assert joint[{"self": 1, "name": 0}] == pytest.approx(0.14)
    assert joint(self=1) == pytest.approx(0.7)
    assert bn["name"].row(self=1).tolist() == [0.2, 0.8]
