"""Confounding-equivalence: when two things to adjust for give the same answer, and why the propensity score is one.

Two sets Z and T are equivalent for x and y if sum_z P(y | x, z) P(z) = sum_t P(y | x, t) P(t), right or wrong as the common
answer may be. Among the non-descendants of x a graph promises that exactly where both sets block every back-door path, or
where both have the same Markov boundary of x. The propensity score h(c) = P(x | c) is equivalent to the covariates c
in every distribution, since x is independent of c given h(c). References: Pearl and Paz, *Confounding equivalence in
causal inference*, Journal of Causal Inference 2 (2014); Rosenbaum and Rubin, *The central role of the propensity score*,
Biometrika 70 (1983). Cost: one search for each member of the sets; one joint table for the identity.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.observed import observed_joint
from markovia.causal.problem import Problem, one_name
from markovia.errors import InvalidArgument, NoOverlap, check_known
from markovia.factors.tables.factor import Factor
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import mask_of, members
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime.array_types import Array
from markovia.runtime.shown import InNotebooks, aligned


def confounding_equivalent(
    graph: object, treatment: str, outcome: str, first: Names, second: Names, *, latent: Names = ()
) -> bool:
    """Say whether adjusting for one set gives what adjusting for the other does, whatever the numbers on the graph.

    Of two sets that can be measured the cheaper one will do, and where the data disagree about equivalent sets, the graph
    is wrong. That the two agree does not make them right: `is_adjustment_set` says that.

    Parameters
    ----------
    graph
        What `adjustment_sets` takes: a DAG, an acyclic directed mixed graph, a text or a model.
    treatment, outcome
        A name each.
    first, second
        One name or several, or none; no descendants of the treatment.
    latent
        Variables that are not observed.

    Examples
    --------
    >>> m = "a -> x; a -> m <- b; b -> y; x -> y; c -> a"
    >>> confounding_equivalent(m, "x", "y", "a", ["b", "m"]), confounding_equivalent(m, "x", "y", "m", [])
    (True, False)
    """
    sets = [as_names(first), as_names(second)]
    problem = Problem.of(graph, one_name(treatment, "treatment"), one_name(outcome, "outcome"), latent=latent)
    admg = problem.admg
    x, y = admg.mask(problem.treatment), admg.mask(problem.outcome)
    check_known(sets[0] + sets[1], admg.names, "the graph")
    one, two = (admg.mask(names) for names in sets)
    for i in members((one | two) & (admg.descendants(x) | y)):
        raise InvalidArgument(
            f"{admg.names[i]!r} is the treatment, the outcome or below the treatment; equivalence is decided for the "
            "variables that the treatment does not change"
        )
    blocked = [admg.m_separated(x, y, given, out_of=x) for given in (one, two)]
    return all(blocked) or _boundary(admg, x, one) == _boundary(admg, x, two)


def _boundary(admg: Admg, x: int, inside: int) -> int:
    """Return the Markov boundary of x in a set: those that tell of x even when all others of the set are known."""
    return mask_of(i for i in members(inside) if not admg.m_separated(x, 1 << i, inside & ~(1 << i)))


@dataclass(frozen=True)
class PropensityIdentity(InNotebooks):
    """The outcome's distribution for each treatment, adjusted in three ways that have to agree.

    Attributes
    ----------
    by_covariates, by_score, by_weights
        Tables over treatment and outcome: sum_c P(y | x, c) P(c), sum_h P(y | x, h) P(h), and
        sum_c P(x, y, c) / P(x | c).
    scores, shares
        The different values of h(c) = P(x | c), one row each with an entry a state of the treatment, and how likely each is.
    cells
        How many states of the covariates occur.
    imbalance
        The largest difference between P(c | x, h) and P(c | h): zero, as x is independent of c given h.
    """

    by_covariates: Factor
    by_score: Factor
    by_weights: Factor
    scores: Array
    shares: Array
    cells: int
    imbalance: float

    @property
    def gap(self) -> float:
        """The largest difference between the three tables."""
        others = (self.by_score, self.by_weights)
        return max(float(np.abs(table.values - self.by_covariates.values).max()) for table in others)

    def __str__(self) -> str:
        tables = (self.by_covariates, self.by_score, self.by_weights)
        x, y = self.by_covariates.variables
        rows = [
            [f"{x.name}={a}", f"{y.name}={b}", *(f"{table.values[i, j]:.6f}" for table in tables)]
            for i, a in enumerate(x.states)
            for j, b in enumerate(y.states)
        ]
        head = ["treatment", "outcome", f"{self.cells} cells", f"{len(self.shares)} scores", "weights"]
        verdict = "equal but for rounding" if self.gap < 1e-9 else f"largest difference {self.gap:.1e}"
        return f"{aligned(head, rows)}\n{verdict}"


def propensity_identity(source: Any, treatment: str, outcome: str, covariates: Names) -> PropensityIdentity:
    """Adjust for covariates, for their propensity score, and by inverse weights, exactly, on a distribution over states.

    The three agree in every distribution in which each treatment can occur with all covariates (`NoOverlap` is raised in
    others), whether or not the covariates are what has to be adjusted for.

    Parameters
    ----------
    source
        A model, a joint table (`Factor`), or data, whose shares are taken as the distribution.
    treatment, outcome, covariates
        Names; the treatment may have more than two states, and its score is then a vector.

    Examples
    --------
    >>> import markovia as mk
    >>> found = propensity_identity(mk.examples.asia(), "smoke", "dysp", ["asia", "tub"])
    >>> found.cells, len(found.scores), found.gap < 1e-12, found.imbalance < 1e-12
    (4, 1, True, True)
    """
    names = as_names(covariates)
    if len({treatment, outcome, *names}) < 2 + len(names):
        raise InvalidArgument("treatment, outcome and covariates are different variables; name each once")
    joint = observed_joint(source, [treatment, outcome, *names])
    p = joint.values.reshape(*joint.shape[:2], -1)
    p = p[:, :, p.sum(axis=(0, 1)) > 0]  # states of the covariates that occur
    cell = p.sum(axis=(0, 1))
    score = p.sum(axis=1) / cell  # h(c), one column a cell
    if (score <= 0).any():
        never = joint.variables[0].states[int(np.argwhere(score <= 0)[0][0])]
        raise NoOverlap(
            f"{treatment} = {never} never occurs with some states of {', '.join(names)}, so nothing is known of it there; "
            "adjust for less"
        )
    # equal scores differ by rounding at most
    distinct, group = np.unique(score.T.round(12), axis=0, return_inverse=True)
    into = np.eye(len(distinct))[group.ravel()]
    by_group = p @ into
    shares = cell @ into

    def summed(table: Array) -> Factor:
        return Factor.of(joint.variables[:2], table.sum(axis=2))

    inside = p.sum(axis=1) / (by_group.sum(axis=1) @ into.T)  # P(c | x, h)
    return PropensityIdentity(
        by_covariates=summed(p / p.sum(axis=1, keepdims=True) * cell),
        by_score=summed(by_group / by_group.sum(axis=1, keepdims=True) * shares),
        by_weights=summed(p / score[:, None, :]),
        scores=distinct,
        shares=shares,
        cells=p.shape[2],
        imbalance=float(np.abs(inside - cell / (into @ shares)).max()),
    )
