"""The one reading of `seed=`: what every function that draws random numbers accepts, and its one error.

The same whole number gives the same draws. A NumPy generator is used as it is and moves on, so several calls can
share one stream; None takes fresh entropy from the operating system.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.errors import InvalidArgument

Seed = int | np.random.Generator | np.random.SeedSequence | np.random.RandomState | None


def generator(seed: Seed) -> np.random.Generator:
    """Return the random generator that a seed stands for.

    Parameters
    ----------
    seed
        A whole number that is not negative, a NumPy `Generator` or `SeedSequence`, or None for fresh entropy. A
        `RandomState`, which scikit-learn hands about, moves on by the one draw that seeds a generator.

    Returns
    -------
    numpy.random.Generator
        A new generator, or the given one itself.

    Raises
    ------
    InvalidArgument
        For anything else, such as a string, a fraction, a negative number or a truth value.

    Examples
    --------
    >>> bool(generator(0).random() == generator(0).random())
    True
    >>> rng = generator(0)
    >>> generator(rng) is rng
    True
    >>> generator("zero")
    Traceback (most recent call last):
    ...
    markovia.errors.InvalidArgument: seed must be a whole number >= 0, ... or None, not 'zero'
    """
    if seed is None or isinstance(seed, np.random.Generator | np.random.SeedSequence):
        return np.random.default_rng(seed)
    if isinstance(seed, np.random.RandomState):
        return np.random.default_rng(seed.randint(2**31))
    whole = isinstance(seed, int | np.integer) and not isinstance(seed, bool)
    if not whole or seed < 0:
        raise InvalidArgument(
            f"seed must be a whole number >= 0, a NumPy Generator or SeedSequence, or None, not {seed!r}"
        )
    return np.random.default_rng(int(seed))


def kernel_seed(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Return a state for the random numbers of kernels, drawn from a generator."""
    return rng.integers(0, 2**64, size=4, dtype=np.uint64)


def random_keys(seed: int | None, n: int) -> NDArray[np.uint32]:
    """Return n independent keys of JAX, one a row; the same for the same seed, others each time for None.

    They are made by NumPy: making them in JAX would compile something first.

    Examples
    --------
    >>> random_keys(0, 3).shape, bool((random_keys(0, 3) == random_keys(0, 3)).all())
    ((3, 2), True)
    """
    words: NDArray[np.uint32] = np.random.SeedSequence(seed).generate_state(2 * n).astype(np.uint32)
    return words.reshape(n, 2)


def mixed_bits(numbers: NDArray[Any], seed: int) -> NDArray[np.uint64]:
    """Return whole numbers with their bits mixed (splitmix64)."""
    z = numbers.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15 * seed % 2**64)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def row_marks(rows: Iterable[NDArray[Any]]) -> NDArray[np.uint32]:
    """Return a number for each row of some arrays that depends on nothing but what stands in it.

    A key folded with it gives a row the same random numbers wherever it stands, and whatever rows stand beside it.

    Examples
    --------
    >>> a = np.array([[1.0, 2.0], [3.0, 4.0], [1.0, 2.0]])
    >>> marks = row_marks([a])
    >>> bool(marks[0] == marks[2]), bool(marks[0] == marks[1]), bool((row_marks([a[::-1]]) == marks[::-1]).all())
    (True, False, True)
    """
    total: Any = np.uint64(0)
    for i, array in enumerate(rows):
        flat = (np.asarray(array).reshape(len(array), -1) + 0.0).view(np.uint64)  # + 0.0: one zero, not two
        places = mixed_bits(np.arange(flat.shape[1]), i + 1)
        total = mixed_bits(total + mixed_bits(flat + places, 1).sum(axis=1, dtype=np.uint64), i + 1)
    return np.asarray(total >> np.uint64(32)).astype(np.uint32)
