"""The twelve reference models written by hand for NumPyro, as its users write them: non-centred and enumerated by hand."""

import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
from jax.scipy.special import logsumexp
from numpyro.infer.reparam import LocScaleReparam

POSITIVE = dist.constraints.positive


def flat(name, constraint=dist.constraints.real, shape=()):
    return numpyro.sample(name, dist.ImproperUniform(constraint, (), shape))


def eight_schools(y, sigma):
    mu = numpyro.sample("mu", dist.Normal(0, 5))
    tau = numpyro.sample("tau", dist.HalfCauchy(5))
    with numpyro.plate("school", len(y)), numpyro.handlers.reparam(config={"theta": LocScaleReparam(0)}):
        theta = numpyro.sample("theta", dist.Normal(mu, tau))
    numpyro.sample("y", dist.Normal(theta, sigma), obs=y)


def _regression(beta, sigma):
    def model(y, X):  # noqa: N803
        b, s = beta(X.shape[1]), sigma()
        numpyro.sample("y", dist.Normal(X @ b, s), obs=y)

    return model


def _flat_beta(k):
    return flat("beta", shape=(k,))


def _flat_sigma():
    return flat("sigma", POSITIVE)


kidscore = _regression(_flat_beta, lambda: numpyro.sample("sigma", dist.HalfCauchy(2.5)))
logearn = mesquite = nes = _regression(_flat_beta, _flat_sigma)
blr = _regression(
    lambda k: numpyro.sample("beta", dist.Normal(0, 10).expand([k])),
    lambda: numpyro.sample("sigma", dist.HalfNormal(10)),
)


def autoregression(y):
    alpha = numpyro.sample("alpha", dist.Normal(0, 10))
    beta = numpyro.sample("beta", dist.Normal(0, 10).expand([5]))
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.5))
    mean = alpha + sum(beta[k] * y[4 - k : len(y) - 1 - k] for k in range(5))
    numpyro.sample("y", dist.Normal(mean, sigma), obs=y[5:])


def garch(y, sigma1):
    mu = flat("mu")
    alpha0 = flat("alpha0", POSITIVE)
    alpha1 = numpyro.sample("alpha1", dist.Uniform(0, 1))
    # flat below 1 - alpha1: NumPyro moves the bound with alpha1 for a Uniform, not for an ImproperUniform
    beta1 = numpyro.sample("beta1", dist.Uniform(0, 1 - alpha1))
    numpyro.factor("flat beta1", jnp.log1p(-alpha1))

    def step(s, before):
        now = jnp.sqrt(alpha0 + alpha1 * (before - mu) ** 2 + beta1 * s**2)
        return now, now

    first = jnp.asarray(sigma1, y.dtype)
    _, rest = jax.lax.scan(step, first, y[:-1])
    numpyro.sample("y", dist.Normal(mu, jnp.concatenate([first[None], rest])), obs=y)


def gp_regression(y, x):
    rho = numpyro.sample("rho", dist.Gamma(25, 4))
    alpha = numpyro.sample("alpha", dist.HalfNormal(2))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1))
    far = (x[:, None] - x) ** 2
    covariance = alpha**2 * jnp.exp(-far / (2 * rho**2)) + sigma * jnp.eye(len(x))
    numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), covariance), obs=y)


def _forward(theta, emission):
    def step(alpha, e):
        return logsumexp(alpha[:, None] + jnp.log(theta), axis=0) + e, None

    last, _ = jax.lax.scan(step, emission[0], emission[1:])
    numpyro.factor("paths", logsumexp(last))


def _ordered(name, means):
    x = flat(name, dist.constraints.positive_ordered_vector, (2,))
    numpyro.factor(f"{name} prior", dist.Normal(means, 1.0).log_prob(x).sum())
    return x


def hmm_example(y):
    theta = numpyro.sample("theta", dist.Dirichlet(jnp.ones(2)).expand([2]))
    mu = _ordered("mu", jnp.array([3.0, 10.0]))
    _forward(theta, dist.Normal(mu, 1.0).log_prob(y[:, None]))


def drive(u, v, concentration):
    theta = numpyro.sample("theta", dist.Dirichlet(concentration))
    phi, rate = _ordered("phi", jnp.array([0.0, 3.0])), _ordered("lambda_", jnp.array([0.0, 3.0]))
    _forward(theta, dist.Exponential(phi).log_prob(u[:, None]) + dist.Exponential(rate).log_prob(v[:, None]))


def gauss_mix(y):
    mu = flat("mu", dist.constraints.ordered_vector, (2,))
    numpyro.factor("mu prior", dist.Normal(0, 2).log_prob(mu).sum())
    sigma = numpyro.sample("sigma", dist.HalfNormal(2).expand([2]))
    theta = numpyro.sample("theta", dist.Beta(5, 5))
    logs = jnp.log(jnp.stack([theta, 1 - theta])) + dist.Normal(mu, sigma).log_prob(y[:, None])
    numpyro.factor("rows", logsumexp(logs, axis=1).sum())
