"""Which of two variables is the cause: regress each on the other and test the independence of regressor and residual.

In the causal direction the noise is independent of the cause; in the other direction the residual of the same kind of
model in general is not. With "lingam" the model is y = ax + e (no direction where all is Gaussian; Shimizu et al.
2006), with "anm" y = f(x) + e (Hoyer et al. 2008), with "pnl" y = f₂(f₁(x) + e) (Zhang, Hyvärinen 2009). Independence
is tested by HSIC with the gamma approximation; two regressions and three tests, O(n).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.tables.unit_scaling import unit_scaled
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_level, numbers
from markovia.runtime.shown import InNotebooks
from markovia.structure.ci_tests.gamma_hsic import HsicTest, gamma_hsic
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.pnl import normal_scores, post_nonlinear_noise
from markovia.structure.functional.smooth_regression import smooth_fit
from markovia.structure.task.acyclicity import directed_graph
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task

EXACT = 1e-11
"""Residuals below this share of the effect's spread are rounding error."""
MODELS = ("anm", "pnl", "lingam")


@dataclass(frozen=True)
class PairwiseDirection(InNotebooks):
    """What two directions look like.

    Attributes
    ----------
    model
        "anm", "pnl" or "lingam".
    x, y
        The variables' names.
    direction
        (cause, effect), or None.
    reason
        Why.
    forward, backward
        The tests of the residual's independence with x as the cause, and with y as the cause (`statistic`, `p_value`).
    independence
        The test of whether x and y depend on each other at all.
    alpha
        The level.
    """

    model: str
    x: str
    y: str
    direction: tuple[str, str] | None
    reason: str
    forward: HsicTest
    backward: HsicTest
    independence: HsicTest
    alpha: float

    def __str__(self) -> str:
        arrow = "no direction" if self.direction is None else " -> ".join(self.direction)
        return (
            f"{arrow} ({self.model}): {self.reason}; p = {self.forward.p_value:.3g} for {self.x} -> {self.y}, "
            f"{self.backward.p_value:.3g} for {self.y} -> {self.x}"
        )


@dataclass(frozen=True, eq=False)
class PairDetails:
    """What was decided and why, and `p_values[i, j]` of i -> j."""

    direction: PairwiseDirection
    p_values: Array


def pairwise_direction(
    x: Any, y: Any, model: str = "anm", *, alpha: float = 0.05, decide: str = "test", names: Any = ("x", "y")
) -> PairwiseDirection:
    """Say which of two variables is the cause of the other.

    Parameters
    ----------
    x, y
        One number an observation.
    model
        "anm": effect = f(cause) + noise. "pnl": effect = f₂(f₁(cause) + noise), f₂ increasing. "lingam": effect =
        a·cause + noise, the noise or the cause not Gaussian.
    alpha
        The level of the tests.
    decide
        "test": a direction is given only where x and y are dependent and one direction is rejected and the other not.
        "compare": where they are dependent, the direction with the larger p-value.
    names
        What to call x and y.

    Returns
    -------
    PairwiseDirection

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(-2, 2, 500)
    >>> found = pairwise_direction(x, x + x**3 / 3 + rng.normal(size=500))
    >>> found.direction, found.backward.p_value < 0.001
    (('x', 'y'), True)
    """
    if isinstance(names, str) or len(names) != 2:
        raise InvalidArgument(f"names= are two names, not {names!r}")
    found = _compared(x, y, model, alpha, decide, names, lambda: False)
    assert found is not None
    return found


def _compared(
    x: Any, y: Any, model: str, alpha: float, decide: str, names: Sequence[str], over: Callable[[], bool]
) -> PairwiseDirection | None:
    """Compare both directions; None where the time is over before all tests are made."""
    check_level("alpha", alpha)
    check_choice("decide", decide, ("test", "compare"))
    a, b = _column(x, "x"), _column(y, "y")
    if len(a) != len(b):
        raise InvalidArgument(f"x has {len(a)} numbers and y has {len(b)}; they must be pairs")
    if len(a) < 20:
        raise InvalidArgument(f"a direction needs at least 20 observations, not {len(a)}")
    forward = direction_test(a, b, model, over)
    if over():
        return None
    backward = direction_test(b, a, model, over)
    if over():
        return None
    together = gamma_hsic(a, b, over=over)
    if over():
        return None
    first, second = names
    fits = forward.p_value >= alpha, backward.p_value >= alpha
    chosen: tuple[str, str] | None = None
    if together.p_value >= alpha:
        reason = f"{first} and {second} pass for independent (p = {together.p_value:.3g})"
    elif decide == "compare":
        chosen = (first, second) if forward.log_p >= backward.log_p else (second, first)
        reason = "its residual is the less dependent one"
    elif fits[0] != fits[1]:
        chosen = (first, second) if fits[0] else (second, first)
        reason = "the other direction is rejected"
    else:
        reason = (
            "both directions fit"
            if fits[0]
            else "both directions are rejected: another model, or a hidden cause"
        )
    return PairwiseDirection(model, first, second, chosen, reason, forward, backward, together, alpha)


def direction_test(cause: Array, effect: Array, model: str, over: Callable[[], bool]) -> HsicTest:
    """Test whether the residual of a model of the effect given the cause is independent of the cause."""
    if model == "anm":
        return gamma_hsic(cause, _noise(smooth_fit(cause, effect, over=over).residuals, effect), over=over)
    if model == "lingam":
        x = cause - cause.mean()
        y = effect - effect.mean()
        return gamma_hsic(cause, _noise(y - (x @ y) / (x @ x) * x, effect), over=over)
    if model == "pnl":
        return gamma_hsic(normal_scores(cause), post_nonlinear_noise(cause, effect, over=over), over=over)
    raise InvalidArgument(f"model= is one of {', '.join(map(repr, MODELS))}, not {model!r}")


def _noise(residuals: Array, effect: Array) -> Array:
    """Return the residuals; zeros where the effect is a function of the cause and only rounding error is left."""
    return residuals if residuals.std() > EXACT * effect.std() else np.zeros_like(residuals)


def directed_pair(task: Task, rows: Array, model: str, alpha: float, decide: str) -> FoundGraph:
    """Return the graph of two columns within the rules: a required edge stays, a forbidden direction is not chosen."""
    rules = task.rules
    edges = rules.required.copy()
    found = _compared(rows[:, 0], rows[:, 1], model, alpha, decide, task.names, task.clock.over)
    if found is None:
        notes = ["stopped before both directions were tried; edges are only the required ones"]
        return FoundGraph(directed_graph(edges, task.names), notes=notes)
    notes = [] if found.direction else [f"no direction: {found.reason}"]
    if not edges.any() and rules.max_parents > 0:
        ways = [(0, 1, found.forward), (1, 0, found.backward)]
        open_ways = [way for way in ways if rules.allowed[way[0], way[1]]]
        if len(open_ways) == 2 and found.direction is not None:
            cause = task.names.index(found.direction[0])
            edges[cause, 1 - cause] = True
        elif len(open_ways) == 1 and found.independence.p_value < alpha:
            cause, effect, test = open_ways[0]
            if decide == "compare" or test.p_value >= alpha:
                edges[cause, effect] = True
                notes = [f"{task.names[cause]!r} -> {task.names[effect]!r} is the only direction allowed"]
            else:
                notes = [
                    f"{task.names[cause]!r} -> {task.names[effect]!r}, the only direction allowed, is rejected "
                    f"(p = {test.p_value:.2g})"
                ]
    statistics = np.zeros((2, 2))
    statistics[0, 1], statistics[1, 0] = found.forward.p_value, found.backward.p_value
    return FoundGraph(
        directed_graph(edges, task.names),
        n_tests=3,
        notes=notes,
        details=PairDetails(found, statistics),
    )


def pnl(task: Task, *, alpha: float = 0.05, decide: str = "test") -> FoundGraph:
    """Say which of two columns is the cause of the other, by the post-nonlinear model.

    Parameters
    ----------
    task
        Two columns of numbers, and the rules.
    alpha
        The level of the tests.
    decide
        As in `markovia.pairwise_direction`.

    Returns
    -------
    Found
        A `DAG` with one edge, or none where no direction or both fit; `details.direction` is a `PairwiseDirection`. Where
        the time is over before that is known there are only required edges, and no details.

    Examples
    --------
    >>> import markovia as mk
    >>> cause, noise = np.random.default_rng(0).uniform(-1, 1, (2, 600))
    >>> data = {"cause": cause, "effect": np.exp(2 * cause**3 + cause + 0.5 * noise)}
    >>> mk.learn_structure(data, method="pnl", decide="compare").edges
    [('cause', 'effect')]
    """
    if len(task.names) != 2:
        raise InvalidArgument(
            f"pnl takes two columns, not {len(task.names)}; choose them with names=, or use method='anm' for more"
        )
    rows = measured_columns(task, "pnl")
    return directed_pair(task, rows, "pnl", alpha, decide)


def _column(values: Any, what: str) -> Array:
    found = numbers(values, f"{what} holds numbers")
    if found.ndim != 1 or not np.isfinite(found).all():
        raise InvalidArgument(f"{what} must be one finite number an observation")
    if len(found) and found.max() == found.min():
        raise InvalidArgument(f"{what} is constant")
    return unit_scaled(found)
