"""Problems: pieces that stay one object until one changes, findings read once, questions about everything."""

from itertools import combinations

import pytest

import markovia as mk
from markovia.inference.problem import Pieces


def sprinkler():
    return mk.examples.sprinkler()


def test_pieces_are_one_object_until_one_of_them_changes():
    bn = sprinkler()
    bn.query("rain")
    held = bn._memory[Pieces]
    bn.query("wet", given={"rain": "yes"})
    assert bn._memory[Pieces] is held
    assert held.kinds == {"table"}
    assert held.same(bn.pieces())
    bn.replace("cloudy", [0.1, 0.9])
    fresh = bn.copy()
    assert bn.query("rain")["yes"] == pytest.approx(0.1 * 0.2 + 0.9 * 0.8)
    assert bn._memory[Pieces] is not held
    assert not held.same(bn.pieces())
    assert not held.same(bn.pieces()[:-1])
    assert bn.query("rain")["yes"] == fresh.query("rain")["yes"]


@pytest.mark.parametrize("first", [1, True, "1"])
@pytest.mark.parametrize("then", [1, True, "1", 0, "2"])
def test_a_state_means_the_same_whatever_was_found_before(first, then):
    def said(model, state):
        try:
            return model.query("b", given={"a": state}).to_dict()
        except mk.errors.UnknownState as error:
            return str(error)

    for states in ([0, 1], [False, True], ["1", "2"]):
        bn = mk.BayesianNetwork()
        bn.add("a", states=states, p=[0.3, 0.7])
        bn.add("b", states=["no", "yes"], parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
        fresh = bn.copy()
        said(bn, first)
        assert said(bn, then) == said(fresh, then)


def test_a_finding_is_read_again_where_a_variable_of_the_same_name_has_other_states():
    bn = mk.BayesianNetwork()
    bn.add("a", states=["low", "high"], p=[0.3, 0.7])
    bn.add("b", states=["no", "yes"], parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    assert bn.query("b", given={"a": "low"})["yes"] == pytest.approx(0.1)
    bn.remove("b")
    bn.remove("a")
    bn.add("a", states=["high", "low"], p=[0.7, 0.3])
    bn.add("b", states=["no", "yes"], parents=["a"], p=[[0.2, 0.8], [0.9, 0.1]])
    assert bn.query("b", given={"a": "low"})["yes"] == pytest.approx(0.1)


@pytest.mark.parametrize(
    "given", [{}, {"rain": "yes"}, {"rain": [0.2, 0.9]}, {"rain": "yes", "wet": [0.5, 0.1]}]
)
def test_a_question_is_about_everything_where_it_names_all_free_variables(given):
    problem = sprinkler()._problem(given)
    assert problem.asks_for_all(None)
    for k in range(len(problem.free) + 1):
        for targets in combinations(problem.free, k):
            assert problem.asks_for_all(targets) == (set(targets) == set(problem.free))
