"""Fitting an undirected model to rows that miss cells: hidden variables and gaps, by one code.

Methods, all on the two phases of `positive_phase.py`:

- "exact": the likelihood of the observed cells itself, by L-BFGS, both phases exact.
- "em": the missing cells are filled in by their posterior (E-step), and the weights fitted to what that expects, a convex
  problem (M-step). The likelihood never falls (Dempster, Laird and Rubin 1977; Lauritzen 1995).
- "mean-field": the same with a product of distributions in place of the posterior: a lower bound on the likelihood that
  never falls (Neal and Hinton 1998; Salakhutdinov and Hinton 2009).
- "pcd": stochastic gradients, the negative phase from Gibbs chains that go on from step to step (Younes 1989; Tieleman
  2008), for models too wide for an exact log Z.

None is convex: there are local maxima, and variables that are never observed need a start that tells their states apart,
which is drawn at random. Cost of a step: one positive and one negative phase; an M-step takes some negative ones.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from markovia.data.tables.row_sources import CodedTable
from markovia.errors import ApproximateWarning, InvalidArgument, TooLarge, warn_user
from markovia.kernels.plain_code import repeated
from markovia.learning.fields.contrastive_divergence import LEAST, Chains, ContrastiveDivergence
from markovia.learning.fields.exact_expectations import CHEAP, exact_expectations
from markovia.learning.fields.field_layout import FieldLayout
from markovia.learning.fields.log_linear_fit import FieldFit, LogLinearSearch, likelihood, unseen_cells
from markovia.learning.fields.penalties import Penalty
from markovia.learning.fields.positive_phase import (
    ExactPositivePhase,
    MeanFieldPositivePhase,
    incomplete_likelihood,
    positive_phase,
)
from markovia.learning.fields.stochastic_gradient import descend
from markovia.optimise.ascent import Climb, best_of, climb_in_slices, every_climb
from markovia.optimise.checkpoint import Checkpoint, digest_of
from markovia.runtime.array_types import Array
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator

METHODS = ("auto", "exact", "em", "pcd", "mean-field")
"""The methods for rows that miss cells."""
M_STEPS = 20
"""Steps of L-BFGS in an M-step at most: any step up is enough for the bound to rise."""
SPREAD = 0.3
"""The standard deviation of random starting weights, in units of their features."""
REPEATED = 30
"""Phases that a fit takes at least, about: what tells whether compiled code pays."""
BATCH = 1000
"""Rows that a step of stochastic gradients looks at, at most."""


class FieldState(NamedTuple):
    """How far a search is: weights, beliefs of mean field, expected cells given the rows, error, and steps made."""

    weights: Array
    beliefs: Array
    cells: Array
    error: float
    steps: int


@dataclass
class IncompleteFit:
    """One fit to rows that miss cells, with the arguments of `fit_field`; without a start weights are zeros or random."""

    layout: FieldLayout
    table: CodedTable
    penalty: Penalty
    optimizer: str
    free: bool
    start: Array | None
    seed: Seed
    restarts: int
    steps: int
    tolerance: float
    time_limit: float | None
    checkpoint: str | Path | None
    progress: bool | None

    def fit(self, kind: str, settings: ContrastiveDivergence | None) -> FieldFit:
        """Fit by a method of `METHODS`."""
        if self.optimizer == "sgd":
            raise InvalidArgument(
                "rows that miss cells have no optimizer='sgd'; method='pcd' is a stochastic gradient"
            )
        if self.checkpoint is not None and self.restarts > 1:
            raise InvalidArgument("checkpoint= keeps one search; leave restarts= at 1, or use a file each")
        how = {"exact": "exact", "em": "exact", "mean-field": "mean-field"}.get(kind, "auto")
        self.positive = positive_phase(self.layout, self.table, how)
        if kind == "auto":
            kind = self._choose()
        first = self.positive(self.layout.log_tables(np.zeros(self.layout.n_weights)))
        if first.log_mass == -np.inf:
            raise InvalidArgument(
                "a row shows states whose weight together is fixed at zero; give such entries of the factors a positive "
                "weight"
                if self.positive.exact
                else "no product of distributions avoids the zeros of the factors; use method='em'"
            )
        if self.free and self.penalty.none and kind != "pcd":  # entries that no row can show have weight zero
            self.layout = replace(self.layout, base=self.layout.base + unseen_cells(self.layout, first.cells))
        self._first = first
        self._target = self.layout.features(first.cells)
        if kind == "pcd":
            return self._by_chains(settings or ContrastiveDivergence())
        return self._by_ascent(kind)

    def _choose(self) -> str:
        """Return the method that "auto" stands for."""
        try:
            exact_expectations(self.layout, CHEAP)
        except TooLarge:
            wide = "log Z"
        else:
            if self.positive.exact:
                return "exact"
            wide = "the sums over missing cells"
        warn_user(
            f"the model is too wide for {wide} to be exact; its gradient is estimated from Gibbs chains ('pcd')",
            ApproximateWarning,
        )
        return "pcd"

    @cached_property
    def _size(self) -> float:
        """The largest mean feature in units of its largest value, at least one."""
        units = self.layout.units if self.penalty.smooth else 1.0
        return max(1.0, float(np.abs(self._target / units).max(initial=0.0)))

    @cached_property
    def _hidden(self) -> list[str]:
        """The variables that no row shows."""
        shown = self.table.variables
        gaps, n = self.table.missing(), self.table.n_rows
        return [v.name for v in self.layout.variables if v.name not in shown or gaps[v.name] >= n]

    def _starts(self) -> list[Array]:
        """Return the weights of each start: those given, zeros where nothing is hidden, random ones else."""
        rng = generator(self.seed)
        draws = [
            rng.normal(scale=SPREAD, size=self.layout.n_weights) / self.layout.units
            for _ in range(self.restarts)
        ]
        if self.start is not None:
            draws[0] = self.start
        elif not self._hidden:
            draws[0] = np.zeros(self.layout.n_weights)
        return draws

    def _digest(self, kind: str, start: Array) -> str:
        table, design, penalty = self.table, self.layout.design, self.penalty
        return digest_of(
            kind, table.codes, np.zeros(0) if table.weights is None else table.weights, design.data, design.indices,
            self.layout.base, penalty.l2, penalty.l1, penalty.group, penalty.group_l1, start, self.optimizer,
        )  # fmt: skip

    # -- ascents ---------------------------------------------------------------------------------------------------------

    def _by_ascent(self, kind: str) -> FieldFit:
        """Raise the likelihood, or a bound on it, step by step."""
        self.negative = exact_expectations(self.layout)
        self._likelihood = incomplete_likelihood(self.layout, self.positive, self.negative)
        close = self.tolerance * self._size

        def run(start: Array, progress: bool | None) -> Climb[FieldState]:
            return climb_in_slices(
                self._slice if kind == "exact" else self._em_step, self._state(start, np.zeros(0), 0)[0], steps=self.steps,
                tol=close, at_once=None if kind == "exact" else 1, progress=progress,
                name="exact likelihood" if kind == "exact" else "EM",
                checkpoint=Checkpoint(self.checkpoint, self._digest(kind, start)),
            )  # fmt: skip

        with Clock(self.time_limit, False), repeated(REPEATED):
            runs = every_climb(run, self._starts(), progress=self.progress)
        best = best_of(runs)
        converged = bool(best.state.error <= close)
        reason = "converged" if converged else best.reason.replace("converged", "no gain")
        restarts, interrupted = [one.objective for one in runs], best.reason == "interrupted"
        facts = {"reason": reason, "interrupted": interrupted, "restarts": restarts}
        return self._fitted(kind, best.state, best.history, converged, facts)

    def _state(self, weights: Array, beliefs: Array, steps: int) -> tuple[FieldState, float]:
        """Return the state at some weights, and the mean objective of a row there, penalties taken off."""
        log_tables = self.layout.log_tables(weights)
        clamped = self.positive(log_tables, beliefs)
        log_z, marginals = self.negative(log_tables)
        penalised = self.penalty.ridge(weights)[0] + self.penalty.rough(weights)
        slope = self.layout.features(marginals - clamped.cells)
        error = self._search(self._likelihood).residual(weights, slope)
        state = FieldState(weights, clamped.beliefs, clamped.cells, error, steps)
        return state, clamped.log_mass - log_z - penalised

    def _search(self, loss: Callable[[Array], tuple[float, Array]]) -> LogLinearSearch:
        return LogLinearSearch(loss, self.penalty, self.layout.units)

    def _slice(self, state: FieldState, most: int, clock: Clock) -> tuple[FieldState, float]:
        """Make some steps of L-BFGS on the likelihood of the observed cells."""
        search, close = self._search(self._likelihood), self.tolerance * self._size
        made = search.descend(state.weights, self.optimizer, most, close, convex=False, clock=clock)
        return self._state(search.point, state.beliefs, state.steps + made)

    def _em_step(self, state: FieldState, _: int, clock: Clock) -> tuple[FieldState, float]:
        """Fit the weights to what the rows were expected to show (M-step), then expect again (E-step)."""
        search = self._search(likelihood(self.layout, self.negative, state.cells))
        close = min(self.tolerance * self._size, 0.1 * state.error)
        search.descend(state.weights, self.optimizer, M_STEPS, close, clock=clock)
        return self._state(search.point, state.beliefs, state.steps + 1)

    # -- chains ----------------------------------------------------------------------------------------------------------

    def _by_chains(self, settings: ContrastiveDivergence) -> FieldFit:
        """Descend along gradients whose negative phase comes from chains that go on."""
        if self.restarts > 1:
            raise InvalidArgument(
                "method='pcd' makes one run; leave restarts= at 1, and change seed= instead"
            )
        layout, n = self.layout, self.table.n_rows
        start, entropy = self._starts()[0], int(generator(self.seed).integers(2**63))
        own = np.ones(n) if self.table.weights is None else self.table.weights
        rng = np.random.default_rng(entropy)
        # chains begin at rows, with what is missing drawn
        chosen = rng.choice(n, settings.chains, p=own / own.sum())
        states = self.positive.drawn(layout.log_tables(start), rng)[:, chosen].T

        def gradient(weights: Array, t: int, memory: Any) -> tuple[Array, Any]:
            rng = np.random.default_rng([entropy, t])
            log_tables = layout.log_tables(weights)
            drawn = None
            if n > BATCH:
                drawn = np.bincount(rng.choice(n, BATCH, p=own / own.sum()), minlength=n).astype(np.float64)
            chains = Chains(layout, memory[0].copy(), rng)
            dreamt = chains.run(log_tables, settings.sweeps, settings.skip)
            aim = layout.features(self.positive(log_tables, None, drawn).cells)
            expected = layout.features(dreamt)
            return expected - aim, (chains.states, aim, expected)

        found = descend(
            gradient, start, np.maximum(layout.spread(self._first.cells), LEAST), self.penalty, steps=self.steps,
            step=settings.step, decay=max(1.0, settings.decay * self.steps),
            memory=(Chains(layout, states, rng).states, self._target, self._target),
            about=[np.frombuffer(self._digest("pcd", start).encode(), np.uint8)],
            seed=entropy % 2**31 if self.checkpoint is not None else None,
            time_limit=self.time_limit, checkpoint=self.checkpoint, progress=self.progress,
        )  # fmt: skip
        state = FieldState(found.weights, np.zeros(0), self._first.cells, found.error, found.steps)
        near = bool(found.error <= self.tolerance * self._size + 3 * found.noise) and found.reason == "epochs"
        reason = found.reason.replace("epochs", "steps")
        facts = {
            "reason": reason, "interrupted": reason == "interrupted", "noise": found.noise, "gradient_norms": found.norms,
        }  # fmt: skip
        return self._fitted("pcd", state, [], near, facts, found.memory[1:])

    # -- results ---------------------------------------------------------------------------------------------------------

    def _fitted(
        self, kind: str, state: FieldState, history: list[float], converged: bool, facts: dict[str, Any],
        estimated: tuple[Array, Array] | None = None,
    ) -> FieldFit:  # fmt: skip
        """Return the record, with the exact likelihood where it can be had."""
        layout, total = self.layout, self.positive.total
        observed, expected = estimated or (layout.features(state.cells), np.full(layout.n_weights, np.nan))
        log_tables = layout.log_tables(state.weights)
        log_likelihood = np.nan
        try:
            log_z, marginals = exact_expectations(layout, CHEAP if kind == "pcd" else None)(log_tables)
            expected = layout.features(marginals)
            clamped = self.positive(log_tables, state.beliefs)
            observed, log_mass = layout.features(clamped.cells), clamped.log_mass
            if isinstance(self.positive, MeanFieldPositivePhase):
                facts["lower_bound"] = total * (log_mass - log_z)
                log_mass = ExactPositivePhase(layout, self.table)(log_tables).log_mass
            log_likelihood = total * (log_mass - log_z)
        except TooLarge:
            pass
        facts |= {
            "hidden": self._hidden,
            "missing_cells": sum(self.table.missing().values()),
            "positive_phase": "exact" if self.positive.exact else "mean-field",
        }
        return FieldFit(
            layout, state.weights, kind, log_likelihood, self.table.n_rows, total, observed, expected, expected - observed,
            converged, state.steps, [-value for value in history], state.error, details=facts,
        )  # fmt: skip
