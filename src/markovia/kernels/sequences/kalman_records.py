"""What Kalman kernels work on: `KalmanSteps` go in, `KalmanGains` come out, `DiffuseParts` with a diffuse start.

Sizes: n states, p numbers observed a step, and rows: those of all sequences after each other. Matrices have one entry for
all steps (1, ...), or one a step of a sequence. Gains stand in slots, as many as rows; the arrays of a slot that no row
points to are never touched.
"""

from typing import NamedTuple

from markovia.runtime.array_types import Array, Flags, Ints


class KalmanSteps(NamedTuple):
    """A model's matrices and the sequences it is run over.

    | field | shape | holds |
    |---|---|---|
    | T | (1 or steps, n, n) | transitions; turned in smoothers of covariances, inverted and turned in `information` |
    | Q | (1 or steps, n, n) | covariances of their noise; roots of these in `kalman_root` and `information` |
    | Z, H | (1 or steps, p, n), (1 or steps, p, p) | what is observed of states, and the covariances of its noise |
    | seen | (rows, p) | which numbers are not missing |
    | offsets | (sequences + 1,) | where each sequence begins |
    | begin | (sequences,) | the first row whose start is told, where an ordinary filter begins |
    """

    T: Array
    Q: Array
    Z: Array
    H: Array
    seen: Flags
    offsets: Ints
    begin: Ints


class KalmanGains(NamedTuple):
    """What does not depend on the observations; numbers are taken in one at a time.

    | field | shape | holds |
    |---|---|---|
    | slot | (rows,) | the slot of each row |
    | before, after | (slots, n, n) | covariances of states given what was seen before and up to a step |
    | z | (slots, p, n) | what each number shows of the state |
    | gain | (slots, p, n) | by how much its innovation moves the state |
    | weight | (slots, p) | one over the variance of its innovation |
    | lower | (slots, p, p) | L of H = L D L', with D on its diagonal |
    | logs | (slots,) | the log likelihood's terms without innovations, times -2 |
    """

    slot: Ints
    before: Array
    after: Array
    z: Array
    gain: Array
    weight: Array
    lower: Array
    logs: Array


class DiffuseParts(NamedTuple):
    """The parts of covariances that grow without bound, while a diffuse start is not told.

    | field | shape | holds |
    |---|---|---|
    | rank | (rows,) | how many directions a row begins with that are not told |
    | before, after | (slots, n, n) | as those of `KalmanGains` |
    | variance | (slots, p) | the finite part of an innovation's variance |
    | told | (slots, p) | the part without bound: a number for which it is above 0 is spent on the start |
    | gain | (slots, p, n) | the gain's second term, in 1 / kappa |
    """

    rank: Ints
    before: Array
    after: Array
    variance: Array
    told: Array
    gain: Array
