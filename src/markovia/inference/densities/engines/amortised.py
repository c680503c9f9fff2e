"""Proposals of a model's guide, weighed row by row: posteriors of a trained model without any search.

References: Burda, Grosse and Salakhutdinov (2016) for the weights; Vehtari, Simpson, Gelman, Yao and Gabry (2024) for the
tail index that says whether to trust them. Rows are independent given the parameters, so each has weights of its own and is
resampled by itself: joint weights of many rows would leave one draw. Cost: one pass through guide and model a proposal.
"""

from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, ClassVar

import numpy as np

from markovia.errors import MarkoviaError, Unanswered
from markovia.inference.densities.draws.density_engine import DensityEngine, log_densities
from markovia.inference.densities.engines.nuts import NUTS
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.densities.program.program import Program, program_of
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.inference.engine import without_cure
from markovia.inference.problem import Problem
from markovia.inference.result import LogMass, Record
from markovia.inference.weighted_draws.weight_diagnostics import FEWEST_EFFECTIVE, MAX_TAIL_INDEX, pareto_k
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count
from markovia.runtime.double_precision import x64
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

CHAINS = 4
CELLS = 20_000
"""Rows times proposals that are computed at once."""


@dataclass(frozen=True)
class RowWeights:
    """What the weights of proposals say of each row.

    Attributes
    ----------
    log_evidence
        Of each row, the log of the mean weight, whose expectation is a lower bound on the log evidence.
    error
        Standard errors of these.
    effective_draws
        How many independent draws of its posterior a row's proposals are worth.
    pareto_k
        The tail index of each row's weights.
    proposals
        How many weights a row has: of fewer than 2,000 a tail index somewhat below 0.7 is not to be trusted, either.
    """

    log_evidence: Array
    error: Array
    effective_draws: Array
    pareto_k: Array
    proposals: int

    @property
    def bad(self) -> Any:
        """Rows that are not to be trusted."""
        most = min(MAX_TAIL_INDEX, 1.0 - 1.0 / np.log10(max(self.proposals, 11)))
        return (self.pareto_k > most) | (self.effective_draws < FEWEST_EFFECTIVE)


@dataclass(frozen=True, kw_only=True)
class Amortised(DensityEngine):
    """Draw from the guide, and resample each row by its weights.

    Parameters
    ----------
    proposals
        Draws of the guide a row.
    draws
        Draws that are kept of each row.
    rescue
        Whether rows whose weights are bad are drawn again, by NUTS; "auto" does it.
    seed, time_limit, progress
        As in `NUTS`.
    """

    proposals: Count = 1000
    draws: Count = 1000
    rescue: bool = False

    name: ClassVar[str] = "amortised"
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "best", "sample"})

    def _program(self, problem: Problem) -> Program:
        self._refuse_tables(problem)
        if not problem.guides:
            raise without_cure(
                Unanswered, f"engine {self.name!r} draws from guides, and the model has none (m.guide(...))"
            )
        return program_of(problem, "none", proposed=problem.guides)

    def draw(self, density: Density) -> DensityDraws:
        """Draw, weigh and resample."""
        program: Program = density.source
        rows = RowwiseModel(program.problem, program.problem.guides)
        values, logs = self.weighed(rows, density)
        weights = judged_rows(logs)
        rng = np.random.default_rng(self.seed)
        picked = _resampled(logs, rows.marks, self.draws, rng)
        at = np.arange(logs.shape[1])
        kept = {n: v[picked, at[None]] for n, v in values.items()}
        record = _record(weights, rows.marks, self.proposals)
        numbers = all(np.issubdtype(v.dtype, np.floating) for v in kept.values())  # NUTS draws no states
        if self.rescue and numbers and weights.bad.any():
            record = self._rescued(rows, weights, kept, record)
        with x64():
            data = as_data(density)

            def free(values: Any, data: Any) -> Any:
                return jax.vmap(lambda one: program.free({**program.layout.fixed, **data, **one}))(values)

            points = np.asarray(compiled(density, "amortised points", "", free, kept, data)(kept, data))[None]
        total = LogMass(float(weights.log_evidence.sum()), record)
        heights = log_densities(density, points)
        return DensityDraws(points, constrained(density, points), DrawStats(heights), record, None, total)

    def _rescued(
        self, rows: RowwiseModel, weights: RowWeights, kept: dict[str, Array], record: Record
    ) -> Record:
        """Put draws of NUTS in place of those of rows with bad weights."""
        bad = np.flatnonzero(weights.bad)
        chains = -(-self.draws // CHAINS)
        sampler = NUTS(
            seed=self.seed, draws=chains, chains=CHAINS, time_limit=self.time_limit, progress=self.progress
        )
        program = program_of(rows.some(bad))
        drawn = sampler.draw(program.density)
        for name in kept:
            every = drawn.draws[name]
            every = every.reshape(-1, *every.shape[2:])[: self.draws]
            at = rows.program.layout.sites[name].plates.index(rows.plate)
            kept[name][:, bad] = np.moveaxis(every, at + 1, 1)
        note = f"{len(bad)} of {rows.n_rows} rows drawn by nuts: the guide's weights, and the evidence, are bad there"
        return replace(record, converged=drawn.record.converged, advice=drawn.record.advice, note=note)

    def weighed(
        self, rows: RowwiseModel, density: Density, keep: bool = True
    ) -> tuple[dict[str, Array], Array]:
        """Return proposals, if they are to be kept, and their log weights: an axis of proposals, then rows."""
        with x64():
            parameters = {n: jnp.asarray(density.data[n]) for n in rows.program.layout.parameters}
            arrays = {n: jnp.asarray(v) for n, v in rows.rows.items()}
            chunk = max(1, min(self.proposals, CELLS // rows.n_rows))
            keys = jax.random.split(self._key(), self.proposals)
            marks = jnp.asarray(rows.marks)

            def every(keys: Any, parameters: Any, arrays: Any, marks: Any) -> Any:
                def one(key: Any) -> Any:
                    values, logs = rows.proposals(parameters, arrays, marks, key)
                    return values if keep else {}, logs

                return jax.lax.map(one, keys, batch_size=chunk)

            # constants are part of the code, as other data are not
            settings = (chunk, keep, sha256(described(rows.constants)).hexdigest())
            run = compiled(density, "amortised", settings, every, keys, parameters, arrays, marks)
            values, logs = run(keys, parameters, arrays, marks)
        return {n: np.asarray(v) for n, v in values.items()}, np.asarray(logs)


def judged_rows(logs: Array) -> RowWeights:
    """Return what log weights (proposals, rows) say of each row."""
    top = logs.max(axis=0)
    shares = np.exp(logs - top)
    mean = shares.mean(axis=0)
    effective = shares.sum(axis=0) ** 2 / (shares**2).sum(axis=0)
    error = shares.std(axis=0) / mean / np.sqrt(len(logs))
    # weights of states have no tail: where the largest was drawn several times, it is the largest there is
    bounded = (logs > top - 1e-9).sum(axis=0) > 2
    tails = np.array([-np.inf if b else pareto_k(column) for b, column in zip(bounded, logs.T, strict=True)])
    return RowWeights(top + np.log(mean), error, effective, tails, len(logs))


def _resampled(logs: Array, marks: Array, n: int, rng: np.random.Generator) -> Any:
    """Return n positions of proposals for each row, systematically by its weights and in random order.

    Which are kept depends on the row alone, so that its summaries do; their order makes rows independent of each other.
    """
    shares = np.exp(logs - logs.max(axis=0))
    ladder = np.cumsum(shares / shares.sum(axis=0), axis=0)
    rungs = (np.arange(n)[:, None] + (marks / 2.0**32 + rng.random()) % 1.0) / n
    found = np.stack([np.searchsorted(ladder[:, i], rungs[:, i]) for i in range(logs.shape[1])], axis=1)
    return rng.permuted(np.minimum(found, len(logs) - 1), axis=0)


def _record(weights: RowWeights, marks: Array, proposals: int) -> Record:
    bad = int(weights.bad.sum())
    advice = ""
    if bad:
        advice = (
            f"in {bad} of {len(weights.bad)} rows a few proposals carry most of the weight (Pareto k up to "
            f"{np.max(weights.pareto_k):.2f}, worth {np.min(weights.effective_draws):.1f} draws at least); "
            "try more proposals=, or engine='nuts'"
        )
    errors = np.bincount(np.unique(marks, return_inverse=True)[1], weights.error)  # equal rows err together
    return Record(
        converged=not bad,
        iterations=proposals,
        error=float(np.sqrt((errors**2).sum())),
        advice=advice,
        details=weights,
    )


def amortised_engine(problem: Problem, seed: int | None, time_limit: float | None) -> Amortised | None:
    """Return the engine for a problem whose latent quantities all have guides that can be drawn from; None for others."""
    try:
        RowwiseModel(problem, problem.guides)
    except MarkoviaError:
        return None
    return Amortised(seed=seed, time_limit=time_limit, rescue=True)


def row_log_evidence(problem: Problem, engine: Amortised) -> Array:
    """Return the log evidence of each row: exactly where nothing is proposed, else by the weights of proposals."""
    rows = RowwiseModel(problem, problem.guides)
    density = rows.program.density
    exact = rows.guide is None and not rows.bounded
    _, logs = replace(engine, proposals=1 if exact else engine.proposals).weighed(rows, density, keep=False)
    if rows.bounded:  # draws of a bound are averaged: the mean of their exponentials is nothing
        return np.asarray(logs.mean(axis=0))
    return logs[0] if exact else judged_rows(logs).log_evidence
