"""Engines on densities other than NUTS and HMC: exact moments, log evidence, what they say of themselves."""

from dataclasses import replace

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from density_examples import (
    EIGHT_SCHOOLS,
    check_draws,
    eight_schools,
    gamma,
    gamma_log_evidence,
    gaussian,
    gaussian_answer,
    gaussian_data,
    hierarchy,
    hierarchy_answer,
    targets,
    targets_answer,
    uniform_start,
)
from markovia.inference.densities.draws.density_engine import mode
from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
from markovia.inference.densities.program.density import Density, standard_normal
from markovia.inference.engine import counterpart, get_engine
from markovia.inference.problem import Problem
from markovia.inference.result import Info
from markovia.runtime.double_precision import x64

E = mk.engines
MEANS, SDS, EVIDENCE = targets_answer()


@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(
            E.RandomWalkMetropolis(thin=50, seed=1), marks=pytest.mark.slow
        ),  # so that the error of a variance is known well
        pytest.param(E.MALA(draws=1000, seed=1), marks=pytest.mark.slow),
        E.SMC(seed=1),
        pytest.param(E.ADVI(family="full-rank", seed=3), marks=pytest.mark.slow),
    ],
    ids=lambda e: e.name,
)
def test_draws_have_the_exact_moments(engine):
    found = engine.draw(targets())
    if engine.name == "advi":  # a fit, which is not exact
        for name in MEANS:
            assert np.all(np.abs(found.draws[name].mean(axis=(0, 1)) - MEANS[name]) < 0.1 * SDS[name])
            assert np.all(np.abs(found.draws[name].std(axis=(0, 1)) / SDS[name] - 1.0) < 0.1)
        assert found.log_mass < EVIDENCE + 0.01
        assert found.log_mass == pytest.approx(EVIDENCE, abs=0.05)
        assert found.log_mass.record.mass_bound == "lower"
    else:
        check_draws(found.draws)
    assert found.record.converged, found.record.advice


@pytest.mark.slow
def test_the_log_evidence_is_that_of_the_closed_form():
    smc = E.SMC(seed=2).draw(targets())
    assert abs(smc.log_mass - EVIDENCE) < 4 * smc.record.details.log_mass_error < 0.4
    assert smc.record.details.temperatures[-1] == 1.0
    importance = E.DensityImportance(seed=2).draw(targets())
    assert abs(importance.log_mass - EVIDENCE) < 4 * importance.record.details.log_mass_error < 0.1
    laplace = E.Laplace(seed=2).draw(targets())
    assert laplace.log_mass == pytest.approx(EVIDENCE, abs=0.03)  # the gamma is not normal
    assert laplace.record.details.log_mass == pytest.approx(EVIDENCE, abs=0.02)  # corrected by weights


@pytest.mark.slow
def test_tempering_starts_at_the_prior_where_that_can_be_drawn_from():
    import jax
    import jax.numpy as jnp

    def prior(key, data):
        return jnp.log(jax.random.gamma(key, 3.0, (1,)) / 2.0)

    found = E.SMC(seed=1, move="random-walk", moves=5).draw(replace(gamma(), prior=prior))
    assert abs(found.log_mass - gamma_log_evidence()) < 4 * found.record.details.log_mass_error < 0.3
    assert found.draws["rate"].mean() == pytest.approx(14 / 5, abs=0.08)
    assert len(found.record.details.temperatures) <= 5  # prior and posterior overlap


@pytest.mark.slow
def test_importance_weights_give_the_exact_means():
    found = E.DensityImportance(draws=20_000, seed=1).draw(targets())
    post = DrawnPosterior(["rate"], found.draws, Info("importance"), log_weights=found.log_weights)
    for name in ("rate", "a", "mu"):
        row = post.summary(name).iloc[0]
        assert abs(row["mean"] - MEANS[name]) < 4.5 * row["mcse"]
        assert row["sd"] == pytest.approx(SDS[name], rel=0.05)


def test_the_laplace_approximation_of_a_gaussian_is_exact():
    found = E.Laplace(draws=20_000).draw(gaussian())
    mean, covariance, evidence = gaussian_answer()
    assert found.log_mass == pytest.approx(evidence, abs=1e-6)
    assert found.record.details.effective_draws == pytest.approx(20_000, rel=1e-3)
    assert np.allclose(found.points[0].mean(axis=0), mean, atol=4.5 * np.sqrt(np.diag(covariance) / 20_000))
    assert np.allclose(np.cov(found.points[0].T), covariance, atol=0.05)


def test_few_draws_are_weighed_where_data_are_many():
    many = replace(gaussian(), data={**gaussian_data(), "more": np.zeros(2**20)})
    for density, weighed in ((gaussian(), 1000), (many, 200)):
        found = E.Laplace(draws=1000).draw(density)
        assert np.isfinite(found.stats.log_density).sum() == weighed
        assert found.record.details.pareto_k < 0.5


def test_a_mode_of_quantities_leaves_the_jacobian_out():
    point, height, flat = mode(gamma(), 0, jacobian=False)
    assert np.exp(point[0]) == pytest.approx((14 - 1) / 5, rel=1e-5)
    assert flat
    free, _, _ = mode(gamma(), 0, jacobian=True)
    assert np.exp(free[0]) == pytest.approx(14 / 5, rel=1e-5)
    with x64():
        exact = gamma().log_prob(point, gamma().data) - point[0]
    assert height == pytest.approx(float(exact))


@pytest.mark.slow
def test_mean_field_misses_correlations_and_says_so():
    found = E.ADVI(seed=1).draw(targets())
    assert not found.record.converged
    assert "family='full-rank'" in found.record.advice
    assert found.record.details.pareto_k > 0.7
    assert found.log_mass < EVIDENCE - 0.5
    # the optimum of a Gaussian target: the precision's diagonal
    precision = np.linalg.inv(gaussian_answer()[1])
    assert found.draws["a"].std() == pytest.approx(precision[0, 0] ** -0.5, rel=0.06)
    assert found.draws["a"].mean() == pytest.approx(MEANS["a"], abs=0.1)
    trace = found.record.details.trace
    assert trace[-1] > trace[0]


@pytest.mark.slow
def test_numbers_of_very_different_scales_are_fitted():
    """A correlated normal distribution at (1000, 0.001) with standard deviations 100 and 0.0001."""
    import jax.numpy as jnp

    mean, sds = np.array([1000.0, 0.001]), np.array([100.0, 1e-4])
    precision = np.linalg.inv(np.outer(sds, sds) * np.array([[1.0, 0.9], [0.9, 1.0]]))
    skewed = Density(
        2,
        lambda u, data: -0.5 * (u - data["mean"]) @ data["precision"] @ (u - data["mean"]),
        lambda u, data: jnp.zeros(()),
        lambda u, data: {"x": u[0], "y": u[1]},
        uniform_start(2),
        {"mean": mean, "precision": precision},
        ("tests", "skewed"),
    )
    for family, kept in (("full-rank", 1.0), ("mean-field", np.sqrt(1 - 0.9**2))):
        found = E.ADVI(family=family, steps=1000).draw(skewed)
        assert np.all(np.abs(found.points[0].mean(axis=0) - mean) < 0.15 * sds)
        np.testing.assert_allclose(found.points[0].std(axis=0), kept * sds, rtol=0.1)
    assert found.log_mass == pytest.approx(np.log(2 * np.pi * sds.prod() * kept) + np.log(kept), abs=0.05)


@pytest.mark.slow
def test_a_flow_bends_where_a_normal_distribution_does_not():
    import jax
    import jax.numpy as jnp

    banana = Density(
        2,
        lambda u, data: -0.5 * u[0] ** 2 - 0.5 * ((u[1] - 1.5 * u[0] ** 2) / 0.5) ** 2,
        lambda u, data: jnp.zeros(()),
        lambda u, data: {"x": u[0], "y": u[1]},
        lambda key, data: jax.random.normal(key, (2,)),
        (),
        ("tests", "banana"),
    )
    exact = np.log(2 * np.pi * 0.5)
    straight = E.ADVI(family="full-rank", steps=2000).draw(banana)
    bent = E.FlowVI().draw(banana)
    assert straight.log_mass < exact - 0.5
    assert exact - 0.1 < bent.log_mass < exact + 0.02
    assert bent.draws["x"].std() == pytest.approx(1.0, abs=0.1)
    assert bent.draws["y"].mean() == pytest.approx(1.5, abs=0.2)
    assert bent.record.details.effective_draws > 2 * straight.record.details.effective_draws


@pytest.mark.slow
def test_langevin_steps_have_the_variance_of_theory_and_small_ones_the_right_one():
    for eps in (1.0, 0.2):
        found = E.Langevin(draws=3000, thin=10, step_size=eps, seed=1).draw(standard_normal(1))
        assert found.draws["x"].var() == pytest.approx(1 / (1 - eps / 4), rel=0.06)
    assert any(
        "widen the posterior" in w for w in E.Langevin(step_size=1.0)._complaints(found.record.details)
    )


@pytest.mark.slow
def test_batches_of_rows_have_nearly_the_moments_of_all():
    mean, covariance, _ = hierarchy_answer()
    found = E.SGLD(draws=2000, batch=10, step_size=0.03, seed=1).draw(hierarchy())
    sds = np.sqrt(np.diag(covariance))
    assert np.all(np.abs(found.points.mean(axis=(0, 1)) - mean) < 0.2 * sds)
    assert np.all(np.abs(found.points.std(axis=(0, 1)) / sds - 1.0) < 0.15)
    assert np.array_equal(found.draws["mu"], found.points[:, :, 0])
    fit = E.ADVI(family="full-rank", batch=10, seed=1).draw(hierarchy())
    assert np.all(np.abs(fit.points.mean(axis=(0, 1)) - mean) < 0.2 * sds)
    assert np.all(np.abs(fit.points.std(axis=(0, 1)) / sds - 1.0) < 0.15)
    for engine in (E.SGLD(batch=3), E.ADVI(batch=3)):
        with pytest.raises(mk.errors.InvalidArgument, match="rows of a plate"):
            engine.draw(gaussian())
    with pytest.raises(mk.errors.InvalidArgument, match="'sgld' with batch="):
        E.Langevin(batch=3)


@pytest.mark.parametrize("engine", [E.SMC(), E.ADVI(), E.Laplace()], ids=lambda e: e.name)
def test_a_density_that_is_nowhere_finite_is_told(engine):
    with pytest.raises(mk.errors.Unanswered, match=r"cannot start.*log likelihood is not finite"):
        engine.draw(replace(gaussian(), data=gaussian_data(np.nan)))


@pytest.mark.slow
def test_a_time_limit_stops_a_fit_and_is_said():
    found = E.ADVI(steps=10_000_000, time_limit=0.5).draw(gaussian())
    assert 20 <= found.record.iterations < 10_000_000
    assert "stopped (time limit)" in found.record.advice
    with pytest.raises(mk.errors.Unanswered, match="longer time_limit="):
        E.SMC(time_limit=1e-9).draw(gaussian())


def test_engines_that_do_not_know_the_evidence_name_those_that_do():
    assert "log_mass" not in E.NUTS.answers
    for name in ("smc", "laplace", "importance"):
        assert name in ("importance",) or "log_mass" in get_engine(name).answers
    model = mk.BayesianNetwork()
    model.add("mu", dist.Normal(0, 5))
    model.add("y", lambda mu: dist.StudentT(4, mu, 1.0), plate="row")
    with pytest.raises(mk.errors.Unanswered, match="engine='smc'"):
        model.log_evidence({"y": np.array([1.0, 2.5])}, engine="nuts")


class Numbers:
    """Stands for a problem with pieces that are no tables."""

    kinds = frozenset({"distribution"})


def test_a_name_that_tables_know_too_leads_to_its_counterpart_with_the_settings_that_were_changed():
    walk = counterpart(E.MetropolisHastings(draws=77, chains=3, seed=9), Numbers())
    assert isinstance(walk, E.RandomWalkMetropolis)
    assert (walk.draws, walk.chains, walk.seed, walk.thin) == (77, 3, 9, 10)
    weighed = counterpart(get_engine("importance"), Numbers())
    assert weighed == E.DensityImportance()
    tables = Problem({}, [], {})
    assert isinstance(counterpart(get_engine("metropolis"), tables), E.MetropolisHastings)
    nuts = get_engine("nuts")
    assert counterpart(nuts, Numbers()) is nuts


def eight_schools_evidence():
    """Integrate mu and tau numerically, effects in closed form: y_j ~ N(mu, s_j^2 + tau^2)."""
    from scipy.integrate import dblquad

    y, s = EIGHT_SCHOOLS["y"], EIGHT_SCHOOLS["s"]

    def density(mu, tau):
        variance = s**2 + tau**2
        likelihood = np.exp(-0.5 * ((y - mu) ** 2 / variance).sum() + 28.0) / np.sqrt(
            np.prod(2 * np.pi * variance)
        )
        prior = (
            np.exp(-0.5 * (mu / 5) ** 2) / (5 * np.sqrt(2 * np.pi)) * 2 / (np.pi * 5 * (1 + (tau / 5) ** 2))
        )
        return likelihood * prior

    return float(np.log(dblquad(density, 0.0, 80.0, -25.0, 30.0, epsabs=0, epsrel=1e-6)[0]) - 28.0)


@pytest.mark.slow
def test_tempering_has_the_evidence_of_eight_schools():
    found = E.SMC(draws=4000, seed=1).draw(eight_schools())
    assert abs(found.log_mass - eight_schools_evidence()) < 4 * found.record.details.log_mass_error < 0.25


def test_a_model_whose_latent_variables_are_all_summed_out_is_answered_exactly():
    import markovia.distributions as dist

    model = mk.BayesianNetwork()
    model.add("z", states=[0, 1], p=[0.3, 0.7])
    model.add("y", lambda z: dist.Normal(2.0 * z, 1.0))
    weights = np.array([0.3 * np.exp(-0.5 * 1.5**2), 0.7 * np.exp(-0.5 * 0.5**2)]) / np.sqrt(2 * np.pi)
    for engine in ("nuts", "importance"):
        found = model.query("z", given={"y": 1.5}, engine=engine)
        assert np.allclose(found.values, weights / weights.sum(), atol=1e-12)
        assert found.info.exact
    assert model.log_evidence(given={"y": 1.5}, engine="smc") == pytest.approx(
        np.log(weights.sum()), abs=1e-12
    )


@pytest.mark.slow
def test_engines_agree_on_a_model_and_its_discrete_variable():
    """A shift mu and a switch z, both unknown: with z summed out the exact posterior of mu is a mixture."""
    import markovia.distributions as dist

    y = np.array([1.0, 2.0, 3.0, 2.5])
    model = mk.BayesianNetwork()
    model.add("mu", dist.Normal(0, 3))
    model.add("z", states=["a", "b"], p=[0.3, 0.7])
    model.add("y", lambda mu, z: dist.Normal(mu + 2.0 * z, 1.0), plate="row")
    total = np.eye(4) + 9.0
    logs = [np.log(p) - 0.5 * (y - k) @ np.linalg.solve(total, y - k) for p, k in ((0.3, 0.0), (0.7, 2.0))]
    share = 1.0 / (1.0 + np.exp(logs[0] - logs[1]))
    means = [9.0 * np.linalg.solve(total, y - k).sum() for k in (0.0, 2.0)]
    exact = (1 - share) * means[0] + share * means[1]
    evidence = np.logaddexp(*logs) - 0.5 * np.linalg.slogdet(2 * np.pi * total)[1]
    for engine in (E.SMC(draws=4000, seed=1), E.DensityImportance(draws=20_000, seed=1)):
        post = model.query("mu", given={"y": y}, engine=engine)
        assert post.mean() == pytest.approx(exact, abs=0.08)
        assert post["z"]["b"] == pytest.approx(share, abs=0.03)
        assert model.log_evidence(given={"y": y}, engine=engine) == pytest.approx(evidence, abs=0.15)
    assert post.draws["z"].mean() == pytest.approx(share, abs=0.03)
    assert model.map(given={"y": y})["z"] == "b"
