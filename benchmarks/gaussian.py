"""How long exact answers about Gaussian networks take, side by side with pgmpy and dense NumPy, in one process.

Run: python benchmarks/gaussian.py [--nodes N ...] [--observed K] [--pgmpy N] [--large]

A sparse linear-Gaussian network (each node has up to two parents among the twenty or so before it) gets K observations;
asked are the means and variances of all other nodes. Dense NumPy builds the joint covariance and conditions it by the
textbook formula (one Cholesky factor of the observed block). pgmpy makes `to_joint_gaussian()` and is conditioned by the
same formula, since its own `predict` gives means only; it is asked up to `--pgmpy` nodes. The worst difference of any mean
or variance to the dense answer is printed. With `--large`, also a chain of a million nodes and a grid of 500 x 500 by their
precision, against SciPy's `splu` (which factors, but has no variances). Kernels are compiled beforehand.
"""

import argparse
import logging
import warnings
from time import perf_counter
from typing import Any

import numpy as np
from scipy import sparse

import markovia as mk


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, nargs="+", default=[1000, 3000, 10_000])
    parser.add_argument("--observed", type=int, default=100)
    parser.add_argument("--pgmpy", type=int, default=1000)
    parser.add_argument("--large", action="store_true")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    mk.GaussianMarkovNetwork(
        sparse.diags([np.ones(399), np.full(400, 3.0), np.ones(399)], [-1, 0, 1])
    ).marginals()
    titles = ("markovia", "again", "dense", "pgmpy", "times dense", "times pgmpy", "worst")
    print(f"{'nodes':>7}" + "".join(f"{title:>13}" for title in titles))
    for n in options.nodes:
        row(n, options.observed, n <= options.pgmpy)
    if options.large:
        large()
    return 0


def row(n: int, observed: int, with_pgmpy: bool) -> None:
    """Print one line of the table."""
    names, parents, bias, weights, variance = random_network(n)
    model = mk.BayesianNetwork()
    for k in range(n):
        own = {names[j]: w for j, w in zip(parents[k], weights[k], strict=True)}
        model.add(names[k], mk.LinearGaussian(bias[k], own, variance[k]))
    rng = np.random.default_rng(1)
    evidence = {names[k]: float(rng.normal()) for k in sorted(rng.choice(n, observed, replace=False))}
    first, found = timed(lambda: model.marginals(given=evidence))
    again = min(timed(lambda: model.marginals(given=evidence))[0] for _ in range(5))
    dense, (mean, spread) = timed(lambda: by_numpy(parents, bias, weights, variance, names, evidence))
    left = [x for x in names if x not in evidence]
    worst = max(
        float(np.abs(np.array([found[x].mean() for x in left]) - mean).max()),
        float(np.abs(np.array([found[x].var() for x in left]) - spread).max()),
    )
    peer = by_pgmpy(names, parents, bias, weights, variance, evidence) if with_pgmpy else None
    numbers = [first, again, dense, peer, dense / first, None if peer is None else peer / first, worst]
    print(f"{n:7,}" + "".join(f"{'' if x is None else f'{x:.3g}':>13}" for x in numbers), flush=True)


def random_network(n: int) -> tuple[list[str], list[list[int]], Any, list[Any], Any]:
    rng = np.random.default_rng(0)
    parents = [sorted({int(k - 1 - j) for j in rng.geometric(0.05, 2) if k - 1 - j >= 0}) for k in range(n)]
    weights = [rng.uniform(-0.5, 0.5, len(p)) for p in parents]
    return [f"x{k}" for k in range(n)], parents, rng.normal(size=n), weights, rng.uniform(0.5, 2.0, n)


def by_numpy(
    parents: Any, bias: Any, weights: Any, variance: Any, names: Any, evidence: Any
) -> tuple[Any, Any]:
    """Condition the dense joint distribution; return means and variances of what is not observed."""
    n = len(names)
    matrix = np.eye(n)
    for k in range(n):
        matrix[k, parents[k]] -= weights[k]
    inverse = np.linalg.inv(matrix)
    return conditioned(inverse @ bias, (inverse * variance) @ inverse.T, names, evidence)


def conditioned(mean: Any, covariance: Any, names: Any, evidence: Any) -> tuple[Any, Any]:
    place = {x: k for k, x in enumerate(names)}
    seen = [place[x] for x in evidence]
    left = [k for k in range(len(names)) if names[k] not in evidence]
    root = np.linalg.cholesky(covariance[np.ix_(seen, seen)])
    half = np.linalg.solve(root, covariance[np.ix_(seen, left)])
    gap = np.linalg.solve(root, np.array(list(evidence.values())) - mean[seen])
    return mean[left] + half.T @ gap, covariance[left, left] - (half**2).sum(axis=0)


def by_pgmpy(names: Any, parents: Any, bias: Any, weights: Any, variance: Any, evidence: Any) -> float | None:
    try:
        import networkx as nx
        from pgmpy.factors.continuous import LinearGaussianCPD
        from pgmpy.models import LinearGaussianBayesianNetwork
    except ImportError:
        return None
    model = LinearGaussianBayesianNetwork()
    model.add_nodes_from(names)
    model.add_edges_from([(names[j], names[k]) for k, own in enumerate(parents) for j in own])
    for k, x in enumerate(names):
        own = [names[j] for j in parents[k]]
        model.add_cpds(LinearGaussianCPD(x, [bias[k], *weights[k]], float(np.sqrt(variance[k])), own))
    start = perf_counter()
    mean, covariance = model.to_joint_gaussian()
    order = list(nx.topological_sort(model))  # as pgmpy orders them
    conditioned(np.asarray(mean).ravel(), np.asarray(covariance), order, evidence)
    return perf_counter() - start


def large() -> None:
    """Measure a chain and a grid."""
    from scipy.sparse.linalg import splu

    for title, matrix in (("chain of 1,000,000", chain(1_000_000)), ("grid of 500 x 500", grid(500))):
        model = mk.GaussianMarkovNetwork(matrix)
        first, found = timed(model.marginals)
        again, _ = timed(model.marginals)
        options = {"SymmetricMode": True}
        peer, _ = timed(lambda: splu(matrix.tocsc(), "MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options))  # noqa: B023
        print(
            f"{title}: all {len(found):,} marginals {first:.2f} s, again {again:.2f} s (of that the engine "
            f"{found['x0'].info.seconds:.2f} s); splu alone {peer:.2f} s",
            flush=True,
        )


def chain(n: int) -> Any:
    return sparse.diags([-np.ones(n - 1), np.full(n, 2.1), -np.ones(n - 1)], [-1, 0, 1]).tocsr()


def grid(m: int) -> Any:
    line, eye = sparse.diags([-np.ones(m - 1), -np.ones(m - 1)], [-1, 1]), sparse.identity(m)
    return (sparse.kron(line, eye) + sparse.kron(eye, line) + 4.1 * sparse.identity(m * m)).tocsr()


def timed(task: Any) -> tuple[float, Any]:
    start = perf_counter()
    result = task()
    return perf_counter() - start, result


if __name__ == "__main__":
    raise SystemExit(main())
