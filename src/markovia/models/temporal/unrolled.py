"""Markov chains and hidden Markov models unrolled over time into Bayesian networks.

All steps share one table in memory, so a chain of 100,000 variables takes about a second and little space.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import State, Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.checks import Whole, check


def markov_chain(
    initial: ArrayLike,
    transition: ArrayLike,
    T: int,  # noqa: N803
    *,
    states: Sequence[State] | None = None,
    variable: str = "x",
    first: int = 0,
    name: str = "markov_chain",
) -> BayesianNetwork:
    """Build a Markov chain unrolled over T steps.

    Parameters
    ----------
    initial
        The distribution of the first step.
    transition
        Row i is the distribution of the next state after state i.
    T
        The number of steps.
    states
        The states; `0 ... k-1` by default.
    variable, first
        Variables are called by this prefix and a number that starts at `first`.
    name
        The network's name.

    Raises
    ------
    InvalidTable
        If `initial` or a row of `transition` is no distribution.

    Examples
    --------
    >>> chain = markov_chain([1, 0], [[0.9, 0.1], [0.5, 0.5]], T=100_000)
    >>> round(chain.query("x60")[0], 4)
    0.8333
    """
    check("T", T, Whole(1))
    nodes = _numbered(variable, states if states is not None else _length(initial), T, first)
    return BayesianNetwork.from_conditionals(_chain(nodes, initial, transition), name=name)


def hidden_markov_model(
    initial: ArrayLike,
    transition: ArrayLike,
    emission: ArrayLike,
    T: int,  # noqa: N803
    *,
    states: Sequence[State] | None = None,
    symbols: Sequence[State] | None = None,
    hidden: str = "z",
    observed: str = "x",
    first: int = 0,
    name: str = "hidden_markov_model",
) -> BayesianNetwork:
    """Build a hidden Markov model unrolled over T steps: z0, x0, z1, x1, ...

    Parameters
    ----------
    initial, transition, T
        Of the hidden chain, as in `markov_chain`.
    emission
        Row i is the distribution of the symbol that state i emits.
    states, symbols
        The hidden states and the observed symbols; counted from 0 by default.
    hidden, observed, first
        Variables are called by these prefixes and a number that starts at `first`.
    name
        The network's name.

    Raises
    ------
    InvalidTable
        If a row is no distribution.

    Examples
    --------
    >>> hmm = hidden_markov_model([0.8, 0.2], [[0.6, 0.4], [0.5, 0.5]],
    ...     [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]], T=3, states=["hot", "cold"], symbols=[1, 2, 3])
    >>> list(hmm.map(given={"x0": 3, "x1": 1, "x2": 3}).values())
    ['hot', 'cold', 'hot']
    """
    check("T", T, Whole(1))
    if hidden == observed:
        raise InvalidArgument(f"hidden and observed variables cannot both be called {hidden!r}")
    inside = _numbered(hidden, states if states is not None else _length(initial), T, first)
    width = np.shape(emission)[-1] if np.ndim(emission) else 0
    outside = _numbered(observed, symbols if symbols is not None else max(width, 1), T, first)
    checked = ConditionalTable(outside[0], [inside[0]], emission)
    emitted = [checked.rebound(x, (z,)) for z, x in zip(inside, outside, strict=True)]
    steps = zip(_chain(inside, initial, transition), emitted, strict=True)
    return BayesianNetwork.from_conditionals((c for step in steps for c in step), name=name)


def _chain(nodes: Sequence[Variable], initial: Any, transition: Any) -> list[Conditional]:
    start = ConditionalTable(nodes[0], (), initial)
    # a chain of one step has its transition checked all the same
    second = nodes[1] if len(nodes) > 1 else Variable(nodes[0].name + "'", nodes[0].states)
    step = ConditionalTable(second, [nodes[0]], transition)
    return [start, *(step.rebound(b, (a,)) for a, b in pairwise(nodes))]


def _numbered(prefix: str, states: int | Sequence[State], count: int, first: int) -> list[Variable]:
    clean = Variable(f"{prefix}{first}", states).states
    return [Variable.of(f"{prefix}{t}", clean) for t in range(first, first + count)]


def _length(values: ArrayLike) -> int:
    shape = np.shape(values)
    if len(shape) != 1 or not shape[0]:
        raise InvalidArgument("the initial distribution is a list of probabilities, one a state")
    return int(shape[0])
