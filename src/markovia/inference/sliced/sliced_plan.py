"""Plans of eliminations in slices: buckets that never become tables, and variables whose states are taken one at a time.

Method: an elimination order makes a forest of buckets. A bucket multiplies its inputs (tables of the model, messages of its
children) and removes its variable in one go, so that only its message is ever in memory. Where the messages do not fit, some
variables are cut: their states are taken one at a time in a loop around just those buckets that mention them, which all lie
below the bucket that removes the variable; there the slices are added up. A bucket is gone through for every joint state
of the cuts in its own scope, so cutting costs no more work than the order itself, but for buckets inside a loop that do
not mention its variable: their messages are held for all states where that fits, and computed again where it does not.
References: Dechter (1999), "Bucket elimination"; Darwiche (2001), "Recursive conditioning", for loops below a bucket.
Cost: everything is known before a table is made, by running the plan without numbers (`slicing.measured`).
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod

from markovia.graphs.triangulation.elimination import Heuristic, eliminate, follow


@dataclass
class SlicedBucket:
    """One product: the variables it removes, those its message is about, and what it multiplies.

    Attributes
    ----------
    removed
        The variables that are removed; none in the last bucket, which holds a joint answer.
    scope
        The axes of the message, those that are eliminated first in front, so that what neighbours share is contiguous.
    tables
        The numbers of the model's tables that it multiplies.
    children
        The buckets whose messages it multiplies.
    parent
        The bucket that its message goes to, -1 for none.
    maximised
        Whether the variables are removed by maximum.
    """

    removed: tuple[int, ...]
    scope: tuple[int, ...]
    tables: list[int] = field(default_factory=list)
    children: list[int] = field(default_factory=list)
    parent: int = -1
    maximised: bool = False

    @cached_property
    def clique(self) -> tuple[int, ...]:
        """All its variables."""
        return (*self.removed, *self.scope)


@dataclass
class Loop:
    """The steps inside the loop over a cut variable, in order: buckets by number, and loops inside.

    The outermost is about no variable, and goes round once. `top` is the bucket that removes the variable, the last step;
    `varies` are the variables of the loops around the steps, this one's last.
    """

    variable: int
    top: int
    varies: tuple[int, ...]
    steps: list["int | Loop"] = field(default_factory=list)


class SlicedPlan:
    """Buckets in order, and the loops over cut variables around them.

    Parameters
    ----------
    scopes
        The variables of each table of the model.
    cards
        The number of states of each variable.
    order
        The variables to eliminate, in order.
    keep
        Variables that are not: the answer is one table over them.
    maximised
        Variables that are removed by maximum; they come last in the order where others are summed.
    cuts
        Variables of the order that are taken one state at a time.
    room
        How many entries messages may take that are held for later turns of a loop.
    """

    def __init__(
        self,
        scopes: Sequence[tuple[int, ...]],
        cards: Sequence[int],
        order: Sequence[int],
        keep: Sequence[int] = (),
        maximised: Collection[int] = (),
        cuts: Collection[int] = (),
        room: float = 0.0,
    ) -> None:
        self.scopes, self.cards, self.order, self.keep = scopes, cards, list(order), tuple(keep)
        self.maximised = frozenset(maximised)
        self.buckets = self._made()
        self.place = {b.removed[0]: k for k, b in enumerate(self.buckets) if b.removed}
        self._cut(cuts, room)

    def with_cuts(self, cuts: Collection[int], room: float) -> "SlicedPlan":
        """Return the same buckets with other variables cut."""
        other = object.__new__(SlicedPlan)
        other.__dict__.update(self.__dict__)
        other._cut(cuts, room)
        return other

    def with_last(self, last: Sequence[int], heuristic: Heuristic | None) -> "SlicedPlan":
        """Return the plan, not cut anew, of an order that removes some variables last of those that they may come last with.

        The others keep their order, or get one by a heuristic on the graph without these.
        """
        late = frozenset(last)
        # what is summed comes before what is maximised
        stage = [2 * int(v in self.maximised) + int(v in late) for v in range(len(self.cards))]
        order = self.order
        if heuristic is not None:
            near = self._graph()
            gone = late.union(self.keep)
            rest = [set() if v in gone else around - gone for v, around in enumerate(near)]
            known = set(order)
            order = [v for v, _ in eliminate(rest, heuristic, self.cards, stage) if v in known]
        order = sorted(order, key=stage.__getitem__)
        other = SlicedPlan(self.scopes, self.cards, order, self.keep, self.maximised)
        other.cuts = self.cuts
        return other

    def _graph(self) -> list[set[int]]:
        """Return who shares a table with whom."""
        near: list[set[int]] = [set() for _ in self.cards]
        for scope in self.scopes:
            for v in scope:
                near[v].update(scope)
        for v, around in enumerate(near):
            around.discard(v)
        return near

    def _made(self) -> list[SlicedBucket]:
        """Make the buckets of the order."""
        n, near = len(self.cards), self._graph()
        kept = set(self.keep)
        for v in kept:  # the answer joins them
            near[v] |= kept - {v}
        rank = [len(self.order) + i for i in range(n)]
        for k, v in enumerate(self.order):
            rank[v] = k
        for k, v in enumerate(self.keep):
            rank[v] = len(self.order) + k
        buckets = [
            SlicedBucket((v,), tuple(sorted(around, key=rank.__getitem__)), maximised=v in self.maximised)
            for v, around in follow(near, self.order)
        ]
        if kept:
            buckets.append(SlicedBucket((), self.keep))
        for f, scope in enumerate(self.scopes):
            if scope:
                buckets[min(rank[v] for v in scope) if not kept.issuperset(scope) else -1].tables.append(f)
        for k, bucket in enumerate(buckets):
            if bucket.removed and bucket.scope:
                bucket.parent = min(rank[bucket.scope[0]], len(buckets) - 1)
                buckets[bucket.parent].children.append(k)
        return buckets

    def _cut(self, cuts: Collection[int], room: float) -> None:
        """Lay the loops around the buckets."""
        self.cuts = frozenset(cuts)
        self.cut_scope = [tuple([v for v in b.scope if v in self.cuts]) for b in self.buckets]
        self.outermost = Loop(-1, len(self.buckets), ())
        loops = {-1: self.outermost}
        self.loop_of: list[int] = []  # the variable of the innermost loop around each bucket
        for bucket in self.buckets:
            inside = [v for v in bucket.clique if v in self.cuts]  # eliminated first: innermost
            self.loop_of.append(inside[0] if inside else -1)
        # outer loops first: a cut is inside the loop of the cut that is eliminated first among those its bucket mentions
        self._around: dict[int, int] = {}
        for v in sorted(self.cuts, key=lambda v: -self.place[v]):
            top = self.place[v]
            outer = self.cut_scope[top][0] if self.cut_scope[top] else -1
            self._around[v] = outer
            loops[v] = Loop(v, top, (*loops[outer].varies, v))
        for k in range(len(self.buckets)):
            own = self.loop_of[k]
            loops[own].steps.append(k)
            if own >= 0 and loops[own].top == k:
                loops[self._around[own]].steps.append(loops[own])
        self.loops = loops
        self._hold(room)
        self._find_ends()

    def _find_ends(self) -> None:
        """Find where messages are done with: after which step of the loop that they are complete in."""
        self.ends: dict[tuple[int, int], list[int]] = {}  # by variable of the loop and place of the step
        place = {
            v: {s.top if isinstance(s, Loop) else s: i for i, s in enumerate(loop.steps)}
            for v, loop in self.loops.items()
        }
        for k, bucket in enumerate(self.buckets):
            if bucket.parent >= 0:
                level, step = self.sent_in(k), bucket.parent
                if step not in place[level]:  # it is used in a loop further inside
                    v = self.loop_of[step]
                    while self._around[v] != level:
                        v = self._around[v]
                    step = self.loops[v].top
                self.ends.setdefault((level, place[level][step]), []).append(k)
        # the held messages that a bucket serves, its own among them: where one is there already, the bucket is not needed
        self.served: list[list[int]] = []
        for k in range(len(self.buckets)):
            inner = self.loops[self.sent_in(k)]
            known, found, a = set(inner.varies), [], k
            while any(self.held) and a not in (
                -1,
                inner.top,
            ):  # the top's message is not complete inside its loop
                if self.held[a] and known.issuperset(self.cut_scope[a]):
                    found.append(a)
                a = self.buckets[a].parent
            self.served.append(found)

    def _hold(self, room: float) -> None:
        """Choose the messages that are held for later turns of loops whose variable they are not about: what saves most."""
        self.held = [False] * len(self.buckets)
        waiting: list[tuple[float, float, int]] = []
        for k, bucket in enumerate(self.buckets):
            if not bucket.scope:
                continue
            outside = self.loops[self.sent_in(k)].varies
            own = self.cut_scope[k]
            again = prod(self.cards[v] for v in outside if v not in own)
            if again > 1:
                whole = float(prod(self.cards[v] for v in bucket.scope))
                waiting.append((self.entries(k) * prod(self.cards[v] for v in own) * again / whole, whole, k))
        for _, whole, k in sorted(waiting, reverse=True):
            if whole <= room:
                self.held[k] = True
                room -= whole

    def sent_in(self, k: int) -> int:
        """Return the variable of the innermost loop in which a bucket's message is complete."""
        v = self.loop_of[k]
        return self._around[v] if v >= 0 and self.loops[v].top == k else v

    @cached_property
    def _sizes(self) -> list[float]:
        return [float(prod(self.cards[v] for v in b.clique)) for b in self.buckets]

    @property
    def total(self) -> float:
        """The entries of all buckets, gone through once each."""
        return sum(self._sizes)

    @property
    def largest(self) -> float:
        """The entries of the largest bucket."""
        return max(self._sizes, default=1.0)

    @property
    def width(self) -> int:
        """The variables of the largest bucket less one."""
        return max([len(b.clique) for b in self.buckets], default=1) - 1

    def entries(self, k: int) -> float:
        """Return the entries of a bucket in one turn of the loops around it."""
        return self._sizes[k] / prod(self.cards[v] for v in self.buckets[k].clique if v in self.cuts)

    def axes(self, k: int) -> tuple[int, ...]:
        """Return the axes of a bucket's message in one turn of the loops around it."""
        return tuple([v for v in self.buckets[k].scope if v not in self.cuts])
