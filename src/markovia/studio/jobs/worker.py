"""The process of a job: reads its order from standard input, works, and reports on standard output, a line of JSON each."""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from markovia.errors import MarkoviaError
from markovia.runtime import progress, registry
from markovia.studio.documents.wording import in_page_words

OFTEN = 0.1
"""Seconds between two reports of progress."""

Work = Callable[..., Any]
"""`work(report, folder=..., **arguments) -> result`: plain values that JSON can hold; files go into the folder."""


class JobReport:
    """What a job says while it works; safe to call from any thread."""

    def __init__(self, out: BinaryIO) -> None:
        self._out, self._lock, self._last = out, threading.Lock(), 0.0

    def send(self, *message: Any) -> None:
        """Send a message to the server."""
        line = msgspec.json.encode(message) + b"\n"
        with self._lock:
            self._out.write(line)
            self._out.flush()

    def note(self, text: str, share: float | None = None) -> None:
        """Say what is done now, and which share of the work is done where that is known."""
        self.send("progress", share, text)

    def show(self, result: Any) -> None:
        """Hand over what was found so far."""
        self.send("so far", result)

    def heard(
        self, done: float, total: float | None, unit: str, note: str, value: float | None = None
    ) -> None:
        """Take the progress of library code; see `progress.listening`."""
        now = time.monotonic()
        if now - self._last < OFTEN and done != total and unit:
            return
        self._last = now
        share = min(1.0, done / total) if total and unit else None
        many = unit.strip() if unit.endswith("s") else f"{unit}s"
        counted = f"{done:,.0f} of {total:,.0f} {many}" if total else f"{done:,.0f} {many}"
        said = [part for part in (counted if unit and done else "", note) if part]
        self.note("; ".join(said) or "working", share)


def main() -> None:
    """Do the work of one job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which ends its jobs
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what library code prints is not part of the report
    order = msgspec.json.decode(sys.stdin.buffer.readline())
    threading.Thread(target=_end_with_server, daemon=True).start()
    sys.path[:] = order["path"]
    report, folder = JobReport(out), Path(order["folder"])
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always", UserWarning)
        try:
            report.note("loading the library")
            work: Work = registry.resolve(order["home"])
            with progress.listening(report.heard):
                result = work(report, folder=folder, **order["arguments"])
            files = sorted(p.name for p in folder.iterdir() if p.is_file())
            report.send("done", result, _told(heard), files[0] if files else None)
        except MarkoviaError as error:
            report.send("failed", in_page_words(str(error)), _told(heard))
        except MemoryError:
            report.send("failed", "there is not enough memory for this", _told(heard))
        except Exception as error:
            report.send(
                "failed", f"{type(error).__name__}: {str(error).strip().splitlines()[0]}", _told(heard)
            )
    out.close()
    os._exit(0)  # without waiting for threads of libraries


def _told(heard: Any) -> list[str]:
    """Return the warnings of markovia, each once."""
    told = (in_page_words(str(w.message)) for w in heard if w.category.__module__ == "markovia.errors")
    return list(dict.fromkeys(told))


def _end_with_server() -> None:
    """Wait for the end of the input, which is the end of the server, and end this process."""
    while sys.stdin.buffer.read(1024):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
