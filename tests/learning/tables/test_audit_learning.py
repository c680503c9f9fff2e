"""Odd data and odd arguments: a right answer or one clear sentence, never a silently wrong number."""

from datetime import timedelta

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, MarkoviaError, UnknownState, UnknownVariable

SPRINKLER = "cloudy->sprinkler; cloudy->rain; sprinkler->wet; rain->wet"


def _rows_with_gaps() -> pd.DataFrame:
    rows = mk.examples.sprinkler().sample(200, seed=1).astype(object)
    return rows.mask(np.random.default_rng(0).random(rows.shape) < 0.2)


def _sprinkler_graph() -> mk.BayesianNetwork:
    states = {n: ["no", "yes"] for n in ("cloudy", "sprinkler", "rain", "wet")}
    return mk.BayesianNetwork(SPRINKLER, states=states)


@pytest.mark.parametrize(
    "cells", [[1j, 2j], [timedelta(1), timedelta(2)], [True, 2, False], [{"x": 1}, {"x": 2}], [1.0, np.inf]]
)
def test_cells_that_are_no_states_are_one_clear_error(cells):
    with pytest.raises(InvalidArgument, match="'a'"):
        mk.counts(pd.DataFrame({"a": pd.Series(cells)}), ["a"])


def test_nested_cells_of_lazy_frames_and_failing_frames_are_clear_errors():
    pl = pytest.importorskip("polars")
    with pytest.raises(InvalidArgument, match="a state of 'a'"):
        mk.counts(pl.LazyFrame({"a": [[1], [2]]}), ["a"])
    failing = pl.LazyFrame({"a": ["x"]}).with_columns(b=pl.col("a").cast(pl.Int64))
    with pytest.raises(InvalidArgument, match="cannot be computed"):
        mk.counts(failing, ["b"])
    with pytest.raises(InvalidArgument, match="rows are"):
        mk.counts(pl.Series("a", [1, 2]), ["a"])


def test_em_on_a_file_reports_all_rows_and_not_only_the_distinct_ones(tmp_path):
    rows = _rows_with_gaps()
    rows.to_csv(tmp_path / "rows.csv", index=False)
    here = _sprinkler_graph().fit(rows, missing=mk.EM(seed=0)).fit_
    there = _sprinkler_graph().fit(tmp_path / "rows.csv", missing=mk.EM(seed=0)).fit_
    assert (there.n_rows, there.missing_cells) == (here.n_rows, here.missing_cells)
    assert here.missing_cells == int(rows.isna().to_numpy().sum())
    assert there.log_likelihood == pytest.approx(here.log_likelihood)


def test_the_likelihood_that_em_reports_is_that_of_the_rows_under_the_network():
    rows, weights = _rows_with_gaps(), np.random.default_rng(1).random(200)
    bn = _sprinkler_graph().fit(rows, missing=mk.EM(seed=0), weights=weights)
    assert bn.fit_.log_likelihood == pytest.approx(weights @ bn.log_prob(rows))
    assert bn.score(rows, weights=weights) == pytest.approx(bn.fit_.log_likelihood / weights.sum())


def test_by_row_the_rows_of_a_file_keep_their_order_and_other_columns_do_not_matter(tmp_path):
    bn = mk.examples.sprinkler()
    rows = bn.sample(50, seed=0)
    rows.assign(patient=range(50)).to_csv(tmp_path / "rows.csv", index=False)
    found = bn.log_likelihood(tmp_path / "rows.csv", by="row")
    np.testing.assert_allclose(found, bn.log_prob(rows))
    with pytest.warns(mk.errors.IgnoredColumnWarning, match="patient"):
        np.testing.assert_allclose(bn.log_prob(tmp_path / "rows.csv"), found)


def test_an_impossible_row_of_weight_zero_does_not_count():
    bn = mk.BayesianNetwork()
    bn.add("a", states=[0, 1], p=[1.0, 0.0])
    bn.add("b", states=[0, 1], parents=["a"], p=[[0.5, 0.5], [0, 1]])
    rows = {"a": [0, 1, None], "b": [0, 0, 0]}
    assert bn.log_likelihood(rows, weights=[1, 0, 1]) == pytest.approx(2 * np.log(0.5))


def test_a_network_with_a_hidden_node_is_scored_without_its_column():
    rows = {"x": [0, 1, 1]}
    bn = mk.BayesianNetwork("h->x", states={"h": 2, "x": 2}).fit(rows, latent="h", missing=mk.EM(seed=0))
    assert bn.log_likelihood(rows, latent="h") == pytest.approx(bn.fit_.log_likelihood)
    assert bn.log_likelihood(rows, latent="h", by="row") == pytest.approx(bn.log_prob(rows))
    assert bn.score(rows, latent=["h"]) == pytest.approx(bn.fit_.log_likelihood / 3)
    with pytest.raises(InvalidArgument, match="is not observed"):
        bn.log_likelihood(rows, latent="h", by="family")
    assert bn.log_likelihood(rows) == pytest.approx(bn.fit_.log_likelihood)
    with pytest.raises(UnknownVariable, match="latent="):
        bn.log_likelihood(rows, latent=())


@pytest.mark.parametrize(
    "arguments",
    [
        {"latent": 3},
        {"fixed": 3},
        {"states": ["a"]},
        {"prior": mk.priors.BDeu},
        {"prior": mk.priors.Dirichlet({"typo": [1, 2]})},
        {"missing": np.array([1, 2])},
    ],
)
def test_a_wrong_argument_of_fit_is_an_error_and_changes_nothing(arguments):
    bn = mk.BayesianNetwork("a", states={"a": 2}, tables="uniform")
    with pytest.raises(MarkoviaError):
        bn.fit({"a": [0, 0, 1]}, **arguments)
    assert bn["a"].values.tolist() == [0.5, 0.5]
    assert bn.fit_ is None


def test_processes_for_restarts_are_checked_when_they_are_set():
    for n_jobs in (0, "two", True):
        with pytest.raises(InvalidArgument, match="n_jobs"):
            mk.EM(n_jobs=n_jobs)


def test_bic_without_rows_is_nan():
    assert np.isnan(mk.BayesianNetwork("a", states={"a": 2}).fit({"a": []}).fit_.bic)


def test_tied_nodes_whose_states_only_overlap_are_refused():
    chain = mk.BayesianNetwork("x1->x2->x3")
    rows = {"x1": [0, 1], "x2": [1, 2], "x3": [2, 3]}
    with pytest.raises(InvalidArgument, match="share a table"):
        chain.fit(rows, tied=[["x2", "x3"]])


def test_imputation_refuses_two_columns_of_one_name():
    with pytest.raises(InvalidArgument, match="two columns"):
        mk.examples.sprinkler().impute(pd.DataFrame([["yes", "no"]], columns=["rain", "rain"]))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,a\n1,2\n3,4\n", "two columns"),
        ("a,A\n1,2\n", "only in case"),
        ("a,b\n1,2\n1,2\n3,4,5\n", "more or fewer cells"),
        ("a,b\n1,2\n3\n", "more or fewer cells"),
    ],
)
def test_a_csv_file_that_would_be_misread_is_refused(tmp_path, text, said):
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(InvalidArgument, match=said):
        mk.counts(tmp_path / "rows.csv", ["a"])


def test_a_file_with_pattern_characters_in_its_name_is_only_itself(tmp_path):
    for name, value in (("x1.csv", 1), ("x[1].csv", 2), ("x*.csv", 3)):
        (tmp_path / name).write_text(f"a\n{value}\n")
    for name, value in (("x[1].csv", 2), ("x*.csv", 3)):
        found = mk.counts(tmp_path / name, ["a"])
        assert (found.variables[0].states, found.values.tolist()) == ((value,), [1.0])


def test_states_of_a_csv_column_may_be_numbers_and_words(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\nx\nx\n")
    assert mk.counts(tmp_path / "rows.csv", ["a"], states={"a": [1, "x"]}).values.tolist() == [1, 2]
    with pytest.raises(UnknownState, match="unknown state 'x'"):
        mk.counts(tmp_path / "rows.csv", ["a"], states={"a": [1, 2]})


def test_a_folder_a_closed_relation_and_nested_columns_are_clear_errors(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises(InvalidArgument, match="is a folder"):
        mk.counts(tmp_path, ["a"])
    connection = duckdb.connect()
    with pytest.raises(InvalidArgument, match="a state of 'a'"):
        mk.counts(connection.sql("SELECT [1] AS a"), ["a"])
    relation = connection.sql("SELECT 1 AS a")
    connection.close()
    with pytest.raises(InvalidArgument, match="cannot read"):
        mk.counts(relation, ["a"])


def test_rows_of_a_file_are_read_for_scores_as_they_are_for_counts(tmp_path):
    from markovia.data.tables.file_blocks import file_blocks

    (tmp_path / "rows.csv").write_text("a,b\n1.0,yes\n2,NA\n,no\n")
    variables = {"a": mk.Variable("a", [1, 2]), "b": mk.Variable("b", ["no", "yes"])}
    ((rows, _),) = list(file_blocks(tmp_path / "rows.csv", variables))
    assert rows["a"].cat.codes.tolist() == [0, 1, -1]
    assert rows["b"].cat.codes.tolist() == [1, -1, 0]


def test_bins_replace_columns_whose_names_are_numbers_and_those_of_arrow_tables():
    pa = pytest.importorskip("pyarrow")
    found = mk.Discretizer(2).fit_transform(pd.DataFrame([[1.0, 2.0], [3.0, 4.0]]))
    assert found.columns.tolist() == [0, 1]
    assert found[0].cat.codes.tolist() == [0, 1]
    assert mk.Discretizer(2).fit_transform(pa.table({"a": [1.0, None, 3.0]}))["a"].cat.codes.tolist() == [
        0,
        -1,
        1,
    ]


@pytest.mark.parametrize(
    ("settings", "column", "y"),
    [
        ({"bins": {"typo": 3}}, [1.0, 2.0], None),
        ({"bins": 2, "labels": ["x", "x"]}, [1.0, 2.0], None),
        ({"strategy": "mdl"}, [1.0, 2.0], [0]),
        ({"columns": ["a"]}, pd.to_datetime(["2020-01-01", "2020-01-02"]), None),
        ({"bins": 3}, [-1e308, 1.7e308], None),
    ],
)
def test_a_discretizer_says_what_is_wrong(settings, column, y):
    with pytest.raises(MarkoviaError):
        mk.Discretizer(**settings).fit(pd.DataFrame({"a": column}), y)


def test_a_process_reads_its_states_off_the_sequences_and_counts_each_gap_once():
    process = mk.DynamicBayesianNetwork(mk.BayesianNetwork("x"), mk.BayesianNetwork("x@-1->x"))
    with pytest.raises(InvalidArgument, match="1 cells"):
        process.fit([{"x": ["a", None, "b"]}], missing="error")
    process.fit([{"x": ["a", "b"]}, {"x": ["a"]}])
    assert process.initial.states("x") == process.transition.states("x@-1") == ["a", "b"]
    assert process.transition["x"].values.tolist() == [[0.0, 1.0], [0.5, 0.5]]
    assert process.fit_.unseen_rows == {"x": 1}
