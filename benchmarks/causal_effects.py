"""Doubly robust effects with gradient boosting, side by side with EconML and DoubleML on the same rows and learners.

Run: python benchmarks/causal_effects.py [--quick] [--rows N]

Each library cross-fits scikit-learn's HistGradientBoosting with its defaults in five folds, for the outcome and for the
treatment, and estimates the average effect of a binary treatment with its standard error. Seconds are wall clock, with
processor seconds in brackets: the machine's other work slows only the first. A library that is not installed is left out.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from time import perf_counter, process_time

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from markovia.causal.estimation.adjustment.doubly_robust import aipw
from markovia.causal.estimation.adjustment.estimates import contrast
from markovia.runtime.array_types import Array, Ints

FOLDS = 5
Found = tuple[float, float]


def rows(n: int, seed: int = 0) -> tuple[Ints, Array, Array]:
    """Return a binary treatment, an outcome and ten covariates; the average effect is 1."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 10))
    p = 1 / (1 + np.exp(-0.5 * x[:, 0] - 0.5 * np.sin(x[:, 1])))
    a = (rng.random(n) < p).astype(np.int64)
    y = a * (1 + 0.5 * x[:, 2]) + np.cos(x[:, 0]) + x[:, 1] * x[:, 3] + rng.normal(size=n)
    return a, y, x


def markovia(a: Ints, y: Array, x: Array) -> Found:
    learner = {"outcome": HistGradientBoostingRegressor(), "treatment": HistGradientBoostingClassifier()}
    found = contrast(aipw(a, y, x, learner=learner, folds=FOLDS), 1, 0)
    return found.value, found.standard_error


def econml(a: Ints, y: Array, x: Array) -> Found:
    from econml.dr import LinearDRLearner

    model = LinearDRLearner(
        model_regression=HistGradientBoostingRegressor(),
        model_propensity=HistGradientBoostingClassifier(),
        cv=FOLDS,
        min_propensity=0.01,
        random_state=0,
    )
    model.fit(y, a, X=None, W=x)
    found = model.intercept__inference(T=1)
    return float(np.ravel(found.point_estimate)[0]), float(np.ravel(found.stderr)[0])


def doubleml(a: Ints, y: Array, x: Array) -> Found:
    from doubleml import DoubleMLData, DoubleMLIRM

    model = DoubleMLIRM(
        DoubleMLData.from_arrays(x, y, a),
        HistGradientBoostingRegressor(),
        HistGradientBoostingClassifier(),
        n_folds=FOLDS,
    )
    model.fit()
    return float(model.coef[0]), float(model.se[0])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller data")
    parser.add_argument("--rows", type=int, default=100_000)
    options = parser.parse_args()
    n = 5_000 if options.quick else options.rows
    warnings.filterwarnings("ignore")
    tasks: dict[str, Callable[[Ints, Array, Array], Found]] = {"markovia": markovia}
    tasks |= {f.__name__: f for f in (econml, doubleml) if find_spec(f.__name__)}
    data = rows(n)
    for task in tasks.values():  # the first call imports and warms up
        task(*rows(500, 1))
    print(f"average effect (true 1), {n:,} rows, ten covariates, gradient boosting, {FOLDS} folds")
    worst = 0
    for name, task in tasks.items():
        start, began = perf_counter(), process_time()
        value, error = task(*data)
        wall, worked = perf_counter() - start, process_time() - began
        print(f"  {name:<10} {wall:8.2f} s ({worked:.2f})   {value:.4f} +- {error:.4f}", flush=True)
        worst |= abs(value - 1) > 5 * error
    return worst


if __name__ == "__main__":
    sys.exit(main())
