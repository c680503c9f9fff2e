"""A picture as SVG text, for notebooks."""

from io import StringIO
from typing import Any


def svg(drawn: Any) -> str:
    """Return what `drawn.plot()` shows as SVG, and leave no figure open.

    Examples
    --------
    >>> import markovia as mk
    >>> svg(mk.examples.sprinkler()).startswith("<svg")
    True
    """
    import matplotlib.pyplot as plt

    with plt.ioff():
        axes = drawn.plot()
        figure = getattr(axes, "figure", None) or next(iter(axes)).figure
    text = StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight", metadata={"Date": None})
    plt.close(figure)
    return text.getvalue().partition("<svg")[1] + text.getvalue().partition("<svg")[2]
