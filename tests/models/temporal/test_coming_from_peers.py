"""Everyday scripts of hmmlearn, pykalman, statsmodels, dynamax and pomegranate, with markovia's class in their place."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownArgument

START = np.array([0.6, 0.3, 0.1])
MOVES = np.array([[0.7, 0.2, 0.1], [0.3, 0.5, 0.2], [0.3, 0.3, 0.4]])
MEANS = np.array([[0.0, 0.0], [3.0, -3.0], [5.0, 10.0]])
SHORT = {
    "full": np.array([[[1.0, 0.2], [0.2, 0.5]], [[0.5, 0.0], [0.0, 2.0]], [[0.3, 0.1], [0.1, 0.4]]]),
    "diag": np.array([[1.0, 0.5], [0.5, 2.0], [0.3, 0.4]]),
    "tied": np.array([[1.0, 0.2], [0.2, 0.5]]),
    "spherical": np.array([1.0, 0.5, 0.3]),
}


def told(model, **values):
    """Set attributes one by one, as hmmlearn's tutorials do."""
    for name, value in values.items():
        setattr(model, name, value)
    return model


@pytest.mark.parametrize("kind", SHORT)
def test_a_gaussian_model_set_by_hand_samples_and_scores_as_hmmlearn_does(kind):
    peers = pytest.importorskip("hmmlearn.hmm")
    values = {"startprob_": START, "transmat_": MOVES, "means_": MEANS, "covars_": SHORT[kind]}
    theirs = told(peers.GaussianHMM(n_components=3, covariance_type=kind), **values)
    ours = told(mk.HMM(n_states=3, emission="gaussian", covariance_type=kind), **values)
    X, Z = ours.sample(60, seed=0)
    assert X.shape == (60, 2)
    assert Z.shape == (60,)
    lengths = [25, 35]
    assert ours.score(X, lengths) == pytest.approx(theirs.score(X, lengths), abs=1e-8)
    assert (ours.predict(X, lengths) == theirs.predict(X, lengths)).all()
    np.testing.assert_allclose(ours.predict_proba(X, lengths), theirs.predict_proba(X, lengths), atol=1e-8)
    log_prob, path = theirs.decode(X, lengths)
    assert (np.concatenate(ours.decode(X, lengths)) == path).all()
    best = ours.k_best(X, 1, lengths)
    assert sum(scores[0] for _, scores in best) == pytest.approx(log_prob, abs=1e-8)
    by_marginal = theirs.decode(X, lengths, algorithm="map")[1]
    assert (np.concatenate(ours.decode(X, lengths, method="max-marginal")) == by_marginal).all()
    total, posteriors = theirs.score_samples(X, lengths)
    assert ours.log_prob(X, lengths).sum() == pytest.approx(total, abs=1e-8)
    np.testing.assert_allclose(np.concatenate(ours.smooth(X, lengths)), posteriors, atol=1e-8)


def test_learning_begins_with_the_values_set_by_hand_and_goes_where_hmmlearn_goes():
    peers = pytest.importorskip("hmmlearn.hmm")
    values = {"startprob_": START, "transmat_": MOVES, "means_": MEANS, "covars_": SHORT["full"]}
    X, _ = told(mk.HMM(3, emission="gaussian"), **values).sample(200, seed=1)
    values["means_"] = MEANS + 0.5
    theirs = told(
        peers.GaussianHMM(
            3, "full", n_iter=4, tol=0, init_params="", covars_prior=0, covars_weight=0, min_covar=0
        ),
        **values,
    )
    ours = told(mk.HMM(3, emission="gaussian", max_iter=4, tol=0), **values)
    theirs.fit(X, [120, 80])
    ours.fit(X, [120, 80])
    np.testing.assert_allclose(ours.means_, theirs.means_, atol=1e-6)
    np.testing.assert_allclose(ours.transmat_, theirs.transmat_, atol=1e-6)
    np.testing.assert_allclose(ours.startprob_, theirs.startprob_, atol=1e-6)
    assert ours.monitor_.iter == theirs.monitor_.iter == 4
    np.testing.assert_allclose(ours.monitor_.history, theirs.monitor_.history, rtol=1e-6)
    assert ours.monitor_.converged is False
    assert ours.aic(X, [120, 80]) == pytest.approx(theirs.aic(X, [120, 80]), rel=1e-8)
    assert ours.bic(X, [120, 80]) == pytest.approx(theirs.bic(X, [120, 80]), rel=1e-8)


def test_categorical_and_poisson_tutorials():
    peers = pytest.importorskip("hmmlearn.hmm")
    dice = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    chain = {"startprob_": np.array([1.0, 0.0]), "transmat_": np.array([[0.95, 0.05], [0.1, 0.9]])}
    theirs = told(peers.CategoricalHMM(2), **chain, emissionprob_=dice)
    theirs.n_features = 6
    ours = told(mk.HMM(2), **chain, emissionprob_=dice)
    rolls, _ = ours.sample(300, seed=3)
    assert ours.score(rolls) == pytest.approx(theirs.score(rolls), abs=1e-8)
    assert (ours.predict(rolls) == theirs.predict(rolls)).all()

    theirs = told(peers.PoissonHMM(2), **chain, lambdas_=np.array([[2.0], [9.0]]))
    theirs.n_features = 1
    ours = told(mk.HMM(2, emission="poisson"), **chain, lambdas_=np.array([[2.0], [9.0]]))
    quakes, _ = ours.sample(200, seed=4)
    assert ours.score(quakes) == pytest.approx(theirs.score(quakes), abs=1e-8)
    assert ours.fit(quakes).lambdas_.shape == (2, 1)


def test_the_tutorial_of_mixtures():
    peers = pytest.importorskip("hmmlearn.hmm")
    values = {
        "startprob_": np.array([0.5, 0.5]),
        "transmat_": np.array([[0.8, 0.2], [0.3, 0.7]]),
        "weights_": np.array([[0.4, 0.6], [0.5, 0.5]]),
        "means_": np.array([[[0.0], [2.0]], [[8.0], [11.0]]]),
        "covars_": np.array([[[1.0], [0.5]], [[0.4], [2.0]]]),
    }
    theirs = told(peers.GMMHMM(n_components=2, n_mix=2, covariance_type="diag"), **values)
    theirs.n_features = 1
    ours = told(mk.HMM(2, emission="gmm", n_mixtures=2, covariance_type="diag"), **values)
    X, _ = ours.sample(80, seed=5)
    assert ours.score(X) == pytest.approx(theirs.score(X), abs=1e-8)
    np.testing.assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-8)


def test_values_set_after_learning_take_the_place_of_learned_ones():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 40)])
    hmm = mk.HMM(2, emission="gaussian", random_state=0).fit(X)
    hmm.means_ = [[1.0], [2.0]]
    hmm.transmat_ = [[0.5, 0.5], [0.25, 0.75]]
    hmm.startprob_ = [0.5, 0.5]
    same = mk.HMM(
        2, emission="gaussian", start=[0.5, 0.5], transition=[[0.5, 0.5], [0.25, 0.75]],
        emission_params={"means": [[1.0], [2.0]], "covariances": hmm.covars_},
    )  # fmt: skip
    assert hmm.score(X) == pytest.approx(same.score(X), abs=1e-10)
    with pytest.raises(InvalidArgument, match="transmat_"):
        hmm.transmat_ = [[0.5, 0.2], [0.25, 0.75]]
    assert hmm.score(X) == pytest.approx(same.score(X), abs=1e-10)  # as it was


def test_a_start_set_after_learning_counts_in_chains_of_higher_order_and_of_visits():
    x = np.tile([0, 0, 1, 1, 1], 12)
    second = mk.HMM(2, order=2, random_state=0, max_iter=3, tol=0).fit(x)
    second.startprob_ = [[1.0, 0.0], [0.0, 0.0]]
    assert second.smooth(x)[0][:2, 0] == pytest.approx([1.0, 1.0])
    visits = mk.series.HiddenSemiMarkov(2, max_duration=4, random_state=0, max_iter=3, tol=0).fit(x)
    before = visits.durations_
    visits.startprob_ = [0.0, 1.0]
    assert visits.smooth(x)[0][0, 1] == pytest.approx(1.0)
    assert visits.durations_ is before


@pytest.mark.parametrize(
    ("act", "said"),
    [
        (lambda: mk.HMM(n_components=3), "HMM.. has no argument 'n_components'; it is n_states= here"),
        (lambda: mk.HMM(2, n_iter=100), "'n_iter'; it is max_iter= here"),
        (lambda: mk.HMM(2, emission="gmm", n_mix=2), "'n_mix'; it is n_mixtures= here"),
        (lambda: mk.HMM(2, transmat_prior=2.0), "'transmat_prior'; it is transition_prior= here"),
        (lambda: mk.HMM(2).sample(n_samples=3), "'n_samples'; it is steps= here"),
        (lambda: mk.HMM(2).sample(3, random_state=1), "'random_state'; it is seed= here"),
        (lambda: mk.HMM(2).decode([0], algorithm="map"), "'algorithm'; it is method= here"),
        (lambda: mk.LinearStateSpace(transition_matrices=[[1]]), "'transition_matrices'; it is transition="),
        (lambda: mk.LinearStateSpace(n_dim_obs=1), "LinearStateSpace.. has no argument 'n_dim_obs'"),
        (lambda: mk.series.StructuralSeries(level="local level"), "'level'; it is trend= here"),
    ],
)  # fmt: skip
def test_another_library_s_setting_is_answered_with_ours(act, said):
    with pytest.raises(UnknownArgument, match=said):
        act()


@pytest.mark.parametrize(
    ("model", "word", "ours"),
    [
        (mk.HMM(2), "score_samples", "log_prob and smooth"),
        (mk.HMM(2), "most_likely_states", "decode"),
        (mk.HMM(2), "log_probability", "log_prob"),
        (mk.LinearStateSpace(), "em", "fit"),
        (mk.LinearStateSpace(), "loglikelihood", "score"),
        (mk.series.StructuralSeries(), "llf", "log_likelihood_"),
        (mk.series.StructuralSeries(), "get_forecast", "forecast"),
    ],
)
def test_another_library_s_verb_is_answered_with_ours(model, word, ours):
    with pytest.raises(AttributeError, match=f"{word!r}; here it is {ours}"):
        getattr(model, word)


def test_every_word_that_is_named_instead_is_there():
    from markovia.models.temporal.hidden_states.known_values import WORDS
    from markovia.models.temporal.kalman_model import WORDS as LINEAR

    rng = np.random.default_rng(0)
    hmm = mk.HMM(2, emission="gaussian", random_state=0).fit(rng.normal(size=30))
    line = mk.LinearStateSpace(learn=["observation_cov"], max_iter=1).fit(rng.normal(size=10))
    series = mk.series.StructuralSeries().fit(rng.normal(size=10))
    for word in WORDS.values():
        for one in word.split(" and "):
            assert one.startswith("MarkovChain(") or hasattr(hmm, one), one
    for word in LINEAR.values():
        one = word.split()[0].split("(")[0]
        assert hasattr(line, one) or hasattr(series, one), one
    assert mk.MarkovChain(hmm.transmat_).stationary().shape == (2,)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:EM did not settle")
def test_a_pykalman_script():
    angle = 0.1
    turn = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    kf = mk.LinearStateSpace(
        transition=turn, observation=np.eye(2), transition_cov=0.01 * np.eye(2),
        observation_cov=0.5 * np.eye(2), initial_mean=[1.0, 0.0], initial_cov=np.eye(2), max_iter=3, tol=0,
    )  # fmt: skip
    measured = kf.sample(40, seed=0)[0][0]
    measured[7] = np.nan
    before = kf.score(measured)
    kf = kf.fit(measured)
    assert kf.score(measured) > before
    means, covs = kf.filter(measured)
    smoothed_means, smoothed_covs = kf.smooth(measured)
    for mean, cov in ((means, covs), (smoothed_means, smoothed_covs)):
        assert mean.shape == (40, 2)
        assert cov.shape == (40, 2, 2)
        assert mean[:, 0].shape == (40,)
    assert (np.asarray(smoothed_covs)[:-1, 0, 0] < np.asarray(covs)[:-1, 0, 0]).all()
    np.testing.assert_allclose(np.asarray(smoothed_means)[-1], np.asarray(means)[-1])
    parallel, _ = kf.smooth(measured, parallel="time")
    np.testing.assert_allclose(np.asarray(parallel), np.asarray(smoothed_means), atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_a_statsmodels_script():
    components = pytest.importorskip("statsmodels.tsa.statespace.structural")
    rng = np.random.default_rng(2)
    y = np.cumsum(rng.normal(0.3, 1.0, 80)) + rng.normal(0, 0.5, 80)
    theirs = components.UnobservedComponents(y, "local linear trend", use_exact_diffuse=True).fit(disp=False)
    ours = mk.series.StructuralSeries("local linear trend").fit(y)
    assert ours.log_likelihood_ >= theirs.llf - 1e-4
    ahead = ours.forecast(y, 5).mean[0][:, 0]
    known = mk.series.StructuralSeries("local linear trend", params=theirs.params)
    np.testing.assert_allclose(known.forecast(y, 5).mean[0][:, 0], theirs.forecast(5), rtol=1e-6)
    np.testing.assert_allclose(ahead, theirs.forecast(5), rtol=0.05)


def test_a_dynamax_and_a_pomegranate_script():
    """hmm.filter, hmm.smoother, most_likely_states; model.predict, predict_proba, log_probability of several sequences."""
    hmm = mk.HMM(2, start=[0.5, 0.5], transition=[[0.9, 0.1], [0.2, 0.8]], emission="gaussian",
                 emission_params={"means": [[-1.0], [1.0]], "covariances": [[[1.0]], [[1.0]]]})  # fmt: skip
    many, states = hmm.sample(20, 5, seed=0)
    assert np.shape(many) == (5, 20, 1)
    assert hmm.log_prob(many).shape == (5,)
    assert np.shape(hmm.filter(many)) == np.shape(hmm.smooth(many)) == (5, 20, 2)
    assert np.shape(hmm.decode(many)) == np.shape(states) == (5, 20)
    np.testing.assert_allclose(hmm.filter(many)[0][-1], hmm.smooth(many)[0][-1])
