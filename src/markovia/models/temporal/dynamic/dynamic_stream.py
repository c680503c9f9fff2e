"""Filtering as the evidence comes in, one step at a time; what is kept is one belief about the interface."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import ImpossibleEvidence, InvalidArgument, UnsupportedModel, check_known
from markovia.factors.tables.evidence import is_missing
from markovia.factors.tables.factor import Factor
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.inference.sequences.interface_runs import StepSums
from markovia.inference.sequences.slices import split_name
from markovia.models.temporal.dynamic.dynamic_evidence import (
    Evidence,
    compiled,
    longer,
    read_columns,
    read_evidence,
    seen_of,
    unseen,
)
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


class DynamicStream:
    """A process that is being watched; made by `DynamicBayesianNetwork.stream`.

    It can be pickled and copied at any step, and its `state` is plain data that another stream of the same process takes up.

    Attributes
    ----------
    step
        How many steps were seen.
    log_prob
        The log probability of all that was seen.
    """

    def __init__(self, process: "DynamicBayesianNetwork") -> None:
        self._networks = process.ready()
        self._slices = compiled(process, self._networks)
        for base, lag in (split_name(n) for network in self._networks for n in network.variables):
            if lag and base not in self._slices.sizes:
                raise UnsupportedModel(
                    f"{base!r} is a number that later steps look back at; state_space() filters such processes"
                )
        self._variables = {n: self._networks[0].variable(n) for n in process.variables}
        self._belief: Array | None = None
        self.step = 0
        self.log_prob = 0.0

    def update(self, evidence: Mapping[str, Any] | None = None) -> dict[str, Posterior]:
        """Take the evidence of the next step, and return the beliefs about its other variables.

        Evidence of probability zero raises `ImpossibleEvidence` and leaves the stream as it was.
        """
        said = {n: v for n, v in (evidence or {}).items() if not is_missing(v)}
        check_known(said, self._variables, "the process")
        kind = min(self.step, self._slices.order)
        # the engine takes whole sequences: this step is the last of a short one of which nothing else is asked
        columns = {n: [v] for n, v in said.items()}
        rows = replace(read_columns(columns, None, None), first=self.step) if said else None
        read = longer(unseen([0]), 1)[0] if rows is None else read_evidence(self._variables, rows)
        whole = _placed(read, kind)
        sums = StepSums(self._slices, seen_of(self._networks, self._slices, whole))
        steps = np.array([kind])
        belief, logs = sums.forward(kind, steps, self._belief)
        if sums.stuck[0] >= 0:
            raise ImpossibleEvidence.because(
                f"what was seen at step {self.step} has probability zero after the steps before it", said
            )
        found = {}
        more = float(logs[0]) + (0.0 if sums.seen.logs is None else float(sums.seen.logs[kind]))
        info = Info("interface", exact=True, log_evidence=self.log_prob + more)
        for name in self._slices.sizes:
            if name not in said or isinstance(said[name], list | dict):
                row = sums.total(kind, steps, ((name, 0),), self._belief)[0]
                found[name] = Posterior(Factor.of((self._variables[name],), row / row.sum()), info)
        self._belief, self.log_prob, self.step = belief, self.log_prob + more, self.step + 1
        return found

    @property
    def state(self) -> dict[str, Any]:
        """What the stream knows, as plain numbers and lists."""
        belief = None if self._belief is None else self._belief[0].tolist()
        return {"step": self.step, "log_prob": self.log_prob, "belief": belief}

    @state.setter
    def state(self, value: Mapping[str, Any]) -> None:
        step, belief = int(value["step"]), value["belief"]
        size = self._slices.size(min(step, self._slices.order) - 1)
        if (belief is None) != (step == 0) or (belief is not None and len(belief) != size):
            raise InvalidArgument(
                "this state is of another process: its belief has another number of entries"
            )
        self.step, self.log_prob = step, float(value["log_prob"])
        self._belief = None if belief is None else np.array(belief, dtype=np.float64)[None]

    def __repr__(self) -> str:
        return f"DynamicStream(step={self.step}, log_prob={self.log_prob:.6g})"


def _placed(read: Evidence, before: int) -> Evidence:
    """Return the evidence of one step after some steps of which nothing was seen."""
    n = before + 1
    codes = {m: np.concatenate([np.full(before, read.weights[m].shape[1]), c]) for m, c in read.codes.items()}
    numbers = {m: np.concatenate([np.full(before, np.nan), x]) for m, x in read.numbers.items()}
    rows = Sequences(np.empty((n, 0)), np.array([0, n]), (0,))
    return replace(read, rows=rows, codes=codes, numbers=numbers)
