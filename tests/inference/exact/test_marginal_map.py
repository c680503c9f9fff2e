"""Marginal MAP by branch and bound against brute force, and the choice between it and constrained elimination."""

import numpy as np
import pytest
from hypothesis import given as sampled
from hypothesis import settings
from hypothesis import strategies as st

import markovia as mk
from markovia.inference.exact import marginal_map
from markovia.inference.exact.arithmetic import Plain
from markovia.inference.exact.bucket_tree import Net, beliefs, sweep
from model_strategies import bayesian_networks, brute_force, markov_networks, random_evidence

VE = mk.engines.VariableElimination
SEARCH = VE(marginal_map="branch-and-bound")
models = st.one_of(bayesian_networks(), markov_networks(), markov_networks(kind=mk.FactorGraph))
seeds = st.integers(0, 2**32 - 1)


def axes_but(names, keep):
    return tuple(i for i, n in enumerate(names) if n not in keep)


def tied(model, rng):
    """The same structure with few different numbers, so that many assignments weigh the same."""
    return mk.MarkovNetwork(
        {n: model.states(n) for n in model.variables},
        [
            mk.Factor(
                [model.variable(n) for n in piece.names],
                rng.integers(0, 3, [len(model.states(n)) for n in piece.names]).astype(float),
            )
            for piece in model.pieces()
        ],
    )


@pytest.mark.parametrize("ties", [False, True])
@sampled(model=models, seed=seeds)
@settings(max_examples=150, deadline=None)
def test_the_m_best_assignments_equal_the_largest_sums_of_the_joint_table(ties, model, seed):
    rng = np.random.default_rng(seed)
    model = tied(model, rng) if ties else model
    given = random_evidence(model, rng, rate=0.3)
    table = brute_force(model, given)
    if table.sum() == 0:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            model.map(given=given, engine=SEARCH)
        return
    m = int(rng.integers(1, 6))
    asked = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 6)]]
    sums = table.sum(axis=axes_but(model.variables, asked))
    ranked = np.sort(sums[sums > 0])[::-1][:m]
    total = brute_force(model, {}).sum()
    found = model.map(given=given, targets=asked, m=m, engine=SEARCH)
    assert len(found) == len(ranked)
    seen = set()
    for explanation, weight in zip(found, ranked, strict=True):
        assert explanation.log_prob == pytest.approx(np.log(weight / total), abs=1e-9)
        index = tuple(model.states(n).index(explanation[n]) for n in model.variables if n in asked)
        assert sums[index] == pytest.approx(weight, rel=1e-9)
        seen.add(index)
    assert len(seen) == len(found)


@sampled(model=models, seed=seeds)
@settings(max_examples=100, deadline=None)
def test_a_free_order_bounds_every_state_from_above(model, seed):
    rng = np.random.default_rng(seed)
    table = brute_force(model, {})
    if table.sum() == 0:
        return
    asked = [str(t) for t in rng.permutation(model.variables)[: rng.integers(1, 5)]]
    net = Net(model._problem(None).parts(None))
    plan = VE(order=[str(n) for n in rng.permutation(model.variables)])._plan(net)
    maximised = frozenset(net.ids[t] for t in asked)
    found = sweep(net.tables(), plan, Plain(), maximised, range(len(net.cards)))
    own = beliefs(found.buckets, found.log_scale, Plain(), maximised, maximised)
    sums = table.sum(axis=axes_but(model.variables, asked))
    kept = [n for n in model.variables if n in asked]
    for k, name in enumerate(kept):
        best = sums.max(axis=tuple(i for i in range(len(kept)) if i != k))
        belief = own[net.ids[name]]
        bound = belief.table * np.exp(belief.log_scale)
        assert (bound >= best * (1 - 1e-9)).all()
        if len(kept) == 1:
            np.testing.assert_allclose(bound, best, rtol=1e-9)


def spin_glass(n, k, seed, strength=0.5):
    rng = np.random.default_rng(seed)
    names = [f"x{i}_{j}" for i in range(n) for j in range(n)]
    factors = []
    for i in range(n):
        for j in range(n):
            field = rng.normal() * strength
            factors.append(mk.Factor([f"x{i}_{j}"], np.exp([field, -field])))
            for a, b in ((i + 1, j), (i, j + 1)):
                if a < n and b < n:
                    w = rng.normal() * strength
                    factors.append(mk.Factor([f"x{i}_{j}", f"x{a}_{b}"], np.exp([[w, -w], [-w, w]])))
    return mk.MarkovNetwork(dict.fromkeys(names, 2), factors), [str(t) for t in rng.permutation(names)[:k]]


@pytest.mark.parametrize("seed", range(4))
def test_the_search_takes_over_where_the_constrained_order_does_not_fit(seed):
    model, targets = spin_glass(7, 14, seed)
    problem = model._problem(None)
    exact = VE(marginal_map="constrained").best(problem, targets, 3)
    net = Net(problem.parts(targets))
    free = [net.ids[t] for t in targets]
    constrained = 8 * VE()._plan(net, last=free).need(set(free))
    small = int(8 * VE()._plan(net).need(set(range(49)))) + 8
    assert small < constrained
    with pytest.raises(mk.errors.TooLarge, match="marginal_map='branch-and-bound'") as caught:
        VE(max_bytes=small, marginal_map="constrained").best(problem, targets, 1)
    assert caught.value.bytes == constrained
    found = VE(max_bytes=small).best(problem, targets, 3)
    assert found.record.details.marginal_map == "branch-and-bound"
    assert found.record.details.evaluations > 0
    assert VE().best(problem, targets, 1).record.details.marginal_map == "constrained"
    for ours, theirs in zip(found, exact, strict=True):
        assert ours.log_weight == pytest.approx(theirs.log_weight, abs=1e-10)
        assert ours.codes == theirs.codes
    with pytest.raises(mk.errors.TooLarge):
        VE(max_bytes=512).best(problem, targets, 1)


def test_a_problem_that_no_constrained_order_can_do_is_solved():
    model, targets = spin_glass(12, 40, seed=1, strength=0.8)
    found = model.map(targets=targets, engine=VE(max_bytes=2**28))
    with pytest.raises(mk.errors.TooLarge):
        model.map(targets=targets, engine=VE(max_bytes=2**28, marginal_map="constrained"))
    reached = model.log_evidence(found.to_dict())
    assert found.log_prob == pytest.approx(reached, abs=1e-9)
    for name in targets:
        other = {**found.to_dict(), name: 1 - found[name]}
        assert model.log_evidence(other) <= reached + 1e-9


@pytest.mark.parametrize("order", ["min-degree", "perfect", ["v3", "v1", "v0", "v2"]])
def test_any_order_serves_as_a_bound(order):
    bn = mk.BayesianNetwork("v0->v1->v2->v3", tables="random", seed=4)
    engine = VE(order=order, marginal_map="branch-and-bound")
    targets = ["v0", "v2"]
    expected = bn.map(given={}, targets=targets, m=4, engine="enumeration")
    found = bn.map(targets=targets, m=4, engine=engine)
    assert [e.to_dict() for e in found] == [e.to_dict() for e in expected]


@sampled(seed=seeds)
@settings(max_examples=60, deadline=None)
def test_weights_beyond_the_range_of_doubles_are_compared_as_logarithms(seed):
    rng = np.random.default_rng(seed)
    names = [f"v{i}" for i in range(5)]
    factors = [
        mk.Factor.from_log([a, b], rng.uniform(-300, 300, (2, 2)) * np.log(10))
        for a, b in (names[i : i + 2] for i in range(4))
    ]
    factors.append(mk.Factor.from_log(["v0", "v4"], rng.uniform(-300, 300, (2, 2)) * np.log(10)))
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
    targets = [str(t) for t in rng.permutation(names)[:2]]
    expected = model.map(targets=targets, m=4, engine="enumeration")
    found = model.map(targets=targets, m=4, engine=SEARCH)
    assert [e.log_prob for e in found] == pytest.approx([e.log_prob for e in expected], rel=1e-9, abs=1e-9)


def test_equal_weights_do_not_make_the_search_long():
    names = [f"x{i}" for i in range(40)]
    flat = mk.MarkovNetwork(
        dict.fromkeys(names, 2), [mk.Factor(names[i : i + 2], np.ones((2, 2))) for i in range(39)]
    )
    found = SEARCH.best(flat._problem(None), names[::2], 1)
    assert found[0].log_weight == pytest.approx(20 * np.log(2))
    assert found.record.details.evaluations < 100


def test_parts_that_share_no_variable_are_searched_one_by_one():
    rng = np.random.default_rng(2)
    names = [f"{part}{i}" for part in range(12) for i in range(3)]
    factors = [
        mk.Factor([f"{part}{i}", f"{part}{i + 1}"], rng.random((2, 2)))
        for part in range(12)
        for i in range(2)
    ]
    model = mk.MarkovNetwork(dict.fromkeys(names, 2), factors)
    targets = [n for n in names if not n.endswith("1")]
    search = SEARCH.best(model._problem(None), targets, 6)
    exact = VE(marginal_map="constrained").best(model._problem(None), targets, 6)
    assert [a.log_weight for a in search] == pytest.approx([a.log_weight for a in exact], abs=1e-10)
    assert search.record.details.evaluations < 12 * 40


def test_an_interrupted_search_leaves_the_model_as_it_was(monkeypatch):
    model, targets = spin_glass(6, 10, seed=3)
    expected = model.map(targets=targets, engine=SEARCH)
    calls = 0

    def interrupted(*args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == 7:
            raise KeyboardInterrupt
        return beliefs(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(marginal_map, "beliefs", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.map(targets=targets, engine=SEARCH)
    again = model.map(targets=targets, engine=SEARCH)
    assert again.to_dict() == expected.to_dict()
    assert again.log_prob == expected.log_prob


def test_the_method_is_checked():
    with pytest.raises(
        mk.errors.InvalidArgument, match="marginal_map= is 'auto', 'constrained' or 'branch-and-bound'"
    ):
        VE(marginal_map="beam")
