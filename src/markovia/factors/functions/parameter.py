"""Numbers that are learned and not inferred: weights of functions, as arrays or as modules, beside the nodes of a model.

A parameter is no variable: it has one value, which comes with `fit` as an input's comes with `given`. Functions take it by
name. A module (Equinox, or any tree of arrays that can be called) is applied to every element of a node's plates.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, InvalidArgument
from markovia.runtime.libraries import eqx, jax, jnp


class Parameter:
    """What `fit` learns: a number, an array, a module, or a recipe for a module.

    Parameters
    ----------
    value
        Where learning starts: a number or an array; an Equinox module, whose arrays of fractions are learned; or a recipe
        of `mk.networks`, from which `fit` makes a module.
    support
        What the numbers are restricted to: "positive", "unit" (between 0 and 1), "simplex", or a constraint of
        `markovia.distributions.constraints`.
    prior
        A distribution of each number. Then they are inferred like any other quantity, and no longer learned by `fit`: a
        module is a latent vector of all its numbers, and functions get it as a module.
    fixed
        Whether `fit` leaves it as it is: a constant that the model carries along, such as a unit, or a trained module.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("slope", mk.Parameter(0.0))
    >>> m.add("scale", mk.Parameter(1.0, support="positive"))
    >>> m.add("x", mk.Input(), plate="row")
    >>> m.add("y", lambda slope, scale, x: dist.Normal(slope * x, scale), plate="row")
    >>> m.variables, list(m.parameters)
    (['x', 'y'], ['slope', 'scale'])
    """

    def __init__(self, value: Any, *, support: Any = None, prior: Any = None, fixed: bool = False) -> None:
        self.recipe = value if hasattr(value, "build") else None
        self.support, self.prior, self.fixed = support, prior, fixed
        if fixed and (prior is not None or self.recipe is not None):
            raise InvalidArgument(
                "fixed= is for numbers, arrays and modules that are known: no prior=, and no recipe"
            )
        self.value: Any = None if self.recipe is not None else _held(value)
        self.plates: tuple[str, ...] = ()
        if support is not None and (self.recipe is not None or not isinstance(self.value, np.ndarray)):
            raise InvalidArgument(
                "support= is for numbers and arrays; a module constrains what it returns itself"
            )
        if support is not None and not np.all(_is_inside(support, self.value)):
            raise InvalidArgument(f"the value of the parameter is outside its support, {support!r}")

    def with_value(self, value: Any) -> "Parameter":
        """Return the parameter with another value."""
        other = object.__new__(Parameter)
        other.__dict__.update(self.__dict__, value=value)
        return other

    def on(self, plates: tuple[str, ...]) -> "Parameter":
        """Return the parameter with plates as the first axes of its array."""
        other = object.__new__(Parameter)
        other.__dict__.update(self.__dict__, plates=plates)
        return other

    @cached_property
    def skeleton(self) -> "ModuleSkeleton":
        """What makes a module of its numbers."""
        return ModuleSkeleton.of(self.recipe.build(0) if self.value is None else self.value)  # type: ignore[union-attr]

    @property
    def is_module(self) -> bool:
        """Whether its value is, or will be, more than an array."""
        return self.recipe is not None or not isinstance(self.value, np.ndarray)

    def __getstate__(self) -> dict[str, Any]:
        """Write a module that a recipe made as the recipe and its numbers: its activations cannot be pickled."""
        state = {k: v for k, v in self.__dict__.items() if k != "skeleton"}
        if self.recipe is not None and self.value is not None:
            state["value"] = ModuleSkeleton.of(self.value).vector(self.value)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self.recipe is not None and self.value is not None:
            self.value = ModuleSkeleton.of(self.recipe.build(0)).numpy_module(self.value)

    def __repr__(self) -> str:
        if self.value is None:
            return f"Parameter({self.recipe!r})"
        if isinstance(self.value, np.ndarray):
            what = f"array of shape {self.value.shape}" if self.value.ndim else f"{float(self.value):.6g}"
            return f"Parameter({what})"
        return f"Parameter({type(self.value).__name__} of {ModuleSkeleton.of(self.value).size:,} numbers)"


def _held(value: Any) -> Any:
    """Return a value as a NumPy array of fractions, or a module as it is."""
    if isinstance(value, bool | int | float | np.generic | np.ndarray | list | tuple) or (
        hasattr(value, "dtype") and hasattr(value, "shape")
    ):
        found = np.asarray(value)
        if found.dtype.kind not in "biuf":
            raise InvalidArgument(f"a parameter is made of numbers, not {value!r}")
        return found.astype(np.float64)
    leaves = [leaf for leaf in jax.tree.leaves(value) if is_fraction(leaf)]
    if not leaves:
        raise InvalidArgument(
            f"a parameter is a number, an array, a module with arrays of fractions, or a recipe of mk.networks, not "
            f"{type(value).__name__}"
        )
    return value


def constraint(support: Any) -> Any:
    """Return the constraint that a word or a constraint stands for."""
    from numpyro.distributions import constraints

    named = {
        "positive": constraints.positive,
        "unit": constraints.unit_interval,
        "simplex": constraints.simplex,
        "real": constraints.real,
    }
    if isinstance(support, str):
        if support not in named:
            raise InvalidArgument(
                f"support= is {', '.join(map(repr, named))} or a constraint, not {support!r}"
            )
        return named[support]
    return support


def _is_inside(support: Any, value: Any) -> Any:
    """Say of each number whether it is in a support; of the common ones without a compiler."""
    if support == "positive":
        return value > 0.0
    return (value >= 0.0) & (value <= 1.0) if support == "unit" else constraint(support)(value)


def is_fraction(leaf: Any) -> bool:
    """Say whether a leaf of a tree is an array of fractions, which can be learned."""
    return hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)


def named_leaves(module: Any) -> list[tuple[str, Any]]:
    """Return the arrays of a module that are learned, by their paths."""
    found, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(module, is_fraction))
    return [(jax.tree_util.keystr(path), leaf) for path, leaf in found]


@dataclass(frozen=True)
class ModuleSkeleton:
    """A module without its numbers: what makes it again from a tree of arrays, or from all numbers in one vector."""

    static: Any
    shapes: tuple[tuple[int, ...], ...]
    tree: Any

    @classmethod
    def of(cls, module: Any) -> "ModuleSkeleton":
        """Return the skeleton of a module."""
        arrays, static = eqx.partition(module, is_fraction)
        leaves, tree = jax.tree.flatten(arrays)
        return cls(static, tuple(tuple(leaf.shape) for leaf in leaves), tree)

    @cached_property
    def size(self) -> int:
        """How many numbers there are."""
        return int(sum(np.prod(shape, dtype=int) for shape in self.shapes))

    def vector(self, module: Any) -> Any:
        """Return all numbers of a module as one NumPy vector."""
        leaves = jax.tree.leaves(eqx.filter(module, is_fraction))
        return np.concatenate([np.zeros(0), *(np.asarray(leaf, np.float64).ravel() for leaf in leaves)])

    def module(self, numbers: Any) -> Any:
        """Return the module with some numbers: one vector, or a tree of arrays."""
        if not (hasattr(numbers, "ndim") and numbers.ndim == 1):
            return eqx.combine(numbers, self.static)
        leaves, start = [], 0
        for shape in self.shapes:
            n = int(np.prod(shape, dtype=int))
            leaves.append(jnp.reshape(jnp.asarray(numbers[start : start + n]), shape))
            start += n
        return eqx.combine(jax.tree.unflatten(self.tree, leaves), self.static)

    def numpy_module(self, numbers: Any) -> Any:
        """Return the module with numbers of one vector, as NumPy arrays of 64 bits."""
        cuts = np.cumsum([np.prod(shape, dtype=int) for shape in self.shapes])[:-1]
        parts = np.split(np.asarray(numbers, np.float64), cuts)
        return self.filled([part.reshape(shape) for part, shape in zip(parts, self.shapes, strict=True)])

    def filled(self, leaves: Sequence[Any]) -> Any:
        """Return the module with some arrays, in their order."""
        return eqx.combine(jax.tree.unflatten(self.tree, leaves), self.static)

    def described(self) -> tuple[Any, ...]:
        """Return what compiled code depends on: everything but the numbers."""
        return (self.shapes, str(self.tree), jax.tree.leaves(self.static))


@dataclass(frozen=True)
class ParameterValue:
    """A parameter as an engine gets it: its numbers in one array, and the module's skeleton where it is one.

    A module with a prior has no numbers: they are the values of a node.
    """

    node: str = field(default="", kw_only=True)

    numbers: Any
    skeleton: ModuleSkeleton | None = None
    plates: tuple[str, ...] = ()


def parameter_values(parameters: Mapping[str, "Parameter"]) -> dict[str, ParameterValue]:
    """Return what an engine gets of a model's parameters.

    Raises
    ------
    IncompleteModel
        If one is a recipe that no `fit` has made a module from yet.
    """
    found = {}
    for name, parameter in parameters.items():
        if parameter.prior is not None:
            found[f"module of {name}"] = ParameterValue(None, parameter.skeleton, node=name)
        elif parameter.value is None:
            raise IncompleteModel(
                f"the parameter {name!r} is a recipe ({parameter.recipe!r}) that nobody has trained; call fit first"
            )
        elif isinstance(parameter.value, np.ndarray) and np.isnan(parameter.value).any():
            raise IncompleteModel(
                f"the parameter {name!r} was not said, and starts at the scale of the data: call fit first, or give a number"
            )
        elif isinstance(parameter.value, np.ndarray):
            found[name] = ParameterValue(parameter.value, plates=parameter.plates)
        else:
            skeleton = ModuleSkeleton.of(parameter.value)
            found[name] = ParameterValue(skeleton.vector(parameter.value), skeleton)
    return found


@dataclass(frozen=True)
class PlatedModule:
    """A module inside a node's function: applied to every element of the node's plates.

    Attributes
    ----------
    module
        The module itself, for what is not to be mapped.
    name, plates, lengths
        What it is called, and the plates that arguments have in front.
    """

    module: Any
    name: str
    plates: tuple[str, ...]
    lengths: tuple[int, ...]

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Apply the module to every element; options such as `key=` are the same for all."""
        if not self.plates:
            return self._applied(*arguments, **options)
        k = len(self.plates)
        flat = [self._flat(argument, k) for argument in arguments]
        found = jax.vmap(lambda *one: self._applied(*one, **options))(*flat)
        return jax.tree.map(lambda x: jnp.reshape(x, (*self.lengths, *jnp.shape(x)[1:])), found)

    def _applied(self, *arguments: Any, **options: Any) -> Any:
        """Return what the module says of one element; if it fails, its name and the shapes are named."""
        try:
            return self.module(*arguments, **options)
        except (
            TypeError,
            ValueError,
        ) as problem:  # InvalidArgument among them; what JAX cannot trace says so itself
            if isinstance(problem, jax.errors.JAXTypeError | jax.errors.JAXIndexError):
                raise
            shapes = ", ".join(str(tuple(jnp.shape(a))) for a in arguments) or "nothing"
            raise InvalidArgument(
                f"{self.name!r}, a module of class {type(self.module).__name__}, was called with elements of shape {shapes}"
                f"{'' if self.plates else ' (no plates)'}: {problem}"
            ) from problem

    def distribution(self, *context: Any) -> Any:
        """Return the law that a module is (`mk.flows` and its kin), for every element; context has the plates in front."""
        if not hasattr(self.module, "distribution"):
            raise InvalidArgument(
                f"{self.name!r} is a module that is no distribution; those of mk.flows are, or call it and make one"
            )
        if not self.plates:
            return self.module.distribution(*context)
        from markovia.factors.networks.density_modules import module_distribution  # loads NumPyro

        k = len(self.plates)
        whole = [jnp.reshape(c, (*self.lengths, *c.shape[1:])) for c in (self._flat(c, k) for c in context)]
        return module_distribution(self.module, whole, self.lengths)

    def _flat(self, argument: Any, k: int) -> Any:
        """Return an argument with all plates as one axis in front."""
        array = jnp.asarray(argument)
        try:
            fits = np.broadcast_shapes(array.shape[:k], self.lengths) == self.lengths and array.ndim >= k
        except ValueError:
            fits = False
        if not fits:
            over = ", ".join(f"{p} ({n})" for p, n in zip(self.plates, self.lengths, strict=True))
            raise InvalidArgument(
                f"{self.name!r} is applied along {over} and gets an array of shape {array.shape}, without them in "
                f"front; {self.name}.module is the module without plates"
            )
        events = array.shape[k:]
        return jnp.reshape(jnp.broadcast_to(array, (*self.lengths, *events)), (-1, *events))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.module, name)


def priors_of(parameter: Parameter) -> Any:
    """Return the distribution of all numbers of an array or a module that has a prior."""
    shape = (parameter.skeleton.size,) if parameter.is_module else parameter.value.shape
    return parameter.prior.expand(shape).to_event(len(shape)) if shape else parameter.prior
