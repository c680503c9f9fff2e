"""A hidden Markov model as a Bayesian network of some steps, and as a dynamic network."""

from dataclasses import replace
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.learning.components.discrete import Categorical
from markovia.learning.components.families import Components
from markovia.learning.components.regressions import LaggedCategorical, RegressionGaussian
from markovia.learning.components.tied import expanded
from markovia.learning.sequences.chain_laws import Driven, HigherOrder
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork
from markovia.models.temporal.hidden_states.component_nodes import add_components, column_names
from markovia.models.temporal.unrolled import hidden_markov_model, markov_chain
from markovia.runtime.array_types import Array


def unrolled(start: Array, transition: Array, emission: Components, T: int) -> BayesianNetwork:  # noqa: N803
    """Return the network of T steps; see `HMM.unroll`."""
    if isinstance(emission, Categorical):
        return hidden_markov_model(start, transition, emission.probs, T, symbols=emission.symbols)
    network = markov_chain(start, transition, T, variable="z", name="hidden_markov_model")
    _add_emissions(network, emission, T)
    return network


def unrolled_durations(
    start: Array,
    transition: Array,
    lengths: Array,
    emission: Components,
    T: int,  # noqa: N803
) -> BayesianNetwork:
    """Return the network of T steps with states `z`, the steps `c` that a visit still lasts, and observations `x`."""
    k, longest = lengths.shape
    states, left = list(range(k)), list(range(1, longest + 1))
    moved, counted = _counters(transition, lengths)
    network = BayesianNetwork(name="hidden_semi_markov_model")
    for t in range(T):
        if t == 0:
            network.add("z0", states=states, p=start)
            network.add("c0", states=left, parents=["z0"], p=lengths)
        else:
            network.add(f"z{t}", states=states, parents=[f"z{t - 1}", f"c{t - 1}"], p=moved)
            network.add(f"c{t}", states=left, parents=[f"z{t}", f"c{t - 1}"], p=counted)
    _add_emissions(network, emission, T)
    return network


def unrolled_law(model: Any, k: int, inputs: Array | None, T: int) -> BayesianNetwork:  # noqa: N803
    """Return the network of T steps of a chain of higher order, one that inputs drive, or of emissions with lags."""
    network = BayesianNetwork(name="hidden_markov_model")
    states = list(range(k))
    tables = model.tables(inputs) if isinstance(model, Driven) and inputs is not None else None
    for t in range(T):
        if isinstance(model, HigherOrder):
            table = model.starts[t] if t < model.order else model.transition
        elif t == 0:
            table = model.start
        else:
            table = model.transition if tables is None else tables[t]
        parents = [f"z{t - back}" for back in range(table.ndim - 1, 0, -1)]
        network.add(f"z{t}", states=states, parents=parents, p=table)
    emission = expanded(model.emission)
    if isinstance(
        model, HigherOrder
    ):  # states of the answering chain from 0 to k-1 end in the states themselves
        emission = replace(emission, **{name: value[:k] for name, value in emission.params.items()})
    if isinstance(emission, LaggedCategorical):
        for t in range(T):
            past = [f"x{t - back}" for back in range(emission.memory, 0, -1)] if t >= emission.memory else []
            table = emission.probs if past else emission.first
            network.add(f"x{t}", states=list(emission.symbols), parents=[f"z{t}", *past], p=table)
    elif isinstance(emission, RegressionGaussian):
        _add_regressions(network, emission, inputs, T)
    else:
        _add_emissions(network, emission, T)
    return network


def _add_regressions(
    network: BayesianNetwork,
    emission: RegressionGaussian,
    inputs: Array | None,
    T: int,  # noqa: N803
) -> None:
    if emission.means.shape[1] > 1:
        raise UnsupportedModel("regressions are unrolled for observations of one column only")
    for t in range(T):
        if t < emission.memory:
            network.add(f"x{t}", LinearGaussian(0.0, {}, 1.0))
            continue
        by_state = {}
        for z in range(emission.n_states):
            more = 0.0 if inputs is None else float(emission.inputs[z, 0] @ inputs[t])
            past = {f"x{t - 1 - back}": float(w) for back, w in enumerate(emission.lags[z, :, 0, 0])}
            by_state[z] = LinearGaussian(
                float(emission.means[z, 0]) + more, past, float(emission.covariances[z, 0, 0])
            )
        network.add(f"x{t}", by_state, parents=[f"z{t}"])


def _counters(transition: Array, lengths: Array) -> tuple[Array, Array]:
    """Return p(z | z before, steps left before) and p(steps left | z, steps left before)."""
    k, longest = lengths.shape
    moved = np.repeat(np.eye(k)[:, None, :], longest, axis=1)
    moved[:, 0] = transition
    counted = np.repeat(np.eye(longest, k=-1)[None], k, axis=0)
    counted[:, 0] = lengths
    return moved, counted


def _add_emissions(network: BayesianNetwork, emission: Components, T: int) -> None:  # noqa: N803
    """Add observations `x0`, `x1`, ... of states `z0`, `z1`, ..."""
    for t in range(T):
        add_components(network, emission, column_names(f"x{t}", emission), [f"z{t}"])


def two_slices(start: Array, transition: Array, emission: Components) -> DynamicBayesianNetwork:
    """Return the dynamic network of states `z` and observations `x`; see `HMM.network`."""
    first, later = BayesianNetwork(), BayesianNetwork()
    states = list(range(len(start)))
    first.add("z", states=states, p=start)
    later.add("z@-1", states=states)
    later.add("z", states=states, parents=["z@-1"], p=transition)
    for network in (first, later):
        add_components(network, emission, column_names("x", emission), ["z"])
    return DynamicBayesianNetwork(first, later)


def two_slices_durations(
    start: Array, transition: Array, lengths: Array, emission: Components
) -> DynamicBayesianNetwork:
    """Return the dynamic network of states `z`, steps left `c` and observations `x`; see `HiddenSemiMarkov.network`."""
    k, longest = lengths.shape
    states, left = list(range(k)), list(range(1, longest + 1))
    moved, counted = _counters(transition, lengths)
    first, later = BayesianNetwork(), BayesianNetwork()
    first.add("z", states=states, p=start)
    first.add("c", states=left, parents=["z"], p=lengths)
    later.add("z@-1", states=states)
    later.add("c@-1", states=left)
    later.add("z", states=states, parents=["z@-1", "c@-1"], p=moved)
    later.add("c", states=left, parents=["z", "c@-1"], p=counted)
    for network in (first, later):
        add_components(network, emission, column_names("x", emission), ["z"])
    return DynamicBayesianNetwork(first, later)
