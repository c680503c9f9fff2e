"""Choosing how to fit an undirected model, and doing it: from a layout and rows to weights.

Methods: "exact" (maximum likelihood by exact inference), "ipf" (free tables, no penalty), "pseudo-likelihood", "cd" and
"pcd" (contrastive divergence), "gibbs" (Monte Carlo maximum likelihood), and the surrogate likelihoods of "loopy-bp",
"mean-field" and "tree-reweighted". "auto" writes the answer down where the model is decomposable with free tables, takes
"exact" where a junction tree is small, and otherwise "pseudo-likelihood", with a warning. Rows that miss cells go to
`incomplete_fit.py`, which has "em" besides.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from markovia.data.tables.row_sources import CodedTable, RowSource
from markovia.errors import (
    ApproximateWarning,
    ConvergenceWarning,
    InvalidArgument,
    TooLarge,
    did_you_mean,
    warn_user,
)
from markovia.factors.potentials.log_linear import Feature
from markovia.inference.markov_chains.gibbs import Gibbs
from markovia.inference.message_passing.loopy_bp import LoopyBP
from markovia.inference.variational.mean_field import MeanField
from markovia.inference.variational.tree_reweighted import TreeReweighted
from markovia.learning.fields.approximate_expectations import BOUND, ApproximateExpectations
from markovia.learning.fields.contrastive_divergence import (
    LEAST,
    ContrastiveDivergence,
    cells_of,
    contrastive_divergence,
)
from markovia.learning.fields.exact_expectations import CHEAP, exact_expectations
from markovia.learning.fields.field_layout import FieldLayout, require_rows
from markovia.learning.fields.incomplete_fit import METHODS as INCOMPLETE_METHODS
from markovia.learning.fields.incomplete_fit import IncompleteFit
from markovia.learning.fields.iterative_proportional_fitting import perfect_order, proportional_fitting
from markovia.learning.fields.log_linear_fit import (
    OPTIMISERS,
    REPORTED,
    FieldFit,
    LogLinearSearch,
    likelihood,
    unseen_cells,
)
from markovia.learning.fields.penalties import Penalty, read_penalty
from markovia.learning.fields.pseudo_likelihood import PseudoLikelihood, ordered_codes
from markovia.learning.fields.stochastic_gradient import descend
from markovia.runtime.array_types import Array
from markovia.runtime.checks import SECONDS, NumberRange, Whole, check, check_choice, numbers
from markovia.runtime.clock import now
from markovia.runtime.seeds import Seed, generator

METHODS = (
    "auto",
    "exact",
    "em",
    "ipf",
    "pseudo-likelihood",
    "cd",
    "pcd",
    "gibbs",
    "loopy-bp",
    "mean-field",
    "tree-reweighted",
)
SURROGATES = {"loopy-bp": LoopyBP, "mean-field": MeanField, "tree-reweighted": TreeReweighted}
STEPS = {"search": 1000, "ipf": 1000, "descent": 1000, "gibbs": 200}
"""Steps at most, by what makes them."""
TOLERANCE = 1e-6
"""Largest entry of the gradient of a row's loss, relative to the largest mean feature, at which a search has converged."""
STOCHASTIC = 0.02
"""The same for the mean gradient at the end of a stochastic descent."""
BATCH = 100
"""Rows of a step of stochastic gradients."""


def fit_field(
    layout: FieldLayout,
    source: RowSource,
    *,
    features: Sequence[Feature] = (),
    free: bool = False,
    method: Any = "auto",
    l2: Any = 0.0,
    l1: Any = 0.0,
    group_l1: Any = 0.0,
    groups: Any = None,
    optimizer: str = "auto",
    start: Array | None = None,
    seed: Seed = 0,
    max_iterations: int | None = None,
    tolerance: float | None = None,
    restarts: int = 1,
    time_limit: float | None = None,
    checkpoint: str | Path | None = None,
    progress: bool | None = None,
) -> FieldFit:
    """Fit the weights of a layout to rows; see `MarkovNetwork.fit` for the arguments.

    Parameters
    ----------
    layout, source
        The model and the rows; variables without a column, and cells that are missing, are summed out.
    features
        The features of the weights; none for free tables.
    free
        Whether the weights are the entries of tables.
    start
        Weights to start from; zeros by default.
    """
    began = now()
    kind, settings = _method(method)
    check_choice("optimizer", optimizer, OPTIMISERS)
    check("max_iterations", max_iterations, Whole(1, none=True))
    check("tolerance", tolerance, NumberRange(0.0, said="a number, 0 or more", none=True))
    check("restarts", restarts, Whole(1))
    check("time_limit", time_limit, SECONDS)
    own = {v.name for v in layout.variables}
    complete = own <= set(source.variables) and not any(k for n, k in source.missing().items() if n in own)
    controlled = restarts > 1 or time_limit is not None or checkpoint is not None
    if not complete or controlled or kind == "em":
        _refuse_method(kind, method, complete)
        require_rows(source, gaps=True)
        penalty = read_penalty(layout, source.total, l2, l1, group_l1, groups)
        random = kind == "pcd"
        found = IncompleteFit(
            layout, source.in_memory(), penalty, optimizer, free, None if start is None else _start(start, layout), seed,
            restarts, max_iterations or STEPS["descent" if random else "search"],
            tolerance if tolerance is not None else STOCHASTIC if random else TOLERANCE, time_limit, checkpoint, progress,
        ).fit(kind, settings)  # fmt: skip
        target = found.observed
    else:
        found, penalty, target = _fit_complete(
            layout, source, kind, settings, free, (l2, l1, group_l1, groups), optimizer, start, seed, max_iterations,
            tolerance, progress,
        )  # fmt: skip
    details = dict(found.details)
    if layout.n_weights <= REPORTED:
        details["identifiability"] = found.identifiability
    if not found.converged and details.get("reason") != "time limit":
        warn_user(
            f"the fit by {found.method} did not converge: its error is {found.error:.2g} after {found.iterations} steps; "
            "raise max_iterations=, or add l2= where weights grow without end",
            ConvergenceWarning,
        )
    endless = layout.extreme(target) if complete and not free and penalty.none else []
    if endless:
        warn_user(
            f"all rows show the largest or the smallest value of {endless[0]!r}, so the likelihood rises for ever with its "
            "weight, and the reported one only tells where the search stopped; add l2=",
            ConvergenceWarning,
        )
    return replace(found, features=tuple(features), penalty=penalty, seconds=now() - began, details=details)


def _fit_complete(
    layout: FieldLayout, source: RowSource, kind: str, settings: Any, free: bool, penalties: tuple[Any, ...],
    optimizer: str, start: Array | None, seed: Seed, max_iterations: int | None, tolerance: float | None,
    progress: bool | None,
) -> tuple[FieldFit, Penalty, Array]:  # fmt: skip
    """Fit weights to rows without gaps; return the fit, its penalty and the features' means."""
    require_rows(source)
    penalty = read_penalty(layout, source.total, *penalties)
    observed = layout.observed(source)
    task = _FieldTask(
        layout,
        source,
        observed,
        penalty,
        optimizer,
        _start(start, layout),
        seed,
        max_iterations,
        tolerance,
        progress,
    )
    plain = free and penalty.none
    if kind == "auto":
        kind = task.choose(plain and optimizer == "auto")
    if plain and kind not in ("ipf", "cd", "pcd", "gibbs"):  # entries that no row shows have weight zero
        layout = task.layout = replace(layout, base=layout.base + unseen_cells(layout, observed))
    if kind == "ipf":
        if not plain:
            raise InvalidArgument(
                "iterative proportional fitting takes free tables (no features=) without penalties; use method='exact'"
            )
        if optimizer != "auto":
            raise InvalidArgument("iterative proportional fitting has no optimizer=")
        found = task.scale()
    elif kind in ("cd", "pcd"):
        found = task.contrast(settings)
    elif kind == "gibbs":
        found = task.monte_carlo(settings)
    elif kind == "pseudo-likelihood":
        found = task.pseudo()
    elif kind == "exact":
        found = task.exact()
    else:
        found = task.surrogate(kind, settings)
    return found, penalty, task.target


def _refuse_method(kind: str, method: Any, complete: bool) -> None:
    """Raise for a method that does not sum missing cells out, or knows no limits."""
    if kind not in INCOMPLETE_METHODS or (complete and kind == "mean-field"):
        known = ", ".join(repr(m) for m in INCOMPLETE_METHODS if not (complete and m == "mean-field"))
        what = "restarts=, time_limit= and checkpoint= go" if complete else "latent= and missing='em' go"
        raise InvalidArgument(f"{what} with method= {known}, not {kind!r}")
    if kind == "mean-field" and not isinstance(method, str):
        raise InvalidArgument("with missing cells mean field has no settings; give method='mean-field'")


class _FieldTask:
    """One fit: the model, the data and the settings; a method for each way to do it."""

    def __init__(
        self,
        layout: FieldLayout,
        source: RowSource,
        observed: Array,
        penalty: Penalty,
        optimizer: str,
        start: Array,
        seed: Seed,
        steps: int | None,
        tolerance: float | None,
        progress: bool | None,
    ) -> None:
        self.layout, self.source, self.observed, self.penalty = layout, source, observed, penalty
        self.optimizer, self.start, self.seed = optimizer, start, seed
        self.steps, self.tolerance, self.progress = steps, tolerance, progress
        self.target = layout.features(observed)
        self._rows: CodedTable | None = None

    def choose(self, plain: bool) -> str:
        """Return the method that "auto" stands for."""
        if plain and perfect_order(self.layout) is not None and not np.isneginf(self.layout.base).any():
            return "ipf"
        try:
            exact_expectations(self.layout, CHEAP)
        except TooLarge:
            warn_user(
                "the model is too wide for exact maximum likelihood; its pseudo-likelihood is maximised instead",
                ApproximateWarning,
            )
            return "pseudo-likelihood"
        return "exact"

    @property
    def close(self) -> float:
        """The largest entry of the gradient that counts as zero, relative to the largest mean feature."""
        return (TOLERANCE if self.tolerance is None else self.tolerance) * self.size

    @property
    def size(self) -> float:
        """The largest mean feature in units of its largest value, at least one."""
        units = self.layout.units if self.penalty.smooth else 1.0
        return max(1.0, float(np.abs(self.target / units).max(initial=0.0)))

    @property
    def rows(self) -> CodedTable:
        """The rows in memory."""
        if self._rows is None:
            self._rows = self.source.in_memory()
        return self._rows

    def exact(self) -> FieldFit:
        """Maximise the likelihood with exact expectations."""
        return self._by_expectations(exact_expectations(self.layout), "exact")

    def surrogate(self, kind: str, engine: Any) -> FieldFit:
        """Maximise the surrogate likelihood of an approximate engine."""
        expectations = ApproximateExpectations(self.layout, engine)
        found = self._by_expectations(expectations, kind)
        value = -found.history[-1] * self.source.total if found.history else np.nan
        said = {
            "surrogate_log_likelihood": value + self.source.total * self._penalised(found.weights),
            "bound": BOUND[kind],
            "settled": expectations.settled,
        }
        return replace(found, details={**found.details, **said})

    def _penalised(self, weights: Array) -> float:
        return self.penalty.ridge(weights)[0] + self.penalty.rough(weights)

    def _by_expectations(self, expectations: Any, kind: str) -> FieldFit:
        loss = likelihood(self.layout, expectations, self.observed)
        if self.optimizer == "sgd":
            codes = ordered_codes(self.layout, self.rows)

            def slope(weights: Array, rows: Any) -> Array:
                expected = expectations(self.layout.log_tables(weights))[1]
                return self.layout.features(expected - cells_of(self.layout, codes[:, rows].T))

            return self._by_rows(slope, kind)

        def facts(weights: Array, value: float, gradient: Array) -> tuple[float, Array, dict[str, Any]]:
            exact = -value * self.source.total if expectations.exact else self._exact_facts(weights)[0]
            return exact, gradient + self.target, {}

        return self._by_search(loss, kind, facts)

    def pseudo(self) -> FieldFit:
        """Maximise the pseudo-likelihood."""
        loss = PseudoLikelihood(self.layout, self.rows)
        if self.optimizer == "sgd":
            return self._by_rows(lambda w, rows: loss.of_rows(w, rows)[1], "pseudo-likelihood")

        def facts(weights: Array, value: float, gradient: Array) -> tuple[float, Array, dict[str, Any]]:
            return *self._exact_facts(weights), {"pseudo_log_likelihood": -value * self.source.total}

        return self._by_search(loss, "pseudo-likelihood", facts)

    def _by_search(
        self,
        loss: Callable[[Array], tuple[float, Array]],
        kind: str,
        facts: Callable[[Array, float, Array], tuple[float, Array, dict[str, Any]]],
    ) -> FieldFit:
        """Minimise a loss; `facts` are the log likelihood, the expected features and details of its minimum."""
        search, tolerance = LogLinearSearch(loss, self.penalty, self.layout.units), self.close
        weights, error, stopped = search.run(
            self.start, self.optimizer, self.steps or STEPS["search"], tolerance, self.progress
        )
        value, gradient = loss(weights)
        log_likelihood, expected, details = facts(weights, value, gradient)
        slack = 1e-10 if not search.history else 1e-12 * abs(search.history[-1])
        return FieldFit(
            self.layout, weights, kind, log_likelihood, self.source.n_rows, self.source.total, self.target, expected,
            gradient, bool(error <= tolerance + slack) and not stopped, len(search.history), search.history, error,
            details={**details, "interrupted": stopped},
        )  # fmt: skip

    def scale(self) -> FieldFit:
        """Scale tables to the data's margins."""
        tolerance = 1e-9 if self.tolerance is None else self.tolerance
        layout = self.layout
        fitted = proportional_fitting(
            layout,
            self.observed,
            max_iterations=self.steps or STEPS["ipf"],
            tolerance=tolerance,
            progress=self.progress,
        )
        log_likelihood, expected = np.nan, self.target
        if fitted.decomposable:
            log_likelihood = fitted.history[-1] * self.source.total
        else:
            used = self.observed > 0
            log_z, marginals = exact_expectations(layout)(fitted.log_tables)
            log_likelihood = (
                float(self.observed[used] @ fitted.log_tables[used]) - log_z
            ) * self.source.total
            expected = layout.features(marginals)
        details = {"log_tables": fitted.log_tables, "decomposable": fitted.decomposable}
        return FieldFit(
            layout, np.zeros(layout.n_weights), "ipf", log_likelihood, self.source.n_rows, self.source.total, self.target,
            expected, expected - self.target, fitted.error <= tolerance, fitted.sweeps, fitted.history, fitted.error,
            details=details,
        )  # fmt: skip

    def contrast(self, settings: ContrastiveDivergence) -> FieldFit:
        """Learn from Gibbs chains."""
        if self.optimizer not in ("auto", "sgd"):
            raise InvalidArgument(
                f"contrastive divergence is a stochastic gradient; optimizer={self.optimizer!r} is not"
            )
        return self._by_chains(settings, settings.name, STEPS["descent"])

    def monte_carlo(self, engine: Gibbs) -> FieldFit:
        """Descend along gradients from chains that run for long between steps."""
        chains = engine.chains
        burn_in = engine.draws // 10 if engine.burn_in is None else engine.burn_in
        settings = ContrastiveDivergence(
            persistent=True, sweeps=burn_in + engine.draws, skip=burn_in, chains=chains, step=0.5
        )
        return self._by_chains(settings, "gibbs", STEPS["gibbs"])

    def _by_chains(self, settings: ContrastiveDivergence, kind: str, steps: int) -> FieldFit:
        found, expected = contrastive_divergence(
            self.layout, self.rows, self.observed, self.penalty, settings, start=self.start, steps=self.steps or steps,
            seed=self.seed, progress=self.progress,
        )  # fmt: skip
        return self._from_descent(found, kind, expected)

    def _by_rows(self, slope: Callable[[Array, Any], Array], kind: str) -> FieldFit:
        """Descend along gradients that look at a few rows a step."""
        rng = generator(self.seed)
        n = self.rows.n_rows
        share = None if self.rows.weights is None else self.rows.weights / self.rows.weights.sum()

        def gradient(weights: Array, _: int) -> Array:
            return slope(weights, rng.choice(n, min(BATCH, n), p=share))

        steps = self.steps or STEPS["descent"]
        found = descend(
            gradient, self.start, np.maximum(self.layout.spread(self.observed), LEAST), self.penalty, steps=steps, step=0.3,
            decay=max(1.0, 0.1 * steps), progress=self.progress,
        )  # fmt: skip
        return self._from_descent(found, kind, np.full(self.layout.n_weights, np.nan))

    def _from_descent(self, found: Any, kind: str, expected: Array) -> FieldFit:
        tolerance = STOCHASTIC if self.tolerance is None else self.tolerance
        log_likelihood, exactly = self._exact_facts(found.weights)
        if np.isfinite(log_likelihood):
            expected = exactly
        details = {"noise": found.noise, "gradient_norms": found.norms}
        near = bool(found.error <= tolerance * self.size + 3 * found.noise)
        return FieldFit(
            self.layout, found.weights, kind, log_likelihood, self.source.n_rows, self.source.total, self.target, expected,
            expected - self.target, near, found.steps, (), found.error, details=details,
        )  # fmt: skip

    def _exact_facts(self, weights: Array) -> tuple[float, Array]:
        """Return the log likelihood and the expected features where exact inference is cheap, otherwise NaN."""
        try:
            expectations = exact_expectations(self.layout, CHEAP)
        except TooLarge:
            return np.nan, np.full(len(weights), np.nan)
        value, gradient = likelihood(self.layout, expectations, self.observed)(weights)
        return -value * self.source.total, gradient + self.target


def _method(method: Any) -> tuple[str, Any]:
    """Read `method=`: a name, an engine with settings, or a `ContrastiveDivergence`."""
    if isinstance(method, ContrastiveDivergence):
        return method.name, method
    for name, engine in SURROGATES.items():
        if isinstance(method, engine):
            return name, method
    if isinstance(method, Gibbs):
        return "gibbs", method
    if method not in METHODS:
        raise InvalidArgument(
            f"method= is one of {', '.join(map(repr, METHODS))}, an engine or a ContrastiveDivergence, not {method!r}"
            f"{did_you_mean(method, METHODS) if isinstance(method, str) else ''}"
        )
    if method in ("cd", "pcd"):
        return method, ContrastiveDivergence(persistent=method == "pcd")
    if method == "gibbs":
        return method, Gibbs(draws=50, burn_in=10, chains=20)
    return method, SURROGATES[method]() if method in SURROGATES else None


def _start(start: Array | None, layout: FieldLayout) -> Array:
    if start is None:
        return np.zeros(layout.n_weights)
    rule = f"start= has one finite number a weight, {layout.n_weights} of them"
    found = numbers(start, rule)
    if found.shape != (layout.n_weights,) or not np.isfinite(found).all():
        raise InvalidArgument(rule)
    return found
