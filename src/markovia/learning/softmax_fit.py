"""Logistic and softmax nodes from counts: multinomial logistic regression by Newton's method.

The log likelihood `sum w log softmax(x B)` is concave; Newton steps (iteratively reweighted least squares) with halving
reach its top in a few iterations. Collinear weights get the solution of least norm a step. Cost an iteration: rows times
the square of the number of weights; above `NEWTON` weights L-BFGS is used instead.

Where the parents separate the child's states there is no finite maximum (Albert & Anderson, 1984). This is found exactly,
by a linear program, and said in a `ConvergenceWarning`; a prior makes the maximum finite. Pseudo-counts enter as rows in
which one parent alone contributes (Greenland & Christensen, 2001), a `Gaussian` prior as a ridge on the weights.
"""

import warnings
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from markovia.errors import ConvergenceWarning
from markovia.factors.conditional import Conditional
from markovia.factors.factor import Array
from markovia.factors.logistic import LogisticConditional, SoftmaxConditional
from markovia.factors.variable import Variable
from markovia.inference.result import outside
from markovia.learning.data import Codes
from markovia.learning.row_counts import RowCounts

NEWTON = 400
STEPS = 200
SUSPICIOUS = 8.0
"""A gap between log probabilities from which separation is looked for."""
LARGEST_PROGRAM = 4_000_000


class SoftmaxFit:
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
        free = [c for c in range(k) if c != self.reference]
        target = np.zeros((len(y), k))
        target[np.arange(len(y)), y] = 1.0
        target = target[:, free]
        beta = np.zeros((self._width, k - 1))
        if len(y) and k > 1:
            beta, converged = self._climb(x, target, weights, beta)
            self._report(x[:seen], target[:seen], weights[:seen], beta, converged)
        return self._conditional(beta, free)

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

    def _climb(self, x: Array, target: Array, w: Array, beta: Array) -> tuple[Array, bool]:
        penalised = np.full(beta.shape, self.ridge)
        penalised[0] = 0.0

        def value(b: Array) -> tuple[float, Array]:
            scores = x @ b
            logs = scores - _log_total(scores)[:, None]
            reference = -_log_total(scores)
            chosen = np.where(target.any(axis=1), (logs * target).sum(axis=1), reference)
            return float(w @ chosen - 0.5 * (penalised * b**2).sum()), np.exp(logs)

        if beta.size > NEWTON:
            return self._quasi_newton(x, target, w, beta, value, penalised)
        best, p = value(beta)
        scale = 1.0 + float(w.sum())
        for _ in range(STEPS):
            gradient = x.T @ (w[:, None] * (target - p)) - penalised * beta
            step = _newton_step(x, w, p, gradient, penalised)
            if float((gradient * step).sum()) <= 1e-12 * scale:
                return beta + step, True  # closer than the rounding of the objective can tell
            length = 1.0
            while length > 1e-10:
                trial = beta + length * step
                found, q = value(trial)
                if found >= best:
                    break
                length /= 2
            else:
                return beta, bool(np.abs(gradient).max() <= 1e-6 * scale)
            gain, beta, best, p = found - best, trial, found, q
            if gain <= 1e-15 * scale and length == 1.0:
                return beta, True
        return beta, False

    def _quasi_newton(
        self, x: Array, target: Array, w: Array, beta: Array, value: object, penalised: Array
    ) -> tuple[Array, bool]:
        from scipy.optimize import minimize

        scale = 1.0 + float(w.sum())

        def negative(flat: Array) -> tuple[float, Array]:
            b = flat.reshape(beta.shape)
            found, p = value(b)  # type: ignore[operator]
            gradient = x.T @ (w[:, None] * (target - p)) - penalised * b
            return -found / scale, -gradient.ravel() / scale

        options = {"maxiter": 5000, "maxfun": 10_000, "ftol": 1e-15, "gtol": 1e-10}
        done = minimize(negative, beta.ravel(), jac=True, method="L-BFGS-B", options=options)
        return done.x.reshape(beta.shape), bool(done.success)

    def _report(self, x: Array, target: Array, w: Array, beta: Array, converged: bool) -> None:
        name = self.before.variable.name
        unbounded = not self.ridge and self._pseudo is None and _separated(x, target, w, beta)
        if unbounded:
            warnings.warn(
                f"the parents of {name!r} separate its states in these data, so its weights have no finite maximum "
                f"likelihood; they were stopped at {np.abs(beta).max():.3g}. A prior keeps them finite",
                ConvergenceWarning,
                stacklevel=outside(),
            )
        elif not converged:
            warnings.warn(
                f"the weights of {name!r} did not converge in {STEPS} Newton steps; a prior may help",
                ConvergenceWarning,
                stacklevel=outside(),
            )

    def _conditional(self, beta: Array, free: list[int]) -> Conditional:
        k = len(self.before.variable)
        logistic = isinstance(self.before, LogisticConditional)
        full = np.zeros((self._width, 1 if logistic else k))
        if logistic:
            full[:, 0] = beta[:, 0]
        else:
            full[:, free] = beta
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


def _log_total(scores: Array) -> Array:
    """Return log(1 + sum exp(scores)), a row."""
    top = np.maximum(scores.max(axis=1), 0.0)
    total: Array = top + np.log(np.exp(-top) + np.exp(scores - top[:, None]).sum(axis=1))
    return total


def _log_softmax(scores: Array) -> Array:
    shifted = scores - scores.max(axis=1, keepdims=True)
    logs: Array = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return logs


def _newton_step(x: Array, w: Array, p: Array, gradient: Array, penalised: Array) -> Array:
    flat = _information(x, w, p)
    flat[np.diag_indices(len(flat))] += penalised.T.ravel()
    step = np.linalg.lstsq(flat, gradient.T.ravel(), rcond=1e-13)[0]
    return np.ascontiguousarray(step.reshape(gradient.T.shape).T)


def _information(x: Array, w: Array, p: Array) -> Array:
    """Return minus the second derivatives of the log likelihood, weights of one child state after the other."""
    d, k = x.shape[1], p.shape[1]
    blocks = np.empty((k, d, k, d))
    for a in range(k):
        for b in range(a, k):
            rooted = np.sqrt(w * p[:, a] * (1.0 - p[:, a] if a == b else p[:, b]))[:, None] * x
            block = rooted.T @ rooted if a == b else -(rooted.T @ rooted)
            blocks[a, :, b, :] = block
            blocks[b, :, a, :] = block.T
    return blocks.reshape(k * d, k * d)


def _separated(x: Array, target: Array, w: Array, beta: Array) -> bool:
    """Say whether some direction of the weights never lowers, and somewhere raises, the likelihood of the rows."""
    n, (d, k) = len(x), beta.shape
    if not n or np.abs(x @ beta).max() < SUSPICIOUS:
        return False
    if beta.size <= NEWTON and not _flat_somewhere(x, w, beta):
        return False
    if n * k * d * k > LARGEST_PROGRAM:
        return bool(np.abs(x @ beta).max() > 25.0)
    from scipy.optimize import linprog

    own = np.concatenate([1.0 - target.sum(axis=1, keepdims=True), target], axis=1)  # reference first
    margins = []
    for other in range(k + 1):
        rows = np.flatnonzero(own[:, other] == 0.0)
        sign = own[rows].copy()
        sign[:, other] -= 1.0
        margins.append((x[rows][:, :, None] * sign[:, None, 1:]).reshape(len(rows), d * k))
    m = np.unique(np.concatenate(margins), axis=0)
    done = linprog(
        -m.sum(axis=0),
        A_ub=np.concatenate([-m, m]),
        b_ub=np.concatenate([np.zeros(len(m)), np.ones(len(m))]),
        bounds=(None, None),
        method="highs",
    )
    return bool(done.status == 0 and -done.fun > 1e-6)


def _flat_somewhere(x: Array, w: Array, beta: Array) -> bool:
    """Say whether the likelihood is flat here along a direction in which it is curved at zero: separation needs that."""
    scores = x @ beta
    values, vectors = np.linalg.eigh(_information(x, w, np.exp(scores - _log_total(scores)[:, None])))
    null = _information(x, w, np.full(scores.shape, 1.0 / (beta.shape[1] + 1)))
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
