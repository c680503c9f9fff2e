"""An answer that the model does not determine: the least and the greatest probability it can be."""

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.factors.tables.variable import State, Variable
from markovia.inference.result import Info
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.shown import aligned, html_table

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


class BoundedPosterior:
    """Bounds on the probability of every state, with their provenance in `info`.

    Each pair bounds the probability of its own state (or tuple of states); all lower bounds together are in general not a
    distribution.

    Attributes
    ----------
    variables
        What was asked for.
    lower, upper
        Arrays with an axis a variable.
    sharp
        Whether every bound is attained by some model that agrees with everything known.
    info
        How they were found.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("drug", p=[0.5, 0.5])
    >>> bn.add("cured", parents=["drug"], p=[[0.7, 0.3], [0.4, 0.6]])
    >>> bounds = bn.counterfactual("cured", given={"drug": 0, "cured": 0}, do={"drug": 1})
    >>> print(bounds)
    cured   lower   upper
    0      0.1429  0.5714
    1      0.4286  0.8571
    >>> [round(p, 4) for p in bounds[1]]
    [0.4286, 0.8571]
    """

    __slots__ = ("info", "lower", "sharp", "upper", "variables")

    def __init__(
        self, variables: tuple[Variable, ...], lower: Array, upper: Array, info: Info, *, sharp: bool
    ) -> None:
        self.variables = variables
        self.lower, self.upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
        self.info = info
        self.sharp = sharp

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variables in order."""
        return tuple(v.name for v in self.variables)

    def __getitem__(self, key: State | tuple[State, ...]) -> tuple[float, float]:
        """Return the bounds of a state, or of a tuple of states."""
        states = key if isinstance(key, tuple) else (key,)
        at = tuple(v.index(s) for v, s in zip(self.variables, states, strict=True))
        return float(self.lower[at]), float(self.upper[at])

    def __iter__(self) -> Iterator[Any]:
        return iter(self.to_dict())

    def to_dict(self) -> dict[Any, tuple[float, float]]:
        """Return `{state: (lower, upper)}`, with tuples of states for several variables."""
        pairs = zip(self.lower.ravel().tolist(), self.upper.ravel().tolist(), strict=True)
        keys = product(*(v.states for v in self.variables))
        return {(k[0] if len(k) == 1 else k): pair for k, pair in zip(keys, pairs, strict=True)}

    def to_pandas(self) -> "pd.DataFrame":
        """Return a frame with columns `lower` and `upper`, indexed by the states."""
        import pandas as pd

        index = pd.MultiIndex.from_product([v.states for v in self.variables], names=self.names)
        flat = {"lower": self.lower.ravel(), "upper": self.upper.ravel()}
        return pd.DataFrame(flat, index.get_level_values(0) if len(self.variables) == 1 else index)

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for key, (low, high) in self.to_dict().items():
            states = key if isinstance(key, tuple) else (key,)
            rows.append([*map(str, states), f"{low:.4g}", f"{high:.4g}"])
        return [*self.names, "lower", "upper"], rows

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw a bar from bound to bound for each state; see `markovia.plotting.plot_bounds`."""
        return ports.draw("plot-bounds", self, ax=ax, title=title)

    def __str__(self) -> str:
        header, rows = self._rows()
        return aligned(header, rows)

    def __repr__(self) -> str:
        return f"{self}\n[{self.info}]"

    def _repr_html_(self) -> str:
        return html_table(*self._rows(), note=str(self.info))
