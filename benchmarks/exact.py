"""How fast exact inference is: 21 real networks side by side with pyAgrum, and the UAI 2014 instances.

Run: python benchmarks/exact.py [--quick] [--only NAME ...] [--skip-peers] [--output FILE]

What is measured, all in medians (at least 5 runs after a warm-up and until they add up to half a second; fewer where
20 seconds have gone by; the garbage collector is off while the clock runs):

1. All marginals, with nothing observed and with three leaves observed (two or one where the network has no more),
   from a loaded model: no plan cached, no state kept, compiled kernels in memory. pyAgrum gets the same tables in
   double precision; its time is constructing the inference object, entering the evidence, running it and fetching the
   posterior of every unobserved node. Both its engines are run, the faster one counts.
2. A repeated query: one target, the states of the three leaves changing from query to query, model compiled. For
   pyAgrum one inference object lives on and `chgEvidence` is used, which is its fastest way. It is measured twice: as
   it comes, ready for any target like the model here, and told beforehand by `setTargets` that nothing else will be
   asked.
3. The peak memory of all marginals on link and munin1, each in a process of its own.
4. UAI instances: entries of the best tree found; where they are at most 1e9, the time, and the error against the
   published answers (log10 Z relative, marginals absolute, MAP as log weight above the best known one).
5. A fresh process that imports markovia and answers one query on asia: from the start of Python to its end, with all
   caches warm, and with no bytecode and no compiled kernel anywhere.
6. Time of one run of a compiled tree against the entries of its tables, for the picture in the guide.

Every network and every instance runs in a process of its own, one after the other, inside 12 GiB and a time limit:
what does not fit "fails (memory)" and the rest goes on. The answers are compared while they are measured. Rows of BIF
files are rounded, so that some sum to one only to 1e-6; whether an engine sums a node out or drops it then matters,
and answers differ by up to 1e-7. Everything else agrees to 1e-12.

The models are looked for in MARKOVIA_BENCHMARKS, else in ../shared/benchmarks. A full run writes docs/data/exact.json,
from which the guide's tables and picture are made; a partial one writes only what `--output` names. The exit code of a
full run is 1 if a goal is missed.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

from exact_uai import MOST_ENTRIES
from import_time import FIRST_QUERY
from stopwatch import benchmark_folder, in_child

from markovia.runtime.threads import thread_count

DATA = Path(__file__).parents[1] / "docs" / "data" / "exact.json"
QUICK = ("asia", "cancer", "earthquake", "sachs", "survey", "alarm", "child", "insurance")
QUICK_UAI = ("Pedigree_11", "Promedus_31", "Segmentation_15")
MEMORY = ("link", "munin1")
GIGABYTES = 12.0
NETWORK_SECONDS = 1800.0
UAI_SECONDS = 300.0
GOALS = {"all marginals": 10.0, "repeated": 30.0, "memory": 8 * 2**30, "fresh process": 0.8}

AGREEMENT = 1e-6
"""How far answers may be apart: rows of BIF files sum to one only so far."""

Found = dict[str, Any]


def main() -> int:
    options = _arguments()
    home = benchmark_folder()
    networks = sorted(p.name.removesuffix(".bif.gz") for p in home.glob("bif/*.bif.gz"))
    instances = sorted(
        (p.parent.name, p.name.removesuffix(".uai.gz"))
        for folder in ("MAR", "PR", "MAP")
        for p in home.glob(f"uai/{folder}/*.uai.gz")
    )
    if not networks and not instances:
        print(
            f"no models in {home}; set MARKOVIA_BENCHMARKS to the folder of bif/ and uai/. Nothing measured."
        )
        return 0
    if options.quick:
        networks = [n for n in networks if n in QUICK]
        instances = [i for i in instances if i[1] in QUICK_UAI and i[0] != "MAP"]
    if options.only:
        networks = [n for n in networks if n in options.only]
        instances = [i for i in instances if i[1] in options.only]
    found: Found = {"made": _circumstances()}
    print(", ".join(f"{k} {v}" for k, v in found["made"].items()) + "\n")
    compile_kernels()
    found["networks"] = measure_networks(networks, options)
    if options.only or not options.quick:
        found["memory"] = measure_memory([n for n in MEMORY if n in networks])
    found["uai"] = measure_uai(instances)
    if not options.only:
        found["fresh"] = measure_fresh(3 if options.quick else 9)
    partial = options.quick or options.only or options.skip_peers
    found["summary"] = [list(line) for line in summary(found)]
    for text, fine in found["summary"]:
        print(f"{'      ' if fine is None else 'met   ' if fine else 'MISSED'}  {text}")
    output = options.output or (None if partial else DATA)
    if output:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(json.dumps(found, indent=1) + "\n")
        print(f"\nwritten to {output}")
    return 0 if partial or all(fine is not False for _, fine in found["summary"]) else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small models and fewer runs, within a minute")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="names of networks and of UAI instances")
    parser.add_argument("--skip-peers", action="store_true", help="markovia alone")
    parser.add_argument("--output", type=Path, help="where to write the numbers as JSON")
    return parser.parse_args()


def _circumstances() -> Found:
    made: Found = {
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "cores": os.cpu_count(),
        "threads": thread_count(),
        "Python": platform.python_version(),
    }
    for package in ("markovia", "numpy", "numba", "pyagrum"):
        try:
            made[package] = version(package)
        except PackageNotFoundError:
            made[package] = "absent"
    return made


def compile_kernels() -> None:
    """Compile the kernels if they never were, so that no child waits for it."""
    code = "import markovia as mk; print(mk.engines.load_kernels())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    if float(done.stdout) > 5.0:
        print(f"compiling the kernels, once an installation: {float(done.stdout):.0f} s\n")


# -- networks -------------------------------------------------------------------------------------------------------


def measure_networks(names: list[str], options: argparse.Namespace) -> Found:
    """Measure network after network and print a line for each; then the repeated queries."""
    flags = [f for f, on in (("--quick", options.quick), ("--skip-peers", options.skip_peers)) if on]
    found: Found = {}
    if not names:
        return found
    print(
        "All marginals from a loaded model: markovia, the faster engine of pyAgrum, and how many times longer it takes"
    )
    heading = f"{'network':<12}{'nodes':>6}{'entries':>9} "
    print(heading + 2 * f"{'markovia':>11}{'pyAgrum':>16}{'ratio':>9}" + f"{'differ by':>12}")
    print(f"{'':<{len(heading)}}{'nothing observed':>36}{'three leaves observed':>36}")
    for name in names:
        one = found[name] = in_child(["exact_networks.py", name, *flags], NETWORK_SECONDS, GIGABYTES)
        entries = f"{one['run']['entries']:.1e}" if "run" in one else "-"
        cells = "".join(_cells(one, "all", setting) for setting in ("none", "leaves"))
        print(
            f"{name:<12}{one.get('variables', '-'):>6}{entries:>9} {cells}{_number(_difference(one)):>12}",
            flush=True,
        )
        if (_difference(one) or 0.0) > AGREEMENT:
            print(f"   WRONG: the answers differ by more than {AGREEMENT:.0e}")
        if one.get("ended") not in (None, "memory", "time"):
            print(f"   ended: {one['ended']}")
    print(
        "\nA repeated query, other states observed each time; pyAgrum ready for any target, and for this one only"
    )
    print(
        f"{'network':<12}{'target':<22}{'markovia':>11}{'pyAgrum':>16}{'ratio':>9}{'this one only':>16}{'ratio':>9}"
    )
    for name, one in found.items():
        target = one.get("repeated", {}).get("target", "-")
        cells = _cells(one, "repeated") + _cells(one, "repeated", declared=True)[11:]
        print(f"{name:<12}{target[:20]:<22}{cells}")
    print()
    return found


def peer(one: Found, part: str, setting: str | None = None, declared: bool = False) -> float | str | None:
    """Return the seconds of pyAgrum's faster engine, or why there are none; None if it was not asked."""
    cells = one.get(part, {}) if setting is None else one.get(part, {}).get(setting, {})
    tried = [cells.get(e + (" declared" if declared else "")) for e in ("lazy", "shafer")]
    seconds = [t["seconds"] for t in tried if t is not None and "seconds" in t]
    if seconds:
        return float(min(seconds))
    failed = [str(t["failed"]) for t in tried if t is not None and "failed" in t]
    return failed[0] if failed else one.get("ended")


def own(one: Found, part: str, setting: str | None = None) -> float | None:
    """Return the seconds of markovia."""
    cells = one.get(part, {}) if setting is None else one.get(part, {}).get(setting, {})
    return cells["markovia"]["seconds"] if "markovia" in cells else None


def ratios(
    networks: Found, part: str, setting: str | None = None, declared: bool = False
) -> dict[str, float]:
    """Return how many times longer pyAgrum takes, for each network that it can do."""
    found = {}
    for name, one in networks.items():
        ours, theirs = own(one, part, setting), peer(one, part, setting, declared)
        if ours is not None and isinstance(theirs, float):
            found[name] = theirs / ours
    return found


def _cells(one: Found, part: str, setting: str | None = None, declared: bool = False) -> str:
    ours, theirs = own(one, part, setting), peer(one, part, setting, declared)
    shown = (
        time_of(theirs) if isinstance(theirs, float) else "-" if theirs is None else f"fails ({theirs[:8]})"
    )
    ratio = (
        f"{theirs / ours:{'.1f' if theirs > ours else '.2f'}} x"
        if ours is not None and isinstance(theirs, float)
        else "-"
    )
    return f"{time_of(ours):>11}{shown:>16}{ratio:>9}"


def _difference(one: Found) -> float | None:
    """Return the largest difference between an answer here and one by pyAgrum."""
    cells = [c for setting in one.get("all", {}).values() for c in setting.values()]
    cells += [c for c in one.get("repeated", {}).values() if isinstance(c, dict)]
    return max((c["difference"] for c in cells if "difference" in c), default=None)


# -- memory, UAI instances, fresh processes -------------------------------------------------------------------------


def measure_memory(names: list[str]) -> Found:
    """Measure the peak memory of all marginals, each network in a process of its own."""
    found = {n: in_child(["exact_networks.py", n, "--peak"], NETWORK_SECONDS) for n in names}
    for name, one in found.items():
        peak = f"{one['bytes'] / 2**30:.2f} GiB" if "bytes" in one else f"fails ({one.get('ended')})"
        print(f"peak memory of all marginals, {name}: {peak}")
    if found:
        print()
    return found


def measure_uai(instances: list[tuple[str, str]]) -> Found:
    """Solve instance after instance and print a line for each."""
    found: Found = {}
    if not instances:
        return found
    print(f"UAI instances; those with more than {MOST_ENTRIES:.0e} entries are not run")
    print(
        f"{'instance':<24}{'nodes':>6}{'entries':>9}{'marginals':>11}{'error':>9}{'log Z error':>13}"
        f"{'MAP':>11}{'gain':>9}"
    )
    for folder, name in instances:
        one = found[f"{folder}/{name}"] = in_child(["exact_uai.py", folder, name], UAI_SECONDS, GIGABYTES)
        marginals, log_z, best = one.get("marginals", {}), one.get("log_z", {}), one.get("map", {})
        wrong = [k for k in ("marginals", "log_z", "map") if one.get(k, {}).get("right") is False]
        note = f"  WRONG: {', '.join(wrong)}" if wrong else f"  {_ended(one)}" if "ended" in one else ""
        print(
            f"{folder + '/' + name:<24}{one.get('variables', '-'):>6}{_number(one.get('entries')):>9}"
            f"{time_of(marginals.get('seconds')):>11}{_number(marginals.get('error')):>9}"
            f"{_number(log_z.get('error')):>13}{time_of(best.get('seconds')):>11}{_number(best.get('gain')):>9}{note}",
            flush=True,
        )
    print()
    return found


def measure_fresh(runs: int) -> Found:
    """Time whole processes: import and one query."""
    found: Found = {}
    for kind in ("warm", "cold"):
        seconds = []
        for _ in range(runs + 1):
            with tempfile.TemporaryDirectory() as empty:
                environment = {**os.environ}
                if kind == "cold":
                    environment |= {
                        "PYTHONPYCACHEPREFIX": f"{empty}/python",
                        "NUMBA_CACHE_DIR": f"{empty}/numba",
                    }
                start = perf_counter()
                subprocess.run([sys.executable, "-c", FIRST_QUERY], env=environment, check=True)
                seconds.append(perf_counter() - start)
        # the first process fills the caches of the operating system
        found[kind] = {"seconds": statistics.median(seconds[1:]), "runs": runs}
        print(
            f"fresh process, import and one query on asia, {kind} caches: {time_of(found[kind]['seconds'])}"
        )
    print()
    return found


# -- in the end -----------------------------------------------------------------------------------------------------


def summary(found: Found) -> Iterator[tuple[str, bool | None]]:
    """Yield what came out, sentence by sentence, and whether the goal is met where there is one."""
    yield from _network_goals(found["networks"])
    for name, one in found.get("memory", {}).items():
        yield f"{name} inside 8 GiB", one.get("bytes", math.inf) < GOALS["memory"]
    feasible = {n: one for n, one in found["uai"].items() if one.get("entries", 0.0) <= MOST_ENTRIES}
    if feasible:
        missing = [n for n, one in feasible.items() if not solves(one)]
        solved = f"{len(feasible) - len(missing)} of {len(feasible)}"
        text = f"UAI: {solved} instances within {MOST_ENTRIES:.0e} entries are solved and right"
        yield text + "".join(f"; not {n}" for n in missing), not missing
    for kind, one in found.get("fresh", {}).items():
        text = f"fresh process, {kind} caches: {time_of(one['seconds'])}; goal 0.8 s"
        yield text, one["seconds"] <= GOALS["fresh process"]


def _network_goals(networks: Found) -> Iterator[tuple[str, bool | None]]:
    differences = {n: d for n, one in networks.items() if (d := _difference(one)) is not None}
    if differences:
        name = max(differences, key=differences.__getitem__)
        yield (
            f"answers differ from pyAgrum's by at most {differences[name]:.1e} ({name})",
            (differences[name] <= AGREEMENT),
        )
    bare, leaves = (ratios(networks, "all", setting) for setting in ("none", "leaves"))
    both = [*bare.items(), *leaves.items()]
    if both:
        mean = geometric_mean(r for _, r in both)
        parts = [geometric_mean(one.values()) for one in (bare, leaves)]
        yield (
            f"all marginals: {mean:.1f} x faster than pyAgrum in geometric mean "
            f"(nothing observed {parts[0]:.1f} x, three leaves {parts[1]:.1f} x); goal 10 x",
            mean >= GOALS["all marginals"],
        )
        name, least = min(both, key=lambda pair: pair[1])
        yield f"all marginals: least on {name}, {least:.2f} x; goal: slower on none", least >= 1.0
    for declared in (False, True):
        repeated = ratios(networks, "repeated", declared=declared)
        if repeated:
            mean, least = geometric_mean(repeated.values()), min(repeated.values())
            what = "repeated query, pyAgrum told the only target" if declared else "repeated query"
            text = f"{what}: {mean:.1f} x in geometric mean, least {least:.2f} x"
            yield (text, None) if declared else (f"{text}; goal 30 x", mean >= GOALS["repeated"])


def solves(one: Found) -> bool:
    """Say whether an instance ended well and every answer that could be compared is right."""
    parts = [one[k] for k in ("marginals", "log_z", "map") if k in one]
    return "ended" not in one and bool(parts) and all(p.get("right", True) for p in parts)


def time_of(seconds: float | None) -> str:
    """Write seconds with a unit that fits."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.0f} µs"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def _ended(one: Found) -> str:
    return f"fails ({one['ended']})" if one["ended"] in ("memory", "time") else one["ended"][:80]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean, nan of nothing."""
    found = list(values)
    return math.exp(statistics.fmean(map(math.log, found))) if found else math.nan


if __name__ == "__main__":
    sys.exit(main())
