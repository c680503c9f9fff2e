"""The tables of the forward and backward recursions, against sums over all paths."""

from itertools import product

import numpy as np
import pytest

from markovia import HMM
from markovia.errors import InvalidArgument, UnsupportedModel

DIARY = {
    "start": [0.8, 0.2], "transition": [[0.6, 0.4], [0.5, 0.5]], "symbols": [1, 2, 3],
    "emission_params": {"probs": [[0.2, 0.4, 0.4], [0.5, 0.4, 0.1]]},
}  # fmt: skip


def test_the_tables_of_the_ice_cream_diary():
    diary = HMM(2, **DIARY)
    (forward,), (backward,) = diary.forward([3, 1, 3]), diary.backward([3, 1, 3])
    assert forward == pytest.approx(np.array([[0.32, 0.02], [0.0404, 0.069], [0.023496, 0.005066]]))
    assert backward == pytest.approx(np.array([[0.0836, 0.0905], [0.28, 0.25], [1.0, 1.0]]))
    assert (forward * backward).sum(axis=1) == pytest.approx([0.028562] * 3)
    assert diary.forward([3, 1, 3], log=True)[0] == pytest.approx(np.log(forward))


def test_tables_are_sums_over_paths_also_where_a_state_cannot_be():
    rng = np.random.default_rng(1)
    start, moves = np.array([0.0, 0.3, 0.7]), np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.2, 0.3, 0.5]])
    emits = rng.dirichlet([1.0, 1.0], size=3)
    model = HMM(3, start=start, transition=moves, emission_params={"probs": emits})
    sequences = [[0, 1, 1, 0], [1], [0, None, 1]]
    for x, forward, backward in zip(
        sequences, model.forward(sequences), model.backward(sequences), strict=True
    ):
        seen = np.array([[1.0] * 3 if s is None else emits[:, s] for s in x])
        for t in range(len(x)):
            for k in range(3):
                before = sum(
                    start[z[0]]
                    * np.prod([moves[z[i], z[i + 1]] for i in range(t)])
                    * np.prod(seen[range(t + 1), z])
                    for z in product(range(3), repeat=t + 1)
                    if z[t] == k
                )
                rest = len(x) - 1 - t
                after = sum(
                    np.prod([moves[a, b] for a, b in zip((k, *z), z, strict=False)])
                    * np.prod(seen[t + 1 :][range(rest), z])
                    for z in product(range(3), repeat=rest)
                )
                assert forward[t, k] == pytest.approx(before, abs=1e-15)
                assert backward[t, k] == pytest.approx(after, abs=1e-15)
        assert forward[-1].sum() == pytest.approx(np.exp(model.log_prob([x])[0]))


def test_long_sequences_are_told_in_logarithms_and_impossible_ones_are_zero():
    diary = HMM(2, **DIARY)
    long = [3, 1] * 2000
    with pytest.raises(InvalidArgument, match=r"of sequence 0 are below the smallest number; say log=True"):
        diary.forward(long)
    (logs,) = diary.forward(long, log=True)
    assert np.logaddexp.reduce(logs[-1]) == pytest.approx(diary.log_prob(long)[0], rel=1e-12)
    (both,) = diary.backward(long, log=True)
    assert np.logaddexp.reduce(logs + both, axis=1) == pytest.approx(
        np.full(4000, diary.log_prob(long)[0]), rel=1e-12
    )
    left = HMM(2, start=[1, 0], transition=[[1, 0], [0, 1]], emission_params={"probs": [[1, 0], [0, 1]]})
    assert left.forward([0, 1])[0].tolist() == [[1.0, 0.0], [0.0, 0.0]]


def test_states_with_a_memory_have_a_forward_table_and_no_backward_one():
    second = HMM(
        2, order=2, start=[[0.1, 0.2], [0.3, 0.4]], transition=[[[0.9, 0.1], [0.2, 0.8]], [[0.6, 0.4], [0.5, 0.5]]],
        emission_params={"probs": [[0.7, 0.3], [0.2, 0.8]]},
    )  # fmt: skip
    x = [0, 1, 1, 0]
    (forward,) = second.forward(x)
    assert forward[-1].sum() == pytest.approx(np.exp(second.log_prob(x)[0]))
    assert forward / forward.sum(axis=1, keepdims=True) == pytest.approx(second.filter(x)[0])
    with pytest.raises(UnsupportedModel, match="more than the present state"):
        second.backward(x)
