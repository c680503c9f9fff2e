"""Twelve models with reference posteriors, written as a user of markovia writes them.

Each function takes the data of its posterior and returns the model, what is given, the names to ask for, and how the
reference's names map to them. The data are not part of the project; see `bayesian.py`.
"""

import gzip
import json
from pathlib import Path

import jax.numpy as jnp
import numpy as np

import markovia as mk
import markovia.distributions as dist


def flat(constraint=None, size=()):
    return dist.ImproperUniform(constraint or dist.constraints.real, (), size)


def eight_schools(data):
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 5))
    m.add("tau", dist.HalfCauchy(5))
    m.add("theta", lambda mu, tau: dist.Normal(mu, tau), plate="school")
    m.add("y", lambda theta, sigma: dist.Normal(theta, sigma), plate="school")
    return m, {"y": data["y"], "sigma": data["sigma"]}


def regression(matrix, y, beta, sigma):
    m = mk.BayesianNetwork()
    m.add("beta", beta)
    m.add("sigma", sigma)
    m.add("y", lambda beta, sigma, X: dist.Normal(X @ beta, sigma), plate="row")  # noqa: N803
    return m, {"y": y, "X": np.column_stack(matrix) if isinstance(matrix, list) else matrix}


def kidscore(data):
    hs, iq = data["mom_hs"], data["mom_iq"]
    return regression(
        [np.ones(len(hs)), hs, iq, hs * iq], data["kid_score"], flat(size=(4,)), dist.HalfCauchy(2.5)
    )


def logearn(data):
    h, male = data["height"], data["male"]
    positive = flat(dist.constraints.positive)
    return regression([np.ones(len(h)), h, male, h * male], np.log(data["earn"]), flat(size=(4,)), positive)


def mesquite(data):
    logs = [np.log(data[k]) for k in ("diam1", "diam2", "canopy_height", "total_height", "density")]
    matrix = [np.ones(len(logs[0])), *logs, data["group"]]
    return regression(matrix, np.log(data["weight"]), flat(size=(7,)), flat(dist.constraints.positive))


def blr(data):
    return regression(data["X"], data["y"], dist.Normal(0, 10).expand([5]), dist.HalfNormal(10))


def nes(data):
    age = data["age_discrete"]
    ages = [(age == k).astype(float) for k in (2, 3, 4)]
    rest = [data[k] for k in ("educ1", "gender", "income")]
    matrix = [np.ones(len(age)), data["real_ideo"], data["race_adj"], *ages, *rest]
    return regression(matrix, data["partyid7"], flat(size=(9,)), flat(dist.constraints.positive))


def autoregression(data):
    m = mk.BayesianNetwork()
    m.add("alpha", dist.Normal(0, 10))
    m.add("beta", dist.Normal(0, 10), plate={"lag": 5})
    m.add("sigma", dist.HalfCauchy(2.5))
    m.add(
        "y",
        lambda alpha, beta, sigma, y1, y2, y3, y4, y5: dist.Normal(
            alpha + jnp.dot(beta, jnp.stack([y1, y2, y3, y4, y5])), sigma
        ),
        plate="t",
        previous={f"y{k}": ("y", k) for k in range(1, 6)},
        first=mk.Flat(),
    )
    return m, {"y": data["y"]}


def garch(data):
    m = mk.BayesianNetwork()
    m.add("mu", flat())
    m.add("alpha0", flat(dist.constraints.positive))
    m.add("alpha1", dist.Uniform(0, 1))
    m.add("beta1", lambda alpha1: dist.ImproperUniform(dist.constraints.interval(0.0, 1 - alpha1), (), ()))
    m.add(
        "s",
        lambda before, yb, mu, alpha0, alpha1, beta1: jnp.sqrt(
            alpha0 + alpha1 * (yb - mu) ** 2 + beta1 * before**2
        ),
        plate="t",
        previous={"before": "s", "yb": "y"},
        first=lambda sigma1: sigma1,
    )
    m.add("y", lambda mu, s: dist.Normal(mu, s), plate="t")
    return m, {"y": data["y"], "sigma1": data["sigma1"]}


def gp_regression(data):
    def function_values(rho, alpha, sigma, x):
        far = (x[:, None] - x) ** 2
        covariance = alpha**2 * jnp.exp(-far / (2 * rho**2)) + sigma * jnp.eye(len(x))
        return dist.MultivariateNormal(jnp.zeros(len(x)), covariance)

    m = mk.BayesianNetwork()
    m.add("rho", dist.Gamma(25, 4))
    m.add("alpha", dist.HalfNormal(2))
    m.add("sigma", dist.HalfNormal(1))
    m.add("y", function_values)
    return m, {"y": data["y"], "x": data["x"]}


def hmm_example(data):
    m = mk.BayesianNetwork()
    m.add("theta", dist.Dirichlet(np.ones(2)), plate={"state": 2})
    m.add("mu", dist.Ordered(dist.TruncatedNormal(np.array([3.0, 10.0]), 1.0, low=0.0)))
    m.add(
        "z",
        lambda before, theta: dist.Categorical(theta[before]),
        plate="t",
        previous={"before": "z"},
        first=mk.Flat(),
    )
    m.add("y", lambda z, mu: dist.Normal(mu[z], 1.0), plate="t")
    return m, {"y": data["y"]}


def drive(data):
    def rates():
        return dist.Ordered(dist.TruncatedNormal(np.array([0.0, 3.0]), 1.0, low=0.0))

    m = mk.BayesianNetwork()
    m.add("theta", lambda concentration: dist.Dirichlet(concentration), plate={"state": 2})
    m.add("phi", rates())
    m.add("lambda_", rates())
    m.add(
        "z",
        lambda before, theta: dist.Categorical(theta[before]),
        plate="t",
        previous={"before": "z"},
        first=mk.Flat(),
    )
    m.add("u", lambda z, phi: dist.Exponential(phi[z]), plate="t")
    m.add("v", lambda z, lambda_: dist.Exponential(lambda_[z]), plate="t")
    return m, {"u": data["u"], "v": data["v"], "concentration": data["alpha"]}


def gauss_mix(data):
    m = mk.BayesianNetwork()
    m.add("mu", dist.Ordered(dist.Normal(0, 2), size=2))
    m.add("sigma", dist.HalfNormal(2), plate={"component": 2})
    m.add("theta", dist.Beta(5, 5))
    m.add("z", lambda theta: dist.Bernoulli(1 - theta), plate="row")
    m.add("y", lambda z, mu, sigma: dist.Normal(mu[z], sigma[z]), plate="row")
    return m, {"y": data["y"]}


MODELS = {
    "eight_schools-eight_schools_noncentered": eight_schools,
    "kidiq-kidscore_interaction": kidscore,
    "earnings-logearn_interaction": logearn,
    "mesquite-logmesquite": mesquite,
    "sblrc-blr": blr,
    "nes1980-nes": nes,
    "arK-arK": autoregression,
    "garch-garch11": garch,
    "gp_pois_regr-gp_regr": gp_regression,
    "hmm_example-hmm_example": hmm_example,
    "bball_drive_event_0-hmm_drive_0": drive,
    "low_dim_gauss_mix-low_dim_gauss_mix": gauss_mix,
}


def read(folder, name):
    """Return data (arrays by name) and reference (a row of summaries a parameter) of a posterior."""
    with gzip.open(Path(folder) / f"{name}.json.gz", "rt", encoding="utf-8") as file:
        found = json.load(file)
    data = {k: np.asarray(v) if isinstance(v, list) else v for k, v in found["data"].items()}
    return data, found["reference"]


def place(reference_name):
    """Return the node and the index (from zero) that a name such as `beta[2]` or `theta1[2]` stands for."""
    name, _, rest = reference_name.partition("[")
    index = tuple(int(i) - 1 for i in rest.rstrip("]").split(",") if i)
    if name in ("theta1", "theta2"):
        return "theta", (int(name[-1]) - 1, *index)
    return {"lambda": "lambda_"}.get(name, name), index
