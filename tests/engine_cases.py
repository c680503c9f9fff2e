"""Tiny models of every kind with their true answers, by brute force, closed form or quadrature."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from scipy.stats import gamma, norm

import markovia as mk
import markovia.distributions as dist


@dataclass(frozen=True)
class Truth:
    """What is true of a model given its evidence.

    `columns` are the values of the latent variables at weighted points (positions of states, numbers, arrays on plates):
    all there are, or a fine grid. `log_best` is the log density of the best point with the evidence, and `log_full` the
    log density of `Case.row`.
    """

    columns: Mapping[str, Any]
    weights: Any
    log_evidence: float
    log_z: float
    best: Mapping[str, Any]
    log_best: float
    log_full: float
    information: float | None = None

    def mean(self, name: str) -> Any:
        """Return the mean of a number, or of the position of a state."""
        return np.tensordot(self.weights, self.columns[name], axes=1)

    def sd(self, name: str) -> Any:
        """Return the standard deviation."""
        return np.sqrt(np.tensordot(self.weights, (self.columns[name] - self.mean(name)) ** 2, axes=1))

    def shares(self, name: str, states: int) -> Any:
        """Return the probability of every state."""
        return np.array([np.tensordot(self.weights, self.columns[name] == k, axes=1) for k in range(states)])


@dataclass(frozen=True)
class Case:
    """A model, its evidence, what is asked about, a complete row, and the truth."""

    build: Callable[[], Any]
    given: Mapping[str, Any]
    target: str
    other: str
    row: Mapping[str, Any]
    truth: Callable[[], Truth]
    lengths: Mapping[str, int] = field(default_factory=dict)


def discrete() -> Any:
    """Three tables, none of them symmetric."""
    bn = mk.BayesianNetwork()
    bn.add("a", states=["x", "y", "z"], p=[0.5, 0.2, 0.3])
    bn.add("b", states=["no", "yes"], parents=["a"], p=[[0.7, 0.3], [0.2, 0.8], [0.55, 0.45]])
    bn.add("c", states=["l", "m", "h"], parents=["b", "a"], p=_C)
    return bn


_C = [
    [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1], [0.1, 0.1, 0.8]],
    [[0.3, 0.3, 0.4], [0.25, 0.7, 0.05], [0.45, 0.4, 0.15]],
]
_B = [[0.7, 0.3], [0.2, 0.8], [0.55, 0.45]]
_AB: Any = [[3, 0.5], [1, 2], [0.7, 4]]
_BD: Any = [[2, 0.4], [1.5, 3]]
_DA: Any = [[1, 0.3, 2], [2.5, 1, 0.6]]
_Z = [[[0.8, 0.2], [0.1 * k, 1 - 0.1 * k]] for k in (1, 2, 3)]


def loop() -> Any:
    """Three factors in a loop."""
    factors = [mk.Factor(["a", "b"], _AB), mk.Factor(["b", "c"], _BD), mk.Factor(["c", "a"], _DA)]
    return mk.MarkovNetwork({"a": 3, "b": 2, "c": 2}, factors)


def log_linear() -> Any:
    """Features with weights, as fields of labels have them: attractive pairs in a chain."""
    return mk.MarkovNetwork.ising({("a", "b"): 0.7, ("b", "c"): 0.3}, {"a": 0.4, "c": -0.2}, states=(0, 1))


def chain() -> Any:
    """A Markov chain of four steps, another matrix at each."""
    bn = mk.BayesianNetwork()
    bn.add("z0", states=["u", "v"], p=[0.35, 0.65])
    for k, p in enumerate(_Z):
        bn.add(f"z{k + 1}", states=["u", "v"], parents=[f"z{k}"], p=p)
    return bn


def _table_truth(
    case: Callable[[], Any],
    weight: Callable[..., float],
    given: Mapping[str, int],
    row: tuple[int, ...],
    target: str,
) -> Truth:
    """Enumerate all configurations; the weight takes positions of states in the order of the variables."""
    model = case()
    names = model.variables
    sizes = [len(model.states(n)) for n in names]
    joint = np.array([weight(*c) for c in product(*map(range, sizes))]).reshape(sizes)
    total = joint.sum()
    cut = np.where(np.all([_at(sizes, names.index(n)) == c for n, c in given.items()], axis=0), joint, 0.0)
    codes = np.indices(sizes).reshape(len(names), -1)
    best = int(cut.argmax())
    (seen,) = given
    both = np.einsum(joint / total, range(len(names)), [names.index(target), names.index(seen)])
    apart = np.outer(both.sum(1), both.sum(0))
    return Truth(
        {n: codes[k] for k, n in enumerate(names) if n not in given},
        cut.ravel() / cut.sum(),
        float(np.log(cut.sum() / total)),
        float(np.log(total)),
        {n: int(codes[k, best]) for k, n in enumerate(names) if n not in given},
        float(np.log(cut.max() / total)),
        float(np.log(joint[row] / total)),
        float((both * np.log(both / apart)).sum()),
    )


def _at(sizes: list[int], axis: int) -> Any:
    return np.indices(sizes)[axis]


def _ising(a: int, c: int, b: int) -> float:
    x, y, z = (2 * s - 1 for s in (a, b, c))
    return float(np.exp(0.7 * x * y + 0.3 * y * z + 0.4 * x - 0.2 * z))


def gaussian_network() -> Any:
    """Four linear Gaussians, one of them with two parents."""
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    m.add("w", mk.LinearGaussian(-0.5, {}, 0.64))
    m.add("y", mk.LinearGaussian(0.3, {"x": 2.0, "w": -1.0}, 1.44))
    m.add("z", mk.LinearGaussian(0.2, {"y": 0.5}, 0.25))
    return m


_K = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, 0.7], [0.0, 0.7, 2.0]])
_H = np.array([1.0, 2.0, -0.5])


def gaussian_field() -> Any:
    """A field by its precision and information vector."""
    return mk.GaussianMarkovNetwork(_K, information=_H, names=["x", "y", "z"])


def _normal_truth(names: list[str], mean: Any, cov: Any, log_z: float, value: float, row: Any) -> Truth:
    """Condition a Gaussian on its last number; the points have the right means and covariance, which is what is compared."""
    n = len(names) - 1
    gain = cov[:n, n] / cov[n, n]
    m, v = mean[:n] + gain * (value - mean[n]), cov[:n, :n] - np.outer(gain, cov[n, :n])
    root = np.linalg.cholesky(v) * np.sqrt(n)
    points = np.concatenate([m + root.T, m - root.T])
    log_evidence = float(norm.logpdf(value, mean[n], np.sqrt(cov[n, n])))
    peak = -0.5 * np.linalg.slogdet(2 * np.pi * v)[1]
    gap = np.asarray(row) - mean
    full = -0.5 * (gap @ np.linalg.solve(cov, gap) + np.linalg.slogdet(2 * np.pi * cov)[1])
    r2 = cov[0, n] ** 2 / cov[0, 0] / cov[n, n]
    return Truth(
        dict(zip(names[:n], points.T, strict=True)),
        np.full(2 * n, 0.5 / n),
        log_evidence,
        log_z,
        dict(zip(names[:n], m, strict=True)),
        log_evidence + float(peak),
        float(full),
        float(-0.5 * np.log(1 - r2)),
    )


def _network_truth() -> Truth:
    solve = np.linalg.inv(np.array([[1, 0, 0, 0], [0, 1, 0, 0], [-2, 1, 1, 0], [0, 0, -0.5, 1.0]]))
    mean, cov = solve @ [1.0, -0.5, 0.3, 0.2], solve @ np.diag([4.0, 0.64, 1.44, 0.25]) @ solve.T
    return _normal_truth(["x", "w", "y", "z"], mean, cov, 0.0, 1.2, [0.4, 0.1, -0.7, 0.9])


def _field_truth() -> Truth:
    cov = np.linalg.inv(_K)
    log_z = 0.5 * float(_H @ cov @ _H) + 0.5 * float(np.linalg.slogdet(2 * np.pi * cov)[1])
    return _normal_truth(["x", "y", "z"], cov @ _H, cov, log_z, 1.2, [0.4, 0.1, 0.9])


_MIX = {"p": (0.3, 0.0, 1.0), "q": (0.5, 2.0, 0.5), "r": (0.2, -1.0, 2.0)}


def mixed() -> Any:
    """A number whose regression depends on three states, and another that hangs on it."""
    m = mk.BayesianNetwork()
    m.add("k", {s: w for s, (w, _, _) in _MIX.items()})
    m.add("x", {s: mk.LinearGaussian(b, {}, v) for s, (_, b, v) in _MIX.items()}, parents=["k"])
    m.add("y", mk.LinearGaussian(0.4, {"x": 1.5}, 0.8))
    return m


def _mixed_truth() -> Truth:
    y, x = 1.2, np.linspace(-8.0, 9.0, 4001)
    joint = np.array([w * norm.pdf(x, b, np.sqrt(v)) for w, b, v in _MIX.values()]) * norm.pdf(
        y, 0.4 + 1.5 * x, np.sqrt(0.8)
    )
    best = np.unravel_index(joint.argmax(), joint.shape)
    evidence = joint.sum() * (x[1] - x[0])
    full = (
        np.log(0.5) + norm.logpdf(0.3, 2.0, np.sqrt(0.5)) + norm.logpdf(-0.2, 0.4 + 1.5 * 0.3, np.sqrt(0.8))
    )
    return Truth(
        {"k": np.repeat(np.arange(3), len(x)), "x": np.tile(x, 3)},
        joint.ravel() / joint.sum(),
        float(np.log(evidence)),
        0.0,
        {"k": int(best[0]), "x": float(x[best[1]])},
        float(np.log(joint.max())),
        float(full),
        _told_by_a_number(),
    )


def _told_by_a_number() -> float:
    """Return how much y tells about k: the entropy of y less that of y given k, by quadrature."""
    y = np.linspace(-25.0, 25.0, 20_001)
    each = np.array([norm.pdf(y, 0.4 + 1.5 * b, np.sqrt(0.8 + 2.25 * v)) for _, b, v in _MIX.values()])
    weights = np.array([w for w, _, _ in _MIX.values()])
    whole = weights @ each
    inside = weights[:, None] * each * np.log(np.maximum(each, 1e-300) / np.maximum(whole, 1e-300))
    return float(inside.sum() * (y[1] - y[0]))


def density() -> Any:
    """A normal with unknown mean and standard deviation, priors not conjugate."""
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(1.0, 2.0))
    m.add("s", dist.Gamma(3.0, 2.0))
    m.add("y", lambda mu, s: dist.Normal(mu, s))
    return m


def _grid_truth(names: tuple[str, str], grids: Any, joint: Any, area: float, log_full: float) -> Truth:
    best = np.unravel_index(joint.argmax(), joint.shape)
    columns = dict(zip(names, (c.ravel() for c in np.meshgrid(*grids, indexing="ij")), strict=True))
    return Truth(
        columns,
        joint.ravel() / joint.sum(),
        float(np.log(joint.sum() * area)),
        0.0,
        {n: g[i] for n, g, i in zip(names, grids, best, strict=True)},
        float(np.log(joint.max())),
        log_full,
    )


def _density_truth() -> Truth:
    mu, s = np.linspace(-8, 10, 1201), np.linspace(1e-4, 9, 1201)
    joint = norm.pdf(mu, 1, 2)[:, None] * gamma.pdf(s, 3, scale=0.5) * norm.pdf(2.2, mu[:, None], s)
    full = norm.logpdf(0.4, 1, 2) + gamma.logpdf(0.9, 3, scale=0.5) + norm.logpdf(-0.3, 0.4, 0.9)
    return _grid_truth(("mu", "s"), (mu, s), joint, (mu[1] - mu[0]) * (s[1] - s[0]), float(full))


def latents() -> Any:
    """A state and a number, both unknown."""
    m = mk.BayesianNetwork()
    m.add("k", {"p": 0.3, "q": 0.7})
    m.add("r", dist.Gamma(2.0, 1.0))
    m.add("y", lambda k, r: dist.Normal(2.0 * k, r + 0.3))
    return m


def _latents_truth() -> Truth:
    r = np.linspace(1e-5, 30, 6001)
    joint = np.array([[0.3], [0.7]]) * gamma.pdf(r, 2) * norm.pdf(2.2, np.array([[0.0], [2.0]]), r + 0.3)
    full = np.log(0.3) + gamma.logpdf(0.8, 2) + norm.logpdf(0.5, 0.0, 1.1)
    return _grid_truth(("k", "r"), (np.arange(2), r), joint, r[1] - r[0], float(full))


_Y = np.array([0.3, 2.1, 1.4])


def plates() -> Any:
    """A mean with its conjugate prior, and rows."""
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(1.0, 2.0))
    m.add("y", lambda mu: dist.Normal(mu, 1.5), plate="row")
    return m


def _plates_truth() -> Truth:
    mu = np.linspace(-9, 11, 4001)
    logs = norm.logpdf(mu, 1, 2) + norm.logpdf(_Y[:, None], mu, 1.5).sum(axis=0)
    joint = np.exp(logs)
    full = norm.logpdf(0.4, 1, 2) + norm.logpdf(_Y, 0.4, 1.5).sum()
    return Truth(
        {"mu": mu},
        joint / joint.sum(),
        float(np.log(joint.sum() * (mu[1] - mu[0]))),
        0.0,
        {"mu": float(mu[joint.argmax()])},
        float(logs.max()),
        float(full),
    )


_STEP, _FIRST = np.array([[0.8, 0.2], [0.3, 0.7]]), np.array([0.4, 0.6])
_SEEN = np.array([1, 0, 1])


def plated_chain() -> Any:
    """A hidden chain along a plate: no number is unknown, all states are summed out."""
    import jax.numpy as jnp

    m = mk.BayesianNetwork()
    m.add(
        "z",
        lambda before: dist.Categorical(jnp.array([[0.8, 0.2], [0.3, 0.7]])[before]),
        plate="t",
        previous={"before": "z"},
        first=dist.Categorical(_FIRST),
    )
    m.add("y", lambda z: dist.Bernoulli(0.2 + 0.6 * z), plate="t")
    return m


def _plated_chain_truth() -> Truth:
    paths = np.array(list(product(range(2), repeat=3)))
    seen = np.where(_SEEN == 1, 0.2 + 0.6 * paths, 0.8 - 0.6 * paths).prod(axis=1)
    joint = _FIRST[paths[:, 0]] * _STEP[paths[:, 0], paths[:, 1]] * _STEP[paths[:, 1], paths[:, 2]] * seen
    return Truth(
        {"z": paths},
        joint / joint.sum(),
        float(np.log(joint.sum())),
        0.0,
        {"z": paths[joint.argmax()]},
        float(np.log(joint.max())),
        float(np.log(joint[5])),
    )


CASES = {
    "discrete network": Case(
        discrete,
        {"c": "m"},
        "a",
        "b",
        {"a": "z", "b": "no", "c": "h"},
        lambda: _table_truth(
            discrete, lambda a, b, c: [0.5, 0.2, 0.3][a] * _B[a][b] * _C[b][a][c], {"c": 1}, (2, 0, 2), "a"
        ),
    ),
    "Markov network": Case(
        loop,
        {"c": 1},
        "a",
        "b",
        {"a": 2, "b": 0, "c": 1},
        lambda: _table_truth(
            loop, lambda a, b, c: _AB[a][b] * _BD[b][c] * _DA[c][a], {"c": 1}, (2, 0, 1), "a"
        ),
    ),
    "log-linear field": Case(
        log_linear,
        {"c": 1},
        "a",
        "b",
        {"a": 1, "b": 0, "c": 1},
        lambda: _table_truth(log_linear, _ising, {"c": 1}, (1, 1, 0), "a"),
    ),
    "chain": Case(
        chain,
        {"z3": "u"},
        "z1",
        "z2",
        {"z0": "v", "z1": "u", "z2": "v", "z3": "v"},
        lambda: _table_truth(
            chain,
            lambda a, b, c, d: [0.35, 0.65][a] * _Z[0][a][b] * _Z[1][b][c] * _Z[2][c][d],
            {"z3": 0},
            (1, 0, 1, 1),
            "z1",
        ),
    ),
    "Gaussian network": Case(
        gaussian_network, {"z": 1.2}, "x", "y", {"x": 0.4, "w": 0.1, "y": -0.7, "z": 0.9}, _network_truth
    ),
    "Gaussian field": Case(
        gaussian_field, {"z": 1.2}, "x", "y", {"x": 0.4, "y": 0.1, "z": 0.9}, _field_truth
    ),
    "mixed network": Case(mixed, {"y": 1.2}, "k", "x", {"k": "q", "x": 0.3, "y": -0.2}, _mixed_truth),
    "density": Case(density, {"y": 2.2}, "mu", "s", {"mu": 0.4, "s": 0.9, "y": -0.3}, _density_truth),
    "states and numbers": Case(latents, {"y": 2.2}, "k", "r", {"k": "p", "r": 0.8, "y": 0.5}, _latents_truth),
    "plates": Case(plates, {"y": _Y}, "mu", "mu", {"mu": 0.4, "y": _Y}, _plates_truth, {"row": 3}),
    "chain on a plate": Case(
        plated_chain,
        {"y": _SEEN},
        "z",
        "z",
        {"z": np.array([1, 0, 1]), "y": _SEEN},
        _plated_chain_truth,
        {"t": 3},
    ),
}


@cache
def truth_of(name: str) -> Truth:
    """Return the truth of a case, worked out once."""
    return CASES[name].truth()


@cache
def model_of(name: str) -> Any:
    """Return the model of a case, made once."""
    return CASES[name].build()
