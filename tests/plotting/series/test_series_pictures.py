"""Pictures over time show the numbers they stand for."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

import markovia as mk
from every_picture import umbrella
from markovia.errors import InvalidArgument
from markovia.plotting import plot_band, style


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def boxes(ax):
    found = {}
    for patch in ax.patches:
        if (patch.get_gid() or "").startswith("node:"):
            extent = patch.get_path().transformed(patch.get_patch_transform()).get_extents()
            found[patch.get_gid().removeprefix("node:")] = np.array(extent.extents)
    return found


def test_steps_are_frames_of_one_arrangement():
    ax = umbrella().plot(3)
    at = boxes(ax)
    shift = at["rain@1"] - at["rain@0"]
    assert shift[1] == pytest.approx(0.0)
    for name in ("rain", "umbrella"):
        for t in (0, 1):
            assert at[f"{name}@{t + 1}"] - at[f"{name}@{t}"] == pytest.approx(shift)
    assert sum((p.get_gid() or "").startswith("plate:step") for p in ax.patches) == 3
    assert len(umbrella().plot(3, layout="layered").texts) == 6


def test_bands_end_where_the_normal_law_says():
    walk = mk.LinearStateSpace(1, 1, 1, 1)
    found = walk.smooth([1.0, 2.0, np.nan, 4.0])
    (ax,) = found.plot(level=0.9).flat
    assert ax.lines[0].get_ydata() == pytest.approx(found.mean[0][:, 0])
    edge = ax.collections[0].get_paths()[0].vertices[:, 1]
    half = 1.6448536 * np.sqrt(found.cov[0][:, 0, 0])
    assert edge.max() == pytest.approx((found.mean[0][:, 0] + half).max())
    assert edge.min() == pytest.approx((found.mean[0][:, 0] - half).min())
    with pytest.raises(InvalidArgument, match=r"parts= are positions from 0 to 0, not 3"):
        found.plot([3])


def test_a_forecast_begins_after_the_last_observation():
    walk = mk.LinearStateSpace(1, 1, 1, 1)
    ahead = walk.forecast([1.0, 2.0, 4.0], 2)
    (ax,) = ahead.plot([1.0, 2.0, 4.0], last=2).flat
    seen, mean = ax.lines[0], ax.lines[1]
    assert seen.get_xdata().tolist() == [1, 2]
    assert mean.get_xdata().tolist() == [3, 4]
    assert mean.get_ydata() == pytest.approx(ahead.mean[0][:, 0])
    assert ahead.plot()[0, 0].get_xlabel() == "steps ahead"
    with pytest.raises(InvalidArgument, match="forecast is of 1 numbers"):
        ahead.plot(np.zeros((3, 2)))


def test_a_band_says_what_does_not_fit():
    with pytest.raises(InvalidArgument, match="their lengths differ"):
        plot_band([0, 1], [0, 1], [0], [1, 2])
    with pytest.raises(InvalidArgument, match="say where with at="):
        plot_band([0, 1], [0, 1], [0, 1], [1, 2], observed=[3.0])
    with pytest.raises(InvalidArgument, match="one of the three"):
        plot_band([0, 1], [0, 1], [0, 1], [1, 2], sd=[1, 1])
    with pytest.raises(InvalidArgument, match="one of the three"):
        plot_band([0, 1], [0, 1], [0, 1])
    with pytest.raises(InvalidArgument, match="one standard deviation a place"):
        plot_band([0, 1], [0, 1], sd=[1])
    with pytest.raises(InvalidArgument, match="square matrix"):
        plot_band([0, 1], [0, 1], covariance=[[1, 0]])
    with pytest.raises(InvalidArgument, match="negative variances"):
        plot_band([0, 1], [0, 1], covariance=[[1, 0], [0, -1]])


def test_a_band_of_a_gaussian_process_is_as_wide_as_its_level_says_at_places_in_any_order():
    x, mean, sd = np.array([2.0, 0.0, 1.0]), np.array([20.0, 0.0, 10.0]), np.array([3.0, 1.0, 2.0])
    correlated = np.outer(sd, sd) * (0.5 + 0.5 * np.eye(3))
    for width in ({"sd": sd}, {"covariance": correlated}):
        ax = plot_band(x[:, None], mean, **width, level=0.6826894921370859)
        corners = ax.collections[0].get_paths()[0].vertices
        for at, low, high in [(0, -1, 1), (1, 8, 12), (2, 17, 23)]:
            ends = corners[corners[:, 0] == at, 1]
            assert [ends.min(), ends.max()] == pytest.approx([low, high])
        assert ax.lines[0].get_xdata().tolist() == [0.0, 1.0, 2.0]


def test_hidden_states_are_shaded_by_the_most_probable_path():
    params = {"means": [[0.0], [9.0]], "covariances": [[[1.0]], [[1.0]]]}
    hmm = mk.HMM(
        2, emission="gaussian", start=[1, 0], transition=[[0.5, 0.5], [0.5, 0.5]], emission_params=params
    )
    series = np.array([[0.0], [0.1], [9.0], [0.0]])
    top, below = hmm.plot(series).ravel()
    spans = {c.get_gid(): [p.vertices[:, 0] for p in c.get_paths()] for c in top.collections}
    assert [(v.min(), v.max()) for v in spans["state:0"]] == [(-0.5, 1.5), (2.5, 3.5)]
    assert [(v.min(), v.max()) for v in spans["state:1"]] == [(1.5, 2.5)]
    assert [t.get_text() for t in below.get_legend().get_texts()] == ["state 0", "state 1"]
    heights = below.collections[0].get_paths()[0].vertices
    assert heights[:, 1].max() == pytest.approx(hmm.smooth(series)[0][:, 0].max(), abs=1e-12)
    alone = plt.figure().add_subplot()
    assert hmm.plot(series, ax=alone) is alone
    assert to_rgb(top.lines[0].get_color()) == to_rgb(style.LIGHT.INK)
    with pytest.raises(InvalidArgument, match="names= are those of 2 states, not 1"):
        hmm.plot(series, names=["a"])
