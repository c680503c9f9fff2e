"""Function nodes (Gaussian processes) in a density: where they are called, and what is summed out or inferred of them.

Children are called once with recorders in place of the functions: that tells the places. A function is summed out where all
that depends on it is observed, normal, and linear in it, with a spread that does not depend on it: found by trying out. What
is left is the density of the observations, N(base + A m, A K A' + noise), with A from forward differentiation; where it
acts element by element, as it nearly always does, A is a diagonal and costs one derivative a call. Otherwise the function's
values at its places are a Cholesky factor times standard normal numbers, which are what is inferred. A function whose
inputs are values of another comes after that (a deep process).
"""

# ruff: noqa: N803, N806 (letters of the literature)

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel, warn_user
from markovia.factors.covariances.process import GP, Points
from markovia.factors.functions.function_node import FixedFunction
from markovia.inference.densities.program.layout import QuantityLayout, Site
from markovia.inference.densities.program.node_densities import FunctionFailed, Nodes
from markovia.inference.densities.program.non_centred import base_of
from markovia.inference.densities.program.probe_values import probe
from markovia.inference.densities.program.process_calls import (
    CalledFunction,
    Key,
    Realised,
    Recorder,
    Set,
)
from markovia.inference.densities.program.process_places import (
    Conditioned,
    LinearSight,
    Place,
    joint_covariance,
    normal_log_density,
    plain_process,
    read_place,
    same_place,
)
from markovia.inference.densities.program.selected_process import process_at
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax, jnp

if TYPE_CHECKING:
    from markovia.inference.densities.program.program import Program

MOST_COMPARED = 5
"""Rows at which processes of different states are compared."""
MOST_COMBINATIONS = 256
"""Combinations of states that functions depend on."""
TOLERANCE = 1e-9
"""How far from linear, in units of the numbers tried, a location may be."""
Env = Mapping[str, Any]


class Pending(CalledFunction):
    """A function that depends on states which are summed out: it is realised for each of them."""

    def __init__(self, name: str, plated: bool, places: Mapping[Key, Place], white: Any) -> None:
        super().__init__(name, plated)
        self.places, self.white = places, white

    def answer(self, key: Key, place: Place) -> Any:
        """Return zeros: only shapes count, until the states are known."""
        return jnp.zeros(place.size)


@dataclass
class SummedOut:
    """Functions that are summed out together with the observed normal children that share them.

    Attributes
    ----------
    functions, children
        Their names.
    needs
        States without plates that any of them depends on.
    acts
        By child, how each call enters: "diagonal" or "full"; calls that do not enter are missing.
    rows
        By child, the positions of its elements that were observed; None for all.
    """

    functions: tuple[str, ...]
    children: tuple[str, ...]
    needs: tuple[str, ...] = ()
    acts: dict[str, dict[tuple[str, Key], str]] = field(default_factory=dict)
    rows: dict[str, Any] = field(default_factory=dict)


def function_nodes(layout: QuantityLayout, nodes: Nodes, probed: Env) -> "FunctionNodes | None":
    """Return the function nodes of a model; None where it has none."""
    if not any(s.role == "function" for s in layout.sites.values()):
        return None
    try:
        more = probe(layout, nodes, attempt=2)
    except FunctionFailed:
        more = None
    return FunctionNodes(layout, nodes, probed or probe(layout, nodes), more)


class FunctionNodes:
    """The function nodes of a model with its evidence.

    Attributes
    ----------
    names
        The nodes that are processes, in the order in which they are resolved.
    sizes
        How many standard normal numbers stand for each function that is not summed out.
    places
        Where each function is called, at the values that functions were tried with.
    summed
        Groups of functions that are summed out.
    note
        What to know about how they are treated, in a sentence.
    """

    def __init__(self, layout: QuantityLayout, nodes: Nodes, probed: Env, more: Env | None) -> None:
        self.layout, self.nodes = layout, nodes
        sites = layout.sites
        self.all = [s.name for s in sites.values() if s.role == "function"]
        self.set_ = {
            n: Set(n, f.function) for n in self.all if isinstance(f := nodes.forms[n], FixedFunction)
        }
        self.names = [n for n in self.all if n not in self.set_]
        self.below = self._below()
        self.hidden: dict[str, Any] = {
            s.name: np.zeros(layout.shape_of(s.plates), int)[()]
            for s in sites.values()
            if s.role == "discrete"
        }
        self._check_children()
        self.places = places = self._recorded(self._at(probed))
        self._look_at_processes(self._at(probed), places)
        self._refuse_moving_places(self._at(probed))
        self.shapes = {
            n: {key: (p.kind, p.x.shape, p.size) for key, p in places[n].items()} for n in self.names
        }
        others = self._recorded(self._at(more)) if more is not None else places
        self.first = {n: _first_places(places[n], others[n]) for n in self.names}
        self.points = {n: self._points(n) for n in self.names}
        self.levels = self._levels(self._at(probed))
        self.names = [n for level in self.levels for n in level]
        self.summed: list[SummedOut] = []
        why = self._sum_out([self._at(env) for env in (probed, more) if env is not None])
        out = {n for group in self.summed for n in group.functions}
        self.kept = [n for n in self.names if n not in out]
        self.inducing = {n: self._inducing_inputs(n, self._at(probed), places[n]) for n in self.kept}
        self.sizes = {n: self._size(n) for n in self.kept}
        self.summed_children = {c for group in self.summed for c in group.children}
        self.note = self._note(out, why)

    # -- structure ----------------------------------------------------------------------------------------------------

    def _below(self) -> dict[str, set[str]]:
        """Return, for every node, the functions that it depends on, directly or through deterministic nodes."""
        found: dict[str, set[str]] = {}
        for site in self.layout.sites.values():
            mine: set[str] = set()
            for source in site.sources:
                other = self.layout.sites.get(source)
                if other is not None and other.role == "function":
                    mine.add(source)
                elif other is not None and other.role == "deterministic":
                    mine |= found.get(source, set())
            found[site.name] = mine
        return found

    def _check_children(self) -> None:
        for site in self.layout.sites.values():
            if self.below[site.name] & {*self.all} and site.lags:
                raise UnsupportedModel(
                    f"{site.name!r} goes along its plate step by step (previous=) and calls a function; a process is called "
                    "once with all rows, so write it without previous="
                )
            if site.role == "function" and self.below[site.name]:
                raise UnsupportedModel(
                    f"{site.name!r} is a process that depends on another one; let a child call both instead: g(f(x))"
                )

    def _at(self, probed: Env) -> dict[str, Any]:
        return {**self.hidden, **{k: v for k, v in probed.items() if k not in self.all}}

    def _dependents(self) -> Iterator[Site]:
        """Go through the nodes that functions of functions are computed in: deterministic ones, parents first."""
        for site in self.layout.sites.values():
            if site.role == "deterministic" and self.below[site.name]:
                yield site

    def run(self, env: Env, functions: Mapping[str, CalledFunction]) -> dict[str, Any]:
        """Return an environment with functions, and the deterministic nodes that depend on them."""
        found = {**env, **self.set_, **functions}
        for site in self._dependents():
            if self.below[site.name] <= found.keys():
                found[site.name] = self.nodes.deterministic(site, found)
        return found

    def _callers(self) -> list[Site]:
        """Return the nodes with a distribution that call a function themselves."""
        return [
            s
            for s in self.layout.sites.values()
            if s.role in ("latent", "observed", "discrete") and set(s.sources) & {*self.all}
        ]

    def _recorder(self, name: str, **settings: Any) -> Recorder:
        return Recorder(name, bool(self.layout.sites[name].plates), **settings)

    def _recorded(self, env: Env, moved: str = "") -> dict[str, dict[Key, Place]]:
        """Return the places at which functions are called, by function; one of them may answer with other numbers."""
        rng = np.random.default_rng(0)
        fills = {moved: lambda size: rng.normal(size=size)}
        recorders = {n: self._recorder(n, fill=fills.get(n)) for n in self.names}
        whole = self.run(env, recorders)
        for site in self._callers():
            self.nodes.call(site, {**self.hidden, **whole})
        for name, recorder in recorders.items():
            for (child, _), place in recorder.places.items():
                if isinstance(place.x, jax.core.Tracer):  # though all numbers here are plain ones
                    raise InvalidArgument(
                        f"the function of {child!r} calls {name!r} inside vmap, scan, grad or jit; call it once with all "
                        f"rows, {name}(x), whose derivative is {name}.grad(x)"
                    )
        return {n: r.places for n, r in recorders.items()}

    def _refuse_moving_places(self, env: Env) -> None:
        """Refuse calls at inputs that depend on what is summed out: values are there once for all states."""
        for name in self.hidden:
            states = self.layout.sites[name].states
            for k in sorted({0, 1, states - 1}) if states > 1 else ():
                places = self._recorded(self._in_states(env, {name: np.full_like(self.hidden[name], k)[()]}))
                if moving := next((n for n in self.names if not _alike(self.places[n], places[n])), None):
                    raise UnsupportedModel(
                        f"{moving!r} is called at inputs that depend on {name!r}, discrete and not observed; call it "
                        f"at the inputs of each state and choose among its values, or observe {name!r}"
                    )

    def _look_at_processes(self, env: Env, places: Mapping[str, Mapping[Key, Place]]) -> None:
        """Refuse processes whose parameters nobody would fit; warn of those that are the same in all states."""
        for name in self.names:
            site = self.layout.sites[name]
            process = self.nodes.call(site, env)
            if left := next(iter(process.free()), None):
                raise InvalidArgument(
                    f"{left} of {name!r} is not said, or is a Parameter, in a function of parents, where fit does not see "
                    f"it; give a number, or make it an argument: add({(left.split('.')[-1])!r}, mk.Parameter(1.0))"
                )
            for parent in site.sources:
                states = self.layout.sites[parent].states if parent in self.hidden else 0
                if states < 2 or self.layout.sites[parent].plates:
                    continue
                every = [self.nodes.call(site, {**env, parent: k}) for k in range(states)]
                rows = next((p.x[:MOST_COMPARED] for p in places[name].values() if p.kind == "value"), None)
                rows = np.linspace(0.0, 1.0, 3)[:, None] if rows is None else np.asarray(rows)
                tables = [
                    (np.asarray(p.covariance.value(rows, None, jnp)), np.asarray(p.mean_at(rows, jnp)))
                    for p in every
                ]
                if all(
                    np.array_equal(a, b) for one in tables[1:] for a, b in zip(one, tables[0], strict=True)
                ):
                    labels = getattr(self.layout.sites[parent].piece.variable, "states", range(states))
                    warn_user(
                        f"{name!r} is the same process for all states of {parent!r}; its function gets states as they are "
                        f"called ({', '.join(map(repr, labels[:2]))}, ...), so compare with these"
                    )

    def _levels(self, env: Env) -> list[list[str]]:
        """Return functions in groups, each of which has inputs that depend only on functions of groups before it."""
        plain = self._recorded(env)
        after: dict[str, set[str]] = {n: set() for n in self.names}
        for name in self.names:
            moved = self._recorded(env, name)
            for other in self.names:
                if not _alike(plain[other], moved[other]):
                    after[other].add(name)
        if any(n in after[n] for n in self.names):
            raise UnsupportedModel(
                "a function is called with values of itself, f(f(x)); use two function nodes, g(f(x))"
            )
        levels: list[list[str]] = []
        left = list(self.names)
        while left:
            ready = [n for n in left if not after[n] & {*left}]
            if not ready:
                raise UnsupportedModel(
                    f"functions {', '.join(left)} are called with each other's values in a circle"
                )
            levels.append(ready)
            left = [n for n in left if n not in ready]
        return levels

    def _points(self, name: str) -> LinearSight | None:
        """Return what is known of a function at some inputs."""
        said = getattr(self.layout.sites[name].soft, "said", None)
        if not isinstance(said, Points):
            return None
        return LinearSight([(read_place("value", [said.x], None, name), None)], said.values)

    def _inducing_inputs(self, name: str, env: Env, places: Mapping[Key, Place]) -> Any:
        """Return the inputs that a function is inferred at where these are not all: given, or spread over the rows."""
        process = self.nodes.call(self.layout.sites[name], env)
        if process.inducing is None:
            return None
        if not isinstance(process.inducing, int):
            return process.inducing
        rows = np.unique(
            np.concatenate([np.asarray(p.x) for p in places.values() if p.kind != "integral"]), axis=0
        )
        return spread_rows(rows, process.inducing)

    def _size(self, name: str) -> int:
        if self.inducing[name] is not None:
            return len(self.inducing[name])
        return sum(self.shapes[name][key][2] for key, first in self.first[name].items() if key == first)

    # -- summing out ------------------------------------------------------------------------------------------------

    def _sum_out(self, tries: Sequence[Env]) -> dict[str, str]:
        """Find groups of functions that can be summed out, at values of everything else; return why others cannot."""
        why: dict[str, str] = {}
        deep = {n for level in self.levels[1:] for n in level}
        for functions, children in self._groups():
            reason = self._obstacle(functions, children) or (deep & {*functions} and "functions of functions")
            if not reason and len(self.levels) > 1:
                reason = "functions of functions"
            group = SummedOut(tuple(functions), tuple(children))
            if not reason:
                needs = {q for n in (*functions, *children) for q in self.discrete_above(n)}
                if any(self.layout.sites[q].plates for q in needs):
                    reason = f"{min(needs)} has a state for each element"
                group.needs = tuple(q for q in self.hidden if q in needs)
            if not reason:
                reason = self._not_linear(group, tries)
            if reason:
                why.update(dict.fromkeys(functions, str(reason)))
            else:
                self.summed.append(group)
        return why

    def _groups(self) -> list[tuple[list[str], list[str]]]:
        """Return functions that share children, with all stochastic nodes that depend on them."""
        owner = {n: n for n in self.names}

        def root(n: str) -> str:
            while owner[n] != n:
                n = owner[n]
            return n

        users = {
            s.name: [n for n in self.names if n in self.below[s.name]]
            for s in self.layout.sites.values()
            if s.role in ("latent", "observed", "discrete") or s.soft is not None
        }
        for mine in users.values():
            for n in mine[1:]:
                owner[root(n)] = root(mine[0])
        groups: dict[str, list[str]] = {}
        for n in self.names:
            groups.setdefault(root(n), []).append(n)
        return [
            (mine, [c for c, used in users.items() if set(used) & set(mine) and c not in self.names])
            for mine in groups.values()
        ]

    def _obstacle(self, functions: Sequence[str], children: Sequence[str]) -> str:
        """Return why functions with these children cannot be summed out, as far as that shows without trying."""
        for name in children:
            site = self.layout.sites[name]
            if site.role != "observed":
                return f"{name} is not observed"
            if site.family != "Normal" or site.masked or site.bounded:
                return f"{name} is {site.family}"
            if site.soft is not None:
                return f"{name} has soft evidence"
            if site.holes is not None and any(name in s.sources for s in self.layout.sites.values()):
                return f"missing entries of {name} are parents"
        for name in functions:
            process = self.nodes.forms[name]
            if isinstance(process, GP) and process.inducing is not None:
                return "inducing inputs"
        return ""

    def discrete_above(self, name: str) -> set[str]:
        """Return the discrete nodes that a node depends on, also through functions."""
        found: set[str] = set()
        for source in self.layout.sites[name].sources:
            other = self.layout.sites.get(source)
            if other is None:
                continue
            if other.role == "discrete":
                found.add(source)
            elif other.role in ("deterministic", "function"):
                found |= self.discrete_above(source)
        return found

    def _locations(
        self, group: SummedOut, env: Env, values: Mapping[tuple[str, Key], Any]
    ) -> dict[str, tuple[Any, Any]]:
        """Return location and scale of every child of a group, observed elements in a row, at values of the calls."""
        by_function: dict[str, dict[Key, Any]] = {n: {} for n in group.functions}
        for (n, key), v in values.items():
            by_function[n][key] = v
        functions = {n: self._recorder(n, values=v) for n, v in by_function.items()}
        whole = self.run(
            env, {**{n: env[n] for n in self.names if n in env and n not in functions}, **functions}
        )
        found = {}
        for child in group.children:
            site = self.layout.sites[child]
            law = base_of(self.nodes.call(site, whole))
            loc, scale = (jnp.broadcast_to(v, site.shape).reshape(-1) for v in (law.loc, law.scale))
            rows = group.rows.get(child)
            found[child] = (loc, scale) if rows is None else (loc[rows], scale[rows])
        return found

    def _zeros(self, group: SummedOut) -> dict[tuple[str, Key], Any]:
        return {
            (n, key): jnp.zeros(size) for n in group.functions for key, (_, _, size) in self.shapes[n].items()
        }

    def _not_linear(self, group: SummedOut, tries: Sequence[Env]) -> str:
        """Return why the children are not linear in the functions; note how calls enter where they are."""
        for child in group.children:
            group.acts[child] = {}
            holes = self.layout.sites[child].holes
            if holes is not None:
                seen = np.ones(self.layout.sites[child].shape, dtype=bool)
                seen[holes] = False
                group.rows[child] = np.flatnonzero(seen)
        sizes = [self.layout.sites[q].states for q in group.needs]
        if prod(sizes) > MOST_COMBINATIONS:
            return f"{', '.join(group.needs)} have too many states"
        for env in tries:
            for states in np.ndindex(*sizes):  # a function may be linear in one state, and not in another
                if reason := self._bent(
                    group, self._in_states(env, dict(zip(group.needs, states, strict=True)))
                ):
                    return reason
        return ""

    def _in_states(self, env: Env, states: Mapping[str, int]) -> dict[str, Any]:
        """Return an environment in some states, with what is computed from these."""
        found, changed = {**env, **states}, set(states)
        for site in self.layout.sites.values():
            if site.role == "deterministic" and changed & {*site.sources} and not self.below[site.name]:
                found[site.name] = self.nodes.deterministic(site, found)
                changed.add(site.name)
        return found

    def _bent(self, group: SummedOut, env: Env) -> str:
        """Return why the children are not linear at some values of everything else; note how calls enter where they are."""
        rng = np.random.default_rng(1)
        zeros = self._zeros(group)
        a, b = ({k: jnp.asarray(rng.normal(size=v.shape)) for k, v in zeros.items()} for _ in range(2))
        both = {k: a[k] + b[k] for k in zeros}
        at = [self._locations(group, env, v) for v in (zeros, a, b, both)]
        for child in group.children:
            (f0, s0), (fa, sa), (fb, sb), (fab, _) = (found[child] for found in at)
            size = float(max(jnp.max(jnp.abs(f), initial=0.0) for f in (f0, fa, fb)))
            if not float(jnp.max(jnp.abs(fab - fa - fb + f0), initial=0.0)) <= TOLERANCE * size:
                return f"{child} is not linear in {', '.join(group.functions)}"
            if not (np.array_equal(s0, sa) and np.array_equal(s0, sb)):
                return f"the scale of {child} depends on {', '.join(group.functions)}"

        def along(direction: Mapping[tuple[str, Key], Any]) -> dict[str, Any]:
            found = jax.jvp(
                lambda v: {c: at for c, (at, _) in self._locations(group, env, v).items()},
                (zeros,),
                (direction,),
            )
            return found[1]  # type: ignore[no-any-return]

        for one in zeros:
            ones = along({**zeros, one: jnp.ones_like(zeros[one])})
            some = along({**zeros, one: a[one]})
            for child in group.children:
                fits = len(ones[child]) == len(self._elements(group, child, a[one]))
                if not np.any(ones[child]) and not np.any(some[child]):
                    continue
                fits = fits and (group.rows.get(child) is None or self.shapes[one[0]][one[1]][0] != "grad")
                plain = fits and np.allclose(
                    some[child], ones[child] * self._elements(group, child, a[one]), rtol=1e-12, atol=0.0
                )
                before = group.acts[child].get(one, "diagonal")
                group.acts[child][one] = before if plain else "full"
        return ""

    def _elements(self, group: SummedOut, child: str, values: Any) -> Any:
        """Return numbers of a call at the elements of a child that were observed, where there are as many."""
        rows = group.rows.get(child)
        whole = int(np.prod(self.layout.sites[child].shape))
        return values if rows is None or len(values) != whole else values[rows]

    def known(self, group: SummedOut, env: Env) -> list[LinearSight]:
        """Return the observations of a group as linear in the places of its functions; `env` has recorders for these."""

        def locations(values: Any) -> tuple[Any, Any]:
            found = self._locations(group, env, values)
            return {c: at for c, (at, _) in found.items()}, {c: s for c, (_, s) in found.items()}

        base, scales = locations(self._zeros(group))
        slopes, full = self._slopes(group, lambda values: locations(values)[0])
        found = []
        for child in group.children:
            y = jnp.asarray(env[child], float).reshape(-1)
            rows = group.rows.get(child)
            y = y if rows is None else y[rows]
            entering: dict[tuple[str, Key], tuple[Place, Any]] = {}
            for one, how in group.acts[child].items():
                n, key = one
                place = env[n].places[self.first[n][key]]
                M: Any = slopes[one][child] if how == "diagonal" else full[one][child].T
                if how == "diagonal" and rows is not None:
                    place = _at_rows(place, rows)
                mark = (n, self.first[n][key])
                if mark in entering:
                    before = entering[mark][1]
                    M = M + before if M.ndim == before.ndim else _matrix(M) + _matrix(before)
                entering[mark] = (place, M)
            if not entering:  # no function shows in it, whatever its arguments
                place = Place("value", jnp.zeros((0, 1)), (0,), None, group.functions[0])
                entering[group.functions[0], (child, -1)] = (place, jnp.zeros((len(y), 0)))
            places = [(place, None if _is_identity(M) else M) for place, M in entering.values()]
            found.append(LinearSight(places, y - base[child], scales[child] ** 2))
        return [p for n in group.functions if (p := self.points[n]) is not None] + found

    def _slopes(
        self, group: SummedOut, locations: Callable[[Any], Any]
    ) -> tuple[dict[Any, Any], dict[Any, Any]]:
        """Return how locations change with each call: the diagonals, and whole matrices (transposed).

        Slopes that depend on nothing, as they mostly do, are computed here and now, even while all else is traced.
        """
        slopes: dict[Any, Any] = {}
        full: dict[Any, Any] = {}
        with jax.ensure_compile_time_eval():
            zeros = self._zeros(group)

            def along(direction: Any) -> Any:
                return jax.jvp(locations, (zeros,), (direction,))[1]

            for one in zeros:
                ways = {acts[one] for acts in group.acts.values() if one in acts}
                if "diagonal" in ways:
                    slopes[one] = along({**zeros, one: jnp.ones_like(zeros[one])})
                if "full" in ways:
                    eye = jnp.eye(len(zeros[one]))
                    full[one] = jax.vmap(lambda e, one=one: along({**zeros, one: e}))(eye)
        return slopes, full

    def processes(self, names: Sequence[str], env: Env) -> dict[str, GP]:
        """Return processes at the values of their parents."""
        return {n: process_at(self.nodes, self.layout.sites[n], env) for n in names}

    def log_evidence(self, group: SummedOut, env: Env) -> Any:
        """Return the log density of what a group's children were observed to be, functions summed out."""
        known, processes = self.known(group, env), self.processes(group.functions, env)
        if not known:
            return jnp.zeros(())
        away = jnp.concatenate([k.numbers - k.mean(processes, jnp) for k in known])
        return normal_log_density(away, joint_covariance(processes, known, jnp))

    def left_out_log_densities(self, group: SummedOut, env: Env) -> dict[str, Any]:
        """Return the log density of each observation given all others of its group, in closed form."""
        known, processes = self.known(group, env), self.processes(group.functions, env)
        away = jnp.concatenate([k.numbers - k.mean(processes, jnp) for k in known])
        L = jnp.linalg.cholesky(joint_covariance(processes, known, jnp))
        inverse = jax.scipy.linalg.cho_solve((L, True), jnp.eye(len(away)))
        variance = 1.0 / jnp.diagonal(inverse)
        gap = (inverse @ away) * variance
        logs = -0.5 * (jnp.log(2.0 * jnp.pi * variance) + gap**2 / variance)
        found, at = {}, len(logs) - sum(len(k.numbers) for k in known[-len(group.children) :])
        for child, k in zip(group.children, known[-len(group.children) :], strict=True):
            found[child] = logs[at : at + len(k.numbers)]
            at += len(k.numbers)
        return found

    # -- in an environment ----------------------------------------------------------------------------------------------

    def environment(self, program: "Program", u: Any, data: Env) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return values of all nodes and log Jacobians; functions are there to be called, or are summed out."""
        resolved: dict[str, CalledFunction] = {}
        for level in self.levels:
            recorders = {n: self._recorder(n) for n in self.names if n not in resolved}
            env, jacobians = program.plain_environment(u, data, {**self.set_, **resolved, **recorders})
            now = self._with_states(program, env)
            for site in self._callers():
                self.nodes.call(site, now)
            for n in level:
                resolved[n] = (
                    recorders[n] if n not in self.kept else self._kept(program, n, recorders[n], now, u)
                )
        if self.kept or not self.levels:
            env, jacobians = program.plain_environment(u, data, {**self.set_, **resolved})
        return env, jacobians

    def _with_states(self, program: "Program", env: Env) -> dict[str, Any]:
        """Return an environment with some state for everything that is summed out: places do not depend on it."""
        now = {**self.hidden, **env}
        for site in self.layout.sites.values():
            if site.role == "deterministic" and program.needs[site.name]:
                now[site.name] = self.nodes.deterministic(site, now)
        return now

    def _kept(self, program: "Program", name: str, recorder: Recorder, env: Env, u: Any) -> CalledFunction:
        slot = program.slots[name]
        white = jnp.asarray(u)[slot.start : slot.start + slot.size]
        pending = Pending(name, recorder.plated, recorder.places, white)
        return pending if program.needs[name] else self.realise(pending, env)

    def realise(self, pending: Pending, env: Env) -> Realised:
        """Return a function with values at all its calls, made of standard normal numbers."""
        name = pending.name
        process = Conditioned(self.processes([name], env), self.points[name])
        first = self.first[name]
        if (inducing := self.inducing[name]) is not None:
            process.extend(read_place("value", [jnp.asarray(inducing)], None, name), pending.white)
            values = {
                key: process.moments(p, joint=False)[0]
                for key, p in pending.places.items()
                if first[key] == key
            }
        else:
            unique = {key: p for key, p in pending.places.items() if first[key] == key}
            values = process.extend_all(unique, pending.white)
        found = Realised(name, pending.plated, {key: values[first[key]] for key in pending.places})
        found.process, found.places = process, pending.places  # type: ignore[attr-defined]
        return found

    def numbers(self, function: CalledFunction) -> Any:
        """Return what draws keep of a function: its values at its places in order, or standard normal numbers."""
        if isinstance(function, Pending):
            return function.white
        assert isinstance(function, Realised)
        if self.inducing[function.name] is not None:
            return function.process.known[-1].numbers  # type: ignore[attr-defined]
        first = self.first[function.name]
        return jnp.concatenate([v for key, v in function.values.items() if first[key] == key])

    def at_values(self, env: Env, states: Env | None = None, xp: Any = None) -> dict[str, Conditioned]:
        """Return every function given what is known of it, at values of all latent nodes (as draws keep them).

        `states` are those of discrete nodes that functions depend on; `xp` is NumPy or `jax.numpy` (by default), which what
        follows is computed in.
        """
        xp = jnp if xp is None else xp
        env = {**self.hidden, **env, **(states or {})}
        found: dict[str, Conditioned] = {}
        resolved: dict[str, CalledFunction] = {}
        for level in self.levels:
            recorders = {n: self._recorder(n) for n in self.names if n not in resolved}
            now = self.run({k: v for k, v in env.items() if k not in self.names}, {**resolved, **recorders})
            for site in self._callers():
                self.nodes.call(site, now)
            for n in level:
                resolved[n] = recorders[n]
                if n not in self.kept:
                    continue
                places, known = recorders[n].places, [p for p in [self.points[n]] if p is not None]
                if self.discrete_above(n) & {*self.hidden}:
                    real = self.realise(Pending(n, recorders[n].plated, places, env[n]), now)
                    found[n], resolved[n] = self._given([n], now, real.process.known, xp), real  # type: ignore[attr-defined]
                    continue
                if self.inducing[n] is not None:
                    place = read_place("value", [jnp.asarray(self.inducing[n])], None, n)
                    found[n] = self._given([n], now, [*known, LinearSight([(place, None)], env[n])], xp)
                    values = {key: found[n].moments(p.to(xp), joint=False)[0] for key, p in places.items()}
                else:
                    own = {key: p for key, p in places.items() if self.first[n][key] == key}
                    ends = np.cumsum([p.size for p in own.values()])[:-1]
                    values = dict(zip(own, jnp.split(env[n], ends), strict=True))
                    known += [LinearSight([(place, None)], values[key]) for key, place in own.items()]
                    found[n] = self._given([n], now, known, xp)
                    values = {key: values[self.first[n][key]] for key in places}
                resolved[n] = Realised(n, recorders[n].plated, values)
        for group in self.summed:
            now = {**env, **{n: resolved[n] for n in self.names}}
            now = self.run({k: v for k, v in now.items() if k not in self.names}, resolved)
            process = self._given(group.functions, now, self.known(group, now), xp)
            found.update(dict.fromkeys(group.functions, process))
        return found

    def _given(self, names: Sequence[str], env: Env, known: Sequence[LinearSight], xp: Any) -> Conditioned:
        """Return some functions given what is known of them."""
        processes = self.processes(names, env)
        process = Conditioned(
            {n: plain_process(p) for n, p in processes.items()} if xp is np else processes, xp=xp
        )
        for one in known:
            process.learn(one.to(xp))
        return process

    def of_layout(self, layout: QuantityLayout, nodes: Nodes) -> "FunctionNodes":
        """Return the same functions in a model whose rows are others."""
        other = copy(self)
        other.layout, other.nodes = layout, nodes
        other.hidden = {n: np.zeros(layout.shape_of(layout.sites[n].plates), int)[()] for n in self.hidden}
        return other

    def digest(self) -> str:
        """Return a name for how functions are treated, which depends on the data: calls that ask for the same, say."""
        groups = [
            (g.functions, g.children, g.needs, sorted(g.acts.items()), sorted(g.rows.items()))
            for g in self.summed
        ]
        said = (
            self.shapes,
            self.first,
            self.levels,
            groups,
            self.inducing,
            {n: p is None for n, p in self.points.items()},
        )
        return hashlib.sha256(described(said)).hexdigest()

    def _note(self, out: set[str], why: Mapping[str, str]) -> str:
        parts = [f"{', '.join(n for n in self.names if n in out)} summed out"] * bool(out)
        for n in self.kept:
            at = "inducing inputs" if self.inducing[n] is not None else "places"
            parts.append(f"{n} whitened at {self.sizes[n]} {at} ({why[n]})")
        return "; ".join(parts)


def spread_rows(rows: Any, m: int) -> Any:
    """Return m of some rows, each far from those chosen before it."""
    if m >= len(rows):
        return rows
    scale = rows.std(axis=0)
    scaled = rows / np.where(scale > 0, scale, 1.0)
    chosen = [int(np.argmin(((scaled - scaled.mean(axis=0)) ** 2).sum(axis=1)))]
    away = ((scaled - scaled[chosen[0]]) ** 2).sum(axis=1)
    while len(chosen) < m:
        chosen.append(int(np.argmax(away)))
        away = np.minimum(away, ((scaled - scaled[chosen[-1]]) ** 2).sum(axis=1))
    return rows[np.sort(chosen)]


def _first_places(here: Mapping[Key, Place], there: Mapping[Key, Place]) -> dict[Key, Key]:
    """Return for each call the first one that asks for the same, at two sets of values of everything else."""
    found: dict[Key, Key] = {}
    for key, place in here.items():
        found[key] = next(
            (o for o in found if same_place(here[o], place) and same_place(there[o], there[key])), key
        )
    return found


def _alike(here: Mapping[Key, Place], there: Mapping[Key, Place]) -> bool:
    return here.keys() == there.keys() and all(same_place(place, there[key]) for key, place in here.items())


def _at_rows(place: Place, rows: Any) -> Place:
    """Return a place at some of its rows."""
    return Place(
        place.kind,
        place.x[rows],
        (len(rows),),
        None if place.member is None else place.member[rows],
        place.of,
    )


def _is_identity(M: Any) -> bool:
    """Say whether a slope is known to be one everywhere."""
    return M.ndim == 1 and not isinstance(M, jax.core.Tracer) and bool(np.all(np.asarray(M) == 1.0))


def _matrix(M: Any) -> Any:
    return jnp.diag(M) if M.ndim == 1 else M
