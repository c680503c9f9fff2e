"""Markov chains on a density: settings, starting points, segments, checkpoints and what the chains say of themselves.

All chains advance together (vectorised), a segment of draws at a time: one compiled function for any number of draws. The
draws do not depend on where segments end, so that a run that was stopped and resumed from its checkpoint gives the draws of
one that was not. A segment takes about a quarter of a second; between segments the clock is looked at.
"""

import os
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import cache
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.inference.densities.draws.density_engine import STARTS, DensityEngine, check_start
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.markov_chains.diagnostics import ESS_FLOOR, R_HAT_LIMIT, ess, mcse, rhat
from markovia.inference.result import Record
from markovia.optimise.checkpoint import Checkpoint, SavedRun, digest_of, packed, unpacked
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, FromZero, Kind, NumberRange
from markovia.runtime.clock import Clock
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import random_keys

SECONDS = 0.25
ROWS, CELLS = 250, 4_000_000
FIRST = 25
NOWHERE = 1e100
"""The potential energy of a chain that has not moved yet."""
CHECKED = 64
FEW_DIVERGENCES = 0.001
LEAST_EBFMI = 0.2
UNTIMED = {
    "reparameterize",
    "draws",
    "seed",
    "time_limit",
    "progress",
    "target_ess",
    "chain_method",
    "checkpoint",
    "thin",
}
"""Settings that compiled code does not depend on."""


class ChainStep(NamedTuple):
    """What is recorded of a step of a chain."""

    point: Any
    log_density: Any
    acceptance: Any
    diverging: Any
    energy: Any
    steps: Any
    step_size: Any


class ChainKernel(NamedTuple):
    """A transition of one chain, as pure functions.

    Attributes
    ----------
    begin
        `(key, point, log density, gradient, data) -> state`.
    step
        `(state, data) -> state`.
    record
        `state -> Step`.
    """

    begin: Callable[..., Any]
    step: Callable[..., Any]
    record: Callable[[Any], ChainStep]


@dataclass(frozen=True)
class DensityChainDetails:
    """What a run of chains on a density has to say.

    Attributes
    ----------
    chains, draws, warmup
        Chains, draws of each, and steps that were thrown away.
    divergences
        Trajectories whose energy went astray.
    acceptance, step_size, steps
        The mean probability of acceptance, the mean size of a step, and the mean number of gradients a draw.
    r_hat, effective
        The largest R-hat and the smallest effective sample size of the coordinates (of at most 64 of them).
    ebfmi
        The smallest share of energy that a new momentum brings (E-BFMI); below 0.2 the tails are explored too slowly.
    seconds
        Without compiling.
    """

    chains: int
    draws: int
    warmup: int
    divergences: int
    acceptance: float
    step_size: float
    steps: float
    r_hat: float
    effective: float
    ebfmi: float
    seconds: float


@dataclass(frozen=True, kw_only=True)
class DensityChains(DensityEngine):
    """Settings that all Markov chain engines on a density share.

    Parameters
    ----------
    draws, warmup, chains
        Recorded draws and discarded, adapting steps of each chain, and how many chains.
    thin
        Steps from one recorded draw to the next.
    target_ess
        Stop as soon as the smallest effective sample size reaches this; `draws` is then the most.
    chain_method
        "vectorized" runs all chains in one program; "processes" runs each in its own process (by joblib).
    checkpoint
        A file that keeps the sampler's state: a run that is killed goes on from there, and gives the same draws.
    seed, time_limit, progress
        As in `DensityEngine`; the time limit keeps the draws there are.
    """

    draws: Count = 1000
    warmup: FromZero = 1000
    chains: Count = 4
    thin: Count = 1
    target_ess: Annotated[
        float | None, NumberRange(0.0, inf, open="both", said="a number, above 0", none=True)
    ] = None
    chain_method: Literal["vectorized", "processes"] = "vectorized"
    checkpoint: Annotated[str | Path | None, Kind((str, Path), said="the path of a file", none=True)] = None

    advice: ClassVar[str] = "more draws= or warmup= may do"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.checkpoint is not None and self.chain_method == "processes":
            raise InvalidArgument(
                "checkpoint= keeps one state for all chains; leave it out, or chain_method='vectorized'"
            )

    @abstractmethod
    def kernel(self, density: Density) -> ChainKernel:
        """Return the transition on a density; called inside `x64()`."""

    def draw(self, density: Density) -> DensityDraws:
        """Run the chains."""
        with x64(), self._clock((self.warmup + self.draws) * self.chains) as clock:
            keys = random_keys(self.seed, self.chains)
            if self.chain_method == "processes" and self.chains > 1:
                run = _in_processes(self, density, keys)
            else:
                run = _run(self, density, keys, clock)
            seconds = clock.seconds
        return self._drawn(density, run, seconds)

    def settings(self) -> tuple[Any, ...]:
        """Return what compiled code depends on."""
        return (self.name, *[(f.name, getattr(self, f.name)) for f in fields(self) if f.name not in UNTIMED])

    def _drawn(self, density: Density, run: ChainStep, seconds: float) -> DensityDraws:
        points = run.point
        stats = DrawStats(
            run.log_density, run.acceptance, run.diverging, run.energy, run.steps, run.step_size
        )
        chains, draws = points.shape[:2]
        looked = [*_coordinates(points), run.log_density]
        r_hat = max(rhat(x) for x in looked)
        effective = min(ess(x) for x in looked)
        error = max([mcse(x) / sd for x in looked if (sd := float(x.std())) > 0], default=0.0)
        details = DensityChainDetails(
            chains,
            draws,
            self.warmup,
            stats.divergences,
            float(run.acceptance.mean()),
            float(run.step_size.mean()),
            float(run.steps.mean()),
            r_hat,
            effective,
            ebfmi(run.energy),
            seconds,
        )
        wrong = self._complaints(details)
        record = Record(
            converged=not wrong,
            iterations=chains * (draws + self.warmup),
            error=error,
            advice=f"{' and '.join(wrong)}; {self._cure(details)}" if wrong else "",
            details=details,
        )
        return DensityDraws(points, constrained(density, points), stats, record)

    def _complaints(self, found: DensityChainDetails) -> list[str]:
        wrong = []
        if found.divergences > FEW_DIVERGENCES * found.chains * found.draws:
            wrong.append(f"{found.divergences:,} of {found.chains * found.draws:,} trajectories diverged")
        if found.r_hat > R_HAT_LIMIT:
            wrong.append(f"the chains disagree (R-hat {found.r_hat:.3g})")
        if found.effective < ESS_FLOOR:
            wrong.append(f"the draws are worth {found.effective:.0f} independent ones")
        if found.ebfmi < LEAST_EBFMI:
            wrong.append(f"the tails are explored slowly (E-BFMI {found.ebfmi:.2f})")
        return wrong

    def _cure(self, found: DensityChainDetails) -> str:
        return self.advice


def ebfmi(energy: Array) -> float:
    """Return the smallest estimated Bayesian fraction of missing information of some chains of energies.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> 1.8 < ebfmi(rng.normal(size=(2, 5000))) < 2.2  # independent energies
    True
    """
    if energy.shape[1] < 4:
        return inf
    spread = energy.var(axis=1)
    moved = (np.diff(energy, axis=1) ** 2).mean(axis=1)
    return float(np.where(spread > 0, moved / np.where(spread > 0, spread, 1.0), inf).min())


def _coordinates(points: Array) -> list[Array]:
    size = points.shape[2]
    return [points[:, :, i] for i in np.unique(np.linspace(0, size - 1, min(size, CHECKED)).astype(int))]


def _in_processes(engine: DensityChains, density: Density, keys: Any) -> ChainStep:
    from joblib import Parallel, delayed

    jobs = Parallel(n_jobs=min(len(keys), os.cpu_count() or 1))
    parts: list[ChainStep] = jobs(delayed(_alone)(engine, density, key) for key in keys)
    least = min(len(part.log_density[0]) for part in parts)
    return ChainStep(*[np.concatenate([x[:, :least] for x in column]) for column in zip(*parts, strict=True)])


def _alone(engine: DensityChains, density: Density, key: Any) -> ChainStep:
    """Run one chain in this process."""
    one = replace(engine, chains=1, chain_method="vectorized", progress=False)
    with x64(), one._clock(0) as clock:
        return _run(one, density, key[None], clock)


def _run(engine: DensityChains, density: Density, keys: Any, clock: Clock) -> ChainStep:
    """Run chains in segments until there are enough draws, or the clock says stop; inside `x64()`."""
    data = as_data(density)
    kernel = cache(lambda: engine.kernel(density))  # made only where something has to be traced
    room = max(1, min(ROWS, CELLS // max(1, len(keys) * density.size)))

    def begin(keys: Any, data: Any) -> Any:
        """Put chains at starting points as if they were very improbable: their first step then takes them anywhere else.

        No gradient is needed here, which would take as long to compile as that of the steps.
        """
        pairs = jax.vmap(jax.random.split)(keys)
        points = jax.vmap(lambda key: jnp.asarray(density.start(key, data), jnp.float64))(pairs[:, 0])
        still = jnp.zeros((len(keys), density.size))
        state = jax.vmap(kernel().begin, (0, 0, 0, 0, None))(
            pairs[:, 1], points, jnp.full(len(keys), -NOWHERE), still, data
        )
        return state, points

    def segment(state: Any, rows: Any, thin: Any, data: Any) -> Any:
        step = jax.vmap(kernel().step, (0, None))
        record = jax.vmap(kernel().record)
        shapes = jax.eval_shape(record, state)
        space = jax.tree.map(lambda s: jnp.zeros((room, *s.shape), s.dtype), shapes)

        def row(i: Any, carry: Any) -> Any:
            state, space = carry
            state = jax.lax.fori_loop(0, thin, lambda _, s: step(s, data), state)
            return state, jax.tree.map(lambda all_, one: all_.at[i].set(one), space, record(state))

        return jax.lax.fori_loop(0, rows, row, (state, space))

    settings = (*engine.settings(), len(keys))
    count = jnp.asarray(1)
    starts = compiled(density, "begin", settings, begin, keys, data, once=True)
    file = _checkpoint(engine, density, keys)
    state, _ = starts(keys, data)
    advance = compiled(density, "segment", (*settings, room), segment, state, count, count, data)
    state, kept, warm = _resumed(file.read(), state)
    if not warm and not kept:
        state = _set_out(density, engine, keys, data, starts, advance, state)
    done = sum(len(part.log_density) for part in kept)
    size, enough = min(FIRST, room), False
    clock.advance((warm + done) * len(keys))
    while (warm < engine.warmup or done < engine.draws) and not enough and not clock.over():
        left = engine.warmup - warm if warm < engine.warmup else engine.draws - done
        rows, thin = min(size, left), 1 if warm < engine.warmup else engine.thin
        began = perf_counter()
        state, space = advance(state, jnp.asarray(rows), jnp.asarray(thin), data)
        found = jax.tree.map(lambda x, rows=rows: np.asarray(x)[:rows], space)
        took = perf_counter() - began
        if warm < engine.warmup:
            warm += rows
        else:
            kept.append(found)
            done += rows
            enough = engine.target_ess is not None and _worth(kept) >= engine.target_ess
        _store(file, state, kept, warm)
        clock.advance(rows * len(keys))
        size = int(min(room, max(1, rows * min(4.0, SECONDS / max(took, 1e-6)))))
    if not done:
        if clock.reason == "interrupted":
            raise KeyboardInterrupt
        raise Unanswered(
            f"the time was over after {warm:,} of {engine.warmup:,} steps of warm-up, before the first draw; "
            "give a longer time_limit=, or fewer warmup= steps"
        )
    joined = ChainStep(*[np.concatenate(column) for column in zip(*kept, strict=True)])
    return ChainStep(*[np.ascontiguousarray(np.moveaxis(x, 0, 1)) for x in joined])


def _set_out(
    density: Density, engine: DensityChains, keys: Any, data: Any, starts: Any, advance: Any, state: Any
) -> Any:
    """Take the first step of each chain; one that finds no finite density starts again somewhere else."""
    one = jnp.asarray(1)
    for attempt in range(STARTS):
        moved, space = advance(state, one, one, data)
        away = np.asarray(space.log_density)[0] > -NOWHERE / 2
        if away.all():
            return moved
        fresh = jax.vmap(jax.random.fold_in, (0, None))(keys, attempt + 1)
        again, points = starts(fresh, data)

        def chosen(new: Any, old: Any, away: Any = away) -> Any:
            return jnp.where(away.reshape(-1, *[1] * (new.ndim - 1)), old, new)

        state = jax.tree.map(chosen, again, moved)
    check_start(density, np.asarray(points), away, engine.name)
    return moved


def _worth(kept: list[ChainStep]) -> float:
    """Return the smallest effective sample size so far."""
    points = np.moveaxis(np.concatenate([part.point for part in kept]), 0, 1)
    return min([ess(x) for x in _coordinates(points)], default=inf) if points.shape[1] >= 20 else 0.0


def _checkpoint(engine: DensityChains, density: Density, keys: Any) -> Checkpoint:
    """Return the file of this run: of these settings, this density, its data and keys."""
    if engine.checkpoint is None:
        return Checkpoint(None)
    key = density.key if isinstance(density.key, str) else ""
    leaves = map(np.asarray, jax.tree.leaves((keys, density.data)))
    return Checkpoint(
        engine.checkpoint, digest_of(engine.settings(), engine.thin, density.size, key, *leaves)
    )


def _resumed(saved: SavedRun | None, state: Any) -> tuple[Any, list[ChainStep], int]:
    """Return the state, the draws and the warm-up steps of a file; those given, none and 0 where there is none."""
    if saved is None:
        return state, [], 0
    warm = int(saved.values["warm"])
    if not saved.values["drawn"]:
        return unpacked("state", saved.arrays, state), [], warm
    draws = ChainStep(*[saved.arrays[f"draws.{i}"] for i in range(len(ChainStep._fields))])
    return unpacked("state", saved.arrays, state), [draws], warm


def _store(file: Checkpoint, state: Any, kept: list[ChainStep], warm: int) -> None:
    if file.path is None:
        return
    draws = [np.concatenate(column) for column in zip(*kept, strict=True)]
    file.write(packed("state", state) | packed("draws", draws), {"warm": warm, "drawn": bool(kept)})
