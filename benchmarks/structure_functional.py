"""Functional causal models: LiNGAM beside causal-learn, directions of pairs, and NOTEARS.

Data are simulated with fixed seeds: linear models with Laplace noise and about two parents a variable for LiNGAM,
linear Gaussian models for NOTEARS, pairs with known directions for the additive-noise and post-nonlinear models.
Where causal-learn is installed it gets the same rows; its orders and coefficients are compared with ours.

Run: OPENBLAS_NUM_THREADS=1 python benchmarks/structure_functional.py [--quick]
Times are processor seconds of all threads together, the least of some runs after a warm-up; with one thread they are what
an idle machine takes.
"""

import argparse
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk


def best_time(task: Callable[[], Any], runs: int = 3, most: float = 20.0) -> tuple[float, Any]:
    """Return the least processor time of some runs, and what the last returned; no run begins after `most` seconds."""
    found, began, result = np.inf, perf_counter(), None
    for _ in range(runs):
        start = process_time()
        result = task()
        found = min(found, process_time() - start)
        if perf_counter() - began > most:
            break
    return found, result


def linear_model(p: int, n: int, seed: int, gaussian: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Return B of a random model with about two parents a variable, its columns shuffled, and rows from it."""
    rng = np.random.default_rng(seed)
    present = np.tril(rng.random((p, p)) < min(1.0, 4.0 / (p - 1)), -1)
    effects = present * rng.uniform(0.4, 1.2, (p, p)) * rng.choice([-1, 1], (p, p))
    shuffle = rng.permutation(p)
    effects = effects[np.ix_(shuffle, shuffle)]
    noise = rng.normal(size=(n, p)) if gaussian else rng.laplace(size=(n, p))
    return effects, np.linalg.solve(np.eye(p) - effects, noise.T).T


def lingam_rows(sizes: list[tuple[int, int]], peer_to: int = 20) -> Iterator[str]:
    """Yield seconds and errors of both LiNGAM methods, and of causal-learn's up to so many variables."""
    import markovia.kernels.structure.residual_entropies  # noqa: F401  # from here on the compiled code is used

    mk.learn_structure(linear_model(4, 100, 0)[1], "direct-lingam")  # warm
    for p, n in sizes:
        effects, rows = linear_model(p, n, 1)
        for method, peer in (("direct-lingam", "DirectLiNGAM"), ("ica-lingam", "ICALiNGAM")):
            seconds, found = best_time(lambda m=method, r=rows: mk.learn_structure(r, m, seed=0))
            wrong = int(((found.details.B != 0) != (effects != 0)).sum())
            line = f"{method:14s} {p:4d} variables {n:6d} rows {seconds:8.3f} s  "
            line += f"{wrong:3d} of {int((effects != 0).sum())} wrong"
            if find_spec("causallearn") and (p <= peer_to or method == "ica-lingam"):
                from causallearn.search.FCMBased import lingam

                def fit(name: str = peer, r: np.ndarray = rows) -> Any:
                    model = getattr(lingam, name)(random_state=0)
                    model.fit(r)
                    return model

                theirs, model = best_time(fit, runs=2)
                order = [found.nodes.index(name) for name in found.details.order]
                gap = np.abs(model.adjacency_matrix_ - found.details.B).max()
                line += f"; causal-learn {theirs:8.3f} s ({theirs / seconds:.1f} times), "
                line += f"{'same' if order == list(model.causal_order_) else 'another'} order, B differs by {gap:.3f}"
            yield line


def pairs(n: int, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(seed)
    x, e = rng.uniform(-1.7, 1.7, (2, n))
    long = rng.laplace(size=n)
    yield "anm", x, x + x**3 / 2 + e
    yield "anm", x, np.sin(2 * x) + 0.4 * long
    yield "anm", x, x**2 + 0.5 * e
    yield "pnl", x, (x + x**3 / 3 + 0.7 * e) ** 3
    yield "pnl", x, np.cbrt(x**2 + 0.4 * long)
    yield "pnl", long, np.tanh((long**3 + 0.5 * e) / 2)
    yield "pnl", x, np.exp(x**3 / 2 + 0.5 * e)


def pair_rows(n: int = 1000, seeds: int = 5) -> Iterator[str]:
    """Yield how many directions are right, wrong and left open, and seconds a pair."""
    for model in ("anm", "pnl"):
        right = wrong = unknown = 0
        spent = []
        for seed in range(seeds):
            for kind, x, y in pairs(n, seed):
                if kind == model:
                    start = process_time()
                    found = mk.pairwise_direction(x, y, model)
                    spent.append(process_time() - start)
                    right += found.direction == ("x", "y")
                    wrong += found.direction == ("y", "x")
                    unknown += found.direction is None
        yield f"{model} {n} rows: {right} right, {wrong} wrong, {unknown} open; {np.median(spent):.3f} s a pair"


def notears_rows(sizes: list[int], n: int = 1000) -> Iterator[str]:
    """Yield seconds and wrong edges of NOTEARS on linear Gaussian data with equal noises."""
    for d in sizes:
        effects, rows = linear_model(d, n, 2, gaussian=True)
        for scaled in (False, True):
            seconds, found = best_time(
                lambda r=rows, s=scaled: mk.learn_structure(
                    r, "notears", standardise=s, threshold=0.1 if s else 0.3
                ),
                runs=1,
            )
            wrong = int(((found.weights != 0) != (effects.T != 0)).sum())
            how = "standardised" if scaled else "as they are"
            yield f"notears {d:3d} variables, {how}: {seconds:7.2f} s, {wrong} of {int((effects != 0).sum())} wrong"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    quick = parser.parse_args().quick
    sizes = [(10, 2000), (20, 2000)] if quick else [(10, 2000), (20, 2000), (50, 10_000), (100, 10_000)]
    for line in lingam_rows(sizes):
        print(line, flush=True)
    for line in pair_rows(seeds=2 if quick else 5):
        print(line, flush=True)
    for line in notears_rows([10] if quick else [10, 20, 50]):
        print(line, flush=True)


if __name__ == "__main__":
    main()
