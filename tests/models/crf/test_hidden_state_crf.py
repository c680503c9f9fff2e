"""Conditional random fields with hidden states, against sums over all states."""

import itertools
import pickle
import warnings

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ConvergenceWarning, InvalidArgument
from markovia.learning.conditional_fields.fields import Fields
from markovia.learning.conditional_fields.hidden_state_objective import HiddenStateObjective
from markovia.optimise import ascent

CHAIN = [(0, 1), (1, 2)]
RING = [(0, 1), (1, 2), (2, 3), (3, 0)]


def brute(scores, edges, tables, allowed):
    """The log of the sum over states that are allowed at each node."""
    n, k = scores.shape
    logs = [
        sum(scores[i, h[i]] for i in range(n))
        + sum(t[h[a], h[b]] for (a, b), t in zip(edges, tables, strict=True))
        for h in itertools.product(range(k), repeat=n)
        if all(allowed[i, h[i]] for i in range(n))
    ]
    return np.logaddexp.reduce(logs)


def model(labels, graph, seed=0, states=2):
    """A field of two labels with random weights on two node features."""
    rng = np.random.default_rng(seed)
    k = 2 * states
    weights = rng.normal(size=(k, 2)), rng.normal(size=(1, k, k)), rng.normal(size=k)
    crf = mk.crf.HiddenStateCRF.from_weights(["a", "b"], *weights, graph=graph, labels=labels, states=states)
    turn = np.roll(np.arange(k), states)  # the same, the second label first
    other = mk.crf.HiddenStateCRF.from_weights(
        ["b", "a"], weights[0][turn], weights[1][:, turn][:, :, turn], weights[2][turn], states=states
    )
    np.testing.assert_array_equal(other.edge_coef_, crf.edge_coef_)
    return crf, rng.normal(size=(max(max(e) for e in graph) + 1, 2))


@pytest.mark.parametrize("graph", [CHAIN, RING])
def test_the_probability_of_labels_is_a_sum_over_the_states_they_have(graph):
    crf, x = model("nodes", graph)
    n, own = len(x), np.repeat([0, 1], 2)
    scores, tables = x @ crf.coef_.T + crf.intercept_, [crf.edge_coef_[0]] * len(graph)
    whole = brute(scores, graph, tables, np.ones((n, 4), dtype=bool))
    found = {}
    for y in itertools.product([0, 1], repeat=n):
        held = np.array(y)[:, None] == own
        want = brute(scores, graph, tables, held) - whole
        labels = [np.array(["a", "b"])[list(y)]]
        assert crf.log_prob([x], labels)[0] == pytest.approx(want, abs=1e-10)
        found[y] = np.exp(want)
    assert sum(found.values()) == pytest.approx(1.0)
    first = sum(p for y, p in found.items() if y[0] == 1)
    assert crf.predict_proba([x])[0][0, 1] == pytest.approx(first, abs=1e-10)
    some = sum(p for y, p in found.items() if y[1] == 0)  # the others are not known
    assert crf.log_prob([x], [[None, "a"] + [None] * (n - 2)])[0] == pytest.approx(np.log(some), abs=1e-10)
    ends = sum(p for y, p in found.items() if (y[0], y[1]) == (1, 0))
    assert crf.predict_edges([x])[0][0, 1, 0] == pytest.approx(ends, abs=1e-10)
    assert crf.network(x).log_partition() == pytest.approx(whole, abs=1e-10)


@pytest.mark.parametrize("graph", [CHAIN, RING])
def test_with_one_label_an_instance_states_of_different_labels_never_meet(graph):
    crf, x = model("instances", graph, seed=1)
    own = np.repeat([0, 1], 2)
    scores, tables = x @ crf.coef_.T + crf.intercept_, [crf.edge_coef_[0]] * len(graph)
    logs = [brute(scores, graph, tables, np.tile(own == y, (len(x), 1))) for y in (0, 1)]
    want = logs - np.logaddexp(*logs)
    assert crf.log_prob([x, x], ["a", "b"]) == pytest.approx(want, abs=1e-10)
    assert crf.predict_proba([x])[0] == pytest.approx(np.exp(want), abs=1e-10)
    assert crf.predict([x])[0] == "ab"[int(np.argmax(want))]
    assert crf.log_prob([x, x], [None, "b"]) == pytest.approx([0.0, want[1]], abs=1e-10)


@pytest.mark.parametrize("whole", [False, True])
def test_the_gradient_is_the_difference_quotient_of_the_objective(whole):
    rng = np.random.default_rng(2)
    edges = np.array([*CHAIN, *(np.array(RING) + 3)])  # a chain of three nodes and a ring of four
    fields = Fields.of(
        4, np.array([0, 3, 7]), np.array([0, 2, 6]), edges[:, 0].copy(), edges[:, 1].copy(), np.ones((6, 1))
    )
    own = np.repeat([0, 1], 2)
    codes = np.array([0, 0, 0, 1, 1, 1, 1]) if whole else np.array([0, 1, -1, 1, 0, 0, 1])
    allowed = (codes[:, None] == own) | (codes[:, None] < 0)
    bar = np.where(own[:, None] == own, 0.0, -np.inf) if whole else None
    objective = HiddenStateObjective(fields, rng.normal(size=(7, 2)), allowed, bar=bar, C=3.0, edge_C=5.0)
    theta = rng.normal(size=objective.size)
    slope = [
        (objective(theta + 1e-5 * e)[0] - objective(theta - 1e-5 * e)[0]) / 2e-5 for e in np.eye(len(theta))
    ]
    assert objective(theta)[1] == pytest.approx(slope, abs=1e-8)
    parts = [objective(theta, np.array([g])) for g in (0, 1)]
    assert parts[0][0] + parts[1][0] == pytest.approx(objective(theta)[0], abs=1e-10)
    assert parts[0][1] + parts[1][1] == pytest.approx(objective(theta)[1], abs=1e-10)


def rising(n=16, seed=0):
    up = [np.sort(np.random.default_rng([seed, i]).normal(size=5)) for i in range(n)]
    return up + [x[::-1] for x in up], ["up"] * n + ["down"] * n


def test_with_one_state_a_label_it_is_the_plain_field():
    X, _ = rising(8)
    Y = [np.where(x > 0.3, "high", "low") for x in X]
    Y[0][:2] = "high"
    plain = mk.crf.CRF(tol=1e-8).fit(X, Y)
    found = mk.crf.HiddenStateCRF(states=1, tol=1e-8, random_state=0).fit(X, Y)
    assert found.predict_proba(X)[0] == pytest.approx(plain.predict_proba(X)[0], abs=1e-5)
    assert found.log_likelihood(X, Y) == pytest.approx(plain.log_likelihood(X, Y), abs=1e-5)


def test_states_learn_what_weights_of_single_numbers_cannot_say(tmp_path):
    X, Y = rising()
    crf = mk.crf.HiddenStateCRF(labels="instances", random_state=0).fit(X, Y)
    new, truth = rising(seed=1)
    assert crf.score(new, truth) == 1.0
    assert crf.training_.converged
    again = pickle.loads(pickle.dumps(crf))
    assert again.log_prob(new, truth) == pytest.approx(crf.log_prob(new, truth), abs=0.0)
    order = np.random.default_rng(0).permutation(len(X))
    turned = mk.crf.HiddenStateCRF(labels="instances", random_state=0).fit(
        [X[i] for i in order], [Y[i] for i in order]
    )
    assert turned.log_prob(new, truth) == pytest.approx(crf.log_prob(new, truth), abs=1e-3)


def test_training_that_was_cut_goes_on_from_its_file(tmp_path, monkeypatch):
    monkeypatch.setattr(ascent, "SLICE", 3)
    X, Y = rising(6)

    def fitted(steps, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return mk.crf.HiddenStateCRF(labels="instances", random_state=0, max_iter=steps, **settings).fit(
                X, Y
            )

    file = tmp_path / "crf.npz"
    fitted(6, checkpoint=file)
    assert fitted(12, checkpoint=file).coef_ == pytest.approx(fitted(12).coef_, abs=1e-12)
    cut = fitted(500, time_limit=1e-9)
    assert cut.training_.reason == "time limit"
    assert cut.n_iter_ <= 3


def test_images_whose_pixels_alone_say_nothing_are_told_apart():
    row, column = np.indices((3, 3))
    boards, stripes = ([(f + s) % 2 + 0.0 for s in (0, 1)] * 2 for f in (row + column, column))
    crf = mk.crf.HiddenStateGridCRF(labels="instances", C=20.0, random_state=0, tol=1e-2)
    crf.fit(boards + stripes, ["board"] * 4 + ["stripes"] * 4)
    assert crf.predict([boards[1], stripes[0]]).tolist() == ["board", "stripes"]
    pixels = mk.crf.HiddenStateGridCRF(random_state=0, tol=1e-2).fit(
        boards[:2], [b.astype(int) for b in boards[:2]]
    )
    assert pixels.predict(boards[:1])[0].tolist() == boards[0].astype(int).tolist()
    assert pixels.predict_states(boards[:1])[0].shape == (3, 3, 4)


def test_errors_name_the_cure():
    X, Y = rising(3)
    with pytest.raises(InvalidArgument, match="not 'pseudo-likelihood'"):
        mk.crf.HiddenStateCRF(inference="pseudo-likelihood").fit(X, Y)
    with pytest.raises(InvalidArgument, match="join its parts by edges"):
        mk.crf.HiddenStateCRF(labels="instances", graph=[(0, 1), (2, 3)]).fit(
            [np.ones((4, 1))] * 2, ["a", "b"]
        )
    with pytest.raises(InvalidArgument, match="instance 0 has 5 nodes but labels of shape"):
        mk.crf.HiddenStateCRF().fit(X, [["a"]] * 6)
    with pytest.raises(InvalidArgument, match="two different labels"):
        mk.crf.HiddenStateCRF(labels="instances").fit(X, ["up"] * 6)
    with pytest.raises(InvalidArgument, match="6 instances but 5 labels"):
        mk.crf.HiddenStateCRF(labels="instances").fit(X, Y[:5])


def test_one_label_an_instance_is_told_how_to_say_so():
    with pytest.raises(InvalidArgument, match="labels='instances'"):
        mk.crf.HiddenStateCRF().fit([np.ones((2, 1)), np.zeros((3, 1))], [0, 1])
