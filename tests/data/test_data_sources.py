"""The same rows give the same variables, counts and networks, in whatever library or file they come."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from data_backends import (
    EAGER,
    LAZY,
    as_arrow,
    as_csv,
    as_duckdb,
    as_mapping,
    as_parquet,
    as_polars,
    as_polars_lazy,
    cells,
    rows,
)
from markovia.data.tables.reading import read_data
from markovia.data.tables.row_sources import CodedTable

NAMES = ["word", "digit", "flag", "grade"]
STATES = {
    "word": ("Fig", "apple", "pear"),
    "digit": (-2, 1, 3, 10),
    "flag": (False, True),
    "grade": (1, 2, 3),
}
every_backend = pytest.mark.parametrize("form", EAGER + LAZY, ids=lambda f: f.__name__)


def tally(frame, scope, weights=None):
    """Count with a plain loop."""
    columns = cells(frame)
    found = Counter()
    for i in range(len(frame)):
        key = tuple(columns[n][i] for n in scope)
        if None not in key:
            found[key] += 1 if weights is None else columns[weights][i]
    table = np.zeros([len(STATES[n]) for n in scope])
    for key, n in found.items():
        table[tuple(STATES[v].index(k) for v, k in zip(scope, key, strict=True))] = n
    return table


@every_backend
def test_every_backend_gives_the_same_variables_and_counts(form, tmp_path):
    frame = rows()
    source = read_data(form(frame, tmp_path), NAMES, weights="load")
    assert {n: v.states for n, v in source.variables.items()} == STATES
    for name, variable in source.variables.items():
        assert [type(s) for s in variable.states] == [type(s) for s in STATES[name]]
    assert source.n_rows == len(frame)
    assert np.isclose(source.total, frame["load"].sum())
    assert source.missing() == {n: int(frame[n].isna().sum()) for n in NAMES}
    scopes = [["word", "digit"], ["flag"], ["grade", "word", "flag"], [], ["digit", "word"]]
    for scope, table in zip(scopes, source.counts(scopes), strict=True):
        assert np.allclose(table, tally(frame, scope, "load"))
    whole = source.without_gaps()
    assert np.isclose(whole.total, frame.dropna()["load"].sum())
    assert whole.n_rows == len(frame.dropna())
    assert not any(whole.missing().values())
    assert np.allclose(whole.counts([["digit"]])[0], tally(frame.dropna(), ["digit"], "load"))


@every_backend
def test_every_backend_brings_the_same_rows_into_memory(form, tmp_path):
    frame = rows()
    source = read_data(form(frame, tmp_path), NAMES).in_memory()
    assert isinstance(source, CodedTable)
    assert source.total == len(frame)
    assert source.missing().keys() == set(NAMES)
    weights = np.ones(source.n_rows) if source.weights is None else source.weights
    found = Counter()
    for row, weight in zip(source.rows(NAMES), weights, strict=True):
        found[tuple(None if c < 0 else STATES[n][c] for n, c in zip(NAMES, row, strict=True))] += weight
    columns = cells(frame)
    assert found == Counter(zip(*(columns[n] for n in NAMES), strict=True))


@every_backend
def test_a_network_is_fitted_to_every_backend(form, tmp_path):
    frame = rows(gaps=False)
    bn = mk.BayesianNetwork("word->digit; word->flag; grade->flag").fit(form(frame, tmp_path))
    n = tally(frame, ["word", "digit"])
    assert np.allclose(bn["digit"].values, n / n.sum(axis=1, keepdims=True))
    assert bn.states("grade") == [1, 2, 3]
    assert bn.fit_.n_rows == len(frame)


@pytest.mark.parametrize("form", [as_mapping, as_polars, as_arrow, as_csv], ids=lambda f: f.__name__)
def test_gaps_among_whole_numbers_are_no_state(form, tmp_path):
    frame = pd.DataFrame({"digit": pd.array([3, None, -2, 3, None, 7], dtype="Int64"), "flag": [True] * 6})
    found = mk.counts(form(frame, tmp_path), "digit", missing="drop")
    assert found.variable("digit").states == (-2, 3, 7)
    assert found.values.tolist() == [1, 2, 1]


@every_backend
def test_rows_with_gaps_are_dropped_only_when_asked(form, tmp_path):
    frame = rows()
    data = form(frame, tmp_path)
    with pytest.raises(mk.errors.InvalidArgument, match="cells are missing"):
        mk.BayesianNetwork("word->grade").fit(data, missing="error")
    completed = mk.BayesianNetwork("word->grade").fit(data)
    assert completed.fit_.method == "em"
    in_pandas = mk.BayesianNetwork("word->grade").fit(frame)
    assert np.isclose(completed.fit_.log_likelihood, in_pandas.fit_.log_likelihood)
    bn = mk.BayesianNetwork("word->grade").fit(data, missing="drop")
    n = tally(frame, ["word", "grade"])
    assert np.allclose(bn["grade"].values, n / n.sum(axis=1, keepdims=True))
    with pytest.raises(mk.errors.InvalidArgument, match="missing in 'word'"):
        mk.counts(data, "word", missing="error")


@every_backend
def test_an_unseen_state_is_named_with_its_column(form, tmp_path):
    data = form(rows(), tmp_path)
    with pytest.raises(
        mk.errors.UnknownState, match="unknown state 'Fig' for 'word'; its states are 'apple', 'pear'"
    ):
        mk.counts(data, "word", states={"word": ["apple", "pear"]})
    with pytest.raises(mk.errors.UnknownState, match="unknown state 10 for 'digit'"):
        mk.counts(data, "digit", states={"digit": [-2, 1, 3]})


@every_backend
def test_a_column_with_fractions_points_to_the_discretizer(form, tmp_path):
    data = form(rows(), tmp_path)
    with pytest.raises(
        mk.errors.InvalidArgument, match=r"'load' holds numbers that are not integers.*mk\.Discretizer"
    ):
        mk.counts(data, ["word", "load"])


@every_backend
def test_an_unknown_column_is_named(form, tmp_path):
    with pytest.raises(mk.errors.UnknownVariable, match=r"'flg' in the data \(did you mean 'flag'\?\)"):
        mk.counts(form(rows(), tmp_path), "flg")
    with pytest.raises(mk.errors.UnknownVariable, match="'lod'"):
        mk.counts(form(rows(), tmp_path), "flag", weights="lod")


@every_backend
def test_given_states_keep_their_order(form, tmp_path):
    frame = rows()
    found = mk.counts(form(frame, tmp_path), "word", states={"word": ["pear", "Fig", "kiwi", "apple"]})
    once = tally(frame, ["word"])
    assert found.values.tolist() == [once[2], once[0], 0, once[1]]


@every_backend
def test_weights_that_are_negative_or_missing_are_refused(form, tmp_path):
    frame = rows()
    frame["load"] = frame["load"] - 1
    with pytest.raises(mk.errors.InvalidArgument, match="weight is a number"):
        mk.counts(form(frame, tmp_path), "word", weights="load")
    frame["load"] = frame["load"].where(frame["load"] > 0, np.nan)
    with pytest.raises(mk.errors.InvalidArgument, match="weight"):
        mk.counts(form(frame, tmp_path), "word", weights="load")


@pytest.mark.parametrize("form", LAZY, ids=lambda f: f.__name__)
def test_rows_elsewhere_take_weights_by_column_only(form, tmp_path):
    with pytest.raises(mk.errors.InvalidArgument, match="by name"):
        mk.counts(form(rows(), tmp_path), "word", weights=np.ones(400))


def test_categories_are_states_in_their_order():
    kind = pd.CategoricalDtype(["lo", "mid", "hi"])
    frame = pd.DataFrame({"a": pd.Series(["hi", "lo", None, "hi"], dtype=kind)})
    expected = [1, 0, 2]
    assert mk.counts(frame, "a").values.tolist() == expected
    pa = pytest.importorskip("pyarrow")
    assert mk.counts(pa.Table.from_pandas(frame), "a").values.tolist() == expected
    pl = pytest.importorskip("polars")
    enum = pl.DataFrame({"a": ["hi", "lo", None, "hi"]}, schema={"a": pl.Enum(["lo", "mid", "hi"])})
    assert mk.counts(enum, "a").values.tolist() == expected
    assert mk.counts(enum.lazy(), "a").values.tolist() == expected
    import duckdb

    relation = duckdb.connect().sql(
        "SELECT CAST(a AS ENUM('lo', 'mid', 'hi')) AS a FROM (VALUES ('hi'), ('lo'), (NULL), ('hi')) t(a)"
    )
    assert mk.counts(relation, "a").values.tolist() == expected


def test_arrow_chunks_with_different_dictionaries_are_unified():
    pa = pytest.importorskip("pyarrow")
    chunks = [pa.array(["u", "v", None]).dictionary_encode(), pa.array(["w", "v"]).dictionary_encode()]
    found = mk.counts(pa.table({"a": pa.chunked_array(chunks)}), "a")
    assert dict(zip(found.variables[0].states, found.values, strict=True)) == {"u": 1, "v": 2, "w": 1}


def test_a_matrix_has_columns_x0_x1_or_names():
    matrix = np.array([[0, 1], [2, 1], [2, 0]])
    assert mk.counts(matrix, ["x0", "x1"]).values.tolist() == [[0, 1], [1, 1]]
    assert mk.counts(matrix, "b", names=["a", "b"]).values.tolist() == [1, 2]
    assert mk.BayesianNetwork("x0->x1").fit(matrix)["x1"].values.tolist() == [[0, 1], [0.5, 0.5]]
    with pytest.raises(mk.errors.InvalidArgument, match="2 columns needs as many"):
        mk.counts(matrix, "a", names=["a"])
    with pytest.raises(mk.errors.InvalidArgument, match="names= is for matrices"):
        mk.counts({"a": [1]}, "a", names=["a"])
    with pytest.raises(mk.errors.InvalidArgument, match="two axes, not 1"):
        mk.counts(np.arange(3), "x0")


def test_text_of_files_is_read_as_the_network_says(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,d\nyes,1,None,true\nno,2,NA,false\nyes,1,Low,true\n")
    bn = mk.BayesianNetwork()
    bn.add("a", states=["no", "yes"])
    bn.add("b", states=["1", "2"])
    bn.add("c", states=["NA", "None", "Low"])
    bn.add("d", states=["false", "true"])
    bn.fit(path)
    assert bn["a"].values.round(3).tolist() == [0.333, 0.667]
    assert bn["b"].values.round(3).tolist() == [0.667, 0.333]
    assert bn["c"].values.round(3).tolist() == [0.333, 0.333, 0.333]
    inferred = read_data(path)
    assert inferred.variables["a"].states == ("no", "yes")
    assert inferred.variables["d"].states == (False, True)
    assert inferred.variables["c"].states == ("Low", "None")
    assert inferred.missing() == {"a": 0, "b": 0, "c": 1, "d": 0}


def test_files_that_are_not_there_or_of_another_kind_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="no such file"):
        mk.counts(tmp_path / "rows.csv", "a")
    with pytest.raises(FileNotFoundError, match="no file matches"):
        mk.counts(str(tmp_path / "*.csv"), "a")
    other = tmp_path / "rows.xlsx"
    other.write_text("")
    with pytest.raises(mk.errors.InvalidArgument, match=r"\.csv, \.csv\.gz, \.tsv and \.parquet"):
        mk.counts(other, "a")
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(mk.errors.InvalidArgument, match="partly"):
        mk.counts([as_parquet(rows(), tmp_path), tmp_path / "rows.csv"], "a")


def test_names_that_need_quotes_are_read_from_files(tmp_path):
    frame = pd.DataFrame({'a "b"': ["it's", "x", "x"], "select": [1, 2, 2]})
    frame.to_csv(tmp_path / "it's.csv", index=False)
    source = read_data(tmp_path / "it's.csv")
    assert source.counts([['a "b"', "select"]])[0].tolist() == [[1, 0], [0, 2]]
    assert source.in_memory().total == 3


def test_many_columns_are_grouped_in_one_scan(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"v{i}": rng.integers(0, 3, 50) for i in range(80)})
    scopes = [[f"v{i}", f"v{(i * 7 + 1) % 80}"] for i in range(80)]
    lazy = read_data(as_csv(frame, tmp_path)).counts(scopes)
    for a, b in zip(lazy, read_data(frame).counts(scopes), strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("form", [as_duckdb, as_polars_lazy, as_parquet], ids=lambda f: f.__name__)
def test_distinct_rows_that_are_too_many_are_refused(form, tmp_path, monkeypatch):
    import markovia.data.tables.file_sources as files
    import markovia.data.tables.grouped_source as grouped

    source = read_data(form(rows(), tmp_path), NAMES)
    monkeypatch.setattr(grouped, "MAX_BYTES", 512)
    monkeypatch.setattr(files, "MAX_BYTES", 512)
    with pytest.raises(mk.errors.TooLarge, match="the distinct rows over 4 columns"):
        source.in_memory()
    with pytest.raises(mk.errors.TooLarge, match="the distinct rows over 4 columns"):
        source.distinct(NAMES)


def test_data_read_before_are_used_as_they_are():
    source = read_data({"a": ["x", "y", "y"], "b": [0, 1, 1]})
    assert mk.counts(source, "a").values.tolist() == [1, 2]
    assert mk.BayesianNetwork("a->b").fit(source)["b"].values.tolist() == [[1, 0], [0, 1]]
    with pytest.raises(mk.errors.UnknownVariable, match="'c'"):
        mk.counts(source, "c")
    with pytest.raises(mk.errors.InvalidArgument, match="read before"):
        mk.counts(source, "a", weights=[1, 1, 1])
    bn = mk.BayesianNetwork()
    bn.add("a", states=["y", "x"])
    with pytest.raises(mk.errors.InvalidArgument, match="should be"):
        bn.fit(source)


def test_what_is_no_data_is_refused():
    for strange in (3, object(), [1, 2], None):
        with pytest.raises(mk.errors.InvalidArgument, match="rows are"):
            mk.counts(strange, "a")
