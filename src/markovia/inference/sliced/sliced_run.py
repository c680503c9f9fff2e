"""Running a sliced plan on a machine of tables: messages up, beliefs down, and choices from the last bucket to the first.

Method: see `sliced_plan` for the loops. Going up, a loop leaves only the message of its top bucket. Going down, a loop is
gone through again: for each state of its variable the messages inside are computed once more and kept for that turn, so that
marginals cost a few sweeps instead of the memory of all messages. Choices (the best states, draws) need the message of a
bucket at one place for each of its states: a row. Of a cut variable the rows come from one turn each.
References: as in `sliced_plan`; Darwiche (2003), "A differential approach to inference in Bayesian networks", for beliefs as
derivatives. Cost: going up the entries of the plan; going down those times the messages of a bucket, and once more a loop.
`PlannedTables` runs the same steps without numbers, and tells time and memory beforehand.
"""

from collections.abc import Callable, Mapping, Sequence
from math import inf, log, prod
from typing import Any, TypeAlias

import numpy as np

from markovia.inference.sliced.product_layout import Operand, ProductLayout, Table, TableMachine
from markovia.inference.sliced.sliced_plan import Loop, SlicedPlan
from markovia.runtime.array_types import Array, Ints

Strides: TypeAlias = Mapping[int, int]
Choose: TypeAlias = Callable[[int, Array], Ints]
"""Given a variable and the logs of what its states weigh, shape (rows, states), the state of each row."""


class PlannedTable:
    """A table without numbers; the machine hears when it is freed."""

    __slots__ = ("machine", "size")

    def __init__(self, machine: "PlannedTables", size: float) -> None:
        self.machine, self.size = machine, size
        machine.live += size
        machine.peak = max(machine.peak, machine.live)

    def __del__(self) -> None:
        self.machine.live -= self.size


class PlannedTables:
    """A machine that only counts: the entries gone through, the products, and the most entries held at a time."""

    name = "planned"
    budget = inf

    def __init__(self) -> None:
        self.live = self.peak = self.entries = self.products = 0.0
        self.times = 1.0

    def put(self, values: Any) -> PlannedTable:
        """Count the entries of a table; `values` may be their number."""
        return PlannedTable(self, float(np.size(values) if isinstance(values, np.ndarray) else values))

    def product(
        self,
        layout: ProductLayout,
        inputs: Sequence[Operand],
        maximise: bool = False,
        onto: Table | None = None,
    ) -> Table:
        """Count a product; nothing is multiplied."""
        self.entries += layout.entries * self.times
        self.products += self.times
        return PlannedTable(self, layout.size) if onto is None else onto


class SlicedRun:
    """A plan with the tables of a model on a machine.

    Parameters
    ----------
    plan
        The plan; without its cuts everything is one turn.
    machine
        Where the tables are; with `PlannedTables` each loop goes round once, counted as often as it would.
    tables
        The model's tables, axes as in the plan's scopes; for `PlannedTables` they may be left out.
    advance
        Called with the entries gone through.
    """

    def __init__(
        self,
        plan: SlicedPlan,
        machine: TableMachine | PlannedTables,
        tables: Sequence[Array] | None = None,
        advance: Callable[[float], object] | None = None,
    ) -> None:
        self.plan, self.machine, self.advance = plan, machine, advance
        self.dry = isinstance(machine, PlannedTables)
        cards = plan.cards
        sizes = [prod(cards[v] for v in scope) for scope in plan.scopes]
        self.tables: list[Table] = [
            machine.put(values) if scope else None  # type: ignore[arg-type]
            for scope, values in zip(plan.scopes, sizes if tables is None else tables, strict=True)
        ]
        self.strides: list[Strides] = [_strides(scope, cards) for scope in plan.scopes]
        self.message_strides: list[Strides] = [
            _strides(plan.axes(k), cards) for k in range(len(plan.buckets))
        ]
        self.env: dict[int, int] = {}
        self.messages: list[dict[tuple[int, ...], Table]] = [{} for _ in plan.buckets]
        self.beliefs: dict[int, Table] = {}
        self._layouts: dict[Any, ProductLayout] = {}

    # -- up ------------------------------------------------------------------------------------------------------

    def up(self, keep: bool = False) -> None:
        """Pass all messages up; `keep` those outside of loops."""
        self._forward(self.plan.outermost, keep)

    def log_masses(self) -> list[float]:
        """Return the log of the last message of each part of the model, after messages were passed up."""
        found = []
        for k, bucket in enumerate(self.plan.buckets):
            if not bucket.scope:
                numbers, log_scale = self.machine.numbers(self.messages[k][()])  # type: ignore[union-attr]
                mass = float(numbers.reshape(-1)[0])
                found.append(log(mass) + log_scale if mass > 0.0 else -inf)
        return found

    def answer(self) -> tuple[Array, float]:
        """Return the table over the kept variables, and the log of its scale, after messages were passed up."""
        found: tuple[Array, float] = self.machine.numbers(self.messages[-1][()])  # type: ignore[union-attr]
        return found[0].reshape([self.plan.cards[v] for v in self.plan.keep]), found[1]

    def _key(self, k: int) -> tuple[int, ...]:
        return tuple([self.env[v] for v in self.plan.cut_scope[k]])

    def _forward(self, loop: Loop, keep: bool, whole: bool = True) -> None:
        """Run the steps of one turn; `whole` includes the last, in which the variable of the loop is removed."""
        plan = self.plan
        for i, step in enumerate(loop.steps):
            top = step.top if isinstance(step, Loop) else step
            if top == loop.top and not isinstance(step, Loop):
                if whole:
                    key = self._key(top)
                    self.messages[top][key] = self._message(top, self.messages[top].get(key))
            elif keep or not any(self._key(a) in self.messages[a] for a in plan.served[top]):
                if isinstance(step, Loop):
                    self._turns(step)
                else:
                    self.messages[top][self._key(top)] = self._message(top)
            if not keep and (whole or i + 1 < len(loop.steps)):
                self._free(loop, i)

    def _free(self, loop: Loop, i: int) -> None:
        for k in self.plan.ends.get((loop.variable, i), ()):
            if not self.plan.held[k]:
                self.messages[k].pop(self._key(k), None)

    def _turns(self, loop: Loop) -> None:
        """Go round a loop; what is left is the message of its top."""
        self.messages[loop.top].pop(self._key(loop.top), None)
        for _ in self._states(loop):
            self._forward(loop, keep=False)
        if not self.env:
            for k, held in enumerate(self.plan.held):
                if held:
                    self.messages[k].clear()

    def _states(self, loop: Loop) -> Any:
        """Set the variable of a loop to each of its states."""
        v, card = loop.variable, self.plan.cards[loop.variable]
        times = self.machine.times if self.dry else 1.0  # type: ignore[union-attr]
        if self.dry:
            self.machine.times = times * card  # type: ignore[union-attr]
        for state in range(1 if self.dry else card):
            self.env[v] = state
            yield state
        del self.env[v]
        if self.dry:
            self.machine.times = times  # type: ignore[union-attr]

    def _inputs(self, k: int) -> list[tuple[Strides, Operand]]:
        """Return the inputs of a bucket in this turn, with their strides by variable."""
        env, bucket = self.env, self.plan.buckets[k]
        found = []
        for f in bucket.tables:
            strides = self.strides[f]
            base = sum([strides[v] * env[v] for v in strides if v in env])
            found.append((strides, Operand(self.tables[f], base)))
        found += [(self.message_strides[c], Operand(self.messages[c][self._key(c)])) for c in bucket.children]
        return found

    def _product(
        self,
        what: Any,
        kept: Sequence[int],
        removed: Sequence[int],
        inputs: Sequence[tuple[Strides, Operand]],
        maximise: bool = False,
        onto: Table | None = None,
    ) -> Table:
        layout = self._layout(what, kept, removed, inputs)
        if self.advance is not None:
            self.advance(layout.entries)
        return self.machine.product(layout, [operand for _, operand in inputs], maximise, onto)

    def _layout(
        self,
        what: Any,
        kept: Sequence[int],
        removed: Sequence[int],
        inputs: Sequence[tuple[Strides, Operand]],
    ) -> ProductLayout:
        """Return how the inputs lie along the axes, made once for each kind of product."""
        layout = self._layouts.get(what)
        if layout is None:
            cards, axes = self.plan.cards, (*kept, *removed)
            layout = self._layouts[what] = ProductLayout(
                tuple([cards[v] for v in kept]),
                tuple([cards[v] for v in removed]),
                tuple([tuple([strides.get(v, 0) for v in axes]) for strides, _ in inputs]),
            )
        return layout

    def _removed(self, k: int) -> list[int]:
        return [v for v in self.plan.buckets[k].removed if v not in self.plan.cuts]

    def _message(self, k: int, onto: Table | None = None) -> Table:
        if self.dry and self.plan.served[k]:  # not in every turn
            machine: Any = self.machine
            times = machine.times
            machine.times = min(
                [times]
                + [
                    float(prod(self.plan.cards[v] for v in self.plan.cut_scope[a]))
                    for a in self.plan.served[k]
                ]
            )
            made = self._product(("up", k), self.plan.axes(k), self._removed(k), self._inputs(k), onto=onto)
            machine.times = times
            return made
        return self._product(
            ("up", k),
            self.plan.axes(k),
            self._removed(k),
            self._inputs(k),
            self.plan.buckets[k].maximised,
            onto,
        )

    # -- down ----------------------------------------------------------------------------------------------------

    def down(self, targets: Sequence[int]) -> dict[int, list[Table]]:
        """Return the beliefs of variables after `up(keep=True)`: one table each, or one for each state of a cut variable."""
        plan = self.plan
        self._sites: dict[int, list[int]] = {}
        self._needed = [False] * len(plan.buckets)
        mentioned: dict[int, tuple[float, int]] = {}
        for k, bucket in enumerate(plan.buckets):
            turns = prod(plan.cards[v] for v in plan.loops[plan.sent_in(k)].varies)
            size = turns * float(prod(plan.cards[v] for v in plan.axes(k)))
            for v in bucket.scope:
                mentioned[v] = min(mentioned.get(v, (inf, -1)), (size, k))
        for v in targets:
            # where its belief is read off: the smallest message about it, else its own bucket
            k = mentioned[v][1] if v in mentioned else plan.place[v]
            self._sites.setdefault(k, []).append(v)
            while k >= 0 and not self._needed[k]:
                self._needed[k] = True
                k = plan.buckets[k].parent
        self._found: dict[int, list[Table]] = {
            v: [None] * plan.cards[v] if v in plan.cuts else [None] for v in targets
        }
        self._back(plan.outermost)
        return self._found

    def _back(self, loop: Loop) -> None:
        """Pass beliefs down through the steps of one turn, whose messages are there, and forget these."""
        for step in reversed(loop.steps):
            k = step.top if isinstance(step, Loop) else step
            if self._needed[k]:
                self._read_off(k, of_message=True)
                if isinstance(step, Loop):
                    for _ in self._states(step):
                        self._forward(step, keep=True, whole=False)
                        self._pass_down(step.top)
                        self._back_inside(step)
                else:
                    self._pass_down(k)
            self.beliefs.pop(k, None)
            self.messages[k].pop(self._key(k), None)

    def _back_inside(self, loop: Loop) -> None:
        self._back(Loop(loop.variable, loop.top, loop.varies, loop.steps[:-1]))

    def _pass_down(self, k: int) -> None:
        """Give each child its belief: the product of everything in the bucket but its message."""
        plan, bucket = self.plan, self.plan.buckets[k]
        inputs = self._inputs(k)
        if k in self.beliefs:
            inputs.append((self.message_strides[k], Operand(self.beliefs[k])))
        open_axes = [v for v in bucket.clique if v not in plan.cuts]
        for j, child in enumerate(bucket.children):
            if self._needed[child]:
                kept = plan.axes(child)
                removed = [v for v in open_axes if v not in self.message_strides[child]]
                i = len(bucket.tables) + j
                others = [*inputs[:i], *inputs[i + 1 :]]
                before = self.beliefs.get(child)
                self.beliefs[child] = self._product(("down", k, j), kept, removed, others, onto=before)
        self._read_off(k, inputs)

    def _read_off(
        self, k: int, inputs: list[tuple[Strides, Operand]] | None = None, of_message: bool = False
    ) -> None:
        """Add up the beliefs of the targets that are read off here, from the message or from the bucket."""
        plan, bucket = self.plan, self.plan.buckets[k]
        for v in self._sites.get(k, ()):
            if of_message != (v in bucket.scope):
                continue
            if of_message:
                strides = self.message_strides[k]
                inputs = [
                    (strides, Operand(self.messages[k][self._key(k)])),
                    (strides, Operand(self.beliefs[k])),
                ]
                axes: Sequence[int] = plan.axes(k)
            else:
                axes = [u for u in bucket.clique if u not in plan.cuts]
            assert inputs is not None
            at = self.env[v] if v in plan.cuts else 0
            kept = () if v in plan.cuts else (v,)
            removed = [u for u in axes if u != v]
            self._found[v][at] = self._product(
                ("belief", k, v), kept, removed, inputs, onto=self._found[v][at]
            )

    # -- choices -------------------------------------------------------------------------------------------------

    def choose(self, codes: Ints, choose: Choose, chosen: Sequence[bool]) -> None:
        """Choose states from the last bucket to the first after `up(keep=True)`, for every row of `codes` (rows, variables).

        Only buckets of which `chosen` says so; they come after all others.
        """
        self._chosen = chosen
        self._choose_in(self.plan.outermost, np.arange(len(codes)), codes, choose)

    def _choose_in(self, loop: Loop, rows: Ints, codes: Ints, choose: Choose) -> None:
        for step in reversed(loop.steps):
            k = step.top if isinstance(step, Loop) else step
            if not self._chosen[k] or (k == loop.top and not isinstance(step, Loop)):
                continue
            if isinstance(step, Loop):
                self._choose_cut(step, rows, codes, choose)
            else:
                (v,) = self.plan.buckets[k].removed
                codes[rows, v] = choose(v, _logs(self._rows(k, rows, codes)[0]))

    def _choose_cut(self, loop: Loop, rows: Ints, codes: Ints, choose: Choose) -> None:
        """Choose the state of a cut variable, which takes a turn for each, and then what is inside."""
        v, own = loop.variable, [s.top if isinstance(s, Loop) else s for s in loop.steps[:-1]]
        weights = np.empty((len(rows), self.plan.cards[v]))
        for state in self._states(loop):
            self._forward(loop, keep=False, whole=False)
            numbers, logs = self._rows(loop.top, rows, codes)
            weights[:, state] = _logs(numbers[:, 0]) + logs
            self._free(loop, len(loop.steps) - 1)
        codes[rows, v] = choose(v, weights)
        for state in self._states(loop):
            here = rows[codes[rows, v] == state]
            if len(here):
                self._forward(loop, keep=True, whole=False)
                self._choose_in(loop, here, codes, choose)
                for k in own:
                    self.messages[k].pop(self._key(k), None)

    def _rows(self, k: int, rows: Ints, codes: Ints) -> tuple[Array, Array]:
        """Return what the states of a bucket's variable weigh given those of its scope, and the log scale of each row."""
        inputs, removed = self._inputs(k), self._removed(k)
        if not inputs:  # no table mentions it
            return np.ones((len(rows), prod(self.plan.cards[v] for v in removed))), np.zeros(len(rows))
        layout = self._layout(("row", k), removed, (), inputs)
        scope = self.plan.axes(k)
        starts = []
        for strides, _ in inputs:
            start = np.zeros(len(rows), dtype=np.int64)
            for v in scope:
                if v in strides:
                    start += strides[v] * codes[rows, v]
            starts.append(start)
        machine: TableMachine = self.machine  # type: ignore[assignment]
        return machine.rows(layout, [operand for _, operand in inputs], starts)


def _strides(scope: Sequence[int], cards: Sequence[int]) -> Strides:
    found, step = {}, 1
    for v in reversed(scope):
        found[v] = step
        step *= cards[v]
    return found


def _logs(numbers: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.log(numbers)
