"""One instance of the UAI 2014 competition: how large its tree is, how long it takes, whether the answers are right.

`exact.py` runs this for every instance; it prints one line of JSON a finding. An instance whose best tree is larger
than 1e9 entries is reported with its size and not run.

Run: python benchmarks/exact_uai.py FOLDER NAME      (FOLDER is MAR, PR or MAP: where the model lies)
"""

import argparse
import math
from contextlib import suppress
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from exact_networks import tree_run
from stopwatch import benchmark_folder, limit_memory, report

import markovia as mk
from markovia.inference.exact.tree_plan import TreeStructure, forget_plans, plan_for, scope_of
from markovia.inference.exact.tree_state import OutOfRange
from markovia.io.uai_results import read_evid, read_map, read_mar, read_pr

MOST_ENTRIES = 1e9
MARGINAL_ERROR = 1.1e-6
"""Marginals are published with six decimals."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", choices=("MAR", "PR", "MAP"))
    parser.add_argument("name")
    options = parser.parse_args()
    limit_memory()
    home = benchmark_folder() / "uai"
    model: Any = mk.load(home / options.folder / f"{options.name}.uai.gz")
    (given,) = read_evid((home / options.folder / f"{options.name}.uai.evid").read_text())
    mk.engines.load_kernels()
    report(["variables"], len(model))
    entries, search = best_tree(model, given)
    report(["entries"], entries)
    if entries > MOST_ENTRIES:
        return
    engine = mk.engines.JunctionTree(search=search)
    if options.folder == "MAP":
        check_map(model, given, engine, home / "MAP" / f"{options.name}.uai.MAP")
        return
    with suppress(
        OutOfRange
    ):  # then the verb below answers with logarithms, and there is no tree run to draw
        report(["run"], tree_run(model, given, 0.2, engine))
    forget_plans()
    check_marginals(model.copy(), given, engine, home / "MAR" / f"{options.name}.uai.MAR")
    check_log_z(model, given, engine, home / "PR" / f"{options.name}.uai.PR")


def best_tree(model: Any, given: dict[str, int]) -> tuple[float, float]:
    """Return the entries of the best tree found once the evidence is cut out, and the search effort it took.

    The engine's usual search comes first; if its tree is too large to run, ten times the search may find a better one.
    """
    parts = model._problem(given, "junction-tree").parts(None)
    variables = {v.name: v for part in parts for v in part.variables}
    ids = {n: i for i, n in enumerate(variables)}
    structure = TreeStructure(
        [len(v) for v in variables.values()], [[ids[v.name] for v in part.variables] for part in parts]
    )
    usual = plan_for(structure).total
    if usual <= MOST_ENTRIES:
        return usual, 1.0
    return min(usual, plan_for(structure, effort=10.0).total), 10.0


def check_marginals(model: Any, given: dict[str, int], engine: Any, solution: Path) -> None:
    """Time all marginals from a loaded model without a plan and compare them with the solution, where there is one."""
    start = perf_counter()
    found = model.marginals(given=given, engine=engine)
    report(["marginals", "seconds"], perf_counter() - start)
    if solution.exists():
        published = dict(zip(model.variables, read_mar(solution.read_text()), strict=True))
        error = max(float(np.abs(p.values - published[n]).max()) for n, p in found.items())
        report(["marginals", "error"], error)
        report(["marginals", "right"], error <= MARGINAL_ERROR)


def check_log_z(model: Any, given: dict[str, int], engine: Any, solution: Path) -> None:
    """Compare log10 of the partition function with the solution, relative to its size."""
    start = perf_counter()
    found = model.log_partition(given=given, engine=engine) / math.log(10)
    report(["log_z", "seconds"], perf_counter() - start)
    if solution.exists():
        text = solution.read_text()
        published = read_pr(text).log10
        error = abs(found - published) / abs(published) if published else abs(found)
        digits = len(text.split()[-1].lstrip("-").replace(".", ""))
        report(["log_z", "error"], error)
        report(["log_z", "right"], error <= (3.5e-6 if digits <= 6 else 1e-10))


def check_map(model: Any, given: dict[str, int], engine: Any, solution: Path) -> None:
    """Time the best explanation and compare its weight with that of the best known one."""
    start = perf_counter()
    best = model.map(given=given, engine=engine)
    report(["map", "seconds"], perf_counter() - start)
    known = dict(zip(model.variables, read_map(solution.read_text()), strict=True))
    gain = log_weight(model, {**given, **best}) - log_weight(model, known)
    report(["map", "gain"], gain)
    report(["map", "right"], gain >= -1e-6)


def log_weight(model: Any, states: dict[str, int]) -> float:
    """Return the log of the product of all factors at one configuration."""
    values = [p.values[tuple(states[v.name] for v in scope_of(p))] for p in model.pieces()]
    return math.fsum(map(math.log, values)) if all(v > 0 for v in values) else -math.inf


if __name__ == "__main__":
    main()
