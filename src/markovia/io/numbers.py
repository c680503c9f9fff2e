"""Many numbers at once: text to an array without a Python loop over its tokens."""

import re
import warnings

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
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
        with warnings.catch_warnings():
            # older NumPy only warns about trailing nonsense and returns what it could read
            warnings.simplefilter("error", DeprecationWarning)
            return np.fromstring(text, dtype=np.float64, sep=separator)
    except (ValueError, DeprecationWarning):
        return None


def is_number(token: str) -> bool:
    """Say whether a token is a plain decimal number.

    Examples
    --------
    >>> is_number("-1.5e3"), is_number("1_000"), is_number("nan")
    (True, False, False)
    """
    return NUMBER.fullmatch(token) is not None
