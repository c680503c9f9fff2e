"""What answers about densities say of themselves: who answered, and only what means something for who did."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import logsumexp

import markovia as mk
import markovia.distributions as dist
from density_examples import gaussian, gaussian_answer
from markovia.inference.densities.engines.laplace import Laplace

START = np.array([0.3, 0.7])
MOVE = np.array([[0.9, 0.1], [0.25, 0.75]])
SAY = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
SAID = np.array([0, 2, 2, 1, 2])


def chain():
    m = mk.BayesianNetwork()
    m.add(
        "z",
        lambda before: dist.Categorical(jnp.asarray(MOVE)[before]),
        plate="t",
        previous={"before": "z"},
        first=dist.Categorical(START),
    )
    m.add("x", lambda z: dist.Categorical(jnp.asarray(SAY)[z]), plate="t")
    return m


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["auto", "nuts"])
def test_a_chain_of_states_alone_is_answered_exactly_and_by_no_sampler(engine):
    post = chain().query("z", given={"x": SAID}, engine=engine)
    assert post.info.engine == "plated-elimination"
    assert post.info.exact
    assert "nuts" not in str(post.info)
    alpha = np.log(START) + np.log(SAY[:, SAID[0]])
    alphas = [alpha]
    for said in SAID[1:]:
        alpha = logsumexp(alpha[:, None] + np.log(MOVE), axis=0) + np.log(SAY[:, said])
        alphas.append(alpha)
    beta = np.zeros(2)
    betas = [beta]
    for said in SAID[:0:-1]:
        beta = logsumexp(np.log(MOVE) + np.log(SAY[:, said]) + beta, axis=1)
        betas.append(beta)
    joint = np.array(alphas) + np.array(betas[::-1])
    assert post.info.log_evidence == pytest.approx(logsumexp(alpha), rel=1e-7)
    np.testing.assert_allclose(
        post.probabilities, np.exp(joint - logsumexp(joint, axis=1, keepdims=True)), atol=1e-6
    )


def test_laplace_reports_its_mode_and_curvature():
    mean, covariance, evidence = gaussian_answer()
    found = Laplace(draws=500, seed=2).draw(gaussian())
    details = found.record.details
    np.testing.assert_allclose(details.point, mean, atol=1e-6)
    np.testing.assert_allclose(details.curvature, np.linalg.inv(covariance), rtol=1e-6)
    np.testing.assert_allclose([details.mode["a"], details.mode["b"]], mean, atol=1e-6)
    height = evidence - 0.5 * np.linalg.slogdet(2 * np.pi * covariance)[1]
    assert details.height == pytest.approx(height, abs=1e-8)
    assert details.coordinates == ("u[0]", "u[1]")
    assert details.log_mass == pytest.approx(evidence, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [mk.engines.Laplace(draws=300), mk.engines.DensityImportance(draws=300)],
    ids=["laplace", "importance"],
)
def test_draws_that_are_no_chains_have_no_r_hat(engine):
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(3.0, 2.0), plate={"k": 2})
    m.add("n", lambda rate, of: dist.Poisson(rate[of]), plate="row")
    post = m.query("rate", given={"n": np.array([4, 2, 5]), "of": np.array([1, 0, 1])}, engine=engine)
    assert list(post.summary().columns) == ["mean", "sd", "5%", "95%", "mcse", "ess_bulk", "ess_tail"]
    assert "r_hat" not in str(post)
    if engine.name == "laplace":
        details = post.info.details
        assert details.coordinates == ("rate[0]", "rate[1]")
        # the log of a Gamma(a, b) rate has its mode at a / b, and curvature a
        np.testing.assert_allclose(details.mode["rate"], [5 / 3, 12 / 4], rtol=1e-5)
        np.testing.assert_allclose(details.curvature, np.diag([5.0, 12.0]), atol=1e-4)


@pytest.mark.slow
def test_compiling_is_told_apart_from_working_and_printed_where_it_took_long():
    m = mk.BayesianNetwork()
    m.add("rate", dist.Gamma(2.0, 1.0))
    m.add("n", lambda rate: dist.Poisson(rate**1.25))  # a density that nobody has compiled yet
    first, again = (m.query("rate", given={"n": 4}, engine=Laplace(draws=413)).info for _ in range(2))
    assert first.compile_seconds > 0.0
    assert again.compile_seconds == 0.0
    assert str(replace(first, seconds=2.0, compile_seconds=12.34)).endswith("2 s after 12.3 s of compiling")
    assert "compiling" not in str(replace(first, compile_seconds=0.9))
