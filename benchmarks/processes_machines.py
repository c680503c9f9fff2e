"""How long kernel machines take and how well they predict, side by side with scikit-learn in one run.

Run: python benchmarks/processes_machines.py [--quick] [--rows N] [--repeats N]

The same covariance and numbers on both sides; in turn, the least of a few repeats. Ridge and smoothers also choose lengths
and penalties by leave-one-out, which scikit-learn's ridge does by refits in `GridSearchCV`. Relevance vectors stand beside
`ARDRegression` on the same bumps. The last column is the error on new rows: root mean squares, the share of wrong classes,
minus the mean log density, or for components the part of the rows' variance that is left out.
"""

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.decomposition import KernelPCA
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import ARDRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR

import markovia as mk

k, gp = mk.covariances, mk.gp
GRID = {"gamma": 0.5 / np.geomspace(0.3, 10.0, 6) ** 2, "alpha": np.geomspace(1e-3, 1.0, 4)}


def rmse(model: Any, new: Any, truth: Any) -> float:
    return float(np.sqrt(np.mean((np.asarray(model.predict(new)) - truth) ** 2)))


def wrong(model: Any, new: Any, truth: Any) -> float:
    return 1.0 - float(model.score(new, truth))


def surprise(model: Any, new: Any, truth: Any) -> float:
    return -float(np.mean(model.score_samples(new)))


def left_out(model: Any, new: Any, truth: Any) -> float:
    scores = model.transform(new)
    return 1.0 - float((scores**2).mean(axis=0).sum())


class Bumps(ARDRegression):  # type: ignore[misc]
    """Automatic relevance determination on bumps at rows."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803
        self.rows_ = X
        return super().fit(k.RBF(1.0).value(X), y)

    def predict(self, X: Any) -> Any:  # noqa: N803
        return super().predict(k.RBF(1.0).value(X, self.rows_))


def main(rows: int = 1000, repeats: int = 3) -> int:
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(0)
    x = rng.uniform(-3.0, 3.0, (2 * rows, 3))
    y = np.sin(2.0 * x[:, 0]) + 0.5 * x[:, 1] + 0.2 * rng.normal(size=2 * rows)
    label = np.where(y + 0.3 * rng.normal(size=2 * rows) > 0.0, "up", "down")
    few = min(rows, 200)
    tasks: list[tuple[str, Callable[[], Any], Callable[[], Any], Any, int, Any]] = [
        ("ridge", lambda: gp.KernelRidge(k.RBF(1.0), penalty=0.1), lambda: KernelRidge(kernel="rbf", gamma=0.5, alpha=0.1),
         y, rows, rmse),
        ("ridge, chosen", gp.KernelRidge, lambda: GridSearchCV(KernelRidge(kernel="rbf"), GRID), y, rows, rmse),
        ("average, chosen", gp.NadarayaWatson, None, y, rows, rmse),
        ("line, chosen", gp.LocalLinear, None, y, rows, rmse),
        ("relevance", lambda: gp.RelevanceVectorRegressor(k.RBF(1.0)), Bumps, y, few, rmse),
        ("margin", lambda: gp.SupportVectorClassifier(k.RBF(1.0), tol=1e-3), lambda: SVC(gamma=0.5), label, rows, wrong),
        ("tube", lambda: gp.SupportVectorRegressor(k.RBF(1.0), tol=1e-3), lambda: SVR(gamma=0.5), y, rows, rmse),
        ("density", lambda: gp.KernelDensity(0.3), lambda: KernelDensity(bandwidth=0.3), None, rows, surprise),
        ("components", lambda: gp.KernelPCA(10, covariance=k.RBF(1.0)),
         lambda: KernelPCA(10, kernel="rbf", gamma=0.5, eigen_solver="dense"), None, rows, left_out),
    ]  # fmt: skip
    print(f"{'machine':16}{'':14}{'rows':>6}{'fit s':>9}{'cpu s':>9}{'ask s':>9}{'cpu s':>9}{'error':>9}")
    for name, ours, theirs, target, n, error in tasks:
        sides = {"markovia": ours, "scikit-learn": theirs}
        best: dict[str, list[float]] = {}
        for _ in range(repeats):
            for side, make in sides.items():
                if make is not None:
                    found = measured(
                        make(), x[:n], None if target is None else target[:n], x[rows:], target, rows, error
                    )
                    best[side] = [min(pair) for pair in zip(best.get(side, found), found, strict=True)]
        for side, seconds in best.items():
            times = "".join(f"{s:9.3f}" for s in seconds[:4])
            print(f"{name:16}{side:14}{n:6}{times}{seconds[4]:9.4f}")
    return 0


def measured(model: Any, x: Any, y: Any, new: Any, target: Any, rows: int, error: Any) -> list[float]:
    """Return wall and processor seconds of fit and of predictions, and the error of these."""
    wall, cpu = perf_counter(), process_time()
    model.fit(x, y) if y is not None else model.fit(x)
    fit = [perf_counter() - wall, process_time() - cpu]
    wall, cpu = perf_counter(), process_time()
    value = error(model, new, None if target is None else target[rows:])
    return [*fit, perf_counter() - wall, process_time() - cpu, value]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="a fifth of the rows, once")
    options = parser.parse_args()
    few = (options.rows // 5, 1) if options.quick else (options.rows, options.repeats)
    raise SystemExit(main(*few))
