"""What planning finds: what each state is worth, what to do there, and how much better any other plan could be."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, check_known
from markovia.inference.decisions.processes.bellman import DecisionOperator, HardOperator
from markovia.inference.decisions.processes.decision_process import StateProcess
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks, aligned, html_table

SHOWN = 12
"""States that are printed."""


@dataclass(frozen=True, eq=False, repr=False)
class Plan(InNotebooks):
    """A policy for a process, with what it is worth.

    Attributes
    ----------
    value, bound, gap
        What the policy is worth from the first state on, at least; what no policy exceeds; and the difference.
    v, q
        What each state is worth under the policy, at least, and what each action there is worth: (S,) and (S, A), or
        with a step in front where the horizon is finite. For average rewards v is relative to the first state, per
        step.
    policy
        Probabilities of actions, (S, A), or (T, S, A) for T steps.
    info
        How it was computed.
    process
        What it is a plan for.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> from markovia.inference.decisions.processes.policy_iteration import policy_iteration
    >>> forest = DecisionProcess.from_tables(
    ...     [[[0.1, 0.9, 0], [0.1, 0, 0.9], [0.1, 0, 0.9]], [[1, 0, 0], [1, 0, 0], [1, 0, 0]]], [[0, 0], [0, 1], [4, 2]],
    ...     initial=0, actions=["wait", "cut"],
    ... )
    >>> plan = policy_iteration(forest, 0.96)
    >>> print(plan)
    Plan: value 74.6496, gap 0
    state        v  action
    0      74.6496  wait
    1      78.1056  wait
    2      82.1056  wait
    >>> plan.act(2)
    'wait'
    """

    process: StateProcess
    value: float
    bound: float
    v: Array
    q: Array
    info: Info
    operator: DecisionOperator = field(default_factory=HardOperator)
    chosen: Array | None = None
    """The policy, where it is not what the operator makes of Q."""
    names: Sequence[str] = ()
    """The variables that make a state, where its name is a tuple of theirs."""

    @property
    def gap(self) -> float:
        """How much better any other policy can be."""
        return max(0.0, self.bound - self.value)

    @cached_property
    def policy(self) -> Array:
        """Probabilities of actions."""
        found = self.operator.policy(self.q, self.process.allowed) if self.chosen is None else self.chosen
        found = np.asarray(found)
        if found.flags.writeable:
            found.setflags(write=False)
        return found

    @property
    def horizon(self) -> int | None:
        """How many steps there are; None where the plan is the same at all steps."""
        return len(self.v) if self.v.ndim == 2 else None

    def row(self, state: Any, step: int | None = None) -> dict[Hashable, float]:
        """Return the probabilities of actions in a state, by name.

        Parameters
        ----------
        state
            Its name; for states of several variables a tuple, or a mapping from variables to states.
        step
            At which step, where the horizon is finite.
        """
        weights = self._weights(state, step)
        return {self.process.action_name(a): float(p) for a, p in enumerate(weights) if p > 0.0}

    def act(self, state: Any, step: int | None = None, seed: Seed = None) -> Hashable:
        """Return what to do in a state; drawn where the policy is random.

        The arguments are those of `row`; the seed is for the draw.
        """
        weights = self._weights(state, step)
        a = int(weights.argmax())
        if weights[a] < 1.0 - 1e-12:
            a = int(generator(seed).choice(len(weights), p=weights / weights.sum()))
        return self.process.action_name(a)

    def _weights(self, state: Any, step: int | None) -> Array:
        s = self.process.state_at(self._named(state))
        if self.horizon is None:
            if step is not None:
                raise InvalidArgument("the plan is the same at all steps; leave step= out")
            return np.asarray(self.policy[s])
        check_count("step", step)
        assert step is not None
        if step >= self.horizon:
            raise InvalidArgument(f"the plan has the steps 0 to {self.horizon - 1}, not {step}")
        if self.chosen is not None:
            return np.asarray(self.chosen[step, s])
        allowed = None if self.process.allowed is None else self.process.allowed[s]
        return np.asarray(self.operator.policy(self.q[step, s], allowed))

    def _named(self, state: Any) -> Hashable:
        if not isinstance(state, Mapping):
            return state  # type: ignore[no-any-return]
        names = list(self.names) or ["state"]
        check_known(state, names, "the state")
        if missing := [n for n in names if n not in state]:
            raise InvalidArgument(f"the plan looks at {missing[0]!r} too; say its state")
        return tuple(state[n] for n in names) if len(names) > 1 else state[names[0]]

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        v, process = (self.v[0], self.process) if self.v.ndim == 2 else (self.v, self.process)
        rows = []
        for s in range(min(SHOWN, process.n_states)):
            row = self._weights(process.state_name(s), None if self.horizon is None else 0)
            likely = [f"{process.action_name(int(a))}" for a in np.flatnonzero(row > 1e-12)]
            if len(likely) > 1:
                likely = [
                    f"{process.action_name(int(a))} {row[a]:.3g}"
                    for a in np.argsort(-row)[:4]
                    if row[a] > 1e-12
                ]
            name: Any = process.state_name(s)
            shown = ", ".join(map(str, name)) if len(self.names) > 1 else str(name)
            rows.append([shown, f"{v[s]:.6g}", ", ".join(likely)])
        what = ", ".join(self.names) if len(self.names) > 1 else "state"
        return [what, "v", "action" if self.horizon is None else "action at step 0"], rows

    @property
    def _heading(self) -> str:
        steps = "" if self.horizon is None else f"{self.horizon} steps, "
        gap = self.gap if self.gap > 1e-12 * max(1.0, abs(self.value)) else 0.0
        return f"Plan: {steps}value {self.value:.6g}, gap {gap:.2g}"

    def __str__(self) -> str:
        header, rows = self._lines()
        lines = aligned(header[:2], [row[:2] for row in rows]).splitlines()
        shown = [
            f"{line}  {last}".rstrip()
            for line, last in zip(lines, [header[2], *(r[2] for r in rows)], strict=True)
        ]
        more = self.process.n_states - SHOWN
        return "\n".join([self._heading, *shown, *([f"... and {more:,} more states"] if more > 0 else [])])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        header, rows = self._lines()
        more = self.process.n_states - SHOWN
        note = f"{f'and {more:,} more states; ' if more > 0 else ''}{self.info}"
        return html_table(header, rows, title=self._heading, note=note)
