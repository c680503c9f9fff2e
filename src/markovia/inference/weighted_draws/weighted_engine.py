"""Base of the engines that answer from independent weighted draws.

The draws come in chunks. Chunk number i has its own random numbers, made from the seed and i, so the answer depends on the
seed and the number of draws only, not on the number of threads. Chunks run on all threads and are added up in order.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

import numpy as np
from numpy.typing import NDArray

from markovia.errors import TooLarge, Unanswered
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.approximate import Approximate
from markovia.inference.flat_graphs.possibility import judged_log_mass
from markovia.inference.impossible_evidence import impossible
from markovia.inference.problem import Problem
from markovia.inference.result import Draws, Record, Tables
from markovia.inference.weighted_draws.resampling import Scheme, resample
from markovia.inference.weighted_draws.sequential_draws import Codes, SequentialSampler
from markovia.inference.weighted_draws.weight_diagnostics import (
    FEWEST_EFFECTIVE,
    MAX_TAIL_INDEX,
    WeightDetails,
    WeightSums,
    summed,
)
from markovia.runtime.array_types import Array
from markovia.runtime.checks import POSITIVE, CountOrNone, TimeLimit, WholeSeed
from markovia.runtime.clock import now
from markovia.runtime.threads import in_parallel

DRAWS = 100_000
MOST_DRAWS = 10**9
NO_ERROR = 1e-9  # where the answer has no spread, more time changes nothing
ROUND = 16  # chunks between two looks at the tolerance
MAX_JOINT = 2**24


@dataclass(frozen=True, kw_only=True)
class WeightedEngine(Approximate):
    """Settings and answers that all of these engines share."""

    draws: CountOrNone = None
    tolerance: Annotated[float | None, replace(POSITIVE, none=True)] = None
    seed: WholeSeed = 0
    time_limit: TimeLimit = None

    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "log_mass", "sample"})
    advice: ClassVar[str] = "try more draws, engine='importance' or 'gibbs'"

    def _sampler(self, problem: Problem, targets: Sequence[str] | None) -> SequentialSampler:
        """Return how to draw what is asked for; None asks for everything."""
        raise NotImplementedError

    # -- questions ---------------------------------------------------------------------------------------------

    def joint(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table over all targets together."""
        variables = tuple(problem.variables[n] for n in targets)
        entries = int(np.prod([len(v) for v in variables], dtype=np.float64))
        if entries > MAX_JOINT:
            raise TooLarge(
                f"the joint table has {entries:,} entries, over {MAX_JOINT:,}; ask for fewer variables"
            )
        if not targets:
            found = self._answer(problem, [], [])
            return Tables([Factor.scalar(1.0)], found.log_mass, found.record)
        return self._answer(problem, targets, [tuple(targets)])

    def marginals(self, problem: Problem, targets: Sequence[str]) -> Tables:
        """Return one normalised table for each target."""
        return self._answer(problem, targets, [(n,) for n in targets])

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw configurations by resampling weighted ones (systematic); at least ten are made for each one kept."""
        sampler = self._sampler(problem, None)
        entropy = int(rng.integers(2**63))
        weighs = self._weighs(sampler)
        size, deadline = (self._pool_size(n), self._deadline()) if weighs else (n, np.inf)
        pool = Pool(sampler, size, entropy, deadline=deadline)
        if n and not (pool.log_weights > -np.inf).any():
            raise self._nothing(problem)
        picked = np.arange(n)
        if weighs:
            picked = rng.permutation(resample(pool.log_weights, n, rng, self._scheme()))
        codes = pool.rows(picked)
        return Draws({m: codes[:, sampler.column[m]].astype(np.int64) for m in problem.free})

    def _deadline(self) -> float:
        return np.inf if self.time_limit is None else now() + self.time_limit

    def _pool_size(self, n: int) -> int:
        return max(10 * n, 1000)

    def _scheme(self) -> Scheme:
        return "systematic"

    # -- inside ------------------------------------------------------------------------------------------------

    def _answer(self, problem: Problem, targets: Sequence[str], groups: Sequence[tuple[str, ...]]) -> Tables:
        begin = now()
        sampler = self._sampler(problem, targets)
        sums = self._run(sampler, groups, begin)
        if sums.positive == 0 and proved_impossible(problem):
            return self._blank(problem, groups, sums, -np.inf)
        if sums.positive == 0:
            return self._blank(problem, groups, sums, np.nan)
        values, errors = self._estimate(problem, sums)
        return Tables(tables_of(problem, groups, values), self._log_mass(sums), self._record(sums, errors))

    def _log_mass(self, sums: WeightSums) -> float:
        return sums.log_mean

    def _estimate(self, problem: Problem, sums: WeightSums) -> tuple[Array, Array]:
        return sums.ratios()

    def _record(self, sums: WeightSums, errors: Array) -> Record:
        """Return what is said of an answer: how many draws they are worth and whether to trust them."""
        details = self._details(sums)
        error = float(errors.max(initial=0.0)) if len(errors) else sums.log_mean_error
        bad = []
        if details.pareto_k > MAX_TAIL_INDEX:
            bad.append(f"a few draws carry most of the weight (Pareto k {details.pareto_k:.2f})")
        if sums.effective < FEWEST_EFFECTIVE:
            bad.append(f"the draws are worth {sums.effective:.1f} independent ones")
        if self.tolerance is not None and error > self.tolerance:
            bad.append(f"the standard error is over the tolerance {self.tolerance:g}")
        advice = f"{' and '.join(bad)}; {self.advice}" if bad else ""
        return Record(converged=not bad, iterations=sums.draws, error=error, advice=advice, details=details)

    def _blank(
        self, problem: Problem, groups: Sequence[tuple[str, ...]], sums: WeightSums, log_mass: float
    ) -> Tables:
        """Return the answer when every weight is zero: nothing is known, and it says so."""
        size = int(sum(np.prod([len(problem.variables[n]) for n in g]) for g in groups))
        tables = [f.normalize() for f in tables_of(problem, groups, np.ones(size))]
        record = Record(
            converged=False,
            iterations=sums.draws,
            error=1.0,
            advice=f"none of {sums.draws:,} draws agrees with the evidence, so nothing is known; {self.advice}",
            details=self._details(sums),
        )
        return Tables(tables, log_mass, record)

    def _details(self, sums: WeightSums) -> WeightDetails:
        return sums.details()

    def _nothing(self, problem: Problem) -> Exception:
        if proved_impossible(problem):
            return impossible(problem, judged_log_mass)
        return Unanswered(
            f"engine {self.name!r} found no configuration that agrees with the evidence; {self.advice}"
        )

    def _weighs(self, sampler: SequentialSampler) -> bool:
        return bool(sampler.factors) or any(s.weigh for s in sampler.steps)

    def _run(self, sampler: SequentialSampler, groups: Sequence[tuple[str, ...]], begin: float) -> WeightSums:
        """Draw until there are enough draws, the time is over or the tolerance is met."""
        count = Counter(sampler.variables, sampler.column, groups)
        limited = self.tolerance is not None or self.time_limit is not None
        most = self.draws if self.draws is not None else MOST_DRAWS if limited else DRAWS
        deadline = np.inf if self.time_limit is None else begin + self.time_limit
        entropy = np.random.SeedSequence(self.seed).entropy
        chunk = sampler.chunk
        chunks = -(-most // chunk)

        def work(i: int, _: None) -> WeightSums | None:
            if i and now() > deadline:
                return None
            seed = np.random.SeedSequence(entropy, spawn_key=(i,))
            return self._tally(count, sampler, min(chunk, most - i * chunk), seed)

        total = WeightSums.none(count.size)
        at = 0
        while at < chunks and (at == 0 or now() < deadline):
            step = min(chunks - at, ROUND)
            for part in in_parallel(work, range(at, at + step), lambda: None):
                total = total if part is None else total.merge(part)
            at += step
            enough, least = (NO_ERROR, min(most, DRAWS)) if self.tolerance is None else (self.tolerance, 0)
            if limited and total.draws >= least and self._error(total) <= enough:
                break
        return total

    def _tally(
        self, count: "Counter", sampler: SequentialSampler, rows: int, seed: np.random.SeedSequence
    ) -> WeightSums:
        return count(*sampler.draw(rows, seed))

    def _error(self, sums: WeightSums) -> float:
        if sums.effective < FEWEST_EFFECTIVE:
            return np.inf
        errors = sums.ratios()[1]
        return float(errors.max()) if len(errors) else sums.log_mean_error


class Pool:
    """Weighted draws of which only the weights are kept; the rows that are wanted are drawn again from their seeds.

    Past the deadline no further chunk is begun, so there may be fewer draws than asked for.
    """

    def __init__(
        self,
        sampler: SequentialSampler,
        draws: int,
        entropy: int | None,
        count: "Counter | None" = None,
        deadline: float = np.inf,
    ) -> None:
        self.sampler = sampler
        self.root = np.random.SeedSequence(entropy).entropy
        self.sizes = [min(sampler.chunk, draws - at) for at in range(0, draws, sampler.chunk)]

        def work(i: int, _: None) -> tuple[Array, WeightSums | None] | None:
            if i and now() > deadline:
                return None
            codes, logs = self._draw(i)
            return logs, None if count is None else count(codes, logs)

        found = in_parallel(work, range(len(self.sizes)), lambda: None)
        self.chunks = [i for i, part in enumerate(found) if part is not None]
        parts = [part for part in found if part is not None]
        self.log_weights = np.concatenate([np.zeros(0), *(logs for logs, _ in parts)])
        self.sums = WeightSums.none(0 if count is None else count.size)
        for _, sums in parts:
            self.sums = self.sums if sums is None else self.sums.merge(sums)

    def rows(self, positions: NDArray[np.int64]) -> Codes:
        """Return the draws at some positions, in that order."""
        ends = np.cumsum([self.sizes[i] for i in self.chunks])
        owner = np.searchsorted(ends, positions, side="right")
        codes = np.empty((len(positions), len(self.sampler.variables)), dtype=np.int32)

        def work(k: int, _: None) -> None:
            mine = np.flatnonzero(owner == k)
            drawn, _logs = self._draw(self.chunks[k])
            codes[mine] = drawn[positions[mine] - (ends[k] - self.sizes[self.chunks[k]])]

        in_parallel(work, [int(k) for k in np.unique(owner)], lambda: None)
        return codes

    def _draw(self, i: int) -> tuple[Codes, Array]:
        return self.sampler.draw(self.sizes[i], np.random.SeedSequence(self.root, spawn_key=(i,)))


class Counter:
    """Adds up the weights of draws by the states of some variables, or of groups of them."""

    def __init__(
        self, variables: Sequence[Variable], column: Mapping[str, int], groups: Sequence[tuple[str, ...]]
    ) -> None:
        columns = [[column[n] for n in g] for g in groups]
        self.cards = [[len(variables[c]) for c in g] for g in columns]
        sizes = [int(np.prod(c)) for c in self.cards]
        self.starts = np.cumsum([0, *sizes]).astype(np.int64)
        self.size = int(self.starts[-1])
        self.columns = columns
        self.single = (
            np.array([c[0] for c in columns], dtype=np.int64) if all(len(c) == 1 for c in columns) else None
        )

    def __call__(self, codes: Codes, log_weights: Array) -> WeightSums:
        """Return the sums of a chunk of draws."""
        top = float(log_weights.max(initial=-np.inf))
        a, b = np.zeros(self.size), np.zeros(self.size)
        if top > -np.inf and self.size:
            weights = np.exp(log_weights - top)
            if self.single is not None:
                from markovia.kernels.sampling.ancestral import tally

                tally(codes, weights, self.single, self.starts, a, b)
            else:
                for group, cards, start in zip(self.columns, self.cards, self.starts, strict=False):
                    at = np.ravel_multi_index([codes[:, c] for c in group], cards)
                    end = start + int(np.prod(cards))
                    a[start:end] = np.bincount(at, weights, minlength=end - start)
                    b[start:end] = np.bincount(at, weights**2, minlength=end - start)
        return summed(log_weights, a, b, b, top)


def tables_of(problem: Problem, groups: Sequence[tuple[str, ...]], flat: Array) -> list[Factor]:
    """Return numbers over the states of groups of variables, one group after the other, as tables."""
    found, at = [], 0
    for group in groups:
        variables = tuple(problem.variables[n] for n in group)
        shape = tuple(len(v) for v in variables)
        size = int(np.prod(shape))
        found.append(Factor.of(variables, flat[at : at + size].reshape(shape).copy()))
        at += size
    return found


def proved_impossible(problem: Problem) -> bool:
    """Say whether a search or exact inference, where it is cheap, shows that no configuration has any weight."""
    return judged_log_mass(problem) == -np.inf
