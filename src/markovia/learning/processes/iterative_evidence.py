"""Gaussian processes by products alone: conjugate gradients, log determinants by Lanczos quadrature; on a GPU, too.

The targets and random probes are solved for together (Gibbs and MacKay 1997; Gardner and others 2018): y' A^-1 y is exact
to a tolerance, log|A| and its derivatives are estimated by the probes, with a standard error that is said. A partial
Cholesky factor, pivoted, is the preconditioner, and leaves the probes little to find out. Covariances are computed anew
for each product, by blocks of rows in JAX and in 64 bits, so that no matrix of all pairs of rows is ever held (Wang and
others 2019). Cost: rows squared a step, some dozens of steps; a variance at a new input is a solution of its own.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from functools import partial
from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.covariances.algebra import added
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.gaussian.structured_operators import (
    Preconditioner,
    Probed,
    conjugate_gradients,
    probed_solve,
)
from markovia.inference.result import Info
from markovia.learning.processes.evidence_ascent import EvidenceMaximum, maximise_evidence
from markovia.learning.processes.evidence_method import (
    Gradient,
    density,
    function_and_noise,
    rows_and_targets,
    with_noise,
)
from markovia.learning.processes.solved_function import SolvedFunction
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.seeds import Seed, generator

CELLS = {"cpu": 2**20, "gpu": 2**27}
"""Covariances that a block of rows holds, by where they are computed."""

LEAST_RANK, MOST_RANK, PRECONDITIONER = 50, 500, 2**25
"""Columns of a preconditioner where none are said, and numbers that it may hold."""


class ProbedEvidence:
    """What methods share that solve by conjugate gradients and probe log determinants.

    Parameters
    ----------
    X, y
        Rows of inputs, and targets without their mean.
    probes
        How many random columns the log determinant is estimated by; the same for all covariances.
    rank
        Columns of the preconditioner at most; by default 500, and fewer for a hundred thousand rows and more.
    tol, most
        The relative residual of solutions, and steps at most.
    seed
        For the probes.
    """

    name: ClassVar[str] = ""
    exact: ClassVar[bool] = False

    def __init__(
        self,
        X: Any,
        y: Any,
        *,
        probes: int = 16,
        rank: int | None = None,
        tol: float = 1e-4,
        most: int = 400,
        seed: Seed = 0,
    ) -> None:
        self.X, self.y = rows_and_targets(X, y)
        n = len(self.y)
        rank = min(MOST_RANK, max(LEAST_RANK, PRECONDITIONER // n)) if rank is None else rank
        for word, value in (("probes", probes), ("rank", rank), ("most", most)):
            if isinstance(value, bool) or int(value) != value or value < 1:
                raise InvalidArgument(f"{word}= is a whole number, 1 or more, not {value!r}")
        if not 0.0 < tol < 1.0:
            raise InvalidArgument(f"tol= is a relative residual, between 0 and 1, not {tol!r}")
        self.rank, self.tol, self.most = min(int(rank), n), tol, int(most)
        self.probes = generator(seed).standard_normal((n + self.rank, int(probes)))

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        raise NotImplementedError

    def posterior(self, covariance: Covariance) -> SolvedFunction:
        """Return the posterior of the function without the noise."""
        raise NotImplementedError

    def fit(self, covariance: Covariance, **ascent: Any) -> EvidenceMaximum:
        """Return the covariance with fitted numbers: the ascent ends where the noise of the probes begins."""
        return maximise_evidence(
            self, covariance, **{"tol": 1e-3 * np.sqrt(len(self.y)), "flat": 1e-7} | ascent
        )

    def _info(self, found: Probed) -> Info:
        settled = found.residual <= self.tol
        return Info(
            self.name, converged=settled, iterations=found.steps, error=found.residual,
            log_evidence=density(self.y, found.alpha, found.logdet),
            advice="" if settled else "solutions are not there yet: take a larger rank=, most= or noise",
            note=f"log determinant from {self.probes.shape[1]} probes, standard error {found.error:.2g}",
        )  # fmt: skip


class ConjugateGradients(ProbedEvidence):
    """A process with any covariance at many rows, by products with blocks of its matrix.

    Parameters
    ----------
    X, y, probes, rank, tol, most, seed
        As of `ProbedEvidence`.

    Examples
    --------
    >>> import markovia as mk
    >>> X = np.linspace(0.0, 10.0, 400).reshape(-1, 1)
    >>> method = ConjugateGradients(X, np.sin(X[:, 0]))
    >>> post = method.posterior(mk.covariances.RBF(1.0) + mk.covariances.White(0.1))
    >>> post.at([np.pi / 2]).mean().round(2).tolist(), round(post.info.log_evidence)
    ([1.0], 61)
    """

    name: ClassVar[str] = "cg"

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        rest, noise, variance = function_and_noise(covariance, self.name)
        products = BlockProducts(rest, self.X)
        P = self._preconditioner(rest, variance)
        found = self._probed(P, variance, products)
        value = density(self.y, found.alpha, found.logdet)
        if not covariance.free():
            return value, {}
        # alpha alpha' - A^-1, whose derivative is known but for what the preconditioner misses, by columns
        left = 0.5 * np.concatenate([found.alpha[:, None], -found.left, P.C / P.rest], axis=1)
        right = np.concatenate([found.alpha[:, None], found.right, P.C], axis=1)
        by_diagonal = np.full(len(self.y), -0.5 / P.rest)
        slopes = added([products.pull(left, right), rest.forward_diagonal(self.X)[1](by_diagonal)])
        return value, with_noise(slopes, noise, float(np.vdot(left, right) + by_diagonal.sum()))

    def posterior(self, covariance: Covariance) -> SolvedFunction:
        """Return the posterior of the function without the noise."""
        rest, _, variance = function_and_noise(covariance, self.name)
        products = BlockProducts(rest, self.X)
        P = self._preconditioner(rest, variance)
        found = self._probed(P, variance, products)

        def solve(V: Array) -> Array:
            product = partial(products.matvec, noise=variance)
            return conjugate_gradients(product, V, P.solve, self.tol, self.most).solutions

        return SolvedFunction(self.X, self.y, rest, variance, solve, self._info(found), found.alpha)

    def _preconditioner(self, rest: Covariance, variance: float) -> Preconditioner:
        X = self.X
        return Preconditioner(rest.diagonal(X), lambda i: rest.value(X[i : i + 1], X)[0], variance, self.rank)

    def _probed(self, P: Preconditioner, variance: float, products: "BlockProducts") -> Probed:
        return probed_solve(
            partial(products.matvec, noise=variance), P, self.y, self.probes, self.tol, self.most
        )


class BlockProducts:
    """Products of the covariance matrix of rows with columns, and their adjoint, by blocks of rows in JAX.

    Examples
    --------
    >>> import markovia as mk
    >>> k, X = mk.covariances.RBF(mk.Parameter(1.0, support="positive")), np.array([[0.0], [1.0], [3.0]])
    >>> BlockProducts(k, X).matvec(np.ones((3, 1))).ravel().round(6).tolist(), k.value(X).sum(0).round(6).tolist()
    ([1.61764, 1.741866, 1.146444], [1.61764, 1.741866, 1.146444])
    """

    def __init__(self, covariance: Covariance, X: Array) -> None:
        self._programs, self.covariance = block_programs(covariance), covariance
        n, d = X.shape
        step = max(1, min(n, CELLS.get(jax.default_backend(), CELLS["gpu"]) // n))
        padded = np.concatenate([X, np.broadcast_to(X[-1:], (-n % step, d))])
        with x64():
            self.values = {name: jnp.asarray(hyper.value) for name, hyper in covariance.hypers().items()}
            self.X, self.blocks = jnp.asarray(X), jnp.asarray(padded.reshape(-1, step, d))

    def matvec(self, V: Array, noise: float = 0.0) -> Array:
        """Return the product with columns, that with noise on the diagonal added."""
        with x64():
            found = self._programs.matvec(self.values, self.blocks, self.X, jnp.asarray(_padded(V, len(V))))
            return np.asarray(found)[: len(V), : V.shape[1]] + noise * V

    def pull(self, left: Array, right: Array) -> Gradient:
        """Return the derivatives of sum(left * (K right)) by the free numbers of the covariance."""
        blocks, step = self.blocks.shape[:2]
        with x64():
            rows = jnp.asarray(_padded(left, blocks * step)).reshape(blocks, step, -1)
            columns = jnp.asarray(_padded(right, len(right)))
            found = self._programs.pull(self.values, self.blocks, rows, self.X, columns)
        return {(id(h.part), h.name): np.asarray(found[name]) for name, h in self.covariance.free().items()}


def _padded(V: Array, rows: int) -> Array:
    """Return columns with zeros below and beside, so that few shapes are compiled: a power of two of columns."""
    wide = max(8, 1 << (V.shape[1] - 1).bit_length())
    return np.pad(V, ((0, rows - len(V)), (0, wide - V.shape[1])))


class BlockPrograms:
    """What is compiled for covariances of one form, whatever their numbers."""

    def __init__(self, covariance: Covariance) -> None:
        self.covariance, self.form = covariance, form_of(covariance)
        self.matvec, self.pull = jax.jit(self._matvec), jax.jit(jax.grad(self._weighted))
        self.block, self.pull_block = jax.jit(self._block), jax.jit(jax.grad(self._weighted_block))

    def _block(self, values: Any, A: Any, B: Any) -> Any:
        return self.covariance.with_values(values).value(A, B, jnp)

    def _weighted_block(self, values: Any, A: Any, B: Any, W: Any) -> Any:
        return jnp.vdot(W, self._block(values, A, B))

    def _matvec(self, values: Any, blocks: Any, X: Any, V: Any) -> Any:
        return jax.lax.map(lambda A: self._block(values, A, X) @ V, blocks).reshape(-1, V.shape[1])

    def _weighted(self, values: Any, blocks: Any, left: Any, X: Any, right: Any) -> Any:
        @jax.checkpoint  # or the covariances of all blocks would be kept
        def of_block(total: Any, block: Any) -> Any:
            A, U = block
            return total + jnp.vdot(U @ right.T, self._block(values, A, X)), None

        return jax.lax.scan(of_block, 0.0, (blocks, left))[0]


_last: list[BlockPrograms] = []


def block_programs(covariance: Covariance) -> BlockPrograms:
    """Return what is compiled for a covariance: what it was last time, where only numbers are others."""
    if not _last or _last[0].form != form_of(covariance):
        _last[:] = [BlockPrograms(covariance)]
    return _last[0]


def form_of(covariance: Covariance) -> tuple[Any, ...]:
    """Return what a covariance is beside its numbers, to be compared with `==`."""
    own = ("own", "parts")
    return tuple(
        (type(part), *((key, value if isinstance(value, int | str | tuple | None) else id(value))
                       for key, value in sorted(vars(part).items()) if key not in own),
         tuple((name, np.shape(part.number(name))) for name in part.own), len(part.parts))
        for part in covariance.tree()
    )  # fmt: skip
