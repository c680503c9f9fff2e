"""A dynamic network as the laws of a particle filter: what is hidden is the state, what is observed its observation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import Sequences
from markovia.errors import InvalidArgument, UnknownState, UnsupportedModel, check_known
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

BEFORE = "@-1"


@dataclass(frozen=True)
class NodeLaw:
    """The distribution of a node given parents of its own step, `needs`, and those of the step before, `held`."""

    piece: Any
    needs: tuple[str, ...]
    held: Any = None

    def __call__(self, **known: Any) -> Any:
        """Return the distribution."""
        import jax.numpy as jnp
        import numpyro.distributions as theirs

        piece = self.piece
        env = {**known, **{f"{name}{BEFORE}": x for name, x in (self.held or {}).items()}}
        if isinstance(piece, FunctionNode):
            if is_distribution(piece.form):
                return piece.form
            return piece.form(**{argument: env[source] for argument, source in piece.arguments.items()})
        if isinstance(piece, GaussianConditional):
            at = tuple(env[p.name] for p in piece.discrete)
            mean, weights = jnp.asarray(piece.bias)[at], jnp.asarray(piece.weights)[at]
            for k, parent in enumerate(piece.continuous):
                mean = mean + weights[..., k] * env[parent.name]
            if not piece.variance.any():
                return theirs.Delta(mean)
            return theirs.Normal(mean, jnp.sqrt(jnp.asarray(piece.variance)[at]))
        table, index = jnp.asarray(piece.values), tuple(env[n] for n in piece.parent_names)
        return theirs.Categorical(probs=table[index] if index else table)


@dataclass(frozen=True)
class SliceLaw:
    """The joint law of some nodes of a step, in order, given the state before or that of the step itself."""

    pieces: Mapping[str, Any]
    given_now: bool = False
    labels: Mapping[str, tuple[Any, ...]] | None = None

    def __call__(self, state_: Any) -> dict[str, Any]:
        """Return the laws by name."""
        found: dict[str, Any] = {}
        for name, piece in self.pieces.items():
            parents = _parents(piece)
            if self.given_now:
                bound = {p: state_[p] for p in parents if p not in self.pieces}
                found[name] = _With(NodeLaw(piece, tuple(p for p in parents if p in self.pieces)), bound)
            else:
                needs = tuple(p for p in parents if not p.endswith(BEFORE))
                found[name] = NodeLaw(piece, needs, state_)
        return found


@dataclass(frozen=True)
class _With:
    """A node's law with some parents known."""

    law: NodeLaw
    bound: Mapping[str, Any]

    @property
    def needs(self) -> tuple[str, ...]:
        return self.law.needs

    def __call__(self, **known: Any) -> Any:
        return self.law(**known, **self.bound)


def network_laws(process: DynamicBayesianNetwork, observed: Sequence[str]) -> dict[str, Any]:
    """Return `initial`, `transition` and `observation` of a particle filter that follows a dynamic network.

    Raises
    ------
    UnsupportedModel
        For a network that looks more than one step back, or where something hidden depends on something observed.
    """
    if not isinstance(process, DynamicBayesianNetwork):
        raise InvalidArgument(f"a DynamicBayesianNetwork is wanted, not a {type(process).__name__}")
    networks = process.ready()
    if process.order > 1:
        raise UnsupportedModel(
            f"the particles hold one step, but the network looks {process.order} steps back; process.filter(...) is exact"
        )
    names = [observed] if isinstance(observed, str) else list(observed)
    check_known(names, process.variables, "the process")
    if not names or len(names) == len(process.variables):
        raise InvalidArgument(
            "observed= names some variables of the process, and leaves some that are hidden"
        )
    first, later = ({n: net[n] for n in _in_order(net)} for net in networks)
    for piece in [*first.items(), *later.items()]:
        name, parents = piece[0], _parents(piece[1])
        for parent in parents:
            if (parent.removesuffix(BEFORE) in names and name not in names) or (
                parent.endswith(BEFORE) and name in names
            ):
                raise UnsupportedModel(
                    f"particles follow hidden variables that depend on hidden ones, but {name!r} depends on {parent!r}"
                )
    if any(_shown(first[n]) != _shown(later[n]) for n in names):
        raise UnsupportedModel("what is observed depends on the state at step 0 otherwise than later")
    seen = {n: later[n] for n in later if n in names}
    labels = {n: tuple(p.variable.states) for n, p in seen.items() if getattr(p, "kind", "") == "table"}
    hidden = [{n: p for n, p in part.items() if n not in names} for part in (first, later)]
    begin = {n: NodeLaw(p, _parents(p)) for n, p in hidden[0].items()}
    return {
        "initial": begin,
        "transition": SliceLaw(hidden[1]),
        "observation": SliceLaw(seen, given_now=True, labels=labels),
    }


def coded(read: Sequences, labels: Mapping[str, tuple[Any, ...]] | None) -> Sequences:
    """Return sequences with the states of discrete columns as their positions."""
    if not labels:
        return read
    values = np.array(read.values, dtype=object)
    check_known(labels, read.columns, "the sequences")
    for name, states in labels.items():
        j, place = read.columns.index(name), {s: k for k, s in enumerate(states)}
        for i, cell in enumerate(values[:, j]):
            if cell is None or cell != cell:
                values[i, j] = np.nan
            elif cell in place:
                values[i, j] = place[cell]
            else:
                raise UnknownState(name, cell, states)
    return Sequences(values, read.offsets, read.names, read.columns)


def _in_order(network: BayesianNetwork) -> list[str]:
    """Return the variables of a step, parents first."""
    left = [n for n in network.variables if not n.endswith(BEFORE)]
    order: list[str] = []
    while left:
        free = next(n for n in left if not set(_parents(network[n])) & set(left))
        order.append(free)
        left.remove(free)
    return order


def _parents(piece: Any) -> tuple[str, ...]:
    return tuple(piece.parent_names)


def _shown(piece: Any) -> bytes:
    from markovia.runtime.function_descriptions import described

    return described((_parents(piece), {k: v for k, v in piece.__dict__.items() if k != "variable"}))
