"""Dynamic networks of linear Gaussians as state-space models: the Kalman filter answers.

A step's variables are `v = B0 v + B1 v[-1] + ... + b + e`, so `v = (I - B0)^-1 (B1 v[-1] + ... + b + e)`. The state stacks a
step's variables and those that are looked back at; every variable is observed without noise, or hidden.
Reference: Roweis and Ghahramani (1999).
"""

from collections.abc import Mapping, Sequence

import numpy as np

from markovia.errors import UnsupportedModel
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info
from markovia.inference.sequences.slices import Place
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs
from markovia.models.temporal.dynamic.dynamic_evidence import Evidence
from markovia.models.temporal.dynamic.dynamic_language import own_variables, split_name
from markovia.models.temporal.linear_state_space import LinearStateSpace
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now


def state_space_of(networks: Sequence[BayesianNetwork], steps: int | None = None) -> LinearStateSpace:
    """Return the state-space model of a process of linear Gaussians; of order above 1 for some number of steps."""
    names = own_variables(networks[-1])
    order, d = len(networks) - 1, len(names)
    if order > 1 and steps is None:
        raise UnsupportedModel(
            "the first steps of this process have other matrices than later ones; filter(), smooth() and log_prob() know "
            "them"
        )
    parts = [matrices(network, names, order) for network in networks]
    first = parts[0]
    mean, cov = np.zeros(d * order), np.zeros((d * order, d * order))
    mean[:d], cov[:d, :d] = first[1], first[2]
    moves = [stacked(part, d, order) for part in parts[1:]]
    if order > 1:
        assert steps is not None
        chosen = [moves[min(t, order - 1)] for t in range(max(steps, 2))]
    else:
        chosen = moves[-1:]
    transition, offset, noise = (np.stack(m) if order > 1 else m[0] for m in zip(*chosen, strict=True))
    observation = np.hstack([np.eye(d), np.zeros((d, d * (order - 1)))])
    return LinearStateSpace(
        transition=transition,
        transition_cov=noise,
        observation=observation,
        observation_cov=np.zeros((d, d)),
        initial_mean=mean,
        initial_cov=cov,
        transition_offset=offset,
    )


def matrices(
    network: BayesianNetwork,
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
        table = network[n]
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


def _numbers(names: Sequence[str], evidence: Evidence) -> tuple[list[Array], int]:
    n = int(evidence.offsets[-1])
    hidden = np.full(n, np.nan)
    columns = np.column_stack([evidence.numbers.get(m, hidden) for m in names])
    return evidence.rows.split(columns), int(np.diff(evidence.offsets).max())


def gaussian_log_prob(networks: Sequence[BayesianNetwork], evidence: Evidence) -> Array:
    """Return the log density of what was seen of each sequence."""
    rows, longest = _numbers(own_variables(networks[-1]), evidence)
    return state_space_of(networks, longest).log_prob(rows)


def gaussian_beliefs(
    networks: Sequence[BayesianNetwork],
    variables: Mapping[str, Variable],
    targets: Sequence[str],
    evidence: Evidence,
    *,
    smooth: bool,
    begin: float,
) -> Beliefs:
    """Return means and variances at every step."""
    names = own_variables(networks[-1])
    rows, longest = _numbers(names, evidence)
    model = state_space_of(networks, longest)
    filtered = model.filter(rows)
    found = model.smooth(rows) if smooth else filtered
    mean, cov = np.concatenate(found.mean), np.concatenate(found.cov)
    place = {n: i for i, n in enumerate(names)}
    return Beliefs(
        variables,
        {},
        evidence.offsets,
        np.asarray(filtered.log_prob),
        Info("kalman", exact=True, seconds=now() - begin),
        {n: mean[:, place[n]] for n in targets},
        {n: np.maximum(cov[:, place[n], place[n]], 0.0) for n in targets},
    )
