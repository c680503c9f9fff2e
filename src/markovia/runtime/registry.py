"""Things found by a public name: where each lives is a string, and it is imported when it is first asked for."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from markovia.errors import InvalidArgument, did_you_mean


def resolve(home: str) -> Any:
    """Import what a string `"package.module:name"` stands for.

    Examples
    --------
    >>> resolve("math:pi")
    3.141592653589793
    """
    module, _, name = home.partition(":")
    return getattr(import_module(module), name)


def named(word: str, homes: Mapping[str, str], aliases: Mapping[str, str], what: str) -> Any:
    """Import what a public name stands for, or say which names there are.

    Examples
    --------
    >>> named("Circle_Number", {"circle-number": "math:pi"}, {}, "constant")
    3.141592653589793
    """
    plain = word.strip().lower().replace("_", "-").replace(" ", "-")
    plain = aliases.get(plain, plain)
    if plain not in homes:
        known = sorted(homes)
        raise InvalidArgument(
            f"there is no {what} {word!r}; there are {', '.join(known)}{did_you_mean(plain, known)}"
        )
    return resolve(homes[plain])
