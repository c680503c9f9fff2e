"""The door to structure learning: data, knowledge, limits, results."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.learning.structure.study import read_study
from markovia.learning.structure.watch import Watch

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


def test_columns_with_fractions_are_continuous_and_others_discrete():
    frame = pd.DataFrame({"a": [0.5, 1.5, 2.0], "b": [1, 2, 1], "c": list("xyx"), "d": [1.0, 2.0, 1.0]})
    study = read_study(frame)
    assert study.kinds == ("continuous", "discrete", "discrete", "discrete")
    assert read_study(frame[["a", "b", "d"]], continuous=True).matrix.shape == (3, 3)


def test_a_file_with_measurements_is_read_into_memory(tmp_path):
    frame = pd.DataFrame({"a": [0.5, 1.5, np.nan], "c": ["x", "y", "x"]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    study = read_study(tmp_path / "rows.csv")
    assert study.kinds == ("continuous", "discrete")
    assert study.missing() == {"a": 1, "c": 0}
    assert study.without_gaps().n_rows == 2


def test_contradictions_in_knowledge_are_named():
    with pytest.raises(mk.InvalidArgument, match="required and forbidden"):
        mk.Knowledge(required=[("a", "b")], forbidden=[("a", "b")]).rules(["a", "b"])
    with pytest.raises(mk.InvalidArgument, match="cycle"):
        mk.Knowledge(required=[("a", "b"), ("b", "a")]).rules(["a", "b"])
    with pytest.raises(mk.InvalidArgument, match="order of the tiers"):
        mk.Knowledge(required=[("b", "a")], tiers=[["a"], ["b"]]).rules(["a", "b"])


def test_a_search_obeys_what_is_known():
    found = mk.learn_structure(
        ROWS, required=[("wet", "cloudy")], forbidden=[("cloudy", "rain"), ("rain", "cloudy")], max_parents=1
    )
    assert ("wet", "cloudy") in found.edges
    assert not found.skeleton.has_edge("cloudy", "rain")
    assert max(len(found.dag.parents(n)) for n in found.nodes) <= 1


def test_a_time_limit_keeps_the_best_so_far():
    found = mk.learn_structure(ROWS, time_limit=1e-9)
    assert found.stopped == "time limit"
    assert found.n_edges == 0


def test_the_first_interrupt_only_raises_a_flag():
    import os
    import signal

    with Watch(progress=False) as watch:
        os.kill(os.getpid(), signal.SIGINT)
        assert watch.over()
        assert watch.reason == "interrupted"
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_unknown_methods_and_options_are_named():
    with pytest.raises(mk.InvalidArgument, match="did you mean 'hill-climb'"):
        mk.learn_structure(ROWS, method="hil-climb")
    with pytest.raises(mk.errors.UnknownArgument, match="takes no lenght"):
        mk.learn_structure(ROWS, lenght=3)
    with pytest.raises(mk.InvalidArgument, match="takes no test"):
        mk.learn_structure(ROWS, test="g2")
