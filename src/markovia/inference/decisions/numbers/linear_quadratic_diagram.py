"""Diagrams of numbers: linear Gaussian chance nodes, quadratic utilities, decisions that are numbers; solved exactly.

Every number is an affine function `shift + noise_map e + control_map u` of independent noises e and of what is decided, and
the total is quadratic in both:

    total = u'A u + 2 u'B e + 2 a'u + e'C e + 2 c'e + constant

Method, perfect recall: what a decision sees, less the part that earlier choices (which it remembers) made of it, is linear
in the noises, whatever the policy. So, from the last decision back, the best u_i is `-(A_i u + B_i E[e | sights] + a_i) /
A_ii` and the total of the others is the Schur complement, with the variance of the estimate in the constant (certainty
equivalence; Simon 1956). Concave exactly if all these A_ii are negative.
Method, limited memory: where a decision knows all that those knew who acted on what it sees (a partially nested team), the
same holds for the sights of each one, and the best rules are the solution of one linear system, the conditions that each
rule is best given the others (Radner 1962; Ho and Chu 1972). Without that, choices signal, and the best rules need not be
linear (Witsenhausen 1968): refused.
Cost: decisions times the cube of what is seen; limited memory: the cube of all coefficients together.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from markovia.errors import ImpossibleEvidence, InvalidArgument, UnsupportedModel
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.separation.requisite import Parents, decision_order, recall_parents, requisite_parents
from markovia.runtime.array_types import Array

SINGULAR = 1e-11
"""Eigenvalues of a correlation matrix, or curvatures, below this part of their size are zero."""
ROUNDING = 1e-14
"""A value below this part of what it is the sum of is zero."""
SAME_RULE = 1e-7
"""How far, relative to its size, a rule on what matters may be from the one on all that is known."""


@dataclass(frozen=True)
class LinearQuadraticDiagram:
    """A decision problem on numbers.

    Attributes
    ----------
    parents
        The parents of every node, utilities as leaves.
    decisions, utilities
        Their names.
    shift, noise_map, control_map
        Of each number, by name: the vectors of its affine function.
    covariance
        Of the noises.
    certain
        Which noises have variance zero: they are nothing, but what is seen of them tells what a rule should do were they
        not.
    A, B, a, C, c, constant
        The total.
    """

    parents: Parents
    decisions: list[str]
    utilities: list[str]
    shift: dict[str, float]
    noise_map: dict[str, Array]
    control_map: dict[str, Array]
    covariance: Array
    certain: Array
    A: Array
    B: Array
    a: Array
    C: Array
    c: Array
    constant: float

    def rows(self, names: Sequence[str]) -> tuple[Array, Array, Array]:
        """Return shifts, noise maps and control maps of some numbers."""
        noises, controls = len(self.covariance), len(self.decisions)
        M = np.array([self.noise_map[n] for n in names]).reshape(len(names), noises)
        N = np.array([self.control_map[n] for n in names]).reshape(len(names), controls)
        return np.array([self.shift[n] for n in names]), M, N

    def informed(self, known: Mapping[str, float]) -> "LinearQuadraticDiagram":
        """Return the problem after numbers are known that depend on no open decision."""
        if not known:
            return self
        s, M, _ = self.rows([*known])
        gap = np.array([*known.values()]) - s
        gain = regression_of_noise(M, self.covariance, np.zeros_like(self.covariance))
        mean = gain @ gap
        size = np.abs(M) @ np.abs(mean) + np.abs(gap) + np.abs(s)
        if (np.abs(M @ mean - gap) > SAME_RULE * np.maximum(size, 1e-300)).any():
            raise ImpossibleEvidence(dict(known))
        covariance = self.covariance - gain @ M @ self.covariance
        shift = {n: float(self.shift[n] + self.noise_map[n] @ mean) for n in self.shift}
        return replace(
            self, shift=shift, covariance=0.5 * (covariance + covariance.T), a=self.a + self.B @ mean,
            c=self.c + self.C @ mean, constant=float(self.constant + mean @ self.C @ mean + 2 * self.c @ mean),
        )  # fmt: skip


class LinearRule(NamedTuple):
    """What a decision does: coefficients of what it looks at, and a constant."""

    seen: tuple[str, ...]
    coefficients: Array
    constant: float


class LinearSolution(NamedTuple):
    """A value, what perfect recall would be worth, the rules, and how they were found."""

    value: float
    bound: float
    rules: dict[str, LinearRule]
    method: str


def solve_linear_quadratic(
    diagram: LinearQuadraticDiagram, memory: str, order: Sequence[str] | None = None
) -> LinearSolution:
    """Return the best rules.

    Raises
    ------
    InvalidArgument
        If the total is not concave in what is decided, and so has no best value.
    UnsupportedModel
        If decisions forget what others acted on, so that linear rules need not be best.
    """
    parents, decisions = diagram.parents, diagram.decisions
    if memory == "perfect":
        time = decision_order(parents, decisions, order)
    else:
        inside = set(decisions)
        time = [n for n in DAG.from_parents(parents).topological_order() if n in inside]
    recall = recall_parents(parents, time)
    recalled = requisite_parents(recall, decisions, diagram.utilities)
    value, rules = _with_recall(diagram, time, recall, recalled)
    if memory == "perfect" or all({*recalled[d]} <= {*parents[d]} for d in decisions):
        return LinearSolution(value, value, rules, "linear-quadratic")
    drawn = requisite_parents(parents, decisions, diagram.utilities)
    team_value, team_rules = _as_team(diagram, time, drawn)
    return LinearSolution(team_value, max(value, team_value), team_rules, "linear-quadratic-team")


def mean_total(diagram: LinearQuadraticDiagram, risk: float = 0.0) -> float:
    """Return the expected total where nothing is decided; with risk its certainty equivalent, `log E exp(risk t) / risk`."""
    if not risk:
        return float(diagram.constant + np.sum(diagram.C * diagram.covariance))
    values, vectors = np.linalg.eigh(diagram.covariance)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    left = np.eye(len(root)) - 2 * risk * root.T @ diagram.C @ root
    eigen = np.linalg.eigvalsh(left)
    if len(eigen) and eigen[0] <= 0:
        raise InvalidArgument(
            f"with risk={risk:g} the expectation of exp(risk * total) is infinite; take a smaller risk"
        )
    slope = 2 * root.T @ diagram.c
    tail = 0.5 * risk * float(slope @ np.linalg.solve(left, slope)) if len(eigen) else 0.0
    return float(diagram.constant + tail - 0.5 * np.log(eigen).sum() / risk)


def regression_of_noise(D: Array, covariance: Array, certain: Array) -> Array:
    """Return P with `E[e | D e = w] = P w`; what the noises leave open is put down to those that are certain."""
    first, null = _regression(D, covariance)
    if not null.shape[1] or not certain.any():
        return first
    rest, _ = _regression(null.T @ D, certain)
    second = rest @ null.T
    return np.asarray(second + first @ (np.eye(len(D)) - D @ second))


def _regression(D: Array, covariance: Array) -> tuple[Array, Array]:
    """Return the regression of the noises on D e, and a basis of the combinations of its rows that do not vary."""
    spread = D @ covariance @ D.T
    sd = np.sqrt(np.maximum(np.diag(spread), 0.0))
    reach = np.sqrt(
        np.abs(D) ** 2 @ np.diag(covariance)
    )  # a difference of large numbers that cancel does not vary
    sd = np.where(sd > SINGULAR * reach, sd, 1.0)
    values, vectors = np.linalg.eigh(spread / np.outer(sd, sd))
    varies = values > SINGULAR * max(1, len(D)) * max(values.max(initial=0.0), 1e-300)
    scaled = vectors / sd[:, None]
    inverse = (scaled[:, varies] / values[varies]) @ scaled[:, varies].T
    return covariance @ D.T @ inverse, scaled[:, ~varies]


def _with_recall(
    diagram: LinearQuadraticDiagram, time: Sequence[str], recall: Parents, recalled: Parents
) -> tuple[float, dict[str, LinearRule]]:
    """Solve from the last decision to the first; each remembers all before it."""
    place = {d: k for k, d in enumerate(diagram.decisions)}
    A, B, a = diagram.A.copy(), diagram.B.copy(), diagram.a.copy()
    size = np.abs(A)
    value = mean_total(diagram)
    parts = abs(value)
    rules = {}
    for k in range(len(time) - 1, -1, -1):
        name, i, earlier = time[k], place[time[k]], [place[d] for d in time[:k]]
        sights = [n for n in recall[name] if n not in place]
        _, D, _ = diagram.rows(sights)
        P = regression_of_noise(D, diagram.covariance, diagram.certain)
        estimate = B[i] @ P @ D  # of B e, by what is seen
        r, curvature = A[i, earlier], float(A[i, i])
        if curvature > -SINGULAR * size[i, i] or curvature == 0.0:
            _refuse_unless_idle(
                name,
                curvature,
                size[i, i],
                np.concatenate([r, estimate, a[[i]]]),
                np.abs(diagram.A[i]).max(initial=0.0),
            )
            rules[name] = LinearRule((), np.zeros(0), 0.0)
            continue
        noise_gain, control_gain, constant = -estimate / curvature, -r / curvature, -float(a[i]) / curvature
        gained = -(float(estimate @ diagram.covariance @ estimate) + float(a[i]) ** 2) / curvature
        value, parts = value + gained, parts + gained
        A[np.ix_(earlier, earlier)] -= np.outer(r, r) / curvature
        size[np.ix_(earlier, earlier)] += np.abs(np.outer(r, r) / curvature)
        B[earlier] -= np.outer(r, estimate) / curvature
        a[earlier] -= r * a[i] / curvature
        free = np.zeros(len(time))
        free[earlier] = control_gain
        rules[name] = _rule_on(diagram, name, recalled[name], recall[name], noise_gain, free, constant)
    if abs(value) <= ROUNDING * parts:
        value = 0.0
    return value, {d: rules[d] for d in diagram.decisions}


def _rule_on(
    diagram: LinearQuadraticDiagram,
    name: str,
    seen: Sequence[str],
    known: Sequence[str],
    noise_gain: Array,
    control_gain: Array,
    constant: float,
) -> LinearRule:
    """Return a rule that is known as a function of noises and earlier choices on what matters, else on all that is known."""
    values, vectors = np.linalg.eigh(diagram.covariance)
    root = np.hstack([vectors * np.sqrt(np.maximum(values, 0.0)), diagram.certain])
    wanted = np.concatenate([noise_gain @ root, control_gain])
    for names in (seen, known):
        s, M, N = diagram.rows(names)
        both = np.hstack([M @ root, N])
        scale = np.linalg.norm(both, axis=1)
        scale[scale == 0] = 1.0
        scaled, *_ = np.linalg.lstsq((both / scale[:, None]).T, wanted, rcond=SINGULAR)
        gain = scaled / scale
        if np.abs(gain @ both - wanted).max(initial=0.0) <= SAME_RULE * np.abs(wanted).max(initial=0.0):
            return LinearRule(tuple(names), gain, float(constant - gain @ s))
    raise UnsupportedModel(
        f"the best rule of {name!r} is too sensitive to rounding to be written down; scale the numbers to like sizes"
    )


def _as_team(
    diagram: LinearQuadraticDiagram, time: Sequence[str], drawn: Parents
) -> tuple[float, dict[str, LinearRule]]:
    """Solve the conditions that each rule is best given the others."""
    _refuse_signals(diagram, drawn)
    A, names = diagram.A, diagram.decisions
    scale = np.sqrt(np.maximum(np.abs(np.diag(A)), 1e-300))
    if (np.linalg.eigvalsh(A / np.outer(scale, scale)) > -SINGULAR).any():
        raise InvalidArgument(_not_concave(", ".join(map(repr, names))))
    maps = [diagram.rows([n for n in drawn[d] if n not in names])[1] for d in names]
    spans = [
        _orthonormal(D, diagram.covariance) for D in maps
    ]  # combinations of what is seen, uncorrelated, variance one
    ends = np.cumsum([0, *(len(D) for D in spans)])
    every = np.vstack([*spans, np.zeros((0, len(diagram.covariance)))])
    owner = np.repeat(np.arange(len(names)), [len(D) for D in spans])
    system = A[np.ix_(owner, owner)] * (every @ diagram.covariance @ every.T)
    target = -np.sum((every @ diagram.covariance) * diagram.B[owner], axis=1)
    gains = np.linalg.solve(system, target)
    constants = np.linalg.solve(A, -diagram.a)
    T = np.array([gains[ends[k] : ends[k + 1]] @ spans[k] for k in range(len(names))]).reshape(len(names), -1)
    S = diagram.covariance
    value = mean_total(diagram) + float(
        np.sum((A @ T + 2 * diagram.B) * (T @ S)) + constants @ A @ constants + 2 * diagram.a @ constants
    )
    followed = replace(
        diagram,
        shift={n: float(v + diagram.control_map[n] @ constants) for n, v in diagram.shift.items()},
        noise_map={n: v + diagram.control_map[n] @ T for n, v in diagram.noise_map.items()},
        control_map={n: np.zeros_like(v) for n, v in diagram.control_map.items()},
        certain=np.zeros_like(diagram.certain),
    )
    nothing = np.zeros(len(names))
    rules = {
        d: _rule_on(followed, d, drawn[d], diagram.parents[d], T[k], nothing, float(constants[k]))
        for k, d in enumerate(names)
    }
    return value, rules


def _orthonormal(D: Array, covariance: Array) -> Array:
    """Return combinations of the rows of D that are uncorrelated and have variance one; as many as vary."""
    spread = D @ covariance @ D.T
    sd = np.sqrt(np.maximum(np.diag(spread), 0.0))
    sd[sd == 0] = 1.0
    values, vectors = np.linalg.eigh(spread / np.outer(sd, sd))
    varies = values > SINGULAR * max(1, len(D)) * max(values.max(initial=0.0), 1e-300)
    return np.asarray((vectors[:, varies] / np.sqrt(values[varies])).T @ (D / sd[:, None]))


def _refuse_signals(diagram: LinearQuadraticDiagram, drawn: Parents) -> None:
    """Refuse decisions that see what others did without knowing what those knew."""
    dag, inside = DAG.from_parents(drawn), set(diagram.decisions)
    order = [n for n in dag.topological_order() if n in inside]
    for d in order:
        known = {*drawn[d]} - inside
        for other in order[: order.index(d)]:  # what follows from what is known is known
            if {*drawn[other]} <= known:
                known.add(other)
        acted = dag.ancestors([*drawn[d]], include_self=True) & inside if drawn[d] else set()
        if strange := sorted(acted - known):
            raise UnsupportedModel(
                f"{d!r} sees what {strange[0]!r} did without all that it saw, so choices signal and the best rules need not "
                "be linear; let it see that too, or say memory='perfect'"
            )


def _refuse_unless_idle(name: str, curvature: float, size: float, forces: Array, scale: float) -> None:
    """Refuse a decision in which the total is not concave, unless it does not depend on it at all."""
    idle = abs(curvature) <= SINGULAR * size or curvature == 0.0
    if not idle or np.abs(forces).max(initial=0.0) > SINGULAR * max(scale, size):
        raise InvalidArgument(_not_concave(repr(name)))


def _not_concave(names: str) -> str:
    return (
        f"the total is not strictly concave in {names}, so there is no best choice, or no single one; give choices a cost "
        "that grows with their square"
    )
