"""What Kalman kernels work on: `KalmanSteps` go in, `KalmanGains` come out, `DiffuseParts` with a diffuse start.

Sizes: n states, p numbers observed a step, and rows: those of all sequences after each other. Matrices have one entry for
all steps (1, ...), or one a step of a sequence. Gains stand in slots, as many as rows; the arrays of a slot that no row
points to are never touched.
"""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Flags, Ints


class KalmanSteps(NamedTuple):
    """A model's matrices and the sequences it is run over."""

    T: Array  # (1 or steps, n, n): transitions; turned to smooth covariances, inverted and turned in `information`
    Q: Array  # (1 or steps, n, n): covariances of their noise; roots in `kalman_root` and `information`
    Z: Array  # (1 or steps, p, n): what is observed of states
    H: Array  # (1 or steps, p, p): the covariances of its noise
    seen: Flags  # (rows, p): which numbers are not missing
    offsets: Ints  # (sequences + 1,): where each sequence begins
    begin: Ints  # (sequences,): the first row whose start is told, where an ordinary filter begins


class KalmanGains(NamedTuple):
    """What does not depend on the observations; numbers are taken in one at a time."""

    slot: Ints  # (rows,): the slot of each row
    before: Array  # (slots, n, n): covariances of states given what was seen before a step
    after: Array  # (slots, n, n): and up to it
    z: Array  # (slots, p, n): what each number shows of the state
    gain: Array  # (slots, p, n): by how much its innovation moves the state
    weight: Array  # (slots, p): one over the variance of its innovation
    lower: Array  # (slots, p, p): L of H = L D L', with D on its diagonal
    logs: Array  # (slots,): the log likelihood's terms without innovations, times -2


class DiffuseParts(NamedTuple):
    """The parts of covariances that grow without bound, while a diffuse start is not told."""

    rank: Ints  # (rows,): how many directions a row begins with that are not told
    before: Array  # (slots, n, n): as those of `KalmanGains`
    after: Array  # (slots, n, n)
    variance: Array  # (slots, p): the finite part of an innovation's variance
    told: Array  # (slots, p): the part without bound; above 0, a number is spent on the start
    gain: Array  # (slots, p, n): the gain's second term, in 1 / kappa


class DiffuseStart(NamedTuple):
    """Where sequences begin: the covariance P, the directions A that are not told, and the rounding in rows of A."""

    P: Array  # (sequences, n, n)
    A: Array  # (sequences, n, directions)
    slack: Array  # (sequences, n)


class FilteredMeans(NamedTuple):
    """Means of states before and after each step, innovations of numbers taken in one at a time, and log likelihoods."""

    before: Array  # (rows, n)
    after: Array  # (rows, n)
    innovation: Array  # (rows, p)
    log_prob: Array  # (sequences,)


class SmoothedCovariances(NamedTuple):
    """Covariances of states given whole sequences, and what N was when it came from the steps after, for neighbours."""

    place: Ints  # (rows,): the row that has the covariance of each
    covariance: Array  # (rows, n, n)
    entering: Array  # (rows, n, n)
    vague_entering: Array  # (rows, n, n): of the part without bound, or none
