"""Counterfactuals of Bayesian networks against the enumeration of every noise."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.causal.counterfactuals.couplings import coupled_rows
from markovia.errors import ImpossibleEvidence, InvalidArgument, UnknownVariable


def xor_model():
    bn = mk.BayesianNetwork()
    for name in ("u1", "u2", "w"):
        bn.add(name, p=[0.5, 0.5])
    bn.add("z", lambda u1, u2: u1 ^ u2)
    bn.add("y", lambda z, w: z & w)
    return bn


def test_facts_that_couple_root_causes_keep_them_coupled_in_the_other_world():
    answer = xor_model().counterfactual("y", given={"w": 0, "z": 1}, do={"w": 1})
    assert answer[1] == pytest.approx(1.0, abs=1e-12)
    assert "no mechanism had to be chosen" in answer.info.note


def random_scm(seed, n, k=3):
    """Functions of earlier variables and of a noise of their own, in the library and as plain arrays."""
    rng = np.random.default_rng(seed)
    bn, functions, noises = mk.BayesianNetwork(), [], []
    for i in range(n):
        p = rng.dirichlet(np.ones(3))
        bn.add(f"e{i}", p=p)
        parents = [j for j in range(i) if rng.random() < 0.6]
        states = int(rng.integers(2, k + 1))
        sizes = [len(bn.variable(f"x{j}")) for j in parents]
        f = rng.integers(0, states, size=(*sizes, 3))
        bn.add(f"x{i}", states=states, parents=[*(f"x{j}" for j in parents), f"e{i}"], p=np.eye(states)[f])
        functions.append((parents, f))
        noises.append(p)
    return bn, functions, noises


def solve(functions, noise, do):
    x = []
    for i, (parents, f) in enumerate(functions):
        x.append(do[i] if i in do else int(f[(*(x[j] for j in parents), noise[i])]))
    return x


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_counterfactuals_of_functions_equal_the_enumeration_of_all_noises(seed, n):
    bn, functions, noises = random_scm(seed, n)
    rng = np.random.default_rng(seed + 1)
    do = {int(i): 0 for i in rng.choice(n, size=int(rng.integers(1, min(n, 3))), replace=False)}
    do = {i: int(rng.integers(len(bn.variable(f"x{i}")))) for i in do}
    true_noise = [int(rng.choice(3, p=p)) for p in noises]
    actual = solve(functions, true_noise, {})
    facts = {i: actual[i] for i in range(n) if rng.random() < 0.5}
    target = int(rng.integers(n))
    expected = np.zeros(len(bn.variable(f"x{target}")))
    for noise in product(range(3), repeat=n):
        x = solve(functions, noise, {})
        if all(x[i] == v for i, v in facts.items()):
            weight = np.prod([p[e] for p, e in zip(noises, noise, strict=True)])
            expected[solve(functions, noise, do)[target]] += weight
    answer = bn.counterfactual(
        f"x{target}", given={f"x{i}": v for i, v in facts.items()}, do={f"x{i}": v for i, v in do.items()}
    )
    np.testing.assert_allclose(answer.values, expected / expected.sum(), atol=1e-10)
    assert np.exp(answer.info.log_evidence) == pytest.approx(expected.sum(), rel=1e-9)


def response_brute_force(bn, order, kind, facts, do, target, draws=None):
    """Enumerate functions of every node: monotone by quantiles, independent by one state a configuration."""
    pieces = []
    for name in order:
        values = np.asarray(bn[name].values)
        rows = values.reshape(-1, values.shape[-1])
        if kind == "monotone":
            edges = np.unique(np.concatenate([[0.0], np.cumsum(rows, 1).ravel().round(13)]))
            middles = (edges[1:] + edges[:-1]) / 2
            table = [[int((m > np.cumsum(r)).sum()) for r in rows] for m in middles]
            pieces.append([(w, f) for w, f in zip(np.diff(edges), table, strict=True) if w > 1e-12])
        else:
            every = product(range(values.shape[-1]), repeat=len(rows))
            pieces.append([(np.prod([r[s] for r, s in zip(rows, f, strict=True)]), f) for f in every])
    place = {n: i for i, n in enumerate(order)}

    def run(functions, done):
        x = {}
        for n in order:
            parents = bn.parents(n)
            at = (
                np.ravel_multi_index([x[q] for q in parents], [len(bn.variable(q)) for q in parents])
                if parents
                else 0
            )
            x[n] = done.get(n, functions[place[n]][1][at])
        return x

    expected = np.zeros(len(bn.variable(target)))
    for chosen in product(*pieces):
        actual = run(chosen, {})
        if all(actual[n] == v for n, v in facts.items()):
            expected[run(chosen, do)[target]] += np.prod([w for w, _ in chosen])
    return expected / expected.sum()


@pytest.mark.parametrize("kind", ["monotone", "independent"])
@pytest.mark.parametrize("seed", range(6))
def test_mechanisms_of_tables_equal_the_enumeration_of_their_functions(kind, seed):
    structure = ["a->b; b->c; a->c", "a->b->c; b->d"][seed % 2]
    bn = mk.BayesianNetwork(structure, states={"b": 3}, tables="random", seed=seed)
    order = bn.graph.topological_order()
    facts = {"c": 1, "a": 0} if seed < 3 else {order[-1]: 0}
    do = {"a": 1} if seed % 3 else {"b": 2}
    target = "c" if seed % 2 == 0 else "d"
    expected = response_brute_force(bn, order, kind, facts, do, target)
    answer = bn.counterfactual(target, given=facts, do=do, mechanism=kind)
    np.testing.assert_allclose(answer.values, expected, atol=1e-10)


def test_the_gumbel_coupling_is_that_of_shared_gumbel_noises():
    rng = np.random.default_rng(0)
    p, q = rng.dirichlet(np.ones(4), size=2)
    q = np.where(np.arange(4) == 2, 0.0, q) / (1 - q[2])
    joint = coupled_rows(p, q, np.array(False), "gumbel")
    np.testing.assert_allclose(joint.sum(1), p, atol=1e-12)
    np.testing.assert_allclose(joint.sum(0), q, atol=1e-12)
    g = rng.gumbel(size=(200_000, 4))
    with np.errstate(divide="ignore"):
        i, j = (np.log(p) + g).argmax(1), (np.log(q) + g).argmax(1)
    seen = np.zeros((4, 4))
    np.add.at(seen, (i, j), 1 / len(g))
    assert np.abs(seen - joint).max() < 4 * 0.5 / np.sqrt(len(g))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 5))
def test_every_coupling_has_the_rows_as_its_margins(seed, k):
    rng = np.random.default_rng(seed)
    p, q = rng.dirichlet(np.ones(k), size=2)
    p[rng.integers(k)] = 0.0
    p /= p.sum()
    for kind in ("monotone", "gumbel", "independent"):
        joint = coupled_rows(p, q, np.array(False), kind)
        np.testing.assert_allclose(joint.sum(1), p, atol=1e-10)
        np.testing.assert_allclose(joint.sum(0), q, atol=1e-10)
        same = coupled_rows(p, p, np.array(True), kind)
        np.testing.assert_allclose(same, np.diag(p), atol=1e-12)


def test_causes_of_a_noisy_or_keep_their_inhibitors():
    """Against the network in which the inhibitors are variables and the effect is a gate."""
    bn, explicit = mk.BayesianNetwork(), mk.BayesianNetwork()
    for m in (bn, explicit):
        m.add("a", p=[0.6, 0.4])
        m.add("b", parents=["a"], p=[[0.7, 0.3], [0.2, 0.8]])
    bn.add("y", mk.local.NoisyOr({"a": 0.8, "b": 0.5}, leak=0.1))
    for name, on in (("ia", 0.8), ("ib", 0.5), ("leak", 0.1)):
        explicit.add(name, p=[1 - on, on])
    explicit.add("y", lambda a, b, ia, ib, leak: int((a and ia) or (b and ib) or leak))
    for facts in ({"a": 0, "b": 1, "y": 1}, {"y": 0, "b": 1}, {"a": 1, "b": 0, "y": 1}):
        for do in ({"a": 1, "b": 0}, {"a": 1 - facts.get("a", 0), "b": 1}):
            ours = bn.counterfactual("y", given=facts, do=do)
            np.testing.assert_allclose(
                ours.values, explicit.counterfactual("y", given=facts, do=do).values, atol=1e-12
            )


def test_linear_gaussian_counterfactuals_equal_conditioning_of_the_joint_of_both_worlds():
    rng = np.random.default_rng(3)
    names = list("abcd")
    b = np.tril(rng.normal(size=(4, 4)), -1)
    bias, sd = rng.normal(size=4), rng.uniform(0.5, 2, size=4)
    m = mk.BayesianNetwork()
    for i, n in enumerate(names):
        m.add(n, mk.LinearGaussian(bias[i], {names[j]: b[i, j] for j in range(i)}, sd[i] ** 2))
    cut = b.copy()
    cut[1] = 0.0
    one, two = np.linalg.inv(np.eye(4) - b), np.linalg.inv(np.eye(4) - cut)
    noise = np.diag(sd) @ np.diag(sd)
    set_noise = noise.copy()
    set_noise[1] = set_noise[:, 1] = 0.0
    set_bias = bias.copy()
    set_bias[1] = 2.5
    mean, star = one @ bias, two @ set_bias
    seen = [0, 3]
    k = (two @ set_noise @ one.T)[:, seen] @ np.linalg.inv((one @ noise @ one.T)[np.ix_(seen, seen)])
    facts = {"a": 0.7, "d": -1.2}
    expected = star + k @ (np.array([0.7, -1.2]) - mean[seen])
    spread = two @ set_noise @ two.T - k @ (two @ set_noise @ one.T)[:, seen].T
    answer = m.counterfactual(["c", "d"], given=facts, do={"b": 2.5})
    np.testing.assert_allclose([answer.mean("c"), answer.mean("d")], expected[2:], atol=1e-8)
    np.testing.assert_allclose(answer.covariance(["c", "d"]), spread[2:, 2:], atol=1e-8)


def test_mixed_networks_share_states_and_noises_between_the_worlds():
    m = mk.BayesianNetwork()
    m.add("kind", {"a": 0.3, "b": 0.7})
    m.add("x", mk.LinearGaussian(0, {}, 1))
    m.add(
        "y",
        {"a": mk.LinearGaussian(0, {"x": 1}, 1), "b": mk.LinearGaussian(5, {"x": -1}, 4)},
        parents=["kind"],
    )
    answer = m.counterfactual("y", given={"x": 1.0, "y": 2.0}, do={"x": 3.0})
    like = np.array([0.3 * np.exp(-0.5), 0.7 * np.exp(-0.5) / 2])
    weights = like / like.sum()
    assert answer.mean() == pytest.approx(weights @ [4.0, 0.0], abs=1e-8)
    assert answer.sd() == pytest.approx(4.0 * np.sqrt(weights[0] * weights[1]), abs=1e-6)


def test_facts_that_tell_nothing_about_the_noises_need_no_mechanism():
    bn = mk.BayesianNetwork("z->x->y; z->y", tables="random", seed=1)
    answer = bn.counterfactual("y", given={"z": 1}, do={"x": 0})
    assert answer.allclose(bn.do(x=0).query("y", given={"z": 1}))
    assert bn.counterfactual("y", do={"x": 0}).allclose(bn.do(x=0).query("y"))


def test_an_intervention_that_changes_nothing_answers_as_the_query():
    bn = mk.BayesianNetwork("z->x->y; z->y->w", tables="random", seed=1)
    for kind in ("monotone", "gumbel", "independent"):
        same = bn.counterfactual("y", given={"x": 1, "w": 0}, do={"x": 1}, mechanism=kind)
        assert same.allclose(bn.query("y", given={"x": 1, "w": 0}))


def test_soft_evidence_and_random_interventions_are_facts_and_actions_too():
    bn = xor_model()
    soft = bn.counterfactual("y", given={"w": 0, "z": [0.2, 0.6]}, do={"w": 1})
    assert soft[1] == pytest.approx(0.75)
    drawn = bn.counterfactual("y", given={"w": 0, "z": 1}, do={"w": [0.75, 0.25]})
    assert drawn[1] == pytest.approx(0.25)


def test_targets_that_the_intervention_does_not_reach_keep_their_facts():
    bn = mk.BayesianNetwork("a->b->c", tables="random", seed=0)
    joint = bn.counterfactual(["a", "b"], given={"c": 1}, do={"b": 0})
    assert joint(b=0) == pytest.approx(1.0)
    assert joint.marginal("a").allclose(bn.query("a", given={"c": 1}))


def test_wrong_questions_get_one_sentence():
    bn = xor_model()
    with pytest.raises(UnknownVariable):
        bn.counterfactual("y", given={"q": 1}, do={"w": 1})
    with pytest.raises(UnknownVariable):
        bn.counterfactual("y", given={}, do={"ww": 1})
    with pytest.raises(InvalidArgument, match="did you mean 'monotone'"):
        mk.BayesianNetwork("a->b", tables="random", seed=0).counterfactual(
            "b", given={"b": 1}, do={"a": 1}, mechanism="monoton"
        )
    with pytest.raises(ImpossibleEvidence):
        bn.counterfactual("y", given={"w": 0, "y": 1}, do={"w": 1})


def test_a_changed_table_is_not_answered_from_memory():
    bn = xor_model()
    before = bn.counterfactual("y", given={"z": 1}, do={"w": 1})[1]
    bn.replace("y", lambda z, w: z & (1 - w))
    assert before == 1.0
    assert bn.counterfactual("y", given={"z": 1}, do={"w": 1})[1] == 0.0


@pytest.mark.parametrize("seed", range(4))
def test_mixed_networks_agree_with_weighted_draws_of_both_worlds(seed):
    """A cause k of a treatment t (by its quantile), of x given t and of y; k is changed, y was seen."""
    rng = np.random.default_rng(seed)
    p, q = rng.uniform(0.2, 0.8), rng.uniform(0.1, 0.9, 2)
    b, s, w = rng.normal(size=(2, 2)), rng.uniform(0.5, 1.5, size=2), rng.normal(size=2)
    m = mk.BayesianNetwork()
    m.add("k", p=[1 - p, p])
    m.add("t", parents=["k"], p=[[1 - a, a] for a in q])
    m.add("x", {i: mk.LinearGaussian(b[i, 0], {}, s[i] ** 2) for i in (0, 1)}, parents=["t"])
    m.add("y", {i: mk.LinearGaussian(b[i, 1], {"x": w[i]}, 1.0) for i in (0, 1)}, parents=["k"])
    answer = m.counterfactual("y", given={"y": 0.3}, do={"k": 1}, mechanism="monotone")
    n = 200_000
    k, u, e = (rng.random(n) < p).astype(int), rng.random(n), rng.normal(size=n)
    worlds = []
    for cause in (k, np.ones(n, dtype=int)):
        t = (u >= 1 - q[cause]).astype(int)
        worlds.append(b[cause, 1] + w[cause] * (b[t, 0] + s[t] * e))
    weights = np.exp(-0.5 * (0.3 - worlds[0]) ** 2)
    weights /= weights.sum()
    drawn = worlds[1] + 0.3 - worlds[0]
    mean = weights @ drawn
    sd = np.sqrt(weights @ (drawn - mean) ** 2)
    assert "monotone for t" in answer.info.note
    assert answer.mean() == pytest.approx(mean, abs=5 * sd / np.sqrt(1 / (weights**2).sum()))
    assert answer.sd() == pytest.approx(sd, rel=0.02)
