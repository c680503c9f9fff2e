"""Logistic and softmax nodes from counts: multinomial logistic regression over the states of the parents.

The log likelihood `sum w log softmax(x B)` is concave; damped Newton steps
(`markovia.learning.regression.iteratively_reweighted`) reach its top in a few iterations. Collinear weights get the
solution of least norm a step. Cost an iteration: rows times the square of the number of weights; above `NEWTON` weights
L-BFGS is used instead.

Where the parents separate the child's states there is no finite maximum (Albert & Anderson, 1984). This is found exactly,
by a linear program (`markovia.learning.regression.separated_data`), and said in a `ConvergenceWarning`; a prior makes
the maximum finite. Pseudo-counts enter as rows in which one parent alone contributes (Greenland & Christensen, 2001), a
`Gaussian` prior as a ridge on the weights.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from markovia.errors import ConvergenceWarning, warn_user
from markovia.factors.local_models.logistic import LogisticConditional, SoftmaxConditional
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import Variable
from markovia.learning.regression.iteratively_reweighted import newton
from markovia.learning.regression.objectives import SoftmaxObjective
from markovia.learning.regression.separated_data import separated_classes
from markovia.learning.tables.row_counts import RowCounts
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array, Codes

NEWTON = 400
STEPS = 200
SUSPICIOUS = 8.0
"""A gap between log probabilities from which separation is looked for."""
CERTAIN = 25.0
"""A gap that is taken for separation where there are too many rows to decide it."""


class SoftmaxNodeFit:
    """Fits one logistic or softmax node.

    Parameters
    ----------
    before
        The node's distribution, for its form: which parents count as numbers, and which child state is the reference.
    pseudo
        Pseudo-counts given each parent alone and given none, or nothing.
    scale
        The standard deviation of the weights under a normal prior, or None.
    """

    def __init__(
        self, before: SoftmaxConditional, pseudo: Sequence[Array], *, scale: float | None = None
    ) -> None:
        self.before = before
        self.bases = _bases(before)
        self.reference = _reference(before)
        self.ridge = 0.0 if scale is None else 1.0 / scale**2
        starts = np.cumsum([1, *(b.shape[1] for b in self.bases)])
        self._slices = [slice(a, b) for a, b in pairwise(starts.tolist())]
        self._width = int(starts[-1])
        self._pseudo = self._pseudo_rows(pseudo)

    def fit(self, rows: RowCounts) -> Conditional:
        """Return the distribution of the same form that maximises log likelihood plus `log_prior`."""
        some = rows.weights > 0
        codes, weights = rows.codes[:, some], rows.weights[some]
        x = self._design(codes)
        y = np.asarray(codes[-1], dtype=np.int64)
        seen = len(y)
        if self._pseudo is not None:
            x = np.concatenate([x, self._pseudo[0]])
            y = np.concatenate([y, self._pseudo[1]])
            weights = np.concatenate([weights, self._pseudo[2]])
        k = len(self.before.variable)
        order = [self.reference, *(c for c in range(k) if c != self.reference)]
        beta = np.zeros((k, self._width))
        if len(y) and k > 1:
            places = np.argsort(order)[y]  # the reference comes first
            counts = np.zeros((len(y), k))
            counts[np.arange(len(y)), places] = weights
            beta, converged = self._climb(x, counts)
            self._report(x[:seen], places[:seen], counts[:seen], beta, converged)
        return self._conditional(beta.T, order)

    def log_prior(self, conditional: Conditional) -> float:
        """Return the log density of the weights under the prior, up to a constant."""
        assert isinstance(conditional, SoftmaxConditional)
        total = 0.0
        if self._pseudo is not None:
            beta = self._weights_of(conditional)
            x, y, w = self._pseudo
            total += float(w @ _log_softmax(x @ beta)[np.arange(len(y)), y])
        if self.ridge:
            beta = self._weights_of(conditional)[1:]
            total -= 0.5 * self.ridge * float((beta**2).sum())
        return total

    # -- inside ---------------------------------------------------------------------------------------------------

    def _design(self, codes: Codes) -> Array:
        columns = [np.ones((codes.shape[1], 1))]
        columns += [basis[c] for basis, c in zip(self.bases, codes[:-1], strict=True)]
        return np.concatenate(columns, axis=1)

    def _pseudo_rows(self, pseudo: Sequence[Array]) -> tuple[Array, Array, Array] | None:
        """Return design rows in which one parent alone contributes, the child's code and the weight of each."""
        if not pseudo:
            return None
        k = len(self.before.variable)
        x, y, w = [], [], []
        for basis, part, a in zip(self.bases, self._slices, pseudo[:-1], strict=True):
            rows = np.zeros((len(basis), self._width))
            rows[:, 0], rows[:, part] = 1.0, basis
            x.append(np.repeat(rows, k, axis=0))
            y.append(np.tile(np.arange(k), len(basis)))
            w.append(a.ravel())
        x.append(np.eye(1, self._width).repeat(k, axis=0))
        y.append(np.arange(k))
        w.append(pseudo[-1].ravel())
        return np.concatenate(x), np.concatenate(y), np.concatenate(w)

    def _climb(self, x: Array, counts: Array) -> tuple[Array, bool]:
        """Return the weights, one row a child state, and whether they are at the top."""
        ridge = np.full(self._width, self.ridge)
        ridge[0] = 0.0
        objective = _objective(x, counts, ridge)
        start = np.zeros(objective.free * self._width)
        if start.size <= NEWTON:
            found = newton(objective, start, max_iter=STEPS)
            return objective.full(found.coef), found.converged
        done = minimise(
            lambda b: (objective.value(b), objective.gradient(b)),
            start,
            height=1.0 + float(counts.sum()),
            max_iter=5000,
            tol=1e-10,
            flat=1e-15,
        )
        return objective.full(done.point), done.converged

    def _report(self, x: Array, y: Codes, counts: Array, beta: Array, converged: bool) -> None:
        name = self.before.variable.name
        unbounded = not self.ridge and self._pseudo is None and _separated(x, y, counts, beta)
        if unbounded:
            warn_user(
                f"the parents of {name!r} separate its states in these data, so its weights have no finite maximum "
                f"likelihood; they were stopped at {np.abs(beta).max():.3g}. A prior keeps them finite",
                ConvergenceWarning,
            )
        elif not converged:
            warn_user(
                f"the weights of {name!r} did not converge in {STEPS} Newton steps; a prior may help",
                ConvergenceWarning,
            )

    def _conditional(self, beta: Array, order: list[int]) -> Conditional:
        full = np.empty_like(beta)
        full[:, order] = beta
        if isinstance(self.before, LogisticConditional):
            full = full[:, 1:]
        contributions = [basis @ full[part] for basis, part in zip(self.bases, self._slices, strict=True)]
        kind, own = type(self.before), self.before
        return kind(own.variable, own.parents, contributions, full[0], own.n_parameters)

    def _weights_of(self, conditional: SoftmaxConditional) -> Array:
        """Return bias and weights relative to the reference, one column a child state."""
        start, contributions = conditional.scores()
        if isinstance(conditional, LogisticConditional):
            start, contributions = _both(start), tuple(_both(c) for c in contributions)
        else:
            start = start - start[self.reference]
            contributions = tuple(c - c[:, [self.reference]] for c in contributions)
        full = np.zeros((self._width, len(self.before.variable)))
        full[0] = start
        for basis, part, c in zip(self.bases, self._slices, contributions, strict=True):
            if basis.shape[1]:
                extended = np.concatenate([np.ones((len(basis), 1)), basis], axis=1)
                solution = np.linalg.lstsq(extended, c, rcond=None)[0]
                full[0] += solution[0]
                full[part] = solution[1:]
        return full


def _both(odds: Array) -> Array:
    return np.concatenate([np.zeros_like(odds), odds], axis=-1)


def _log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs


def _objective(x: Array, counts: Array, ridge: Array) -> SoftmaxObjective:
    return SoftmaxObjective(x, counts, np.zeros(counts.shape), ridge, symmetric=False)


def _separated(x: Array, y: Codes, counts: Array, beta: Array) -> bool:
    """Say whether some direction of the weights never lowers, and somewhere raises, the likelihood of the rows."""
    if not len(x):
        return False
    gap = float(np.abs(x @ beta.T).max())
    if gap < SUSPICIOUS or (beta[1:].size <= NEWTON and not _flat_somewhere(x, counts, beta)):
        return False
    found = separated_classes(x, np.asarray(y, dtype=np.int64), len(beta))
    return gap > CERTAIN if found is None else found


def _flat_somewhere(x: Array, counts: Array, beta: Array) -> bool:
    """Say whether the likelihood is flat here along a direction in which it is curved at zero: separation needs that."""
    objective = _objective(x, counts, np.zeros(x.shape[1]))
    values, vectors = np.linalg.eigh(objective.hessian(beta[1:].ravel()))
    null = objective.hessian(np.zeros(beta[1:].size))
    top = float(np.trace(null))
    flat = vectors[:, values < 1e-7 * top]
    return bool(((flat * (null @ flat)).sum(axis=0) > 1e-9 * top).any())


def _reference(before: SoftmaxConditional) -> int:
    """Return the child state that scores nothing, else the first."""
    if isinstance(before, LogisticConditional):
        return 0
    start, contributions = before.scores()
    for c in range(len(before.variable)):
        if start[c] == 0.0 and not any(t[:, c].any() for t in contributions):
            return c
    return 0


def _bases(before: SoftmaxConditional) -> list[Array]:
    """Return for each parent the vectors over its states that the child's scores are made of.

    A parent with one weight has the numbers of its states, one with a weight a state has an indicator for every state but
    a reference. Which it is, is read off the scores; where they do not tell, off the number of parameters.
    """
    _, contributions = before.scores()
    per = 1 if isinstance(before, LogisticConditional) else max(1, len(before.variable) - 1)
    spare = before.n_parameters // per - 1
    kinds: list[bool | None] = []  # one weight, a weight a state, or either
    for parent, c in zip(before.parents, contributions, strict=True):
        numbers = _numbers(parent)
        if numbers is None or not _multiple(c, numbers):
            kinds.append(False)
        else:
            kinds.append(True if len(parent) <= 2 else None)
    spare -= sum(1 if k else len(p) - 1 for p, k in zip(before.parents, kinds, strict=True) if k is not None)
    undecided = sorted(
        (i for i, k in enumerate(kinds) if k is None), key=lambda i: bool(contributions[i].any())
    )
    for place, i in enumerate(undecided):
        wide = len(before.parents[i]) - 1
        kinds[i] = spare - wide < len(undecided) - place - 1
        spare -= 1 if kinds[i] else wide
    found = []
    for parent, c, numeric in zip(before.parents, contributions, kinds, strict=True):
        numbers = _numbers(parent)
        if numeric and numbers is not None:
            found.append(numbers[:, None])
            continue
        silent = np.flatnonzero(~c.any(axis=1))
        reference = int(silent[0]) if silent.size else 0
        found.append(np.delete(np.eye(len(parent)), reference, axis=1))
    return found


def _numbers(parent: Variable) -> Array | None:
    if not any(isinstance(s, str) for s in parent.states):
        return np.array([float(s) for s in parent.states])
    return np.array([0.0, 1.0]) if len(parent) == 2 else None


def _multiple(c: Array, numbers: Array) -> bool:
    """Say whether every column is a multiple of the numbers."""
    size = float(numbers @ numbers)
    slope = numbers @ c / size if size else np.zeros(c.shape[1])
    return bool(np.allclose(c, np.outer(numbers, slope), rtol=1e-9, atol=1e-12))
