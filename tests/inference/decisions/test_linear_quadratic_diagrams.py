"""Diagrams of numbers against Riccati's recursion, the optimum over all linear rules, closed forms and draws."""

import numpy as np
import pytest
from scipy.linalg import solve_discrete_are
from scipy.optimize import minimize

import markovia as mk
from markovia.control import NumberRule


def regulator(steps, a=1.1, b=0.7, q=1.0, r=0.3, noise=0.2, mean=3.0, variance=0.0, seen=0.0):
    """Return an unrolled regulator of one state, its value and its gains by Riccati's recursion."""
    bn = mk.BayesianNetwork()
    bn.add("x0", mk.LinearGaussian(mean, {}, variance))
    for t in range(steps):
        bn.add(f"u{t}", mk.Decision(), parents=[f"x{t}"])
        bn.add(f"x{t + 1}", mk.LinearGaussian(0, {f"x{t}": a, f"u{t}": b}, noise))
        bn.add(f"c{t}", mk.Utility(mk.Quadratic({f"x{t + 1}": -q, f"u{t}": -r})))
    p, gains, constant = q, [], 0.0
    for _ in range(steps):
        constant += p * noise
        gains.insert(0, p * a * b / (r + b * b * p))
        p = q + a * a * p - (a * b * p) ** 2 / (r + b * b * p)
    return bn, -((p - q) * (mean**2 + variance) + constant), gains


@pytest.mark.parametrize("memory", ["drawn", "perfect"])
@pytest.mark.parametrize(("noise", "variance"), [(0.2, 1.0), (0.2, 0.0), (0.0, 0.0), (1e-9, 0.0), (1e6, 4.0)])
def test_an_unrolled_regulator_is_riccatis(noise, variance, memory):
    bn, value, gains = regulator(6, noise=noise, variance=variance)
    policy = bn.decide(memory=memory)
    assert policy.value == pytest.approx(value, rel=1e-10)
    assert policy.info.exact
    assert policy.gap == 0.0
    for t, gain in enumerate(gains):
        assert policy[f"u{t}"].coefficients[f"x{t}"] == pytest.approx(-gain, rel=1e-8)
        assert policy.act(f"u{t}", **{f"x{t}": 2.0}) == pytest.approx(-2.0 * gain, rel=1e-6, abs=1e-6)
    assert bn.follow(policy).expected_utility() == pytest.approx(value, rel=1e-10)


def test_the_first_gain_of_a_long_horizon_is_the_stationary_one():
    bn, _, _ = regulator(40)
    p = float(solve_discrete_are([[1.1]], [[0.7]], [[1.0]], [[0.3]])[0, 0])
    assert bn.decide()["u0"].coefficients["x0"] == pytest.approx(-1.1 * 0.7 * p / (0.3 + 0.49 * p), rel=1e-9)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_another_unit_of_numbers_and_amounts_changes_only_the_units(unit):
    bn, value, gains = regulator(4, q=unit, r=0.3 * unit)
    assert bn.decide().value == pytest.approx(unit * regulator(4)[1], rel=1e-9)
    scaled, value, gains = regulator(4, mean=3 * unit, noise=0.2 * unit**2, variance=unit**2)
    policy = scaled.decide()
    assert policy.value == pytest.approx(value, rel=1e-9)
    assert policy["u2"].coefficients["x2"] == pytest.approx(-gains[2], rel=1e-8)


def random_numbers(seed, recall=False):
    """Return a random diagram of numbers with a concave total; some nodes have no noise."""
    rng = np.random.default_rng(seed)
    bn, names, seen = mk.BayesianNetwork(), [], []
    kinds = ["c"] * 4 + ["d"] * 2
    rng.shuffle(kinds)
    for k, kind in enumerate(kinds):
        name, before = f"{kind}{k}", [n for n in names if rng.random() < 0.5]
        if kind == "c":
            variance = 0.0 if seed % 3 == 0 and rng.random() < 0.3 else rng.random() + 0.1
            bn.add(name, mk.LinearGaussian(rng.normal(), {q: rng.normal() for q in before}, variance))
        else:
            if recall:
                before = list(dict.fromkeys([*seen, *before]))
                seen = [*before, name]
            bn.add(name, mk.Decision(), parents=before)
        names.append(name)
    for j in range(3):
        among, w = list(rng.choice(names, 3, replace=False)), rng.normal(size=3)
        terms = {}
        for a in range(3):
            for b in range(a, 3):
                terms[among[a], among[b]] = -w[a] * w[b] * (1 if a == b else 2)
        bn.add(f"u{j}", mk.Utility(mk.Quadratic(terms, {among[0]: rng.normal()}, rng.normal())))
    for d in bn.decisions:
        bn.add(f"e{d}", mk.Utility(mk.Quadratic({d: -0.5})))
    return bn


def best_linear(bn):
    """Return the value of the best linear rules of what each decision sees, by climbing from zero."""
    sizes = [len(bn.parents(d)) + 1 for d in bn.decisions]
    ends = np.cumsum([0, *sizes])

    def lost(v):
        rules = {
            d: NumberRule(bn.variable(d), [bn.variable(q) for q in bn.parents(d)], v[a : b - 1], v[b - 1])
            for d, a, b in zip(bn.decisions, ends, ends[1:], strict=False)
        }
        return -bn.follow(rules).expected_utility()

    return -minimize(lost, np.zeros(ends[-1]), method="BFGS").fun


SIGNALLING = {5, 11, 17}
"""Seeds whose decisions see what others did without knowing what those knew."""


@pytest.mark.parametrize("seed", range(24))
def test_no_linear_rules_are_better(seed):
    bn = random_numbers(seed, recall=seed % 2 == 0)
    if seed in SIGNALLING:
        with pytest.raises(mk.errors.UnsupportedModel, match="signal"):
            bn.decide()
        return
    policy = bn.decide()
    assert bn.follow(policy).expected_utility() == pytest.approx(policy.value, rel=1e-9, abs=1e-9)
    assert policy.value == pytest.approx(best_linear(bn), rel=1e-5, abs=1e-5)
    assert policy.bound >= policy.value - 1e-12


def team():
    """Return two who see the same number with different errors and meet it together."""
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(1, {}, 4))
    for k, error in ((1, 1.0), (2, 3.0)):
        bn.add(f"y{k}", mk.LinearGaussian(0, {"x": 1}, error))
        bn.add(f"u{k}", mk.Decision(), parents=[f"y{k}"])
        bn.add(f"c{k}", mk.Utility(mk.Quadratic({f"u{k}": -0.5})))
    bn.add(
        "miss",
        mk.Utility(
            mk.Quadratic({"x": -1, "u1": -1, "u2": -1, ("x", "u1"): 2, ("x", "u2"): 2, ("u1", "u2"): -2})
        ),
    )
    return bn


def test_a_team_is_solved_and_knows_less_than_one_who_remembers():
    bn = team()
    policy = bn.decide()
    assert policy.info.exact
    assert policy.info.engine == "linear-quadratic-team"
    assert policy.value == pytest.approx(best_linear(bn), abs=1e-6)
    perfect = bn.decide(memory="perfect", order=["u1", "u2"])
    assert policy.bound == pytest.approx(perfect.value)
    assert perfect.value > policy.value + 1e-3
    assert set(perfect["u2"].coefficients) == {"y1", "u1", "y2"}
    assert perfect.value == pytest.approx(bn.follow(perfect).expected_utility())


def test_no_curved_rule_of_a_team_is_better_in_the_first_order():
    bn = team()
    rows = bn.follow(bn.decide()).sample(200_000, seed=1)
    x, u1, u2 = (rows[n].to_numpy() for n in ("x", "u1", "u2"))
    for own, y in ((u1, rows["y1"].to_numpy()), (u2, rows["y2"].to_numpy())):
        slope = 2 * (x - u1 - u2) - own  # of the total in this choice
        for bend in (np.sin(y), y**2, np.sign(y - 1)):
            push = slope * bend
            assert abs(push.mean()) < 4 * push.std() / np.sqrt(len(push))


def test_what_is_known_before_counts():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(0, {}, 4))
    bn.add("hint", mk.LinearGaussian(0, {"x": 1}, 4))
    bn.add("seen", mk.LinearGaussian(0, {"x": 1}, 1))
    bn.add("u", mk.Decision(), parents=["seen"])
    bn.add("miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 2})))
    assert bn.decide().value == pytest.approx(-0.8)
    known = bn.decide({"hint": 6.0})  # x is N(3, 2) before anything is seen
    assert known.value == pytest.approx(-2 / 3)
    assert known.act("u", seen=0.0) == pytest.approx(1.0)
    assert known.act("u", seen=3.0) == pytest.approx(3.0)
    assert bn.follow(known).expected_utility(given={"hint": 6.0}) == pytest.approx(-2 / 3)
    assert bn.decide({"u": 1.0, "seen": 2.0}).value == pytest.approx(-(0.8 + (1.6 - 1) ** 2))
    late = bn.copy()
    late.add("after", mk.LinearGaussian(0, {"u": 1}, 1))
    with pytest.raises(mk.errors.InvalidEvidence, match="descends"):
        late.decide({"after": 1.0})


def test_impossible_numbers_are_refused():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(2, {}, 0))
    bn.add("u", mk.Decision())
    bn.add("miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 2})))
    assert bn.decide({"x": 2.0}).act("u") == pytest.approx(2.0)
    with pytest.raises(mk.errors.ImpossibleEvidence):
        bn.decide({"x": 3.0})


@pytest.mark.parametrize("form", [{"u": 1.0}, {("x", "u"): 1.0}, {"u": -1.0, ("u", "v"): -2.0, "v": -0.5}])
def test_totals_that_are_not_concave_are_refused(form):
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian())
    for d in ("u", "v"):
        bn.add(d, mk.Decision(), parents=["x"])
    bn.add("total", mk.Utility(mk.Quadratic(form)))
    with pytest.raises(mk.errors.InvalidArgument, match="concave"):
        bn.decide()


def test_a_decision_that_matters_to_nothing_is_zero():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian())
    for d in ("u", "v"):
        bn.add(d, mk.Decision(), parents=["x"])
    bn.add("total", mk.Utility(mk.Quadratic({"u": -1, ("u", "x"): 2})))
    policy = bn.decide()
    assert policy.act("v", x=3.0) == 0.0
    assert policy.act("u", x=3.0) == pytest.approx(3.0)
    assert policy.value == pytest.approx(1.0)


def test_signals_are_refused_and_memory_cures_them():
    bn = mk.BayesianNetwork()  # Witsenhausen's
    bn.add("x", mk.LinearGaussian(0, {}, 25))
    bn.add("u", mk.Decision(), parents=["x"])
    bn.add("moved", mk.LinearGaussian(0, {"x": 1, "u": 1}, 0))
    bn.add("y", mk.LinearGaussian(0, {"moved": 1}, 1))
    bn.add("v", mk.Decision(), parents=["y"])
    bn.add("cost", mk.Utility(mk.Quadratic({"u": -0.04})))
    bn.add("miss", mk.Utility(mk.Quadratic({"moved": -1, "v": -1, ("moved", "v"): 2})))
    with pytest.raises(mk.errors.UnsupportedModel, match="signal"):
        bn.decide()
    assert bn.decide(memory="perfect").value == pytest.approx(0.0, abs=1e-9)


def test_a_network_with_its_rules_is_an_ordinary_one():
    bn = team()
    made = bn.follow(bn.decide())
    assert made.decisions == []
    rows = made.sample(200_000, seed=3)
    total = -((rows["x"] - rows["u1"] - rows["u2"]) ** 2) - 0.5 * rows["u1"] ** 2 - 0.5 * rows["u2"] ** 2
    assert made.expected_utility() == pytest.approx(total.mean(), abs=5 * total.std() / np.sqrt(len(rows)))
    assert made.query("u1").mean() == pytest.approx(rows["u1"].mean(), abs=0.05)


@pytest.mark.parametrize("risk", [-0.05, 0.05])
def test_certainty_equivalents_of_numbers_are_those_of_draws(risk):
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(1, {}, 2))
    bn.add("y", mk.LinearGaussian(0, {"x": 1}, 1))
    bn.add("worth", mk.Utility(mk.Quadratic({"x": -1, ("x", "y"): 0.5}, {"y": 1.5}, 2)))
    rows = bn.sample(400_000, seed=0)
    total = np.exp(risk * (-(rows["x"] ** 2) + 0.5 * rows["x"] * rows["y"] + 1.5 * rows["y"] + 2))
    assert bn.expected_utility(risk=risk) == pytest.approx(np.log(total.mean()) / risk, abs=0.03)
    assert bn.expected_utility(risk=1e-7) == pytest.approx(bn.expected_utility(), abs=1e-5)
    bn.replace("worth", mk.Utility(mk.Quadratic({"x": 1})), parents=["x"])
    with pytest.raises(mk.errors.InvalidArgument, match="infinite"):
        bn.expected_utility(risk=1.0)


def test_what_is_open_or_not_linear_is_said():
    bn = team()
    with pytest.raises(mk.errors.IncompleteModel):
        bn.expected_utility()
    with pytest.raises(mk.errors.UnsupportedModel, match="risk"):
        bn.decide(risk=-1.0)
    bn.add("bonus", mk.Utility(lambda x: np.maximum(x, 0.0)))
    with pytest.raises(mk.errors.UnsupportedModel, match="'bonus' is not"):
        bn.decide()
