"""What laws of random partitions, measures and matrices share: checked options, a picture each, how data are read."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import check_options
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Law(InNotebooks, ABC):
    """A law one can draw from, weigh outcomes with, condition on data, and look at."""

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def sample(self, n: Any, seed: Seed = None) -> Any:
        """Draw."""

    @abstractmethod
    def log_prob(self, x: Any) -> Any:
        """Return the log probability or log density of an outcome."""

    @abstractmethod
    def posterior(self, data: Any) -> Any:
        """Return the law of what is still to come, once some of it was seen."""

    def plot(
        self,
        n: int | None = None,
        *,
        seed: Seed = 0,
        ax: "Axes | None" = None,
        title: str | None = None,
    ) -> "Axes":
        """Draw a picture of draws from the law; `n` says of how many where the law leaves it open."""
        return ports.draw("plot-process", self, n, seed=seed, ax=ax, title=title)


def labels_of(labels: ArrayLike, what: str = "labels") -> Ints:
    """Return groups as numbers 0, 1, ... in their order of appearance; any labels may name them.

    Examples
    --------
    >>> labels_of(["b", "a", "b"]).tolist()
    [0, 1, 0]
    """
    found = np.asarray(labels)
    if found.ndim != 1:
        raise InvalidArgument(f"{what} is a list with the group of each item, not of shape {found.shape}")
    if not found.size:
        return np.zeros(0, dtype=np.int64)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        raise InvalidArgument(f"{what} has a group that is not finite; every item needs one")
    _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    place = np.empty(first.size, dtype=np.int64)
    place[np.argsort(first)] = np.arange(first.size)
    return np.asarray(place[inverse.reshape(-1)])


def set_partitions(n: int) -> Ints:
    """Return every partition of n items, a row of labels in order of appearance each: (Bell number of n, n).

    Examples
    --------
    >>> set_partitions(3).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 1, 2]]
    >>> len(set_partitions(7))
    877
    """
    rows = np.zeros((1, 0), dtype=np.int64)
    for _ in range(n):
        most = rows.max(axis=1, initial=-1) + 2
        labels = np.concatenate([np.arange(m) for m in most])
        rows = np.column_stack([np.repeat(rows, most, axis=0), labels])
    return rows


def roots_of(links: Ints) -> Ints:
    """Follow links, each to an earlier item or to itself, until they end."""
    while True:
        further = links[links]
        if np.array_equal(further, links):
            return links
        links = further
