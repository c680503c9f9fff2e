"""Text of the page that compares all engines on one Ising grid, from what `benchmarks/approximate_ising.py` measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from exact_tables import _table as table
from exact_tables import _time
from figures_approximate import KINDS, MEASURED

Found = dict[str, Any]


def ising_marginals(found: Found) -> str:
    """List every engine at its most thorough setting, smallest error first."""
    heading = ["engine", "family", "setting", "time", "error", "converged"]
    rows = []
    for name, ladder in sorted(found["marginals"].items(), key=lambda item: item[1][-1]["error"]):
        last = ladder[-1]
        said = "yes" if last["converged"] else "no"
        row = [_code(name), _kept(_kind(name)), f"`{last['setting']}`", time(last["seconds"])]
        rows.append([*row, f"{last['error']:.5f}", said])
    exact = time(found["junction-tree"]["marginals"])
    rows.append(["`junction-tree`", "exact", "", exact, "0", "yes"])
    return table(heading, rows)


def ising_log_z(found: Found) -> str:
    """List how far each log partition function is off at the most thorough setting, and which ones are bounds."""
    heading = ["engine", "setting", "time", "log Z off by", "promise"]
    rows = []
    ladders = [(n, [r for r in ladder if r["off"] is not None]) for n, ladder in found["log_z"].items()]
    for name, ladder in sorted(
        (item for item in ladders if item[1]), key=lambda item: abs(item[1][-1]["off"])
    ):
        last = ladder[-1]
        promise = _kept(f"{last['bound']} bound") if last["bound"] else "estimate"
        row = [_code(name), f"`{last['setting']}`", time(last["seconds"])]
        rows.append([*row, f"{last['off']:+.2g}", promise])
    return table(heading, rows)


def ising_summary(found: Found) -> str:
    """Say when and on what it was measured, and what stands out."""
    made, runs = found["made"], _runs(found)
    lines = [f"- smallest error of each family: {_best(runs)};"]
    for goal in (0.02, 0.005, 0.001):
        within = [r for r in runs if r[3] <= goal]
        first = min(within, key=lambda r: r[2]) if within else None
        what = f"{_code(first[0])} with `{first[1]}`, in {time(first[2])}" if first else "none"
        lines.append(f"- first to an error of {goal:g}: {what};")
    both = found["bounds"]
    lines.append(
        f"- `log_partition(bounds=True)` takes {time(both['seconds'])} and puts log Z between {-both['lower']:.3g} nats "
        f"below and {both['upper']:.3g} nats above the truth;"
    )
    seconds = found["junction-tree"]
    lines.append(
        f"- the junction tree, exact, takes {time(seconds['marginals'])} for all marginals and {time(seconds['log_z'])} "
        "for log Z."
    )
    packages = ", ".join(f"{p} {made[p]}" for p in ("numpy", "numba"))
    size = found["size"]
    head = f"Measured on {made['date']} on a grid of {size} x {size}, {made['cores']} cores, {packages}:"
    return "\n".join([head, "", *lines, ""])


TABLES: tuple[Callable[[Found], str], ...] = (ising_marginals, ising_log_z, ising_summary)


def write_all(folder: Path) -> list[Path]:
    """Write every table into a folder and return the files."""
    found = json.loads(MEASURED.read_text())
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for make in TABLES:
        path = folder / f"{make.__name__.replace('_', '-')}.md"
        path.write_text(make(found))
        written.append(path)
    return written


def _runs(found: Found) -> list[tuple[str, str, float, float]]:
    """Return engine, setting, seconds and error of every run."""
    return [
        (name, r["setting"], r["seconds"], r["error"])
        for name, rows in found["marginals"].items()
        for r in rows
    ]


def _best(runs: list[tuple[str, str, float, float]]) -> str:
    parts = []
    for kind in KINDS:
        name, setting, seconds, error = min((r for r in runs if _kind(r[0]) == kind), key=lambda r: r[3])
        parts.append(f"{kind} {error:.2g} ({_code(name)}, `{setting}`, {time(seconds)})")
    return ", ".join(parts)


def time(seconds: float) -> str:
    """Return seconds in words that stay on one line."""
    return _kept(_time(seconds))


def _kept(text: str) -> str:
    return text.replace(" ", "\N{NO-BREAK SPACE}")


def _kind(name: str) -> str:
    return next(kind for kind, (_, engines) in KINDS.items() if name.partition(",")[0] in engines)


def _code(name: str) -> str:
    engine, _, variant = name.partition(", ")
    return f"`{engine}`, {variant}" if variant else f"`{engine}`"
