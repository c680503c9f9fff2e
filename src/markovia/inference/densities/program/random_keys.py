"""Keys for JAX's random numbers, made by NumPy: making them in JAX would compile something first."""

import numpy as np
from numpy.typing import NDArray


def random_keys(seed: int | None, n: int) -> NDArray[np.uint32]:
    """Return n independent keys, one a row; the same for the same seed, others each time for None.

    Examples
    --------
    >>> random_keys(0, 3).shape, bool((random_keys(0, 3) == random_keys(0, 3)).all())
    ((3, 2), True)
    """
    words: NDArray[np.uint32] = np.random.SeedSequence(seed).generate_state(2 * n).astype(np.uint32)
    return words.reshape(n, 2)
