"""Expected counts on the GPU, against the processor's: on a GPU where there is one, else compiled as C++."""

import pickle

import numpy as np
import pytest

import markovia as mk
from cuda_on_processor import COMPILER, stand_in
from markovia.data.tables.reading import read_data
from markovia.errors import DeviceWarning
from markovia.learning.incomplete import device_counts, incomplete_rows
from markovia.learning.incomplete.incomplete_rows import IncompleteRows, TableLayout
from markovia.learning.tables.table_learner import NodeFamily
from markovia.runtime import devices
from model_strategies import random_case

ON_GPU = mk.engines.Auto(device="gpu")


@pytest.fixture(autouse=True)
def device():
    if devices.gpu() is not None:
        yield
    elif COMPILER is None:
        pytest.skip("no GPU, and no C++ compiler")
    else:
        with stand_in():
            yield


def rows_of(bn, n, share, seed, device=None, weights=None):
    """Rows with gaps and, with some luck, a hidden variable, laid out; and the tables in one array."""
    rng = np.random.default_rng(seed)
    frame = bn.sample(n, seed=seed).astype(object)
    frame = frame.mask(rng.random(frame.shape) < share)
    if rng.random() < 0.5:
        frame = frame.drop(columns=str(rng.choice(bn.variables)))
    return laid_out(bn, frame, device, weights)


def laid_out(bn, frame, device, weights=None):
    tables = [bn[v] for v in bn.variables]
    families = [NodeFamily(t.variable, t.parents, t) for t in tables]
    variables = {t.variable.name: t.variable for t in tables}
    table = read_data(frame, list(frame), variables=variables, weights=weights).in_memory()
    layout = TableLayout.of_families(families)
    return IncompleteRows(layout, table, device=device), layout.flat(tables)


def expected(rows, theta, weights=None):
    counts = np.zeros(len(theta))
    log_mass, bad = rows.expect(theta, counts, weights)
    return counts, log_mass, bad


@pytest.mark.parametrize("seed", range(12))
def test_counts_equal_those_of_the_processor(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    bn = random_case(seed, "directed", 800).model
    n = int(rng.integers(1, 60))
    weights = rng.random(n) * 10.0 ** rng.integers(-2, 6) if rng.random() < 0.5 else None
    share = rng.choice([0.0, 0.1, 0.4, 1.0])
    here, theta = rows_of(bn, n, share, seed, "cpu", weights)
    if rng.random() < 0.5:  # large patterns are left to the processor
        monkeypatch.setattr(device_counts, "ROOMS", (0, 4, 9))
        monkeypatch.setattr(device_counts, "LARGEST_ROOM", 9)
    there, _ = rows_of(bn, n, share, seed, "gpu", weights)
    factors = rng.random(n) * (rng.random(n) < 0.7)
    for given in (None, factors):
        counts, log_mass, bad = expected(here, theta, given)
        found, log_there, bad_there = expected(there, theta, given)
        assert bad == bad_there == -1
        scale = max(1.0, float(counts.max(initial=0.0)))
        np.testing.assert_allclose(found, counts, rtol=1e-10, atol=1e-13 * scale)
        np.testing.assert_allclose(log_there, log_mass, rtol=1e-11, atol=1e-11)
        np.testing.assert_array_equal(expected(there, theta, given)[0], found)  # the same in every run
    assert there.device == "gpu"


def test_small_counts_beside_large_ones_keep_their_digits():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[1 - 1e-9, 1e-9])
    bn.add("b", states=[0, 1], parents=["a"], p=[[0.7, 0.3], [0.2, 0.8]])
    frame = {"a": [None] * 3, "b": [0, 1, 0]}
    weights = np.array([1e6, 3e6, 1.0])
    found = mk.learning.expected_counts(bn, frame, weights=weights, engine=ON_GPU)
    here = mk.learning.expected_counts(bn, frame, weights=weights)
    for a, b in zip(found.counts, here.counts, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_the_first_impossible_row_is_named():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1, 0], [1, 0]])
    frame = {"a": [None, 0, None, None], "b": [0, None, 1, 1]}
    with pytest.raises(mk.errors.ImpossibleEvidence, match="row 2"):
        mk.learning.expected_counts(bn, frame, engine=ON_GPU)


def test_rows_without_weight_may_be_impossible():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1, 0], [1, 0]])
    rows, theta = laid_out(bn, {"a": [None, None], "b": [0, 1]}, "gpu")
    counts, log_mass, bad = expected(rows, theta, np.array([2.0, 0.0]))
    assert bad == -1
    assert counts.tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 0.0]
    assert log_mass == 0.0


def test_long_chains_do_not_underflow():
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(1)
    for i in range(60):
        before = [f"h{i - 1}"] if i else []
        bn.add(f"h{i}", states=2, parents=before, p=rng.dirichlet([1, 1], size=[2] * len(before)).tolist())
        p = rng.random(2) * 1e-30
        bn.add(f"o{i}", states=2, parents=[f"h{i}"], p=np.stack([p, 1 - p], axis=1))
    seen = {f"o{i}": [0, 0, 1] for i in range(60)}
    here, theta = laid_out(bn, seen, "cpu")
    counts, log_mass, _ = expected(here, theta)
    found, log_there, _ = expected(laid_out(bn, seen, "gpu")[0], theta)
    np.testing.assert_allclose(found, counts, rtol=1e-10, atol=1e-12)
    assert log_there == pytest.approx(log_mass, rel=1e-12)


@pytest.mark.parametrize("hard", [False, True])
def test_a_fit_is_that_of_the_processor(hard):
    truth = mk.examples.asia()
    rng = np.random.default_rng(5)
    frame = truth.sample(300, seed=4).astype(object)
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    fits = [
        truth.copy().fit(frame, missing=mk.EM(engine=engine, hard=hard, max_iterations=5, tolerance=0))
        for engine in ("auto", ON_GPU)
    ]
    for name in truth.variables:
        np.testing.assert_allclose(fits[1][name].values, fits[0][name].values, rtol=1e-9, atol=1e-12)
    assert fits[1].fit_.log_likelihood == pytest.approx(fits[0].fit_.log_likelihood, rel=1e-12)


def test_what_lies_on_the_gpu_stays_there_when_rows_travel():
    rows, theta = rows_of(mk.examples.asia(), 100, 0.3, 2, "gpu")
    counts, *_ = expected(rows, theta)
    assert "_there" in rows._there.__dict__
    twin = pickle.loads(pickle.dumps(rows))
    assert "_there" not in twin._there.__dict__
    np.testing.assert_array_equal(expected(twin, theta)[0], counts)


def test_a_gpu_that_fails_is_left_alone(monkeypatch):
    here, theta = rows_of(mk.examples.asia(), 100, 0.3, 2, "cpu")
    rows, _ = rows_of(mk.examples.asia(), 100, 0.3, 2, "gpu")
    monkeypatch.setattr(devices, "_said", set())
    monkeypatch.setattr(device_counts, "_threads", lambda wanted, words: _raise())
    with pytest.warns(DeviceWarning, match="the processor answers"):
        found = expected(rows, theta)
    assert rows.device == "cpu"
    np.testing.assert_array_equal(found[0], expected(here, theta)[0])


def _raise():
    raise devices.DeviceFailure("the GPU failed (a test)")


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_the_gpu_takes_over_where_the_processor_takes_long(seconds, monkeypatch):
    rows, theta = rows_of(mk.examples.asia(), 100, 0.3, 2)
    monkeypatch.setattr(incomplete_rows, "GPU_SECONDS", seconds)
    first, again = expected(rows, theta), expected(rows, theta)
    np.testing.assert_allclose(again[0], first[0], rtol=1e-11, atol=1e-12)
    assert ("_there" in rows.__dict__) == (seconds == 0.0)
