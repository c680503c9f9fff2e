"""Hidden chains: every recursion against enumeration of all paths, compiled and plain, one table and many."""

from contextlib import nullcontext
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.kernels.compiled_code import preferred


@st.composite
def chains(draw, zeros=True):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k = draw(st.sampled_from([1, 2, 3, 5]))  # kernels take four states at a time
    lengths = draw(st.lists(st.integers(1, 5 if k < 4 else 3), min_size=1, max_size=3))
    sparse = draw(st.sampled_from([0.0, 0.3])) if zeros else 0.0
    n, many = sum(lengths), draw(st.booleans())
    m = 3 if many else 1

    def rows(*shape):
        found = rng.random(shape) * (rng.random(shape) >= sparse)
        found[..., 0] += found.sum(axis=-1) == 0
        return found / found.sum(axis=-1, keepdims=True)

    logs = rng.normal(scale=draw(st.sampled_from([1.0, 400.0])), size=(4, k))
    logs[0] = 0.0  # nothing seen
    codes, offsets = rng.integers(0, 4, n), np.concatenate([[0], np.cumsum(lengths)])
    moves = rng.integers(0, m, n) if many else None
    return HiddenChain(rows(k), rows(m, k, k), moves), Observed(logs, codes, offsets)


def enumerated(chain, seen, s):
    """All paths of a sequence with their log p(path, seen)."""
    a, b = seen.offsets[s], seen.offsets[s + 1]
    paths = np.array(list(product(range(len(chain.start)), repeat=b - a)))
    with np.errstate(divide="ignore"):
        logs = np.log(chain.start)[paths[:, 0]] + seen.logs[seen.codes[a], paths[:, 0]]
        for t in range(1, b - a):
            table = chain.tables[chain.moves[0] if len(chain.moves) == 1 else chain.moves[a + t]]
            logs = (
                logs + np.log(table)[paths[:, t - 1], paths[:, t]] + seen.logs[seen.codes[a + t], paths[:, t]]
            )
    return paths, logs


def weights(logs):
    top = logs.max()
    return np.exp(logs - top) / np.exp(logs - top).sum(), top + np.log(np.exp(logs - top).sum())


@settings(max_examples=80, deadline=None)
@given(chains())
def test_sums_and_posteriors_are_those_of_all_paths(problem):
    chain, seen = problem
    k = len(chain.start)
    filtered, smoothed = chain.filter(seen), chain.smooth(seen)
    counts, both = chain.expect(seen), chain.pairs(seen)
    starts, sums = np.zeros(k), np.zeros_like(seen.logs)
    pairs = np.zeros_like(chain.tables)
    for s, (a, b) in enumerate(pairwise(seen.offsets)):
        paths, logs = enumerated(chain, seen, s)
        p, total = weights(logs)
        for found in (filtered.log_probs, smoothed.log_probs, counts.log_probs, chain.log_probs(seen)):
            assert found[s] == pytest.approx(total, rel=1e-12, abs=1e-10)
        for t in range(b - a):
            want = np.array([p[paths[:, t] == j].sum() for j in range(k)])
            assert smoothed.sums[a + t] == pytest.approx(want, abs=1e-10)
            sums[seen.codes[a + t]] += want
            if t:
                slices = np.zeros((k, k))
                np.add.at(slices, (paths[:, t - 1], paths[:, t]), p)
                assert both[a + t] == pytest.approx(slices, abs=1e-10)
                pairs[chain.moves[0] if len(chain.moves) == 1 else chain.moves[a + t]] += slices
            else:
                starts += want
                assert not both[a].any()
            part = Observed(seen.logs, seen.codes[a : a + t + 1], np.array([0, t + 1]))
            alone = HiddenChain(
                chain.start,
                chain.tables,
                None if len(chain.moves) == 1 else chain.moves[a : a + t + 1],
            )
            so_far, q = enumerated(alone, part, 0)
            q = weights(q)[0]
            want = [q[so_far[:, t] == j].sum() for j in range(k)]
            assert filtered.now[a + t] == pytest.approx(want, abs=1e-10)
    assert counts.starts == pytest.approx(starts, abs=1e-10)
    assert counts.sums == pytest.approx(sums, abs=1e-10)
    assert counts.pairs == pytest.approx(pairs, abs=1e-10)


@settings(max_examples=60, deadline=None)
@given(chains(), st.integers(1, 6))
def test_best_paths_are_those_of_all_paths_in_order(problem, n):
    chain, seen = problem
    best, scores = chain.best(seen)
    ranked, all_scores = chain.ranked(seen, n)
    for s, (a, b) in enumerate(pairwise(seen.offsets)):
        paths, logs = enumerated(chain, seen, s)
        order = np.sort(logs)[::-1][:n]
        want = np.concatenate([order, np.full(max(n - len(order), 0), -np.inf)])
        assert all_scores[s] == pytest.approx(want, rel=1e-12, abs=1e-10)
        assert scores[s] == pytest.approx(want[0], rel=1e-12, abs=1e-10)
        place = {tuple(path): value for path, value in zip(paths.tolist(), logs, strict=True)}
        assert place[tuple(best[a:b])] == pytest.approx(want[0], rel=1e-12, abs=1e-10)
        possible = [tuple(ranked[q, a:b]) for q in range(n) if want[q] > -np.inf]
        assert len(set(possible)) == len(possible)
        found = [place[path] for path in possible]
        assert found == pytest.approx(want[: len(found)], rel=1e-12, abs=1e-10)


def test_drawn_paths_have_the_posterior_of_paths():
    rng = np.random.default_rng(3)
    tables = rng.dirichlet(np.ones(3), (2, 3))
    chain = HiddenChain([0.5, 0.5, 0.0], tables, [0, 1, 0, 1, 1])
    seen = Observed.of(rng.normal(size=(5, 3)), [0, 3, 5])
    drawn = chain.draw(seen, 40_000, seed=1)
    for s, (a, b) in enumerate(((0, 3), (3, 5))):
        paths, logs = enumerated(chain, seen, s)
        p = weights(logs)[0]
        for path, want in zip(paths, p, strict=True):
            share = (drawn[:, a:b] == path).all(axis=1).mean()
            assert abs(share - want) < 5 * np.sqrt(want * (1 - want) / 40_000) + 1e-12
    assert (chain.draw(seen, 4, seed=1) == chain.draw(seen, 4, seed=1)).all()


@settings(max_examples=5, deadline=None)
@given(chains())
def test_compiled_and_plain_kernels_agree(problem):
    chain, seen = problem

    def answers(seen):
        paths = (*chain.best(seen), *chain.ranked(seen, 3))
        return [*chain.filter(seen)[2:], *chain.expect(seen), *paths, chain.log_probs(seen)]

    plain = answers(seen)
    drawn = chain.draw(seen, 3, seed=0)
    with preferred():
        again = Observed(seen.logs, seen.codes, seen.offsets)
        code = answers(again)
        assert (chain.draw(again, 3, seed=0) == drawn).all()
    for a, b in zip(plain, code, strict=True):
        assert a == pytest.approx(b, rel=1e-12, abs=1e-12)


def test_many_sequences_in_parts_are_the_sum_of_each():
    rng = np.random.default_rng(0)
    chain = HiddenChain(rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4), 4))
    lengths = rng.integers(1, 200, 60)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    seen = Observed(rng.normal(size=(7, 4)), rng.integers(0, 7, offsets[-1]), offsets)
    together = chain.expect(seen)
    alone = [
        chain.expect(Observed(seen.logs, seen.codes[a:b], np.array([0, b - a]))) for a, b in pairwise(offsets)
    ]
    for field in ("sums", "starts", "pairs"):
        want = sum(getattr(one, field) for one in alone)
        assert getattr(together, field) == pytest.approx(want, rel=1e-10)
    assert together.log_probs == pytest.approx(np.concatenate([one.log_probs for one in alone]), rel=1e-12)


@pytest.mark.slow
def test_a_million_steps_do_not_underflow():
    rng = np.random.default_rng(0)
    chain = HiddenChain([0.5, 0.5], [[0.99, 0.01], [0.02, 0.98]])
    seen = Observed.of(rng.normal(size=(1_000_000, 2)) * 5 - 700)
    found = chain.smooth(seen)
    assert np.isfinite(found.log_probs[0])
    assert np.abs(found.sums.sum(axis=1) - 1.0).max() < 1e-9
    assert chain.expect(seen).pairs.sum() == pytest.approx(999_999, rel=1e-9)
    path, best = chain.best(seen)
    assert best[0] < found.log_probs[0] < best[0] + 1e6 * np.log(2)
    steps = seen.logs[np.arange(len(path)), path].sum() + np.log(chain.tables[0][path[:-1], path[1:]]).sum()
    assert best[0] == pytest.approx(steps + np.log(0.5), rel=1e-12)


def test_a_step_that_only_unreachable_states_explain_well_is_no_underflow():
    chain = HiddenChain([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    seen = Observed.of(np.array([[0.0, 0.0], [-5000.0, 0.0], [-1.0, 3000.0]]))
    found = chain.smooth(seen)
    assert found.log_probs[0] == -5001.0
    assert found.sums.tolist() == [[1.0, 0.0]] * 3


def test_an_impossible_step_is_named():
    chain = HiddenChain([1.0, 0.0], [[1.0, 0.0], [0.0, 1.0]])
    with np.errstate(divide="ignore"):
        seen = Observed.of(np.log([[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]), [0, 1, 3])
    found = chain.expect(seen)
    assert found.log_probs.tolist() == [pytest.approx(np.log(0.5)), -np.inf]
    assert found.stuck.tolist() == [-1, 2]
    with pytest.raises(InvalidArgument, match="sequence 1 is impossible"):
        chain.draw(seen, 1, seed=0)


def test_what_rescaled_sums_would_lose_is_found_in_logarithms():
    tables = np.array([[1.0, 0.0], [0.0, 1.0]])  # the chain stays where it began
    logs = np.array([[0.0, -2000.0], [0.0, 0.0], [-2001.0, 0.0]])
    lonely = Observed(logs, np.array([0, 1, 2, 0, 2]), np.array([0, 3, 5]))
    chain = HiddenChain([0.5, 0.5], tables)
    p = 1 / (1 + np.e)
    for found in (chain.filter(lonely), chain.smooth(lonely), chain.expect(lonely)):
        assert found.log_probs == pytest.approx(np.full(2, -2000.0 + np.log((1 + np.exp(-1.0)) / 2)))
        assert found.stuck.tolist() == [-1, -1]
    assert chain.smooth(lonely).sums == pytest.approx(np.tile([p, 1 - p], (5, 1)))
    assert chain.expect(lonely).pairs[0] == pytest.approx(np.diag([3 * p, 3 * (1 - p)]))
    drawn = chain.draw(lonely, 4_000, seed=0)
    assert (drawn[:, 0] == drawn[:, 2]).all()
    assert drawn.mean(axis=0) == pytest.approx(np.full(5, 1 - p), abs=0.04)


@pytest.mark.parametrize("k", [3, 14])  # few states and many go through different loops
def test_best_paths_of_few_and_many_states_are_those_of_plain_dynamic_programming(k):
    rng = np.random.default_rng(k)
    start, table = rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k)
    logs = np.log(rng.dirichlet(np.ones(5), k).T.copy())
    codes = rng.integers(0, 5, 30)
    score, origins = np.log(start) + logs[codes[0]], []
    for code in codes[1:]:
        ways = score[:, None] + np.log(table)
        origins.append(ways.argmax(axis=0))
        score = ways.max(axis=0) + logs[code]
    path = [int(score.argmax())]
    for origin in origins[::-1]:
        path.append(int(origin[path[-1]]))
    found, log_prob = HiddenChain(start, table).best(Observed(logs, codes, np.array([0, 30])))
    assert found.tolist() == path[::-1]
    assert log_prob[0] == pytest.approx(score.max())


def test_a_state_that_all_but_vanishes_and_comes_back_is_counted_in_scores():
    # each of two states that never change is 1e-800 times less probable than the other in one half
    seen = Observed(np.array([[0.0, -92.0], [-92.0, 0.0]]), np.repeat([0, 1], 20), np.array([0, 40]))
    for code in (nullcontext(), preferred()):
        with code:
            assert HiddenChain([0.5, 0.5], np.eye(2)).log_probs(seen) == pytest.approx([-1840.0], abs=1e-9)
