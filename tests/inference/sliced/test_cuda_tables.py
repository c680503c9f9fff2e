"""The GPU alone: floats, failures, and how work is divided. Without a GPU its kernels run on the processor."""

from math import log

import numpy as np
import pytest

from cuda_on_processor import needs_compiler, stand_in
from markovia.inference.sliced import cuda_tables
from markovia.inference.sliced.cuda_tables import CudaTables
from markovia.inference.sliced.product_layout import Operand, ProductLayout
from markovia.runtime import devices
from products_by_hand import by_hand, in_logs, large_product, on_a_gpu, same


@pytest.fixture
def single():
    with on_a_gpu("single") as found:
        yield found


@needs_compiler
@pytest.mark.parametrize("shape", ["upward", "downward", "marginal of the first", "all"])
def test_floats_are_rounded_once_for_each_product(single, shape):
    layout, values = large_product(shape)
    inputs = [Operand(single.put(v)) for v in values]
    expected = by_hand(layout, [0] * len(values), values, False)
    same(in_logs(single, single.product(layout, inputs)), expected, 3e-7 * len(values))
    assert not single.lost()


@needs_compiler
@pytest.mark.parametrize(("exponent", "lost"), [(-100, False), (-107, False), (-109, True), (-400, True)])
def test_floats_keep_smaller_numbers_than_floats_have(single, exponent, lost):
    layout = ProductLayout((2,), (), ((1,), (1,)))
    small = single.put(np.array([1.0, 2.0**exponent]))
    found = single.product(layout, [Operand(small), Operand(small)])
    assert single.lost() == lost
    values, _ = single.numbers(found)
    assert (values > 0).all()
    if not lost:
        same(in_logs(single, found), np.array([0, 2 * exponent * log(2)]), 1e-6)


@needs_compiler
def test_offsets_of_lanes_may_be_longer_than_four_bytes(monkeypatch):
    monkeypatch.setattr(cuda_tables, "FAR", 0)
    layout, values = large_product("upward")
    with on_a_gpu() as machine:
        found = in_logs(machine, machine.product(layout, [Operand(machine.put(v)) for v in values]))
    same(found, by_hand(layout, [0] * len(values), values, False))


@needs_compiler
def test_a_thousand_products_take_new_slots(monkeypatch):
    monkeypatch.setattr(cuda_tables, "SLOTS", 3)
    with on_a_gpu() as machine:
        layout = ProductLayout((2,), (), ((1,), (1,)))
        half, table = machine.put(np.array([0.5, 0.25])), machine.put(np.ones(2))
        kept = []
        for _ in range(20):
            table = machine.product(layout, [Operand(table), Operand(half)])
            kept.append(table)
        for k, one in enumerate(kept):
            same(in_logs(machine, one), (k + 1) * np.log([0.5, 0.25]))


def test_without_a_gpu_there_is_no_machine(monkeypatch):
    if devices.gpu():
        pytest.skip("there is a GPU")
    with pytest.raises(devices.DeviceFailure, match="CuPy"):
        CudaTables()


@needs_compiler
def test_memory_that_is_not_there_is_a_failure_of_the_device():
    if devices.gpu():
        pytest.skip("there is a GPU")
    with stand_in() as cp:
        machine = CudaTables()
        table = machine.put(np.ones(2))

        def full(*_, **__):
            raise cp.cuda.memory.OutOfMemoryError("no memory")

        cp.cuda.alloc = full
        with pytest.raises(devices.DeviceFailure, match="no memory"):
            machine.product(ProductLayout((2,), (), ((1,),)), [Operand(table)])
