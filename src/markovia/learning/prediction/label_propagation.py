"""Label propagation: unknown labels as the most probable state of a Gaussian Markov random field.

    p(z) ~ exp(-sum_ij w_ij (y_i - z_j)^2 - 1/2 sum_ij v_ij (z_i - z_j)^2)

with known labels y, unknown ones z, weights w between known and unknown, and symmetric weights v between unknown ones (the
second sum runs over ordered pairs, so every edge counts once). The mode, which is also the mean, solves

    (diag(sum_i w_ij) + L_v) z = W' y,      L_v the graph Laplacian of v,

so every unknown label is the weighted average of its neighbours (a harmonic function). Several classes are several
columns of y. Reference: Zhu, Ghahramani & Lafferty (2003). Cost: one sparse factorisation, or conjugate gradients, where
`solver="auto"` tries the latter first for many unknown labels on a sparse graph.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import ConvergenceWarning, InvalidArgument, warn_user
from markovia.factors.distributions.multivariate_gaussian import MultivariateGaussian
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, numbers
from markovia.runtime.shown import InNotebooks

DIRECT_UP_TO = 1_000
"""Unknown labels up to which sparse systems are factorised rather than iterated on."""
ENOUGH_STEPS = 2_000
"""Steps of conjugate gradients after which `solver="auto"` factorises after all."""
SOLVERS = ("auto", "direct", "cg")


@dataclass(frozen=True, eq=False)
class PropagatedLabels(InNotebooks):
    """The solution of label propagation.

    Attributes
    ----------
    values
        The mode of the unknown labels, in the shape of the known ones (a column a class where these have columns).
    system
        The matrix `diag(sum_i w_ij) + L_v`, sparse or dense; twice it is the precision of the field.
    right
        `W' y`.
    iterations
        Of conjugate gradients; zero where the system was factorised.
    """

    values: Array
    system: Any
    right: Array
    iterations: int

    def gaussian(self, column: int = 0) -> MultivariateGaussian:
        """Return the field itself as a Gaussian over the unknown labels z0, z1, ... (dense, cubic cost).

        Its variances say how sure the propagated labels are.
        """
        dense = np.asarray(self.system.toarray() if hasattr(self.system, "toarray") else self.system)
        mean = self.values if self.values.ndim == 1 else self.values[:, column]
        names = tuple(f"z{k}" for k in range(len(mean)))
        return MultivariateGaussian.from_precision(mean, 2.0 * dense, names)


def propagate_labels(
    known: Any, to_unknown: Any, between: Any = None, *, solver: str = "auto", tolerance: float = 1e-10
) -> PropagatedLabels:
    """Return the most probable unknown labels of a Gaussian Markov random field.

    Parameters
    ----------
    known
        The known labels as numbers, one a row; one column a class for several classes (zeros and ones).
    to_unknown
        The weights between known and unknown labels, one row a known label; dense or scipy.sparse, not negative.
    between
        The symmetric weights between unknown labels; none by default. The diagonal does not matter.
    solver
        "direct", "cg" (conjugate gradients), or "auto".
    tolerance
        The relative residual at which conjugate gradients stop.

    Returns
    -------
    PropagatedLabels
        Its `values` minimise the energy.

    Raises
    ------
    InvalidArgument
        If an unknown label is connected to no known one, which leaves it free.

    Examples
    --------
    Two unknown labels in a row between a 0 and a 1:

    >>> found = propagate_labels([0.0, 1.0], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    >>> found.values.round(4).tolist()
    [0.3333, 0.6667]
    """
    from scipy import sparse

    check_choice("solver", solver, SOLVERS)
    labels = np.asarray(known, dtype=np.float64)
    if labels.ndim not in (1, 2) or not np.isfinite(labels).all():
        raise InvalidArgument("known labels are finite numbers, one row a label")
    reach = _weights(to_unknown, "to_unknown")
    if reach.shape[0] != len(labels):
        raise InvalidArgument(
            f"there are {len(labels)} known labels, but to_unknown= has {reach.shape[0]} rows"
        )
    n = reach.shape[1]
    inner = sparse.csr_matrix((n, n)) if between is None else _weights(between, "between")
    if inner.shape != (n, n):
        raise InvalidArgument(f"{n} unknown labels need weights of shape ({n}, {n}), not {inner.shape}")
    skew = abs(inner - inner.T)
    if n and skew.max() > 1e-9 * max(1.0, abs(inner).max()):
        raise InvalidArgument("the weights between unknown labels are not symmetric")
    free = unreached(reach, inner)
    if free.any():
        raise InvalidArgument(
            f"{int(free.sum())} unknown labels are connected to no known one (the first is number {int(free.argmax())}), "
            f"so nothing can be said about them"
        )
    diagonal = _sums(reach) + _sums(inner)
    right = np.asarray(reach.T @ labels, dtype=np.float64)
    own = sparse.diags_array(diagonal) if sparse.issparse(inner) else np.diag(diagonal)
    system = own - inner
    values, iterations = _solved(system, right, solver, tolerance)
    return PropagatedLabels(values, system, right, iterations)


def energy(known: Any, unknown: Any, to_unknown: Any, between: Any) -> float:
    """Return `sum w_ij (y_i - z_j)^2 + 1/2 sum v_ij (z_i - z_j)^2`, summed over columns.

    Examples
    --------
    >>> energy([0.0, 1.0], [0.5, 0.5], [[1, 0], [0, 1]], [[0, 1], [1, 0]])
    0.5
    """
    y, z = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (known, unknown))
    w, v = (np.asarray(x.toarray() if hasattr(x, "toarray") else x) for x in (to_unknown, between))
    outer = (w[:, :, None] * (y[:, None] - z[None]) ** 2).sum()
    return float(outer + 0.5 * (v[:, :, None] * (z[:, None] - z[None]) ** 2).sum())


def unreached(to_unknown: Any, between: Any) -> Any:
    """Return which unknown labels no path of positive weights connects to a known one."""
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    graph = sparse.csr_matrix(between)
    _, part = connected_components(graph, directed=False)
    reached = np.unique(part[_sums(to_unknown) > 0])
    return ~np.isin(part, reached)


def _weights(given: Any, what: str) -> Any:
    """Return weights as a dense array or a CSR matrix of finite numbers that are not negative."""
    from scipy import sparse

    if sparse.issparse(given):
        found = sparse.csr_matrix(given, dtype=np.float64)
        cells = found.data
    else:
        found = numbers(given, f"{what}= is a matrix of weights")
        cells = found
    if found.ndim != 2:
        raise InvalidArgument(f"{what}= is a matrix of weights, not of shape {found.shape}")
    if not np.isfinite(cells).all() or (cells < 0).any():
        raise InvalidArgument(f"the weights of {what}= are finite and not negative")
    return found


def _sums(weights: Any) -> Array:
    return np.asarray(weights.sum(axis=0), dtype=np.float64).reshape(-1)


def _solved(system: Any, right: Array, solver: str, tolerance: float) -> tuple[Array, int]:
    """Return the solution and the steps of conjugate gradients."""
    from scipy import linalg, sparse
    from scipy.sparse.linalg import splu

    if not right.size:
        return right.copy(), 0
    thin = sparse.issparse(system)
    if solver == "cg" or (solver == "auto" and thin and system.shape[0] > DIRECT_UP_TO):
        most = 10 * system.shape[0] if solver == "cg" else ENOUGH_STEPS
        values, steps, converged = _conjugate_gradients(
            system, right.reshape(len(right), -1), tolerance, most
        )
        if converged:
            return values.reshape(right.shape), steps
        if solver == "cg":
            warn_user(
                f"conjugate gradients did not converge in {steps} steps; solver='direct' solves exactly",
                ConvergenceWarning,
            )
            return values.reshape(right.shape), steps
    if not thin:
        return np.asarray(linalg.solve(system, right, assume_a="pos")), 0
    # the system is symmetric and diagonally dominant, so no pivoting is needed
    factor = splu(
        system.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    return np.asarray(factor.solve(right)), 0


def _conjugate_gradients(system: Any, right: Array, tolerance: float, most: int) -> tuple[Array, int, bool]:
    """Solve for all columns at once, preconditioned by the diagonal; return the steps and whether that was enough.

    The sums are einsum's: threaded products of short vectors cost more than they save.
    """
    scale = 1.0 / np.asarray(system.diagonal())[:, None]
    enough = tolerance * np.sqrt(np.einsum("ij,ij->j", right, right))
    values, rest = np.zeros_like(right), right.copy()
    along = scale * rest
    size = np.einsum("ij,ij->j", rest, along)
    for step in range(1, most + 1):
        image = np.asarray(system @ along)
        bend = np.einsum("ij,ij->j", along, image)
        length = np.divide(size, bend, out=np.zeros_like(size), where=bend > 0)
        values += length * along
        rest -= length * image
        if (np.sqrt(np.einsum("ij,ij->j", rest, rest)) <= enough).all():
            return values, step, True
        scaled = scale * rest
        before, size = size, np.einsum("ij,ij->j", rest, scaled)
        along = scaled + np.divide(size, before, out=np.zeros_like(size), where=before > 0) * along
    return values, most, False
