"""Hidden chains parallel in time: the values of the sequential sums, also where those must take logarithms."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ImpossibleEvidence, InvalidArgument, MarkoviaError, UnsupportedModel
from markovia.inference.sequences import parallel_chain
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.sequences.parallel_chain import parallel_best, parallel_sums


def chain_of(k, rng, zeros=0.3):
    table = rng.dirichlet(np.ones(k), k) * (rng.random((k, k)) > zeros) + 0.1 * np.eye(k)
    return HiddenChain(rng.dirichlet(np.ones(k)), table / table.sum(axis=1, keepdims=True))


@pytest.fixture
def scans(monkeypatch):
    """Count the sequences that scans left to the sequential sums."""
    left = []
    plain = parallel_chain.HiddenChain.filter
    monkeypatch.setattr(parallel_chain.HiddenChain, "filter", lambda *a: left.append(1) or plain(*a))
    return left


@pytest.mark.parametrize("spread", [0.0, 1.0, 20.0])
def test_scans_find_what_sequential_sums_find(spread, scans):
    lengths, k = (1, 9, 30, 128), 2  # of one shape once filled up, which is compiled once
    rng = np.random.default_rng(int(spread) + k)
    chain = chain_of(k, rng)
    logs = spread * rng.normal(size=(sum(lengths), k)) + 50.0
    logs[rng.random(logs.shape) < 0.05] = -np.inf
    logs[:, 0] = np.where(np.isinf(logs).all(axis=1), 0.0, logs[:, 0])
    logs[rng.random(len(logs)) < 0.1] = 0.0  # steps that are missing
    seen = Observed.of(logs, np.concatenate([[0], np.cumsum(lengths)]))
    found, smoothed = parallel_sums(chain, seen, smoothing=True)
    left = len(scans)
    truth, all_known = chain.filter(seen), chain.smooth(seen)
    assert (found.stuck == truth.stuck).all()
    if spread < 20.0:
        assert left == (truth.stuck >= 0).sum()  # the possible ones by scans alone
    fine = np.repeat(truth.stuck < 0, lengths)
    np.testing.assert_allclose(found.log_probs, truth.log_probs, rtol=1e-11)
    np.testing.assert_allclose(found.now[fine], truth.now[fine], atol=1e-11)
    np.testing.assert_allclose(found.ahead[fine], truth.ahead[fine], atol=1e-11)
    np.testing.assert_allclose(smoothed[fine], all_known.sums[fine], atol=1e-11)
    paths, scores = parallel_best(chain, seen)
    best, best_scores = chain.best(seen)
    np.testing.assert_allclose(scores, best_scores, rtol=1e-11)
    if spread:
        assert (paths[fine] == best[fine]).all()


@pytest.mark.slow
def test_a_million_steps_agree_and_a_far_state_is_not_lost(scans):
    rng = np.random.default_rng(0)
    chain = chain_of(2, rng, zeros=0.0)
    seen = Observed.of(5.0 * rng.normal(size=(1_000_000, 2)) - 40.0)
    found, smoothed = parallel_sums(chain, seen, smoothing=True)
    assert not scans
    assert found.log_probs == pytest.approx(chain.filter(seen).log_probs, rel=1e-12)
    np.testing.assert_allclose(smoothed, chain.smooth(seen).sums, atol=1e-8)


def test_what_falls_below_all_numbers_and_comes_back_is_left_to_logarithms(scans):
    chain = HiddenChain([0.5, 0.5], np.eye(2))
    # each state is worth nothing for long, and in the end the first one wins by a factor of e
    away = np.array([[0.0, -500.0]] * 40 + [[-500.0, 0.0]] * 39 + [[-499.0, 0.0]])
    found, smoothed = parallel_sums(chain, Observed.of(away), smoothing=True)
    assert scans
    np.testing.assert_allclose(smoothed[:, 0], np.e / (1.0 + np.e), atol=1e-9)
    assert found.log_probs[0] == pytest.approx(-500.0 * 40 + 1 + np.log(0.5 * (1 + np.exp(-1))), abs=1e-6)
    fixed = HiddenChain([1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]])
    back = np.array([[-np.inf, 0.0]] * 30 + [[0.0, -np.inf]])  # impossible: nothing leads back
    assert parallel_sums(fixed, Observed.of(back), smoothing=False)[0].stuck.tolist() == [0]


def test_the_verbs_of_models_take_it():
    rng = np.random.default_rng(1)
    series = [rng.normal(size=(n, 1)) + np.arange(n)[:, None] // 20 % 2 * 3 for n in (60, 45)]
    inputs = [rng.normal(size=(len(x), 1)) for x in series]
    hmm = mk.HMM(2, emission="gaussian", inputs_to="transitions", random_state=0, max_iter=3, tol=0)
    hmm.fit(series, inputs=inputs)
    for verb in ("smooth", "decode"):  # of a chain with a table for each step
        ours = getattr(hmm, verb)(series, inputs=inputs, parallel="time")
        for one, other in zip(ours, getattr(hmm, verb)(series, inputs=inputs), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-10)
    marginal = hmm.decode(series, inputs=inputs, method="max-marginal", parallel="time")
    assert (marginal[0] == hmm.smooth(series, inputs=inputs)[0].argmax(axis=1)).all()
    with pytest.raises(InvalidArgument, match="pairs= are not found in parallel"):
        hmm.smooth(series, inputs=inputs, pairs=True, parallel="time")
    with pytest.raises(MarkoviaError, match="parallel"):
        hmm.filter(series, inputs=inputs, parallel="space")


def test_an_impossible_sequence_is_named_and_visits_are_refused():
    coin = mk.HMM(2, start=[1, 0], transition=np.eye(2), emission_params={"probs": np.eye(2)})
    for verb in (coin.filter, coin.smooth, coin.decode):
        with pytest.raises((ImpossibleEvidence, InvalidArgument), match="step 2"):
            verb([0, 0, 1, 0], parallel="time")
    assert coin.log_prob([[0, 0], [0, 1]], parallel="time").tolist() == [0.0, -np.inf]
    np.testing.assert_allclose(coin.filter([0, 0, 0], parallel="time")[0], [[1.0, 0.0]] * 3)
    visits = mk.series.HiddenSemiMarkov(2, max_duration=3, random_state=0, max_iter=1).fit([0, 1, 1, 0, 0, 1])
    with pytest.raises(UnsupportedModel, match="leave out parallel='time'"):
        visits.filter([0, 1], parallel="time")
