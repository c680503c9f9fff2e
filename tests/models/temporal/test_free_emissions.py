"""Emissions from any distribution, and from whole networks: the families with a name as references, EM, bad input."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnknownVariable

Z = np.repeat([0, 1, 0, 1], 60)


def series(seed=0):
    rng = np.random.default_rng(seed)
    return np.where(Z == 0, rng.gamma(2, 1, len(Z)), rng.gamma(20, 0.5, len(Z)))


def test_a_normal_from_the_distributions_learns_what_gaussian_learns():
    x = series()
    known = mk.HMM(2, emission="gaussian", tol=1e-8, random_state=0).fit(x)
    free = mk.HMM(2, emission=dist.Normal, tol=1e-8, random_state=0).fit(x)
    assert free.score(x) == pytest.approx(known.score(x), abs=1e-4)
    assert free.emission_.params["loc"] == pytest.approx(known.means_[:, 0], rel=1e-3)
    assert free.emission_.params["scale"] ** 2 == pytest.approx(known.covars_[:, 0, 0], rel=1e-3)
    assert free.bic(x) == pytest.approx(known.bic(x), abs=1e-3)
    fixed = {"start": [0.5, 0.5], "transition": [[0.9, 0.1], [0.2, 0.8]]}
    two = mk.HMM(2, emission=dist.Normal, emission_params={"loc": [1.0, 4.0], "scale": [1.0, 3.0]}, **fixed)
    same = mk.HMM(
        2, emission="gaussian", emission_params={"means": [1.0, 4.0], "covariances": [1.0, 9.0]}, **fixed
    )
    assert two.log_prob([x]) == pytest.approx(same.log_prob([x]), abs=1e-8)


@pytest.mark.slow
def test_gammas_are_learned_by_gradients_and_the_objective_never_falls():
    x = series(1)
    hmm = mk.HMM(2, emission=dist.Gamma, tol=1e-4, random_state=0).fit(x)
    assert (hmm.decode(x)[0] == Z).mean() > 0.95 or (hmm.decode(x)[0] == 1 - Z).mean() > 0.95
    assert np.diff(hmm.history_).min() > -1e-8
    means = np.sort(hmm.emission_.params["concentration"] / hmm.emission_.params["rate"])
    assert means == pytest.approx([2.0, 10.0], rel=0.15)
    drawn, states = hmm.sample(2000, seed=0)
    by_state = [drawn[states == k].mean() for k in range(2)]
    assert np.sort(by_state) == pytest.approx(means, rel=0.1)
    assert hmm.emission_.n_free == 4


def test_a_function_of_parameters_learns_only_these():
    x = series(2)
    start = {"loc": [1.0, 8.0]}
    hmm = mk.HMM(2, emission=lambda loc: dist.Normal(loc, 2.0), emission_params=start, tol=1e-8).fit(x)
    weights = hmm.smooth(x)[0]
    assert hmm.emission_.params["loc"] == pytest.approx((weights.T @ x) / weights.sum(axis=0), rel=1e-3)


@pytest.mark.slow
def test_columns_vectors_and_counts_have_their_distributions():
    rng = np.random.default_rng(3)
    two = np.column_stack([series(3), series(4)])
    hmm = mk.HMM(2, emission=dist.Gamma, max_iter=3, tol=0.0, random_state=0).fit(two)
    assert hmm.emission_.params["rate"].shape == (2, 2)
    joint = mk.HMM(
        2,
        emission=lambda loc, scale: dist.Normal(loc, scale).to_event(1),
        emission_params={"loc": [[1, 1], [9, 9]], "scale": np.ones((2, 2))},
        max_iter=3,
        tol=0.0,
    ).fit(two)
    assert joint.emission_.params["loc"][1] == pytest.approx([10, 10], rel=0.1)
    counts = np.where(Z == 0, rng.negative_binomial(3, 0.5, len(Z)), rng.negative_binomial(30, 0.5, len(Z)))
    assert (mk.HMM(2, emission=dist.NegativeBinomial2, random_state=0).fit(counts).decode(counts)[0][:50] == 0).sum() in (
        0, 50,
    )  # fmt: skip


def test_distributions_are_cloned_and_pickled():
    hmm = mk.HMM(2, emission=dist.Gamma, random_state=0).fit(series())
    again = pickle.loads(pickle.dumps(hmm))
    assert again.log_prob([series()]) == pytest.approx(hmm.log_prob([series()]))
    assert clone(hmm).emission is dist.Gamma
    assert copy.deepcopy(dist.Gamma) is dist.Gamma


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"emission": "gama"}, "or a BayesianNetwork"),
        ({"emission": 3}, "or a BayesianNetwork"),
        ({"emission": lambda a: dist.Normal(a, 1)}, "a function of a needs starting values by name"),
        ({"emission": lambda a: a, "emission_params": {"a": [1, 2]}}, "returns a"),
        ({"emission": lambda a: 1 / 0, "emission_params": {"a": [1, 2]}}, "ZeroDivisionError"),
        ({"emission": dist.Gamma, "emission_params": {"rate": [1, 2], "concentration": [-1, 2]}}, "invalid"),
        (
            {"emission": dist.Gamma, "emission_params": {"rate": [1], "concentration": [1]}},
            "2 finite entries",
        ),
    ],
)
def test_what_makes_no_emission_is_refused(settings, said):
    with pytest.raises(InvalidArgument, match=said):
        mk.HMM(2, **settings).fit(series())


def test_a_value_outside_the_support_is_named():
    x = series()
    x[7] = -1.0
    with pytest.raises(InvalidArgument, match="step 7 of sequence 0 is impossible"):
        mk.HMM(2, emission=dist.Gamma, random_state=0).fit(x)
    x[7] = np.nan
    assert np.isfinite(mk.HMM(2, emission=dist.Gamma, random_state=0).fit(x).score(x))


def mixed(seed=0, n=240):
    rng = np.random.default_rng(seed)
    z = np.repeat([0, 1, 0, 1], n // 4)
    mood = np.where(rng.random(n) < np.where(z == 0, 0.9, 0.2), "calm", "loud")
    x = rng.normal(np.where(mood == "calm", 0.0, 2.0) + 3.0 * z, 1.0)
    y = np.where(z == 0, 1.0, -1.0) * x + rng.normal(0, 0.5, n)
    return z, pd.DataFrame({"mood": mood, "x": x, "y": y})


def template():
    network = mk.BayesianNetwork()
    network.add("mood", states=["calm", "loud"])
    blank = mk.LinearGaussian(0.0, {}, 1.0)
    network.add("x", {"calm": blank, "loud": blank}, parents=["mood"])
    network.add("y", mk.LinearGaussian(0.0, {"x": 0.0}, 1.0))
    return network


def test_a_network_of_tables_and_numbers_is_an_emission():
    z, frame = mixed()
    hmm = mk.HMM(2, emission=template(), n_init=4, random_state=0, tol=1e-3).fit(frame)
    assert max((hmm.decode(frame)[0] == z).mean(), (hmm.decode(frame)[0] == 1 - z).mean()) > 0.97
    assert np.diff(hmm.history_).min() > -1e-8
    networks = hmm.emission_.networks
    calm = sorted(one.query("mood")["calm"] for one in networks)
    assert calm == pytest.approx([0.2, 0.9], abs=0.1)
    drawn, _ = hmm.sample(5, seed=0)
    assert drawn.shape == (5, 3)
    assert hmm.emission_.n_free == sum(one.count_parameters() for one in networks)


def test_the_first_step_of_learning_is_the_network_own_fit_with_posteriors_as_weights():
    _, frame = mixed(1, 80)
    begun = mk.HMM(2, emission=template(), random_state=1, max_iter=1, tol=0.0).fit(frame)
    once = mk.HMM(
        2, emission=template(), max_iter=1, tol=0.0, start=begun.startprob_, transition=begun.transmat_,
        emission_params={"networks": begun.emission_.networks},
    )  # fmt: skip
    posteriors = once.smooth(frame)[0]
    once.fit(frame)
    for k in range(2):
        alone = template().fit(frame, weights=posteriors[:, k])
        assert once.emission_.networks[k].log_prob(frame) == pytest.approx(alone.log_prob(frame), abs=1e-9)


def test_a_network_with_one_column_is_the_categorical_family():
    rng = np.random.default_rng(4)
    words = rng.choice(["a", "b", "c"], size=60)
    probs = np.array([[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]])
    networks = []
    for row in probs:
        one = mk.BayesianNetwork()
        one.add("w", states=["a", "b", "c"], p=row)
        networks.append(one)
    chain = {"start": [0.5, 0.5], "transition": [[0.8, 0.2], [0.3, 0.7]], "max_iter": 3, "tol": 0.0}
    known = mk.HMM(2, symbols=["a", "b", "c"], emission_params={"probs": probs}, **chain)
    free = mk.HMM(2, emission=networks[0], emission_params={"networks": networks}, **chain)
    frame = pd.DataFrame({"w": words})
    assert free.log_prob(frame) == pytest.approx(known.log_prob(words), abs=1e-10)
    known.fit(words), free.fit(frame)
    assert free.transmat_ == pytest.approx(known.transmat_, abs=1e-10)
    assert free.score(frame) == pytest.approx(known.score(words), abs=1e-9)


def test_cells_of_a_network_may_be_missing():
    z, frame = mixed(2)
    holed = frame.astype(object)
    holed.loc[3, "x"] = None
    holed.loc[10, "mood"] = None
    holed.loc[20] = None
    hmm = mk.HMM(2, emission=template(), n_init=3, random_state=0, max_iter=15, tol=0.1).fit(holed)
    assert max((hmm.decode(holed)[0] == z).mean(), (hmm.decode(holed)[0] == 1 - z).mean()) > 0.9
    with pytest.raises(UnknownVariable, match="mood"):
        hmm.log_prob(frame[["x", "y"]])
    with pytest.raises(InvalidArgument, match="3 variables"):
        hmm.log_prob([np.zeros((4, 2))])
