"""The loops of a product of tables: as few axes as its strides allow, and a cache of what machines work out from them.

Two neighbouring axes are one where, for each input, a step along the slower is as long as all steps along the faster. The
order in which the removed axes are gone through does not matter, so they are first sorted by how far the largest input
steps along them.
"""

from collections.abc import Callable
from math import prod
from typing import Generic, NamedTuple, TypeVar
from weakref import ref

from markovia.inference.sliced.product_layout import ProductLayout

T = TypeVar("T")


class Axis(NamedTuple):
    """An axis: its length, and the stride of each input along it."""

    length: int
    strides: tuple[int, ...]


class Loops(NamedTuple):
    """The merged axes of a product, the last of each being the fastest."""

    kept: list[Axis]
    removed: list[Axis]


def loops_of(layout: ProductLayout) -> Loops:
    """Return the axes of a product, merged.

    Examples
    --------
    >>> loops_of(ProductLayout((2, 3), (2, 4), ((24, 8, 1, 2), (3, 1, 0, 0))))
    Loops(kept=[Axis(length=6, strides=(8, 1))], removed=[Axis(length=8, strides=(1, 0))])
    """
    lengths = layout.kept + layout.removed
    along = list(zip(*layout.strides, strict=True)) if layout.strides else [()] * len(lengths)
    axes = [Axis(n, steps) for n, steps in zip(lengths, along, strict=True)]
    kept, removed = axes[: len(layout.kept)], axes[len(layout.kept) :]
    if len(removed) > 1 and layout.strides:
        sizes = [prod(n for n, s in zip(lengths, steps, strict=True) if s) for steps in layout.strides]
        order = sorted(range(len(sizes)), key=sizes.__getitem__, reverse=True)
        removed.sort(key=lambda axis: [axis.strides[i] for i in order], reverse=True)
    return Loops(merged(kept), merged(removed))


def merged(axes: list[Axis]) -> list[Axis]:
    """Merge neighbouring axes that can be gone through as one, and leave those of length one out."""
    result: list[Axis] = []
    for axis in axes:
        if axis.length == 1:
            continue
        if result and all(
            far == near * axis.length for far, near in zip(result[-1].strides, axis.strides, strict=True)
        ):
            result[-1] = Axis(result[-1].length * axis.length, axis.strides)
        else:
            result.append(axis)
    return result


class PlanCache(Generic[T]):
    """What was worked out from layouts, for as long as they live.

    Examples
    --------
    >>> layout, cache = ProductLayout((2,), (), ((1,),)), PlanCache(lambda layout: layout.size)
    >>> cache(layout), len(cache)
    (2, 1)
    >>> del layout
    >>> len(cache)
    0
    """

    def __init__(self, make: Callable[[ProductLayout], T]) -> None:
        self._make = make
        # by identity: to hash a layout takes as long as a small product
        self._plans: dict[int, tuple[ref[ProductLayout], T]] = {}

    def __call__(self, layout: ProductLayout) -> T:
        """Return what is known of a layout."""
        found = self._plans.get(id(layout))
        if found is None:
            key, plans = id(layout), self._plans
            found = plans[key] = (ref(layout, lambda _: plans.pop(key, None)), self._make(layout))
        return found[1]

    def __len__(self) -> int:
        return len(self._plans)
