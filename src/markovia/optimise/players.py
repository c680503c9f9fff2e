"""What training moves: players, each with a loss and the parameters it may change, and the steps they make.

One player is a likelihood or a bound; two are wake and sleep, or a generator and its critic. A step lets every player move
in turn. Traced players are compiled: a segment of steps on data in memory is one program, and streamed batches go through
the same program one by one. Untraced ones are plain Python, with a gradient of their own.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from markovia.optimise.averaging import Averaging
from markovia.optimise.row_batches import Batch, RowBatches
from markovia.runtime.array_types import Array
from markovia.runtime.clock import standing_still
from markovia.runtime.double_precision import is_x64
from markovia.runtime.libraries import jax, jnp, optax
from markovia.runtime.machine_code import MachineCodeKey, compiled

SEGMENT = 500
"""Steps of one compiled call at most."""
CELLS = 4_000_000
"""Numbers of rows handed to one compiled call at most."""


class Player(NamedTuple):
    """A loss, and whose parameters it trains.

    Attributes
    ----------
    loss
        `(parameters, memory, key, batch) -> (value, memory)`: a mean over the rows of the batch, by their weights.
        Untraced, `(value, memory, gradient)`, and the key is a list of numbers, a seed for NumPy.
    names
        The parameters that move, of a mapping from names to trees of arrays.
    optimiser
        An Optax transformation, or an `UpdateRule`; None for that of the training, a function of the `Training` and the
        number of steps for one that goes by its settings.
    repeats
        Moves a step, each with a key of its own.
    traced
        Whether the loss is a JAX function.
    """

    loss: Callable[..., Any]
    names: tuple[str, ...]
    optimiser: Any = None
    repeats: int = 1
    traced: bool = True


class UpdateRule(NamedTuple):
    """An optimiser in NumPy, in Optax's form: `init(parameters)`, `update(gradient, state, parameters) -> change, state`."""

    init: Callable[[Any], Any]
    update: Callable[[Any, Any, Any], tuple[Any, Any]]


class TrainingState(NamedTuple):
    """All that a step changes: steps made, parameters, each player's optimiser, the average of parameters, and memory."""

    step: Any
    parameters: dict[str, Any]
    moments: tuple[Any, ...]
    average: Any
    memory: Any


class SegmentOutcome(NamedTuple):
    """What some steps led to: the state, each player's value at each step, and whether the next step has no number."""

    state: TrainingState
    values: Array
    failed: bool


class StepPlan(NamedTuple):
    """What steps are made of; `lenient` takes entries of gradients that are no numbers as 0 and goes on."""

    players: tuple[Player, ...]
    optimisers: tuple[Any, ...]
    averaging: Averaging | None
    lenient: bool
    key: Any


def begin(
    plan: StepPlan, parameters: dict[str, Any], memory: Any, code: MachineCodeKey | None
) -> TrainingState:
    """Return the state before the first step."""

    def start(parameters: Any) -> Any:
        return tuple(
            optimiser.init(_own(player, parameters))
            for player, optimiser in zip(plan.players, plan.optimisers, strict=True)
        )

    if code is None:  # untraced players, in NumPy
        moments = start(parameters)
    else:  # one program for all moments; array by array each would be compiled by itself
        tree = jax.tree.structure(jax.eval_shape(start, parameters))
        held = repr([(p.names, p.repeats) for p in plan.players])
        made = compiled(code, "moments", held, lambda p: jax.tree.leaves(start(p)), parameters, once=True)
        moments = jax.tree.unflatten(tree, made(parameters))
    return TrainingState(np.asarray(0, np.int32), parameters, moments, parameters, memory)


class TracedSteps:
    """Steps of traced players.

    Parameters
    ----------
    plan
        The players and how they move.
    batches
        `RowBatches`, a `BatchStream`, or any other tree of arrays, which every step then sees as a whole.
    code
        What the compiled program is kept under.
    """

    def __init__(self, plan: StepPlan, batches: Any, code: MachineCodeKey) -> None:
        self.plan = plan
        self._source = batches
        self._code = code
        self._stream: Iterator[Batch] | None = None
        self._segment: Callable[..., Any] | None = None
        self.room = SEGMENT
        if isinstance(batches, RowBatches):
            self.room = max(1, min(SEGMENT, CELLS // batches.width))
        elif is_stream(batches):
            self.room = 1
        self.data = (
            None
            if is_stream(batches)
            else on_device(batches.data if isinstance(batches, RowBatches) else batches)
        )

    def advance(self, state: TrainingState, first: int, count: int) -> SegmentOutcome:
        """Make so many steps; fewer where a stream ends or a step has no number."""
        if is_stream(self._source):
            return self._streamed(state, count)
        count = min(count, self.room)
        index = None
        if isinstance(self._source, RowBatches):
            index = tuple(jnp.asarray(x) for x in self._padded(*self._source.indices(first, count)))
        after, values, done = self._run(state, jnp.asarray(count, jnp.int32), self.data, index)
        made = int(done)
        if (
            made < count
        ):  # the steps before the one without numbers again: they are the same, as keys are those of steps
            after, _, _ = self._run(state, jnp.asarray(made, jnp.int32), self.data, index)
        return SegmentOutcome(after, np.asarray(values, np.float64)[:made], made < count)

    def go_to(self, epoch: int, steps: int) -> None:
        """Begin a stream at an epoch, after some of its steps."""
        if is_stream(self._source):
            self._stream = self._source.epoch(epoch)
            for _ in range(steps):
                next(self._stream)

    def _streamed(self, state: TrainingState, count: int) -> SegmentOutcome:
        one = jnp.asarray(1, jnp.int32)
        held, made = [], []
        for _ in range(count):
            batch = next(self._stream, None) if self._stream is not None else None
            if batch is None:
                break
            # nothing waits for the device here: values are looked at when all steps are on their way
            state, values, done = self._run(state, one, on_device(batch), None, held=True)
            held.append(values)
            made.append(done)
        good = int(np.sum([np.asarray(d) for d in made])) if made else 0
        rows = [np.asarray(v, np.float64) for v in held[:good]]
        values = np.concatenate(rows) if rows else np.zeros((0, len(self.plan.players)))
        return SegmentOutcome(state, values, good < len(made))

    def _run(self, state: TrainingState, count: Any, data: Any, index: Any, held: bool = False) -> Any:
        """Make steps up to one without numbers; the state is that after it, or with `held` that before it."""
        args = (state, count, self.plan.key, data, index)
        if self._segment is None:
            plan = self.plan
            settings = (
                plan.averaging,
                plan.lenient,
                self.room,
                held,
                [(p.names, p.repeats) for p in plan.players],
            )

            def program(state: Any, count: Any, key: Any, data: Any, index: Any) -> Any:
                state, values, done = self._program(state, count, key, data, index, held)
                return jax.tree.leaves(state), values, done  # leaves, as the state has modules in it

            self._segment = compiled(self._code, "training", repr(settings), program, *args)
        leaves, values, done = self._segment(*args)
        return jax.tree.unflatten(jax.tree.structure(state), leaves), values, done

    def _padded(self, index: Any, weight: Array) -> tuple[Any, Array]:
        short = [(0, self.room - len(index)), (0, 0)]
        return np.pad(index, short), np.pad(weight, short).astype(default_float())

    def _program(self, state: Any, count: Any, key: Any, data: Any, index: Any, held: bool) -> Any:
        """Make `count` steps; one whose values or gradients are no numbers is the last, and does not count."""

        def going(carry: Any) -> Any:
            i, _, _, good = carry
            return (i < count) & good

        def body(carry: Any) -> Any:
            i, state, values, _ = carry
            batch = data
            if index is not None:
                batch = Batch(jax.tree.map(lambda x: x[index[0][i]], data), index[1][i])
            moved, value, good = traced_step(self.plan, state, key, batch)
            if held:
                moved = jax.tree.map(lambda new, old: jnp.where(good, new, old), moved, state)
            return i + good, moved, values.at[i].set(value), good

        values = jnp.zeros((self.room, len(self.plan.players)))
        start = (jnp.asarray(0, jnp.int32), state, values, jnp.asarray(True))
        done, state, values, _ = jax.lax.while_loop(going, body, start)
        return state, values, done


def traced_step(plan: StepPlan, state: TrainingState, key: Any, batch: Any) -> tuple[TrainingState, Any, Any]:
    """Let every player move once; return the state, the players' values, and whether all is finite."""
    parameters, memory = dict(state.parameters), state.memory
    own_key = jax.random.fold_in(key, state.step)
    moments, values, good = list(state.moments), [], jnp.asarray(True)
    for k, player in enumerate(plan.players):
        mine = jax.random.fold_in(own_key, k) if k else own_key

        def move(
            carry: Any,
            once: Any,
            player: Player = player,
            others: Any = parameters,
            rule: Any = plan.optimisers[k],
        ) -> Any:
            own, memory, moment, good = carry

            def loss(own: Any) -> Any:
                return player.loss({**others, **own}, memory, once, batch)

            (value, memory), slope = jax.value_and_grad(loss, has_aux=True)(own)
            if plan.lenient:
                slope = jax.tree.map(lambda g: jnp.where(jnp.isfinite(g), g, 0.0), slope)
            else:
                finite = [jnp.isfinite(x).all() for x in (value, *jax.tree.leaves(slope))]
                good &= jnp.stack(finite).all()
            change, moment = rule.update(slope, moment, own)
            return (optax.apply_updates(own, change), memory, moment, good), value

        carry = (_own(player, parameters), memory, moments[k], good)
        if player.repeats == 1:
            carry, value = move(carry, mine)
        else:  # a loop of the program, which is compiled once and not as often as it runs
            keys = [mine, *(jax.random.fold_in(mine, r) for r in range(1, player.repeats))]
            carry, every = jax.lax.scan(move, carry, jnp.stack(keys))
            value = every[-1]
        own, memory, moments[k], good = carry
        parameters |= own
        values.append(value)
    average = state.average
    if plan.averaging is not None:
        share = plan.averaging.share(state.step, jnp)
        average = jax.tree.map(lambda m, p: (m + share * (p - m)).astype(p.dtype), average, parameters)
    moved = TrainingState(state.step + 1, parameters, tuple(moments), average, memory)
    return moved, jnp.stack(values), good


class UntracedSteps:
    """Steps of players in plain Python, on numbers of rows; with an `UpdateRule` parameters are NumPy arrays."""

    room = SEGMENT

    def __init__(self, plan: StepPlan, batches: RowBatches, seed: int | None) -> None:
        self.plan = plan
        self._batches = batches
        self._seed = np.random.SeedSequence(seed).entropy
        self._movers = [_mover(optimiser) for optimiser in plan.optimisers]

    def advance(self, state: TrainingState, first: int, count: int) -> SegmentOutcome:
        """Make so many steps; Ctrl-C and a step that has no number end them before."""
        index, weight = self._batches.indices(first, count)
        values: list[list[float]] = []
        for i in range(count):
            found = self._step(state, first + i, Batch(index[i], weight[i]))
            if found is None:
                return SegmentOutcome(state, self._table(values), True)
            state = found[0]
            values.append(found[1])
        return SegmentOutcome(state, self._table(values), False)

    def _step(
        self, state: TrainingState, step: int, batch: Batch
    ) -> tuple[TrainingState, list[float]] | None:
        plan = self.plan
        parameters, memory = dict(state.parameters), state.memory
        moments, values = list(state.moments), []
        for k, player in enumerate(plan.players):
            for r in range(player.repeats):
                value, memory, slope = player.loss(parameters, memory, [self._seed, step, k, r], batch)
                if not plan.lenient and not (np.isfinite(value) and all(map(_finite, slope.values()))):
                    return None
                moved, moments[k] = self._movers[k](_own(player, parameters), slope, moments[k])
                parameters |= moved
            values.append(float(value))
        average: Any = parameters
        if plan.averaging is not None:
            share = float(plan.averaging.share(step, np))
            average = _mapped(
                lambda m, p: p if share == 1.0 else m + share * (p - m), state.average, parameters
            )
        return TrainingState(state.step + 1, parameters, tuple(moments), average, memory), values

    def _table(self, values: list[list[float]]) -> Array:
        return np.array(values, dtype=np.float64).reshape(len(values), len(self.plan.players))


def _mover(optimiser: Any) -> Callable[..., Any]:
    """Return what makes a move: `(parameters, gradient, state) -> (parameters, state)`."""
    if isinstance(optimiser, UpdateRule):

        def in_numpy(own: dict[str, Array], slope: dict[str, Array], state: Any) -> Any:
            change, state = optimiser.update(slope, state, own)
            return {name: own[name] + change[name] for name in own}, state

        return in_numpy

    def in_jax(own: Any, slope: Any, state: Any) -> Any:
        change, state = optimiser.update(slope, state, own)
        return optax.apply_updates(own, change), state

    jitted = jax.jit(in_jax)
    compiled_once = False

    def timed(*args: Any) -> Any:
        nonlocal compiled_once
        if compiled_once:
            return jitted(*args)
        compiled_once = True
        with standing_still():
            return jitted(*args)

    return timed


def _own(player: Player, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {name: parameters[name] for name in player.names}


def _finite(tree: Any) -> bool:
    if isinstance(tree, np.ndarray):
        return bool(np.isfinite(tree).all())
    return all(bool(np.isfinite(np.asarray(leaf)).all()) for leaf in jax.tree.leaves(tree))


def _mapped(function: Callable[..., Any], left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    """Apply a function to pairs of arrays; JAX is asked only for trees that are more than arrays."""
    found = {}
    for name, value in right.items():
        if isinstance(value, np.ndarray):
            found[name] = function(left[name], value)
        else:
            found[name] = jax.tree.map(function, left[name], value)
    return found


def is_stream(batches: Any) -> bool:
    """Say whether batches come one by one."""
    return not isinstance(batches, RowBatches) and callable(getattr(batches, "epoch", None))


def on_device(tree: Any) -> Any:
    """Return a tree of JAX arrays in the precision that is set now: fractions of any width have its width."""

    def put(leaf: Any) -> Any:
        array = leaf if isinstance(leaf, jax.Array) else np.asarray(leaf)
        return jnp.asarray(array, default_float() if jnp.issubdtype(array.dtype, jnp.floating) else None)

    return jax.tree.map(put, tree)


def default_float() -> Any:
    """Return the type of fractions in the precision that is set now."""
    return np.float64 if is_x64() else np.float32


def evaluator(
    player: Player,
    parameters: Any,
    memory: Any,
    key: Any,
    batches: RowBatches,
    data: Any,
    code: MachineCodeKey,
) -> Callable[[Any, Any], float]:
    """Return a function of parameters and memory: the player's loss on all rows of some batches, with one key for ever."""
    index, weight = batches.indices(0, batches.steps)
    cut = (jnp.asarray(index), jnp.asarray(weight, default_float()))

    def mean(parameters: Any, memory: Any, key: Any, data: Any, index: Any, weight: Any) -> Any:
        def one(i: Any, total: Any) -> Any:
            batch = Batch(jax.tree.map(lambda x: x[index[i]], data), weight[i])
            value, _ = player.loss(parameters, memory, jax.random.fold_in(key, i), batch)
            return total + value * weight[i].sum()

        return jax.lax.fori_loop(0, len(index), one, jnp.zeros(())) / weight.sum()

    run = compiled(code, "held out", "", mean, parameters, memory, key, data, *cut)
    return lambda parameters, memory: float(run(parameters, memory, key, data, *cut))
