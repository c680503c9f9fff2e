"""Pictures of the page on Bayesian optimisation; everything is drawn from fixed seeds while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

import markovia as mk

FIRST, SECOND = "#1f6f8b", "#d1603d"


def branin(point: dict[str, float]) -> float:
    """Return the function of Branin, which has three minima of 0.397887."""
    x, y = point["x"], point["y"]
    valley = y - 5.1 / (4 * np.pi**2) * x**2 + 5 / np.pi * x - 6
    return float(valley**2 + 10 * (1 - 1 / (8 * np.pi)) * np.cos(x) + 10)


PLANE = {"x": (-5.0, 10.0), "y": (0.0, 15.0)}


def searching_branin() -> Any:
    """Show what a search of 40 trials knows of a function with three minima, and how it went beside random trials."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 3.9), layout="constrained")
    found = mk.bayesopt.minimize(branin, PLANE, 40, noise=0.0, seed=0)
    found.plot("surrogate", ax=left, title="the mean of the process, and 40 trials")
    regret = [
        np.minimum.accumulate([t.value for t in mk.bayesopt.minimize(branin, PLANE, 40, **options).trials])
        - 0.397887
        for options in (
            *({"noise": 0.0, "seed": s} for s in range(3)),
            *({"initial": 40, "design": "random", "seed": s} for s in range(10)),
        )
    ]
    trials = np.arange(1, 41)
    for runs, colour, name in ((regret[:3], FIRST, "the process chooses"), (regret[3:], SECOND, "at random")):
        right.plot(trials, np.median(runs, axis=0), color=colour, label=name)
    right.set(
        yscale="log",
        xlabel="trial",
        ylabel="lowest so far, above the minimum",
        title="median of several searches",
    )
    right.legend(frameon=False)
    return figure


def tuning_slices() -> Any:
    """Show slices through what a search learned of a support vector machine's settings."""
    from sklearn.datasets import load_wine
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC

    rows, labels = load_wine(return_X_y=True)
    space = {"svc__gamma": (1e-5, 1e1, "log"), "svc__C": (1e-2, 1e3, "log")}
    model = make_pipeline(StandardScaler(), SVC())
    search = mk.bayesopt.Search(model, space, calls=20, random_state=0).fit(rows, labels)
    return search.study_.plot("slices").figure


FIGURES: tuple[Callable[[], Any], ...] = (searching_branin, tuning_slices)
