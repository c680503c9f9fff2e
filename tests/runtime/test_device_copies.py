"""Copies from the GPU, on one where there is one, else on its stand-in."""

import numpy as np
import pytest

from cuda_on_processor import stand_in
from markovia.runtime import device_copies, devices
from markovia.runtime.libraries import cp


@pytest.fixture(autouse=True)
def device():
    if devices.gpu() is not None:
        yield
    else:
        with stand_in() as small:
            small.cuda.alloc_pinned_memory = lambda size: np.full(size, 0x55, dtype=np.uint8)
            yield


@pytest.mark.parametrize("size", [0, 1, 511, 512, 513, 1024, 5000])
def test_every_byte_arrives_once(size, monkeypatch):
    monkeypatch.setattr(device_copies, "PIECE", 512)
    monkeypatch.setattr(device_copies, "SLICE", 100)
    numbers = np.random.default_rng(size).integers(256, size=size).astype(np.uint8)
    here = np.zeros(size + 2, dtype=np.uint8)
    device_copies.bring(cp.asarray(numbers), here[1:-1])
    np.testing.assert_array_equal(here[1:-1], numbers)
    assert here[0] == here[-1] == 0


def test_tables_keep_their_shape():
    numbers = np.random.default_rng(0).random((1000, 2100))
    here = np.empty((2000, 2100))
    device_copies.bring(cp.asarray(numbers), here[500:1500])
    np.testing.assert_array_equal(here[500:1500], numbers)
