"""How models take evidence and names of variables."""

from collections.abc import Iterable, Mapping
from typing import Any

from markovia.errors import InvalidArgument

Given = Mapping[str, Any] | None
"""Evidence by name: a state, likelihoods, `Not(...)` or `Jeffrey(...)`; None for none."""


def list_of_names(names: str | Iterable[str], what: str) -> list[str]:
    """Return one name or several as a list."""
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise InvalidArgument(f"{what} are names of variables, not {names!r}")
    return list(names)
