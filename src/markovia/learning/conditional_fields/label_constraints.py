"""Which labels may follow each other: schemes of labelled spans, or listed pairs.

In "bio" (IOB2) a span of kind X is `B-X`, then any number of `I-X`; in "bioes" it is `B-X`, any number of `I-X`, `E-X`, or
`S-X` alone. Other labels, such as `O`, are outside of spans.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from markovia.data.text.tokens import Tokens
from markovia.errors import InvalidArgument, did_you_mean
from markovia.runtime.array_types import Ints

Allowed = tuple[NDArray[np.bool_], NDArray[np.bool_], NDArray[np.bool_]]
SCHEMES = {"bio": "BI", "bioes": "BIES"}


def tag_parts(label: Any, scheme: str) -> tuple[str, str]:
    """Return the letter and the kind of a label: `("B", "PER")` for "B-PER", and `("O", "")` for what is outside.

    Examples
    --------
    >>> tag_parts("B-PER", "bio"), tag_parts("I", "bio"), tag_parts("O", "bio"), tag_parts("S-PER", "bio")
    (('B', 'PER'), ('I', ''), ('O', ''), ('O', ''))
    """
    letter, _, kind = str(label).partition("-")
    return (letter, kind) if letter in SCHEMES[scheme] and len(letter) == 1 else ("O", "")


def allowed_moves(constraints: Any, classes: NDArray[Any]) -> Allowed | None:
    """Return which labels may follow each other, be first, and be last; None without constraints.

    Parameters
    ----------
    constraints
        "bio", "bioes", or pairs of labels that may not follow each other, with None for what is before the first label and
        behind the last one.
    classes
        The labels.

    Examples
    --------
    >>> moves, first, last = allowed_moves("bio", np.array(["B-X", "I-X", "O"]))
    >>> moves.tolist(), first.tolist()
    ([[True, True, True], [True, True, True], [True, False, True]], [True, False, True])
    """
    if constraints is None:
        return None
    k = len(classes)
    moves, first, last = np.ones((k, k), dtype=bool), np.ones(k, dtype=bool), np.ones(k, dtype=bool)
    if isinstance(constraints, str):
        if constraints not in SCHEMES:
            near = did_you_mean(constraints, SCHEMES)
            raise InvalidArgument(
                f"constraints= is 'bio', 'bioes' or a list of pairs, not {constraints!r}{near}"
            )
        tags = [tag_parts(c, constraints) for c in classes.tolist()]
        inside = np.array([letter in "IE" for letter, _ in tags])
        more = np.array([letter in "BI" for letter, _ in tags])  # a span goes on behind these
        kinds = np.array([kind for _, kind in tags])
        same = more[:, None] & inside[None, :] & (kinds[:, None] == kinds[None, :])
        moves = same | ~inside[None, :]
        if constraints == "bioes":  # a span that goes on must
            moves = same | (~inside[None, :] & ~more[:, None])
            last = ~more
        return moves, ~inside, last
    place = {c: i for i, c in enumerate(classes.tolist())}
    for pair in constraints if isinstance(constraints, Iterable) else [constraints]:
        if not isinstance(pair, tuple | list) or len(pair) != 2:
            raise InvalidArgument(
                f"constraints= is 'bio', 'bioes' or a list of pairs, but {pair!r} is no pair"
            )
        a, b = pair
        for label in pair:
            if label is not None and label not in place:
                shown = ", ".join(map(repr, place))
                raise InvalidArgument(
                    f"constraints= names the unknown label {label!r}; the labels are {shown}"
                )
        if a is None and b is None:
            raise InvalidArgument("constraints= has the pair (None, None), which forbids nothing")
        if a is None:
            first[place[b]] = False
        elif b is None:
            last[place[a]] = False
        else:
            moves[place[a], place[b]] = False
    return moves, first, last


def refuse_forbidden(allowed: Allowed, codes: Ints, tokens: Tokens, classes: NDArray[Any]) -> None:
    """Raise an error where labels of the data may not stand as they do."""
    moves, first, last = allowed
    chains = tokens.chains
    starts, stops = chains[:-1], chains[1:] - 1
    inner = np.ones(len(codes), dtype=bool)
    inner[starts] = False
    right = np.flatnonzero(inner)
    right = right[(codes[right] >= 0) & (codes[right - 1] >= 0)]
    for rows, fine, said in (
        (starts[codes[starts] >= 0], first, "first"), (stops[codes[stops] >= 0], last, "last"),
    ):  # fmt: skip
        wrong = rows[~fine[codes[rows]]]
        if len(wrong):
            raise InvalidArgument(
                f"{tokens.at(int(wrong[0]))} has the label {classes[codes[wrong[0]]].item()!r}, which constraints= forbid "
                f"as the {said} one"
            )
    wrong = right[~moves[codes[right - 1], codes[right]]]
    if len(wrong):
        t = int(wrong[0])
        a, b = classes[codes[t - 1]].item(), classes[codes[t]].item()
        raise InvalidArgument(f"{tokens.at(t)} has the label {b!r} after {a!r}, which constraints= forbid")
