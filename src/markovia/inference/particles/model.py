"""A state-space model given as functions that return distributions: who gets which argument, and what it must return."""

import hashlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from markovia.errors import InvalidArgument
from markovia.inference.particles.laws import (
    ALONE,
    by_name,
    distribution,
    draw_all,
    each,
    elementwise,
    entries,
)
from markovia.runtime.double_precision import x64
from markovia.runtime.function_descriptions import described
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.traced_functions import traced

RESERVED = ("t", "u", "y")


class Where(NamedTuple):
    """What a function may ask for besides the state: the step, its inputs, the parameters, and the observation."""

    t: Any
    u: Any
    parameters: Any
    y: Any = None


@dataclass(frozen=True)
class ParticleModel:
    """A model x[0] ~ initial, x[t] ~ transition(x[t-1]), y[t] ~ observation(x[t]), with what helps to sample it.

    Attributes
    ----------
    initial, transition, observation
        Distributions (or mappings of them), or functions that return such. `transition` is asked with the state before and
        the step and inputs of the state to come.
    proposal, initial_proposal
        Functions of the state before and `y` that return what to draw the next state from.
    lookahead
        `(x, y) -> log weight`: how well a state explains the next observation.
    twist
        `(x, t) -> log weight`: how well a state explains all observations after its own.
    parameters
        Names that functions take from the parameters.
    """

    initial: Any
    transition: Any
    observation: Any
    proposal: Any = None
    initial_proposal: Any = None
    lookahead: Any = None
    twist: Any = None
    parameters: tuple[str, ...] = ()
    _asked: dict[tuple[str, tuple[str, ...]], dict[str, str | None]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def first(self, where: Where) -> Any:
        """Return the law of the first state."""
        return self._call("initial", None, where, None)

    def moved(self, x: Any, where: Where) -> Any:
        """Return the law of the state after x."""
        return self._call("transition", x, where, x)

    def seen(self, x: Any, where: Where) -> Any:
        """Return the law of the observation of x."""
        return self._call("observation", x, where, x)

    def proposed(self, x: Any, where: Where) -> Any:
        """Return the law that the state after x is drawn from; x is None for the first state."""
        return self._call("initial_proposal" if x is None else "proposal", x, where, x)

    def log_weight(self, role: str, x: Any, where: Where) -> Any:
        """Return a number that a user's function of the state gives."""
        found = self._call(role, x, where, x)
        if getattr(found, "shape", ()) != () or hasattr(found, "log_prob"):
            raise InvalidArgument(
                f"{role}= returns one number, the log of a weight, not {type(found).__name__}"
            )
        return jnp.asarray(found, jnp.float64)

    def _call(self, role: str, x: Any, where: Where, state: Any) -> Any:
        function = getattr(self, role)
        if hasattr(function, "log_prob") or not callable(function):
            return function
        offered = {"t": where.t, "u": where.u, "y": where.y, **where.parameters}
        if role in ("transition", "observation", "initial"):
            del offered["y"]
        if isinstance(x, Mapping):
            offered = {**x, **offered}
        plan = self._plan(role, function, tuple(offered))
        for name in plan.values():
            if name == "u" and where.u is None:
                raise InvalidArgument(f"{role}= takes inputs u, so give inputs=")
        with traced(f"{role}="):
            return function(**{arg: state if name is None else offered[name] for arg, name in plan.items()})

    def _plan(
        self, role: str, function: Callable[..., Any], offered: tuple[str, ...]
    ) -> dict[str, str | None]:
        """Return what each argument of a function gets: a name that is offered, or None for the state."""
        if (role, offered) in self._asked:
            return dict(self._asked[role, offered])
        try:
            arguments = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            raise InvalidArgument(f"{role}= has no signature to read; wrap it in a lambda") from None
        plan: dict[str, str | None] = {}
        for one in arguments:
            if one.kind in (one.VAR_POSITIONAL, one.VAR_KEYWORD, one.POSITIONAL_ONLY):
                raise InvalidArgument(f"{role}= takes its arguments by name, so *{one.name} cannot be filled")
            if one.name in offered:
                plan[one.name] = one.name
            elif one.default is one.empty:
                plan[one.name] = None
        free = [arg for arg, name in plan.items() if name is None]
        if len(free) > (0 if role in ("initial", "initial_proposal") else 1):
            known = ", ".join(map(repr, offered))
            raise InvalidArgument(
                f"{role}= has arguments {', '.join(map(repr, free))}; "
                + ("one may be the state, " if "initial" not in role else "")
                + f"what else it can ask for is {known}"
            )
        self._asked[role, offered] = plan
        return dict(plan)

    @cached_property
    def key(self) -> str:
        """A name for what the functions compute, for compiled code."""
        own = (self.initial, self.transition, self.observation, self.proposal, self.initial_proposal)
        return hashlib.sha256(described((*own, self.lookahead, self.twist, self.parameters))).hexdigest()


@dataclass(frozen=True)
class Shape:
    """What the functions were found to return.

    Attributes
    ----------
    state
        A tree of shapes and types of one state.
    states
        For each quantity that is one of so many states, how many.
    real
        Whether all quantities are real numbers without bounds.
    observed
        For each observed quantity, its shape.
    partial
        Whether some numbers of it may be missing and others not.
    supports
        Where single numbers of an observed quantity may lie, for those whose range does not depend on the state.
    """

    state: Any
    states: dict[str, int]
    real: bool
    observed: dict[str, tuple[int, ...]]
    partial: dict[str, bool]
    supports: dict[str, Any] = field(default_factory=dict)


def shape_of(model: ParticleModel, u: Any, parameters: Mapping[str, Any]) -> Shape:
    """Trace the functions once, without computing anything, and return what they make; refuse what does not fit."""
    _refuse_reserved(model.parameters)
    noted: dict[str, Any] = {}
    where = Where(jnp.asarray(1), u, dict(parameters))

    def look(where: Where) -> Any:
        key, dummy = jax.random.key(0), jnp.zeros(2)
        x = draw_all(lambda _: model.first(where), dummy, key, "initial=")
        _refuse_reserved(by_name(x))
        moved = draw_all(lambda x: model.moved(x, where), x, key, "transition=")
        if _shapes(x) != _shapes(moved):
            raise InvalidArgument(
                f"the first state is {_words(x)}, but transition= draws {_words(moved)}; both are to be alike"
            )
        joined = jax.tree.map(lambda a, b: jnp.zeros(a.shape[1:], jnp.result_type(a, b)), x, moved)
        again = each(model.moved(joined, where), joined, "transition=")
        noted["states"] = {n: k for n, d in again.items() if (k := _finite(d))}
        noted["real"] = all(_real(d) for d in again.values())
        seen = _laws_in_order(model.seen(joined, where))
        noted["observed"] = {n: d.event_shape for n, d in seen.items()}
        noted["partial"] = {n: elementwise(d) for n, d in seen.items()}
        noted["supports"] = {n: s for n, d in seen.items() if (s := _fixed_support(d)) is not None}
        return joined

    with x64():
        state = jax.eval_shape(look, where)
    return Shape(
        state, noted["states"], noted["real"], noted["observed"], noted["partial"], noted["supports"]
    )


def _laws_in_order(law: Any) -> dict[str, Any]:
    """Return the distributions of what is observed, made up values where they depend on each other."""
    found: dict[str, Any] = {}
    values: dict[str, Any] = {}
    for name, entry in entries(law, "observation=").items():
        found[name] = distribution(entry, values, f"observation=, {name!r}")
        discrete = found[name].support is not None and found[name].support.is_discrete
        values[name] = jnp.zeros(found[name].event_shape, jnp.int64 if discrete else jnp.float64)
    return found


def _refuse_reserved(names: Sequence[str] | Mapping[str, Any]) -> None:
    for name in names:
        if name in RESERVED:
            raise InvalidArgument(
                f"{name!r} stands for the step, the inputs or the observation; call it otherwise"
            )


def _shapes(x: Any) -> dict[str, Any]:
    return {name: v.shape for name, v in by_name(x).items()}


def _words(x: Any) -> str:
    named = by_name(x)
    said = [f"of shape {v.shape[1:]}" if v.ndim > 1 else "a number" for v in named.values()]
    if ALONE in named:
        return said[0]
    return "{" + ", ".join(f"{name!r}: {one}" for name, one in zip(named, said, strict=True)) + "}"


def _finite(d: Any) -> int:
    """Return how many states a quantity has, 0 where that is not a fixed small number."""
    name = type(d).__name__
    if name.startswith("Categorical"):
        return int((d.probs if name == "CategoricalProbs" else d.logits).shape[-1])
    return 2 if name.startswith("Bernoulli") else 0


def _support_of_numbers(d: Any) -> Any:
    support = d.support
    while type(support).__name__ == "_IndependentConstraint":
        support = support.base_constraint
    return support


def _fixed_support(d: Any) -> Any:
    """Return where the numbers of a quantity may lie, if the state, the inputs and the parameters do not move that."""
    support = _support_of_numbers(d)
    if support is None or support.event_dim or not elementwise(d):
        return None
    return None if any(isinstance(x, jax.core.Tracer) for x in jax.tree.leaves(support)) else support


def _real(d: Any) -> bool:
    import numpyro.distributions.constraints as theirs

    support = _support_of_numbers(d)
    return support is theirs.real or support == theirs.real or support == theirs.real_vector
