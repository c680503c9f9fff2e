"""One instance of the UAI 2014 competition and one engine: how far the answer is from the reference.

`approximate.py` runs this in a process of its own for every instance and engine; it prints one line of JSON a finding.

- MAR: the mean Hellinger distance between marginals and reference, over the variables that are not observed;
- PR: the distance of log10 Z from the reference, absolute;
- MAP: log10 of the weight of the assignment found above that of the reference (negative: worse), and the bound's gap.

Run: python benchmarks/approximate_uai.py TASK NAME ENGINE [--seconds 20]
"""

import argparse
import math
import warnings
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from exact_uai import log_weight
from stopwatch import benchmark_folder, limit_memory, report

import markovia as mk
from markovia.io.uai_results import read_evid, read_map, read_mar, read_pr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("task", choices=("MAR", "PR", "MAP"))
    parser.add_argument("name")
    parser.add_argument("engine")
    parser.add_argument("--seconds", type=float, default=20.0)
    options = parser.parse_args()
    limit_memory()
    home = benchmark_folder() / "uai"
    folder = model_folder(home, options.task, options.name)
    model: Any = mk.load(folder / f"{options.name}.uai.gz")
    evidence = folder / f"{options.name}.uai.evid"
    given = read_evid(evidence.read_text())[0] if evidence.exists() else {}
    engine = with_limit(options.engine, options.seconds)
    mk.engines.load_kernels()
    warm_up(engine, options.task)
    report(["variables"], len(model))
    start = perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer(model, given, engine, options.task, home / options.task / f"{options.name}.uai.{options.task}")
    report(["seconds"], perf_counter() - start)


def model_folder(home: Path, task: str, name: str) -> Path:
    """Return the folder that holds an instance's model."""
    for folder in (task, "MAR", "PR", "MAP"):
        if (home / folder / f"{name}.uai.gz").exists():
            return home / folder
    raise SystemExit(f"there is no model {name}")


def with_limit(name: str, seconds: float) -> Any:
    """Return an engine with its time limit set, where it has one."""
    engine: Any = mk.engines.get_engine(name)
    return replace(engine, time_limit=seconds) if hasattr(engine, "time_limit") else engine


def warm_up(engine: Any, task: str) -> None:
    """Answer a small question first, so that no compilation is timed."""
    model = mk.generators.ising_grid(3, 3, coupling=0.3, seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        brief = replace(engine, time_limit=0.2) if hasattr(engine, "time_limit") else engine
        if task == "MAP":
            model.map(engine=brief)
        elif task == "PR":
            model.log_partition(engine=brief)
        else:
            model.marginals(engine=brief)


def answer(model: Any, given: dict[str, int], engine: Any, task: str, solution: Path) -> None:
    """Ask, and report the distance from the reference."""
    start = perf_counter()
    if task == "MAR":
        found = model.marginals(given=given, engine=engine)
        report(["answered"], perf_counter() - start)
        info = next(iter(found.values())).info
        published = dict(zip(model.variables, read_mar(solution.read_text()), strict=True))
        errors = [hellinger(p.values, published[n]) for n, p in found.items() if n not in given]
        report(["error"], float(np.mean(errors)))
        report(["engine"], info.engine)
        report(["exact"], info.exact)
        report(["converged"], info.converged)
    elif task == "PR":
        log10 = model.log_partition(given=given, engine=engine) / math.log(10)
        report(["answered"], perf_counter() - start)
        report(["error"], abs(log10 - read_pr(solution.read_text()).log10))
    else:
        best = model.map(given=given, engine=engine)
        report(["answered"], perf_counter() - start)
        known = dict(zip(model.variables, read_map(solution.read_text()), strict=True))
        mine, reference = log_weight(model, {**given, **best}), log_weight(model, known)
        report(["error"], (mine - reference) / math.log(10))
        report(["gap"], best.gap / math.log(10))
        report(["engine"], best.info.engine)
        report(["exact"], best.info.exact)


def hellinger(p: np.ndarray, q: np.ndarray) -> float:
    """Return the Hellinger distance of two distributions, between 0 and 1."""
    return math.sqrt(0.5 * float(np.square(np.sqrt(p) - np.sqrt(q)).sum()))


if __name__ == "__main__":
    main()
