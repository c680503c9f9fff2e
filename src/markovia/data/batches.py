"""Minibatches of rows wherever they are: arrays, frames, files larger than memory, and functions that yield blocks.

What is in memory is put on the device once, and steps pick their rows there. What is not comes in blocks: a pool of some
blocks is shuffled, half of it goes out in batches, and the next blocks take its place, so that rows are mixed as far as the
pool reaches. A thread reads ahead while the last batches are trained on. The same seed and epoch give the same batches.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from hashlib import sha256
from queue import Empty, Full, Queue
from threading import Event, Thread
from typing import Any

import numpy as np

from markovia.data.tables.data_files import find_files
from markovia.data.tables.distant_rows import is_files
from markovia.data.tables.file_blocks import typed_blocks
from markovia.data.tables.frames import as_frame
from markovia.data.tables.number_columns import column_numbers
from markovia.errors import InvalidArgument, check_known
from markovia.optimise.row_batches import Batch, RowBatches, row_count
from markovia.runtime.array_types import Array
from markovia.runtime.checks import Whole, check
from markovia.runtime.function_descriptions import described

POOL = 100_000
"""Rows that are shuffled together, where they come in blocks."""
AHEAD = 4
"""Batches that are read ahead."""


def batches(
    data: Any, size: int, *, seed: int | None = None, columns: Sequence[str] | None = None, pool: int = POOL
) -> "RowBatches | BlockBatches":
    """Return batches for `Training.run`.

    Parameters
    ----------
    data
        Arrays (a tree with a row each along the first axis), a frame of any library, the path of a CSV or Parquet file (a
        pattern, a list), or a function that returns blocks of rows, trees of arrays, from the beginning each time.
    size
        Rows a batch.
    seed
        What the order of rows is made from; None leaves them in theirs.
    columns
        Columns of a frame or file that are wanted; by default all. Their cells are numbers; NaN is a missing one.
    pool
        Rows that are shuffled together where they come in blocks.

    Returns
    -------
    RowBatches or BlockBatches
        Of frames and files, a batch's rows are a dictionary of columns.

    Examples
    --------
    >>> numbers = batches(lambda: iter([np.arange(3), np.arange(3, 5)]), 2)
    >>> [(b.rows.tolist(), b.weight.tolist()) for b in numbers.epoch(0)]
    [([0, 1], [1.0, 1.0]), ([2, 3], [1.0, 1.0]), ([4, 4], [1.0, 0.0])]
    """
    check("size", size, Whole(1))
    check("pool", pool, Whole(1))
    check("seed", seed, Whole(0, none=True))
    if is_files(data):
        files, _ = find_files(data)
        about = [(file, os.stat(file).st_size, os.stat(file).st_mtime_ns) for file in files]
        read = _FileBlocks(files, None if columns is None else tuple(columns))
        return BlockBatches(read, size, seed, pool, repr((about, columns)))
    if callable(data):
        return BlockBatches(data, size, seed, pool, sha256(described(data)).hexdigest())
    if isinstance(data, Iterator):
        raise InvalidArgument(
            "an iterator can be read once only; give a function that returns a new one each time"
        )
    if hasattr(data, "columns") and not isinstance(data, Mapping):
        data = _numbers(as_frame(data), columns)
    return RowBatches(data, size, seed)


class BlockBatches:
    """Batches of rows that come in blocks; see `batches`."""

    def __init__(
        self, read: Callable[[], Iterable[Any]], size: int, seed: int | None, pool: int, source: str
    ) -> None:
        self._read, self._size, self._seed, self._pool = read, size, seed, pool
        self.digest = sha256(repr((source, size, seed, pool)).encode()).hexdigest()

    def epoch(self, number: int) -> Iterator[Batch]:
        """Return the batches of an epoch; a thread reads ahead."""
        return _ahead(self._batches(number))

    def _batches(self, number: int) -> Iterator[Batch]:
        left: Any = None
        for rows in self._shuffled(number):
            left = rows if left is None else _joined([left, rows])
            n = row_count(left)
            for at in range(0, n - self._size + 1, self._size):
                yield Batch(_at(left, slice(at, at + self._size)), np.ones(self._size))
            left = _at(left, slice(n - n % self._size, n))
        n = 0 if left is None else row_count(left)
        if n:
            # the last row stands in for those that are not there
            full = np.minimum(np.arange(self._size), n - 1)
            yield Batch(_at(left, full), (np.arange(self._size) < n).astype(np.float64))

    def _shuffled(self, number: int) -> Iterator[Any]:
        """Yield rows in parts: as they come, or shuffled within the pool."""
        if self._seed is None:
            yield from self._read()
            return
        rng = np.random.default_rng([self._seed, number])
        held: list[Any] = []
        count = 0
        for block in self._read():
            held.append(block)
            count += row_count(block)
            if count >= self._pool:
                mixed = _at(_joined(held), rng.permutation(count))
                yield _at(mixed, slice(count - count // 2))
                held, count = [_at(mixed, slice(count - count // 2, count))], count // 2
        if count:
            yield _at(_joined(held), rng.permutation(count))


class _FileBlocks:
    """Blocks of files as dictionaries of columns."""

    def __init__(self, files: list[str], columns: tuple[str, ...] | None) -> None:
        self.files, self.columns = files, columns

    def __call__(self) -> Iterator[dict[str, Array]]:
        for block in typed_blocks(self.files):
            yield _numbers(block, self.columns)


def _numbers(frame: Any, columns: Sequence[str] | None) -> dict[str, Array]:
    names = list(frame.columns) if columns is None else list(columns)
    check_known(names, frame.columns, "the data")
    return {str(name): column_numbers(frame[name], str(name)) for name in names}


def _at(tree: Any, index: Any) -> Any:
    import jax

    return jax.tree.map(lambda x: np.asarray(x)[index], tree)


def _joined(trees: list[Any]) -> Any:
    import jax

    return trees[0] if len(trees) == 1 else jax.tree.map(lambda *x: np.concatenate(x), *trees)


def _ahead(items: Iterator[Batch]) -> Iterator[Batch]:
    """Yield items that a thread takes from an iterator, a few ahead; whoever stops asking stops the thread."""
    queue: Queue[tuple[str, Any]] = Queue(AHEAD)
    stopped = Event()

    def put(kind: str, item: Any) -> bool:
        while not stopped.is_set():
            try:
                queue.put((kind, item), timeout=0.1)
                return True
            except Full:
                continue
        return False

    def work() -> None:
        try:
            with closing(items):  # type: ignore[type-var]
                for item in items:
                    if not put("item", item):
                        return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = Thread(target=work, name="markovia-batches", daemon=True)
    thread.start()
    try:
        while True:
            kind, item = queue.get()
            if kind == "error":
                raise item
            if kind == "end":
                return
            yield item
    finally:
        stopped.set()
        while True:  # make room, so that the thread sees that it is over
            try:
                queue.get_nowait()
            except Empty:
                break
        thread.join()
