"""Objectives by the names that `fit(method=...)` takes."""

from typing import Any

from markovia.runtime.registry import resolve

_HOME = "markovia.learning.neural."
OBJECTIVES = {
    "elbo": _HOME + "elbo:ELBO",
    "likelihood": _HOME + "elbo:ELBO",
    "iwae": _HOME + "elbo:ImportanceWeighted",
    "wake-sleep": _HOME + "wake_sleep:WakeSleep",
    "reweighted-wake-sleep": _HOME + "wake_sleep:ReweightedWakeSleep",
}


def objective_named(name: str) -> Any:
    """Return an objective with its usual settings."""
    return resolve(OBJECTIVES[name])()
