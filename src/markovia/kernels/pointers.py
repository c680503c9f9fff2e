"""Arrays as bare pointers inside kernels.

An array is seven numbers to Numba, counted by reference wherever it goes, and its indices may be negative; a pointer is one
number, compiles in half the time, and costs nothing to hand on. `pointer` makes one of a contiguous array of numbers,
`beyond` one of its tail, `pointers` a tuple of them of a tuple of arrays; they are indexed as arrays are. The caller of the
kernel keeps the memory alive, and nothing checks a bound.
"""

from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic


def _address(array):
    # an array by columns is contiguous too, but a kernel counts along its rows and would read it transposed
    if array.layout != "C" or array.dtype == types.boolean:
        raise TypingError(f"pointers are for arrays of numbers that lie row by row, not for {array}")
    return types.CPointer(array.dtype)


@intrinsic
def pointer(typing_context, array):
    """Return the address of a contiguous array's first entry."""

    def generate(context, builder, signature, arguments):
        return context.make_array(signature.args[0])(context, builder, arguments[0]).data

    return _address(array)(array), generate


@intrinsic
def beyond(typing_context, start, places):
    """Return the address so many places further on."""

    def generate(context, builder, signature, arguments):
        return builder.gep(arguments[0], [arguments[1]])

    return start(start, types.int64), generate


@intrinsic
def pointers(typing_context, arrays):
    """Return a tuple of contiguous arrays, with names or without, as such a tuple of addresses."""

    def generate(context, builder, signature, arguments):
        items = zip(arrays.types, cgutils.unpack_tuple(builder, arguments[0]), strict=True)
        found = [context.make_array(kind)(context, builder, item).data for kind, item in items]
        return context.make_tuple(builder, signature.return_type, found)

    kinds = [_address(array) for array in arrays.types]
    return types.BaseTuple.from_types(kinds, getattr(arrays, "instance_class", None))(arrays), generate
