"""Random quantities: variables whose values are numbers, vectors or arrays of them instead of one of some states."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.tables.variable import State, Variable


class Quantity(Variable):
    """A random quantity: a name, what its values are, and the plates that it is repeated over.

    Parameters
    ----------
    name
        Any non-empty string.
    domain
        What its values are: "real", "positive", "simplex", "vector", ...; "number" where only its distribution will tell.
    plates
        The names of the plates, in the order of the axes.
    lengths
        The lengths of those plates that are known already.
    labels
        Names for the values 0, 1, ... of a quantity that counts states.

    Examples
    --------
    >>> x = Quantity("x", "real", plates=("row",))
    >>> x.domain, x.plates
    ('real', ('row',))
    >>> x.states
    Traceback (most recent call last):
    ...
    markovia.errors.UnsupportedModel: 'x' is a number and has no states to list or count; ...
    """

    __slots__ = ("_domain", "_labels", "_lengths", "_plates")

    _domain: str
    _plates: tuple[str, ...]
    _lengths: dict[str, int]
    _labels: tuple[State, ...]

    def __init__(
        self,
        name: str,
        domain: str = "real",
        plates: Sequence[str] = (),
        lengths: Mapping[str, int] | None = None,
        labels: tuple[State, ...] = (),
    ) -> None:
        if not isinstance(name, str) or not name:
            raise InvalidArgument(f"a variable's name is a non-empty string, not {name!r}")
        for slot, value in (
            ("name", name),
            ("_codes", None),
            ("_domain", domain),
            ("_plates", tuple(plates)),
            ("_lengths", dict(lengths or {})),
            ("_labels", tuple(labels)),
        ):
            object.__setattr__(self, slot, value)

    @property
    def domain(self) -> str:
        """What its values are."""
        return self._domain

    @property
    def plates(self) -> tuple[str, ...]:
        """The plates it is repeated over, in the order of the axes."""
        return self._plates

    @property
    def lengths(self) -> Mapping[str, int]:
        """The lengths of plates that were said when it was added."""
        return self._lengths

    @property
    def labels(self) -> tuple[State, ...]:
        """Names of the values 0, 1, ...; empty where there are none."""
        return self._labels

    @property
    def states(self) -> NoReturn:  # type: ignore[override]
        """Refuse: a quantity has none."""
        raise UnsupportedModel(
            f"{self.name!r} is a number and has no states to list or count; query({self.name!r}) says how it is distributed"
        )

    def renamed(self, name: str) -> "Quantity":
        """Return the same quantity under another name."""
        return Quantity(name, self._domain, self._plates, self._lengths, self._labels)

    def __reduce__(self) -> tuple[Any, ...]:
        return (Quantity, (self.name, self._domain, self._plates, self._lengths, self._labels))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Quantity) and self.__reduce__()[1] == other.__reduce__()[1]

    def __hash__(self) -> int:
        return hash((self.name, self._domain, self._plates, self._labels))

    def __repr__(self) -> str:
        over = f", plates={list(self._plates)}" if self._plates else ""
        return f"Quantity({self.name!r}, {self._domain!r}{over})"
