"""Proposals of guides, weighed row by row, against posteriors in closed form."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal

import markovia as mk
import markovia.distributions as dist
from markovia.errors import Unanswered
from markovia.inference.densities.engines.amortised import judged_rows

W = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
X = np.random.default_rng(0).normal(size=(6, 3))
COV = np.linalg.inv(np.eye(2) + W @ W.T / 0.36)
MEAN = X @ W.T @ COV / 0.36


def linear(scale, shift=0.0):
    m = mk.BayesianNetwork()
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    m.add("x", lambda z: dist.Normal(z @ W, 0.6), plate="row")
    gain, spread = W.T @ COV / 0.36, scale * np.sqrt(np.diag(COV))
    m.guide("z", lambda x: dist.Normal(x @ gain + shift, spread).to_event(1))
    return m


@pytest.mark.slow
def test_weighed_proposals_are_the_posterior_and_its_evidence():
    m = linear(1.3, 0.2)
    post = m.query("z", given={"x": X}, engine=mk.engines.Amortised(proposals=20_000, draws=5000, seed=0))
    rows = post.info.details
    np.testing.assert_allclose(post.mean("z"), MEAN, atol=0.03)
    np.testing.assert_allclose(post.sd("z"), np.sqrt(np.diag(COV)) * np.ones((6, 1)), atol=0.02)
    exact = multivariate_normal(np.zeros(3), W.T @ W + 0.36 * np.eye(3)).logpdf(X)
    assert np.all(np.abs(rows.log_evidence - exact) < 5 * rows.error)
    np.testing.assert_allclose(post.info.log_evidence, rows.log_evidence.sum())
    assert not rows.bad.any()
    assert post.info.converged


def test_a_model_with_a_closed_form_is_answered_by_it_though_it_has_a_guide():
    post = linear(3.0, 1.0).query("z", given={"x": X})
    assert post.info.engine == "conjugate"
    np.testing.assert_allclose(post.mean("z"), MEAN, atol=1e-8)


def test_a_guide_that_is_far_off_is_told_by_the_weights():
    post = linear(0.1, 3.0).query("z", given={"x": X}, engine="amortised")
    assert not post.info.converged
    assert post.info.details.bad.all()
    assert "try more proposals=, or engine='nuts'" in post.info.advice


def test_rows_are_judged_each_by_itself():
    rng = np.random.default_rng(1)
    logs = np.stack([np.zeros(4000), rng.normal(size=4000), 4 * rng.standard_t(2, size=4000)], axis=1)
    found = judged_rows(logs)
    assert found.effective_draws[0] == 4000
    assert found.log_evidence[0] == 0
    assert abs(found.log_evidence[1] - 0.5) < 5 * found.error[1]
    assert found.bad.tolist() == [False, False, True]


def test_a_model_without_guides_is_refused():
    m = mk.BayesianNetwork()
    m.add("z", dist.Normal(0, 1))
    m.add("x", lambda z: dist.Cauchy(z, 1))
    with pytest.raises(Unanswered, match=r"draws from guides, and the model has none"):
        m.query("z", given={"x": 1.0}, engine="amortised")


@pytest.mark.slow
def test_entries_that_were_not_seen_are_drawn_given_those_that_were():
    x = X[:3].copy()
    x[0, 1] = x[1, 0] = x[1, 2] = np.nan
    engine = mk.engines.Amortised(proposals=40_000, draws=8000)
    post = linear(1.6).query("x", given={"x": x}, missing="impute", engine=engine)
    whole = W.T @ W + 0.36 * np.eye(3)
    for row in range(3):
        seen = ~np.isnan(x[row])
        gain = whole[np.ix_(~seen, seen)] @ np.linalg.inv(whole[np.ix_(seen, seen)])
        spread = whole[np.ix_(~seen, ~seen)] - gain @ whole[np.ix_(seen, ~seen)]
        np.testing.assert_allclose(post.mean("x")[row][~seen], gain @ x[row][seen], atol=0.08)
        np.testing.assert_allclose(post.sd("x")[row][~seen], np.sqrt(np.diag(spread)), atol=0.08)
        np.testing.assert_allclose(post.mean("x")[row][seen], x[row][seen], rtol=1e-12)


@pytest.mark.slow
def test_rows_with_bad_weights_are_drawn_by_nuts():
    m = mk.BayesianNetwork()
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("x", lambda z: dist.StudentT(3, z**3 + z, 0.3), plate="row")
    m.guide("z", lambda x: dist.Normal(0.5 * x.clip(-2, 2), 0.05))
    given = {"x": np.array([0.1, 8.0, -6.0])}
    auto, nuts = m.query("z", given=given), m.query("z", given=given, engine=mk.engines.NUTS(seed=3))
    assert "rows drawn by nuts" in auto.info.note
    np.testing.assert_allclose(auto.mean("z"), nuts.mean("z"), atol=0.1)
