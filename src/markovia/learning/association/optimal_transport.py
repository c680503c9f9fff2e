"""Optimal transport: the cheapest way to move the mass of one distribution to another, and the prices that prove it.

The primal problem moves mass plan[i, j] >= 0 from point i to point j, rows summing to p and columns to q, at the least total
cost; the dual one finds prices f and g with f[i] + g[j] <= cost[i, j] that earn most, p f + q g. Both are one linear program
(HiGHS). The Wasserstein distance of order k has the distance to the k-th power as its cost, and is the k-th root of the
total; for k = 1 the prices are a function of slope at most one (Kantorovich and Rubinstein). On a line quantiles are moved
to quantiles. Sinkhorn's iterations add a share of the plan's divergence from independence to the cost, so that steps are
cheap; their rounded plan and prices still enclose the true cost.
References: Villani (2003); Cuturi (2013); Altschuler, Weed and Rigollet (2017) for the rounding; Schmitzer (2019).
Cost: entries of the plan times some hundred for the program; linear in them a Sinkhorn step; n log n on a line.
"""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from markovia.data.tables.plain_columns import numbers
from markovia.errors import InvalidArgument, TooLarge
from markovia.inference.posterior_questions import state_numbers
from markovia.learning.association.probability_tables import paired_columns, paired_probabilities
from markovia.optimise.ascent import climb
from markovia.runtime.array_types import Array
from markovia.runtime.checks import POSITIVE, SECONDS, Choice, NumberRange, Whole, check
from markovia.runtime.memory_budget import default_budget, readable
from markovia.runtime.shown import InNotebooks

LARGEST_PROGRAM = 250_000
"""Entries of a plan up to which a linear program is tried."""
EXACT = 1e-8
"""The share of the largest cost by which the cheapest plan and its proof may differ."""
ORDER = NumberRange(1.0, 100.0, said="a number from 1 to 100")


@dataclass(frozen=True, eq=False)
class TransportPlan(InNotebooks):
    """How the mass of p is moved to q.

    Attributes
    ----------
    distance
        The cost to the power 1 / order: the Wasserstein distance, where costs are distances.
    cost
        What the plan costs; the least possible where it is `exact`, else an upper bound on it.
    bound
        What the prices earn: a lower bound on the cost of every plan.
    plan
        The mass moved from each point of p (rows) to each point of q; its margins are p and q.
    potentials
        The prices f of p's points and g of q's.
    exact
        Whether the bound shows that no plan is cheaper by more than 1e-8 of the largest cost.
    converged
        Whether the solver ended by itself.
    regularised_cost
        Of Sinkhorn, the least cost plus divergence; None without it.
    """

    distance: float
    cost: float
    bound: float
    plan: Array
    potentials: tuple[Array, Array]
    exact: bool
    converged: bool
    regularised_cost: float | None = None

    def __str__(self) -> str:
        said = "the cheapest plan" if self.exact else f"at least {self.bound:.6g}"
        rows, columns = self.plan.shape
        return f"distance {self.distance:.6g}, cost {self.cost:.6g} ({said}), {rows} x {columns} points"

    __repr__ = __str__


def optimal_transport(
    p: Any,
    q: Any,
    positions: ArrayLike | None = None,
    *,
    samples: bool = False,
    order: float = 1.0,
    cost: ArrayLike | None = None,
    method: Literal["linear-program", "sinkhorn"] = "linear-program",
    regularisation: float = 0.01,
    max_iter: int = 10_000,
    tol: float = 1e-9,
    time_limit: float | None = None,
) -> TransportPlan:
    """Find the cheapest way to move the mass of one distribution to another.

    Parameters
    ----------
    p, q
        Probability tables of one shape, or factors or posteriors over the same variables.
    positions
        Where the entries of the tables lie, a number or a row of coordinates each. By default the states, where they are
        numbers; of arrays, the numbers of rows, columns, ....
    samples
        Whether p and q are samples instead: columns of numbers, each row a point with the same mass.
    order
        Costs are Euclidean distances to this power, at least 1.
    cost
        What it costs to move a unit from each point of p (rows) to each of q, in place of distances.
    method
        "linear-program" is exact; "sinkhorn" is for many points.
    regularisation
        Of Sinkhorn: how much the divergence of the plan from independence counts, as a share of the largest cost.
    max_iter, tol, time_limit
        Of Sinkhorn: steps at most, the mass that may be misplaced at the end, and seconds.

    Raises
    ------
    InvalidArgument
        If states have no positions, or numbers do not fit.
    TooLarge
        If the linear program has more than 250,000 variables.

    Examples
    --------
    >>> found = optimal_transport([0.5, 0.5, 0.0], [0.0, 0.25, 0.75])
    >>> found
    distance 1.25, cost 1.25 (the cheapest plan), 3 x 3 points
    >>> [f.tolist() for f in found.potentials]
    [[0.0, -1.0, -2.0], [0.0, 1.0, 2.0]]
    """
    check("method", method, Choice(("linear-program", "sinkhorn")))
    first, second, costs, unit = _read(p, q, positions, samples, order, cost)
    here, there = np.flatnonzero(first > 0), np.flatnonzero(second > 0)
    inner, value, converged = costs[np.ix_(here, there)], None, True
    if method == "linear-program":
        moved, g = _linear_program(first[here], second[there], inner)
    else:
        check("regularisation", regularisation, POSITIVE)
        check("max_iter", max_iter, Whole(1))
        check("tol", tol, POSITIVE)
        check("time_limit", time_limit, SECONDS)
        moved, g, value, converged = _sinkhorn(
            first[here], second[there], inner, regularisation, max_iter, tol, time_limit
        )
    plan = np.zeros(costs.shape)
    plan[np.ix_(here, there)] = _rounded(moved, first[here], second[there])
    # prices that break no constraint, also at points without mass: each the most that the others leave
    f = (costs[:, there] - g).min(axis=1)
    f -= f[0]
    g = (costs - f[:, None]).min(axis=0)
    total = float((plan * costs).sum())
    bound = min(max(float(first @ f + second @ g), 0.0), total)
    with np.errstate(over="ignore", under="ignore"):
        whole = float(np.power(unit, order))
    return TransportPlan(
        unit * total ** (1.0 / order),
        whole * total,
        whole * bound,
        plan,
        (whole * f, whole * g),
        total - bound <= EXACT,
        converged,
        None if value is None else whole * value,
    )


def wasserstein(
    p: Any,
    q: Any,
    positions: ArrayLike | None = None,
    *,
    samples: bool = False,
    order: float = 1.0,
) -> float:
    """Return the Wasserstein (earth mover's) distance of two distributions, exactly; `optimal_transport` has the plan.

    Parameters
    ----------
    p, q, positions, samples, order
        As in `optimal_transport`. On a line there may be millions of points.

    Examples
    --------
    >>> wasserstein([0.5, 0.5, 0.0], [0.0, 0.25, 0.75])
    1.25

    Two lines of points side by side, which share no point, are as far apart as the lines:

    >>> y = np.linspace(0, 1, 50)
    >>> round(wasserstein(np.column_stack([0 * y, y]), np.column_stack([0 * y + 0.3, y]), samples=True), 9)
    0.3
    """
    first, second, left, right = _points(p, q, positions, samples)
    check("order", order, ORDER)
    if left.shape[1] == 1:
        return _on_a_line(first, second, left[:, 0], right[:, 0], order)
    if samples and len(left) == len(right):  # one point goes to one point
        from scipy.optimize import linear_sum_assignment

        costs = _distances(left, right)
        top = float(costs.max()) or 1.0
        at = linear_sum_assignment((costs / top) ** order)
        return float(top * np.mean((costs[at] / top) ** order) ** (1.0 / order))
    return optimal_transport(p, q, positions, samples=samples, order=order).distance


def _read(
    p: Any, q: Any, positions: Any, samples: bool, order: float, cost: Any
) -> tuple[Array, Array, Array, float]:
    """Return masses, the matrix of costs with 1 as the largest, and the distance that this 1 stands for."""
    check("order", order, ORDER)
    if cost is not None and (positions is not None or order != 1.0):
        raise InvalidArgument("cost= says what moving costs, so positions= and order= are left out")
    first, second, left, right = _points(p, q, positions, samples, placed=cost is None)
    costs = _distances(left, right) if cost is None else numbers(cost, "cost=")
    if costs.shape != (len(first), len(second)) or (costs < 0).any():
        raise InvalidArgument(f"cost= is a {len(first)} x {len(second)} matrix of numbers that are 0 or more")
    unit = float(costs.max()) or 1.0
    return first, second, (costs / unit) ** order, unit


def _points(
    p: Any, q: Any, positions: Any, samples: bool, placed: bool = True
) -> tuple[Array, Array, Array, Array]:
    """Return masses and points, a row of coordinates each; of states that need not be `placed` no points."""
    if samples:
        if positions is not None:
            raise InvalidArgument("samples are points themselves; leave positions= out")
        columns = paired_columns(p, q)
        n, m = len(columns[0][1]), len(columns[0][2])
        left, right = (
            numbers(np.column_stack([c[i] for c in columns]), name) if placed else np.empty((0, 0))
            for i, name in ((1, "p"), (2, "q"))
        )
        return np.full(n, 1.0 / n), np.full(m, 1.0 / m), left, right
    first, second, variables = paired_probabilities(p, q)
    if positions is not None:
        points = numbers(positions, "positions=")
        points = points[:, None] if points.ndim == 1 else points
        if points.ndim != 2 or len(points) != first.size:
            raise InvalidArgument(
                f"positions= has a number or a row for each of {first.size} entries, not {points.shape}"
            )
    elif placed:
        named = next((v.name for v in variables if any(isinstance(s, str) for s in v.states)), None)
        if named is not None:
            raise InvalidArgument(
                f"the states of {named!r} are names; say where they lie in positions=, or give cost="
            )
        axes = [state_numbers(v, "position") for v in variables] or [np.arange(float(k)) for k in first.shape]
        grid = np.meshgrid(*axes, indexing="ij")
        points = np.stack([axis.ravel() for axis in grid], axis=1).astype(np.float64)
    else:
        points = np.empty((0, 0))
    return first.ravel() / first.sum(), second.ravel() / second.sum(), points, points


def _distances(left: Array, right: Array) -> Array:
    from scipy.spatial.distance import cdist

    need = 64.0 * len(left) * len(right)
    if need > default_budget():
        raise TooLarge(
            f"the costs between {len(left):,} and {len(right):,} points need {readable(need)}; take a part of the points",
            bytes=need,
        )
    return np.asarray(cdist(left, right))


def _on_a_line(p: Array, q: Array, left: Array, right: Array, order: float) -> float:
    """Move quantiles to quantiles, which is cheapest on a line."""
    here, there = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    up, down = np.cumsum(p[here]), np.cumsum(q[there])
    levels = np.union1d(up, down)
    levels = np.minimum(levels, min(up[-1], down[-1]))
    mass = np.diff(levels, prepend=0.0)
    # pieces that only the rounding of sums of the same masses makes are none
    mass[mass <= len(levels) * np.finfo(float).eps] = 0.0
    a = left[here][np.minimum(np.searchsorted(up, levels), len(up) - 1)]
    b = right[there][np.minimum(np.searchsorted(down, levels), len(down) - 1)]
    gaps = np.where(mass > 0, np.abs(a - b), 0.0)
    top = float(gaps.max()) or 1.0
    return float(top * (mass @ (gaps / top) ** order) ** (1.0 / order))


def _linear_program(p: Array, q: Array, cost: Array) -> tuple[Array, Array]:
    """Return the cheapest plan and the prices of q's points."""
    from scipy.optimize import linprog
    from scipy.sparse import csr_array, eye_array, kron, vstack

    n, m = cost.shape
    if cost.size > LARGEST_PROGRAM:
        raise TooLarge(
            f"a plan between {n:,} and {m:,} points is a linear program of {cost.size:,} variables; use method='sinkhorn'"
        )
    rows = vstack([kron(eye_array(n), np.ones((1, m))), kron(np.ones((1, n)), eye_array(m))])
    size = float(max(n, m))  # masses of about one
    tight = dict.fromkeys(("primal_feasibility_tolerance", "dual_feasibility_tolerance"), 1e-10)
    masses = size * np.concatenate([p, q])
    found = linprog(cost.ravel(), A_eq=csr_array(rows), b_eq=masses, method="highs", options=tight)
    if found.x is None:
        raise InvalidArgument(f"the linear program of the plan was not solved: {found.message}")
    return np.maximum(found.x.reshape(n, m), 0.0) / size, np.asarray(found.eqlin.marginals[n:])


def _sinkhorn(
    p: Array, q: Array, cost: Array, share: float, max_iter: int, tol: float, time_limit: float | None
) -> tuple[Array, Array, float, bool]:
    """Return the regularised plan, prices of q's points, the regularised cost, and whether margins were met."""
    from scipy.special import logsumexp

    log_p, log_q = np.log(p), np.log(q)

    def plan_of(f: Array, g: Array) -> Array:
        return np.exp((f[:, None] + g - cost) / share + log_p[:, None] + log_q)

    def step(prices: tuple[Array, Array]) -> tuple[tuple[Array, Array], float]:
        # each side's best prices given the other's: block ascent on the dual, in logarithms
        f = -share * logsumexp((prices[1] - cost) / share + log_q, axis=1)
        g = -share * logsumexp((f[:, None] - cost) / share + log_p[:, None], axis=0)
        return (f, g), float(p @ f + q @ g)

    def settled(_: Any, prices: tuple[Array, Array]) -> bool:
        return float(np.abs(plan_of(*prices).sum(axis=1) - p).sum()) <= tol

    found = climb(
        step, (np.zeros(len(p)), np.zeros(len(q))), max_iter=max_iter, tol=-np.inf, settled=settled,
        time_limit=time_limit, name="Sinkhorn",
    )  # fmt: skip
    found.warn(tol)
    return plan_of(*found.state), found.state[1], found.objective, found.converged


def _rounded(plan: Array, p: Array, q: Array) -> Array:
    """Return a plan whose margins are p and q: what is too much is taken off, what is left is moved independently."""
    for side, wanted in ((1, p), (0, q)):
        held = plan.sum(axis=side, keepdims=True)
        share = np.divide(wanted.reshape(held.shape), held, out=np.ones_like(held), where=held > 0)
        plan = plan * np.minimum(1.0, share)
    left, lacking = np.maximum(p - plan.sum(axis=1), 0.0), np.maximum(q - plan.sum(axis=0), 0.0)
    mass = float(left.sum())
    return plan + np.outer(left, lacking) / mass if mass > 0 else plan
