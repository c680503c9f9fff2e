"""Total variation, Jensen-Shannon and the variational bound on information, on tables and samples."""

from itertools import chain, combinations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import jensenshannon

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning import (
    conditional_mutual_information,
    information_lower_bound,
    jensen_shannon,
    kl_divergence,
    mutual_information,
    mutual_information_of_table,
    total_variation,
)

P, Q = [0.5, 0.5, 0.0], [0.0, 0.25, 0.75]


def test_the_worked_tables_have_their_divergences():
    assert jensen_shannon(P, Q) == pytest.approx(0.454454, abs=5e-7)
    assert total_variation(P, Q) == pytest.approx(0.75)
    # two parallel lines share no point
    assert jensen_shannon([1, 0], [0, 1]) == pytest.approx(np.log(2), rel=1e-15)
    assert kl_divergence([1, 0], [0, 1]) == np.inf
    assert total_variation([1, 0], [0, 1]) == 1.0
    assert (jensen_shannon(P, P), total_variation(P, P)) == (0.0, 0.0)


def test_divergences_are_their_definitions_on_random_tables():
    rng = np.random.default_rng(0)
    for shape in [(2,), (6,), (2, 3)]:
        p, q = (rng.dirichlet(np.full(np.prod(shape), 0.5)).reshape(shape) for _ in range(2))
        gaps = (p - q).ravel()
        events = chain.from_iterable(combinations(range(gaps.size), k) for k in range(gaps.size + 1))
        assert total_variation(p, q) == pytest.approx(max(gaps[list(e)].sum() for e in events))
        assert jensen_shannon(p, q, base=2) == pytest.approx(jensenshannon(p.ravel(), q.ravel(), base=2) ** 2)
        assert jensen_shannon(p, q) == pytest.approx(jensen_shannon(q, p))


def test_factors_and_posteriors_meet_by_the_names_of_their_axes():
    rng = np.random.default_rng(1)
    values, others = rng.random((2, 3)), rng.random((2, 3))
    f, g = mk.Factor(["a", "b"], values), mk.Factor(["a", "b"], others)
    p, q = values / values.sum(), others / others.sum()
    turned = g.transpose(["b", "a"])
    for measure in (total_variation, jensen_shannon, kl_divergence):
        assert measure(f, turned) == pytest.approx(measure(p, q))
        assert measure(f, q) == pytest.approx(measure(p, q))
    assert kl_divergence(f, turned) == pytest.approx(f.kl(g))
    bn = mk.examples.asia()
    smoker, anybody = bn.query("lung", given={"smoke": "yes"}), bn.query("lung")
    assert total_variation(smoker, anybody) == pytest.approx(abs(smoker["yes"] - anybody["yes"]))
    with pytest.raises(InvalidArgument, match="the same variables with the same states"):
        total_variation(bn.query("tub"), anybody)
    with pytest.raises(InvalidArgument, match=r"shape \(3,\) and q has shape \(2,\)"):
        total_variation(P, [0.5, 0.5])
    with pytest.raises(InvalidArgument, match="p sums to 2"):
        jensen_shannon([1, 1], [0.5, 0.5])


def test_samples_are_compared_by_the_shares_of_their_states():
    x = pd.DataFrame({"c": ["r", "r", "g", "b"], "n": [1, 2, 1, 1]})
    y = pd.DataFrame(
        {"n": [1, 1, 1], "c": ["g", "g", "y"]}
    )  # columns in another order, another length, another state
    keys = [("r", 1), ("r", 2), ("g", 1), ("b", 1), ("y", 1)]
    p = np.array([sum((c, n) == k for c, n in zip(x.c, x.n, strict=True)) for k in keys]) / 4
    q = np.array([sum((c, n) == k for c, n in zip(y.c, y.n, strict=True)) for k in keys]) / 3
    assert total_variation(x, y, samples=True) == pytest.approx(total_variation(p, q))
    assert jensen_shannon(x, y, samples=True) == pytest.approx(jensen_shannon(p, q))
    assert total_variation(x.sample(frac=1, random_state=0), y, samples=True) == pytest.approx(
        total_variation(p, q)
    )
    assert total_variation(["1", "2"], [1, 2], samples=True) == 1.0  # text and numbers are different states
    with pytest.raises(InvalidArgument, match="continuous, and two samples of numbers"):
        total_variation([0.5, 1.5], [0.5, 2.5], samples=True)
    with pytest.raises(InvalidArgument, match="2 columns and y has 1"):
        total_variation(x, [1, 2], samples=True)


def test_the_bound_is_the_information_less_the_divergence_of_the_guess():
    joint = np.array([[0.4, 0.1], [0.1, 0.4]])
    assert information_lower_bound(joint, joint / joint.sum(axis=0)) == pytest.approx(0.192745, abs=5e-7)
    assert information_lower_bound(joint, np.full((2, 2), 0.5)) == 0.0
    rng = np.random.default_rng(2)
    for _ in range(5):
        p, q = rng.dirichlet(np.ones(12)).reshape(3, 4), rng.dirichlet(np.ones(3), size=4).T
        gap = sum(p[:, x].sum() * kl_divergence(p[:, x] / p[:, x].sum(), q[:, x]) for x in range(4))
        assert information_lower_bound(p, q) == pytest.approx(mutual_information_of_table(p) - gap)
    named = mk.Factor(["x", "c"], (joint / joint.sum(axis=0)).T)
    assert information_lower_bound(mk.Factor(["c", "x"], joint), named, base=2) == pytest.approx(
        0.278072, abs=5e-7
    )
    assert information_lower_bound(joint, [[1, 1], [0, 0]]) == -np.inf
    with pytest.raises(InvalidArgument, match="sums to one over c"):
        information_lower_bound(joint, [[0.9, 0.1], [0.9, 0.1]])
    # rows, and what a decoder said of each row's own code
    c, x = [0, 0, 1, 1, 1], [0, 1, 1, 1, 0]
    true = [np.mean([a == b for a, d in zip(c, x, strict=True) if d == e]) for b, e in zip(c, x, strict=True)]
    assert information_lower_bound(c, true, samples=True) == pytest.approx(mutual_information(c, x))
    with pytest.raises(InvalidArgument, match="a probability for each row"):
        information_lower_bound(c, true[:4], samples=True)


@pytest.mark.parametrize("unit", [1e-9, 1.0, 1e9])
def test_conditional_information_of_numbers_is_that_of_gaussians_in_any_unit(unit):
    rng = np.random.default_rng(3)
    z, e, f = rng.normal(size=(3, 4000))
    a, b = z + e, z + f
    assert conditional_mutual_information(unit * a, b, unit * z) == pytest.approx(0.0, abs=0.02)
    # var(z | b) is 1/2, so log(1 + 1/2) / 2
    assert conditional_mutual_information(unit * a, z, b) == pytest.approx(0.2027, abs=0.02)
    if unit == 1.0:
        order = rng.permutation(4000)
        again = conditional_mutual_information(a[order], z[order], b[order])
        assert again == pytest.approx(conditional_mutual_information(a, z, b), abs=1e-9)
        same = conditional_mutual_information(a, b, np.full(4000, 0.1))
        assert same == pytest.approx(mutual_information(a, b))
        with pytest.raises(InvalidArgument, match="leave it out"):
            conditional_mutual_information(a, b, z, correction="miller-madow")
