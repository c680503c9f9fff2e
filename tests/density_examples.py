"""Densities with known answers, made by hand, that tests of engines on densities share."""

import math
from functools import cache

import numpy as np

from markovia.inference.densities.program.density import Density, DensityRows

EIGHT_SCHOOLS = {
    "y": np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0]),
    "s": np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0]),
}


def normal(x, mean, sd):
    import jax.numpy as jnp

    return -0.5 * ((x - mean) / sd) ** 2 - jnp.log(sd) - 0.5 * math.log(2 * math.pi)


def uniform_start(size):
    import jax

    return lambda key, data: jax.random.uniform(key, (size,), minval=-2.0, maxval=2.0)


@cache
def gaussian():
    """Two correlated numbers: prior N(0, diag(4, 1)), one observation of their sum, y ~ N(a + b, 0.5^2), y = 2.

    The posterior is Gaussian; see `gaussian_answer`. Other data make it a funnel, b ~ N(0, exp(funnel * a)).
    """
    import jax.numpy as jnp

    return Density(
        2,
        lambda u, data: normal(u[0], 0.0, 2.0) + normal(u[1], 0.0, jnp.exp(data["funnel"] * u[0])),
        lambda u, data: normal(data["y"], u[0] + u[1], data["noise"]).sum(),
        lambda u, data: {"a": u[0], "b": u[1]},
        uniform_start(2),
        gaussian_data(),
        ("tests", "gaussian"),
    )


def gaussian_data(y=2.0, noise=0.5, funnel=0.0):
    return {"y": np.array([y]), "noise": np.array(noise), "funnel": np.array(funnel)}


def gaussian_answer(y=2.0):
    """Return mean, covariance and log evidence of `gaussian`."""
    prior, design = np.diag([4.0, 1.0]), np.array([[1.0, 1.0]])
    total = float((design @ prior @ design.T)[0, 0]) + 0.25
    gain = prior @ design.T / total
    return (
        (gain * y).ravel(),
        prior - gain @ design @ prior,
        -0.5 * math.log(2 * math.pi * total) - 0.5 * y**2 / total,
    )


@cache
def gamma():
    """A rate with prior Gamma(3, 2) and counts 4, 2, 5 ~ Poisson(rate): the posterior is Gamma(14, 5)."""
    import jax.numpy as jnp
    from jax.scipy.special import gammaln

    def log_prior(u, data):
        rate = jnp.exp(u[0])
        return 3 * math.log(2.0) - math.lgamma(3.0) + 2.0 * u[0] - 2.0 * rate + u[0]

    def log_likelihood(u, data):
        return jnp.sum(data["n"] * u[0] - jnp.exp(u[0]) - gammaln(data["n"] + 1.0))

    return Density(
        1,
        log_prior,
        log_likelihood,
        lambda u, data: {"rate": jnp.exp(u[0])},
        uniform_start(1),
        {"n": np.array([4.0, 2.0, 5.0])},
        ("tests", "gamma"),
        lambda u, data: u[0],
    )


def gamma_log_evidence():
    counts = [4, 2, 5]
    top = math.lgamma(14.0) - 14.0 * math.log(5.0)
    return top + 3 * math.log(2.0) - math.lgamma(3.0) - sum(math.lgamma(n + 1.0) for n in counts)


@cache
def hierarchy():
    """A hierarchy of Gaussians with known variances: mu ~ N(0, 3^2), theta_j ~ N(mu, 1), y_ij ~ N(theta_j, 2^2).

    Six groups of five observations; the posterior is Gaussian; see `hierarchy_answer`. `rows` are observations.
    """

    rng = np.random.default_rng(5)
    group = np.repeat(np.arange(6), 5)
    y = rng.normal(1.5, 1.0, 6)[group] + rng.normal(0.0, 2.0, 30)

    return Density(
        7,
        lambda u, data: normal(u[0], 0.0, 3.0) + normal(u[1:], u[0], 1.0).sum(),
        lambda u, data: normal(data["y"], u[1:][data["group"]], 2.0).sum(),
        lambda u, data: {"mu": u[0], "theta": u[1:]},
        uniform_start(7),
        {"y": y, "group": group},
        ("tests", "hierarchy"),
        rows=lambda: DensityRows(
            30, lambda u, data, at: normal(data["y"][at], u[1:][data["group"][at]], 2.0).sum()
        ),
    )


def hierarchy_answer():
    """Return mean, covariance of (mu, theta) and the log evidence, by plain Gaussian conditioning."""
    data = hierarchy().data
    prior = np.full((7, 7), 9.0)
    prior[1:, 1:] += np.eye(6)
    design = np.zeros((30, 7))
    design[np.arange(30), 1 + data["group"]] = 1.0
    total = design @ prior @ design.T + 4.0 * np.eye(30)
    gain = np.linalg.solve(total, design @ prior).T
    _, logdet = np.linalg.slogdet(2 * math.pi * total)
    evidence = -0.5 * logdet - 0.5 * data["y"] @ np.linalg.solve(total, data["y"])
    return gain @ data["y"], prior - gain @ design @ prior, float(evidence)


@cache
def targets():
    """`gaussian`, `gamma` and `hierarchy` side by side in one density of ten numbers, so that an engine compiles once."""
    parts = [gaussian(), gamma(), hierarchy()]
    ends = np.cumsum([part.size for part in parts])[:-1].tolist()

    def split(u):
        import jax.numpy as jnp

        return jnp.split(u, ends)

    def total(which):
        def log_density(u, data):
            each = zip(parts, split(u), data, strict=True)
            return sum(getattr(part, which)(x, mine) for part, x, mine in each)

        return log_density

    def constrain(u, data):
        found = {}
        for part, x, mine in zip(parts, split(u), data, strict=True):
            found.update(part.constrain(x, mine))
        return found

    return Density(
        10,
        total("log_prior"),
        total("log_likelihood"),
        constrain,
        uniform_start(10),
        [part.data for part in parts],
        ("tests", "targets"),
    )


RATE = {"mean": 14 / 5, "sd": math.sqrt(14) / 5}


def targets_answer():
    """Return exact means and standard deviations of the quantities of `targets`, and the log evidence."""
    (m1, c1, e1), (m2, c2, e2) = gaussian_answer(), hierarchy_answer()
    s1, s2 = np.sqrt(np.diag(c1)), np.sqrt(np.diag(c2))
    means = {"a": m1[0], "b": m1[1], "rate": RATE["mean"], "mu": m2[0], "theta": m2[1:]}
    sds = {"a": s1[0], "b": s1[1], "rate": RATE["sd"], "mu": s2[0], "theta": s2[1:]}
    return means, sds, e1 + gamma_log_evidence() + e2


@cache
def eight_schools():
    """Rubin's eight schools, non-centred."""
    import jax.numpy as jnp

    def log_prior(u, data):
        tau = jnp.exp(u[1])
        half_cauchy = math.log(2.0 / (math.pi * 5.0)) - jnp.log1p((tau / 5.0) ** 2) + u[1]
        return normal(u[0], 0.0, 5.0) + half_cauchy + normal(u[2:], 0.0, 1.0).sum()

    return Density(
        10,
        log_prior,
        lambda u, data: normal(data["y"], u[0] + jnp.exp(u[1]) * u[2:], data["s"]).sum(),
        lambda u, data: {"mu": u[0], "tau": jnp.exp(u[1]), "theta": u[0] + jnp.exp(u[1]) * u[2:]},
        uniform_start(10),
        EIGHT_SCHOOLS,
        ("tests", "eight schools"),
    )


def check_draws(draws, *, errors=4.5):
    """Compare draws of `targets` with the exact answer: means and variances within so many Monte Carlo errors."""
    from markovia.inference.markov_chains.diagnostics import mcse

    means, sds, _ = targets_answer()
    for name, exact in means.items():
        values = np.asarray(draws[name])
        for at in np.ndindex(*values.shape[2:]):
            x = values[(slice(None), slice(None), *at)]
            mean, sd = float(np.asarray(exact)[at]), float(np.asarray(sds[name])[at])
            assert abs(float(x.mean()) - mean) < errors * mcse(x), (name, at, float(x.mean()), mean, mcse(x))
            squares = (x - mean) ** 2
            assert abs(float(squares.mean()) - sd**2) < errors * mcse(squares), (
                name,
                at,
                squares.mean(),
                sd**2,
            )
            assert mcse(x) < 0.15 * sd  # few draws prove nothing
