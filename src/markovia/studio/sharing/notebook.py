"""What `model.show()` calls: the studio's drawing in a notebook, where anywidget is installed."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from markovia.errors import MarkoviaError

if TYPE_CHECKING:
    from markovia.studio.sharing.widget import NetworkWidget


def show(
    model: Any,
    *,
    given: Mapping[str, Any] | None = None,
    do: Mapping[str, Any] | None = None,
    height: int = 480,
    engine: str = "auto",
) -> "NetworkWidget":
    """Return a model as a widget; see `model.show`."""
    try:
        import anywidget  # noqa: F401
    except ModuleNotFoundError:
        raise MarkoviaError(
            "show() needs anywidget; install it with: pip install markovia[notebook]"
        ) from None
    from markovia.studio.sharing.widget import NetworkWidget

    return NetworkWidget(model, given=given, do=do, height=height, engine=engine)
