"""What a policy does in rows that were logged: tables, functions of what is seen, and states, as probabilities of actions.

Cost: one call of a function for each different combination of what it looks at; tables are looked up at once.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument, NoOverlap
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.table_forms import argument_names
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    import pandas as pd


def history_cells(frame: "pd.DataFrame", known: Sequence[str]) -> Ints:
    """Return the number of each row's history among the different ones, in sorted order."""
    cell = np.zeros(len(frame), dtype=np.int64)
    for name in known:
        codes = np.unique(frame[name].to_numpy(), return_inverse=True)[1].ravel()
        cell = np.unique(cell * (int(codes.max(initial=0)) + 1) + codes, return_inverse=True)[1].ravel()
    return cell


def rule_probabilities(
    name: str, actions: Sequence[Any], rule: Any, frame: "pd.DataFrame", known: Sequence[str]
) -> Array:
    """Return what a rule does in each row, shape (n, actions).

    Parameters
    ----------
    name, actions
        The decision, and what may be done.
    rule
        A table, a function of what is seen that returns a state or a mapping from states to probabilities, or a state.
    frame, known
        The rows, and the columns that are known before the decision.

    Examples
    --------
    >>> import pandas as pd
    >>> rule_probabilities("drug", ["no", "yes"], lambda ill: "yes" if ill else "no", pd.DataFrame({"ill": [1, 0]}), ["ill"])
    array([[0., 1.],
           [1., 0.]])
    """
    if isinstance(rule, Conditional):
        return _of_table(name, actions, rule, frame, known)
    if not callable(rule):
        return np.repeat(rows_of_answers(name, actions, [rule]), len(frame), axis=0)
    wanted = getattr(rule, "sights", None)
    wanted = argument_names(rule) if wanted is None else wanted
    _check_known_before(name, wanted, known)
    cell = history_cells(frame, wanted)
    first = np.unique(cell, return_index=True)[1]
    rows = zip(*(frame[n].iloc[first].tolist() for n in wanted), strict=True) if wanted else [()]
    answers = [rule(**dict(zip(wanted, row, strict=True))) for row in rows]
    return rows_of_answers(name, actions, answers)[cell]


def rows_of_answers(name: str, actions: Sequence[Any], answers: Iterable[Any]) -> Array:
    """Return answers (states, or mappings from states to probabilities) as rows of probabilities."""
    listed, place = list(answers), {action: i for i, action in enumerate(actions)}
    found = np.zeros((len(listed), len(actions)))
    for row, answer in enumerate(listed):
        shares = answer if isinstance(answer, Mapping) else {answer: 1.0}
        for state, share in shares.items():
            if state in place:
                found[row, place[state]] = share
            elif share:
                raise _never(name, state)
    if not (np.abs(found.sum(axis=1) - 1) < 1e-6).all() or (found < 0).any():
        raise InvalidArgument(
            f"the probabilities that the policy gives to the actions of {name!r} must sum to one"
        )
    return found


def acting_rule(act: Callable[..., Any], name: str, known: Sequence[str]) -> Callable[..., Any]:
    """Return the rule of one decision of a policy with `act(name, **sights)`."""

    def rule(**sights: Any) -> Any:
        return act(name, **sights)

    rule.sights = tuple(known)  # type: ignore[attr-defined]
    return rule


def _of_table(
    name: str, actions: Sequence[Any], table: Conditional, frame: "pd.DataFrame", known: Sequence[str]
) -> Array:
    _check_known_before(name, table.parent_names, known)
    at = []
    for parent in table.parents:
        place = {value: parent.index(value) for value in frame[parent.name].unique().tolist()}
        at.append(frame[parent.name].map(place).to_numpy(dtype=np.int64))
    values = np.broadcast_to(np.asarray(table.values)[tuple(at)], (len(frame), len(table.variable)))
    found = np.zeros((len(frame), len(actions)))
    place = {action: i for i, action in enumerate(actions)}
    for k, state in enumerate(table.variable.states):
        if state in place:
            found[:, place[state]] = values[:, k]
        elif np.any(values[:, k] > 0):
            raise _never(name, state)
    return found


def _never(name: str, state: Any) -> NoOverlap:
    return NoOverlap(
        f"at {name!r} the policy takes {state!r}, which no row of the data does; it is not known what follows"
    )


def _check_known_before(name: str, wanted: Iterable[str], known: Sequence[str]) -> None:
    if unseen := next((n for n in wanted if n not in known), None):
        listed = ", ".join(map(repr, known)) or "nothing"
        raise InvalidArgument(
            f"the policy for {name!r} looks at {unseen!r}, but what is known before it is {listed}; list it there too"
        )
