import numpy as np
import pytest

import markovia as mk


def test_variables_may_look_back_at_each_other_before_both_are_there():
    process = mk.DynamicBayesianNetwork()
    process.add("a", states=2, parents=["b@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.5, 0.5])
    with pytest.raises(mk.errors.IncompleteModel, match="add\\('b'"):
        process.unroll(2)
    process.add("b", states=2, parents=["a@-1"], p=[[0.7, 0.3], [0.4, 0.6]], initial=[0.1, 0.9])
    assert process.unroll(2).edges == [("b@0", "a@1"), ("a@0", "b@1")]
    assert process.query("a@1")[1] == pytest.approx(0.1 * 0.1 + 0.9 * 0.8)


def test_a_process_of_order_two_has_its_own_tables_for_the_first_two_steps():
    process = mk.DynamicBayesianNetwork()
    later = np.array([[[0.9, 0.1], [0.3, 0.7]], [[0.6, 0.4], [0.2, 0.8]]])
    process.add(
        "x", states=2, parents=["x@-1", "x@-2"], p=later, initial=[[0.5, 0.5], [[0.8, 0.2], [0.1, 0.9]]]
    )
    process.add("y", parents=["x"], p=[[0.9, 0.1], [0.2, 0.8]])
    assert process.order == 2
    network = process.unroll(3)
    assert network.parents("x@1") == ["x@0"]
    assert network.parents("x@2") == ["x@1", "x@0"]
    np.testing.assert_allclose(network["x@2"].values, later)
    assert network.parents("y@0") == ["x@0"]


def test_what_is_missing_at_the_first_steps_is_named():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=2, parents=["x@-1"], p=[[0.9, 0.1], [0.2, 0.8]])
    with pytest.raises(
        mk.errors.IncompleteModel, match="'x' has no distribution at step 0; say with initial="
    ):
        process.filter({"x": [0, 1]})
    with pytest.raises(mk.errors.InvalidArgument, match="a list of 2 distributions"):
        process.add("z", states=2, parents=["z@-2"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[[0.5, 0.5]])
    with pytest.raises(mk.errors.InvalidArgument, match="leave initial= out"):
        process.add("z", p=[0.5, 0.5], initial=[0.5, 0.5])
    with pytest.raises(mk.errors.IncompleteModel, match="how it begins at step 0"):
        process.add("q", mk.LinearGaussian(0, {"q@-1": 1.0}, 1.0))
    with pytest.raises(mk.errors.UnknownVariable):
        process.add("w", states=2, parents=["nobody"], p=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(mk.errors.InvalidGraph, match="its own parent"):
        process.add("w", states=2, parents=["w"], p=[[0.5, 0.5], [0.5, 0.5]])
    with pytest.raises(mk.errors.DuplicateName):
        process.add("x", p=[0.5, 0.5])
    assert process.variables == ["x"]


def test_a_network_that_looks_further_back_than_its_first_steps_is_refused():
    first = mk.BayesianNetwork("x", tables="uniform")
    later = mk.BayesianNetwork("x@-2->x", tables="uniform")
    with pytest.raises(mk.errors.InvalidGraph, match="looks 2 steps back"):
        mk.DynamicBayesianNetwork(first, later)
    with pytest.raises(mk.errors.InvalidGraph, match="nothing 1 steps before"):
        mk.DynamicBayesianNetwork(mk.BayesianNetwork("x@-1->x", tables="uniform"), later)


def test_a_static_variable_has_one_state_for_all_steps():
    process = mk.DynamicBayesianNetwork()
    process.add("coin", states=["fair", "loaded"], p=[0.5, 0.5], static=True)
    process.add("toss", states=["h", "t"], parents=["coin"], p=[[0.5, 0.5], [0.9, 0.1]])
    tosses = ["h", "h", "t", "h"]
    smoothed = process.smooth({"toss": tosses})["coin"][0]
    odds = (0.9 / 0.5) ** 3 * (0.1 / 0.5)
    np.testing.assert_allclose(smoothed[:, 1], odds / (1 + odds), atol=1e-12)


def test_a_process_of_order_two_is_saved_and_loaded(tmp_path):
    process = mk.DynamicBayesianNetwork()
    process.add("x", parents=["x@-2"], states=2, p=[[0.9, 0.1], [0.2, 0.8]], initial=[[0.5, 0.5], [0.3, 0.7]])
    process.save(tmp_path / "p.json")
    again = mk.load(tmp_path / "p.json")
    assert again.order == 2
    assert again.unroll(4).allclose(process.unroll(4))
    numbers = mk.DynamicBayesianNetwork()
    numbers.add("x", mk.LinearGaussian(0, {"x@-1": 0.5}, 1), initial=mk.LinearGaussian())
    numbers.save(tmp_path / "q.json")
    assert mk.load(tmp_path / "q.json").log_prob({"x": [1.0, 2.0]})[0] == pytest.approx(
        numbers.log_prob({"x": [1.0, 2.0]})[0]
    )


def test_evidence_that_cannot_be_is_refused_with_its_step_named():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=["a", "b"], parents=["x@-1"], p=[[1.0, 0.0], [0.2, 0.8]], initial=[0.5, 0.5])
    with pytest.raises(mk.errors.UnknownState, match=r"step 1 of sequence 0: .*'c'"):
        process.filter([{"x": ["a", "c"]}])
    with pytest.raises(mk.errors.UnknownVariable, match="'y'"):
        process.filter({"y": [1]})
    with pytest.raises(mk.errors.ImpossibleEvidence, match="step 2 of sequence 1"):
        process.smooth([{"x": ["a", "a"]}, {"x": ["b", "a", "b"]}])
    assert process.log_prob([{"x": ["a", "a"]}, {"x": ["b", "a", "b"]}])[1] == -np.inf
    with pytest.raises(mk.errors.InvalidArgument, match="named columns"):
        process.filter([["a", "b"]])
    with pytest.raises(mk.errors.InvalidArgument, match="no steps"):
        process.filter([{"x": []}])


def test_long_frames_lengths_and_lists_mean_the_same():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=2, parents=["x@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.5, 0.5])
    process.add("y", parents=["x"], p=[[0.9, 0.1], [0.2, 0.8]])
    expected = process.smooth([{"y": [0, 1, 1]}, {"y": [1, 0]}])["x"]
    joined = process.smooth({"y": [0, 1, 1, 1, 0]}, [3, 2])["x"]
    mixed = process.smooth({"who": [7, 3, 7, 7, 3], "y": [0, 1, 1, 1, 0]}, by="who")["x"]
    for found in (joined, mixed):
        assert all(np.allclose(a, b, atol=1e-12) for a, b in zip(found, expected, strict=True))


def test_a_stream_takes_states_by_name_and_stays_as_it_was_on_an_unknown_one():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=["dry", "wet"], parents=["x@-1"], p=[[0.9, 0.1], [0.3, 0.7]], initial=[0.5, 0.5])
    process.add("y", states=["low", "high"], parents=["x"], p=[[0.9, 0.1], [0.2, 0.8]])
    seen = ["low", np.str_("high"), {"low": 0.2, "high": 0.7}, "high"]
    expected, stream = process.filter({"y": seen}), process.stream()
    for t, y in enumerate(seen):
        assert stream.update({"y": y})["x"]["wet"] == pytest.approx(expected["x"][0][t, 1], abs=1e-12)
        with pytest.raises(mk.errors.UnknownState, match="'middle'"):
            stream.update({"y": "middle"})
        assert stream.step == t + 1
    assert stream.log_prob == pytest.approx(expected.log_prob[0], abs=1e-12)


def test_a_stream_filters_like_the_whole_sequence_and_its_state_travels():
    import json
    import pickle

    process = mk.DynamicBayesianNetwork()
    process.add("x", states=2, parents=["x@-1", "x@-2"], p=[[0.9, 0.1], [0.3, 0.7], [0.6, 0.4], [0.2, 0.8]],
                initial=[[0.5, 0.5], [[0.8, 0.2], [0.1, 0.9]]])  # fmt: skip
    process.add("y", parents=["x"], p=[[0.9, 0.1], [0.2, 0.8]])
    seen = [0, 1, None, 1, 0]
    expected = process.filter({"y": seen})
    stream = process.stream()
    for t, y in enumerate(seen):
        found = stream.update({"y": y})["x"]
        np.testing.assert_allclose(found.values, expected["x"][0][t], atol=1e-12)
        again = process.stream()
        again.state = json.loads(json.dumps(stream.state))
        stream = pickle.loads(pickle.dumps(again))
    assert stream.log_prob == pytest.approx(expected.log_prob[0])
    with pytest.raises(mk.errors.UnknownVariable):
        stream.update({"z": 1})
    assert stream.step == 5
