"""What two policies do differently, in words, where it can occur."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from markovia.factors.tables.conditional import ConditionalTable
from markovia.runtime.array_types import Array

ROWS_SHOWN = 6
"""Rows that are named before the others are only counted."""


def simple_advice(policy: Mapping[str, ConditionalTable]) -> list[str]:
    """Return what decisions do that do the same whatever they see; of the others how many rows their rule has."""
    said = []
    for name, rule in policy.items():
        codes = np.unique(rule.values.argmax(axis=-1))
        same = f"{name}: {rule.variable.states[int(codes[0])]}"
        said.append(same if len(codes) == 1 else f"{name}: by {', '.join(rule.parent_names)}")
    return said


def changed_advice(
    before: Mapping[str, ConditionalTable],
    after: Mapping[str, ConditionalTable],
    settings: Sequence[tuple[Any, Any]],
) -> list[str]:
    """Return what changes from one policy to another, and what is new to be decided, in rows that occur.

    Parameters
    ----------
    settings
        For each policy the network that it is best in, and what is known there.
    """
    said: list[str] = []
    for name, old in before.items():
        new = after[name]
        if new.parent_names != old.parent_names:
            said.append(f"{name}: sees {', '.join(new.parent_names) or 'nothing'} now")
            continue
        was, now = old.values.argmax(axis=-1), new.values.argmax(axis=-1)
        occurred = _occurring(before, name, *settings[0]) > 0
        occurs = _occurring(after, name, *settings[1]) > 0
        rows = np.argwhere(occurs & (~occurred | (was != now)))
        for at in map(tuple, rows[:ROWS_SHOWN]):
            where = ", ".join(f"{p.name}={p.states[int(i)]}" for p, i in zip(old.parents, at, strict=True))
            states = old.variable.states
            first = (
                f"{states[int(was[at])]} -> " if occurred[at] else ""
            )  # what was said elsewhere was no advice
            said.append(f"{name}{f' ({where})' if where else ''}: {first}{states[int(now[at])]}")
        if len(rows) > ROWS_SHOWN:
            said.append(f"{name}: and {len(rows) - ROWS_SHOWN:,} rows more")
    return said


def _occurring(policy: Mapping[str, ConditionalTable], name: str, network: Any, given: Any) -> Array:
    """Return how probable the rows of a rule are under a policy."""
    seen = list(policy[name].parent_names)
    if not seen:
        return np.ones(())
    found: Array = network.follow(policy).query(seen, given).values
    return found
