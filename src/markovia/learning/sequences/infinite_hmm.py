"""Hidden Markov models without a number of states: Gibbs sampling of the hierarchical Dirichlet process HMM.

    beta ~ GEM(gamma),  pi_j ~ DP(a, (1 - rho) beta + rho delta_j),  z_t ~ pi_{z_t-1},  x_t ~ F(theta_{z_t})

The first state is drawn from a row of its own, DP(a, beta). rho is the share of a that stays (the sticky HMM; 0 for none).
`BeamSampler` draws whole paths among the finitely many moves that slices leave; `WeakLimit` has L states, beta ~
Dirichlet(gamma / L). References: Teh and others (2006); Van Gael and others (2008); Fox and others (2011).
Cost of a sweep: steps times states squared.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.concentrations import Gamma, drawn_concentration, drawn_tables
from markovia.inference.sequences.hidden_chain import HiddenChain
from markovia.kernels.plain_code import either
from markovia.learning.components.conjugate import ConjugateComponents
from markovia.learning.components.conjugate_draws import dirichlet_rows
from markovia.learning.components.families import Components, Observations
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.seeds import kernel_seed

NOTHING = 1e-300
"""A weight that adds nothing to any sum, yet is none."""
EVERY = 10
"""Sweeps between two merges of states while sampling settles."""
MOST = 1_000
"""States beyond which sticks are not broken: slices never need as many but by accident."""


@dataclass(frozen=True)
class InfinitePriors:
    """Priors of the concentrations (gamma laws, or known numbers), of rho (a beta law or a number) and of emissions."""

    alpha: Gamma | float = (1.0, 1.0)
    gamma: Gamma | float = (1.0, 1.0)
    rho: tuple[float, float] | float = 0.0
    emission: Mapping[str, Any] | None = None


class InfiniteChain:
    """What both samplers share: counts of moves, tables, weights, concentrations.

    Parameters
    ----------
    seen
        The observations.
    template
        Emissions of the family, whose values do not matter.
    priors
        The priors.
    """

    def __init__(self, seen: Observations, template: ConjugateComponents, priors: InfinitePriors) -> None:
        self.seen, self.template, self.priors = seen, template, priors
        shown = np.bincount(seen.codes, minlength=len(seen.rows) + 1)[:-1, None]
        self._emission_prior = template.whole_prior(
            seen.rows, shown.astype(np.float64), priors.emission or {}
        )
        self.alpha, self.gamma = (
            p[0] / p[1] if isinstance(p, tuple) else float(p) for p in (priors.alpha, priors.gamma)
        )
        rho = priors.rho
        self.rho = rho[0] / (rho[0] + rho[1]) if isinstance(rho, tuple) else float(rho)
        inside = np.ones(len(seen.codes), dtype=bool)
        inside[seen.offsets[:-1]] = False
        self._later, self._first = np.flatnonzero(inside), seen.offsets[:-1]
        self._log_prob = -np.inf
        self.settling, self.done = 0, 0

    def start(self, states: Ints, rng: np.random.Generator) -> None:
        """Begin with a path."""
        self.states = self._relabelled(np.asarray(states, dtype=np.int64))
        k = self._room()
        self.weights = np.full(k + 1, 1.0 / (k + 1))
        self._parameters(k, rng)

    def sweep(self, rng: np.random.Generator) -> None:
        """Draw everything once; in the first `settling` sweeps, states that say the same are merged now and then."""
        self._sweep(rng)
        self.done += 1
        if EVERY < self.done <= self.settling and self.done % EVERY == 0 and self.merge_alike():
            self.states = self._relabelled(self.states)
            k = self._room()
            self.weights = np.full(k + 1, 1.0 / (k + 1))
            self._parameters(k, rng)

    def _sweep(self, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def _relabelled(self, states: Ints) -> Ints:
        raise NotImplementedError

    def _room(self) -> int:
        raise NotImplementedError

    def _draw_weights(self, served: Ints, rng: np.random.Generator) -> None:
        raise NotImplementedError

    def merge_alike(self) -> int:
        """Join states whose emissions and moves one state explains as well, by BIC; return how many went.

        Sampling is slow to join two states that say the same; this is for the sweeps before draws are kept.
        """
        gone = 0
        while True:
            there, states = np.unique(self.states, return_inverse=True)
            k = len(there)
            if k == 1:
                return gone
            first, second = np.triu_indices(k, 1)
            n = len(self.seen.rows) + 1
            sums = (
                np.bincount(self.seen.codes * k + states, minlength=n * k)
                .reshape(n, k)[:-1]
                .astype(np.float64)
            )
            weights = np.maximum(np.concatenate([sums, sums[:, first] + sums[:, second]], axis=1), NOTHING)
            values = resized(self.template, weights.shape[1])
            values = values.learned(self.seen.rows, weights, self.priors.emission or {})
            with np.errstate(invalid="ignore"):
                logs = values.log_densities(self.seen.rows)
            fits = np.where(weights > NOTHING, weights * logs, 0.0).sum(axis=0)
            moves = np.bincount(states[self._later - 1] * k + states[self._later], minlength=k * k).reshape(
                k, k
            )
            gains = fits[k:] - fits[first] - fits[second]
            free = resized(self.template, 2).n_free - resized(self.template, 1).n_free + k
            gains += 0.5 * free * np.log(len(states))
            for p in np.flatnonzero(gains > 0.0):
                groups = np.arange(k)
                groups[second[p]] = first[p]
                gains[p] += _explained(moves, groups) - _explained(moves, np.arange(k))
            best = int(np.argmax(gains))
            if gains[best] <= 0.0:
                return gone
            self.states = np.where(self.states == there[second[best]], there[first[best]], self.states)
            gone += 1

    @property
    def n_states(self) -> int:
        """How many states the path visits."""
        return len(np.unique(self.states))

    def log_prob(self) -> float:
        """Return log p(path, data | parameters)."""
        return self._log_prob

    def _counts(self, k: int) -> Ints:
        """Return moves (k + 1, k), those into first steps in the last row."""
        found = np.bincount(self.states[self._later - 1] * k + self.states[self._later], minlength=k * k)
        starts = np.bincount(self.states[self._first], minlength=k)
        return np.concatenate([found.reshape(k, k), starts[None]])

    def _parameters(self, k: int, rng: np.random.Generator) -> None:
        """Draw tables, concentrations, weights, rows and emissions given the path."""
        counts = self._counts(k)
        pulled = self.alpha * (1.0 - self.rho) * np.broadcast_to(self.weights[:k], (k + 1, k)).copy()
        pulled[k] = self.alpha * self.weights[:k]
        stay = np.arange(k)
        pulled[stay, stay] += self.alpha * self.rho
        tables = drawn_tables(counts, pulled, rng)
        own = np.zeros(k, dtype=np.int64)
        if self.rho > 0.0:  # tables that are there only because states stay
            chance = self.rho / (self.rho + self.weights[:k] * (1.0 - self.rho))
            own = rng.binomial(tables[stay, stay], chance)
        served = tables.sum(axis=0) - own
        self._concentrations(counts, tables, own, served, rng)
        self._draw_weights(served, rng)
        self._draw_rows(counts, rng)
        self.emission = self._redrawn(k, rng)

    def _concentrations(
        self, counts: Ints, tables: Ints, own: Ints, served: Ints, rng: np.random.Generator
    ) -> None:
        priors, k = self.priors, len(own)
        if isinstance(priors.alpha, tuple):
            self.alpha = drawn_concentration(
                self.alpha, int(tables.sum()), counts.sum(axis=1), priors.alpha, rng
            )
        if isinstance(priors.rho, tuple):
            a, b = priors.rho
            inner = int(tables[:k].sum())
            self.rho = float(np.clip(rng.beta(a + own.sum(), b + inner - own.sum()), 1e-10, 1.0 - 1e-10))
        if isinstance(priors.gamma, tuple):
            dishes = self._dishes(served, rng)
            self.gamma = drawn_concentration(self.gamma, dishes, np.array([served.sum()]), priors.gamma, rng)

    def _dishes(self, served: Ints, rng: np.random.Generator) -> int:
        return int((served > 0).sum())

    def _draw_rows(self, counts: Ints, rng: np.random.Generator) -> None:
        """Draw the row of each state, and of first steps (the last one), over the states and all others."""
        k = counts.shape[1]
        base = np.repeat(self.alpha * (1.0 - self.rho) * self.weights[None], k + 1, axis=0)
        base[k] = self.alpha * self.weights
        base[np.arange(k), np.arange(k)] += self.alpha * self.rho
        base[:, :k] += counts
        self.rows = dirichlet_rows(base, rng)

    def _redrawn(self, k: int, rng: np.random.Generator) -> Components:
        n = len(self.seen.rows) + 1
        sums = np.bincount(self.seen.codes * k + self.states, minlength=n * k).reshape(n, k)[:-1]
        return self.template.redrawn(self.seen.rows, sums.astype(np.float64), self._emission_prior, rng)

    def _fresh(self, k: int, rng: np.random.Generator) -> Components:
        """Return emissions of k states drawn from the prior."""
        return self.template.drawn(self.template.prior_law(self._emission_prior, k), rng)

    def _joint(self, logs: Array) -> float:
        k = len(self.rows) - 1
        with np.errstate(divide="ignore"):
            moves = np.log(self.rows)
        found = moves[self.states[self._later - 1], self.states[self._later]].sum()
        found += moves[k, self.states[self._first]].sum() + logs[self.seen.codes, self.states].sum()
        return float(found)

    def hidden_markov(self, least: float = 0.0) -> tuple[Array, Array, Components]:
        """Return start, transition and emissions of states with such a share of the path, what is left shared out."""
        k = len(self.rows) - 1
        times = np.bincount(self.states)
        there = np.flatnonzero((times > 0) & (times >= min(least * len(self.states), times.max())))
        rows = np.maximum(self.rows[np.append(there, k)][:, there], NOTHING)
        rows /= rows.sum(axis=1, keepdims=True)
        return rows[-1], rows[:-1], picked(self.emission, there)

    def state(self) -> dict[str, Array]:
        """Return the state as arrays."""
        numbers = np.array([self.alpha, self.gamma, self.rho, self._log_prob, self.done])
        found = {"states": self.states, "weights": self.weights, "rows": self.rows, "numbers": numbers}
        return found | {f"emission_{name}": value for name, value in self.emission.params.items()}

    def restore(self, state: Mapping[str, Array]) -> None:
        """Take up a state that `state` gave."""
        self.states = np.array(state["states"], dtype=np.int64)
        self.weights, self.rows = np.array(state["weights"]), np.array(state["rows"])
        self.alpha, self.gamma, self.rho, self._log_prob = map(float, state["numbers"][:4])
        self.done = int(state["numbers"][4])
        values: Any = {name: np.array(state[f"emission_{name}"]) for name in self.template.names}
        self.emission = replace(self.template, **values)  # type: ignore[type-var]


class BeamSampler(InfiniteChain):
    """Draws of whole paths through infinitely many states."""

    def _relabelled(self, states: Ints) -> Ints:
        return np.unique(states, return_inverse=True)[1].ravel().astype(np.int64)

    def _room(self) -> int:
        return int(self.states.max()) + 1

    def _draw_weights(self, served: Ints, rng: np.random.Generator) -> None:
        drawn = rng.gamma(np.append(served, self.gamma).astype(np.float64))
        self.weights = np.maximum(drawn / drawn.sum(), NOTHING)

    def _sweep(self, rng: np.random.Generator) -> None:
        """Draw the parameters given the path, then slices, states that they need, and a path."""
        self._parameters(self._room(), rng)
        k = self._room()
        chances = np.empty(len(self.states))
        chances[self._later] = self.rows[self.states[self._later - 1], self.states[self._later]]
        chances[self._first] = self.rows[k, self.states[self._first]]
        slices = chances * rng.random(len(chances))
        self._extend(float(slices.min()), rng)
        k = len(self.rows) - 1
        logs = self.seen.seen_by(self.emission).logs
        filtered = np.empty((len(self.states), k))
        draw = either("markovia.kernels.sequences.beam:draw_paths", 3 * len(self.states) * k * (k + 10))
        rows = np.ascontiguousarray(self.rows[:k, :k])
        first = np.ascontiguousarray(self.rows[k, :k])
        stuck = draw(
            self.seen.offsets,
            first,
            rows,
            logs,
            self.seen.codes,
            slices,
            filtered,
            self.states,
            kernel_seed(rng),
        )
        if stuck >= 0:
            raise InvalidArgument(
                f"step {stuck} has no state that could have shown it; widen the prior of emissions"
            )
        self._log_prob = self._joint(logs)
        self._forget()

    def _extend(self, least: float, rng: np.random.Generator) -> None:
        """Break sticks until no row has a move to an unknown state above the smallest slice."""
        known = k = len(self.rows) - 1
        rows, start = self.rows[:k], self.rows[k]
        while max(float(rows[:, -1].max(initial=0.0)), float(start[-1])) > least and k < MOST:
            share = rng.beta(1.0, self.gamma)
            self.weights = np.append(self.weights[:-1], self.weights[-1] * np.array([share, 1.0 - share]))
            self.weights = np.maximum(self.weights, NOTHING)
            both = self.alpha * self.weights[-2:]
            parts = dirichlet_rows(
                np.repeat(both[None], k + 1, axis=0) * np.append(np.full(k, 1.0 - self.rho), 1.0)[:, None],
                rng,
            )
            left = np.append(rows[:, -1], start[-1])[:, None] * parts
            fresh = self.alpha * (1.0 - self.rho) * self.weights
            fresh[k] += self.alpha * self.rho
            rows = np.concatenate(
                [np.column_stack([rows[:, :-1], left[:k]]), dirichlet_rows(fresh[None], rng)]
            )
            start = np.append(start[:-1], left[k])
            k += 1
        self.rows = np.concatenate([rows, start[None]])
        if k > known:
            self.emission = joined(self.emission, self._fresh(k - known, rng))

    def _forget(self) -> None:
        """Give the weight of states that the path does not visit back to all others."""
        there = np.unique(self.states)
        k = len(self.rows) - 1
        gone = np.setdiff1d(np.arange(k), there)
        self.weights = np.append(self.weights[there], self.weights[-1] + self.weights[gone].sum())
        rows = self.rows[np.append(there, k)]
        self.rows = np.column_stack([rows[:, there], rows[:, -1] + rows[:, gone].sum(axis=1)])
        self.emission = picked(self.emission, there)
        self.states = self._relabelled(self.states)


class WeakLimit(InfiniteChain):
    """Draws of paths through L states, whose weights are Dirichlet(gamma / L)."""

    def __init__(
        self, seen: Observations, template: ConjugateComponents, priors: InfinitePriors, limit: int
    ) -> None:
        super().__init__(seen, template, priors)
        self.limit = limit

    def _relabelled(self, states: Ints) -> Ints:
        return states

    def _room(self) -> int:
        return self.limit

    def _dishes(self, served: Ints, rng: np.random.Generator) -> int:
        return int(drawn_tables(served, np.full(len(served), self.gamma / self.limit), rng).sum())

    def _draw_weights(self, served: Ints, rng: np.random.Generator) -> None:
        drawn = dirichlet_rows(served.astype(np.float64) + self.gamma / self.limit, rng)
        self.weights = np.append(np.maximum(drawn, NOTHING), 0.0)

    def _sweep(self, rng: np.random.Generator) -> None:
        """Draw the parameters given the path, then a path."""
        self._parameters(self.limit, rng)
        k = self.limit
        seen = self.seen.seen_by(self.emission)
        self.states = HiddenChain(self.rows[k, :k], self.rows[:k, :k]).draw(seen, 1, rng)[0]
        self._log_prob = self._joint(seen.logs)


def _explained(moves: Ints, groups: Ints) -> float:
    """Return the largest log p(moves) of a chain over groups of states."""
    k = len(groups)
    found = np.zeros((k, k))
    np.add.at(found, (groups[:, None], groups[None, :]), moves)
    rows = np.maximum(found.sum(axis=1, keepdims=True), 1.0)
    shares = found / rows
    # a state of a group is one of its states, which moves among groups do not say but emissions do
    return float((found * np.log(np.where(shares > 0.0, shares, 1.0))).sum())


def resized(emission: Components, k: int) -> Components:
    """Return emissions of so many states, whose values do not matter."""
    values: Any = {name: np.resize(value, (k, *value.shape[1:])) for name, value in emission.params.items()}
    return replace(emission, **values)  # type: ignore[type-var]


def picked(emission: Components, states: Ints) -> Components:
    """Return the emissions of some states."""
    return replace(emission, **{name: value[states] for name, value in emission.params.items()})  # type: ignore[type-var]


def joined(first: Components, second: Components) -> Components:
    """Return the emissions of two families of states, one after the other."""
    values: Any = {name: np.concatenate([value, second.params[name]]) for name, value in first.params.items()}
    return replace(first, **values)  # type: ignore[type-var]
