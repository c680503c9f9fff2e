"""Dynamic networks of linear Gaussians: the Kalman filter of their state-space model answers."""

from collections.abc import Mapping, Sequence

import numpy as np

from markovia.factors.tables.variable import Variable
from markovia.inference.result import Info
from markovia.inference.sequences.linear_steps import linear_system
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.dynamic_answers import Beliefs
from markovia.models.temporal.dynamic.dynamic_evidence import Evidence, plain_evidence, step_tables
from markovia.models.temporal.dynamic.dynamic_language import own_variables
from markovia.models.temporal.linear_state_space import LinearStateSpace
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now


def state_space_of(networks: Sequence[BayesianNetwork], steps: int | None = None) -> LinearStateSpace:
    """Return the state-space model of a process of linear Gaussians; of order above 1 for some number of steps."""
    names = own_variables(networks[-1])
    tables = [{n: own[n] for n in names} for own in step_tables(networks)]
    return LinearStateSpace(**linear_system(tables, steps))


def _numbers(names: Sequence[str], evidence: Evidence) -> tuple[list[Array], int]:
    columns = plain_evidence(evidence).columns(names)
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
