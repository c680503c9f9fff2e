"""TESLA: networks that change now and then, by logistic regressions whose parameters are fused over time.

Minimises for each spin the sum over times of the mean negative log likelihood given the other spins, plus
`lambda1 sum |theta_t|` plus `lambda2 sum |theta_t - theta_{t-1}|^q` (Ahmed and Xing 2009). With q = 1 (total variation)
parameters are constant but for a few jumps; with q = 2 they change smoothly. `lambda2 = 0` gives independent fits, a large
one a single pooled fit. A time may have one row or many.
Method: accelerated proximal gradients with restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015); for q = 1 the
proximal step is exact: 1-D total variation (Condat 2013), then soft thresholding (Friedman et al. 2007). Only columns that
are not zero, or should not be, are worked on.
Cost: rows times columns in use a step, hundreds of steps a column, in threads.
"""

from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.factor import Array
from markovia.inference.threads import in_parallel, thread_count
from markovia.learning.structure.changing_network import changing_result, timed_spins
from markovia.learning.structure.penalty_choice import need_penalty
from markovia.learning.structure.result import Found
from markovia.learning.structure.sparse_logistic import (
    need_variation,
    rate_alpha,
    read_field,
    spin_factors,
)
from markovia.learning.structure.task import Task
from markovia.learning.structure.undirected_edges import joined


def tesla(
    task: Task,
    *,
    times: Any = None,
    periods: int | None = None,
    lambda1: float | None = None,
    lambda2: float | None = None,
    q: int = 1,
    level: float = 0.05,
    rule: str = "or",
    field: str = "penalised",
    tolerance: float = 1e-5,
    max_steps: int = 20_000,
) -> Found:
    """Learn Ising models whose parameters are fused over time.

    Parameters
    ----------
    task
        Discrete data, two states a column.
    times
        The name of a column of times; or one number a row. By default the rows are in order, one time each.
    periods
        Group the times into so many periods of about as many rows each; by default each time is its own.
    lambda1
        The penalty on parameters; by default what noise in all rows together exceeds with a chance of `level`.
    lambda2
        The penalty on changes. By default, for q = 1, the root of periods / rows a period, about what noise adds up to over
        time; for q = 2 as many times the number of periods.
    q
        1 for jumps, 2 for smooth changes.
    rule, field
        As for "ising". The field is fused too; its own size is penalised unless it is "free".
    tolerance, max_steps
        The largest move of a proximal step that counts as none; steps a column at most.

    Returns
    -------
    Found
        The union of all graphs. Details: "times" (of periods: the mean time), "graphs", "weights" (a matrix a time),
        "fields", "lambda1", "lambda2", "residual", "objective", "steps". `edges_over_time` lists the edges.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 600)
    >>> b = np.where(np.arange(600) < 300, a, rng.integers(0, 2, 600))
    >>> found = mk.learn_structure({"a": a, "b": b}, method="tesla", periods=10)
    >>> [graph.n_edges for graph in found.details["graphs"]]
    [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    """
    joined(np.zeros((1, 1)), rule)
    free = read_field(field)
    if q not in (1, 2) or isinstance(q, bool):
        raise InvalidArgument(f"q= is 1 or 2, not {q!r}")
    spins, moments = timed_spins(task, times, "TESLA")
    need_variation(spins, free)
    period, middles = _periods(moments, periods)
    n, n_times = len(spins.names), len(middles)
    weight_of = np.bincount(period, spins.weights, minlength=n_times)
    if (weight_of <= 0).any():
        raise InvalidArgument(
            f"the rows at time {middles[int((weight_of <= 0).argmax())]:.6g} have no weight"
        )
    if lambda1 is None:
        lambda1 = rate_alpha(n, spins.total, level)
    if lambda2 is None:
        lambda2 = float(np.sqrt(n_times / (spins.total / n_times))) * (1.0 if q == 1 else n_times)
    need_penalty(lambda1, "lambda1")
    need_penalty(lambda2, "lambda2")
    if free == 0.0 and lambda2 == 0.0:
        _need_variation_everywhere(spins.names, spins.design, period, n_times, middles)
    factors = spin_factors(spins.rules, free)
    shares = spins.weights / weight_of[period]
    fused, smooth = (float(lambda2), 0.0) if q == 1 else (0.0, float(lambda2))

    def one(node: int, room: None) -> tuple[Array, float, int, float]:
        from markovia.kernels.sparse_logistic import fused_node

        theta = np.zeros((n + 1, n_times))
        residual, steps, objective = fused_node(
            spins.design, node, shares, period, factors[node], float(lambda1), fused, smooth, float(tolerance),
            int(max_steps), theta,
        )  # fmt: skip
        return theta.T, float(residual), int(steps), float(objective)

    thetas = np.zeros((n_times, n, n + 1))
    residuals, steps, objectives = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)
    notes: list[str] = []
    block = max(4, 2 * thread_count())
    for low in range(0, n, block):
        if task.watch.over():
            notes.append(f"stopped after {low} of {n} columns; the others have no regression of their own")
            break
        nodes = range(low, min(low + block, n))
        for node, found in zip(nodes, in_parallel(one, nodes, lambda: None), strict=True):
            thetas[:, node], residuals[node], steps[node], objectives[node] = found
        task.watch.advance(len(nodes))
    if residuals.max() > tolerance:
        short = int((residuals > tolerance).sum())
        notes.append(
            f"{short} columns did not converge in {max_steps} steps (residual up to {residuals.max():.2g})"
        )
    details: dict[str, Any] = {
        "lambda1": float(lambda1), "lambda2": float(lambda2), "q": q, "residual": float(residuals.max()),
        "objective": float(objectives.sum()), "steps": steps, "rows": weight_of,
    }  # fmt: skip
    return changing_result(spins, middles, thetas, rule, details, notes)


def _periods(moments: Array, periods: int | None) -> tuple[Any, Array]:
    """Return each row's period, and each period's mean time; rows of one time stay together."""
    distinct, number = np.unique(moments, return_inverse=True)
    if periods is None:
        return number.astype(np.int64), distinct
    if not isinstance(periods, int | np.integer) or isinstance(periods, bool) or periods < 1:
        raise InvalidArgument(f"periods= is a whole number, 1 or more, not {periods!r}")
    if periods > len(distinct):
        raise InvalidArgument(f"periods= is {periods}, and there are only {len(distinct)} times")
    first = np.searchsorted(number, number)  # the place of the first row of each row's time
    raw = (first * int(periods)) // len(moments)
    _, period = np.unique(raw, return_inverse=True)
    middles = np.bincount(period, moments) / np.bincount(period)
    return period.astype(np.int64), middles


def _need_variation_everywhere(
    names: tuple[str, ...], design: Array, period: Any, n_times: int, middles: Array
) -> None:
    counts = np.bincount(period, minlength=n_times)
    for k, name in enumerate(names):
        sums = np.bincount(period, design[k], minlength=n_times)
        flat = np.abs(sums) == counts
        if flat.any():
            raise InvalidArgument(
                f"{name!r} has one state only at time {middles[int(flat.argmax())]:.6g}, so that a free field without "
                "lambda2 is infinite; use field='penalised'"
            )
