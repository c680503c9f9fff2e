import contextlib
import io
import subprocess
import sys
from collections import Counter
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.learning.control.reward_fit import reward_fit
from markovia.learning.control.reward_tilt import ChainTilt, TiltPowers, listed_tilt
from markovia.learning.control.sequence_rewards import (
    OneChangeReward,
    StepReward,
    WholeReward,
    sequence_reward,
)
from markovia.models.temporal.hmm import HMM
from markovia.models.temporal.markov_chain import MarkovChain


def random_chain(rng, n=3, order=1, **settings_):
    table = rng.dirichlet(np.ones(n), size=(n,) * order)
    return MarkovChain(
        table, list("abcdefgh"[:n]), start=rng.dirichlet(np.ones(n**order)), order=order, **settings_
    )


def tilted(chain, wanted, reward, kl, entropy):
    """Return all sequences and their q, by the formula."""
    rows = list(product(chain.symbols, repeat=len(wanted)))
    log_p = chain.log_prob([list(r) for r in rows])
    gains = np.array([reward(list(r), list(wanted)) for r in rows])
    with np.errstate(invalid="ignore"):
        logs = (np.where(kl == 0.0, 0.0, kl * log_p) + gains) / (kl + entropy)
    q = np.exp(logs - logs.max())
    return rows, q / q.sum(), log_p


def hamming(said, wanted):
    return -sum(a != b for a, b in zip(said, wanted, strict=True))


def matched_pairs(said, wanted):
    """Return the share of the pairs of neighbours that were wanted, each as often as there: a small BLEU."""
    pairs = [Counter(pairwise(s)) for s in (said, wanted)]
    return (pairs[0] & pairs[1]).total() / max(1, pairs[0].total())


# -- the members of the family -------------------------------------------------------------------------------


def test_reward_augmented_likelihood_has_the_reference_number():
    chain = MarkovChain(np.full((4, 4), 0.25))
    found = reward_fit(chain, "hamming", [[0, 1, 2]], kl=0.0, entropy=1.0)
    assert np.exp(found.log_tilt([0, 1, 2])) == pytest.approx(0.107420403, abs=5e-10)
    assert found.exact
    assert found.converged


def test_exact_rewards_without_divergence_are_maximum_likelihood():
    data = [["a", "b", "b"], ["b", "a", "b"], ["a", "a", "b"]]
    chain = MarkovChain(states=["a", "b"], smoothing=0.5)
    found = reward_fit(chain, "exact", data, kl=0.0, entropy=1.0)
    alone = MarkovChain(states=["a", "b"], smoothing=0.5).fit(data)
    assert found.model.table == pytest.approx(alone.table)
    assert found.model.start == pytest.approx(alone.start)
    assert found.log_tilt(data[0]) == pytest.approx(0.0)
    # a finite penalty comes near it as kl falls, and to the model as it grows
    near = [
        reward_fit(
            alone,
            lambda s, w: 0.0 if s == w else -50.0,
            data[:1],
            kl=kl,
            entropy=1e-9,
            max_iter=1,
            tolerance=0.0,
        )
        for kl in (1e-3, 1e6)
    ]
    near = [np.exp(found.log_tilt(data[0], start=True)) for found in near]
    assert near[0] == pytest.approx(1.0)
    assert near[1] == pytest.approx(np.exp(alone.log_prob(data[:1])[0]), rel=1e-3)


def test_noise_on_data_is_uniform_on_neighbours():
    chain = MarkovChain(np.full((4, 4), 0.25))
    found = reward_fit(chain, "one-change", [[0, 1, 2]])
    near = [list(r) for r in product(range(4), repeat=3) if hamming(r, [0, 1, 2]) == -1]
    assert len(near) == 3 * (4 - 1)
    assert [np.exp(found.log_tilt(r)) for r in near] == pytest.approx([1 / 9] * 9)
    assert found.log_tilt([0, 1, 2]) == -np.inf
    assert sorted(OneChangeReward().possible(np.array([0, 1, 2]), range(4)).tolist()) == near


def test_softmax_policy_gradient_and_the_model_itself_are_the_ends_of_the_divergence():
    rng = np.random.default_rng(0)
    chain, wanted = random_chain(rng), list("abc")
    rows, q, log_p = tilted(chain, wanted, hamming, 1.0, 0.0)
    weights = np.exp(log_p + [hamming(r, wanted) for r in rows])
    assert q == pytest.approx(weights / weights.sum())
    spg = reward_fit(chain, "hamming", [wanted], kl=1.0, entropy=0.0, max_iter=1, tolerance=0.0)
    assert [np.exp(spg.log_tilt(r, start=True)) for r in rows] == pytest.approx(q)
    far = reward_fit(chain, "hamming", [wanted], kl=1e9, entropy=1.0, max_iter=1, tolerance=0.0)
    assert [far.log_tilt(r, start=True) for r in rows] == pytest.approx(log_p, abs=1e-6)
    flat = reward_fit(chain, "hamming", [wanted], kl=1.0, entropy=1e9, max_iter=1, tolerance=0.0)
    assert [np.exp(flat.log_tilt(r, start=True)) for r in rows] == pytest.approx([1 / 27] * 27, rel=1e-6)


def test_small_rewards_weigh_sequences_as_the_policy_gradient_does():
    rng = np.random.default_rng(1)
    chain, wanted, c = random_chain(rng), list("abca"), 1e-6
    rows = list(product(chain.symbols, repeat=4))
    p = np.exp(chain.log_prob([list(r) for r in rows]))
    gains = np.array([hamming(r, wanted) for r in rows])
    found = reward_fit(
        chain,
        StepReward(lambda s, w: -c * (s != w)),
        [wanted],
        kl=1.0,
        entropy=0.0,
        max_iter=1,
        tolerance=0.0,
    )
    q = np.exp([found.log_tilt(r, start=True) for r in rows])
    assert (q - p) / c == pytest.approx(p * (gains - p @ gains), abs=1e-5)


# -- against the formula -------------------------------------------------------------------------------------


@given(
    st.integers(0, 10**6),
    st.sampled_from([1, 2]),
    st.sampled_from([(0.0, 1.0), (1.0, 0.0), (0.7, 0.4), (3.0, 0.1)]),
)
@settings(max_examples=30, deadline=None)
def test_messages_on_a_chain_find_what_listing_finds(seed, order, weights):
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, 3, order)
    wanted = [rng.integers(3, size=int(rng.integers(order, 5))) for _ in range(3)]
    reward = StepReward(lambda s, w: -0.5 * abs(ord(s) - ord(w)))
    powers = TiltPowers(*weights)

    def log_prob(rows):
        return chain.log_prob([[chain.symbols[c] for c in r] for r in rows.tolist()])

    fast = ChainTilt(chain, reward.steps(chain.symbols), wanted, powers)
    slow = listed_tilt(log_prob, reward, wanted, chain.symbols, powers)
    assert fast.log_masses() == pytest.approx(slow.log_masses())
    one = fast.fitted(chain)
    other = slow.fitted(MarkovChain(states=chain.symbols, order=order))
    assert one.table == pytest.approx(other.table)
    assert one.start == pytest.approx(other.start)
    told = [chain.symbols[c] for c in wanted[0]]
    q = tilted(
        chain,
        told,
        lambda s, w: -0.5 * sum(abs(ord(a) - ord(b)) for a, b in zip(s, w, strict=True)),
        *weights,
    )[1]
    assert slow.weights[0] == pytest.approx(q)


@pytest.mark.parametrize(("smoothing", "back_off"), [(0.5, 0.0), (0.0, 2.0), (0.3, 1.5)])
def test_the_fit_of_expected_counts_smooths_as_the_chain_does(smoothing, back_off):
    rng = np.random.default_rng(2)
    chain = random_chain(rng, 2, 2, smoothing=smoothing, back_off=back_off)
    wanted, reward, powers = [np.array([0, 1, 1, 0])], StepReward(), TiltPowers(0.5, 0.5)

    def log_prob(rows):
        return chain.log_prob([[chain.symbols[c] for c in r] for r in rows.tolist()])

    one = ChainTilt(chain, reward.steps(chain.symbols), wanted, powers).fitted(chain)
    other = MarkovChain(states=chain.symbols, order=2, smoothing=smoothing, back_off=back_off)
    listed_tilt(log_prob, reward, wanted, chain.symbols, powers).fitted(other)
    assert one.table == pytest.approx(other.table)
    assert one.start == pytest.approx(other.start)


def test_a_tilt_with_divergence_alone_is_posterior_regularisation():
    chain = random_chain(np.random.default_rng(3))
    network = chain.unroll(3)
    wanted = ["a", "c", "b"]
    features = [
        mk.Feature(network.variable(f"x{t}"), [float(s == w) for s in chain.symbols], f"same {t}")
        for t, w in enumerate(wanted)
    ]
    pulled, projection = mk.posterior_regularisation(network, features, weights=1.0)
    found = reward_fit(chain, "hamming", [wanted], kl=1.0, entropy=0.0, max_iter=1, tolerance=0.0)
    # the reward counts what differs, the features what agrees: three less
    assert found.history[0] == pytest.approx(-projection.objective - 3.0)
    for row in (wanted, ["a", "a", "a"]):
        table = pulled.query(["x0", "x1", "x2"]).factor()
        where = {f"x{t}": chain.symbols.index(s) for t, s in enumerate(row)}
        assert found.log_tilt(row, start=True) == pytest.approx(
            np.log(table.values[tuple(where[n] for n in table.names)])
        )


# -- the ascent ----------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_the_objective_never_falls_and_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    chain, kl, entropy = random_chain(rng), 0.6, 0.3
    data = [[chain.symbols[c] for c in rng.integers(3, size=4)] for _ in range(4)]
    found = reward_fit(chain, "hamming", data, kl=kl, entropy=entropy, max_iter=300, tolerance=1e-10)
    assert (np.diff(found.history) >= -1e-10).all()
    worth = 0.0
    for wanted in data:
        rows, q, log_p = tilted(chain, wanted, hamming, kl, entropy)
        gains = np.array([hamming(r, wanted) for r in rows])
        worth += q @ gains - kl * (q @ (np.log(q) - log_p)) - entropy * (q @ np.log(q))
    assert found.history[0] == pytest.approx(worth / 4)


def test_whole_rewards_are_listed_or_drawn_and_draws_come_near():
    rng = np.random.default_rng(5)
    chain = random_chain(rng, 3, smoothing=0.1)
    data = [list("abcab"), list("bcabc")]
    listed = reward_fit(chain, matched_pairs, data, kl=0.3, entropy=0.1, max_iter=3, tolerance=0.0)
    drawn = reward_fit(
        chain, matched_pairs, data, kl=0.3, entropy=0.1, max_iter=3, tolerance=0.0, method="drawn", draws=3000
    )
    assert (listed.method, drawn.method, drawn.exact) == ("listed", "drawn", False)
    assert drawn.history[0] == pytest.approx(listed.history[0], abs=0.03)
    assert drawn.model.table == pytest.approx(listed.model.table, abs=0.06)
    assert (drawn.effective_draws > 100).all()
    assert "effective draws" in str(drawn)
    again = reward_fit(
        chain, matched_pairs, data, kl=0.3, entropy=0.1, max_iter=3, tolerance=0.0, method="drawn", draws=3000
    )
    assert (again.model.table == drawn.model.table).all()


def test_rewards_raise_the_mean_reward_of_what_the_model_says():
    chain = MarkovChain(np.full((3, 3), 1 / 3), list("abc"))
    data = [list("abcabc")]
    before, after = (
        np.mean([matched_pairs(list(s), data[0]) for s in m.sample(6, 400, seed=0)])
        for m in (
            chain,
            reward_fit(chain, matched_pairs, data, kl=0.1, entropy=0.05, max_iter=20, tolerance=0.0).model,
        )
    )
    assert after > before + 0.3


def test_a_hidden_markov_model_is_fitted_by_draws():
    data = [[0, 1, 0, 1, 0, 1]] * 2
    model = HMM(2, emission="categorical", random_state=0, max_iter=300).fit([[0, 1, 1, 0, 0, 1, 0, 1]] * 3)
    found = reward_fit(
        model, "hamming", data, kl=0.2, entropy=0.1, method="drawn", draws=300, max_iter=3, tolerance=0.0
    )
    assert found.model.log_prob(data)[0] > model.log_prob(data)[0]
    assert found.effective_draws.shape == (2,)


@given(st.integers(0, 10**6))
@settings(max_examples=10, deadline=None)
def test_a_hidden_chain_is_tilted_exactly_without_entropy_and_its_objective_never_falls(seed):
    rng = np.random.default_rng(seed)
    hmm = HMM(
        2, start=rng.dirichlet([1, 1]), transition=rng.dirichlet([1, 1], 2), symbols=["a", "b", "c"],
        emission_params={"probs": rng.dirichlet([1, 1, 1], 2)}, max_iter=1, tol=0.0,
    )  # fmt: skip
    data = [list("abca"), list("cab")]
    fast = reward_fit(hmm, "hamming", data, kl=0.7, entropy=0.0, max_iter=60, tolerance=0.0)
    slow = reward_fit(hmm, "hamming", data, kl=0.7, entropy=0.0, max_iter=1, tolerance=0.0, method="listed")
    assert (fast.method, slow.method) == ("chain", "listed")
    assert fast.history[0] == pytest.approx(slow.history[0])
    assert (np.diff(fast.history) >= -1e-12).all()
    # the law of single symbols after the first step of the fit: q's own, position by position, mixed over the states
    one = reward_fit(hmm, "hamming", data, kl=0.7, entropy=0.0, max_iter=1, tolerance=0.0)
    tilt = slow.tilt(start=True)
    counts = np.zeros(3)
    for rows, w in zip(tilt.candidates, tilt.weights, strict=True):
        np.add.at(counts, rows, np.repeat(w[:, None], rows.shape[1], axis=1))
    assert one.tilt(start=True).said.sum(axis=0) == pytest.approx(counts)
    assert fast.log_tilt("abca", start=True) == pytest.approx(slow.log_tilt("abca", start=True))


def test_the_model_that_is_given_stays_as_it_is_and_one_without_values_is_fitted_first():
    chain = random_chain(np.random.default_rng(0))
    table = chain.table.copy()
    reward_fit(chain, "hamming", [list("abc")], kl=0.5, entropy=0.5, max_iter=3, tolerance=0.0)
    assert (chain.table == table).all()
    assert reward_fit(MarkovChain(), "exact", [[0, 1], [1, 1]]).model.start.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_rewards_and_weights_in_other_units_give_the_same_model(unit):
    chain = random_chain(np.random.default_rng(8))
    plain = reward_fit(chain, "hamming", [list("abca")], kl=0.5, entropy=0.5, max_iter=5, tolerance=0.0)
    other = reward_fit(
        chain, StepReward(lambda s, w: -unit * (s != w)), [list("abca")], kl=0.5 * unit, entropy=0.5 * unit, max_iter=5,
        tolerance=0.0,
    )  # fmt: skip
    assert other.model.table == pytest.approx(plain.model.table)


def test_one_symbol_one_step_and_equal_rewards():
    alone = MarkovChain([[1.0]])
    assert reward_fit(alone, "hamming", [[0]]).log_tilt([0]) == pytest.approx(0.0)
    chain = random_chain(np.random.default_rng(1))
    found = reward_fit(
        chain, StepReward(lambda s, w: 7.0), [list("ab")], kl=1.0, entropy=0.0, max_iter=1, tolerance=0.0
    )
    assert found.log_tilt(list("ab"), start=True) == pytest.approx(chain.log_prob([list("ab")])[0])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"kl": 0.0, "entropy": 0.0}, "kl= or entropy="), ({"kl": -1.0}, "kl="), ({"entropy": np.nan}, "entropy="),
        ({"reward": "bleu"}, "reward= is"), ({"reward": lambda s, w: np.nan}, "never NaN"), ({"data": []}, "data="),
        ({"data": [[]]}, "data="), ({"data": [["a", "z"]]}, "'z'"),
        ({"method": "chain", "reward": matched_pairs}, "method='chain'"),
        ({"method": "listed", "data": [list("abc") * 9]}, "method='drawn'"), ({"reward": StepReward("bleu")}, "'hamming'"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(changes, words):
    given_ = {"reward": "hamming", "data": [list("abc")], **changes}
    with pytest.raises(InvalidArgument, match=words):
        reward_fit(random_chain(np.random.default_rng(0)), **given_)


def test_what_the_model_rules_out_has_no_tilt_with_divergence_and_one_without():
    chain = MarkovChain([[1.0, 0.0], [0.0, 1.0]], start=[1.0, 0.0])
    with pytest.raises(InvalidArgument, match="no sequence that is possible"):
        reward_fit(chain, "exact", [[0, 1]], kl=1.0)
    assert reward_fit(chain, "hamming", [[0, 1]], kl=0.0).log_tilt([0, 1]) == pytest.approx(
        -2 * np.log1p(np.exp(-1))
    )


def test_words_stand_for_rewards():
    assert isinstance(sequence_reward(matched_pairs), WholeReward)
    assert sequence_reward("hamming").values(np.array([[0, 1]]), np.array([1, 1]), [0, 1]).tolist() == [-1.0]


@pytest.mark.slow
def test_a_second_process_fits_the_same_model():
    code = (
        "from markovia.learning.control.reward_fit import reward_fit\n"
        "from markovia.models.temporal.markov_chain import MarkovChain\n"
        "f = reward_fit(MarkovChain([[.5, .5], [.2, .8]]), lambda s, w: float(s == w), [[0, 1, 1]], kl=.5, entropy=.5,\n"
        "    method='drawn', draws=50, max_iter=3, tolerance=0.0)\n"
        "print(f.model.table.tolist())"
    )
    here = io.StringIO()
    with contextlib.redirect_stdout(here):
        exec(code, {})
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other == here.getvalue() != ""
