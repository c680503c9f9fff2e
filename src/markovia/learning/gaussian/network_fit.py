"""Fitting networks of tables and linear Gaussians: by adding rows up, or by expectation-maximisation with missing cells.

Every node is estimated by itself from its family's sums: tables from counts, regressions from sums of products, both by
maximum likelihood or under a prior. With missing cells or hidden variables the sums are expected ones, and the two steps
alternate until the likelihood of what is seen stops rising (Dempster, Laird & Rubin 1977; Lauritzen 1995 for mixed ones).
Cost: linear in the rows for complete data; an iteration of EM costs what `expected_products` says.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.data.tables.in_memory import Columns, coded_columns, eager_columns, wanted_columns
from markovia.data.tables.number_columns import column_numbers
from markovia.data.tables.reading_mixed import CONTINUOUS, column_kind, read_mixed
from markovia.data.tables.row_sources import row_weights
from markovia.errors import InvalidArgument, UnknownVariable, UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import State, Variable
from markovia.learning.gaussian.expected_products import NumberFamily, ProductRows, ProductSums, Summing
from markovia.learning.gaussian.linear_regressions import (
    RegressionPosterior,
    centred,
    fitted_node,
    log_likelihood,
)
from markovia.learning.incomplete.em import EM, NAMES, as_em
from markovia.learning.tables.fit_record import Fit
from markovia.learning.tables.priors import NormalInverseGamma, as_prior
from markovia.learning.tables.row_counts import family_log_likelihood
from markovia.learning.tables.table_learner import NodeFamily, TableLearner
from markovia.optimise.ascent import Climb, best_climb, climb
from markovia.runtime.clock import Clock, now
from markovia.runtime.seeds import generator

COLLAPSED = 1e-9
"""Share of a column's variance below which EM without a prior has run into a singularity."""


@dataclass(frozen=True)
class NetworkStructure:
    """What a fit knows of a network: parents, present distributions, and which variables nobody described."""

    variables: Mapping[str, Variable]
    parents: Mapping[str, Sequence[str]]
    before: Mapping[str, Conditional | None]
    unstated: frozenset[str]


@dataclass(frozen=True)
class NumberFit:
    """What a fit found."""

    variables: dict[str, Variable]
    tables: dict[str, Conditional]
    record: Fit
    posteriors: dict[str, dict[tuple[int, ...], RegressionPosterior]]
    alphas: dict[str, Any]
    """Dirichlet parameters of the tables, under a prior on complete data."""


def has_numbers(structure: NetworkStructure, data: Any, states: Mapping[str, Any] | None) -> bool:
    """Say whether a network is about numbers, or becomes so by the columns of the data."""
    if any(isinstance(v, Quantity) for v in structure.variables.values()):
        return True
    try:
        columns = eager_columns(data) if not hasattr(data, "without_gaps") else None
    except Exception:  # reading them as states will say what is wrong
        return False
    if columns is None:
        return False
    open_ones = (n for n in structure.unstated if n not in (states or {}) and n in columns.names)
    return any(column_kind(columns.get(n), n) == CONTINUOUS for n in open_ones)


def fit_numbers(
    structure: NetworkStructure,
    data: Any,
    prior: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    fixed: Iterable[str],
    missing: Any,
    latent: Mapping[str, Variable],
) -> NumberFit:
    """Learn every node of a network with numbers."""
    start = now()
    settings = as_em(missing)
    variables, rows = _read(structure, data, weights, states, latent)
    for n, node in structure.before.items():
        if node is not None and not isinstance(node, GaussianConditional | ConditionalTable):
            raise UnsupportedModel(
                f"{n!r} is a {type(node).__name__}; networks with numbers are fitted with tables and linear Gaussians"
            )
    learner = _Learner(structure, variables, prior, set(fixed))
    gaps = {n: int((c < 0).sum()) for n, c in rows.codes.items() if n not in latent}
    gaps.update({n: int(np.isnan(c).sum()) for n, c in rows.numbers.items() if n not in latent})
    count = sum(gaps.values())
    if count and missing == "error":
        worst = max(gaps.items(), key=lambda item: item[1])
        raise InvalidArgument(
            f"{count:,} cells are missing ({worst[1]:,} of them in {worst[0]!r}); missing='em' uses every cell, 'drop' "
            "leaves such rows out"
        )
    if (count or latent) and settings is not None:
        tables, sums, record = _by_em(learner, rows, settings, latent)
    else:
        if latent:
            raise InvalidArgument(f"hidden variables are learned by EM; missing={missing!r} does not do it")
        rows = _without_gaps(rows)
        sums = learner.summing.complete(rows)
        tables = learner.estimate(sums)
        record = Fit("sums of products", len(rows.weights), float(rows.weights.sum()), 0.0, {}, 0)
    by_family = learner.by_family(tables, sums)
    record = replace(
        record,
        by_family=by_family,
        log_likelihood=record.log_likelihood if record.method == "em" else sum(by_family.values()),
        n_parameters=sum(t.n_parameters for n, t in tables.items() if n not in learner.fixed),
        missing_cells=count,
        unseen_rows=dict(learner.unseen),
        seconds=now() - start,
        details={"prior": prior},
    )
    return NumberFit(variables, tables, record, learner.posteriors, learner.alphas(sums))


class _Learner:
    """Turns sums into distributions."""

    def __init__(
        self, structure: NetworkStructure, variables: dict[str, Variable], prior: Any, fixed: set[str]
    ) -> None:
        self.variables, self.fixed, self.before = variables, fixed, structure.before
        numbers = [n for n in structure.parents if isinstance(variables[n], Quantity)]
        families, scopes = {}, {}
        for n, parents in structure.parents.items():
            own = [variables[q] for q in parents]
            if n in numbers:
                discrete = tuple(v for v in own if not isinstance(v, Quantity))
                families[n] = NumberFamily(
                    variables[n], discrete, tuple(v for v in own if isinstance(v, Quantity))
                )
                continue
            number = next((v.name for v in own if isinstance(v, Quantity)), None)
            if number is not None:
                raise UnsupportedModel(
                    f"{n!r} has states and its parent {number!r} is a number; linear Gaussians answer only the other way "
                    f"round: turn the edge, or cut {number!r} into intervals with mk.Discretizer"
                )
            scopes[n] = (*own, variables[n])
        self.order = list(structure.parents)
        self.summing = Summing(scopes, families)
        self.prior = prior if isinstance(prior, NormalInverseGamma) else None
        tables = self.prior.tables if self.prior is not None else prior
        if prior is not None and self.prior is None:
            self.prior = NormalInverseGamma(float(prior) if isinstance(prior, int | float) else 1.0)
        self.table_learner = TableLearner(
            [NodeFamily(s[-1], s[:-1], self.before.get(n), n in fixed) for n, s in scopes.items()],
            as_prior(tables),
        )
        self.posteriors: dict[str, dict[tuple[int, ...], RegressionPosterior]] = {}
        self.unseen: dict[str, int] = {}

    def estimate(self, sums: ProductSums) -> dict[str, Conditional]:
        made: dict[str, Conditional] = dict(
            zip(sums.counts, self.table_learner.estimate(list(sums.counts.values())), strict=True)
        )
        self.posteriors, self.unseen = {}, {}
        for n, f in self.summing.numbers.items():
            old = self.before.get(n)
            if n in self.fixed and old is not None:
                made[n] = old
                continue
            made[n], self.posteriors[n], unseen = fitted_node(
                f.variable, f.discrete, f.continuous, sums.products[n], self.prior
            )
            if unseen:
                self.unseen[n] = unseen
        return {n: made[n] for n in self.order}

    def by_family(self, tables: Mapping[str, Conditional], sums: ProductSums) -> dict[str, float]:
        found = {}
        for n, node in tables.items():
            if isinstance(node, GaussianConditional):
                found[n] = sum(
                    log_likelihood(
                        sums.products[n][at], float(node.bias[at]), node.weights[at], float(node.variance[at])
                    )
                    for at in np.ndindex(node.bias.shape)
                )
            else:
                found[n] = family_log_likelihood(sums.counts[n], node)
        return found

    def alphas(self, sums: ProductSums) -> dict[str, Any]:
        """Return the Dirichlet parameters of the tables, where they have a prior."""
        prior = self.table_learner.prior
        if prior is None:
            return {}
        return {
            n: sums.counts[n] + prior.pseudo_counts(s[-1], s[:-1])
            for n, s in self.summing.tables.items()
            if n not in self.fixed
        }


def _read(
    structure: NetworkStructure,
    data: Any,
    weights: Any,
    states: Mapping[str, int | Sequence[State]] | None,
    latent: Mapping[str, Variable],
) -> tuple[dict[str, Variable], ProductRows]:
    columns = eager_columns(data)
    names = [n for n in structure.parents if n not in latent]
    lacking = next((n for n in names if n not in columns.names), None)
    if lacking is not None:
        raise UnknownVariable(lacking, columns.names, "the data")
    _, weight_column = wanted_columns(columns.names, names, weights)
    if weight_column is not None:
        weights = column_numbers(columns.get(weight_column), weight_column)
    given = row_weights(weights, columns.n_rows)
    open_ones = [n for n in names if n in structure.unstated and n not in (states or {})]
    kinds: dict[str, str] = {}
    if open_ones:
        mixed = read_mixed({n: columns.get(n) for n in open_ones})
        kinds = dict(zip(mixed.names, mixed.kinds, strict=True))
    numbers = [
        n for n in names if isinstance(structure.variables[n], Quantity) or kinds.get(n) == "continuous"
    ]
    counted = [n for n in names if n not in numbers]
    stated = {n: structure.variables[n] for n in counted if n not in structure.unstated}
    own = {n: s for n, s in (states or {}).items() if n in counted}
    table = coded_columns(Columns(counted, columns.get, columns.n_rows), counted, stated, own)
    n_rows = columns.n_rows
    if n_rows == 0:
        raise InvalidArgument("the data have no rows")
    codes: dict[str, Any] = dict(zip(counted, table.codes.astype(np.int64), strict=True))
    values = {n: column_numbers(columns.get(n), n) for n in numbers}
    variables: dict[str, Variable] = {}
    for n in structure.parents:
        if n in latent:
            variables[n] = latent[n]
            if isinstance(latent[n], Quantity):
                values[n] = np.full(n_rows, np.nan)
            else:
                codes[n] = np.full(n_rows, -1, np.int64)
        elif n in values:
            known = structure.variables[n]
            variables[n] = known if isinstance(known, Quantity) else Quantity(n, "real")
        else:
            variables[n] = table.variables[n]
    for n, column in values.items():
        if n not in latent and np.isnan(column).all():
            raise InvalidArgument(f"the column {n!r} has no cell; say latent=[{n!r}] if it is never observed")
    return variables, ProductRows(codes, values, np.ones(n_rows) if given is None else given)


def _without_gaps(rows: ProductRows) -> ProductRows:
    whole = np.ones(len(rows.weights), bool)
    for column in rows.codes.values():
        whole &= column >= 0
    for numbers in rows.numbers.values():
        whole &= ~np.isnan(numbers)
    if not whole.any():
        raise InvalidArgument("every row misses a cell; use missing='em'")
    return ProductRows(
        {n: c[whole] for n, c in rows.codes.items()},
        {n: c[whole] for n, c in rows.numbers.items()},
        rows.weights[whole],
    )


def _by_em(
    learner: _Learner, rows: ProductRows, settings: EM, latent: Mapping[str, Variable]
) -> tuple[dict[str, Conditional], ProductSums, Fit]:
    rng = generator(settings.seed)
    there = [column >= 0 for column in rows.codes.values()] + [~np.isnan(x) for x in rows.numbers.values()]
    observed = float(sum(rows.weights @ cells for cells in there))

    def step(
        now: tuple[dict[str, Conditional], ProductSums],
    ) -> tuple[tuple[dict[str, Conditional], ProductSums], float]:
        nodes = learner.estimate(now[1])
        _refuse_collapse(learner, nodes, now[1])
        sums = learner.summing.expected(rows, nodes)
        return (nodes, sums), sums.log_likelihood

    def run(number: int, progress: bool | None) -> Climb[tuple[dict[str, Conditional], ProductSums]]:
        nodes = learner.estimate(learner.summing.complete(_filled(rows, learner.variables, rng, number > 0)))
        if latent:
            nodes = _apart(nodes, latent, rows, rng)
        sums = learner.summing.expected(rows, nodes)
        return climb(
            step, (nodes, sums), max_iter=settings.max_iterations, tol=settings.tolerance, size=max(1.0, observed),
            first=sums.log_likelihood, may_fall=True, progress=progress, unit="iteration",
        )  # fmt: skip

    with Clock(settings.time_limit, False):
        best = best_climb(run, range(settings.restarts), progress=settings.progress)
    best.warn(settings.tolerance, NAMES)
    record = Fit(
        "em", len(rows.weights), float(rows.weights.sum()), best.history[-1], {}, 0, converged=best.converged,
        iterations=len(best.history), history=best.history,
    )  # fmt: skip
    return *best.state, record


def _refuse_collapse(learner: _Learner, nodes: Mapping[str, Conditional], sums: ProductSums) -> None:
    """Stop where a variance goes to zero: the likelihood then grows without bound."""
    for n, f in learner.summing.numbers.items():
        node = nodes[n]
        if learner.prior is not None or n in learner.fixed or not isinstance(node, GaussianConditional):
            continue
        products = sums.products[n]
        count, _, scatter = centred(products.reshape(-1, *products.shape[-2:]).sum(axis=0))
        small = np.argwhere(np.atleast_1d(node.variance) < COLLAPSED * scatter[-1, -1] / max(count, 1e-300))
        if len(small):
            where = [f"{v.name}={v.states[c]!r}" for v, c in zip(f.discrete, small[0], strict=False)]
            raise InvalidArgument(
                f"the variance of {n!r}{' for ' if where else ''}{', '.join(where)} goes to zero in EM (too few rows, or an "
                "exact linear relation), and the likelihood to infinity; give prior=1"
            )


def _filled(
    rows: ProductRows, variables: Mapping[str, Variable], rng: np.random.Generator, random: bool
) -> ProductRows:
    """Return rows whose gaps are filled with cells drawn from their columns, for a start."""
    codes, numbers = {}, {}
    for n, column in rows.codes.items():
        gone = np.flatnonzero(column < 0)
        # a tenth are any state: one that no row shows would otherwise never be considered
        pool, any_state = column[column >= 0], np.arange(len(variables[n]))
        known = len(pool) > 0
        codes[n] = column.copy()
        codes[n][gone] = np.where(
            rng.random(len(gone)) < (0.1 if known else 1.0),
            rng.choice(any_state, len(gone)),
            rng.choice(pool if known else any_state, len(gone)),
        )
    for n, column in rows.numbers.items():
        gone = np.flatnonzero(np.isnan(column))
        seen = column[~np.isnan(column)]
        numbers[n] = column.copy()
        if not len(seen):
            numbers[n][gone] = rng.standard_normal(len(gone))
        else:
            numbers[n][gone] = rng.choice(seen, len(gone)) if random else seen.mean()
    return ProductRows(codes, numbers, rows.weights)


def _apart(
    nodes: Mapping[str, Conditional],
    latent: Mapping[str, Variable],
    rows: ProductRows,
    rng: np.random.Generator,
) -> dict[str, Conditional]:
    """Move the regressions of hidden states apart, so that EM can tell them from each other."""
    moved = dict(nodes)
    for n, node in nodes.items():
        if isinstance(node, GaussianConditional) and any(v.name in latent for v in node.discrete):
            seen = rows.numbers[n][~np.isnan(rows.numbers[n])]
            spread = float(seen.std()) if len(seen) else 1.0
            bias = node.bias + spread * rng.standard_normal(node.bias.shape)
            moved[n] = GaussianConditional(
                node.variable, node.discrete, node.continuous, bias, node.weights, node.variance
            )
    return moved
