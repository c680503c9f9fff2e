"""Objectives of models known up to a constant, against closed forms of Gaussians and quadrature."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, Unanswered, UnsupportedModel
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.energy_rows import EnergyRows
from markovia.learning.neural.noise_contrastive import LOG_Z
from markovia.learning.neural.persistent_chains import langevin
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

WIDE = 4.0
"""The variance of the base."""


def weights(x, a, b):
    return x @ a - 0.5 * jnp.einsum("ni,ij,nj->n", x, b, x)


def quadratic(d):
    """Return a Gaussian of d numbers as a base and a quadratic weight: precision I / 4 + b, precision times mean a."""
    m = mk.BayesianNetwork()
    m.add("a", mk.Parameter(np.zeros(d)))
    m.add("b", mk.Parameter(np.zeros((d, d))))
    m.add("x", dist.Normal(0, WIDE**0.5), size=d, plate="row")
    m.potential(weights, plate="row")
    return m


def setup(m, objective, data, move=lambda free: free):
    """Return an objective's loss of parameters as a function, with its memory and a batch of all rows."""
    rows = RowwiseModel(m._problem(data), {})
    made = objective.setup(rows, move, tuple(m.parameters))
    batch = Batch({n: jnp.asarray(v) for n, v in rows.rows.items()}, jnp.ones(rows.n_rows))
    (player,) = made.players
    return (
        jax.jit(lambda p, memory, key: player.loss(p, memory, key, batch)),
        jax.tree.map(jnp.asarray, made.memory),
        made,
    )


def optimum(x):
    """Return the parameters of the likeliest Gaussian."""
    precision = np.linalg.inv(np.cov(x.T, bias=True))
    return {"a": precision @ x.mean(axis=0), "b": precision - np.eye(x.shape[1]) / WIDE}


def gaussian_rows(n=400, units=1.0):
    rng = np.random.default_rng(0)
    return units * (rng.standard_normal((n, 2)) @ [[1.0, 0.6], [0.0, 0.5]] + [1.0, -2.0])


def test_exact_score_matching_of_a_gaussian_is_maximum_likelihood():
    x = gaussian_rows()
    with x64():
        loss, memory, _ = setup(quadratic(2), mk.objectives.ScoreMatching(), {"x": x})
        key = jax.random.PRNGKey(0)
        slope = jax.grad(lambda p: loss(p, memory, key)[0])(optimum(x))
        assert max(float(jnp.abs(v).max()) for v in slope.values()) < 1e-9
        zero = {"a": np.zeros(2), "b": np.zeros((2, 2))}
        # at the base alone: minus the trace of the precision, plus half the square of the score, in units of the spread
        sd = x.std(axis=0)
        exact = -(sd**2).sum() / WIDE + 0.5 * ((x * sd / WIDE) ** 2).sum(axis=1).mean()
        assert float(loss(zero, memory, key)[0]) == pytest.approx(exact, rel=1e-12)


def test_sliced_is_exact_on_average_over_directions():
    x = gaussian_rows(50)
    point = {"a": np.array([0.3, -1.0]), "b": np.array([[0.5, 0.4], [0.4, 1.0]])}
    with x64():
        key = jax.random.PRNGKey(0)
        exact, memory, _ = setup(quadratic(2), mk.objectives.ScoreMatching(), {"x": x})
        sliced, _, _ = setup(
            quadratic(2), mk.objectives.ScoreMatching(variant="sliced", directions=2000), {"x": x}
        )
        one = float(exact(point, memory, key)[0])
        drawn = np.array([float(sliced(point, memory, jax.random.PRNGKey(i))[0]) for i in range(4)])
    assert drawn.std() > 0
    assert drawn.mean() == pytest.approx(one, abs=0.01)


@pytest.mark.slow
def test_denoising_learns_the_score_of_the_smoothed_density():
    x, noise = gaussian_rows(200), 0.5
    sd = x.std(axis=0)
    smooth = np.cov(x.T, bias=True) + np.diag((noise * sd) ** 2)
    precision = np.linalg.inv(smooth)
    best = {"a": precision @ x.mean(axis=0), "b": precision - np.eye(2) / WIDE}
    with x64():
        loss, memory, _ = setup(
            quadratic(2), mk.objectives.ScoreMatching(variant="denoising", noise=noise), {"x": x}
        )

        def mean(p):
            return jnp.mean(
                jax.vmap(lambda k: loss(p, memory, k)[0])(jax.random.split(jax.random.PRNGKey(1), 3000))
            )

        at_best = jax.grad(mean)(best)
        at_data = jax.grad(mean)(optimum(x))
    size = max(float(jnp.abs(v).max()) for v in at_best.values())
    assert 10 * size < 0.02 < max(float(jnp.abs(v).max()) for v in at_data.values())


@pytest.mark.slow
@pytest.mark.parametrize("noise", ["gaussian", "base", "law"])
def test_telling_data_from_noise_finds_log_z(noise):
    x = np.random.default_rng(1).normal(1.0, 0.7, (20_000, 1))
    p = 1 / x.var()
    best = {"a": np.array([x.mean() * p]), "b": np.array([[p - 1 / WIDE]])}
    log_z = -0.5 * np.log(WIDE * p) + 0.5 * x.mean() ** 2 * p
    law = dist.Normal(0.5, 1.2) if noise == "law" else noise
    with x64():
        loss, memory, made = setup(quadratic(1), mk.objectives.NoiseContrastive(noise=law, ratio=2), {"x": x})
        assert made.players[0].names == ("a", "b", LOG_Z)
        assert list(made.extra) == [LOG_Z]
        slopes = [
            jax.grad(lambda p: loss(p, memory, jax.random.PRNGKey(0))[0])({**best, LOG_Z: log_z + shift})
            for shift in (0.0, 0.3)
        ]
    near, far = (max(float(jnp.abs(v).max()) for v in slope.values()) for slope in slopes)
    assert near < 0.02 < 0.05 < far


@pytest.mark.slow
def test_chains_in_equilibrium_give_the_gradient_of_the_likelihood():
    """A double well, whose log Z and gradient quadrature knows."""
    m = mk.BayesianNetwork()
    m.add("c", mk.Parameter(0.0))
    m.add("x", dist.Normal(0, 1), plate="row")
    m.potential(lambda x, c: c * x - 0.5 * x**4, plate="row")
    x = np.array([0.2, 1.0, -0.4, 0.9])
    grid = np.linspace(-6, 6, 4001)

    def log_likelihood(c):
        logs = -0.5 * grid**2 - 0.5 * np.log(2 * np.pi) + c * grid - 0.5 * grid**4
        own = -0.5 * x**2 - 0.5 * np.log(2 * np.pi) + c * x - 0.5 * x**4
        return own.mean() - np.log(np.trapezoid(np.exp(logs), grid))

    exact = (log_likelihood(0.7 + 1e-4) - log_likelihood(0.7 - 1e-4)) / 2e-4
    objective = mk.objectives.PersistentChains(chains=2000, buffer=2000, restart=0.0, steps=20)
    with x64():
        loss, memory, _ = setup(m, objective, {"x": x})
        step = jax.jit(jax.value_and_grad(lambda c, memory, key: loss({"c": c}, memory, key), has_aux=True))
        slopes = []
        for i in range(40):
            (_, memory), slope = step(0.7, memory, jax.random.PRNGKey(i))
            slopes.append(-float(slope))
    assert np.mean(slopes[10:]) == pytest.approx(exact, abs=0.015)
    assert abs(exact) > 0.05


@pytest.mark.slow
def test_langevin_steps_leave_a_density_only_with_the_correction():
    with x64():
        start = jax.random.normal(jax.random.PRNGKey(0), (20_000, 1))
        run = jax.jit(langevin, static_argnums=(0, 4, 5))

        def normal(v):
            return -0.5 * jnp.sum(v**2, axis=1)

        right, share = run(normal, start, jax.random.PRNGKey(1), 1.0, 30, True)
        wide, _ = run(normal, start, jax.random.PRNGKey(1), 1.0, 30, False)
    assert float(right.var()) == pytest.approx(1.0, abs=0.03)
    assert 0.5 < float(share) < 1
    assert float(wide.var()) == pytest.approx(1 / (1 - 0.25), abs=0.04)  # by theory


@pytest.mark.slow
@pytest.mark.parametrize("method", ["score-matching", "nce", "pcd"])
def test_fit_is_the_same_in_any_unit(method):
    found = {}
    for unit in (1.0, 2.0**30):
        x = gaussian_rows(200, unit)
        m = mk.BayesianNetwork()
        m.add("unit", mk.Parameter(unit, fixed=True))
        m.add("a", mk.Parameter(np.zeros(2)))
        m.add("b", mk.Parameter(np.zeros((2, 2))))
        m.add("x", lambda unit: dist.Normal(jnp.zeros(2), 2 * unit).to_event(1), plate="row")
        m.potential(lambda x, a, b, unit: weights(x / unit, a, b), plate="row")
        m.fit(
            {"x": x},
            method=method,
            epochs=300 if method == "score-matching" else 20,
            learning_rate=0.05,
            seed=0,
        )
        assert m.fit_.method in ("score matching", "noise-contrastive", "persistent chains")
        assert np.isnan(m.fit_.log_likelihood)  # which nobody knows
        found[unit] = m.parameters
    for name, right in optimum(gaussian_rows(200)).items():
        assert found[1.0][name] == pytest.approx(found[2.0**30][name], rel=1e-3)
        assert found[1.0][name].any()
        if method == "score-matching":  # which has no log densities in it, whose rounding depends on units
            assert np.array_equal(found[1.0][name], found[2.0**30][name])
            assert np.abs(found[1.0][name] - right).max() < 0.3 * np.abs(right).max()


@pytest.mark.slow
def test_chains_keep_what_they_are_given():
    m = mk.BayesianNetwork()
    m.add("a", mk.Parameter(0.0))
    m.add("c", mk.Input(), plate="row")
    m.add("x", dist.Normal(0, 1), plate="row")
    m.potential(lambda x, c, a: a * c * x, plate="row")
    rng = np.random.default_rng(0)
    c = rng.choice([-1.0, 1.0], 300)
    m.fit(
        {"x": 1.5 * c + rng.normal(0, 1, 300), "c": c}, method="pcd", epochs=150, learning_rate=0.05, seed=0
    )
    assert float(m.parameters["a"]) == pytest.approx(1.5, abs=0.25)


@pytest.mark.slow
def test_positive_numbers_move_in_free_ones():
    m = mk.BayesianNetwork()
    m.add("b", mk.Parameter(0.0))
    m.add("x", dist.Exponential(1.0), plate="row")
    m.potential(lambda x, b: -b * x, plate="row")  # again exponential, with rate 1 + b
    x = np.random.default_rng(0).exponential(0.5, 200)
    rows = EnergyRows(RowwiseModel(m._problem({"x": x}), {}), "this")
    assert not rows.real
    with x64():
        units = rows.units()
        v = rows.vectors(rows.program.rows, units)
        values, jacobian = rows.values(v, units)
        assert np.allclose(values["x"], x)
        assert np.allclose(jacobian, np.log(x) + np.log(units[1]).sum())
    m.fit({"x": x}, method="pcd", epochs=300, learning_rate=0.05, decay=0.02, seed=0)
    assert 1 + float(m.parameters["b"]) == pytest.approx(1 / x.mean(), rel=0.15)


@pytest.mark.slow
def test_annealed_langevin_of_several_levels():
    levels = (2.0, 1.0, 0.5, 0.25)
    m = mk.BayesianNetwork()
    m.add("b", mk.Parameter(np.zeros(2)))
    m.add("sigma", mk.Input(), plate="row")
    m.add("x", dist.Normal(0, 20), plate="row")
    # of data N(3, 1) with noise sigma (in units of their spread): the score is (3 - x) / (1 + sigma^2)
    m.potential(lambda x, sigma, b: (b[0] * x - 0.5 * b[1] * x**2) / (1 + sigma**2), plate="row")
    x = np.random.default_rng(0).normal(3, 1, 500)
    x = 3 + (x - x.mean()) / x.std()
    objective = mk.objectives.ScoreMatching(variant="denoising", noise=levels, level="sigma")
    m.fit(
        {"x": x, "sigma": np.ones(500)}, method=objective, epochs=300, batch=100, learning_rate=0.03, seed=0
    )
    assert m.parameters["b"] == pytest.approx([3.0, 1.0], rel=0.1)
    engine = mk.engines.AnnealedLangevin(noise=levels, steps=60, draws=1000)
    post = m.query("x", given={"sigma": np.array([0.25])}, engine=engine)
    assert post.info.converged
    assert post.mean("x")[0] == pytest.approx(3.0, abs=0.35)
    assert post.sd("x")[0] == pytest.approx((1 + 0.25**2) ** 0.5, rel=0.12)
    hasty = mk.engines.AnnealedLangevin(noise=levels, steps=1, draws=1000)
    assert not m.query("x", given={"sigma": np.array([0.25])}, engine=hasty).info.converged
    with pytest.raises(Unanswered, match="as an array"):
        m.query("x", given={"sigma": np.array([0.25])}, engine=mk.engines.AnnealedLangevin(level="noise"))


def test_what_is_refused():
    O = mk.objectives  # noqa: E741
    for wrong in (
        lambda: O.ScoreMatching(noise=-1.0),
        lambda: O.ScoreMatching(variant="denoising", noise=(1.0, 0.5)),
        lambda: O.NoiseContrastive(noise="other"),
        lambda: O.PersistentChains(restart=2.0),
        lambda: mk.engines.AnnealedLangevin(noise=(0.1, 1.0)),
    ):
        with pytest.raises(InvalidArgument):
            wrong()
    x = {"x": np.zeros((5, 2))}
    with pytest.raises(InvalidArgument, match="level='sigma'"):
        quadratic(2).fit(x, method=O.ScoreMatching(variant="denoising", level="sigma"))
    with pytest.raises(InvalidArgument, match="shape"):
        quadratic(2).fit(x, method=O.NoiseContrastive(noise=dist.Normal(np.zeros(3), 1)))
    m = mk.BayesianNetwork()
    m.add("p", mk.Parameter(0.0))
    m.add("x", dist.Poisson(2.0), plate="row")
    m.potential(lambda x, p: p * x, plate="row")
    for method in ("pcd", "nce", "score-matching"):
        with pytest.raises(UnsupportedModel, match="'x' is no number"):
            m.fit({"x": np.array([1, 2])}, method=method)
