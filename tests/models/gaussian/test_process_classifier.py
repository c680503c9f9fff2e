"""Classes by a Gaussian process: probabilities, labels of all kinds, edges, limits, and the network."""

import os
import pickle
import signal
import warnings

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.processes.gaussian_sites import SiteEvidence
from markovia.models.gaussian.process_classifier import GaussianProcessClassifier, likelihood_network
from process_likelihoods import LIKELIHOODS, TARGETS, THREE, brute_force, covariance

k = mk.covariances


def moons(n, seed=0):
    """Return two half circles that overlap a little."""
    rng = np.random.default_rng(seed)
    t, y = rng.uniform(0.0, np.pi, size=n), np.arange(n) % 2
    X = np.stack([np.cos(t) * (1 - 2 * y) + y, np.sin(t) * (1 - 2 * y) + 0.4 * y], axis=1)
    return X + 0.25 * rng.normal(size=(n, 2)), y


def true_odds(n, seed):
    """Return inputs, classes drawn with known probabilities, and these."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, size=(n, 2))
    p = 1.0 / (1.0 + np.exp(-(2.5 * np.sin(1.2 * X[:, 0]) + X[:, 1])))
    return X, (rng.uniform(size=n) < p).astype(int), p


@pytest.fixture(scope="module")
def fitted():
    X, y, _ = true_odds(150, 0)
    return GaussianProcessClassifier().fit(X, y)


def test_probabilities_are_near_the_true_ones_and_calibrated(fitted):
    X, y, p = true_odds(4000, 1)
    found = fitted.predict_proba(X)[:, 1]
    assert np.mean(np.abs(found - p)) < 0.12
    loss = -np.mean(np.log(np.where(y == 1, found, 1.0 - found)))
    best = -np.mean(np.log(np.where(y == 1, p, 1.0 - p)))
    assert best < loss < best + 0.05
    # of rows that are given about a probability, about that share is in the class
    for low in (0.0, 0.2, 0.4, 0.6, 0.8):
        inside = (found >= low) & (found < low + 0.2)
        assert abs(y[inside].mean() - found[inside].mean()) < 0.12


def test_the_loss_is_no_worse_than_that_of_scikit_learn(fitted):
    from sklearn.gaussian_process import GaussianProcessClassifier as Peer
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel

    peer = Peer(ConstantKernel(1.0) * RBF([1.0, 1.0])).fit(fitted.X_fit_, true_odds(150, 0)[1])
    X, y, _ = true_odds(2000, 1)
    ours, theirs = (m.predict_proba(X)[np.arange(2000), y] for m in (fitted, peer))
    assert -np.log(ours).mean() < -np.log(theirs).mean() + 2e-3
    assert fitted.log_marginal_likelihood_value_ > peer.log_marginal_likelihood_value_ - 1e-3


def test_far_from_all_rows_the_classes_are_equally_probable(fitted):
    np.testing.assert_allclose(fitted.predict_proba([[1e6, 1e6]]), [[0.5, 0.5]], atol=1e-12)
    X = np.repeat(np.eye(3), 2, axis=0)
    three = GaussianProcessClassifier(k.RBF(1.0)).fit(X, [0, 0, 1, 1, 2, 2])
    np.testing.assert_allclose(three.predict_proba([[1e6, 0.0, 0.0]]), [[1 / 3] * 3], atol=3e-3)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["laplace", "ep", "variational"])
@pytest.mark.parametrize("link", ["logit", "probit"])
def test_methods_and_links_tell_the_moons_apart(method, link):
    X, y = moons(60)
    model = GaussianProcessClassifier(k.Scaled(None, k.RBF()), method=method, link=link).fit(X, y)
    assert model.converged_
    assert (model.predict(X) == y).mean() > 0.9
    p = model.predict_proba(np.random.default_rng(0).normal(size=(50, 2)))
    np.testing.assert_allclose(p.sum(axis=1), 1.0, rtol=1e-12)
    assert model.log_marginal_likelihood() == model.log_marginal_likelihood_value_
    hypers = {name: h.value for name, h in model.covariance_.hypers().items()}
    assert model.log_marginal_likelihood(hypers) == pytest.approx(
        model.log_marginal_likelihood_value_, abs=1e-6
    )
    for factor in (0.9, 1.1):  # it is the top
        moved = {**hypers, "rbf.length": factor * hypers["rbf.length"]}
        assert model.log_marginal_likelihood(moved) < model.log_marginal_likelihood_value_


@pytest.mark.slow
def test_several_classes_together_and_each_from_the_rest():
    rng = np.random.default_rng(0)
    y = np.arange(45) % 3
    X = rng.normal(size=(45, 2)) + 2.5 * np.stack([np.cos(2.1 * y), np.sin(2.1 * y)], axis=1)
    together = GaussianProcessClassifier(k.Scaled(None, k.RBF())).fit(X, y)
    apart = GaussianProcessClassifier(k.Scaled(None, k.RBF()), multi_class="one-vs-rest", method="ep").fit(
        X, y
    )
    for model in (together, apart):
        assert (model.predict(X) == y).mean() > 0.85
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
    assert np.abs(together.predict_proba(X) - apart.predict_proba(X)).mean() < 0.1
    assert len(apart.posteriors_) == len(apart.covariance_) == 3
    assert apart.log_marginal_likelihood() == pytest.approx(
        sum(p.info.log_evidence for p in apart.posteriors_), abs=1e-6
    )
    with pytest.raises(InvalidArgument, match="tells it from the rest; see posteriors_"):
        apart.network()
    assert set(together.network()) == {"f0", "f1", "f2", "y"}


def test_well_separated_classes_are_told_apart_without_doubt():
    """Where Laplace's approximation is far too timid, since its mode is far from the mean; so with several classes."""
    X = np.concatenate([np.linspace(-3.0, -1.0, 12), np.linspace(1.0, 3.0, 12)])[:, None]
    y = np.repeat([0, 1], 12)
    loss = {}
    for method in ("auto", "laplace", "variational"):
        p = GaussianProcessClassifier(200.0 * k.RBF(2.0), method=method).fit(X, y).predict_proba(X)
        loss[method] = -np.log(p[np.arange(24), y]).mean()
    assert loss["auto"] < 0.06 > loss["variational"]
    assert loss["laplace"] > 0.15
    three = GaussianProcessClassifier(200.0 * k.RBF(2.0)).fit(X, np.digitize(X[:, 0], [-2.0, 0.0]))
    assert three.method_ == "variational"
    assert three.predict_proba([[-3.0], [-1.0], [3.0]]).max(axis=1).min() > 0.9


@pytest.mark.parametrize(
    "names", [("b", "a"), (True, False), (7, -3), (2.0, 1.0), (np.str_("yes"), np.str_("no"))]
)
def test_labels_are_names_truths_or_whole_numbers(names):
    y = [names[0], names[0], names[1], names[1]]
    model = GaussianProcessClassifier(k.RBF(1.0)).fit([[0.0], [1.0], [4.0], [5.0]], y)
    assert model.predict([[0.0], [5.0]]).tolist() == [names[0], names[1]]
    assert model.classes_.tolist() == sorted(names)


@pytest.mark.slow
def test_units_of_the_inputs_and_the_order_of_rows_do_not_matter():
    X, y = moons(25)
    order = np.random.default_rng(1).permutation(25)
    at = np.random.default_rng(2).normal(size=(20, 2))
    plain = GaussianProcessClassifier(k.Scaled(None, k.RBF())).fit(X, y)
    for unit in (1e-9, 1e9):
        other = GaussianProcessClassifier(k.Scaled(None, k.RBF())).fit(unit * X[order], y[order])
        np.testing.assert_allclose(other.predict_proba(unit * at), plain.predict_proba(at), atol=2e-3)
        assert other.log_marginal_likelihood_value_ == pytest.approx(
            plain.log_marginal_likelihood_value_, abs=1e-3
        )


def test_swapped_classes_have_swapped_probabilities():
    X, y = moons(30)
    one, other = (GaussianProcessClassifier(k.RBF(1.0)).fit(X, target) for target in (y, 1 - y))
    np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X)[:, ::-1], rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("X", "y"),
    [
        ([[0.0], [1.0]], [0, 1]),  # a row a class
        ([[0.0]] * 3 + [[1.0]] * 3, [0, 0, 1, 1, 1, 1]),  # the same row in both
        ([[3.0, 0.0], [3.0, 1.0], [3.0, 8.0], [3.0, 9.0]], [0, 0, 1, 1]),  # a constant column
        ([[3.0], [3.0], [3.0]], [0, 0, 1]),  # nothing but one
        ([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]], [0, 0, 1, 1, 2, 2]),  # complete separation
    ],
)
def test_odd_data_are_fitted_all_the_same(X, y):
    for settings in ({}, {"method": "ep", "multi_class": "one-vs-rest"}):
        model = GaussianProcessClassifier(**settings).fit(X, y)
        p = model.predict_proba(X)
        assert np.isfinite(p).all()
        assert np.all(p >= 0.0)
        assert np.isfinite(model.log_marginal_likelihood_value_)


@pytest.mark.parametrize(
    ("X", "y", "said"),
    [
        ([[0.0], [1.0]], ["a", "a"], "there is one class, 'a'; a classifier needs two or more"),
        ([[0.0], [np.nan]], [0, 1], "kernel machines need every cell"),
        ([[0.0], [np.inf]], [0, 1], "row 1 of X is infinite"),
        ([[0.0], [1.0]], [0.5, 1.2], "Unknown label type"),
        ([[0.0], [1.0]], [0.0, np.nan], "NaN"),
    ],
)
def test_bad_input_is_named(X, y, said):
    with pytest.raises(ValueError, match=said) as caught:
        GaussianProcessClassifier().fit(X, [np.str_(x) if isinstance(x, str) else x for x in y])
    assert "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"method": "exact"}, "method"), ({"link": "log"}, "link"), ({"multi_class": "all"}, "multi_class"),
        ({"covariance": "rbf"}, "covariance"), ({"restarts": -1}, "restarts"), ({"time_limit": -1.0}, "time_limit"),
        ({"method": "ep"}, "method='ep' does not know likelihood='categorical'; 'variational' and 'laplace' do"),
    ],
)  # fmt: skip
def test_settings_that_are_none_are_named(settings, said):
    with pytest.raises(InvalidArgument, match=said):
        GaussianProcessClassifier(**settings).fit([[0.0], [1.0], [2.0]], [0, 1, 2])


def test_restarts_find_nothing_worse():
    X, y = moons(40)
    once = GaussianProcessClassifier(k.Scaled(None, k.RBF()), method="laplace").fit(X, y)
    thrice = GaussianProcessClassifier(k.Scaled(None, k.RBF()), method="laplace", restarts=2, seed=0).fit(
        X, y
    )
    assert thrice.log_marginal_likelihood_value_ >= once.log_marginal_likelihood_value_ - 1e-9


def test_a_time_limit_and_ctrl_c_keep_the_best_so_far(monkeypatch):
    X, y = moons(40)
    whole = GaussianProcessClassifier(method="laplace").fit(X, y)
    short = GaussianProcessClassifier(method="laplace", time_limit=1e-9).fit(X, y)
    assert not short.converged_
    assert short.log_marginal_likelihood_value_ < whole.log_marginal_likelihood_value_ - 0.1
    hypers = {name: h.value for name, h in short.covariance_.hypers().items()}
    assert short.log_marginal_likelihood_value_ == pytest.approx(
        short.log_marginal_likelihood(hypers), abs=1e-9
    )
    assert (short.predict(X) == y).mean() > 0.8  # its posterior is a whole one
    plain, calls = SiteEvidence.evidence, []

    def pressed(self, covariance):
        calls.append(0)
        if len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return plain(self, covariance)

    monkeypatch.setattr(SiteEvidence, "evidence", pressed)
    cut = GaussianProcessClassifier(multi_class="one-vs-rest").fit(X, np.digitize(X[:, 0], [-0.3, 0.8]))
    assert not cut.converged_
    assert 3 <= len(calls) < 8  # the classes after it get a single value
    assert len(cut.posteriors_) == 3
    assert np.isfinite(cut.predict_proba(X)).all()


def test_a_fitted_model_is_pickled_cloned_and_shown(fitted):
    from sklearn.base import clone

    at = np.array([[0.1, 0.2]])
    np.testing.assert_array_equal(
        pickle.loads(pickle.dumps(fitted)).predict_proba(at), fitted.predict_proba(at)
    )
    assert not hasattr(clone(fitted), "classes_")
    assert repr(GaussianProcessClassifier(method="ep")) == "GaussianProcessClassifier(method='ep')"


def test_many_rows_are_asked_in_blocks(fitted, monkeypatch):
    X = np.random.default_rng(0).normal(size=(40, 2))
    whole = fitted.predict_proba(X)
    monkeypatch.setattr("markovia.models.gaussian.process_classifier.BLOCK", 1000)
    np.testing.assert_allclose(fitted.predict_proba(X), whole, rtol=1e-12)


def test_a_fit_loads_no_compiler():
    import subprocess
    import sys

    code = (
        "import sys, markovia as mk; mk.gp.GaussianProcessClassifier().fit([[0.0], [1.0]], [0, 1]).predict([[0.0]]);"
        "print([m for m in ('jax', 'numba', 'numpyro', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- the network ---------------------------------------------------------------------------------------------------


def test_the_network_has_the_fitted_function_and_the_classes(fitted):
    network = fitted.network()
    assert set(network) == {"f", "y"}
    assert fitted.function().info.engine == fitted.method_ == "ep"


@pytest.mark.slow
@pytest.mark.parametrize("word", ["bernoulli", "probit", "ordinal", "poisson", "student-t"])
def test_sampling_the_network_agrees_with_the_integral(word):
    _, mean, variance = brute_force(word)
    made = covariance(word)
    rest, likelihood = made.parts
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        post = likelihood_network(rest, likelihood).query(
            "f", given={"x": THREE[:, 0], "y": np.array(TARGETS[word])}, engine=mk.engines.NUTS(seed=1)
        )
    there = post.at(THREE[:, 0])
    assert post.info.engine == "nuts"
    assert np.all(np.abs(there.mean() - mean) < 0.25 * np.sqrt(variance))  # some hundred draws are kept
    np.testing.assert_allclose(there.var(), variance, rtol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("word", ["heteroscedastic", "categorical"])
def test_networks_of_several_functions_are_sampled(word):
    rest, likelihood = covariance(word).parts
    network = likelihood_network(rest, likelihood, 2 if word == "heteroscedastic" else 3)
    given = {"x": THREE[:, 0], "y": np.array(TARGETS[word])}
    found = network.query("f0", given=given, engine=mk.engines.NUTS(seed=1)).at(THREE[:, 0]).mean()
    if word == "heteroscedastic":
        from markovia.learning.processes.variational_evidence import VariationalEvidence as Method
    else:
        from markovia.learning.processes.laplace_evidence import LaplaceEvidence as Method
    near = Method(THREE, TARGETS[word]).posterior(rest + LIKELIHOODS[word]()).latent(THREE)[0][0]
    np.testing.assert_allclose(found, near, atol=0.3)
