"""Pictures over time are of the sequence, the numbers and the names that were asked for, whatever their order."""

from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_rgb

import markovia as mk
from every_picture import umbrella
from markovia.errors import InvalidArgument
from markovia.plotting import plot_band, style
from markovia.plotting.series.state_paths import plot_state_path


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def ends_at(ax, x, band=0):
    """Return the lower and the upper end of a band at a place."""
    corners = ax.collections[band].get_paths()[0].vertices
    ends = corners[np.isclose(corners[:, 0], x), 1]
    return ends.min(), ends.max()


@pytest.fixture(scope="module")
def drift():
    """Return a model of two numbers with different spreads, and three different sequences, one with a gap."""
    model = mk.LinearStateSpace(
        [[1.0, 0.4], [0.0, 0.8]], [[0.3, 0.1], [0.1, 0.9]], [[1.0, 0.0], [0.5, 2.0]], [[0.6, 0.0], [0.0, 2.5]],
        [0.5, -1.0], [[1.5, 0.2], [0.2, 0.7]],
    )  # fmt: skip
    rng = np.random.default_rng(3)
    sequences = [rng.normal(k, 1 + k, (n, 2)) for k, n in enumerate((4, 7, 5))]
    sequences[1][3] = np.nan
    return model, sequences


def test_observations_stand_at_their_own_places_when_places_are_in_no_order():
    x, seen = [2.0, 0.5, 1.0], [20.0, 5.0, 10.0]
    ax = plot_band(x, [2.1, 0.4, 1.2], sd=[0.3, 0.1, 0.2], observed=seen)
    dots = ax.lines[0]
    assert dict(zip(dots.get_xdata(), dots.get_ydata(), strict=True)) == dict(zip(x, seen, strict=True))
    ax = plot_band(x, [2.1, 0.4, 1.2], sd=[0.3, 0.1, 0.2], observed=[7.0, -3.0], at=[1.5, 0.2])
    assert ax.lines[0].get_xydata().tolist() == [[0.2, -3.0], [1.5, 7.0]]
    many = np.random.default_rng(0).permutation(300)
    line = plot_band([0, 1], [0, 1], sd=[1, 1], observed=3.0 * many, at=many).lines[0]
    assert (np.diff(line.get_xdata()) > 0).all()
    assert line.get_ydata() == pytest.approx(3.0 * line.get_xdata())


def test_states_are_those_of_the_sequence_and_numbers_that_were_asked_for(drift):
    model, sequences = drift
    found = model.smooth(sequences)
    top, bottom = found.plot([1, 0], sequence=1, level=0.8, title="drift").flat
    half = norm.ppf(0.9)
    for ax, number in ((top, 1), (bottom, 0)):
        mean, sd = found.mean[1][:, number], np.sqrt(found.cov[1][:, number, number])
        assert ax.lines[0].get_ydata() == pytest.approx(mean)
        assert ax.get_ylabel() == f"number {number}"
        for t in (0, 3, 6):
            assert ends_at(ax, t) == pytest.approx((mean[t] - half * sd[t], mean[t] + half * sd[t]))
    assert top.get_title() == "drift"
    assert [t.get_text() for t in top.get_legend().get_texts()] == ["mean", "80% band"]
    with pytest.raises(InvalidArgument, match="one of the 3 sequences, from 0, not 3"):
        found.plot(sequence=3)


def test_regimes_are_those_of_the_sequence_that_was_asked_for():
    shares = [np.array([[0.9, 0.1], [0.4, 0.6]]), np.array([[0.2, 0.8], [0.7, 0.3], [0.55, 0.45]])]
    found = SimpleNamespace(
        mean=[np.zeros((2, 1)), np.array([[3.0], [5.0], [4.0]])],
        sd=[np.ones((2, 1)), np.array([[2.0], [0.5], [1.5]])],
        regimes=shares,
    )
    first, below = plot_state_path(found, sequence=1).flat
    assert first.lines[0].get_ydata().tolist() == [3.0, 5.0, 4.0]
    assert ends_at(first, 2) == pytest.approx((4.0 - 1.5 * norm.ppf(0.975), 4.0 + 1.5 * norm.ppf(0.975)))
    for t, (low, _) in enumerate(shares[1]):
        assert ends_of_area(below, 0, t) == pytest.approx((0.0, low))
        assert ends_of_area(below, 1, t) == pytest.approx((low, 1.0))


def ends_of_area(ax, k, t):
    """Return where an area of stacked probabilities begins and ends in the middle of a step."""
    corners = ax.collections[k].get_paths()[0].vertices
    inside = corners[np.abs(corners[:, 0] - t) <= 0.5 + 1e-9]
    # both ends of a step are its corners, and its neighbours share them: what is common to both is its own
    left = {round(y, 9) for x, y in inside if np.isclose(x, t - 0.5)}
    right = {round(y, 9) for x, y in inside if np.isclose(x, t + 0.5)}
    own = left & right
    return min(own), max(own)


def test_a_forecast_is_of_the_sequence_that_was_asked_for(drift):
    model, sequences = drift
    ahead = model.forecast(sequences, 3, level=0.7)
    top, bottom = ahead.plot(sequences, [1, 0], sequence=2, last=2).flat
    for ax, number in ((top, 1), (bottom, 0)):
        seen, mean = ax.lines[:2]
        assert seen.get_xdata().tolist() == [3, 4]
        assert seen.get_ydata() == pytest.approx(sequences[2][-2:, number])
        assert mean.get_xdata().tolist() == [5, 6, 7]
        assert mean.get_ydata() == pytest.approx(ahead.mean[2][:, number])
        for t in range(3):
            assert ends_at(ax, 5 + t) == pytest.approx((ahead.lower[2][t, number], ahead.upper[2][t, number]))
        assert ax.get_ylabel() == f"number {number}"
        assert ax.lines[2].get_xdata()[0] == 4.5
    assert [t.get_text() for t in top.get_legend().get_texts()][-1] == "70% intervals"
    with pytest.raises(InvalidArgument, match="one of the 3 sequences"):
        ahead.plot(sequence=5)
    with pytest.raises(InvalidArgument, match="one of the 2 sequences"):
        ahead.plot(sequences[:2], sequence=2)


def test_hidden_states_are_those_of_the_sequence_that_was_asked_for():
    params = {"means": [[0.0, 5.0], [9.0, 1.0], [4.0, -6.0]], "covariances": [np.diag([1.0, 2.0])] * 3}
    moves = [[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]
    hmm = mk.HMM(3, emission="gaussian", start=[0.2, 0.5, 0.3], transition=moves, emission_params=params)
    short = pd.DataFrame({"load": [9.1, 0.2], "heat": [0.8, 4.7]})
    long = pd.DataFrame({"load": [3.8, 4.3, 8.9, 0.1], "heat": [-6.2, -5.5, 1.4, 5.3]})
    rows = pd.concat([short, long])
    top, below = hmm.plot(rows.to_numpy(), [2, 4], sequence=1, names=["calm", "busy", "wild"]).ravel()
    assert [line.get_ydata().tolist() for line in top.lines] == [long["load"].tolist(), long["heat"].tolist()]
    spans = {c.get_gid(): [p.vertices[:, 0] for p in c.get_paths()] for c in top.collections}
    path = hmm.decode(rows.to_numpy(), [2, 4])[1]
    assert list(path) == [2, 2, 1, 0]
    assert {k: [(v.min(), v.max()) for v in own] for k, own in spans.items()} == {
        "state:2": [(-0.5, 1.5)], "state:1": [(1.5, 2.5)], "state:0": [(2.5, 3.5)]
    }  # fmt: skip
    smooth = hmm.smooth(rows.to_numpy(), [2, 4])[1]
    for t in range(4):
        edges = np.cumsum([0.0, *smooth[t]])
        for k in range(3):
            if smooth[t, k] > 1e-6:
                assert ends_of_area(below, k, t) == pytest.approx((edges[k], edges[k + 1]), abs=1e-8)
    legend = below.get_legend()
    named = {
        t.get_text(): h.get_facecolor() for t, h in zip(legend.get_texts(), legend.get_patches(), strict=True)
    }
    assert {n: to_rgb(c) for n, c in named.items()} == {
        n: to_rgb(style.series(k)) for k, n in enumerate(["calm", "busy", "wild"])
    }
    for k, own in ((1, "state:1"), (2, "state:2")):
        shade = next(c for c in top.collections if c.get_gid() == own)
        assert to_rgb(shade.get_facecolor()[0]) == to_rgb(style.series(k))


def test_beliefs_are_those_of_the_sequence_and_the_variables_that_were_asked_for():
    beliefs = umbrella().smooth({"umbrella": ["yes", "yes", "no", "no", "yes", "no", "no"]}, [3, 4])
    assert not np.allclose(beliefs["rain"][0][:3], beliefs["rain"][1][:3])
    (ax,) = beliefs.plot("rain", sequence=1).flat
    for t, (no, _) in enumerate(np.asarray(beliefs["rain"][1])):
        assert ends_of_area(ax, 0, t) == pytest.approx((0.0, no), abs=1e-8)
        assert ends_of_area(ax, 1, t) == pytest.approx((no, 1.0), abs=1e-8)
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["no", "yes"]
    with pytest.raises(InvalidArgument, match="one of the 2 sequences"):
        beliefs.plot("rain", sequence=2)
