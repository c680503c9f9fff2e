"""Names as text in a picture: wrapped at sensible places, and measured without drawing anything."""

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from markovia.runtime.array_types import Array

if TYPE_CHECKING:
    from matplotlib.path import Path

POINTS_PER_INCH = 72.0
LINE_HEIGHT = 1.25
# a long name may be broken after a space, after punctuation, and before a capital that follows a small letter
_PIECES = re.compile(r".+?(?:[\s_\-./:,;]+|(?<=[a-z0-9])(?=[A-Z])|$)", re.DOTALL)


def wrap(name: str, width: int = 16, lines: int = 4) -> list[str]:
    """Break a name into lines of about `width` letters, at most `lines` of them.

    Examples
    --------
    >>> wrap("left_ventricular_end_diastolic_volume")
    ['left_', 'ventricular_end_', 'diastolic_volume']
    >>> wrap("smoke"), wrap("pressure_index_42")
    (['smoke'], ['pressure_index_42'])
    >>> wrap("x" * 100, lines=2)[-1]
    'xxxxxxxxxxxxxxx…'
    """
    rows = [""]
    pieces = _PIECES.findall(" ".join(name.split())) or [name.strip()]
    for k, piece in enumerate(pieces, start=1):
        most = width + 2 if k == len(pieces) and len(piece) <= 2 else width  # no line for a letter or two
        for part in [piece[i : i + width] for i in range(0, len(piece.rstrip()), width)] or [piece]:
            if rows[-1] and len(rows[-1]) + len(part.rstrip()) > most:
                rows[-1] = rows[-1].rstrip()
                rows.append("")
            rows[-1] += part
    rows[-1] = rows[-1].rstrip()
    if len(rows) > lines:
        rows = [*rows[: lines - 1], rows[lines - 1][: width - 1] + "…"]
    return rows


def shorten(text: str, width: int) -> str:
    """Cut a text to `width` letters, with an ellipsis where something is missing.

    Examples
    --------
    >>> shorten("moderately severe", 8)
    'moderat…'
    """
    text = " ".join(text.split())
    return text if len(text) <= width else text[: width - 1] + "…"


@lru_cache(maxsize=4096)
def text_width(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width in inches of one line of text at a font size in points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, ismath=False)
    return float(width) / POINTS_PER_INCH


def outline(text: str, size: float, *, bold: bool = False) -> "tuple[Path, float]":
    """Return the outlines of one line of text in inches, starting where it stands on its line, and its width."""
    from matplotlib.path import Path

    letters = [_letter(letter, size, bold=bold) for letter in text]
    ends = np.cumsum([0.0, *(width for _, _, width in letters)])
    vertices = [points + (x, 0.0) for (points, _, _), x in zip(letters, ends, strict=False)]  # noqa: RUF005
    return Path(np.concatenate(vertices), np.concatenate([codes for _, codes, _ in letters])), float(ends[-1])


@lru_cache(maxsize=1024)
def _letter(letter: str, size: float, *, bold: bool) -> tuple[Array, NDArray[np.uint8], float]:
    """Return the outline of one letter, and how far the next one is."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=size, weight="bold" if bold else "normal")
    vertices, codes = text_to_path.get_text_path(font, letter, ismath=False)
    scale = size / text_to_path.FONT_SCALE / POINTS_PER_INCH
    width = text_width(f"x{letter}x", size, bold=bold) - text_width("xx", size, bold=bold)
    return np.reshape(vertices, (-1, 2)) * scale, np.array(codes, dtype=np.uint8), width


def text_height(lines: int, size: float) -> float:
    """Return the height in inches of some lines of text at a font size in points."""
    return lines * LINE_HEIGHT * size / POINTS_PER_INCH
