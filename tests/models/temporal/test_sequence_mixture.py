"""Mixtures of chains and of hidden Markov models: EM, brute force, weights of sequences, rain by months, bad input."""

import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
from markovia.errors import ConvergenceWarning, IncompleteModel, InvalidArgument

USUAL = {"transition": [[0.75, 0.25], [0.35, 0.65]], "start": [0.63, 0.37]}
SUMMER = {"transition": [[0.89, 0.11], [0.51, 0.49]], "start": [0.78, 0.22]}
"""Rain in Vancouver by day, of most months and of those that may be summer; the state is rain."""


def expected_nll(chain, days):
    p, found = chain.start, -np.sum(chain.start * np.log(chain.start))
    for _ in range(days - 1):
        found -= p @ (chain.transition * np.log(chain.transition)).sum(axis=1)
        p = p @ chain.transition
    return found


@pytest.mark.slow
def test_rain_by_months_has_the_numbers_of_the_notes():
    usual = mk.MarkovChain(**USUAL)
    assert expected_nll(usual, 28) == pytest.approx(16.79, abs=0.005)
    assert usual.n_free == 3
    months = mk.MarkovChain(**USUAL).sample(28, 900, seed=0) + mk.MarkovChain(**SUMMER).sample(
        28, 160, seed=1
    )
    one = mk.MarkovChain().fit(months)
    with pytest.warns(ConvergenceWarning):
        ten = mk.series.SequenceMixture(mk.MarkovChain(), 10, max_iter=25, random_state=0).fit(months)
    assert ten.n_free == 39  # the notes count a weight more: 10 + 10 x 3
    assert -ten.score(months) / 1060 < -one.score(months) / 1060 - 0.02


def test_a_season_is_found():
    months = mk.MarkovChain(**USUAL).sample(200, 260, seed=0) + mk.MarkovChain(**SUMMER).sample(
        200, 40, seed=1
    )
    mixture = mk.series.SequenceMixture(mk.MarkovChain(), 2, n_init=3, random_state=0).fit(months)
    summer = int(mixture.weights_.argmin())
    assert mixture.weights_[summer] == pytest.approx(40 / 300, abs=0.02)
    assert mixture.components_[summer].transition == pytest.approx(np.array(SUMMER["transition"]), abs=0.03)
    assert (mixture.predict(months) == summer)[260:].mean() > 0.95


def test_the_mixture_sums_its_components():
    rng = np.random.default_rng(0)
    data = [rng.integers(0, 3, size=t) for t in (5, 8, 4, 9, 6, 7)]
    mixture = mk.series.SequenceMixture(mk.MarkovChain(smoothing=1), 3, random_state=0).fit(data)
    joint = np.array([np.exp(c.log_prob(data)) for c in mixture.components_]).T * mixture.weights_
    assert np.exp(mixture.log_prob(data)) == pytest.approx(joint.sum(axis=1))
    assert mixture.predict_proba(data) == pytest.approx(joint / joint.sum(axis=1, keepdims=True))
    assert mixture.predict(data).tolist() == joint.argmax(axis=1).tolist()
    assert mixture.score(data) == pytest.approx(mixture.log_prob(data).sum())
    free = mixture.n_free
    assert free == 2 + 3 * (2 + 6)
    assert mixture.bic(data) == pytest.approx(free * np.log(6) - 2 * mixture.score(data))
    assert mixture.aic(data) == pytest.approx(2 * free - 2 * mixture.score(data))


@pytest.mark.parametrize(
    "template",
    [
        mk.MarkovChain(smoothing=0.5, states=[0, 1]),
        mk.MarkovChain(smoothing=0.5, order=2, states=[0, 1]),
        mk.HMM(2, transition_prior=1.5),
        mk.HMM(2, emission="gaussian", emission_prior={"mean": 0.0, "strength": 0.1, "scale": 1.0, "df": 3}),
    ],
    ids=["chain", "second order", "categorical", "gaussian"],
)
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_the_objective_never_falls(template):
    rng = np.random.default_rng(1)
    data = [rng.integers(0, 2, size=t) for t in rng.integers(5, 20, size=12)]
    mixture = mk.series.SequenceMixture(template, 2, max_iter=30, tol=0.0, random_state=0).fit(data)
    gains = np.diff(mixture.history_)
    assert gains.min() > -1e-9
    assert gains[0] > 1e-3


def test_kinds_of_hidden_markov_models_are_told_apart():
    calm = mk.HMM(2, emission="gaussian", start=[0.5, 0.5], transition=[[0.95, 0.05], [0.05, 0.95]],
                  emission_params={"means": [[-2.0], [2.0]], "covariances": [1.0, 1.0]})  # fmt: skip
    wild = clone(calm).set_params(transition=[[0.1, 0.9], [0.9, 0.1]])
    data = calm.sample(60, 12, seed=0)[0] + wild.sample(60, 8, seed=1)[0]
    mixture = mk.series.SequenceMixture(mk.HMM(2, emission="gaussian"), 2, n_init=4, random_state=0).fit(data)
    kinds = mixture.predict(data)
    assert kinds.tolist() in ([0] * 12 + [1] * 8, [1] * 12 + [0] * 8)
    drawn, which = mixture.sample(30, 400, seed=0)
    assert (len(drawn), drawn[0].shape) == (400, (30, 1))
    assert np.bincount(which, minlength=2) / 400 == pytest.approx(mixture.weights_, abs=0.1)


@pytest.mark.parametrize("algorithm", ["baum-welch", "viterbi"])
def test_a_weight_is_a_number_of_copies(algorithm):
    rng = np.random.default_rng(2)
    data = [rng.normal(size=(t, 2)) for t in (39, 24, 26)]
    settings = {
        "emission": "gaussian",
        "start": [0.5, 0.5],
        "transition": [[0.7, 0.3], [0.4, 0.6]],
        "emission_params": {"means": [[-1, 0], [1, 0]], "covariances": [np.eye(2)] * 2},
        "max_iter": 4,
        "tol": 0.0,
        "algorithm": algorithm,
    }
    weighed = mk.HMM(2, **settings).fit(data, sample_weight=[2, 1, 3])
    copied = mk.HMM(2, **settings).fit([data[0], data[0], data[1], data[2], data[2], data[2]])
    for name in ("startprob_", "transmat_", "means_", "covars_"):
        assert getattr(weighed, name) == pytest.approx(getattr(copied, name), abs=1e-10)
    assert weighed.history_ == pytest.approx(copied.history_)
    labels = [rng.integers(0, 2, size=len(x)) for x in data]
    weighed = mk.HMM(2, **settings).fit(data, labels=labels, sample_weight=[2, 0, 1])
    copied = mk.HMM(2, **settings).fit([data[0], data[0], data[2]], labels=[labels[0], labels[0], labels[2]])
    assert weighed.transmat_ == pytest.approx(copied.transmat_)
    assert weighed.means_ == pytest.approx(copied.means_)


def test_weights_hold_where_sums_are_left_to_logarithms():
    far = [np.array([0.0, 1e5, 0.0, -1e5]), np.array([0.5, -0.5])]  # densities under each other's last digit
    settings = {
        "emission": "gaussian",
        "start": [0.5, 0.5],
        "transition": [[1.0, 0.0], [0.5, 0.5]],
        "emission_params": {"means": [[0.0], [1.0]], "covariances": [1.0, 1.0]},
        "max_iter": 1,
    }
    weighed = mk.HMM(2, **settings).fit(far, sample_weight=[2, 1])
    copied = mk.HMM(2, **settings).fit([far[0], far[0], far[1]])
    assert weighed.transmat_ == pytest.approx(copied.transmat_, abs=1e-10)
    assert weighed.means_ == pytest.approx(copied.means_, rel=1e-10)


def test_bad_input_is_refused():
    data = [[0, 1, 1], [1, 0]]
    with pytest.raises(InvalidArgument, match="template= is an HMM or a MarkovChain, not 3"):
        mk.series.SequenceMixture(3).fit(data)
    with pytest.raises(InvalidArgument, match="3 components need as many sequences"):
        mk.series.SequenceMixture(mk.MarkovChain(), 3).fit(data)
    with pytest.raises(InvalidArgument, match="sequence 1 has no steps"):
        mk.series.SequenceMixture(mk.MarkovChain()).fit([[0], []])
    with pytest.raises(IncompleteModel, match="fit"):
        mk.series.SequenceMixture(mk.MarkovChain()).predict(data)
    fitted = mk.series.SequenceMixture(mk.MarkovChain(), 2, random_state=0).fit(data)
    before = fitted.weights_
    with pytest.raises(InvalidArgument, match="weight of sequence 0"):
        fitted.fit(data, sample_weight=[-1, 1])
    assert fitted.weights_ is before
    with pytest.raises(InvalidArgument, match="sequence 0 is impossible under all"):
        mk.series.SequenceMixture(mk.MarkovChain(states=[0, 1]), 2, random_state=0).fit(
            [[0, 0], [0, 0]]
        ).predict([[1]])
    assert clone(fitted).n_components == 2


def test_moves_that_are_fixed_are_no_free_parameters_of_a_mixture_of_hidden_chains():
    fixed = np.array([[np.nan, np.nan, 0.0], [0.25, np.nan, np.nan], [np.nan, np.nan, np.nan]])
    hmm = mk.HMM(3, transition_mask=fixed, max_iter=2, tol=0, random_state=0)
    rng = np.random.default_rng(4)
    data = [rng.integers(0, 4, size=t) for t in (15, 18, 24, 19)]
    with pytest.warns(ConvergenceWarning):
        mixture = mk.series.SequenceMixture(hmm, 2, max_iter=2, random_state=0).fit(data)
    # of each component: start, moves of the three rows, symbols of the three states
    each = 2 + (1 + 1 + 2) + 3 * 3
    assert mixture.n_free == 1 + 2 * each
    assert mixture.aic(data) == pytest.approx(2 * (1 + 2 * each) - 2 * mixture.score(data))
