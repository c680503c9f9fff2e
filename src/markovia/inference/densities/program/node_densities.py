"""The log density of each element of a node, given the values of its parents: functions called with aligned arrays.

A function is called once with whole arrays. One that takes earlier elements is written for one step and mapped over the
steps; a deterministic one that takes its own earlier elements is a recursion and becomes a scan.
"""

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.closures import with_arrays
from markovia.factors.functions.function_node import Flat, FunctionNode, function_arguments
from markovia.factors.functions.parameter import PlatedModule
from markovia.factors.functions.potential_node import PotentialNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.variable import Variable
from markovia.inference.densities.program.layout import BOUND_KEY, SEEN, QuantityLayout, Site
from markovia.inference.densities.program.process_calls import CalledFunction
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.traced_functions import tracing_problem

Env = Mapping[str, Any]
FEW_UNROLLED = 8
"""Combinations of states of variables without plates that functions are always called with one by one."""
MOST_UNROLLED = 4096
"""Combinations that they are called with one by one where they branch on the state."""
MOST_MAPPED = 1_000_000
"""Combinations that they are called with all together where they do not."""


class FunctionFailed(InvalidArgument):
    """A node's function that could not be called with some values of its parents."""


class Nodes:
    """Calls the functions of a layout's nodes with values from an environment."""

    def __init__(self, layout: QuantityLayout, mapped_plate: str | None = None) -> None:
        self.layout = layout
        self.mapped_plate = mapped_plate
        """The one plate that modules are applied along; None for all plates of a node."""
        self.said: dict[str, tuple[list[Any], Any]] | None = None
        """What functions said last, and of which values, where they are asked of the same ones again; None forgets it."""
        self.with_modules = {
            s.name
            for s in layout.sites.values()
            if any(layout.parameters.get(q) is not None for q in s.sources)
        }
        self.forms: dict[str, Any] = {}
        self.firsts: dict[str, Any] = {}
        for site in layout.sites.values():
            if isinstance(site.piece, FunctionNode):
                self.forms[site.name] = with_arrays(site.piece.form, jnp.asarray)
                self.firsts[site.name] = with_arrays(site.piece.first, jnp.asarray)

    # -- what a function is called with ----------------------------------------------------------------------------

    def aligned(self, site: Site, source: str, env: Env, drop_last: bool = False) -> Any:
        """Return a parent's value as the child's function gets it.

        With `drop_last` the value has no axis for the child's last plate: it is one step's, or does not have that plate.
        """
        layout = self.layout
        if source in layout.lengths and source not in layout.sites:
            return layout.lengths[source]
        value = env[source]
        if isinstance(value, CalledFunction):
            return value.called_by(site.name)
        plates = layout.plates_of(source)
        own = site.plates[:-1] if drop_last else site.plates
        if (skeleton := layout.parameters.get(source)) is not None:
            along = own if self.mapped_plate is None else tuple(p for p in own if p == self.mapped_plate)
            return PlatedModule(skeleton.module(value), source, along, layout.shape_of(along))
        if drop_last and plates and site.plates[-1] in plates:
            plates = tuple(p for p in plates if p != site.plates[-1])
        if not plates or not set(plates) <= set(own):
            return value
        present = [p for p in own if p in plates]
        order = [plates.index(p) for p in present]
        rest = list(range(len(plates), np.ndim(value)))
        value = value if order + rest == list(range(np.ndim(value))) else jnp.transpose(value, order + rest)
        # modules look for all plates in front, others only for those from its first one on
        begin = 0 if site.name in self.with_modules else own.index(present[0])
        if begin + len(present) == len(own):
            return value  # its plates are the child's last ones: it broadcasts as it is
        events = np.shape(value)[len(present) :]
        full = [layout.lengths[p] if p in plates else 1 for p in own[begin:]]
        return jnp.reshape(value, (*full, *events))

    def call(self, site: Site, env: Env) -> Any:
        """Return what the node's function says for whole arrays: a distribution or a value."""
        piece = site.piece
        if not isinstance(piece, FunctionNode):
            return self._table(site, env)
        form = self.forms[site.name]
        if is_distribution(form) or not callable(form):
            return form
        seen = [env.get(v) for v in piece.arguments.values()]
        before = self.said.get(site.name) if self.said is not None else None
        if before is not None and all(a is b for a, b in zip(seen, before[0], strict=True)):
            return before[1]
        arguments = {k: self._argument(site, v, env) for k, v in piece.arguments.items() if k in _own(piece)}
        found = self._called(site, form, arguments)
        if isinstance(piece, PotentialNode):
            found = piece.as_distribution(found, self.layout.shape_of(site.plates))
        if self.said is not None:
            self.said[site.name] = (seen, found)
        return found

    def _argument(self, site: Site, source: str, env: Env) -> Any:
        value = self.aligned(site, source, env)
        if site.piece.by_state and source in self.layout.sites:  # type: ignore[attr-defined]
            variable: Variable = self.layout.sites[source].piece.variable
            return variable.states[int(value)]
        return value

    def _called(self, site: Site, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
        try:
            return function(**arguments)
        except MarkoviaError:
            raise
        except Exception as problem:
            raise _explained(site, arguments, problem) from problem

    def _table(self, site: Site, env: Env) -> Any:
        """Return a node with a table, or a linear Gaussian, as a distribution given positions and numbers."""
        import numpyro.distributions as theirs

        piece = site.piece
        if piece.kind == "table":
            index = tuple(env[n] for n in piece.parent_names)
            table = jnp.asarray(piece.values)
            return theirs.Categorical(probs=table[index] if index else table)
        assert isinstance(piece, GaussianConditional)
        index = tuple(env[p.name] for p in piece.discrete)
        mean, weights = jnp.asarray(piece.bias)[index], jnp.asarray(piece.weights)[index]
        for k, parent in enumerate(piece.continuous):
            mean = mean + weights[..., k] * env[parent.name]
        if not piece.variance.any():
            return mean
        return theirs.Normal(mean, jnp.sqrt(jnp.asarray(piece.variance)[index]))

    def distributions(self, site: Site, env: Env) -> list[Any]:
        """Return the distributions of a stochastic node: one, or those of its first elements and of a step."""
        if not site.lags:
            return [self.call(site, env)]
        step, moving = self.stepper(site, env, env, site.depth)
        heads = [self.first(site, env, i) for i in range(site.depth)]
        return [*(h for h in heads if is_distribution(h)), step({k: v[0] for k, v in moving.items()})]

    def unrolled(self, site: Site, env: Env, function: Callable[[Env], Any]) -> Any:
        """Return a function of the environment, called with every state of discrete parents that are traced numbers.

        A node's function may branch on a parent without plates, or take its states by name; so it sees plain numbers, and
        what it says for the right ones is picked. Where that would be many calls and it does not branch, it sees the traced
        numbers themselves.
        """
        sites = self.layout.sites
        loose = [
            q
            for q in site.sources
            if q in sites and sites[q].role == "discrete" and not sites[q].plates and sites[q].states
            if isinstance(env[q], jax.core.Tracer)
        ]
        sizes = [sites[q].states for q in loose]
        if not loose or not isinstance(site.piece, FunctionNode) or prod(sizes) > MOST_UNROLLED:
            return function(env)
        if prod(sizes) > FEW_UNROLLED and takes_traced_states(
            lambda *states: jnp.asarray(function({**env, **dict(zip(loose, states, strict=True))})),
            len(loose),
        ):
            return function(env)
        every = [function({**env, **dict(zip(loose, at, strict=True))}) for at in np.ndindex(*sizes)]
        at = jnp.ravel_multi_index([jnp.asarray(env[q], int) for q in loose], tuple(sizes), mode="clip")
        return jnp.stack([jnp.asarray(v) for v in every])[at]

    # -- distributions and values with their plates -------------------------------------------------------------------

    def spread(self, site: Site, found: Any, plates: Sequence[str]) -> Any:
        """Return a distribution with the plates as its batch axes, and further batch axes made event axes.

        Raises
        ------
        InvalidArgument
            If the batch does not broadcast to the plates; it names both shapes.
        """
        wanted = self.layout.shape_of(plates)
        batch = tuple(found.batch_shape)
        events = batch[len(wanted) :] if len(batch) > len(wanted) else ()
        head = batch[: len(wanted)] if len(batch) > len(wanted) else batch
        try:
            fits = np.broadcast_shapes(head, wanted) == wanted
        except ValueError:
            fits = False
        if not fits:
            over = ", ".join(f"{p} ({n})" for p, n in zip(plates, wanted, strict=True)) or "none"
            raise InvalidArgument(
                f"the distribution of {site.name!r} has shape {batch}, but its plates are {over}; a parent on other plates "
                "comes whole and has to be indexed"
            )
        target = (*wanted, *events)
        if batch != target:
            found = found.expand(target)
        return found.to_event(len(events)) if events else found

    def value(self, site: Site, found: Any, plates: Sequence[str]) -> Any:
        """Return the value of a deterministic node with its plates in front."""
        wanted = self.layout.shape_of(plates)
        found = jnp.asarray(found)
        if found.ndim < len(wanted):
            found = jnp.broadcast_to(found, wanted) if _fits(found.shape, wanted) else found
        elif found.shape[: len(wanted)] != wanted and _fits(found.shape[: len(wanted)], wanted):
            found = jnp.broadcast_to(found, (*wanted, *found.shape[len(wanted) :]))
        if found.shape[: len(wanted)] != wanted:
            over = ", ".join(f"{p} ({n})" for p, n in zip(plates, wanted, strict=True))
            raise InvalidArgument(
                f"the value of {site.name!r} has shape {found.shape}, but its plates are {over}"
            )
        return found

    # -- elements -------------------------------------------------------------------------------------------------

    def log_probs(self, site: Site, own: Any, env: Env, earlier: Env | None = None) -> Any:
        """Return the log density of every element of a stochastic node: an array over its plates.

        `earlier` holds the values that earlier elements are taken from, where they are not those of `env`.
        """
        if site.masked and site.chained:
            raise UnsupportedModel(
                f"entries of {site.name!r} are missing, and what the others are worth without them is not known; "
                "engine='twisted-smc' draws them, fit needs complete rows"
            )
        if site.masked:
            # entries are independent (`trace` has looked), so that those not seen just do not count
            found = self.spread(site, self.call(site, env), site.plates)
            own = jnp.asarray(own, int) if found.support.is_discrete else own  # NaN made them fractions
            logs = jnp.where(env[SEEN + site.name], found.base_dist.log_prob(own), 0.0)
            return jnp.sum(logs, axis=tuple(range(len(site.plates), jnp.ndim(logs))))
        if not site.lags:
            found = self.spread(site, self.call(site, env), site.plates)
            return self._bound(site, found, own, env) if site.bounded else found.log_prob(own)
        axis, depth = len(site.plates) - 1, site.depth
        own = jnp.asarray(own)
        heads = []
        for i in range(depth):
            found = self.first(site, env, i)
            if isinstance(found, Flat):
                heads.append(jnp.zeros(self.layout.shape_of(site.plates[:-1])))
            else:
                heads.append(self.spread(site, found, site.plates[:-1]).log_prob(jnp.take(own, i, axis)))
        step, moving = self.stepper(site, env, earlier or env, depth)

        def one(values: Any, x: Any) -> Any:
            return self.spread(site, step(values), site.plates[:-1]).log_prob(x)

        rest = jax.vmap(one)(moving, jnp.moveaxis(own, axis, 0)[depth:])
        return jnp.moveaxis(jnp.concatenate([jnp.stack(heads), rest]), 0, axis)

    def _bound(self, site: Site, found: Any, own: Any, env: Env) -> Any:
        """Return a draw of a lower bound on the log density of every element."""
        if (key := env.get(BOUND_KEY)) is None:
            raise UnsupportedModel(
                f"{site.name!r} has no density but a lower bound on it ({site.family}), which fit and "
                "log_evidence(by='row') use; an engine that needs densities cannot answer"
            )
        return found.bound(jax.random.fold_in(key, list(self.layout.sites).index(site.name)), own)

    def deterministic(self, site: Site, env: Env) -> Any:
        """Return the value of a deterministic node; a recursion over its own earlier elements is a scan."""
        if not site.lags:
            return self.value(site, self.call(site, env), site.plates)
        depth, inner = site.depth, site.plates[:-1]
        heads = [self.value(site, self.first(site, env, i), inner) for i in range(depth)]
        others = {**env, site.name: None}
        own = {k: lag for k, lag in site.lags.items() if lag.node == site.name}
        step, moving = self.stepper(site, env, others, depth, skip=own)

        def one(recent: tuple[Any, ...], values: Any) -> tuple[tuple[Any, ...], Any]:
            back = {k: recent[-lag.steps] for k, lag in own.items()}
            found = self.value(site, step({**values, **back}), inner).astype(recent[-1].dtype)
            return (*recent[1:], found), found

        dtype = jnp.result_type(float)
        begin = tuple(jnp.asarray(h, dtype) for h in heads)
        _, rest = jax.lax.scan(one, begin, moving)
        return jnp.moveaxis(jnp.concatenate([jnp.stack(begin), rest]), 0, len(inner))

    def stepper(
        self, site: Site, env: Env, earlier: Env, depth: int, skip: Mapping[str, Any] | None = None
    ) -> tuple[Callable[[Any], Any], dict[str, Any]]:
        """Return the function of one step, and the values that move with the steps, steps in front."""
        piece: Any = site.piece
        plate = site.plates[-1]
        n = self.layout.lengths[plate]
        moving: dict[str, Any] = {}
        still: dict[str, Any] = {}
        for parameter, source in piece.arguments.items():
            if parameter not in _own(piece):
                continue
            plates = self.layout.plates_of(source)
            if plates and plate in plates and set(plates) <= set(site.plates):
                moving[parameter] = jnp.moveaxis(jnp.asarray(env[source]), plates.index(plate), 0)[depth:]
            else:
                still[parameter] = self.aligned(site, source, env, drop_last=True)
        for parameter, lag in site.lags.items():
            if skip and parameter in skip:
                continue
            value = jnp.moveaxis(
                jnp.asarray(earlier[lag.node]), len(self.layout.sites[lag.node].plates) - 1, 0
            )
            moving[parameter] = value[depth - lag.steps : n - lag.steps]

        def step(values: Mapping[str, Any]) -> Any:
            arguments = dict(still)
            for parameter, value in values.items():
                source = piece.arguments.get(parameter)
                one = value if source is None else self._one_step(site, source, value)
                arguments[parameter] = one
            return self._called(site, self.forms[site.name], arguments)

        return step, moving

    def one_step(self, site: Site, env: Env, now: Env, past: Mapping[tuple[str, int], Any]) -> Any:
        """Return what the node's function says for one step along its last plate.

        Parameters
        ----------
        env
            Values that do not move with the steps.
        now
            This step's values of nodes and inputs on the plate.
        past
            Values of nodes by how many steps earlier they were.
        """
        piece: Any = site.piece
        if not callable(self.forms[site.name]) or is_distribution(self.forms[site.name]):
            return self.forms[site.name]
        arguments = {}
        for parameter, source in piece.arguments.items():
            if parameter in _own(piece):
                moves = source in now
                arguments[parameter] = (
                    self._one_step(site, source, now[source])
                    if moves
                    else self.aligned(site, source, env, drop_last=True)
                )
        arguments.update({k: past[lag.node, lag.steps] for k, lag in site.lags.items()})
        return self._called(site, self.forms[site.name], arguments)

    def _one_step(self, site: Site, source: str, value: Any) -> Any:
        """Return one step's value of a parent on the last plate, aligned with the other plates."""
        return self.aligned(site, source, {source: value}, drop_last=True)

    def first(self, site: Site, env: Env, i: int) -> Any:
        """Return the distribution (or value) of the i-th element, which has no earlier ones."""
        first = self.firsts[site.name]
        if isinstance(first, Flat) or is_distribution(first) or not callable(first):
            return first
        arguments = {}
        for parameter in function_arguments(site.name, first):
            plates = self.layout.plates_of(parameter)
            if plates and site.plates[-1] in plates:
                value = jnp.take(jnp.asarray(env[parameter]), i, plates.index(site.plates[-1]))
                arguments[parameter] = self._one_step(site, parameter, value)
            else:
                arguments[parameter] = self.aligned(site, parameter, env, drop_last=True)
        return self._called(site, first, arguments)


def takes_traced_states(function: Callable[..., Any], n_states: int) -> bool:
    """Say whether a function of states computes with numbers that are not known yet: it neither branches nor looks them up.

    Whatever else may be wrong with the function comes to light when it is called with plain numbers.
    """
    try:
        jax.eval_shape(function, *[jnp.zeros((), int)] * n_states)
    except Exception:
        return False
    return True


def _own(piece: FunctionNode) -> set[str]:
    """Return the parameters of the node's function (others belong to that of its first elements)."""
    if hasattr(piece.form, "parents"):  # a table's lookup
        return set(piece.form.parents)
    return set(function_arguments(piece.variable.name, piece.form))


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    try:
        return bool(np.broadcast_shapes(shape, wanted) == wanted)
    except ValueError:
        return False


def _explained(site: Site, arguments: Mapping[str, Any], problem: Exception) -> MarkoviaError:
    """Return an error that says what the function of which node was called with."""
    shapes = ", ".join(f"{k} {np.shape(v)}" for k, v in arguments.items()) or "nothing"
    if (not_traceable := tracing_problem(f"the function of {site.name!r}", problem)) is not None:
        return not_traceable
    return FunctionFailed(
        f"the function of {site.name!r} failed when called with {shapes}: {type(problem).__name__}: {problem}"
    )
