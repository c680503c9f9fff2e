"""When a search stops: at its end, at a time limit, or at Ctrl-C; in each case it keeps the best it has.

The first Ctrl-C only raises a flag that the search looks at between its steps, so that nothing is left half done; a second
one interrupts as usual.
"""

import signal
import threading
from contextlib import AbstractContextManager
from time import perf_counter
from types import TracebackType
from typing import Any, Self

from markovia.errors import InvalidArgument
from markovia.progress import progress_bar


class Watch:
    """A progress bar, a time limit and Ctrl-C, in one object that searches ask `over()`.

    Examples
    --------
    >>> with Watch(time_limit=60.0, progress=False) as watch:
    ...     for step in range(3):
    ...         if watch.over():
    ...             break
    ...         watch.advance()
    >>> watch.reason is None
    True
    """

    def __init__(self, time_limit: float | None = None, progress: bool | None = None) -> None:
        if time_limit is not None and not (isinstance(time_limit, int | float) and time_limit > 0):
            raise InvalidArgument(f"time_limit is a number of seconds, more than 0, not {time_limit!r}")
        self.time_limit = time_limit
        self.progress = progress
        self.reason: str | None = None
        self.start = perf_counter()
        self._bar: AbstractContextManager[Any] = progress_bar(progress, unit="step")
        self._advance: Any = lambda n=1, note="": None
        self._previous: Any = None
        self._handling = False
        self._interrupted = False

    @property
    def seconds(self) -> float:
        """Seconds since the search began."""
        return perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds until the time limit; infinite without one."""
        return float("inf") if self.time_limit is None else max(0.0, self.time_limit - self.seconds)

    def advance(self, n: int = 1, note: str = "") -> None:
        """Count steps on the bar."""
        self._advance(n, note)

    def over(self) -> bool:
        """Say whether the search must stop now; `reason` then says why."""
        if self._interrupted:
            self.reason = "interrupted"
        elif self.reason is None and self.time_limit is not None and self.seconds >= self.time_limit:
            self.reason = "time limit"
        return self.reason is not None

    def __enter__(self) -> Self:
        self._advance = self._bar.__enter__()
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.getsignal(signal.SIGINT)
            if self._previous is not None:
                signal.signal(signal.SIGINT, self._on_interrupt)
                self._handling = True
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handling:
            signal.signal(signal.SIGINT, self._previous)
            self._handling = False
        self._bar.__exit__(kind, error, trace)

    def _on_interrupt(self, number: int, frame: Any) -> None:
        if self._interrupted:
            raise KeyboardInterrupt
        self._interrupted = True
