"""Information, expectations, correlations, conflicts and sensitivity in networks with numbers."""

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.integrate import quad
from scipy.stats import norm

import markovia as mk
from gaussian_references import random_network, seeds, some_evidence

STEP = 1e-5


@pytest.fixture
def line():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(1, {}, 4))
    m.add("y", mk.LinearGaussian(0, {"x": 2}, 1))
    m.add("z", mk.LinearGaussian(0, {"y": -1}, 2))
    return m


@pytest.fixture
def mixed():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.3, "b": 0.7})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(2, {}, 4)}, parents=["d"])
    return m


def test_information_between_numbers_is_that_of_their_correlation(line):
    rho = line.correlation("x", "y")
    assert rho == pytest.approx(8 / np.sqrt(4 * 17))
    assert line.mutual_information("x", "y") == pytest.approx(-0.5 * np.log(1 - rho**2))
    assert line.mutual_information("x", "z", given="y") == pytest.approx(0.0, abs=1e-12)
    assert line.partial_correlation("x", "z", given="y") == pytest.approx(0.0, abs=1e-12)
    found = line.information("x", candidates=["y", "z"], base=2)
    assert list(found) == ["y", "z"]
    assert found["y"] == pytest.approx(-0.5 * np.log2(1 - rho**2))
    assert found.entropy == pytest.approx(0.5 * np.log2(2 * np.pi * np.e * 4))
    after = line.information("x", given={"y": 1.0}, candidates=["y", "z"])
    assert after["y"] == 0.0
    assert after["z"] == pytest.approx(0.0, abs=1e-12)


def test_information_between_a_state_and_a_number_is_the_integral(mixed):
    def density(x):
        return 0.3 * norm.pdf(x), 0.7 * norm.pdf(x, 2, 2)

    def term(x):
        a, b = density(x)
        return a * np.log(a / (a + b) / 0.3) + b * np.log(b / (a + b) / 0.7)

    expected = quad(term, -15, 20, epsabs=1e-12, limit=500)[0]
    assert mixed.mutual_information("d", "x") == pytest.approx(expected, abs=1e-8)
    assert mixed.information("d")["x"] == pytest.approx(expected, abs=1e-8)
    assert mixed.information("x")["d"] == pytest.approx(expected, abs=1e-8)


def test_an_expectation_is_exact_for_polynomials_and_close_for_smooth_functions(line, mixed):
    assert line.expectation(lambda x, y: x * y) == pytest.approx(8 + 1 * 2)
    assert line.expectation(lambda x: x**3) == pytest.approx(1 + 3 * 4)
    assert line.expectation(lambda x: np.exp(x / 4)) == pytest.approx(np.exp(0.25 + 4 / 32), rel=1e-10)
    assert mixed.expectation(lambda x: x**2) == pytest.approx(0.3 * 1 + 0.7 * 8)
    assert mixed.expectation(lambda d, x: x if d == "a" else 0.0, given=None) == pytest.approx(0.0, abs=1e-12)
    big = mk.BayesianNetwork()
    for k in range(14):
        big.add(f"x{k}", mk.LinearGaussian())
    with pytest.raises(mk.MarkoviaError, match="too many evaluations"):
        big.expectation(lambda *x: x[0], targets=[f"x{k}" for k in range(14)])


def test_findings_that_do_not_fit_are_in_conflict(line):
    agree, disagree = float(line.conflict({"x": 1.0, "y": 2.0})), float(line.conflict({"x": 4.0, "y": -8.0}))
    assert agree < 0 < disagree
    logs = [line.log_evidence({n: v}) for n, v in (("x", 4.0), ("y", -8.0))]
    assert disagree == pytest.approx(sum(logs) - line.log_evidence({"x": 4.0, "y": -8.0}))


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_derivatives_of_a_posterior_mean_are_those_of_differences(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(2, 6)))
    evidence = some_evidence(network, rng)
    free = [n for n in network.variables if n not in evidence]
    if not free:
        return
    target = str(rng.choice(free))
    found = network.sensitivity(target, given=evidence)
    assert found.mean == pytest.approx(network.query(target, given=evidence).mean(), abs=1e-9)

    def mean(node, change):
        twin = network.copy()
        r = twin[node].row()
        twin.replace(
            node,
            mk.LinearGaussian(**{"bias": r.bias, "weights": r.weights, "variance": r.variance, **change(r)}),
        )
        return twin.query(target, given=evidence).mean()

    for node in network.variables:
        changes = {
            "bias": lambda r, h: {"bias": r.bias + h},
            "variance": lambda r, h: {"variance": r.variance + h},
        }
        for q in network.parents(node):
            changes[q] = lambda r, h, q=q: {"weights": {**r.weights, q: r.weights[q] + h}}
        for parameter, change in changes.items():
            slope = (
                mean(node, lambda r, c=change: c(r, STEP)) - mean(node, lambda r, c=change: c(r, -STEP))
            ) / (2 * STEP)
            if node not in found:
                assert slope == pytest.approx(0.0, abs=1e-6)
                continue
            own = found[node]
            derivative = own.weights[parameter] if parameter in own.weights else getattr(own, parameter)
            assert derivative == pytest.approx(slope, rel=1e-4, abs=1e-5)


def test_sensitivity_prints_the_largest_and_refuses_mixtures(line, mixed):
    found = line.sensitivity("x", given={"z": 1.0})
    assert list(found.largest(3).columns) == ["node", "parameter", "value", "derivative"]
    assert "derivative" in str(found)
    assert "mean of x" in repr(found)
    assert "<table>" in found._repr_html_()
    with pytest.raises(mk.MarkoviaError, match="mixture"):
        mixed.sensitivity("x")
    assert mixed.sensitivity("x", given={"d": "a"})["x"].bias == pytest.approx(1.0)
    with pytest.raises(mk.MarkoviaError, match="name one"):
        line.sensitivity("x=1")


def test_a_density_is_drawn_for_each_number(line, mixed):
    import matplotlib

    matplotlib.use("agg")
    ax = mixed.query(["x", "d"]).plot()
    assert len(ax.lines) == 3  # two components, and their sum
    assert ax.get_title() == "p(x, d)"
    area = np.trapezoid(ax.lines[-1].get_ydata(), ax.lines[-1].get_xdata())
    assert area == pytest.approx(0.998, abs=2e-3)
    both = line.query(["x", "y"], given={"z": 1.0}).plot(title="")
    assert [t.get_text() for t in both.get_legend().get_texts()] == ["x", "y"]
    assert line.do(x=1.0).query("x").plot().lines
