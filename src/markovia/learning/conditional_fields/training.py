"""Minimising the objective of a conditional random field: L-BFGS, or stochastic gradients.

L-BFGS (Nocedal 1980; with bounds Byrd, Lu, Nocedal and Zhu 1995) sees the whole data at each step and reaches the optimum
of a convex objective to many digits; an l1 penalty is handled orthant by orthant (Andrew and Gao 2007), or, with bounds, by
writing each weight as a difference of two that are not negative. Stochastic gradients take a few instances a step, with
AdaGrad's step sizes (Duchi, Hazan and Singer 2011) and the mean of the last half of the path (Polyak and Juditsky 1992) as
the answer; use them for very many instances, and for Gibbs marginals, which are noisy. With one batch that holds all
instances they are plain gradient steps with falling step sizes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from markovia.optimise.limited_memory_bfgs import dot, minimise_smooth
from markovia.optimise.orthant_wise import minimise_sparse
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.clock import now
from markovia.runtime.progress import progress_bar

Smooth = Callable[[Array], tuple[float, Array]]


class FieldObjective(Protocol):
    """What `descend` minimises: a sum over instances, and absolute values with weights."""

    lasso: Array

    @property
    def n_instances(self) -> int:
        """The number of instances."""

    def __call__(self, theta: Array, which: Ints | None = None) -> tuple[float, Array]:
        """Return the smooth part and its gradient, of some instances."""


@dataclass(frozen=True)
class FieldTraining:
    """What training found.

    Attributes
    ----------
    theta
        The parameters.
    value
        The objective, penalties included (its last estimate from one pass for stochastic gradients).
    history
        The objective after each step (pass).
    converged, iterations, evaluations
        Whether the tolerance was reached; steps (passes); values of the objective.
    interrupted
        Whether Ctrl-C stopped it; `theta` is then the best so far.
    seconds
        Wall-clock time.
    """

    theta: Array
    value: float
    history: tuple[float, ...]
    converged: bool
    iterations: int
    evaluations: int
    interrupted: bool
    seconds: float


def minimise(
    function: Smooth,
    start: Array,
    *,
    scale: float = 1.0,
    lasso: Array | None = None,
    lower: Array | None = None,
    max_iter: int = 500,
    tol: float = 1e-5,
    flat: float = 1e-14,
    progress: bool | None = None,
) -> FieldTraining:
    """Minimise a smooth function plus `lasso . |theta|` by L-BFGS.

    Parameters
    ----------
    function
        Returns the value and gradient at a point.
    start
        Where to start.
    scale
        What the function is divided by inside (the number of instances): `tol` is about the gradient after this.
    lasso
        The weight of each absolute value; None for none.
    lower
        The least value of each parameter; None for no bounds.
    max_iter, tol
        Steps at most, and the largest entry of the (projected) gradient to stop at.
    flat
        A relative fall of the function in one step that counts as none; larger where the function is known less exactly.
    progress
        Whether to show a bar.

    Examples
    --------
    >>> found = minimise(lambda x: (float(((x - 3) ** 2).sum()), 2 * (x - 3)), np.zeros(2), lasso=np.array([0.0, 2.0]))
    >>> found.theta.round(4).tolist(), found.converged
    ([3.0, 2.0], True)
    """
    began = now()
    n = len(start)
    sparse = lasso is not None and bool(np.any(lasso > 0))
    split = sparse and lower is not None
    history: list[float] = []
    best = (np.inf, np.asarray(start, dtype=np.float64))
    calls = 0

    def value(point: Array) -> tuple[float, Array]:
        nonlocal best, calls
        calls += 1
        theta = point[:n] - point[n:] if split else point
        smooth, gradient = function(theta)
        total = smooth
        if split and lasso is not None:
            total += float(lasso @ (point[:n] + point[n:]))
            gradient = np.concatenate([gradient + lasso, lasso - gradient])
        if sparse and not split and lasso is not None:
            total += dot(lasso, np.abs(theta))
        if total < best[0]:
            best = (total, theta.copy())
        return (smooth if sparse and not split else total) / scale, gradient / scale

    if split:
        first = np.concatenate([np.maximum(start, 0.0), np.maximum(-start, 0.0)])
        low = np.full(n, -np.inf) if lower is None else lower
        bounds: list[Any] | None = [(0.0, None)] * n + [(0.0, None if b < 0 else 0.0) for b in low.tolist()]
    else:
        first = np.asarray(start, dtype=np.float64)
        bounds = None if lower is None else [(None if b == -np.inf else b, None) for b in lower.tolist()]
    with progress_bar(progress, max_iter) as tick:

        def each(_: Array) -> None:
            history.append(best[0])
            tick(1)

        interrupted = False
        try:
            if bounds is None:
                if sparse and lasso is not None:
                    _, _, error, _ = minimise_sparse(
                        value, lasso / scale, first, max_iter, tol, flat=flat, each=each
                    )
                else:
                    _, _, error, _ = minimise_smooth(value, first, max_iter, tol, flat=flat, each=each)
                steps = len(history)
                # a line search that finds nothing lower is no convergence, unless the last steps hardly fell either
                last = history[-2:] if steps > 1 else [np.inf, 0.0]
                settled = last[0] - last[1] <= flat * max(abs(last[0]), abs(last[1]), scale)
                converged = bool(error <= tol or ((settled or error <= 10 * tol) and steps < max_iter))
            else:
                from scipy.optimize import minimize

                options = {"maxiter": max_iter, "gtol": tol, "ftol": flat, "maxfun": 4 * max_iter + 20}
                found = minimize(
                    value, first, jac=True, method="L-BFGS-B", bounds=bounds, callback=each, options=options
                )
                converged, steps = bool(found.status == 0), int(found.nit)
        except KeyboardInterrupt:
            interrupted, converged, steps = True, False, len(history)
    return FieldTraining(
        best[1], best[0], tuple(history), converged, steps, calls, interrupted, now() - began
    )


def descend(
    objective: FieldObjective,
    start: Array,
    rng: np.random.Generator,
    *,
    batch_size: int = 32,
    learning_rate: float = 0.1,
    lower: Array | None = None,
    max_iter: int = 50,
    tol: float = 1e-4,
    progress: bool | None = None,
) -> FieldTraining:
    """Minimise the objective by stochastic gradients: `max_iter` passes over the instances in random batches.

    Converged means that the mean of the path changed by less than `tol` (largest entry) in one pass.
    """
    began = now()
    n = objective.n_instances
    theta = np.array(start, dtype=np.float64)
    squares = np.zeros(len(theta))
    low = np.full(len(theta), -np.inf) if lower is None else lower
    history: list[float] = []
    mean, answer, steps, calls = theta.copy(), theta.copy(), 0, 0
    converged = interrupted = False
    fresh = 1  # the pass at which averaging began last; averages start again when passes double
    with progress_bar(progress, max_iter) as tick:
        try:
            for epoch in range(1, max_iter + 1):
                if epoch == 2 * fresh:
                    fresh, steps = epoch, 0
                total = 0.0
                for which in np.array_split(rng.permutation(n), max(1, n // batch_size)):
                    value, gradient = objective(theta, np.sort(which))
                    calls += 1
                    share = len(which) / n
                    total += value + share * dot(objective.lasso, np.abs(theta))
                    slope = gradient / max(len(which), 1)
                    squares += slope**2
                    rate = learning_rate / np.sqrt(squares + 1e-12)
                    theta = theta - rate * slope
                    shrink = rate * objective.lasso / n
                    theta = np.sign(theta) * np.maximum(np.abs(theta) - shrink, 0.0)
                    theta = np.maximum(theta, low)
                    steps += 1
                    mean = mean + (theta - mean) / steps
                history.append(total)
                tick(1)
                moved = float(np.abs(mean - answer).max(initial=0.0))
                answer = mean.copy()
                if epoch > 1 and epoch != fresh and moved < tol:
                    converged = True
                    break
        except KeyboardInterrupt:
            interrupted = True
    value = history[-1] if history else np.nan
    return FieldTraining(
        answer, value, tuple(history), converged, len(history), calls, interrupted, now() - began
    )
