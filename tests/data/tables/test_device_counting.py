"""Counting on the GPU: whole numbers, the same as on the processor."""

import pickle

import numpy as np
import pytest

from cuda_on_processor import COMPILER, stand_in
from markovia.data.tables import device_counting
from markovia.data.tables.device_counting import DeviceCodes
from markovia.data.tables.row_sources import CodedTable
from markovia.errors import DeviceWarning
from markovia.factors.tables.variable import Variable
from markovia.runtime import devices


@pytest.fixture(autouse=True)
def device():
    if devices.gpu() is not None:
        yield
    elif COMPILER is None:
        pytest.skip("no GPU, and no C++ compiler")
    else:
        with stand_in():
            yield


def random_table(seed, n, gaps=0.2):
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 6, size=8)
    codes = rng.integers(0, cards[:, None], size=(8, n))
    holes = (rng.random(codes.shape) < gaps) & (rng.random((8, 1)) < 0.6)
    kind = rng.choice([np.int8, np.int16, np.int32])
    variables = [Variable(f"v{i}", list(range(c))) for i, c in enumerate(cards)]
    return CodedTable(variables, np.where(holes, -1, codes).astype(kind)), rng


def scopes_of(table, rng, n):
    names = list(table.variables)
    return [tuple(str(s) for s in rng.permutation(names)[: rng.integers(1, 5)]) for _ in range(n)]


@pytest.mark.parametrize("near", [1, 100, device_counting.NEAR])
@pytest.mark.parametrize("seed", range(4))
def test_counts_equal_those_of_the_processor(seed, near, monkeypatch):
    monkeypatch.setattr(device_counting, "NEAR", near)
    monkeypatch.setattr(device_counting, "ROWS_A_BLOCK", 600)
    table, rng = random_table(seed, n=1500)
    scopes = scopes_of(table, rng, 12)
    here, there = table.counts(scopes), table.counts(scopes, device="gpu")
    for a, b in zip(here, there, strict=True):
        assert a.shape == b.shape
        assert b.dtype == np.float64
        np.testing.assert_array_equal(a, b)
    assert "_there" in table.__dict__


def test_no_rows_no_tables_and_weights():
    table, rng = random_table(0, n=0)
    scopes = scopes_of(table, rng, 3)
    for a, b in zip(table.counts(scopes), table.counts(scopes, device="gpu"), strict=True):
        np.testing.assert_array_equal(a, b)
    assert table.counts([], device="gpu") == []
    weighted = CodedTable(
        [Variable("a", [0, 1])], np.array([[0, 1, 1]], dtype=np.int8), np.array([1.0, 2.0, 0.5])
    )
    assert weighted.counts([("a",)], device="gpu")[0].tolist() == [1.0, 2.5]


def test_rows_are_copied_once_and_stay_when_the_table_travels():
    table, rng = random_table(1, n=50)
    scopes = scopes_of(table, rng, 3)
    found = table.counts(scopes, device="gpu")
    held = table._there._there
    table.counts(scopes[:1], device="gpu")
    assert table._there._there is held
    twin = pickle.loads(pickle.dumps(table))
    assert "_there" not in twin._there.__dict__
    for a, b in zip(found, twin.counts(scopes, device="gpu"), strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_gpu_that_fails_lets_the_processor_count(monkeypatch):
    table, rng = random_table(2, n=50)
    scopes = scopes_of(table, rng, 3)

    def fail(self, scopes):
        raise devices.DeviceFailure("the GPU failed (a test)")

    monkeypatch.setattr(DeviceCodes, "counts", fail)
    monkeypatch.setattr(devices, "_said", set())
    with pytest.warns(DeviceWarning, match="the processor answers"):
        found = table.counts(scopes, device="gpu")
    for a, b in zip(table.counts(scopes), found, strict=True):
        np.testing.assert_array_equal(a, b)
