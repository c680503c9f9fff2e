"""Which inputs of a traced function its outputs depend on, and on which of them not analytically.

Two analytic functions that agree on an interval agree everywhere; so a family that fits at a few random places fits, unless
there is a kink or a jump in between (`where`, `clip`, `abs`, `max`, `floor`), which no number of places rules out. These
leave a trace: an operation that compares, rounds or picks. Cost: one walk along the operations; loops are walked until their
dependencies settle.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

NOT_ANALYTIC = frozenset(
    {
        *("abs", "sign", "max", "min", "clamp", "floor", "ceil", "round", "rem", "nextafter", "is_finite"),
        *("eq", "ne", "lt", "le", "gt", "ge", "eq_to", "lt_to", "le_to", "and", "or", "xor", "not"),
        *("sort", "top_k", "argmax", "argmin", "reduce_max", "reduce_min", "reduce_and", "reduce_or"),
        *("reduce_xor", "cummax", "cummin", "while", "reduce_precision", "population_count"),
    }
)
CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
"""Parameters under which an operation that only calls another function keeps it."""


class Dependence(NamedTuple):
    """The inputs that a number depends on, and those among them that it depends on by comparing, rounding or picking."""

    inputs: frozenset[str] = frozenset()
    kinked: frozenset[str] = frozenset()


NOTHING = Dependence()


def dependences(jaxpr: Any, inputs: Sequence[Dependence]) -> list[Dependence]:
    """Return what each output of a traced function depends on, given what its inputs stand for.

    Examples
    --------
    >>> import jax, jax.numpy as jnp
    >>> traced = jax.make_jaxpr(lambda x, y: (x * y, jnp.where(x > 2, y, 0.0)))(1.0, 1.0)
    >>> of = [Dependence(frozenset({n})) for n in "xy"]
    >>> [(sorted(d.inputs), sorted(d.kinked)) for d in dependences(traced.jaxpr, of)]
    [(['x', 'y'], []), (['x', 'y'], ['x'])]
    """
    known = dict(zip(jaxpr.invars, inputs, strict=True))

    def of(atom: Any) -> Dependence:
        return NOTHING if hasattr(atom, "val") else known.get(atom, NOTHING)

    for step in jaxpr.eqns:
        found = _of_step(step, [of(x) for x in step.invars])
        known.update(zip(step.outvars, found, strict=True))
    return [of(x) for x in jaxpr.outvars]


def _of_step(step: Any, inputs: list[Dependence]) -> list[Dependence]:
    name = step.primitive.name
    if name == "scan":
        return _of_scan(step, inputs)
    if name == "cond":
        which, rest = inputs[0], inputs[1:]
        cases = [dependences(branch.jaxpr, rest) for branch in step.params["branches"]]
        return [_joined([*case, Dependence(which.inputs, which.inputs)]) for case in zip(*cases, strict=True)]
    inner = next((step.params[k] for k in CALLS if k in step.params), None)
    if inner is not None and name != "while":
        return dependences(getattr(inner, "jaxpr", inner), inputs)
    whole = _joined(inputs)
    if name in NOT_ANALYTIC or (name == "convert_element_type" and step.params["new_dtype"].kind in "biu"):
        whole = Dependence(whole.inputs, whole.inputs)
    return [whole] * len(step.outvars)


def _of_scan(step: Any, inputs: list[Dependence]) -> list[Dependence]:
    """Return what a loop's outputs depend on: what is carried is passed on until nothing new arrives."""
    body, held, carried = step.params["jaxpr"].jaxpr, step.params["num_consts"], step.params["num_carry"]
    now = list(inputs)
    while True:
        found = dependences(body, now)
        carry = [_joined(pair) for pair in zip(now[held : held + carried], found[:carried], strict=True)]
        if carry == now[held : held + carried]:
            return found
        now[held : held + carried] = carry


def _joined(parts: Sequence[Dependence]) -> Dependence:
    return Dependence(
        frozenset().union(*(p.inputs for p in parts)), frozenset().union(*(p.kinked for p in parts))
    )
