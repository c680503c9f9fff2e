"""A product of tables made smaller before an elimination order is searched.

Method: rules that leave the product as it is, or sum a variable out of it that nobody asks about, until none applies.

- A state is impossible if some table has no positive entry with it over the states left of its other variables
  (generalised arc consistency, Mackworth 1977; in pedigrees the genotype elimination of Lange and Goradia 1987). A variable
  with one state left disappears; a table without variables is a number.
- A table that is a product of one over a single variable and one over the others falls apart.
- A small table whose variables all lie in another, small one is multiplied into it.
- A variable that nobody asks about and that lies in one table only is summed out of it. With the second rule this removes
  what is barren, however the model was written down: no graph has to say that a table sums to one.
- Where two variables determine each other, one takes the place of the other in all tables but one.
- Two variables that share one table only, and do not interact in it given its other variables, are separated: the table
  becomes two.

Tables of the same shape are looked at together, and after the first round only those that have changed.
Cost: the entries of all tables a few times; some 20 microseconds a table and rule.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations
from math import inf, log
from typing import NamedTuple

import numpy as np

from markovia.runtime.array_types import Array, Flags, Ints

SMALL = 1 << 12
"""Entries of a table up to which tables inside its scope are multiplied into it, and it is looked at for structure."""
DEEPEST = 1e-200
"""How small a positive entry may become beside the largest one where tables are multiplied."""
ROUNDING = 1e-13
"""By how much a product may differ from an entry, relative to it."""

Scope = tuple[int, ...]


class Pruned(NamedTuple):
    """A product of tables that are small, together with what is known of variables that are no longer in it.

    Attributes
    ----------
    kept
        For each variable the states that are left, by their numbers; a single one where the variable is decided.
    tables, scopes
        The tables over the variables of which several states are left; these keep their numbers.
    cards
        How many states are left of each variable; 1 too for one that was summed out.
    log_scale
        The log of the number that the product of the tables has to be multiplied by.
    possible
        False if no configuration has a positive weight, as far as was found; there are no tables then.
    """

    kept: list[Ints]
    tables: list[Array]
    scopes: list[Scope]
    cards: list[int]
    log_scale: float
    possible: bool


def prune(
    scopes: Sequence[Scope], tables: Sequence[Array], cards: Sequence[int], hidden: Collection[int] = ()
) -> Pruned:
    """Return a smaller product with the same sums over the hidden variables.

    Parameters
    ----------
    scopes, tables
        Non-negative tables, one axis for each variable of the scope.
    cards
        The states of each variable.
    hidden
        Variables that are summed over in the end, whatever is asked.

    Examples
    --------
    >>> copy, seen = np.eye(2), np.array([0.0, 1.0])
    >>> found = prune([(0, 1), (1,), (0, 2)], [copy, seen, np.array([[0.1, 0.9], [0.25, 0.5]])], [2, 2, 2])
    >>> [states.tolist() for states in found.kept], found.scopes, found.tables[0].tolist()
    ([[1], [1], [0, 1]], [(2,)], [0.25, 0.5])
    >>> prune([(0, 1), (1, 2)], [np.eye(2), np.ones((2, 2))], [2, 2, 2], hidden=[0, 1, 2]).scopes
    []
    """
    work = _Product(cards, hidden)
    for scope, table in zip(scopes, tables, strict=True):
        work.add(tuple(scope), np.asarray(table))
    while work.log_scale > -inf:
        changed = work.drained()
        work.remove_unsupported(changed)
        if not all(map(len, work.kept)):
            break
        changed |= work.drained()
        work.split_off(changed)
        work.merge(changed | work.drained())
        work.sum_out()
        if work.log_scale > -inf and not (work.fresh or work.substitute() or work.separate()):
            ids = sorted(work.scope)
            left = [work.table[i] for i in ids], [work.scope[i] for i in ids]
            return Pruned(work.kept, *left, work.cards, work.log_scale, True)
    return Pruned(work.kept, [], [], [len(states) for states in work.kept], -inf, False)


class _Product:
    """Tables by number, the variables they are over, and what has changed.

    Attributes
    ----------
    scope, table, inside
        Of each table its variables and its entries; for each variable the tables it is in.
    fresh
        Tables that are new since the rules were last applied.
    """

    def __init__(self, cards: Sequence[int], hidden: Collection[int]) -> None:
        self.cards = list(cards)
        self.kept = [np.arange(n) for n in cards]
        self.hidden = set(hidden)
        self.scope: dict[int, Scope] = {}
        self.table: dict[int, Array] = {}
        self.inside: list[set[int]] = [set() for _ in cards]
        self.fresh: set[int] = set()
        self.log_scale = 0.0
        self.last = 0

    def add(self, scope: Scope, table: Array) -> None:
        """Take a table in; one without variables only scales the product."""
        if not scope:
            self.log_scale += log(table) if table > 0 else -inf
            return
        self.last += 1
        self.scope[self.last], self.table[self.last] = scope, table
        self.fresh.add(self.last)
        for v in scope:
            self.inside[v].add(self.last)

    def take(self, i: int) -> tuple[Scope, Array]:
        """Remove a table and return it."""
        scope = self.scope.pop(i)
        for v in scope:
            self.inside[v].discard(i)
        self.fresh.discard(i)
        return scope, self.table.pop(i)

    def drained(self) -> set[int]:
        """Return the tables that are new, which then are no longer."""
        found, self.fresh = self.fresh, set()
        return found

    def alike(self, tables: Iterable[int], most: float = inf) -> Iterator[tuple[list[int], Array]]:
        """Group tables that are there by their shape; yield the numbers of a group, and its tables one below the other."""
        groups: defaultdict[tuple[int, ...], list[int]] = defaultdict(list)
        for i in tables:
            if i in self.table and self.table[i].size <= most:
                groups[self.table[i].shape].append(i)
        for members in groups.values():
            yield members, np.array([self.table[i] for i in members])

    # -- what cannot occur -----------------------------------------------------------------------------------------

    def remove_unsupported(self, changed: set[int]) -> None:
        """Remove the states that no table supports, starting from tables that are new."""
        start = np.concatenate([[0], np.cumsum(self.cards, dtype=np.int64)])
        alive = np.ones(start[-1], bool)
        owner = np.repeat(np.arange(len(self.cards)), self.cards)
        lost: set[int] = set()
        waiting = {i for i in changed if i in self.table and not self.table[i].all()}
        while waiting:
            gone: set[int] = set()
            for members, stack in self.alike(sorted(waiting)):
                first = start[np.array([self.scope[i] for i in members])]
                gone.update(owner[_unsupported(stack > 0, first, alive)].tolist())
            lost |= gone
            touched = {i for v in gone for i in self.inside[v]}
            waiting = {i for i in touched if not self.table[i].all()}
        masks = {v: alive[start[v] : start[v + 1]] for v in lost}
        for v, mask in masks.items():
            self.kept[v] = self.kept[v][mask]
            self.cards[v] = len(self.kept[v])
        if not all(map(len, self.kept)):
            return
        decided = {v for v in range(len(self.cards)) if self.cards[v] == 1 and self.inside[v]}
        for i in sorted({i for v in lost | decided for i in self.inside[v]}):
            scope, table = self.take(i)
            keep = np.ix_(*[masks.get(v, np.ones(self.cards[v], bool)) for v in scope])
            smaller = table[keep].reshape([self.cards[v] for v in scope if v not in decided])
            self.add(tuple([v for v in scope if v not in decided]), smaller)

    # -- small rules -------------------------------------------------------------------------------------------------

    def split_off(self, changed: set[int]) -> None:
        """Split variables off that do not interact with the others of their table."""
        for members, stack in self.alike(sorted(changed), SMALL):
            if stack.ndim < 3:
                continue
            free = _free_axes(stack)
            for k in np.flatnonzero(free.any(axis=1)):
                scope, table = self.take(members[k])
                top = np.unravel_index(table.argmax(), table.shape)
                for a in np.flatnonzero(free[k])[: len(scope) - 1]:
                    line = tuple([slice(None) if b == a else p for b, p in enumerate(top)])
                    self.add((scope[a],), table[line] / table[top])
                rest = [a for a in range(len(scope)) if not free[k, a]] or [len(scope) - 1]
                corner = tuple([slice(None) if a in rest else p for a, p in enumerate(top)])
                self.add(tuple([scope[a] for a in rest]), table[corner])

    def merge(self, changed: set[int]) -> None:
        """Multiply small tables into others that have all their variables."""
        new = {i for i in changed if i in self.table}
        inner = new | {j for i in new for j in self._narrower(i)} if len(new) < len(self.table) else new
        for i in sorted(inner, key=lambda i: (self.table[i].size, i)):
            size = self.table[i].size
            wider = set.intersection(*[self.inside[v] for v in self.scope[i]]) - {i}
            fits = [(self.table[j].size, j) for j in wider if self.table[j].size <= max(SMALL, size)]
            if not fits:
                continue
            _, j = min(fits)
            product, log_factor = _product(self.scope[j], self.table[j], self.scope[i], self.table[i])
            if product is None:
                continue
            self.log_scale += log_factor
            if log_factor == -inf:
                return
            self.take(i)
            self.table[j] = product
            self.fresh.add(j)

    def _narrower(self, i: int) -> set[int]:
        own = set(self.scope[i])
        return {j for v in own for j in self.inside[v] if j != i and own.issuperset(self.scope[j])}

    def sum_out(self) -> None:
        """Sum hidden variables out that are in one table only, or in none."""
        waiting = sorted(v for v in self.hidden if len(self.inside[v]) < 2)
        while waiting:
            v = waiting.pop()
            if v not in self.hidden or len(self.inside[v]) > 1:
                continue
            self.hidden.discard(v)
            if self.inside[v]:
                scope, table = self.take(min(self.inside[v]))
                largest = table.max()
                self.log_scale += log(largest) if largest > 0 else -inf
                smaller = (table / (largest or 1.0)).sum(axis=scope.index(v))
                self.add(tuple([u for u in scope if u != v]), smaller)
                waiting += [u for u in scope if u in self.hidden and len(self.inside[u]) < 2]
            else:
                self.log_scale += log(self.cards[v])
            self.cards[v] = 1

    # -- structure ---------------------------------------------------------------------------------------------------

    def substitute(self) -> bool:
        """Put variables in the place of others that they determine and are determined by; say whether there were any."""
        found: list[tuple[int, int, Ints]] = []
        for members, stack in self.alike(sorted(self.table), SMALL):
            for a, b in combinations(range(stack.ndim - 1), 2):
                if stack.shape[a + 1] != stack.shape[b + 1]:
                    continue
                others = tuple([c + 1 for c in range(stack.ndim - 1) if c not in (a, b)])
                seen: Flags = np.logical_or.reduce(stack > 0, axis=others)
                one = (seen.sum(axis=1) == 1).all(axis=1) & (seen.sum(axis=2) == 1).all(axis=1)
                for k in np.flatnonzero(one):
                    scope = self.scope[members[k]]
                    found += [(scope[a], scope[b], seen[k].argmax(axis=1))]
        replaced: set[int] = set()
        for x, y, states in found:
            if {x, y} & replaced:
                continue
            # the one that stays is asked about, or in more tables; the other one is left in a table with it
            if (x in self.hidden, -len(self.inside[x])) > (y in self.hidden, -len(self.inside[y])):
                x, y, states = y, x, states.argsort()
            if {self.scope[i] for i in self.inside[y]} <= {(x, y), (y, x)}:
                continue
            replaced |= {x, y}
            for i in sorted(self.inside[y]):
                scope, table = self.take(i)
                a = scope.index(y)
                table = table.take(states, axis=a)
                if x in scope:
                    b = scope.index(x)
                    table = np.diagonal(table, axis1=a, axis2=b)
                    self.add((*[v for v in scope if v not in (x, y)], x), table)
                else:
                    self.add(tuple([x if v == y else v for v in scope]), table)
            copy = np.zeros((self.cards[x], self.cards[y]))
            copy[np.arange(len(states)), states] = 1.0
            self.add((x, y), copy)
        return bool(replaced)

    def separate(self) -> bool:
        """Make two tables of those in which two variables do not interact that meet nowhere else; say whether any were."""
        done = False
        for members, stack in self.alike(sorted(self.table), SMALL):
            rank = stack.ndim - 1
            for a, b in combinations(range(rank), 2) if rank > 2 else ():
                alone = [
                    k for k, i in enumerate(members)
                    if i in self.table and self.inside[self.scope[i][a]] & self.inside[self.scope[i][b]] == {i}
                ]  # fmt: skip
                if not alone:
                    continue
                fits, one, other = _separated(stack[alone], a, b)
                for k in np.flatnonzero(fits):
                    scope, _ = self.take(members[alone[k]])
                    rest = [v for c, v in enumerate(scope) if c not in (a, b)]
                    self.add((*rest, scope[a]), one[k])
                    self.add((*rest, scope[b]), other[k])
                    done = True
        return done


def _unsupported(positive: Flags, first: Ints, alive: Flags) -> Ints:
    """Mark the states dead in `alive` that tables of one shape do not support, and return them.

    `first` says where the states of each table's variables begin.
    """
    rank = first.shape[1]
    gone = [np.empty(0, np.int64)]
    places = [first[:, a, None] + np.arange(positive.shape[a + 1]) for a in range(rank)]
    for a, states in enumerate(places):
        positive &= alive[states].reshape(len(states), *[-1 if b == a else 1 for b in range(rank)])
    for a, states in enumerate(places):
        seen = positive.any(axis=tuple([b + 1 for b in range(rank) if b != a]))
        gone.append(states[alive[states] & ~seen])
        alive[gone[-1]] = False
    return np.unique(np.concatenate(gone))


def _free_axes(stack: Array) -> Flags:
    """Say for tables of one shape along which axes all slices are proportional: those that do not interact with others."""
    n, rank = len(stack), stack.ndim - 1
    free = np.zeros((n, rank), bool)
    scaled = stack.reshape(n, -1) / stack.reshape(n, -1).max(axis=1, keepdims=True)
    top = scaled.argmax(axis=1)
    each = np.arange(n)
    for a in range(rank):
        slices = np.moveaxis(scaled.reshape(stack.shape), a + 1, 1).reshape(n, stack.shape[a + 1], -1)
        place = np.unravel_index(top, stack.shape[1:])[a]
        row = slices[each, place]
        column = slices[each, :, row.argmax(axis=1)]
        free[:, a] = _equal(slices, column[:, :, None] * row[:, None, :])
    return free


def _separated(stack: Array, a: int, b: int) -> tuple[Flags, Array, Array]:
    """Write tables of one shape as products of one without axis b and one without axis a; say for which that is right."""
    turned = np.moveaxis(stack, (a + 1, b + 1), (-2, -1))
    shape = turned.shape
    slices = turned.reshape(-1, *shape[-2:])
    each = np.arange(len(slices))
    i, j = np.divmod(slices.reshape(len(slices), -1).argmax(axis=1), shape[-1])
    top = slices[each, i, j]
    one = slices[each, :, j]
    other = slices[each, i] / np.where(top > 0, top, 1.0)[:, None]
    right = _equal(slices, one[:, :, None] * other[:, None, :]).reshape(len(stack), -1)
    return _all(right), one.reshape(shape[:-1]), other.reshape(*shape[:-2], shape[-1])


def _equal(tables: Array, others: Array) -> Flags:
    """Say for each pair of tables whether they are the same to rounding."""
    return _all(np.abs(tables - others) <= ROUNDING * tables)


def _all(flags: Flags) -> Flags:
    """Say for each row whether all of it is true."""
    found: Flags = flags.reshape(len(flags), -1).min(axis=1)
    return found


def _product(scope: Scope, table: Array, inner: Scope, other: Array) -> tuple[Array | None, float]:
    """Return a table times one inside its scope, and the log of its scale; None where small entries would be lost."""
    turned = other.transpose([inner.index(v) for v in scope if v in inner])
    turned = turned.reshape([n if v in inner else 1 for v, n in zip(scope, table.shape, strict=True)])
    product = (table / table.max()) * (turned / turned.max())
    largest = product.max()
    if largest == 0:
        return product, -inf
    lost = (product < DEEPEST) & (table > 0) & (turned > 0)
    return None if lost.any() else product / largest, log(table.max()) + log(turned.max()) + log(largest)
