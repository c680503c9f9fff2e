"""Modules of adversarial models: matrices of norm one, and pyramids of pictures."""

from collections.abc import Sequence
from typing import Any

from markovia.factors.networks.modules import joined, misfit, numbers_of, perceptron
from markovia.factors.networks.recipes import MAKERS
from markovia.runtime.libraries import eqx, jax, jnp
from markovia.runtime.registry import resolve

ITERATIONS = 20
"""Steps of the power iteration: it starts afresh in every call, so that a network has no memory."""


class SpectralNetwork(eqx.Module):
    """A network whose matrices are divided by their largest singular values."""

    network: Any

    def __call__(self, *arguments: Any) -> Any:
        """Return what the network with matrices of norm one says."""
        return jax.tree.map(_of_norm_one, self.network)(*arguments)


def _of_norm_one(leaf: Any) -> Any:
    if not eqx.is_inexact_array_like(leaf) or jnp.ndim(leaf) < 2:
        return leaf
    return leaf / largest_singular_value(jnp.reshape(leaf, (len(leaf), -1)))


def largest_singular_value(matrix: Any) -> Any:
    """Return the largest singular value of a matrix by power iteration; its gradient goes through the vectors' product."""
    still = jax.lax.stop_gradient(jnp.asarray(matrix))

    def unit(v: Any) -> Any:
        return v / (jnp.linalg.norm(v) + 1e-12)

    start = jax.random.normal(jax.random.PRNGKey(0), (still.shape[1],), still.dtype)
    right = jax.lax.fori_loop(0, ITERATIONS, lambda _, v: unit(still.T @ unit(still @ v)), unit(start))
    return unit(still @ right) @ matrix @ right + 1e-12


class PictureGenerator(eqx.Module):
    """Perceptrons that draw a coarse picture, and add details to ever finer ones."""

    blocks: list[Any]
    sizes: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Return a picture as a vector."""
        code = joined(arguments)
        picture = self.blocks[0](code)
        for size, block in zip(self.sizes, self.blocks[1:], strict=False):
            finer = jnp.kron(jnp.reshape(picture, (size, size)), jnp.ones((2, 2)))
            picture = jnp.ravel(finer) + block(code, picture)
        return picture


class PictureCritic(eqx.Module):
    """Perceptrons that each judge a picture at one size."""

    blocks: list[Any]
    sizes: tuple[int, ...] = eqx.field(static=True)
    extra: int = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Return the sum of the judgements, a number."""
        row, size = joined(arguments), self.sizes[-1]
        misfit(
            self, f"a vector of shape ({self.extra + size**2},)", arguments, len(row) == self.extra + size**2
        )
        about, picture = row[: self.extra], jnp.reshape(row[self.extra :], (size, size))
        total = jnp.zeros(())
        for block in reversed(self.blocks):
            total = total + block(about, picture)
            if len(picture) > self.sizes[0]:
                n = len(picture) // 2
                picture = jnp.reshape(picture, (n, 2, n, 2)).mean(axis=(1, 3))
        return total


def grown(new: Any, old: Any) -> Any:
    """Return a pyramid with the blocks of a smaller one, and further ones that add nothing yet."""
    fresh = [_silent(block) for block in new.blocks[len(old.blocks) :]]
    return eqx.tree_at(lambda m: m.blocks, new, [*old.blocks, *fresh])


def _silent(block: Any) -> Any:
    last = block.layers[-1]
    zeros = [jnp.zeros_like(last.weight), jnp.zeros_like(last.bias)]
    return eqx.tree_at(lambda m: [m.layers[-1].weight, m.layers[-1].bias], block, zeros)


def make_spectral(key: Any, name: str, *arguments: Any, **settings: Any) -> SpectralNetwork:
    """Return a network of a recipe with matrices of norm one."""
    return SpectralNetwork(resolve(MAKERS[name])(key, *arguments, **settings))


def make_pyramid_generator(key: Any, inputs: int, sizes: Sequence[int], *, hidden: int) -> PictureGenerator:
    """Return a generator of pictures."""
    below = [inputs, *(inputs + n**2 for n in sizes)]
    blocks = [_block(key, n, seen, n**2, hidden) for seen, n in zip(below, sizes, strict=False)]
    return PictureGenerator(blocks, tuple(sizes))


def make_pyramid_critic(key: Any, extra: int, sizes: Sequence[int], *, hidden: int) -> PictureCritic:
    """Return a critic of pictures."""
    return PictureCritic([_block(key, n, extra + n**2, "scalar", hidden) for n in sizes], tuple(sizes), extra)


def _block(key: Any, n: int, inputs: int, outputs: Any, hidden: int) -> Any:
    return perceptron(numbers_of(key, n), inputs, outputs, hidden, 2, jax.nn.silu)
