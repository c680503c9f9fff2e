"""How good and how fast approximate inference is, beside its peers.

Run: python benchmarks/approximate.py [--quick] [--parts bp gibbs map uai] [--tasks MAR PR MAP] [--engines NAME ...]
                                      [--only NAME ...] [--seconds 20] [--output FILE]

1. `bp`: loopy belief propagation on a 512 x 512 Potts grid beside PGMax, and on real networks beside pyAgrum
   (`approximate_bp.py`);
2. `gibbs`: single-site updates a second beside pyAgrum, and on a large binary grid (`approximate_gibbs.py`);
3. `map`: a graph cut on a 512 x 512 denoising problem (`approximate_map.py`);
4. `uai`: the UAI 2014 instances, each engine with the same time limit, each run in a process of its own
   (`approximate_uai.py`): mean Hellinger error of marginals, error of log10 Z, log10 of the weight of the best
   assignment above the reference; a family's mean is over the instances that were answered.

The instances are looked for in MARKOVIA_BENCHMARKS, else in ../shared/benchmarks. Findings of part 4 are written to
docs/data/approximate.json (or `--output`) as they come, and added to those already there.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from stopwatch import benchmark_folder, in_child

DATA = Path(__file__).parents[1] / "docs" / "data" / "approximate.json"
GIGABYTES = 22.0
ENGINES = {
    "MAR": ("auto", "loopy-bp", "join-graph", "mean-field", "tree-reweighted", "gibbs"),
    "PR": ("auto", "loopy-bp", "join-graph", "mean-field", "tree-reweighted", "annealed-importance"),
    "MAP": (
        "auto",
        "map-search",
        "max-product",
        "trw-s",
        "dual-decomposition",
        "guided-local-search",
        "large-neighbourhood",
        "simulated-annealing",
        "icm",
    ),
}
QUICK = ("Segmentation_13", "Grids_11", "linkage_21", "Grids_26", "wcsp_15")


def main() -> int:
    options = _arguments()
    for part, script in (("bp", "bp"), ("gibbs", "gibbs"), ("map", "map")):
        if part in options.parts:
            quick = ["--quick"] if options.quick else []
            here = Path(__file__).with_name(f"approximate_{script}.py")
            subprocess.run([sys.executable, str(here), *quick], check=True)
    if "uai" in options.parts:
        found = _run_uai(options)
        for task in options.tasks:
            _print_families(task, found.get(task, {}))
    return 0


def _run_uai(options: argparse.Namespace) -> dict[str, Any]:
    home = benchmark_folder() / "uai"
    if not home.exists():
        print(f"no UAI instances in {home}; set MARKOVIA_BENCHMARKS")
        return {}
    found: dict[str, Any] = json.loads(options.output.read_text()) if options.output.exists() else {}
    for task in options.tasks:
        names = sorted(p.name.removesuffix(f".uai.{task}") for p in (home / task).glob(f"*.uai.{task}"))
        wanted = options.only or (QUICK if options.quick else None)
        for name in [n for n in names if wanted is None or n in wanted]:
            for engine in options.engines or ENGINES[task]:
                limit = 6 * options.seconds + 120
                arguments = ["approximate_uai.py", task, name, engine, "--seconds", str(options.seconds)]
                one = in_child(arguments, seconds=limit, gigabytes=GIGABYTES)
                found.setdefault(task, {}).setdefault(name, {})[engine] = one
                error = one.get("error")
                shown = "-" if error is None else f"{error:.5f}"
                extra = one.get("ended") or one.get("engine", "")
                print(
                    f"{task} {name:22} {engine:20} {shown:>10} {one.get('answered', float('nan')):7.1f} s  {extra}",
                    flush=True,
                )
                options.output.parent.mkdir(exist_ok=True)
                options.output.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    return found


def _print_families(task: str, instances: dict[str, Any]) -> None:
    engines = sorted({e for one in instances.values() for e in one}, key=lambda e: (e != "auto", e))
    families: dict[str, list[str]] = {}
    for name in instances:
        families.setdefault(re.split(r"[_\-.]", name)[0], []).append(name)
    print(f"\n{task}: mean a family" + (" (log10 above the reference)" if task == "MAP" else ""))
    print(f"{'family':18}" + "".join(f"{e[:18]:>20}" for e in engines))
    for family, names in [*families.items(), ("all", list(instances))]:
        cells = []
        for engine in engines:
            errors = [instances[n][engine]["error"] for n in names if "error" in instances[n].get(engine, {})]
            cells.append(f"{statistics.mean(errors):.4f} ({len(errors)}/{len(names)})" if errors else "-")
        print(f"{family:18}" + "".join(f"{c:>20}" for c in cells))
    if task == "MAP":
        for engine in engines:
            reached = [n for n, one in instances.items() if one.get(engine, {}).get("error", -1.0) >= -1e-6]
            print(f"{engine}: at or above the reference on {len(reached)} of {len(instances)}")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few instances and small sizes")
    parser.add_argument("--parts", nargs="+", default=["bp", "gibbs", "map", "uai"])
    parser.add_argument("--tasks", nargs="+", default=["MAR", "PR", "MAP"])
    parser.add_argument("--engines", nargs="+")
    parser.add_argument("--only", nargs="+")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--output", type=Path, default=DATA)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
