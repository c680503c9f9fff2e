"""Answers about sequences whose regimes switch: which arithmetic, how many paths, and each sequence at its own length."""

from collections.abc import Callable
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any

import numpy as np

from markovia.inference.sequences.padded import padded
from markovia.inference.sequences.switching_filter import (
    Back,
    Forward,
    Method,
    RegimeNoise,
    Regimes,
    filtered,
    smoothed,
    summed,
)
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax

MOST_PATHS = 2**16
PLAIN_STEPS = 4000
"""Up to so many steps NumPy is done before JAX has compiled."""
PLAIN_PARTICLE_STEPS = 100_000


class ImpossibleSequenceError(Exception):
    """No regime can have what was observed of `sequence`, or a covariance is singular."""

    def __init__(self, sequence: int) -> None:
        super().__init__(sequence)
        self.sequence = sequence


def possible_paths(start: Array, moves: Array, steps: int, most: int = MOST_PATHS) -> Ints | None:
    """Return the paths of regimes (paths, steps) with a probability, in order; None for more than `most`.

    A path that cannot go on does so by regime 0, since what is known before is wanted as well.

    Examples
    --------
    >>> with np.errstate(divide="ignore"):
    ...     possible_paths(np.log([0.5, 0.5]), np.log([[0.9, 0.1], [0.0, 1.0]]), 3).tolist()
    [[0, 0, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]]
    """
    now = np.flatnonzero(np.isfinite(start)) if np.isfinite(start).any() else np.zeros(1, dtype=np.int64)
    kept = [(np.arange(len(now)), now)]
    for t in range(1, steps):
        go = np.isfinite(moves if moves.ndim == 2 else moves[t])[now]
        go[~go.any(axis=1), 0] = True
        origin, now = np.nonzero(go)
        if len(now) > most:
            return None
        kept.append((origin, now))
    found = np.empty((len(now), steps), dtype=np.int64)
    at = np.arange(len(now))
    for t in range(steps - 1, -1, -1):
        origin, regimes = kept[t]
        found[:, t], at = regimes[at], origin[at]
    return found


@lru_cache(maxsize=64)
def _compiled(answer: Callable[..., Any], **fixed: Any) -> Callable[..., Any]:
    import jax.numpy as jnp

    program: Callable[..., Any] = jax.jit(partial(answer, **fixed, xp=jnp))
    return program


def _arithmetic(answer: Callable[..., Any], plain: bool, **fixed: Any) -> Callable[..., Any]:
    """Return a function in NumPy or compiled by JAX that returns arrays of NumPy."""
    if plain:

        def run(*given: Any) -> Any:
            with np.errstate(all="ignore"):
                return answer(*given, **fixed, xp=np)
    else:

        def run(*given: Any) -> Any:
            with x64():
                return jax.tree.map(np.array, _compiled(answer, **fixed)(*given))

    return run


def filter_runs(
    model: Regimes,
    rows: Array,
    offsets: Ints,
    method: Method,
    particles: int,
    rng: np.random.Generator,
) -> list[Forward]:
    """Filter sequences whose rows lie one after the other."""
    found: list[Forward] = _runs(filtered, model, rows, offsets, method, particles, 0, rng, 1)
    return found


def smoother_runs(
    model: Regimes,
    rows: Array,
    offsets: Ints,
    method: Method,
    particles: int,
    paths: int,
    rng: np.random.Generator,
    times: int = 1,
) -> list[Back]:
    """Smooth sequences; `times` says how often it will be done, since a compiler is worth it for many."""
    found: list[Back] = _runs(smoothed, model, rows, offsets, method, particles, paths, rng, times)
    return found


def _runs(
    answer: Callable[..., Any],
    model: Regimes,
    rows: Array,
    offsets: Ints,
    method: Method,
    particles: int,
    paths: int,
    rng: np.random.Generator,
    times: int,
) -> list[Any]:
    lengths = np.diff(offsets)
    drawn = method == "rao-blackwell"
    work = int(lengths.max()) * times
    plain = work <= PLAIN_STEPS and (
        not drawn or work * len(lengths) * max(particles, paths) <= PLAIN_PARTICLE_STEPS
    )
    y = padded(rows, offsets)
    longest, n = int(lengths.max()), model.mean.shape[1]
    # drawn for the steps that there are, so that the arithmetic does not change the numbers
    shape = (len(lengths), longest)
    noise = RegimeNoise(
        rng.random(shape) if drawn else np.zeros(shape),
        rng.random((*shape, paths if drawn else 0)),
        rng.normal(size=(*shape, paths if drawn else 0, n)),
    )
    if plain:
        y = y[:, :longest]
    else:
        noise = RegimeNoise(*(_filled(part, y.shape[1]) for part in noise))
    if model.moves.ndim == 4:
        model = model._replace(moves=_filled(model.moves, y.shape[1]))
    run = _arithmetic(answer, plain, method=method, particles=particles if drawn else 0)
    found = _checked(lambda: run(model, y, lengths, noise))
    timed = 6 if answer is filtered else 3
    return [
        type(found)(*(part[i, :T] for part in found[:timed]), *(_at(part, i) for part in found[timed:]))
        for i, T in enumerate(lengths.tolist())
    ]


def _filled(part: Array, steps: int) -> Array:
    """Return an array with zeros after its last steps, on the second axis."""
    return np.pad(part, [(0, 0), (0, steps - part.shape[1]), *[(0, 0)] * (part.ndim - 2)])


def _at(part: Any, i: int) -> Any:
    if isinstance(part, tuple):
        own = [_at(one, i) for one in part]
        return type(part)(*own) if hasattr(part, "_fields") else tuple(own)
    return None if part is None else part[i]


def _checked(run: Callable[[], Any]) -> Any:
    try:
        found = run()
    except np.linalg.LinAlgError:
        raise ImpossibleSequenceError(0) from None
    if not np.isfinite(found.log_prob).all():
        raise ImpossibleSequenceError(int(np.argmin(np.isfinite(found.log_prob))))
    return found


def all_paths(
    model: Regimes, rows: Array, offsets: Ints, most: int = MOST_PATHS
) -> list[tuple[Forward, Back] | None]:
    """Sum over all paths of each sequence; None for those that have too many."""
    found: list[tuple[Forward, Back] | None] = []
    for i, (a, b) in enumerate(pairwise(offsets.tolist())):
        start = model.start if model.start.ndim == 1 else model.start[i]
        moves = model.moves if model.moves.ndim == 2 else model.moves[i, : b - a]
        paths = possible_paths(start, moves, b - a, most)
        if paths is None:
            found.append(None)
            continue
        own = model._replace(start=start[None], moves=moves if moves.ndim == 2 else moves[None])
        run = _arithmetic(summed, b - a <= PLAIN_STEPS)
        try:
            forward, back = run(own, rows[None, a:b], paths[None])
        except np.linalg.LinAlgError:
            raise ImpossibleSequenceError(i) from None
        if not np.isfinite(back.log_prob).all():
            raise ImpossibleSequenceError(i)
        found.append((_at(forward, 0), _at(back, 0)))
    return found
