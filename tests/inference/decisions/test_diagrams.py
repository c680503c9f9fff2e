"""Diagrams against the enumeration of all policies, and the worked examples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import markovia as mk
from random_diagrams import best_policy, joint_outcomes, policies, random_diagram

MOST = 20_000


def solved(bn, **how):
    policy = bn.decide(**how)
    made = bn.follow(policy)
    given_names = how.get("given")
    risk = how.get("risk", 0.0)
    assert made.expected_utility(given=given_names, risk=risk) == pytest.approx(
        policy.value, rel=1e-9, abs=1e-9
    )
    return policy


@pytest.mark.parametrize("seed", range(120))
def test_the_value_is_that_of_the_best_of_all_policies(seed):
    kind = seed % 4
    bn = random_diagram(
        seed, n_chance=2 + seed % 3, n_decisions=1 + seed % 3, n_utilities=1 + seed % 4, zeros=kind == 1,
        restricted=kind == 2,
    )  # fmt: skip
    if policies(bn) > MOST:
        pytest.skip("too many policies to try")
    policy = solved(bn)
    truth = best_policy(bn)
    assert policy.info.exact
    assert policy.value == pytest.approx(truth, rel=1e-9, abs=1e-9)
    assert policy.bound >= truth - 1e-9 * abs(truth)
    assert policy.gap == 0.0


@pytest.mark.parametrize("seed", range(40))
def test_perfect_recall_is_the_drawn_diagram_with_all_arcs(seed):
    bn = random_diagram(1000 + seed, n_chance=2, n_decisions=2, recall=True)
    if policies(bn) > MOST:
        pytest.skip("too many policies to try")
    policy = solved(bn)
    assert policy.info.exact
    assert policy.value == pytest.approx(best_policy(bn), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("risk", [0.3, -0.3, 0.01, -0.01])
@pytest.mark.parametrize("seed", range(20))
def test_exponential_utility_is_that_of_the_best_of_all_policies(seed, risk):
    bn = random_diagram(2000 + seed, n_decisions=1 + seed % 2, zeros=seed % 2 == 1, restricted=seed % 5 == 0)
    if policies(bn) > MOST:
        pytest.skip("too many policies to try")
    policy = solved(bn, risk=risk)
    assert policy.value == pytest.approx(best_policy(bn, risk), rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("seed", range(30))
def test_what_is_known_before_counts(seed):
    bn = random_diagram(3000 + seed, zeros=seed % 3 == 0)
    dag = bn.graph
    free = [
        n for n in bn.variables if n[0] == "c" and not any(n in dag.descendants([d]) for d in bn.decisions)
    ]
    if not free or policies(bn) > MOST:
        pytest.skip("nothing to know")
    evidence = {free[-1]: 1}
    if bn.follow({d: bn.decide()[d] for d in bn.decisions}).log_evidence(evidence) == -np.inf:
        with pytest.raises(mk.errors.ImpossibleEvidence):
            bn.decide(given=evidence)
        return
    policy = solved(bn, given=evidence)
    assert policy.value == pytest.approx(best_policy(bn, evidence=evidence), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("risk", [0.2, -0.2])
@pytest.mark.parametrize("seed", [3, 4, 6, 7, 9, 11])
def test_certainty_equivalents_are_those_given_what_is_known(seed, risk):
    bn = random_diagram(seed)
    free = [
        n
        for n in bn.variables
        if n[0] == "c" and not any(n in bn.graph.descendants([d]) for d in bn.decisions)
    ]
    if not free or policies(bn) > MOST:
        pytest.skip("nothing to know")
    evidence = {free[-1]: 1}
    truth = best_policy(bn, risk, evidence)
    assert solved(bn, given=evidence, risk=risk).value == pytest.approx(truth, rel=1e-8, abs=1e-8)


def team(allowed=None):
    """Two who see different things and choose at once: no order of solution."""
    bn = mk.BayesianNetwork()
    bn.add("state", [0.3, 0.3, 0.4])
    for who in "ab":
        bn.add(f"seen {who}", [[0.8, 0.2], [0.3, 0.7], [0.5, 0.5]], parents=["state"])
        bn.add(who, mk.Decision(3, allowed=allowed), parents=[f"seen {who}"])
    worth = np.random.default_rng(5).normal(size=(3, 3, 3)) * 10
    bn.add("worth", mk.Utility(worth), parents=["state", "a", "b"])
    return bn


def test_updates_and_search_keep_to_what_is_allowed():
    everything = team().decide()
    assert everything.info.engine != "strong-elimination"
    assert everything.value == pytest.approx(best_policy(team()))
    taken = {int(r.argmax()) for r in everything["a"].values} | {
        int(r.argmax()) for r in everything["b"].values
    }
    for banned in taken:
        rule = np.ones((2, 3), dtype=bool)
        rule[:, banned] = False
        bn = team(rule)
        policy = solved(bn)
        assert policy.value == pytest.approx(best_policy(bn))
        assert policy.value < everything.value
        assert not any(policy[d].values[:, banned].any() for d in "ab")


@given(st.integers(0, 10**6), st.sampled_from([1e-9, 1e-3, 1e6, 1e9]))
def test_another_unit_scales_the_value_and_leaves_the_policy(seed, unit):
    bn = random_diagram(seed, n_chance=3, n_decisions=2)
    scaled = bn.copy()
    for u in bn.utilities:
        scaled.replace(u, mk.Utility(bn[u].worth * unit), parents=bn.parents(u))
    a, b = bn.decide(), scaled.decide()
    assert b.value == pytest.approx(a.value * unit, rel=1e-9)
    assert b.info.exact == a.info.exact


@given(st.integers(0, 10**6))
def test_the_distribution_of_the_total_is_that_of_all_outcomes(seed):
    bn = random_diagram(seed, zeros=seed % 2 == 0)
    policy = bn.decide()
    made = bn.follow(policy)
    _, _, p, u = joint_outcomes(made)
    total = made.utility()
    assert total.probabilities.sum() == pytest.approx(1.0)
    assert total.mean() == pytest.approx(policy.value, rel=1e-9, abs=1e-9)
    assert total.var() == pytest.approx(p @ u**2 - (p @ u) ** 2, rel=1e-7, abs=1e-7)
    order = np.argsort(u)
    for q in (0.05, 0.3):
        below = np.clip(q - np.concatenate([[0.0], np.cumsum(p[order])[:-1]]), 0.0, p[order])
        assert total.cvar(q) == pytest.approx((below @ u[order]) / q, rel=1e-9, abs=1e-9)
    for n in made.utilities:
        alone = made.utility(n)
        assert alone.mean() == pytest.approx(total.attributes[n], rel=1e-9, abs=1e-9)


def wildcatter():
    bn = mk.BayesianNetwork()
    bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    bn.add("test", mk.Decision(["yes", "no"]))
    seismic = {"dry": [0.6, 0.3, 0.1, 0], "wet": [0.3, 0.4, 0.3, 0], "soaking": [0.1, 0.4, 0.5, 0]}
    bn.add(
        "result", lambda oil, test: [0, 0, 0, 1] if test == "no" else seismic[oil],
        states=["none", "open", "closed", "untested"], parents=["oil", "test"],
    )  # fmt: skip
    bn.add("drill", mk.Decision(["yes", "no"]), parents=["test", "result"])
    bn.add("cost", mk.Utility({"yes": -10, "no": 0}), parents=["test"])
    gain = {"dry": -70, "wet": 50, "soaking": 200}
    bn.add("gain", mk.Utility(lambda oil, drill: 0 if drill == "no" else gain[oil]))
    return bn


def pigs(n):
    bn = mk.BayesianNetwork()
    bn.add("h0", [0.9, 0.1], states=["well", "ill"])
    for t in range(n):
        bn.add(f"s{t}", [[0.9, 0.1], [0.2, 0.8]], states=["neg", "pos"], parents=[f"h{t}"])
        bn.add(f"d{t}", mk.Decision(["no", "treat"]), parents=[f"s{t}"])
        bn.add(f"c{t}", mk.Utility([0, -100]), parents=[f"d{t}"])
        rows = [[[0.8, 0.2], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]]]
        bn.add(f"h{t + 1}", rows, states=["well", "ill"], parents=[f"h{t}", f"d{t}"])
    bn.add("sale", mk.Utility([1000, 300]), parents=[f"h{n}"])
    return bn


def test_the_oil_wildcatter():
    bn = wildcatter()
    policy = solved(bn)
    assert policy.value == pytest.approx(22.5)
    assert policy.info.exact
    assert policy.info.engine == "strong-elimination"
    assert policy.act("test") == "yes"
    assert policy.act("drill", test="yes", result="none") == "no"
    assert policy.act("drill", test="yes", result="open") == "yes"
    assert bn.expected_utility({"test": "no", "drill": lambda result: "yes"}) == pytest.approx(20.0)
    assert bn.value_of_information("oil", before="drill") == pytest.approx(32.5)
    paid = bn.value_of_information("oil", before="drill", cost=2.0)
    assert paid == pytest.approx(30.5)
    assert (paid.informed, paid.uninformed, paid.cost) == pytest.approx((55.0, 22.5, 2.0))
    assert bn.decide(risk=0.01).value == pytest.approx(79.7831581505, abs=1e-9)
    assert bn.decide(risk=-0.01).value == pytest.approx(0.0, abs=1e-12)
    without = bn.copy()
    without.replace("drill", mk.Decision(["yes", "no"]), parents=["test"])
    assert without.decide().value == pytest.approx(20.0)
    free = bn.copy()
    free.replace("cost", mk.Utility([0, 0]), parents=["test"])
    assert free.decide().value == pytest.approx(32.5)
    assert bn.query("oil")["wet"] == pytest.approx(0.3)  # does not depend on what is decided


def test_rows_that_do_not_occur_are_no_advice():
    policy = wildcatter().decide()
    assert {"test": "no", "result": "untested"} in policy.unreachable["drill"]
    assert "untested" not in str(policy)
    assert policy.reached["drill"].sum() == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("n", "drawn", "recalled"),
    [(3, 726.8121, 729.225), (4, 702.56347, 705.01246), (10, 653.1872965888, 656.5763462354)],
)
def test_pigs_forget_and_remember(n, drawn, recalled):
    bn = pigs(n)
    policy = bn.decide()
    assert policy.value == pytest.approx(drawn, abs=1e-5)
    assert policy.info.exact
    assert policy.bound == pytest.approx(recalled, abs=1e-5)
    assert bn.decide(memory="perfect").value == pytest.approx(recalled, abs=1e-5)


def test_moments_of_the_pigs():
    bn = pigs(3)
    total = bn.follow(bn.decide()).utility()
    assert total.var() == pytest.approx(114555.661294, abs=1e-4)
    assert total.cvar(0.1) == pytest.approx(152.143, abs=5e-4)


def test_two_decisions_that_see_nothing():
    """The smallest case in which a peer is wrong."""
    bn = mk.BayesianNetwork()
    bn.add("c0", [0.1, 0.9])
    bn.add("c1", [[0.3, 0.7], [0.9, 0.1]], parents=["c0"])
    bn.add("d2", mk.Decision(2))
    bn.add("d3", mk.Decision(2))
    bn.add("u", mk.Utility([[-10, -6], [-2, -17]]), parents=["d2", "c1"])
    assert bn.decide().value == pytest.approx(-4.4)


def test_a_long_chain_of_limited_memory_is_solved_with_a_bound():
    bn = pigs(50)
    policy = bn.decide()
    assert bn.follow(policy).expected_utility() == pytest.approx(policy.value)
    assert policy.bound >= policy.value
    assert policy.gap < np.inf


def test_ties_take_the_first_state_and_are_said():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("d", mk.Decision(["a", "b", "c"]), parents=["x"])
    bn.add("u", mk.Utility([[1, 1, 0], [0, 1, 2]]), parents=["x", "d"])
    policy = bn.decide()
    assert policy.act("d", x=0) == "a"
    assert policy.act("d", x=1) == "c"
    assert policy.ties == {"d": [{"x": 0}]}
    assert "(tie)" in str(policy)


def test_one_state_and_no_parents():
    bn = mk.BayesianNetwork()
    bn.add("d", mk.Decision(["only"]))
    bn.add("u", mk.Utility(7.0))
    bn.add("v", mk.Utility([1.0]), parents=["d"])
    assert bn.decide().value == pytest.approx(8.0)


def test_forbidden_choices_are_never_taken():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5])
    bn.add("d", mk.Decision(["a", "b"], allowed=lambda x: ["b"] if x == 1 else ["a", "b"]), parents=["x"])
    bn.add("u", mk.Utility([-1.0, -5.0]), parents=["d"])
    policy = bn.decide()
    assert policy.act("d", x=0) == "a"
    assert policy.act("d", x=1) == "b"
    assert policy.value == pytest.approx(-3.0)
    with pytest.raises(mk.errors.InvalidArgument, match="not allowed"):
        bn.follow({"d": "a"})


def test_attributes_are_weighed():
    bn = mk.BayesianNetwork()
    bn.add("x", [0.3, 0.7])
    bn.add("d", mk.Decision(2))
    bn.add("cost", mk.Utility([0.0, -3.0]), parents=["d"])
    bn.add("life", mk.Utility([[1.0, 5.0], [2.0, 8.0]]), parents=["x", "d"])
    linear, product = bn.copy(), bn.copy()
    linear.add("total", mk.Utility(lambda cost, life: 2 * cost + life - 1))
    product.add("total", mk.Utility(lambda cost, life: life / (1 - cost)))
    assert linear.decide().value == pytest.approx(max(1.7, 7.1 - 6) - 1)
    assert product.decide().value == pytest.approx(max(1.7, 7.1 / 4))
    assert {a.name for a in linear._diagram(None).amounts} == {"cost", "life", "total"}


def test_what_cannot_be_asked_is_said_in_one_sentence():
    bn = wildcatter()
    e = mk.errors
    with pytest.raises(e.InvalidEvidence, match="descends from 'test'"):
        bn.decide(given={"result": "open"})
    with pytest.raises(e.IncompleteModel, match="not decided"):
        bn.query("result")
    with pytest.raises(e.IncompleteModel, match="not decided"):
        bn.sample(3)
    with pytest.raises(e.UnsupportedModel, match="utility"):
        bn.query("gain")
    with pytest.raises(e.InvalidTable, match="finite"):
        bn.add("bad", mk.Utility([np.inf, 0.0]), parents=["test"])
    with pytest.raises(e.InvalidArgument, match="depends on"):
        bn.value_of_information("result", before="test")
    with pytest.raises(e.InvalidArgument, match="no utility"):
        mk.BayesianNetwork({"a": []}, tables="uniform").decide()
    with pytest.raises(e.CycleError):
        bn.add_edge("result", "test")
    two = mk.BayesianNetwork()
    two.add("a", mk.Decision(2))
    two.add("b", mk.Decision(2))
    two.add("u", mk.Utility([[1, 2], [3, 0]]), parents=["a", "b"])
    with pytest.raises(e.InvalidArgument, match="'a' or 'b'"):
        two.decide(memory="perfect")
    assert two.decide(memory="perfect", order=["b", "a"]).value == pytest.approx(3.0)
    with pytest.raises(e.InvalidArgument, match="every decision once"):
        two.decide(memory="perfect", order=["b"])
