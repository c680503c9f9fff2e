"""From counts to conditional distributions: maximum likelihood, or posterior means under a prior.

`TableLearner` is the one place that turns counts of families into a network's distributions. Counting on complete data
calls it once; expectation-maximisation calls it in every step with expected counts. Families that share their parameters
pool their counts; local models (noisy-or, logistic) keep their form and are fitted by `markovia.learning.tables.local_fits`.
Reference: Koller & Friedman (2009), chapter 17. Cost: linear in the cells.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.local_models.local_model import CausalIndependence
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.learning.tables.local_fits import LocalFit, local_fit
from markovia.learning.tables.priors import Dirichlet, Prior
from markovia.learning.tables.row_counts import Counts, RowCounts, pooled
from markovia.runtime.array_types import Array

DENSE_LOCAL = 2**14
"""Cells up to which a local model's counts are a dense table; beyond, only the rows that occur are kept."""


@dataclass(frozen=True)
class NodeFamily:
    """A node, its parents, and what it had before: None, a table, or a local model that keeps its form.

    `tied` names the group of nodes whose parameters are one and the same (the first of them); None for a node on its own.
    """

    variable: Variable
    parents: tuple[Variable, ...]
    before: Conditional | None = None
    fixed: bool = False
    tied: str | None = None

    @property
    def scope(self) -> tuple[str, ...]:
        """The names of the axes of its counts: parents, then the child."""
        return (*(p.name for p in self.parents), self.variable.name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its table."""
        return (*(len(p) for p in self.parents), len(self.variable))

    @property
    def local(self) -> bool:
        """Whether the distribution is a local model, which keeps its form."""
        return isinstance(self.before, CausalIndependence)

    @cached_property
    def sparse(self) -> bool:
        """Whether its counts are a list of rows (`RowCounts`) and not a table."""
        return self.local and prod(self.shape) > DENSE_LOCAL


class TableLearner:
    """Estimates the distributions of all nodes from counts of their families.

    Parameters
    ----------
    families
        One a node; `fixed` ones keep what they had.
    prior
        Pseudo-counts, or None for maximum likelihood.

    Attributes
    ----------
    groups
        The positions of the families that share their parameters, one list for each set of parameters.
    pseudo
        For each family its pseudo-counts. A group has them once, at its first family; None for the others, for fixed
        families, for local models (see `markovia.learning.tables.local_fits`), and where all of them are zero.
    """

    def __init__(self, families: Sequence[NodeFamily], prior: Prior | None = None) -> None:
        self.families = tuple(families)
        self.prior = prior
        if isinstance(prior, Dirichlet):
            prior.check_names({f.variable.name for f in self.families})
        self.groups = _groups(self.families)
        self.local: dict[int, LocalFit] = {}
        self.pseudo: list[Array | None] = [None] * len(self.families)
        for lead, *_ in self.groups:
            f = self.families[lead]
            if f.fixed:
                continue
            if isinstance(f.before, CausalIndependence):
                self.local[lead] = local_fit(f.before, prior)
            elif prior is not None:
                a = prior.pseudo_counts(f.variable, f.parents)
                self.pseudo[lead] = a if a.any() else None

    def estimate(self, counts: Sequence[Counts]) -> list[Conditional]:
        """Return the distributions that maximise `sum N log p + sum a log p` (N counts, a pseudo-counts).

        Under a Dirichlet prior with parameters a this is the posterior mean. A row that neither data nor prior say
        anything about is uniform. For local models the second sum is the one of `markovia.learning.tables.local_fits`.
        """
        found: list[Conditional | None] = [None] * len(self.families)
        for group in self.groups:
            lead = self.families[group[0]]
            if lead.fixed and lead.before is not None:
                found[group[0]] = lead.before
                continue
            n, a = pooled([counts[i] for i in group]), self.pseudo[group[0]]
            if group[0] in self.local:
                rows = n if isinstance(n, RowCounts) else RowCounts.of_table(n)
                fitted = self.local[group[0]].fit(rows)
            else:
                assert not isinstance(n, RowCounts)
                rows_of = normalised_rows(n if a is None else n + a)
                fitted = ConditionalTable.of(lead.variable, lead.parents, rows_of)
            for i in group:
                f = self.families[i]
                found[i] = fitted if i == group[0] else fitted.rebound(f.variable, f.parents)
        return [t for t in found if t is not None]

    def log_prior(self, tables: Sequence[Conditional]) -> float:
        """Return `sum a log p`, which with the log likelihood is what `estimate` maximises."""
        total = sum(
            weighted_log(a, t.values) for t, a in zip(tables, self.pseudo, strict=True) if a is not None
        )
        return float(total + sum(fit.log_prior(tables[i]) for i, fit in self.local.items()))

    def n_parameters(self, tables: Sequence[Conditional]) -> int:
        """Return the number of parameters that are estimated: none of fixed nodes, those of a group once."""
        return sum(tables[lead].n_parameters for lead, *_ in self.groups if not self.families[lead].fixed)


def tied_names(groups: object, known: Mapping[str, object]) -> dict[str, str]:
    """Return for each tied node the first of its group, or say what is wrong with the groups.

    Raises
    ------
    InvalidArgument
        If they are not lists of names, or a node is named twice.
    """
    lead: dict[str, str] = {}
    if isinstance(groups, str) or not isinstance(groups, Sequence | set | frozenset):
        raise InvalidArgument(f"tied= is a list of lists of names, such as [['x2', 'x3']], not {groups!r}")
    for group in groups:
        if isinstance(group, str) or not isinstance(group, Sequence):
            raise InvalidArgument(
                f"tied= is a list of lists of names, such as [['x2', 'x3']], not {groups!r}"
            )
        for name in group:
            if name not in known:
                raise UnknownVariable(name, known)
            if name in lead:
                raise InvalidArgument(f"{name!r} is named twice in tied=")
            lead[name] = group[0]
    return lead


def normalised_rows(weights: Array) -> Array:
    """Divide each row by its sum; a row of zeros becomes uniform."""
    sums = weights.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rows: Array = np.where(sums > 0, weights / sums, 1.0 / weights.shape[-1])
    return rows


def weighted_log(weights: Array, p: Array) -> float:
    """Return `sum w log p` with `0 log 0 = 0`."""
    some = weights > 0
    with np.errstate(divide="ignore"):
        return float((weights[some] * np.log(p[some])).sum())


def _groups(families: Sequence[NodeFamily]) -> list[list[int]]:
    """Return the positions of the families of each set of parameters; a group must have one shape and one form."""
    groups: dict[str, list[int]] = {}
    for i, f in enumerate(families):
        groups.setdefault(f.tied if f.tied is not None else f"\0{i}", []).append(i)
    for group in groups.values():
        lead = families[group[0]]
        for i in group[1:]:
            f = families[i]
            if f.shape != lead.shape:
                raise InvalidArgument(
                    f"{lead.variable.name!r} and {f.variable.name!r} cannot share a table: their shapes are {lead.shape} "
                    f"and {f.shape}; they need the same numbers of states (state them with states=) and matching parents"
                )
            for one, other in zip((*lead.parents, lead.variable), (*f.parents, f.variable), strict=True):
                if one.states != other.states and set(one.states) & set(other.states):
                    raise InvalidArgument(
                        f"{lead.variable.name!r} and {f.variable.name!r} cannot share a table: the states of "
                        f"{one.name!r} are {list(one.states)} and those of {other.name!r} {list(other.states)}; "
                        "state them alike (states=)"
                    )
            if f.local != lead.local or (f.local and type(f.before) is not type(lead.before)):
                raise InvalidArgument(
                    f"{lead.variable.name!r} and {f.variable.name!r} cannot share parameters: their distributions "
                    f"have different forms"
                )
        if len(group) > 1 and any(families[i].fixed for i in group):
            raise InvalidArgument(f"{lead.variable.name!r} is tied to others, so none of them can stay fixed")
    return list(groups.values())
