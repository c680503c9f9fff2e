"""Summing out discrete variables on plates, in log space: variable elimination where plates are products.

A table has named axes: one a discrete variable (`z`), one for the earlier element of a chain (`z<`), and the plates it is
repeated over. Variables with more plates go first: what is left of a plate is a product over its elements, so its logs are
added. A variable that other nodes index (`mu[c[g]]`) gets their tables added up by index. A chain along its last plate is
eliminated by the forward recursion, one scan. Reference: Obermeyer et al. (2019), Tensor Variable Elimination for Plated
Factor Graphs. Cost: that of elimination on the discrete part, times the plates; a chain of T steps costs T k^2.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log10, prod
from typing import Any

from markovia.errors import TooLarge
from markovia.runtime.libraries import jax, jnp

MOST_ENTRIES = 2**26
EARLIER = "<"


@dataclass(frozen=True)
class Hidden:
    """A discrete variable to be summed out: how many states, its plates, and whether it is a chain along the last one."""

    states: int
    plates: tuple[str, ...]
    chain: bool = False


@dataclass(frozen=True)
class LogTable:
    """Logs with named axes.

    `via` says through which index a variable on a foreign plate is reached: {variable: (index array, plate it is on)}.
    """

    axes: tuple[str, ...]
    logs: Any
    via: Mapping[str, tuple[Any, str]]

    def spread(self, axes: Sequence[str]) -> Any:
        """Return the logs with exactly these axes, of length one where there was none."""
        kept = [a for a in axes if a in self.axes]
        logs = jnp.transpose(self.logs, [self.axes.index(a) for a in kept])
        sizes = dict(zip(kept, logs.shape, strict=True))
        return jnp.reshape(logs, [sizes.get(a, 1) for a in axes])

    def summed(self, plates: set[str]) -> "LogTable":
        """Return the product over the elements of some plates."""
        gone = [i for i, a in enumerate(self.axes) if a in plates]
        if not gone:
            return self
        return LogTable(tuple(a for a in self.axes if a not in plates), jnp.sum(self.logs, gone), self.via)


@dataclass(frozen=True)
class PlateStep:
    """A variable that was eliminated, and the tables that it was summed out of, with its own plates only."""

    name: str
    own: Hidden
    tables: tuple[LogTable, ...]


def eliminate(tables: Sequence[LogTable], hidden: Mapping[str, Hidden], lengths: Mapping[str, int]) -> Any:
    """Return the log of the sum over all hidden variables of the product of all tables.

    Raises
    ------
    TooLarge
        If no order of elimination keeps plates apart, or its tables would be too large.
    """
    left, _ = _elimination(tables, hidden, lengths)
    total = jnp.zeros(())
    for table in left:
        total = total + jnp.sum(table.logs)
    return total


def draw_states(
    key: Any, tables: Sequence[LogTable], hidden: Mapping[str, Hidden], lengths: Mapping[str, int]
) -> dict[str, Any]:
    """Draw all hidden variables together: eliminate them, then draw in the reverse order, each given those drawn before."""
    _, steps = _elimination(tables, hidden, lengths)
    codes: dict[str, Any] = {}
    for step in reversed(steps):
        key, mine = jax.random.split(key)
        name, own = step.name, step.own
        at = [_at_codes(t, codes, hidden, own.plates) for t in step.tables]
        if own.chain:
            time, before = own.plates[-1], name + EARLIER
            pairs = jnp.broadcast_to(
                _product(at, (time, *own.plates[:-1], before, name)),
                (lengths[time], *(lengths[p] for p in own.plates[:-1]), own.states, own.states),
            )
            codes[name] = jnp.moveaxis(_backward_draw(mine, pairs), 0, len(own.plates) - 1)
        else:
            shape = tuple(lengths[p] for p in own.plates)
            logs = jnp.broadcast_to(_product(at, (*own.plates, name)), (*shape, own.states))
            codes[name] = jax.random.categorical(mine, logs, axis=-1)
    return codes


def _elimination(
    tables: Sequence[LogTable], hidden: Mapping[str, Hidden], lengths: Mapping[str, int]
) -> tuple[list[LogTable], list[PlateStep]]:
    left = list(tables)
    remaining = dict(hidden)
    steps = []
    while remaining:
        name = _next(left, remaining, lengths)
        mine = [t for t in left if _mentions(t, name)]
        left = [t for t in left if not _mentions(t, name)]
        own = remaining.pop(name)
        step = PlateStep(name, own, tuple(_native(t, name, own, lengths) for t in mine))
        steps.append(step)
        left.append(_forward(step.tables, name, own) if own.chain else _summed_out(step.tables, name))
    return left, steps


def _at_codes(
    table: LogTable, codes: Mapping[str, Any], hidden: Mapping[str, Hidden], plates: tuple[str, ...]
) -> LogTable:
    """Return a table at the states of variables that are drawn already."""
    for name, code in codes.items():
        if name not in table.axes:
            continue
        if name in table.via:
            code, on = code[table.via[name][0]], plates
        else:
            on = hidden[name].plates
        axes = (name, *(a for a in table.axes if a != name))
        logs = table.spread(axes)
        sizes = dict(zip(axes, logs.shape, strict=True))
        index = jnp.reshape(
            jnp.transpose(code, [on.index(a) for a in axes if a in on]),
            [sizes[a] if a in on else 1 for a in axes],
        )
        picked = jnp.take_along_axis(logs, index, axis=0)[0]
        table = LogTable(axes[1:], picked, {k: v for k, v in table.via.items() if k != name})
    return table


def _backward_draw(key: Any, pairs: Any) -> Any:
    """Draw a chain from its pair tables (time, ..., before, now): filter forwards, draw backwards."""

    def forward(alpha: Any, pair: Any) -> tuple[Any, Any]:
        now = jax.nn.logsumexp(alpha[..., :, None] + pair, axis=-2)
        return now, alpha

    last, alphas = jax.lax.scan(forward, pairs[0, ..., 0, :], pairs[1:])
    keys = jax.random.split(key, pairs.shape[0])
    end = jax.random.categorical(keys[-1], last, axis=-1)

    def back(state: Any, inputs: Any) -> tuple[Any, Any]:
        alpha, pair, mine = inputs
        logs = alpha + jnp.take_along_axis(pair, state[..., None, None], axis=-1)[..., 0]
        before = jax.random.categorical(mine, logs, axis=-1)
        return before, before

    _, earlier = jax.lax.scan(back, end, (alphas, pairs[1:], keys[:-1]), reverse=True)
    return jnp.concatenate([earlier, end[None]])


def _mentions(table: LogTable, name: str) -> bool:
    return name in table.axes or name + EARLIER in table.axes


def _variables(table: LogTable, hidden: Mapping[str, Hidden]) -> set[str]:
    return {a.removesuffix(EARLIER) for a in table.axes} & set(hidden)


def _next(tables: Sequence[LogTable], hidden: Mapping[str, Hidden], lengths: Mapping[str, int]) -> str:
    """Return the variable to eliminate next: its tables touch no variable on the plates that have to be multiplied out."""
    best: tuple[Any, str] | None = None
    for name, own in hidden.items():
        axes: dict[str, int] = {}
        blocked = False
        for table in tables:
            if not _mentions(table, name):
                continue
            rows = {a for a in table.axes if a in lengths}
            extra = rows - set(own.plates)
            for other in _variables(table, hidden) - {name}:
                # the index of a foreign variable runs over the table's plates, which then have to stay
                indexed = other in table.via
                held = (extra or name in table.via) if indexed else set(hidden[other].plates) & extra
                blocked = blocked or bool(held) or (own.chain and hidden[other].chain)
            axes.update({a: n for a, n in zip(table.axes, table.logs.shape, strict=True) if a not in extra})
        if blocked:
            continue
        rank = (-len(own.plates), prod(axes.values()))
        if best is None or rank < best[0]:
            best = rank, name
    if best is None:
        names = ", ".join(map(repr, hidden))
        raise TooLarge(
            f"the discrete variables {names} are coupled across plates, so that summing them out has no cheap order (it "
            f"would take {_joint(hidden, lengths)} configurations); observe one of them, or use a sampler for them"
        )
    if best[0][1] > MOST_ENTRIES:
        raise TooLarge(
            f"summing out {best[1]!r} needs a table of {best[0][1]:,} entries, over {MOST_ENTRIES:,}; observe some of its "
            "neighbours"
        )
    return best[1]


def _joint(hidden: Mapping[str, Hidden], lengths: Mapping[str, int]) -> str:
    digits = sum(log10(h.states) * prod(lengths[p] for p in h.plates) for h in hidden.values())
    return f"10^{digits:.0f}" if digits > 6 else f"{round(10**digits):,}"


def _native(table: LogTable, name: str, own: Hidden, lengths: Mapping[str, int]) -> LogTable:
    """Return a table with the variable's own plates only: others multiplied out, an index added up."""
    extra = {a for a in table.axes if a in lengths} - set(own.plates)
    if name in table.via:
        index, plate = table.via[name]
        rows = [a for a in table.axes if a in lengths and a in extra]
        first = jnp.transpose(
            table.logs,
            [table.axes.index(a) for a in rows] + [i for i, a in enumerate(table.axes) if a not in rows],
        )
        rest = tuple(a for a in table.axes if a not in rows)
        flat = first.reshape(-1, *first.shape[len(rows) :])
        added = jax.ops.segment_sum(flat, jnp.ravel(index), num_segments=lengths[plate])
        via = {k: v for k, v in table.via.items() if k != name}
        return LogTable((plate, *rest), added, via)
    return table.summed(extra)


def _product(tables: Sequence[LogTable], axes: tuple[str, ...]) -> Any:
    total: Any = 0.0
    for table in tables:
        total = total + table.spread(axes)
    return total


def _together(tables: Sequence[LogTable]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(a for t in tables for a in t.axes))


def _links(tables: Sequence[LogTable]) -> dict[str, tuple[Any, str]]:
    return {k: v for t in tables for k, v in t.via.items()}


def _summed_out(tables: Sequence[LogTable], name: str) -> LogTable:
    axes = _together(tables)
    logs = jax.nn.logsumexp(_product(tables, axes), axis=axes.index(name))
    return LogTable(tuple(a for a in axes if a != name), logs, _links(tables))


def _forward(tables: Sequence[LogTable], name: str, own: Hidden) -> LogTable:
    """Sum out a chain along its last plate: alpha_t(k) = unary_t(k) + log sum_j exp(alpha_{t-1}(j) + pair_t(j, k))."""
    time, before = own.plates[-1], name + EARLIER
    together = _together(tables)
    batch = tuple(a for a in together if a not in (time, name, before))
    axes = (time, *batch, before, name)
    logs = _product(tables, axes)
    shape = list(logs.shape)
    shape[-2] = own.states  # a chain whose steps do not look back has no such axis
    logs = jnp.broadcast_to(logs, shape)

    def step(alpha: Any, pair: Any) -> tuple[Any, None]:
        return jax.nn.logsumexp(alpha[..., :, None] + pair, axis=-2), None

    last, _ = jax.lax.scan(step, logs[0, ..., 0, :], logs[1:])
    return LogTable(batch, jax.nn.logsumexp(last, axis=-1), _links(tables))
