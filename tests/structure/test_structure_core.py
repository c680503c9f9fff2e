"""The door to structure learning: data, knowledge, limits, results."""

import os
import pickle
import signal
import threading
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovia as mk
from markovia.data.tables.reading_mixed import MixedTable, read_mixed
from markovia.runtime.clock import Clock
from markovia.structure.learn import plan_search
from markovia.structure.task.result import FoundGraph
from markovia.structure.task.settings import Reading

ROWS = mk.examples.sprinkler().sample(3000, seed=1)


def test_hill_climbing_finds_the_sprinkler_and_fits_it():
    found = mk.learn_structure(ROWS, method="hill-climb", tiers=[["cloudy"], ["sprinkler", "rain"], ["wet"]])
    truth = mk.examples.sprinkler().graph
    assert mk.graphs.i_equivalent(found.dag, truth)
    model = found.fit()
    assert (
        abs(
            model.query("rain", given={"wet": "yes"})["yes"]
            - mk.examples.sprinkler().query("rain", given={"wet": "yes"})["yes"]
        )
        < 0.05
    )
    assert found.path[-1].score == pytest.approx(found.score)


# -- data ------------------------------------------------------------------------------------------------------------


def test_columns_with_fractions_are_continuous_and_others_discrete():
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.0], "b": [1, 2, 1], "c": list("xyx"), "d": [1.0, 2.0, 1.0]})
    mixed = read_mixed(frame)
    assert mixed.kinds == ("continuous", "discrete", "discrete", "discrete")
    assert read_mixed(frame[["a", "b", "d"]], continuous=True).matrix.shape == (3, 3)
    assert list(mixed.columns) == [0, 0, 1, 2]
    assert list(mixed.cards) == [0, 2, 2, 2]


@pytest.mark.parametrize(
    "column",
    [
        [1.5, None, 2.0],
        np.array([1.5, None, 2.0], dtype=object),
        pd.array([1.5, None, 2.0], dtype="Float64"),
        pl.Series([1.5, None, 2.0]),
        [Decimal("1.5"), None, Decimal(2)],
    ],
)
def test_numbers_with_fractions_are_seen_whatever_holds_them(column):
    mixed = read_mixed({"a": column, "b": ["x", "y", "x"]})
    assert mixed.kinds == ("continuous", "discrete")
    np.testing.assert_array_equal(mixed.matrix[:, 0], [1.5, np.nan, 2.0])
    assert mixed.missing() == {"a": 1, "b": 0}


def test_a_file_with_measurements_is_read_into_memory(tmp_path):
    frame = pd.DataFrame({"a": [0.5, 1.5, np.nan], "c": ["x", "y", "x"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    mixed = read_mixed(tmp_path / "rows.csv")
    assert mixed.kinds == ("continuous", "discrete")
    assert mixed.missing() == {"a": 1, "c": 0}
    assert mixed.without_gaps().n_rows == 2


def test_names_choose_columns_and_their_order_whatever_the_source():
    wanted = ["wet", "rain"]
    plain = mk.learn_structure(ROWS, names=wanted)
    assert plain.nodes == wanted
    coded = read_mixed(ROWS).table
    assert mk.learn_structure(coded, names=wanted).score == pytest.approx(plain.score)
    mixed = read_mixed(ROWS)
    assert list(mixed.only(wanted).table.variables) == wanted
    mixed = read_mixed({"a": [1.5, 2.5, 1.0], "b": list("xyx"), "c": [0.5, 0.1, 0.2]}, names=["c", "b", "a"])
    np.testing.assert_array_equal(mixed.only(["a"]).matrix[:, 0], [1.5, 2.5, 1.0])
    assert mixed.only(["b"]).discrete


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"names": "wet"}, "names= is a list"),
        ({"names": ["wet", "wet"]}, "twice"),
        ({"names": ["wett"]}, "did you mean 'wet'"),
        ({"continuous": ["damp"]}, "unknown variable 'damp'"),
        ({"continuous": ["wet"]}, "not numbers"),
        ({"states": {"damp": 2}}, "unknown variable 'damp'"),
        ({"states": {"wet": ["no", "yes"]}, "continuous": ["wet"]}, "one or the other"),
        ({"weights": np.ones(7)}, "weights have shape"),
        ({"weights": np.zeros(3000)}, "zero"),
        ({"missing": "ignore"}, "'error' or 'drop'"),
        ({"in_memory": "yes"}, "True, False or None"),
        ({"time_limit": True}, "number of seconds"),
        ({"time_limit": 0}, "number of seconds"),
    ],
)
def test_what_is_wrong_with_an_argument_is_said(settings, words):
    with pytest.raises(mk.MarkoviaError, match=words):
        mk.learn_structure(ROWS, **settings)


def test_data_without_rows_or_columns_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="no rows"):
        mk.learn_structure(ROWS[:0])
    with pytest.raises(mk.errors.InvalidArgument, match="no columns"):
        mk.learn_structure(pd.DataFrame(index=range(3)))
    with pytest.raises(mk.errors.InvalidArgument, match="two columns named 'wet'"):
        mk.learn_structure(pd.concat([ROWS, ROWS[["wet"]]], axis=1))
    with pytest.raises(mk.errors.InvalidArgument, match="needs data"):
        mk.learn_structure()


def test_one_row_one_column_and_a_constant_give_no_edges():
    assert mk.learn_structure(ROWS[:1]).n_edges == 0
    assert mk.learn_structure(ROWS[["wet"]]).n_edges == 0
    found = mk.learn_structure(ROWS.assign(always="so"))
    assert not found.skeleton.neighbors("always")


def test_weights_count_as_copies_of_rows():
    some = ROWS[:200]
    times = np.random.default_rng(0).integers(0, 4, 200)
    copies = some.loc[np.repeat(some.index, times)]
    for weighted in (
        mk.learn_structure(some, weights=times),
        mk.learn_structure(some.assign(w=times.astype(float)), weights="w"),
    ):
        plain = mk.learn_structure(copies)
        assert weighted.score == pytest.approx(plain.score)
        assert weighted.edges == plain.edges


def test_rows_that_miss_cells_are_dropped_only_where_that_is_asked_for():
    holes = ROWS.astype(object).copy()
    holes.iloc[:10, 0] = None
    with pytest.raises(mk.errors.InvalidArgument, match="10 in 'cloudy'"):
        mk.learn_structure(holes)
    found = mk.learn_structure(holes, missing="drop")
    assert found.score == pytest.approx(mk.learn_structure(ROWS[10:]).score)
    assert "10 of 3,000 rows" in found.notes[0]
    none = ROWS[:4].astype(object).copy()
    for k in range(4):
        none.iloc[k, k] = None
    with pytest.raises(mk.errors.InvalidArgument, match="every row"):
        mk.learn_structure(none, missing="drop")


def test_grouped_rows_say_the_same_as_all_rows():
    mixed = read_mixed(ROWS)
    groups = mixed.grouped()
    assert groups.n_rows < 20
    assert groups.total == mixed.total == 3000
    names = [["wet", "rain"], ["cloudy"]]
    for one, other in zip(groups.table.counts(names), mixed.table.counts(names), strict=True):
        np.testing.assert_array_equal(one, other)
    spread = groups.spread()
    assert spread.table.weights is None
    np.testing.assert_array_equal(spread.table.counts(names)[0], mixed.table.counts(names)[0])
    holes = ROWS.astype(object).copy()
    holes.iloc[:10, 0] = None
    assert read_mixed(holes).grouped().missing() == read_mixed(holes).missing()


def test_resampling_draws_as_many_rows_and_only_rows_that_are_there():
    rng = np.random.default_rng(0)
    for mixed in (read_mixed(ROWS), read_mixed(ROWS).grouped()):
        drawn = mixed.resampled(rng)
        assert drawn.total == 3000
        there = {tuple(r) for r in mixed.table.codes.T.tolist()}
        assert {tuple(r) for r in drawn.table.codes.T.tolist()} <= there
    mixed = read_mixed({"a": np.arange(50) / 7, "b": ["x", "y"] * 25}, weights=np.arange(50.0))
    drawn = mixed.resampled(rng)
    assert drawn.total == mixed.total
    assert drawn.weights is None
    assert 0.0 not in drawn.matrix  # a row of weight zero is never drawn
    expected = np.average(mixed.matrix[:, 0], weights=mixed.weights)
    assert drawn.matrix.mean() == pytest.approx(expected, abs=0.3)


def test_the_mean_of_many_bootstrap_samples_is_the_sample():
    mixed = read_mixed(ROWS[:300]).grouped()
    rng = np.random.default_rng(1)
    total = sum(mixed.resampled(rng).table.counts([["rain"]])[0] for _ in range(400)) / 400
    np.testing.assert_allclose(total, mixed.table.counts([["rain"]])[0], atol=4 * np.sqrt(75 / 400))


# -- knowledge -------------------------------------------------------------------------------------------------------


def test_contradictions_in_knowledge_are_named():
    with pytest.raises(mk.errors.InvalidArgument, match="required and forbidden"):
        mk.Knowledge(required=[("a", "b")], forbidden=[("a", "b")]).rules(["a", "b"])
    with pytest.raises(mk.errors.InvalidArgument, match="cycle"):
        mk.Knowledge(required=[("a", "b"), ("b", "a")]).rules(["a", "b"])
    with pytest.raises(mk.errors.InvalidArgument, match="order of the tiers"):
        mk.Knowledge(required=[("b", "a")], tiers=[["a"], ["b"]]).rules(["a", "b"])
    with pytest.raises(mk.errors.InvalidArgument, match="within_tiers=False"):
        mk.Knowledge(required=[("b", "a")], tiers=[["a", "b"]], within_tiers=False).rules(["a", "b"])
    with pytest.raises(mk.errors.InvalidArgument, match="its own parent"):
        mk.Knowledge(required=[("a", "a")]).rules(["a", "b"])
    with pytest.raises(mk.errors.InvalidArgument, match="max_parents is 1"):
        mk.Knowledge(required=[("a", "c"), ("b", "c")], max_parents=1).rules(["a", "b", "c"])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"required": ("a", "b")}, r"write required=\[\('a', 'b'\)\]"),
        ({"required": "a->b"}, "a list of edges"),
        ({"required": ["a->b"]}, "pairs"),
        ({"forbidden": [("a", 3)]}, "3 in"),
        ({"tiers": "ab"}, "list of lists"),
        ({"tiers": ["ab"]}, r"write \[\['ab'\]"),
        ({"tiers": [["a"], ["a"]]}, "two tiers"),
        ({"tiers": [3]}, "list of names"),
        ({"tiers": {"a": "first"}}, "is a number"),
        ({"max_parents": 1.5}, "whole number"),
        ({"max_parents": -1}, "whole number"),
        ({"required": [("a", "z")]}, "unknown variable 'z'"),
        ({"tiers": [["z"]]}, "unknown variable 'z'"),
    ],
)
def test_knowledge_that_cannot_be_read_is_explained(settings, words):
    with pytest.raises(mk.MarkoviaError, match=words):
        mk.Knowledge(**settings).rules(["a", "b"])


def test_tiers_may_be_numbers():
    groups = mk.Knowledge(tiers=[["a"], ["b", "c"]]).rules(["a", "b", "c"])
    numbers = mk.Knowledge(tiers={"b": 2, "a": 1, "c": 2.0}).rules(["a", "b", "c"])
    np.testing.assert_array_equal(groups.allowed, numbers.allowed)


def test_a_search_obeys_what_is_known():
    found = mk.learn_structure(
        ROWS, required=[("wet", "cloudy")], forbidden=[("cloudy", "rain"), ("rain", "cloudy")], max_parents=1
    )
    assert ("wet", "cloudy") in found.edges
    assert not found.skeleton.has_edge("cloudy", "rain")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1


def test_knowledge_and_its_parts_exclude_each_other():
    with pytest.raises(mk.errors.InvalidArgument, match="inside the Knowledge"):
        mk.learn_structure(ROWS, knowledge=mk.Knowledge(), max_parents=2)
    with pytest.raises(mk.errors.InvalidArgument, match="is a Knowledge"):
        mk.learn_structure(ROWS, knowledge={"max_parents": 2})


# -- limits ----------------------------------------------------------------------------------------------------------


def test_the_pairs_of_rules_are_computed_once_however_often_they_are_asked_for():
    rules = mk.Knowledge(forbidden=[("a", "b"), ("b", "a"), ("a", "c")], required=[("c", "b")]).rules("abc")
    assert rules.pairs.tolist() == [[False, False, True], [False, False, True], [True, True, False]]
    assert rules.required_pairs.tolist() == [
        [False, False, False],
        [False, False, True],
        [False, True, False],
    ]
    assert rules.pairs is rules.pairs
    assert rules.required_pairs is rules.required_pairs


def test_a_time_limit_keeps_the_best_so_far():
    found = mk.learn_structure(ROWS, time_limit=1e-9)
    assert found.stopped == "time limit"
    assert found.n_edges == 0


def test_the_first_interrupt_only_raises_a_flag():
    with Clock(progress=False) as clock:
        os.kill(os.getpid(), signal.SIGINT)
        assert clock.over()
        assert clock.reason == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_an_interrupt_stops_the_searches_inside_and_outside():
    before = signal.getsignal(signal.SIGINT)
    with Clock(progress=False) as outer:
        with Clock(progress=False) as inner:
            signal.raise_signal(signal.SIGINT)
            assert inner.over()
            assert inner.reason == "interrupted"
        assert outer.over()
        with Clock(progress=False) as later:
            assert later.over()
    assert signal.getsignal(signal.SIGINT) is before


def test_an_outer_time_limit_holds_inside():
    with Clock(1e-9, progress=False) as outer, Clock(60, progress=False) as inner:
        assert inner.left == 0.0
        assert inner.over()
        assert inner.reason == "time limit"
        assert outer.over()
    with Clock(60, progress=False) as outer:
        with Clock(1e-9, progress=False) as inner:
            assert inner.over()
        assert not outer.over()


def test_a_search_in_a_thread_stops_at_ctrl_c_of_the_main_thread():
    seen = []
    with Clock(progress=False) as clock:
        started, pressed = threading.Event(), threading.Event()

        def work():
            with Clock(progress=False) as own:
                started.set()
                pressed.wait(5)
                seen.append((own.over(), own.reason))

        thread = threading.Thread(target=work)
        thread.start()
        started.wait(5)
        signal.raise_signal(signal.SIGINT)
        pressed.set()
        thread.join(5)
        assert clock.over()
    assert seen == [(True, "interrupted")]


def test_a_program_that_ignores_ctrl_c_is_left_alone():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Clock(progress=False) as clock:
            assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
            assert not clock.over()
    finally:
        signal.signal(signal.SIGINT, before)


# -- results ---------------------------------------------------------------------------------------------------------


def test_a_result_reads_well():
    found = mk.learn_structure(ROWS)
    assert repr(found).startswith("<LearnedStructure: directed graph with 4 nodes and ")
    text = str(found)
    assert "by hill-climb (bic)" in text
    a, b = found.edges[0]
    assert f"{a} --> {b}" in text
    assert "score -" in text
    assert "<table>" in found._repr_html_()
    frame = found.to_pandas()
    assert list(zip(frame["from"], frame["to"], strict=True)) == found.edges
    assert list(found.path_frame().columns) == ["move", "score", "seconds"]
    assert len(found.path_frame()) == len(found.path)


def test_kinds_of_graphs_are_named():
    def learned(graph):
        return mk.results.LearnedStructure(graph, "by hand")

    assert learned(mk.graphs.DAG([("a", "b")])).kind == "directed graph"
    assert learned(mk.graphs.UndirectedGraph([("a", "b")])).kind == "undirected graph"
    assert learned(mk.graphs.MixedGraph(["a --- b"])).kind == "partially directed graph"
    assert learned(mk.graphs.MixedGraph(["a o-> b"])).kind == "partial ancestral graph"
    assert learned(mk.graphs.MixedGraph(["a <-> b"])).kind == "partial ancestral graph"
    assert "a o-> b" in str(learned(mk.graphs.MixedGraph(["a o-> b"])))
    assert learned(mk.graphs.MixedGraph(["a --- b", "c --> b", "a --- c"])).dag.n_edges == 3
    for graph, words in (
        (mk.graphs.MixedGraph(["a o-> b"]), "ancestral"),
        (mk.graphs.UndirectedGraph([("a", "b")]), "undirected"),
    ):
        with pytest.raises(mk.errors.InvalidArgument, match=words):
            _ = learned(graph).dag


def test_many_edges_are_cut_when_printed():
    names = [f"v{i}" for i in range(12)]
    graph = mk.graphs.DAG([(a, b) for i, a in enumerate(names) for b in names[i + 1 :]])
    assert "and 26 more" in str(mk.results.LearnedStructure(graph, "by hand"))


def test_a_result_travels_with_its_rows_and_without_far_ones(tmp_path):
    found = mk.learn_structure(ROWS)
    copy = pickle.loads(pickle.dumps(found))
    assert copy.edges == found.edges
    assert copy.fit().allclose(found.fit())
    ROWS.to_csv(tmp_path / "rows.csv", index=False)
    far = mk.learn_structure(tmp_path / "rows.csv", in_memory=False)
    copy = pickle.loads(pickle.dumps(far))
    with pytest.raises(mk.errors.InvalidArgument, match="give the rows"):
        copy.fit()
    assert copy.fit(ROWS).allclose(far.fit())


@pytest.mark.parametrize("suffix", [".json", ".dagitty"])
@pytest.mark.parametrize("edges", [["a --> b"], ["a --- b", "b --> c"], ["a o-> b", "b <-> c", "a o-o d"]])
def test_a_graph_is_saved_without_parameters(tmp_path, suffix, edges):
    graph = mk.graphs.MixedGraph(edges)
    file = tmp_path / f"graph{suffix}"
    mk.results.LearnedStructure(graph, "by hand").save(file)
    back = mk.load(file)
    back = mk.graphs.MixedGraph.from_dag(back) if isinstance(back, mk.graphs.DAG) else back
    assert back == graph


def test_continuous_columns_become_gaussians_also_where_their_cells_are_whole():
    mixed = MixedTable(["a"], ["continuous"], None, np.array([[1.0], [2.0], [6.0]]))
    model = mk.results.LearnedStructure(mk.graphs.DAG(nodes=["a"]), "by hand", data=mixed).fit()
    assert (model["a"].row().bias, model["a"].row().variance) == pytest.approx((3.0, 14 / 3))


# -- methods ---------------------------------------------------------------------------------------------------------


def test_unknown_methods_and_options_are_named():
    with pytest.raises(mk.errors.InvalidArgument, match="did you mean 'hill-climb'"):
        mk.learn_structure(ROWS, method="hil-climb")
    with pytest.raises(mk.errors.UnknownArgument, match="takes no lenght"):
        mk.learn_structure(ROWS, lenght=3)
    with pytest.raises(mk.errors.UnknownArgument, match="did you mean max_parents="):
        mk.learn_structure(ROWS, max_parent=3)
    with pytest.raises(mk.errors.InvalidArgument, match="takes no test"):
        mk.learn_structure(ROWS, test="g2")
    with pytest.raises(mk.errors.InvalidArgument, match="method= is a name"):
        mk.learn_structure(ROWS, method=3)


def test_method_names_are_read_loosely():
    assert mk.learn_structure(ROWS, "Hill_Climb").method == "hill-climb"
    assert plan_search(ROWS, "hc", mk.Knowledge(), Reading(), options={}).how.name == "hill-climb"


def test_a_method_finds_its_task_checked(monkeypatch):
    import markovia.structure.dag_search.hill_climbing as module

    seen = {}

    def spy(task, *, depth=1):
        seen.update(
            names=task.names, depth=depth, jobs=task.jobs, draws=task.rng.integers(100, size=3).tolist()
        )
        return FoundGraph(mk.graphs.DAG(nodes=task.names), notes=["by a spy"])

    monkeypatch.setattr(module, "hill_climb", spy)
    found = mk.learn_structure(ROWS, depth=4, n_jobs=2, seed=5)
    assert seen["names"] == tuple(ROWS.columns)
    assert (seen["depth"], seen["jobs"]) == (4, 2)
    assert seen["draws"] == np.random.default_rng(5).integers(100, size=3).tolist()
    assert "note: by a spy" in str(found)
