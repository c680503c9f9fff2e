"""Beam search along hidden chains beside Viterbi's recursion: values, bounds, and sequences that no path is found for."""

import itertools

import numpy as np
import pytest

from markovia.inference.sequences.hidden_chain import HiddenChain, Observed


def weight(chain, logs, path):
    with np.errstate(divide="ignore"):
        moves = np.log(chain.tables[0][path[:-1], path[1:]]).sum()
        return np.log(chain.start[path[0]]) + moves + logs[np.arange(len(path)), path].sum()


@pytest.mark.parametrize("zeros", [0.0, 0.3])
def test_paths_have_their_weight_and_gaps_hold(zeros):
    rng = np.random.default_rng(1)
    proved = lost = 0
    for _ in range(60):
        k, n = int(rng.integers(1, 6)), int(rng.integers(2, 12))
        chain = HiddenChain(
            rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), k) * (rng.random((k, k)) >= zeros)
        )
        logs = rng.normal(scale=2.0, size=(n, k))
        logs[rng.random((n, k)) < zeros / 2] = -np.inf
        offsets = [0, int(rng.integers(1, n)), n]
        seen = Observed.of(logs, offsets)
        _, best = chain.best(seen)
        for width in range(1, k + 2):
            paths, values, gaps = chain.beam(seen, width)
            for s, (a, b) in enumerate(itertools.pairwise(offsets)):
                if values[s] == -np.inf:
                    assert gaps[s] == np.inf or best[s] == -np.inf
                    lost += best[s] > -np.inf
                    continue
                assert values[s] == pytest.approx(weight(chain, logs[a:b], paths[a:b]), abs=1e-9)
                assert values[s] <= best[s] + 1e-9 <= values[s] + gaps[s] + 2e-9
                assert width < k or (values[s] == pytest.approx(best[s], abs=1e-9) and gaps[s] == 0.0)
                proved += width < k and gaps[s] == 0.0
    assert proved > 20
    assert (lost > 0) == (zeros > 0)


def test_a_beam_of_one_takes_the_obvious_path_and_can_be_arbitrarily_bad():
    chain = HiddenChain([0.6, 0.4], [[0.5, 0.5], [0.5, 0.5]])
    easy = Observed.of(np.log([[0.9, 0.1], [0.2, 0.8], [0.9, 0.1]]))
    paths, values, gaps = chain.beam(easy, 1)
    assert paths.tolist() == [0, 1, 0]
    assert gaps.tolist() == [0.0]
    assert values == pytest.approx(chain.best(easy)[1])
    for loss in (1.0, 20.0):  # state 0 looks better at first and cannot be left
        trap = HiddenChain([0.6, 0.4], [[1.0, 0.0], [0.0, 1.0]])
        late = Observed.of(np.array([[0.0, 0.0], [-loss, 0.0]]))
        paths, values, gaps = trap.beam(late, 1)
        assert paths.tolist() == [0, 0]
        assert values == pytest.approx(np.log(0.6) - loss)
        assert gaps[0] == pytest.approx(np.log(0.4) - np.log(0.6) + loss)


def test_moves_may_differ_from_step_to_step():
    rng = np.random.default_rng(3)
    tables = rng.dirichlet(np.ones(4), (3, 4))
    chain = HiddenChain(rng.dirichlet(np.ones(4)), tables, rng.integers(0, 3, size=30))
    seen = Observed.of(rng.normal(size=(30, 4)))
    paths, values, _gaps = chain.beam(seen, 4)
    assert (paths == chain.best(seen)[0]).all()
    assert values == pytest.approx(chain.best(seen)[1])
    narrow = chain.beam(seen, 2)
    assert narrow[1][0] <= values[0] + 1e-9 <= narrow[1][0] + narrow[2][0] + 2e-9
