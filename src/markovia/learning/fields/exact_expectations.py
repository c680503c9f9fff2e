"""log Z and the marginals of all tables of a log-linear model, exactly, again and again for changing tables.

A small model is written out: one row of cell numbers a configuration, so that log weights are one sum and marginals one
weighted count. Otherwise a junction tree is compiled once for the structure; only the numbers in its tables change from
call to call, and two passes give log Z and the beliefs of all cliques, from which the tables' marginals are summed. Where
numbers leave the range of doubles, the derivatives of the mass are taken with logarithms instead.
References: Koller and Friedman (2009), section 20.3; Lauritzen and Spiegelhalter (1988).
Cost of a call: the configurations times the tables for a small model, otherwise two passes over the clique tables.
"""

from math import prod

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.tables.factor import Factor
from markovia.inference.exact.hopeless_width import HOPELESS, SMALL
from markovia.inference.exact.tree_plan import CompiledTree, TreePlan, TreeStructure, plan_for
from markovia.inference.exact.tree_state import OutOfRange, TreeState
from markovia.inference.problem import Problem
from markovia.kernels.clique_trees.program_sections import SLOT
from markovia.learning.fields.field_layout import FieldLayout
from markovia.runtime.array_types import Array
from markovia.runtime.memory_budget import default_budget, readable

WRITTEN_OUT = 1 << 15
"""Configurations times tables up to which a model is written out."""
INDEXED = 1 << 12
"""Entries of a clique up to which its cells are listed for every table in it."""
CHEAP = 1 << 23
"""Entries of a tree up to which "auto" takes exact expectations."""


class WrittenOut:
    """Expectations by enumeration of all configurations."""

    exact = True

    def __init__(self, layout: FieldLayout) -> None:
        self.layout = layout
        n = len(layout.variables)
        shape = layout.arrays.cards.tolist()
        states = np.indices(shape).reshape(n, -1) if n else np.zeros((0, 1), dtype=np.int64)
        cells = [layout.arrays.starts[i] + states[i] for i in range(n)]
        for f, scope in enumerate(layout.scopes):
            first = layout.arrays.scope_ptr[f]
            at = sum(layout.arrays.strides[first + a] * states[i] for a, i in enumerate(scope))
            cells.append(layout.n_single + layout.arrays.table_ptr[f] + at)
        self.cells = np.array(cells, dtype=np.int64).reshape(len(cells), -1)

    def __call__(self, log_tables: Array) -> tuple[float, Array]:
        """Return log Z and the marginals of all tables, one after the other."""
        probabilities, log_z = self.distribution(log_tables)
        weights = np.broadcast_to(probabilities, self.cells.shape).ravel()
        found = np.bincount(self.cells.ravel(), weights, minlength=len(log_tables))
        return log_z, np.asarray(found, dtype=np.float64)

    def distribution(self, log_tables: Array) -> tuple[Array, float]:
        """Return the probability of every configuration, and log Z."""
        logs = log_tables[self.cells].sum(axis=0)
        top = float(logs.max())
        if not np.isfinite(top):
            raise _no_weight()
        weights = np.exp(logs - top)
        total = float(weights.sum())
        return weights / total, top + float(np.log(total))


class TreeExpectations:
    """Expectations on a junction tree that is compiled once."""

    exact = True

    def __init__(self, layout: FieldLayout, plan: TreePlan) -> None:
        self.layout, self.plan = layout, plan
        n = len(layout.variables)
        slot = plan.section(SLOT)
        self.tree = CompiledTree(plan, layout.variables, [np.ones(layout.n_cells)])
        reach = layout.arrays.cards
        self.places = np.repeat(plan.marginal_at[slot[:n]] - layout.arrays.starts[:-1], reach) + np.arange(
            layout.n_single
        )
        self.large: dict[int, list[tuple[int, list[int]]]] = {}
        groups: dict[tuple[int, int, bool], list[int]] = {}
        places: dict[int, list[tuple[int, Array]]] = {}
        for f, scope in enumerate(layout.scopes):
            slots = [int(slot[i]) for i in scope]
            c = int(plan.home[min(slots)])
            held: list[int] = plan.clique_slots(c).tolist()
            sizes: list[int] = plan.card[held].tolist()
            if prod(sizes) > INDEXED or plan.table_at[c] < 0:
                self.large.setdefault(c, []).append((f, slots))
                continue
            states = np.indices(sizes)
            at = sum(
                int(layout.arrays.strides[layout.arrays.scope_ptr[f] + a]) * states[held.index(s)]
                for a, s in enumerate(slots)
            )
            if c not in places:
                separator = prod(sizes[: int(plan.n_separator[c])])
                groups.setdefault((separator, prod(sizes), bool(plan.parent[c] < 0)), []).append(c)
            places.setdefault(c, []).append((f, np.asarray(at).ravel()))
        # small cliques of one shape are read together; `source` and `target` then add their entries up to cells
        self.groups = [(shape, np.array(cliques, dtype=np.int64)) for shape, cliques in groups.items()]
        source, target, begin = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)], 0
        for (_, size, _), cliques in self.groups:
            for c in cliques.tolist():
                for f, index in places[c]:
                    source.append(begin + np.arange(size))
                    target.append(layout.arrays.table_ptr[f] + index)
                begin += size
        self.source, self.target = np.concatenate(source), np.concatenate(target).astype(np.int64)

    def __call__(self, log_tables: Array) -> tuple[float, Array]:
        """Return log Z and the marginals of all tables, one after the other."""
        layout = self.layout
        begin = layout.cell_ptr[:-1]
        top = np.maximum.reduceat(log_tables, begin)
        if not np.isfinite(top).all():
            raise _no_weight()
        self.tree.raw = np.exp(log_tables - np.repeat(top, np.diff(layout.cell_ptr)))
        state = TreeState(self.tree)
        try:
            log_z = state.collect()
            if log_z == -np.inf:
                raise _no_weight()
            state.distribute()
        except OutOfRange:
            return self._in_logs(log_tables)
        found = np.empty(layout.n_cells)
        found[: layout.n_single] = state.marginals[self.places]
        found[layout.n_single :] = np.bincount(
            self.target, self._beliefs(state)[self.source], minlength=layout.n_cells - layout.n_single
        )
        for c, tables in self.large.items():
            belief = state.belief(c)
            axes: list[int] = state.free_slots(c).tolist()
            for f, slots in tables:
                low, high = (
                    layout.n_single + layout.arrays.table_ptr[f],
                    layout.n_single + layout.arrays.table_ptr[f + 1],
                )
                drop = tuple(i for i, s in enumerate(axes) if s not in slots)
                kept = [s for s in axes if s in slots]
                found[low:high] = belief.sum(axis=drop).transpose([kept.index(s) for s in slots]).ravel()
        return log_z + float(top.sum()), found

    def _beliefs(self, state: TreeState) -> Array:
        """Return the posteriors of the small cliques one after the other; see `TreeState.belief`."""
        plan, floats = self.plan, state.packed[1]
        found = [np.zeros(0)]
        for (separator, size, root), cliques in self.groups:
            table = floats[(state.tables_at + plan.table_at[cliques])[:, None] + np.arange(size)]
            if not root:
                at = plan.message_at[cliques][:, None] + np.arange(separator)
                message = floats[at]
                below = floats[at + state.posterior_at - plan.message_at[0]]
                ratio = np.divide(below, message, out=np.zeros(below.shape), where=message > 0)
                table = (table.reshape(len(cliques), separator, -1) * ratio[:, :, None]).reshape(-1, size)
            found.append((table / table.sum(axis=1, keepdims=True)).ravel())
        return np.concatenate(found)

    def _in_logs(self, log_tables: Array) -> tuple[float, Array]:
        from markovia.inference.exact.derivatives import mass_gradient

        layout = self.layout
        begin, sizes = layout.cell_ptr[:-1], np.diff(layout.cell_ptr)
        top = np.maximum.reduceat(log_tables, begin)
        shifted = log_tables - np.repeat(top, sizes)
        found = mass_gradient(_problem(layout, np.exp(shifted)))
        if found.log_mass == -np.inf:
            raise _no_weight()
        slopes = np.concatenate([found.log_slopes[k].ravel() for k in range(len(begin))])
        with np.errstate(invalid="ignore"):
            shares = np.exp(np.where(np.isneginf(shifted), -np.inf, slopes + shifted) - found.log_mass)
        return found.log_mass + float(top.sum()), shares


ExactExpectations = WrittenOut | TreeExpectations


def exact_expectations(layout: FieldLayout, most: float | None = None) -> ExactExpectations:
    """Return exact expectations for a layout.

    Parameters
    ----------
    most
        Entries of a junction tree at most; by default what fits the memory.

    Raises
    ------
    TooLarge
        If the tree is larger than that.
    """
    configurations = prod(layout.arrays.cards.tolist())
    if configurations * (len(layout.variables) + layout.n_tables) <= WRITTEN_OUT:
        return WrittenOut(layout)
    if _hopeless(layout):
        raise TooLarge(
            "the junction tree of the model is far too wide for exact expectations; use method='pseudo-likelihood', 'pcd' "
            "or 'loopy-bp'"
        )
    scopes: list[tuple[int, ...]] = [(i,) for i in range(len(layout.variables))]
    plan = plan_for(TreeStructure(layout.arrays.cards.tolist(), scopes + layout.scopes), effort=10.0)
    if plan.total > (np.inf if most is None else most) or plan.bytes > max(1 << 20, default_budget()):
        raise TooLarge(
            f"exact expectations need a junction tree of {plan.total:,.3g} entries ({readable(plan.bytes)}, width "
            f"{plan.width}) in every step; use method='pseudo-likelihood', 'pcd' or 'loopy-bp'",
            bytes=plan.bytes,
            operations=4 * plan.total,
        )
    return TreeExpectations(layout, plan)


def _hopeless(layout: FieldLayout) -> bool:
    """Say whether a junction tree is out of reach, before an order is searched."""
    if len(layout.variables) <= SMALL:
        return False
    from markovia.kernels.clique_trees.elimination import wider_than

    starts = np.cumsum([0, *map(len, layout.scopes)])
    flat = np.array([i for scope in layout.scopes for i in scope], dtype=np.int64)
    return wider_than(starts, flat, layout.arrays.cards, HOPELESS)


def layout_factors(layout: FieldLayout, values: Array) -> list[Factor]:
    """Return cells as factors: one a variable, then one a table."""
    own = layout.variables
    found = []
    scopes: list[tuple[int, ...]] = [(i,) for i in range(len(own))]
    for scope, low, high in zip(
        scopes + layout.scopes, layout.cell_ptr[:-1], layout.cell_ptr[1:], strict=True
    ):
        variables = tuple(own[i] for i in scope)
        found.append(Factor.of(variables, values[low:high].reshape([len(v) for v in variables]).copy()))
    return found


def _problem(layout: FieldLayout, values: Array) -> Problem:
    return Problem({v.name: v for v in layout.variables}, layout_factors(layout, values), {})


def _no_weight() -> InvalidArgument:
    return InvalidArgument("every configuration has weight zero; the factors rule out everything")
