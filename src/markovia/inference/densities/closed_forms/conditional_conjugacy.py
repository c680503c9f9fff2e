"""Which latent quantities have a full conditional of a known family: found from Markov blankets, by numbers.

Given everything else, a quantity x has a conditional in the exponential family with statistics T(x) exactly where the log
density of x and its children is `c'T(x) + constant`. Gradients at two points (at one more a number where normal quantities
may be correlated) give the coefficients c, which are the natural parameters; values and gradients at further random points
say whether there is nothing else in it. Formulas of nodes are never looked at: priors may be written in any way, children
may index (`theta[group]`), and flat priors count as they are. Discrete latent variables enter by their probabilities
("shares"), in which the log density is linear.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.inference.densities.closed_forms.conjugate_blocks import (
    FAMILIES,
    ConjugateBlock,
    DirichletBlock,
    NormalBlock,
    ScalarBlock,
)
from markovia.inference.densities.closed_forms.kinks import Dependence, dependences
from markovia.inference.densities.program.compiled_functions import as_data, constrained
from markovia.inference.densities.program.layout import Site
from markovia.inference.densities.program.plated_elimination import LogTable, eliminate
from markovia.inference.densities.program.probe_values import REACH, mapped
from markovia.inference.densities.program.program import Program
from markovia.inference.engine import without_cure
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled

MOST_DENSE = 1000
"""Numbers that a block of correlated normal quantities may have."""
MOST_JOINED = 200
"""Numbers that a block of several normal nodes may have where it is updated again and again."""
PROBES = 8
"""Places at which a family has to fit."""
FREE = frozenset(
    {
        *("Normal", "MultivariateNormal", "LowRankMultivariateNormal", "LogNormal", "Gamma", "InverseGamma"),
        *("Exponential", "Chi2", "Beta", "Dirichlet", "BernoulliProbs", "CategoricalProbs", "Poisson"),
        *(
            "GeometricProbs",
            "NegativeBinomialProbs",
            "HalfNormal",
            "HalfCauchy",
            "StudentT",
            "Cauchy",
            "Laplace",
        ),
    }
)
"""Distributions whose support does not depend on their parameters."""
KINKED = frozenset(
    {
        *("Laplace", "AsymmetricLaplace", "AsymmetricLaplaceQuantile", "Triangular", "Delta"),
        *("LeftTruncatedDistribution", "RightTruncatedDistribution", "TwoSidedTruncatedDistribution"),
    }
)
"""Distributions whose log density has a kink or a jump in their values or parameters, inside the support."""
BATCH = 8
TOLERANCE = 1e-8

Values = Mapping[str, Any]


class Terms:
    """The log density of a program, node by node, as a function of the latent quantities themselves.

    Attributes
    ----------
    latents
        The nodes that are numbers to infer, by name.
    reaches
        For every stochastic node, the latent quantities that its log density depends on.
    bounded
        Nodes whose support depends on latent quantities.
    kinks
        For stochastic nodes, the latent quantities in which their log densities have a kink or a jump, inside the support.
    tabled
        For nodes that depend on discrete latent variables, the axes of their tables.
    """

    def __init__(self, program: Program) -> None:
        self.program = program
        stochastic = program._stochastic()
        self.sites: dict[str, Site] = {s.name: s for s in stochastic}
        self.latents = {s.name: s for s in stochastic if s.role == "latent"}
        self.tabled = {s.name: axes for s in stochastic if (axes := program._axes(s))}
        self.reaches = {s.name: self._reached(s) for s in stochastic}
        self.bounded, self.kinks = self._irregular()

    def _irregular(self) -> tuple[frozenset[str], dict[str, frozenset[str]]]:
        """Return the nodes whose support depends on latent quantities, and, by node, quantities it has a kink or jump in.

        Neither shows in the log density at a few places: it does not say where it ends, nor where it bends.
        """
        asked = [s for n, s in self.sites.items() if self.reaches[n]]
        if not asked:
            return frozenset(), {}
        states = max((h.states for h in self.program.hidden.values()), default=1)

        def look(values: Values) -> dict[str, tuple[list[Any], list[Any]]]:
            found: dict[str, tuple[list[Any], list[Any]]] = {s.name: ([], []) for s in asked}
            env = self.environment(values, self.program.density.data)
            for state in range(states):  # functions may branch on states
                here = self._at_state(env, state)
                for site in asked:
                    for d in self.program.nodes.distributions(site, here):
                        if site.family not in FREE and not site.lags:
                            found[site.name][0].extend(jax.tree.leaves(d.support))
                        found[site.name][1].extend(jax.tree.leaves(d))
            return found

        with x64():
            values = {n: np.empty(s.shape) for n, s in self.latents.items()}  # traced: only shapes count
            traced, tree = jax.make_jaxpr(look, return_shape=True)(values)
        mine = [Dependence(frozenset({n})) for n in sorted(values)]
        leaves, form = jax.tree.flatten(tree)
        assert len(leaves) == len(traced.jaxpr.outvars)
        every = jax.tree.unflatten(form, dependences(traced.jaxpr, mine))
        bounded, kinks = set(), {}
        for site in asked:
            ends, parameters = every[site.name]
            if any(d.inputs for d in ends):
                bounded.add(site.name)
            kinks[site.name] = frozenset().union(*(d.kinked for d in parameters))
            if site.family in KINKED:
                kinks[site.name] |= frozenset(self.reaches[site.name])
        return frozenset(bounded), kinks

    def _at_state(self, env: Mapping[str, Any], state: int) -> dict[str, Any]:
        """Return an environment with every discrete latent variable at a state (its last where it has fewer)."""
        now = dict(env)
        for name, hidden in self.program.hidden.items():
            code = min(state, hidden.states - 1)
            now[name] = jnp.full(self.sites[name].shape, code) if hidden.plates else code
        for site in self.program.layout.sites.values():
            if site.role == "deterministic" and site.name not in now:
                now[site.name] = self.program.nodes.deterministic(site, now)
        return now

    def _reached(self, site: Site) -> tuple[str, ...]:
        found: dict[str, None] = {site.name: None} if site.role == "latent" else {}
        seen: set[str] = set()
        left = [*site.sources, *(lag.node for lag in site.lags.values())]
        while left:
            name = left.pop()
            other = self.program.layout.sites.get(name)
            if other is None or name in seen:
                continue
            seen.add(name)
            if other.role == "latent":
                found[name] = None
            elif other.role == "deterministic":
                left += [*other.sources, *(lag.node for lag in other.lags.values())]
        return tuple(found)

    def blanket(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the nodes whose log densities depend on some latent quantities: themselves and their children."""
        return tuple(n for n, reached in self.reaches.items() if set(names) & set(reached))

    @cached_property
    def tables(self) -> tuple[str, ...]:
        """The nodes whose log density is a table over discrete latent variables."""
        return tuple(self.tabled)

    # -- densities --------------------------------------------------------------------------------------------------

    def environment(self, values: Values, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the value of every node that does not depend on discrete latents."""
        program = self.program
        env: dict[str, Any] = {
            **program.layout.fixed,
            **{k: jnp.asarray(v) for k, v in data.items()},
            **values,
        }
        for site in program.layout.sites.values():
            if site.role == "deterministic" and not program.needs[site.name]:
                env[site.name] = program.nodes.deterministic(site, env)
        return env

    def free(self, values: Values, data: Mapping[str, Any]) -> Any:
        """Return the unconstrained vector of latent quantities."""
        return self.program.free(self.environment(values, data))

    def logs(self, name: str, env: Mapping[str, Any], data: Mapping[str, Any]) -> LogTable:
        """Return the log density of each element of a node, with axes in front for discrete latents it depends on."""
        site = self.sites[name]
        if name in self.tabled:
            return self.program._log_table(site, self.tabled[name], env, data)
        logs = self.program.nodes.log_probs(site, env[name], env)
        return LogTable(site.plates, self.program._counted(site, logs), {})

    def log_density(
        self,
        values: Values,
        data: Mapping[str, Any],
        shares: Mapping[str, Any],
        names: Sequence[str] | None = None,
    ) -> Any:
        """Return the log density of some nodes (all by default), discrete latents averaged by their shares."""
        env = self.environment(values, data)
        total = jnp.zeros(())
        for name in self.sites if names is None else names:
            logs = self.logs(name, env, data).logs
            if name in self.tabled:
                logs = jnp.where(shares[name] > 0, shares[name] * logs, 0.0)
            total = total + jnp.sum(logs)
        return total

    def shares(
        self, tables: Mapping[str, LogTable], codes: Mapping[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Return the log of the sum over discrete latents of a product of tables, and how likely every entry is.

        Where `codes` say which states were drawn, an entry has share 1 where they meet it and 0 elsewhere.
        """
        hidden, lengths = self.program.hidden, self.program.layout.lengths
        if not hidden:
            return jnp.zeros(()), {}
        tilts = []
        for name, code in (codes or {}).items():
            own = hidden[name]
            states = jnp.arange(own.states).reshape(-1, *[1] * len(own.plates))
            tilts.append(LogTable((name, *own.plates), jnp.where(states == code, 0.0, -1e12), {}))

        def total(logs: Mapping[str, Any]) -> Any:
            parts = [LogTable(t.axes, logs[n], t.via) for n, t in tables.items()]
            return eliminate([*parts, *tilts], hidden, lengths)

        found: tuple[Any, dict[str, Any]] = jax.value_and_grad(total)({n: t.logs for n, t in tables.items()})
        return found

    def all_tables(self, values: Values, data: Mapping[str, Any]) -> dict[str, LogTable]:
        """Return the tables of all nodes that depend on discrete latents."""
        env = self.environment(values, data)
        return {name: self.logs(name, env, data) for name in self.tabled}


# -- finding blocks ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Conjugacy:
    """What was found: blocks with full conditionals of a known family, and the names of quantities that have none."""

    terms: Terms
    blocks: tuple[ConjugateBlock, ...]
    rest: tuple[str, ...]


def candidates(site: Site, most: int = MOST_DENSE) -> list[ConjugateBlock]:
    """Return the blocks that the support of a quantity allows, the cheapest first."""
    from numpyro.distributions import constraints

    support, count = site.support, prod(site.shape)
    if support is None:
        return []
    while hasattr(support, "base_constraint"):
        support = support.base_constraint
    shapes = {site.name: site.shape}
    if support is constraints.real:
        found: list[ConjugateBlock] = [NormalBlock(shapes, diagonal=True)]
        return [*found, NormalBlock(shapes, diagonal=False)] if 1 < count <= most else found
    if support is constraints.positive:
        return [ScalarBlock(shapes, FAMILIES["gamma"]), ScalarBlock(shapes, FAMILIES["inverse-gamma"])]
    if support is constraints.unit_interval or _unit(support):
        return [ScalarBlock(shapes, FAMILIES["beta"])]
    return [DirichletBlock(shapes)] if support is constraints.simplex else []


def _unit(support: Any) -> bool:
    low, high = getattr(support, "lower_bound", None), getattr(support, "upper_bound", None)
    if low is None or high is None or np.ndim(low) or np.ndim(high):
        return False
    return (float(low), float(high)) == (0.0, 1.0)


def refuse_holes(program: Program, engine: str) -> None:
    """Refuse missing entries that are inferred, which are no nodes, and findings that are not one value."""
    for site in program.layout.sites.values():
        if site.soft is not None:
            raise without_cure(
                UnsupportedModel, f"engine {engine!r} does not treat {site.soft.said!r} on {site.name!r}"
            )
    for name in program.slots:
        if program.layout.sites[name].role == "observed":
            raise without_cure(
                UnsupportedModel,
                f"engine {engine!r} does not infer the missing entries of {name!r}: drop those rows",
            )


class Slopes:
    """Log density and gradient of a program at many places: one compiled function, whatever is asked of it afterwards."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        self.density = terms.program.density

    @cached_property
    def _data(self) -> Any:
        with x64():
            return as_data(self.density)

    def starts(self) -> Values:
        """Return some random values of all latent quantities, along a new first axis: on both sides, near and far."""
        rng = np.random.default_rng(0)

        def free(shape: tuple[int, ...]) -> Array:
            near, far = rng.uniform(-REACH, REACH, (2, PROBES // 4, *shape))
            far = far * np.reshape([4.0, 8.0], (-1, *[1] * len(shape)))
            return np.concatenate([near, -near, far, -far])

        sites = self.terms.latents
        made = {n: mapped(s.support, free(s.shape)) for n, s in sites.items()}
        for name, values in made.items():
            if values is not None and isinstance(next(iter(candidates(sites[name])), None), NormalBlock):
                values[PROBES // 2 :] = np.sinh(values[PROBES // 2 :])
        if all(x is not None for x in made.values()):
            return made
        drawn = constrained(self.density, free((self.density.size,)))
        return {n: drawn[n] for n in sites}

    def at(self, places: Values) -> tuple[Array, dict[str, Array]]:
        """Return values and gradients at places along the first axis; discrete latents are averaged at the first of all."""
        terms = self.terms
        if not terms.program.hidden:
            return self._run(  # type: ignore[no-any-return]
                "slopes",
                lambda place, data: jax.value_and_grad(lambda v: terms.log_density(v, data, {}))(place),
                places,
            )
        if self._shares is None:
            first = {n: x[:1] for n, x in places.items()}
            found = self._run("shares", lambda p, data: terms.shares(terms.all_tables(p, data))[1], first)
            self._shares = {n: x[0] for n, x in found.items()}

        def one(place: Any, data: Any) -> Any:
            values, shares = place[0], data[1]
            return jax.value_and_grad(lambda v: terms.log_density(v, data[0], shares))(values)

        return self._run("weighted slopes", one, (places,), (self._data, self._shares))  # type: ignore[no-any-return]

    _shares: Any = None

    def _run(self, name: str, function: Any, places: Any, data: Any = None) -> Any:
        """Return a function's values at places along the first axis, some at a time."""
        with x64():
            data = self._data if data is None else jax.tree.map(jax.numpy.asarray, data)
            if not jax.tree.leaves(
                places
            ):  # everything was observed: there is one place, and it has no numbers
                return jax.tree.map(lambda x: np.asarray(x)[None], function(places, data))
            count = len(jax.tree.leaves(places)[0])
            parts = []
            for at in range(0, count, BATCH):
                part = jax.tree.map(
                    lambda x, at=at: np.resize(np.asarray(x[at : at + BATCH]), (BATCH, *np.shape(x)[1:])),
                    places,
                )
                part = jax.tree.map(jax.numpy.asarray, part)

                def batch(part: Any, data: Any) -> Any:
                    return jax.lax.map(lambda place: function(place, data), part)

                found = compiled(self.density, name, BATCH, batch, part, data)(part, data)
                left = count - at
                parts.append(jax.tree.map(lambda x, left=left: np.asarray(x)[:left], found))
        return jax.tree.map(lambda *x: np.concatenate(x), *parts)


def find_blocks(program: Program, *, joined: bool = True) -> Conjugacy:
    """Return the blocks of a program whose full conditionals are of a known family.

    Normal nodes that are normal together become one block where it is small and that is wanted (`joined`).
    """
    terms = Terms(program)
    if not any(candidates(site) for site in terms.latents.values()):
        return Conjugacy(terms, (), tuple(terms.latents))
    slopes = Slopes(terms)
    starts = slopes.starts()
    if program.hidden:
        slopes.at({n: x[:1] for n, x in starts.items()})
    blocks: list[ConjugateBlock] = []
    for site in terms.latents.values():
        fits = (b for b in candidates(site) if misfit(slopes, b, starts) < TOLERANCE)
        block = next(fits, None)
        if block is not None:
            blocks.append(block)
    normal = {n: s for b in blocks if isinstance(b, NormalBlock) for n, s in b.shapes.items()}
    if joined and len(normal) > 1 and sum(map(prod, normal.values())) <= MOST_JOINED:
        block = NormalBlock(normal, diagonal=False)
        if misfit(slopes, block, starts) < TOLERANCE:
            blocks = [block, *(b for b in blocks if not isinstance(b, NormalBlock))]
    done = {n for b in blocks for n in b.shapes}
    return Conjugacy(terms, tuple(blocks), tuple(n for n in terms.latents if n not in done))


def misfit(slopes: Slopes, block: ConjugateBlock, starts: Values) -> float:
    """Return how far the conditional of a block is from its family, relative, at random values of itself and of the rest.

    Values count as well as gradients: a density that jumps (a change point) has the gradient of its prior.
    """
    blanket = slopes.terms.blanket(list(block.shapes))
    if slopes.terms.bounded & set(blanket):
        return np.inf
    if any(slopes.terms.kinks.get(n, frozenset()) & set(block.shapes) for n in blanket):
        return np.inf
    worst = 0.0
    count = len(next(iter(starts.values())))
    mine = {n: starts[n] for n in block.shapes}
    for k in range(min(2, count)):
        rest = {n: x[k] for n, x in starts.items()}
        eta, _ = read_off(slopes, block, rest)
        values, gradients = slopes.at(_filled(rest, mine, count))
        kernels = [block.kernel({n: x[i] for n, x in mine.items()}, eta) for i in range(count)]
        gaps = values - np.array(kernels)
        heights = 1.0 + np.abs(values) + np.abs(kernels)
        apart = np.abs(gaps[:, None] - gaps) / (heights[:, None] + heights)
        worst = max(worst, float(apart.max()))
        for i in range(count):
            place = {n: x[i] for n, x in mine.items()}
            found = block.tangent({n: gradients[n][i] for n in mine}, place)
            fitted = block.tangent(block.slope(place, eta), place)
            size = max(np.abs(found).max(), np.abs(fitted).max(), 1e-300)
            worst = max(worst, float(np.abs(found - fitted).max() / size))
        if not worst < TOLERANCE:  # NaN is no fit
            return np.inf
    return worst


def read_off(slopes: Slopes, block: ConjugateBlock, rest: Values) -> tuple[Any, Values]:
    """Return the natural parameters of a block given the rest, and the gradients by the rest at the places looked at."""
    places = block.places({n: rest[n] for n in block.shapes})
    count = len(next(iter(places.values())))
    _, gradients = slopes.at(_filled(rest, places, count))
    return block.solve(places, {n: gradients[n] for n in block.shapes}), gradients


def _filled(rest: Values, mine: Values, count: int) -> dict[str, Array]:
    every = {n: np.broadcast_to(x, (count, *np.shape(x))) for n, x in rest.items()}
    return {**every, **mine}


def unconstrained(terms: Terms, values: Values) -> Array:
    """Return the unconstrained vectors of values along a first axis, one row each."""
    program = terms.program

    with x64():
        data = as_data(program.density)
        held = {n: jnp.asarray(values[n]) for n in terms.latents}

        def every(held: Any, data: Any) -> Any:
            return jax.vmap(lambda v: terms.free(v, data))(held)

        found = compiled(program.density, "unconstrain", (), every, held, data)(held, data)
    return np.asarray(found)
