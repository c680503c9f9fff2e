"""What sequences tell about a process that is a network: Dirichlet tables, and plans for processes drawn from them.

A dynamic network with decisions has a table for each variable given few others, so that far fewer numbers have to be learned
than for the joint state. Each row of each table of the later steps gets a Dirichlet posterior by counting; decisions and
utilities are known. Thompson sampling draws a network, decides as if it were true, and counts what then happens.

References: Osband and Van Roy (2014) for factored processes; Thompson (1933). Cost: one pass over the steps; a draw one
gamma number for each entry, and what `decide` takes.
"""

from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Lengths
from markovia.data.tables.state_codes import column_codes
from markovia.errors import IncompleteModel, UnknownVariable, UnsupportedModel
from markovia.factors.tables.conditional import ConditionalTable
from markovia.inference.sequences.slices import split_name
from markovia.models.temporal.dynamic.decision_steps import decision_steps
from markovia.models.temporal.dynamic.dynamic_evidence import read_columns
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.checks import check_number
from markovia.runtime.seeds import Seed, generator


class FactoredPosterior:
    """The posterior of the tables of a process with decisions.

    Parameters
    ----------
    process
        A dynamic network with decisions and utilities; what its tables say counts for nothing, only who depends on whom, and
        where episodes begin.
    prior
        How many times each entry of a table counts as seen before.

    Attributes
    ----------
    counts
        How often each entry was seen, by variable; axes (*parents, the variable itself).

    Examples
    --------
    >>> import markovia as mk
    >>> p = mk.DynamicBayesianNetwork()
    >>> p.add("s", np.full((2, 2, 2), 0.5), states=2, parents=["s@-1", "move@-1"], initial=[1, 0])
    >>> p.add("move", mk.Decision(2), parents=["s"])
    >>> p.add("r", mk.Utility([0.0, 1.0]), parents=["s"])
    >>> posterior = FactoredPosterior(p, prior=0.1)
    >>> posterior.add({"s": [0, 0, 1, 1, 0], "move": [0, 1, 1, 0, 0]})
    >>> posterior.mean().transition["s"].values[0].round(3).tolist()
    [[0.917, 0.083], [0.083, 0.917]]
    >>> posterior.thompson(discount=0.5, seed=0).process.n_states
    2
    """

    def __init__(self, process: DynamicBayesianNetwork, prior: float = 1.0) -> None:
        check_number("prior", prior, positive=True)
        steps = decision_steps(process)
        if process.order > 1:
            raise UnsupportedModel(
                "the posterior counts steps with the one before; make the process one of order 1"
            )
        self.process, self.prior = process, prior
        chance = [n for n in process.variables if n not in steps.decisions and n not in steps.utilities]
        self.counts: dict[str, Array] = {}
        for name in chance:
            node: Any = process.transition[name]
            if not isinstance(node, ConditionalTable):
                raise UnsupportedModel(f"{name!r} has no table whose rows could be counted; give it one")
            self.counts[name] = np.zeros(node.values.shape)

    def add(self, sequences: Any, lengths: Lengths = None, *, by: str | None = None) -> None:
        """Count the steps of sequences, each with the one before it.

        Parameters
        ----------
        sequences, lengths, by
            As in `DynamicBayesianNetwork.fit`: a frame or a mapping of columns, one row a step; rows with missing cells do
            not count.
        """
        rows = read_columns(sequences, lengths, by)
        later = np.ones(len(rows.values), bool)
        later[rows.offsets[:-1]] = False
        codes = {n: self._codes(rows, n) for n in self._needed()}
        for name, counts in self.counts.items():
            family: list[Ints] = []
            for column in (*self.process.transition[name].parent_names, name):
                own, lag = split_name(column)
                family.append(np.roll(codes[own], lag))
            known: Flags = later & np.all([c >= 0 for c in family], axis=0)
            np.add.at(counts, tuple(c[known] for c in family), 1.0)

    def mean(self) -> DynamicBayesianNetwork:
        """Return the process of posterior means."""
        weights = {n: c + self.prior for n, c in self.counts.items()}
        return self._with({n: w / w.sum(axis=-1, keepdims=True) for n, w in weights.items()})

    def draw(self, seed: Seed = None) -> DynamicBayesianNetwork:
        """Return a process drawn from the posterior."""
        rng = generator(seed)
        drawn = {n: rng.standard_gamma(c + self.prior) + 1e-300 for n, c in self.counts.items()}
        return self._with({n: w / w.sum(axis=-1, keepdims=True) for n, w in drawn.items()})

    def thompson(self, *, seed: Seed = None, **decide: Any) -> Any:
        """Return the plan for a process drawn from the posterior; other arguments are those of `decide`."""
        return self.draw(seed).decide(**decide)

    def _needed(self) -> set[str]:
        parents = [p for n in self.counts for p in self.process.transition[n].parent_names]
        return {*self.counts, *(split_name(p)[0] for p in parents)}

    def _codes(self, rows: Any, name: str) -> Ints:
        if name not in rows.columns:
            raise UnknownVariable(name, rows.columns, "the sequences")
        column = rows.values[:, rows.columns.index(name)]
        codes: Ints = np.asarray(
            column_codes(name, column, self.process.transition.variable(name))[1], np.int64
        )
        return codes

    def _with(self, tables: dict[str, Array]) -> DynamicBayesianNetwork:
        """Return the process with other tables for the later steps."""
        if not self.process.starts:
            raise IncompleteModel("the process says nothing about its first step; give initial=")
        network = self.process.transition.copy()
        made = {}
        for name, values in tables.items():
            node: Any = network[name]
            made[name] = ConditionalTable.of(node.variable, node.parents, values)
        network.install({n: network.variable(n) for n in network.variables}, made)
        return DynamicBayesianNetwork([n.copy() for n in self.process.starts], network)
