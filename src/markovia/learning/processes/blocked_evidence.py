"""The exact log evidence by a Cholesky factor in square blocks, on a GPU where there is one: 4 n^2 bytes, in 64 bits.

Blocks of the covariance matrix are computed when their turn comes and turned into blocks of the factor (left-looking;
Golub and Van Loan 2013, section 4.2.5). Blocks of the inverse that the gradient needs are solved for one column of blocks
at a time, pulled back to the numbers of the covariance, and forgotten. So the lower half of one matrix is all that is
held: 10 GB for 50,000 rows. Cost: n^3 / 3 for a value, n^3 more for the gradient, nearly all of it products of blocks.
Below some thousand rows `exact_evidence.py` is quicker, and compiles nothing.
"""

# ruff: noqa: N803, N806 (letters of the literature)

from typing import Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, TooLarge
from markovia.factors.covariances.algebra import added
from markovia.factors.covariances.covariance import Covariance
from markovia.inference.result import Info
from markovia.learning.processes.evidence_method import (
    Gradient,
    density,
    function_and_noise,
    rows_and_targets,
    with_noise,
)
from markovia.learning.processes.iterative_evidence import block_programs
from markovia.learning.processes.solved_function import SolvedFunction
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.memory_budget import default_budget, readable

BLOCK = 2_048
"""Rows of a block."""


class BlockedEvidence:
    """Exact values from the blocks of a Cholesky factor, for tens of thousands of rows.

    Parameters
    ----------
    X, y
        Rows of inputs, and targets without their mean.
    block
        Rows of a block.

    Examples
    --------
    >>> import markovia as mk
    >>> method = BlockedEvidence([[0.0], [0.5], [2.0]], [1.0, 0.2, -0.7], block=2)
    >>> round(method.evidence(mk.covariances.RBF(1.0) + mk.covariances.White(0.1))[0], 10)
    -3.3602643363
    """

    name: ClassVar[str] = "blocked"
    exact: ClassVar[bool] = True

    def __init__(self, X: Any, y: Any, *, block: int = BLOCK) -> None:
        self.X, self.y = rows_and_targets(X, y)
        if isinstance(block, bool) or int(block) != block or block < 1:
            raise InvalidArgument(f"block= is how many rows a block has, 1 or more, not {block!r}")
        self.block = min(int(block), len(self.y))
        needed, free = 4.0 * len(self.y) ** 2 + 32.0 * self.block * len(self.y), _free()
        if needed > free:
            raise TooLarge(
                f"a factor of {len(self.y):,} rows takes about {readable(needed)}, and {readable(free)} are free; take "
                "fewer rows, or method='cg', 'svgp' or 'sgpr'", bytes=needed
            )  # fmt: skip

    def evidence(self, covariance: Covariance) -> tuple[float, Gradient]:
        """Return the log evidence and its gradient by the free numbers of the covariance."""
        rest, noise, variance = function_and_noise(covariance, self.name)
        with x64():
            made = BlockedFactor(rest, variance, self.X, self.block)
            alpha = made.solve(self.y[:, None])
            value = density(self.y, alpha[:, 0], made.logdet)
            if not covariance.free():
                return value, {}
            slopes, by_noise = made.pull(alpha)
        return value, with_noise(slopes, noise, by_noise)

    def posterior(self, covariance: Covariance) -> SolvedFunction:
        """Return the posterior of the function without the noise."""
        rest, _, variance = function_and_noise(covariance, self.name)
        with x64():
            made = BlockedFactor(rest, variance, self.X, self.block)
        alpha = made.solve(self.y[:, None])[:, 0]
        info = Info(self.name, exact=True, log_evidence=density(self.y, alpha, made.logdet))
        return SolvedFunction(self.X, self.y, rest, variance, made.solve, info, alpha)


class BlockedFactor:
    """The lower Cholesky factor of K + noise as blocks: `blocks[i][j]` for j <= i.

    Rows that fill up the last block are independent of all others, with variance one.
    """

    def __init__(self, covariance: Covariance, noise: float, X: Array, block: int) -> None:
        self.covariance, self.n, self.block = covariance, len(X), block
        self._programs, self._ops = block_programs(covariance), _operations()
        self._values = {name: jnp.asarray(hyper.value) for name, hyper in covariance.hypers().items()}
        short = -len(X) % block
        rows = np.concatenate([X, np.broadcast_to(X[-1:], (short, X.shape[1]))]).reshape(
            -1, block, X.shape[1]
        )
        self._rows = [jnp.asarray(part) for part in rows]
        there = (np.arange(len(X) + short) < len(X)).reshape(-1, block).astype(np.float64)
        self._there = [jnp.asarray(part) for part in there]
        self.blocks: list[list[Any]] = [[] for _ in rows]
        ops = self._ops
        for j in range(len(rows)):
            for i in range(j, len(rows)):
                K = self._programs.block(self._values, self._rows[i], self._rows[j])
                K = ops.masked(K, self._there[i], self._there[j], noise if i == j else 0.0, i == j)
                for A, B in zip(self.blocks[i][:j], self.blocks[j][:j], strict=True):
                    K = ops.less(K, A, B)
                self.blocks[i].append(ops.factor(K) if i == j else ops.right(self.blocks[j][j], K))
        diagonal = np.concatenate([np.asarray(jnp.diagonal(row[-1])) for row in self.blocks])
        if not np.isfinite(diagonal).all():
            raise np.linalg.LinAlgError("the covariance matrix is not positive definite")
        self.logdet = float(2.0 * np.log(diagonal).sum())

    def solve(self, V: Array) -> Array:
        """Return the solutions for columns."""
        with x64():
            padded = np.pad(V, ((0, -len(V) % self.block), (0, 0))).reshape(len(self.blocks), self.block, -1)
            found = self._back(self._forth([jnp.asarray(part) for part in padded], 0), 0)
            return np.concatenate([np.asarray(part) for part in found])[: self.n]

    def _forth(self, parts: list[Any], first: int) -> list[Any]:
        """Solve with the factor, from some block on; parts before it are zero."""
        ops, done = self._ops, list[Any]()
        for i, part in enumerate(parts, first):
            for k, known in enumerate(done, first):
                part = ops.less_product(part, self.blocks[i][k], known)
            done.append(ops.lower(self.blocks[i][i], part))
        return done

    def _back(self, parts: list[Any], first: int) -> list[Any]:
        """Solve with the transposed factor, for the blocks from some one on."""
        ops, found = self._ops, list(parts)
        for i in range(len(self.blocks) - 1, first - 1, -1):
            part = found[i - first]
            for k in range(i + 1, len(self.blocks)):
                part = ops.less_turned(part, self.blocks[k][i], found[k - first])
            found[i - first] = ops.upper(self.blocks[i][i], part)
        return found

    def pull(self, alpha: Array) -> tuple[Gradient, float]:
        """Return the derivatives of (alpha' K alpha - log|K|) / 2 by the free numbers, and by the noise."""
        b, total = self.block, list[Gradient]()
        by_noise: Any = 0.0
        parts = [jnp.asarray(p) for p in np.pad(alpha[:, 0], (0, -self.n % b)).reshape(-1, b)]
        free = self.covariance.free()
        for j in range(len(self.blocks)):
            unit = [jnp.eye(b) if i == j else jnp.zeros((b, b)) for i in range(j, len(self.blocks))]
            inverse = self._back(self._forth(unit, j), j)
            for i, V in enumerate(inverse, j):
                weight = 0.5 if i == j else 1.0  # those above the diagonal are the same
                W = self._ops.weights(V, parts[i], parts[j], self._there[i], self._there[j], weight)
                by = self._programs.pull_block(self._values, self._rows[i], self._rows[j], W)
                total = [added([*total, {(id(h.part), h.name): by[name] for name, h in free.items()}])]
                by_noise = by_noise + jnp.trace(W) if i == j else by_noise
        return {key: np.asarray(slope) for key, slope in total[0].items()}, float(by_noise)


def _free() -> float:
    """Return how many bytes there are where blocks are kept."""
    stats = jax.devices()[0].memory_stats() or {}
    return (
        float(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
        if "bytes_limit" in stats
        else default_budget()
    )


class _Operations:
    """What is compiled for blocks, whatever the covariance."""

    def __init__(self) -> None:
        from jax.scipy.linalg import solve_triangular

        jit = jax.jit
        self.less = jit(lambda K, A, B: K - A @ B.T, donate_argnums=0)
        self.less_product = jit(lambda V, L, Z: V - L @ Z)
        self.less_turned = jit(lambda V, L, Z: V - L.T @ Z)
        self.factor = jit(jnp.linalg.cholesky)
        self.right = jit(lambda L, K: solve_triangular(L, K.T, lower=True).T)
        self.lower = jit(lambda L, V: solve_triangular(L, V, lower=True))
        self.upper = jit(lambda L, V: solve_triangular(L, V, lower=True, trans=1))
        self.masked = jit(self._masked)
        self.weights = jit(lambda V, a, b, here, there, w: w * (jnp.outer(a, b) - V) * jnp.outer(here, there))

    def _masked(self, K: Any, here: Any, there: Any, noise: Any, diagonal: Any) -> Any:
        own = jnp.where(diagonal, noise * here + 1.0 - here, 0.0)
        return K * jnp.outer(here, there) + jnp.diag(own)


_made: list[_Operations] = []


def _operations() -> _Operations:
    if not _made:
        _made.append(_Operations())
    return _made[0]
