"""Many numbers at once: text to an array without a Python loop over its tokens."""

import re
import warnings
from functools import cache

import numpy as np

from markovia.runtime.array_types import Array

NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


def number_list(text: str, separator: str = " ") -> Array | None:
    """Return the numbers of a text, or None if there is anything else in it.

    Parameters
    ----------
    text
        Numbers with the separator between them; white space around them does not matter.
    separator
        A comma, or a space for any amount of white space.

    Returns
    -------
    array or None
        None says only that the fast way failed; the caller looks for the reason and its position.

    Examples
    --------
    >>> number_list("0.5, 1e-3,2", ",").tolist()
    [0.5, 0.001, 2.0]
    >>> number_list("1 two 3") is None
    True
    """
    if not text.isascii() or "n" in text or "N" in text:
        return None  # NumPy would read nan, inf and infinity, which no model file means
    if not text.strip():
        return np.empty(0)
    try:
        if _refuses_nonsense():
            return np.fromstring(text, dtype=np.float64, sep=separator)
        with warnings.catch_warnings():
            warnings.simplefilter("error", DeprecationWarning)
            return np.fromstring(text, dtype=np.float64, sep=separator)
    except (ValueError, DeprecationWarning):
        return None


@cache
def _refuses_nonsense() -> bool:
    """Say whether this NumPy raises on trailing nonsense; older ones warn and return what they could read."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            np.fromstring("1 x", dtype=np.float64, sep=" ")
        except ValueError:
            return True
    return False


def is_number(token: str) -> bool:
    """Say whether a token is a plain decimal number.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1_000"), is_number("nan")
    (True, False, False)
    """
    return NUMBER.fullmatch(token) is not None
