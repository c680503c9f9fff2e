"""How long `import markovia` and a first answer take in a fresh process, and what they drag in.

Run: python benchmarks/import_time.py [--runs N]

Each row is the median over fresh interpreters. "warm" reads compiled bytecode from __pycache__, as every start
but the first does; "cold" finds no bytecode at all, neither markovia's nor NumPy's, and writes none
(PYTHONDONTWRITEBYTECODE and an empty PYTHONPYCACHEPREFIX), as the first start of a read-only installation
would. The time of starting Python itself is not part of the import rows; the process rows are what a user waits.

The exit code is 1 if `import markovia` takes longer than the limit or imports a heavy package.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from time import perf_counter

LIMIT = 0.35
HEAVY = ("jax", "numba", "matplotlib", "pandas")

IMPORT = "import markovia"
FIRST_QUERY = (
    "import markovia as mk; p = mk.examples.asia().query('lung', given={'smoke': 'yes'})['yes']; "
    "assert abs(p - 0.1) < 1e-12"
)
TIMED = """
import json, sys
from time import perf_counter
start = perf_counter()
{code}
seconds = perf_counter() - start
print(json.dumps({{"seconds": seconds, "heavy": [m for m in {heavy!r} if m in sys.modules]}}))
"""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=9, help="fresh processes a row (default 9)")
    runs = parser.parse_args().runs
    warm, heavy = timed_inside(IMPORT, runs)
    rows = [
        ("import markovia, warm", warm),
        ("import markovia, cold", timed_inside(IMPORT, runs, cold=True)[0]),
        ("import numpy alone, warm", timed_inside("import numpy", runs)[0]),
        ("import + first asia query, warm", timed_inside(FIRST_QUERY, runs)[0]),
        ("import + first asia query, cold", timed_inside(FIRST_QUERY, runs, cold=True)[0]),
        ("process: python -c pass", timed_outside(["-c", "pass"], runs)),
        (
            "process: markovia query asia lung --given smoke=yes",
            timed_outside(["-m", "markovia", "query", "asia", "lung", "--given", "smoke=yes"], runs),
        ),
    ]
    width = max(len(name) for name, _ in rows)
    print(f"{'median of ' + str(runs) + ' fresh processes':<{width}}  {'median':>9}  {'fastest':>9}")
    for name, seconds in rows:
        print(f"{name:<{width}}  {statistics.median(seconds):>7.3f} s  {min(seconds):>7.3f} s")
    print(
        f"heavy packages imported by `import markovia`: {', '.join(heavy) or 'none'} (of {', '.join(HEAVY)})"
    )
    fine = statistics.median(warm) <= LIMIT and not heavy
    print(f"limit {LIMIT} s and no heavy package: {'kept' if fine else 'BROKEN'}")
    return 0 if fine else 1


def timed_inside(code: str, runs: int, *, cold: bool = False) -> tuple[list[float], list[str]]:
    """Time code inside fresh interpreters; also return which heavy packages it imported."""
    program = TIMED.format(code=code, heavy=HEAVY)
    seconds: list[float] = []
    heavy: set[str] = set()
    for k in range(runs + 1):
        with tempfile.TemporaryDirectory() as empty:
            environment = {**os.environ}
            if cold:
                environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": empty}
            done = subprocess.run(
                [sys.executable, "-c", program], env=environment, check=True, capture_output=True, text=True
            )
        if k == 0:
            continue  # the first run fills the caches of the operating system (and writes bytecode)
        answer = json.loads(done.stdout)
        seconds.append(answer["seconds"])
        heavy |= set(answer["heavy"])
    return seconds, sorted(heavy)


def timed_outside(arguments: list[str], runs: int) -> list[float]:
    """Time whole processes, from the start of the interpreter to its end."""
    seconds = []
    for k in range(runs + 1):
        start = perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        if k:
            seconds.append(perf_counter() - start)
    return seconds


if __name__ == "__main__":
    sys.exit(main())
