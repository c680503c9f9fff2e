"""A long chain worked on from both ends says what one end says."""

import numpy as np
import pytest

from markovia.inference.sequences import hidden_chain as chains
from markovia.inference.sequences.both_ends import smoothed
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed


@pytest.fixture
def from_one_end(monkeypatch):
    def ask(task):
        with monkeypatch.context() as patch:
            patch.setattr(chains, "LONG", np.inf)
            return task()

    return ask


@pytest.fixture(autouse=True)
def all_are_long(monkeypatch):
    monkeypatch.setattr(chains, "LONG", 1)


def random_chain(rng, k, steps, tables=1, zeros=False):
    table = rng.dirichlet(np.ones(k), (tables, k))
    if zeros:  # from left to right
        table = np.triu(table) / np.triu(table).sum(axis=2, keepdims=True)
    moves = rng.integers(0, tables, steps) if tables > 1 else None
    return HiddenChain(rng.dirichlet(np.ones(k)), table, moves)


@pytest.mark.parametrize("steps", [2, 3, 8, 61])
@pytest.mark.parametrize("kind", ["plain", "tables", "zeros"])
def test_halves_that_meet_say_what_one_pass_says(steps, kind, from_one_end):
    rng = np.random.default_rng(steps)
    chain = random_chain(rng, 3, steps, 3 if kind == "tables" else 1, kind == "zeros")
    seen = Observed(
        np.log(rng.dirichlet(np.ones(4), 3).T.copy()), rng.integers(0, 4, steps), np.array([0, steps])
    )
    for ask in (chain.smooth, chain.expect):
        for found, told in zip(ask(seen), from_one_end(lambda ask=ask: ask(seen)), strict=True):
            assert found == pytest.approx(told, abs=1e-11)
    path, log_prob = chain.best(seen)
    told_path, told = from_one_end(lambda: chain.best(seen))
    assert path.tolist() == told_path.tolist()
    assert log_prob == pytest.approx(told, abs=1e-11)


def test_halves_give_up_where_numbers_become_too_small(from_one_end):
    # the end points to a state that the beginning makes 1e-800 times less probable than the other
    steps = 40
    logs = np.array([[0.0, -92.0], [-92.0, 0.0], [0.0, 0.0]])
    codes = np.r_[np.full(20, 0), np.full(20, 1)]
    seen = Observed(logs, codes, np.array([0, steps]))
    chain = HiddenChain([0.5, 0.5], np.eye(2))
    assert smoothed(chain._sums(seen), np.arange(steps), steps, own=True, counted=False) is None
    assert chain.smooth(seen).sums == pytest.approx(np.full((steps, 2), 0.5))
    late = Observed(logs, codes[::-1].copy(), np.array([0, steps]))
    assert chain.smooth(late).sums == pytest.approx(np.full((steps, 2), 0.5))


def test_an_impossible_step_is_named_in_either_half():
    chain = HiddenChain([1.0, 0.0], np.eye(2))
    logs = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    for at in (1, 7):
        codes = np.zeros(10, dtype=np.int64)
        codes[at] = 1
        seen = Observed(logs, codes, np.array([0, 10]))
        assert chain.smooth(seen).stuck.tolist() == [at]
        assert chain.best(seen)[1].tolist() == [-np.inf]


@pytest.mark.slow
def test_log_probabilities_of_a_million_steps_keep_their_digits():
    rng = np.random.default_rng(0)
    chain = random_chain(rng, 2, 1)
    logs = np.log(rng.dirichlet(np.ones(3), 2).T.copy())
    steps = 300_000
    codes = rng.integers(0, 3, steps)
    found = chain.smooth(Observed(logs, codes, np.array([0, steps]))).log_probs[0]
    filtered = chain.filter(Observed(logs, codes, np.array([0, steps])))
    told = np.log((filtered.ahead * np.exp(logs[codes])).sum(axis=1)).sum()
    assert found == pytest.approx(told, abs=1e-7)
