"""The progress bar of long work: shown where one is asked for, or on a terminal once the work takes long.

`progress=True` always shows it, `False` never, `None` (the default everywhere) on a terminal after `LONG` seconds.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

LONG = 2.0
"""Seconds after which work on a terminal shows a progress bar by itself."""

Advance = Callable[..., object]
"""Called as `advance(n=1, note="", value=None)`: so many more are done, what to write behind the bar, and the objective."""


T = TypeVar("T")

_quiet = 0
"""How many of those who asked for silence are at work, in whatever thread."""
_said: set[str] = set()

Listener = Callable[[float, float | None, str, str, float | None], object]
"""Called as `listener(done, total, unit, note, value)`: so much of so much is done, what to say about it, and what the
objective is now where the work has one."""
_listener: Listener | None = None


@contextmanager
def quietly(progress: bool | None = False) -> Iterator[None]:
    """Say nothing of one's own accord while this is open, where `progress` is False."""
    global _quiet
    silent = progress is False
    _quiet += silent
    try:
        yield
    finally:
        _quiet -= silent


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Tell a function, instead of the terminal, how far the work of this process is; not where progress was declined.

    Examples
    --------
    >>> with listening(lambda done, total, unit, note, value: print(f"{done} of {total}: {note}")):
    ...     with progress_bar(None, 2) as advance:
    ...         advance(1, "half")
    0 of 2:
    1 of 2: half
    """
    global _listener
    before, _listener = _listener, listener
    try:
        yield
    finally:
        _listener = before


def say_once(line: str) -> None:
    """Write a line to a terminal's stderr, the first time in this process; not where progress was declined."""
    if _listener is not None and not _quiet:
        _listener(0, None, "", line, None)
    elif line not in _said and not _quiet and sys.stderr.isatty():
        _said.add(line)
        print(line, file=sys.stderr, flush=True)


def bar_wanted(progress: bool | None) -> bool:
    """Say whether a bar may be shown."""
    return sys.stderr.isatty() if progress is None else progress


@contextmanager
def progress_bar(
    progress: bool | None,
    total: int | None = None,
    *,
    unit: str = "step",
    scale: bool = False,
    name: str = "",
) -> Iterator[Advance]:
    """Give a function that counts what is done.

    Parameters
    ----------
    progress
        Whether to show a bar; None for long work on a terminal.
    total
        How much there is to do, if that is known.
    unit
        What is counted.
    scale
        Whether large numbers are shortened to k and M.
    name
        Who works; written before the bar.

    Examples
    --------
    >>> with progress_bar(False, 3) as advance:
    ...     for _ in range(3):
    ...         advance()
    """
    if _listener is not None and progress is not False:
        yield _told(_listener, total, unit)
        return
    if not bar_wanted(progress):
        with quietly(progress):
            yield lambda n=1, note="", value=None: None
        return
    from tqdm import tqdm

    wait = LONG if progress is None else 0.0
    with tqdm(total=total, unit=unit, unit_scale=scale, delay=wait, desc=name or None) as bar:

        def advance(n: Any = 1, note: str = "", value: float | None = None) -> None:
            if note:
                bar.set_postfix_str(note, refresh=False)
            bar.update(n)

        yield advance


def _told(listener: Listener, total: int | None, unit: str) -> Advance:
    done = 0
    listener(done, total, unit, "", None)

    def advance(n: Any = 1, note: str = "", value: float | None = None) -> None:
        nonlocal done
        done += n
        listener(done, total, unit, note, value)

    return advance


def paced(items: Sequence[T], steps: int, advance: Advance) -> Iterator[T]:
    """Go through items and count so many steps in all, however many items there are and wherever it ends.

    Examples
    --------
    >>> counted = []
    >>> list(paced("abcd", 2, counted.append)), counted
    (['a', 'b', 'c', 'd'], [1, 1])
    """
    done = 0
    try:
        for i, item in enumerate(items, start=1):
            yield item
            due = steps * i // len(items)
            if due > done:
                advance(due - done)
                done = due
    finally:
        if steps > done:
            advance(steps - done)
