"""Groups of rows whose parameters cannot be summed out: Neal's algorithm 8, with its auxiliary parameters used again.

A few parameters drawn from the prior wait for new groups. A row joins group k with weight (n_k - discount) p(row | k), or
opens one with a waiting parameter j, of m, with weight (concentration + K discount) / m p(row | j). A parameter that is
taken is replaced by a fresh draw; one whose only row leaves takes the place of one that waits. So all densities of a sweep
come from one matrix. Then each group's parameter moves given its rows.

References: Neal (2000), algorithm 8; Favaro and Teh (2013), who show that waiting parameters may be kept. Cost of a sweep:
densities of all rows in all groups and fresh draws, and one move of parameters.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from markovia.inference.collapsed.concentrations import Concentration
from markovia.kernels.plain_code import either
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import kernel_seed

FRESH = 8
"""Draws from the prior that are made at once."""
Params = dict[str, Array]
"""Parameters by name, each with one entry a component."""


class BaseMeasure(Protocol):
    """What the sampler asks of components."""

    def drawn(self, k: int, rng: np.random.Generator) -> Params:
        """Return parameters of k components from the prior."""

    def log_densities(self, params: Params) -> Array:
        """Return the log density of each row in each component."""

    def moved(self, params: Params, labels: Ints, rng: np.random.Generator) -> Params:
        """Return parameters after a step that leaves their law given the rows of each component as it is."""


class AlgorithmEight:
    """Groups and their parameters.

    Parameters
    ----------
    measure
        Components over the rows.
    labels, params
        Where the chain begins; without parameters, with draws from the prior and a move.
    concentration
        The law of the partition.
    rng
        For the first parameters.
    auxiliary
        Parameters that wait for new groups.
    """

    def __init__(
        self,
        measure: BaseMeasure,
        labels: Ints,
        concentration: Concentration,
        rng: np.random.Generator,
        *,
        auxiliary: int = 3,
        params: Params | None = None,
    ) -> None:
        self.measure, self.concentration, self.auxiliary = measure, concentration, auxiliary
        self.labels = np.unique(labels, return_inverse=True)[1].astype(np.int64)
        begin = measure.drawn(int(self.labels.max()) + 1, rng) if params is None else params
        self.params = measure.moved(begin, self.labels, rng)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw the group of each row, then the parameters of groups, and the concentration."""
        law, n = self.concentration, len(self.labels)
        k, s = int(self.labels.max()) + 1, kernel_seed(rng)
        params = _joined(self.params, self.measure.drawn(self.auxiliary + FRESH, rng))
        logs = self.measure.log_densities(params)
        sizes = np.bincount(self.labels, minlength=logs.shape[1])
        roles = np.repeat([1, 2, 0], [k, self.auxiliary, FRESH])
        at = 0
        while True:
            step = either("markovia.kernels.collapsed.partitions:reused_sweep", float(logs.size))
            at = step(
                logs, self.labels, sizes, roles, at, law.value, law.discount, s, np.zeros(logs.shape[1])
            )
            if at == n:
                break
            more = self.measure.drawn(FRESH, rng)
            params, logs = _joined(params, more), np.hstack([logs, self.measure.log_densities(more)])
            roles, sizes = (
                np.append(roles, np.zeros(FRESH, dtype=np.int64)),
                np.append(sizes, np.zeros(FRESH, np.int64)),
            )
        kept, self.labels[:] = np.unique(self.labels, return_inverse=True)
        self.params = self.measure.moved({name: v[kept] for name, v in params.items()}, self.labels, rng)
        law.redraw(n, len(kept), rng)

    def log_prob(self) -> float:
        """Return the log probability of groups and concentration, and of rows given the parameters."""
        logs = self.measure.log_densities(self.params)
        found = logs[np.arange(len(logs)), self.labels].sum()
        return float(found) + self.concentration.log_prob(np.bincount(self.labels))

    def state(self) -> dict[str, Any]:
        """Return labels, parameters and concentration."""
        params = {f"param.{name}": v.copy() for name, v in self.params.items()}
        return {"labels": self.labels.copy(), **params, **self.concentration.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take up a state that `state` gave."""
        self.concentration.restore(state)
        self.labels = np.array(state["labels"], dtype=np.int64)
        self.params = {
            k.removeprefix("param."): np.array(v) for k, v in state.items() if k.startswith("param.")
        }


def _joined(one: Params, other: Params) -> Params:
    return {name: np.concatenate([one[name], other[name]]) for name in one}
