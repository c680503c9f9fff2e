"""What draws of groups say without their labels: how many groups, which rows belong together, one partition for all.

Groups have no names, so a label means nothing from one draw to the next. `PartitionPosterior` answers what does not
depend on labels, and gives draws a common labelling (Hungarian matching to one partition) for what does.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.kernels.plain_code import either, repeated
from markovia.runtime import ports
from markovia.runtime.array_types import Array, Codes, Ints
from markovia.runtime.checks import LEVEL, check, check_choice, check_count
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

CANDIDATES, STARTS = 20, 4
"""Draws whose loss is found, and how many of the best of them the search for one partition begins with."""
USED = 200
"""Draws that it looks at, evenly spread."""


class PartitionPosterior(InNotebooks):
    """Draws of the groups of rows.

    Parameters
    ----------
    labels
        Whole numbers, draws by rows; rows of a draw with the same number are one group.
    parameters
        Parameters of each draw's groups, if there are any: by name, a sequence with one array a draw, whose first axis goes
        over the groups by label.
    numbers
        Numbers that each draw has one of, by name (a concentration, say).

    Examples
    --------
    >>> found = PartitionPosterior([[0, 0, 1], [1, 1, 0], [0, 1, 2], [0, 0, 1]])
    >>> found.n_clusters()[2]
    0.75
    >>> found.co_clustering()[0].tolist()
    [1.0, 0.75, 0.0]
    >>> found.point().tolist()
    [0, 0, 1]
    """

    def __init__(
        self,
        labels: Any,
        *,
        parameters: Mapping[str, Sequence[Array]] | None = None,
        numbers: Mapping[str, Any] | None = None,
    ) -> None:
        found = np.asarray(labels)
        if found.ndim != 2 or not found.size or found.dtype.kind not in "iub":
            raise InvalidArgument("labels are whole numbers, draws by rows, with at least one of each")
        self._sources = []
        self.labels: Codes = np.empty(found.shape, dtype=np.int32)
        """The group of each row in each draw; groups are numbered as they appear."""
        for s, draw in enumerate(found):
            self._sources.append(in_order(draw, self.labels[s]))
        self.parameters = {
            name: [np.asarray(v)[k] for v, k in zip(values, self._sources, strict=True)]
            for name, values in (parameters or {}).items()
        }
        self.numbers = {name: np.asarray(values) for name, values in (numbers or {}).items()}
        self._points: dict[str, Ints] = {}

    @property
    def n_draws(self) -> int:
        """How many draws there are."""
        return len(self.labels)

    def __repr__(self) -> str:
        likely = self.n_clusters()
        return (
            f"PartitionPosterior({self.n_draws:,} draws of {self.labels.shape[1]:,} rows; "
            f"most often {likely.argmax()} groups, p = {likely[likely.argmax()]:.3g})"
        )

    def n_clusters(self) -> Posterior:
        """Return the posterior of the number of groups."""
        info = Info("draws of partitions", iterations=self.n_draws)
        return Posterior.of_draws("clusters", self.labels.max(axis=1) + 1, info)

    def co_clustering(self, rows: Any = None) -> Array:
        """Return how probable it is that two rows are in one group, for all rows or for some given by position.

        Costs draws times the square of the rows, and memory for that square.
        """
        chosen = self.labels if rows is None else self.labels[:, np.asarray(rows)]
        n = chosen.shape[1]
        if n > 20_000:
            raise InvalidArgument(
                f"{n:,} rows make a matrix of {n * n * 4 / 1e9:.0f} GB; say which rows= it is for"
            )
        found = np.zeros((n, n), dtype=np.float32)
        for draw in chosen:
            one = (draw[:, None] == np.arange(draw.max() + 1)).astype(np.float32)
            found += one @ one.T
        return np.asarray(found / self.n_draws, dtype=np.float64)

    def point(self, loss: Literal["vi", "binder"] = "vi") -> Ints:
        """Return the partition whose expected loss is least: variation of information, or Binder's loss.

        The search begins with the best of some draws and moves rows one at a time while that helps (Rastelli and
        Friel 2018). Groups are numbered by size, the largest first.
        """
        check_choice("loss", loss, ("vi", "binder"))
        if loss not in self._points:
            self._points[loss] = self._searched(loss)
        return self._points[loss].copy()

    def _searched(self, loss: str) -> Ints:
        spread = np.unique(np.linspace(0, self.n_draws - 1, min(USED, self.n_draws)).astype(np.int64))
        draws = np.ascontiguousarray(self.labels[spread])
        n = draws.shape[1]
        width = int(draws.max()) + 2
        m = np.arange(n + 2, dtype=np.float64)
        g = m * m / n if loss == "binder" else m * np.log(np.maximum(m, 1.0))
        # each draw's groups have numbers of their own, which meet those of a partition
        apart = (draws + np.arange(len(draws))[:, None] * (width - 1)) * width
        gains = np.zeros(width)

        def counts(labels: Ints) -> tuple[Ints, Ints]:
            met = np.bincount((apart + labels).ravel(), minlength=len(draws) * (width - 1) * width)
            return np.bincount(labels, minlength=width), met.reshape(len(draws), width - 1, width)

        def lost(labels: Ints) -> float:
            sizes, meetings = counts(labels)
            return float(g[sizes].sum() - 2.0 / len(draws) * g[meetings].sum())

        few = np.unique(np.linspace(0, len(draws) - 1, min(CANDIDATES, len(draws))).astype(np.int64))
        begins = sorted((draws[s].astype(np.int64) for s in few), key=lost)[:STARTS]
        begins += [np.zeros(n, dtype=np.int64), (np.arange(n) % (width - 1)).astype(np.int64)]
        with repeated(2 * len(begins)):  # the last pass from each start moves nothing
            move = either("markovia.kernels.collapsed.point_partition:improve", 6 * draws.size * width)
        for labels in begins:
            sizes, meetings = counts(labels)
            while move(draws, labels, g, sizes, meetings, gains):
                pass
        labels = min(begins, key=lost)
        return by_size(labels)

    def relabelled(self, reference: Any = None) -> Ints:
        """Return the labels of each draw matched to a partition of reference (by default the point partition).

        Groups are matched one to one so that as many rows as possible agree; groups left over come after those of reference.
        """
        return np.array(
            [order[draw] for order, draw in zip(self._orders(reference), self.labels, strict=True)]
        )

    def _orders(self, reference: Any) -> list[Ints]:
        from scipy.optimize import linear_sum_assignment

        target = self.point() if reference is None else np.asarray(reference)
        if target.shape != self.labels.shape[1:] or target.min() < 0:
            raise InvalidArgument(
                f"reference= has a label, 0 or more, for each of {self.labels.shape[1]} rows"
            )
        k = int(target.max()) + 1
        orders = []
        for draw in self.labels:
            many = int(draw.max()) + 1
            both = np.bincount(draw * k + target, minlength=many * k).reshape(many, k)
            mine, theirs = linear_sum_assignment(both, maximize=True)
            order = np.full(many, -1, dtype=np.int64)
            order[mine] = theirs
            rest = order < 0
            order[rest] = k + np.arange(int(rest.sum()))
            orders.append(order)
        return orders

    def membership(self, reference: Any = None) -> Array:
        """Return the probability of each row in each group of a partition of reference, after relabelling.

        What is missing from 1 are groups that only some draws have.
        """
        target = self.point() if reference is None else np.asarray(reference)
        labels, k = self.relabelled(target), int(target.max()) + 1
        found = np.zeros((len(target), k))
        for c in range(k):
            found[:, c] = (labels == c).mean(axis=0)
        return found

    def summary(self, reference: Any = None, *, interval: float = 0.9) -> dict[str, dict[str, Array]]:
        """Return mean, sd and interval of each parameter in each group of a partition of reference, after relabelling.

        A group's numbers are those of draws that have it; "share" says how many do.
        """
        check("interval", interval, LEVEL)
        target = self.point() if reference is None else np.asarray(reference)
        orders, k = self._orders(target), int(target.max()) + 1
        outer = (1.0 - interval) / 2.0
        found: dict[str, dict[str, Array]] = {}
        for name, values in self.parameters.items():
            groups: list[list[Array]] = [[] for _ in range(k)]
            for order, draw in zip(orders, values, strict=True):
                for c, value in zip(order, draw, strict=True):
                    if c < k:
                        groups[c].append(value)
            shape = values[0].shape[1:]
            drawn = [np.array(g) if g else np.full((1, *shape), np.nan) for g in groups]
            found[name] = {
                "mean": np.array([g.mean(axis=0) for g in drawn]),
                "sd": np.array([g.std(axis=0) for g in drawn]),
                "low": np.array([np.quantile(g, outer, axis=0) for g in drawn]),
                "high": np.array([np.quantile(g, 1.0 - outer, axis=0) for g in drawn]),
                "share": np.array([len(g) / self.n_draws for g in groups]),
            }
        return found

    def thinned(self, draws: int) -> "PartitionPosterior":
        """Return at most so many of the draws, evenly spread."""
        check_count("draws", draws, 1)
        spread = np.unique(np.linspace(0, self.n_draws - 1, min(draws, self.n_draws)).astype(np.int64))
        return PartitionPosterior(
            self.labels[spread],
            parameters={name: [v[s] for s in spread] for name, v in self.parameters.items()},
            numbers={name: v[spread] for name, v in self.numbers.items()},
        )

    def plot(self, *, what: Literal["both", "matrix", "number"] = "both", ax: Any = None) -> "Axes":
        """Draw the co-clustering matrix, rows sorted by group, and the posterior of the number of groups."""
        check_choice("what", what, ("both", "matrix", "number"))
        return ports.draw("plot-partition", self, what=what, ax=ax)


def in_order(labels: Any, out: Any = None) -> Ints:
    """Return the old label of each group in order of appearance; put labels in that order into `out`.

    Examples
    --------
    >>> new = np.empty(4, dtype=np.int64)
    >>> in_order(np.array([7, 3, 7, 5]), new).tolist(), new.tolist()
    ([7, 3, 5], [0, 1, 0, 2])
    """
    values, first, codes = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    if out is not None:
        out[:] = place[codes]
    return np.asarray(values[order], dtype=np.int64)


def by_size(labels: Any) -> Ints:
    """Return labels 0, 1, ... of groups, the largest first.

    Examples
    --------
    >>> by_size(np.array([4, 2, 2])).tolist()
    [1, 0, 0]
    """
    _, codes, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    place = np.empty(len(sizes), dtype=np.int64)
    place[np.argsort(-sizes, kind="stable")] = np.arange(len(sizes))
    return place[codes]
