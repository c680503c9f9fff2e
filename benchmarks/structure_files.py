"""Structure learning from a file beside the same rows in memory: time, memory, and whether the graphs are the same.

Run: python benchmarks/structure_files.py [--quick] [--json FILE]

Rows of alarm (37 variables) are written to a Parquet file; every case then runs in a process of its own, which first learns
from 1,000 rows so that compiled code is loaded. The seconds count everything from the call with a path, or from reading the
file into a frame, to the graph. CPU seconds are those of all threads; beside other work they say more than the clock. The
peak is that of the whole process, Python and its libraries included.

- `frame`: `pandas.read_parquet`, then the frame;
- `fetched`: the path; distinct rows are fetched once as codes (`in_memory=True`, and what None does up to 1 GiB);
- `in place`: the path; every table is counted in the file (`in_memory=False`).
"""

import argparse
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from stopwatch import in_child, peak_bytes, report
from structure_data import sampled, states_of

import markovia as mk

NETWORK = "alarm"
METHODS = ("hill-climb", "ges", "pc")
SOURCES = ("frame", "fetched", "in place")
LIMIT = 900.0
"""Seconds that one case may take."""


def write_rows(path: Path, n_rows: int) -> int:
    """Write the rows and return the size of the file."""
    sampled(NETWORK, n_rows).to_parquet(path, index=False)
    return path.stat().st_size


def one_case(path: str, method: str, source: str) -> None:
    """Learn once, in this process, and report what it took."""
    small = sampled(NETWORK, 1000)
    states = states_of(NETWORK, small)
    mk.learn_structure(small, method, states=states, progress=False)
    before = peak_bytes()
    start, busy = perf_counter(), process_time()
    if source == "frame":
        import pandas as pd

        data: Any = pd.read_parquet(path)
        report(["read"], perf_counter() - start)
        found = mk.learn_structure(data, method, states=states, progress=False)
    else:
        fetch = source == "fetched"
        found = mk.learn_structure(path, method, states=states, in_memory=fetch, progress=False)
    report(["seconds"], perf_counter() - start)
    report(["cpu"], process_time() - busy)
    report(["before"], before)
    report(["peak"], peak_bytes())
    edges = "\n".join(sorted(map(str, found.edges)))
    report(["graph"], hashlib.sha256(edges.encode()).hexdigest()[:12])
    report(["edges"], found.n_edges)


def all_cases(n_rows: int) -> dict[str, Any]:
    """Run every method on every source."""
    found: dict[str, Any] = {"rows": n_rows, "cpus": os.cpu_count(), "cases": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        found["bytes"] = write_rows(path, n_rows)
        print(f"{n_rows:,} rows of {NETWORK}, a Parquet file of {found['bytes'] / 2**20:.1f} MiB")
        print(f"{'method':12} {'source':9} {'seconds':>8} {'CPU':>7} {'peak MiB':>9} {'edges':>6}  graph")
        for method in METHODS:
            for source in SOURCES:
                case = in_child([Path(__file__).name, "--case", str(path), method, source], LIMIT)
                found["cases"][f"{method}, {source}"] = case
                if "graph" not in case:
                    print(f"{method:12} {source:9} ended: {case.get('ended')}", flush=True)
                    continue
                print(
                    f"{method:12} {source:9} {case['seconds']:8.2f} {case['cpu']:7.1f} {case['peak'] / 2**20:9.0f} "
                    f"{case['edges']:6}  {case['graph']}",
                    flush=True,
                )
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="20,000 rows instead of 1,000,000")
    parser.add_argument("--json", type=Path, help="where the figures are written")
    parser.add_argument(
        "--case", nargs=3, metavar=("FILE", "METHOD", "SOURCE"), help="one case, for child processes"
    )
    options = parser.parse_args()
    if options.case:
        one_case(*options.case)
        return 0
    found = all_cases(20_000 if options.quick else 1_000_000)
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    graphs = {
        m: {c["graph"] for k, c in found["cases"].items() if k.startswith(m) and "graph" in c}
        for m in METHODS
    }
    return 0 if all(len(g) == 1 for g in graphs.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
