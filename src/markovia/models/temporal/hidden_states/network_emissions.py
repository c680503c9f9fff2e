"""Whole Bayesian networks as emissions: one structure, with parameters of its own in each state.

A step is a row of the network's variables. Learning is the network's own `fit` with weights, so tables, linear Gaussians and
local models all do, and cells may be missing where the network can sum them out (learned then by EM inside EM).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument, check_known
from markovia.learning.components.families import NOTHING, Components, Observations
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class NetworkFamily:
    """Networks of one structure."""

    network: BayesianNetwork
    names: ClassVar[tuple[str, ...]] = ("networks",)
    priors: ClassVar[tuple[str, ...]] = ("pseudo_count",)

    def read(self, sequences: Sequences) -> Observations:
        """Return rows of the network's variables as observations; equal rows are one where nothing is a number."""
        wanted = self.network.variables
        values = sequences.values
        if sequences.columns:
            check_known(wanted, list(sequences.columns), "the sequences")
            values = values[:, [sequences.columns.index(n) for n in wanted]]
        elif values.shape[1] != len(wanted):
            raise InvalidArgument(
                f"the sequences have {values.shape[1]} columns, the network {len(wanted)} variables; frames may have more"
            )
        import pandas as pd

        frame = pd.DataFrame({n: pd.Series(list(values[:, i])) for i, n in enumerate(wanted)})
        there = ~frame.isna().all(axis=1).to_numpy()
        rows = frame[there].reset_index(drop=True)
        codes = np.full(len(frame), 0, dtype=np.int64)
        if self.network.has_quantities or any(rows[n].dtype.kind == "f" for n in wanted):
            codes[there] = np.arange(len(rows))
            apart = True
        else:
            own = rows.groupby(wanted, dropna=False, sort=False).ngroup().to_numpy()
            _, first = np.unique(own, return_index=True)
            codes[there], rows = own, rows.iloc[first].reset_index(drop=True)
            apart = False
        codes[~there] = len(rows)
        return Observations(rows, codes, sequences.offsets, apart)

    def of(self, k: int, params: Mapping[str, Any]) -> "NetworkEmission":
        """Return checked emissions from networks, one a state."""
        given = list(params["networks"])
        if len(given) != k or not all(isinstance(one, BayesianNetwork) for one in given):
            raise InvalidArgument(f"emission_params['networks'] are {k} BayesianNetworks, one a state")
        for one in given:
            if set(one.variables) != set(self.network.variables):
                raise InvalidArgument(
                    "emission_params['networks'] have the variables of emission=: "
                    + ", ".join(self.network.variables)
                )
        return NetworkEmission(tuple(one.copy() for one in given))

    def started(self, seen: Observations, k: int, rng: np.random.Generator) -> "NetworkEmission":
        """Return networks learned from all rows, each with other random weights."""
        blank = NetworkEmission((self.network.copy(),) * k)
        many = np.bincount(seen.codes, minlength=len(seen.rows) + 1)[: len(seen.rows)].astype(np.float64)
        return blank.learned(seen.rows, many[:, None] * rng.dirichlet(np.full(k, 0.3), len(many)), {})


@dataclass(frozen=True)
class NetworkEmission(Components):
    """Networks of one structure, one a state."""

    networks: tuple[BayesianNetwork, ...]
    names: ClassVar = ("networks",)
    width: ClassVar = None

    @property
    def params(self) -> dict[str, Any]:
        """The networks."""
        return {"networks": np.array(self.networks, dtype=object)}

    @property
    def n_states(self) -> int:
        """The number of states."""
        return len(self.networks)

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return sum(one.count_parameters() for one in self.networks)

    def read(self, sequences: Sequences) -> Observations:
        """Return rows of the networks' variables as observations."""
        return NetworkFamily(self.networks[0]).read(sequences)

    def log_densities(self, rows: "pd.DataFrame") -> Array:
        """Return the log density of each row in each state."""
        if not len(rows):
            return np.zeros((0, self.n_states))
        return np.column_stack([one.log_prob(rows, progress=False) for one in self.networks])

    def learned(self, rows: "pd.DataFrame", weights: Array, prior: Mapping[str, Any]) -> Self:
        """Return the networks fitted to weighted rows."""
        pseudo = None if "pseudo_count" not in prior else float(prior["pseudo_count"])
        states = _states(rows, self.networks[0])
        made = [
            one.copy().fit(rows, weights=w, states=states, prior=pseudo) if w.sum() > NOTHING else one
            for one, w in zip(self.networks, weights.T, strict=True)
        ]
        return replace(self, networks=tuple(made))

    def draw(self, states: Ints, rng: np.random.Generator) -> Any:
        """Return a row from each of some states."""
        names = self.networks[0].variables
        found = np.empty((len(states), len(names)), dtype=object)
        for k in np.unique(states).tolist():
            here = np.flatnonzero(states == k)
            found[here] = self.networks[k].sample(len(here), seed=rng)[names].to_numpy(dtype=object)
        return found


def _states(rows: "pd.DataFrame", network: BayesianNetwork) -> dict[str, Any]:
    """Return the states of variables that never had any said, so that all networks have the same."""
    return {
        n: sorted(rows[n].dropna().unique().tolist()) for n in network.unstated() if rows[n].dtype.kind != "f"
    }
