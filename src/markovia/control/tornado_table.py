"""Tornado tables: what moving each number of a diagram a little, one at a time, does to the value and to the advice.

Cost: two solutions of the diagram for each number. Reference: Howard (1988), "Decision analysis: practice and promise".
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markovia.control.table_numbers import numbers_of
from markovia.control.varied_diagram import VariedDiagram
from markovia.errors import TooLarge
from markovia.inference.decisions.diagrams.deciding import evaluate
from markovia.inference.decisions.diagrams.policy_tables import rule_tables
from markovia.inference.decisions.diagrams.value_lines import follow_rules
from markovia.runtime import ports
from markovia.runtime.checks import POSITIVE, check
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from markovia.models.graphical.bayesian_network import BayesianNetwork

MOST_NUMBERS = 5_000
"""Numbers that a tornado varies before it is refused: each takes two solutions."""
SAME_VALUE = 1e-9
"""How much better another policy must be, relative to the value, for the advice to flip."""
SHOWN = 30
"""Bars of a tornado that are printed."""


@dataclass(frozen=True)
class TornadoBar:
    """What one number does to the value.

    Attributes
    ----------
    label, value
        The number, and what it is.
    low, high
        Its range.
    value_low, value_high
        The best value at the ends of the range.
    flips
        Whether another policy than the present one is best at one end.
    """

    label: str
    value: float
    low: float
    high: float
    value_low: float
    value_high: float
    flips: bool

    @property
    def swing(self) -> float:
        """How far apart the values at both ends are."""
        return abs(self.value_high - self.value_low)


class TornadoTable(Sequence[TornadoBar], InNotebooks):
    """The numbers of a diagram, those first that the value depends on most.

    Attributes
    ----------
    value
        The value as the numbers are.
    exact
        Whether all values are proved to be those of the best policies.
    risk
        That of exponential utility; zero where values are expected totals.
    """

    def __init__(self, bars: Iterable[TornadoBar], value: float, exact: bool, risk: float = 0.0) -> None:
        self._bars = sorted(bars, key=lambda bar: -bar.swing)
        self.value, self.exact, self.risk = value, exact, risk

    def __getitem__(self, i: Any) -> Any:
        return self._bars[i]

    def __len__(self) -> int:
        return len(self._bars)

    def to_pandas(self) -> Any:
        """Return one row a number."""
        import pandas as pd

        names = ["label", "value", "low", "high", "value_low", "value_high", "swing", "flips"]
        return pd.DataFrame(
            [[getattr(bar, n) for n in names] for bar in self._bars], columns=["number", *names[1:]]
        )

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw a bar a number, from the value at one end of its range to that at the other, the widest on top."""
        return ports.draw("plot-tornado", self, ax=ax, title=title)

    def __str__(self) -> str:
        sure = "" if self.exact else ", local optima"
        header = ["number", "now", "low", "high", "value low", "value high", "advice"]
        rows = [
            [
                b.label,
                *(f"{v:.6g}" for v in (b.value, b.low, b.high, b.value_low, b.value_high)),
                "flips" if b.flips else "",
            ]
            for b in self._bars[:SHOWN]
        ]
        more = [f"and {len(self) - SHOWN:,} numbers more"] if len(self) > SHOWN else []
        what = "certainty equivalent" if self.risk else "value"
        return "\n".join([f"{what} {self.value:.6g}{sure}", aligned(header, rows), *more])

    __repr__ = __str__


def tornado(
    network: "BayesianNetwork", parameters: Iterable[Any] | None = None, change: float = 0.1, **options: Any
) -> TornadoTable:
    """Return what moving each number of a diagram a little, one at a time, does to the value and to the advice.

    Parameters
    ----------
    network
        With decisions and utilities.
    parameters
        Numbers as in `decision_sensitivity`, or names of nodes for all of theirs; by default all that the utilities depend
        on, but probabilities of zero and one.
    change
        The share of itself by which a number moves down and up; an amount of zero moves by that share of the largest
        amount of its utility. Probabilities stay between 0 and 1, and the others of their row keep their proportions.
    options
        Those of `decide`.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    >>> bn.add("drill", mk.Decision(["yes", "no"]))
    >>> bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
    >>> bars = tornado(bn, ["oil", ("gain", {"oil": "dry", "drill": "yes"})], change=0.25)
    >>> [(bar.label, round(bar.swing, 6), bar.flips) for bar in bars[:2]]
    [('P(oil=dry)', 42.5, True), ('P(oil=soaking)', 22.5, False)]
    """
    check("change", change, POSITIVE)
    varied = VariedDiagram.of(network, options)
    numbers = numbers_of(varied.pieces, parameters)
    if len(numbers) > MOST_NUMBERS:
        raise TooLarge(
            f"there are {len(numbers):,} numbers to vary; name the nodes or numbers that are in doubt"
        )
    now = varied.solved(varied.diagram_now)
    rules, _ = rule_tables(varied.diagram_now, now.rules, None)
    bars, exact = [], now.exact
    for number in numbers:
        step = change * (abs(number.value) or number.scale)
        ends = [number.value - step, number.value + step]
        if number.what == "probability":
            ends = [min(max(x, 0.0), 1.0) for x in ends]
        values, flips = [], False
        for x in ends:
            diagram = varied.diagram(number, x)
            best = varied.solved(diagram)
            kept = evaluate(follow_rules(diagram, rules), varied.risk).value
            flips = flips or best.value > kept + SAME_VALUE * max(abs(best.value), abs(kept))
            exact = exact and best.exact
            values.append(max(best.value, kept))
        bars.append(TornadoBar(number.label, number.value, ends[0], ends[1], values[0], values[1], flips))
    return TornadoTable(bars, now.value, exact, varied.risk)
