"""Markov chains from data: counts, orders, smoothing, gaps, hitting times, and the networks they stand for."""

import copy
from itertools import product

import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
from markovia.errors import IncompleteModel, InvalidArgument, InvalidTable, TooLarge, UnsupportedModel


def random_chain(rng, n=3, order=1):
    shape = (n,) * order
    return mk.MarkovChain(
        rng.dirichlet(np.ones(n), shape), start=rng.dirichlet(np.ones(n**order)).reshape(shape), order=order
    )


@pytest.mark.parametrize("order", [1, 2, 3])
def test_counts_with_pseudo_counts_by_hand(order):
    rng = np.random.default_rng(order)
    data = [rng.integers(0, 2, size=t) for t in (30, 17, 5)]
    weights = [1.0, 2.0, 0.5]
    chain = mk.MarkovChain(order=order, smoothing=0.5).fit(data, sample_weight=weights)
    for history in product(range(2), repeat=order):
        counts = np.full(2, 0.5)
        for one, w in zip(data, weights, strict=True):
            for t in range(order, len(one)):
                if tuple(one[t - order : t]) == history:
                    counts[one[t]] += w
        assert chain.table[history] == pytest.approx(counts / counts.sum())
    first = 0.5 + sum(w * np.eye(2)[one[0]] for one, w in zip(data, weights, strict=True))
    assert chain.start.reshape((2,) * order).sum(axis=tuple(range(1, order))) == pytest.approx(
        first / first.sum()
    )


def test_a_strong_back_off_is_the_shorter_history_and_none_is_counting():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 3, size=400)
    one, two = mk.MarkovChain().fit(x), mk.MarkovChain(order=2, back_off=1e9).fit(x)
    zero = np.bincount(x) / len(x)
    assert two.table == pytest.approx(np.broadcast_to(zero, (3, 3, 3)), abs=1e-5)
    c = 5.0
    both = mk.MarkovChain(order=1, back_off=c).fit(x)
    n = np.array([np.sum(x[:-1] == i) for i in range(3)])[:, None]
    assert both.table == pytest.approx((one.table * n + c * zero) / (n + c))


def test_a_history_never_seen_has_the_law_of_the_shorter_one():
    chain = mk.MarkovChain(order=2, states=[0, 1]).fit([0, 0, 1, 0, 0])
    assert chain.table[1, 1].tolist() == [1.0, 0.0]  # after a 1 came a 0


@pytest.mark.slow
@pytest.mark.parametrize("order", [1, 2, 3])
def test_gaps_and_short_sequences_agree_with_the_unrolled_network(order):
    rng = np.random.default_rng(10 + order)
    chain = random_chain(rng, 2, order)
    network = chain.unroll(6)
    for gaps in ([], [0], [2, 3], [5], [0, 1, 2, 3, 4]):
        x = rng.integers(0, 2, size=6).astype(float)
        x[gaps] = np.nan
        given = {f"x{t}": int(v) for t, v in enumerate(x) if v == v}
        assert chain.log_prob([x])[0] == pytest.approx(network.log_evidence(given), abs=1e-10)
        known = {n: v for n, v in given.items() if n != "x5"}
        ahead = chain.forecast([x[:5]])[0][0]
        assert ahead[1] == pytest.approx(network.query("x5", given=known)[1], abs=1e-10)
    assert chain.log_prob([[1, 0]])[0] == pytest.approx(
        chain.unroll(6).log_evidence({"x0": 1, "x1": 0}), abs=1e-10
    )


def test_forecasts_further_ahead_agree_with_the_network():
    chain = random_chain(np.random.default_rng(3), 3, 2)
    found = chain.forecast([[0, 2, 1]], steps=3)[0]
    for h in range(3):
        exact = chain.unroll(6).query(f"x{3 + h}", given={"x0": 0, "x1": 2, "x2": 1})
        assert found[h] == pytest.approx([exact[s] for s in range(3)], abs=1e-10)
    assert chain.predict([[0, 2, 1]]) == [int(found[0].argmax())]


def test_the_dynamic_network_answers_identically():
    chain = random_chain(np.random.default_rng(5), 3)
    network = chain.network()
    exact = network.query("x@4", given={"x@1": 2})
    assert [exact[s] for s in range(3)] == pytest.approx(chain.after(3, 2), abs=1e-12)
    with pytest.raises(UnsupportedModel, match="order 2"):
        random_chain(np.random.default_rng(5), 3, 2).network()


def test_a_hidden_markov_model_that_shows_its_states_is_a_chain():
    rng = np.random.default_rng(6)
    chain = random_chain(rng, 3)
    shown = mk.HMM(3, start=chain.start, transition=chain.transition, emission_params={"probs": np.eye(3)})
    data = [rng.integers(0, 3, size=t) for t in (1, 4, 9)]
    assert chain.log_prob(data) == pytest.approx(shown.log_prob(data), abs=1e-10)


def test_draws_have_the_laws_of_the_chain():
    chain = random_chain(np.random.default_rng(7), 2, 2)
    drawn = chain.sample(40, 3000, seed=0)
    again = mk.MarkovChain(order=2).fit(drawn)
    many = sum(np.bincount(2 * x[:-2] + x[1:-1], minlength=4) for x in drawn).reshape(2, 2, 1)
    assert (np.abs(again.table - chain.table) < 2 / np.sqrt(many)).all()  # four standard errors
    assert again.start == pytest.approx(chain.start, abs=0.03)
    named = mk.MarkovChain([[0, 1], [1, 0]], ["a", "b"], start=[0, 1])
    assert named.sample(3, 2, seed=1)[0].tolist() == ["b", "a", "b"]
    assert len(chain.sample(1, seed=0)) == 1


def test_a_higher_order_chain_is_a_chain_of_histories():
    rng = np.random.default_rng(8)
    chain = random_chain(rng, 2, 2)
    assert chain.states == [(0, 0), (0, 1), (1, 0), (1, 1)]
    p = chain.stationary()
    assert p @ chain.transition == pytest.approx(p)
    long = chain.sample(60_000, seed=2)
    seen = np.bincount(2 * long[:-1] + long[1:], minlength=4) / (len(long) - 1)
    assert seen == pytest.approx(p, abs=0.02)
    times = chain.hitting_times(1)
    assert times[[1, 3]].tolist() == [0.0, 0.0]
    assert times[0] == pytest.approx(1 + chain.table[0, 0, 0] * times[0])


def test_the_order_is_found_by_the_criterion():
    chain = random_chain(np.random.default_rng(9), 2, 2)
    data = chain.sample(200, 40, seed=3)
    scores = [mk.MarkovChain(order=k).fit(data).bic(data) for k in (1, 2, 3)]
    assert np.argmin(scores) == 1
    assert mk.MarkovChain(order=2).fit(data).n_free == 3 + 4


def test_gamblers_ruin_has_its_closed_form():
    p, n = 0.4, 6
    table = np.zeros((n + 1, n + 1))
    table[0, 0] = table[n, n] = 1.0
    for i in range(1, n):
        table[i, i + 1], table[i, i - 1] = p, 1 - p
    chain = mk.MarkovChain(table)
    r = (1 - p) / p
    i = np.arange(n + 1)
    win = (1 - r**i) / (1 - r**n)
    assert chain.hitting_probabilities(n) == pytest.approx(win)
    assert chain.absorption_probabilities() == pytest.approx(np.column_stack([1 - win, win]))
    assert chain.absorption_times() == pytest.approx(i / (1 - 2 * p) - n / (1 - 2 * p) * win)
    assert chain.hitting_times(n).tolist() == [np.inf] * n + [0.0]
    assert chain.hitting_times([0, n])[0] == 0.0


def test_hitting_times_agree_with_simulation():
    chain = random_chain(np.random.default_rng(11), 4)
    exact = chain.hitting_times([2])
    rng = np.random.default_rng(0)
    steps = []
    for _ in range(2000):
        state, t = 0, 0
        while state != 2:
            state, t = int(rng.choice(4, p=chain.transition[state])), t + 1
        steps.append(t)
    assert np.mean(steps) == pytest.approx(exact[0], abs=4 * np.std(steps) / 2000**0.5)


def test_copies_and_clones():
    chain = mk.MarkovChain(order=2, smoothing=1.0).fit([0, 1, 1, 0, 1])
    assert np.array_equal(copy.deepcopy(chain).table, chain.table)
    bare = clone(chain)
    assert (bare.order, bare.smoothing) == (2, 1.0)
    with pytest.raises(IncompleteModel, match="fit"):
        bare.log_prob([[0, 1]])
    assert repr(bare) == "MarkovChain(order 2, not fitted)"


def test_bad_input_is_refused_and_the_chain_stays_as_it_was():
    chain = mk.MarkovChain().fit([[0, 1, 1], [1, 0]])
    before = chain.transition
    for data, said in [
        ([[0, 1], []], "sequence 1 has no steps"),
        ([np.nan, np.nan], "missing"),
        ([np.zeros((2, 2))], "one symbol a step"),
    ]:
        with pytest.raises(InvalidArgument, match=said):
            chain.fit(data)
        assert chain.transition is before
    with pytest.raises(InvalidArgument, match="step 1 of sequence 0 has 7"):
        chain.log_prob([[0, 7]])
    with pytest.raises(InvalidArgument, match="lengths= add up"):
        chain.fit([0, 1, 1], [2])
    with pytest.raises(InvalidArgument, match="weight of sequence 1 is -1"):
        chain.fit([[0], [1]], sample_weight=[1, -1])
    with pytest.raises(InvalidArgument, match="2 sequences"):
        chain.fit([[0], [1]], sample_weight=[1])
    with pytest.raises(InvalidArgument, match="all 0"):
        chain.fit([[0], [1]], sample_weight=[0, 0])
    with pytest.raises(InvalidArgument, match="order= is a whole number"):
        mk.MarkovChain(order=0)
    with pytest.raises(InvalidTable, match="3 axes"):
        mk.MarkovChain(np.eye(2), order=2)
    with pytest.raises(InvalidArgument, match="add up to 1"):
        mk.MarkovChain(np.eye(2), start=[0.5, 0.2])
    with pytest.raises(InvalidArgument, match="no symbol or history"):
        random_chain(np.random.default_rng(0), 2, 2).hitting_times(9)
    with pytest.raises(InvalidArgument, match="fewer than 2 steps"):
        random_chain(np.random.default_rng(0), 2, 2).forecast([[1]])
    with pytest.raises(TooLarge, match="lower order="):
        mk.MarkovChain(order=9).fit(np.arange(10))


def test_what_comes_after_the_targets_does_not_delay_them():
    chain = mk.MarkovChain([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])
    assert chain.hitting_times(1).tolist() == [2.0, 0.0, np.inf]
    assert chain.hitting_probabilities(1).tolist() == [1.0, 1.0, 0.0]
