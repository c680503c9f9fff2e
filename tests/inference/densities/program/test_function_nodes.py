"""Gaussian processes as nodes: what is summed out against the dense normal formula, what is whitened, what is refused."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.linalg import block_diag

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, InvalidEvidence, MarkoviaError, UnsupportedModel
from markovia.inference.densities.program.compiled_functions import as_data
from markovia.inference.densities.program.function_nodes import spread_rows
from markovia.inference.densities.program.program import program_of
from markovia.runtime.double_precision import x64

k = mk.covariances
rng = np.random.default_rng(0)
N = 6
X = np.array([0.3, -1.2, 2.0, 0.9, -0.4, 3.1])
Y = np.array([1.0, 0.2, -0.7, 0.4, 1.3, -0.2])
GIVEN = {"x": X, "y": Y}


def rbf(a, b, length=1.2, variance=1.3):
    return variance * np.exp(-0.5 * ((np.asarray(a)[:, None] - np.asarray(b)) / length) ** 2)


def program(model, given, missing="refuse"):
    return program_of(model._problem(given, missing=missing))


def log_density(made, values=None):
    """Return log p(values, data) without the Jacobian, at latent values by name."""
    with x64():
        data = as_data(made.density)
        free = made.free(
            {**made.layout.fixed, **data, **{n: jnp.asarray(v) for n, v in (values or {}).items()}}
        )
        env, _ = made.environment(free, data)
        return float(made.log_joint_at(env, data))


def normal(y, mean, S):
    return stats.multivariate_normal.logpdf(y, mean, S)


def network(child=lambda f, x: dist.Normal(f(x), 0.3), process=None):
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)) if process is None else process)
    m.add("y", child, plate="row")
    return m


# -- summed out: the density is that of a normal vector ---------------------------------------------------------------


def test_one_function_under_noise_is_a_normal_vector():
    made = program(network(), GIVEN)
    assert made.density.size == 0
    assert made.note == "f summed out"
    assert log_density(made) == pytest.approx(normal(Y, np.zeros(N), rbf(X, X) + 0.09 * np.eye(N)), abs=1e-13)


def test_hyper_parameters_that_are_nodes_enter_the_covariance_the_mean_and_the_noise():
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(0, 1))
    m.add("scale", dist.HalfNormal(2))
    m.add("slope", dist.Normal(0, 1))
    m.add("noise", dist.HalfNormal(1))
    m.add("f", lambda length, scale, slope: mk.GP(scale**2 * k.Matern52(length), mean=lambda x: slope * x))
    m.add("y", lambda f, x, noise: dist.Normal(3.0 * f(x) - x, noise), plate="row")
    values = {"length": 0.7, "scale": 1.4, "slope": -0.3, "noise": 0.2}
    r = np.sqrt(5.0) * np.abs(X[:, None] - X) / 0.7
    S = 9.0 * 1.4**2 * (1 + r + r**2 / 3) * np.exp(-r) + 0.04 * np.eye(N)
    prior = (
        stats.lognorm.logpdf(0.7, 1.0)
        + stats.norm.logpdf(-0.3)
        + stats.halfnorm.logpdf(1.4, 0, 2)
        + stats.halfnorm.logpdf(0.2)
    )
    wanted = prior + normal(Y, -3.0 * 0.3 * X - X, S)
    assert log_density(program(m, GIVEN), values) == pytest.approx(wanted, abs=1e-12)


def additive():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("g", mk.GP(0.8 * k.RBF(length=0.4), mean=0.5))
    m.add("w", dist.Normal(0, 1))
    m.add("a", lambda f, g, w, x1: dist.Normal(f(x1) + w * g(x1), 0.3), plate="row")
    m.add("b", lambda f, x2: dist.Normal(2 * f(x2) - 1, 0.5), plate="station")
    return m


X2 = np.array([0.1, 1.0, 2.0])
TWO_PLATES = {"a": Y, "x1": X, "b": np.array([0.4, -0.2, -1.0]), "x2": X2}


@pytest.mark.slow
def test_several_functions_on_two_plates_are_summed_out_together():
    w = 0.6
    S = np.block(
        [
            [rbf(X, X) + w**2 * rbf(X, X, 0.4, 0.8) + 0.09 * np.eye(N), 2 * rbf(X, X2)],
            [2 * rbf(X2, X), 4 * rbf(X2, X2) + 0.25 * np.eye(3)],
        ]
    )
    mean = np.concatenate([np.full(N, 0.5 * w), np.full(3, -1.0)])
    made = program(additive(), TWO_PLATES)
    assert made.functions.summed[0].functions == ("f", "g")
    assert made.density.size == 1
    found = log_density(made, {"w": w})
    wanted = normal(np.concatenate([Y, TWO_PLATES["b"]]), mean, S) + stats.norm.logpdf(w)
    assert found == pytest.approx(wanted, abs=1e-13)


def derivatives():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2), mean=lambda x: 0.2 * x**2))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    m.add("slope", lambda f, xd: dist.Normal(f.grad(xd), 0.05), plate="touch")
    m.add("area", lambda f: dist.Normal(f.integral(-1.0, 2.0), 0.05))
    return m


XD = np.array([0.0, 1.5])
SEEN = {**GIVEN, "slope": np.array([1.0, 0.0]), "xd": XD, "area": 1.4}


def by_derivatives():
    """Return covariance and mean of values, slopes and the integral, from formulas of the RBF covariance."""

    def slope(a, b):  # of the first argument
        return -(a[:, None] - b) / 1.2**2 * rbf(a, b)

    t, w = np.polynomial.legendre.leggauss(60)
    t, w = 0.5 + 1.5 * t, 1.5 * w
    both = (1 / 1.2**2 - ((XD[:, None] - XD) / 1.2**2) ** 2) * rbf(XD, XD)
    K = np.block(
        [
            [rbf(X, X), slope(XD, X).T, (rbf(X, t) @ w)[:, None]],
            [slope(XD, X), both, (slope(XD, t) @ w)[:, None]],
            [(rbf(X, t) @ w)[None], (slope(XD, t) @ w)[None], np.array([[w @ rbf(t, t) @ w]])],
        ]
    )
    return K, np.concatenate([0.2 * X**2, 0.4 * XD, [0.2 * 3.0]])


def test_slopes_and_integrals_are_observations_too():
    K, mean = by_derivatives()
    noise = np.array([0.09] * N + [0.0025] * 3)
    wanted = normal(np.concatenate([Y, SEEN["slope"], [1.4]]), mean, K + np.diag(noise))
    assert log_density(program(derivatives(), SEEN)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.slow
def test_the_gradient_at_rows_of_several_columns_is_one_for_each():
    x = rng.normal(size=(3, 2))
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=np.array([1.0, 2.0]))))
    m.add("y", lambda f, x: dist.Normal(f.grad(x), 0.1).to_event(1), plate="row")
    y = rng.normal(size=(3, 2))
    D = (x[:, None] - x[None]) / np.array([1.0, 4.0])
    K = np.exp(-0.5 * ((x[:, None] - x[None]) ** 2 / np.array([1.0, 4.0])).sum(-1))
    full = (np.diag([1.0, 0.25])[None, None] - D[..., :, None] * D[..., None, :]) * K[..., None, None]
    S = full.transpose(0, 2, 1, 3).reshape(6, 6) + 0.01 * np.eye(6)
    assert log_density(program(m, {"x": x, "y": y})) == pytest.approx(
        normal(y.ravel(), np.zeros(6), S), abs=1e-12
    )


def seasonal():
    m = mk.BayesianNetwork()
    m.add("season", states=["no", "yes"], p=[0.7, 0.3])
    m.add("f", lambda season: mk.GP(k.Periodic(1.0, 2.0) if season == "yes" else k.RBF(length=1.0)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    return m


def by_season():
    noise = 0.09 * np.eye(N)
    plain = normal(Y, np.zeros(N), rbf(X, X, 1.0, 1.0) + noise)
    periodic = normal(Y, np.zeros(N), k.Periodic(1.0, 2.0).value(X[:, None]) + noise)
    return np.array([np.log(0.7) + plain, np.log(0.3) + periodic])


def test_a_discrete_parent_has_one_marginal_likelihood_a_state():
    each = by_season()
    made = program(seasonal(), GIVEN)
    assert made.note == "season summed out; f summed out"
    assert log_density(made) == pytest.approx(np.logaddexp(*each), abs=1e-13)
    post = seasonal().query("season", given=GIVEN)
    assert post["yes"] == pytest.approx(1 / (1 + np.exp(each[0] - each[1])), abs=1e-13)
    assert post.info.exact
    assert post.info.engine == "gaussian-process"


@pytest.mark.slow
def test_two_discrete_parents_one_of_the_child_are_eliminated_with_their_own_tables():
    m = mk.BayesianNetwork()
    m.add("climate", states=["dry", "wet"], p=[0.4, 0.6])
    m.add("season", lambda climate: [0.9, 0.1] if climate == "dry" else [0.2, 0.8], states=["no", "yes"])
    m.add("tilt", dist.Normal(0, 1))
    m.add("shift", lambda climate, tilt: jnp.where(climate == 1, tilt, -tilt))
    m.add("f", lambda season: mk.GP(k.RBF(length=2.0 if season == "yes" else 0.5)))
    m.add("y", lambda f, x, shift: dist.Normal(f(x) + shift, 0.3), plate="row")
    total = {}
    for c, p in ((0, 0.4), (1, 0.6)):
        for s, length in ((0, 0.5), (1, 2.0)):
            q = [[0.9, 0.1], [0.2, 0.8]][c][s]
            S = rbf(X, X, length, 1.0) + 0.09 * np.eye(N)
            total[c, s] = np.log(p * q) + normal(Y, np.full(N, 0.4 if c else -0.4), S)
    every = np.logaddexp.reduce(list(total.values())) + stats.norm.logpdf(0.4)
    assert log_density(program(m, GIVEN), {"tilt": 0.4}) == pytest.approx(every, abs=1e-12)


def test_several_outputs_are_columns_side_by_side():
    B, noises = np.array([[1.0, 0.6], [0.6, 2.0]]), np.array([0.1, 0.3])
    codes = np.array([0, 1, 0, 1, 1, 0])
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.1, columns=[0]) * k.Index(B, column=1)))
    m.add("y", lambda f, x, c: dist.Normal(f(x, c), noises[c]), plate="row")
    S = rbf(X, X, 1.1, 1.0) * B[np.ix_(codes, codes)] + np.diag(noises[codes] ** 2)
    assert log_density(program(m, {**GIVEN, "c": codes})) == pytest.approx(
        normal(Y, np.zeros(N), S), abs=1e-13
    )


def test_a_function_on_a_plate_is_one_for_each_element():
    group = np.array([0, 1, 1, 0, 2, 2])
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)), plate={"group": 3})
    m.add("y", lambda f, x, g: dist.Normal(f[g](x), 0.3), plate="row")
    given = {**GIVEN, "g": group}
    S = rbf(X, X) * (group[:, None] == group) + 0.09 * np.eye(N)
    assert log_density(program(m, given)) == pytest.approx(normal(Y, np.zeros(N), S), abs=1e-13)
    post = m.query("f", given=given)
    own = group == 1
    gain = rbf([0.5], X[own]) @ np.linalg.inv(rbf(X[own], X[own]) + 0.09 * np.eye(2))
    assert post.at(0.5, 1).mean() == pytest.approx((gain @ Y[own]).item(), abs=1e-12)
    assert post.at(np.array([0.5, 0.5]), np.array([1, 0])).mean()[0] == pytest.approx(
        (gain @ Y[own]).item(), abs=1e-12
    )
    with pytest.raises(InvalidArgument, match="of plate 'group'"):
        post.at(0.5)


def test_functions_pass_through_deterministic_nodes_and_calls_of_one_place_are_one():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("trend", lambda f, x: 2.0 * f(x), plate="row")
    m.add("y", lambda trend, f, x: dist.Normal(trend + f(x) - 1.0, 0.3), plate="row")
    S = 9.0 * rbf(X, X) + 0.09 * np.eye(N)
    made = program(m, GIVEN)
    assert log_density(made) == pytest.approx(normal(Y, np.full(N, -1.0), S), abs=1e-12)
    assert len(set(made.functions.first["f"].values())) == 1


@pytest.mark.slow
def test_a_vector_that_mixes_values_has_a_whole_matrix():
    A = rng.normal(size=(3, N))
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x: dist.Normal(A @ f(x), 0.3).to_event(1))
    wanted = normal(Y[:3], np.zeros(3), A @ rbf(X, X) @ A.T + 0.09 * np.eye(3))
    assert log_density(program(m, {"x": X, "y": Y[:3]})) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.slow
def test_rows_without_a_value_are_dropped_and_not_imputed():
    y = Y.copy()
    y[[1, 4]] = np.nan
    made = program(network(), {"x": X, "y": y}, missing="impute")
    some = np.isfinite(y)
    assert made.density.size == 0
    wanted = normal(y[some], np.zeros(4), rbf(X[some], X[some]) + 0.09 * np.eye(4))
    assert log_density(made) == pytest.approx(wanted, abs=1e-13)


def test_missing_values_that_others_look_at_stay_unknown():
    m = network()
    m.add("z", lambda y: dist.Normal(y, 1.0), plate="row")
    y = Y.copy()
    y[1] = np.nan
    made = program(m, {"x": X, "y": y, "z": Y}, missing="impute")
    assert "missing entries of y are parents" in made.note
    assert made.density.size == N + 1


def test_points_are_known_values_beside_noisy_ones():
    x, v = np.array([5.0, 6.0]), np.array([0.5, -0.5])
    made = program(network(), {**GIVEN, "f": mk.Points(x, v)})
    every = np.concatenate([x, X])
    S = rbf(every, every) + block_diag(np.zeros((2, 2)), 0.09 * np.eye(N))
    assert log_density(made) == pytest.approx(normal(np.concatenate([v, Y]), np.zeros(N + 2), S), abs=1e-13)


def test_no_jitter_where_all_is_summed_out():
    """With noise far below any jitter and inputs near each other the density is still that of the formula."""
    x = np.array([0.0, 1e-3, 0.5, 1.0, 1.5, 2.0])
    m = network(lambda f, x: dist.Normal(f(x), 1e-5), mk.GP(k.Matern12(length=1.0)))
    S = np.exp(-np.abs(x[:, None] - x)) + 1e-10 * np.eye(N)
    L = np.linalg.cholesky(S)
    y = L @ rng.normal(size=N)
    assert log_density(program(m, {"x": x, "y": y})) == pytest.approx(normal(y, np.zeros(N), S), rel=1e-9)


# -- what decides ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("child", "why"),
    [
        (lambda f, x: dist.Normal(f(x) ** 2, 0.3), "not linear"),
        (lambda f, x: dist.Normal(jnp.tanh(f(x)), 0.3), "not linear"),
        (lambda f, x: dist.Normal(0.0 * x, jnp.exp(f(x))), "scale of y depends"),
        (lambda f, x: dist.StudentT(4.0, f(x), 0.3), "y is StudentT"),
        (lambda f, x: dist.Normal(f(x), 0.3).mask(x > 0), "y is Masked"),
    ],
)
def test_what_is_not_linear_and_normal_is_whitened(child, why):
    made = program(network(child), GIVEN)
    assert made.density.size == N
    assert f"f whitened at {N} places" in made.note
    assert why in made.note or "Masked" in why


def test_linear_in_one_state_and_bent_in_another_is_whitened():
    m = mk.BayesianNetwork()
    m.add("kind", states=["plain", "bent"], p=[0.5, 0.5])
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x, kind: dist.Normal(jnp.where(kind == 1, f(x) ** 2, f(x)), 0.3), plate="row")
    assert "f whitened" in program(m, GIVEN).note


@pytest.mark.slow
def test_mixing_in_one_state_only_takes_a_whole_matrix():
    m = mk.BayesianNetwork()
    m.add("mixed", states=["no", "yes"], p=[0.5, 0.5])
    m.add("f", mk.GP(1.3 * k.RBF(length=1.2)))
    m.add("y", lambda f, x, mixed: dist.Normal(f(x) + 1.0 * mixed * f(x)[::-1], 0.3).to_event(1))
    A = np.eye(N) + np.eye(N)[::-1]
    noise, zero = 0.09 * np.eye(N), np.zeros(N)
    wanted = np.log(0.5) + np.logaddexp(
        normal(Y, zero, rbf(X, X) + noise), normal(Y, zero, A @ rbf(X, X) @ A.T + noise)
    )
    assert log_density(program(m, GIVEN)) == pytest.approx(wanted, abs=1e-12)


def test_a_function_of_a_function_is_whitened_after_it():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("g", mk.GP(k.RBF(length=1.0)))
    m.add("y", lambda f, g, x: dist.Normal(g(f(x)), 0.3), plate="row")
    made = program(m, GIVEN)
    assert made.functions.levels == [["f"], ["g"]]
    assert made.density.size == 2 * N
    values = {"f": rng.normal(size=N), "g": rng.normal(size=N)}  # standard normal numbers
    f = np.linalg.cholesky(rbf(X, X, 1.0, 1.0) + 1e-9 * np.eye(N)) @ values["f"]
    g = np.linalg.cholesky(rbf(f, f, 1.0, 1.0) + 1e-9 * np.eye(N)) @ values["g"]
    white = stats.norm.logpdf(np.concatenate(list(values.values()))).sum()
    assert log_density(made, values) == pytest.approx(white + stats.norm.logpdf(Y, g, 0.3).sum(), rel=1e-8)


def test_latent_inputs_are_nodes_and_the_function_is_still_summed_out():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("y", lambda f, z: dist.Normal(f(z), 0.3), plate="row")
    wanted = stats.norm.logpdf(X).sum() + normal(Y, np.zeros(N), rbf(X, X, 1.0, 1.0) + 0.09 * np.eye(N))
    assert log_density(program(m, {"y": Y}), {"z": X}) == pytest.approx(wanted, abs=1e-12)


def test_whitened_values_are_a_factor_times_noise():
    made = program(network(lambda f, x: dist.Poisson(jnp.exp(f(x)))), {"x": X, "y": np.arange(N)})
    white = rng.normal(size=N)
    f = np.linalg.cholesky(rbf(X, X) + 1e-9 * 1.3 * np.eye(N)) @ white
    wanted = stats.norm.logpdf(white).sum() + stats.poisson.logpmf(np.arange(N), np.exp(f)).sum()
    assert log_density(made, {"f": white}) == pytest.approx(wanted, abs=1e-8)


def test_the_same_array_is_one_place_and_another_one_with_the_same_numbers_too():
    child = lambda f, x, z: dist.Normal(f(x) * f(z) + f(x), 0.3)  # noqa: E731
    assert program(network(child), {**GIVEN, "z": X}).density.size == N
    assert program(network(child), {**GIVEN, "z": X + 1}).density.size == 2 * N


def test_compiled_code_is_kept_apart_by_which_calls_ask_for_the_same():
    child = lambda f, x, z: dist.Normal(f(x) + f(z), 0.3)  # noqa: E731
    same, other = (program(network(child), {**GIVEN, "z": z}).density.key for z in (X, X + 1))
    assert same != other


@pytest.mark.slow
def test_inducing_inputs_stand_for_all_rows():
    child = lambda f, x: dist.Poisson(jnp.exp(f(x)))  # noqa: E731
    Z = np.array([-1.0, 1.0, 3.0])
    process = mk.GP(1.3 * k.RBF(length=1.2), inducing=Z)
    made = program(network(child, process), {"x": X, "y": np.arange(N)})
    white = rng.normal(size=3)
    u = np.linalg.cholesky(rbf(Z, Z) + 1.3e-9 * np.eye(3)) @ white
    f = rbf(X, Z) @ np.linalg.solve(rbf(Z, Z), u)
    wanted = stats.norm.logpdf(white).sum() + stats.poisson.logpmf(np.arange(N), np.exp(f)).sum()
    assert log_density(made, {"f": white}) == pytest.approx(wanted, abs=1e-6)
    assert "3 inducing inputs" in made.note
    few = mk.GP(1.3 * k.RBF(length=1.2), inducing=4)
    assert program(network(child, few), {"x": X, "y": np.arange(N)}).density.size == 4


def test_spread_rows_are_rows_that_are_far_from_each_other():
    rows = rng.normal(size=(50, 2))
    chosen = spread_rows(rows, 5)
    gaps = [np.linalg.norm(a - b) for i, a in enumerate(chosen) for b in chosen[:i]]
    assert min(gaps) > 1.0
    assert len(spread_rows(rows, 80)) == 50


@pytest.mark.slow
def test_rows_may_be_taken_in_parts_with_inducing_inputs_alone():
    child = lambda f, x: dist.Poisson(jnp.exp(f(x)))  # noqa: E731
    given = {"x": X, "y": np.arange(N)}
    assert program(network(child), given).rows is None
    assert program(network(), GIVEN).rows is None
    made = program(network(child, mk.GP(k.RBF(length=1.2), inducing=np.array([-1.0, 1.0]))), given)
    assert made.rows is not None
    assert made.rows.count == N
    with pytest.raises(MarkoviaError, match="inducing"):
        network(child).query("f", given=given, engine=mk.engines.SGLD(batch=2))


# -- one sentence each --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("child", "given", "said"),
    [
        (lambda f, x: dist.Normal(jnp.stack([f(x[i % N]) for i in range(30)])[:N], 0.3), {}, "not in a loop"),
        (lambda f, x: dist.Normal(__import__("jax").vmap(f)(x), 0.3), {}, "inside vmap"),
        (lambda f, x: dist.Normal(__import__("jax").lax.map(f, x), 0.3), {}, "inside vmap, scan"),
        (lambda f, x: dist.Normal(f(f(x)), 0.3), {}, "two function nodes"),
        (lambda f, x: dist.Normal(f[0](x), 0.3), {}, "on no plate"),
        (lambda f, x: dist.Normal(x + f(), 0.3), {}, "called with inputs"),
        (lambda f, x: dist.Normal(f(jnp.ones((2, 2, 2))), 0.3), {}, "of shape"),
        (lambda f, x: dist.Normal(f(f), 0.3), {}, "was given a function"),
        (lambda f, x: dist.Normal(f(x), 0.3), {"x": np.where(X > 2.5, np.nan, X)}, "missing"),
    ],
)
def test_what_cannot_be_is_one_sentence(child, given, said):
    with pytest.raises(MarkoviaError, match=said) as problem:
        program(network(child), {**GIVEN, **given})
    assert "\n" not in str(problem.value)


def test_a_process_with_parameters_inside_a_function_of_parents_is_refused():
    m = network(process=lambda scale: mk.GP(scale * k.RBF()))
    m.add("scale", dist.HalfNormal(1.0))
    with pytest.raises(InvalidArgument, match=r"rbf.length of 'f' is not said.*make it an argument"):
        program(m, GIVEN)


def test_a_process_is_not_observed_but_has_points():
    with pytest.raises(InvalidEvidence, match=r"mk.Points"):
        program(network(), {**GIVEN, "f": 1.0})
    with pytest.raises(InvalidArgument, match="2 inputs and 3 values"):
        mk.Points([0.0, 1.0], [0.0, 1.0, 2.0])


def test_a_recursion_along_rows_calls_no_function():
    m = mk.BayesianNetwork()
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add(
        "y",
        lambda f, before: dist.Normal(f(before), 0.3),
        plate="row",
        previous={"before": "y"},
        first=dist.Normal(0, 1),
    )
    with pytest.raises(UnsupportedModel, match="step by step"):
        program(m, {"y": Y})


def test_inputs_that_depend_on_states_are_refused():
    m = mk.BayesianNetwork()
    m.add("late", states=["no", "yes"], p=[0.5, 0.5])
    m.add("f", mk.GP(k.RBF(length=1.0)))
    m.add("y", lambda f, x, late: dist.Normal(f(x + 1.0 * late), 0.3), plate="row")
    with pytest.raises(UnsupportedModel, match="inputs that depend on 'late'"):
        program(m, GIVEN)


def test_a_process_that_is_the_same_in_all_states_is_warned_of():
    m = mk.BayesianNetwork()
    m.add("season", states=["no", "yes"], p=[0.7, 0.3])
    m.add("f", lambda season: mk.GP(k.Periodic(1.0, 2.0) if season == 1 else k.RBF(length=1.0)))
    m.add("y", lambda f, x: dist.Normal(f(x), 0.3), plate="row")
    with pytest.warns(UserWarning, match="same process for all states of 'season'.*'no', 'yes'"):
        program(m, GIVEN)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        program(seasonal(), GIVEN)


# -- invariances --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_other_units_change_the_density_by_their_jacobian_alone(unit):
    m = network(lambda f, x: dist.Normal(f(x), 0.3 * unit), mk.GP(1.3 * unit**2 * k.RBF(length=1.2 / unit)))
    found = log_density(program(m, {"x": X / unit, "y": Y * unit}))
    assert found + N * np.log(unit) == pytest.approx(log_density(program(network(), GIVEN)), abs=1e-9)
    child = lambda f, x: dist.Poisson(jnp.exp(f(x)))  # noqa: E731
    counts, white = {"x": X / unit, "y": np.arange(N)}, rng.normal(size=N)
    other = program(network(child, mk.GP(1.3 * k.RBF(length=1.2 / unit))), counts)
    plain = program(network(child), {**counts, "x": X})
    assert log_density(other, {"f": white}) == pytest.approx(log_density(plain, {"f": white}), abs=1e-8)


@pytest.mark.slow
def test_rows_in_another_order_and_ties_change_nothing():
    order = rng.permutation(N)
    turned = program(network(), {"x": X[order], "y": Y[order]})
    assert log_density(turned) == pytest.approx(log_density(program(network(), GIVEN)), abs=1e-12)
    x = np.array([0.0, 0.0, 1.0, 1.0, 1.0, 2.0])
    wanted = normal(Y, np.zeros(N), rbf(x, x) + 0.09 * np.eye(N))
    assert log_density(program(network(), {"x": x, "y": Y})) == pytest.approx(wanted, abs=1e-12)
    child = lambda f, x: dist.Poisson(jnp.exp(f(x)))  # noqa: E731
    assert np.isfinite(log_density(program(network(child), {"x": x, "y": np.arange(N)}), {"f": np.ones(N)}))


def test_one_row_is_enough():
    found = log_density(program(network(), {"x": X[:1], "y": Y[:1]}))
    assert found == pytest.approx(stats.norm.logpdf(1.0, 0.0, np.sqrt(1.39)), abs=1e-13)
