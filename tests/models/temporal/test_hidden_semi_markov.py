"""Hidden semi-Markov models: the network with counters, HMMs as a special case, learning, bad input."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone

import markovia as mk
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel


@st.composite
def models(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, longest, steps = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    transition = rng.dirichlet(np.ones(k), k) * (1 - np.eye(k)) if k > 1 else np.ones((1, 1))
    model = mk.series.HiddenSemiMarkov(
        k,
        durations="categorical",
        max_duration=longest,
        duration_params={"probs": rng.dirichlet(np.ones(longest), k)},
        start=rng.dirichlet(np.ones(k)),
        transition=transition / transition.sum(axis=1, keepdims=True),
        emission_params={"probs": rng.dirichlet(np.ones(2), k)},
        censored=draw(st.booleans()),
    )
    data = [None if rng.random() < 0.2 else int(v) for v in rng.integers(0, 2, steps)]
    return model, data


@settings(max_examples=25, deadline=None)
@given(models())
def test_every_answer_is_that_of_the_network_with_counters(problem):
    model, data = problem
    steps = len(data)
    network = model.unroll(steps)
    evidence = {f"x{t}": v for t, v in enumerate(data) if v is not None}
    past = dict(evidence)
    if not model.censored:
        evidence[f"c{steps - 1}"] = 1
        if network.query(f"c{steps - 1}", given=past)[1] < 1e-12:
            assert model.log_prob([data])[0] == -np.inf
            return
    assert model.log_prob([data])[0] == pytest.approx(network.log_evidence(evidence), abs=1e-8)
    smoothed, filtered = model.smooth([data])[0], model.filter([data])[0]
    ahead = model.unroll(steps + 2)
    for t in range(steps):
        assert smoothed[t] == pytest.approx(network.query(f"z{t}", given=evidence).values, abs=1e-8)
        so_far = {n: v for n, v in past.items() if int(n[1:]) <= t}
        assert filtered[t] == pytest.approx(network.query(f"z{t}", given=so_far).values, abs=1e-8)
    for h, p in enumerate(model.forecast([data], 2)[0]):
        assert p == pytest.approx(ahead.query(f"z{steps + h}", given=past).values, abs=1e-8)
    if model.censored:
        dynamic = model.network().query("z@0", given={f"x@{n[1:]}": v for n, v in evidence.items()})
        assert smoothed[0] == pytest.approx(dynamic.values, abs=1e-8)
        both = network.query([f"z{t}" for t in range(steps)], given=evidence).values
        first = min(1, steps - 1)
        want = both.reshape(-1)[0] if steps == 1 else np.moveaxis(both, first, 0)[0].sum()
        assert model.segment_prob([data], first, [0]) == pytest.approx([want], abs=1e-8)


def test_geometric_durations_are_a_hidden_markov_model():
    stay = np.array([0.8, 0.6])
    rng = np.random.default_rng(0)
    common = {
        "start": [0.3, 0.7],
        "emission": "gaussian",
        "emission_params": {"means": [[0.0], [2.0]], "covariances": np.ones((2, 1, 1))},
    }
    plain = mk.HMM(2, transition=[[0.8, 0.2], [0.4, 0.6]], **common)
    semi = mk.series.HiddenSemiMarkov(
        2,
        transition=[[0, 1], [1, 0]],
        durations="geometric",
        max_duration=300,
        duration_params={"rates": stay / (1 - stay)},
        **common,
    )
    x = [rng.normal(size=n) for n in (40, 7, 1)]
    assert semi.log_prob(x) == pytest.approx(plain.log_prob(x), abs=1e-9)
    assert np.concatenate(semi.smooth(x)) == pytest.approx(np.concatenate(plain.smooth(x)), abs=1e-9)
    assert semi.decode(x)[0].tolist() == plain.decode(x)[0].tolist()
    assert semi.expected_durations() == pytest.approx(plain.expected_durations())
    drawn = semi.sample_paths(x[:1], 4000, seed=0)[0]
    assert drawn.mean(axis=0) == pytest.approx(plain.smooth(x[0])[0][:, 1], abs=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("durations", ["poisson", "negative-binomial", "geometric", "categorical"])
@pytest.mark.parametrize("censored", [True, False])
def test_learning_never_loses_and_finds_durations(durations, censored):
    truth = mk.series.HiddenSemiMarkov(
        2,
        max_duration=15,
        duration_params={"rates": [6.0, 2.0]},
        start=[1, 0],
        transition=[[0, 1], [1, 0]],
        emission="gaussian",
        emission_params={"means": [[0.0], [3.0]], "covariances": np.ones((2, 1, 1))},
    )
    x, _ = truth.sample(150, 4, seed=0)
    model = mk.series.HiddenSemiMarkov(
        2,
        durations=durations,
        max_duration=15,
        censored=censored,
        emission="gaussian",
        emission_params={"means": [[0.5], [2.0]], "covariances": np.ones((2, 1, 1))},
        random_state=0,
        tol=1e-3,
        max_iter=60,
    ).fit(x)
    assert np.diff(model.history_).min() > -1e-7
    assert (np.diag(model.transmat_) == 0).all()
    if durations != "geometric":
        assert model.expected_durations() == pytest.approx(truth.expected_durations(), rel=0.2)
    assert model.log_prob(x).sum() > model.history_[0]
    assert clone(model).get_params()["durations"] == durations


def test_told_states_are_visits_whose_lengths_are_counted():
    told = [[0, 0, 0, 1, 0, 0, 1], [1, 1, 0, 0, 0, 1]]
    data = [[0, 1, 1, 0, 0, 1, 1], [0, 1, 1, 0, 0, 1]]
    model = mk.series.HiddenSemiMarkov(2, durations="categorical", max_duration=4, censored=False)
    model.fit(data, labels=told)
    assert model.durations_.probs == pytest.approx(np.array([[0, 1, 2, 0], [3, 1, 0, 0]]) / [[3], [4]])
    assert model.transmat_.tolist() == [[0, 1], [1, 0]]
    assert model.emissionprob_[0] == pytest.approx([4 / 8, 4 / 8])


def test_a_weight_of_two_is_a_sequence_twice():
    data = [[0, 0, 1, 1, 0], [1, 0, 0], [0, 1, 1]]
    settings_ = {"durations": "categorical", "max_duration": 3, "random_state": 0, "max_iter": 4, "tol": 0}
    one = mk.series.HiddenSemiMarkov(2, **settings_).fit(data, sample_weight=[2, 1, 1])
    two = mk.series.HiddenSemiMarkov(2, **settings_).fit([data[0], *data])
    assert one.history_ == pytest.approx(two.history_)
    assert one.durations_.probs == pytest.approx(two.durations_.probs)


def test_a_left_right_model_stays_in_its_last_state():
    model = mk.series.HiddenSemiMarkov(
        3, structure="left-right", max_duration=4, random_state=0, max_iter=5, tol=9
    )
    model.fit([[0, 0, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2]])
    assert model.transmat_[2].tolist() == [0, 0, 1]
    assert (np.tril(model.transmat_, -1) == 0).all()
    x, z = model.sample(50, seed=0)
    assert len(z) == len(x) == 50
    assert (np.diff(z) >= 0).all()


@pytest.mark.parametrize(
    ("settings_", "said"),
    [
        ({"durations": "gamma"}, "durations= is "),
        ({"max_duration": 0}, "max_duration= is a whole number"),
        ({"duration_params": {"rate": [1, 2]}}, "has rates, not rate"),
        ({"duration_params": {"rates": [1, -2]}}, "are above 0"),
        ({"transition": [[0.5, 0.5], [1, 0]]}, "from state 0 to 0, which is fixed at 0"),
    ],
)
def test_bad_settings_are_named(settings_, said):
    with pytest.raises(InvalidArgument, match=said):
        mk.series.HiddenSemiMarkov(2, **settings_).fit([[0, 1]])


def test_the_best_paths_are_those_of_all_paths_of_the_network():
    model = mk.series.HiddenSemiMarkov(
        2, start=[0.6, 0.4], transition=[[0, 1], [1, 0]], max_duration=3, durations="categorical",
        duration_params={"probs": [[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]},
        emission_params={"probs": [[0.8, 0.2], [0.3, 0.7]]},
    )  # fmt: skip
    x = [0, 1, 1, 0]
    paths, scores = model.k_best(x, 5)[0]
    net, seen = model.unroll(4), {f"x{t}": s for t, s in enumerate(x)}
    every = {
        z: net.log_evidence({**seen, **{f"z{t}": s for t, s in enumerate(z)}})
        for z in product((0, 1), repeat=4)
    }
    best = sorted(every, key=every.get, reverse=True)[:5]
    assert [tuple(p) for p in paths.tolist()] == best
    np.testing.assert_allclose(scores, [every[z] for z in best])
    decoded = model.decode(x)
    assert decoded[0].tolist() == list(best[0])
    assert decoded.log_prob[0] == pytest.approx(every[best[0]])


def test_what_it_cannot_say_is_named():
    model = mk.series.HiddenSemiMarkov(2, max_duration=3)
    with pytest.raises(IncompleteModel, match="duration_params="):
        model.log_prob([0, 1])
    model.set_params(tol=9.0, random_state=0).fit([[0, 1, 0]])
    with pytest.raises(UnsupportedModel, match=r"unroll\(T\)"):
        model.smooth([0, 1], pairs=True)
