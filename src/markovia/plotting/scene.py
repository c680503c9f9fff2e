"""What a picture shows, before anything is drawn: nodes with their shapes and sizes, and edges with their marks."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from markovia.graphs.kinds.mixed import Mark
from markovia.plotting import style
from markovia.plotting.labels import shorten, text_height, text_width, wrap
from markovia.plotting.plate_layout import Plate

Shape = Literal["box", "ellipse", "square", "separator", "decision", "utility"]

PADDING = 0.11
BAR_WIDTH = 0.62
COLUMN_GAP = 0.09
ROW_HEIGHT = 1.45 * style.SMALL_FONT_SIZE / 72.0
LONGEST_STATE = 12


@dataclass(frozen=True)
class Bar:
    """One line of a node monitor: a state and its probability (None where lines are left out)."""

    state: str
    p: float | None

    @property
    def percent(self) -> str:
        """The probability as it is printed."""
        return "" if self.p is None else f"{100 * self.p:.1f}%"


@dataclass
class SceneNode:
    """A node: its name for the user, its text if that is not the name, its shape, and its bars if it is a monitor.

    It is observed, or `set_from_outside` by an intervention, or neither.
    """

    name: str
    shape: Shape = "box"
    observed: bool = False
    set_from_outside: bool = False
    text: str = ""
    note: str = ""
    bars: list[Bar] = field(default_factory=list)
    highlight: str | None = None

    @cached_property
    def lines(self) -> list[str]:
        """The name, wrapped."""
        return wrap(
            self.text or self.name, width=24 if self.bars or self.shape in ("ellipse", "utility") else 16
        )

    @cached_property
    def font_size(self) -> float:
        """Factors and separators are written small."""
        return style.SMALL_FONT_SIZE if self.shape in ("square", "separator") else style.FONT_SIZE

    @cached_property
    def title_height(self) -> float:
        """The height of the name and the note."""
        note = text_height(1, style.SMALL_FONT_SIZE) if self.note else 0.0
        return text_height(len(self.lines), self.font_size) + note

    @cached_property
    def columns(self) -> tuple[float, float]:
        """The widths of the columns of states and of percentages."""
        states = max(text_width(b.state, style.SMALL_FONT_SIZE) for b in self.bars)
        percents = max(text_width(b.percent, style.SMALL_FONT_SIZE) for b in self.bars)
        return states, percents

    @cached_property
    def size(self) -> tuple[float, float]:
        """Width and height in inches at the full size of the letters."""
        width = max(text_width(line, self.font_size, bold=bool(self.bars)) for line in self.lines)
        if self.note:
            width = max(width, text_width(self.note, style.SMALL_FONT_SIZE))
        height = self.title_height
        if self.bars:
            width = max(width, sum(self.columns) + BAR_WIDTH + 2 * COLUMN_GAP)
            height += len(self.bars) * ROW_HEIGHT + 0.06
        if self.shape == "ellipse":
            # the smallest ellipse around a rectangle is sqrt(2) times as wide and as high
            wide, high = 1.414 * (width + 0.06), 1.414 * (height + 0.02)
            # short names give circles, all of one size; long ones ellipses
            return (max(wide, 0.55), max(high, 0.55)) if wide > 0.75 else (max(wide, high, 0.55),) * 2
        if self.shape == "utility":
            # a rectangle fits into a diamond where its shares of width and height add up to one
            return max(1.7 * (width + 0.08), 0.8), max(2.45 * height, 0.5)
        if self.shape == "square":
            side = max(width + 0.08, height + 0.06)
            return (side, side) if len(self.lines[0]) <= 4 else (width + 0.1, height + 0.08)
        if self.shape == "separator":
            return width + 0.12, height + 0.06
        return max(width + 2 * PADDING, 0.5), height + 1.3 * PADDING


@dataclass
class Edge:
    """An edge between two nodes (by number) with a mark at each end.

    A `share` between 0 and 1 makes it thinner and paler, and is written beside it where `labelled`. An edge that an
    intervention `cut` is faint, dotted, and crossed out.
    """

    a: int
    b: int
    mark_a: Mark = Mark.TAIL
    mark_b: Mark = Mark.TAIL
    dashed: bool = False
    highlights: list[str] = field(default_factory=list)
    share: float | None = None
    labelled: bool = False
    cut: bool = False


@dataclass
class Scene:
    """A picture without positions; `downwards` says that every edge a, b can be drawn from top to bottom."""

    nodes: list[SceneNode]
    edges: list[Edge]
    downwards: bool
    title: str = ""
    plates: list[Plate] = field(default_factory=list)

    @property
    def sizes(self) -> NDArray[np.float64]:
        """One row (width, height) a node."""
        return np.array([n.size for n in self.nodes], dtype=np.float64).reshape(-1, 2)


def monitor(states: list[str], probabilities: list[float], most: int) -> list[Bar]:
    """Return the lines of a node monitor; of many states the most probable ones, in their own order."""
    shown = set(range(len(states)))
    if len(states) > most:
        shown = set(sorted(shown, key=lambda i: (-probabilities[i], i))[: most - 1])
    bars = [Bar(shorten(states[i], LONGEST_STATE), probabilities[i]) for i in sorted(shown)]
    left_out = len(states) - len(bars)
    return [*bars, Bar(f"{left_out} more", None)] if left_out else bars
