"""Sigmoid belief networks as estimators: small ones, where all states can be enumerated."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import markovia as mk
from markovia.errors import InvalidArgument, InvalidEvidence
from markovia.models.deep.belief_nets import SigmoidBeliefNetwork

RNG = np.random.default_rng(0)
CAUSES = RNG.random((700, 2)) < 0.5
ROWS = (RNG.random((700, 3)) < expit(CAUSES @ np.array([[4.0, 4, -3], [-3, 0, 4]]) - 1)).astype(float)
TRAIN, TEST = ROWS[:500], ROWS[500:]
GRID = np.array(list(product([0, 1], repeat=3)), float)
OTHERS = ("wake-sleep", "nvil", "vimco", "gibbs", "mean-field")
"""Those are trained quickly elsewhere: `tests/learning/neural/test_score_gradients.py`."""


def all_states(values, x, layers):
    """Return log p(x, hidden) of every state of the hidden units, and the states."""
    states = [np.array(list(product([0, 1], repeat=k)), float) for k in layers]
    logs, found = [], []
    for hidden in product(*states):
        sides = [x, *[np.broadcast_to(h, (len(x), len(h))) for h in hidden]]
        total = np.zeros(len(x))
        for i, own in enumerate(sides):
            odds = values[f"bias{i}"] + (sides[i + 1] @ values[f"weights{i + 1}"] if i < len(layers) else 0.0)
            total -= (np.logaddexp(0, -odds) * own + np.logaddexp(0, odds) * (1 - own)).sum(1)
        logs.append(total)
        found.append(np.concatenate(hidden))
    return np.array(logs), np.array(found)


def exact(sbn, x):
    return logsumexp(all_states(sbn.network_.parameters, x, sbn.layers)[0], axis=0)


def stated(sbn, width, **values):
    """Return a network that nothing was learned by, with some values of its own."""
    sbn.network_ = sbn._stated(width)
    parameters = sbn.network_._parameters.items()
    sbn.network_._parameters = {n: p.with_value(values.get(n, p.value)) for n, p in parameters}
    return sbn


@pytest.fixture(scope="module")
def deep():
    """A network with two hidden layers."""
    return SigmoidBeliefNetwork((2, 2), epochs=40, batch=100, learning_rate=0.03, random_state=0).fit(TRAIN)


@pytest.mark.slow
def test_it_learns_what_independent_bits_cannot_say(deep):
    start = stated(SigmoidBeliefNetwork((2, 2), random_state=0), 3)
    share = TRAIN.mean(0)
    independent = (TEST * np.log(share) + (1 - TEST) * np.log(1 - share)).sum(1).mean()
    assert exact(deep, TEST).mean() > max(independent, exact(start, TEST).mean()) + 0.1
    assert abs(np.exp(exact(deep, GRID)).sum() - 1) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("method", OTHERS)
def test_every_method_improves_the_held_out_likelihood(method):
    how = {"draws": 8, "epochs": 40} if method == "mean-field" else {"epochs": 150}
    sbn = SigmoidBeliefNetwork((2,), method, batch=100, learning_rate=0.03, random_state=0, **how).fit(TRAIN)
    share = TRAIN.mean(0)
    independent = (TEST * np.log(share) + (1 - TEST) * np.log(1 - share)).sum(1).mean()
    assert exact(sbn, TEST).mean() > independent + 0.1
    record = sbn.network_.fit_
    if np.isfinite(record.log_likelihood):  # a bound on the evidence
        assert record.log_likelihood / 500 < exact(sbn, TRAIN).mean() + 0.005


@pytest.mark.slow
def test_tables_of_logistic_units_have_the_same_probabilities(deep):
    tables = deep.tables()
    assert tables.variables == ["h2_0", "h2_1", "h1_0", "h1_1", "x0", "x1", "x2"]
    values = deep.network_.parameters
    logs, states = all_states(values, GRID, (2, 2))
    for row, log_evidence, post in zip(GRID, logsumexp(logs, axis=0), logs.T, strict=True):
        given = {f"x{j}": int(v) for j, v in enumerate(row)}
        assert abs(tables.log_evidence(given) - log_evidence) < 1e-10
        means = np.exp(post - log_evidence) @ states
        found = [tables.query(n, given=given)[1] for n in ("h1_0", "h1_1", "h2_0", "h2_1")]
        np.testing.assert_allclose(found, means, atol=1e-10)


@pytest.mark.slow
def test_questions_are_those_of_the_network(deep):
    scores = deep.score_samples(GRID)
    np.testing.assert_array_equal(scores, deep.network().log_evidence({"x": GRID}, by="row"))
    np.testing.assert_allclose(scores, exact(deep, GRID), atol=0.1)  # 1,000 weighted proposals
    logs, states = all_states(deep.network_.parameters, GRID, (2, 2))
    means = np.exp(logs - logsumexp(logs, axis=0)).T @ states
    np.testing.assert_allclose(deep.transform(GRID), means, atol=0.1)
    drawn = deep.sample(2000, seed=3)
    np.testing.assert_array_equal(drawn, deep.network().sample(1, given={"row": 2000}, seed=3)["x"][0])
    shares = np.exp(exact(deep, GRID))
    found = np.array([(drawn == g).all(1).mean() for g in GRID])
    assert (np.abs(found - shares) < 4.5 * np.sqrt(shares * (1 - shares) / 2000)).all()


def test_explaining_away():
    # two causes of one effect: each is likelier once the effect is seen, and less so once the other one is, too
    values = {"bias1": np.log([0.25, 0.25]), "weights1": np.array([[3.0], [3.0]]), "bias0": np.array([-3.0])}
    tables = stated(SigmoidBeliefNetwork((2,)), 1, **values).tables()
    assert round(tables.query("h1_0", given={"x0": 1})[1], 6) == 0.516963
    assert round(tables.query("h1_0", given={"x0": 1, "h1_1": 1})[1], 6) == 0.322625


@pytest.mark.slow
def test_settings_seeds_files_and_pieces(deep, tmp_path):
    again = clone(deep).fit(TRAIN)
    np.testing.assert_array_equal(again.network_.parameters["weights1"], deep.network_.parameters["weights1"])
    deep.save(tmp_path / "net.json")
    loaded = mk.load(tmp_path / "net.json")
    np.testing.assert_array_equal(loaded.sample(5, seed=1), deep.sample(5, seed=1))
    assert loaded.layers == deep.layers
    before = deep.network_.parameters["weights1"].copy()
    more = again.partial_fit(TRAIN[:100])
    assert not np.array_equal(more.network_.parameters["weights1"], before)
    other = SigmoidBeliefNetwork((2,), "gibbs", draws=2, epochs=1, random_state=0)
    assert other._objective().sweeps == 2
    field = SigmoidBeliefNetwork((2, 2), "mean-field", draws=7)._objective()
    names = (("x", "weights1", "bias0"), ("h1", "weights2", "bias1"), ("h2", None, "bias2"))
    assert (field.iterations, field.layers) == (7, names)


@pytest.mark.slow
def test_edges(deep):
    rows = TRAIN[:60].copy()
    rows[:, 1] = 1.0  # a constant column, and entries that are missing
    rows[::7, 0] = np.nan
    sbn = SigmoidBeliefNetwork((2,), "vimco", draws=2, epochs=3, batch=None, random_state=0).fit(rows)
    scores = sbn.score_samples(np.array([[np.nan, 1.0, 1.0], [0.0, 1.0, np.nan]]))
    assert np.isfinite(scores).all()
    assert sbn.partial_fit(rows[:1]).sample(1, seed=0).shape == (1, 3)  # one row
    with pytest.raises(InvalidEvidence, match=r"'x' cannot be .*0.5"):
        SigmoidBeliefNetwork((2,)).fit([[0.0, 0.5], [1.0, 0.0]])
    with pytest.raises(NotFittedError, match="not fitted yet"):
        SigmoidBeliefNetwork((2,)).sample(3)
    with pytest.raises(ValueError, match="3 features"):
        deep.score_samples(np.zeros((2, 4)))
    with pytest.raises(InvalidArgument, match="draws= says nothing to method='nvil'"):
        SigmoidBeliefNetwork((2,), "nvil", draws=3).fit(TRAIN)
    with pytest.raises(InvalidArgument, match="layers"):
        SigmoidBeliefNetwork((2, 0)).fit(TRAIN)
    with pytest.raises(InvalidArgument, match="method"):
        SigmoidBeliefNetwork((2,), "wake").fit(TRAIN)
