"""Finitely many functions whose products add up to a covariance, k(x, z) ~ phi(x) phi(z)'.

They are random, structured, or eigenfunctions:

- `fourier_features`: cosines and sines at random frequencies (Rahimi and Recht 2007; random kitchen sinks 2008). The error
  falls as 1 / sqrt(m) in any number of columns. Orthogonal frequencies (Yu and others 2016) err less.
- `fastfood_features`: frequencies from products of Hadamard and diagonal matrices (Le, Sarlos and Smola 2013): m log d
  operations a row in place of m d, and no matrix of frequencies. For many columns.
- `hilbert_features`: eigenfunctions of the Laplacian on a box around the data (Solin and Sarkka 2020). No randomness, and
  few functions where the covariance is smooth; for one to three columns, since m is a power of their number.

Random draws are made from a seed and scaled by the hyper-parameters, so that features move smoothly with them, and `forward`
has the adjoint. The features of a sum are those of its parts side by side.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from collections.abc import Callable, Sequence
from functools import partial
from math import pi
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import Constant, Scaled, Sum, added
from markovia.factors.covariances.covariance import Covariance, one_or_each
from markovia.factors.covariances.radial import RBF, Matern
from markovia.learning.processes.evidence_method import Gradient
from markovia.runtime.array_types import Array

FEATURES = 4_096
"""Random features of a draw of the prior: variances far from the data are off by some parts in a hundred."""
Expand = Callable[[Covariance, int], "FeatureExpansion"]


class FeatureExpansion(NamedTuple):
    """Functions phi(x) whose products add up to a covariance.

    Attributes
    ----------
    size
        How many functions there are.
    forward
        From rows of inputs to the functions there, rows by functions, and what pulls weights back to hyper-parameters.

    Examples
    --------
    >>> import markovia as mk
    >>> k, x = mk.covariances.RBF(1.0), np.array([[0.0], [0.5]])
    >>> phi = hilbert_features(k, 20, np.zeros(1), np.full(1, 5.0)).features(x)
    >>> (phi @ phi.T).round(4).tolist(), k.value(x).round(4).tolist()
    ([[1.0, 0.8825], [0.8825, 1.0]], [[1.0, 0.8825], [0.8825, 1.0]])
    """

    size: int
    forward: Callable[[Array], tuple[Array, Callable[[Array], Gradient]]]

    def features(self, X: Array) -> Array:
        """Return the functions at rows of inputs, rows by functions."""
        return self.forward(X)[0]


def fourier_features(
    covariance: Covariance, size: int, d: int, seed: int = 0, *, orthogonal: bool = True
) -> FeatureExpansion:
    """Return about `size` cosines and sines at random frequencies, for inputs of d columns.

    Parameters
    ----------
    covariance
        One that has random frequencies (`Covariance.spectral_draws`), or a sum of such.
    size
        How many functions; the cosine and the sine of a frequency count as two.
    d, seed
        Columns of the inputs, and what frequencies are drawn from.
    orthogonal
        Whether frequencies are drawn orthogonal in groups of d.
    """
    rng: Any = np.random.default_rng(seed)
    rng = _OrthogonalDraws(rng) if orthogonal else rng

    def of_part(part: Covariance, size: int) -> FeatureExpansion:
        drawn = part.spectral_draws(max(1, size // 2), d, rng)
        root = np.sqrt(drawn.weights)

        def forward(X: Array) -> tuple[Array, Callable[[Array], Gradient]]:
            Phi, pull_waves = _waves(X @ drawn.omega.T, root)

            def pull(G: Array) -> Gradient:
                by_A, by_root = pull_waves(G)
                by_weights = 0.5 * by_root / np.where(root > 0.0, root, np.inf)
                return drawn.pull(by_A.T @ X, by_weights)

            return Phi, pull

        return FeatureExpansion(2 * len(root), forward)

    return _expanded(covariance, size, of_part)


def fastfood_features(covariance: Covariance, size: int, d: int, seed: int = 0) -> FeatureExpansion:
    """Return about `size` cosines and sines at structured random frequencies, in time size log d a row; RBF and Matern."""
    rng = np.random.default_rng(seed)

    def of_part(part: Covariance, size: int) -> FeatureExpansion:
        leaf, variances = part, []
        while isinstance(leaf, Scaled):
            variances.append(leaf)
            leaf = leaf.parts[0]
        if not isinstance(leaf, RBF | Matern):
            raise InvalidArgument(
                f"fastfood is for RBF, Matern, their multiples and sums, not {leaf!r}; take method='fourier'"
            )
        columns = list(range(d) if leaf.columns is None else leaf.columns)
        turn = Fastfood(len(columns), max(1, size // 2), rng)
        slower = np.ones(turn.size)
        if isinstance(leaf, Matern):  # Student's law in place of the normal one
            nu = leaf.degree + 0.5
            slower = 1.0 / np.sqrt(rng.gamma(nu, 1.0 / nu, turn.size))
        length = one_or_each(leaf, "length", np.empty((0, len(columns))))
        variance = np.prod([scaled.number("variance") for scaled in variances])
        root = np.full(turn.size, np.sqrt(variance / turn.size))

        def forward(X: Array) -> tuple[Array, Callable[[Array], Gradient]]:
            rows = X[:, columns] / length
            Phi, pull_waves = _waves(turn.product(rows) * slower, root)

            def pull(G: Array) -> Gradient:
                by_A, by_root = pull_waves(G)
                by_log = 0.5 * by_root @ root
                found = [
                    s.pulled(variance=partial(np.divide, by_log, s.number("variance"))) for s in variances
                ]
                by_length = -(turn.transposed(by_A * slower) * rows).sum(axis=0) / length
                own = leaf.pulled(length=lambda: by_length if np.ndim(length) else by_length.sum())
                return added([*found, own])

            return Phi, pull

        return FeatureExpansion(2 * turn.size, forward)

    return _expanded(covariance, size, of_part)


def hilbert_features(covariance: Covariance, size: int, centre: Array, half: Array) -> FeatureExpansion:
    """Return about `size` eigenfunctions of the Laplacian on a box, weighted by the spectral density; one to three columns.

    Parameters
    ----------
    covariance
        One that has a spectral density, or a sum of such, each of at most three columns.
    size
        How many functions, those of all parts together.
    centre, half
        The middle of the box and half its width in each column; functions are zero at its ends.
    """

    def of_part(part: Covariance, size: int) -> FeatureExpansion:
        leaf = part
        while leaf.columns is None and isinstance(leaf, Scaled):
            leaf = leaf.parts[0]
        columns = list(range(len(centre)) if leaf.columns is None else leaf.columns)
        if len(columns) > 3:
            raise InvalidArgument(
                f"a Hilbert-space expansion is for one to three columns, and {leaf!r} looks at {len(columns)}; take "
                "method='fourier' or 'sgpr', or add covariances of few columns each"
            )
        each = max(1, round(size ** (1.0 / len(columns))))
        mid, wide = centre[columns], half[columns]
        omega = np.stack(np.meshgrid(*[np.arange(1, each + 1)] * len(columns), indexing="ij"), -1).reshape(
            -1, len(columns)
        )
        density, pull_density = part.spectral_forward(0.5 * pi * omega / wide)
        root = np.sqrt(density)

        def forward(X: Array) -> tuple[Array, Callable[[Array], Gradient]]:
            rows = (X[:, columns] - mid) / wide
            if np.abs(rows).max(initial=0.0) > 1.0:
                raise InvalidArgument(
                    "inputs lie outside the box of a Hilbert-space expansion; fit with a larger boundary="
                )
            values: Any = 1.0
            for j in range(len(columns)):
                angles = 0.5 * pi * np.outer(rows[:, j] + 1.0, np.arange(1, each + 1))
                waves = np.sin(angles) / np.sqrt(wide[j])
                values = waves[:, omega[:, j] - 1] * values
            by_root = 0.5 / np.where(root > 0.0, root, np.inf)
            return values * root, lambda G: pull_density(by_root * np.einsum("ij,ij->j", G, values))

        return FeatureExpansion(len(omega), forward)

    return _expanded(covariance, size, of_part)


def prior_draws(covariance: Covariance, n: int, rng: np.random.Generator) -> Callable[[Array], Array]:
    """Return n functions drawn from a process without data, made of random features: from inputs to functions by inputs.

    Examples
    --------
    >>> import markovia as mk
    >>> drawn = prior_draws(mk.covariances.RBF(1.0), 2, np.random.default_rng(0))
    >>> x = np.array([[0.0], [0.001]])
    >>> drawn(x).shape, bool(np.allclose(*drawn(x).T, atol=0.01)), bool((drawn(x) == drawn(x)).all())
    ((2, 2), True, True)
    """
    seed, made = int(rng.integers(2**31)), {}
    noise = rng.spawn(1)[0]

    def functions(X: Array) -> Array:
        d = X.shape[1]
        if d not in made:
            expansion = fourier_features(covariance, FEATURES, d, seed)
            made[d] = expansion, noise.standard_normal((expansion.size, n))
        expansion, weights = made[d]
        return np.asarray((expansion.features(X) @ weights).T)

    return functions


def _expanded(covariance: Covariance, size: int, of_part: Expand) -> FeatureExpansion:
    """Return the functions of the parts of a sum side by side; a constant is one function."""
    if not isinstance(covariance, Sum):
        return _constant(covariance) if isinstance(covariance, Constant) else of_part(covariance, size)
    constants = [part for part in covariance.parts if isinstance(part, Constant)]
    others = len(covariance.parts) - len(constants)
    each = (size - len(constants)) // max(1, others)
    parts = [_constant(p) if isinstance(p, Constant) else of_part(p, max(1, each)) for p in covariance.parts]
    ends = np.cumsum([0, *(part.size for part in parts)])

    def forward(X: Array) -> tuple[Array, Callable[[Array], Gradient]]:
        found = [part.forward(X) for part in parts]

        def pull(G: Array) -> Gradient:
            return added(p(G[:, ends[i] : ends[i + 1]]) for i, (_, p) in enumerate(found))

        return np.concatenate([Phi for Phi, _ in found], axis=1), pull

    return FeatureExpansion(int(ends[-1]), forward)


def _constant(part: Covariance) -> FeatureExpansion:
    root = np.sqrt(part.number("variance"))
    pull: Callable[[Array], Gradient] = lambda G: part.pulled(variance=lambda: 0.5 * G.sum() / root)  # noqa: E731
    return FeatureExpansion(1, lambda X: (np.full((len(X), 1), root), pull))


def _waves(A: Array, root: Array) -> tuple[Array, Callable[[Array], tuple[Array, Array]]]:
    """Return cosines and sines of angles times a root of weights, and their adjoint by angles and roots."""
    m = len(root)
    waves = np.empty((len(A), 2 * m))
    np.cos(A, out=waves[:, :m])
    np.sin(A, out=waves[:, m:])

    def pull(G: Array) -> tuple[Array, Array]:
        cos, sin = waves[:, :m], waves[:, m:]
        by_A = (G[:, m:] * cos - G[:, :m] * sin) * root
        return by_A, np.einsum("ij,ij->j", G[:, :m], cos) + np.einsum("ij,ij->j", G[:, m:], sin)

    return waves * np.concatenate([root, root]), pull


class _OrthogonalDraws:
    """A generator whose rows of normal numbers are orthogonal in groups, with lengths as independent ones have."""

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng

    def __getattr__(self, name: str) -> Any:
        return getattr(self._rng, name)

    def standard_normal(self, size: Sequence[int]) -> Array:
        """Return n rows of d numbers."""
        n, d = size
        groups = -(-n // d)
        Q, R = np.linalg.qr(self._rng.standard_normal((groups, d, d)))
        Q *= np.sign(np.einsum("gii->gi", R))[:, None, :]  # uniform over rotations
        lengths = np.sqrt(self._rng.chisquare(d, groups * d))
        return np.asarray((Q.reshape(-1, d) * lengths[:, None])[:n])


class Fastfood:
    """A random matrix of about normal numbers that is multiplied in m log d steps: blocks of S H G P H B.

    B has signs, P is a permutation, G normal numbers, and S gives rows the lengths of normal ones; H is the Hadamard matrix.
    """

    def __init__(self, d: int, size: int, rng: np.random.Generator) -> None:
        self.d, self.size = d, size
        wide = self.wide = 1 << max(0, (d - 1).bit_length())
        blocks = -(-size // wide)
        self.signs = rng.choice([-1.0, 1.0], (blocks, wide))
        self.order = np.argsort(rng.random((blocks, wide)), axis=1)
        self.normal = rng.standard_normal((blocks, wide))
        lengths = np.sqrt(rng.chisquare(wide, (blocks, wide)))
        self.stretch = lengths / np.linalg.norm(self.normal, axis=1, keepdims=True) / np.sqrt(wide)

    def product(self, X: Array) -> Array:
        """Return X times the transposed matrix, rows by `size`."""
        padded = np.zeros((len(X), 1, self.wide))
        padded[:, 0, : self.d] = X
        first = hadamard(padded * self.signs)
        mixed = np.take_along_axis(first, self.order[None], axis=2) * self.normal
        return np.asarray((hadamard(mixed) * self.stretch).reshape(len(X), -1)[:, : self.size])

    def transposed(self, G: Array) -> Array:
        """Return G times the matrix, rows by columns."""
        blocks = np.zeros((len(G), self.signs.size))
        blocks[:, : self.size] = G
        mixed = hadamard(blocks.reshape(len(G), *self.signs.shape) * self.stretch) * self.normal
        back = np.argsort(self.order, axis=1)
        return np.asarray(
            (hadamard(np.take_along_axis(mixed, back[None], axis=2)) * self.signs).sum(axis=1)[:, : self.d]
        )


def hadamard(A: Array) -> Array:
    """Return A times the Hadamard matrix along its last axis, a power of two long.

    Examples
    --------
    >>> hadamard(np.array([1.0, 0.0, 0.0, 2.0])).tolist()
    [3.0, -1.0, -1.0, 3.0]
    """
    shape, half = A.shape, 1
    while half < shape[-1]:
        pairs = A.reshape(*shape[:-1], -1, 2, half)
        A = np.stack(
            [pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]], axis=-2
        ).reshape(shape)
        half *= 2
    return A
