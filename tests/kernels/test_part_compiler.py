"""Kernels inside kernels, and operators whose signatures are remembered."""

import numpy as np
from numba.core import types
from numba.core.caching import NullCache

from markovia.kernels.kernel import kernel


def _made(function, **options):
    made = kernel(function, **options)
    made._cache = NullCache()
    return made


def test_a_kernel_that_another_kernel_calls_gets_no_machine_code_of_its_own():
    def twice(x):
        return 2.0 * x

    called = _made(twice, bare=True)

    def total(values):
        found = 0.0
        for i in range(len(values)):
            found += called(values[i])
        return found

    assert _made(total, bare=True)(np.array([1.0, 2.5])) == 7.0
    assert not called.overloads
    assert called(4.0) == 8.0  # Python may call it all the same


def test_remembered_operators_keep_their_types_apart_and_leave_numba_as_it_was():
    before = types.Function.get_call_type

    def over(a, b):
        return a // b, a * b + a

    for bare in (True, False):
        work = _made(over, bare=bare)
        assert work(7, 2) == (3, 21)
        assert work(7.5, 2) == (3.0, 22.5)
        assert [type(x) for x in (*work(7, 2), *work(7.5, 2))] == [int, int, float, float]
    assert types.Function.get_call_type is before
