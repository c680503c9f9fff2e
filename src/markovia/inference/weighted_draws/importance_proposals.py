"""Proposals for importance sampling: mini-buckets, independent marginals, a network, and tables that learn.

Each function returns a `SequentialSampler`: how to draw the free variables one after the other, and the factors
of the model that the draws are weighed by. See `importance_sampling` for the methods and their references.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel, check_known
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.graphs.triangulation.elimination import eliminate
from markovia.inference.flat_graphs.flat_graph import FlatGraph, flat_graph
from markovia.inference.problem import Piece, Problem
from markovia.inference.weighted_draws.sequential_draws import (
    DrawStep,
    DrawTable,
    Local,
    SequentialSampler,
    in_order,
    local_of,
)
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now

FLOOR = 0.01  # share of the uniform distribution that learned and given marginals are mixed with
FEWEST_PRIOR_DRAWS = (
    20.0  # what a row's old probabilities count for when it learns; more where there are many steps,
)
# since the noise of all rows adds up in the weights
START_ENTRIES = 2**10
ROUND_CELLS = 2**25
MIN_FILL_VARIABLES = 2000


# -- mini-buckets --------------------------------------------------------------------------------------------------


def mini_bucket_sampler(problem: Problem, targets: Iterable[str] | None, entries: int) -> SequentialSampler:
    """Draw in the reverse of an elimination order, from tables of at most `entries` entries where possible.

    Each bucket is split into groups whose product fits; a group sends on its power sum over the variable, with the
    exponent that makes the product of the groups an upper bound (Hoelder), so no support is lost.
    """
    graph = flat_graph(problem, targets)
    cards = graph.cards.tolist()
    factors = [DrawTable(tuple(graph.members(f).tolist()), graph.table(f)) for f in range(graph.n_factors)]
    alone = [
        DrawTable((i,), graph.unary[graph.starts[i] : graph.starts[i + 1]])
        for i in range(len(graph.variables))
    ]
    order = _elimination_order(graph)
    place = {v: k for k, v in enumerate(order)}
    buckets: list[list[DrawTable]] = [[] for _ in order]
    for table in factors:
        buckets[min(place[i] for i in table.scope)].append(table)
    steps: list[DrawStep] = []
    for k, v in enumerate(order):
        groups = _groups([alone[v], *buckets[k]], cards, entries)
        products = [_product(group, v, cards) for group in groups]
        for product in products:
            if len(product.scope) > 1:
                values = _power_sum(product.values, len(products))
                scope = product.scope[1:]
                buckets[min(place[i] for i in scope)].append(DrawTable(scope, values))
        steps.append(DrawStep(v, products, weigh=True))
    fixed = np.zeros(len(graph.variables), dtype=np.int32)
    return SequentialSampler(graph.variables, fixed, steps[::-1], [*alone, *factors], graph.log_scale)


def _elimination_order(graph: FlatGraph) -> list[int]:
    pointers, others = graph.neighbours()
    adjacency = [set(others[a:b].tolist()) for a, b in pairwise(pointers.tolist())]
    heuristic = "min-fill" if len(adjacency) <= MIN_FILL_VARIABLES else "min-degree"
    return [v for v, _ in eliminate(adjacency, heuristic)]  # type: ignore[arg-type]


def _groups(tables: Sequence[DrawTable], cards: Sequence[int], entries: int) -> list[list[DrawTable]]:
    """Split a bucket greedily, largest tables first, so that each product has at most `entries` entries."""
    groups: list[tuple[set[int], list[DrawTable]]] = []
    for table in sorted(tables, key=lambda t: -t.values.size):
        mine = set(table.scope)
        for scope, group in groups:
            if mine <= scope or prod(cards[i] for i in scope | mine) <= entries:
                scope |= mine
                group.append(table)
                break
        else:
            groups.append((mine, [table]))
    return [group for _, group in groups]


def _product(tables: Sequence[DrawTable], v: int, cards: Sequence[int]) -> DrawTable:
    """Return the product of tables, the axis of v first, scaled to a largest entry of one."""
    scope = (v, *sorted({i for t in tables for i in t.scope} - {v}))
    values: Array = np.ones([cards[i] for i in scope])
    for table in tables:
        axes = sorted(range(len(table.scope)), key=lambda a: scope.index(table.scope[a]))
        mine = {table.scope[a] for a in axes}
        shape = [cards[i] if i in mine else 1 for i in scope]
        values = values * table.values.transpose(axes).reshape(shape)
        top = float(values.max())
        values = values / top if top > 0 else values
    return DrawTable(scope, values)


def _power_sum(values: Array, groups: int) -> Array:
    """Return `(sum over the first axis of values ** groups) ** (1 / groups)`, scaled to a largest entry of one."""
    top = values.max(axis=0)
    safe = np.where(top > 0, top, 1.0)
    total = top * ((values / safe) ** groups).sum(axis=0) ** (1.0 / groups)
    largest = float(total.max())
    scaled: Array = total / largest if largest > 0 else total
    return scaled


# -- given proposals -----------------------------------------------------------------------------------------------


class _Target:
    """The columns and factors of what is asked for, findings included."""

    def __init__(self, problem: Problem, targets: Iterable[str] | None) -> None:
        asked = None if targets is None else [*targets]
        pieces = problem.relevant(asked)
        names = {n for p in pieces for n in p.names} | set(problem.variables if asked is None else asked)
        self.pieces: list[Piece] = pieces
        self.variables = [v for n, v in problem.variables.items() if n in names]
        self.column = {v.name: i for i, v in enumerate(self.variables)}
        self.fixed = np.zeros(len(self.variables), dtype=np.int32)
        self.allowed: dict[str, Array] = {}
        self.factors: list[DrawTable | Local] = [local_of(p, self.column) for p in pieces]
        self.free = [v for v in self.variables if v.name in set(problem.free)]
        for n, finding in problem.findings.items():
            if n not in self.column:
                continue
            if finding.code is not None:
                self.fixed[self.column[n]] = finding.code
            else:
                self.allowed[n] = finding.weights()
                self.factors.append(DrawTable((self.column[n],), finding.weights()))

    def sampler(self, steps: Sequence[DrawStep]) -> SequentialSampler:
        return SequentialSampler(self.variables, self.fixed, steps, self.factors)

    def possible(self, variable: Variable) -> Array:
        """Return a positive number for every state that soft evidence does not exclude."""
        return self.allowed.get(variable.name, np.ones(len(variable)))


def covering(rows: Array, support: Array) -> Array:
    """Return normalised rows mixed with a little of the uniform distribution over the states that are possible.

    `support` is positive where the model may be; a row without any possible state, which is never reached by a draw of
    positive weight, becomes uniform.
    """
    allowed = np.broadcast_to(support > 0, rows.shape)
    allowed = np.where(allowed.any(axis=-1, keepdims=True), allowed, True)
    even = allowed / allowed.sum(axis=-1, keepdims=True)
    total = (rows * allowed).sum(axis=-1, keepdims=True)
    rows = np.where(total > 0, rows * allowed / np.where(total > 0, total, 1.0), even)
    return np.asarray((1.0 - FLOOR) * rows + FLOOR * even)


def marginal_sampler(
    problem: Problem, targets: Iterable[str] | None, marginals: Mapping[str, Any]
) -> SequentialSampler:
    """Draw every variable on its own, from given marginals mixed with a little of the uniform distribution."""
    check_known(marginals, problem.variables, "the model, named by proposal=")
    target = _Target(problem, targets)
    steps = []
    for variable in target.free:
        if variable.name not in marginals:
            raise InvalidArgument(
                f"proposal= has no probabilities for {variable.name!r}; every free variable needs them"
            )
        said = marginals[variable.name]
        if isinstance(said, Mapping):
            said = [said.get(s, 0.0) for s in variable.states]
        try:
            row = np.asarray(getattr(said, "values", said), dtype=np.float64)
        except (TypeError, ValueError):
            row = np.zeros(0)
        if row.shape != (len(variable),) or not np.all(row >= 0) or not 0 < row.sum() < np.inf:
            raise InvalidArgument(
                f"proposal= needs {len(variable)} probabilities for {variable.name!r}, one a state, not {said!r}"
            )
        column = target.column[variable.name]
        steps.append(
            DrawStep(column, [DrawTable((column,), covering(row, target.possible(variable)))], weigh=True)
        )
    return target.sampler(steps)


def network_sampler(problem: Problem, pieces: Sequence[Piece]) -> SequentialSampler:
    """Draw the free variables from the conditionals of another network, given the observed states."""
    conditionals = [p for p in pieces if isinstance(p, Conditional)]
    if len(conditionals) < len(pieces):
        raise UnsupportedModel("proposal= must be a Bayesian network; this model has undirected factors")
    mine = {c.variable.name: c.variable for c in conditionals}
    for name, variable in problem.variables.items():
        if name not in mine or mine[name].states != variable.states:
            raise InvalidArgument(
                f"proposal= must be over the variables of the model with the same states, but differs in {name!r}"
            )
    target = _Target(problem, None)
    free = {v.name for v in target.free}
    steps = []
    for conditional in in_order(conditionals):
        if conditional.variable.name not in target.column:
            raise InvalidArgument(
                f"proposal= has {conditional.variable.name!r}, which the model does not have"
            )
        if conditional.variable.name in free:
            local = local_of(conditional, target.column)
            steps.append(DrawStep(target.column[conditional.variable.name], [local], weigh=True))
    return target.sampler(steps)


# -- proposals that learn ------------------------------------------------------------------------------------------


def adapted_sampler(
    problem: Problem,
    targets: Iterable[str] | None,
    entries: int,
    rounds: int,
    draws: int,
    seed: int | None,
    time_limit: float | None,
) -> SequentialSampler:
    """Return a proposal whose conditional tables have learned from weighted draws.

    The weights that it learns from are cut at `sqrt(draws)` times their mean, which keeps one lucky draw from taking over;
    the final weights are not.
    """
    asked = None if targets is None else [*targets]
    sampler = _first_sampler(problem, asked, entries)
    steps = sampler.steps
    prior = max(FEWEST_PRIOR_DRAWS, len(steps) / 2.0)
    deadline = np.inf if time_limit is None else now() + time_limit
    entropy = np.random.SeedSequence(seed).entropy
    draws = min(draws, max(256, ROUND_CELLS // max(1, len(sampler.variables))))
    for r in range(rounds):
        if now() > deadline:
            break
        codes, logs = sampler.draw(draws, np.random.SeedSequence(entropy, spawn_key=(2**32 - 1, r)))
        top = float(logs.max(initial=-np.inf))
        if top == -np.inf:
            continue
        weights = np.exp(logs - top)
        weights = np.minimum(weights, np.sqrt(draws) * weights.mean())
        weights *= weights.sum() / (weights * weights).sum()  # the sum is now the effective number of draws
        steps = [_learned(step, codes, weights, prior) for step in steps]
        sampler = replace(sampler, steps=steps)
    return sampler


def _first_sampler(problem: Problem, targets: Sequence[str] | None, entries: int) -> SequentialSampler:
    """Return where learning starts: a network's own conditionals, or small mini-buckets made one table a step."""
    target = _Target(problem, targets)
    conditionals = [p for p in target.pieces if isinstance(p, Conditional)]
    children = {c.variable.name for c in conditionals}
    free = {v.name: v for v in target.free}
    if len(children) == len(conditionals) == len(target.pieces) and children >= set(free):
        steps = []
        for c in in_order(conditionals):
            if c.variable.name not in free:
                continue
            local = local_of(c, target.column)
            if isinstance(local, DrawTable):
                support = local.values * target.possible(c.variable)
                local = DrawTable(local.scope, covering(support, support))
            steps.append(DrawStep(target.column[c.variable.name], [local], weigh=True))
        return target.sampler(steps)
    sampler = mini_bucket_sampler(problem, targets, min(entries, START_ENTRIES))
    cards = [len(v) for v in sampler.variables]
    return replace(sampler, steps=[_one_table(step, cards, entries) for step in sampler.steps])


def _one_table(step: DrawStep, cards: Sequence[int], entries: int) -> DrawStep:
    """Return a step with one table over the variable (last) and all it looks at, if that has few enough entries."""
    tables = [f for f in step.functions if isinstance(f, DrawTable)]
    if prod(cards[i] for i in {i for t in tables for i in t.scope}) > entries:
        return step
    product = _product(tables, step.column, cards)
    rows = np.moveaxis(product.values, 0, -1)
    return DrawStep(
        step.column, [DrawTable((*product.scope[1:], step.column), covering(rows, rows))], weigh=True
    )


def _learned(step: DrawStep, codes: Any, weights: Array, prior: float) -> DrawStep:
    """Move a step's rows towards the weighted counts, by as much as the draws that fell into each row are worth."""
    table = step.functions[0]
    if isinstance(table, Local) or len(step.functions) > 1 or table.scope[-1] != step.column:
        return step
    shape = table.values.shape
    at = np.ravel_multi_index([codes[:, c] for c in table.scope], shape)
    counts = np.bincount(at, weights, minlength=table.values.size).reshape(shape)
    rows = (counts + prior * table.values) / (counts.sum(axis=-1, keepdims=True) + prior)
    return DrawStep(step.column, [DrawTable(table.scope, covering(rows, table.values))], weigh=True)
