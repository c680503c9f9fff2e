"""How often files are read: counts come out of the pass that finds the states, and many tables in several passes."""

from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import markovia as mk
import markovia.data.tables.data_files as data_files
import markovia.data.tables.file_sources as file_sources
import markovia.data.tables.grouped_source as grouped_source
from data_backends import (
    as_compressed_csv,
    as_csv,
    as_duckdb,
    as_list_of_files,
    as_parquet,
    as_polars_lazy,
    as_several_files,
    as_tsv,
    rows,
)
from markovia.data.tables.reading import read_data
from markovia.data.tables.written_values import written_numbers

FILES = [as_csv, as_compressed_csv, as_tsv, as_parquet, as_several_files, as_list_of_files]
NAMES = ["word", "digit", "flag", "grade"]
EDGES = "word->digit->grade; word->flag"


@pytest.fixture
def passes(monkeypatch):
    """The queries that look at all rows of the original data, whoever asks."""
    seen = []
    ask, keep = file_sources.DuckSource._ask, file_sources.DuckSource._keep

    def counted(self, sql):
        if f"LIMIT {file_sources.FIRST_ROWS}" not in sql and not self._kept:
            seen.append(sql)
        return ask(self, sql)

    def kept(self):
        before = self._kept
        keep(self)
        if self._kept and not before:
            seen.append("kept")

    monkeypatch.setattr(file_sources.DuckSource, "_ask", counted)
    monkeypatch.setattr(file_sources.DuckSource, "_keep", kept)
    stream = file_sources.DuckSource._stream

    def streamed(self):
        if not self._kept:
            seen.append("stream")
        return stream(self)

    monkeypatch.setattr(file_sources.DuckSource, "_stream", streamed)
    return seen


def same_tables(found, expected):
    assert found.variables == expected.variables
    for name in found.variables:
        assert found.states(name) == expected.states(name)
        assert np.allclose(found[name].values, expected[name].values, atol=1e-12)
    assert found.fit_.n_rows == expected.fit_.n_rows
    assert found.fit_.total == pytest.approx(expected.fit_.total)
    assert found.fit_.log_likelihood == pytest.approx(expected.fit_.log_likelihood)


@pytest.mark.parametrize("form", [*FILES, as_duckdb], ids=lambda f: f.__name__)
def test_fit_reads_files_once_and_learns_the_tables_of_rows_in_memory(form, tmp_path, passes):
    frame = rows(gaps=False)
    data = form(frame, tmp_path)
    found = mk.BayesianNetwork(EDGES).fit(data)
    assert len(passes) == 1
    same_tables(found, mk.BayesianNetwork(EDGES).fit(frame))
    found.fit(data, weights="load")  # states are known now, weights are checked on the way
    assert len(passes) == 2
    same_tables(found, mk.BayesianNetwork(EDGES).fit(frame, weights="load"))


@pytest.mark.parametrize("missing", ["drop", "em"])
@pytest.mark.parametrize("form", [as_csv, as_compressed_csv, as_several_files], ids=lambda f: f.__name__)
def test_text_with_missing_cells_is_read_once(form, missing, tmp_path, passes):
    frame = rows()
    found = mk.BayesianNetwork(EDGES).fit(form(frame, tmp_path), missing=missing)
    assert passes == ["kept"]
    same_tables(found, mk.BayesianNetwork(EDGES).fit(frame, missing=missing))


def test_gaps_that_come_late_and_large_files_are_read_again_not_copied(tmp_path, passes, monkeypatch):
    frame = rows()
    path = as_csv(frame, tmp_path)
    monkeypatch.setattr(file_sources, "KEPT_BYTES", 10)
    found = mk.BayesianNetwork(EDGES).fit(path, missing="drop")
    assert len(passes) == 2
    assert "kept" not in passes
    same_tables(found, mk.BayesianNetwork(EDGES).fit(frame, missing="drop"))


def test_counts_and_rows_of_text_are_taken_from_one_pass(tmp_path, passes):
    frame = rows()
    path = as_csv(frame, tmp_path)
    few = mk.counts(path, [["word", "digit"], ["digit"], ["flag", "grade", "word"]], weights="load")
    assert len(passes) == 1
    for a, b in zip(
        few,
        mk.counts(frame, [["word", "digit"], ["digit"], ["flag", "grade", "word"]], weights="load"),
        strict=True,
    ):
        assert np.allclose(a.values, b.values)
    passes.clear()
    source = read_data(path, NAMES)
    source.counts([["word", "flag"]])
    source.in_memory()
    assert passes == ["kept"]


def test_a_table_that_was_not_announced_is_counted_later(tmp_path):
    frame = rows()
    source = read_data(as_parquet(frame, tmp_path), NAMES, scopes=[["word", "digit"]])
    near = read_data(frame, NAMES)
    assert source.counts([[]])[0] == len(frame)
    for scope in (["digit"], ["digit", "word"], ["flag", "word"], NAMES):
        assert np.array_equal(source.counts([scope])[0], near.counts([scope])[0])


@pytest.mark.slow
@pytest.mark.parametrize("form", [as_csv, as_parquet, as_duckdb, as_polars_lazy], ids=lambda f: f.__name__)
@pytest.mark.parametrize("known", [False, True])
def test_many_tables_are_counted_in_several_small_passes(form, known, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"v{i}": rng.integers(0, 3, 60) for i in range(90)})
    frame = frame.mask(rng.random(frame.shape) < 0.02).astype("Int64")
    scopes = [[f"v{i}", f"v{(i * 7 + 1) % 90}"] for i in range(90)]
    largest = []
    cls = type(read_data(form(frame, tmp_path)))
    ask = cls._groups

    def watched(self, sets, most):
        found = ask(self, sets, most)
        columns = len({n for s in sets for n in s})
        if len(sets) > 1:
            assert columns <= self._most_columns
            assert min(most, sum(map(len, found))) * columns <= grouped_source.BATCH_CELLS
        largest.append(len(sets))
        return found

    monkeypatch.setattr(cls, "_groups", watched)
    monkeypatch.setattr(grouped_source, "BATCH_CELLS", 2000)
    far = read_data(form(frame, tmp_path), scopes=scopes if known else None)
    near = read_data(frame)
    assert far.missing() == near.missing()
    for a, b in zip(far.counts(scopes), near.counts(scopes), strict=True):
        assert np.array_equal(a, b)
    assert 2 < len(largest) < 90
    assert max(largest) > 1


def test_a_table_with_too_many_groups_is_left_for_later(tmp_path, monkeypatch):
    frame = rows(gaps=False)
    monkeypatch.setattr(grouped_source, "HELD_GROUPS", 16)
    source = read_data(as_parquet(frame, tmp_path), NAMES, scopes=[NAMES, ["word", "flag"]])
    near = read_data(frame, NAMES)
    assert {n: v.states for n, v in source.variables.items()} == {
        n: v.states for n, v in near.variables.items()
    }
    for a, b in zip(
        source.counts([NAMES, ["flag", "word"]]), near.counts([NAMES, ["flag", "word"]]), strict=True
    ):
        assert np.array_equal(a, b)


@pytest.mark.parametrize(
    ("cells", "states", "counts"),
    [
        (["1", "1", "+1", "-2", ""], (-2, 1), [1, 3]),
        (["01", "02", "1"], ("01", "02", "1"), [1, 1, 1]),
        (["1.0", "2", "2.", "1e0"], (1, 2), [2, 2]),
        (["1", "x", "1.0"], ("1", "1.0", "x"), [1, 1, 1]),
        (["1_0", "2"], ("1_0", "2"), [1, 1]),
        (["1.5", "b", "1.5"], ("1.5", "b"), [2, 1]),
        (["TRUE", "false", "True"], (False, True), [1, 2]),
        (["true", "2"], ("2", "true"), [1, 1]),
        (["2024-01-02", "2023-01-01"], ("2023-01-01", "2024-01-02"), [1, 1]),
        (["NA", "a", "NaN", "None"], ("None", "a"), [1, 1]),
    ],
)
def test_a_column_of_text_holds_numbers_or_truths_if_all_its_cells_write_them(
    cells, states, counts, tmp_path
):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "".join(f"{cell},0\n" for cell in cells))
    for source in (read_data(path), read_data(path, scopes=[["a", "b"]])):
        assert source.variables["a"].states == states
        assert [type(s) for s in source.variables["a"].states] == [type(s) for s in states]
        assert source.counts([["a"]])[0].tolist() == counts
        assert source.counts([["b", "a"]])[0].tolist() == [counts]
        table = source.in_memory()
        assert table.counts([["a"]])[0].tolist() == counts


def test_integers_of_more_than_64_bits_are_read_as_floats():
    assert written_numbers(["1", str(2**63 - 1)]) == [1, 2**63 - 1]
    found = written_numbers(["1", str(2**63)])
    assert found == [1.0, 2.0**63]
    assert all(isinstance(v, float) for v in found)


def test_a_word_far_down_makes_a_column_of_numbers_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a\n" + "1\n2\n" * 30_000 + "many\n")
    assert read_data(path).variables["a"].states == ("1", "2", "many")
    path.write_text("a\n" + "1.5\n2\n" * 30_000 + "many\n")
    assert mk.counts(path, "a").values.tolist() == [30_000, 30_000, 1]
    path.write_text("a\n" + "1\n2\n" * 30_000 + "1.5\n")
    with pytest.raises(mk.errors.InvalidArgument, match="not integers"):
        mk.counts(path, "a")


@pytest.mark.parametrize("weight", ["-1", "inf", "nan", "", "heavy"])
def test_a_weight_far_down_that_is_none_is_refused(weight, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,w\n" + "x,1\n" * 3000 + f"y,{weight}\n")
    with pytest.raises(mk.errors.InvalidArgument, match="weight is a number that is finite and not negative"):
        mk.counts(path, "a", weights="w")


@pytest.mark.slow
def test_the_header_of_a_large_file_is_its_first_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "x,x\n" * 20_000_000)
    with data_files.connect(ordered=False) as connection:
        for _ in range(20):
            data_files.check_columns(connection, [str(path)], "csv", [])


def test_a_long_chain_is_fitted_from_a_file_as_from_memory(tmp_path):
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"v{i}": rng.choice(["a", "b"], 200) for i in range(100)})
    bn = mk.BayesianNetwork(list(pairwise(frame.columns)))
    same_tables(bn.copy().fit(as_csv(frame, tmp_path)), bn.copy().fit(frame))
