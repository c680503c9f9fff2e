"""Learning the potentials of an undirected model from data."""

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from markovia.data.tables.reading import column_names, read_data
from markovia.data.tables.row_sources import RowSource
from markovia.errors import InvalidArgument, InvalidTable, UnknownVariable
from markovia.factors.potentials.log_linear import Feature
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.learning.tables.fit_record import Fit
from markovia.models.graphical.base import GraphicalModel
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice
from markovia.runtime.clock import now
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import Seed

if TYPE_CHECKING:
    from markovia.learning.fields.field_layout import FieldLayout
    from markovia.learning.fields.log_linear_fit import FieldFit


class FieldFitVerbs(GraphicalModel):
    """Fitting an undirected model's potentials to data; see `MarkovNetwork` and `FactorGraph`."""

    _factors: list[Factor]
    fit_: Fit | None = None
    """What the last fit did; None before the first, and after an edit."""

    @guided
    def fit(
        self,
        data: Any,
        *,
        features: Iterable[Feature] | None = None,
        method: Any = "auto",
        l2: Any = 0.0,
        l1: Any = 0.0,
        group_l1: Any = 0.0,
        groups: Any = None,
        optimizer: str = "auto",
        weights: Any = None,
        latent: str | Iterable[str] = (),
        missing: str = "error",
        start: Any = None,
        seed: Seed = 0,
        restarts: int = 1,
        max_iterations: int | None = None,
        tolerance: float | None = None,
        time_limit: float | None = None,
        checkpoint: str | Path | None = None,
        progress: bool | None = None,
    ) -> Self:
        """Learn the potentials from data, and return the model itself.

        Parameters
        ----------
        data
            A DataFrame, a mapping of columns, a list of mappings, or any row source; columns are found by name.
        features
            The features of a log-linear model, tied or free; its potentials then replace the factors. By default every
            entry of every factor is a parameter of its own; entries that are zero stay zero.
        method
            "auto" (exact where possible, otherwise pseudo-likelihood with a warning), "exact", "ipf" (iterative proportional
            fitting), "pseudo-likelihood", "cd", "pcd" or a `mk.learning.ContrastiveDivergence`; or "loopy-bp", "mean-field",
            "tree-reweighted", "gibbs" or such an engine with settings, for marginals in place of exact ones. With `latent`
            or `missing="em"`: "auto", "exact" (the likelihood of what is observed), "em", "mean-field" (a lower bound on it)
            or "pcd".
        l2, l1
            Penalties `l2 / 2 * w**2` and `l1 * |w|` added to the negative log likelihood of all rows: a number, one a
            weight, or `{"nodes": a, "edges": b}`.
        group_l1, groups
            A penalty on the Euclidean norm of groups of weights; by default a group is all weights of an edge (or wider
            table). Groups are given as one label a weight, None for none.
        optimizer
            "lbfgs" (default), "proximal" (default with l1 or group_l1), or "sgd".
        weights
            The name of a column, or one number a row.
        latent
            Variables that the data have no column of: their states are summed out.
        missing
            What to do with rows that miss a cell: "error", "drop" (they are not used at all), or "em" (missing cells are
            summed out like latent variables, by whatever method).
        start
            Weights to start the search from; zeros by default, random ones where a variable is latent.
        restarts
            Searches from different random starts, of which the best is kept.
        time_limit, checkpoint
            Seconds after which the best so far is kept; a file that keeps the state, from which a search that was killed
            goes on. Both with the methods "auto", "exact", "em", "pcd" and, where cells are missing, "mean-field".
        seed, max_iterations, tolerance, progress
            Of random starts and methods; steps at most; the largest entry of the gradient of a row's loss that counts as
            zero, relative to the largest mean feature, each divided by its largest value (1e-6; 0.02 for random methods); a
            progress bar.

        Returns
        -------
        the model
            With `fit_`, a record of what was done; `fit_.details["fit"]` has weights, gradients and expectations. A failed
            fit leaves the model as it was.

        Examples
        --------
        >>> import markovia as mk
        >>> rows = {"a": [0, 0, 0, 1, 1], "b": [0, 0, 1, 1, 1]}
        >>> mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[1, 1], [1, 1]])])
        >>> mn.fit(rows).query(["a", "b"]).values.round(3).tolist()
        [[0.4, 0.2], [0.0, 0.4]]
        >>> same = mk.Feature([mn.variable("a"), mn.variable("b")], [[1, 0], [0, 1]], "same")
        >>> mn.fit(rows, features=[same]).query(["a", "b"]).values.round(3).tolist()
        [[0.4, 0.1], [0.1, 0.4]]
        >>> mn.fit_.method, mn.fit_.n_parameters
        ('exact', 1)
        >>> with_gap = {"a": [0, 0, 1, None], "b": [0, 1, 1, 1]}
        >>> round(mn.fit(with_gap, missing="em").fit_.log_likelihood, 4)
        -3.6356
        """
        from markovia.learning.fields.field_layout import layout_of_features, layout_of_tables
        from markovia.learning.fields.fitting import fit_field

        began = now()
        source, gaps = open_rows(data, self._variables, weights, missing, latent)
        own = tuple(self._variables.values())
        if features is None:
            if not self._factors:
                raise InvalidArgument(
                    "the model has no factors whose tables could be learned; give features="
                )
            listed: list[Feature] = []
            layout = layout_of_tables(self._factors, own)
        else:
            listed = [owned_feature(f, self._variables) for f in listed_features(features)]
            layout = layout_of_features(listed, own)
        found = fit_field(
            layout, source, features=listed, free=features is None, method=method, l2=l2, l1=l1, group_l1=group_l1,
            groups=groups, optimizer=optimizer, start=start, seed=seed, max_iterations=max_iterations,
            tolerance=tolerance, restarts=restarts, time_limit=time_limit, checkpoint=checkpoint, progress=progress,
        )  # fmt: skip
        self._install(_tables(self._factors, found) if features is None else found.model.factors())
        self.fit_ = Fit(
            found.method,
            source.n_rows,
            source.total,
            found.log_likelihood,
            {},
            found.n_parameters,
            gaps,
            converged=found.converged,
            iterations=found.iterations,
            history=found.history,
            seconds=now() - began,
            details={**found.details, "fit": found},
        )
        return self

    @abstractmethod
    def _install(self, factors: list[Factor]) -> None:
        """Take over learned factors."""


def open_rows(
    data: Any, variables: dict[str, Variable], weights: Any, missing: str, latent: str | Iterable[str] = ()
) -> tuple[RowSource, int]:
    """Open data; return the rows to use and the number of cells that were missing; latent variables have no column."""
    check_choice("missing", missing, ("error", "drop", "em"))
    hidden = [latent] if isinstance(latent, str) else list(latent)
    for name in hidden:
        if name not in variables:
            raise UnknownVariable(name, variables)
    shown = {n: v for n, v in variables.items() if n not in hidden}
    if not shown:
        raise InvalidArgument("all variables are latent, so the data say nothing; leave some out of latent=")
    columns = () if not hidden else data.variables if hasattr(data, "in_memory") else column_names(data)
    there = next((n for n in hidden if n in columns), None)
    if there is not None:
        raise InvalidArgument(
            f"{there!r} is said to be latent, but the data have a column of that name; leave it out of latent=, or "
            "drop the column"
        )
    source = read_data(data, shown, variables=shown, weights=weights)
    for name, variable in shown.items():
        if name not in source.variables:
            raise UnknownVariable(name, source.variables, "the data")
        if source.variables[name].states != variable.states:
            raise InvalidArgument(
                f"the data have states {list(source.variables[name].states)} for {name!r}, the model "
                f"{list(variable.states)}"
            )
    gaps = sum(k for n, k in source.missing().items() if n in variables)
    if gaps and missing == "drop":
        return source.in_memory().without_gaps(), gaps
    if gaps and missing == "error":
        from markovia.learning.fields.field_layout import require_rows

        require_rows(source)
    return source, gaps


def listed_features(features: Any) -> list[Any]:
    """Return a list of features that has at least one."""
    listed = [features] if isinstance(features, Feature) else list(features)
    if not listed:
        raise InvalidArgument("features= is empty; a log-linear model needs at least one mk.Feature")
    return listed


def owned_feature(feature: Any, variables: dict[str, Variable]) -> Feature:
    """Give a feature the model's variables; numbered axes take over the model's states."""
    if not isinstance(feature, Feature):
        raise InvalidArgument(f"features are a list of mk.Feature, not {feature!r}")
    if all(variables.get(v.name) is v for vs, _ in feature.instances for v in vs):
        return feature
    parts = []
    for scope, table in feature.instances:
        for v in scope:
            if v.name not in variables:
                raise UnknownVariable(v.name, variables)
            known = variables[v.name]
            if len(known) != len(v) or (known.states != v.states and not v.numbered):
                raise InvalidTable(
                    f"the feature {feature.name!r} has states {list(v.states)} for {v.name!r}, the model "
                    f"{list(known.states)}"
                )
        parts.append(Feature([variables[v.name] for v in scope], table, feature.name))
    return parts[0] if len(parts) == 1 else Feature.tied(parts, feature.name)


def _tables(old: Sequence[Factor], found: "FieldFit") -> list[Factor]:
    """Return the factors with fitted entries."""
    layout: FieldLayout = found.layout
    if found.method != "ipf":
        alive = np.asarray((layout.transposed != 0) @ np.isfinite(layout.base).astype(np.float64)) > 0
        entries = np.where(alive, np.exp(found.weights - _top(found.weights, old)), 0.0)
        ends = np.cumsum([f.size for f in old])
        cut = zip(old, np.split(entries, ends[:-1]), strict=True)
        return [f if not f.variables else Factor.of(f.variables, v.reshape(f.values.shape)) for f, v in cut]
    logs = found.details["log_tables"]
    number = {v.name: i for i, v in enumerate(layout.variables)}
    inside = set(layout.arrays.scope.tolist())
    tables: dict[frozenset[int], tuple[tuple[int, ...], Array]] = {
        frozenset(s): (s, logs[low:high])
        for s, low, high in zip(
            [*((i,) for i in range(len(number))), *layout.scopes],
            layout.cell_ptr[:-1],
            layout.cell_ptr[1:],
            strict=True,
        )
        if len(s) > 1 or s[0] not in inside
    }
    factors = []
    for f in old:
        scope = tuple(number[n] for n in f.names)
        home = tables.pop(frozenset(scope), None)
        values = np.ones(f.values.shape)
        if home is not None:
            table = np.exp(home[1]).reshape(layout.arrays.cards[list(home[0])].tolist())
            values = np.ascontiguousarray(table.transpose([home[0].index(i) for i in scope]))
        factors.append(Factor.of(f.variables, values))
    return factors


def _top(weights: Array, factors: Sequence[Factor]) -> Array:
    """Return the largest weight of each factor's entries where it is beyond what a double's exponential holds."""
    sizes = np.array([f.size for f in factors])
    top = np.maximum.reduceat(weights, np.cumsum(sizes) - sizes)
    return np.repeat(np.where(np.abs(top) > 300.0, top, 0.0), sizes)
