"""From a checked design and responses to coefficients, statistics and warnings: the working part of `glm.GLM`.

Every solver minimises the same penalised half deviance; what differs is how. Afterwards the Fisher information at the
solution gives covariance and standard errors, and doubtful fits are explained: a linear program tells separated data from
slow convergence (see `separation`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.learning.regression.families import Link, Response
from markovia.learning.regression.iteratively_reweighted import WeightedSolution, newton
from markovia.learning.regression.objectives import GlmObjective, SoftmaxObjective
from markovia.learning.regression.online import diverged, learn_by_rows, safe_rate
from markovia.learning.regression.separated_data import dependent_columns, separated_classes, separated_counts
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array


@dataclass(frozen=True)
class RegressionProblem:
    """What is fitted: `y` are responses, or counts of classes where `response` is None (softmax)."""

    x: Array
    y: Array
    weights: Array
    offset: Array
    response: Response | None
    link: Link | None
    intercept: bool
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class SolverSettings:
    """How it is fitted; see `glm.GLM`."""

    solver: str
    l2: float
    l1: float
    max_iter: int
    tol: float | None
    learning_rate: float | None
    batch_size: int
    random_state: Any


@dataclass(frozen=True)
class SolvedRegression:
    """The answer: all coefficients (intercept first), the free ones flat, statistics by attribute name, and warnings."""

    coef: Array
    flat: Array
    clock: int
    symmetric: bool
    n_iter: int
    converged: bool
    path: tuple[float, ...]
    statistics: dict[str, Any]
    messages: tuple[str, ...]


def solve(
    problem: RegressionProblem,
    settings: SolverSettings,
    passes: int | None = None,
    state: tuple[Array, int] | None = None,
) -> SolvedRegression:
    """Fit a model; `passes` and `state` continue an online fit."""
    d = problem.x.shape[1]
    penalised = np.ones(d)
    if problem.intercept:
        penalised[0] = 0.0
    l2, l1 = settings.l2 * penalised, settings.l1 * penalised
    symmetric = problem.response is None and bool(settings.l2 or settings.l1)
    objective: GlmObjective | SoftmaxObjective
    if problem.response is None or problem.link is None:
        objective = SoftmaxObjective(problem.x, problem.y, problem.offset, l2, symmetric)
        copies = objective.free
    else:
        objective = GlmObjective(
            problem.x, problem.y, problem.weights, problem.offset, problem.response, problem.link, l2
        )
        copies = 1
    clock = 0
    if settings.solver in ("lms", "sgd"):
        found, clock = _online(problem, objective, settings, np.tile(l2, copies), passes, state)
    else:
        found = _batch(objective, settings, np.tile(l1, copies), copies * d)
    coef = objective.full(found.coef) if isinstance(objective, SoftmaxObjective) else found.coef
    statistics = _statistics(problem, objective, found.coef, settings)
    messages = () if passes is not None else _messages(problem, objective, found, settings)
    return SolvedRegression(
        coef,
        found.coef,
        clock,
        symmetric,
        found.n_iter,
        found.converged,
        found.path,
        statistics,
        messages,
    )


def _batch(
    objective: GlmObjective | SoftmaxObjective, settings: SolverSettings, l1: Array, size: int
) -> WeightedSolution:
    tol = (1e-10 if settings.solver == "lbfgs" else 1e-14) if settings.tol is None else settings.tol
    if isinstance(objective, GlmObjective) and (
        settings.solver != "lbfgs" or objective.link.valid is not None
    ):
        start = objective.level(l1 == 0) if np.any(l1) else objective.start()
        if not np.isfinite(objective.value(start)):
            start = objective.start()
    else:
        start = np.zeros(size)
    if not np.isfinite(objective.value(start)):
        raise InvalidArgument(
            "no starting point was found where the link gives allowed means for every row; try another link, or "
            "fit_intercept=True"
        )
    quadratic = (
        isinstance(objective, GlmObjective)
        and objective.response.name == "gaussian"
        and objective.link.name == "identity"
    )
    if quadratic and not np.any(l1) and settings.solver != "lbfgs":
        # the starting point is the solution of the normal equations; one more step takes off the rounding
        begin = objective.value(np.zeros(size))
        better = start + objective.step(start)
        best = min((start, better), key=objective.value)
        return WeightedSolution(best, 1, True, (begin, objective.value(best)))
    if settings.solver == "lbfgs":
        return _lbfgs(objective, start, settings, tol)
    return newton(
        objective,
        start,
        l1=l1,
        observed=settings.solver == "newton",
        max_iter=settings.max_iter,
        tol=tol,
    )


def _lbfgs(
    objective: GlmObjective | SoftmaxObjective, start: Array, settings: SolverSettings, tol: float
) -> WeightedSolution:
    # in units of the objective and of its curvature where it starts, so that those of the data change nothing
    begin = objective.value(start)
    height = begin if begin > 0.0 else 1.0
    bend = _bend(objective, start)
    found = minimise(
        lambda b: (objective.value(b), objective.gradient(b)),
        start,
        height=height,
        units=np.sqrt(height / np.where(bend > 0.0, bend, height)),
        max_iter=settings.max_iter,
        tol=np.sqrt(tol) * 1e-2,
        flat=tol * 1e-4,
        maxcor=20,
        maxls=50,
    )
    converged = found.converged or found.error < 1e-6
    return WeightedSolution(found.point, max(1, found.iterations), converged, (begin, *found.history))


def _bend(objective: GlmObjective | SoftmaxObjective, b: Array) -> Array:
    """Return the diagonal of the objective's second derivatives, or that of a softmax of even scores."""
    if isinstance(objective, GlmObjective):
        curvature = objective.curvature(objective.x @ b + objective.offset)
        return np.asarray(objective.x.T**2 @ curvature + objective.l2)
    share = 1.0 / objective.counts.shape[1]
    own = objective.x.T**2 @ objective.totals * share * (1.0 - share) + objective.l2
    return np.tile(own, objective.free)


def _online(
    problem: RegressionProblem,
    objective: GlmObjective | SoftmaxObjective,
    settings: SolverSettings,
    l2: Array,
    passes: int | None,
    state: tuple[Array, int] | None,
) -> tuple[WeightedSolution, int]:
    from sklearn.utils import check_random_state

    seed = int(check_random_state(settings.random_state).randint(2**31))
    tol = 1e-6 if settings.tol is None else settings.tol
    if state is not None:
        b, clock = state
    else:
        level = isinstance(objective, GlmObjective) and (
            objective.link.valid is not None or not np.isfinite(objective.value(np.zeros(l2.size)))
        )
        b, clock = (objective.start() if level else np.zeros(l2.size)), 0  # type: ignore[union-attr]
    rho = settings.learning_rate
    if rho is None:
        rho = safe_rate(problem.x, problem.weights, _steepest(problem))
    path = [objective.value(b)]
    sgd = settings.solver == "sgd"

    def settled(coef: Array) -> bool:
        value = objective.value(coef)
        if not np.isfinite(value):
            raise diverged(rho)
        path.append(value)
        return abs(path[-2] - value) <= tol * (abs(value) + 1e-8 * abs(path[0]))

    found = learn_by_rows(
        objective, l2, b, rho, batch=settings.batch_size if sgd else None, seed=seed, before=clock,
        passes=settings.max_iter if passes is None else passes, averaged=sgd and passes is None, stop=settled,
    )  # fmt: skip
    return WeightedSolution(
        found.coef, found.passes, found.stopped, tuple(path)
    ), found.steps if sgd else clock


def _steepest(problem: RegressionProblem) -> float:
    """Bound the curvature of a row of length one."""
    if problem.response is None:
        return 0.5
    if problem.response.name in ("bernoulli", "binomial"):
        return 0.25 if problem.link is not None and problem.link.name == "logit" else 1.0
    if problem.response.name == "poisson":
        return max(1.0, float(np.max(problem.y, initial=1.0)))
    return 1.0


# -- after the fit ------------------------------------------------------------------------------------------------


def _statistics(
    problem: RegressionProblem, objective: GlmObjective | SoftmaxObjective, b: Array, settings: SolverSettings
) -> dict[str, Any]:
    """Return everything that is read off the solution."""
    mass = float(problem.weights.sum())
    information = objective.hessian(b)
    rank = int(np.linalg.matrix_rank(information, hermitian=True)) if b.size else 0
    dof = mass - rank
    statistics: dict[str, Any] = {"n_rows_": len(problem.x), "df_resid_": dof}
    if isinstance(objective, SoftmaxObjective):
        log_likelihood = float((problem.y * objective.log_probabilities(b)).sum())
        shares = problem.y.sum(axis=0) / mass
        held = shares > 0
        dispersion, deviance = 1.0, -2.0 * log_likelihood
        null = -2.0 * mass * float((shares[held] * np.log(shares[held])).sum())
        if not problem.intercept:
            null = 2.0 * mass * float(np.log(len(shares)))
    else:
        response = objective.response
        eta = problem.x @ b + problem.offset
        mu = objective.link.inverse(eta)
        deviance = 2.0 * objective.value(b) - float(objective.l2 @ b**2)
        dispersion = 1.0
        if response.dispersed:
            pearson = float(problem.weights @ ((problem.y - mu) ** 2 / response.variance(mu)))
            dispersion = pearson / dof if dof > 0 else np.nan
        used = dispersion if np.isfinite(dispersion) else 1.0
        log_likelihood = response.log_likelihood(problem.y, mu, problem.weights, used)
        if response.name == "bernoulli":
            log_likelihood = -0.5 * deviance
        null = _null_deviance(problem, response, objective.link)
    if settings.l1:
        covariance = np.full(information.shape, np.nan)
    else:
        covariance = dispersion * np.linalg.pinv(information, hermitian=True)
    statistics.update(
        dispersion_=dispersion,
        deviance_=deviance,
        null_deviance_=null,
        log_likelihood_=log_likelihood,
        covariance_=covariance,
        standard_errors_=np.sqrt(np.maximum(np.diag(covariance), 0.0))
        if not settings.l1
        else np.diag(covariance),
    )
    return statistics


def _null_deviance(problem: RegressionProblem, response: Response, link: Link) -> float:
    """Return the deviance of the model with the intercept (if there is one) and the offset alone."""
    used = problem.weights > 0
    y, w, offset = problem.y[used], problem.weights[used], problem.offset[used]
    if problem.intercept and not np.any(offset):
        mu = np.full(len(y), float(w @ y) / float(w.sum()))
        return float(w @ response.unit_deviance(y, mu))
    ones = np.ones((len(y), 1))
    only = GlmObjective(ones, y, w, offset, response, link, np.zeros(1))
    b = newton(only, only.start()).coef if problem.intercept else np.zeros(1)
    return 2.0 * only.value(b)


def _messages(
    problem: RegressionProblem,
    objective: GlmObjective | SoftmaxObjective,
    found: WeightedSolution,
    settings: SolverSettings,
) -> tuple[str, ...]:
    """Return one plain sentence for each thing that is wrong with the fit."""
    messages = []
    unpenalised = not (settings.l2 or settings.l1)
    if unpenalised:
        columns = dependent_columns(problem.x, problem.weights)
        if columns:
            shown = ", ".join(_column(j, problem) for j in columns[:5])
            more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
            messages.append(
                f"the coefficients are not unique: {shown}{more} "
                f"{'is a linear combination' if len(columns) == 1 else 'are linear combinations'} of the other columns; "
                "the reported ones are of least norm (remove columns, or use l2)"
            )
        apart = _separated(problem, objective, found) if _suspicious(problem, objective, found) else False
        if apart is not False:
            poisson = problem.response is not None and problem.response.name == "poisson"
            messages.append(
                f"the {'zero counts' if poisson else 'classes'} {'are' if apart else 'may be'} separated by a linear "
                "function of the columns: then the likelihood has no finite maximum, the reported coefficients only "
                "tell where the iterations stopped, and standard errors mean nothing; use l2"
            )
            return tuple(messages)
    if not found.converged:
        cure = (
            "a larger max_iter" if settings.solver != "lms" else "a larger max_iter or another learning_rate"
        )
        messages.append(
            f"the {settings.solver} iterations did not converge in {found.n_iter} steps; try {cure}, scaled columns, or l2"
        )
    return tuple(messages)


def _suspicious(
    problem: RegressionProblem, objective: GlmObjective | SoftmaxObjective, found: WeightedSolution
) -> bool:
    """Say whether the data may be separated: along some direction next to no information is left."""
    if problem.response is not None and problem.response.name not in ("bernoulli", "binomial", "poisson"):
        return False
    if not found.converged:
        return True
    information = objective.hessian(found.coef)
    rows = problem.x * np.sqrt(problem.weights)[:, None]
    sizes, axes = np.linalg.eigh(rows.T @ rows)
    kept = sizes > 1e-12 * max(sizes[-1], 1e-300)
    white = axes[:, kept] / np.sqrt(sizes[kept])
    copies = len(information) // len(sizes)
    spread = np.kron(np.eye(copies), white)
    left = np.linalg.eigvalsh(spread.T @ information @ spread)  # averages of the curvature along directions
    usual = 1.0
    if problem.response is not None and problem.response.name == "poisson":
        usual = max(float(problem.weights @ problem.y) / float(problem.weights.sum()), 1e-3)
    return bool(left[0] < 1e-6 * usual)


def _separated(
    problem: RegressionProblem, objective: GlmObjective | SoftmaxObjective, found: WeightedSolution
) -> bool | None:
    """Say whether the data are separated; None where that would take too long to decide."""
    used = problem.weights > 0
    x = problem.x[used]
    if isinstance(objective, SoftmaxObjective):
        seen = problem.y[used]
        labels = seen.argmax(axis=1).astype(np.int64)
        scores = x @ objective.full(found.coef).T
        own = scores[np.arange(len(x)), labels]
        scores[np.arange(len(x)), labels] = -np.inf
        return bool(np.all(own > scores.max(axis=1))) or separated_classes(x, labels, seen.shape[1])
    y = problem.y[used]
    if objective.response.name == "poisson":
        return separated_counts(x, y) if objective.link.name == "log" else False
    eta = x @ found.coef
    if np.all(eta[y > 0] > 0) and np.all(eta[y < 1] < 0):
        return True
    both = np.vstack([x[y > 0], x[y < 1]])
    labels = np.repeat(np.array([1, 0], dtype=np.int64), [int((y > 0).sum()), int((y < 1).sum())])
    return separated_classes(both, labels, 2)


def _column(j: int, problem: RegressionProblem) -> str:
    if problem.intercept and j == 0:
        return "the intercept"
    place = j - problem.intercept
    return f"column {place}" if problem.names is None else repr(problem.names[place])
