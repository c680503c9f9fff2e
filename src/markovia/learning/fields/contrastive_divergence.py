"""Learning from Gibbs chains: contrastive divergence, and its persistent form (stochastic maximum likelihood).

Method: the gradient of the mean log likelihood is `F(X)/n - E_w[F]`. Contrastive divergence estimates the expectation from
chains that start at rows of the data and make k sweeps (Hinton 2002): fast and biased. Persistent contrastive divergence
lets the chains go on where they were after the last step (Younes 1989; Tieleman 2008): with falling steps it converges to
maximum likelihood. Monte Carlo maximum likelihood (method "gibbs") makes many sweeps between steps and averages over them.
Cost of a step: chains times sweeps times the table entries around each variable; chains run in threads, each with its own
random numbers, so the same seed gives the same weights whatever their number. Zeros in tables may keep chains from moving.
Use it for models that are too wide for exact inference where pseudo-likelihood is too crude.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import InvalidArgument
from markovia.learning.fields.field_layout import FieldLayout
from markovia.learning.fields.penalties import Penalty
from markovia.learning.fields.pseudo_likelihood import ordered_codes
from markovia.learning.fields.stochastic_gradient import Descent, descend
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Count, Positive, check_options
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.threads import in_parallel

CHUNKS = 16
"""Parts that chains or rows are cut into; fixed, so that sums do not depend on the number of threads."""
LEAST = 0.05
"""Variance of a feature below which its steps do not grow any more."""


@dataclass(frozen=True)
class ContrastiveDivergence:
    """Settings of contrastive divergence.

    Parameters
    ----------
    persistent
        Whether chains go on from step to step (PCD) or start at rows of the data (CD).
    sweeps
        Gibbs sweeps a step: k of CD-k.
    chains
        Chains, and for CD the rows of a step (at most as many as there are).
    skip
        Sweeps at the start of each step that are not counted; by default only the last sweep counts.
    step, decay
        The first step's length relative to each feature's variance, and the share of the run after which it has halved.

    Examples
    --------
    >>> ContrastiveDivergence(persistent=False, sweeps=5).name
    'cd'
    """

    persistent: bool = True
    sweeps: Count = 1
    chains: Count = 100
    skip: int | None = None
    step: Positive = 0.1
    decay: Positive = 0.1

    def __post_init__(self) -> None:
        check_options(self)
        if self.skip is not None and not (isinstance(self.skip, int) and 0 <= self.skip < self.sweeps):
            raise InvalidArgument(
                f"skip= is a number of sweeps below sweeps={self.sweeps}, not {self.skip!r}"
            )

    @property
    def name(self) -> str:
        """What the method is called."""
        return "pcd" if self.persistent else "cd"


class Chains:
    """Gibbs chains on a layout, in flat arrays.

    Parameters
    ----------
    layout
        The model.
    states
        Where each chain is: one row a chain, one column a variable.
    seed
        Of their random numbers.
    """

    def __init__(self, layout: FieldLayout, states: NDArray[Any], seed: np.random.Generator) -> None:
        self.layout = layout
        kind = np.int8 if layout.arrays.cards.max(initial=1) < 128 else np.int32
        self.states = np.ascontiguousarray(states, dtype=kind)
        self.random = seed.integers(0, 2**64, size=(len(states), 4), dtype=np.uint64)
        self._tasks = equal_parts(len(states))

    def run(self, log_tables: Array, sweeps: int, skip: int | None = None) -> Array:
        """Sweep all chains; return the share of the counted states in each cell."""
        from markovia.kernels.fields.contrastive_divergence import run_chains

        layout, k = self.layout, self.layout.n_single
        passed = sweeps if skip is None else skip
        fixed = ((self.states, self.random), layout.arrays, (log_tables[:k], log_tables[k:]))

        def part(task: tuple[int, int], room: tuple[NDArray[np.int64], Array]) -> Array:
            counts = np.zeros(layout.n_cells)
            cells = (counts[:k], counts[k:])
            run_chains(*task, sweeps, passed, *fixed, room, cells)
            return counts

        found = in_parallel(part, self._tasks, self._room)
        counted = max(1, sweeps - passed) * len(self.states)
        return np.asarray(np.sum(found, axis=0)) / counted

    def _room(self) -> tuple[NDArray[np.int64], Array]:
        return np.empty(self.layout.n_tables, dtype=np.int64), np.empty(
            int(self.layout.arrays.cards.max(initial=1))
        )


def contrastive_divergence(
    layout: FieldLayout,
    data: CodedTable,
    observed: Array,
    penalty: Penalty,
    settings: ContrastiveDivergence,
    *,
    start: Array,
    steps: int,
    seed: Seed,
    progress: bool | None = None,
) -> tuple[Descent, Array]:
    """Learn weights from chains; return where the descent ended and the last expectations of the features.

    Parameters
    ----------
    observed
        The share of the rows in each cell.
    start
        Weights to start from.
    steps
        Steps to make.
    """
    rng = generator(seed)
    codes = ordered_codes(layout, data)
    n_rows = codes.shape[1]
    share = None if data.weights is None else data.weights / data.weights.sum()
    target = layout.features(observed)
    chains = Chains(layout, codes[:, rng.choice(n_rows, settings.chains, p=share)].T, rng)
    expected = target.copy()
    batches = _batches(n_rows, min(settings.chains, n_rows), rng, share)

    def gradient(weights: Array, _: int) -> Array:
        nonlocal expected, chains
        aim = target
        if not settings.persistent:
            rows = batches()
            if len(rows) != len(chains.states):
                chains = Chains(layout, codes[:, rows].T, rng)
            chains.states = np.ascontiguousarray(codes[:, rows].T)
            aim = layout.features(cells_of(layout, chains.states))
        cells = chains.run(layout.log_tables(weights), settings.sweeps, settings.skip)
        expected = layout.features(cells)
        return expected - aim

    scale = np.maximum(layout.spread(observed), LEAST)
    found = descend(
        gradient, start, scale, penalty, steps=steps, step=settings.step, decay=max(1.0, settings.decay * steps),
        progress=progress,
    )  # fmt: skip
    return found, expected


def equal_parts(n: int) -> list[tuple[int, int]]:
    """Return where the parts of n chains or rows begin and end."""
    return list(pairwise(np.unique(np.linspace(0, n, min(n, CHUNKS) + 1).astype(int)).tolist()))


def cells_of(layout: FieldLayout, states: NDArray[Any]) -> Array:
    """Return the share of some configurations (one a row) in each cell."""
    n_cells, n = layout.n_cells, len(states)
    codes = states.astype(np.int64)
    single = np.bincount((layout.arrays.starts[:-1] + codes).ravel(), minlength=n_cells)
    if not layout.n_tables:
        return single / n
    at = np.add.reduceat(
        codes[:, layout.arrays.scope] * layout.arrays.strides, layout.arrays.scope_ptr[:-1], axis=1
    )
    wide = np.bincount((layout.n_single + layout.arrays.table_ptr[:-1] + at).ravel(), minlength=n_cells)
    return np.asarray((single + wide) / n)


def _batches(
    n_rows: int, size: int, rng: np.random.Generator, share: Array | None
) -> Callable[[], NDArray[np.int64]]:
    """Return a function that gives the rows of the next step: epochs in random order, or draws by weight."""
    waiting: list[NDArray[np.int64]] = []

    def draw() -> NDArray[np.int64]:
        if share is not None:
            return rng.choice(n_rows, size, p=share)
        if not waiting:
            order = rng.permutation(n_rows)
            waiting.extend(order[k : k + size] for k in range(0, n_rows - size + 1, size))
        return waiting.pop()

    return draw
