"""Rows of data on the GPU and on the processor: evidence, posteriors, EM's expected counts, counting.

Run: python benchmarks/gpu_rows.py [--networks NAME ...] [--rows N ...] [--missing SHARE ...] [--parts PART ...]

Rows are drawn from the network (50,000 of them, taken again and again) and each loses a share of its cells at random.
`evidence`: the log probability of every row. `target`: that, and the posterior of one variable, which no row observes.
`missing`: that, and the posteriors of all missing cells, in one array with a place for every state of every variable.
Seconds on the GPU are those of `resident` rows whose answers stay there, and of `whole` runs: state codes (8 bits a cell)
in the processor's memory, answers there. The processor uses all threads and a compiled kernel; where that would take
long, it gets the first rows, and its seconds are scaled. `alike` is the largest difference of log probabilities and
posteriors. The rows that the GPU leaves to the processor are counted.

`verbs` is what a user waits for: `log_evidence`, `predict_proba` and `marginals` of a table of codes.
`em` is one expectation over the same rows, laid out before (`layout`); `counts` are the tables of all families of complete
rows, with the copy of the rows and of rows that are there.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif.
"""

import argparse
import statistics
import sys
import warnings
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np
from stopwatch import benchmark_folder

import markovia as mk
from markovia.data.tables.row_sources import CodedTable
from markovia.inference.choosing import evidence_rows
from markovia.inference.engine import get_engine
from markovia.inference.exact.device_rows import DeviceTable
from markovia.learning.incomplete.incomplete_rows import IncompleteRows, TableLayout
from markovia.learning.tables.table_learner import NodeFamily
from markovia.models.graphical.data_rows import rows as model_rows
from markovia.runtime import devices
from markovia.runtime.libraries import cp
from markovia.runtime.threads import thread_count

DRAWN = 50_000
LONG = 3.0
"""Seconds after which the processor gets no more rows."""
GOAL = 0.2
MOST_BYTES = 1 << 31
"""Of posteriors; more are not asked for."""
MOST_LAID_OUT = 200_000
"""Rows with missing cells that are laid out for an expectation, which the processor does."""
PARTS = ("rows", "verbs", "em", "counts")


def main() -> int:
    options = _arguments()
    warnings.simplefilter("ignore")
    mk.engines.load_kernels()
    found = devices.gpu()
    print(f"GPU: {found or devices.why_not()}; {thread_count()} threads", flush=True)
    for name in options.networks:
        file = benchmark_folder() / "bif" / f"{name}.bif.gz"
        if not file.exists():
            print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/.")
            continue
        model = mk.load(file)
        drawn = model.sample(DRAWN, seed=1)
        codes = np.stack([drawn[v].cat.codes.to_numpy() for v in model.variables], axis=1).astype(np.int8)
        for n in options.rows:
            whole = codes[np.arange(n) % DRAWN]
            for share in options.missing:
                table = blanked(whole, share)
                print(f"\n{name}: {n:,} rows, {share:.0%} missing", flush=True)
                for part in options.parts:
                    if part != "counts":
                        TASKS[part](model, table)
            if "counts" in options.parts:
                print(f"\n{name}: {n:,} complete rows", flush=True)
                counts(model, whole)
    return 0


def blanked(codes: np.ndarray, share: float) -> np.ndarray:
    """Return the codes with this share of all cells missing."""
    left = codes.copy()
    rng = np.random.default_rng(2)
    for part in np.array_split(left, 32):
        part[rng.random(part.shape, dtype=np.float32) < share] = -1
    return left


def rows(model: mk.BayesianNetwork, table: np.ndarray) -> None:
    """Measure the kernels: evidence, one target, everything that is missing."""
    print(
        f"  {'':10}{'resident':>10}{'whole':>10}{'processor':>11}{'rows/s':>14}{'times':>8}{'left':>8}{'alike':>10}"
    )
    names = model.variables
    target = names[len(names) // 2]
    others = [v for v in names if v != target]
    without = np.ascontiguousarray(np.delete(table, names.index(target), axis=1))
    for what, targets, columns, codes in (
        ("evidence", [], names, table),
        ("target", [target], others, without),
        ("missing", names, names, table),
    ):
        if 8 * len(codes) * sum(len(model.states(t)) for t in targets) > MOST_BYTES:
            continue
        problem = model_rows._problem(model, get_engine("auto"))
        program = evidence_rows.compiled_for(problem, mk.engines.JunctionTree(), targets, columns, codes)
        assert program is not None
        here, few, expected = _on_processor(program, codes)
        gpu = resident = float("nan")
        left, alike = 0, 0.0
        if devices.gpu():
            program.run_on_gpu(codes[:1000])
            gpu, found = median(lambda p=program, c=codes: p.run_on_gpu(c))
            status = program._on_gpu.run(codes[: 1 << 17])[2]
            left = int((status > 1).sum())
            done = (found[2][:few] == 0) & (expected[2] == 0)  # an engine answers the others, if any
            alike = max(_apart(a[:few][done], b[done]) for a, b in zip(found[:2], expected[:2], strict=True))
            resident = _resident(program, codes)
        print(
            f"  {what:10}{resident:>10.4f}{gpu:>10.4f}{here:>11.3f}{len(codes) / gpu:>14,.0f}{here / gpu:>8.1f}"
            f"{left:>8}{alike:>10.1e}{'  goal met' if gpu < GOAL and len(codes) == 1_000_000 else ''}",
            flush=True,
        )


def _on_processor(program: Any, codes: np.ndarray) -> tuple[float, int, Any]:
    """Return the seconds for all rows, how many were run, and what was found."""
    few = min(len(codes), 2048)
    while True:
        part = codes[:few].astype(np.int32)
        seconds, found = median(partial(program.run, part), 1 if few > 2048 else 2)
        if few == len(codes) or seconds > LONG / 4:
            return seconds * len(codes) / few, few, found
        few = int(min(len(codes), max(2 * few, few * LONG / 2 / seconds)))


def _resident(program: Any, codes: np.ndarray) -> float:
    there = program._on_gpu
    uploaded = DeviceTable.upload(codes)

    def run() -> None:
        there.answer(uploaded)
        cp.cuda.Device().synchronize()

    return median(run)[0]


def verbs(model: mk.BayesianNetwork, table: np.ndarray) -> None:
    """Measure what users call, on codes as the library holds them."""
    columns = [model.variable(v) for v in model.variables]
    data = CodedTable(columns, np.ascontiguousarray(table.T))
    target = model.variables[len(columns) // 2]
    for what, ask in (
        ("log_evidence", lambda e: model.log_evidence(given=data, engine=e)),
        ("predict_proba", lambda e: model.predict_proba(data, target, engine=e)),
        ("marginals", lambda e: model.marginals(given=data, engine=e)),
    ):
        seconds = []
        for device in ("gpu", "cpu"):
            engine = mk.engines.Auto(device=device)
            if device == "gpu" and not devices.gpu():
                seconds.append(float("nan"))
                continue
            seconds.append(median(lambda a=ask, e=engine: a(e), 2 if device == "gpu" else 1)[0])
        print(f"  {what:16}{seconds[0]:>10.3f} GPU{seconds[1]:>10.3f} processor", flush=True)


def em(model: mk.BayesianNetwork, table: np.ndarray) -> None:
    """Measure an expectation over rows with missing cells."""
    table = table[:MOST_LAID_OUT]
    tables = [model[v] for v in model.variables]
    layout = TableLayout.of_families([NodeFamily(t.variable, t.parents, t) for t in tables])
    data = CodedTable([model.variable(v) for v in model.variables], np.ascontiguousarray(table.T))
    start = perf_counter()
    laid_out = IncompleteRows(layout, data, device="cpu")
    seconds = perf_counter() - start
    theta = layout.flat(tables)

    def expect() -> tuple[np.ndarray, float]:
        counts = np.zeros(len(theta))
        log_mass, _ = laid_out.expect(theta, counts)
        return counts, log_mass

    here, expected = median(expect, 2)
    line = f"  em: {len(table):,} rows, layout {seconds:.2f}, {len(laid_out.cases.pattern):,} cases; "
    line += f"expectation {here:.4f} processor"
    if devices.gpu():
        laid_out.device = "gpu"
        expect()
        there, found = median(expect)
        counts = float(np.abs(found[0] - expected[0]).max() / max(1.0, expected[0].max()))
        line += f", {there:.4f} GPU, {here / there:.1f} times; alike {counts:.1e} {_apart(found[1], expected[1]):.1e}"
        line += f"; {len(laid_out._there.left):,} cases left to the processor"
    print(line, flush=True)


def counts(model: mk.BayesianNetwork, codes: np.ndarray) -> None:
    """Measure the tables of all families."""
    data = CodedTable([model.variable(v) for v in model.variables], np.ascontiguousarray(codes.T))
    scopes = [(*model.parents(v), v) for v in model.variables]
    here, expected = median(lambda: data.counts(scopes))
    line = f"  counts: {here:.4f} processor"
    if devices.gpu():
        data.counts(scopes, device="gpu")

        def afresh() -> Any:
            data.__dict__.pop("_there")
            return data.counts(scopes, device="gpu")

        copied, found = median(afresh)
        there, again = median(lambda: data.counts(scopes, device="gpu"))
        same = all(
            np.array_equal(a, b) and np.array_equal(a, c)
            for a, b, c in zip(expected, found, again, strict=True)
        )
        line += f", {copied:.4f} GPU with the copy of the rows, {there:.4f} without; {'the same' if same else 'DIFFERENT'}"
    print(line, flush=True)


def median(work: Callable[[], Any], repeats: int = 3) -> tuple[float, Any]:
    """Return the median seconds of some runs, and what the last one returned."""
    seconds = []
    found = None
    for _ in range(repeats):
        del found
        start = perf_counter()
        found = work()
        seconds.append(perf_counter() - start)
    return statistics.median(seconds), found


def _apart(a: Any, b: Any) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.nan_to_num(np.abs(np.asarray(a) - np.asarray(b)), nan=0.0).max(initial=0.0))


TASKS = {"rows": rows, "verbs": verbs, "em": em}


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--networks", nargs="*", default=["alarm", "munin1", "link"])
    parser.add_argument("--rows", type=int, nargs="*", default=[100_000, 1_000_000])
    parser.add_argument("--missing", type=float, nargs="*", default=[0.05, 0.2, 0.5])
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=PARTS)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
