"""log Z and the marginals of all tables of a log-linear model from an approximate engine, for changing tables.

- Loopy belief propagation: beliefs and the Bethe log Z (Yedidia, Freeman and Weiss 2005). Neither bound.
- Mean field: products of single distributions; its log Z is a lower bound, so the surrogate likelihood is an upper bound
  on the true one (Wainwright and Jordan 2008, section 7.5 warns of it in learning).
- Tree-reweighted: pseudo-marginals whose log Z is a convex upper bound, so the surrogate likelihood is a concave lower bound
  on the true one, and raising it is safe (Wainwright 2006).

The derivative of each log Z with respect to a log table is the engine's own marginal of that table, so the surrogate
likelihood has an exact gradient; its maximum matches the data's margins to the engine's (pseudo-moment matching).
Cost of a call: one run of the engine. The graph is laid out once; only the numbers change.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.engine import get_engine
from markovia.inference.flat_graphs.flat_graph import FlatGraph, from_factors
from markovia.inference.message_passing.loopy_bp import LoopyBP
from markovia.inference.message_passing.message_graph import message_graph
from markovia.inference.message_passing.schedules import SUM
from markovia.inference.problem import Problem
from markovia.inference.variational.mean_field import MeanField
from markovia.inference.variational.tree_reweighted import TreeReweighted
from markovia.learning.fields.exact_expectations import layout_factors
from markovia.learning.fields.field_layout import FieldLayout
from markovia.runtime.array_types import Array

ROUNDS = 200
"""Rounds of scaling that give the pair marginals of reweighted trees."""
BOUND = {"loopy-bp": "neither", "mean-field": "upper", "tree-reweighted": "lower"}
"""What the surrogate likelihood is to the true one."""


class ApproximateExpectations:
    """Expectations from loopy belief propagation, mean field or reweighted trees."""

    exact = False

    def __init__(self, layout: FieldLayout, engine: Any) -> None:
        chosen = get_engine(engine)
        if not isinstance(chosen, LoopyBP | MeanField | TreeReweighted):
            raise InvalidArgument(
                f"engine {chosen.name!r} does not give the marginals of all tables at once; use 'loopy-bp', 'mean-field', "
                "'tree-reweighted' or 'gibbs'"
            )
        if isinstance(chosen, MeanField):
            chosen = replace(chosen, restarts=1, tolerance=min(chosen.tolerance, 1e-9))
        elif isinstance(chosen, TreeReweighted):
            chosen = replace(chosen, tolerance=min(chosen.tolerance, 1e-8))
        self.layout, self.engine = layout, chosen
        self.settled = True
        """Whether every run of the engine has converged so far."""
        factors = layout_factors(layout, np.ones(layout.n_cells))
        self.flat = from_factors(layout.variables, factors, absorb=False)
        if isinstance(chosen, LoopyBP):
            problem = Problem({v.name: v for v in layout.variables}, factors, {})
            self.messages = message_graph(problem, absorb=False)

    def __call__(self, log_tables: Array) -> tuple[float, Array]:
        """Return log Z as the engine has it, and its marginals of all tables, one after the other."""
        graph = self._loaded(log_tables)
        if isinstance(self.engine, LoopyBP):
            return self._loopy(graph)
        if isinstance(self.engine, MeanField):
            ascent = self.engine.ascend(graph)
            if ascent is None or not np.isfinite(ascent.elbo):
                raise InvalidArgument("mean field found no configuration of positive weight")
            self.settled &= ascent.change <= self.engine.tolerance
            return ascent.elbo, self._products(ascent.q)
        found = self.engine.minimise(graph)
        if found is None:
            raise InvalidArgument("every configuration has weight zero; the factors rule out everything")
        self.settled &= self.engine.record(graph, found).converged
        return found.bound, self._scaled(graph, found.marginals, found.forests.rho)

    def _loaded(self, log_tables: Array) -> FlatGraph:
        layout = self.layout
        top = np.maximum.reduceat(log_tables, layout.cell_ptr[:-1])
        values = np.exp(log_tables - np.repeat(top, np.diff(layout.cell_ptr)))
        k = layout.n_single
        return replace(self.flat, unary=values[:k], values=values[k:], log_scale=float(top.sum()))

    def _loopy(self, flat: FlatGraph) -> tuple[float, Array]:
        assert isinstance(self.engine, LoopyBP)
        graph = replace(self.messages, flat=flat, log_scale=flat.log_scale)
        run = self.engine.run(graph)
        if run.log_mass == -np.inf:
            raise InvalidArgument("loopy belief propagation gave every configuration weight zero")
        self.settled &= run.messages.converged
        layout, found = self.layout, np.empty(self.layout.n_cells)
        found[: layout.n_single] = run.flat
        outgoing = run.messages.outgoing
        if run.messages.kind != SUM:
            outgoing = np.exp(outgoing)
        for tables, shape, cells in layout.alike:
            values = flat.values[cells - layout.n_single].reshape(-1, *shape)
            for a, k in enumerate(shape):
                start = graph.message_ptr[layout.arrays.scope_ptr[tables] + a]
                values = values * _along(outgoing[start[:, None] + np.arange(k)], a, len(shape))
            found[cells] = _normal(values.reshape(len(tables), -1))
        return run.log_mass, found

    def _products(self, q: Array) -> Array:
        layout, found = self.layout, np.empty(self.layout.n_cells)
        found[: layout.n_single] = q
        for tables, shape, cells in layout.alike:
            values = np.ones((len(tables), *shape))
            for a, k in enumerate(shape):
                start = layout.arrays.starts[layout.arrays.scope[layout.arrays.scope_ptr[tables] + a]]
                values = values * _along(q[start[:, None] + np.arange(k)], a, len(shape))
            found[cells] = values.reshape(len(tables), -1)
        return found

    def _scaled(self, flat: FlatGraph, single: Array, rho: Array) -> Array:
        """Return the marginals of tables: f ** (1 / rho) scaled to the single marginals, as in every forest."""
        layout, found = self.layout, np.empty(self.layout.n_cells)
        found[: layout.n_single] = single
        for tables, shape, cells in layout.alike:
            values = flat.values[cells - layout.n_single] ** (1.0 / rho[tables])[:, None]
            table = values.reshape(-1, *shape)
            axes = range(1, len(shape) + 1)
            for _ in range(ROUNDS):
                change = 0.0
                for a, k in enumerate(shape):
                    start = layout.arrays.starts[layout.arrays.scope[layout.arrays.scope_ptr[tables] + a]]
                    wanted = single[start[:, None] + np.arange(k)]
                    have = table.sum(axis=tuple(b for b in axes if b != a + 1))
                    change = max(change, float(np.abs(have - wanted).max(initial=0.0)))
                    ratio = np.divide(wanted, have, out=np.zeros_like(have), where=have > 0)
                    table = table * _along(ratio, a, len(shape))
                if change < 1e-12:
                    break
            found[cells] = _normal(table.reshape(len(tables), -1))
        return found


def _along(rows: Array, axis: int, n: int) -> Array:
    """Give one vector a table the shape that multiplies along an axis."""
    shape = [1] * (n + 1)
    shape[0], shape[axis + 1] = rows.shape
    return rows.reshape(shape)


def _normal(rows: Array) -> Array:
    return np.asarray(rows / rows.sum(axis=1, keepdims=True))
