"""Noisy-or, -and, -max and -min nodes from counts: expectation-maximisation over the hidden effects.

Every parent has a hidden effect, drawn given its state, and the child is the largest of them. Given the parents' and the
child's state the posterior of each effect is a ratio of products of cumulative probabilities, so that the E-step takes
time linear in the rows and parents; the M-step divides expected counts. Steps are extrapolated (SQUAREM; Varadhan and
Roland, 2008) and taken only if the likelihood does not fall. The log likelihood is concave in the logarithms of the
cumulative probabilities, so there is one maximum and every start leads to it. Where strengths go to zero or one the steps
become slow; for a child of two states a projected Newton method then takes over, again only where it is better.

What a model leaves out stays out: a leak of zero, and states of a parent that have no effect. A cause that no row shows
keeps its strength.
References: Dempster, Laird & Rubin (1977); Diez & Druzdzel (2007) for the models.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.factors.local_models.noisy import NoisyMaxConditional, NoisyOrConditional
from markovia.factors.tables.conditional import Conditional
from markovia.learning.tables.row_counts import RowCounts
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Codes, Flags

CYCLES = 3000
TOLERANCE = 1e-14
POLISHED = (20, 100, 500)
"""Cycles before which Newton's method is tried, for a child of two states."""
PATIENCE = 3
"""Cycles that together gain nothing before the fit stops."""
NEARLY_NOTHING = 1e-300
"""What a leak or effect that never shows comes out as, so that it is not taken for one that was left out."""
CERTAIN = 40.0
"""Minus the logarithm of what is left beside a strength of one."""
SURELY = -1e200
"""Stands for the logarithm of zero where it is multiplied by zero."""
BLOCK = 2**21
"""Numbers held at once in the E-step."""


class NoisyFit:
    """Fits one noisy node.

    Parameters
    ----------
    before
        The node's distribution, for its form and as the starting point.
    pseudo
        Pseudo-counts of the child given each parent alone and given none, or nothing. They count as seen effects.

    Attributes
    ----------
    start
        The distribution of every effect before the fit: rows of all parents one after the other, the leak last. Effects
        are in the order in which the child is their maximum.
    free
        Which of these rows are estimated.
    pseudo
        Their pseudo-counts.
    """

    def __init__(self, before: NoisyMaxConditional, pseudo: Sequence[Array]) -> None:
        self.before = before
        self.start, self.free, self._rows_of = _effects(before)
        self.pseudo = np.zeros_like(self.start)
        for rows, a in zip(self._rows_of, pseudo, strict=False):  # none, or one a parent and the leak
            np.add.at(self.pseudo, rows, np.atleast_2d(a[..., ::-1] if before._mirrored else a))
        self.pseudo[~self.free] = 0.0

    def fit(self, rows: RowCounts) -> Conditional:
        """Return the distribution of the same form that maximises log likelihood plus `log_prior`."""
        some = rows.weights > 0
        weights = rows.weights[some]
        parents = rows.codes[:-1, some]
        y = np.asarray(rows.codes[-1, some], dtype=np.int64)
        leak = np.zeros(len(y), dtype=np.int64)
        cells = np.stack([at[codes] for at, codes in zip(self._rows_of, [*parents, leak], strict=True)])
        if self.before._mirrored:
            y = len(self.before.variable) - 1 - y
        kind = _TwoStates if self.start.shape[1] == 2 else _Graded
        effects = kind(cells, y, weights, self.free | (self.start[:, 1:] > 0).any(axis=1))
        # a probability of exactly 0 or 1 would never move
        table = np.where(self.free[:, None], 0.9 * self.start + 0.1 / self.start.shape[1], self.start)
        if not np.isfinite(effects.expected(table)[1]):
            raise InvalidArgument(
                f"some rows have a state of {self.before.variable.name!r} that none of its parents can have caused "
                f"there; give its noisy model a leak to start from, such as leak=0.01"
            )
        run = self._climb(effects, float(weights.sum()), table)
        found = run.state.one
        heard = np.bincount(cells.ravel(), minlength=len(found)) > 0
        unheard = ~heard & ~self.pseudo.any(axis=1)
        found[unheard] = self.start[unheard]
        gap = (run.history[-1] - run.history[-2:][0]) / (1.0 + float(weights.sum()))
        if not run.converged and gap > 1e-9:
            warn_user(
                f"the noisy model of {self.before.variable.name!r} did not converge in {len(run.history)} cycles of "
                f"expectation-maximisation (the last one gained {gap:.2g} a row)",
                ConvergenceWarning,
            )
        return self.conditional(found)

    def log_prior(self, conditional: Conditional) -> float:
        """Return `sum a log p` over the effects."""
        assert isinstance(conditional, NoisyMaxConditional)
        return _log_density(_effects(conditional)[0], self.pseudo)

    def conditional(self, table: Array) -> Conditional:
        """Return the distribution of the same form with other effects."""
        own = self.before
        if isinstance(own, NoisyOrConditional):
            strengths = table[1:-1:2, 1].copy()
            strengths.setflags(write=False)
            leak = max(float(table[-1, 1]), NEARLY_NOTHING if self.free[-1] else 0.0)
            return type(own)(own.variable, own.parents, strengths, leak, own.parameters().on)
        logs = _log_cumulative(table)[:, :-1]
        logs[self.free & ~logs.any(axis=1)] = -NEARLY_NOTHING
        contributions = [logs[at] for at in self._rows_of[:-1]]
        return type(own)(own.variable, own.parents, contributions, logs[-1], own.n_parameters)

    def _climb(self, effects: "_Graded | _TwoStates", total: float, table: Array) -> "Climb[_Cycle]":
        """Climb to the maximum, a number observed being a row."""

        def step(at: Array) -> tuple[Array, float]:
            counts, log_likelihood = effects.expected(at)
            counts = counts + self.pseudo
            sums = counts.sum(axis=1, keepdims=True)
            usable = self.free[:, None] & (sums > 0)
            fresh = np.where(usable, counts / np.where(sums > 0, sums, 1.0), at)
            return fresh, log_likelihood + _log_density(at, self.pseudo)

        def cycle(now: _Cycle) -> tuple[_Cycle, float]:
            table, one, before, number = now
            if number in POLISHED and isinstance(effects, _TwoStates):
                jump = effects.newton(one, self.pseudo, self.free)
                after, value = step(jump)
                if value > before:
                    table, one = jump, after
            two, value_one = step(one)
            jump = _extrapolated(table, one, two)
            after, value = step(jump)
            if value < value_one:  # take the plain step
                jump = two
                after, value = step(two)
            return _Cycle(jump, after, value, number + 1), value

        one, first = step(table)
        return climb(
            cycle, _Cycle(table, one, first, 0), max_iter=CYCLES, tol=TOLERANCE, size=1.0 + total, first=first, span=PATIENCE
        )  # fmt: skip


class _Cycle(NamedTuple):
    """Effects, those a step further, the objective of the first, and how many cycles there were."""

    table: Array
    one: Array
    value: float
    number: int


def _effects(conditional: NoisyMaxConditional) -> tuple[Array, Flags, list[Codes]]:
    """Return the rows of all effects, which of them are free, and for each parent (the leak last) the row of each state."""
    if isinstance(conditional, NoisyOrConditional):
        own = conditional.parameters()
        n = len(conditional.parents)
        table = np.tile(np.array([1.0, 0.0]), (2 * n + 1, 1))  # a silent and an active row a parent
        table[1:-1:2, 1] = own.strengths
        table[-1, 1] = own.leak
        table[:, 0] = 1.0 - table[:, 1]
        free = np.append(np.tile([False, True], n), own.leak > 0)
        rows_of: list[Codes] = [
            2 * i + ((np.arange(len(p)) == code) == conditional._active_when_on)
            for i, (p, code) in enumerate(zip(conditional.parents, own.on, strict=True))
        ]
        return table, free, [*rows_of, np.array([2 * n])]
    logs = np.concatenate([*conditional.contributions, conditional.start[None]])
    edges = np.cumsum([0, *map(len, conditional.parents), 1])
    free = np.asarray(logs.any(axis=1))
    return _from_cumulative(logs), free, [np.arange(a, b) for a, b in pairwise(edges.tolist())]


class _Graded:
    """The E-step for any number of child states."""

    def __init__(self, cells: Codes, y: Codes, weights: Array, able: Flags) -> None:
        self.cells, self.y, self.weights = cells, y, weights

    def expected(self, table: Array) -> tuple[Array, float]:
        """Return how often each row is expected to have had each effect, and the log likelihood."""
        logs = _log_cumulative(table)
        counts = np.zeros_like(table)
        total = 0.0
        block = max(1, BLOCK // (len(self.cells) * table.shape[1]))
        for first in range(0, len(self.y), block):
            here = slice(first, first + block)
            total += self._block(self.cells[:, here], self.y[here], self.weights[here], table, logs, counts)
        return counts, total

    def _block(self, cells: Codes, y: Codes, w: Array, table: Array, logs: Array, counts: Array) -> float:
        upper = logs[cells, y]
        lower = np.where(y == 0, -np.inf, logs[cells, np.maximum(y - 1, 0)])
        up, down = _others(upper), _others(lower)
        whole, below = upper.sum(axis=0), lower.sum(axis=0)
        with np.errstate(invalid="ignore", over="ignore"):
            log_p = whole + _log1mexp(below - whole)
            equal = np.exp(up - log_p)  # the other effects are at most y
            under = np.exp(up + _log1mexp(down - up) - log_p)  # and one of them is y
        lost = ~np.isfinite(log_p)
        equal[:, lost], under[:, lost] = 0.0, 0.0
        flat = cells.ravel()
        for j in range(table.shape[1]):
            share = np.where(y > j, under, np.where(y == j, equal, 0.0)) * w * table[cells, j]
            counts[:, j] += np.bincount(flat, weights=share.ravel(), minlength=len(counts))
        return float(w @ log_p)


class _TwoStates:
    """The E-step for a child of two states: an effect shows only if the child does, so two sparse products do."""

    def __init__(self, cells: Codes, y: Codes, weights: Array, able: Flags) -> None:
        from scipy.sparse import csr_matrix

        present = able[cells]
        rows = np.broadcast_to(np.arange(len(y)), cells.shape)[present]
        entries = (np.ones(len(rows)), (rows, cells[present]))
        self.present = csr_matrix(entries, shape=(len(y), len(able)))
        self.trials = self.present.T @ weights
        self.shown = y == 1
        self.shows = self.present[self.shown].T.tocsr()
        self.weights = weights

    def expected(self, table: Array) -> tuple[Array, float]:
        """Return how often each row is expected to have had each effect, and the log likelihood."""
        s = table[:, 1]
        with np.errstate(divide="ignore"):
            quiet = self.present @ np.maximum(np.log1p(-s), SURELY)
            log_p = np.where(self.shown, np.log(-np.expm1(quiet)), quiet)
        if len(log_p) and log_p.min() <= SURELY:
            return np.zeros_like(table), float("-inf")
        one = s * (self.shows @ (self.weights[self.shown] / np.exp(log_p[self.shown])))
        return np.stack([np.maximum(self.trials - one, 0.0), one], axis=1), float(self.weights @ log_p)

    def newton(self, table: Array, pseudo: Array, free: Flags) -> Array:
        """Return the table after projected Newton steps on `-log(1 - strength)`, in which the problem is concave."""
        own = np.flatnonzero(free)
        with np.errstate(divide="ignore"):
            costs = np.minimum(-np.log1p(-table[:, 1]), CERTAIN)
        known = self.present[:, np.flatnonzero(~free)] @ costs[~free]
        present = self.present[:, own].tocsr()
        shows, w = present[self.shown], self.weights[self.shown]
        silent = self.weights * ~self.shown
        slopes = present.T @ silent + pseudo[own, 0]
        seen = pseudo[own, 1]

        def value(x: Array) -> float:
            with np.errstate(divide="ignore"):
                shown = w @ np.log(-np.expm1(-(shows @ x + known[self.shown])))
                prior = (seen[seen > 0] * np.log(-np.expm1(-x[seen > 0]))).sum()
            return float(shown + prior - slopes @ x)

        x = costs[own]
        best = value(x)
        for _ in range(60):
            with np.errstate(divide="ignore", over="ignore"):
                odds = 1.0 / np.expm1(np.maximum(shows @ x + known[self.shown], 1e-150))
                alone = np.where(seen > 0, 1.0 / np.expm1(np.maximum(x, 1e-150)), 0.0)
            gradient = shows.T @ (w * odds) + seen * alone - slopes
            held = ((x <= 0.0) & (gradient <= 0)) | ((x >= CERTAIN) & (gradient >= 0))
            move = np.flatnonzero(~held)
            if not move.size or not np.isfinite(best):
                break
            part = shows[:, move]
            curved = (part.T @ part.multiply((w * odds * (1.0 + odds))[:, None])).toarray()
            curved[np.diag_indices(len(move))] += (seen * alone * (1.0 + alone))[move]
            curved[np.diag_indices(len(move))] += 1e-12 * (1.0 + np.trace(curved))
            step = np.zeros_like(x)
            step[move] = np.linalg.solve(curved, gradient[move])
            length, found = 1.0, -np.inf
            while length > 1e-12:
                trial = np.clip(x + length * step, 0.0, CERTAIN)
                found = value(trial)
                if found > best:
                    break
                length /= 2
            if not found > best:
                break
            gain, x, best = found - best, trial, found
            if gain <= 1e-15 * (1.0 + float(self.weights.sum())):
                break
        moved = table.copy()
        moved[own, 1] = -np.expm1(-x)
        moved[own, 0] = np.exp(-x)
        return moved


def _others(logs: Array) -> Array:
    """Return the sum over all rows but each one; minus infinity counts."""
    lost = np.isneginf(logs)
    finite = np.where(lost, 0.0, logs)
    rest: Array = finite.sum(axis=0) - finite
    rest[lost.sum(axis=0) - lost > 0] = -np.inf
    return rest


def _log1mexp(x: Array) -> Array:
    """Return log(1 - exp(x)) for x <= 0, and minus infinity where x is not a number (both sides impossible)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = np.log(-np.expm1(np.minimum(x, 0.0)))
    return np.where(np.isnan(x), -np.inf, found)


def _log_cumulative(table: Array) -> Array:
    """Return log P(effect <= k), exact also where it is nearly certain."""
    tail = table[..., ::-1].cumsum(axis=-1)[..., ::-1]
    beyond = np.concatenate([tail[..., 1:], np.zeros((*table.shape[:-1], 1))], axis=-1)
    with np.errstate(divide="ignore"):
        logs: Array = np.log1p(-np.minimum(beyond, 1.0))
    return logs


def _from_cumulative(logs: Array) -> Array:
    edge = (*logs.shape[:-1], 1)
    upper = np.concatenate([np.exp(logs), np.ones(edge)], axis=-1)
    lower = np.concatenate([np.zeros(edge), np.exp(logs)], axis=-1)
    table: Array = np.maximum(upper - lower, 0.0)
    return table


def _log_density(table: Array, pseudo: Array) -> float:
    some = pseudo > 0
    with np.errstate(divide="ignore"):
        return float((pseudo[some] * np.log(table[some])).sum())


def _extrapolated(zero: Array, one: Array, two: Array) -> Array:
    """Return the SQUAREM step from three iterates, kept inside the simplex."""
    rise, bend = one - zero, two - 2 * one + zero
    size = float((bend**2).sum())
    if size == 0.0:
        return two
    alpha = (float((rise**2).sum()) / size) ** 0.5
    if alpha <= 1.0:
        return two
    jump = np.maximum(zero + 2 * alpha * rise + alpha**2 * bend, 0.01 * two)
    inside: Array = jump / jump.sum(axis=1, keepdims=True)
    return inside
