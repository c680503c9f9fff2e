"""Work for jobs in tests; a job's process imports it from here."""

import os
import signal
import time
import warnings
from pathlib import Path
from typing import Any

from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.runtime.progress import progress_bar
from markovia.studio.jobs.worker import JobReport


def count(report: JobReport, folder: Path, to: int, pause: float = 0.0) -> dict[str, Any]:
    """Count, with a progress bar as library code has it."""
    with progress_bar(None, to, unit="step") as advance:
        for i in range(to):
            time.sleep(pause)
            advance(1, f"at {i}")
    return {"counted": to, "process": os.getpid()}


def write_file(report: JobReport, folder: Path, text: str) -> None:
    """Leave a file."""
    (folder / "answers.csv").write_text(text, encoding="utf-8")


def fail(report: JobReport, folder: Path, how: str) -> None:
    """End in some bad way."""
    if how == "sentence":
        raise InvalidArgument("the level is between 0 and 1, not 3")
    if how == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "exit":
        os._exit(7)
    raise ZeroDivisionError("a bug")


def warn(report: JobReport, folder: Path) -> None:
    """Warn twice of the same, and of something that is not markovia's."""
    for _ in range(2):
        warnings.warn("it did not settle", ConvergenceWarning, stacklevel=1)
    warnings.warn("from elsewhere", UserWarning, stacklevel=1)


def show(report: JobReport, folder: Path) -> str:
    """Show a part of the result, then wait to be ended."""
    report.show({"draws": [1, 2]})
    time.sleep(60)
    return "all"
