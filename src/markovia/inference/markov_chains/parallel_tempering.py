"""Parallel tempering: copies of the model at several temperatures exchange their configurations.

References: Swendsen and Wang (1986); Geyer (1991). A copy at temperature T has the weights to the power 1/T; hot ones cross
valleys, and exchanges carry what they find down to the copy at T = 1, which alone is recorded. Cost: a Gibbs sweep of every
copy. Use it where Gibbs chains disagree because a distribution has several separate peaks. Zeros stay zeros at any
temperature, so it does not connect what tables forbid; for those use blocks.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING, Annotated, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.markov_chains.chain_runs import ChainDetails, ChainEngine, ChainSetUp, Stepper
from markovia.kernels.sampling.sampler_records import DrawPlan, HeatedRungs
from markovia.runtime.array_types import Array
from markovia.runtime.checks import NumberRange, Whole

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain

ADAPT_EVERY = 50
ADAPT_RATE = 1.0


@dataclass(frozen=True, kw_only=True)
class ParallelTempering(ChainEngine):
    """Draw from the posterior with the help of hotter copies.

    Parameters
    ----------
    temperatures
        The ladder, rising from 1; by default geometric from 1 to `hottest`, with its steps adapted in the burn-in so
        that exchanges succeed equally often all along it.
    rungs, hottest
        Number of temperatures and the highest one, where no ladder is given.
    draws, burn_in, thin, chains, rao_blackwell, seed, time_limit, progress, threads
        As in `Gibbs`; `chains` counts independent ladders.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(3, 3, coupling=1.0)
    >>> found = model.query("x0_0", engine=mk.engines.ParallelTempering(draws=2000, seed=1))
    >>> abs(found[1] - 0.5) < 4 * found.info.error
    True
    >>> len(found.info.details.swap_acceptance)
    5
    """

    name: ClassVar[str] = "parallel-tempering"

    temperatures: Sequence[float] | None = None
    rungs: Annotated[int, Whole(2)] = 6
    hottest: Annotated[float, NumberRange(1.0, inf, open="both", said="a temperature above 1")] = 8.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperatures is not None:
            try:
                given = np.asarray(self.temperatures, dtype=np.float64)
            except (TypeError, ValueError):
                given = np.zeros(0)
            fine = given.ndim == 1 and len(given) >= 2 and given[0] == 1.0 and (np.diff(given) > 0).all()
            if not fine or not np.isfinite(given).all():
                raise InvalidArgument(
                    f"temperatures= rises from 1, such as (1, 2, 4, 8), not {self.temperatures!r}"
                )

    def _stepper(self, run: ChainSetUp) -> Stepper:
        given = self.temperatures
        ladder = (
            np.geomspace(1.0, self.hottest, self.rungs) if given is None else np.asarray(given, dtype=float)
        )
        return TemperedStepper(run, ladder, given is None)

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        assert isinstance(stepper, TemperedStepper)
        swaps = np.sum(stepper.swaps, axis=0)
        rates = swaps[:, 1] / np.maximum(swaps[:, 0], 1.0)
        ladder = np.mean([1.0 / b for b in stepper.betas], axis=0)
        return replace(
            run,
            temperatures=tuple(ladder.tolist()),
            swap_acceptance=tuple(rates.tolist()),
            acceptance=float(rates.mean()),
        )


class TemperedStepper(Stepper):
    """Gibbs sweeps on all rungs, and exchanges."""

    holds = True

    def __init__(self, run: ChainSetUp, ladder: Array, adapt: bool) -> None:
        super().__init__(run)
        self.adapt, chains = adapt, run.chains
        k, n = len(ladder), len(run.arrays.cards)
        self.order = np.arange(n, dtype=np.int64)
        self.betas = [1.0 / ladder for _ in chains]
        self.tables = [self._heated(b) for b in self.betas]
        self.x = [np.repeat(c.x[None, :], k, axis=0) for c in chains]
        self.offsets = [np.repeat(c.offset[None, :], k, axis=0) for c in chains]
        self.held = [np.zeros((k, len(run.arrays.unary))) for _ in chains]
        self.rows = [np.arange(k, dtype=np.int64) for _ in chains]
        self.swaps = [np.zeros((k - 1, 2)) for _ in chains]
        self.warm = [True] * len(chains)

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`. In the burn-in the ladder moves at fixed draws, whatever the slices are."""
        from markovia.kernels.sampling.tempering import run_tempered

        warming = bool(len(plan.warm))
        if not warming and self.warm[number]:
            self.warm[number] = False
            self.swaps[number][:] = 0.0
        at, end = plan.first, plan.first + plan.number
        while at < end:
            stop = min(end, (at // ADAPT_EVERY + 1) * ADAPT_EVERY) if warming else end
            rungs = HeatedRungs(
                *self.tables[number], self.betas[number], self.x[number], self.offsets[number], self.held[number],
                self.rows[number], self.swaps[number],
            )  # fmt: skip
            run_tempered(self.arrays, chain, rungs, self.order, plan._replace(first=at, number=stop - at))
            at = stop
            if warming and self.adapt and at % ADAPT_EVERY == 0:
                self._move(number, at)

    def _heated(self, betas: Array) -> tuple[Array, Array]:
        """Return the tables to the power of each inverse temperature."""
        return self.arrays.unary[None, :] ** betas[:, None], self.arrays.values[None, :] ** betas[:, None]

    def _move(self, number: int, at: int) -> None:
        """Widen steps of the ladder that are crossed more often than others; its ends stay."""
        swaps = self.swaps[number]
        rates = swaps[:, 1] / np.maximum(swaps[:, 0], 1.0)
        betas = self.betas[number]
        steps = -np.diff(np.log(betas)) * np.exp(
            ADAPT_RATE / np.sqrt(at / ADAPT_EVERY) * (rates - rates.mean())
        )
        steps *= -np.log(betas[-1]) / steps.sum()
        self.betas[number] = np.exp(-np.concatenate(([0.0], np.cumsum(steps))))
        self.tables[number] = self._heated(self.betas[number])
        swaps[:] = 0.0
