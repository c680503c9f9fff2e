"""How long predicting many rows takes, side by side with pyAgrum and pgmpy called row by row, in one process.

Run: python benchmarks/batches.py [--rows N] [--blanks K] [--repeats R] [--network NAME] [--targets NAME ...]

Rows are drawn from the network, K random cells of each are blanked, and the posterior of one target is asked for every
row from the row's other cells. markovia answers all N rows in one `predict_proba` call on a DataFrame of strings;
pyAgrum gets 500 rows (LazyPropagation, setEvidence and posterior), pgmpy 200 (VariableElimination.query), and both are
scaled to a row. Rows of the table are medians over the repeats; ratios are between medians. The goal is stated for
alarm with 100,000 rows and 10 blanks: at least 100 times faster than pgmpy, 20 times faster than pyAgrum. The kernels
are compiled beforehand. A library that is not installed leaves its cells empty.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import contextlib
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

import numpy as np
import pandas as pd

import markovia as mk

PYAGRUM_ROWS, PGMPY_ROWS = 500, 200
Ask = Callable[[pd.DataFrame, str], np.ndarray]


def main() -> int:
    options = _arguments()
    folder = Path(
        os.environ.get("MARKOVIA_BENCHMARKS") or Path(__file__).parents[2] / "shared" / "benchmarks"
    )
    file = folder / "bif" / f"{options.network}.bif.gz"
    if not file.exists():
        print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/. Nothing measured.")
        return 0
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    model = mk.load(file)
    rows = blanked(model.sample(options.rows, seed=1), options.blanks, seed=2)
    targets = options.targets or [model.variables[i] for i in np.linspace(0, len(model) - 1, 3).astype(int)]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{options.network}.bif"
        path.write_bytes(gzip.decompress(file.read_bytes()))
        peers = {"pyAgrum": (_pyagrum(path), PYAGRUM_ROWS), "pgmpy": (_pgmpy(path), PGMPY_ROWS)}
        model.predict_proba(rows[:3000], targets[0])  # compiles the kernels, once an installation
        return _table(model, rows, targets, peers, options.repeats)


def blanked(rows: pd.DataFrame, blanks: int, seed: int) -> pd.DataFrame:
    """Return the rows as strings with so many random cells of each missing."""
    cells = rows.astype(object).to_numpy().copy()
    chosen = np.argsort(np.random.default_rng(seed).random(cells.shape), axis=1)[:, :blanks]
    np.put_along_axis(cells, chosen, None, axis=1)
    return pd.DataFrame(cells, columns=rows.columns, dtype=object)


def _table(
    model: Any, rows: pd.DataFrame, targets: list[str], peers: dict[str, tuple[Ask | None, int]], repeats: int
) -> int:
    print(f"{len(rows):,} rows, {rows.isna().sum(axis=1).iloc[0]} blanks each; microseconds a row")
    print(
        f"{'target':<16}{'markovia':>12}{'pyAgrum':>12}{'pgmpy':>12}{'vs pyAgrum':>13}{'vs pgmpy':>11}{'error':>10}"
    )
    ratios: dict[str, list[float]] = {"pyAgrum": [], "pgmpy": []}
    for target in targets:
        own, found = _median(lambda t=target: model.predict_proba(rows, t).to_numpy(), repeats)
        own /= len(rows)
        cells, error = {}, 0.0
        for name, (ask, count) in peers.items():
            if ask is None:
                continue
            part = rows[:count]
            seconds, theirs = _median(lambda a=ask, p=part, t=target: a(p, t), max(1, repeats // 2))
            cells[name] = seconds / len(part)
            ratios[name].append(cells[name] / own)
            error = max(error, float(np.abs(theirs - found[: len(part)]).max()))
        shown = [f"{cells[n] * 1e6:>12,.0f}" if n in cells else " " * 12 for n in peers]
        times = [
            f"{cells[n] / own:>{w},.0f}" if n in cells else " " * w
            for n, w in (("pyAgrum", 13), ("pgmpy", 11))
        ]
        print(f"{target:<16}{own * 1e6:>12.2f}{''.join(shown)}{''.join(times)}{error:>10.1e}")
    met = all(
        statistics.median(ratios[n]) >= goal for n, goal in (("pyAgrum", 20), ("pgmpy", 100)) if ratios[n]
    )
    print(f"\ngoal (20 x faster than pyAgrum, 100 x faster than pgmpy): {'met' if met else 'missed'}")
    return 0 if met else 1


def _median(work: Callable[[], np.ndarray], repeats: int) -> tuple[float, np.ndarray]:
    seconds = []
    for _ in range(repeats):
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds), found


def _given(rows: pd.DataFrame, target: str) -> list[dict[str, str]]:
    return [
        {n: s for n, s in row.items() if s is not None and n != target} for row in rows.to_dict("records")
    ]


def _pyagrum(path: Path) -> Ask | None:
    with contextlib.suppress(ImportError):
        import pyagrum as gum

        network = gum.loadBN(str(path))
        engine = gum.LazyPropagation(network)

        def ask(rows: pd.DataFrame, target: str) -> np.ndarray:
            found = []
            for given in _given(rows, target):
                engine.setEvidence(given)
                found.append(engine.posterior(target).toarray())
            return np.array(found)

        return ask
    return None


def _pgmpy(path: Path) -> Ask | None:
    with contextlib.suppress(ImportError):
        from pgmpy.inference import VariableElimination
        from pgmpy.readwrite import BIFReader

        network = BIFReader(str(path)).get_model()
        engine = VariableElimination(network)

        def ask(rows: pd.DataFrame, target: str) -> np.ndarray:
            states = mk.load(path).states(target)
            found = []
            for given in _given(rows, target):
                table = engine.query([target], evidence=given, show_progress=False)
                found.append([table.get_value(**{target: s}) for s in states])
            return np.array(found)

        return ask
    return None


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare the time to predict many rows.")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--blanks", type=int, default=10)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--network", default="alarm")
    parser.add_argument("--targets", nargs="*")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
