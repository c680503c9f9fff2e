"""Distributions of several quantities in closed form, as arrays: what closed-form and mean-field posteriors are made of.

Numbers of one family are independent of everything else. Normal numbers may have covariances, and may be scaled by one of
the former: x given r is normal with covariance S r (or S / r), so that without r it is Student's t where r has an inverse
gamma (or gamma) distribution.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log, pi, prod
from typing import Any

import numpy as np

from markovia.inference.densities.closed_forms.conjugate_blocks import (
    ConjugateBlock,
    DirichletBlock,
    NormalBlock,
    ScalarBlock,
)
from markovia.inference.number_distributions import ContinuousNumbers
from markovia.runtime.array_types import Array, Ints

LOG_2PI = log(2.0 * pi)


@dataclass(frozen=True)
class Elements:
    """Independent numbers of a family ("gamma", "inverse-gamma", "beta", "dirichlet") with parameters a and b.

    For "dirichlet", a are the concentrations, along the last axis.
    """

    name: str
    family: str
    a: Array
    b: Array

    def __post_init__(self) -> None:
        for parameter in ("a", "b"):  # arithmetic makes numbers of arrays without axes
            object.__setattr__(self, parameter, np.asarray(getattr(self, parameter), dtype=np.float64))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the quantity."""
        return self.a.shape

    @property
    def marginal(self) -> Any:
        """The distribution of each number by itself, as SciPy has it."""
        from scipy import stats

        if self.family == "gamma":
            return stats.gamma(self.a, scale=1.0 / self.b)
        if self.family == "inverse-gamma":
            return stats.invgamma(self.a, scale=self.b)
        if self.family == "beta":
            return stats.beta(self.a, self.b)
        return stats.beta(self.a, self.a.sum(-1, keepdims=True) - self.a)

    @property
    def certain(self) -> Array | None:
        """The shares that are certain, since a concentration is zero or the only one that is not; NaN where none is."""
        if self.family != "dirichlet":
            return None
        total = np.broadcast_to(self.a.sum(-1, keepdims=True), self.shape)
        sure = ((self.a == 0.0) | (self.a == total)) & (total > 0.0)
        return np.where(sure, self.a > 0.0, np.nan) if sure.any() else None

    @property
    def covariance(self) -> Array:
        """The covariance of all numbers, one after the other; those of a simplex depend on each other."""
        variance = np.ravel(self.marginal.var())
        if self.family != "dirichlet":
            return np.diag(variance)
        k = self.shape[-1]
        share = (self.a / self.a.sum(-1, keepdims=True)).reshape(-1, k)
        found = np.zeros((variance.size, variance.size))
        for i, (p, total) in enumerate(zip(share, self.a.sum(-1).ravel(), strict=True)):
            found[i * k : (i + 1) * k, i * k : (i + 1) * k] = (np.diag(p) - np.outer(p, p)) / (total + 1.0)
        return found

    def sample(self, n: int, rng: np.random.Generator) -> Array:
        """Draw n times."""
        if self.family != "dirichlet":
            return np.asarray(self.marginal.rvs(size=(n, *self.shape), random_state=rng))
        gammas = rng.standard_gamma(np.broadcast_to(self.a, (n, *self.shape))) + 1e-300
        return np.asarray(gammas / gammas.sum(-1, keepdims=True))

    def log_prob(self, x: Array) -> Array:
        """Return the log density of the whole quantity, for each of the places along leading axes."""
        axes = tuple(range(-len(self.shape), 0))
        if self.family != "dirichlet":
            return np.asarray(self.marginal.logpdf(x).sum(axis=axes))
        from scipy.special import gammaln, xlogy

        possible = self.a > 0.0  # a share without concentration is zero, and no part of the simplex
        terms = xlogy(self.a - 1.0, x) - gammaln(np.where(possible, self.a, 1.0))
        terms = np.where(possible, terms, np.where(np.asarray(x) > 0.0, -np.inf, 0.0))
        each = gammaln(self.a.sum(-1)) + terms.sum(-1)
        return np.asarray(each.sum(axis=axes[1:]) if len(axes) > 1 else each)


@dataclass(frozen=True)
class Normals:
    """Normal numbers, several quantities one after the other.

    Attributes
    ----------
    shapes
        The shapes of the quantities by name.
    mean, covariance
        Of all numbers; variances only where the numbers are independent. For scaled numbers, the covariance where the number
        that scales them is one.
    root
        For each number, the position (among all `roots`) of the number that scales it, -1 for none.
    inverse
        For each number, whether it is scaled by the inverse (the root is a precision).
    """

    shapes: Mapping[str, tuple[int, ...]]
    mean: Array
    covariance: Array
    root: Ints
    inverse: Any

    def at(self, name: str) -> slice:
        """Return where a quantity is."""
        start = 0
        for other, shape in self.shapes.items():
            if other == name:
                return slice(start, start + prod(shape))
            start += prod(shape)
        raise KeyError(name)

    @property
    def variances(self) -> Array:
        """The variance of each number (where its root is one)."""
        return self.covariance if self.covariance.ndim == 1 else np.diagonal(self.covariance)

    def covariance_of(self, places: Ints) -> Array:
        """Return the covariance of some numbers."""
        if self.covariance.ndim == 1:
            return np.diag(self.covariance[places])
        return np.asarray(self.covariance[np.ix_(places, places)])


@dataclass(frozen=True)
class ClosedForm:
    """The distribution of several quantities: independent numbers, and normal ones that some of them may scale."""

    elements: Mapping[str, Elements]
    normals: Normals | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """All quantities."""
        return (*self.elements, *(self.normals.shapes if self.normals else ()))

    @property
    def roots(self) -> tuple[Array, Array]:
        """The parameters a and b of all numbers that are no normal ones, one after the other."""
        parts = [e for e in self.elements.values() if e.family != "dirichlet"]
        empty = np.zeros(0)
        return tuple(np.concatenate([empty, *(np.ravel(getattr(e, k)) for e in parts)]) for k in "ab")  # type: ignore[return-value]

    def marginal(self, name: str) -> Any:
        """Return the distribution of each number of a quantity, as SciPy has it."""
        from scipy import stats

        if name in self.elements:
            return self.elements[name].marginal
        assert self.normals is not None
        found, at, shape = self.normals, self.normals.at(name), self.normals.shapes[name]
        mean, variance, root = (
            found.mean[at].reshape(shape),
            found.variances[at].reshape(shape),
            found.root[at],
        )
        if (root < 0).all():
            return stats.norm(mean, np.sqrt(variance))
        a, b = self.roots
        freedom = np.where(root < 0, 1e300, 2.0 * a[root]).reshape(shape)
        scale = np.where(root < 0, 1.0, b[root] / a[root]).reshape(shape)
        return stats.t(freedom, mean, np.sqrt(variance * scale))

    def numbers(self, name: str, at: tuple[int, ...] = ()) -> ContinuousNumbers:
        """Return the distribution of each number of a quantity, or of one element of it, as posteriors are asked."""
        certain = self.elements[name].certain if name in self.elements else None
        return ContinuousNumbers(self.marginal(name), at, certain)

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a quantity."""
        if name in self.elements:
            return self.elements[name].shape
        assert self.normals is not None
        return tuple(self.normals.shapes[name])

    def covariance(self, parts: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[Array, list[tuple[int, ...]]]:
        """Return the covariance of all numbers of some quantities (or of one element of each), and the shape of each part.

        A normal number has no covariance with what scales it: given any scale it lies around the same mean.
        """
        labels = [  # every number as a quantity and a place in it, one after the other
            (name, int(np.ravel_multi_index(place, self.shape(name))) if place else 0)
            for name, at in parts
            for place in ([at] if at else np.ndindex(*self.shape(name)))
        ]
        found = np.zeros((len(labels), len(labels)))
        names = [name for name, _ in labels]
        for name in dict.fromkeys(n for n in names if n in self.elements):
            rows = [i for i, n in enumerate(names) if n == name]
            places = [labels[i][1] for i in rows]
            found[np.ix_(rows, rows)] = self.elements[name].covariance[np.ix_(places, places)]
        rows = [i for i, n in enumerate(names) if n not in self.elements]
        if rows and self.normals is not None:
            at = np.array([self.normals.at(labels[i][0]).start + labels[i][1] for i in rows])
            root = self.normals.root[at]
            a, b = (np.append(x, np.nan)[root] for x in self.roots)  # the last one stands for no root
            with np.errstate(divide="ignore", invalid="ignore"):
                scale = np.where(root < 0, 1.0, np.where(a > 1.0, b / (a - 1.0), np.inf))
                own = self.normals.covariance_of(at)
                found[np.ix_(rows, rows)] = np.where(own == 0.0, 0.0, own * scale[:, None])
        return found, [() if at else self.shape(name) for name, at in parts]

    def sample(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        """Draw n times, all quantities together."""
        drawn = {name: e.sample(n, rng) for name, e in self.elements.items()}
        found = self.normals
        if found is None:
            return drawn
        noise = rng.standard_normal((n, len(found.mean)))
        if found.covariance.ndim == 1:
            noise = noise * np.sqrt(found.covariance)
        else:
            noise = noise @ np.linalg.cholesky(found.covariance).T
        noise = noise * np.sqrt(self._scale(drawn, n))
        for name, shape in found.shapes.items():
            at = found.at(name)
            drawn[name] = (found.mean[at] + noise[:, at]).reshape(n, *shape)
        return drawn

    def _scale(self, values: Mapping[str, Array], n: int) -> Array:
        """Return what multiplies the covariance of each normal number, at n places."""
        assert self.normals is not None
        root = self.normals.root
        if (root < 0).all():
            return np.ones((n, len(root)))
        flat = [values[k].reshape(n, -1) for k, e in self.elements.items() if e.family != "dirichlet"]
        r = np.concatenate(flat, axis=1)[:, root]
        return np.where(root < 0, 1.0, np.where(self.normals.inverse, 1.0 / r, r))

    def log_prob(self, values: Mapping[str, Any]) -> Array:
        """Return the log density of some quantities together, at places along leading axes of their values."""
        shapes = {n: self.elements[n].shape for n in values if n in self.elements}
        total: Any = 0.0
        for name in shapes:
            total = total + self.elements[name].log_prob(np.asarray(values[name], dtype=np.float64))
        if self.normals is None or not values.keys() & self.normals.shapes.keys():
            return np.asarray(total)
        return np.asarray(total + self._normal_log_prob(values))

    def _normal_log_prob(self, values: Mapping[str, Any]) -> Any:
        found = self.normals
        assert found is not None
        mine = [n for n in found.shapes if n in values]
        flat, lead = [], ()
        for name in mine:
            x = np.asarray(values[name], dtype=np.float64)
            lead = x.shape[: x.ndim - len(found.shapes[name])]
            flat.append(x.reshape(*lead, -1))
        places = np.concatenate([np.arange(s.start, s.stop) for s in map(found.at, mine)])
        gap = np.concatenate(flat, axis=-1).reshape(-1, len(places)) - found.mean[places]
        owners = [n for n, e in self.elements.items() if e.family != "dirichlet" for _ in range(e.a.size)]
        known = {n: np.asarray(values[n]).reshape(len(gap), -1) for n in self.elements if n in values}
        a, b = self.roots
        total: Any = 0.0
        for root in np.unique(found.root[places]):
            here = np.flatnonzero(found.root[places] == root)
            covariance = found.covariance_of(places[here])
            square, half = _square(gap[:, here], covariance)
            if root < 0:
                total = total - 0.5 * square - half
            elif owners[root] in known:
                r = known[owners[root]][:, root - owners.index(owners[root])]
                r = 1.0 / r if found.inverse[places[here[0]]] else r
                total = total - 0.5 * square / r - half - 0.5 * len(here) * np.log(r)
            else:
                total = total + _student(square, half, len(here), 2.0 * a[root], b[root] / a[root])
        return np.asarray(total).reshape(lead)


def _square(gap: Array, covariance: Array) -> tuple[Array, float]:
    """Return gap' S^-1 gap for each row, and half the log determinant of 2 pi S."""
    from scipy.linalg import solve_triangular

    lower = np.linalg.cholesky(covariance)
    whitened = solve_triangular(lower, gap.T, lower=True)
    return (whitened**2).sum(axis=0), float(
        np.log(np.diagonal(lower)).sum() + 0.5 * LOG_2PI * len(covariance)
    )


def _student(square: Array, half: float, size: int, freedom: float, scale: float) -> Array:
    """Return the log density of a multivariate t whose scale matrix is S times `scale`."""
    from scipy.special import gammaln

    return np.asarray(
        gammaln(0.5 * (freedom + size)) - gammaln(0.5 * freedom) - half
        + 0.5 * size * (LOG_2PI - np.log(freedom * pi * scale))
        - 0.5 * (freedom + size) * np.log1p(square / (scale * freedom))
    )  # fmt: skip


def independent(blocks: Sequence[ConjugateBlock], etas: Sequence[Any]) -> ClosedForm:
    """Return the product of distributions of blocks, given their natural parameters."""
    elements: dict[str, Elements] = {}
    parts: list[tuple[NormalBlock, Array, Array]] = []
    for block, eta in zip(blocks, etas, strict=True):
        if isinstance(block, NormalBlock):
            h, precision = (np.asarray(x) for x in eta)
            if block.diagonal:
                parts.append((block, h / precision, 1.0 / precision))
            else:
                covariance = np.linalg.inv(precision)
                parts.append((block, covariance @ h, 0.5 * (covariance + covariance.T)))
        else:
            elements[block.name] = as_elements(block, eta)
    if not parts:
        return ClosedForm(elements)
    shapes = {n: s for block, _, _ in parts for n, s in block.shapes.items()}
    mean = np.concatenate([m for _, m, _ in parts])
    if all(block.diagonal for block, _, _ in parts):
        covariance = np.concatenate([c for _, _, c in parts])
    else:
        from scipy.linalg import block_diag

        covariance = block_diag(*(c if c.ndim == 2 else np.diag(c) for _, _, c in parts))
    free = np.full(len(mean), -1)
    return ClosedForm(elements, Normals(shapes, mean, covariance, free, np.zeros(len(mean), bool)))


def as_elements(block: ConjugateBlock, eta: Any) -> Elements:
    """Return a block of independent numbers, or points on simplexes, given its natural parameters."""
    if isinstance(block, DirichletBlock):
        return Elements(block.name, "dirichlet", np.asarray(eta) + 1.0, np.zeros(0))
    assert isinstance(block, ScalarBlock)
    a, b = block.family.parameters(*(np.asarray(x, dtype=np.float64) for x in eta))
    return Elements(block.name, block.family.name, a, b)
