"""Late-bound doors from inner layers to the outside world.

A model has `save` and `plot`, yet the layer that holds models knows neither files nor screens. The inner
layer calls a port by name; the package's composition root (`markovia/__init__.py`) says which outer
function answers. The outer module is imported on first use, so an unused door costs nothing.
"""

from collections.abc import Callable
from typing import Any

from markovia.runtime import registry

_targets: dict[str, str] = {}


def bind(port: str, target: str) -> None:
    """Let `target`, written `"package.module:function"`, answer the named port."""
    _targets[port] = target


def call(port: str, *args: Any, **kwargs: Any) -> Any:
    """Call whatever answers the port."""
    return resolve(port)(*args, **kwargs)


def resolve(port: str) -> Callable[..., Any]:
    """Import and return the function behind a port."""
    function: Callable[..., Any] = registry.resolve(_targets[port])
    return function
