"""Forward-backward and Viterbi of hidden chains parallel in time: associative scans in JAX, for a GPU and long sequences.

A sequence is cut into stretches. The products of their step matrices are found side by side, an associative scan over those
tells where each stretch begins, and all stretches are then run at once (Hassan, Sarkka and Garcia-Fernandez 2021). Products
have rows that add up to one and the logarithms of what they did; going back, steps are p(z_t-1 | z_t, x up to t-1), which
need no scale. Work: steps times states cubed; memory: steps times states.

Each stretch must end where the next one began, and what fell below the range of numbers may nowhere matter; sequences for
which that does not hold are left to the sequential sums.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.sequences.hidden_chain import FilteredChain, HiddenChain, Observed
from markovia.inference.sequences.padded import padded_length
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

SMALL = 1e-140
"""Shares of states below this count as lost."""
MATTERS = 1e-12
"""The share of all that lost mass may have."""
FLOOR = 1e-300
"""The least density of an observation that is possible, over the greatest one."""


class Stretches(NamedTuple):
    """One sequence in stretches: `tables (m + 1, k, k)`, the last one staying; `dens (n, steps, k)`, `moves (n, steps)`."""

    start: Any
    tables: Any
    dens: Any
    moves: Any


class ChainPasses(NamedTuple):
    """Filtered and smoothed states and what is expected before, each (n, steps, k); log p below the tops; all is well."""

    now: Any
    ahead: Any
    smoothed: Any
    log_prob: Any
    well: Any


def _moved(rows: Any, tables: Any, move: Any) -> Any:
    """Return rows (n, ..., k) of each stretch, each moved on by its own table."""
    if len(tables) == 2:
        stays = jnp.expand_dims(move == 1, tuple(range(1, rows.ndim)))
        return jnp.where(stays, rows, rows @ tables[0])
    return jnp.einsum("n...i,nij->n...j", rows, tables[move])


def _whole(rows: Any) -> tuple[Any, Any]:
    """Return rows that add up to one, and the logarithms of their sums."""
    total = rows.sum(axis=-1)
    return rows / jnp.where(total > 0.0, total, 1.0)[..., None], jnp.log(total)


def _then(one: Any, two: Any) -> Any:
    """Compose products of neighbouring stretches."""
    (R, r), (R2, r2) = one, two
    tops = jnp.where(R > 0.0, r2[..., None, :], -jnp.inf).max(axis=-1)
    tops = jnp.where(tops > -jnp.inf, tops, 0.0)
    lifted = R * jnp.where(R > 0.0, jnp.exp(jnp.minimum(r2[..., None, :] - tops[..., None], 0.0)), 0.0)
    rows, logs = _whole(lifted @ R2)
    return rows, r + tops + logs


def _scanned(combine: Callable[[Any, Any], Any], elements: Any, *, reverse: bool = False) -> Any:
    """Return all products of elements from the first one on, or from the last: an associative scan by doubling.

    It has a round for each doubling and one body for all of them, which compiles far quicker than JAX's own scan; there are
    few elements, so that its logarithmically greater work does not count.
    """
    n = jax.tree.leaves(elements)[0].shape[0]
    place = jnp.arange(n)[::-1] if reverse else jnp.arange(n)

    def doubled(r: Any, kept: Any) -> Any:
        gap = 1 << r
        others = jax.tree.map(lambda x: jnp.roll(x, -gap if reverse else gap, axis=0), kept)

        def chosen(new: Any, old: Any) -> Any:
            return jnp.where(jnp.expand_dims(place >= gap, tuple(range(1, new.ndim))), new, old)

        return jax.tree.map(chosen, combine(others, kept), kept)

    return jax.lax.fori_loop(0, (n - 1).bit_length(), doubled, elements)


def _forward(model: Stretches) -> tuple[Any, Any, Any, Any]:
    """Return filtered states, those expected before, log p below the tops, and whether all is well."""
    n, _, k = model.dens.shape
    steps = (jnp.swapaxes(model.dens, 0, 1), model.moves.T)

    def product(kept: Any, step: Any) -> Any:
        (R, r), (b, move) = kept, step
        rows, logs = _whole(_moved(R, model.tables, move) * b[:, None, :])
        return (rows, r + logs), None

    none = (jnp.broadcast_to(jnp.eye(k), (n, k, k)), jnp.zeros((n, k)))
    R, r = _scanned(_then, jax.lax.scan(product, none, steps)[0])
    lifted = jnp.where(model.start > 0.0, r, -jnp.inf)
    lifted = model.start * jnp.exp(lifted - jnp.maximum(lifted.max(axis=-1, keepdims=True), -1e300))
    begin = _whole(jnp.einsum("ni,nij->nj", lifted, R))[0]
    begin = jnp.concatenate([model.start[None], begin])

    def filtering(kept: Any, step: Any) -> Any:
        (a, lost, well), (b, move) = kept, step
        ahead, gone = _moved(a, model.tables, move), _moved(lost, model.tables, move)
        here, missed = ahead * b, gone * b
        dropped = (ahead + gone > 0.0) & (b > 0.0) & (here < SMALL)
        missed = jnp.where(dropped, jnp.maximum(missed, SMALL), missed)
        total = here.sum(axis=-1)
        well &= missed.sum(axis=-1) <= MATTERS * total
        scale = jnp.where(total > 0.0, total, 1.0)[:, None]
        return (here / scale, missed / scale, well & (total > 0.0)), (here / scale, ahead, jnp.log(total))

    # what stretches before may have lost of states that have next to nothing; none may end with more of those, and of the
    # others a share that adds up over all stretches to what does not matter
    most = 1e10 * SMALL
    begun, unknown = begin[:-1], jnp.where(begin[:-1] < SMALL, most, 0.0)
    (end, lost, well), (now, ahead, logs) = jax.lax.scan(
        filtering, (begun, unknown, jnp.ones(n, dtype=bool)), steps
    )
    meets = jnp.abs(end - begin[1:]).max() < 1e-10
    few = lost <= jnp.where(end < SMALL, most, MATTERS / n * end)
    well = well.all() & meets & few.all()
    return jnp.swapaxes(now, 0, 1), jnp.swapaxes(ahead, 0, 1), logs.sum(), well


def _backward(model: Stretches, now: Any, ahead: Any) -> Any:
    """Return smoothed states."""
    n, _, k = now.shape
    flat = now.reshape(-1, k)
    before = jnp.concatenate([model.start[None], flat[:-1]]).reshape(now.shape)
    steps = (jnp.swapaxes(before, 0, 1), jnp.swapaxes(ahead, 0, 1), model.moves.T)

    def back(rows: Any, step: Any) -> Any:
        """Return rows (n, ..., k) over this state as rows over the one before."""
        past, ahead, move = step
        rows = jnp.swapaxes(rows, 0, -2) if rows.ndim == 3 else rows
        ratio = rows * jnp.where(ahead > 0.0, 1.0 / jnp.where(ahead > 0.0, ahead, 1.0), 0.0)
        rows = past * _moved_back(ratio, model.tables, move)
        return jnp.swapaxes(rows, 0, -2) if rows.ndim == 3 else rows

    def product(rows: Any, step: Any) -> Any:
        return back(rows, step), None

    none = jnp.broadcast_to(jnp.eye(k), (n, k, k))  # rows (n, k): what each last state says about the first
    S = jax.lax.scan(product, none, steps, reverse=True)[0]
    later = _scanned(lambda two, one: two @ one, S, reverse=True)
    last = jnp.concatenate([jnp.einsum("i,nij->nj", flat[-1], later[1:]), flat[-1][None]])
    _, found = jax.lax.scan(lambda rows, step: (back(rows, step), rows), last, steps, reverse=True)
    return jnp.swapaxes(found, 0, 1)


def _moved_back(rows: Any, tables: Any, move: Any) -> Any:
    """Return rows (..., n, k), each moved back by its own table."""
    if len(tables) == 2:
        return jnp.where((move == 1)[:, None], rows, rows @ tables[0].T)
    return jnp.einsum("...nj,nij->...ni", rows, tables[move])


@cache
def _program(smoothing: bool) -> Callable[[Stretches], ChainPasses]:
    def run(model: Stretches) -> ChainPasses:
        now, ahead, log_prob, well = _forward(model)
        return ChainPasses(now, ahead, _backward(model, now, ahead) if smoothing else None, log_prob, well)

    return jax.jit(run)


@cache
def _decoder() -> Callable[[Stretches], tuple[Any, Any]]:
    """Return a compiled Viterbi of one sequence, with logarithms in the place of numbers: its path and log p."""

    def best(rows: Any, tables: Any, move: Any) -> tuple[Any, Any]:
        """Return the best sums over the state before, and that state."""
        sums = rows[..., :, None] + jnp.expand_dims(tables[move], tuple(range(1, rows.ndim - 1)))
        return sums.max(axis=-2), sums.argmax(axis=-2)

    def run(model: Stretches) -> tuple[Any, Any]:
        n, _, k = model.dens.shape
        steps = (jnp.swapaxes(model.dens, 0, 1), model.moves.T)

        def product(rows: Any, step: Any) -> Any:
            return best(rows, model.tables, step[1])[0] + step[0][:, None, :], None

        none = jnp.broadcast_to(jnp.where(jnp.eye(k) > 0, 0.0, -jnp.inf), (n, k, k))
        whole = jax.lax.scan(product, none, steps)[0]

        def joined(one: Any, two: Any) -> Any:
            return (one[..., :, :, None] + two[..., None, :, :]).max(axis=-2)

        ends = (model.start[:, None] + _scanned(joined, whole)).max(axis=1)

        def forward(rows: Any, step: Any) -> Any:
            found, came = best(rows, model.tables, step[1])
            return found + step[0], came

        _, came = jax.lax.scan(forward, jnp.concatenate([model.start[None], ends[:-1]]), steps)

        def chase(states: Any, came: Any) -> Any:
            return jnp.take_along_axis(came, states, axis=1), states

        # where each last state of a stretch came from in the stretch before
        roots = jax.lax.scan(chase, jnp.broadcast_to(jnp.arange(k), (n, k)), came, reverse=True)[0]
        paths = _scanned(lambda two, one: jnp.take_along_axis(one, two, axis=-1), roots, reverse=True)
        last = ends[-1].argmax()
        tips = jnp.concatenate([paths[1:, last], last[None]])
        _, path = jax.lax.scan(chase, tips[:, None], came, reverse=True)
        return path[..., 0].T, ends[-1].max()

    return jax.jit(run)


def _stretches(
    start: Array, tables: Array, moves: Ints, dens: Array, stay: Array, neutral: float
) -> Stretches:
    """Return a sequence in stretches; steps that fill up the last one stay where they are."""
    T, k = dens.shape
    length = max(8, 1 << round(np.log2(np.sqrt(T) / 4 + 1)))
    n = padded_length(-(-T // length))
    rows = np.full((n * length, k), neutral)
    rows[:T] = dens
    which = np.full(n * length, len(tables))
    which[1:T] = 0 if len(moves) == 1 else moves[1:]
    every = np.concatenate([tables, stay[None]])
    return Stretches(start, every, rows.reshape(n, length, k), which.reshape(n, length))


def _pieces(chain: HiddenChain, seen: Observed) -> Iterator[tuple[int, int, int, Ints]]:
    """Yield the range of each sequence and which tables lead into its steps."""
    for s, (a, b) in enumerate(zip(seen.offsets[:-1].tolist(), seen.offsets[1:].tolist(), strict=True)):
        yield s, a, b, chain.moves if len(chain.moves) == 1 else chain.moves[a:b]


def _check(chain: Any) -> None:
    if not isinstance(chain, HiddenChain):
        raise UnsupportedModel(
            "visits with explicit durations are not run in parallel; leave out parallel='time'"
        )


def parallel_sums(
    chain: HiddenChain, seen: Observed, *, smoothing: bool
) -> tuple[FilteredChain, Array | None]:
    """Return filtered and smoothed states, sequences one after the other and each parallel in time."""
    _check(chain)
    n, k, count = len(seen.codes), len(chain.start), len(seen.offsets) - 1
    found = FilteredChain(np.empty((n, k)), np.empty((n, k)), np.empty(count), np.full(count, -1))
    smoothed = np.empty((n, k)) if smoothing else None
    dens, tops = seen.scaled
    dens = np.where(seen.logs > -np.inf, np.maximum(dens, FLOOR), 0.0)
    slow = bool(((chain.tables > 0.0) & (chain.tables < SMALL)).any())
    for s, a, b, moves in _pieces(chain, seen):
        codes = seen.codes[a:b]
        model = _stretches(chain.start, chain.tables, moves, dens[codes], np.eye(k), 1.0)
        if not slow:
            with x64():
                here = _program(smoothing)(model)
                if bool(here.well):
                    found.now[a:b], found.ahead[a:b] = (
                        np.asarray(x).reshape(-1, k)[: b - a] for x in (here.now, here.ahead)
                    )
                    found.log_probs[s] = float(here.log_prob) + tops[codes].sum()
                    if smoothed is not None:
                        smoothed[a:b] = np.asarray(here.smoothed).reshape(-1, k)[: b - a]
                    continue
        one = Observed(seen.logs, codes, np.array([0, b - a]))
        alone = HiddenChain(chain.start, chain.tables, moves if len(moves) > 1 else None)
        part = alone.filter(one)
        found.now[a:b], found.ahead[a:b], found.log_probs[s] = part.now, part.ahead, part.log_probs[0]
        found.stuck[s] = part.stuck[0] + a if part.stuck[0] >= 0 else part.stuck[0]
        if smoothed is not None and part.stuck[0] < 0:
            smoothed[a:b] = alone.smooth(one).sums
    return found, smoothed


def parallel_best(chain: HiddenChain, seen: Observed) -> tuple[Ints, Array]:
    """Return a most probable path of each sequence, all in one array, and log p(path, seen)."""
    _check(chain)
    paths, log_probs = np.empty(len(seen.codes), dtype=np.int64), np.empty(len(seen.offsets) - 1)
    k = len(chain.start)
    with np.errstate(divide="ignore"):
        stay, start, tables = np.log(np.eye(k)), np.log(chain.start), np.log(chain.tables)
    for s, a, b, moves in _pieces(chain, seen):
        model = _stretches(start, tables, moves, seen.logs[seen.codes[a:b]], stay, 0.0)
        with x64():
            path, log_prob = _decoder()(model)
            paths[a:b], log_probs[s] = np.asarray(path).ravel()[: b - a], float(log_prob)
    return paths, log_probs
