"""The processor time that tests take, by family of tests, and the budget it has to stay within.

`make test` runs pytest with `--processor-times FILE`, for which the hooks of `conftest.py` fill a `Meter` in each worker
and write one file, and then this script, which reads the file and fails where the budget is overdrawn:

    python tests/processor_times.py .cache/processor_times.json

A *family* is a folder of the library with its tests: `tests/models/temporal/` and the examples in the docstrings of
`src/markovia/models/temporal/` are one. Each should stay below `FAMILY` seconds; all together, with collection, have `ALL`.

What counts is processor time (of the process, its threads and the child processes it has waited for), so that other work on
the machine does not matter; and it is stated in seconds of one machine, so that a slower one does not matter either: before
each file of tests a worker times the same small computation, `probe`, and what it takes there, on the median, against
`PROBE` is how much slower that machine was during the run.
"""

import json
import os
import sys
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

FAMILY = 60.0
"""Seconds that a family should take; those above are named."""
ALL = 16 * 60.0
"""Seconds that all tests may take, with their collection."""
MARGIN = 1.25
"""By how much they may be over it before the script fails: as exact as machines can be compared by one computation."""
PROBE = 0.0060
"""Seconds that `probe` takes on the machine the budget is stated for."""
SAMPLERS = {
    "ADVI", "BlockGibbs", "CAVI", "FlowVI", "HMC", "MALA", "NUTS", "ParticleFilter", "RandomWalkMetropolis", "SMC", "SVI",
    "VAE", "ConditionalVAE", "SemiSupervisedVAE", "SequenceVAE", "DBN", "DBM", "Flow", "Diffusion", "GAN",
    "SigmoidBeliefNetwork", "InfoGAN", "unet",
}  # fmt: skip
"""The examples in the docstrings of these compile a sampler or a training each, which tests do too; `make test-all` runs
them."""

Times = dict[str, float]


def probe() -> float:
    """Return the processor seconds of a fixed computation: half of it the interpreter's work, half NumPy's."""
    began = time.thread_time()
    seen: dict[int, float] = {}
    for k in range(12_000):
        seen[k * 7919 % 1009] = seen.get(k % 1009, 0.0) + 0.5
    numbers = np.arange(20_000.0)
    for _ in range(12):
        numbers = np.sort(np.sin(numbers))[::-1] + 1.0
    return time.thread_time() - began


def family(place: str) -> str:
    """Return the family of a test's file: two folders at most, of `tests/` or of `src/markovia/`."""
    folders = Path(place).parts[:-1]
    below = folders[2:] if folders[:2] == ("src", "markovia") else folders[1:]
    return "/".join(below[:2]) or "the whole"


class Meter:
    """What one worker has spent, and on which tests."""

    def __init__(self) -> None:
        self.tests: Times = defaultdict(float)
        self.probes: list[float] = []
        self._mark = 0.0
        self._place = ""

    def start(self, place: str) -> None:
        """Begin with a test of this file."""
        if place != self._place:
            self._place = place
            self.probes.append(probe())
        self._mark = spent()

    def stop(self, test: str) -> None:
        """Count what was spent since the last call for this test."""
        now = spent()
        self.tests[test] += now - self._mark
        self._mark = now

    def report(self) -> dict[str, Any]:
        """Return everything, ready to be sent or written."""
        return {"spent": spent(), "tests": dict(self.tests), "probes": self.probes}


def spent() -> float:
    """Return the processor seconds of this process so far, with those of the child processes it has waited for."""
    return sum(os.times()[:4])


def merged(reports: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the reports of all workers as one."""
    return {
        "spent": sum(report["spent"] for report in reports),
        "tests": {test: seconds for report in reports for test, seconds in report["tests"].items()},
        "probes": [seconds for report in reports for seconds in report["probes"]],
    }


def by_family(tests: Times) -> dict[str, Times]:
    """Return the tests of each family, families and tests with the longest first."""
    families: dict[str, Times] = defaultdict(dict)
    for test, seconds in sorted(tests.items(), key=lambda item: -item[1]):
        families[family(test.partition("::")[0])][test] = seconds
    return dict(sorted(families.items(), key=lambda item: -sum(item[1].values())))


def complaint(report: dict[str, Any]) -> str | None:
    """Return a sentence where the budget is overdrawn, naming the families over their minute and the tests to look at."""
    slower = slowness(report["probes"])
    total = report["spent"] / slower
    if total <= MARGIN * ALL:
        return None
    wide = {
        name: tests
        for name, tests in by_family(report["tests"]).items()
        if sum(tests.values()) > FAMILY * slower
    }
    named = [
        f"{name} {sum(tests.values()) / slower:.0f} s ({_longest(tests, slower)})"
        for name, tests in wide.items()
    ]
    whose = "; over a minute are " + "; ".join(named) if named else ": " + _longest(report["tests"], slower)
    return f"all tests take {total:.0f} s of {ALL:.0f}{whose}"


def slowness(probes: list[float]) -> float:
    """Return how many seconds of the machine of the run make a second of the one the budget is stated for; one at least.

    Half of the time of all tests goes into machine code, which is made no faster where the interpreter and NumPy are.
    """
    return max(1.0, sorted(probes)[len(probes) // 2] / PROBE)


def _longest(tests: Times, slower: float) -> str:
    longest = sorted(tests.items(), key=lambda item: -item[1])[:5]
    return ", ".join(f"{test} {seconds / slower:.1f} s" for test, seconds in longest)


def main(place: str) -> int:
    """Print what the families took and what is overdrawn; return the exit code."""
    report = json.loads(Path(place).read_text("utf-8"))
    slower, families = slowness(report["probes"]), by_family(report["tests"])
    all_of_it = report["spent"]
    rest = all_of_it - sum(report["tests"].values())
    print(
        f"{all_of_it:.0f} processor seconds where a second of the budget takes {slower:.2f}; in seconds of the budget:"
    )
    for name, tests in families.items():
        seconds = sum(tests.values()) / slower
        print(f"{seconds:7.1f} {len(tests):6} tests  {name}{'  (over a minute)' if seconds > FAMILY else ''}")
    print(f"{rest / slower:7.1f}               collection and the rest")
    print(f"{all_of_it / slower:7.1f}               all, of {ALL:.0f}")
    if (found := complaint(report)) is None:
        return 0
    print(f"over the budget: {found}", file=sys.stderr)
    print(
        "Make these tests cheaper, or mark what is exhaustive as slow (CONTRIBUTING.md, Tests).",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
