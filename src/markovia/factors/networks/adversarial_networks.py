"""Recipes for networks of adversarial models: critics of bounded slope, and pictures that are drawn from coarse to fine."""

from collections.abc import Sequence
from itertools import pairwise

from markovia.errors import InvalidArgument
from markovia.factors.networks.recipes import ModuleRecipe


def spectral(recipe: ModuleRecipe) -> ModuleRecipe:
    """Return a recipe for a network whose matrices are divided by their largest singular values (Miyato et al. 2018).

    With activations of slope at most one (relu, tanh) its slope is at most about one.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.networks.spectral(mk.networks.mlp(2, "scalar", activation="relu"))
    spectral('mlp', 2, 'scalar', hidden=64, layers=2, activation='relu')
    """
    if not isinstance(recipe, ModuleRecipe):
        raise InvalidArgument(
            f"spectral() takes a recipe such as mk.networks.mlp(2, 'scalar'), not {recipe!r}"
        )
    return ModuleRecipe("spectral", (recipe.name, *recipe.arguments), recipe.settings)


def pyramid_generator(inputs: int, sizes: Sequence[int] = (4, 8), *, hidden: int = 128) -> ModuleRecipe:
    """Return a recipe for a network from vectors to square pictures, as vectors: a coarse one, then details.

    A picture is the one before, with pixels doubled, and what a perceptron adds.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.networks.pyramid_generator(3, (2, 4), hidden=8).build(0)([0.0, 0.0, 0.0]).shape
    (16,)
    """
    return ModuleRecipe("pyramid_generator", (inputs, _doubling(sizes)), (("hidden", hidden),))


def pyramid_critic(extra: int = 0, sizes: Sequence[int] = (4, 8), *, hidden: int = 128) -> ModuleRecipe:
    """Return a recipe for a critic of square pictures, the sum of what perceptrons say of each size.

    `extra` numbers stand in front of the pixels, such as indicators of a class.
    """
    return ModuleRecipe("pyramid_critic", (extra, _doubling(sizes)), (("hidden", hidden),))


def _doubling(sizes: Sequence[int]) -> tuple[int, ...]:
    if not sizes or sizes[0] < 1 or any(b != 2 * a for a, b in pairwise(sizes)):
        raise InvalidArgument(
            f"sizes= of pictures double from one to the next, such as (4, 8), not {sizes!r}"
        )
    return tuple(sizes)
