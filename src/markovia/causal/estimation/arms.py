"""Which arms are compared: two levels of a treatment, two doses, or two combinations of the levels of several treatments."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from markovia.causal.estimation.study import MOST_LEVELS, treatment_levels
from markovia.causal.two_levels import TREATED, UNTREATED, second_of_two
from markovia.errors import InvalidArgument, check_known

if TYPE_CHECKING:
    import pandas as pd


def arms(
    levels: Sequence[Any] | None, treatment: str, control: Any, treated: Any
) -> tuple[Any, Any, tuple[str, ...]]:
    """Return the positions of the two levels to compare, or the two doses; and a note where nothing told them apart."""
    if levels is None:
        return (0.0 if control is None else float(control)), (1.0 if treated is None else float(treated)), ()
    levels = list(levels)
    if len(levels) > 2 and (treated is None or control is None):
        raise InvalidArgument(
            f"the treatment {treatment!r} has {len(levels)} levels, {', '.join(map(repr, levels))}; "
            "say which two to compare with control= and treated=; contrasts() of the answer has all pairs"
        )
    for value in (control, treated):
        if value is not None and value not in levels:
            raise InvalidArgument(
                f"{value!r} is no level of {treatment!r}; its levels are {', '.join(map(repr, levels))}"
            )
    if control is None and treated is None:
        told = second_of_two(levels, None, treatment, "treated", (UNTREATED, TREATED))
        high = 1 if told is None else told
        note = (
            f"no name tells the control from the treatment, so {levels[1]} is compared with {levels[0]}, in sorted order; "
            "control= and treated= choose",
        )
        return 1 - high, high, note if told is None and isinstance(levels[1], str) else ()
    low = levels.index(control) if control is not None else 1 - levels.index(treated)
    high = levels.index(treated) if treated is not None else 1 - low
    if low == high:
        raise InvalidArgument(f"control and treated are both {levels[low]!r}; compare two different levels")
    return low, high, ()


def joint_treatment(
    table: "pd.DataFrame", names: Sequence[str], label: str, control: Any, treated: Any
) -> tuple["pd.DataFrame", Any, Any, tuple[str, ...]]:
    """Return a table with one more column, the combination of several treatments in each row, and the two to compare.

    Parameters
    ----------
    names, label
        The columns of the treatments, and the name of the new one.
    control, treated
        A value for each treatment, as a sequence or a mapping; by default each one's own control and treated level.

    Examples
    --------
    >>> import pandas as pd
    >>> rows = pd.DataFrame({"a": [0, 1, 0, 1], "b": ["no", "yes", "yes", "no"]})
    >>> _, low, high, _ = joint_treatment(rows, ["a", "b"], "a and b", None, None)
    >>> low, high
    ((0, 'no'), (1, 'yes'))
    """
    check_known(names, table.columns, "the data")
    if label in table.columns:
        raise InvalidArgument(f"the data have a column {label!r} already; rename it first")
    asked = [_one_each(v, names, what) for v, what in ((control, "control"), (treated, "treated"))]
    ends, sizes = [], []
    notes: list[str] = []
    for name, low, high in zip(names, *asked, strict=True):
        levels = treatment_levels(table[name].dropna(), name)[0]
        if levels is None:
            raise InvalidArgument(
                f"treatments that are set together are compared by combinations of their levels, and {name!r} has more "
                f"than {MOST_LEVELS} values; cut it into classes, or ask for its effect alone"
            )
        # a treatment that is the same in both combinations is held there, and its effect is not asked for
        held = low is not None and low == high and low in levels
        at, to, note = (levels.index(low),) * 2 + ((),) if held else arms(levels, name, low, high)
        ends.append((levels[at], levels[to]))
        notes += note
        sizes.append(levels)
    if (pairs := len(list(product(*sizes)))) > MOST_LEVELS:
        raise InvalidArgument(
            f"the treatments have {pairs} combinations of levels; {MOST_LEVELS} are the most that can be compared: "
            "join some levels"
        )
    whole = table[list(names)].notna().all(axis=1)
    cells: Any = [
        row if full else None
        for row, full in zip(table[list(names)].itertuples(index=False, name=None), whole, strict=True)
    ]
    together = table.assign(**{label: cells})
    first, second = zip(*ends, strict=True)
    return together, tuple(first), tuple(second), tuple(notes)


def _one_each(values: Any, names: Sequence[str], what: str) -> list[Any]:
    """Return a value for each treatment, None where it is not said."""
    if values is None:
        return [None] * len(names)
    if isinstance(values, Mapping):
        check_known(values, names, "the treatments")
        return [values.get(name) for name in names]
    if isinstance(values, str) or not isinstance(values, Sequence) or len(values) != len(names):
        shown = ", ".join(f"{n!r}: ..." for n in names)
        raise InvalidArgument(f"{what}= has a value for each treatment here, {{{shown}}}, not {values!r}")
    return list(values)
