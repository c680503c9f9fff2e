"""From a graph to one pure log density: latent numbers unconstrained, discrete latent variables summed out.

The functions of a model are traced once, which tells shapes, supports and what is discrete (`node_tracing`). The density is
then a function of one vector: its pieces are mapped to the latent quantities by bijections, the log density of every element
of every node is computed with whole arrays, and tables over discrete latent variables are eliminated (see
`plated_elimination`). Discrete variables come back by differentiation: the derivative of the log density by a log weight on
a state is that state's posterior probability (Darwiche 2003).
"""

from collections.abc import Container, Mapping, Sequence
from functools import cached_property
from math import prod
from typing import Any, Literal

import numpy as np

from markovia.errors import Unanswered, UnsupportedModel
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.densities.program.compiled_functions import at_points
from markovia.inference.densities.program.density import Density, DensityRows, Slot
from markovia.inference.densities.program.draw_stats import DensityDraws
from markovia.inference.densities.program.function_checks import check_functions
from markovia.inference.densities.program.function_digest import digest
from markovia.inference.densities.program.function_nodes import function_nodes
from markovia.inference.densities.program.index_recording import recorded_index
from markovia.inference.densities.program.layout import SEEN, QuantityLayout, Site, lay_out
from markovia.inference.densities.program.node_densities import (
    FEW_UNROLLED,
    MOST_MAPPED,
    MOST_UNROLLED,
    Nodes,
    takes_traced_states,
)
from markovia.inference.densities.program.node_tracing import bijection, children, trace
from markovia.inference.densities.program.non_centred import from_standard, to_standard
from markovia.inference.densities.program.plated_elimination import (
    EARLIER,
    Hidden,
    LogTable,
    draw_states,
    eliminate,
)
from markovia.inference.densities.program.row_batches import rows_of
from markovia.inference.densities.program.simulation import simulate
from markovia.inference.densities.program.soft_evidence import (
    bounded,
    likelihood,
    likelihoods,
    state_weights,
)
from markovia.inference.densities.program.state_draws import StateDraws
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

Reparameterize = Literal["auto", "all", "none"]
SHARP = 1e6
"""What logs of tables are multiplied by where the best states are looked for."""
FEW_CHILDREN = 5
"""Children an element of a hierarchy may have on average for it to be sampled non-centred."""


def program_of(
    problem: Problem,
    reparameterize: Reparameterize = "auto",
    *,
    only_drawn: bool = False,
    layout: QuantityLayout | None = None,
    proposed: Container[str] = (),
) -> "Program":
    """Return the density of a problem, traced and checked.

    Parameters
    ----------
    problem
        A model with function nodes, and its evidence.
    reparameterize
        Which nodes `location + scale * standard`, with a scale that is inferred or a Cholesky factor, have their standard
        part inferred instead of their value (non-centred, whitened): "all", "none", or "auto", where an element has few
        children to inform it.
    only_drawn
        Whether nodes are drawn in order, and nothing is summed out: counts without an end are then no obstacle.
    layout
        The problem laid out already, perhaps for some of its rows.
    proposed
        Nodes whose values come from a guide: discrete ones among them are not summed out.

    Raises
    ------
    MarkoviaError
        Naming the node, for shapes, supports or arguments that do not fit.
    """
    with x64():
        layout = lay_out(problem) if layout is None else layout
        nodes = Nodes(layout)
        trace(layout, nodes, only_drawn, proposed)
        probed = check_functions(layout, nodes)
        for site in layout.sites.values():
            if site.scaled and reparameterize != "none":
                few = children(layout, site) <= FEW_CHILDREN * max(1, prod(site.shape))
                site.centred = reparameterize == "auto" and not few
        return Program(problem, layout, nodes, probed)


class Program:
    """A model with its evidence as pure functions of an unconstrained vector and data.

    Attributes
    ----------
    density
        What engines see.
    problem
        The model and its evidence.
    layout
        What every node is in this question.
    probed
        Values of all nodes that their functions were tried with.
    hidden
        The discrete latent variables that are summed out, by name.
    note
        What to know about how it is computed, in a sentence; empty for nothing.
    centred
        Hierarchies that are sampled centred, which is what divergences may come from.
    """

    row_weights: tuple[str, Any] | None = None
    """A plate and the weights of its elements, 1 or 0, in a program of some rows."""

    def __init__(
        self, problem: Problem, layout: QuantityLayout, nodes: Nodes, probed: Mapping[str, Any]
    ) -> None:
        self.problem, self.probed = problem, probed
        self.layout, self.nodes = layout, nodes
        self.hidden: Mapping[str, Hidden] = {
            s.name: Hidden(s.states, s.plates, any(lag.node == s.name for lag in s.lags.values()))
            for s in layout.sites.values()
            if s.role == "discrete"
        }
        self.functions = function_nodes(layout, nodes, probed)
        away = [s.name for s in layout.sites.values() if not s.centred]
        parts = [f"{', '.join(self.hidden)} summed out"] * bool(self.hidden)
        parts += [self.functions.note] if self.functions is not None and self.functions.note else []
        parts += [f"{', '.join(away)} sampled non-centred"] * bool(away)
        self.note = "; ".join(parts)
        self.centred = [s for s in layout.sites.values() if s.scaled and s.centred]
        self.slots: dict[str, Slot] = {}
        size = 0
        for site in layout.sites.values():
            if site.role == "latent" or self._filled(site):
                n = prod(site.free_shape) if site.holes is None else len(site.holes[0])
                self.slots[site.name] = Slot(size, n)
                size += n
        for name, n in self.functions.sizes.items() if self.functions is not None else ():
            self.slots[name] = Slot(size, n)
            size += n
        self.needs = self._discrete_parents()
        self.via = self._indices()
        data = {**layout.data, **{f"index of {x} into {z}": i for (x, z), (i, _) in self.via.items()}}
        self.density = Density(
            size=size,
            log_prior=lambda u, d: self.log_density(u, d, observed=False),
            log_likelihood=lambda u, d: self.log_density(u, d) - self.log_density(u, d, observed=False),
            constrain=self.constrain,
            start=lambda key, d: _uniform(key, size),
            data=data,
            key=digest(layout) + (self.functions.digest() if self.functions is not None else ""),
            log_jacobian=lambda u, d: sum(self.environment(u, d)[1].values(), _zero()),
            log_joint=self.log_density,
            prior=self.prior if self._proper() else None,
            source=self,
            rows=lambda: self.rows,
        )

    @cached_property
    def rows(self) -> DensityRows | None:
        """How the likelihood is a sum over rows of data, where it is."""
        return rows_of(self)

    def _filled(self, site: Site) -> bool:
        """Say whether missing entries of an observed node are inferred; without children they just do not count."""
        users = [s for s in self.layout.sites.values() if site.name in s.sources or _looks_back(s, site.name)]
        return site.holes is not None and bool(users)

    # -- values ---------------------------------------------------------------------------------------------------

    def environment(self, u: Any, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the value of every node that does not depend on discrete latents, and the log Jacobians by latent."""
        if self.functions is not None:
            return self.functions.environment(self, u, data)
        return self.plain_environment(u, data, {})

    def plain_environment(
        self, u: Any, data: Mapping[str, Any], functions: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return an environment with nodes that are functions as they are given."""
        u = jnp.asarray(u)
        env: dict[str, Any] = {
            **self.layout.fixed,
            **{k: jnp.asarray(v) for k, v in data.items()},
            **functions,
        }
        jacobians: dict[str, Any] = {}

        def place(site: Site, support: Any) -> None:
            slot = self.slots[site.name]
            free = jnp.reshape(u[slot.start : slot.start + slot.size], site.free_shape)
            map_to = bijection(support)
            # states that a guide proposed are kept as numbers, and are positions to functions
            env[site.name] = jnp.asarray(free, int) if support.is_discrete else map_to(free)
            jacobians[site.name] = jnp.sum(map_to.log_abs_det_jacobian(free, env[site.name]))

        sites = self.layout.sites.values()
        for site in sites:
            if site.role == "observed" and site.name in self.slots:
                slot = self.slots[site.name]
                free = u[slot.start : slot.start + slot.size]
                map_to = bijection(site.support)
                missing = map_to(free)
                env[site.name] = env[site.name].at[site.holes].set(missing)
                jacobians[site.name] = jnp.sum(map_to.log_abs_det_jacobian(free, missing))
        for site in sites:
            if site.role == "latent" and site.support is not None and site.centred:
                place(site, site.support)
        for site in sites:
            if site.role == "latent" and not site.centred:
                slot = self.slots[site.name]
                standard = jnp.reshape(u[slot.start : slot.start + slot.size], site.shape)
                env[site.name], jacobians[site.name] = from_standard(self.nodes.call(site, env), standard)
            elif site.role == "latent" and site.support is None:
                place(site, self.nodes.spread(site, self.nodes.call(site, env), site.plates).support)
            elif site.role == "deterministic" and not self.needs[site.name]:
                env[site.name] = self.nodes.deterministic(site, env)
        return env, jacobians

    def constrain(self, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return every latent quantity and deterministic node by name."""
        env, _ = self.environment(u, data)
        found = {
            s.name: env[s.name]
            for s in self.layout.sites.values()
            if s.role != "function"
            if s.name in self.slots or (s.role == "deterministic" and s.name in env)
        }
        if self.functions is not None:
            found |= {n: self.functions.numbers(env[n]) for n in self.functions.kept}
            gone = {n for group in self.functions.summed for n in group.functions}
            found = {n: v for n, v in found.items() if not self.functions.below[n] & gone}
        return found

    def free(self, env: Mapping[str, Any]) -> Any:
        """Return the unconstrained vector at which latent quantities have the values of an environment."""
        parts = [jnp.zeros(0)]
        for site in self.layout.sites.values():
            if site.role != "latent":
                continue
            value = env[site.name]
            if not site.centred:
                parts.append(jnp.ravel(to_standard(self.nodes.call(site, env), value)))
                continue
            support = site.support
            if support is None:
                support = self.nodes.spread(site, self.nodes.call(site, env), site.plates).support
            parts.append(jnp.ravel(bijection(support).inv(value)))
        if self.functions is not None:
            parts += [env[n] for n in self.functions.kept]
        return jnp.concatenate(parts)

    def prior(self, key: Any, data: Mapping[str, Any]) -> Any:
        """Return a draw of the unconstrained vector from its prior, observations that are parents as they are."""
        values = simulate(key, self.nodes, {}, data)
        sizes = {} if self.functions is None else self.functions.sizes
        keys = jax.random.split(jax.random.fold_in(key, 1), len(sizes) + 1)
        white = {n: jax.random.normal(k, (size,)) for k, (n, size) in zip(keys, sizes.items(), strict=False)}
        return self.free({**self.layout.fixed, **data, **values, **white})

    def _proper(self) -> bool:
        """Say whether the prior of the latent quantities can be drawn from, with the density that it is said to have."""
        below = {} if self.functions is None else self.functions.below
        return not any(
            (site.role == "latent" and (not site.drawable or bounded(site) or below.get(site.name)))
            or (site.role == "observed" and site.name in self.slots)
            for site in self.layout.sites.values()
        )

    # -- densities --------------------------------------------------------------------------------------------------

    def _stochastic(self) -> list[Site]:
        return [s for s in self.layout.sites.values() if s.role in ("latent", "observed", "discrete")]

    def log_density(
        self,
        u: Any,
        data: Mapping[str, Any],
        *,
        observed: bool = True,
        tilts: Mapping[str, Any] | None = None,
    ) -> Any:
        """Return the log density of latent numbers and observations, discrete variables summed out.

        Parameters
        ----------
        u, data
            Where.
        observed
            Whether observations count; otherwise it is the prior of the latent numbers.
        tilts
            Log weights on states of discrete variables, states in front of plates.
        """
        env, jacobians = self.environment(u, data)
        return sum(jacobians.values(), _zero()) + self.log_joint_at(env, data, observed=observed, tilts=tilts)

    def log_joint_at(
        self,
        env: Mapping[str, Any],
        data: Mapping[str, Any],
        *,
        observed: bool = True,
        tilts: Mapping[str, Any] | None = None,
        left_out: Container[str] = (),
    ) -> Any:
        """Return the log density at values of all nodes but the discrete latent ones, which are summed out.

        `left_out` are nodes whose own densities do not count.
        """
        total, tables = _zero(), list[LogTable]()
        summed: Container[str] = ()
        if self.functions is not None:
            summed = self.functions.summed_children
            more, tables = self._function_terms(env, observed)
            total = total + more
        for site in self._stochastic():
            if (site.role == "observed" and not observed) or site.name in left_out or site.name in summed:
                continue
            axes = self._axes(site)
            if axes:
                tables.append(self._log_table(site, axes, env, data))
            else:
                total = total + jnp.sum(self._counted(site, self.nodes.log_probs(site, env[site.name], env)))
        for site in self.layout.sites.values():
            if site.soft is not None and observed and site.role != "function":
                if (table := self._soft_table(site, env, data)) is not None:
                    tables.append(table)
                else:
                    total = total + likelihood(site, env[site.name])
        for name, tilt in (tilts or {}).items():
            tables.append(LogTable((name, *self.hidden[name].plates), tilt, {}))
        if tables:
            total = total + eliminate(tables, self.hidden, self.layout.lengths)
        return total

    def _function_terms(self, env: Mapping[str, Any], observed: bool) -> tuple[Any, list[LogTable]]:
        """Return the log density of standard normal numbers, and of what functions that are summed out were seen through."""
        functions, total, tables = self.functions, _zero(), []
        assert functions is not None
        for name in functions.kept:
            function = env[name]
            white = (
                function.white
                if hasattr(function, "white")
                else function.process.white[-functions.sizes[name] :]
            )
            total = total - 0.5 * (white @ white) - 0.5 * len(white) * np.log(2.0 * np.pi)
            if observed and functions.points[name] is not None:
                total = total + function.process.log_prob
        for group in functions.summed if observed else ():
            sizes = [self.hidden[q].states for q in group.needs]
            every = [
                functions.log_evidence(group, self.at_states(env, dict(zip(group.needs, at, strict=True))))
                for at in np.ndindex(*sizes)
            ]
            if group.needs:
                tables.append(LogTable(group.needs, jnp.stack(every).reshape(sizes), {}))
            else:
                total = total + every[0]
        return total, tables

    def at_states(self, env: Mapping[str, Any], states: Mapping[str, Any]) -> dict[str, Any]:
        """Return an environment with some states, and what depends on them: functions, and functions of these."""
        now = {**env, **states}
        for other in self.layout.sites.values() if states else ():
            needed = self.needs[other.name]
            if not needed or not set(needed) <= now.keys():
                continue
            if other.role == "deterministic":
                now[other.name] = self.nodes.deterministic(other, now)
            elif (
                other.role == "function" and self.functions is not None and other.name in self.functions.kept
            ):
                now[other.name] = self.functions.realise(env[other.name], now)
        return now

    def _counted(self, site: Site, logs: Any) -> Any:
        """Return log densities of elements over the last axes, with zero for those that are missing and not inferred."""
        if self.row_weights is not None and site.role != "discrete":
            plate, weights = self.row_weights
            if plate in site.plates:  # what only fills up a batch; the discrete above it then sums to one
                behind = len(site.plates) - 1 - site.plates.index(plate)
                logs = logs * jnp.reshape(weights, (-1, *(1,) * behind))
        if site.holes is None or site.name in self.slots:
            return logs
        return logs.at[(..., *site.holes)].set(0.0)

    def _axes(self, site: Site) -> list[str]:
        """Return the axes of a node's table: the discrete latent variables that its density depends on."""
        axes = list(self.needs[site.name])
        if site.role == "discrete":
            axes.append(site.name)
        axes += [lag.node + EARLIER for lag in site.lags.values() if lag.node in self.hidden]
        return list(dict.fromkeys(axes))

    def _log_table(
        self, site: Site, axes: Sequence[str], env: Mapping[str, Any], data: Mapping[str, Any]
    ) -> LogTable:
        """Return log p of each element of a node for every combination of states of its discrete variables."""
        loose = [a for a in axes if not a.endswith(EARLIER) and not self.hidden[a].plates]
        mapped = [a for a in axes if a not in loose]

        def at(chosen: Mapping[str, Any]) -> Any:
            now = dict(env)
            earlier: dict[str, Any] = dict(env)
            for axis, state in chosen.items():
                name = axis.removesuffix(EARLIER)
                shape = self.layout.shape_of(self.hidden[name].plates)
                filled = jnp.full(shape, state) if shape else state
                (earlier if axis.endswith(EARLIER) else now)[name] = filled
            now = self.at_states(now, {a: now[a] for a in chosen if not a.endswith(EARLIER)})
            if site.role == "deterministic":  # what was found about it is a likelihood
                return likelihoods(site, now[site.name])
            return self._counted(site, self.nodes.log_probs(site, now[site.name], now, earlier))

        # a function may branch on a state without plates, so it is called with plain numbers, one after the other: a
        # program that grows with the states. Where there are many, and it does not branch, they are an axis like any other.
        combinations = prod(self.hidden[a].states for a in loose)
        together = combinations > FEW_UNROLLED and takes_traced_states(
            lambda *states: at(dict(zip([*loose, *mapped], states, strict=True))), len(axes)
        )
        if combinations > (MOST_MAPPED if together else MOST_UNROLLED):
            raise UnsupportedModel(
                f"{site.name!r} depends on {len(loose)} discrete variables, with too many combinations to call its function"
            )

        def over(left: Sequence[str], chosen: dict[str, Any]) -> Any:
            if not left:
                return at(chosen)
            axis, rest = left[0], left[1:]
            states = self.hidden[axis.removesuffix(EARLIER)].states
            if axis in loose and not together:
                return jnp.stack([over(rest, {**chosen, axis: k}) for k in range(states)])
            return jax.vmap(lambda k: over(rest, {**chosen, axis: k}))(jnp.arange(states))

        via = {
            z: (jnp.asarray(data[f"index of {x} into {z}"]), plate)
            for (x, z), (_, plate) in self.via.items()
            if x == site.name
        }
        return LogTable((*loose, *mapped, *site.plates), over([*loose, *mapped], {}), via)

    def _discrete_parents(self) -> dict[str, tuple[str, ...]]:
        """Return, for each node, the discrete latent variables it depends on within a step, also through functions."""
        found: dict[str, tuple[str, ...]] = {}
        for site in self.layout.sites.values():
            names: dict[str, None] = {}
            for source in site.sources:
                if source in self.hidden:
                    names[source] = None
                elif source in found and self.layout.sites[source].role in ("deterministic", "function"):
                    names.update(dict.fromkeys(found[source]))
            found[site.name] = tuple(names)
            if site.role == "deterministic" and names and site.lags:
                raise UnsupportedModel(
                    f"{site.name!r} is a recursion that depends on {next(iter(names))!r}, discrete and not observed; "
                    "its states cannot be summed out along the recursion"
                )
        return found

    def _indices(self) -> dict[tuple[str, str], tuple[Any, str]]:
        """Return how nodes index discrete variables on foreign plates: {(node, variable): (index, plate)}."""
        found = {}
        soft = [s for s in self.layout.sites.values() if s.role == "deterministic" and s.soft is not None]
        for site in (*self._stochastic(), *soft):
            for name in self.needs[site.name]:
                plates = self.hidden[name].plates
                if not set(plates) <= set(site.plates):
                    index = recorded_index(self.nodes, site, name, self.probed)
                    found[site.name, name] = (index, plates[0])
        return found

    # -- answers ---------------------------------------------------------------------------------------------------

    def finish(self, drawn: DensityDraws) -> dict[str, Array | StateDraws]:
        """Return draws of every latent quantity by name, discrete ones with their probabilities given each draw."""
        found: dict[str, Array | StateDraws] = dict(drawn.draws)
        if not self.hidden:
            return found

        def one(key: Any, u: Any, data: Any) -> Any:
            return self.state_probabilities(u, data), self.draw_states(key, u, data)

        states = at_points(self.density, "states", one, drawn.points)
        for name, hidden in self.hidden.items():
            probabilities = np.moveaxis(states[0][name], 2, -1)
            variable = self.layout.sites[name].piece.variable
            labels = variable.labels if isinstance(variable, Quantity) else variable.states
            plain = Variable(name, labels or hidden.states)
            found[name] = StateDraws(plain, probabilities, states[1][name].astype(np.int64))
        return found

    def filled(self, drawn: DensityDraws, names: Sequence[str]) -> dict[str, Array]:
        """Return draws of observed arrays some of whose entries were not seen: those drawn given each draw of the rest."""

        def one(key: Any, u: Any, data: Any) -> Any:
            env, _ = self.environment(u, data)
            keys = jax.random.split(key, len(names) + 1)
            if self.hidden:
                env.update(self.draw_states(keys[-1], u, data))
                for site in self.layout.sites.values():
                    if site.role == "deterministic" and self.needs[site.name]:
                        env[site.name] = self.nodes.deterministic(site, env)
            found = {}
            for name, own in zip(names, keys, strict=False):
                site = self.layout.sites[name]
                law = self.nodes.spread(site, self.nodes.call(site, env), site.plates)
                found[name] = jnp.where(env[SEEN + name], env[name], law.sample(own))
            return found

        draws: dict[str, Array] = at_points(
            self.density, f"missing entries of {', '.join(names)}", one, drawn.points
        )
        return draws

    def pointwise(self, drawn: DensityDraws) -> dict[str, Array]:
        """Return the log likelihood of each observed element at each draw, by node: chains, draws, elements.

        Raises
        ------
        Unanswered
            If an observed node depends on a discrete latent variable that several elements share.
        """
        observed = [s for s in self._stochastic() if s.role == "observed"]
        if weight := next((s.name for s in observed if s.piece.kind == "potential"), None):
            raise Unanswered(
                f"{weight!r} couples what it takes, so elements have no log likelihoods of their own"
            )
        for site in observed:
            for axis in self._axes(site):
                name = axis.removesuffix(EARLIER)
                own = self.hidden[name]
                if own.chain or set(site.plates) != set(own.plates) or self.needs[name]:
                    raise Unanswered(
                        f"the elements of {site.name!r} share the discrete variable {name!r} (or what it depends on), so "
                        "they have no log likelihoods of their own"
                    )

        def one(key: Any, u: Any, data: Any) -> Any:
            return self.element_log_likelihoods(u, data, observed)

        found: dict[str, Array] = at_points(self.density, "pointwise", one, drawn.points)
        return found

    def element_log_likelihoods(
        self, u: Any, data: Mapping[str, Any], sites: Sequence[Site]
    ) -> dict[str, Any]:
        """Return the log likelihood of each element of observed nodes, their own discrete variables summed out."""
        env, _ = self.environment(u, data)
        found: dict[str, Any] = {}
        if self.functions is not None:
            for group in self.functions.summed:
                found |= self.functions.left_out_log_densities(group, env)
            sites = [s for s in sites if s.name not in self.functions.summed_children]
        together: dict[tuple[str, ...], list[Site]] = {}
        for site in sites:
            axes = tuple(self._axes(site))
            if axes:
                together.setdefault(axes, []).append(site)
            else:
                logs = self._counted(site, self.nodes.log_probs(site, env[site.name], env))
                found[site.name] = jnp.ravel(logs)
        for axes, mine in together.items():
            priors = [
                self._log_table(self.layout.sites[a], self._axes(self.layout.sites[a]), env, data)
                for a in axes
            ]
            tables = [self._log_table(site, axes, env, data) for site in mine]
            plates = mine[0].plates
            both = _each(priors + tables, axes, plates) - _each(priors, axes, plates)
            found[" and ".join(s.name for s in mine)] = jnp.ravel(both)
        return found

    # -- discrete variables ------------------------------------------------------------------------------------------

    def state_probabilities(self, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the posterior of every discrete latent variable given the latent numbers: axes states, then plates."""
        flat = {n: jnp.zeros((h.states, *self.layout.shape_of(h.plates))) for n, h in self.hidden.items()}
        found: dict[str, Any] = jax.grad(lambda tilts: self.log_density(u, data, tilts=tilts))(flat)
        return found

    def best_states(self, u: Any, data: Mapping[str, Any]) -> tuple[dict[str, Any], Any]:
        """Return the best states of all discrete latent variables together given the latent numbers, and their log odds.

        Logs of all tables are multiplied by a large number, so that sums are as good as maxima; what they single out is
        weighed against all other states.
        """
        tables = self._state_tables(u, data)
        flat = {n: jnp.zeros((h.states, *self.layout.shape_of(h.plates))) for n, h in self.hidden.items()}

        def mass(tilts: Mapping[str, Any], sharpness: float) -> Any:
            sharp = [LogTable(t.axes, t.logs * sharpness, t.via) for t in tables]
            sharp += [LogTable((n, *self.hidden[n].plates), tilt, {}) for n, tilt in tilts.items()]
            return eliminate(sharp, self.hidden, self.layout.lengths)

        best = {n: jnp.argmax(p, axis=0) for n, p in jax.grad(mass)(flat, SHARP).items()}
        only = {
            n: jnp.where(jnp.moveaxis(jax.nn.one_hot(z, self.hidden[n].states), -1, 0) > 0, 0.0, -jnp.inf)
            for n, z in best.items()
        }
        return best, mass(only, 1.0) - mass(flat, 1.0)

    def draw_states(self, key: Any, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Draw every discrete latent variable, all together, given the latent numbers: positions with plates as axes."""
        return draw_states(key, self._state_tables(u, data), self.hidden, self.layout.lengths)

    def _state_tables(self, u: Any, data: Mapping[str, Any]) -> list[LogTable]:
        """Return everything that depends on discrete latent variables, at some latent numbers."""
        env, _ = self.environment(u, data)
        sites = [(s, self._axes(s)) for s in self._stochastic()]
        tables = [self._log_table(s, axes, env, data) for s, axes in sites if axes]
        soft = [self._soft_table(s, env, data) for s in self.layout.sites.values() if s.soft is not None]
        return tables + [table for table in soft if table is not None]

    def _soft_table(self, site: Site, env: Mapping[str, Any], data: Mapping[str, Any]) -> LogTable | None:
        """Return what was found about states, or about a function of such; None of anything else."""
        if site.role == "discrete":
            return LogTable((site.name,), state_weights(site), {})
        if site.role == "deterministic" and self.needs[site.name]:
            return self._log_table(site, self.needs[site.name], env, data)
        return None


def _looks_back(site: Site, name: str) -> bool:
    return any(lag.node == name for lag in site.lags.values())


def _each(tables: Sequence[LogTable], axes: Sequence[str], plates: Sequence[str]) -> Any:
    """Return the log of the sum over discrete variables of a product of tables, for each element."""
    total: Any = 0.0
    for table in tables:
        total = total + table.spread((*axes, *plates))
    return jax.nn.logsumexp(total, axis=tuple(range(len(axes))))


def _zero() -> Any:
    return jnp.zeros(())


def _uniform(key: Any, size: int) -> Any:
    return jax.random.uniform(key, (size,), minval=-2.0, maxval=2.0)
