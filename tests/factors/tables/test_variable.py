import pickle

import numpy as np
import pytest

import markovia as mk


def test_states_are_kept_in_order_and_found_by_value():
    v = mk.Variable("size", ["small", 2, "large"])
    assert len(v) == v.cardinality == 3
    assert [v.index(s) for s in ("small", 2, "large")] == [0, 1, 2]
    assert v.index(np.int64(2)) == 1


def test_states_that_look_like_positions_are_states():
    v = mk.Variable("x", [1, 0])
    assert v.index(0) == 1
    assert not v.numbered
    assert mk.Variable("x", 2).numbered
    assert not mk.Variable("x", [False, True]).numbered


def test_numpy_values_become_plain_python():
    v = mk.Variable("x", np.array([3, 5]))
    assert [type(s) for s in v.states] == [int, int]
    assert mk.Variable("x", np.array(["a", "b"])).states == ("a", "b")
    assert mk.Variable("x", np.array([True, False])).states == (True, False)


@pytest.mark.parametrize("states", [0, -1, [], "yes", True, ["a", "a"], [1, True], [0.5], [None], object()])
def test_what_are_no_states_is_refused(states):
    with pytest.raises(mk.errors.InvalidArgument, match="x"):
        mk.Variable("x", states)


@pytest.mark.parametrize("name", ["", 3, None])
def test_a_name_is_a_non_empty_string(name):
    with pytest.raises(mk.errors.InvalidArgument, match="non-empty string"):
        mk.Variable(name, 2)


def test_variables_are_immutable_comparable_and_picklable():
    v = mk.Variable("x", ["a", "b"])
    with pytest.raises(AttributeError, match="immutable"):
        v.name = "y"
    assert v == mk.Variable("x", ["a", "b"])
    assert hash(v) == hash(mk.Variable("x", ["a", "b"]))
    assert v != mk.Variable("x", ["b", "a"])
    assert mk.Variable("x", [0, 1]) != mk.Variable("x", [False, True])
    assert v != "x"
    assert pickle.loads(pickle.dumps(v)) == v
    assert v.renamed("y").states == v.states


def test_text_is_matched_to_states():
    assert mk.Variable("x", 3).parse("2") == 2
    assert mk.Variable("x", [False, True]).parse("true") is True
    assert mk.Variable("x", ["1", "2"]).parse("1") == "1"
    with pytest.raises(mk.errors.UnknownState, match="its states are 0, 1"):
        mk.Variable("x", 2).parse("two")


@pytest.mark.parametrize(
    ("states", "values", "positions"),
    [
        ([False, True], ["true", "True", "TRUE", True, 1, 1.0, "1", "1.0", "0"], [1, 1, 1, 1, 1, 1, 1, 1, 0]),
        ([0, 1], [1, "1", True, "true", "FALSE", 2, "2", "yes"], [1, 1, 1, 1, 0, None, None, None]),
        ([3, 1, 2], ["3", "2.0", 1.0, "1e0", "true", "01", "x"], [0, 2, 1, 1, None, 1, None]),
        (["True", "False"], [True, False, 1, 0, "true", "False", "1"], [0, 1, 0, 1, 0, 1, None]),
        (["0", "1"], [0, 1.0, True, "1", "1.0", "true"], [0, 1, 1, 1, None, None]),
        (["1", "2", "03"], [1, 2, 3, "03", True], [0, 1, None, 2, None]),
        (["no", "yes"], ["yes", "Yes", True, 1, None, [1]], [1, None, None, None, None, None]),
        ([1, "1", "true"], [1, "1", "true"], [0, 1, 2]),
        (["1", "true"], [1, True, "TRUE"], [None, None, 1]),
    ],
)
def test_values_of_another_type_mean_the_state_they_write(states, values, positions):
    assert mk.Variable("x", states).positions(values) == positions


def test_an_unknown_state_names_the_nearest_and_at_most_a_dozen():
    v = mk.Variable("smoke", ["no", "yes"])
    with pytest.raises(mk.errors.UnknownState) as caught:
        v.index("Yes")
    assert (
        str(caught.value)
        == "unknown state 'Yes' for 'smoke'; its states are 'no', 'yes' (did you mean 'yes'?)"
    )
    with pytest.raises(mk.errors.UnknownState, match=r"10, 11, \.\.\."):
        mk.Variable("n", 50).index(99)
    with pytest.raises(mk.errors.UnknownState):
        v.index(["yes"])
