"""Exact inference on a GPU: competition instances and networks, seconds on GPU and processor, memory, and bandwidth.

Run: python benchmarks/gpu.py [NAME ...] [--devices gpu,cpu] [--limit SECONDS] [--precision double|single] [--json]

A name is that of an instance, of a network, or `ising_28` for a grid of 28 by 28. For each one and each device: the size of
the plan (log2 of the table entries gone through and of the largest bucket, slices), seconds of the log partition function in
the first call (order search included) and in a second one, its distance from the published log10, seconds of all marginals
and their largest difference from the published ones (networks: from a junction tree, where one fits), and the most bytes of
tables. On the GPU also the entries a second and the share of the memory bandwidth in products of 2**24 to 2**32 entries:
each input read once and the result written once, over the time of the kernel, beside a copy. What is estimated to take
longer than the limit is reported with the estimate.
"""

import argparse
import json
import math
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from stopwatch import benchmark_folder

import markovia as mk
from markovia.inference.sliced import cuda_tables
from markovia.io.uai_results import read_evid, read_mar, read_pr
from markovia.runtime import devices

LARGE, HUGE = 1 << 24, 1 << 32
OPEN = [f"linkage_{k}" for k in (11, 13, 15, 17, 19, 21)]
INSTANCES = [
    *OPEN, "Pedigree_11", "Pedigree_13", "DBN_11", "DBN_13", "DBN_15", "Grids_11", "Grids_13", "Grids_15", "Grids_17",
    "CSP_11", "CSP_13", "Promedus_11", "Promedus_19", "Promedus_23", "ObjectDetection_11", "2bitcomp_5.cnf",
    "c1908.isc.cnf", "c880.isc.cnf", "log-3.cnf",
]  # fmt: skip
NETWORKS = ["link", "munin", "munin1", "diabetes", "mildew", "barley", "water"]


class WatchedTables(cuda_tables.CudaTables):
    """Tables on the GPU that note the time and the traffic of large products."""

    item, watched = 8.0, True
    products: list[tuple[float, float, Any, Any]] = []  # noqa: RUF012 (of all runs)

    def product(self, layout: Any, inputs: Any, maximise: bool = False, onto: Any = None) -> Any:
        if not LARGE <= layout.entries <= HUGE or not self.watched:
            return super().product(layout, inputs, maximise, onto)
        import cupy as cp

        made = super().product(layout, inputs, maximise, onto)
        # once more, laid out already, for the time of the kernel alone
        before, after = cp.cuda.Event(), cp.cuda.Event()
        before.record()
        super().product(layout, inputs, maximise)
        after.record()
        axes = (*layout.kept, *layout.removed)
        read = sum(
            math.prod(n for n, step in zip(axes, steps, strict=True) if step) for steps in layout.strides
        )
        traffic = self.item * (read + layout.size)
        self.products.append((float(layout.entries), traffic, before, after))
        return made


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", default=[*INSTANCES, *NETWORKS])
    parser.add_argument("--devices", default="gpu,cpu", help="gpu, cpu, or both with a comma")
    parser.add_argument("--limit", type=float, default=60.0)
    parser.add_argument("--precision", choices=("double", "single"), default="double")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--no-marginals", dest="marginals", action="store_false")
    options = parser.parse_args()
    options.devices = options.devices.split(",")
    if "gpu" in options.devices:
        found = devices.gpu()
        print("GPU:", found or devices.why_not(), flush=True)
        WatchedTables.item = 8.0 if options.precision == "double" else 4.0
        cuda_tables.CudaTables = WatchedTables  # type: ignore[misc]
    for name in options.names:
        model, given, log_z, marginals = load(name)
        for device in options.devices:
            line = measured(model, given, log_z, marginals, device, options)
            print(json.dumps({"name": name, **line}) if options.json else shown(name, line), flush=True)
    return 0


def load(name: str) -> tuple[Any, dict[str, Any], float | None, dict[str, Any]]:
    """Return a model, its evidence, the published log10 of Z, and the published marginals."""
    home = benchmark_folder()
    if name.startswith("ising_"):
        side = int(name.partition("_")[2])
        return mk.generators.ising_grid(side, side, coupling=0.4), {}, None, {}
    if (network := home / "bif" / f"{name}.bif.gz").exists():
        return mk.load(network), {}, None, {}
    folder: Path = next(
        f for f in (home / "uai" / "MAR", home / "uai" / "PR") if (f / f"{name}.uai.gz").exists()
    )
    model: Any = mk.load(folder / f"{name}.uai.gz")
    (given,) = read_evid((folder / f"{name}.uai.evid").read_text())
    published, solution = home / "uai" / "PR" / f"{name}.uai.PR", folder / f"{name}.uai.MAR"
    log_z = read_pr(published.read_text()).log10 if published.exists() else None
    marginals = {}
    if solution.exists():
        marginals = dict(zip(model.variables, read_mar(solution.read_text()), strict=True))
    return model, given, log_z, marginals


def measured(
    model: Any, given: Any, log_z: float | None, marginals: Any, device: str, options: Any
) -> dict[str, Any]:
    """Return what is measured on one device."""
    engine = mk.engines.SlicedElimination(
        device=device, time_limit=options.limit, precision=options.precision, progress=False
    )
    problem = model._problem(given, "sliced-elimination")
    line: dict[str, Any] = {"device": device, "variables": len(model)}
    WatchedTables.products.clear()
    WatchedTables.watched = True
    try:
        line["first"], mass = timed(lambda: engine.log_mass(problem))
    except mk.errors.TooLarge as too_large:
        return {**line, "refused": str(too_large)[:200]}
    details = mass.record.details
    line |= {
        "ran_on": details.device,
        "entries": round(math.log2(max(details.entries, 1)), 1),
        "largest": round(math.log2(max(details.largest_table, 1)), 1),
        "slices": details.turns,
        "estimated": round(details.estimated_seconds, 2),
    }
    line |= bandwidth()
    WatchedTables.watched = False
    line["again"], mass = timed(lambda: engine.log_mass(problem))
    line["entries_a_second"] = details.entries / line["again"]
    found = float(mass) / math.log(10)
    line["log10_z"] = found
    if log_z is not None:
        line["error_z"] = abs(found - log_z)
    if options.marginals:
        asked = list(problem.free)
        try:
            line["marginals"], answer = timed(lambda: engine.marginals(problem, asked))
            tables = {t.names[0]: t.values for t in answer.tables}
            if not marginals and device == "cpu":
                tree = mk.engines.JunctionTree().marginals(problem, asked)
                marginals = {t.names[0]: t.values for t in tree.tables}
            if marginals:
                line["error_marginals"] = max(float(np.abs(tables[n] - marginals[n]).max()) for n in asked)
        except mk.errors.TooLarge as too_large:
            line["marginals_refused"] = str(too_large)[:200]
    if device == "gpu" and details.device == "gpu":
        import cupy as cp

        line["gigabytes"] = cp.get_default_memory_pool().total_bytes() / 1e9
        cp.get_default_memory_pool().free_all_blocks()
    return line


def timed(work: Any) -> tuple[float, Any]:
    start = perf_counter()
    found = work()
    return perf_counter() - start, found


def bandwidth() -> dict[str, float]:
    """Return entries a second and bytes a second of the large products of one run, and the share of a copy's."""
    noted = WatchedTables.products
    if not noted:
        return {}
    import cupy as cp

    seconds = sum(cp.cuda.get_elapsed_time(before, after) for _, _, before, after in noted) / 1e3
    traffic = sum(t for _, t, _, _ in noted) / seconds
    entries = sum(e for e, _, _, _ in noted) / seconds
    return {
        "large_products": len(noted),
        "large_seconds": seconds,
        "large_entries_a_second": entries,
        "share": traffic / copied(),
    }


def copied() -> float:
    """Return the bytes a second of a copy on the device, read and written."""
    import cupy as cp

    from_, to = cp.zeros(1 << 27), cp.zeros(1 << 27)
    before, after = cp.cuda.Event(), cp.cuda.Event()
    to[...] = from_
    before.record()
    to[...] = from_
    after.record()
    after.synchronize()
    return 16.0 * (1 << 27) / (cp.cuda.get_elapsed_time(before, after) / 1e3)


def shown(name: str, line: dict[str, Any]) -> str:
    parts = [f"{k} {v:.4g}" if isinstance(v, float) else f"{k} {v}" for k, v in line.items()]
    return f"{name:>18}  " + "  ".join(parts)


if __name__ == "__main__":
    raise SystemExit(main())
