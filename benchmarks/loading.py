"""How long reading BIF files takes, side by side with pyAgrum and pgmpy in one process.

Run: python benchmarks/loading.py [--reads N] [--slow-reads N] [--only NAME ...]

Every library reads the same uncompressed file from disk into its own network object; the garbage of one read is
collected before the next. Rows are medians: N reads for markovia and pyAgrum, fewer for pgmpy, which is slow. The
goal is stated for munin and diabetes: at least 10 times faster than pgmpy, at most 2 times slower than pyAgrum.
A library that is not installed or cannot read a file leaves its cells empty.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import contextlib
import gc
import gzip
import logging
import os
import statistics
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

GOAL = ("munin", "diabetes")
PEERS_TOO_SLOW_ABOVE = 2_500_000  # bytes; pgmpy then reads only the files of the goal


def main() -> int:
    options = _arguments()
    folder = (
        Path(os.environ.get("MARKOVIA_BENCHMARKS") or Path(__file__).parents[2] / "shared" / "benchmarks")
        / "bif"
    )
    files = sorted(folder.glob("*.bif.gz"))
    if not files:
        print(
            f"no networks in {folder}; set MARKOVIA_BENCHMARKS to the folder that holds bif/. Nothing measured."
        )
        return 0
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    readers = {"markovia": _markovia(), "pyagrum": _pyagrum(), "pgmpy": _pgmpy()}
    print(
        f"{'network':<12}{'MB':>7}{'markovia':>12}{'pyAgrum':>12}{'pgmpy':>12}{'vs pyAgrum':>13}{'vs pgmpy':>11}"
    )
    met = True
    with tempfile.TemporaryDirectory() as scratch:
        for file in files:
            name = file.name.split(".")[0]
            if options.only and name not in options.only:
                continue
            path = Path(scratch) / f"{name}.bif"
            path.write_bytes(gzip.decompress(file.read_bytes()))
            size = path.stat().st_size
            seconds: dict[str, float | None] = {}
            for library, read in readers.items():
                reads = options.slow_reads if library == "pgmpy" else options.reads
                skip = library == "pgmpy" and size > PEERS_TOO_SLOW_ABOVE and name not in GOAL
                seconds[library] = None if skip else _median(read, str(path), reads)
            met &= _report(name, size, seconds)
    print(
        f"\ngoal (10 x faster than pgmpy, within 2 x of pyAgrum on {' and '.join(GOAL)}): {'met' if met else 'missed'}"
    )
    return 0 if met else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the time to read BIF files.")
    parser.add_argument("--reads", type=int, default=7, help="reads for markovia and pyAgrum")
    parser.add_argument("--slow-reads", type=int, default=1, help="reads for pgmpy")
    parser.add_argument("--only", nargs="*", help="names of networks")
    return parser.parse_args()


def _report(name: str, size: int, seconds: dict[str, float | None]) -> bool:
    """Print a row; say whether it meets the goal, where there is one."""
    own = seconds["markovia"]
    ratios: dict[str, float | None] = {}
    cells = []
    for library, value in seconds.items():
        cells.append(f"{value:>10.4f} s" if value is not None else f"{'-':>12}")
        ratios[library] = value / own if value is not None and own else None
    shown = [f"{r:.1f} x" if (r := ratios[peer]) else "-" for peer in ("pyagrum", "pgmpy")]
    print(f"{name:<12}{size / 1e6:>7.2f}{''.join(cells)}{shown[0]:>13}{shown[1]:>11}", flush=True)
    if name not in GOAL:
        return True
    pyagrum, pgmpy = ratios["pyagrum"], ratios["pgmpy"]
    return own is not None and (pyagrum is None or pyagrum >= 0.5) and (pgmpy is None or pgmpy >= 10.0)


def _median(read: Callable[[str], Any] | None, path: str, reads: int) -> float | None:
    if read is None:
        return None
    times = []
    for _ in range(reads):
        gc.collect()
        try:
            with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
                start = perf_counter()
                read(path)
                times.append(perf_counter() - start)
        except Exception as error:
            print(f"  {Path(path).name}: {type(error).__name__}", file=sys.stderr)
            return None
    return statistics.median(times)


def _markovia() -> Callable[[str], Any]:
    import markovia

    return markovia.load


def _pyagrum() -> Callable[[str], Any] | None:
    try:
        import pyagrum
    except ImportError:
        return None
    return pyagrum.loadBN


def _pgmpy() -> Callable[[str], Any] | None:
    try:
        from pgmpy.readwrite import BIFReader
    except ImportError:
        return None
    return lambda path: BIFReader(path).get_model()


if __name__ == "__main__":
    raise SystemExit(main())
