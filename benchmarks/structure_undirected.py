"""How fast undirected graphs are learned, beside scikit-learn, in one run.

Run: python benchmarks/structure_undirected.py [--quick] [--parts glasso neighbourhood ising potts recovery votes]

1. `glasso`: the graphical lasso of 200 columns for several penalties, both to a tight tolerance (scikit-learn's to as many
   iterations as that needs), with the largest difference of the two precision matrices; where they differ most the columns
   KKT say whose optimality conditions are violated;
2. `neighbourhood`: neighbourhood selection among 1,000 columns; scikit-learn's Lasso and LassoCV are measured on a few
   columns and their time for all is extrapolated;
3. `ising`: grids of spins from 2,000 rows, by logistic regressions and by pseudo-likelihood;
4. `potts`: grids of columns with three to five states, by pseudo-likelihood with groups;
5. `recovery`: how often neighbourhood selection finds a chain exactly, against rows / log(columns);
6. `votes`: networks that change over time, on synthetic roll calls of 100 voters and 542 votes.

Data are drawn with fixed seeds. Threads: MARKOVIA_THREADS and OMP_NUM_THREADS, both 1 unless they are set.
"""

import argparse
import os
import sys
import warnings
from time import perf_counter
from typing import Any

for name in ("MARKOVIA_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np  # noqa: E402

import markovia as mk  # noqa: E402

PARTS = ("glasso", "neighbourhood", "ising", "potts", "recovery", "votes")


def sparse_rows(p: int, n: int, seed: int, degree: float = 4.0) -> tuple[Any, Any]:
    """Return the precision matrix of a random sparse graph and rows of it."""
    rng = np.random.default_rng(seed)
    upper = np.triu(rng.random((p, p)) < degree / p, 1) * rng.choice([-0.3, 0.3], (p, p))
    precision = upper + upper.T
    precision += np.diag(np.abs(precision).sum(axis=1) + 0.3)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    return precision, rng.normal(size=(n, p)) @ root.T


def best_of(task: Any, runs: int) -> tuple[float, Any]:
    """Return the least seconds of some runs and the last result."""
    least, result = float("inf"), None
    for _ in range(runs):
        start = perf_counter()
        result = task()
        least = min(least, perf_counter() - start)
    return least, result


def violation(cov: Any, precision: Any, rho: float) -> float:
    """Return the largest violation of the optimality conditions of the graphical lasso."""
    gap = cov - np.linalg.inv(precision)
    penalty = rho * (1 - np.eye(len(cov)))
    used = precision != 0
    off = np.where(used, np.abs(gap + penalty * np.sign(precision)), np.maximum(np.abs(gap) - penalty, 0))
    return float(off.max())


def glasso(quick: bool) -> list[str]:
    """Compare the graphical lasso with scikit-learn's."""
    from sklearn.covariance import graphical_lasso

    from markovia.structure.undirected.sparse_precision import sparse_precision

    sparse_precision(np.array([[1.0, 0.5], [0.5, 1.0]]), 0.1)  # loads the compiled code
    found = ["columns  rho    edges  markovia s  KKT      scikit-learn s  KKT      times  difference"]
    p, n = (100, 500) if quick else (200, 1000)
    _, rows = sparse_rows(p, n, 0)
    cov = np.corrcoef(rows.T)
    for rho in (0.3, 0.2, 0.1, 0.05, 0.03):
        ours, own = best_of(lambda rho=rho: sparse_precision(cov, rho), 3)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs, (_, precision) = best_of(
                lambda rho=rho: graphical_lasso(cov, rho, tol=1e-8, enet_tol=1e-10, max_iter=1000), 2
            )
        edges = np.count_nonzero(np.triu(own.precision, 1))
        gap = np.abs(own.precision - precision).max()
        found.append(
            f"{p:7d}  {rho:.2f}  {edges:6d}  {ours:10.4f}  {violation(cov, own.precision, rho):.1e}  {theirs:14.4f}  "
            f"{violation(cov, precision, rho):.1e}  {theirs / ours:5.1f}  {gap:.1e}"
        )
    return found


def neighbourhood(quick: bool) -> list[str]:
    """Measure neighbourhood selection among many columns."""
    from sklearn.linear_model import Lasso, LassoCV

    p, n, some = (300, 500, 3) if quick else (1000, 1000, 2)
    precision, rows = sparse_rows(p, n, 1)
    table = {f"x{i}": rows[:, i] for i in range(p)}
    true = {(i, j) for i, j in zip(*np.nonzero(np.triu(precision, 1)), strict=True)}
    mk.learn_structure({"a": rows[:50, 0], "b": rows[:50, 1]}, method="neighbourhood")
    found = ["choice  seconds   edges  right (of " + str(len(true)) + ")"]
    penalty = 0.0
    for choose in ("rate", "ebic", *(["bic", "cv"] if quick else [])):
        result = mk.learn_structure(table, method="neighbourhood", choose=choose, seed=0)
        if choose == "rate":
            penalty = float(result.details.alpha[0])
        right = sum((int(a[1:]), int(b[1:])) in true for a, b in result.edges)
        found.append(f"{choose:6s}  {result.seconds:7.2f}  {result.n_edges:6d}  {right}")
    unit = (rows - rows.mean(axis=0)) / rows.std(axis=0)

    def columns(model: Any) -> None:
        for node in range(some):
            model.fit(np.delete(unit, node, axis=1), unit[:, node])

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peers = [("Lasso at the penalty of 'rate'", Lasso(alpha=penalty, tol=1e-6))]
        if quick:  # a path a fold is slow with 1,000 columns
            peers.append(("LassoCV, 5 folds", LassoCV(cv=5, tol=1e-6)))
        for label, model in peers:
            seconds, _ = best_of(lambda model=model: columns(model), 1)
            whole = seconds / some * p
            found.append(f"scikit-learn {label}: {some} columns measured, all would take {whole:.1f} s")
    return found


def ising(quick: bool) -> list[str]:
    """Measure the graphs of grids of spins."""
    found = ["grid     method                     seconds   edges  right  of"]
    for side, method, choose in (
        (6 if quick else 10, "ising", "ebic"),
        (6 if quick else 10, "ising", "rate"),
        (6 if quick else 10, "l1-pseudo-likelihood", "ebic"),
    ):
        model = mk.generators.ising_grid(side, side, coupling=0.4, field=0.0)
        rows = model.sample(2000, seed=0)
        mk.learn_structure(rows.iloc[:60, :3], method=method)
        result = mk.learn_structure(rows, method=method, choose=choose)
        right = sum(model.graph.has_edge(a, b) for a, b in result.edges)
        label = f"{method} {choose}"
        found.append(
            f"{side:2d} x {side:2d}  {label:26s} {result.seconds:7.2f}  {result.n_edges:6d}  "
            f"{right:5d}  {model.graph.n_edges}"
        )
    return found


def potts_rows(side: int, states: int, n: int, coupling: float, seed: int) -> Any:
    """Return rows of a Potts grid, drawn by sweeps of Gibbs sampling from independent starts."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, states, (n, side, side))
    padded = np.full((n, side + 2, side + 2), -1)
    for _ in range(80):
        for i in range(side):
            for j in range(side):
                padded[:, 1:-1, 1:-1] = pixels
                near = [
                    padded[:, i, j + 1],
                    padded[:, i + 2, j + 1],
                    padded[:, i + 1, j],
                    padded[:, i + 1, j + 2],
                ]
                energy = coupling * sum((np.arange(states) == v[:, None]) for v in near)
                pixels[:, i, j] = (energy + rng.gumbel(size=(n, states))).argmax(axis=1)
    return pixels.reshape(n, -1)


def potts(quick: bool) -> list[str]:
    """Measure grids of columns with several states."""
    found = ["states  grid   penalty  seconds  edges  right  of  KKT"]
    side = 4 if quick else 6
    true = {
        (k, m)
        for k in range(side * side)
        for m in range(k + 1, side * side)
        if (m - k == 1 and m % side) or m - k == side
    }
    for states in (3, 5):
        rows = potts_rows(side, states, 2000, 0.8, states)
        table = {f"x{k}": rows[:, k] for k in range(side * side)}
        for penalty in ("group",) if states == 5 else ("group", "l1"):
            result = mk.learn_structure(table, method="l1-pseudo-likelihood", penalty=penalty)
            right = sum((int(a[1:]), int(b[1:])) in true for a, b in result.edges)
            found.append(
                f"{states:6d}  {side} x {side}  {penalty:7s}  {result.seconds:7.2f}  {result.n_edges:5d}  {right:5d}  "
                f"{len(true)}  {result.details.kkt:.1e}"
            )
    return found


def recovery(quick: bool) -> list[str]:
    """Count how often neighbourhood selection finds a chain, for a penalty of the order sqrt(log columns / rows)."""
    trials = 10 if quick else 20
    ratios = (5, 15, 30, 60, 120, 240)
    found = ["rows / log(columns)  " + "  ".join(f"{r:4d}" for r in ratios)]
    for p in (16, 32, 64):
        precision = np.eye(p) + 0.35 * (np.eye(p, k=1) + np.eye(p, k=-1))
        root = np.linalg.cholesky(np.linalg.inv(precision))
        true = {(f"x{i}", f"x{i + 1}") for i in range(p - 1)}
        shares = []
        for ratio in ratios:
            n = int(ratio * np.log(p))
            hits = 0
            for trial in range(trials):
                rng = np.random.default_rng([p, ratio, trial])
                rows = rng.normal(size=(n, p)) @ root.T
                table = {f"x{i}": rows[:, i] for i in range(p)}
                alpha = min(0.9, 2.0 * float(np.sqrt(np.log(p) / n)))
                hits += set(mk.learn_structure(table, method="neighbourhood", alpha=alpha).edges) == true
            shares.append(hits / trials)
        found.append(f"{p:3d} columns          " + "  ".join(f"{s:4.2f}" for s in shares))
    return found


def votes(quick: bool) -> list[str]:
    """Measure networks that change over time on roll calls."""
    size = (20, 200) if quick else (100, 542)
    frame = mk.examples.roll_call(*size, seed=0)
    small = mk.examples.roll_call(4, 20, seed=0)
    found = [
        f"{size[0]} voters, {size[1]} votes",
        "method             times  seconds  edges in all  residual",
    ]
    for method, options in (
        ("kernel-weighted", {"at": np.linspace(0, size[1] - 1, 20), "bandwidth": size[1] / 9}),
        ("tesla", {"periods": 20}),
        ("tesla", {}),
    ):
        mk.learn_structure(small, method=method, times="time")
        result = mk.learn_structure(frame, method=method, times="time", **options)
        error = getattr(result.details, "residual", None) or result.details.kkt
        n_times = len(result.details.times)
        found.append(f"{method:17s}  {n_times:5d}  {result.seconds:7.2f}  {result.n_edges:12d}  {error:.1e}")
    return found


def main() -> int:
    """Run the parts that were asked for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="smaller data")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    print(f"threads: {os.environ['MARKOVIA_THREADS']}")
    for part in options.parts:
        print(f"== {part} ==", flush=True)
        print("\n".join(globals()[part](options.quick)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
