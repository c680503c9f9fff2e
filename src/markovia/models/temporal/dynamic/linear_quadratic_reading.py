"""Dynamic networks of linear Gaussians whose decisions are numbers, read as linear systems with quadratic costs."""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.decisions.quadratic import Quadratic
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.inference.decisions.numbers.linear_quadratic import LinearQuadratic, least_share
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.decided_state import DecidedState, decided_state
from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork


def linear_quadratic_of(process: "DynamicBayesianNetwork") -> LinearQuadratic:
    """Return the linear system with quadratic costs that a dynamic network with decisions describes.

    Where the decisions see the whole state it has no C; otherwise what they see is observed with the noise of its own.

    Raises
    ------
    UnsupportedModel
        For parts that are no linear Gaussians of numbers, or utilities that are no `mk.Quadratic`.
    """
    parts = decided_state(process.ready())
    controls = [d.variable.name for d in parts.decisions]
    for name in (*parts.state, *parts.between, *controls):
        if not isinstance(parts.later.variable(name), Quantity):
            raise UnsupportedModel(f"{name!r} has states; linear control is of numbers only")
    names = list(parts.state)
    before, done = [f"{n}@-1" for n in names], [f"{u}@-1" for u in controls]
    moves, offset, noise = _regression(parts.later, names, [*before, *done])
    _, mean, cov = _regression(parts.first, names, [])
    Q, q, constant = _costs(parts, [*names, *controls])
    n = len(names)
    seen: dict[str, Any] = {}
    if not parts.sees_state:
        C, shown, doubt = _observed(parts, parts.later)
        if not all(
            np.allclose(a, b, atol=1e-12)
            for a, b in zip((C, shown, doubt), _observed(parts, parts.first), strict=True)
        ):
            raise UnsupportedModel(
                "what is seen in the first step is seen in another way later; say it once, without initial="
            )
        seen = {"C": C, "observation_noise": doubt, "observation_offset": shown, "heard": parts.heard}
    return LinearQuadratic(
        moves[:, :n], moves[:, n:], Q[:n, :n], Q[n:, n:], Q[:n, n:], noise=noise, offset=offset, q=q[:n], r=q[n:],
        constant=constant, initial_mean=mean, initial_cov=cov, states=parts.state, controls=tuple(controls), **seen,
    )  # fmt: skip


def _regression(
    network: BayesianNetwork, names: Sequence[str], given: Sequence[str]
) -> tuple[Array, Array, Array]:
    """Return the weights of some numbers on given ones, their offset and their covariance given these."""
    place, known = {n: i for i, n in enumerate(names)}, {n: i for i, n in enumerate(given)}
    d = len(names)
    within, past, bias, new = np.zeros((d, d)), np.zeros((d, len(given))), np.zeros(d), np.zeros(d)
    for i, name in enumerate(names):
        node = network[name]
        if not isinstance(node, GaussianConditional) or node.discrete:
            raise UnsupportedModel(
                f"{name!r} is not a linear Gaussian of numbers, so the process is no linear system"
            )
        bias[i], new[i] = float(node.bias), float(node.variance)
        for parent, weight in zip(node.continuous, np.atleast_1d(node.weights).tolist(), strict=True):
            if parent.name in place:
                within[i, place[parent.name]] = weight
            else:
                past[i, known[parent.name]] = weight
    root = np.linalg.inv(np.eye(d) - within)
    return root @ past, root @ bias, (root * new) @ root.T


def _observed(parts: DecidedState, network: BayesianNetwork) -> tuple[Array, Array, Array]:
    """Return what is seen of the state, its offset and the covariance of its noise."""
    names = list(parts.between)
    if back := next((p for n in names for p in network[n].parent_names if p.endswith("@-1")), None):
        raise UnsupportedModel(f"what is seen looks back at {back!r}; let a number of the state do so")
    weights, bias, noise = _regression(network, names, list(parts.state))
    C, shown, doubt = (
        np.zeros((len(parts.heard), len(parts.state))),
        np.zeros(len(parts.heard)),
        noise[:0, :0],
    )
    rows = [names.index(n) if n in names else -1 for n in parts.heard]
    doubt = np.zeros((len(rows), len(rows)))
    for i, (name, row) in enumerate(zip(parts.heard, rows, strict=True)):
        if row < 0:
            C[i, parts.state.index(name)] = 1.0
            continue
        C[i], shown[i] = weights[row], bias[row]
        for j, other in enumerate(rows):
            doubt[i, j] = noise[row, other] if other >= 0 else 0.0
    return C, shown, doubt


def _costs(parts: DecidedState, names: Sequence[str]) -> tuple[Array, Array, float]:
    """Return the costs of a step, minus its utilities: squares, half the linear part, and the constant."""
    Q, q, constant = np.zeros((len(names), len(names))), np.zeros(len(names)), 0.0
    for node in parts.utilities:
        if not isinstance(node.form, Quadratic):
            raise UnsupportedModel(
                f"{node.variable.name!r} is no mk.Quadratic; mk.control.plan_path and PredictiveControl take functions"
            )
        own: Mapping[str, int] = {n: i for i, n in enumerate(node.parent_names)}
        square, slope, more = node.form.matrix(list(own))
        at = np.array([names.index(n) for n in own], dtype=np.int64)
        Q[np.ix_(at, at)] -= square
        q[at] -= slope / 2.0
        constant -= more
    if least_share(Q) < -1e-12:
        raise InvalidArgument(
            "the utilities grow with the square of some number; costs are negative coefficients"
        )
    return Q, q, constant
