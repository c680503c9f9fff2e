"""Counting in memory: compiled code, NumPy and plain loops agree; small and large tables, weights, missing cells."""

import subprocess
import sys
from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import markovia as mk
from markovia.data.tables import table_counts
from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import CodedTable
from markovia.data.tables.table_counts import count_codes, distinct_rows, merged
from markovia.factors.tables.sparse import SparseFactor
from markovia.factors.tables.variable import Variable


def plain(codes, weights, cards, scope):
    table = np.zeros([cards[c] for c in scope])
    for i in range(codes.shape[1]):
        row = tuple(codes[c, i] for c in scope)
        if min(row, default=0) >= 0:
            table[row] += 1 if weights is None else weights[i]
    return table


def random_rows(seed, n, cards, gaps, kind=np.int8):
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, c, n) for c in cards]).reshape(len(cards), n)
    if gaps:
        codes[rng.random(codes.shape) < 0.2] = -1
    return codes.astype(kind)


@pytest.fixture(params=["compiled", "NumPy"])
def engine(request, monkeypatch):
    if request.param == "NumPy":
        monkeypatch.setattr(table_counts, "kernel_for", lambda cells: None)
    else:
        from markovia.kernels import counting

        monkeypatch.setattr(table_counts, "kernel_for", lambda cells: counting)
    return request.param


@pytest.mark.parametrize("kind", [np.int8, np.int32])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_tables_are_those_of_a_plain_loop(engine, kind, gaps, weighted):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        cards = rng.integers(1, 6, 7).tolist()
        codes = random_rows(seed, int(rng.integers(0, 400)), cards, gaps, kind)
        weights = rng.random(codes.shape[1]) if weighted else None
        scopes = [rng.permutation(7)[: rng.integers(0, 6)].tolist() for _ in range(9)]
        found = count_codes(codes, weights, cards, (codes < 0).any(axis=1).tolist(), scopes)
        for scope, table in zip(scopes, found, strict=True):
            assert table.dtype == np.float64
            assert np.allclose(table, plain(codes, weights, cards, scope), atol=1e-12)


@pytest.mark.parametrize("gaps", [False, True])
def test_tables_beyond_16_bits_are_counted(engine, gaps):
    cards = [300, 40, 50, 3]
    codes = random_rows(1, 5000, cards, gaps, np.int32)
    scopes = [[0, 1, 2], [2, 1, 0, 3], [3, 0]]
    found = count_codes(codes, None, cards, [gaps] * 4, scopes)
    for scope, table in zip(scopes, found, strict=True):
        assert np.array_equal(table, plain(codes, None, cards, scope))


def test_rows_are_shared_between_threads_and_the_number_of_threads_does_not_matter(monkeypatch):
    monkeypatch.setattr(table_counts, "PART_ROWS", 1000)
    cards = [2, 3, 4, 2]
    codes = random_rows(2, 20_011, cards, True)
    weights = np.random.default_rng(0).random(20_011)
    scopes = [[0, 1], [1, 2, 3], [3]]
    expected = [plain(codes, weights, cards, s) for s in scopes]
    answers = []
    for threads in ("1", "3"):
        monkeypatch.setenv("MARKOVIA_THREADS", threads)
        from markovia.kernels import counting

        monkeypatch.setattr(table_counts, "kernel_for", lambda cells: counting)
        whole = count_codes(codes, None, cards, [True] * 4, scopes)
        assert [t.sum() for t in whole] == [(codes[s] >= 0).all(axis=0).sum() for s in scopes]
        answers.append(count_codes(codes, weights, cards, [True] * 4, scopes))
    for one, three, slow in zip(*answers, expected, strict=True):
        assert np.array_equal(one, three)
        assert np.allclose(one, slow)
    monkeypatch.setattr(table_counts, "PART_CELLS", 0)  # threads share the tables
    for table, slow in zip(count_codes(codes, weights, cards, [True] * 4, scopes), expected, strict=True):
        assert np.allclose(table, slow)


@given(st.lists(st.lists(st.integers(0, 9), max_size=4, unique=True), max_size=12), st.integers(0, 200))
def test_merged_tables_hold_every_scope_once_within_the_limit(scopes, limit):
    cards = [2, 3, 2, 4, 5, 2, 3, 2, 2, 6]
    tables = merged(scopes, cards, limit)
    assert sorted(t for table in tables for t in table.holds) == list(range(len(scopes)))
    for table in tables:
        for t in table.holds:
            assert set(scopes[t]) <= set(table.columns)
        alone = max(int(np.prod([cards[c] for c in scopes[t]])) for t in table.holds)
        assert table.size <= max(limit, alone)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("columns", [5, 70])
def test_distinct_rows_are_those_of_a_counter(engine, columns, keep):
    rng = np.random.default_rng(columns)
    cards = rng.integers(2, 5, columns).tolist()
    few = random_rows(3, 40, cards, True)
    few[:, :25] = np.abs(few[:, :25])
    codes = few[:, rng.integers(0, 40, 3000)]
    weights = rng.random(3000)
    rows, totals = distinct_rows(codes, weights, cards, keep)
    expected = Counter()
    for i in range(3000):
        if keep or (codes[:, i] >= 0).all():
            expected[tuple(codes[:, i].tolist())] += weights[i]
    assert sorted(map(tuple, rows.tolist())) == sorted(expected)
    assert all(np.isclose(w, expected[tuple(r)]) for r, w in zip(rows.tolist(), totals, strict=True))
    assert rows.tolist() == sorted(rows.tolist())


def test_the_hash_table_grows():
    from markovia.kernels import counting

    keys = np.random.default_rng(0).integers(0, 2**61, 100_000)
    both = np.concatenate([keys, keys])
    slots, done, held = 1 << 19, 0, 0
    table, totals = np.full(slots, -1), np.zeros(slots)
    done, held = counting.count_keys(both, np.zeros(0), 0, 0, table, totals)
    assert (done, held) == (200_000, len(np.unique(keys)))
    found, counted = table_counts._counted_keys(both, None)
    assert np.array_equal(found, np.unique(keys))
    assert counted.sum() == 200_000
    assert np.array_equal(np.sort(table[table >= 0]), found)


def test_a_table_too_large_to_be_dense_is_a_sparse_factor():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"v{i}": rng.integers(0, 4, 300) for i in range(40)})
    names = list(frame)
    found = mk.counts(frame, names)
    assert isinstance(found, SparseFactor)
    assert found.total == 300
    row = tuple(int(v) for v in frame.iloc[7])
    assert found[row] == (frame == frame.iloc[7]).all(axis=1).sum()
    both = mk.counts(frame, [names, ["v1", "v0"]])
    assert isinstance(both[0], SparseFactor)
    assert not isinstance(both[1], SparseFactor)
    assert np.array_equal(both[1].values, pd.crosstab(frame["v1"], frame["v0"]).to_numpy())
    with pytest.raises(mk.errors.TooLarge, match="cells"):
        read_data(frame).counts([names])


def test_one_name_a_list_and_lists_of_names():
    rows = {"a": [0, 1, 1], "b": ["x", "y", "y"]}
    assert mk.counts(rows, "a").values.tolist() == [1, 2]
    assert mk.counts(rows, ["b", "a"]).names == ("b", "a")
    assert [f.names for f in mk.counts(rows, [["b", "a"], ["a"], []])] == [("b", "a"), ("a",), ()]
    for wrong in ([3], [["a", "a"]], [["a", 3]]):
        with pytest.raises(mk.errors.InvalidArgument, match="name"):
            mk.counts(rows, wrong)
    with pytest.raises(mk.errors.InvalidArgument, match="missing="):
        mk.counts(rows, "a", missing="ignore")
    with pytest.raises(mk.errors.InvalidArgument, match="'b', which is not counted"):
        mk.counts(rows, "a", states={"b": ["x", "y"]})


def test_weights_are_numbers_one_a_row():
    rows = {"a": [0, 1, 1]}
    assert mk.counts(rows, "a", weights=[0.5, 2, 1]).values.tolist() == [0.5, 3]
    for wrong in ([1, 2], [1, 2, -1], [1, np.nan, 1], ["x", "y", "z"]):
        with pytest.raises(mk.errors.InvalidArgument, match="weight"):
            mk.counts(rows, "a", weights=wrong)


def test_cells_of_several_kinds_are_read():
    found = mk.counts({"a": [True, None, True]}, "a")
    assert found.variables[0].states == (False, True)
    assert found.values.tolist() == [0, 2]
    found = mk.counts({"a": ["x", 2, 2, float("nan"), pd.NA]}, "a")
    assert found.variables[0].states == (2, "x")
    assert found.values.tolist() == [2, 1]
    assert mk.counts({"a": np.array([10**15, 5, 5])}, "a").values.tolist() == [2, 1]
    assert mk.counts({"a": np.array([250, 3], dtype=np.uint8)}, "a").values.tolist() == [1, 1]
    assert mk.counts({"a": np.array([-128, 127, 127], dtype=np.int8)}, "a").values.tolist() == [1, 2]
    assert mk.counts({"a": np.array(["u", "w", "u"])}, "a").values.tolist() == [2, 1]
    with pytest.raises(mk.errors.InvalidArgument, match="'a' has no value"):
        mk.counts({"a": [None, None]}, "a")
    with pytest.raises(mk.errors.InvalidArgument, match="not integers"):
        mk.counts({"a": [1.0, float("inf")]}, "a")
    with pytest.raises(mk.errors.UnknownState, match=r"unknown state 0\.5 for 'a'"):
        mk.counts({"a": [1.0, 0.5]}, "a", states={"a": 2})


@settings(max_examples=25)
@given(st.integers(0, 1000), st.integers(100, 400))
def test_columns_with_many_states_are_read_like_those_with_few(seed, n_states):
    rng = np.random.default_rng(seed)
    numbers = rng.integers(0, n_states, 500)
    words = np.array([f"s{i:03d}" for i in range(n_states)], dtype=object)[numbers]
    copies = np.array(["".join(list(w)) for w in words], dtype=object)  # equal, but not the same objects
    expected = np.bincount(numbers, minlength=n_states)
    states = {"a": [f"s{i:03d}" for i in range(n_states)]}
    for column in (words, copies, pd.Series(words, dtype="str"), pd.Categorical(words)):
        assert np.array_equal(mk.counts({"a": column}, "a", states=states).values, expected)


def test_many_different_objects_are_read_cell_by_cell():
    words = [f"w{i}" for i in range(3000)] * 2 + [None]
    found = mk.counts({"a": np.array(words, dtype=object)}, "a")
    assert found.values.tolist() == [2.0] * 3000
    known = mk.counts({"a": np.array(words, dtype=object)}, "a", states={"a": sorted(set(words[:-1]))})
    assert known.values.tolist() == [2.0] * 3000


def test_categories_that_do_not_occur_may_be_unknown():
    column = pd.Categorical(["x", "y"], categories=["y", "never", "x"])
    assert mk.counts({"a": column}, "a", states={"a": ["x", "y"]}).values.tolist() == [1, 1]
    with pytest.raises(mk.errors.UnknownState, match="'y'"):
        mk.counts({"a": column}, "a", states={"a": ["x", "z"]})


def test_codes_of_other_widths_are_counted():
    codes = np.array([[0, 1, -1, 1]], dtype=np.int64)
    table = CodedTable([Variable("a", 2)], codes)
    assert table.counts([["a"]])[0].tolist() == [1, 2]
    assert table.missing() == {"a": 1}
    assert not table.complete
    with pytest.raises(mk.errors.UnknownVariable, match="'b'"):
        table.counts([["b"]])


def test_a_first_small_fit_does_not_wait_for_a_compiler():
    code = (
        "import sys, markovia as mk;"
        "mk.BayesianNetwork('a->b').fit({'a': [0, 1, 1] * 1000, 'b': [0, 1, 0] * 1000});"
        "mk.counts({'a': [0, 1]}, 'a');"
        "print('numba' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_much_work_loads_the_compiled_code(monkeypatch):
    monkeypatch.delitem(sys.modules, "markovia.kernels.counting", raising=False)
    assert table_counts.kernel_for(10) is None
    assert table_counts.kernel_for(10**10) is not None


@pytest.mark.parametrize("kind", ["string", "large_string"])
def test_arrow_strings_are_split_by_compiled_code(kind, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    from markovia.data.tables import arrow_columns, state_codes
    from markovia.kernels import counting

    asked = []
    monkeypatch.setattr(arrow_columns, "kernel_for", lambda cells: asked.append(cells) or counting)
    rng = np.random.default_rng(0)
    known = ["", "a", "ab", "ba", "aba", "aca", "äöü", "x" * 40, "x" * 39 + "y", "x" * 20 + "y" + "x" * 19]
    cells = [None if i < 0 else known[i] for i in rng.integers(-1, len(known), 600)]
    whole = pa.array(cells, type=getattr(pa, kind)())
    for column in (whole, whole[37:555], pa.chunked_array([whole[:100], whole[350:]])):
        coded = state_codes.split("a", column)
        found = [None if p < 0 else coded.values[p] for p in coded.positions]
        assert found == column.to_pylist()
    assert len(asked) == 3
    many = pa.array([f"w{i}" for i in range(300)], type=getattr(pa, kind)())
    assert mk.counts(pa.table({"a": many}), "a").values.tolist() == [1.0] * 300
    empty = pa.array([None, "", ""], type=getattr(pa, kind)())
    assert mk.counts(pa.table({"a": empty}), "a").values.tolist() == [2.0]


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "int64", "uint64", "float32"])
def test_numbers_of_every_width_are_read(kind):
    for numbers in ([3, 1, 3], [0, 126], [1, 127, 100], [0, 127]):
        cells = np.array(numbers, dtype=kind)
        found = mk.counts({"a": cells}, "a")
        assert found.variables[0].states == tuple(sorted(set(numbers)))
        assert found.values.sum() == len(numbers)
    if kind in ("int64", "uint64"):
        high = np.iinfo(kind).max
        assert mk.counts({"a": np.array([high, high - 2], dtype=kind)}, "a").variables[0].states == (
            high - 2,
            high,
        )


def test_masked_cells_are_missing():
    column = np.ma.MaskedArray([1, 7, 2, 2], mask=[False, True, False, False])
    assert mk.counts({"a": pd.Series([1, None, 2, 2])}, "a").values.tolist() == [1, 2]
    from markovia.data.tables.state_codes import column_codes

    assert column_codes("a", column, None)[1].tolist() == [0, -1, 1, 1]


@pytest.mark.parametrize("states", [[False, True], [0, 1], ["False", "True"], ["0", "1"]])
@pytest.mark.parametrize("cells", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0]])
def test_cells_of_another_type_are_counted_as_the_state_they_write(states, cells):
    network = mk.BayesianNetwork("x", states={"x": states})
    frame = pd.DataFrame({"x": cells})
    thousands = pd.DataFrame({"x": pd.array(cells * 2000, dtype=object)})
    for data in (frame, frame.astype(object), {"x": cells}, [{"x": c} for c in cells], thousands):
        assert network.copy().fit(data)["x"].values.tolist() == pytest.approx([1 / 3, 2 / 3])


@pytest.mark.parametrize("states", [[False, True], [0, 1]])
@pytest.mark.parametrize("cells", [["true", "false", "true"], ["TRUE", "FALSE", "TRUE"], ["1", "0", "1"]])
def test_text_is_counted_as_the_number_or_truth_value_it_writes(states, cells, tmp_path):
    network = mk.BayesianNetwork("x", states={"x": states})
    distinct = np.array(["".join(list(c)) for c in cells * 2000], dtype=object)  # as many objects as cells
    path = tmp_path / "x.csv"
    pd.DataFrame({"x": cells}).to_csv(path, index=False)
    for data in ({"x": cells}, {"x": distinct}, path):
        assert network.copy().fit(data)["x"].values.tolist() == pytest.approx([1 / 3, 2 / 3])
        assert np.allclose(
            network.copy().fit(data).log_prob(data)[:3], np.log([2 / 3, 1 / 3, 2 / 3]), atol=1e-12
        )


def test_cells_that_write_no_state_are_refused():
    network = mk.BayesianNetwork("x", states={"x": [0, 1, 2]})
    for cell in ("true", "3", "no", 0.5):
        with pytest.raises(mk.errors.UnknownState):
            network.fit({"x": [cell, 0]})


def test_values_that_only_late_rows_have_are_states(monkeypatch):
    from markovia.data.tables import state_codes

    monkeypatch.setattr(state_codes, "FIRST_ROWS", 3)
    for rare in (0, 40):
        monkeypatch.setattr(state_codes, "RARE_VALUES", rare)
        found = mk.counts({"a": np.array([5, 5, 9, 7, 7])}, "a")
        assert found.variables[0].states == (5, 7, 9)  # 6 and 8 lie between them and never occur
        assert found.values.tolist() == [2, 2, 1]


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pd.Categorical(["low", "high", None]), "discrete"),
        (pd.Categorical([1, 2, None]), "discrete"),
        (pd.Categorical([0.5, 2.0, None]), "continuous"),
        (pd.Series(["a", None, "b"], dtype="string"), "discrete"),
        (pd.Series([True, False, None], dtype="boolean"), "discrete"),
        (pd.Series([0.5, 1.0, None], dtype="Float64"), "continuous"),
    ],
)
def test_what_a_column_is_follows_from_its_values_or_its_type(column, kind):
    from markovia.data.tables.reading_mixed import read_mixed

    assert read_mixed(pd.DataFrame({"a": column})).kinds == (kind,)
