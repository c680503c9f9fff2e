"""Shapes of hidden Markov models: masks, tied states, segments; against the unrolled network where that can be."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument

DATA = [np.random.default_rng(s).integers(0, 3, 25) for s in range(4)]


@pytest.mark.parametrize(
    ("structure", "band", "allowed"),
    [
        ("left-right", None, [[1, 1, 1, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 0, 0, 1]]),
        ("left-right", 1, [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [0, 0, 0, 1]]),
        ("banded", None, [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]),
        ("cyclic", None, [[1, 1, 0, 0], [0, 1, 1, 0], [0, 0, 1, 1], [1, 0, 0, 1]]),
        ("ergodic", None, np.ones((4, 4))),
    ],
)
def test_a_structure_allows_its_moves_and_no_others(structure, band, allowed):
    hmm = mk.HMM(4, structure=structure, band=band, transition_prior=2.0, random_state=0, tol=1.0).fit(DATA)
    assert ((hmm.transmat_ > 0) == np.array(allowed, dtype=bool)).all()
    assert hmm.transmat_.sum(axis=1) == pytest.approx(np.ones(4))
    assert structure != "left-right" or hmm.startprob_.tolist() == [1, 0, 0, 0]
    free = np.maximum(np.sum(allowed, axis=1) - 1, 0).sum() + (0 if structure == "left-right" else 3)
    assert hmm.aic(DATA) == pytest.approx(2 * (free + 4 * 2) - 2 * hmm.score(DATA))


def test_fixed_moves_stay_and_the_others_learn_as_much_as_they_can():
    free = np.nan
    mask = [[0.7, free, free], [free, free, 0.0], [0.25, 0.25, 0.5]]
    hmm = mk.HMM(3, transition_mask=mask, random_state=1, tol=0, max_iter=150).fit(DATA)
    assert hmm.transmat_[0, 0] == 0.7
    assert hmm.transmat_[1, 2] == 0.0
    assert hmm.transmat_[2].tolist() == [0.25, 0.25, 0.5]
    assert np.diff(hmm.history_).min() > -1e-9
    for i, (a, b) in enumerate([(1, 2), (0, 1)]):  # at a maximum no shift between free entries gains
        for shift in (1e-3, -1e-3):
            moved = hmm.transmat_.copy()
            moved[i, [a, b]] += shift, -shift
            if (moved >= 0).all():
                other = mk.HMM(
                    3,
                    start=hmm.startprob_,
                    transition=moved,
                    emission_params={"probs": hmm.emissionprob_},
                )
                assert other.score(DATA) < hmm.score(DATA)
    assert hmm.aic(DATA) == pytest.approx(2 * (2 + 1 + 1 + 3 * 2) - 2 * hmm.score(DATA))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"transition_mask": np.eye(2)}, "shape 3 x 3"),
        ({"transition_mask": np.full((3, 3), 0.5)}, "NaN for free"),
        ({"transition_mask": [[0, 0, 0], [1, 1, 1], [1, 1, 1]]}, "row 0 .* none is free"),
        ({"transition_mask": [[np.nan, 0.6, 0.5]] + [[np.nan] * 3] * 2}, "row 0 .* sum to 1.1"),
        ({"structure": "left-right", "transition": np.full((3, 3), 1 / 3)}, "from state 1 to 0, which is fixed at 0"),
        ({"structure": "ring"}, "structure= is "),
        ({"tied": [[0, 1], [1]]}, "a state in two places"),
        ({"tied": [[0, 3]]}, "states 0 to 2"),
    ],
)  # fmt: skip
def test_shapes_that_cannot_be_are_named(settings, said):
    with pytest.raises(InvalidArgument, match=said):
        mk.HMM(3, **settings).fit(DATA)


def test_tied_states_share_what_they_emit_and_shape_a_duration():
    # a chain of two states that look alike lasts at least two steps: a duration that no single state has
    mask = [[1, 1, 0], [0, 1, 1], [1, 0, 1]]
    truth = mk.HMM(
        3,
        tied=[[0, 1]],
        start=[1, 0, 0],
        transition=[[0.5, 0.5, 0], [0, 0.6, 0.4], [0.3, 0, 0.7]],
        emission="gaussian",
        emission_params={"means": [[0.0], [5.0]], "covariances": np.ones((2, 1, 1))},
    )
    x, z = truth.sample(400, 3, seed=0)
    hmm = mk.HMM(
        3,
        tied=[[0, 1]],
        transition_mask=mask,
        emission="gaussian",
        emission_params={"means": [[1.0], [4.0]], "covariances": np.ones((2, 1, 1))},
        random_state=0,
        max_iter=200,
    ).fit(x)
    assert np.diff(hmm.history_).min() > -1e-9
    assert hmm.means_[:, 0] == pytest.approx([0, 5], abs=0.15)
    free = 2 + 3 + 2 * 2
    assert hmm.aic(x) == pytest.approx(2 * free - 2 * hmm.score(x))
    own = mk.HMM(
        3,
        start=hmm.startprob_,
        transition=hmm.transmat_,
        emission="gaussian",
        emission_params={"means": hmm.means_[[0, 0, 1]], "covariances": hmm.covars_[[0, 0, 1]]},
    )
    assert hmm.log_prob(x) == pytest.approx(own.log_prob(x))
    told = mk.HMM(3, tied=[[0, 1]], emission="gaussian").fit(x, labels=z)
    path, values = np.concatenate(z), np.concatenate(x)[:, 0]
    assert told.means_[:, 0] == pytest.approx([values[path < 2].mean(), values[path == 2].mean()])


def test_tied_states_hand_over_their_network():
    hmm = mk.HMM(
        3,
        tied=[[0, 2]],
        start=[0.2, 0.3, 0.5],
        transition=[[0.1, 0.8, 0.1], [0.3, 0.3, 0.4], [0.6, 0.2, 0.2]],
        emission_params={"probs": [[0.9, 0.1], [0.3, 0.7]]},
    )
    network = hmm.unroll(3)
    given = {"x0": 0, "x1": 1, "x2": 0}
    assert hmm.log_prob([0, 1, 0])[0] == pytest.approx(network.log_evidence(given))
    for t in range(3):
        assert hmm.smooth([0, 1, 0])[0][t] == pytest.approx(network.query(f"z{t}", given=given).values)


def test_the_probability_of_a_segment_is_that_of_the_network():
    rng = np.random.default_rng(2)
    hmm = mk.HMM(
        3,
        start=rng.dirichlet(np.ones(3)),
        transition=rng.dirichlet(np.ones(3), 3),
        emission_params={"probs": rng.dirichlet(np.ones(2), 3)},
    )
    x = [0, 1, 1, 0]
    joint = hmm.unroll(4).query(["z0", "z1", "z2", "z3"], given={f"x{t}": v for t, v in enumerate(x)}).values
    assert hmm.segment_prob(x, 1, [2, 2, 0]) == pytest.approx([joint[:, 2, 2, 0].sum()])
    assert hmm.segment_prob(x, 0, [[0, 1], None, {2}]) == pytest.approx([joint[:2, :, 2].sum()])
    two = hmm.segment_prob([x, [0, 1]], 1, [2])
    assert two == pytest.approx([joint[:, :, :, :].sum(axis=(0, 2, 3))[2], hmm.smooth([0, 1])[0][1, 2]])
    for states, first, said in (
        ([3], 0, "states= has 3"),
        ([], 0, "there is none"),
        ([0, 0], 1, "sequence 1"),
    ):
        with pytest.raises(InvalidArgument, match=said):
            hmm.segment_prob([x, [0, 1]], first, states)


def test_expected_durations_are_those_of_drawn_visits():
    hmm = mk.HMM(2, start=[1, 0], transition=[[0.8, 0.2], [1, 0]], emission_params={"probs": np.eye(2)})
    _, z = hmm.sample(20_000, seed=0)
    bounds = np.flatnonzero(np.diff(z)) + 1
    runs = [(one[0], len(one)) for one in np.split(z, bounds)[1:-1]]
    for state, want in enumerate(hmm.expected_durations()):
        assert np.mean([n for s, n in runs if s == state]) == pytest.approx(want, rel=0.05)


def test_a_markov_chain_and_a_mixture_are_special_hidden_markov_models():
    rng = np.random.default_rng(0)
    start, transition = rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(3), 3)
    x = rng.integers(0, 3, 12)
    seen = mk.HMM(3, start=start, transition=transition, emission_params={"probs": np.eye(3)})
    chain = np.log(start[x[0]]) + np.log(transition[x[:-1], x[1:]]).sum()
    assert seen.log_prob(x)[0] == pytest.approx(chain)
    assert seen.decode(x)[0].tolist() == x.tolist()
    weights, probs = rng.dirichlet(np.ones(2)), rng.dirichlet(np.ones(3), 2)
    # states that are drawn afresh at each step: independent draws from a mixture of categoricals
    fresh = mk.HMM(2, start=weights, transition=[weights, weights], emission_params={"probs": probs})
    assert fresh.log_prob(x)[0] == pytest.approx(np.log(weights @ probs[:, x]).sum())
    assert fresh.smooth(x)[0] == pytest.approx((weights[:, None] * probs[:, x] / (weights @ probs[:, x])).T)
    # a state that stays: one component for the whole sequence
    stay = mk.HMM(2, start=weights, transition=np.eye(2), emission_params={"probs": probs})
    assert np.exp(stay.log_prob(x)) == pytest.approx([weights @ probs[:, x].prod(axis=1)])


@pytest.mark.parametrize("steps", [20, 4_000])
def test_tied_gaussians_answer_as_their_copies_do_in_plain_and_compiled_code(steps):
    chain = {"start": [0.5, 0.3, 0.2], "transition": [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.1, 0.1, 0.8]]}
    two = {"means": [[0.0], [3.0]], "covariances": [[[1.0]], [[2.0]]]}
    three = {"means": [[0.0], [0.0], [3.0]], "covariances": [[[1.0]], [[1.0]], [[2.0]]]}
    tied = mk.HMM(3, emission="gaussian", tied=[[0, 1], [2]], emission_params=two, **chain)
    copies = mk.HMM(3, emission="gaussian", emission_params=three, **chain)
    x, _ = copies.sample(steps, seed=0)
    assert tied.log_prob(x) == pytest.approx(copies.log_prob(x), rel=1e-12)
    np.testing.assert_allclose(tied.smooth(x)[0], copies.smooth(x)[0], atol=1e-12)
    assert (tied.decode(x)[0] == copies.decode(x)[0]).all()
