"""The posterior of a Gaussian field's precision under a Wishart prior with the graph's zeros.

The prior is `p(K)` proportional to `|K|^((degrees - 2) / 2) exp(-tr(K scale) / 2)` over precisions with zeros where the
graph has no edge, and the mean is Gaussian given K with `rows` rows' worth of knowledge. On a decomposable graph each node,
given its later neighbours in a perfect elimination order, is a regression with a normal-inverse-gamma posterior of its own,
and everything is a product over nodes. Elsewhere only the mode is easy, by covariance selection.
References: Dawid and Lauritzen (1993), "Hyper Markov laws"; Roverato (2002), "Hyper inverse Wishart distribution for
non-decomposable graphs".
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, Unanswered
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.graphs.triangulation.chordal import is_chordal, perfect_elimination_order
from markovia.learning.gaussian.covariance_selection import field_moments, selected_precision
from markovia.learning.tables.priors import Wishart
from markovia.runtime.array_types import Array
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True, eq=False)
class FieldPosterior(InNotebooks):
    """The posterior of a Gaussian field's precision K and mean; `posterior_` after a fit under `mk.priors.Wishart`.

    Attributes
    ----------
    names
        The variables, in the order of matrices and vectors.
    degrees, scale
        Those of the Wishart distribution: the prior's plus rows, and plus their products.
    center, rows
        The mean's own mean, and how many rows it is known by: its precision is `rows` times K.

    Examples
    --------
    >>> import markovia as mk
    >>> field = mk.GaussianMarkovNetwork({"a": 1, "b": 1, "c": 1, ("a", "b"): 0.1, ("b", "c"): 0.1})
    >>> rows = {"a": [1.0, 2.0, 4.0, 3.0], "b": [1.5, 2.5, 4.5, 2.0], "c": [0.0, 1.0, 3.0, 2.5]}
    >>> post = field.fit(rows, prior=mk.priors.Wishart()).posterior_
    >>> post.mean().shape, float(post.mean()[0, 2]), post.sample(5, seed=0)[0].shape
    ((3, 3), 0.0, (5, 3, 3))
    """

    names: tuple[str, ...]
    degrees: float
    scale: Array
    center: Array
    rows: float
    _near: Sequence[Any]
    _families: Sequence[tuple[int, Any]] | None
    _log_evidence: float

    @property
    def decomposable(self) -> bool:
        """Whether the graph is, so that mean, draws and evidence have a closed form."""
        return self._families is not None

    @property
    def log_evidence(self) -> float:
        """The log density of the data, precision and mean integrated out; for decomposable graphs."""
        self._decomposable("the evidence")
        return self._log_evidence

    def mean(self) -> Array:
        """Return the mean of the precision; for decomposable graphs."""
        total = np.zeros_like(self.scale)
        for node, later in self._decomposable("the mean"):
            for block, sign in ((np.append(later, node), 1.0), (later, -1.0)):
                part = np.linalg.inv(self.scale[np.ix_(block, block)])
                total[np.ix_(block, block)] += sign * (self.degrees + len(block) - 1.0) * part
        return total

    def mode(self) -> Array:
        """Return the most probable precision, for every graph."""
        return selected_precision(self.scale / (self.degrees - 2.0), self._near, self.names)

    def sample(self, n: int, seed: Seed = None) -> tuple[Array, Array]:
        """Return n drawn precisions with the graph's zeros, and n drawn means; for decomposable graphs."""
        families = self._decomposable("draws")
        rng, p = generator(seed), len(self.names)
        precisions = np.zeros((n, p, p))
        means = np.tile(self.center, (n, 1))
        noise = np.zeros((n, p))
        for node, later in reversed(
            families
        ):  # later neighbours come before a node that is regressed on them
            inside, across = self.scale[np.ix_(later, later)], self.scale[later, node]
            slope = np.linalg.solve(inside, across)
            rest = self.scale[node, node] - across @ slope
            variance = rest / rng.chisquare(self.degrees + len(later), n)
            row = np.zeros((n, p))
            row[:, node] = 1.0
            standard = rng.standard_normal((n, len(later)))
            spread = np.linalg.solve(np.linalg.cholesky(inside).T, standard.T).T
            row[:, later] = -slope - np.sqrt(variance)[:, None] * spread
            precisions += row[:, :, None] * row[:, None, :] / variance[:, None, None]
            drawn = np.sqrt(variance / self.rows) * rng.standard_normal(n)
            noise[:, node] = drawn - np.einsum("ij,ij->i", row[:, later], noise[:, later])
        return precisions, means + noise

    def _decomposable(self, what: str) -> Sequence[tuple[int, Any]]:
        if self._families is None:
            raise Unanswered(
                f"{what} under a Wishart prior have a closed form on decomposable (chordal) graphs only; mode() is there "
                "for every graph, and mk.graphs.triangulate finds edges that make this one decomposable"
            )
        return self._families


def wishart_posterior(
    data: Any, names: Sequence[str], graph: UndirectedGraph, prior: Wishart, weights: Any = None
) -> FieldPosterior:
    """Return the posterior of mean and precision of a field, from complete rows."""
    mean, found = field_moments(data, names, weights)
    scatter, n, k = found.covariance * found.total, found.total, prior.rows
    before, center = _scale(prior, found.covariance, names), _center(prior, mean, names)
    gap = mean - center
    after = before + scatter + k * n / (k + n) * np.outer(gap, gap)
    place = {name: i for i, name in enumerate(names)}
    near = [np.array(sorted(place[q] for q in graph.neighbors(name)), dtype=np.int64) for name in names]
    families: list[tuple[int, Any]] | None = None
    log_evidence = np.nan
    if is_chordal(graph):
        seen: set[int] = set()
        families = []
        for node in (place[name] for name in perfect_elimination_order(graph)):
            seen.add(node)
            families.append((node, np.array([q for q in near[node] if q not in seen], dtype=np.int64)))
        log_evidence = 0.5 * len(names) * (np.log(k / (k + n)) - n * np.log(2 * np.pi))
        for node, later in families:
            for block, sign in ((np.append(later, node), 1.0), (later, -1.0)):
                log_evidence += sign * _log_mass(prior.degrees + n, after[np.ix_(block, block)])
                log_evidence -= sign * _log_mass(prior.degrees, before[np.ix_(block, block)])
    return FieldPosterior(
        tuple(names), prior.degrees + n, after, (k * center + n * mean) / (k + n), k + n, near, families,
        float(log_evidence),
    )  # fmt: skip


def _log_mass(degrees: float, scale: Array) -> float:
    """Return the log of the integral of `|K|^((degrees - 2) / 2) exp(-tr(K scale) / 2)` over all precisions."""
    from scipy.special import multigammaln

    p = len(scale)
    if not p:
        return 0.0
    half = 0.5 * (degrees + p - 1.0)
    return float(half * (p * np.log(2.0) - np.linalg.slogdet(scale)[1]) + multigammaln(half, p))


def _scale(prior: Wishart, covariance: Array, names: Sequence[str]) -> Array:
    if prior.scale is None:
        return np.diag(prior.degrees * np.diag(covariance))
    found = prior.scale
    if hasattr(found, "loc") and set(names) <= set(found.columns):
        found = found.loc[list(names), list(names)]
    matrix = np.asarray(found, np.float64)
    whole = matrix.shape == (len(names),) * 2 and np.isfinite(matrix).all() and np.allclose(matrix, matrix.T)
    if not whole or np.linalg.eigvalsh(matrix)[0] <= 0.0:
        raise InvalidArgument(
            "scale= of a Wishart prior is a symmetric, positive definite matrix with a row for each of "
            f"{len(names)} variables"
        )
    return matrix


def _center(prior: Wishart, mean: Array, names: Sequence[str]) -> Array:
    if prior.center is None:
        return mean
    found = np.asarray(prior.center, np.float64)
    if found.shape not in ((), (len(names),)) or not np.isfinite(found).all():
        raise InvalidArgument(
            f"center= of a Wishart prior is a number, or one for each of {len(names)} variables"
        )
    return np.broadcast_to(found, len(names))
