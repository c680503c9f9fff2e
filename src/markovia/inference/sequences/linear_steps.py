"""The steps of a dynamic network of linear Gaussians as matrices.

A step's variables are `v = B0 v + B1 v[-1] + ... + b + e`, so `v = (I - B0)^-1 (B1 v[-1] + ... + b + e)`. The state stacks a
step's variables and those that are looked back at; every variable is observed without noise, or hidden.
Reference: Roweis and Ghahramani (1999).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.conditional import Conditional
from markovia.inference.sequences.slices import Place, split_name
from markovia.runtime.array_types import Array


def linear_system(steps: Sequence[Mapping[str, Conditional]], n: int | None = None) -> dict[str, Any]:
    """Return the matrices of a state-space model, by the names of its parameters; of order above 1 for n steps.

    Parameters
    ----------
    steps
        The distributions of the variables of first steps, and last those of every later step.
    n
        The number of steps, which the matrices of an order above 1 are given for one by one.
    """
    names, order = list(steps[-1]), len(steps) - 1
    d = len(names)
    if order > 1 and n is None:
        raise UnsupportedModel(
            "the first steps of this process have other matrices than later ones; filter(), smooth() and log_prob() know "
            "them"
        )
    first, *later = [matrices(tables, names, order) for tables in steps]
    mean, cov = np.zeros(d * order), np.zeros((d * order, d * order))
    mean[:d], cov[:d, :d] = first[1], first[2]
    moves = [stacked(part, d, order) for part in later]
    chosen = [moves[min(t, order - 1)] for t in range(max(n or 0, 2))] if order > 1 else moves[-1:]
    transition, offset, noise = (np.stack(m) if order > 1 else m[0] for m in zip(*chosen, strict=True))
    return {
        "transition": transition,
        "transition_cov": noise,
        "observation": np.eye(d, d * order),
        "observation_cov": np.zeros((d, d)),
        "initial_mean": mean,
        "initial_cov": cov,
        "transition_offset": offset,
    }


def matrices(
    tables: Mapping[str, Conditional],
    names: Sequence[str],
    order: int,
    states: Mapping[Place, int] | None = None,
) -> tuple[Array, Array, Array]:
    """Return a step's weights on the steps before (side by side), its offset, and the covariance of what is new.

    Regressions that differ between states are those of the states given.
    """
    d = len(names)
    place = {n: i for i, n in enumerate(names)}
    within, past, bias, new = np.zeros((d, d)), np.zeros((d, d * order)), np.zeros(d), np.zeros(d)
    for n in names:
        table = tables[n]
        if not isinstance(table, GaussianConditional) or (table.discrete and states is None):
            raise UnsupportedModel(
                f"{n!r} is not a linear Gaussian of numbers, so the process is no linear state-space model"
            )
        i = place[n]
        at = tuple((states or {})[split_name(q.name)] for q in table.discrete)
        bias[i], new[i] = float(table.bias[at]), float(table.variance[at])
        for parent, weight in zip(table.continuous, table.weights[at].tolist(), strict=True):
            base, lag = split_name(parent.name)
            if lag:
                past[i, (lag - 1) * d + place[base]] = weight
            else:
                within[i, place[base]] = weight
    root = np.linalg.inv(np.eye(d) - within)
    return root @ past, root @ bias, (root * new) @ root.T


def stacked(part: tuple[Array, Array, Array], d: int, order: int) -> tuple[Array, Array, Array]:
    """Return the move of the stacked state: new variables on top, the others one place down."""
    past, bias, new = part
    n = d * order
    transition, offset, noise = np.zeros((n, n)), np.zeros(n), np.zeros((n, n))
    transition[:d] = past
    transition[d:, : n - d] = np.eye(n - d)
    offset[:d], noise[:d, :d] = bias, new
    return transition, offset, noise
