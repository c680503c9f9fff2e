"""The one reading of `seed=`: what every function that draws random numbers accepts, and its one error.

The same whole number gives the same draws. A NumPy generator is used as it is and moves on, so several calls can
share one stream; None takes fresh entropy from the operating system.
"""

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
