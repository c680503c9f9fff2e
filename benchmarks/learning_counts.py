"""How long counting takes: alarm's tables from rows in memory, and from a large Parquet file.

Run: python benchmarks/learning_counts.py [--rows N] [--gigabytes G] [--quick] [--full]

In memory: maximum likelihood of all tables of alarm from N rows, with the columns as categories, strings, Python
objects, and in Polars and Arrow; seconds for `fit`, medians. For comparison NumPy's `bincount` on ready codes, and
pybnesian, pyAgrum and pgmpy where they are installed, from categories (pyAgrum from strings).

File: rows sampled from alarm with fixed seeds are written in chunks to a Parquet file of about G gigabytes (plain text,
no dictionary, no compression; 5 with --full), and a network with alarm's structure is fitted to it in a fresh process,
once with its states known and once with states read off the file. Seconds and the peak memory of that process are
reported; the limit is 2 GiB. The file lies in a temporary folder and is removed.

The network is looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import os
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np
import pandas as pd
from stopwatch import benchmark_folder, in_child, median_time, peak_bytes, report

import markovia as mk
from markovia.kernels.counting import load

CHUNK = 250_000
MIB, GIB = 2**20, 2**30


def main() -> int:
    options = _arguments()
    warnings.simplefilter("ignore")  # a peer warns in every run
    network = benchmark_folder() / "bif" / "alarm.bif.gz"
    if not network.exists():
        print(
            f"no network {network}; set MARKOVIA_BENCHMARKS to the folder that holds bif/. Nothing measured."
        )
        return 0
    if options.child:
        return _fit_file(network, options.child, options.unknown)
    if options.rows:
        in_memory(network, options.rows)
    gigabytes = 5.0 if options.full else options.gigabytes
    if gigabytes:
        with tempfile.TemporaryDirectory() as folder:
            from_file(network, Path(folder) / "alarm.parquet", gigabytes)
    return 0


def in_memory(network: Path, n: int) -> None:
    model = mk.load(network)
    rows = model.sample(n, seed=0)
    load()
    forms = {
        "pandas categories": rows,
        "pandas str": rows.astype("str"),
        "pandas objects": rows.astype(object),
    }
    forms |= _other_libraries(rows, model)
    codes = {name: rows[name].cat.codes.to_numpy() for name in rows}
    print(f"alarm, {n:,} rows in memory, {os.cpu_count()} cores")
    print(f"{'rows':<22}{'seconds':>10}")
    for name, data in forms.items():
        seconds = median_time(lambda bn, data=data: bn.fit(data), model.copy, 1.0).record["seconds"]
        print(f"{name:<22}{seconds:>10.4f}", flush=True)

    def bincount(bn: mk.BayesianNetwork) -> None:
        for name in bn.variables:
            shape = [len(bn.states(v)) for v in (*bn.parents(name), name)]
            index = np.ravel_multi_index([codes[v] for v in (*bn.parents(name), name)], shape)
            np.bincount(index, minlength=int(np.prod(shape)))

    seconds = median_time(bincount, model.copy, 1.0).record["seconds"]
    print(f"{'numpy on ready codes':<22}{seconds:>10.4f}")
    for name, fit in {"pybnesian": _pybnesian, "pyAgrum": _pyagrum, "pgmpy": _pgmpy}.items():
        try:
            task = fit(model, rows)
        except ImportError:
            print(f"{name:<22}{'not installed':>14}")
            continue
        try:
            seconds = median_time(lambda _, task=task: task(), lambda: None, 1.0).record["seconds"]
            print(f"{name:<22}{seconds:>10.4f}", flush=True)
        except Exception as failure:  # a peer that fails is a finding
            print(f"{name:<22}failed: {type(failure).__name__}: {str(failure).splitlines()[0]}")


def _pybnesian(model: mk.BayesianNetwork, rows: pd.DataFrame) -> Callable[[], object]:
    import pybnesian as pb

    edges = [(p, n) for n in model.variables for p in model.parents(n)]
    network = pb.DiscreteBN(list(model.variables), edges)
    return lambda: network.fit(rows)


def _pyagrum(model: mk.BayesianNetwork, rows: pd.DataFrame) -> Callable[[], object]:
    import pyagrum as gum

    template = mk.io.to_pyagrum(model)
    strings = rows.astype(str)

    def learn() -> object:
        learner = gum.BNLearner(strings, template)
        learner.useSmoothingPrior(1e-6)  # it refuses rows of tables that it never saw
        return learner.learnParameters(template.dag())

    return learn


def _pgmpy(model: mk.BayesianNetwork, rows: pd.DataFrame) -> Callable[[], object]:
    from pgmpy.estimators import MaximumLikelihoodEstimator

    network = mk.io.to_pgmpy(model)
    return lambda: MaximumLikelihoodEstimator(network, rows).get_parameters()


def _other_libraries(rows: object, model: mk.BayesianNetwork) -> dict[str, object]:
    found: dict[str, object] = {}
    try:
        import pyarrow as pa
    except ImportError:
        return found
    found["Arrow dictionaries"] = pa.Table.from_pandas(rows)
    strings = pa.Table.from_pandas(rows.astype("str"))  # type: ignore[attr-defined]
    found["Arrow strings"] = strings
    try:
        import polars as pl
    except ImportError:
        return found
    frame = pl.from_arrow(strings)
    found["Polars strings"] = frame
    enums = [pl.col(c).cast(pl.Enum(model.states(c))) for c in frame.columns]
    found["Polars Enum"] = frame.with_columns(enums)
    return found


def from_file(network: Path, path: Path, gigabytes: float) -> None:
    start = perf_counter()
    n = write_rows(mk.load(network), path, gigabytes)
    print(
        f"\nParquet file: {path.stat().st_size / 1e9:.2f} GB, {n:,} rows, 37 columns; "
        f"written in {perf_counter() - start:.0f} s"
    )
    print(f"{'states':<12}{'seconds':>10}{'peak MiB':>10}{'below 2 GiB':>13}")
    for name, flags in (("known", []), ("read off", ["--unknown"])):
        found = in_child(["learning_counts.py", "--child", str(path), *flags], 1800)
        if "ended" in found:
            print(f"{name:<12}{found['ended']:>10}")
            continue
        below = "yes" if found["peak"] < 2 * GIB else "no"
        print(f"{name:<12}{found['seconds']:>10.1f}{found['peak'] / MIB:>10.0f}{below:>13}", flush=True)


def write_rows(model: mk.BayesianNetwork, path: Path, gigabytes: float) -> int:
    """Write sampled rows until the file is that large, and return their number."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in model.variables])
    n = seed = 0
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        while path.stat().st_size < gigabytes * 1e9:
            rows = pa.Table.from_pandas(model.sample(CHUNK, seed=seed), preserve_index=False)
            writer.write_table(rows.select(schema.names).cast(schema), row_group_size=CHUNK // 2)
            n, seed = n + CHUNK, seed + 1
    return n


def _fit_file(network: Path, path: str, unknown: bool) -> int:
    """In a process of its own: fit, and report seconds and peak memory."""
    model = mk.load(network)
    bare = mk.BayesianNetwork([(p, n) for n in model.variables for p in model.parents(n)])
    fitted = bare if unknown else model.copy()
    start = perf_counter()
    fitted.fit(path)
    report(["seconds"], perf_counter() - start)
    report(["peak"], peak_bytes())
    report(["rows"], fitted.fit_.n_rows)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows in memory; 0 for none")
    parser.add_argument("--gigabytes", type=float, default=0.5, help="size of the file; 0 for none")
    parser.add_argument("--quick", action="store_true", help="100,000 rows and a file of 50 MB")
    parser.add_argument("--full", action="store_true", help="a file of 5 GB")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--unknown", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.rows, options.gigabytes = min(options.rows, 100_000), min(options.gigabytes, 0.05)
    return options


if __name__ == "__main__":
    sys.exit(main())
