"""Every picture by its structure, on light and dark paper: inside the frame, nothing over each other, all legible."""

from itertools import chain
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("agg")

from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.text import Text

import markovia as mk
from every_picture import PICTURES

INLINE = {"plot_sensitivity", "plot_effect_report"}
"""Pictures with contours, whose numbers lie on their lines."""


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def axes_of(drawn):
    return [ax for ax in np.ravel(np.asarray(drawn, dtype=object)) if ax is not None]


def every_axes(figure):
    """The visible axes of a figure, with those inside others."""
    shown = [ax for ax in figure.axes if ax.get_visible()]
    return [*shown, *chain.from_iterable(ax.child_axes for ax in shown)]


def written(figure):
    """Every text that is drawn."""
    texts = [*figure.texts, *([figure._suptitle] if figure._suptitle else []), *_legend(figure)]
    for ax in every_axes(figure):
        texts += [*ax.texts, *_legend(ax), ax.title]
        if not ax.axison:
            continue
        for axis in (ax.xaxis, ax.yaxis):
            low, high = sorted(axis.get_view_interval())
            slack = 1e-9 * max(1.0, abs(high - low))
            texts += [axis.label, axis.get_offset_text()]
            texts += [
                label
                for tick in axis.get_major_ticks()
                for label in (tick.label1, tick.label2)
                if low - slack <= tick.get_loc() <= high + slack
            ]
    return [t for t in dict.fromkeys(texts) if t.get_visible() and t.get_text().strip()]


def _legend(holder):
    legends = (
        getattr(holder, "legends", None) or [holder.get_legend()] if hasattr(holder, "get_legend") else []
    )
    legends = legends or getattr(holder, "legends", [])
    return [t for legend in legends if legend is not None for t in legend.findobj(Text)]


def boxes_of(texts):
    """The box of each text in pixels, measured once for all checks."""
    return np.array([t.get_window_extent().extents for t in texts]).reshape(-1, 4)


def overlapping(texts, boxes):
    """Pairs of texts whose boxes share more than a pixel both ways; slanted ones are measured by nobody here."""
    level = [k for k, t in enumerate(texts) if t.get_rotation() % 90 == 0]
    boxes = boxes[level]
    shared = np.minimum(boxes[:, None, 2:], boxes[:, 2:]) - np.maximum(boxes[:, None, :2], boxes[:, :2])
    return [
        (texts[level[i]].get_text(), texts[level[j]].get_text())
        for i, j in np.argwhere(np.triu((shared > 1.0).all(axis=2), 1))
    ]


def outside(figure, texts, boxes):
    """Texts that stick out of the figure by more than a pixel."""
    out = (boxes[:, :2] < -1).any(axis=1) | (boxes[:, 2:] > figure.bbox.size + 1).any(axis=1)
    return [t.get_text() for t, far in zip(texts, out, strict=True) if far]


def luminance(rgb):
    rgb = np.asarray(rgb, dtype=np.float64)
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def illegible(figure, texts, boxes):
    """Texts that are too small, or whose colour is too near to the commonest colour under them (as rendered)."""
    pixels = np.asarray(figure.canvas.buffer_rgba())[::-1, :, :3] @ np.array([65536, 256, 1])
    found = []
    for t, (x0, y0, x1, y1) in zip(texts, boxes.round().astype(int), strict=True):
        under, counts = np.unique(pixels[max(y0, 0) : y1, max(x0, 0) : x1], return_counts=True)
        behind = np.array([*int(under[counts.argmax()]).to_bytes(3, "big")]) / 255
        dark, light = sorted((luminance(to_rgb(t.get_color())), luminance(behind)))
        if t.get_fontsize() < 5.9 or (light + 0.05) / (dark + 0.05) < 2.5:
            found.append((t.get_text(), t.get_fontsize(), (light + 0.05) / (dark + 0.05)))
    return found


def spilt(figure):
    """How far, in inches, anything that is drawn reaches out of the figure."""
    box = figure.get_tightbbox()
    wide, high = figure.get_size_inches()
    return max(-box.x0, -box.y0, box.x1 - wide, box.y1 - high)


@pytest.mark.parametrize(
    ("name", "paper"),
    [
        *((name, "light") for name in PICTURES),
        *(
            pytest.param(name, "dark", marks=[pytest.mark.slow] * (k % 4 > 0))
            for k, name in enumerate(PICTURES)
        ),
    ],
)
def test_a_picture_is_complete_and_legible(name, paper):
    with mk.plotting.theme(paper):
        drawn = axes_of(PICTURES[name]())
        assert drawn
        assert all(isinstance(ax, Axes) for ax in drawn)
        figure = drawn[0].figure
        figure.set_dpi(100)
        figure.canvas.draw()
        texts = written(figure)
        boxes = boxes_of(texts)
        assert texts
        assert illegible(figure, texts, boxes) == []
        if paper == "light":  # on dark paper all stands at the same places
            assert outside(figure, texts, boxes) == []
            assert spilt(figure) < 0.02
            if name not in INLINE:
                assert overlapping(texts, boxes) == []


def test_every_public_picture_is_in_the_register():
    named = {name.partition("__")[0] for name in PICTURES}
    assert named == {name for name in mk.plotting.__all__ if name.startswith("plot_")}


@pytest.mark.parametrize("name", ["plot_model__posteriors", "plot_table", "plot_hidden_states"])
def test_a_picture_is_a_drawing_as_svg(name, tmp_path):
    figure = axes_of(PICTURES[name]())[0].figure
    figure.savefig(tmp_path / "drawn.svg")
    figure.savefig(tmp_path / "drawn.png")
    root = ElementTree.parse(tmp_path / "drawn.svg").getroot()
    assert root.tag.endswith("svg")
    assert len(list(root.iter())) > 50
    assert plt.imread(tmp_path / "drawn.png").ndim == 3


def test_the_checks_see_what_they_look_for():
    figure, ax = plt.subplots(figsize=(2, 2))
    ax.text(0.1, 0.5, "one word")
    ax.text(0.15, 0.5, "another")
    ax.text(0.9, 0.9, "far out of the frame")
    ax.text(0.1, 0.1, "pale", color="#EEEEEE")
    figure.set_dpi(100)
    figure.canvas.draw()
    texts = list(ax.texts)
    boxes = boxes_of(texts)
    assert overlapping(texts, boxes) == [("one word", "another")]
    assert outside(figure, texts, boxes) == ["far out of the frame"]
    assert [text for text, _, _ in illegible(figure, texts, boxes)] == ["pale"]
    assert spilt(figure) > 0.02
