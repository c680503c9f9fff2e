"""When work stops: at its end, at a time limit, or at Ctrl-C; in each case it keeps the best it has.

All time is read off one clock, `now`, which stands still while code is compiled or loaded: the same question gets the same
time on a first run as on any other.

The first Ctrl-C only raises a flag that the search looks at between its steps, so that nothing is left half done; a second
one interrupts as usual. Clocks nest: a search inside another one also stops when the outer one must.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from markovia.runtime.checks import SECONDS, check
from markovia.runtime.progress import progress_bar

_local = threading.local()
"""The clocks that are open in each thread, the innermost last."""
_guard: "list[Clock]" = []
"""The outermost clock of the main thread, which gets Ctrl-C; empty where there is none."""


_still = (0, 0.0, 0.0)
"""How often the clock was stopped, since when it stands, and how long it has stood before; replaced as a whole, so that
reading it takes no lock, which an interrupt might leave closed."""
_standing = threading.Lock()


def now() -> float:
    """Return the seconds on a clock that stands still while code is compiled or loaded.

    Examples
    --------
    >>> start = now()
    >>> with standing_still():
    ...     pass  # whatever happens here takes no time
    >>> now() - start < 0.1
    True
    """
    stops, since, stood = _still
    return (since if stops else perf_counter()) - stood


class Stopwatch:
    """How long some work has taken since this was made, and how long code was compiled or loaded meanwhile.

    Examples
    --------
    >>> watch = Stopwatch()
    >>> watch.seconds >= 0.0, watch.compile_seconds
    (True, 0.0)
    """

    __slots__ = ("_start", "_stood")

    def __init__(self) -> None:
        self._start, self._stood = now(), _stood()

    @property
    def seconds(self) -> float:
        """Seconds of work, without those of compiling."""
        return now() - self._start

    @property
    def compile_seconds(self) -> float:
        """Seconds in which the clock stood still."""
        return _stood() - self._stood


def _stood() -> float:
    """Return how long the clock has stood still altogether."""
    stops, since, stood = _still
    return stood + (perf_counter() - since if stops else 0.0)


def stand_still() -> None:
    """Stop the clock until `go_on` is called as often as this."""
    global _still
    with _standing:
        stops, since, stood = _still
        _still = (stops + 1, since if stops else perf_counter(), stood)


def go_on() -> None:
    """Let the clock go on; a clock that goes is left alone."""
    global _still
    with _standing:
        stops, since, stood = _still
        if stops:  # whoever listens from the middle of a compilation on hears only its end
            _still = (stops - 1, since, stood if stops > 1 else stood + perf_counter() - since)


def _go_on_in_a_child() -> None:
    """Start anew: a forked process has none of the threads that were compiling."""
    global _still, _standing
    stops, since, stood = _still
    _still, _standing = (0, since, stood + perf_counter() - since if stops else stood), threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_go_on_in_a_child)


@contextmanager
def standing_still() -> Iterator[None]:
    """Stop the clock for as long as this is open."""
    stand_still()
    try:
        yield
    finally:
        go_on()


class Clock:
    """A progress bar, a time limit and Ctrl-C, in one object that searches ask `over()`.

    Parameters
    ----------
    time_limit
        Seconds, or None.
    progress
        Whether to show a bar; None shows one on a terminal once it takes long.
    total, unit
        How many steps there are, where that is known, and what one is called.
    scale, name
        Whether the bar shortens large numbers to k and M, and who works.
    start
        When the work began, by `now()`; by default now.

    Attributes
    ----------
    reason
        None, "time limit" or "interrupted", once `over()` was asked.

    Examples
    --------
    >>> with Clock(time_limit=60.0, progress=False) as clock:
    ...     for step in range(3):
    ...         if clock.over():
    ...             break
    ...         clock.advance()
    >>> clock.reason is None
    True
    """

    def __init__(
        self,
        time_limit: float | None = None,
        progress: bool | None = None,
        *,
        total: int | None = None,
        unit: str = "step",
        scale: bool = False,
        name: str = "",
        start: float | None = None,
    ) -> None:
        check("time_limit", time_limit, SECONDS)
        self.time_limit = time_limit
        self.progress = progress
        self.reason: str | None = None
        self.start = now() if start is None else start
        self._bar: AbstractContextManager[Any] = progress_bar(
            progress, total, unit=unit, scale=scale, name=name
        )
        self._advance: Any = lambda n=1, note="", value=None: None
        self._outer: Clock | None = None
        self._guards: list[Clock] = []
        self._previous: Any = None
        self._handling = False
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return now() - self.start

    @property
    def left(self) -> float:
        """Seconds until the time limit, or the one of a search around this; infinite without one."""
        own = float("inf") if self.time_limit is None else max(0.0, self.time_limit - self.seconds)
        return own if self._outer is None else min(own, self._outer.left)

    def advance(self, n: int = 1, note: str = "", value: float | None = None) -> None:
        """Count steps on the bar, with a word behind it and the objective that was reached."""
        self._advance(n, note, value)

    def over(self) -> bool:
        """Say whether the search must stop now; `reason` then says why."""
        if self._interrupted or any(guard._interrupted for guard in self._guards):
            self.reason = "interrupted"
        elif self.reason is None and self.time_limit is not None and self.seconds >= self.time_limit:
            self.reason = "time limit"
        elif self.reason is None and self._outer is not None and self._outer.over():
            self.reason = self._outer.reason
        return self.reason is not None

    def __enter__(self) -> Self:
        self._advance = self._bar.__enter__()
        opened = _opened()
        self._outer = opened[-1] if opened else None
        if threading.current_thread() is threading.main_thread() and not _guard:
            self._previous = signal.getsignal(signal.SIGINT)
            # a program that ignores Ctrl-C, or whose handler is not Python's, keeps its way
            if self._previous not in (None, signal.SIG_IGN):
                signal.signal(signal.SIGINT, self._on_interrupt)
                self._handling = True
                _guard.append(self)
        self._guards = list(_guard)
        opened.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _opened().remove(self)
        if kind is not None:
            self._interrupted = True  # threads that still work for it stop too
        if self._handling:
            signal.signal(signal.SIGINT, self._previous)
            self._handling = False
            _guard.remove(self)
        self._bar.__exit__(kind, error, trace)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True


def _opened() -> list[Clock]:
    found: list[Clock] | None = getattr(_local, "clocks", None)
    if found is None:
        found = _local.clocks = []
    return found
