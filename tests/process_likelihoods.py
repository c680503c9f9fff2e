"""Likelihoods of Gaussian processes with small data for them, and brute force: integrals over all values of the function."""

from functools import cache
from itertools import product

import numpy as np

import markovia as mk
from markovia.factors.functions.parameter import Parameter
from markovia.learning.processes.likelihoods import (
    BernoulliLogit,
    BernoulliProbit,
    NoiseProcess,
    NormalNoise,
    OrdinalProbit,
    PoissonCounts,
    SoftmaxClasses,
    StudentTNoise,
)

THREE = np.array([[0.0], [0.5], [2.0]])
"""The inputs of the reference numbers."""


def positive(value):
    return Parameter(np.asarray(value, dtype=float)[()], support="positive")


def real(value):
    return Parameter(value)


LIKELIHOODS = {
    "normal": lambda: NormalNoise(positive(0.3)),
    "student-t": lambda: StudentTNoise(positive(0.4), positive(3.0)),
    "bernoulli": BernoulliLogit,
    "probit": BernoulliProbit,
    "ordinal": lambda: OrdinalProbit(real(-0.7), positive([0.6, 0.9])),
    "poisson": lambda: PoissonCounts(real(0.3)),
    "heteroscedastic": lambda: NoiseProcess(positive(0.8) * mk.covariances.RBF(positive(1.3)), real(-1.0)),
    "categorical": lambda: SoftmaxClasses(3),
}
TARGETS = {
    "normal": (1.0, 0.2, -0.7), "student-t": (1.0, 0.2, -1.9), "bernoulli": (1, 0, 1), "probit": (1, 0, 1),
    "ordinal": (3, 1, 0), "poisson": (4, 2, 0), "heteroscedastic": (1.0, 0.2, -0.7), "categorical": (0, 1, 2),
}  # fmt: skip
"""Targets of `THREE` by the likelihood's word."""


def covariance(word):
    """Return a covariance whose numbers are all fitted, plus a likelihood."""
    return positive(1.4) * mk.covariances.RBF(positive(0.9)) + LIKELIHOODS[word]()


def many(word, n, seed=0):
    """Return n rows of two columns, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    f = np.sin(2.0 * X[:, 0]) + X[:, 1]
    made = {
        "normal": lambda: f + 0.3 * rng.normal(size=n),
        "student-t": lambda: f + 0.4 * rng.standard_t(3, size=n),
        "bernoulli": lambda: f > 0.3 * rng.normal(size=n),
        "probit": lambda: f > rng.normal(size=n),
        "ordinal": lambda: np.digitize(f + 0.5 * rng.normal(size=n), [-0.7, -0.1, 0.8]),
        "poisson": lambda: rng.poisson(np.exp(f)),
        "heteroscedastic": lambda: f + 0.3 * np.exp(0.5 * X[:, 0]) * rng.normal(size=n),
        "categorical": lambda: np.digitize(f, [-0.5, 0.5]),
    }
    return X, np.asarray(made[word](), dtype=np.float64)


@cache
def brute_force(word, length=0.9, variance=1.4):
    """Return the log evidence of `TARGETS`, and mean and variance of the function, by a sum over a grid of its values."""
    likelihood, y = LIKELIHOODS[word](), np.array(TARGETS[word], dtype=float)
    L = np.linalg.cholesky(variance * mk.covariances.RBF(length).value(THREE))
    z = np.linspace(-7.0, 7.0, 71)
    grid = np.stack(np.meshgrid(z, z, z, indexing="ij"), axis=-1).reshape(-1, 3)
    f = grid @ L.T
    logs = likelihood.derivatives(np.broadcast_to(y, f.shape), f)[0].sum(axis=1) - 0.5 * (grid**2).sum(axis=1)
    top = logs.max()
    share = np.exp(logs - top)
    total = share.sum()
    evidence = float(np.log(total) + top + 3.0 * np.log((z[1] - z[0]) / np.sqrt(2.0 * np.pi)))
    mean = share @ f / total
    return evidence, mean, share @ (f - mean) ** 2 / total


def dense_panels(likelihood, y, m, v):
    """Return places in standard deviations and weights of an integral over f: far more of both than can be needed."""
    sd = np.sqrt(v)
    at, weight = np.polynomial.legendre.leggauss(6)

    def around(place, distance, reach):
        wide = np.arcsinh(reach / distance)
        return place + distance * np.sinh(np.linspace(-wide, wide, 900))

    places, distance = likelihood.bends(np.array([float(y)]))
    tops = np.linspace(-30.0, 30.0, 6001)  # the top of the product, which may be a narrow one
    values = likelihood.derivatives(np.full(6001, float(y)), m + sd * tops)[0] - 0.5 * tops**2
    edges = [around(0.0, 1.0, 60.0), around(tops[values.argmax()], 0.01, 60.0)]
    edges += [around((c - m) / sd, 0.3 * float(np.ravel(distance)[0]) / sd, 3000.0) for c in places[0]]
    ends = np.unique(np.concatenate(edges))
    half = 0.5 * np.diff(ends)[:, None]
    return (ends[:-1, None] + half + half * at).ravel(), (half * weight).ravel()


WAYS = [
    (word, way)
    for word, way in product(LIKELIHOODS, ("laplace", "ep", "variational"))
    if way in LIKELIHOODS[word]().ways
]
"""Likelihoods, and the methods that know them."""
