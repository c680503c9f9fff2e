"""The exact distribution of a sum of utilities: elimination on tables of distributions.

Method: every entry of a table is a distribution over amounts; products are convolutions, sums add up. Amounts that are the
same up to rounding share a place.
Cost: that of elimination times the number of different amounts of what has been added up.
"""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from markovia.errors import ImpossibleEvidence, TooLarge, check_known
from markovia.graphs.triangulation.elimination import eliminate
from markovia.inference.decisions.diagrams.deciding import evaluate
from markovia.inference.decisions.diagrams.diagram import Amount, Diagram
from markovia.inference.decisions.diagrams.policy_structure import Numbered
from markovia.inference.exact.arithmetic import Scoped, aligned
from markovia.inference.exact.bucket_tree import NOTHING, BucketPlan, Sweep, sweep
from markovia.inference.exact.decision_arithmetic import WorthPairs
from markovia.inference.number_distributions import WeightedNumbers
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import LEVEL, check
from markovia.runtime.shown import aligned as aligned_text
from markovia.runtime.shown import html_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ENTRIES = 2**26
"""Probabilities that tables of distributions may hold before it is refused."""
ROUNDING = 1e-11
"""How far amounts may be apart, relative to the largest total, and still be the same."""


class TotalUtility:
    """The distribution of a total, exact up to rounding.

    Attributes
    ----------
    values, probabilities
        The amounts that occur, ascending, and how probable each is.
    attributes
        The expected amount of each utility by name.
    """

    def __init__(self, values: Array, probabilities: Array, attributes: Mapping[str, float]) -> None:
        self.values, self.probabilities = values, probabilities
        self.attributes = dict(attributes)
        self._numbers = WeightedNumbers(values, probabilities)

    def mean(self) -> float:
        """Return the expected total."""
        return float(self._numbers.mean())

    def var(self) -> float:
        """Return the variance of the total."""
        return float(self._numbers.variance())

    def sd(self) -> float:
        """Return the standard deviation of the total."""
        return float(np.sqrt(self.var()))

    def quantile(self, q: float) -> float:
        """Return the smallest amount with at least a share q of the probability up to it."""
        return float(self._numbers.quantile(q))

    def cdf(self, x: Any) -> Any:
        """Return the probability of at most x."""
        return self._numbers.cdf(x)

    def cvar(self, level: float) -> float:
        """Return the expected total in the worst share `level` of all outcomes (conditional value at risk)."""
        check("level", level, LEVEL)
        before = np.concatenate([[0.0], np.cumsum(self.probabilities)[:-1]])
        share = np.clip(level - before, 0.0, self.probabilities)
        return float(share @ self.values / level)

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the probabilities of the amounts; see `markovia.plotting.plot_total_utility`."""
        return ports.draw("plot-total-utility", self, ax=ax, title=title)

    def __str__(self) -> str:
        lines = [f"total utility, mean {self.mean():.6g}, sd {self.sd():.6g}, {len(self.values):,} amounts"]
        lines += [
            aligned_text(["attribute", "expected"], [[n, f"{v:.6g}"] for n, v in self.attributes.items()])
        ]
        return "\n".join(lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        rows = [[n, f"{v:.6g}"] for n, v in self.attributes.items()]
        return html_table(["attribute", "expected"], rows, title=str(self).splitlines()[0])


class Spectrum(NamedTuple):
    """A table of distributions: the amounts, and probabilities with the amounts as the last axis."""

    amounts: Array
    p: Array


def total_utility(diagram: Diagram, names: Sequence[str] | None = None) -> TotalUtility:
    """Return the distribution of the sum of the named utilities, or of all.

    Raises
    ------
    TooLarge
        If there are too many different amounts.
    """
    known = [a.name for a in diagram.amounts]
    check_known(names or (), known, "the utilities")
    wanted = [a for a in diagram.amounts if names is None or a.name in names]
    means = attribute_means(diagram, wanted)
    problem = Diagram(diagram.chance, {}, wanted, diagram.findings)
    numbered = Numbered.of(problem, problem.parents)
    arithmetic = Spectra(wanted)
    plan = BucketPlan.of(
        eliminate(numbered.adjacency(False), weights=[float(c) for c in numbered.cards]), numbered.cards
    )
    swept = sweep(numbered.tables(cast("Any", arithmetic)), plan, cast("Any", arithmetic))
    if swept is NOTHING or arithmetic.impossible:
        raise ImpossibleEvidence({n: f.said for n, f in diagram.findings.items()})
    total = arithmetic.result(swept)
    order = np.argsort(total.amounts)
    values, p = total.amounts[order], total.p[order]
    keep = p > 0
    return TotalUtility(values[keep], p[keep] / p.sum(), means)


def attribute_means(diagram: Diagram, wanted: Sequence[Amount]) -> dict[str, float]:
    """Return what each attribute is worth on average, where no decision is open."""
    means: dict[str, float] = {}
    for amount in wanted:
        alone = Diagram(diagram.chance, {}, [amount], diagram.findings)
        means[amount.name] = means.get(amount.name, 0.0) + evaluate(alone).value
    return means


class Spectra(WorthPairs):
    """Tables of distributions over amounts; `results` gathers what a sweep has finished."""

    def __init__(self, amounts: Sequence[Amount]) -> None:
        super().__init__()
        self._step = ROUNDING * max(sum(float(np.abs(a.table).max(initial=0.0)) for a in amounts), 1e-300)
        self.results: list[Spectrum] = []
        self.impossible = False

    def chance(self, values: Array) -> Array:
        """Return probabilities of an amount of zero."""
        return cast("Array", Spectrum(np.zeros(1), np.asarray(values)[..., None]))

    def worth(self, amounts: Array) -> Array:
        """Return amounts that are certain."""
        levels, places = self._merged(np.ravel(amounts))
        return cast(
            "Array", Spectrum(levels, np.eye(len(levels))[places].reshape(*np.shape(amounts), len(levels)))
        )

    def multiply(
        self, tables: Sequence[Scoped], axes: Sequence[int], cards: Sequence[int]
    ) -> tuple[Array, float]:
        """Convolve, the fewest amounts first."""
        full = tuple([cards[a] for a in axes])
        spectra = sorted([(s, cast("Spectrum", t)) for s, t in tables], key=lambda item: len(item[1].amounts))
        placed = [self._placed(s, t, axes, cards) for s, t in spectra]
        total = reduce(self._convolved, placed, Spectrum(np.zeros(1), np.ones((*(1 for _ in full), 1))))
        top = float(total.p.max(initial=0.0))
        if top == 0.0:
            return cast("Array", total), -np.inf
        p = np.broadcast_to(total.p / top, (*full, len(total.amounts)))
        return cast("Array", Spectrum(total.amounts, p)), float(np.log(top))

    def sum_first(self, table: Array) -> Array:
        """Add up the distributions over the first axis."""
        amounts, p = cast("Spectrum", table)
        return cast("Array", Spectrum(amounts, p.sum(axis=0)))

    def log(self, scalar: Array) -> float:
        """Keep the distribution of a part that is finished; return the log of its mass."""
        found = cast("Spectrum", scalar)
        mass = float(found.p.sum())
        if mass <= 0.0:
            self.impossible = True
            return -np.inf
        self.results.append(Spectrum(found.amounts, found.p / mass))
        return float(np.log(mass))

    def result(self, swept: Sweep) -> Spectrum:
        """Return the distribution of the sum of all parts, which are independent."""
        return reduce(self._convolved, self.results, Spectrum(np.zeros(1), np.ones(1)))

    def _merged(self, amounts: Array) -> tuple[Array, Any]:
        """Return the different amounts, and the place of each among them."""
        order = np.argsort(amounts, kind="stable")
        fresh = np.concatenate([[True], np.diff(amounts[order]) > self._step])
        places = np.empty(len(amounts), dtype=np.int64)
        places[order] = np.cumsum(fresh) - 1
        return amounts[order][fresh], places

    def _placed(
        self, scope: Sequence[int], table: Spectrum, axes: Sequence[int], cards: Sequence[int]
    ) -> Spectrum:
        """View a table with the axes of a bucket."""
        last = len(cards)  # the amounts are an axis of their own
        (view,) = aligned([((*scope, last), table.p)], (*axes, last), [*cards, len(table.amounts)])
        return Spectrum(table.amounts, view)

    def _convolved(self, a: Spectrum, b: Spectrum) -> Spectrum:
        if len(b.amounts) == 1 or len(a.amounts) == 1:
            return Spectrum(np.asarray(np.add.outer(a.amounts, b.amounts).ravel()), a.p * b.p)
        levels, places = self._merged(np.add.outer(a.amounts, b.amounts).ravel())
        shape = np.broadcast_shapes(a.p.shape[:-1], b.p.shape[:-1])
        entries = float(np.prod(shape, dtype=float)) * len(levels)
        if entries > MOST_ENTRIES:
            raise TooLarge(
                f"the total takes {len(levels):,} different amounts in tables of {entries:,.0f} probabilities; ask for the "
                "distribution of fewer utilities, or for expected_utility()",
                bytes=8.0 * entries,
            )
        places = places.reshape(len(a.amounts), len(b.amounts))
        p = np.zeros((*shape, len(levels)))
        for i in range(len(a.amounts)):  # one row of places has no place twice
            p[..., places[i]] += a.p[..., i, None] * b.p
        return Spectrum(levels, p)
