"""TESLA: networks that change now and then, by logistic regressions whose parameters are fused over time.

Minimises for each spin the sum over times of the mean negative log likelihood given the other spins, plus
`lambda1 sum |theta_t|` plus `lambda2 sum |theta_t - theta_{t-1}|^q` (Ahmed and Xing 2009). With q = 1 (total variation)
parameters are constant but for a few jumps; with q = 2 they change smoothly. `lambda2 = 0` gives independent fits, a large
one a single pooled fit. A time may have one row or many. Instead of times in a row there may be conditions that are
neighbours in a tree or any graph, such as stages of cells that descend from each other: the changes along its edges are
penalised (Parikh et al. 2011).
Method: accelerated proximal gradients with restarts (Beck and Teboulle 2009; O'Donoghue and Candes 2015). The proximal step
is exact: for q = 1 total variation (in one dimension: Condat 2013; over a graph its dual, edge by edge), then soft
thresholding (Friedman et al. 2007); for q = 2 over time a tridiagonal system for the parameters that are not zero, so that a
large lambda2 costs no more steps. Only columns that are not zero, or should not be, are worked on.
The penalties are numbers, their defaults, or chosen by BIC over a grid around the defaults (`choose="bic"`): the loss of all
rows plus log(rows) / 2 for every run of equal parameters that are not zero.
Cost: rows times columns in use a step, hundreds of steps a column, in threads; BIC makes fifteen fits.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.kernels.structure.structure_records import ChangingSpins
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count, check_number
from markovia.runtime.threads import in_parallel, thread_count
from markovia.structure.changing.changing_network import (
    ChangingDetails,
    changing_result,
    condition_spins,
    timed_spins,
)
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import joined
from markovia.structure.undirected.sparse_logistic import (
    Spins,
    need_variation,
    rate_alpha,
    read_field,
    spin_factors,
)


@dataclass(frozen=True, eq=False, kw_only=True)
class TeslaDetails(ChangingDetails):
    """The networks, and how they were fitted.

    Attributes
    ----------
    lambda1, lambda2, q
        The penalties, and the norm of the differences.
    residual, objective, steps
        How far the fit is from its optimum, its value, and the steps it took.
    rows
        The weight of the rows of each time.
    tried
        The penalties that were compared, each with its criterion.
    conditions
        The pairs of times whose networks are alike, where they are no line.
    """

    lambda1: float
    lambda2: float
    q: Any
    residual: float
    objective: float
    steps: Any
    rows: Any
    tried: list[tuple[float, float, float]]
    conditions: list[tuple[Any, Any]] | None


def tesla(
    task: Task,
    *,
    times: Any = None,
    periods: int | None = None,
    conditions: Any = None,
    choose: str | None = None,
    lambda1: float | None = None,
    lambda2: float | None = None,
    q: int = 1,
    level: float = 0.05,
    rule: str = "or",
    field: str = "penalised",
    tolerance: float = 1e-5,
    max_steps: int = 20_000,
) -> FoundGraph:
    """Learn Ising models whose parameters are fused over time.

    Parameters
    ----------
    task, times
        As for "kernel-weighted".
    periods
        Group the times into so many periods of about as many rows each; by default each time is its own.
    conditions
        Pairs of labels (or an undirected graph over them): `times` then says each row's condition, and changes are
        penalised along these edges instead of from each time to the next.
    choose
        "bic" chooses those of lambda1 and lambda2 that are not given, for q = 1.
    lambda1
        The penalty on parameters; by default what noise in all rows together exceeds with a chance of `level`.
    lambda2
        The penalty on changes. By default, for q = 1, the root of periods / rows a period, about what noise adds up to over
        time; for q = 2 as many times the number of periods.
    q
        1 for jumps, 2 for smooth changes.
    level
        For the default of `lambda1`.
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
    >>> [graph.n_edges for graph in found.details.graphs]
    [1, 1, 1, 1, 1, 0, 0, 0, 0, 0]
    """
    joined(np.zeros((1, 1)), rule)
    free = read_field(field)
    check_choice("q", q, (1, 2))
    check_choice("choose", choose, ("bic",), none=True)
    if choose is not None and q != 1:
        raise InvalidArgument(
            "choose='bic' counts runs of equal parameters, which q=2 has not; give lambda1= and lambda2="
        )
    if conditions is None:
        spins, moments = timed_spins(task, times, "TESLA")
        period, middles = _periods(moments, periods)
        labels: Any = middles
        step = np.arange(len(middles) - 1, dtype=np.int64)
        edges = np.column_stack([step, step + 1])
    else:
        if periods is not None:
            raise InvalidArgument("give periods= or conditions=, not both")
        spins, period, labels, edges = condition_spins(task, times, conditions, "TESLA")
    need_variation(spins, free)
    n, n_times = len(spins.names), len(labels)
    weight_of = np.bincount(period, spins.weights, minlength=n_times)
    if (weight_of <= 0).any():
        raise InvalidArgument(f"the rows at time {labels[int((weight_of <= 0).argmax())]!r} have no weight")
    base1 = rate_alpha(n, spins.total, level)
    base2 = float(np.sqrt(n_times / (spins.total / n_times))) * (1.0 if q == 1 else n_times)
    for value, name in ((lambda1, "lambda1"), (lambda2, "lambda2")):
        if value is not None:
            check_number(name, value)
    if free == 0.0 and lambda2 == 0.0:
        _need_variation_everywhere(spins.names, spins.design, period, n_times, labels)
    problem = _Problem(
        spins, ChangingSpins(spins.design, spins.weights / weight_of[period], period, edges, conditions is None),
        n_times, spin_factors(spins.rules, free), q, float(tolerance), int(max_steps),
    )  # fmt: skip
    tried: list[tuple[float, float, float]] = []
    fits: list[_Fit] = []
    if choose is None:
        grid = [(base1 if lambda1 is None else lambda1, base2 if lambda2 is None else lambda2)]
    else:
        firsts = [lambda1] if lambda1 is not None else [base1 * k for k in (2.0, 1.0, 0.5)]
        seconds = [lambda2] if lambda2 is not None else [base2 * k for k in (4.0, 2.0, 1.0, 0.5, 0.25)]
        grid = [(a, b) for a in firsts for b in seconds]
    notes: list[str] = []
    best, lowest = 0, np.inf
    for first, second in grid:
        if fits and task.clock.over():
            notes.append(f"stopped after {len(fits)} of {len(grid)} pairs of penalties")
            break
        fits.append(_fit(problem, float(first), float(second), task, notes))
        if choose is not None:
            cost = _bic(problem, fits[-1].thetas)
            tried.append((float(first), float(second), cost))
            if cost < lowest:
                best, lowest = len(fits) - 1, cost
    found, (first, second) = fits[best], grid[best]
    worst = float(found.residuals.max())
    if worst > tolerance:
        short = int((found.residuals > tolerance).sum())
        notes.append(f"{short} columns did not converge in {max_steps} steps (residual up to {worst:.2g})")
        warn_user(
            f"TESLA: {notes[-1]}; take more max_steps=, or penalties that are less far apart",
            ConvergenceWarning,
        )
    details = partial(
        TeslaDetails,
        lambda1=float(first),
        lambda2=float(second),
        q=q,
        residual=worst,
        objective=float(found.objectives.sum()),
        steps=found.steps,
        rows=weight_of,
        tried=tried,
        conditions=None if conditions is None else [(labels[a], labels[b]) for a, b in edges.tolist()],
    )
    return changing_result(spins, labels, found.thetas, rule, details, notes)


class _Problem(NamedTuple):
    """What is fitted: spins, and as they change with rows weighed by their share of a time."""

    spins: Spins
    changing: ChangingSpins
    n_times: int
    factors: Array
    q: int
    tolerance: float
    max_steps: int


class _Fit(NamedTuple):
    """Parameters (time, spin, column), and for each spin the residual, the steps and the objective."""

    thetas: Array
    residuals: Array
    steps: NDArray[np.int64]
    objectives: Array


def _fit(problem: _Problem, lambda1: float, lambda2: float, task: Task, notes: list[str]) -> _Fit:
    n, n_times = len(problem.spins.names), problem.n_times
    fused, smooth = (lambda2, 0.0) if problem.q == 1 else (0.0, lambda2)

    def one(node: int, room: None) -> tuple[Array, float, int, float]:
        from markovia.kernels.structure.fused_logistic import fused_node

        theta = np.zeros((n + 1, n_times))
        residual, steps, objective = fused_node(
            problem.changing, node, problem.factors[node], lambda1, fused, smooth, problem.tolerance, problem.max_steps,
            theta,
        )  # fmt: skip
        return theta.T, float(residual), int(steps), float(objective)

    thetas = np.zeros((n_times, n, n + 1))
    residuals, steps, objectives = np.zeros(n), np.zeros(n, dtype=np.int64), np.zeros(n)
    block = max(4, 2 * thread_count())
    for low in range(0, n, block):
        if task.clock.over():
            notes.append(f"stopped after {low} of {n} columns; the others have no regression of their own")
            break
        nodes = range(low, min(low + block, n))
        for node, found in zip(nodes, in_parallel(one, nodes, lambda: None), strict=True):
            thetas[:, node], residuals[node], steps[node], objectives[node] = found
        task.clock.advance(len(nodes))
    return _Fit(thetas, residuals, steps, objectives)


def _bic(problem: _Problem, thetas: Array) -> float:
    """Return twice the loss of all rows plus log(rows) for each run of equal parameters that are not zero."""
    design, n = problem.spins.design, len(problem.spins.names)
    loss = 0.0
    for t in range(problem.n_times):
        here = problem.changing.time == t
        margin = thetas[t] @ design[:, here]
        each = np.logaddexp(0.0, -2.0 * design[:n, here] * margin) @ problem.spins.weights[here]
        loss += float(each.sum())
    used = thetas != 0
    runs = int(used.sum())
    # each edge between times whose two parameters are equal and not zero makes one run of two; a tree has no cycles
    tree = _spanning(problem.changing.edges, problem.n_times)
    for a, b in tree:
        same = used[a] & (np.abs(thetas[a] - thetas[b]) <= 1e-6 * np.maximum(1.0, np.abs(thetas[a])))
        runs -= int(same.sum())
    return 2 * loss + runs * float(np.log(problem.spins.total))


def _spanning(edges: NDArray[np.int64], n: int) -> list[tuple[int, int]]:
    """Return a spanning forest of the edges."""
    root = list(range(n))

    def top(k: int) -> int:
        while root[k] != k:
            k = root[k]
        return k

    found = []
    for a, b in edges.tolist():
        first, second = top(a), top(b)
        if first != second:
            root[second] = first
            found.append((a, b))
    return found


def _periods(moments: Array, periods: int | None) -> tuple[Any, Array]:
    """Return each row's period, and each period's mean time; rows of one time stay together."""
    distinct, number = np.unique(moments, return_inverse=True)
    if periods is None:
        return number.astype(np.int64), distinct
    check_count("periods", periods, 1)
    if periods > len(distinct):
        raise InvalidArgument(f"periods= is {periods}, and there are only {len(distinct)} times")
    first = np.searchsorted(number, number)  # the place of the first row of each row's time
    raw = (first * int(periods)) // len(moments)
    _, period = np.unique(raw, return_inverse=True)
    middles = np.bincount(period, moments) / np.bincount(period)
    return period.astype(np.int64), middles


def _need_variation_everywhere(
    names: tuple[str, ...], design: Array, period: Any, n_times: int, labels: Any
) -> None:
    counts = np.bincount(period, minlength=n_times)
    for k, name in enumerate(names):
        sums = np.bincount(period, design[k], minlength=n_times)
        flat = np.abs(sums) == counts
        if flat.any():
            raise InvalidArgument(
                f"{name!r} has one state only at time {labels[int(flat.argmax())]}, so that a free field without "
                "lambda2 is infinite; use field='penalised'"
            )
