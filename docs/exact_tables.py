"""The tables of the page on speed, written in Markdown from what `benchmarks/exact.py` measured."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEASURED = Path(__file__).parent / "data" / "exact.json"

Found = dict[str, Any]


def exact_networks(found: Found) -> str:
    """Put all marginals of every network side by side with pyAgrum."""
    heading = ["network", "nodes", "entries"] + 2 * ["markovia", "pyAgrum", "ratio"]
    rows = []
    for name, one in found["networks"].items():
        row = [name, f"{one['variables']:,}", _entries(one["run"]["entries"])]
        for setting in ("none", "leaves"):
            row += _compared(one["all"][setting])
        rows.append(row)
    return _table(heading, rows)


def exact_repeated(found: Found) -> str:
    """Compare one target asked again and again under changing evidence."""
    heading = ["network", "target", "markovia", "pyAgrum", "ratio", "pyAgrum, one target", "ratio"]
    rows = []
    for name, one in found["networks"].items():
        cells = one["repeated"]
        rows.append([name, f"`{cells['target']}`", *_compared(cells), *_compared(cells, " declared")[1:]])
    return _table(heading, rows)


def exact_uai(found: Found) -> str:
    """List the instances that were solved, smallest tree first."""
    heading = ["instance", "nodes", "entries", "all marginals", "error", "error of log Z"]
    rows = []
    solved = {n: one for n, one in found["uai"].items() if "marginals" in one}
    for name, one in sorted(solved.items(), key=lambda item: item[1]["entries"]):
        row = [
            name.split("/")[1],
            f"{one['variables']:,}",
            _entries(one["entries"]),
            _time(one["marginals"]["seconds"]),
        ]
        row += [_error(one[part].get("error")) if part in one else "" for part in ("marginals", "log_z")]
        rows.append(row)
    return _table(heading, rows)


def exact_summary(found: Found) -> str:
    """Say what came out, and when and on what it was measured."""
    made = found["made"]
    packages = ", ".join(f"{p} {made[p]}" for p in ("numpy", "numba", "pyagrum"))
    lines = [f"- {text.partition('; goal')[0]}" for text, _ in found["summary"]]
    lines += [
        f"- peak memory of all marginals on {name}: {one['bytes'] / 2**30:.2f} GiB"
        for name, one in found.get("memory", {}).items()
        if "bytes" in one
    ]
    return "\n".join([f"Measured on {made['date']}, {made['cores']} cores, {packages}:", "", *lines, ""])


TABLES: tuple[Callable[[Found], str], ...] = (exact_networks, exact_repeated, exact_uai, exact_summary)


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


def _compared(cells: Found, kind: str = "") -> list[str]:
    own = cells["markovia"]["seconds"]
    tried = [cells[engine + kind] for engine in ("lazy", "shafer") if engine + kind in cells]
    seconds = [t["seconds"] for t in tried if "seconds" in t]
    if seconds:
        ratio = min(seconds) / own
        return [_time(own), _time(min(seconds)), f"{ratio:.1f}" if ratio > 1.0 else f"{ratio:.2f}"]
    return [_time(own), "out of memory" if any(t["failed"] == "memory" for t in tried) else "–", ""]


def _time(seconds: float) -> str:
    if seconds >= 1.0:
        return f"{seconds:.3g} s"
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} µs"


def _entries(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.1e}"


def _error(value: float | None) -> str:
    return "" if value is None else f"{value:.0e}"


def _table(heading: list[str], rows: list[list[str]]) -> str:
    lines = [heading, [":--", *["--:"] * (len(heading) - 1)], *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
