"""What the measuring scripts share: medians of repeated runs, and child processes with limits.

A child prints what it finds line by line with `report`; `in_child` puts the lines together, so that what was measured
before a child ran out of memory or time is kept.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeVar

Prepared = TypeVar("Prepared")

LEAST_RUNS = 5
MOST_SECONDS = 20.0
"""After so long no further run is started, be there five or not."""
SLOW = 5.0
"""Seconds from which the first run is not thrown away as a warm-up."""


class Timed(NamedTuple):
    """The median seconds and the number of runs, as they are reported; and what the last run got and returned."""

    record: dict[str, Any]
    prepared: Any
    result: Any


def median_time(
    task: Callable[[Prepared], Any], prepare: Callable[[], Prepared], enough: float = 0.5
) -> Timed:
    """Time a task at least five times and until the runs add up to `enough` seconds, after a warm-up.

    What `prepare` does is not timed, nor is the release of what the task returns. The garbage collector is off while
    the clock runs; between runs longer than a hundredth of a second it collects.
    """
    seconds: list[float] = []
    elapsed = spent = 0.0
    warm = False
    result = None
    while len(seconds) < LEAST_RUNS or spent < enough:
        del result
        prepared = prepare()
        if elapsed > 0.01:
            gc.collect()
        gc.disable()
        start = perf_counter()
        result = task(prepared)
        elapsed = perf_counter() - start
        gc.enable()
        if warm or elapsed > SLOW:
            seconds.append(elapsed)
            spent += elapsed
        warm = True
        if spent > MOST_SECONDS:
            break
    return Timed({"seconds": statistics.median(seconds), "runs": len(seconds)}, prepared, result)


def report(path: Sequence[str], value: Any) -> None:
    """Print one finding of a child process for its parent."""
    print(json.dumps([list(path), value]), flush=True)


def in_child(arguments: Sequence[str], seconds: float, gigabytes: float | None = None) -> dict[str, Any]:
    """Run a script of this folder in a process of its own and return what it reported.

    If the process did not end well, `ended` says why: "memory", "time", or the last line it wrote.
    """
    script, *rest = arguments
    command = [sys.executable, str(Path(__file__).with_name(script)), *rest]
    environment = {**os.environ}
    if gigabytes is not None:
        environment["BENCHMARK_GIGABYTES"] = str(gigabytes)
    found: dict[str, Any] = {}
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=seconds, check=False)
        output, code, errors = done.stdout, done.returncode, done.stderr
    except subprocess.TimeoutExpired as expired:
        output, code, errors = expired.stdout or b"", None, b""
    for line in output.decode().splitlines():
        if not line.startswith("[["):
            continue
        path, value = json.loads(line)
        place = found
        for step in path[:-1]:
            place = place.setdefault(step, {})
        place[path[-1]] = value
    if code is None:
        found["ended"] = "time"
    elif code != 0:
        last = (errors.decode(errors="replace").strip().splitlines() or [f"exit code {code}"])[-1]
        killed = code == -9 or "bad_alloc" in last or "MemoryError" in last
        found["ended"] = "memory" if killed else last
    return found


def limit_memory() -> None:
    """Obey the limit that the parent process set, where the operating system can."""
    wanted = os.environ.get("BENCHMARK_GIGABYTES")
    if wanted is None:
        return
    try:
        import resource
    except ImportError:
        return
    limit = int(float(wanted) * 2**30)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def peak_bytes() -> int:
    """Return the most memory this process has held.

    Linux keeps the peak of a parent in a child's `ru_maxrss`, so the kernel's own count of this process comes first.
    """
    status = Path("/proc/self/status")
    if status.exists():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def benchmark_folder() -> Path:
    """Return the folder of the benchmark models: the one MARKOVIA_BENCHMARKS names, or the one beside the project."""
    return Path(os.environ.get("MARKOVIA_BENCHMARKS") or Path(__file__).parents[2] / "shared" / "benchmarks")
