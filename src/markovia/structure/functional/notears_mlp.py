"""NOTEARS-MLP: a directed graph of nonlinear mechanisms (Zheng, Dan, Aragam, Ravikumar, Xing 2020).

Each variable is predicted from all others by a perceptron of its own with one hidden layer of logistic units. The
weight of i -> j is the length of the vector of first-layer weights from i in the network of j; on their squares the
same constraint h = 0 as in linear NOTEARS is imposed, by an augmented Lagrangian and L-BFGS-B. λ₁ penalises the size
of first-layer weights, λ₂ the squares of all.

Gradients are written out in NumPy: a step costs O(n d² m) for m hidden units, most of it one matrix product. Use it for
some ten to some tens of variables with nonlinear effects; what `notears` says about the scale of the columns holds here too.
"""

import numpy as np

from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number
from markovia.structure.functional.augmented_lagrangian import LagrangianMinimum, Objective, minimise_acyclic
from markovia.structure.functional.checked_matrix import measured_columns
from markovia.structure.functional.notears import finished
from markovia.structure.task.acyclicity import possible_edges, squared_acyclicity
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task


def notears_mlp(
    task: Task,
    *,
    hidden: int = 10,
    lambda1: float = 0.01,
    lambda2: float = 0.01,
    threshold: float = 0.3,
    standardise: bool = False,
    max_iterations: int = 100,
    h_tolerance: float = 1e-8,
    rho_max: float = 1e16,
    inner_iterations: int = 500,
    restarts: int = 0,
) -> FoundGraph:
    """Learn a nonlinear model with an acyclic graph.

    Parameters
    ----------
    task
        Data of numbers, the rules, and random numbers for where the networks begin. Forbidden weights are held at zero;
        required edges are neither penalised by `lambda1` nor cut.
    hidden
        Hidden units of each network.
    lambda1, lambda2
        The penalties of the size of first-layer weights, and of the squares of all weights.
    threshold
        Edges whose weight is smaller are cut. It is raised, with a note, where the rest would close a cycle.
    standardise
        Whether the columns are first brought to variance 1.
    max_iterations, h_tolerance, rho_max, inner_iterations
        See `augmented_lagrangian.minimise_acyclic`. More inner iterations lower the objective a little and cost time in
        proportion.
    restarts
        How many further random starts are tried; the graph of the lowest objective is kept. One start often ends in a local
        optimum.

    Returns
    -------
    Found
        A `DAG`; `weights`, never negative, of its edges; `score` is minus the objective; `details` is an
        `AcyclicDetails`.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.uniform(-2, 2, 300)
    >>> data = {"a": a, "b": 2 * a**2 + 0.3 * rng.normal(size=300)}
    >>> mk.learn_structure(data, method="notears-mlp", hidden=4, seed=0).edges
    [('a', 'b')]
    """
    matrix = measured_columns(task, "notears-mlp")
    for name, value in (("lambda1", lambda1), ("lambda2", lambda2), ("threshold", threshold)):
        check_number(name, value)
    check_count("hidden", hidden, 1)
    check_count("restarts", restarts)
    rows = matrix - matrix.mean(axis=0)
    if standardise:
        rows = rows / rows.std(axis=0)
    d = rows.shape[1]
    free = possible_edges(task.rules)
    penalty = np.repeat((lambda1 * ~task.rules.required).T[:, None, :], hidden, axis=1)
    objective = perceptrons(rows, hidden, penalty, lambda2)
    first = d * hidden * d
    bounds = np.full((2 * first + 2 * d * hidden + d, 2), (-np.inf, np.inf))
    bounds[: 2 * first, 0] = 0.0
    shut = ~np.repeat(free.T[:, None, :], hidden, axis=1).ravel()
    bounds[: 2 * first, 1] = np.where(np.tile(shut, 2), 0.0, np.inf)
    ends: list[LagrangianMinimum] = []
    for _ in range(1 + restarts):
        if ends and task.clock.over():
            break
        ends.append(
            minimise_acyclic(
                objective,
                _start(task.rng, d, hidden, bounds),
                bounds,
                task.clock,
                max_iterations=max_iterations,
                h_tolerance=h_tolerance,
                rho_max=rho_max,
                inner_iterations=inner_iterations,
            )
        )
    end = min(ends, key=lambda e: (not e.converged, e.value))
    layer = (end.theta[:first] - end.theta[first : 2 * first]).reshape(d, hidden, d)
    weights = np.sqrt((layer**2).sum(axis=1)).T.copy()
    objectives = [e.value for e in ends]
    return finished(task, end, weights, threshold, rows, standardise, objectives=objectives)


def _start(rng: np.random.Generator, d: int, hidden: int, bounds: Array) -> Array:
    wide = 1.0 / np.sqrt(d)
    start = np.concatenate(
        [
            rng.uniform(0.0, wide, 2 * d * hidden * d),
            rng.uniform(-wide, wide, d * hidden),
            rng.uniform(-1.0, 1.0, d * hidden) / np.sqrt(hidden),
            np.zeros(d),
        ]
    )
    inside: Array = np.clip(start, bounds[:, 0], bounds[:, 1])
    return inside


def perceptrons(rows: Array, hidden: int, penalty: Array, lambda2: float) -> Objective:
    """Return the penalised half mean square error of all networks, and h, as a function of their weights.

    θ holds the positive and the negative parts of the first layer (child, unit, parent), the constants of the units, the
    second layer (child, unit) and its constants.
    """
    n, d = rows.shape
    first, units = d * hidden * d, d * hidden
    extra = np.tile(penalty.ravel(), 2)

    def objective(theta: Array) -> tuple[float, Array, float, Array]:
        positive, negative = theta[:first], theta[first : 2 * first]
        layer = (positive - negative).reshape(units, d)
        shift, out, constants = np.split(theta[2 * first :], [units, 2 * units])
        active = rows @ layer.T
        active += shift
        with np.errstate(over="ignore"):
            np.negative(active, out=active)
            np.exp(active, out=active)
        active += 1.0
        np.reciprocal(active, out=active)
        fitted = np.einsum("njm,jm->nj", active.reshape(n, d, hidden), out.reshape(d, hidden)) + constants
        error = (fitted - rows) / n
        value = 0.5 * n * float((error * error).sum())
        value += float(extra @ theta[: 2 * first])
        value += 0.5 * lambda2 * (float((layer * layer).sum()) + float(out @ out))
        slope_out = np.einsum("nj,njm->jm", error, active.reshape(n, d, hidden)).ravel() + lambda2 * out
        back = active * (1.0 - active)
        back *= out
        back.reshape(n, d, hidden)[...] *= error[:, :, None]
        slope_layer = (back.T @ rows + lambda2 * layer).ravel()
        squares = layer.reshape(d, hidden, d)
        h, turn = squared_acyclicity((squares**2).sum(axis=1).T)
        turn_layer = (2.0 * squares * turn.T[:, None, :]).ravel()
        slope = np.concatenate(
            [
                slope_layer + extra[:first],
                extra[first:] - slope_layer,
                back.sum(axis=0),
                slope_out,
                error.sum(axis=0),
            ]
        )
        return value, slope, h, np.concatenate([turn_layer, -turn_layer, np.zeros(2 * units + d)])

    return objective
