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
    crf = mk.SegmentCRF(C=5.0, tol=1e-8).fit(inputs, given)
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
    crf = mk.SegmentCRF(C=5.0, tol=1e-9).fit(inputs, PAIRS)
    from markovia.learning.conditional_fields.segment_objective import SegmentObjective, Segments
    from markovia.learning.conditional_fields.tokens import read_tokens

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
    assert objective(crf.training_.theta)[0] == pytest.approx(crf.objective_)


def test_lengths_decide_where_features_do_not():
    labels = [["a"] * 3 + ["b"] * 2 + ["a"] * 3 + ["b"] * 2 for _ in range(8)]
    inputs = [np.ones((10, 1)) for _ in labels]
    crf = mk.SegmentCRF(C=100.0).fit(inputs, labels)
    assert crf.predict(inputs[:1])[0].tolist() == labels[0]
    assert crf.score(inputs, labels) == 1.0


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
        mk.SegmentCRF(**settings).fit([np.zeros((3, 1))], labels)
