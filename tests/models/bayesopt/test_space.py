"""Spaces: values and units and back for every kind of parameter, what is active, what a process sees, and bad input."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.models.bayesopt.space import TAIL, Space

MIXED = {
    "kernel": {
        "linear": {},
        "rbf": {"gamma": (1e-3, 1e3, "log")},
        "poly": {"degree": range(2, 6), "more": {True: {"coef": (-1.0, 1.0)}, False: {}}},
    },
    "C": (1, 9),
    "size": [16, 32, 64],
    "colour": ["red", "green", "blue"],
    "units": (2, 2000, "log"),
    "x": (-5.0, 10.0),
}
units = st.floats(0.0, 1.0)


@st.composite
def spaces(draw):
    """One parameter of any kind."""
    low = draw(st.floats(-1e9, 1e9))
    wide = draw(st.floats(1e-3, 1e9))
    kind = draw(
        st.sampled_from(["numbers", "log", "whole", "whole log", "range", "list", "ordered", "nested"])
    )
    return Space({"p": {
        "numbers": (low, low + wide),
        "log": (wide, 10.0 * wide, "log"),
        "whole": (int(low), int(low) + draw(st.integers(1, 50))),
        "whole log": (draw(st.integers(1, 9)), 10 + draw(st.integers(0, 10**6)), "log"),
        "range": range(int(low), int(low) + 1 + draw(st.integers(0, 10**9)), draw(st.integers(1, 7))),
        "list": draw(st.lists(st.text(max_size=3), min_size=1, max_size=6, unique=True)),
        "ordered": sorted(draw(st.sets(st.integers(-9, 9), min_size=1))),
        "nested": {"a": {}, "b": {"q": (0.0, 1.0)}, None: {"q": [1, 2]}},
    }[kind]})  # fmt: skip


@given(spaces(), st.data())
def test_a_point_is_the_point_of_its_units(space, data):
    unit = np.array([data.draw(units) for _ in space.dimensions])
    point = space.point(space.snapped(unit[None])[0])
    again = space.point(space.unit(point))
    assert again.keys() == point.keys()
    for name, value in point.items():
        assert type(again[name]) is type(value)
        assert again[name] == (
            pytest.approx(value, rel=1e-9, abs=1e-6) if isinstance(value, float) else value
        )


@given(st.data())
def test_equal_points_have_equal_units_and_other_points_others(data):
    space = Space(MIXED)
    a, b = (space.snapped(np.array([[data.draw(units) for _ in space.dimensions]])) for _ in range(2))
    assert (space.point(a[0]) == space.point(b[0])) == np.array_equal(a, b)
    np.testing.assert_array_equal(space.snapped(a), a)
    np.testing.assert_allclose(space.unit(space.point(a[0])), a[0], atol=1e-12)


@given(st.data())
def test_what_is_not_active_influences_nothing(data):
    space = Space(MIXED)
    unit = np.array([[data.draw(units) for _ in space.dimensions]])
    active = space.active(unit)
    other = np.where(active, unit, np.array([[data.draw(units) for _ in space.dimensions]]))
    np.testing.assert_array_equal(space.snapped(unit), space.snapped(other))
    np.testing.assert_array_equal(space.seen(space.snapped(unit)), space.seen(space.snapped(other)))
    assert space.point(unit[0]) == space.point(other[0])


def test_a_point_has_the_parameters_of_its_choices_alone():
    space = Space(MIXED)
    rest = {"C": 3, "size": 32, "colour": "red", "units": 50, "x": 0.0}
    for some in (
        {"kernel": "linear"},
        {"kernel": "rbf", "gamma": 1.0},
        {"kernel": "poly", "degree": 3, "more": False},
        {"kernel": "poly", "degree": 3, "more": True, "coef": 0.5},
    ):
        found = space.point(space.unit({**some, **rest}))
        assert {k: v for k, v in found.items() if not isinstance(v, float)} == {
            k: v for k, v in {**some, **rest}.items() if not isinstance(v, float)
        }
        assert set(found) == {*some, *rest}


def test_choices_without_order_are_equally_far_from_each_other_and_ordered_ones_lie_on_a_line():
    space = Space({"colour": ["red", "green", "blue", "grey"]})
    seen = space.seen(space.snapped(np.array([[(i + 0.5) / 4] for i in range(4)])))
    distances = np.linalg.norm(seen[:, None] - seen, axis=2)
    np.testing.assert_allclose(distances, 1 - np.eye(4))
    ordered = Space({"size": [8, 16, 32, 64]})
    np.testing.assert_allclose(ordered.seen(ordered.listed)[:, 0], [0, 1 / 3, 2 / 3, 1])


@pytest.mark.parametrize(
    "law",
    [
        stats.norm(3.0, 2.0),
        stats.gamma(2.0),
        stats.beta(2.0, 5.0),
        stats.uniform(-1.0, 3.0),
        stats.loguniform(1e-6, 10.0),
    ],
)
def test_the_unit_of_a_law_is_its_probability_below(law):
    space = Space({"x": law})
    low, high = law.support()
    for u in (0.03, 0.2, 0.5, 0.9):
        value = space.point(np.array([u]))["x"]
        bounded = np.isfinite([low, high]).all()
        assert law.cdf(value) == pytest.approx(u if bounded else TAIL + (1 - 2 * TAIL) * u, abs=1e-4)
        assert space.unit({"x": value})[0] == pytest.approx(u)


def test_whole_numbers_of_laws_lie_between_their_bounds():
    assert Space({"k": stats.randint(2, 6)}).size == 4
    assert Space({"k": stats.binom(7, 0.5)}).size == 8
    with pytest.raises(InvalidArgument, match="k is a whole number without bounds"):
        Space({"k": stats.poisson(3.0)})


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (("Normal", 3.0, 2.0), stats.norm(3.0, 2.0)),
        (("Uniform", -1.0, 2.0), stats.uniform(-1.0, 3.0)),
        (("LogUniform", 1e-3, 10.0), stats.loguniform(1e-3, 10.0)),
        # these know no quantiles, and their distribution functions are turned around
        pytest.param(("Gamma", 2.0, 3.0), stats.gamma(2.0, scale=1 / 3), marks=pytest.mark.slow),
        pytest.param(("Beta", 2.0, 5.0), stats.beta(2.0, 5.0), marks=pytest.mark.slow),
    ],
)
def test_laws_of_markovia_are_read_like_those_of_scipy(ours, theirs):
    name, *numbers = ours
    spaces = [Space({"x": law}) for law in (getattr(mk.distributions, name)(*numbers), theirs)]
    for u in (0.0, 0.01, 0.3, 0.77, 1.0):
        a, b = (space.point(np.array([u]))["x"] for space in spaces)
        assert a == pytest.approx(b, rel=1e-4, abs=1e-5)


def test_laws_of_whole_numbers_are_those_numbers():
    d = mk.distributions
    assert [Space({"k": d.Bernoulli(0.3)}).point(np.array([u]))["k"] for u in (0.1, 0.9)] == [0, 1]
    assert Space({"k": d.Binomial(5, 0.5)}).size == 6


def test_whole_numbers_each_own_an_interval_of_the_same_length():
    space = Space({"k": (3, 7)})
    values = [space.point(np.array([u]))["k"] for u in (np.arange(1000) + 0.5) / 1000]
    assert {v: values.count(v) for v in values} == dict.fromkeys(range(3, 8), 200)
    logs = Space({"k": (1, 100, "log")})
    ends = [logs.point(np.array([u]))["k"] for u in (0.0, 1.0)]
    assert ends == [1, 100]


def test_the_size_of_a_space_counts_its_points():
    nested = {"k": {"a": {}, "b": {"m": [1, 2, 3]}, "c": {"m": range(4), "n": ["u", "v"]}}, "z": [1, 2]}
    space = Space(nested)
    assert space.size == (1 + 3 + 8) * 2 == len(space.listed)
    assert len({str(space.point(u)) for u in space.listed}) == 24
    assert Space(MIXED).size == np.inf
    assert Space(MIXED).listed is None


def test_neighbours_differ_in_one_parameter():
    space = Space({"a": ["x", "y", "z"], "n": (1, 5), "k": {"u": {}, "v": {"m": [1, 2, 3]}}, "w": (0.0, 1.0)})
    unit = space.unit({"a": "x", "n": 3, "k": "v", "m": 1, "w": 0.25})
    found = [space.point(u) for u in space.neighbours(unit)]
    assert {(p["a"], p["n"], p["k"], p.get("m")) for p in found} == {
        ("y", 3, "v", 1), ("z", 3, "v", 1), ("x", 2, "v", 1), ("x", 4, "v", 1), ("x", 3, "u", None), ("x", 3, "v", 2),
    }  # fmt: skip
    assert all(p["w"] == 0.25 for p in found)


def test_one_name_may_stand_in_two_choices_but_not_beside_itself():
    Space({"k": {"a": {"m": (0, 1)}, "b": {"m": (5.0, 6.0)}}})
    with pytest.raises(InvalidArgument, match="two parameters that can be active together are called 'm'"):
        Space({"k": {"a": {"m": (0, 1)}, "b": {}}, "m": (5.0, 6.0)})


@pytest.mark.parametrize(
    ("said", "word"),
    [
        ({}, "a space is a mapping"),
        ([("x", (0, 1))], "a space is a mapping"),
        ({3: (0, 1)}, "names of parameters are strings, not 3"),
        ({"x": (1.0, 0.0)}, r"the bounds of x are \(low, high\) with low below high, not \(1.0, 0.0\)"),
        ({"x": (2, 2)}, "low below high"),
        ({"x": (0.0, 1.0, "log")}, "x has a log scale, so its lower bound is above 0"),
        ({"x": (0.0, np.inf)}, "two finite numbers"),
        ({"x": (np.nan, 1.0)}, "two finite numbers"),
        ({"x": (0.0, 1.0, "square")}, "two finite numbers"),
        ({"x": []}, "the list of choices of x is empty"),
        ({"x": range(0)}, "the range of x is empty"),
        ({"x": ["a", "b", "a"]}, "x has the choice 'a' twice"),
        ({"x": [1, 1.0]}, "twice"),
        ({"x": "abc"}, "x is \\(low, high\\)"),
        ({"x": None}, "x is \\(low, high\\)"),
        ({"x": {"a": 3}}, "x='a' has a mapping of parameters"),
        ({"x": stats.norm([0.0, 1.0], 1.0)}, "x is one number"),
    ],
)
def test_a_space_that_is_none_is_refused_in_one_sentence(said, word):
    with pytest.raises(InvalidArgument, match=word) as refused:
        Space(said)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("point", "word"),
    [
        ({}, "the point lacks 'kernel'"),
        ({"kernel": "rbf"}, "the point lacks 'gamma'"),
        ({"kernel": "linear", "gamma": 1.0}, "'gamma' is not active in this point"),
        ({"kernel": "linear", "gama": 1.0}, "'gama' is no parameter.*did you mean 'gamma'"),
        ({"kernel": "rgb"}, "kernel is one of 'linear', 'rbf', 'poly', not 'rgb'"),
        ({"C": 10}, "C is one of 1, 2, 3"),
        ({"C": 2.5}, "C is one of"),
        ({"units": 2.5}, "units is a whole number from 2 to 2000, not 2.5"),
        ({"x": 11.0}, "x is a number from -5 to 10, not 11.0"),
        ({"x": np.nan}, "x is a number from -5 to 10"),
        ({"x": "1"}, "x is a number"),
        ({"x": True}, "x is a number"),
        (7, "a point is a mapping"),
    ],
)
def test_a_point_outside_is_refused_in_one_sentence(point, word):
    space = Space(MIXED)
    full = {"kernel": "linear", "C": 3, "size": 32, "colour": "red", "units": 50, "x": 0.0}
    asked = point if point in ({}, 7) else {**full, **point}
    with pytest.raises(InvalidArgument, match=word):
        space.unit(asked)


def test_choices_may_be_any_objects():
    choices = [None, True, 1, Fraction(1, 3), (1, 2), np.arange(3), len]
    with pytest.raises(InvalidArgument, match="twice"):
        Space({"x": [1, 2, np.int64(1)]})
    space = Space({"x": choices})
    for i, value in enumerate(choices):
        unit = space.unit({"x": value})
        assert space.point(unit)["x"] is value
        assert unit[0] == pytest.approx((i + 0.5) / 7)
