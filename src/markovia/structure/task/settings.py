"""The settings that every door of structure learning shares: how the data are read, and what is known of the graph.

`learn_structure` documents them; `bootstrap_structure` and `edge_posterior` take them as keywords that they pass on here.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State
from markovia.runtime.checks import check_choice
from markovia.structure.task.knowledge import Knowledge, as_knowledge


@dataclass(frozen=True)
class Reading:
    """How data are read; the fields mean what `learn_structure` says.

    Examples
    --------
    >>> Reading(names=["b"], missing="drop").complete({"a": [0, 1, 1], "b": [0, None, 1]}).n_rows
    2
    """

    names: Sequence[str] | None = None
    continuous: bool | Sequence[str] | None = None
    states: Mapping[str, int | Sequence[State]] | None = None
    weights: Any = None
    missing: str = "error"
    in_memory: bool | None = None

    def __post_init__(self) -> None:
        check_choice("missing", self.missing, ("error", "drop"))

    def open(self, data: Any, continuous: bool | None = None) -> MixedTable:
        """Open the data; `continuous` is what is taken where nothing was said about that."""
        return read_mixed(
            data,
            names=self.names,
            continuous=continuous if self.continuous is None else self.continuous,
            states=self.states,
            weights=self.weights,
            in_memory=self.in_memory,
        )

    def complete(self, data: Any) -> MixedTable:
        """Open the data; rows that miss a cell are an error, or left out."""
        return self.without_gaps(self.open(data))

    def without_gaps(self, mixed: MixedTable, otherwise: str = "") -> MixedTable:
        """Return rows without missing cells: all of them, or with `missing="drop"` those that have every cell.

        Parameters
        ----------
        mixed
            The rows.
        otherwise
            What else the message advises.
        """
        gaps = {name: n for name, n in mixed.missing().items() if n}
        if not gaps:
            return mixed
        name = max(gaps, key=lambda n: gaps[n])
        if self.missing == "drop":
            whole = mixed.without_gaps()
            if not whole.n_rows or not whole.total > 0:
                raise InvalidArgument(f"every row misses a cell; {name!r} misses most")
            return whole
        raise InvalidArgument(
            f"cells are missing ({gaps[name]:,} in {name!r}); missing='drop' leaves such rows out{otherwise}"
        )


READING = tuple(f.name for f in fields(Reading))
KNOWN = ("knowledge", *(f.name for f in fields(Knowledge) if f.name != "within_tiers"))


def sorted_settings(settings: Mapping[str, Any]) -> tuple[Knowledge, Reading, dict[str, Any]]:
    """Sort keywords into what is known, how data are read, and the rest.

    Examples
    --------
    >>> known, reading, rest = sorted_settings({"max_parents": 2, "missing": "drop", "restarts": 5})
    >>> known.max_parents, reading.missing, rest
    (2, 'drop', {'restarts': 5})
    """
    known = as_knowledge(**{k: v for k, v in settings.items() if k in KNOWN})
    reading = Reading(**{k: v for k, v in settings.items() if k in READING})
    return known, reading, {k: v for k, v in settings.items() if k not in (*KNOWN, *READING)}
