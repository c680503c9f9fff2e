"""The graphical lasso as a method of learning a Gaussian graph: `sparse_precision` with a penalty that is given or chosen.

The problem and how it is solved are in `markovia.structure.undirected.sparse_precision`, the ways of choosing the penalty in
`markovia.structure.undirected.graphical_lasso_penalty`.
"""

from dataclasses import dataclass

import numpy as np

from markovia.data.tables.moments import moments
from markovia.errors import InvalidArgument
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_number
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.task import Task
from markovia.structure.task.undirected_edges import (
    partial_correlations_of,
    undirected_graph,
    within_rules,
)
from markovia.structure.undirected.graphical_lasso_penalty import ChosenRho, chosen_rho
from markovia.structure.undirected.neighbourhood_selection import penalty_factors
from markovia.structure.undirected.penalty_choice import SUBSAMPLING, PenaltyChoice, Subsampling
from markovia.structure.undirected.sparse_precision import scaled_penalty, solve


@dataclass(frozen=True, eq=False)
class GaussianDetails:
    """The fitted Gaussian, the penalty, its objective with the duality gap and the optimality conditions, the choice."""

    precision: Array
    covariance: Array
    rho: float
    objective: float
    gap: float
    kkt: float
    choice: PenaltyChoice | None = None


def graphical_lasso(
    task: Task,
    *,
    rho: float | None = None,
    choose: str | None = None,
    scale: bool = True,
    penalise_diagonal: bool = False,
    n_rhos: int = 30,
    smallest: float = 0.02,
    folds: int = 5,
    gamma: float = 0.5,
    subsampling: Subsampling = SUBSAMPLING,
    tolerance: float = 1e-8,
) -> FoundGraph:
    """Learn a Gaussian graph by the graphical lasso.

    Parameters
    ----------
    task
        Continuous data.
    rho
        The penalty. Instead of it `choose`.
    choose
        "ebic" (default), "cv" (the likelihood of rows left out), "stars" or "stability".
    scale
        Whether columns are first scaled to variance one, so that units do not matter. False is scikit-learn's way.
    penalise_diagonal
        Whether the diagonal is penalised.
    n_rhos, smallest
        How many penalties are tried, and the last as a share of the first (which leaves no edge).
    folds
        For "cv".
    gamma
        For "ebic": the weight of the number of possible edges (0 is BIC).
    subsampling
        For "stars" and "stability"; `learn_structure` takes its settings one by one: `subsamples=`, `beta=`, `pi=`,
        `false_edges=`, `complementary=`.
    tolerance
        The largest violation of the optimality conditions.

    Returns
    -------
    Found
        `weights` are the partial correlations. Details: "precision", "covariance" (in the units of the data), "rho",
        "objective", "gap", "kkt", "choice" (what was tried; with "stability" its "frequencies" and "false_edges_bound").

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> a = rng.normal(size=500)
    >>> b = a + rng.normal(size=500)
    >>> c = b + rng.normal(size=500)
    >>> found = mk.learn_structure({"a": a, "b": b, "c": c}, method="graphical-lasso")
    >>> found.edges
    [('a', 'b'), ('b', 'c')]
    """
    if rho is not None and choose is not None:
        raise InvalidArgument("give rho= or choose=, not both")
    known = moments(task.rows, "graphical-lasso")
    deviations = known.deviations if scale else np.ones(len(task.names))
    cov = known.correlation if scale else known.covariance
    factors = penalty_factors(task)
    np.fill_diagonal(factors, 1.0 if penalise_diagonal else 0.0)
    if rho is None:
        chosen = chosen_rho(
            known.rows / deviations, known.weights, cov, factors, choose or "ebic", task.rng, task.clock,
            n_rhos=n_rhos, smallest=smallest, folds=folds, gamma=gamma, subsampling=subsampling,
        )  # fmt: skip
    else:
        check_number("rho", rho)
        chosen = ChosenRho(rho)
    stable = chosen.present
    if stable is not None:
        factors[~stable & ~task.rules.required_pairs & ~np.eye(len(cov), dtype=bool)] = np.inf
    found = solve(cov, scaled_penalty(factors, chosen.rho), chosen.start, tolerance, 200)
    notes = [] if found.converged else [f"the optimality conditions are violated by {found.error:.2g}"]
    strength = partial_correlations_of(found.precision)
    keep = within_rules(found.precision != 0 if stable is None else stable, strength, task.rules)
    units = np.outer(deviations, deviations)
    return FoundGraph(
        undirected_graph(task.names, keep),
        weights=np.where(keep, strength, 0.0),
        notes=notes,
        details=GaussianDetails(
            precision=found.precision / units,
            covariance=found.covariance * units,
            rho=float(chosen.rho),
            objective=found.objective,
            gap=found.gap,
            kkt=found.error,
            choice=chosen.choice,
        ),
    )
