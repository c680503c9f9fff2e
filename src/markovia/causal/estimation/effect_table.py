"""The effects of one treatment on several outcomes, as a table."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from markovia.causal.estimation.effect_result import Effect
from markovia.runtime import ports
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class EffectTable(Mapping[str, Effect], InNotebooks):
    """Effects by outcome: a mapping from outcomes to `Effect`; it prints as a table, and `plot()` draws the forest.

    Examples
    --------
    >>> import markovia as mk, numpy as np
    >>> t = np.arange(400) % 2
    >>> rows = {"t": t, "one": t + np.sin(np.arange(400)), "two": 3 * t + np.cos(np.arange(400))}
    >>> found = mk.causal.effect(rows, "t -> {one two}", "t", ["one", "two"])
    >>> print(found)
    t on  value  standard_error     low   high  p_value
    one       1           0.071  0.8608  1.139  < 0.001
    two   2.995         0.07131   2.855  3.135  < 0.001
    >>> round(found["two"].value, 1)
    3.0
    """

    def __init__(self, effects: Mapping[str, Effect]) -> None:
        self._effects = dict(effects)

    def __getitem__(self, outcome: str) -> Effect:
        return self._effects[outcome]

    def __iter__(self) -> Iterator[str]:
        return iter(self._effects)

    def __len__(self) -> int:
        return len(self._effects)

    def to_pandas(self) -> "pd.DataFrame":
        """Return a row for each outcome: value, standard_error, low, high and p_value."""
        rows = {name: [e.value, e.standard_error, *e.interval, e.p_value] for name, e in self.items()}
        columns = ["value", "standard_error", "low", "high", "p_value"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns)

    def to_dict(self) -> dict[str, Any]:
        """Return the effects as `Effect.to_dict` has them, by outcome."""
        return {name: e.to_dict() for name, e in self.items()}

    def __repr__(self) -> str:
        return f"<EffectTable of {len(self)} outcomes>"

    def __str__(self) -> str:
        frame = self.to_pandas()
        treatment = next((e.treatment for e in self.values()), "")
        rows = [
            [str(n), *(f"{v:.4g}" for v in row[:-1]), "< 0.001" if row[-1] < 0.001 else f"{row[-1]:.3f}"]
            for n, row in zip(frame.index, frame.to_numpy(), strict=True)
        ]
        return aligned([f"{treatment} on", *frame.columns], rows)

    def plot(self, *, ax: Any = None) -> "Axes":
        """Draw the forest of all effects."""
        return ports.draw("plot-effects", list(self.values()), ax=ax)
