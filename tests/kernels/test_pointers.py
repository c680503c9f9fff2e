"""Arrays as pointers: only those that lie as kernels count."""

import numba
import numpy as np
import pytest

from markovia.kernels.pointers import pointer


@numba.njit
def second(array):
    return pointer(array)[1]


def test_arrays_by_columns_are_refused_instead_of_read_transposed():
    array = np.arange(6.0).reshape(2, 3)
    assert second(array) == 1.0
    for other in (np.asfortranarray(array), array[:, ::2]):
        with pytest.raises(numba.TypingError, match="row by row"):
            second(other)
