"""Semi-Markov fields against the enumeration of all segmentations."""

import itertools

import numpy as np
import pytest

import markovia as mk

PAIRS = [
    [("p", 2), ("q", 1), ("p", 1)],
    [("q", 3), ("q", 1)],
    [("r", 1), ("p", 2), ("q", 2)],
    [("p", 1), ("p", 1), ("r", 2)],
]


def data(seed=0):
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(sum(n for _, n in y), 2)) for y in PAIRS]


def segmentations(n, labels, longest):
    if n == 0:
        yield []
        return
    for size in range(1, min(n, longest) + 1):
        for rest in segmentations(n - size, labels, longest):
            for label in labels:
                yield [(label, size), *rest]


def weight(crf, x, y):
    codes = {c: i for i, c in enumerate(crf.classes_.tolist())}
    total, t = 0.0, 0
    for label, size in y:
        a = codes[label]
        total += crf.lengths_[a, size - 1] + sum(crf.coef_[a] @ x[i] for i in range(t, t + size))
        t += size
    total += crf.start_[codes[y[0][0]]]
    return total + sum(crf.transitions_[codes[a], codes[b]] for (a, _), (b, _) in itertools.pairwise(y))


@pytest.mark.parametrize("runs", [False, True])
def test_the_objective_and_all_answers_are_those_of_enumeration(runs):
    inputs = data()
    given = [[a for a, n in y for _ in range(n)] for y in PAIRS] if runs else PAIRS
    crf = mk.crf.SegmentCRF(C=5.0, tol=1e-8).fit(inputs, given)
    merged = [[(a, len(list(g))) for a, g in itertools.groupby(y)] for y in given] if runs else PAIRS
    longest = crf.lengths_.shape[1]
    assert longest == max(n for y in merged for _, n in y)
    value = 0.0
    for x, y in zip(inputs, merged, strict=True):
        every = [
            s for s in segmentations(len(x), crf.classes_.tolist(), longest) if weight(crf, x, s) > -np.inf
        ]
        logs = np.array([weight(crf, x, s) for s in every])
        shares = np.exp(logs - np.logaddexp.reduce(logs))
        own = weight(crf, x, y) - np.logaddexp.reduce(logs)
        value -= own
        assert crf.log_prob([x], [y])[0] == pytest.approx(own, abs=1e-9)
        best = [(s.label, s.end - s.start) for s in crf.segments([x])[0]]
        assert weight(crf, x, best) == pytest.approx(logs.max())  # two may be equally good
        assert crf.predict([x])[0].tolist() == [a for a, n in best for _ in range(n)]
        ranked, found = crf.k_best([x], 5)[0]
        np.testing.assert_allclose(found, np.sort(np.log(shares))[::-1][:5], atol=1e-9)
        listed = [[(s.label, s.end - s.start) for s in one] for one in ranked]
        assert len({tuple(one) for one in listed}) == len(found)
        np.testing.assert_allclose([crf.log_prob([x], [one])[0] for one in listed], found, atol=1e-9)
        assert crf.log_partition([x])[0] == pytest.approx(np.logaddexp.reduce(logs))
        marginals = np.zeros((len(x), 3))
        for s, p in zip(every, shares, strict=True):
            t = 0
            for label, size in s:
                marginals[t : t + size, crf.classes_.tolist().index(label)] += p
                t += size
        np.testing.assert_allclose(crf.smooth([x])[0], marginals, atol=1e-9)
    moves = np.where(np.isfinite(crf.transitions_), crf.transitions_, 0.0)
    value += sum(np.square(w).sum() for w in (crf.coef_, moves, crf.start_, crf.lengths_)) / 5.0
    assert crf.objective_ == pytest.approx(value, rel=1e-9)
    if runs:  # runs of equal labels are one segment
        assert (np.diag(crf.transitions_) == -np.inf).all()


def test_training_has_reached_the_bottom():
    inputs = data()
    crf = mk.crf.SegmentCRF(C=5.0, tol=1e-9).fit(inputs, PAIRS)
    from markovia.data.text.tokens import read_tokens
    from markovia.learning.conditional_fields.segment_objective import SegmentObjective, Segments

    tokens = read_tokens(inputs, grow=True)
    codes = np.array(["pqr".index(a) for y in PAIRS for a, n in y for _ in range(n)])
    opens = np.array([j == 0 for y in PAIRS for _, n in y for j in range(n)])
    objective = SegmentObjective(
        tokens, codes, Segments.of(codes, opens, tokens.chains), 3, 3, C=5.0, repeat=True
    )
    theta = np.random.default_rng(0).normal(size=objective.bounds[-1])
    _, gradient = objective(theta)
    for i in range(len(theta)):
        step = np.zeros(len(theta))
        step[i] = 1e-5
        slope = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-5)
    assert objective(crf.training_.point)[0] == pytest.approx(crf.objective_)


def test_lengths_decide_where_features_do_not():
    labels = [["a"] * 3 + ["b"] * 2 + ["a"] * 3 + ["b"] * 2 for _ in range(8)]
    inputs = [np.ones((10, 1)) for _ in labels]
    crf = mk.crf.SegmentCRF(C=100.0).fit(inputs, labels)
    assert crf.predict(inputs[:1])[0].tolist() == labels[0]
    assert crf.score(inputs, labels) == 1.0


def test_there_are_no_more_best_segmentations_than_possible_ones():
    never = -np.inf
    crf = mk.crf.SegmentCRF.from_weights(
        ["b", "a"], [[0.5], [1.0]], [[never, 0.0], [never, never]], [[0.0, 1.0], [0.0, 0.5]], start=[0.0, 1.0]
    )
    assert crf.classes_.tolist() == ["a", "b"]
    assert crf.transitions_.tolist() == [[never, never], [0.0, never]]
    # nothing may follow "a", and "b" not itself: two tokens are aa (1 + 2 + 0.5), bb (1 + 1) or ba (0.5 + 1)
    (segmentations, logs), (nothing, sure) = crf.k_best([np.ones((2, 1)), np.zeros((0, 1))], 9)
    assert [[s.label for s in one] for one in segmentations] == [["a"], ["b"], ["b", "a"]]
    np.testing.assert_allclose(logs, np.array([3.5, 2.0, 1.5]) - np.logaddexp.reduce([3.5, 2.0, 1.5]))
    assert (nothing, sure.tolist()) == ([[]], [0.0])


def test_drawn_segmentations_come_as_often_as_their_probability_says():
    crf = mk.crf.SegmentCRF(C=5.0).fit(data(), PAIRS)
    x = data()[0]
    drawn = crf.sample([x], 4000, seed=1)[0]
    likely, logs = crf.k_best([x], 4)[0]
    for one, log in zip(likely, logs, strict=True):
        p = np.exp(log)
        assert sum(d == one for d in drawn) / 4000 == pytest.approx(p, abs=4.5 * np.sqrt(p * (1 - p) / 4000))


def test_absolute_values_make_weights_zero_where_no_other_is_better():
    from markovia.data.text.tokens import read_tokens
    from markovia.learning.conditional_fields.segment_objective import SegmentObjective, Segments

    crf = mk.crf.SegmentCRF(C=5.0, l1=0.3, tol=1e-8).fit(data(), PAIRS)
    tokens = read_tokens(data(), grow=True)
    codes = np.array(["pqr".index(a) for y in PAIRS for a, n in y for _ in range(n)])
    opens = np.array([j == 0 for y in PAIRS for _, n in y for j in range(n)])
    theta = crf.training_.point
    cut = Segments.of(codes, opens, tokens.chains)
    value, gradient = SegmentObjective(tokens, codes, cut, 3, 3, C=5.0, repeat=True)(theta)
    zero = theta == 0.0
    assert 3 < zero.sum() < len(theta) - 3
    assert np.abs(gradient[zero]).max() <= 0.3 + 1e-6
    np.testing.assert_allclose(gradient[~zero], -0.3 * np.sign(theta[~zero]), atol=1e-6)
    assert crf.objective_ == pytest.approx(value + 0.3 * np.abs(theta).sum())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": ["a", "a"]}, "two or more different labels"),
        ({"sizes": [[0.0]]}, "sizes has one row a label"),
        ({"start": [0.0]}, "start has one row a label"),
        ({"transitions": [[0.0, np.nan], [0.0, 0.0]]}, "transitions"),
        ({"feature_names": ["x", "y"]}, "2 different names for 1"),
    ],
)
def test_weights_that_do_not_fit_together_are_refused(change, message):
    given = {
        "classes": ["a", "b"],
        "coef": [[1.0], [0.0]],
        "transitions": np.zeros((2, 2)),
        "sizes": [[0.0], [0.0]],
    }
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.crf.SegmentCRF.from_weights(**{**given, **change})


@pytest.mark.parametrize(
    ("labels", "settings", "message"),
    [
        ([["a", "a", "b"]], {"max_length": 1}, "a segment of 2 tokens begins at step 0 of sequence 0"),
        ([["a", None, "b"]], {}, "step 1 of sequence 0 has no label"),
        ([[("a", 2), ("b", 0)]], {}, "sequence 0 has .* which is no"),
        ([[("a", 2)]], {}, "sequence 0 has 3 tokens but 2 labels"),
        ([["a", "a", "a"]], {}, "two different ones"),
    ],
)  # fmt: skip
def test_bad_segmentations_are_named_by_sequence(labels, settings, message):
    with pytest.raises(mk.errors.InvalidArgument, match=message):
        mk.crf.SegmentCRF(**settings).fit([np.zeros((3, 1))], labels)
