"""EM for topics: each step against its definition, objectives that never fall, and limits that are other models."""

import numpy as np
import pytest
from scipy.sparse import csr_array

import markovia as mk
from markovia.learning.latent.correlated_topics import (
    LogisticNormal,
    Logits,
    document_bounds,
    expect_logits,
    learn_correlated,
    softmax,
)
from markovia.learning.latent.dynamic_topics import (
    learn_dynamic,
    log_walk,
    log_words,
    smoothed_paths,
    smoother,
)
from markovia.learning.latent.topic_em import expected, fold_in, learn_plsi, tempering
from markovia.learning.latent.topic_variational import document_posteriors, documents_bound
from markovia.models.topics.unigrams import UnigramMixture


def some_counts(rng, n=12, v=7):
    return csr_array(rng.poisson(1.5, (n, v)))


def starts(rng, n, v, k):
    return rng.dirichlet(np.ones(k), n), np.ascontiguousarray(rng.dirichlet(np.ones(v), k).T)


def test_expected_counts_are_sums_of_posteriors():
    rng = np.random.default_rng(0)
    counts = some_counts(rng)
    theta, phi = starts(rng, 12, 7, 3)
    joint = theta[:, None, :] * phi[None]
    posterior = counts.toarray()[..., None] * joint / joint.sum(axis=2, keepdims=True)
    found, by_document, by_word = expected(counts, theta, phi)
    assert np.isclose(found, (counts.toarray() * np.log(joint.sum(axis=2))).sum())
    assert np.allclose(by_document, posterior.sum(axis=1))
    assert np.allclose(by_word, posterior.sum(axis=0))


@pytest.mark.parametrize("power", [1.0, 0.7])
def test_tempered_em_never_lowers_its_objective(power):
    rng = np.random.default_rng(1)
    counts = some_counts(rng)
    run = learn_plsi(counts, *starts(rng, 12, 7, 3), max_iter=200, tol=0.0, power=power)
    assert len(run.history) > 20
    assert np.diff(run.history).min() > -1e-9
    assert np.isclose(run.history[-1], expected(counts, run.state.theta**power, run.state.phi**power)[0])


def test_plsi_settles_where_the_likelihood_has_no_slope_as_the_map_of_lda_with_flat_priors():
    rng = np.random.default_rng(2)
    counts = some_counts(rng)
    run = learn_plsi(counts, *starts(rng, 12, 7, 2), max_iter=20_000, tol=0.0)
    whole, table = run.state.theta @ run.state.phi.T, counts.toarray()
    by_theta = (
        (table / whole) @ run.state.phi / table.sum(axis=1, keepdims=True)
    )  # 1 where inside, at most 1 at the border
    inside = run.state.theta > 1e-4
    assert np.allclose(by_theta[inside], 1.0, atol=1e-3)
    assert by_theta.max() < 1.0 + 1e-3


def test_one_topic_is_the_unigram_model():
    rng = np.random.default_rng(3)
    counts = some_counts(rng)
    run = learn_plsi(counts, *starts(rng, 12, 7, 1), max_iter=5, tol=0.0)
    shares = counts.toarray().sum(axis=0) / counts.sum()
    assert np.allclose(run.state.phi[:, 0], shares)
    model = UnigramMixture(smoothing=1e-12).fit(counts)
    assert np.allclose(model.components_[0], shares)
    assert np.isclose(model.log_prob(counts).sum(), run.history[-1])


def test_folding_in_maximises_the_likelihood_of_a_document():
    from scipy.optimize import minimize

    rng = np.random.default_rng(4)
    counts = some_counts(rng, 3)
    _, phi = starts(rng, 3, 7, 3)
    theta = fold_in(counts, phi, max_iter=5000, tol=1e-12)
    for d in range(3):
        row = counts.toarray()[d]

        def off(logits, row=row):
            p = np.exp(logits - np.logaddexp.reduce(logits))
            return -(row * np.log(phi @ p)).sum()

        best = min(minimize(off, rng.normal(size=3), tol=1e-12).fun for _ in range(3))
        assert -(row * np.log(phi @ theta[d])).sum() < best + 1e-5


def test_tempering_is_chosen_below_one_where_a_model_has_too_many_topics():
    rng = np.random.default_rng(5)
    counts = csr_array(rng.poisson(0.6, (60, 40)))  # no topics at all
    assert tempering(counts, *starts(rng, 60, 40, 12), rng, max_iter=50, tol=1e-5) < 1.0


def test_mixture_of_unigrams_is_the_categorical_mixture_of_documents():
    rng = np.random.default_rng(6)
    counts = some_counts(rng)
    model = UnigramMixture(2, smoothing=0.3, tol=1e-10, max_iter=2_000, random_state=0).fit(counts)
    assert np.diff(model.history_).min() > -1e-9
    joint = np.array([np.log(model.weights_) + np.log(model.components_) @ row for row in counts.toarray()])
    assert np.allclose(model.log_prob(counts), np.logaddexp.reduce(joint, axis=1))
    assert np.allclose(model.transform(counts), np.exp(joint - np.logaddexp.reduce(joint, axis=1)[:, None]))
    # a fixed point of EM: weights and words are those that the topics of documents say
    told = model.transform(counts)
    words = counts.T @ told + 0.3
    assert np.allclose(model.weights_, told.mean(axis=0), atol=1e-4)
    assert np.allclose(model.components_, (words / words.sum(axis=0)).T, atol=1e-4)


# -- correlated topics -------------------------------------------------------------------------------------------------


def a_law(rng, k=3, v=7):
    root = rng.normal(size=(k, k))
    return LogisticNormal(rng.normal(size=k), root @ root.T + np.eye(k), starts(rng, 1, v, k)[1])


def test_steps_on_logits_end_at_the_maximum_of_the_bound():
    from scipy.optimize import minimize

    rng = np.random.default_rng(7)
    counts, law = some_counts(rng, 4), a_law(rng)
    found = expect_logits(counts, law, Logits(np.zeros((4, 3)), np.ones((4, 3))), steps=500)
    bounds = document_bounds(counts, law, found)
    for d in range(4):
        one = counts[d : d + 1]

        def off(x, one=one):
            return -document_bounds(one, law, Logits(x[None, :3], np.exp(x[None, 3:])))[0]

        x = np.concatenate([found.mean[d], np.log(found.variance[d])])
        assert minimize(off, x + 0.1 * rng.normal(size=6), tol=1e-10).fun > -bounds[d] - 1e-5


def test_the_bound_lies_below_the_evidence_and_meets_it_where_logits_are_known():
    rng = np.random.default_rng(8)
    counts, law = some_counts(rng, 3), a_law(rng)
    found = expect_logits(counts, law, Logits(np.zeros((3, 3)), np.ones((3, 3))), steps=300)
    draws = rng.multivariate_normal(law.mean, law.covariance, size=100_000)
    theta = softmax(draws)
    for bound, row in zip(document_bounds(counts, law, found), counts.toarray(), strict=True):
        logs = np.log(theta @ law.phi.T) @ row
        evidence = np.logaddexp.reduce(logs) - np.log(len(logs))
        assert bound < evidence + 0.02
    sharp = law._replace(covariance=1e-7 * np.eye(3))
    found = expect_logits(counts, sharp, Logits(np.tile(law.mean, (3, 1)), np.full((3, 3), 1e-7)), steps=20)
    exact = counts @ np.log(law.phi @ softmax(law.mean[None])[0])
    assert np.allclose(document_bounds(counts, sharp, found), exact, atol=1e-4)


def test_the_bound_of_correlated_topics_never_falls():
    rng = np.random.default_rng(9)
    counts = some_counts(rng, 40, 15)
    run = learn_correlated(
        counts, starts(rng, 1, 15, 4)[1], max_iter=60, tol=0.0, smoothing=0.05, shrinkage=1.0
    )
    assert len(run.history) > 20
    assert np.diff(run.history).min() > -1e-8


# -- dynamic topics ----------------------------------------------------------------------------------------------------


def test_the_smoother_of_walks_is_that_of_a_state_space_model():
    rng = np.random.default_rng(10)
    seen, precision = rng.normal(size=(6, 2)), rng.gamma(2.0, size=(6, 2))
    mean, variance = smoother(seen, precision, 0.3, 4.0)
    for j in range(2):
        model = mk.LinearStateSpace(
            transition=1, transition_cov=0.3, observation=1, initial_cov=4.0,
            observation_cov=(1.0 / precision[:, j])[:, None, None],
        )  # fmt: skip
        found = model.smooth(seen[:, j])
        assert np.allclose(found.mean[0][:, 0], mean[:, j])
        assert np.allclose(found.cov[0][:, 0, 0], variance[:, j])


def test_paths_are_the_most_probable_ones():
    from scipy.optimize import minimize

    rng = np.random.default_rng(11)
    seen = rng.poisson(4.0, (4, 5, 1)).astype(float)
    found = smoothed_paths(seen, np.zeros((4, 5, 1)), 0.2, 3.0, steps=500).logits

    def off(x):
        x = x.reshape(4, 5, 1)
        return -(seen * log_words(x)).sum() - log_walk(x, 0.2, 3.0)

    best = minimize(off, np.zeros(20), tol=1e-12)
    assert off(found.ravel()) < best.fun + 1e-6
    assert np.allclose(found.ravel(), best.x, atol=1e-3)


def test_the_objective_of_dynamic_topics_never_falls_and_no_drift_is_no_change():
    rng = np.random.default_rng(12)
    slices = [some_counts(rng, 10, 8) for _ in range(3)]
    _, phi = starts(rng, 1, 8, 2)
    run = learn_dynamic(slices, phi, alpha=np.full(2, 0.5), drift=0.1, spread=5.0, max_iter=80, tol=0.0)
    assert np.diff(run.history).min() > -1e-8
    still = learn_dynamic(slices, phi, alpha=np.full(2, 0.5), drift=1e-9, spread=5.0, max_iter=400, tol=1e-9)
    assert np.ptp(still.state.paths.logits, axis=0).max() < 1e-3
    whole = csr_array(np.vstack([s.toarray() for s in slices]))
    one = learn_dynamic([whole], phi, alpha=np.full(2, 0.5), drift=1.0, spread=5.0, max_iter=400, tol=1e-9)
    assert np.allclose(
        log_words(still.state.paths.logits[0]), log_words(one.state.paths.logits[0]), atol=2e-3
    )


def test_document_posteriors_bound_the_evidence_of_lda_and_meet_it_where_proportions_are_known():
    rng = np.random.default_rng(13)
    counts, alpha = some_counts(rng, 3), np.array([0.5, 0.8, 1.1])
    _, phi = starts(rng, 3, 7, 3)
    theta = rng.dirichlet(alpha, 100_000)
    logs = np.log(theta @ phi.T) @ counts.toarray().T
    evidence = (np.logaddexp.reduce(logs, axis=0) - np.log(len(theta))).sum()
    lengths = counts.toarray().sum(axis=1)
    found = document_posteriors(counts, phi, alpha, most=500, tol=1e-9)
    assert documents_bound(found, lengths, alpha) < evidence + 0.03
    assert np.allclose(found.stats.sum(axis=1), counts.toarray().sum(axis=0))
    bound = documents_bound(document_posteriors(counts, phi, 1e7 * alpha, most=50), lengths, 1e7 * alpha)
    assert np.isclose(bound, (counts @ np.log(phi @ alpha / alpha.sum())).sum(), atol=1e-3)
