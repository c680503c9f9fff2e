"""Chains of higher order and with places: against sums over all labellings, finite differences, files and networks."""

import itertools

import numpy as np
import pytest

import markovia as mk
from markovia.data.text.tokens import read_tokens
from markovia.learning.conditional_fields.label_histories import HistoryObjective, LabelHistories

LABELS = ["a", "b", "c"]


def some_model(order, positions, seed=0, k=3):
    rng = np.random.default_rng(seed)
    labels = LABELS[:k]
    ngrams = {}
    for n in range(2, order + 2):
        for y in itertools.product(labels, repeat=n):
            places = [0, *range(1, positions[0] + 1), *(-j for j in range(1, positions[1] + 1))]
            for place in places:
                if place or n > 2:
                    ngrams[(place, y)] = rng.normal()
    settings = {"order": order, "positions": positions}
    pairs = rng.normal(size=(k, k))
    model = mk.ChainCRF.from_weights(
        labels,
        rng.normal(size=(k, 2)),
        pairs,
        start=rng.normal(size=k),
        end=rng.normal(size=k),
        ngrams=ngrams,
        **settings,
    )
    for a, b in itertools.product(range(k), repeat=2):
        ngrams[(0, (labels[a], labels[b]))] = pairs[a, b]
    return model, ngrams


def score(model, ngrams, x, y):
    """Add up everything that a labelling has, n-gram by n-gram."""
    codes = [model.classes_.tolist().index(label) for label in y]
    total = sum(model.coef_[c] @ row for c, row in zip(codes, x, strict=True))
    total += model.start_[codes[0]] + model.end_[codes[-1]]
    for t in range(1, len(y)):
        for n in range(2, model.order + 2):
            if t - n + 1 >= 0:
                gram = tuple(y[t - n + 1 : t + 1])
                total += sum(ngrams.get((place, gram), 0.0) for place in (0, t, t - len(y)))
    return total


CASES = [(2, (0, 0)), (1, (1, 2)), (2, (2, 1)), (3, (0, 0))]


@pytest.mark.parametrize(("order", "positions"), CASES)
def test_every_answer_is_that_of_all_labellings(order, positions):
    k = 2 if order == 3 else 3
    model, ngrams = some_model(order, positions, k=k)
    rng = np.random.default_rng(5)
    X = [rng.normal(size=(n, 2)) for n in (5, 1, 2, 4)]
    edges = model.predict_edges(X)
    for x, z, best, smooth, pairs, ranked in zip(
        X, model.log_partition(X), model.predict(X), model.smooth(X), edges, model.k_best(X, 3), strict=True
    ):
        every = list(itertools.product(LABELS[:k], repeat=len(x)))
        logs = np.array([score(model, ngrams, x, y) for y in every])
        total = np.logaddexp.reduce(logs)
        assert z == pytest.approx(total)
        p = np.exp(logs - total)
        assert tuple(best) == every[int(p.argmax())]
        codes = np.array([[LABELS.index(label) for label in y] for y in every])
        for t in range(len(x)):
            np.testing.assert_allclose(smooth[t], np.bincount(codes[:, t], p, k), atol=1e-12)
            if t:
                both = np.bincount(codes[:, t - 1] * k + codes[:, t], p, k * k)
                np.testing.assert_allclose(pairs[t - 1].ravel(), both, atol=1e-12)
        order_of = np.argsort(-p)[:3]
        assert [tuple(y) for y in ranked[0]] == [every[i] for i in order_of]
        np.testing.assert_allclose(ranked[1], np.log(p[order_of]), atol=1e-9)
        some = every[len(every) // 2]
        assert model.log_prob([x], [list(some)])[0] == pytest.approx(np.log(p[len(every) // 2]))
        network = model.network(x)
        np.testing.assert_allclose(network.query("y0").values, smooth[0], atol=1e-9)
        assert [network.map()[f"y{t}"] for t in range(len(x))] == list(best)
    assert [list(y) for y in model.predict(X, beam=100)] == [list(y) for y in model.predict(X)]


@pytest.mark.parametrize("missing", [False, True])
def test_the_gradient_is_that_of_finite_differences(missing):
    rng = np.random.default_rng(1)
    tokens = read_tokens([rng.normal(size=(n, 2)) for n in (4, 1, 3, 2)], None, grow=True)
    codes = rng.integers(3, size=10)
    if missing:
        codes[[1, 6]] = -1
    objective = HistoryObjective(
        tokens, codes, LabelHistories(3, 2, 1, 1), allowed=None, C=3.0, edge_C=2.0, intercept=True, ends=True
    )
    theta = 0.5 * rng.normal(size=objective.size)
    _, gradient = objective(theta)
    for i in range(objective.size):
        step = np.zeros(objective.size)
        step[i] = 1e-5
        slope = (objective(theta + step)[0] - objective(theta - step)[0]) / 2e-5
        assert gradient[i] == pytest.approx(slope, abs=1e-7)


def test_without_longer_ngrams_a_higher_order_is_the_plain_chain():
    rng = np.random.default_rng(2)
    coef, pairs = rng.normal(size=(3, 2)), rng.normal(size=(3, 3))
    X = [rng.normal(size=(6, 2))]
    plain = mk.ChainCRF.from_weights(LABELS, coef, pairs)
    long = mk.ChainCRF.from_weights(LABELS, coef, pairs, order=2, positions=(1, 1))
    np.testing.assert_allclose(long.smooth(X)[0], plain.smooth(X)[0], atol=1e-12)
    draws = long.sample(X, 4000, seed=0)[0]
    share = (draws == "b").mean(axis=0)
    assert np.abs(share - plain.smooth(X)[0][:, 1]).max() < 5 * 0.5 / np.sqrt(4000)


WORDS = [
    "sing",
    "ring",
    "king",
    "wing",
    "thing",
    "string",
    "sting",
    "bring",
    "fling",
    "swing",
    "sin",
    "inn",
    "ingot",
    "gnat",
    "tin",
    "nigh",
    "grin",
]


def spelled(words):
    return [[{"shape": "other" if c in "ng" else c} for c in w] for w in words], [list(w) for w in words]


def test_what_three_letters_in_a_row_say_is_learned_and_survives_a_file(tmp_path):
    X, Y = spelled(WORDS)
    one, two = mk.ChainCRF(C=5.0).fit(X, Y), mk.ChainCRF(C=5.0, order=2, positions=(0, 1)).fit(X, Y)
    assert two.log_likelihood(X, Y) > one.log_likelihood(X, Y) + 1.0
    assert two.transition_features_[("i", "n", "g")] > 0.0
    assert two.position_features_[(-1, ("n", "g"))] > 0.0
    assert ("n", "g", "i") not in two.transition_features_  # never seen
    two.save(tmp_path / "two.json")
    again = mk.load(tmp_path / "two.json")
    assert again.get_params()["order"] == 2
    assert again.log_likelihood(X, Y) == pytest.approx(two.log_likelihood(X, Y))


def test_forbidden_pairs_stay_forbidden_at_higher_order():
    X = [[["x"]] * 4, [["x"], ["z"], ["x"]]]
    Y = [["O", "B-P", "I-P", "O"], ["B-P", "I-P", "I-P"]]
    model = mk.ChainCRF(order=2, constraints="bio").fit(X, Y)
    for labels in model.sample([[["x"]] * 5], 200, seed=0)[0]:
        assert all(b != "I-P" or a != "O" for a, b in itertools.pairwise(["O", *labels]))


def test_what_cannot_be_is_refused():
    X, Y = spelled(WORDS[:4])
    with pytest.raises(mk.errors.TooLarge, match="lower order="):
        mk.ChainCRF(order=9).fit(X, Y)
    with pytest.raises(mk.errors.InvalidArgument, match="perceptron"):
        mk.ChainCRF(order=2, solver="perceptron").fit(X, Y)
    with pytest.raises(mk.errors.InvalidArgument, match="positions="):
        mk.ChainCRF(positions=(1,)).fit(X, Y)
    with pytest.raises(mk.errors.InvalidArgument, match="ngrams="):
        mk.ChainCRF.from_weights(["a", "b"], [[0.0], [1.0]], np.zeros((2, 2)), ngrams={("a", "b", "a"): 1.0})


def test_pair_weights_given_as_ngrams_add_to_the_transitions_of_a_chain_of_order_one():
    crf = mk.ChainCRF.from_weights(
        ["a", "b"], np.ones((2, 1)), [[0.0, 1.0], [0.0, 0.0]], ngrams={("a", "b"): 2.0}
    )
    assert crf.transitions_.shape == (2, 2)
    assert crf.transition_features_["a", "b"] == crf.transitions_[0, 1] == 3.0
