"""Learning undirected models from data: seconds and quality, with what peers there are, in one process.

Run: python benchmarks/learning_fields.py [--repeats R] [--side N] [--samples M] [--steps S]

- Pseudo-likelihood of a binary Ising grid (64 x 64, 1,000 draws by markovia's own Gibbs sampler): free fields and couplings
  (12,160 weights) and tied ones (2). The goal is below 5 s on two cores. No peer fits an Ising model's pseudo-likelihood;
  the nearest is one logistic regression a node (scikit-learn), which fits each coupling twice.
- Persistent contrastive divergence of a lattice model on binary images of 28 x 28 (scikit-learn's 8 x 8 digits enlarged, so
  that nothing is downloaded): time of an epoch, and the pseudo-likelihood of a row before and after.
- Maximum likelihood of free tables on a small loopy model: markovia's exact gradients and iterative proportional fitting
  beside pgmpy's MirrorDescentEstimator. pyAgrum's Markov random fields have no learning.

Times are the best of the repeats; reading the rows is part of them. Without a peer its line is left out.
"""

import argparse
import logging
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk
from markovia.data.tables.reading import read_data
from markovia.factors.tables.variable import Variable
from markovia.learning.fields.field_layout import layout_of_features
from markovia.learning.fields.pseudo_likelihood import PseudoLikelihood
from markovia.runtime.threads import thread_count

NODES = 64
"""Nodes that the peer's logistic regressions are timed on."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--side", type=int, default=64)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=540)
    parser.add_argument("--quick", action="store_true", help="a grid of 16 x 16, few rows and steps")
    options = parser.parse_args()
    if options.quick:
        options.repeats, options.side, options.samples, options.steps = 1, 16, 200, 54
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"markovia {mk.__version__}, {thread_count()} threads, best of {options.repeats}")
    _grid(options.side, options.samples, options.repeats)
    _images(options.steps)
    _small(options.repeats)
    return 0


def _best(task: Callable[[], Any], repeats: int) -> tuple[str, Any]:
    """Run a task; return its least wall-clock and processor seconds as text, and its last result."""
    wall, processor = [], []
    for _ in range(repeats):
        start, began = perf_counter(), process_time()
        result = task()
        wall.append(perf_counter() - start)
        processor.append(process_time() - began)
    return f"{min(wall):7.2f} s ({min(processor):.2f} s of processor)", result


def _lattice(side: int) -> list[tuple[str, str]]:
    right = [(f"x{i}_{j}", f"x{i}_{j + 1}") for i in range(side) for j in range(side - 1)]
    return right + [(f"x{i}_{j}", f"x{i + 1}_{j}") for i in range(side - 1) for j in range(side)]


def _grid(side: int, samples: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    edges = _lattice(side)
    couplings = {e: float(rng.normal(0.2, 0.15)) for e in edges}
    fields = {f"x{i}_{j}": float(rng.normal(0.0, 0.2)) for i in range(side) for j in range(side)}
    model = mk.MarkovNetwork.ising(couplings, fields)
    engine = mk.engines.Gibbs(chains=4, thin=10, burn_in=300, seed=1)
    start = perf_counter()
    data = model.sample(samples, seed=1, engine=engine)
    print(
        f"\nIsing grid {side} x {side}, {samples} rows (drawn in {perf_counter() - start:.1f} s by Gibbs sampling)"
    )
    own = {n: model.variable(n) for n in model.variables}
    single = [mk.Feature(own[n], [-1.0, 1.0]) for n in fields]
    pairs = [mk.Feature([own[a], own[b]], [[1.0, -1.0], [-1.0, 1.0]]) for a, b in edges]
    truth = np.array([*fields.values(), *couplings.values()])

    def fit(features: list[mk.Feature]) -> Any:
        return mk.fit_log_linear(features, data, method="pseudo-likelihood")

    seconds, found = _best(lambda: fit(single + pairs), repeats)
    error = float(np.sqrt(np.mean((found.weights - truth) ** 2)))
    print(
        f"  free, {len(truth):,} weights   {seconds}, {found.fit.iterations} steps, "
        f"root mean square error {error:.4f}"
    )
    coded = read_data(data, own, variables=own)
    inner, _ = _best(lambda: mk.fit_log_linear(single + pairs, coded, method="pseudo-likelihood"), repeats)
    print(f"  the same, rows read before {inner}")
    seconds, found = _best(lambda: fit([mk.Feature.tied(single), mk.Feature.tied(pairs)]), repeats)
    print(f"  tied, 2 weights          {seconds}, weights {np.round(found.weights, 4).tolist()}")
    seconds, tables = _best(lambda: model.copy().fit(data, method="pseudo-likelihood"), repeats)
    print(f"  free tables, {model.count_parameters():,} entries {seconds}, converged {tables.fit_.converged}")
    _nodewise(data, edges, couplings)


def _nodewise(data: Any, edges: list[tuple[str, str]], couplings: dict[tuple[str, str], float]) -> None:
    try:
        from sklearn.linear_model import LogisticRegression
    except ImportError:
        print("  scikit-learn is not there")
        return
    neighbours: dict[str, list[str]] = {}
    for a, b in edges:
        neighbours.setdefault(a, []).append(b)
        neighbours.setdefault(b, []).append(a)
    values = {n: data[n].to_numpy() for n in data.columns}
    start = perf_counter()
    gaps = []
    asked = list(neighbours)[:: max(1, len(neighbours) // NODES)]
    for n in asked:
        others = neighbours[n]
        found = LogisticRegression(C=1e6).fit(np.column_stack([values[o] for o in others]), values[n] > 0)
        true = [couplings[(n, o) if (n, o) in couplings else (o, n)] for o in others]
        gaps.extend(found.coef_[0] / 2 - true)  # log odds are twice the coupling
    seconds = (perf_counter() - start) * len(neighbours) / len(asked)
    print(
        f"  scikit-learn, one logistic regression a node: {seconds:.1f} s for all nodes (from {len(asked)} of them), error "
        f"of couplings {np.sqrt(np.mean(np.square(gaps))):.4f}"
    )


def _images(steps: int) -> None:
    try:
        from scipy.ndimage import zoom
        from sklearn.datasets import load_digits
    except ImportError:
        print("\nno scikit-learn, no images")
        return
    side, chains = 28, 100
    images = np.array([zoom(x, side / 8, order=1) for x in load_digits().images]) > 8
    columns = {f"x{i}_{j}": images[:, i, j].astype(np.int8) for i in range(side) for j in range(side)}
    own = {n: Variable(n, 2) for n in columns}
    features = [mk.Feature(v, [0.0, 1.0]) for v in own.values()]
    features += [mk.Feature([own[a], own[b]], np.eye(2)) for a, b in _lattice(side)]
    layout = layout_of_features(features)
    rows = read_data(columns, own, variables=own)
    judge = PseudoLikelihood(layout, rows.in_memory())
    epoch = rows.n_rows // chains
    before = judge(np.zeros(layout.n_weights))[0]
    print(f"\n{rows.n_rows} binary images of {side} x {side}, {layout.n_weights:,} weights, {chains} chains")
    print(f"  negative log pseudo-likelihood a row: {before:.2f} before")
    for name, persistent in (("PCD-1", True), ("CD-1", False)):
        method = mk.learning.ContrastiveDivergence(persistent=persistent, chains=chains, step=0.3)
        start, began = perf_counter(), process_time()
        found = mk.fit_log_linear(features, rows, method=method, l2=1.0, max_iterations=steps, seed=0)
        seconds, spent = perf_counter() - start, process_time() - began
        after = judge(found.weights)[0]
        print(
            f"  {name}: {1000 * seconds * epoch / steps:.0f} ms an epoch of {epoch} steps; {after:.2f} after "
            f"{steps / epoch:.0f} epochs ({seconds:.2f} s; {spent:.2f} s of processor)"
        )
    start = perf_counter()
    found = mk.fit_log_linear(features, rows, method="pseudo-likelihood", l2=1.0)
    print(f"  pseudo-likelihood itself: {judge(found.weights)[0]:.2f} in {perf_counter() - start:.2f} s")
    from sklearn.neural_network import BernoulliRBM

    flat = images.reshape(len(images), -1).astype(float)
    start = perf_counter()
    BernoulliRBM(n_components=64, batch_size=chains, n_iter=3, random_state=0).fit(flat)
    print(
        f"  scikit-learn's BernoulliRBM (another model, 64 hidden units, PCD): "
        f"{1000 * (perf_counter() - start) / 3:.0f} ms an epoch"
    )


def _small(repeats: int) -> None:
    rng = np.random.default_rng(0)
    edges = [(f"v{i}", f"v{(i + 1) % 8}") for i in range(8)] + [("v0", "v4"), ("v2", "v6")]
    factors = [mk.Factor(list(e), rng.random((3, 3)) + 0.2) for e in edges]
    model = mk.MarkovNetwork({f"v{i}": 3 for i in range(8)}, factors)
    data = model.sample(5000, seed=0)
    print(f"\n8 variables of 3 states, {len(edges)} free tables, 5,000 rows")
    for method in ("exact", "ipf"):
        seconds, found = _best(lambda m=method: model.copy().fit(data, method=m), repeats)
        print(
            f"  markovia {method:<6} {seconds}, log likelihood {found.fit_.log_likelihood:.3f}, "
            f"{found.fit_.iterations} steps, margins missed by up to {np.abs(found.fit_.details['fit'].gradient).max():.2g}"
        )
    try:
        from pgmpy.estimators import MirrorDescentEstimator
        from pgmpy.factors.discrete import DiscreteFactor
        from pgmpy.models import FactorGraph
    except ImportError:
        print("  pgmpy is not there")
        return
    try:
        peer = FactorGraph()
        peer.add_nodes_from(model.variables)
        for a, b in edges:
            factor = DiscreteFactor([a, b], [3, 3], np.zeros(9))
            peer.add_factors(factor)
            peer.add_edges_from([(a, factor), (b, factor)])
        start = perf_counter()
        tree = MirrorDescentEstimator(peer, data=data).estimate(marginals=edges, show_progress=False)
        seconds = perf_counter() - start
        error = _margin_error(tree, data, edges)
        print(f"  pgmpy mirror descent {seconds:8.2f} s, margins of the data missed by up to {error:.2g}")
    except Exception as failure:  # a peer that fails is a finding
        print(f"  pgmpy mirror descent failed: {type(failure).__name__}: {failure}")


def _margin_error(tree: Any, data: Any, edges: list[tuple[str, str]]) -> float:
    """Return the largest difference between the tables of a peer's tree and the data's margins on the edges."""
    worst = 0.0
    for edge in edges:
        home = next(f for f in tree.factors if set(edge) <= set(f.variables))
        table = home.marginalize([n for n in home.variables if n not in edge], inplace=False)
        values = table.values if tuple(table.variables) == edge else table.values.T
        seen = np.zeros((3, 3))
        np.add.at(seen, tuple(data[n].to_numpy() for n in edge), 1.0 / len(data))
        worst = max(worst, float(np.abs(values / values.sum() - seen).max()))
    return worst


if __name__ == "__main__":
    raise SystemExit(main())
