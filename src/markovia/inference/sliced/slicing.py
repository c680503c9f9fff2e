"""Choosing the variables of which states are taken one at a time, so that a run fits the memory, and saying what it takes.

Method: greedy. While a run holds more than fits, the variables that most of its large messages are about are tried, each by
a run of the plan without numbers; the one that shrinks the messages most for the work it adds is cut. (What counts are the
squares of their sizes: in a long model no single cut makes the most that is held any less.) Members that turn out not to be
needed are dropped at the end. Reference: as in `cutset`, for loops that go round only what they have to.
Cost: some runs without numbers for each cut, tens of milliseconds each for a thousand variables.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, log, prod

from markovia.inference.sliced.sliced_plan import SlicedPlan
from markovia.inference.sliced.sliced_run import PlannedTables, SlicedRun

TRIED = 4
"""Variables that are tried before one is cut."""
HUGE = 1e150
HELD = 0.2
"""The part of the memory that messages may take which are held for later turns."""


@dataclass(frozen=True)
class Rate:
    """What a machine gets through.

    Attributes
    ----------
    entries
        Entries of buckets a second, where these are large.
    product
        Seconds that a product takes besides.
    start
        Seconds until it begins.
    """

    entries: float
    product: float
    start: float = 0.0

    def seconds(self, entries: float, products: float) -> float:
        """Return how long a run takes, about."""
        return self.start + entries / self.entries + products * self.product


@dataclass(frozen=True)
class Slicing:
    """A plan with its cuts, and what its run takes.

    Attributes
    ----------
    plan
        The plan.
    entries, products
        Entries of buckets that are gone through, and products of tables.
    held
        The most entries that are in memory at a time, the model's tables included.
    seconds
        How long it takes, about.
    fits
        Whether that is within the limit.
    """

    plan: SlicedPlan
    entries: float
    products: float
    held: float
    seconds: float
    fits: bool

    @property
    def turns(self) -> int:
        """The joint states of all cut variables."""
        return prod(self.plan.cards[v] for v in self.plan.cuts)


def sliced_to_fit(
    plan: SlicedPlan,
    limit: float,
    targets: Sequence[int] | None,
    rate: Rate,
    most_seconds: float = inf,
    rows: int = 0,
) -> Slicing:
    """Cut variables until a run holds at most `limit` entries.

    Parameters
    ----------
    plan
        The plan without cuts.
    limit
        Entries that may be held at a time.
    targets
        Variables whose beliefs are passed down; None for a run up.
    rate
        Of the machine.
    most_seconds
        Stop where the run would take longer; what is returned then does not fit.
    rows
        Where states are chosen from the last bucket to the first: how many rows of them.
    """

    def tried(base: SlicedPlan, cuts: frozenset[int]) -> Slicing:
        fresh = base.with_cuts(cuts, HELD * limit) if cuts else base
        entries, products, held = measured(fresh, targets, rows)
        return Slicing(fresh, entries, products, held, rate.seconds(entries, products), held <= limit)

    now = tried(plan, frozenset())
    last: list[int] = []
    while not now.fits and now.seconds <= most_seconds:
        candidates = _candidates(now.plan)[:TRIED]
        if not candidates:
            break
        trials = [(tried(now.plan, now.plan.cuts | {v}), v) for v in candidates]
        # a variable that is removed last is in a loop around everything, but widens no bucket
        for v in candidates:
            for order in (None, "min-fill"):
                later = now.plan.with_last([*last, v], order)
                trials.append((tried(later, later.cuts | {v}), v))
        k = min(range(len(trials)), key=lambda k: (*_rank(now, *trials[k]), k))
        now, v = trials[k]
        if k >= len(candidates):
            last.append(v)
    if now.fits:
        for v in sorted(now.plan.cuts, key=lambda v: (plan.cards[v], v)):
            fewer = tried(now.plan, now.plan.cuts - {v})
            if fewer.fits and fewer.seconds <= now.seconds:
                now = fewer
    return now


def measured(plan: SlicedPlan, targets: Sequence[int] | None, rows: int = 0) -> tuple[float, float, float]:
    """Run a plan without numbers; return the entries gone through, the products, and the most entries held."""
    machine = PlannedTables()
    run = SlicedRun(plan, machine)
    run.up(keep=targets is not None or rows > 0)
    if targets is not None:
        run.down(targets)
    again = 0.0
    if rows:  # a turn of each cut variable's loop for the choice, and one for what is inside
        again = machine.entries * (2.0 if plan.cuts else 0.0)
    held = machine.peak + sum(
        float(prod(plan.cards[v] for v in b.scope)) for b, h in zip(plan.buckets, plan.held, strict=True) if h
    )
    return machine.entries + again, machine.products, held


def _sizes(plan: SlicedPlan) -> list[float]:
    return [float(prod(plan.cards[v] for v in plan.axes(k))) for k in range(len(plan.buckets))]


def _burden(plan: SlicedPlan) -> float:
    """Return what is lowered by cuts: the squares of the messages' sizes."""
    return sum(min(size, HUGE) ** 2 for size in _sizes(plan))


def _candidates(plan: SlicedPlan) -> list[int]:
    """Return the variables that large messages are about, those in front that lower the burden most."""
    gains: defaultdict[int, float] = defaultdict(float)
    for k, size in enumerate(_sizes(plan)):
        for v in plan.axes(k):
            if v in plan.place:
                gains[v] += min(size, HUGE) ** 2 * (1.0 - 1.0 / plan.cards[v] ** 2)
    return sorted(gains, key=lambda v: (-gains[v] / log(plan.cards[v] + 1e-9), v))


def _rank(now: Slicing, then: Slicing, v: int) -> tuple[float, ...]:
    """Order trials: those that fit by their time, then the others by what they shrink for the log of their turns."""
    if then.fits:
        return (0.0, then.seconds)
    shrunk = log(_burden(now.plan) / _burden(then.plan)) / 2
    grown = max(log(then.seconds / now.seconds), 0.0)
    return (1.0, -(shrunk - 2.0 * grown) / log(now.plan.cards[v]))
