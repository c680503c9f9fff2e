"""Clusters drawn: every row once, an ellipse that holds what it says, pale rows where it is unsure."""

import matplotlib

matplotlib.use("Agg")

import numpy as np
import pytest
from matplotlib.patches import Ellipse

import markovia as mk
from markovia.errors import InvalidArgument


def test_rows_and_ellipses_are_drawn():
    rng = np.random.default_rng(0)
    rows = np.concatenate(
        [rng.normal(m, 1, (200, 3)) @ np.array([[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]) for m in (0, 4)]
    )
    mixture = mk.GaussianMixture(2, random_state=0).fit(rows)
    axes = mixture.plot(rows, columns=("x0", 1), title="two groups")
    assert sum(len(c.get_offsets()) for c in axes.collections) == 400
    assert (axes.get_xlabel(), axes.get_ylabel(), axes.get_title()) == ("x0", "x1", "two groups")
    ellipses = [p for p in axes.patches if isinstance(p, Ellipse)]
    assert len(ellipses) == 4
    drawn = mixture.sample(4000, seed=0)
    own = drawn[0][drawn[1] == 0][:, :2]
    inside = [e.contains_point(axes.transData.transform(p)) for e in ellipses[:2] for p in own]
    half, most = np.mean(inside[: len(own)]), np.mean(inside[len(own) :])
    assert half == pytest.approx(0.5, abs=0.04)
    assert most == pytest.approx(0.95, abs=0.02)
    with pytest.raises(InvalidArgument, match="two columns"):
        mk.GaussianMixture(2, random_state=0).fit(rows[:, :1]).plot(rows[:, :1])
