"""Models that Bayesian textbooks work through, with small data, their log densities by hand, and reference posteriors.

Each is a `Worked`: the network, what is given, and `log_joint(values)`, the log density of latent values and data written
with SciPy alone (discrete variables summed out). `reference()` maps a quantity to posterior means and their standard errors:
zero where they come from quadrature or enumeration, a Monte Carlo error where from a long run of another program.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import expit, gammaln, logsumexp

import markovia as mk
import markovia.distributions as dist


@dataclass(frozen=True)
class Worked:
    network: mk.BayesianNetwork
    given: dict[str, Any]
    log_joint: Callable[[dict[str, Any]], float]
    reference: Callable[[], dict[str, tuple[Any, Any]]]


def varying_slopes() -> Worked:
    """Intercept and slope of five groups, correlated: an LKJ prior on the Cholesky factor of their correlations."""
    rng = np.random.default_rng(11)
    group = np.array([0, 0, 0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 4, 4, 4])
    x = rng.normal(size=len(group)).round(2)
    true = np.array([1.0, -0.5]) + rng.normal(size=(5, 2)) @ np.array([[0.8, 0.4], [0.0, 0.5]])
    y = (true[group, 0] + true[group, 1] * x + 0.4 * rng.normal(size=len(group))).round(2)
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0.0, 2.0), plate={"term": 2})
    m.add("tau", dist.HalfNormal(1.5), plate="term")
    m.add("L", dist.LKJCholesky(2, 2.0))
    m.add(
        "b", lambda mu, tau, L: dist.MultivariateNormal(mu, scale_tril=tau[:, None] * L), plate={"group": 5}
    )
    m.add("s", dist.HalfNormal(1.0))
    m.add("y", lambda b, s, g, x: dist.Normal(b[g, 0] + b[g, 1] * x, s), plate="row")

    def log_joint(v: dict[str, Any]) -> float:
        rho = v["L"][1, 0]
        root = v["tau"][:, None] * v["L"]
        # LKJ(2, eta = 2): the density of rho is 3/4 (1 - rho^2), and of the factor's free entry the same
        total = np.log(0.75) + np.log1p(-(rho**2))
        total += stats.norm.logpdf(v["mu"], 0, 2).sum() + stats.halfnorm.logpdf(v["tau"], scale=1.5).sum()
        total += stats.halfnorm.logpdf(v["s"])
        total += stats.multivariate_normal.logpdf(v["b"], v["mu"], root @ root.T).sum()
        mean = v["b"][group, 0] + v["b"][group, 1] * x
        return float(total + stats.norm.logpdf(y, mean, v["s"]).sum())

    return Worked(m, {"y": y, "g": group, "x": x}, log_joint, lambda: dict(REFERENCE_RUNS["varying_slopes"]))


def dawid_skene() -> Worked:
    """Labels in long form: which worker said what of which item; the items' true classes are summed out."""
    import jax.numpy as jnp

    who = np.array([0, 1, 2, 0, 1, 2, 1, 2, 0, 2, 0, 1, 2, 2])
    what = np.array([0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 4, 4, 1])
    said = np.array([1, 1, 0, 0, 0, 1, 2, 2, 1, 0, 2, 1, 2, 0])
    prior = np.array([[4.0, 1.0, 1.5], [1.0, 5.0, 1.0], [0.5, 1.0, 3.0]])
    shares = np.array([2.0, 1.0, 1.5])
    m = mk.BayesianNetwork()
    m.add("pi", dist.Dirichlet(shares))
    m.add("theta", lambda: dist.Dirichlet(jnp.asarray(prior)), plate={"worker": 3, "true": 3})
    m.add("z", lambda pi: dist.Categorical(pi), plate={"item": 5})
    m.add("y", lambda theta, z, who, what: dist.Categorical(theta[who, z[what]]), plate="label")

    def log_joint(v: dict[str, Any]) -> float:
        total = stats.dirichlet.logpdf(v["pi"], shares)
        total += sum(stats.dirichlet.logpdf(v["theta"][w, k], prior[k]) for w in range(3) for k in range(3))
        for item in range(5):
            mine = what == item
            each = [np.log(v["pi"][k]) + np.log(v["theta"][who[mine], k, said[mine]]).sum() for k in range(3)]
            total += logsumexp(each)
        return float(total)

    def dirichlet_multinomial(alpha: Any, counts: Any) -> float:
        found = gammaln(alpha.sum()) - gammaln(alpha.sum() + counts.sum())
        return float(found + (gammaln(alpha + counts) - gammaln(alpha)).sum())

    def reference() -> dict[str, tuple[Any, Any]]:
        # all 3^5 configurations of the true classes, workers and shares integrated out
        logs, mean_pi, mean_theta = [], [], []
        for z in product(range(3), repeat=5):
            counts = np.zeros((3, 3, 3))
            np.add.at(counts, (who, np.array(z)[what], said), 1.0)
            of = np.bincount(z, minlength=3)
            logs.append(
                dirichlet_multinomial(shares, of)
                + sum(dirichlet_multinomial(prior[k], counts[w, k]) for w in range(3) for k in range(3))
            )
            mean_pi.append((shares + of) / (shares.sum() + 5))
            after = prior + counts
            mean_theta.append(after / after.sum(-1, keepdims=True))
        weights = np.exp(np.array(logs) - logsumexp(logs))
        return {
            "pi": (np.tensordot(weights, mean_pi, 1), 0.0),
            "theta": (np.tensordot(weights, mean_theta, 1), 0.0),
        }

    return Worked(m, {"y": said, "who": who, "what": what}, log_joint, reference)


def item_response() -> Worked:
    """Two-parameter logistic item response: abilities, difficulties and discriminations of four items, in long form."""
    rng = np.random.default_rng(5)
    student, item = np.array(list(product(range(6), range(4)))).T
    keep = rng.random(24) < 0.85
    student, item = student[keep], item[keep]
    right = (
        rng.random(len(item)) < expit(np.linspace(-1.5, 2, 6)[student] - np.array([0.5, -1, 1, 0])[item])
    ).astype(int)
    m = mk.BayesianNetwork()
    m.add("ability", dist.Normal(0.0, 1.3), plate={"student": 6})
    m.add("difficulty", dist.Normal(0.2, 1.1), plate={"item": 4})
    m.add("slope", dist.LogNormal(0.1, 0.4), plate="item")
    m.add(
        "y",
        lambda ability, difficulty, slope, i, j: dist.Bernoulli(
            logits=slope[j] * (ability[i] - difficulty[j])
        ),
        plate="answer",
    )

    def log_joint(v: dict[str, Any]) -> float:
        total = (
            stats.norm.logpdf(v["ability"], 0, 1.3).sum() + stats.norm.logpdf(v["difficulty"], 0.2, 1.1).sum()
        )
        total += stats.lognorm.logpdf(v["slope"], 0.4, scale=np.exp(0.1)).sum()
        p = expit(v["slope"][item] * (v["ability"][student] - v["difficulty"][item]))
        return float(total + stats.bernoulli.logpmf(right, p).sum())

    return Worked(
        m, {"y": right, "i": student, "j": item}, log_joint, lambda: dict(REFERENCE_RUNS["item_response"])
    )


def horseshoe() -> Worked:
    """Regression with the horseshoe prior (Carvalho, Polson and Scott 2010): b_j ~ N(0, (tau lambda_j)^2)."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(12, 2)).round(2)
    y = (X @ np.array([1.6, 0.05]) + 0.7 * rng.normal(size=12)).round(2)
    m = mk.BayesianNetwork()
    m.add("tau", dist.HalfCauchy(0.6))
    m.add("lam", dist.HalfCauchy(1.0), plate={"column": 2})
    m.add("b", lambda tau, lam: dist.Normal(0.0, tau * lam), plate="column")
    m.add("y", lambda b, X: dist.Normal(X @ b, 0.7), plate="row")

    def log_joint(v: dict[str, Any]) -> float:
        total = stats.halfcauchy.logpdf(v["tau"], scale=0.6) + stats.halfcauchy.logpdf(v["lam"]).sum()
        total += stats.norm.logpdf(v["b"], 0, v["tau"] * v["lam"]).sum()
        return float(total + stats.norm.logpdf(y, X @ v["b"], 0.7).sum())

    def reference() -> dict[str, tuple[Any, Any]]:
        # given tau * lambda = s_j, b is normal; a grid over angles (half-Cauchy quantiles) integrates the three scales
        q = (np.arange(160) + 0.5) / 160
        tau, lam = 0.6 * np.tan(0.5 * np.pi * q), np.tan(0.5 * np.pi * q)
        precision, h = X.T @ X / 0.49, X.T @ y / 0.49
        logs, means = [], []
        for t in tau:
            s1, s2 = np.meshgrid(t * lam, t * lam, indexing="ij")
            a, d = precision[0, 0] + s1**-2.0, precision[1, 1] + s2**-2.0
            c = precision[0, 1]
            det = a * d - c * c
            b1, b2 = (d * h[0] - c * h[1]) / det, (a * h[1] - c * h[0]) / det
            logs.append(0.5 * (h[0] * b1 + h[1] * b2) - 0.5 * np.log(det) - np.log(s1 * s2))
            means.append(np.stack([b1, b2]))
        w = np.exp(np.array(logs) - np.max(logs))
        mean = np.array([(w * np.array(means)[:, k]).sum() for k in range(2)]) / w.sum()
        return {"b": (mean, 0.0)}

    return Worked(m, {"y": y, "X": X}, log_joint, reference)


def stochastic_volatility() -> Worked:
    """Returns whose log variance is a stationary autoregression (Kim, Shephard and Chib 1998)."""
    rng = np.random.default_rng(21)
    h = np.zeros(25)
    for t in range(1, 25):
        h[t] = 0.9 * h[t - 1] + 0.4 * rng.normal()
    r = (np.exp(0.5 * (h - 0.6)) * rng.normal(size=25)).round(3)
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(-0.5, 1.0))
    m.add("phi", dist.Uniform(0.2, 1.0))
    m.add("sigma", dist.HalfNormal(0.7))
    m.add(
        "h",
        lambda before, mu, phi, sigma: dist.Normal(mu + phi * (before - mu), sigma),
        plate="t",
        previous={"before": "h"},
        first=lambda mu, phi, sigma: dist.Normal(mu, sigma / (1.0 - phi**2) ** 0.5),
    )
    m.add("r", lambda h: dist.Normal(0.0, 2.718281828459045 ** (0.5 * h)), plate="t")

    def log_joint(v: dict[str, Any]) -> float:
        mu, phi, sigma, h = v["mu"], v["phi"], v["sigma"], v["h"]
        total = stats.norm.logpdf(mu, -0.5, 1) + stats.uniform.logpdf(phi, 0.2, 0.8)
        total += stats.halfnorm.logpdf(sigma, scale=0.7) + stats.norm.logpdf(
            h[0], mu, sigma / np.sqrt(1 - phi**2)
        )
        total += stats.norm.logpdf(h[1:], mu + phi * (h[:-1] - mu), sigma).sum()
        return float(total + stats.norm.logpdf(r, 0, np.exp(0.5 * h)).sum())

    return Worked(m, {"r": r}, log_joint, lambda: dict(REFERENCE_RUNS["stochastic_volatility"]))


def ordinal() -> Worked:
    """Ratings in four classes with ordered cut-points and one covariate: cumulative logits."""
    x = np.array([-1.2, 0.3, 0.9, 2.1, -0.4, 1.5, -2.0, 0.0, 0.7, 1.1])
    y = np.array([0, 1, 2, 3, 1, 3, 0, 2, 1, 2])
    m = mk.BayesianNetwork()
    m.add("beta", dist.Normal(0.5, 1.2))
    m.add("cut", dist.Ordered(dist.Normal(0.5, 1.8), size=3))
    m.add("y", lambda beta, cut, x: dist.OrderedLogistic(beta * x, cut), plate="row")

    def log_joint(v: dict[str, Any]) -> float:
        below = expit(v["cut"][None] - v["beta"] * x[:, None])
        cells = np.diff(np.concatenate([np.zeros((10, 1)), below, np.ones((10, 1))], axis=1), axis=1)
        prior = (
            stats.norm.logpdf(v["beta"], 0.5, 1.2) + stats.norm.logpdf(v["cut"], 0.5, 1.8).sum() + np.log(6.0)
        )
        return float(prior + np.log(cells[np.arange(10), y]).sum())

    def reference() -> dict[str, tuple[Any, Any]]:
        # a grid over beta and three ordered cut-points
        beta = np.linspace(-2.0, 5.5, 61)
        cut = np.linspace(-6.0, 8.0, 113)
        prior = stats.norm.logpdf(cut, 0.5, 1.8)
        logs = np.full((61, 113, 113, 113), -np.inf, dtype=np.float32)
        i, j, k = np.nonzero(
            (cut[:, None, None] < cut[None, :, None]) & (cut[None, :, None] < cut[None, None, :])
        )
        for a, b in enumerate(beta):
            below = expit(cut[None] - b * x[:, None])
            lowest, highest = np.log(below[y == 0]).sum(0), np.log1p(-below[y == 3]).sum(0)
            with np.errstate(divide="ignore", invalid="ignore"):
                second = np.log(below[y == 1][:, None, :] - below[y == 1][:, :, None]).sum(0)
                third = np.log(below[y == 2][:, None, :] - below[y == 2][:, :, None]).sum(0)
            logs[a, i, j, k] = (
                stats.norm.logpdf(b, 0.5, 1.2) + prior[i] + prior[j] + prior[k]
                + lowest[i] + second[i, j] + third[j, k] + highest[k]
            )  # fmt: skip
        w = np.exp(logs - logs.max(), dtype=np.float32)
        total = w.sum(dtype=np.float64)
        over = [w.sum(axis=tuple(a for a in range(4) if a != axis), dtype=np.float64) for axis in range(4)]
        cuts = np.array([(over[a] * cut).sum() for a in (1, 2, 3)]) / total
        return {"beta": ((over[0] * beta).sum() / total, 0.0), "cut": (cuts, 0.0)}

    return Worked(m, {"y": y, "x": x}, log_joint, reference)


def weibull_survival() -> Worked:
    """Times to failure with a covariate, some still running when watched last: Weibull, right-censored."""
    import jax.numpy as jnp

    t = np.array([2.1, 0.7, 3.3, 5.0, 1.2, 5.0, 0.4, 2.8, 5.0, 1.9, 4.2])
    failed = np.array([1, 1, 1, 0, 1, 0, 1, 1, 0, 1, 1])
    x = np.array([0.5, -0.8, 1.1, 1.4, -0.3, 0.2, -1.6, 0.9, 1.8, -0.1, 0.6])
    m = mk.BayesianNetwork()
    m.add("shape", dist.Gamma(4.0, 3.0))
    m.add("beta", dist.Normal(0.3, 0.8))
    m.add(
        "t",
        lambda shape, beta, x, running: dist.RightCensoredDistribution(
            dist.Weibull(jnp.exp(1.1 + beta * x), shape), running
        ),
        plate="unit",
    )

    def log_joint(v: dict[str, Any]) -> float:
        scale = np.exp(1.1 + v["beta"] * x)
        each = np.where(
            failed == 1,
            stats.weibull_min.logpdf(t, v["shape"], scale=scale),
            stats.weibull_min.logsf(t, v["shape"], scale=scale),
        )
        prior = stats.gamma.logpdf(v["shape"], 4, scale=1 / 3) + stats.norm.logpdf(v["beta"], 0.3, 0.8)
        return float(prior + each.sum())

    def reference() -> dict[str, tuple[Any, Any]]:
        shape, beta = np.linspace(0.02, 5.0, 100), np.linspace(-2.0, 3.0, 101)
        logs = np.array([[log_joint({"shape": a, "beta": b}) for b in beta] for a in shape])
        w = np.exp(logs - logs.max())
        return {
            "shape": ((w.sum(1) * shape).sum() / w.sum(), 0.0),
            "beta": ((w.sum(0) * beta).sum() / w.sum(), 0.0),
        }

    return Worked(m, {"t": t, "x": x, "running": 1 - failed}, log_joint, reference)


REFERENCE_RUNS: dict[str, dict[str, tuple[Any, Any]]] = {
    "item_response": {
        "ability": (
            [-1.5265, 0.0907, -0.2604, -0.0797, 0.8133, 1.208],
            [0.00313, 0.00301, 0.00329, 0.0037, 0.00308, 0.00336],
        ),
        "difficulty": ([0.1143, -0.4864, 1.3846, -0.3969], [0.00272, 0.0028, 0.00302, 0.00272]),
        "slope": ([1.1226, 1.2555, 1.2571, 1.1414], [0.00178, 0.00188, 0.00181, 0.00183]),
    },
    "stochastic_volatility": {
        "mu": (-0.6985, 0.00246),
        "phi": (0.5792, 0.00108),
        "sigma": (0.4614, 0.00188),
    },
    "varying_slopes": {
        "mu": ([0.4864, -1.2695], [0.0026, 0.00302]),
        "tau": ([0.6468, 0.7788], [0.00278, 0.00364]),
        "b": (
            [[0.5249, -0.7555], [1.0296, -1.8731], [-0.0792, -0.9644], [0.6278, -1.6267], [0.4279, -1.4123]],
            [
                [0.00204, 0.00239],
                [0.00268, 0.00548],
                [0.00156, 0.00203],
                [0.00091, 0.00087],
                [0.00077, 0.00126],
            ],
        ),
        "s": (0.4085, 0.00099),
    },
}
"""Posterior means and their Monte Carlo errors: NumPyro's NUTS, models written non-centred, 4 chains of 15,000 draws."""

WORKED = {
    f.__name__: f
    for f in (
        varying_slopes,
        dawid_skene,
        item_response,
        horseshoe,
        stochastic_volatility,
        ordinal,
        weibull_survival,
    )
}
