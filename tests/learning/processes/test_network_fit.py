"""Fitting networks with functions: the evidence against formulas and quadrature, its derivative against differences."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.optimize import minimize

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.program import program_of
from markovia.learning.processes.network_fit import _log_evidence
from markovia.runtime.double_precision import x64

k = mk.covariances
rng = np.random.default_rng(0)
X = np.sort(rng.uniform(0, 6, 12))
Y = np.sin(X) + 0.2 * rng.normal(size=12)


def test_the_fit_is_at_the_top_of_the_evidence():
    m = mk.BayesianNetwork()
    m.add("length", mk.Parameter(0.3, support="positive"))
    m.add("noise", mk.Parameter(0.5, support="positive"))
    m.add("unit", mk.Parameter(1.0, fixed=True))
    m.add("f", lambda length, unit: mk.GP(unit * k.RBF(length)))
    m.add("y", lambda f, x, noise: dist.Normal(f(x), noise), plate="row")
    m.fit({"x": X, "y": Y})

    def loss(logs):
        K = np.exp(-0.5 * ((X[:, None] - X) / np.exp(logs[0])) ** 2) + np.exp(2 * logs[1]) * np.eye(12)
        return -stats.multivariate_normal.logpdf(Y, np.zeros(12), K)

    best = minimize(loss, np.log([0.3, 0.5]), method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10})
    found = [float(m.parameters[n]) for n in ("length", "noise")]
    assert found == pytest.approx(np.exp(best.x), rel=1e-3)
    assert m.fit_.log_likelihood == pytest.approx(-best.fun, abs=1e-6)
    assert float(m.parameters["unit"]) == 1.0
    assert m.fit_.details["evidence"] == "exact"


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_other_units_find_the_same_fit(unit):
    def fitted(u):
        m = mk.BayesianNetwork()
        m.add("f", mk.GP(k.Scaled(None, k.RBF()) + k.White()))
        m.add("y", lambda f, x: dist.Normal(f(x), 0.01 * u), plate="row")
        m.fit({"x": X * u, "y": Y * u})
        return m.parameters

    plain, other = fitted(1.0), fitted(unit)
    assert float(other["f.rbf.length"]) == pytest.approx(unit * float(plain["f.rbf.length"]), rel=1e-2)
    assert float(other["f.scaled.variance"]) == pytest.approx(
        unit**2 * float(plain["f.scaled.variance"]), rel=5e-2
    )


def counts():
    m = mk.BayesianNetwork()
    m.add("length", mk.Parameter(1.0, support="positive"))
    m.add("level", mk.Parameter(0.0))
    m.add("f", lambda length: mk.GP(0.5 * k.RBF(length)))
    m.add("y", lambda f, x, level: dist.Poisson(jnp.exp(level + f(x))), plate="row")
    return m


@pytest.mark.slow
def test_where_functions_are_whitened_the_evidence_is_that_of_laplace_with_its_derivative():
    m = counts()
    given = {"x": X[:4], "y": np.array([2, 0, 1, 4])}
    program = program_of(m._problem(given), "none")
    with x64():
        data = as_data(program.density)

        def value(logs):
            held = {**data, "length": jnp.exp(logs[0]), "level": logs[1]}
            return _log_evidence(program, jnp.zeros(4), held)[0]

        at = jnp.asarray([0.1, 0.4])
        both = jax.jit(jax.value_and_grad(value))
        height, slope = both(at)
        step = 1e-5
        differences = [
            (both(at.at[i].add(step))[0] - both(at.at[i].add(-step))[0]) / (2 * step) for i in range(2)
        ]
    assert np.asarray(slope) == pytest.approx(np.asarray(differences), abs=1e-6)
    fixed = mk.BayesianNetwork()
    fixed.add("f", mk.GP(0.5 * k.RBF(length=np.exp(0.1))))
    fixed.add("y", lambda f, x: dist.Poisson(jnp.exp(0.4 + f(x))), plate="row")
    wanted = fixed.query("f", given=given, engine="laplace").info.log_evidence
    assert float(height) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.slow
def test_counts_are_fitted():
    x = np.linspace(0, 6, 25)
    m = counts().fit({"x": x, "y": np.random.default_rng(1).poisson(np.exp(1.0 + np.sin(x)))})
    assert m.fit_.converged
    assert "Laplace" in m.fit_.details["evidence"]
    assert 0.3 < float(m.parameters["length"]) < 4.0
    assert 0.3 < float(m.parameters["level"]) < 1.7


@pytest.mark.slow
def test_modules_are_fitted_in_deep_covariances():
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(mk.networks.mlp(1, 1, hidden=4, layers=1)))
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("y", lambda f, x, net: dist.Normal(f(net(x[:, None])), 0.2), plate="row")
    m.fit({"x": X, "y": Y}, seed=0, epochs=30)
    first, last = m.fit_.history[0], m.fit_.history[-1]
    assert last > first
    assert m.query("f", given={"x": X, "y": Y}).info.log_evidence == pytest.approx(
        m.fit_.log_likelihood, abs=1e-6
    )


@pytest.mark.slow
def test_missing_rows_are_dropped():
    y = Y.copy()
    y[3] = np.nan
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(), mean=0.0))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.2), plate="row")
    some = np.arange(12) != 3
    whole = float(m.fit({"x": X, "y": y}).parameters["f.rbf.length"])
    assert whole == pytest.approx(
        float(m.fit({"x": X[some], "y": Y[some]}).parameters["f.rbf.length"]), rel=1e-3
    )


def test_what_does_not_fit_all_rows_at_once_is_refused():
    m = counts()
    given = {"x": X, "y": np.arange(12)}
    for fit in (
        lambda: m.fit(given, method="elbo"),
        lambda: m.fit(given, batch=3),
        lambda: m.partial_fit(given),
    ):
        with pytest.raises(InvalidArgument, match="depend on each other"):
            fit()
