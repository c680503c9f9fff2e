"""A few threads for compiled work that lets go of the interpreter lock."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TypeVar

Task = TypeVar("Task")
Room = TypeVar("Room")
T = TypeVar("T")

_pool: ThreadPoolExecutor | None = None


def thread_count() -> int:
    """Return how many threads compiled work may use.

    `MARKOVIA_THREADS` decides, then `OMP_NUM_THREADS`, then the processors this process may run on.
    """
    for name in ("MARKOVIA_THREADS", "OMP_NUM_THREADS"):
        value = os.environ.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(
    work: Callable[[Task, Room], T],
    tasks: Iterable[Task],
    make_room: Callable[[], Room],
    threads: int | None = None,
) -> list[T]:
    """Run `work(task, room)` for every task and return the results in order.

    Each thread makes its own room once and takes the next task when it is done with one; this thread takes part.
    """
    waiting = list(enumerate(tasks))[::-1]
    if len(waiting) < 2:
        return [work(task, make_room()) for _, task in waiting]
    results: list[T | None] = [None] * len(waiting)
    n = min(threads or thread_count(), len(waiting))

    def run() -> None:
        room = make_room()
        while True:
            try:
                i, task = waiting.pop()
            except IndexError:
                return
            results[i] = work(task, room)

    helpers = [_executor().submit(run) for _ in range(n - 1)]
    try:
        run()
    except BaseException:
        waiting.clear()
        raise
    for helper in helpers:
        # one that has not begun has nothing left to do: on a busy machine waiting for it would take longer than the work
        if not helper.cancel():
            helper.result()
    return results  # type: ignore[return-value]


_making = Lock()


def _executor() -> ThreadPoolExecutor:
    global _pool
    with _making:
        if _pool is None:
            _pool = ThreadPoolExecutor(max(1, thread_count() - 1), thread_name_prefix="markovia")
        return _pool


def _forget_pool() -> None:
    global _pool, _making
    _pool = None
    _making = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pool)
