"""Utilities of numbers against closed forms and integrals."""

import numpy as np
import pytest
from scipy import stats

import markovia as mk


def newsvendor(form):
    bn = mk.BayesianNetwork()
    bn.add("season", [0.5, 0.5], states=["low", "high"])
    bn.add("forecast", [[0.8, 0.2], [0.3, 0.7]], states=["low", "high"], parents=["season"])
    bn.add("stock", mk.Decision([5, 10, 15]), parents=["forecast"])
    bn.add(
        "demand",
        {"low": mk.LinearGaussian(6, {}, 4), "high": mk.LinearGaussian(12, {}, 9)},
        parents=["season"],
    )
    bn.add("profit", mk.Utility(form), parents=["stock", "demand"])
    return bn


def sold(stock, mean, sd):
    """Return the mean of min(stock, N(mean, sd))."""
    z = (stock - mean) / sd
    return stock - (stock - mean) * stats.norm.cdf(z) - sd * stats.norm.pdf(z)


def best_of_newsvendor(worth):
    """Return the best value with a table of worths by season and stock."""
    p = np.array([0.5, 0.5])[:, None] * np.array([[0.8, 0.2], [0.3, 0.7]])
    return (p.T @ worth).max(axis=1).sum()


@pytest.mark.slow
@pytest.mark.parametrize("vectorised", [True, False])
def test_a_newsvendor_has_the_profit_of_the_closed_form(vectorised):
    def arrays(stock, demand):
        return 3 * np.minimum(stock, demand) - 2 * stock

    def numbers(stock, demand):
        return 3 * min(stock, demand) - 2 * stock

    bn = newsvendor(arrays if vectorised else numbers)
    policy = bn.decide()
    worth = np.array([[3 * sold(s, m, sd) - 2 * s for s in (5, 10, 15)] for m, sd in ((6, 2), (12, 3))])
    truth = best_of_newsvendor(worth)
    assert not policy.info.exact
    assert "quadrature" in policy.info.note
    assert abs(policy.value - truth) <= max(policy.info.error, 1e-9)
    assert policy.info.error < 1e-4
    assert bn.follow(policy).expected_utility() == pytest.approx(policy.value)


def test_polynomials_are_integrated_to_rounding():
    bn = newsvendor(lambda stock, demand: -((demand - stock) ** 4) / 100 + demand**3 / 50)
    worth = np.array(
        [
            [
                -(((m - s) ** 4 + 6 * (m - s) ** 2 * v + 3 * v**2) / 100) + (m**3 + 3 * m * v) / 50
                for s in (5, 10, 15)
            ]
            for m, v in ((6, 4), (12, 9))
        ]
    )
    policy = bn.decide()
    assert policy.value == pytest.approx(best_of_newsvendor(worth), rel=1e-12)
    assert policy.info.error < 1e-9


def test_quadratic_utilities_of_numbers_are_exact():
    bn = mk.BayesianNetwork()
    bn.add("kind", [0.3, 0.7])
    bn.add("act", mk.Decision(2), parents=["kind"])
    bn.add("x", {k: mk.LinearGaussian(k, {}, 1 + k) for k in (0, 1)}, parents=["kind"])
    bn.add("y", {a: mk.LinearGaussian(a, {"x": 1.0 - 2 * a}, 0.5) for a in (0, 1)}, parents=["act"])
    bn.add("worth", mk.Utility(mk.Quadratic({"y": -1, ("x", "y"): 2}, {"x": 1}, 3)))
    policy = bn.decide()
    value = 0.0
    for kind, p in ((0, 0.3), (1, 0.7)):
        m, v = kind, 1 + kind
        best = []
        for act in (0, 1):
            w = 1 - 2 * act
            my, vy, cov = act + w * m, w * w * v + 0.5, w * v
            best.append(-(my**2 + vy) + 2 * (m * my + cov) + m + 3)
        value += p * max(best)
    assert policy.info.exact
    assert policy.value == pytest.approx(value, rel=1e-12)
    assert bn.decide({"kind": 1}).value == pytest.approx(
        bn.follow(policy).expected_utility(given={"kind": 1})
    )


def test_forms_of_utilities_of_numbers_are_averaged_whole():
    bn = newsvendor(lambda stock, demand: demand - stock)
    bn.add("calm", mk.Utility(lambda demand: demand / 10))
    bn.add("total", mk.Utility(lambda profit, calm: profit * calm))
    worth = np.array([[(m * m + v - s * m) / 10 for s in (5, 10, 15)] for m, v in ((6, 4), (12, 9))])
    assert bn.decide().value == pytest.approx(best_of_newsvendor(worth), rel=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_several_numbers_are_integrated_or_drawn(size):
    bn = mk.BayesianNetwork()
    bn.add("act", mk.Decision(2))
    names = [f"x{k}" for k in range(size)]
    for k, name in enumerate(names):
        before = {names[k - 1]: 0.5} if k else {}
        bn.add(name, {a: mk.LinearGaussian(a * 0.1, before, 1) for a in (0, 1)}, parents=["act"])
    text = "lambda " + ", ".join(names) + ": np.exp(0.5 * (" + " + ".join(names) + "))"
    bn.add("u", mk.Utility(eval(text, {"np": np})))
    mean, variance = 0.0, 0.0
    weight = 0.0
    for _ in range(size):  # the sum is a sum of independent noises with weights 1, 1.5, 1.75, ...
        weight = 1 + 0.5 * weight
        mean, variance = mean + 0.1 * weight, variance + weight**2
    truth = np.exp(0.5 * mean + 0.125 * variance)
    policy = bn.decide()
    assert policy.act("act") == 1
    assert not policy.info.exact
    if size < 4:
        assert policy.value == pytest.approx(truth, rel=1e-6)
    else:
        assert "draws" in policy.info.note
        assert abs(policy.value - truth) < 5 * policy.info.error
        assert policy.info.error < 0.05 * truth


@pytest.mark.slow
def test_numbers_of_other_distributions_are_drawn():
    import markovia.distributions as dist

    bn = mk.BayesianNetwork()
    bn.add("season", [0.5, 0.5], states=["low", "high"])
    bn.add("stock", mk.Decision([5, 10, 15]))
    bn.add("demand", lambda season: dist.Gamma(4.0 if season == "low" else 8.0, 1.0))
    bn.add("profit", mk.Utility(lambda stock, demand: 3 * np.minimum(stock, demand) - 2 * stock))
    policy = bn.decide()
    truth = np.mean([3 * stats.gamma(a).expect(lambda d: np.minimum(5, d)) - 10 for a in (4, 8)])
    assert policy.act("stock") == 5
    assert "draws" in policy.info.note
    assert abs(policy.value - truth) < 4 * policy.info.error


def test_a_number_that_is_decided_from_outside_is_worked_in():
    bn = newsvendor(lambda stock, demand: demand - stock)
    bn.add("price", mk.Decision())
    bn.add("sales", mk.Utility(lambda price, demand: price * demand))
    policy = bn.decide({"price": 2.0})
    assert policy.value == pytest.approx(3 * 9 - 5, rel=1e-12)


def test_what_cannot_be_folded_is_said_with_the_cure():
    bn = newsvendor(lambda stock, demand: demand - stock)
    with pytest.raises(mk.errors.UnsupportedModel, match="known beside states"):
        bn.decide({"demand": 3.0})
    with pytest.raises(mk.errors.UnsupportedModel, match="risk"):
        bn.decide(risk=-0.1)
    with pytest.raises(mk.errors.IncompleteModel):
        bn.expected_utility()
    sees = bn.copy()
    sees.add("late", mk.Decision(2), parents=["demand"])
    with pytest.raises(mk.errors.UnsupportedModel, match="Discretizer"):
        sees.decide()
    priced = bn.copy()
    priced.add("price", mk.Decision())
    priced.add("sales", mk.Utility(lambda price, demand: price * demand))
    with pytest.raises(mk.errors.UnsupportedModel, match="some numbers as states"):
        priced.decide()
    wild = newsvendor(lambda stock, demand: np.log(demand - stock))
    with pytest.raises(mk.errors.InvalidArgument, match="not finite"), np.errstate(all="ignore"):
        wild.decide()
