"""Learning in pieces: with one state the sums are plain sums of rows, and all that follows from them is known by hand."""

import numpy as np
import pytest

import markovia as mk

RNG = np.random.default_rng(8)
PIECES = [
    [RNG.normal([1.0, -2.0], [1.5, 0.4], (n, 2)) @ [[1.0, 0.3], [0.0, 1.0]] + shift for n in sizes]
    for sizes, shift in (((9, 14), 0.0), ((6,), 3.0), ((12, 5, 8), -1.0))
]


def by_hand(decay):
    """Return mean and covariance after each piece: sums a sequence, of which piece t replaces the share t^-decay."""
    sums = None
    for t, piece in enumerate(PIECES, 1):
        rows = np.concatenate(piece)
        own = np.array([len(rows), *rows.sum(axis=0), *(rows.T @ rows).ravel()]) / len(piece)
        share = t**-decay
        sums = own if sums is None else (1 - share) * sums + share * own
        mean = sums[1:3] / sums[0]
        yield mean, sums[3:].reshape(2, 2) / sums[0] - np.outer(mean, mean)


@pytest.mark.parametrize("decay", [0.6, 1.0])
def test_each_piece_replaces_its_share_of_the_sums_and_mean_and_covariance_follow(decay):
    hmm = mk.HMM(1, emission="gaussian", covariance_type="full", learning_decay=decay, random_state=0)
    for piece, (mean, covariance) in zip(PIECES, by_hand(decay), strict=True):
        hmm.partial_fit(piece)
        assert hmm.means_[0] == pytest.approx(mean)
        assert hmm.covars_[0] == pytest.approx(covariance)
