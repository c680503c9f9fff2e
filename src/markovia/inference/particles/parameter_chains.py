"""Parameters of a state-space model by Markov chains that hold particles: marginal Metropolis-Hastings and Gibbs.

*Metropolis*: a random walk over the parameters whose likelihood is a particle filter's. Because that is unbiased, the chain
has the exact posterior however few the particles; too few make it stick. *Gibbs*: a path of states is drawn by a filter that
must pass through the old one, with its ancestors drawn anew at each step, and the parameters are moved given the path. It
needs fewer particles, and mixes slowly where parameters are tied to the path. References: Andrieu, Doucet and Holenstein
(2010); Lindsten, Jordan and Schön (2014). Cost: O(draws x steps x particles).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import ConvergenceWarning, warn_user
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.draw_stats import DrawStats
from markovia.inference.markov_chains.diagnostics import rhat
from markovia.inference.particles.filtering import Filter
from markovia.inference.particles.laws import draw_all, log_density
from markovia.inference.particles.model import Where
from markovia.inference.particles.moves import SeenSteps
from markovia.inference.particles.scan_resampling import ancestors
from markovia.inference.particles.unknown_parameters import Unknown, walk_on
from markovia.inference.result import Info
from markovia.runtime.clock import now as seconds_now
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled
from markovia.runtime.progress import progress_bar
from markovia.runtime.seeds import random_keys

ROWS = 100
MIXED = 1.1
ADVICE = "more n_particles=, method='guided' of the filter, or more draws= and warmup= help"
WALKS = 10
"""Steps of the random walk for each path, in Gibbs."""


@dataclass(frozen=True)
class ParameterChains:
    """A posterior over parameters to be drawn: the filter, the priors, and sequences of equal room, one a row."""

    filter: Filter
    unknown: Unknown
    seen: SeenSteps
    counts: Any

    def draw(
        self, method: str, draws: int, warmup: int, chains: int, seed: int, progress: bool | None
    ) -> DrawnPosterior:
        """Return draws of the parameters; by Gibbs, of all steps' states too, as `state` or by their names."""
        begin = seconds_now()
        steps = {"metropolis": self._metropolis, "gibbs": self._gibbs}[method]
        total = chains * (warmup + draws)
        with x64(), progress_bar(progress, total, unit="draw", name=f"particle {method}") as advance:
            found = [
                self._chain(method, steps, draws, warmup, key, advance) for key in random_keys(seed, chains)
            ]
        rows = {name: np.stack([one[0][name] for one in found]) for name in found[0][0]}
        for name in rows.keys() - self.unknown.priors.keys():
            # paths have room for the longest sequence: the steps that there are, one sequence after the other
            rows[name] = np.concatenate([rows[name][:, :, i, :n] for i, n in enumerate(self.counts)], axis=2)
        stats = DrawStats(np.stack([one[1] for one in found]), np.stack([one[2] for one in found]))
        worst = max((rhat(x) for name in self.unknown.priors for x in _scalars(rows[name])), default=1.0)
        info = Info(
            f"particle {method}",
            exact=False,
            converged=not worst > MIXED,
            iterations=warmup + draws,
            seconds=seconds_now() - begin,
            advice="" if worst <= MIXED else ADVICE,
        )
        if worst > MIXED:
            warn_user(f"the chains disagree (R-hat {worst:.2f}); {ADVICE}", ConvergenceWarning)
        return DrawnPosterior(list(self.unknown.priors), rows, info, stats=stats)

    def _chain(
        self, method: str, steps: Any, draws: int, warmup: int, key: Any, advance: Callable[..., object]
    ) -> tuple[dict[str, Any], Any, Any]:
        begin, step, record = steps
        model, settings = self.filter.moves.model, (self.filter.settings, self.unknown.digest, method)
        data = (self.seen, self.counts, dict(self.unknown.known))
        start = compiled(model, "first parameters", settings, begin, key, *data)
        state = start(key, *data)

        def segment(key: Any, state: Any, rows: Any, warm: Any, *data: Any) -> Any:
            shapes = jax.eval_shape(record, state)
            room = jax.tree.map(lambda s: jnp.zeros((ROWS, *s.shape), s.dtype), shapes)

            def row(i: Any, carry: Any) -> Any:
                state, room = carry
                state = step(jax.random.fold_in(key, i), state, warm, *data)
                return state, jax.tree.map(lambda every, one: every.at[i].set(one), room, record(state))

            return jax.lax.fori_loop(0, rows, row, (state, room))

        parts: list[Any] = []
        made = [min(ROWS, n - at) for n in (warmup, draws) for at in range(0, n, ROWS)]
        done = 0
        for rows, own in zip(made, random_keys(int(key[0]), len(made)), strict=True):
            warm = np.asarray(done < warmup)
            args = (own, state, np.asarray(rows), warm, *data)
            state, room = compiled(model, "parameters", settings, segment, *args)(*args)
            if not warm:
                parts.append(_cut(room, rows))
            done += rows
            advance(rows)
        values, density, acceptance = (_joined([p[k] for p in parts]) for k in range(3))
        return values, density, acceptance

    # -- Metropolis --------------------------------------------------------------------------------------------

    @property
    def _metropolis(self) -> tuple[Any, Any, Any]:
        unknown = self.unknown

        def density(key: Any, u: Any, seen: SeenSteps, counts: Any, known: Any) -> Any:
            parameters = {**known, **unknown.values(u)}

            def one(total: Any, given: Any) -> Any:
                seen, count, key = given
                room = jax.tree.leaves(seen.missing)[0].shape[0]
                keys = jax.random.bits(key, (room, 2, 2), jnp.uint32)
                return total + self.filter.log_likelihood(keys, seen, count, parameters), None

            keys = jax.random.split(key, len(counts))
            likelihood, _ = jax.lax.scan(one, jnp.asarray(0.0), (seen, counts, keys))
            return unknown.log_prior(u) + likelihood

        def step(key: Any, walk: Any, warm: Any, *data: Any) -> Any:
            own, other = jax.random.split(key)
            return walk_on(walk, own, lambda u: density(other, u, *data), warm)[0]

        def record(walk: Any) -> Any:
            return unknown.values(walk.u), walk.log_density, walk.acceptance

        return lambda key, *data: unknown.start(key), step, record

    # -- Gibbs -------------------------------------------------------------------------------------------------

    @property
    def _gibbs(self) -> tuple[Any, Any, Any]:
        unknown = self.unknown

        def paths(key: Any, old: Any, seen: SeenSteps, counts: Any, parameters: Any, first: bool) -> Any:
            def one(_: Any, given: Any) -> Any:
                key, old, seen, count = given
                return None, self._path(key, old, seen, count, parameters, first)

            return jax.lax.scan(one, None, (jax.random.split(key, len(counts)), old, seen, counts))[1]

        def begin(key: Any, seen: SeenSteps, counts: Any, known: Any) -> Any:
            own, other = jax.random.split(key)
            walk = unknown.start(own)
            shape = (len(counts), jax.tree.leaves(seen.missing)[0].shape[1])
            none = jax.tree.map(
                lambda x: jnp.zeros((*shape, *x.shape), x.dtype), self.filter.moves.shape.state
            )
            return walk, paths(other, none, seen, counts, {**known, **unknown.values(walk.u)}, True)

        def step(key: Any, state: Any, warm: Any, seen: SeenSteps, counts: Any, known: Any) -> Any:
            walk, old = state
            own, other = jax.random.split(key)
            new = paths(other, old, seen, counts, {**known, **unknown.values(walk.u)}, False)

            def density(u: Any) -> Any:
                parameters = {**known, **unknown.values(u)}
                each: Any = jax.vmap(lambda path, seen, count: self._joint(path, seen, count, parameters))
                return unknown.log_prior(u) + each(new, seen, counts).sum()

            walk = walk._replace(log_density=density(walk.u))

            def move(walk: Any, key: Any) -> Any:
                return walk_on(walk, key, density, warm)[0], None

            walk, _ = jax.lax.scan(move, walk, jax.random.split(own, WALKS))
            return walk, new

        def record(state: Any) -> Any:
            walk, path = state
            named = path if isinstance(path, dict) else {"state": path}
            return {**unknown.values(walk.u), **named}, walk.log_density, walk.acceptance

        return begin, step, record

    def _joint(self, path: Any, seen: SeenSteps, count: Any, parameters: Any) -> Any:
        """Return the log density of a path and its observations."""
        model, moves = self.filter.moves.model, self.filter.moves
        room = jax.tree.leaves(seen.missing)[0].shape[0]
        t = jnp.arange(room)

        def at(t: Any, x: Any, before: Any, now: SeenSteps) -> Any:
            where = Where(t, now.u, parameters)
            moved = log_density(model.moved(before, where), x, "transition=")
            first = log_density(model.first(where), x, "initial=")
            return jnp.where(t < count, moves.seen(x, where, now) + jnp.where(t == 0, first, moved), 0.0)

        before = jax.tree.map(lambda x: jnp.concatenate([x[:1], x[:-1]]), path)
        return jax.vmap(at)(t, path, before, seen).sum()

    def _path(self, key: Any, old: Any, seen: SeenSteps, count: Any, parameters: Any, first: bool) -> Any:
        """Draw a path by a filter whose last particle is the old path (none at first), with its ancestors drawn anew."""
        model, moves, n = self.filter.moves.model, self.filter.moves, self.filter.n
        room = jax.tree.leaves(seen.missing)[0].shape[0]

        def at(tree: Any, t: Any) -> Any:
            return jax.tree.map(lambda x: x[t], tree)

        def placed(states: Any, t: Any) -> Any:
            states = jax.tree.map(lambda x, like: x.astype(like.dtype), states, at(old, t))
            return states if first else jax.tree.map(lambda x, o: x.at[-1].set(o[t]), states, old)

        def weigh(states: Any, t: Any, where: Where) -> Any:
            found = jax.vmap(lambda x: moves.seen(x, where, at(seen, t)))(states)
            return jnp.where(jnp.isnan(found), -jnp.inf, found)

        def where_of(t: Any) -> Where:
            return Where(t, at(seen.u, t), parameters)

        keys = jax.random.split(key, 3)
        here = where_of(0)
        states = placed(draw_all(lambda _: model.first(here), jnp.zeros(n), keys[0], "initial="), 0)
        log_weights = weigh(states, 0, here)
        every = jax.tree.map(lambda x: jnp.zeros((room, *x.shape), x.dtype).at[0].set(x), states)
        chosen_from = jnp.zeros((room, n), jnp.int32)

        def step(t: Any, carry: Any) -> Any:
            states, log_weights, every, chosen_from = carry
            choosing, mixing, linking, moving = jax.random.split(jax.random.fold_in(keys[1], t), 4)
            here = where_of(t)
            # random order: the last place, which is the old path's, is then like any other
            chosen = jax.random.permutation(mixing, ancestors("multinomial", choosing, log_weights))
            if not first:
                f = jax.vmap(lambda x: log_density(model.moved(x, here), at(old, t), "transition="))(states)
                link = jax.random.categorical(linking, log_weights + f)
                chosen = chosen.at[-1].set(link.astype(chosen.dtype))
            before = at(states, chosen)
            states = placed(draw_all(lambda x: model.moved(x, here), before, moving, "transition="), t)
            every = jax.tree.map(lambda a, one: a.at[t].set(one), every, states)
            return states, weigh(states, t, here), every, chosen_from.at[t].set(chosen)

        carry = (states, log_weights, every, chosen_from)
        _, log_weights, every, chosen_from = jax.lax.fori_loop(1, count, step, carry)

        def back(i: Any, carry: Any) -> Any:
            k, path = carry
            t = count - 1 - i
            path = jax.tree.map(lambda p, x: p.at[t].set(x[t, k]), path, every)
            return chosen_from[t, k], path

        last = jax.random.categorical(keys[2], log_weights).astype(jnp.int32)
        return jax.lax.fori_loop(0, count, back, (last, jax.tree.map(jnp.zeros_like, old)))[1]


def _scalars(values: Any) -> list[Any]:
    return [values[(slice(None), slice(None), *at)] for at in np.ndindex(*values.shape[2:])]


def _cut(tree: Any, rows: int) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[:rows], tree)


def _joined(parts: list[Any]) -> Any:
    return jax.tree.map(lambda *x: np.concatenate(x), *parts)
