"""Training conditional random fields: one exact gradient, and a whole training, side by side with what else can do it.

Trees: 500 instances of a random tree of 50 nodes, 5 labels, 20 node features, constant edge features; the same tree for
all instances, which is what lets array libraries work on all instances at once, and then another tree for each. No Python
library found on the package index trains fields on trees, so beside markovia are two references written here as well as
their libraries allow: sum-product in NumPy, batched over instances (or over all nodes of equal height), and the gradient
of a batched log-space sum-product by JAX, compiled, in 64 bits.
Chains: 500 sequences of length 50. Beside markovia: python-crfsuite (C), pytorch-crf and torch-struct, where installed; the
two on torch work in 32 bits, their default.

Run: python benchmarks/learning_crf.py
Times are the best of several runs, and beside them the least processor time of all threads together, which says more
on a busy machine; every gradient is compared with markovia's before it is timed.
"""

import argparse
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.objective import PairwiseObjective
from markovia.optimise.minimise import minimise

INSTANCES, NODES, LABELS, FEATURES, PENALTY = 500, 50, 5, 20, 2.0


def best_time(task: Callable[[], Any], runs: int = 25, most: float = 15.0) -> tuple[float, float]:
    """Return the shortest of several runs after a warm-up, and the least processor time, in milliseconds."""
    task()
    found, least, began = np.inf, np.inf, perf_counter()
    for _ in range(runs):
        start, worked = perf_counter(), process_time()
        task()
        found, least = min(found, perf_counter() - start), min(least, process_time() - worked)
        if perf_counter() - began > most:
            break
    return 1e3 * found, 1e3 * least


def random_tree(rng: np.random.Generator, n: int) -> np.ndarray:
    """Return the edges (parent, child) of a tree in which each node hangs below a random earlier one."""
    return np.array([(int(rng.integers(i)), i) for i in range(1, n)])


def task(trees: list[np.ndarray], seed: int = 0) -> tuple[PairwiseObjective, np.ndarray, np.ndarray]:
    """Draw features and labels that follow them and their neighbours, and return the objective, features and labels."""
    rng = np.random.default_rng(seed)
    n, k = NODES, LABELS
    weights = rng.normal(size=(k, FEATURES)) / 3
    features = rng.normal(size=(INSTANCES * n, FEATURES))
    scores = (features @ weights.T).reshape(INSTANCES, n, k)
    labels = np.zeros((INSTANCES, n), dtype=np.int64)
    noise = rng.gumbel(size=scores.shape)
    for g in range(INSTANCES):
        above = np.full(n, -1)
        above[trees[g][:, 1]] = trees[g][:, 0]
        for i in range(n):
            pull = 1.5 * (np.arange(k) == labels[g, above[i]]) if above[i] >= 0 else 0.0
            labels[g, i] = np.argmax(scores[g, i] + pull + noise[g, i])
    ends = np.concatenate([t + g * n for g, t in enumerate(trees)])
    fields = Fields.of(
        k,
        np.arange(INSTANCES + 1) * n,
        np.arange(INSTANCES + 1) * (n - 1),
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        np.ones((len(ends), 1)),
    )
    return PairwiseObjective(fields, features, labels.ravel(), C=PENALTY, edge_C=PENALTY), features, labels


def penalised(value: float, gradient: np.ndarray, theta: np.ndarray) -> tuple[float, np.ndarray]:
    return value + float(theta @ theta) / PENALTY, gradient + 2 * theta / PENALTY


def numpy_same_tree(tree: np.ndarray, features: np.ndarray, labels: np.ndarray) -> Callable[..., Any]:
    """Return the objective in NumPy: one tree for all instances, messages of all of them at once, rescaled."""
    n, k = NODES, LABELS
    onehot = np.eye(k)[labels]
    x = features.reshape(INSTANCES * n, FEATURES)
    observed_node = onehot.reshape(-1, k).T @ x
    observed_edge = np.zeros((k, k))
    for a, b in tree:
        observed_edge += onehot[:, a].T @ onehot[:, b]
    observed = np.concatenate([observed_node.ravel(), observed_edge.ravel()])

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        node, edge = theta[: k * FEATURES].reshape(k, FEATURES), np.exp(theta[k * FEATURES :].reshape(k, k))
        scores = (x @ node.T).reshape(INSTANCES, n, k).transpose(1, 0, 2)
        top = scores.max(axis=2, keepdims=True)
        up = np.exp(scores - top)
        mass = float(top.sum())
        sent = np.empty((n, INSTANCES, k))
        for a, b in tree[::-1]:
            size = up[b].sum(axis=1, keepdims=True)
            up[b] /= size
            mass += float(np.log(size).sum())
            sent[b] = up[b] @ edge.T
            up[a] *= sent[b]
        size = up[0].sum(axis=1, keepdims=True)
        mass += float(np.log(size).sum())
        beliefs = np.empty_like(up)
        beliefs[0] = up[0] / size
        pairs = np.zeros((k, k))
        for a, b in tree:
            cavity = beliefs[a] / sent[b]
            pairs += cavity.T @ up[b]
            beliefs[b] = (cavity @ edge) * up[b]
        expected_node = beliefs.transpose(1, 0, 2).reshape(-1, k).T @ x
        gradient = np.concatenate([expected_node.ravel(), (pairs * edge).ravel()]) - observed
        return penalised(mass - float(observed @ theta), gradient, theta)

    return objective


def numpy_any_trees(trees: list[np.ndarray], features: np.ndarray, labels: np.ndarray) -> Callable[..., Any]:
    """Return the objective in NumPy for different trees: all edges at one depth of all trees at once."""
    n, k = NODES, LABELS
    depth = np.zeros((INSTANCES, n), dtype=np.int64)
    for g, tree in enumerate(trees):
        for a, b in tree:
            depth[g, b] = depth[g, a] + 1
    ends = np.concatenate([t + g * n for g, t in enumerate(trees)])
    level = depth.ravel()[ends[:, 1]]
    layers = [ends[level == d] for d in range(1, int(level.max()) + 1)]
    roots = np.arange(INSTANCES) * n
    flat = labels.ravel()
    onehot = np.eye(k)[flat]
    observed_edge = np.zeros((k, k))
    np.add.at(observed_edge, (flat[ends[:, 0]], flat[ends[:, 1]]), 1.0)
    observed = np.concatenate([(onehot.T @ features).ravel(), observed_edge.ravel()])

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        node, edge = theta[: k * FEATURES].reshape(k, FEATURES), np.exp(theta[k * FEATURES :].reshape(k, k))
        scores = features @ node.T
        top = scores.max(axis=1, keepdims=True)
        up = np.exp(scores - top)
        mass = float(top.sum())
        sent = np.empty_like(up)
        for layer in layers[::-1]:
            a, b = layer.T
            own = up[b]
            size = own.sum(axis=1, keepdims=True)
            own /= size
            up[b] = own
            mass += float(np.log(size).sum())
            sent[b] = own @ edge.T
            np.multiply.at(up, a, sent[b])
        size = up[roots].sum(axis=1, keepdims=True)
        mass += float(np.log(size).sum())
        beliefs = np.empty_like(up)
        beliefs[roots] = up[roots] / size
        pairs = np.zeros((k, k))
        for layer in layers:
            a, b = layer.T
            cavity = beliefs[a] / sent[b]
            pairs += cavity.T @ up[b]
            beliefs[b] = (cavity @ edge) * up[b]
        gradient = np.concatenate([(beliefs.T @ features).ravel(), (pairs * edge).ravel()]) - observed
        return penalised(mass - float(observed @ theta), gradient, theta)

    return objective


def jax_same_tree(tree: np.ndarray, features: np.ndarray, labels: np.ndarray) -> Callable[..., Any]:
    """Return the objective whose gradient JAX finds by itself: batched log-space sum-product, compiled."""
    import jax
    import jax.numpy as jnp

    n, k = NODES, LABELS

    def value(theta: Any, x: Any, y: Any) -> Any:
        node, edge = theta[: k * FEATURES].reshape(k, FEATURES), theta[k * FEATURES :].reshape(k, k)
        scores = jnp.einsum("gid,kd->igk", x, node)
        up = list(scores)
        for a, b in tree[::-1]:
            up[a] = up[a] + jax.nn.logsumexp(edge[None] + up[b][:, None, :], axis=2)
        mass = jax.nn.logsumexp(up[0], axis=1).sum()
        own = jnp.take_along_axis(scores.transpose(1, 0, 2), y[:, :, None], axis=2).sum()
        return mass - own - edge[y[:, tree[:, 0]], y[:, tree[:, 1]]].sum() + (theta @ theta) / PENALTY

    with jax.enable_x64(True):
        compiled = jax.jit(jax.value_and_grad(value))
        x, y = jnp.asarray(features.reshape(INSTANCES, n, FEATURES)), jnp.asarray(labels)

    def objective(theta: np.ndarray) -> tuple[float, np.ndarray]:
        with jax.enable_x64(True):
            found, gradient = compiled(jnp.asarray(theta), x, y)
            return float(found), np.asarray(gradient)

    return objective


def trees(same: bool) -> None:
    rng = np.random.default_rng(1)
    one = random_tree(rng, NODES)
    shapes = [one] * INSTANCES if same else [random_tree(rng, NODES) for _ in range(INSTANCES)]
    objective, features, labels = task(shapes)
    rivals = {"NumPy, all trees of one depth at once": numpy_any_trees(shapes, features, labels)}
    if same:
        rivals["NumPy, all instances at once"] = numpy_same_tree(one, features, labels)
        if find_spec("jax"):
            rivals["JAX, automatic differentiation"] = jax_same_tree(one, features, labels)
    print(
        f"\n{INSTANCES} instances of {'one tree' if same else 'different trees'} of {NODES} nodes, {LABELS} labels, "
        f"{FEATURES} features"
    )
    point = 0.2 * np.random.default_rng(2).normal(size=objective.size)
    value, gradient = objective(point)
    start = perf_counter()
    fitted = minimise(objective, np.zeros(objective.size), height=INSTANCES, convex=True, tol=1e-5)
    seconds = perf_counter() - start
    for _ in range(4):
        start = perf_counter()
        fitted = minimise(objective, np.zeros(objective.size), height=INSTANCES, convex=True, tol=1e-5)
        seconds = min(seconds, perf_counter() - start)
    ours, work = best_time(lambda: objective(point), 80)
    print(
        f"  {'':38s} {'gradient':>11s} {'ratio':>6s} {'processor':>12s} {'ratio':>6s} {'training':>9s} {'objective':>11s}"
    )
    print(
        f"  {'markovia':38s} {ours:8.2f} ms {1:6.1f} {work:9.2f} ms {1:6.1f} {seconds:7.3f} s {fitted.value:11.4f}"
    )
    for name, rival in rivals.items():
        its_value, its_gradient = rival(point)
        assert abs(its_value - value) < 1e-7 * abs(value), name
        assert np.abs(its_gradient - gradient).max() < 1e-6 * np.abs(gradient).max(), name
        its_time, its_work = best_time(lambda f=rival: f(point))
        start = perf_counter()
        done = minimise(rival, np.zeros(objective.size), height=INSTANCES, convex=True, tol=1e-5)
        its_seconds = perf_counter() - start
        print(
            f"  {name:38s} {its_time:8.2f} ms {its_time / ours:6.1f} {its_work:9.2f} ms {its_work / work:6.1f} "
            f"{its_seconds:7.3f} s {done.value:11.4f}"
        )


def chains() -> None:
    path = np.array([(i, i + 1) for i in range(NODES - 1)])
    objective, features, labels = task([path] * INSTANCES)
    point = 0.2 * np.random.default_rng(2).normal(size=objective.size)
    ours, work = best_time(lambda: objective(point), 80)
    print(f"\n{INSTANCES} chains of length {NODES}, {LABELS} labels, {FEATURES} features: one gradient")
    print(f"  {'markovia':38s} {ours:8.2f} ms {1:6.1f} {work:9.2f} ms {1:6.1f}")
    value, gradient = objective(point)
    for name, rival in torch_chains(features, labels).items():
        its_value, its_gradient = rival(point)
        assert abs(its_value - value) < 1e-3 * abs(value), name
        assert np.abs(its_gradient - gradient).max() < 1e-2 * np.abs(gradient).max(), name
        its_time, its_work = best_time(lambda f=rival: f(point))
        print(
            f"  {name:38s} {its_time:8.2f} ms {its_time / ours:6.1f} {its_work:9.2f} ms {its_work / work:6.1f}"
        )
    if find_spec("pycrfsuite"):
        crfsuite(features, labels)
    lacking = [n for n in ("torch", "torchcrf", "torch_struct", "pycrfsuite") if not find_spec(n)]
    if lacking:
        print(f"  not installed: {', '.join(lacking)}")


def torch_chains(features: np.ndarray, labels: np.ndarray) -> dict[str, Callable[..., Any]]:
    """Return the objectives of the torch libraries that are installed; 32 bits, all processors."""
    if not find_spec("torch"):
        return {}
    import torch

    x = torch.tensor(features.reshape(INSTANCES, NODES, FEATURES), dtype=torch.float32)
    y = torch.tensor(labels)
    k, cut = LABELS, LABELS * FEATURES

    def objective(loss: Callable[[Any, Any], Any]) -> Callable[..., Any]:
        def run(theta: np.ndarray) -> tuple[float, np.ndarray]:
            point = torch.tensor(theta, dtype=torch.float32, requires_grad=True)
            value = loss(x @ point[:cut].reshape(k, FEATURES).T, point[cut:].reshape(k, k))
            value = value + (point @ point) / PENALTY
            value.backward()
            return float(value.detach()), point.grad.numpy().astype(np.float64)

        return run

    found = {}
    if find_spec("torchcrf"):
        from torchcrf import CRF

        model = CRF(k, batch_first=True)
        model.start_transitions.data.zero_()
        model.end_transitions.data.zero_()

        def pytorch_crf(scores: Any, edge: Any) -> Any:
            del model.transitions
            model.transitions = edge
            return -model(scores, y, reduction="sum")

        found["pytorch-crf"] = objective(pytorch_crf)
    if find_spec("torch_struct"):
        try:
            from torch_struct import LinearChainCRF
        except ImportError as error:
            print(f"  torch-struct cannot be imported: {error}")
            return found

        def torch_struct(scores: Any, edge: Any) -> Any:
            tables = edge.T[None, None] + scores[:, 1:, :, None]  # axes: label, label before
            first = scores[:, 0]
            tables = torch.cat([tables[:, :1] + first[:, None, None, :], tables[:, 1:]], dim=1)
            own = torch.gather(scores, 2, y[:, :, None]).sum() + edge[y[:, :-1], y[:, 1:]].sum()
            return LinearChainCRF(tables).partition.sum() - own

        found["torch-struct"] = objective(torch_struct)
    return found


def crfsuite(features: np.ndarray, labels: np.ndarray) -> None:
    """Compare whole trainings to one objective: crfsuite's `c2 ||w||^2` with c2 = 1 / C."""
    import pycrfsuite

    names = [f"f{j}" for j in range(FEATURES)]
    x = features.reshape(INSTANCES, NODES, FEATURES)
    trainer = pycrfsuite.Trainer(verbose=False, algorithm="lbfgs")
    for g in range(INSTANCES):
        trainer.append(
            [dict(zip(names, row.tolist(), strict=True)) for row in x[g]], [str(a) for a in labels[g]]
        )
    trainer.set_params(
        {
            "c1": 0.0,
            "c2": 1.0 / PENALTY,
            "feature.possible_states": True,
            "feature.possible_transitions": True,
            "feature.minfreq": -1e9,  # it would drop features with a negative sum
            "max_iterations": 1000,
            "epsilon": 1e-6,
            "delta": 1e-8,
        }
    )
    with tempfile.TemporaryDirectory() as folder:
        start = perf_counter()
        trainer.train(str(Path(folder) / "model"))
        seconds = perf_counter() - start
    last = trainer.logparser.last_iteration
    model = mk.ChainCRF(start_end=False, fit_intercept=False, C=PENALTY, tol=1e-5)
    y = list(labels)
    model.fit(list(x), y)
    start = perf_counter()
    model.fit(list(x), y)
    ours = perf_counter() - start
    print("  whole training (reading the data is not counted for crfsuite, and is for markovia)")
    print(f"  {'markovia, ChainCRF.fit':40s} {ours:9.3f} s  {1:7.1f}  objective {model.training_.value:.4f}")
    print(
        f"  {'python-crfsuite':40s} {seconds:9.3f} s  {seconds / ours:7.1f}  objective {last['loss']:.4f} "
        f"({last['num']} iterations)"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["same", "different", "chains"])
    parser.add_argument("--quick", action="store_true", help="chains only")
    options = parser.parse_args()
    chosen = "chains" if options.quick else options.only
    if chosen in (None, "same"):
        trees(same=True)
    if chosen in (None, "different"):
        trees(same=False)
    if chosen in (None, "chains"):
        chains()
