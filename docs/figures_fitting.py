"""The picture of the page on missing data, drawn by a program in `examples/`."""

from collections.abc import Callable
from typing import Any

from figures_map import _example


def rain() -> Any:
    """Show how EM fits a mixture of Bernoullis to rainy days."""
    return _example("rain").rain_figure()


FIGURES: tuple[Callable[[], Any], ...] = (rain,)
