"""How a product of tables is divided between the blocks and lanes of a GPU.

The lanes of a block go along the axes in which the large tables are contiguous: the fastest ones of the largest, until a
warp reads neighbours, then those of the other large ones and of the result, until each of them is gone through in stretches
of 128 bytes; what room is left is filled with more of the result. Such a set of lanes is a tile. Removed axes are in it only
where they are long and come first in memory, or where the result has too few entries to keep a GPU busy; each lane goes
through the rest of them by itself. So every table is read about once, whatever the order of its axes.
"""

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from markovia.inference.sliced.loop_plan import loops_of
from markovia.inference.sliced.product_layout import ProductLayout
from markovia.runtime.array_types import Ints

THREADS = 256
"""Most threads of a block."""
KNOWN = 8
"""Inputs up to which there is a kernel for each number of them."""
WIDE = 1 << 19
"""Entries from which on threads have several lanes."""
WARP, STRETCH = 32, 16
"""Neighbours in which the largest table is gone through, and the other large ones."""
LARGE, SHARE = 1 << 16, 8
"""A table is large that has so many entries, and at least the largest's divided by the second."""
SMALL = THREADS
"""Entries of a result up to which it is not worth looking for a good division, if few are summed."""
SECTOR, SHORT, BUSY = 8, 9, 1 << 15
"""Where the result has at least so many entries as the third says, of a removed axis that comes first in memory so many
positions are in a tile as the first says; axes that are no multiples of it, and not longer than the second, not at all."""
RUN, MIDS = 32, 1 << 12
"""Most removed positions that follow each other by one step, and tiles in the faster array of offsets."""
CHUNK, PARTIAL = 1 << 14, 1 << 22
"""Fewest entries of a chunk, and most numbers of partial results."""


class TileAxis(NamedTuple):
    """An axis, or a part of one: whether it is removed, its length, and the strides of the result and of the inputs."""

    removed: bool
    length: int
    strides: tuple[int, ...]


class DeviceLoops(NamedTuple):
    """A division of a product between blocks and lanes.

    Attributes
    ----------
    order
        The inputs, the one with the fewest entries first. Arrays of offsets have a row for the result, then these.
    wide, threads
        Whether threads have several lanes, and how many threads a block has.
    lanes, along, segments
        Lanes of a tile, how many of them have a common entry of the result, and how many blocks it takes.
    tiles, chunks, run
        How many tiles there are, into how many parts the removed positions are divided, and how many of those follow each
        other by one step.
    low, mid, top, outer, far, step
        The offsets of lanes, of tiles (two parts), of chunks, of removed positions in them, and of one step among those.
    place, entry
        For each lane its entry in the tile, times `along`, plus its number there; for each entry where it is written.
    exchange
        Whether the lanes of an entry are neighbours in a warp; `entry` has every lane then.
    """

    order: list[int]
    wide: bool
    threads: int
    lanes: int
    along: int
    segments: int
    tiles: int
    chunks: int
    run: int
    low: Ints
    mid: Ints
    top: Ints
    outer: Ints
    far: Ints
    step: tuple[int, ...]
    place: Ints
    exchange: bool
    entry: Ints

    @property
    def items(self) -> int:
        """Units of work, each for one block at a time."""
        return self.tiles * self.segments * self.chunks


def lanes_of(inputs: int, wide: bool) -> int:
    """Return the lanes of a thread: as many as its registers hold."""
    return 1 if not wide else 4 if KNOWN // 2 < inputs <= KNOWN else 8


def divide(layout: ProductLayout, processors: int, in_chunks: bool = True) -> DeviceLoops:
    """Divide a product for a GPU with so many multiprocessors.

    Examples
    --------
    >>> found = divide(ProductLayout((2,) * 20, (2,), (tuple(2**k for k in range(20, -1, -1)),)), 132)
    >>> found.lanes, found.tiles, found.run
    (2048, 512, 2)
    """
    if layout.size <= SMALL and layout.entries <= SMALL * RUN:
        return _small(layout)
    axes, order = _axes(layout)
    columns = 1 + len(order)
    touched = [prod(axis.length for axis in axes if axis.strides[t]) for t in range(columns)]
    first = max(range(columns), key=touched.__getitem__)
    wide = layout.entries >= WIDE
    vector = lanes_of(len(order), wide)
    tile, rest = _tile(axes, touched, layout.size >= BUSY, THREADS * vector)
    lanes = prod(axis.length for axis in tile)
    along = prod(axis.length for axis in tile if axis.removed)
    segments = -(-lanes // (THREADS * vector))
    # the fastest last; what the largest table lacks is gone through first, while that is in the cache
    for found in (tile, rest):
        found.sort(key=lambda axis: axis.strides[first], reverse=True)
    kept = [axis for axis in rest if not axis.removed]
    removed = [axis for axis in rest if axis.removed]
    tiles, positions = (prod(axis.length for axis in axes) for axes in (kept, removed))
    blocks, chunks = tiles * segments, 1
    if in_chunks and blocks < 4 * processors:
        most = (
            layout.entries // (CHUNK * blocks),
            PARTIAL // layout.size,
            positions // 8,
            8 * processors // blocks,
        )
        chunks = max(1, min(most))
    outer, inner = _cut(removed, positions // chunks)
    if _size(outer) <= 4 * chunks:  # else an axis cannot be divided like that
        removed = inner
    else:
        outer = []
    far, run = _cut(removed, RUN, whole=False)
    if far and not run:
        far, run = far[:-1], far[-1:]
    kept, mid = _cut(kept, MIDS)
    threads = 32 * -(-lanes // (segments * vector * 32))
    low, place = _lanes(tile, along, columns)
    # the lanes of an entry are neighbours, and in one warp
    exchange = 1 < along <= WARP and WARP % along == 0 and bool((place == np.arange(lanes)).all())
    return DeviceLoops(
        order=order,
        wide=wide,
        threads=threads,
        lanes=lanes,
        along=along,
        segments=segments,
        tiles=tiles,
        chunks=_size(outer),
        run=_size(run),
        low=low,
        mid=offsets(mid, columns),
        top=offsets(kept, columns),
        outer=offsets(outer, columns),
        far=offsets(far, columns),
        step=run[0].strides if run else (0,) * columns,
        place=place,
        exchange=exchange,
        entry=low[0] if exchange else low[0, place % along == 0],
    )


def _small(layout: ProductLayout) -> DeviceLoops:
    """Divide a product of few entries, which there are many of: one block, a lane for each entry of the result."""
    n, split = len(layout.strides), len(layout.kept)
    low, far = (
        np.empty((n + 1, layout.size), dtype=np.int64),
        offsets(_plain_axes(layout, slice(split, None)), n),
    )
    low[0] = range(layout.size)
    touched = [
        prod(m for m, s in zip(layout.kept + layout.removed, along, strict=True) if s)
        for along in layout.strides
    ]
    order = sorted(range(n), key=touched.__getitem__)
    low[1:] = offsets(_plain_axes(layout, slice(split)), n)[order]
    none = np.zeros((n + 1, 1), dtype=np.int64)
    return DeviceLoops(
        order=order,
        wide=False,
        threads=32 * -(-layout.size // 32),
        lanes=layout.size,
        along=1,
        segments=1,
        tiles=1,
        chunks=1,
        run=1,
        low=low,
        mid=none,
        top=none,
        outer=none,
        far=np.concatenate([np.zeros((1, far.shape[1]), dtype=np.int64), far[order]]),
        step=(0,) * (n + 1),
        place=low[0],
        exchange=False,
        entry=low[0],
    )


def _plain_axes(layout: ProductLayout, part: slice) -> list[TileAxis]:
    """Return some of the axes of a layout as they are, with the strides of the inputs alone."""
    strides = [along[part] for along in layout.strides]
    lengths = (layout.kept + layout.removed)[part]
    return [TileAxis(False, n, tuple(s[k] for s in strides)) for k, n in enumerate(lengths) if n > 1]


def joined_first(layout: ProductLayout) -> tuple[list[int], ProductLayout, ProductLayout] | None:
    """Find small inputs to multiply before, where there are more than kernels are made for.

    Returns
    -------
    The inputs, the layout of their product, and that of the rest with this product as the last input; None where there are
    few enough, or the product would not be small.

    Examples
    --------
    >>> inputs, first, rest = joined_first(ProductLayout((2, 3), (4,), ((12, 4, 1),) + 8 * ((1, 0, 0),)))
    >>> inputs, first.kept, len(first.strides), rest.strides
    ([1, 2], (2,), 2, ((12, 4, 1), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0), (1, 0, 0)))
    """
    n, lengths = len(layout.strides), layout.kept + layout.removed
    if n <= KNOWN:
        return None
    order = sorted(
        range(n), key=lambda i: prod(m for m, s in zip(lengths, layout.strides[i], strict=True) if s)
    )
    group = order[: n - KNOWN + 1]
    axes = [a for a in range(len(lengths)) if any(layout.strides[i][a] for i in group)]
    size = prod(lengths[a] for a in axes)
    if size > max(MIDS, layout.entries >> 6):
        return None
    own, step = [0] * len(lengths), size
    for a in axes:
        step //= lengths[a]
        own[a] = step if lengths[a] > 1 else 0
    first = ProductLayout(
        tuple(lengths[a] for a in axes), (), tuple(tuple(layout.strides[i][a] for a in axes) for i in group)
    )
    kept = [layout.strides[i] for i in sorted(order[len(group) :])]
    return group, first, ProductLayout(layout.kept, layout.removed, (*kept, tuple(own)))


def offsets(axes: Sequence[TileAxis], columns: int) -> Ints:
    """Return where tables are at each position along some axes, the last the fastest: a row for each table."""
    found = np.zeros((columns, 1), dtype=np.int64)
    for _, n, strides in axes:
        steps = np.array(strides, dtype=np.int64).reshape(-1, 1) * np.arange(n)
        found = (found[:, :, None] + steps[:, None]).reshape(columns, found.shape[1] * n)
    return found


def _size(axes: Sequence[TileAxis]) -> int:
    return prod(axis.length for axis in axes)


def _axes(layout: ProductLayout) -> tuple[list[TileAxis], list[int]]:
    """Return the merged axes, and the order of the inputs."""
    loops = loops_of(layout)
    merged = [*loops.kept, *loops.removed]
    touched = [prod(axis.length for axis in merged if axis.strides[i]) for i in range(len(layout.strides))]
    order = sorted(range(len(touched)), key=touched.__getitem__)
    axes, written = [], layout.size
    for k, axis in enumerate(merged):
        is_removed = k >= len(loops.kept)
        written = written if is_removed else written // axis.length
        axes.append(
            TileAxis(
                is_removed, axis.length, (0 if is_removed else written, *(axis.strides[i] for i in order))
            )
        )
    return axes, order


def _tile(
    axes: list[TileAxis], touched: Sequence[int], busy: bool, room: int
) -> tuple[list[TileAxis], list[TileAxis]]:
    """Choose the lanes: the parts of axes in the tile, and the rest."""
    tile, rest = list[TileAxis](), list(axes)

    def take(axis: TileAxis, wanted: int) -> None:
        # the part of an axis that steps least
        part = _divisor(axis.length, wanted, room // _size(tile))
        at = rest.index(axis)
        rest[at : at + 1] = _outside(axis, part)
        if part > 1:
            tile.append(axis._replace(length=part))

    largest = sorted(range(len(touched)), key=touched.__getitem__, reverse=True)
    for rank, t in enumerate(largest):
        if rank and (touched[t] < LARGE or touched[t] < touched[largest[0]] // SHARE):
            break
        run, wanted = 1, STRETCH if rank else WARP
        for axis in sorted((a for a in axes if a.strides[t]), key=lambda a: a.strides[t]):
            if run >= wanted:
                break
            inside = [a for a in tile if a.strides == axis.strides and a.removed == axis.removed]
            alone = axis.removed and busy
            if not inside and not (alone and (rank or (axis.length % SECTOR and axis.length <= SHORT))):
                take(axis, SECTOR if alone and axis.length % SECTOR == 0 else -(-wanted // run))
                inside = tile[-1:] if tile and tile[-1].strides == axis.strides else []
            run *= _size(inside)

    def step(axis: TileAxis) -> int:
        return axis.strides[largest[0]] or 1 << 62

    for axis in sorted((a for a in rest if not a.removed), key=step):
        take(axis, room // _size(tile))
    if not busy and _size(tile) <= room // 2:
        # more of what is removed too, but for a run that comes first: each warp goes on in memory where it has been
        removed = sorted((a for a in rest if a.removed), key=step, reverse=True)
        removed, alone_first = _cut(removed, max(1, min(RUN, _size(removed) * _size(tile) // room)))
        rest = [a for a in rest if not a.removed] + removed
        for axis in reversed(removed):
            take(axis, room // _size(tile))
        rest += alone_first
    longest = max((a for a in axes if not a.removed), key=lambda a: a.length, default=None)
    if longest is not None and _size(tile) < WARP <= longest.length:
        # no part of an axis fits in: that axis alone, for several blocks where it is long
        return [longest], [a for a in axes if a != longest]
    return tile, rest


def _divisor(n: int, wanted: int, most: int) -> int:
    """Return the smallest divisor of n that is at least as large as wanted, or the largest that is not too large."""
    if wanted >= n or wanted >= most:
        wanted = min(n, most)
        return next(d for d in range(wanted, 0, -1) if n % d == 0)
    upwards = next((d for d in range(wanted, min(n, most) + 1) if n % d == 0), 0)
    return upwards or next(d for d in range(wanted, 0, -1) if n % d == 0)


def _outside(axis: TileAxis, part: int) -> list[TileAxis]:
    """Return what is left of an axis without its fastest part."""
    n = axis.length // part
    return [axis._replace(length=n, strides=tuple(part * s for s in axis.strides))] if n > 1 else []


def _cut(axes: list[TileAxis], most: int, whole: bool = True) -> tuple[list[TileAxis], list[TileAxis]]:
    """Cut the fastest positions off, as many as allowed, from all the last axes or only from the very last."""
    left, fastest = list(axes), list[TileAxis]()
    while left and (whole or not fastest):
        axis = left.pop()
        part = _divisor(axis.length, most, max(1, most // _size(fastest)))
        left += _outside(axis, part)
        if part > 1:
            fastest.insert(0, axis._replace(length=part))
        if part < axis.length:
            break
    return left, fastest


def _lanes(tile: Sequence[TileAxis], along: int, columns: int) -> tuple[Ints, Ints]:
    """Return where tables are at each lane, and which entry of the tile it belongs to and which of its lanes it is."""
    if along == 1:
        low = offsets(tile, columns)
        return low, np.arange(low.shape[1])
    wider, entry, number = list[TileAxis](), along, 1
    for axis in reversed(tile):
        wider.insert(0, axis._replace(strides=(*axis.strides, number if axis.removed else entry)))
        entry, number = (entry, number * axis.length) if axis.removed else (entry * axis.length, number)
    found = offsets(wider, columns + 1)
    return found[:-1], found[-1]
