"""Networks that change smoothly: L1-penalised logistic regression with rows weighted by their nearness in time.

Method: the graph at a time is that of an Ising model fitted to all rows, each weighted by a kernel of its distance in time
(Song, Kolar and Xing 2009, "KELLER"; Kolar et al. 2010). A wide kernel gives the one graph of all rows, a narrow one the
graph of that moment alone. Each time starts from the fit of the one before.
Cost: times x columns sparse logistic regressions, in threads; 100 columns, 542 rows and 50 times take some seconds.
Use it where the network drifts; for sudden changes TESLA (`tesla`).
How to set it: the bandwidth decides how many rows speak for a time (`details.effective_rows`: some tens a neighbour are
needed; halve or double it and see what stays), the penalty follows from them by `level`, the chance of any false edge at a
time. A smaller level or a larger alpha gives fewer edges.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import PENALTY, check, check_choice, check_number, numbers
from markovia.runtime.threads import in_parallel
from markovia.structure.changing.changing_network import ChangingDetails, changing_result, timed_spins
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import joined
from markovia.structure.undirected.sparse_logistic import (
    fit_spin,
    need_variation,
    rate_alpha,
    read_field,
    spin_factors,
)

KERNELS = ("gaussian", "epanechnikov", "box")


@dataclass(frozen=True, eq=False, kw_only=True)
class KernelDetails(ChangingDetails):
    """The networks, and how they were fitted: kernel, rows that speak for each time, penalties, optimality."""

    bandwidth: float
    kernel: str
    effective_rows: Array
    alpha: Array
    kkt: float


def kernel_weighted(
    task: Task,
    *,
    times: Any = None,
    at: Any = None,
    bandwidth: float | None = None,
    kernel: str = "gaussian",
    alpha: float | None = None,
    level: float = 0.05,
    rule: str = "or",
    field: str = "penalised",
) -> FoundGraph:
    """Learn the graph of an Ising model at several times.

    Parameters
    ----------
    task
        Discrete data, two states a column.
    times
        The name of a column of times; or one number a row. By default the rows are in order, one time each.
    at
        The times whose graphs are wanted; by default 20 evenly spaced ones, or all if there are fewer.
    bandwidth
        The width of the kernel in the units of the times: the standard deviation for "gaussian", half the width of the
        others. Infinite gives all rows the same weight. By default the range of times / (number of rows)^(1/3).
    kernel
        "gaussian", "epanechnikov" or "box".
    alpha
        The penalty; by default the one that noise exceeds with a chance of `level` for the effective number of rows at each
        time.
    level
        For the default of `alpha`.
    rule, field
        As for "ising"; the field is penalised by default since few rows may agree in a column.

    Returns
    -------
    Found
        The union of all graphs. Details: "times", "graphs", "weights" (a matrix a time), "fields", "effective_rows",
        "alpha", "kkt". `edges_over_time` lists the edges.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.integers(0, 2, 600)
    >>> b = np.where(np.arange(600) < 300, a, rng.integers(0, 2, 600))
    >>> found = mk.learn_structure({"a": a, "b": b}, method="kernel-weighted", at=[100, 500], bandwidth=60)
    >>> [graph.n_edges for graph in found.details.graphs]
    [1, 0]
    """
    joined(np.zeros((1, 1)), rule)
    free = read_field(field)
    spins, moments = timed_spins(task, times, "the kernel-weighted Ising model")
    need_variation(spins, free)
    if alpha is not None:
        check_number("alpha", alpha)
    width = _width(bandwidth, moments)
    wanted = _wanted(at, moments)
    n = len(spins.names)
    factors = spin_factors(spins.rules, free)
    thetas, sizes, penalties = np.zeros((len(wanted), n, n + 1)), np.zeros(len(wanted)), np.zeros(len(wanted))
    worst, done, notes = 0.0, 0, []
    before: Array | None = None
    for k, time in enumerate(wanted):
        if task.clock.over():
            notes.append(f"stopped after {k} of {len(wanted)} times")
            break
        shares = spins.weights * kernel_shares(moments - time, width, kernel)
        if not shares.sum() > 0:
            raise InvalidArgument(f"no row is within the bandwidth {width:.4g} of the time {time:.6g}")
        # weights that count rows keep their size, so the effective number is that of rows and not of groups
        sizes[k] = shares.sum() ** 2 / ((shares**2) / np.maximum(spins.weights, 1e-300)).sum()
        shares = shares / shares.sum()
        penalties[k] = rate_alpha(n, sizes[k], level) if alpha is None else alpha
        some = np.flatnonzero(shares > 1e-14 * shares.max())
        design, share = np.ascontiguousarray(spins.design[:, some]), shares[some]
        levels = penalties[k : k + 1].copy()
        start = before

        def one(
            node: int,
            room: None,
            design: Array = design,
            share: Array = share,
            levels: Array = levels,
            start: Array | None = start,
        ) -> tuple[Array, float]:
            begin = None if start is None else start[node]
            fit = fit_spin(design, node, share, factors[node], levels, begin)
            return fit.thetas[0], float(fit.errors[0])

        for node, (theta, error) in enumerate(in_parallel(one, range(n), lambda: None)):
            thetas[k, node] = theta
            worst = max(worst, error)
        before = thetas[k]
        done = k + 1
        task.clock.advance(note=f"time {time:.4g}")
    details = partial(
        KernelDetails,
        bandwidth=width,
        kernel=kernel,
        effective_rows=sizes[:done],
        alpha=penalties[:done],
        kkt=worst,
    )
    if not done:
        notes.append("no time was fitted")
    return changing_result(spins, wanted[: max(done, 1)], thetas[: max(done, 1)], rule, details, notes)


def kernel_shares(distance: Array, width: float, kernel: str) -> Array:
    """Return the kernel's weights for distances in time; the largest is one at the nearest row for "gaussian"."""
    check_choice("kernel", kernel, KERNELS)
    if np.isinf(width):
        return np.ones(len(distance))
    scaled = np.abs(distance) / width
    if kernel == "gaussian":
        return np.asarray(np.exp(0.5 * (scaled.min() ** 2 - scaled**2)))
    if kernel == "box":
        return np.asarray((scaled <= 1.0).astype(np.float64))
    return np.asarray(np.maximum(1.0 - scaled**2, 0.0))


def _width(bandwidth: float | None, moments: Array) -> float:
    if bandwidth is None:
        spread = float(moments[-1] - moments[0])
        return spread / float(np.cbrt(len(moments))) if spread > 0 else np.inf
    check("bandwidth", bandwidth, PENALTY)
    return float(bandwidth)


def _wanted(at: Any, moments: Array) -> Array:
    if at is None:
        distinct = np.unique(moments)
        return distinct if len(distinct) <= 20 else np.linspace(distinct[0], distinct[-1], 20)
    found = np.atleast_1d(numbers(at, "at= is a list of times"))
    if found.ndim != 1 or not len(found) or not np.isfinite(found).all():
        raise InvalidArgument("at= is a list of finite times")
    return np.sort(found)
