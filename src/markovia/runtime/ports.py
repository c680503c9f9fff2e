"""Late-bound doors from inner layers to the outside world.

A model has `save` and `plot`, yet the layer that holds models knows neither files nor screens. The inner
layer calls a port by name; the package's composition root (`markovia/__init__.py`) says which outer
function answers. The outer module is imported on first use, so an unused door costs nothing.
"""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING, Any

from markovia.runtime import registry

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_targets: dict[str, str] = {}


def bind(targets: Mapping[str, str]) -> None:
    """Let functions, written `"package.module:function"`, answer ports; `"plot-*": "package:plot_*"` is a rule for many."""
    _targets.update(targets)


def call(port: str, *args: Any, **kwargs: Any) -> Any:
    """Call whatever answers the port."""
    return resolve(port)(*args, **kwargs)


def draw(port: str, *args: Any, **kwargs: Any) -> "Axes":
    """Call what answers a port that draws a picture; return its axes."""
    axes: Axes = call(port, *args, **kwargs)
    return axes


def resolve(port: str) -> Callable[..., Any]:
    """Import and return the function behind a port: the one bound to its name, or to its first word and a star."""
    if (target := _targets.get(port)) is None:
        kind, _, rest = port.partition("-")
        target = _targets[f"{kind}-*"].replace("*", rest.replace("-", "_"))
    function: Callable[..., Any] = registry.resolve(target)
    return function


class Savable:
    """A model, or an answer, that can be written to a file."""

    __slots__ = ()

    def save(self, path: str | PathLike[str], format: str | None = None) -> None:  # noqa: A002
        """Write it to a file; `markovia.load` reads it back."""
        call("save", self, path, format=format)
