"""What this installation has to compute with: versions, threads, memory, and the GPU or the reason why there is none.

Versions are read from the metadata of the packages, so that none of them is loaded; only CuPy is, where it is installed,
because nothing else knows of the GPU. Use it through `markovia info`.
"""

import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from markovia import __version__
from markovia.runtime.devices import DeviceFailure, Gpu, gpu, guarded, why_not
from markovia.runtime.libraries import COMPUTED_WITH as LIBRARIES
from markovia.runtime.libraries import cp
from markovia.runtime.memory_budget import SHARE, default_budget, readable
from markovia.runtime.threads import thread_count

ON_GPU = (
    "exact elimination", "rows of evidence", "EM", "Gibbs sampling", "loopy belief propagation", "Swendsen-Wang",
)  # fmt: skip
"""What `device="gpu"` is for."""


def installation() -> dict[str, Any]:
    """Return the facts that `markovia info` prints without a model; sizes are in bytes.

    Examples
    --------
    >>> facts = installation()
    >>> facts["threads"] >= 1, (facts["gpu"] is None) == bool(facts["why_no_gpu"])
    (True, True)
    """
    budget, found = default_budget(), gpu()
    return {
        "version": __version__,
        "python": platform.python_version(),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "threads": thread_count(),
        "memory_free": round(budget / SHARE),
        "memory_budget": budget,
        "gpu": None if found is None else _described(found),
        "why_no_gpu": why_not() or None,
        "on_gpu": list(ON_GPU),
    }


def installation_lines(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the lines that say the facts to people."""
    lines = [("markovia", facts["version"]), ("Python", facts["python"])]
    lines += [(LIBRARIES[n], known or "not installed") for n, known in facts["libraries"].items()]
    lines += [
        ("threads", str(facts["threads"])),
        (
            "memory",
            f"{readable(facts['memory_free'])} free, {readable(facts['memory_budget'])} for exact engines",
        ),
    ]
    card = facts["gpu"]
    if card is None:
        return [*lines, ("GPU", f"none: {facts['why_no_gpu']}"), ("a GPU is for", ", ".join(facts["on_gpu"]))]
    free = "" if card["memory_free"] is None else f", {readable(card['memory_free'])} free"
    return [
        *lines,
        ("GPU", f"{card['name']} with {readable(card['memory'])}{free}"),
        ("CuPy", f"{card['cupy']} on CUDA {card['cuda']}"),
        ("on the GPU", ", ".join(facts["on_gpu"])),
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _described(found: Gpu) -> dict[str, Any]:
    """Return what there is to say of a GPU; null for what its driver fails to tell."""
    told: dict[str, Any] = {"name": found.name, "memory": found.memory, "memory_free": None}
    told |= {"cupy": cp.__version__, "cuda": None}
    try:
        told["memory_free"] = found.free
        with guarded():
            number = int(cp.cuda.runtime.runtimeGetVersion())  # 13020 is 13.2
        told["cuda"] = f"{number // 1000}.{number % 1000 // 10}"
    except DeviceFailure:
        pass
    return told
