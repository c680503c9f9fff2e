"""Chains of segments: every recursion against enumeration of all segmentations, compiled and plain."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markovia.errors import InvalidArgument
from markovia.inference.sequences.hidden_chain import HiddenChain, Observed
from markovia.inference.sequences.segments import SegmentChain, at_least
from markovia.kernels.compiled_code import preferred


@st.composite
def problems(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    k, longest = draw(st.integers(1, 3)), draw(st.integers(1, 4))
    steps = draw(st.lists(st.integers(1, 5), min_size=1, max_size=3))
    sparse, size = draw(st.sampled_from([0.0, 0.2])), draw(st.sampled_from([1.0, 300.0]))

    def scores(*shape):
        return np.where(rng.random(shape) < sparse, -np.inf, rng.normal(scale=size, size=shape))

    lengths = scores(k, longest)
    last = draw(st.sampled_from(["same", "at least", "other"]))
    tails = {"same": None, "at least": at_least(lengths), "other": scores(k, longest)}[last]
    chain = SegmentChain(scores(k), scores(k, k), lengths, tails)
    return chain, scores(sum(steps), k), np.concatenate([[0], np.cumsum(steps)])


def enumerated(chain, scores):
    """All segmentations of one sequence: (labels, opens), score, and what each counts."""
    steps, (k, longest) = len(scores), chain.lengths.shape
    for opens in product([True, False], repeat=steps - 1):
        bounds = [0, *(i + 1 for i, new in enumerate(opens) if new), steps]
        if max(np.diff(bounds)) > longest:
            continue
        for labels in product(range(k), repeat=len(bounds) - 1):
            pieces = list(zip(labels, np.diff(bounds).tolist(), strict=True))
            score = chain.start[labels[0]] + sum(chain.moves[i, j] for i, j in pairwise(labels))
            score += sum(chain.lengths[j, d - 1] for j, d in pieces[:-1])
            score += chain.last[pieces[-1][0], pieces[-1][1] - 1]
            path = np.repeat(labels, np.diff(bounds))
            yield path, (True, *opens), score + scores[np.arange(steps), path].sum(), pieces


@settings(max_examples=30, deadline=None)
@given(problems(), st.integers(1, 6))
def test_the_best_segmentations_are_those_of_all_in_order(problem, n):
    chain, scores, offsets = problem
    found = chain.ranked(scores, n, offsets)
    for s, (a, b) in enumerate(pairwise(offsets)):
        every = {(tuple(one[0].tolist()), one[1]): one[2] for one in enumerated(chain, scores[a:b])}
        want = sorted((v for v in every.values() if v > -np.inf), reverse=True)[:n]
        own = found.log_probs[s]
        np.testing.assert_allclose(own[: len(want)], want, rtol=1e-11, atol=1e-9)
        assert (own[len(want) :] == -np.inf).all()
        shown = [(tuple(found.labels[q, a:b].tolist()), tuple(found.opens[q, a:b])) for q in range(len(want))]
        assert len(set(shown)) == len(want)
        np.testing.assert_allclose([every[one] for one in shown], want, rtol=1e-11, atol=1e-9)


@settings(max_examples=60, deadline=None)
@given(problems())
def test_sums_and_counts_are_those_of_all_segmentations(problem):
    chain, scores, offsets = problem
    k = len(chain.start)
    found, best = chain.expect(scores, offsets), chain.best(scores, offsets)
    filtered, sums = chain.filter(scores, offsets)
    starts, moves = np.zeros(k), np.zeros((k, k))
    lengths, last = np.zeros_like(chain.lengths), np.zeros_like(chain.lengths)
    for s, (a, b) in enumerate(pairwise(offsets)):
        every = list(enumerated(chain, scores[a:b]))
        values = np.array([one[2] for one in every])
        total = np.logaddexp.reduce(values) if len(values) else -np.inf
        assert found.log_probs[s] == pytest.approx(total, rel=1e-11, abs=1e-9)
        assert sums[b - 1] == pytest.approx(total, rel=1e-11, abs=1e-9)
        for t in range(a + 1, b + 1):  # a filtered step is the last one of a shorter sequence
            short = list(enumerated(chain, scores[a:t]))
            p = np.array([one[2] for one in short])
            if len(p) and p.max() > -np.inf:
                p = np.exp(p - np.logaddexp.reduce(p))
                want = [sum(w for w, one in zip(p, short, strict=True) if one[0][-1] == j) for j in range(k)]
                assert filtered[t - 1] == pytest.approx(want, abs=1e-9)
        if total == -np.inf:
            assert best.log_probs[s] == -np.inf
            assert not found.steps[a:b].any()
            continue
        assert best.log_probs[s] == pytest.approx(values.max(), rel=1e-11, abs=1e-9)
        own = [
            one[2]
            for one in every
            if one[0].tolist() == best.labels[a:b].tolist() and list(one[1]) == best.opens[a:b].tolist()
        ]
        assert own == pytest.approx([values.max()], rel=1e-11, abs=1e-9)
        steps = np.zeros((b - a, k))
        for path, _, value, pieces in every:
            p = np.exp(value - total)
            steps[np.arange(b - a), path] += p
            starts[path[0]] += p
            for (i, _), (j, _) in pairwise(pieces):
                moves[i, j] += p
            for j, d in pieces[:-1]:
                lengths[j, d - 1] += p
            last[pieces[-1][0], pieces[-1][1] - 1] += p
        assert found.steps[a:b] == pytest.approx(steps, abs=1e-9)
    assert found.starts == pytest.approx(starts, abs=1e-9)
    assert found.moves == pytest.approx(moves, abs=1e-9)
    assert found.lengths == pytest.approx(lengths, abs=1e-9)
    assert found.last == pytest.approx(last, abs=1e-9)


def test_drawn_segmentations_have_their_probabilities():
    rng = np.random.default_rng(1)
    lengths = rng.normal(size=(2, 3))
    chain = SegmentChain(rng.normal(size=2), rng.normal(size=(2, 2)), lengths, at_least(lengths))
    scores, offsets = rng.normal(size=(6, 2)), np.array([0, 2, 6])
    drawn = chain.draw(scores, 30_000, offsets, seed=0)
    for a, b in pairwise(offsets):
        every = list(enumerated(chain, scores[a:b]))
        p = np.array([one[2] for one in every])
        p = np.exp(p - np.logaddexp.reduce(p))
        for (path, opens, _, _), want in zip(every, p, strict=True):
            same = (drawn.labels[:, a:b] == path).all(axis=1) & (drawn.opens[:, a:b] == opens).all(axis=1)
            assert abs(same.mean() - want) < 5 * np.sqrt(want * (1 - want) / 30_000) + 1e-12
    again = chain.draw(scores, 3, offsets, seed=0)
    assert (again.labels == chain.draw(scores, 3, offsets, seed=0).labels).all()


@settings(max_examples=5, deadline=None)
@given(problems())
def test_compiled_and_plain_kernels_agree(problem):
    chain, scores, offsets = problem
    plain = [*chain.expect(scores, offsets), *chain.best(scores, offsets), *chain.filter(scores, offsets)]
    with preferred():
        code = [*chain.expect(scores, offsets), *chain.best(scores, offsets), *chain.filter(scores, offsets)]
    for a, b in zip(plain, code, strict=True):
        assert a == pytest.approx(b, rel=1e-10, abs=1e-10, nan_ok=True)


def test_segments_of_geometric_length_are_a_hidden_chain():
    rng = np.random.default_rng(0)
    k, steps = 3, 300
    transition, start = rng.dirichlet(np.ones(k), k), rng.dirichlet(np.ones(k))
    stay = np.diag(transition)
    with np.errstate(divide="ignore"):
        moves = np.log((transition - np.diag(stay)) / (1 - stay)[:, None])
    lengths = np.arange(steps) * np.log(stay)[:, None] + np.log1p(-stay)[:, None]
    last = np.arange(steps) * np.log(stay)[:, None]
    segments = SegmentChain(np.log(start), moves, lengths, last)
    logs, offsets = rng.normal(size=(steps, k)), np.array([0, 200, 201, steps])
    hidden, seen = HiddenChain(start, transition), Observed.of(logs, offsets)
    found, want = segments.expect(logs, offsets), hidden.expect(seen)
    assert found.log_probs == pytest.approx(want.log_probs, rel=1e-12)
    assert found.steps == pytest.approx(hidden.smooth(seen).sums, abs=1e-11)
    assert segments.filter(logs, offsets)[0] == pytest.approx(hidden.filter(seen).now, abs=1e-11)
    inside = (found.lengths + found.last) @ np.arange(steps)
    assert found.moves + np.diag(inside) == pytest.approx(want.pairs[0], abs=1e-9)
    best = segments.best(logs, offsets)
    assert best.labels.tolist() == hidden.best(seen)[0].tolist()


def test_long_sequences_keep_their_digits():
    rng = np.random.default_rng(0)
    steps, k = 200_000, 2
    chain = SegmentChain(np.zeros(k), [[-np.inf, 0.0], [0.0, -np.inf]], np.log(np.full((k, 3), 1 / 3)))
    scores = rng.normal(size=(steps, k)) * 5 - 700
    found = chain.expect(scores)
    assert np.isfinite(found.log_probs[0])
    assert np.abs(found.steps.sum(axis=1) - 1.0).max() < 1e-10
    assert (found.lengths + found.last).sum() - 1.0 == pytest.approx(found.moves.sum(), rel=1e-12)
    best = chain.best(scores)
    assert best.log_probs[0] < found.log_probs[0]
    bounds = np.flatnonzero(np.append(best.opens, True))
    score = scores[np.arange(steps), best.labels].sum() + (len(bounds) - 1) * np.log(1 / 3)
    assert best.log_probs[0] == pytest.approx(score, rel=1e-12)


def test_a_sequence_without_a_segmentation_is_named():
    chain = SegmentChain([0.0], [[-np.inf]], [[0.0, 0.0]])
    assert chain.log_probs(np.zeros((5, 1)), [0, 2, 5]).tolist() == [pytest.approx(0.0), -np.inf]
    with pytest.raises(InvalidArgument, match="sequence 1 has no segmentation"):
        chain.draw(np.zeros((5, 1)), 1, [0, 2, 5])
