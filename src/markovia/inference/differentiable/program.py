"""From a graph to one pure log density: latent numbers unconstrained, discrete latent variables summed out.

The functions of a model are traced once with abstract arrays, which tells shapes, supports and what is discrete (`Program`
keeps that). The density is then a function of one vector: its pieces are mapped to the latent quantities by bijections, the
log density of every element of every node is computed with whole arrays, and tables over discrete latent variables are
eliminated (see `plated_elimination`). Discrete variables come back by differentiation: the derivative of the log density by
a log weight on a state is that state's posterior probability (Darwiche 2003).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, Literal

import numpy as np

from markovia.errors import InvalidEvidence, Unanswered, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import Flat
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.inference.differentiable.compiled_functions import at_points
from markovia.inference.differentiable.density import Density
from markovia.inference.differentiable.density_engine import Drawn
from markovia.inference.differentiable.function_checks import check_functions
from markovia.inference.differentiable.function_digest import digest
from markovia.inference.differentiable.index_recording import recorded_index
from markovia.inference.differentiable.layout import Layout, Site, lay_out
from markovia.inference.differentiable.node_densities import MOST_UNROLLED, Nodes
from markovia.inference.differentiable.plated_elimination import (
    EARLIER,
    Hidden,
    LogTable,
    draw_states,
    eliminate,
)
from markovia.inference.differentiable.row_batches import rows_of
from markovia.inference.differentiable.soft_evidence import between, bounded, likelihood, state_weights
from markovia.inference.differentiable.state_draws import StateDraws
from markovia.inference.problem import Problem
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64

Reparameterize = Literal["auto", "all", "none"]
FEW_CHILDREN = 5
"""Children an element of a hierarchy may have on average for it to be sampled non-centred."""


def program_of(
    problem: Problem, reparameterize: Reparameterize = "auto", *, only_drawn: bool = False
) -> "Program":
    """Return the density of a problem, traced and checked.

    Parameters
    ----------
    problem
        A model with function nodes, and its evidence.
    reparameterize
        Which nodes `location + scale * standard`, with a scale that is inferred, have their standard part inferred instead
        of their value (non-centred): "all", "none", or "auto", where an element has few children to inform it.
    only_drawn
        Whether nodes are drawn in order, and nothing is summed out: counts without an end are then no obstacle.

    Raises
    ------
    MarkoviaError
        Naming the node, for shapes, supports or arguments that do not fit.
    """
    with x64():
        layout = lay_out(problem)
        nodes = Nodes(layout)
        _trace(layout, nodes, only_drawn)
        check_functions(layout, nodes)
        for site in layout.sites.values():
            if site.scaled and reparameterize != "none":
                few = _children(layout, site) <= FEW_CHILDREN * max(1, prod(site.shape))
                site.centred = reparameterize == "auto" and not few
        return Program(problem, layout, nodes)


@dataclass(frozen=True)
class Slot:
    """Where a latent quantity sits in the unconstrained vector."""

    start: int
    size: int


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
    hidden
        The discrete latent variables that are summed out, by name.
    note
        What to know about how it is computed, in a sentence; empty for nothing.
    centred
        Hierarchies that are sampled centred, which is what divergences may come from.
    """

    def __init__(self, problem: Problem, layout: Layout, nodes: Nodes) -> None:
        self.problem = problem
        self.layout, self.nodes = layout, nodes
        self.hidden: Mapping[str, Hidden] = {
            s.name: Hidden(s.states, s.plates, any(lag.node == s.name for lag in s.lags.values()))
            for s in layout.sites.values()
            if s.role == "discrete"
        }
        away = [s.name for s in layout.sites.values() if not s.centred]
        parts = [f"{', '.join(self.hidden)} summed out"] * bool(self.hidden)
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
            key=digest(layout),
            log_jacobian=lambda u, d: sum(self.environment(u, d)[1].values(), _zero()),
            log_joint=self.log_density,
            source=self,
            rows=cache(lambda: rows_of(self)),
        )

    def _filled(self, site: Site) -> bool:
        """Say whether missing entries of an observed node are inferred; without children they just do not count."""
        users = [s for s in self.layout.sites.values() if site.name in s.sources or _looks_back(s, site.name)]
        return site.holes is not None and bool(users)

    # -- values ---------------------------------------------------------------------------------------------------

    def environment(self, u: Any, data: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the value of every node that does not depend on discrete latents, and the log Jacobians by latent."""
        import jax.numpy as jnp
        from numpyro.distributions.transforms import biject_to

        u = jnp.asarray(u)
        env: dict[str, Any] = {**self.layout.fixed, **{k: jnp.asarray(v) for k, v in data.items()}}
        jacobians: dict[str, Any] = {}

        def place(site: Site, support: Any) -> None:
            slot = self.slots[site.name]
            free = jnp.reshape(u[slot.start : slot.start + slot.size], site.free_shape)
            map_to = biject_to(support)
            env[site.name] = map_to(free)
            jacobians[site.name] = jnp.sum(map_to.log_abs_det_jacobian(free, env[site.name]))

        sites = self.layout.sites.values()
        for site in sites:
            if site.role == "observed" and site.name in self.slots:
                slot = self.slots[site.name]
                free = u[slot.start : slot.start + slot.size]
                map_to = biject_to(site.support)
                missing = map_to(free)
                env[site.name] = env[site.name].at[site.holes].set(missing)
                jacobians[site.name] = jnp.sum(map_to.log_abs_det_jacobian(free, missing))
        for site in sites:
            if site.role == "latent" and site.support is not None and site.centred:
                place(site, site.support)
        for site in sites:
            if site.role == "latent" and not site.centred:
                found, slot = self.nodes.call(site, env), self.slots[site.name]
                scale = jnp.broadcast_to(found.scale, site.shape)
                standard = jnp.reshape(u[slot.start : slot.start + slot.size], site.shape)
                env[site.name] = jnp.broadcast_to(found.loc, site.shape) + scale * standard
                jacobians[site.name] = jnp.sum(jnp.log(scale))
            elif site.role == "latent" and site.support is None:
                place(site, self.nodes.spread(site, self.nodes.call(site, env), site.plates).support)
            elif site.role == "deterministic" and not self.needs[site.name]:
                env[site.name] = self.nodes.deterministic(site, env)
        return env, jacobians

    def constrain(self, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return every latent quantity and deterministic node by name."""
        env, _ = self.environment(u, data)
        return {
            s.name: env[s.name]
            for s in self.layout.sites.values()
            if s.name in self.slots or (s.role == "deterministic" and s.name in env)
        }

    # -- densities --------------------------------------------------------------------------------------------------

    def element_log_probs(self, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the log density of every element of every node that depends on no discrete latent variable."""
        env, _ = self.environment(u, data)
        return {
            s.name: self.nodes.log_probs(s, env[s.name], env) for s in self._stochastic() if not self._axes(s)
        }

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
        import jax.numpy as jnp

        env, jacobians = self.environment(u, data)
        total = sum(jacobians.values(), _zero())
        tables = []
        for site in self._stochastic():
            if site.role == "observed" and not observed:
                continue
            axes = self._axes(site)
            if axes:
                tables.append(self._log_table(site, axes, env, data))
            else:
                total = total + jnp.sum(self._counted(site, self.nodes.log_probs(site, env[site.name], env)))
        for site in self.layout.sites.values():
            if site.soft is not None and observed:
                if site.role == "discrete":
                    tables.append(LogTable((site.name,), state_weights(site), {}))
                else:
                    total = total + likelihood(site, env[site.name])
        for name, tilt in (tilts or {}).items():
            tables.append(LogTable((name, *self.hidden[name].plates), tilt, {}))
        if tables:
            total = total + eliminate(tables, self.hidden, self.layout.lengths)
        return total

    def _counted(self, site: Site, logs: Any) -> Any:
        """Return log densities of elements over the last axes, with zero for those that are missing and not inferred."""
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
        import jax
        import jax.numpy as jnp

        loose = [a for a in axes if not a.endswith(EARLIER) and not self.hidden[a].plates]
        mapped = [a for a in axes if a not in loose]
        if prod(self.hidden[a].states for a in loose) > MOST_UNROLLED:
            raise UnsupportedModel(
                f"{site.name!r} depends on {len(loose)} discrete variables, with too many combinations to call its function"
            )

        def at(chosen: Mapping[str, Any]) -> Any:
            now = dict(env)
            earlier: dict[str, Any] = dict(env)
            for axis, state in chosen.items():
                name = axis.removesuffix(EARLIER)
                shape = self.layout.shape_of(self.hidden[name].plates)
                filled = jnp.full(shape, state) if shape else state
                (earlier if axis.endswith(EARLIER) else now)[name] = filled
            for other in self.layout.sites.values():
                needed = self.needs[other.name]
                if other.role == "deterministic" and needed and set(needed) <= now.keys():
                    now[other.name] = self.nodes.deterministic(other, now)
            return self._counted(site, self.nodes.log_probs(site, now[site.name], now, earlier))

        def over(left: Sequence[str], chosen: dict[str, Any]) -> Any:
            if not left:
                return at(chosen)
            axis, rest = left[0], left[1:]
            states = self.hidden[axis.removesuffix(EARLIER)].states
            if axis in loose:
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
                elif source in found and self.layout.sites[source].role == "deterministic":
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
        for site in self._stochastic():
            for name in self.needs[site.name]:
                plates = self.hidden[name].plates
                if not set(plates) <= set(site.plates):
                    index = recorded_index(self.nodes, site, name)
                    found[site.name, name] = (index, plates[0])
        return found

    # -- answers ---------------------------------------------------------------------------------------------------

    def finish(self, drawn: Drawn) -> dict[str, Array | StateDraws]:
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

    def pointwise(self, drawn: Drawn) -> dict[str, Array]:
        """Return the log likelihood of each observed element at each draw, by node: chains, draws, elements.

        Raises
        ------
        Unanswered
            If an observed node depends on a discrete latent variable that several elements share.
        """
        observed = [s for s in self._stochastic() if s.role == "observed"]
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
        import jax.numpy as jnp

        env, _ = self.environment(u, data)
        found: dict[str, Any] = {}
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
        import jax
        import jax.numpy as jnp

        flat = {n: jnp.zeros((h.states, *self.layout.shape_of(h.plates))) for n, h in self.hidden.items()}
        found: dict[str, Any] = jax.grad(lambda tilts: self.log_density(u, data, tilts=tilts))(flat)
        return found

    def draw_states(self, key: Any, u: Any, data: Mapping[str, Any]) -> dict[str, Any]:
        """Draw every discrete latent variable, all together, given the latent numbers: positions with plates as axes."""
        env, _ = self.environment(u, data)
        sites = [(s, self._axes(s)) for s in self._stochastic()]
        tables = [self._log_table(s, axes, env, data) for s, axes in sites if axes]
        soft = [s for s in self.layout.sites.values() if s.role == "discrete" and s.soft is not None]
        tables += [LogTable((s.name,), state_weights(s), {}) for s in soft]
        return draw_states(key, tables, self.hidden, self.layout.lengths)


def _looks_back(site: Site, name: str) -> bool:
    return any(lag.node == name for lag in site.lags.values())


def _each(tables: Sequence[LogTable], axes: Sequence[str], plates: Sequence[str]) -> Any:
    """Return the log of the sum over discrete variables of a product of tables, for each element."""
    from jax.scipy.special import logsumexp

    total: Any = 0.0
    for table in tables:
        total = total + table.spread((*axes, *plates))
    return logsumexp(total, axis=tuple(range(len(axes))))


def _zero() -> Any:
    import jax.numpy as jnp

    return jnp.zeros(())


def _uniform(key: Any, size: int) -> Any:
    import jax

    return jax.random.uniform(key, (size,), minval=-2.0, maxval=2.0)


def _trace(layout: Layout, nodes: Nodes, only_drawn: bool) -> None:
    """Call every function once with abstract arrays, and note what each node is."""
    import jax
    import jax.numpy as jnp
    from numpyro.distributions.transforms import biject_to

    def pass_through(data: dict[str, Any]) -> None:
        env: dict[str, Any] = {**layout.fixed, **data}
        for site in layout.sites.values():
            for lag in site.lags.values():  # earlier elements are looked at before their own node is reached
                if lag.node not in env:
                    env[lag.node] = _unseen(nodes, layout.sites[lag.node], env)
            if site.role == "input":
                _check_input(layout, site)
                site.shape = tuple(np.shape(env[site.name]))
                continue
            found, inner = _looked_at(nodes, site, env)
            if not is_distribution(found):
                _note_value(nodes, site, found, inner, env)
                continue
            site.family = _family(found)
            spread = nodes.spread(site, found, inner)
            event = tuple(spread.event_shape)
            site.shape = (*layout.shape_of(site.plates), *event)
            support = spread.support
            if site.role == "observed":
                _check_observed(layout, site, support)
                site.support = support
                continue
            if site.soft is not None:
                support = between(site, support, event)
            if support.is_discrete:
                site.role = "discrete"
                site.states = _states(spread, event)
                if not site.states and not only_drawn:
                    raise UnsupportedModel(
                        f"{site.name!r} is discrete, not observed, and has no finite list of values 0, 1, ... "
                        f"({site.family}), so it cannot be summed out; observe it, or use a distribution that has"
                    )
                env[site.name] = jnp.zeros(site.shape, dtype=int) if site.plates else 0
                continue
            site.role = "latent"
            if not any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(support)):
                site.support = support
            elif site.lags:
                raise UnsupportedModel(
                    f"{site.name!r} has a support that depends on its parents, which a node with previous= cannot have"
                )
            scale = getattr(found, "scale", None)
            site.scaled = (
                type(found).__name__ in LOCATION_SCALE
                and not bounded(site)
                and isinstance(scale, jax.core.Tracer)
                and not site.lags
            )
            free = jax.eval_shape(biject_to(support).inv, jnp.zeros(site.shape))
            site.free_shape = tuple(free.shape)
            env[site.name] = jnp.zeros(site.shape)

    jax.eval_shape(pass_through, {k: jnp.asarray(v) for k, v in layout.data.items()})


def _family(found: Any) -> str:
    """Return the class of a distribution; one that was expanded, or whose batch became an event, is still of its class."""
    while type(found).__name__ in ("ExpandedDistribution", "Independent"):
        found = found.base_dist
    return type(found).__name__


LOCATION_SCALE = {"Normal", "StudentT", "Cauchy", "Laplace", "Logistic", "Gumbel"}


def _children(layout: Layout, site: Site) -> int:
    """Return how many elements of other nodes depend on a node, also through functions."""
    total, seen, left = 0, set(), [site.name]
    while left:
        name = left.pop()
        for other in layout.sites.values():
            if name in other.sources and other.name not in seen:
                seen.add(other.name)
                if other.role == "deterministic":
                    left.append(other.name)
                else:
                    total += max(1, prod(other.shape))
    return total


def _unseen(nodes: Nodes, site: Site, env: dict[str, Any]) -> Any:
    """Return zeros of a chain's shape, which its first element tells; integers, which serve as numbers and positions."""
    import jax.numpy as jnp

    event: tuple[int, ...] = ()
    first = nodes.first(site, env, 0) if site.lags else None
    inner = site.plates[:-1]
    if is_distribution(first):
        event = tuple(nodes.spread(site, first, inner).event_shape)
    elif first is not None and not isinstance(first, Flat):
        event = tuple(nodes.value(site, first, inner).shape[len(inner) :])
    return jnp.zeros((*nodes.layout.shape_of(site.plates), *event), dtype=int)


def _looked_at(nodes: Nodes, site: Site, env: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """Return what a node's function says, for whole arrays or one step, and the plates that it says it for."""
    if not site.lags:
        return nodes.call(site, env), site.plates
    step, moving = nodes.stepper(site, env, env, site.depth)
    return step({k: v[0] for k, v in moving.items()}), site.plates[:-1]


def _note_value(nodes: Nodes, site: Site, found: Any, inner: tuple[str, ...], env: dict[str, Any]) -> None:
    import jax.numpy as jnp

    if site.role == "observed":
        raise InvalidEvidence(
            f"{site.name!r} is a function of its parents and cannot be observed; add noise to it"
        )
    site.role = "deterministic"
    value = nodes.value(site, found, inner)
    if site.lags:
        value = jnp.zeros(
            (*nodes.layout.shape_of(site.plates), *value.shape[len(inner) :]), dtype=jnp.result_type(float)
        )
    env[site.name] = value
    site.shape = tuple(value.shape)


def _states(spread: Any, event: tuple[int, ...]) -> int:
    """Return how many values 0, 1, ... a distribution has; 0 if they have no known end, or are others."""
    import jax

    if event or not spread.has_enumerate_support:
        return 0
    try:
        with jax.ensure_compile_time_eval():
            values = np.asarray(spread.enumerate_support(expand=False))
    except (NotImplementedError, TypeError, jax.errors.JAXTypeError):  # as many as a node says
        return 0
    return len(values) if np.array_equal(values.ravel(), np.arange(len(values))) else 0


def _check_input(layout: Layout, site: Site) -> None:
    value = layout.data.get(site.name)
    wanted = layout.shape_of(site.plates)
    if value is not None and value.shape[: len(wanted)] != wanted:
        raise InvalidEvidence(
            f"the input {site.name!r} has shape {value.shape}, but its plates {', '.join(site.plates)} are {wanted}"
        )


def _check_observed(layout: Layout, site: Site, support: Any) -> None:
    """Check shape and support of what was given for a node."""
    import jax

    if site.name in layout.fixed:
        return
    value = layout.data[site.name]
    if value.shape != site.shape:
        over = f" (plates {', '.join(site.plates)})" if site.plates else ""
        raise InvalidEvidence(
            f"{site.name!r} has shape {site.shape}{over}, but what was given for it has {value.shape}"
        )
    if any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree_util.tree_leaves(support)):
        return
    with jax.ensure_compile_time_eval():
        inside = np.asarray(support(value))
    if site.holes is not None:
        if support.is_discrete or len(site.shape) != len(site.plates):
            raise InvalidEvidence(
                f"missing entries of {site.name!r} can be imputed only where it is a single number"
            )
        inside[site.holes] = True
    if not inside.all():
        at = np.argwhere(~inside)[0]
        wrong = value[tuple(at)]
        where = f" at {tuple(map(int, at))}" if at.size else ""
        raise InvalidEvidence(f"{site.name!r} cannot be {wrong}{where}: its distribution is on {support}")
