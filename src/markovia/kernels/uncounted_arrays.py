"""Arrays without reference counts.

Numba counts references atomically whenever an array passes from one variable to another. On the small tables of a small
network that costs more than the arithmetic. `bare` returns the same memory as an array that nobody counts; the caller of
the kernel keeps the memory alive.
"""

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from markovia.kernels.kernel import kernel


@intrinsic
def _pointer(typing_context, address):
    """Turn an address into a pointer."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(types.voidptr))

    return types.voidptr(address), generate


@kernel
def bare_ints(array):
    """Return a contiguous array of int64 without its reference count."""
    return carray(_pointer(array.ctypes.data), len(array), np.int64)


@kernel
def bare_floats(array):
    """Return a contiguous array of float64 without its reference count."""
    return carray(_pointer(array.ctypes.data), len(array), np.float64)


@kernel
def bare_bytes(array):
    """Return a contiguous array of int8 without its reference count."""
    return carray(_pointer(array.ctypes.data), len(array), np.int8)
