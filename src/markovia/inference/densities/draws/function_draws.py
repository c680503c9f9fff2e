"""Functions of a model given data: what an answer says of a node that is a Gaussian process.

For values of all latent numbers, as draws have them, a function is a Gaussian process given observations, or given its
values at the places that it was called at. States that it depends on are a mixture, weighed by their probabilities. Over
draws it is a mixture again, so means and variances at new inputs average in closed form.
"""

# ruff: noqa: D102, N803 (letters of the literature; methods are said by the base)

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered, UnknownVariable, UnsupportedModel
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.process_places import Conditioned, Place, read_place
from markovia.inference.gaussian.function_values import (
    FunctionMoments,
    FunctionPosterior,
    FunctionValues,
    as_rows,
)
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
    from markovia.inference.densities.draws.predictive_scores import PredictiveScore
    from markovia.inference.densities.program.program import Program

MOST_DRAWS = 400
"""Draws, evenly taken, that a function is averaged over."""
MOST_PICKLED = 50
"""Draws that a pickle holds."""
MOST_NUMBERS = 10**7
"""Numbers that a pickle holds."""


class NodeFunction(FunctionPosterior):
    """A function node given data: at one set of hyper-parameters, or averaged over draws of them.

    Parameters
    ----------
    program
        The model and its evidence.
    name
        The function.
    values
        Draws of all latent numbers, one row a draw.
    shares
        The weights of the draws.
    info
        Where it comes from.
    joint
        The posterior of all that is latent, where there is one.
    """

    def __init__(
        self,
        program: "Program",
        name: str,
        values: Mapping[str, Array],
        shares: Array | None,
        info: Info,
        joint: "DrawnPosterior | None" = None,
    ) -> None:
        self.program: Program | None = program
        self.name, self.info, self.joint = name, info, joint
        self._plate = next(iter(program.layout.sites[name].plates), "")
        n = len(next(iter(values.values()))) if values else 1
        rows = np.unique(np.linspace(0, n - 1, min(n, MOST_DRAWS)).astype(int))
        self.values = {k: np.asarray(v)[rows] for k, v in values.items()}
        self._draws = len(rows)
        self._shares = (
            np.full(len(rows), 1.0 / len(rows)) if shares is None else shares[rows] / shares[rows].sum()
        )
        functions = program.functions
        assert functions is not None
        self._needs = tuple(q for q in program.hidden if q in functions.discrete_above(name))
        self._sizes = [program.hidden[q].states for q in self._needs]
        self._states: Array | None = None
        self._one: list[Conditioned] | None = None

    @property
    def weights(self) -> Array:
        """The weight of each component: draws, and states for each of them."""
        if self._states is None:
            self._states = self._state_shares()
        return np.asarray((self._shares[:, None] * self._states).reshape(-1))

    def at(self, X: Any, member: Any = None) -> FunctionValues:
        """Return what the function is at inputs; `member` says of which of the functions of a plate."""
        if bool(self._plate) != (member is not None):
            say = (
                f"at(x, g) says of which of the functions of plate {self._plate!r}"
                if self._plate
                else "at(x) will do"
            )
            raise InvalidArgument(
                f"{self.name!r} is {'on a plate' if self._plate else 'one function'}: {say}"
            )
        if member is None:
            return super().at(X)
        rows = as_rows(X)
        here = _Member(self, np.broadcast_to(np.asarray(member), (len(rows),)))
        return FunctionValues(here, rows, np.shape(X) if np.ndim(X) < 2 else np.shape(X)[:1])

    def moments(self, X: Array, *, joint: bool = False, member: Any = None) -> FunctionMoments:
        place = read_place("value", [X], member, self.name)
        if self._draws == 1 or self.program is None:  # without a compiler
            found = [c.moments(place, joint=joint) for c in self._conditioned()]
            return FunctionMoments(np.stack([m for m, _ in found]), np.stack([v for _, v in found]))
        with x64():
            data, values = as_data(self.program.density), _as_jax(self.values)

            def one(value: Any, data: Any, place: Any) -> Any:
                x, member = place
                where = Place("value", x, (len(x),), member, self.name)
                every = [
                    self._at_states(value, data, at)[self.name].moments(where, joint=joint)
                    for at in self._every()
                ]
                return jnp.stack([m for m, _ in every]), jnp.stack([v for _, v in every])

            where = (jnp.asarray(place.x), None if member is None else jnp.asarray(place.member))

            def over(values: Any, data: Any, where: Any) -> Any:
                return jax.lax.map(lambda value: one(value, data, where), values)

            run = compiled(self.program.density, f"function {self.name}", joint, over, values, data, where)
            means, variances = run(values, data, where)
        return FunctionMoments(_flat(means), _flat(variances))

    def draws(self, n: int, seed: Seed = None) -> Callable[[Any], Array]:
        """Return n functions drawn together, as something to call; later calls are of the same functions."""
        rng = generator(seed)
        every = self._conditioned()
        which = np.sort(rng.choice(len(every), size=n, p=self.weights))
        mine = []
        for c, many in zip(*np.unique(which, return_counts=True), strict=True):
            process = every[c].copy()
            process.white = None if process.white is None else np.repeat(process.white[:, None], many, axis=1)
            mine.append((process, many))
        order = rng.permutation(n)

        def functions(X: Any) -> Array:
            place = read_place("value", [as_rows(X)], None, self.name)
            found = [
                process.extend(place, rng.standard_normal((place.size, many))).T for process, many in mine
            ]
            return np.concatenate(found)[order].reshape(
                (n, *(np.shape(X) if np.ndim(X) < 2 else np.shape(X)[:1]))
            )

        return functions

    def _every(self) -> list[tuple[int, ...]]:
        return list(np.ndindex(*self._sizes))

    def _at_states(
        self, value: Any, data: Any, at: tuple[int, ...], xp: Any = None
    ) -> dict[str, Conditioned]:
        assert self.program is not None
        functions = self.program.functions
        assert functions is not None
        env = {**self.program.layout.fixed, **data, **value}
        return functions.at_values(env, dict(zip(self._needs, at, strict=True)), xp)

    def _conditioned(self) -> list[Conditioned]:
        """Return the function at every draw and state, in NumPy."""
        if self._one is None:
            with x64():
                assert self.program is not None
                data = as_data(self.program.density)
                self._one = [
                    self._at_states({k: jnp.asarray(v[i]) for k, v in self.values.items()}, data, at, np)[
                        self.name
                    ]
                    for i in range(self._draws)
                    for at in self._every()
                ]
        return self._one

    def _state_shares(self) -> Array:
        """Return, for each draw, the probabilities of the states that the function depends on."""
        if not self._needs:
            return np.ones((self._draws, 1))
        with x64():
            program = self.program
            assert program is not None
            data, values = as_data(program.density), _as_jax(self.values)

            def one(value: Any, data: Any) -> Any:
                u = program.free({**program.layout.fixed, **data, **value})
                logs = []
                for at in self._every():
                    tilts = {
                        q: jnp.where(jnp.arange(program.hidden[q].states) == k, 0.0, -jnp.inf)
                        for q, k in zip(self._needs, at, strict=True)
                    }
                    logs.append(program.log_density(u, data, tilts=tilts))
                return jax.nn.softmax(jnp.stack(logs))

            if not values:
                return np.asarray(one({}, data))[None]
            return np.asarray(jax.lax.map(lambda value: one(value, data), values))

    # -- what is known beside it ------------------------------------------------------------------------------------

    def _all(self) -> "DrawnPosterior":
        if self.joint is None:
            raise Unanswered(f"{self.name!r} is by itself here; ask the posterior that it comes from")
        return self.joint

    def sample(self, n: int = 1, seed: Seed = None) -> dict[str, Array]:
        """Return n draws of all that is latent beside functions, by name; of the function itself, `at(x).sample(n)`."""
        return self._all().sample(n, seed)

    def log_likelihood(self) -> dict[str, Array]:
        """Return the log likelihood of each observation at each draw; where the function is summed out, given all others."""
        return self._all().log_likelihood()

    def loo(self) -> "PredictiveScore":
        """Return the expected log density of new data, by leave-one-out cross-validation."""
        return self._all().loo()

    def to_arviz(self) -> Any:
        """Return an ArviZ `InferenceData` of the draws."""
        return self._all().to_arviz()

    def line(self) -> str:
        """Return the posterior in a few words, for a list of many."""
        return "a function; ask .at(x)"

    def save(self, path: Any) -> None:
        """Say what to write instead: draws, or values of the function."""
        raise UnsupportedModel(
            f"a file holds numbers, and {self.name!r} is a function: write values of it, post.at(x).to_pandas(), or draws "
            "that it comes from, post.joint.save(...), with which the network predicts again; pickle keeps the function"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Keep the function at its draws, as numbers, without the model; of many draws, some that are evenly taken."""
        kept = self._thinned(MOST_PICKLED)
        numbers = sum(np.size(c.L) for c in kept._conditioned() if c.L is not None)
        if numbers > MOST_NUMBERS:
            raise UnsupportedModel(
                f"{self.name!r} takes {numbers:,} numbers to keep; keep its values instead: post.at(x).to_pandas()"
            )
        _ = kept.weights
        dropped: dict[str, Any] = {
            "program": None,
            "joint": None,
            "values": {},
            "info": replace(self.info, details=None),
        }
        return {**kept.__dict__, **dropped}

    def _thinned(self, most: int) -> "NodeFunction":
        """Return the function at some of its draws, evenly taken."""
        if self._draws <= most or self.program is None:
            return self
        rows = np.linspace(0, self._draws - 1, most).astype(int)
        some = {k: v[rows] for k, v in self.values.items()}
        return NodeFunction(self.program, self.name, some, self._shares[rows], self.info)


class _Member(FunctionPosterior):
    """One function of a plate for each input."""

    def __init__(self, whole: NodeFunction, member: Array) -> None:
        self.whole, self.member = whole, member
        self.name, self.info = whole.name, whole.info

    @property
    def weights(self) -> Array:
        return self.whole.weights

    def moments(self, X: Array, *, joint: bool = False) -> FunctionMoments:
        return self.whole.moments(X, joint=joint, member=self.member)


def function_of(
    program: "Program",
    name: str | None,
    values: Mapping[str, Array],
    shares: Array | None,
    info: Info,
    joint: "DrawnPosterior | None" = None,
) -> NodeFunction:
    """Return a function of a model given data, by its name; the only one where none is said."""
    names = [] if program.functions is None else list(program.functions.names)
    if not names:
        raise InvalidArgument("at(x) is of nodes that are functions (mk.GP), and this model has none")
    if name is None:
        if len(names) > 1:
            raise InvalidArgument(f"say of which function: at({names[0]!r}, x); there are {', '.join(names)}")
        name = names[0]
    if name not in names:
        raise UnknownVariable(name, names)
    kept = {*program.slots} & {*values}
    return NodeFunction(program, name, {n: values[n] for n in kept}, shares, info, joint)


def _as_jax(values: Mapping[str, Array]) -> dict[str, Any]:
    return {k: jnp.asarray(v) for k, v in values.items()}


def _flat(values: Any) -> Array:
    found = np.asarray(values)
    return found.reshape(-1, *found.shape[2:])
