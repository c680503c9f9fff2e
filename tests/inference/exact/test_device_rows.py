"""Rows of data on the GPU, against the processor's kernel: on a GPU where there is one, else compiled as C++."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from cuda_on_processor import COMPILER, stand_in
from markovia.errors import DeviceWarning
from markovia.inference.choosing import evidence_rows
from markovia.inference.engine import get_engine
from markovia.inference.exact import device_rows, row_programs
from markovia.inference.exact.device_rows import DeviceRows
from markovia.models.graphical.data_rows import rows as model_rows
from markovia.runtime import devices
from model_strategies import random_case

ON_GPU = mk.engines.Auto(device="gpu")
FAR = 16
TURNS = {
    "warps": (device_rows.TURNS, device_rows.SHARED),
    "blocks": (((256, 1 << 21),), device_rows.SHARED),
    "little room, books far away": (((32, 9), (256, 40), (32, 1 << 21)), FAR),
    "too little room": (((32, 3), (256, 15)), device_rows.SHARED),
}


@pytest.fixture(autouse=True)
def device(monkeypatch):
    """Small tests do not wait for a kernel in everyday use; here they are to run in it, on what there is of a GPU."""
    monkeypatch.setattr(evidence_rows, "_few", lambda table, most: False)
    if devices.gpu() is not None:
        yield
    elif COMPILER is None:
        pytest.skip("no GPU, and no C++ compiler")
    else:
        with stand_in():
            yield


def random_table(case, rng, kinds):
    """Codes of some of the columns, some with gaps in some or all rows, in any layout and width."""
    n = int(rng.integers(1, 25))
    columns = [c for c in case.cards if rng.random() < 0.8]
    table = np.empty((n, len(columns)), dtype=int)
    for k, name in enumerate(columns):
        codes = rng.integers(case.cards[name], size=n)
        gaps = rng.random(n) < rng.choice([0.0, 0.2, 0.6, 1.0])
        table[:, k] = np.where(gaps, -1, codes)
    order = "F" if rng.random() < 0.5 else "C"
    return columns, table.astype(rng.choice(kinds), order=order)


def compiled(model, targets, columns, table):
    problem = model_rows._problem(model, get_engine("auto"))
    return evidence_rows.compiled_for(problem, mk.engines.JunctionTree(), targets, columns, table)


def compare(program, table):
    """Compare what both say of rows; return both statuses."""
    log_mass, posteriors, status = program.run(np.ascontiguousarray(table, dtype=np.int32))
    found, tables, ended = DeviceRows(program).run(table)
    done = (status == 0) & (ended == 0)
    np.testing.assert_allclose(found[done], log_mass[done], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tables[done], posteriors[done], rtol=1e-12, atol=1e-14)
    assert (found[ended == 1] == -np.inf).all()
    return status, ended


@pytest.mark.parametrize("turns", TURNS)
def test_rows_equal_those_of_the_processor(turns, monkeypatch):
    monkeypatch.setattr(device_rows, "TURNS", TURNS[turns][0])
    monkeypatch.setattr(device_rows, "SHARED", TURNS[turns][1])
    kinds = [np.int8, np.int16, np.int32, np.int64] if turns == "warps" else [np.int8]
    seen = np.zeros((4, 4), dtype=int)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        case = random_case(seed, max_entries=800)
        columns, table = random_table(case, rng, kinds)
        names = rng.permutation(list(case.cards))
        targets = [str(t) for t in names[: rng.integers(0, len(names) + 1)]]
        program = compiled(case.model, targets, columns, table)
        if program is None:  # a factor of zeros
            continue
        np.add.at(seen, compare(program, table), 1)
    assert seen[0, 0] > 50
    assert seen[1, 1] > 10
    assert seen[0, 1] == seen[1, 0] == 0
    assert (seen[:, 3].sum() > 0) == (turns == "too little room")


def test_rows_whose_products_may_leave_the_range_are_left_to_the_processor():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[1e-160, 1.0])
    for i in range(3):
        bn.add(f"b{i}", states=[0, 1], parents=["a"], p=[[1 - 1e-16, 1e-16], [1e-160, 1.0]])
    names = bn.variables
    table = np.array([[-1, 0, 0, 0], [-1, -1, 0, 1], [1, 1, -1, 1], [-1, -1, -1, -1]], dtype=np.int8)
    program = compiled(bn, names, names, table)
    assert 2 in DeviceRows(program).run(table)[2].tolist()
    frame = pd.DataFrame(np.where(table < 0, None, table), columns=names)
    here, there = bn.copy().log_prob(frame), bn.log_prob(frame, engine=ON_GPU)
    np.testing.assert_allclose(there, here, rtol=1e-12)
    # one table alone, whose operands are all factors
    table = np.array([[-1, 1, 1, 1], [-1, 0, 0, 0]], dtype=np.int8)
    program = compiled(bn, ["a"], names, table)
    assert DeviceRows(program).run(table)[2][1] == 2


def test_beliefs_of_improbable_rows_keep_their_scale():
    # every message is about 1e-90 of the table it comes from, on the way up and down
    bn = mk.BayesianNetwork()
    rng = np.random.default_rng(0)
    names = [f"h{i}" for i in range(8)]
    for i, name in enumerate(names):
        before = names[i - 1 : i] if i else []
        bn.add(name, states=3, parents=before, p=rng.dirichlet([1, 1, 1], size=[3] * len(before)).tolist())
        p = rng.random(3) * 1e-90
        bn.add(f"o{i}", states=2, parents=[name], p=np.stack([p, 1 - p], axis=1))
    table = np.zeros((2, 16), dtype=np.int8)
    table[0, ::2] = -1
    table[1] = -1
    compare_all(bn, bn.variables, table)


def test_cliques_of_many_variables_of_which_a_row_misses_few():
    rng = np.random.default_rng(0)
    names = [f"v{i}" for i in range(70)]
    pairs = [(a, b) for i, a in enumerate(names) for b in names[:i]]
    mn = mk.MarkovNetwork(
        dict.fromkeys(names, 2), [mk.Factor(pair, rng.random((2, 2)) + 2) for pair in pairs]
    )
    table = rng.integers(2, size=(40, 70)).astype(np.int8)
    for r in range(40):
        table[r, rng.permutation(70)[:5] if r else [0, 31, 32, 33, 69]] = -1
    table[:2, 34:40] = -1
    compare_all(mn, names, table)


def compare_all(model, names, table):
    status, ended = compare(compiled(model, names, names, table), table)
    assert not status.any()
    assert not ended.any()


def test_a_million_states_of_a_clique_stay_exact():
    # 2^20 entries and more: places are divisions by floats
    rng = np.random.default_rng(0)
    bn = mk.BayesianNetwork()
    names = [f"c{i}" for i in range(12)]
    for name in names:
        bn.add(name, states=3, p=rng.dirichlet([1, 1, 1]))
    bn.add("e", states=2, parents=names, p=rng.dirichlet([1, 1], size=[3] * 12))
    table = np.full((2, 13), -1, dtype=np.int8)
    table[:, 12] = 0, 1
    table[0, 3] = 1
    program = compiled(bn, ["c0", "c7"], bn.variables, table)
    _, ended = compare(program, table)
    assert ended.tolist() == [0, 0]


def test_rows_are_taken_in_parts_where_memory_is_short(monkeypatch):
    bn = mk.examples.asia()
    rng = np.random.default_rng(1)
    table = rng.integers(-1, 2, size=(150, 8)).astype(np.int8)
    program = compiled(bn, bn.variables, bn.variables, table)
    whole, parts = program.run_on_gpu(table), []
    upload = device_rows.DeviceTable.upload
    monkeypatch.setattr(
        device_rows.DeviceTable, "upload", lambda codes: parts.append(len(codes)) or upload(codes)
    )
    monkeypatch.setattr(device_rows, "_free", lambda: 70_000)
    for a, b in zip(whole, program.run_on_gpu(table), strict=True):
        np.testing.assert_array_equal(a, b)
    assert len(parts) > 1
    assert sum(parts) == 150
    # no room for a block: the processor takes all rows
    monkeypatch.setattr(device_rows, "_free", lambda: 5_000)
    assert (program._on_gpu.run(table[:50])[2] == 3).all()
    np.testing.assert_allclose(program.run_on_gpu(table[:50])[0], whole[0][:50], rtol=1e-12)


def test_no_rows_and_no_columns():
    bn = mk.examples.asia()
    program = compiled(bn, ["lung"], [], np.empty((3, 0), dtype=np.int8))
    log_mass, posteriors, status = program.run_on_gpu(np.empty((3, 0), dtype=np.int8))
    np.testing.assert_allclose(posteriors, [bn.query("lung").values] * 3)
    np.testing.assert_allclose(log_mass, 0.0, atol=1e-14)
    assert not status.any()


def frame_of(bn, n, share):
    rng = np.random.default_rng(3)
    frame = bn.sample(n, seed=2).astype(object)
    return frame.mask(rng.random(frame.shape) < share)


def test_the_verbs_ask_the_gpu(monkeypatch):
    bn = mk.examples.asia()
    frame = frame_of(bn, 60, 0.3)
    asked = []
    run = row_programs.RowProgram.run_on_gpu
    monkeypatch.setattr(
        row_programs.RowProgram,
        "run_on_gpu",
        lambda self, codes: asked.append(len(codes)) or run(self, codes),
    )
    target = bn.variables[3]
    np.testing.assert_allclose(
        bn.log_evidence(given=frame, engine=ON_GPU), bn.log_evidence(given=frame), rtol=1e-12
    )
    assert len(asked) == 1
    here, there = bn.marginals(given=frame), bn.marginals(given=frame, engine=ON_GPU)
    for name, table in here.items():
        pd.testing.assert_frame_equal(there[name], table, rtol=1e-12, atol=1e-13)
    proba = bn.predict_proba(frame, target, engine=ON_GPU)
    pd.testing.assert_frame_equal(proba, bn.predict_proba(frame, target), rtol=1e-12, atol=1e-13)
    assert bn.predict(frame, target, engine=ON_GPU).equals(bn.predict(frame, target))
    assert len(asked) == 4


def test_an_impossible_row_is_named():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[0.5, 0.5])
    bn.add("b", states=[0, 1], parents=["a"], p=[[1, 0], [0.5, 0.5]])
    frame = pd.DataFrame({"a": [1, 0, None], "b": [1, 1, 1]}, dtype=object)
    with pytest.raises(mk.errors.ImpossibleEvidence, match="row 1"):
        bn.marginals(given=frame, engine=ON_GPU)
    assert bn.log_prob(frame, engine=ON_GPU).tolist()[1] == -np.inf


def test_a_gpu_that_fails_is_left_alone(monkeypatch):
    bn = mk.examples.asia()
    frame = frame_of(bn, 300, 0.3)
    calls = []

    def fail(self, codes):
        calls.append(len(codes))
        raise devices.DeviceFailure("the GPU failed (a test)")

    monkeypatch.setattr(row_programs.RowProgram, "run_on_gpu", fail)
    monkeypatch.setattr(evidence_rows, "FIRST_ON_GPU", 100)
    monkeypatch.setattr(devices, "_said", set())
    with pytest.warns(DeviceWarning, match="the processor answers"):
        found = bn.log_prob(frame, engine=ON_GPU)
    np.testing.assert_array_equal(found, bn.log_prob(frame))
    assert calls == [100]


@pytest.mark.parametrize("seconds", [0.0, 1e9])
def test_the_gpu_takes_over_where_the_processor_would_take_long(seconds, monkeypatch):
    bn = mk.examples.asia()
    frame = frame_of(bn, 90, 0.3)
    monkeypatch.setattr(evidence_rows, "FIRST_STRETCH", 30)
    monkeypatch.setattr(evidence_rows, "GPU_SECONDS", seconds)
    asked = []
    run = row_programs.RowProgram.run_on_gpu
    monkeypatch.setattr(
        row_programs.RowProgram,
        "run_on_gpu",
        lambda self, codes: asked.append(len(codes)) or run(self, codes),
    )
    expected = bn.log_prob(frame, engine=mk.engines.Auto(device="cpu"))
    assert not asked
    np.testing.assert_allclose(bn.log_prob(frame), expected, rtol=1e-12)
    assert bool(asked) == (seconds == 0.0)
