"""Counterfactuals on alarm: cold, and repeated after compilation, beside pyAgrum's.

Run: MARKOVIA_BENCHMARKS=folder python benchmarks/causal_counterfactuals.py

pyAgrum has no mechanism for tables: it keeps the posterior of each root cause by itself and draws everything else anew, so
that its numbers are others; only the time compares.
"""

import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

from stopwatch import median_time

import markovia as mk

QUESTIONS: dict[str, dict[str, Any]] = {
    "4 facts": {
        "targets": "BP",
        "given": {"HR": "HIGH", "CATECHOL": "HIGH", "BP": "LOW", "HYPOVOLEMIA": "TRUE"},
        "do": {"HYPOVOLEMIA": "FALSE"},
    },
    "8 facts, 9 coupled tables": {
        "targets": "BP",
        "given": {
            "HR": "HIGH", "CATECHOL": "HIGH", "BP": "LOW", "HYPOVOLEMIA": "TRUE", "EXPCO2": "LOW", "HRBP": "HIGH",
            "PRESS": "HIGH", "HISTORY": "TRUE",
        },
        "do": {"KINKEDTUBE": "TRUE"},
    },
}  # fmt: skip


def main() -> None:
    file = Path(os.environ.get("MARKOVIA_BENCHMARKS", ".")) / "bif" / "alarm.bif.gz"
    bn = mk.load(file)
    bn.query(
        "BP", given={"HR": "HIGH"}, engine="junction-tree"
    )  # kernels from the disk are not a question's cost
    print(f"{'milliseconds':34s}{'cold':>10s}{'again':>10s}{'pyAgrum':>10s}")
    for name, question in QUESTIONS.items():
        for kind in ("monotone", "gumbel"):
            fresh = bn.copy()
            start = perf_counter()
            fresh.counterfactual(**question, mechanism=kind)
            cold = perf_counter() - start
            again = median_time(_ask(question, kind), _handed(fresh)).record
            theirs = _pyagrum(bn, question) if kind == "monotone" else None
            said = f"{1e3 * theirs:10.1f}" if theirs is not None else f"{'-':>10s}"
            print(f"{name + ', ' + kind:34s}{1e3 * cold:10.1f}{1e3 * again['seconds']:10.2f}{said}")


def _ask(question: dict[str, Any], kind: str) -> Callable[[mk.BayesianNetwork], Any]:
    return lambda model: model.counterfactual(**question, mechanism=kind)


def _handed(model: mk.BayesianNetwork) -> Callable[[], mk.BayesianNetwork]:
    return lambda: model


def _pyagrum(bn: mk.BayesianNetwork, question: dict[str, Any]) -> float | None:
    try:
        import pyagrum.causal as causal
    except ImportError:
        return None
    model = causal.CausalModel(mk.io.to_pyagrum(bn))
    do = question["do"]

    def ask(_: None) -> Any:
        return causal.counterfactual(
            cm=model, profile=question["given"], on={question["targets"]}, whatif=set(do), values=do
        )

    found: float = median_time(ask, lambda: None).record["seconds"]
    return found


if __name__ == "__main__":
    main()
