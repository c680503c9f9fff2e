"""The one door to L-BFGS: smooth functions of all data, with bounds or weighted absolute values where there are some.

Method: quasi-Newton steps from the last few changes of the gradient (Nocedal 1980). Convex functions go to
`limited_memory_bfgs.py`, which asks for no more than descent and is quick for small vectors; absolute values are handled
orthant by orthant (`orthant_wise.py`); bounds, and functions that are not convex, go to SciPy's L-BFGS-B (Byrd, Lu, Nocedal
and Zhu 1995), whose line search asks for curvature too. Cost of a step: one or a few values of the function. What is noisy
or too large to be seen at once is for `training.py`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.optimise.limited_memory_bfgs import dot, minimise_smooth
from markovia.optimise.orthant_wise import minimise_sparse
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock, now

NOWHERE = 1e300
"""What a value that is no number counts as."""


@dataclass(frozen=True)
class Minimum:
    """Where a minimisation ended.

    Attributes
    ----------
    point, value
        The best point that was tried, and the objective there, penalties included.
    error
        The largest entry of the gradient in scaled units (where it points into the bounds) at the last point.
    converged, reason
        Whether it is at the bottom, and why it ended: "converged", "steps", "no lower point", "time limit", "interrupted".
    iterations, evaluations
        Steps, and values of the function that were asked for.
    history
        The objective after each step.
    seconds
        Wall-clock time.
    """

    point: Array
    value: float
    error: float
    converged: bool
    reason: str
    iterations: int
    evaluations: int
    history: tuple[float, ...]
    seconds: float

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it."""
        return self.reason == "interrupted"


class _Over(Exception):
    """The clock says stop."""


def minimise(
    function: Callable[[Array], Any],
    start: Array,
    *,
    lasso: Array | None = None,
    lower: Array | float | None = None,
    upper: Array | float | None = None,
    convex: bool = False,
    differences: bool = False,
    height: float = 1.0,
    units: Array | None = None,
    max_iter: int = 500,
    tol: float = 1e-5,
    flat: float = 1e-14,
    clock: Clock | None = None,
    bar: bool = False,
    **search: int,
) -> Minimum:
    """Minimise a smooth function plus `lasso . |point|`.

    Parameters
    ----------
    function
        Returns the value and the gradient at a point; with `differences` the value alone.
    start
        Where to start.
    lasso
        The weight of each absolute value; None for none.
    lower, upper
        The least and the largest value of each number; None for no bounds.
    convex
        Whether the function is convex.
    height, units
        A typical value of the function and a typical size of each number: the search goes on in these units, so that those
        of the data change nothing. `tol` and `flat` are about the function so scaled.
    max_iter, tol
        Steps at most, and the largest entry of the (projected) gradient to stop at.
    flat
        A relative fall of the function in one step that counts as none; larger where the function is known less exactly.
    clock
        An open clock: at its end, and at Ctrl-C, the best point so far is returned. Without one Ctrl-C is not caught.
    bar
        Whether the clock's bar counts the steps of this search.
    search
        `maxcor` (changes that are remembered) and `maxls` (values in one line search) of L-BFGS-B.

    Examples
    --------
    >>> found = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), lasso=np.array([0.0, 2.0]),
    ...     convex=True)
    >>> found.point.round(4).tolist(), found.converged
    ([3.0, 2.0], True)
    >>> minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), upper=1.0).point.tolist()
    [1.0, 1.0]
    """
    began = now()
    unit = np.ones(len(start)) if units is None else np.asarray(units, dtype=np.float64)
    problem = _Scaled(
        function, unit, height, lasso, lower is not None or upper is not None, differences, clock, bar
    )
    first = np.asarray(start, dtype=np.float64) / unit
    steps, error, reason = 0, np.inf, ""
    try:
        if problem.bounded or not convex:
            steps, error, reason = _by_scipy(problem, first, lower, upper, max_iter, tol, flat, search)
            if problem.lost and error > tol and reason != "steps" and problem.best and not problem.bounded:
                # its line search gives up beside values that are no numbers; steps that only shorten get away
                left, here = max_iter - steps, problem.best[1] / unit
                steps, error, reason = _by_descent(problem, here, left, tol, flat)
        else:
            steps, error, reason = _by_descent(problem, first, max_iter, tol, flat)
    except _Over:
        steps, reason = len(problem.history), str(clock.reason if clock is not None else "")
    except KeyboardInterrupt:
        if clock is None or problem.best is None:
            raise
        steps, reason = len(problem.history), "interrupted"
    value, point = problem.best or (np.inf, np.asarray(start, dtype=np.float64))
    return Minimum(
        point, value, error, reason == "converged", reason, steps, problem.calls, tuple(problem.history),
        now() - began,
    )  # fmt: skip


class _Scaled:
    """The objective in its own units; it remembers the best point, in those of the caller."""

    def __init__(
        self, function: Callable[[Array], Any], unit: Array, height: float, lasso: Array | None, bounded: bool,
        differences: bool, clock: Clock | None, bar: bool,
    ) -> None:  # fmt: skip
        self.function, self.unit, self.height, self.clock = function, unit, height, clock
        self.lasso = lasso if lasso is not None and bool(np.any(lasso > 0)) else None
        self.bounded, self.differences, self.bar = bounded, differences, bar
        # with bounds, a number is the difference of two that are not negative, and absolute values are their sum
        self.split = bounded and self.lasso is not None
        self.best: tuple[float, Array] | None = None
        self.history: list[float] = []
        self.calls = 0
        self.lost = False

    def __call__(self, z: Array) -> Any:
        n = len(self.unit)
        point = self.unit * (z[:n] - z[n:] if self.split else z)  # a new array: objectives may remember them
        found = self.function(point)
        self.calls += 1
        smooth, slope = (found, None) if self.differences else found
        whole = smooth
        if self.lasso is not None:
            whole = smooth + dot(self.lasso, np.abs(point))
        if np.isfinite(whole) and (self.best is None or whole < self.best[0]):
            self.best = (float(whole), point)
        if self.clock is not None and self.clock.over() and self.best is not None:
            raise _Over
        bad = not np.isfinite(smooth) or (slope is not None and not np.isfinite(slope).all())
        self.lost |= bad
        if slope is None:
            return NOWHERE if bad else smooth / self.height
        if bad:
            return NOWHERE, np.zeros(len(z))
        slope = np.asarray(slope, dtype=np.float64) * self.unit / self.height
        if self.split and self.lasso is not None:
            weight = self.lasso * self.unit / self.height
            return smooth / self.height + dot(weight, z[:n] + z[n:]), np.concatenate(
                [slope + weight, weight - slope]
            )
        return smooth / self.height, slope

    def stepped(self, _: Any = None) -> None:
        """Note the best value after a step."""
        value = np.nan if self.best is None else self.best[0]
        self.history.append(value)
        if self.clock is not None and self.bar:
            self.clock.advance(note=f"{value:.6g}")


def _by_descent(
    problem: _Scaled, first: Array, max_iter: int, tol: float, flat: float
) -> tuple[int, float, str]:
    if problem.lasso is None:
        _, _, error, _ = minimise_smooth(problem, first, max_iter, tol, flat=flat, each=problem.stepped)
    else:
        lasso = problem.lasso * problem.unit / problem.height
        _, _, error, _ = minimise_sparse(
            problem, lasso, first, max_iter, tol, flat=flat, each=problem.stepped
        )
    history = problem.history
    # a line search that finds nothing lower is no convergence, unless the last steps hardly fell either
    last = history[-2:] if len(history) > 1 else [np.inf, 0.0]
    settled = last[0] - last[1] <= flat * max(abs(last[0]), abs(last[1]), problem.height)
    if error <= tol or ((settled or error <= 10 * tol) and len(history) < max_iter):
        return len(history), error, "converged"
    return len(history), error, "steps" if len(history) >= max_iter else "no lower point"


def _by_scipy(
    problem: _Scaled, first: Array, lower: Any, upper: Any, max_iter: int, tol: float, flat: float,
    search: dict[str, int],
) -> tuple[int, float, str]:  # fmt: skip
    from scipy.optimize import Bounds, minimize

    n = len(first)
    low = np.full(n, -np.inf if lower is None else lower) / problem.unit
    high = np.full(n, np.inf if upper is None else upper) / problem.unit
    if problem.split:
        first = np.concatenate([np.maximum(first, 0.0), np.maximum(-first, 0.0)])
        low, high = (
            np.concatenate([np.maximum(low, 0.0), np.maximum(-high, 0.0)]),
            np.concatenate([np.maximum(high, 0.0), np.maximum(-low, 0.0)]),
        )
    found = minimize(
        problem,
        first,
        jac=None if problem.differences else True,
        method="L-BFGS-B",
        bounds=Bounds(low, high) if problem.bounded else None,
        callback=problem.stepped,
        options={"maxiter": max_iter, "gtol": tol, "ftol": flat, "maxfun": 20 * max_iter + 1000, **search},
    )
    # where a bound is reached, only the part of the gradient that points inside counts
    inside = np.clip(found.x - found.jac, low, high) - found.x
    error = float(np.abs(inside).max(initial=0.0))
    reason = "converged" if found.status == 0 else "steps" if found.nit >= max_iter else "no lower point"
    return int(found.nit), error, reason
