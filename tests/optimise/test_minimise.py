"""The door to L-BFGS: optima in closed form, whatever the units, and what is kept when it is stopped."""

import numpy as np
import pytest

from markovia.optimise.minimise import minimise
from markovia.runtime.clock import Clock

RNG = np.random.default_rng(0)
ROOT = RNG.normal(size=(4, 4))
CURVE = ROOT @ ROOT.T + np.eye(4)
TARGET = np.array([1.0, -2.0, 0.5, 3.0])


def bowl(x):
    return 0.5 * float((x - TARGET) @ CURVE @ (x - TARGET)), CURVE @ (x - TARGET)


def rosenbrock(x):
    a, b = x
    value = (1 - a) ** 2 + 100 * (b - a * a) ** 2
    return value, np.array([-2 * (1 - a) - 400 * a * (b - a * a), 200 * (b - a * a)])


@pytest.mark.parametrize("convex", [True, False])
def test_it_ends_at_the_bottom_of_a_bowl(convex):
    found = minimise(bowl, np.zeros(4), convex=convex, tol=1e-9)
    np.testing.assert_allclose(found.point, TARGET, atol=1e-7)
    assert found.converged
    assert found.reason == "converged"
    assert found.error <= 1e-9 or found.value < 1e-14
    assert found.value == bowl(found.point)[0]
    assert 0 < found.iterations == len(found.history) <= found.evaluations
    assert list(found.history) == sorted(found.history, reverse=True)


def test_functions_that_are_not_convex_and_those_without_gradients():
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), tol=1e-8)
    np.testing.assert_allclose(found.point, 1.0, atol=1e-5)
    plain = minimise(lambda x: bowl(x)[0], np.zeros(4), differences=True, upper=2.0)
    free = [0, 1, 2]
    best = np.append(
        TARGET[free] - np.linalg.solve(CURVE[np.ix_(free, free)], CURVE[free, 3] * (2.0 - TARGET[3])), 2.0
    )
    assert (best <= 2.0).all()
    np.testing.assert_allclose(plain.point, best, atol=1e-4)


def by_enumeration(lasso, lower):
    """The optimum over all sets of numbers at zero or at their bound, with all signs of the others."""
    best, point = np.inf, None
    for code in range(4**4):
        kinds = [code // 4**i % 4 for i in range(4)]  # zero, positive, negative, at the bound
        free = [i for i in range(4) if kinds[i] in (1, 2)]
        x = np.array([lower[i] if kinds[i] == 3 else 0.0 for i in range(4)])
        if not np.isfinite(x).all():
            continue
        sign = np.array([{1: 1.0, 2: -1.0}.get(k, 0.0) for k in kinds])
        if free:
            rest = CURVE @ (x - TARGET) + lasso * sign
            x[free] -= np.linalg.solve(CURVE[np.ix_(free, free)], rest[free])
        value = bowl(x)[0] + lasso @ np.abs(x)
        if (x >= lower - 1e-12).all() and value < best:
            best, point = value, x
    return best, point


@pytest.mark.parametrize("lower", [None, np.array([-np.inf, -0.5, 0.0, -np.inf])])
def test_absolute_values_with_and_without_bounds_against_all_cases(lower):
    lasso = np.array([0.0, 1.0, 4.0, 2.0])
    value, point = by_enumeration(lasso, np.full(4, -np.inf) if lower is None else lower)
    found = minimise(bowl, np.zeros(4), lasso=lasso, lower=lower, convex=True, tol=1e-9)
    assert found.value == pytest.approx(value, abs=1e-9)
    np.testing.assert_allclose(found.point, point, atol=1e-5)


def test_units_of_numbers_and_of_the_value_change_nothing_but_the_units():
    unit, height = np.array([1e-6, 1.0, 1e5, 10.0]), 1e8

    def wide(x):
        value, slope = bowl(x / unit)
        return height * value, height * slope / unit

    plain = minimise(bowl, np.zeros(4), convex=True)
    found = minimise(wide, np.zeros(4), units=unit, height=height, convex=True)
    np.testing.assert_allclose(found.point / unit, plain.point, rtol=1e-9)
    assert found.iterations == plain.iterations
    assert found.error == pytest.approx(plain.error, rel=1e-3, abs=1e-12)
    lasso = np.array([0.0, 1.0, 4.0, 2.0])
    sparse = minimise(bowl, np.zeros(4), lasso=lasso, convex=True)
    wide_sparse = minimise(
        wide, np.zeros(4), lasso=height * lasso / unit, units=unit, height=height, convex=True
    )
    np.testing.assert_allclose(wide_sparse.point / unit, sparse.point, atol=1e-6)


def test_too_few_steps_are_no_convergence():
    found = minimise(rosenbrock, np.array([-1.2, 1.0]), max_iter=3)
    assert (found.reason, found.converged, found.iterations) == ("steps", False, 3)
    found = minimise(bowl, np.zeros(4), convex=True, max_iter=2, tol=1e-12)
    assert (found.reason, found.converged, found.iterations) == ("steps", False, 2)


@pytest.mark.parametrize("convex", [True, False])
def test_where_the_function_has_no_number_it_goes_elsewhere(convex):
    def walled(x):
        with np.errstate(invalid="ignore", divide="ignore"):
            return float(x[0] - np.log(x[0])), 1.0 - 1.0 / x  # least at 1, no number below 0

    found = minimise(walled, np.array([8.0]), convex=convex, units=np.array([20.0]))
    assert found.point[0] == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("convex", [True, False])
def test_ctrl_c_and_the_clock_keep_the_best_so_far(convex, monkeypatch):
    calls = []

    def interrupted(x):
        if len(calls) > 1 and calls[-1] > min(calls):  # right after a point that is worse than another
            raise KeyboardInterrupt
        calls.append(rosenbrock(x)[0])
        return rosenbrock(x)

    start = np.array([-1.2, 1.0])
    with Clock(progress=False) as clock:
        found = minimise(interrupted, start, convex=convex, clock=clock)
    assert (found.reason, found.interrupted, found.converged) == ("interrupted", True, False)
    assert found.value == min(calls) == rosenbrock(found.point)[0]
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        minimise(interrupted, start, convex=convex)
    seconds = [0.0]
    monkeypatch.setattr("markovia.runtime.clock.perf_counter", lambda: seconds[0])

    def slow(x):
        seconds[0] += 1.0
        return bowl(x)

    with Clock(2.5, progress=False) as clock:
        found = minimise(slow, np.zeros(4), convex=convex, clock=clock)
    assert (found.reason, found.evaluations) == ("time limit", 3)


def test_the_bar_counts_its_steps_only_where_it_may(capsys):
    for bar in (True, False):
        with Clock(None, True, total=50) as clock:
            found = minimise(bowl, np.zeros(4), convex=True, clock=clock, bar=bar)
        assert (f"{found.iterations}/50" in capsys.readouterr().err) is bar
