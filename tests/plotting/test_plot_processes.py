"""Every law of `mk.processes` draws a picture whose title says what is on it."""

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument

P = mk.processes
LAWS = [
    P.ChineseRestaurant(2.0),
    P.HoppeUrn(1.0),
    P.GEM(2.0),
    P.Dirichlet([1, 2, 3]),
    P.PolyaUrn([1, 2]),
    P.DirichletProcess(3.0),
    P.PitmanYor(1.0, 0.3),
    P.HierarchicalDirichletProcess(),
    P.ChineseRestaurantFranchise(),
    P.NestedChineseRestaurant(),
    P.IndianBuffet(3.0),
    P.InfiniteGammaPoisson(3.0),
    P.BetaProcess(2.0, 3.0),
    P.GammaProcess(2.0),
    P.DistanceDependentRestaurant(np.abs(np.subtract.outer(np.arange(8.0), np.arange(8.0)))),
]


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
def test_a_law_is_drawn_the_same_for_the_same_seed(law):
    _, (left, right) = plt.subplots(1, 2)
    assert law.plot(ax=left, seed=1).get_title() == law.plot(ax=right, seed=1).get_title() != ""
    assert len(left.get_children()) == len(right.get_children()) > 10
    assert law.plot(ax=left, title="mine").get_title() == "mine"
    plt.close("all")


def test_a_restaurant_shows_a_bar_for_each_table():
    ax = P.ChineseRestaurant(2.0).plot(80, seed=3)
    sizes = np.bincount(P.ChineseRestaurant(2.0).sample(80, seed=3))
    assert [bar.get_height() for bar in ax.patches] == sizes.tolist()
    plt.close("all")


def test_bad_input_is_answered_with_a_sentence():
    with pytest.raises(InvalidArgument, match="n= is a whole number, 1 or more"):
        P.GEM().plot(0)
    with pytest.raises(InvalidArgument, match="ax= is a matplotlib Axes"):
        P.GEM().plot(ax="here")
