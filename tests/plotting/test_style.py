"""One look: colours on light and dark paper, and how they are chosen."""

from itertools import combinations

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.colors import to_hex, to_rgb

import markovia as mk
from markovia.plotting import style

PAPERS = {"light": style.LIGHT, "dark": style.DARK}
each_paper = pytest.mark.parametrize("paper", PAPERS.values(), ids=PAPERS)
TO_CONES = np.array(
    [[17.8824, 43.5161, 4.11935], [3.45565, 27.1554, 3.86714], [0.0299566, 0.184309, 1.46709]]
)
EYES = {
    "all cones": np.eye(3),
    "protan": np.array([[0, 2.02344, -2.52581], [0, 1, 0], [0, 0, 1]]),
    "deutan": np.array([[1, 0, 0], [0.494207, 0, 1.24827], [0, 0, 1]]),
}
"""What cones see where one kind is missing (Viénot, Brettel and Mollon 1999)."""
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def linear(colour):
    rgb = np.array(to_rgb(colour))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one, other):
    """The contrast ratio of the Web Content Accessibility Guidelines."""
    low, high = sorted(float(TO_XYZ[1] @ linear(c)) for c in (one, other))
    return (high + 0.05) / (low + 0.05)


def perceived(colour, eyes):
    """The colour in CIE Lab as such eyes see it."""
    seen = np.linalg.inv(TO_CONES) @ EYES[eyes] @ TO_CONES @ linear(colour)
    x, y, z = TO_XYZ @ np.clip(seen, 0, 1) / (TO_XYZ @ np.ones(3))
    x, y, z = (t ** (1 / 3) if t > 0.008856 else 7.787 * t + 16 / 116 for t in (x, y, z))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@each_paper
def test_letters_can_be_read_on_everything_they_stand_on(paper):
    for behind in (
        paper.BACKGROUND,
        paper.NODE_FILL,
        paper.OBSERVED_FILL,
        paper.SET_FILL,
        paper.SEPARATOR_FILL,
        paper.DECISION_FILL,
        paper.UTILITY_FILL,
    ):
        assert contrast(paper.INK, behind) >= 7
    assert contrast(paper.FACTOR_INK, paper.FACTOR_FILL) >= 7
    for line in (
        paper.EDGE,
        paper.NODE_BORDER,
        paper.SET_BORDER,
        paper.DECISION_BORDER,
        paper.UTILITY_BORDER,
    ):
        assert contrast(line, paper.BACKGROUND) >= 4.5


@each_paper
@pytest.mark.parametrize("eyes", EYES)
def test_lines_can_be_told_apart_by_colour_blind_readers(paper, eyes):
    for colour in paper.SERIES:
        assert contrast(colour, paper.BACKGROUND) >= 2
    for one, other in combinations(paper.SERIES[:6], 2):
        assert np.linalg.norm(perceived(one, eyes) - perceived(other, eyes)) > 10


def test_a_theme_lasts_as_long_as_its_block_or_until_the_next():
    before = dict(mpl.rcParams)
    with mk.plotting.theme("dark"):
        ax = mk.examples.sprinkler().plot()
        assert style.INK == style.DARK.INK
    assert dict(mpl.rcParams) == before
    assert style.INK == style.LIGHT.INK
    assert to_hex(ax.figure.get_facecolor()) == style.DARK.BACKGROUND.lower()
    assert {to_hex(t.get_color()) for t in ax.texts} == {style.DARK.INK.lower()}
    assert to_hex(ax.title.get_color()) == style.DARK.INK.lower()
    with mpl.rc_context():
        mk.plotting.theme("dark")
        mk.plotting.theme("light")
        assert style.palette() is style.LIGHT
    with pytest.raises(mk.errors.InvalidArgument, match="'light' or 'dark'"):
        mk.plotting.theme("blue")


def test_a_dark_style_of_the_users_own_gets_light_letters():
    with plt.style.context("dark_background"):
        ax = mk.examples.sprinkler().plot()
        assert {to_hex(t.get_color()) for t in ax.texts} == {style.DARK.INK.lower()}


def test_an_unknown_colour_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'PINK'"):
        style.PINK  # noqa: B018
