"""A restricted Boltzmann machine on 8 x 8 digits: seconds an epoch and exact test log likelihood, beside scikit-learn.

Run: python benchmarks/deep_rbm.py [--quick]

Both see the same rows, learn 16 hidden units for 100 epochs, and are scored by the same exact sum over hidden states. Fits
take turns in one run. "Cold" is the first fit of the process, compiling or reading compiled code included; "warm" are those
after it. Wall and processor seconds.
"""

import argparse
import warnings
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import BernoulliRBM

import markovia as mk

UNITS = 16


def exact(weights: Any, visible: Any, hidden: Any, rows: Any) -> float:
    """Return the mean log likelihood of rows, by the sum over all hidden states."""
    states = ((np.arange(2**UNITS)[:, None] >> np.arange(UNITS)) & 1).astype(np.float64)
    log_z = np.logaddexp.reduce(states @ hidden + np.logaddexp(0, states @ weights.T + visible).sum(axis=1))
    return float((rows @ visible + np.logaddexp(0, rows @ weights + hidden).sum(axis=1)).mean() - log_z)


def timed(model: Any, rows: Any) -> tuple[float, float, Any]:
    """Return wall and processor seconds of a fit, and the model."""
    wall, cpu = perf_counter(), process_time()
    model.fit(rows)
    return perf_counter() - wall, process_time() - cpu, model


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer epochs and seeds")
    quick = parser.parse_args().quick
    epochs, seeds = (10, 2) if quick else (100, 5)
    warnings.simplefilter("ignore")
    rows = (load_digits().data > 7.5).astype(np.float64)
    rows = rows[np.random.default_rng(0).permutation(len(rows))]
    train, test = rows[:1437], rows[1437:]
    found: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(seeds):
        for method in ("pcd", "cd"):
            wall, cpu, own = timed(mk.deep.RBM(UNITS, method=method, epochs=epochs, random_state=seed), train)
            p = own.parameters_
            score = exact(p["weight0"], p["bias0"], p["bias1"], test)
            name = f"markovia, {method}{', cold' if seed == 0 else ''}"
            found.setdefault(name, []).append((wall / epochs, cpu / epochs, score))
        wall, cpu, peer = timed(BernoulliRBM(UNITS, n_iter=epochs, random_state=seed), train)
        score = exact(peer.components_.T, peer.intercept_visible_, peer.intercept_hidden_, test)
        found.setdefault("scikit-learn", []).append((wall / epochs, cpu / epochs, score))
    print(f"{len(train):,} x {train.shape[1]}, {UNITS} hidden units, {epochs} epochs, {seeds} seeds")
    for name, runs in found.items():
        wall, cpu, score = np.median(runs, axis=0)
        print(f"  {name:20s} {wall:.4f} ({cpu:.4f}) s an epoch   {score:.2f} nats a test row")


if __name__ == "__main__":
    main()
