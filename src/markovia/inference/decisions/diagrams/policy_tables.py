"""From codes to tables: rules as a user looks at them, over what decisions really see."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.conditional import ConditionalTable
from markovia.inference.decisions.diagrams.diagram import Diagram
from markovia.inference.decisions.diagrams.policy_structure import spread_rule
from markovia.inference.decisions.diagrams.strong_elimination import DecisionRule

MOST_ENTRIES = 2**20
"""Entries up to which a rule is spread over all that is seen, also what does not matter to it."""


def rule_tables(
    diagram: Diagram, rules: Mapping[str, DecisionRule], drawn: Mapping[str, Sequence[str]] | None
) -> tuple[dict[str, ConditionalTable], dict[str, NDArray[np.bool_]]]:
    """Return a conditional table for each rule and where it is a tie.

    Parameters
    ----------
    drawn
        What each decision sees: the tables have these parents, unless that makes them large; None for what rules need.
    """
    variables = diagram.variables
    cards = {n: len(v) for n, v in variables.items()}
    tables, tied = {}, {}
    for name in diagram.decisions:
        rule = rules[name]
        codes = _permitted_codes(rule, diagram, name, cards)
        seen: tuple[str, ...] = rule.seen
        if drawn is not None:
            wanted = tuple(n for n in drawn[name] if n in variables)
            if cards[name] * np.prod([float(cards[n]) for n in wanted]) <= MOST_ENTRIES:
                seen = wanted
        one_hot = np.eye(cards[name])[codes]
        values = np.array(spread_rule(one_hot, rule.seen, seen, cards)) if seen != rule.seen else one_hot
        ties = spread_rule(rule.tied[..., None], rule.seen, seen, cards)[..., 0]
        tables[name] = ConditionalTable.of(variables[name], tuple(variables[n] for n in seen), values)
        tied[name] = np.array(ties)
    return tables, tied


def _permitted_codes(
    rule: DecisionRule, diagram: Diagram, name: str, cards: Mapping[str, int]
) -> NDArray[np.int64]:
    """Return the chosen codes; in rows that cannot occur, where nothing was compared, something that is allowed."""
    restriction = diagram.restrictions.get(name)
    if restriction is None or not {*restriction.seen} <= {*rule.seen}:
        return rule.codes
    permitted = np.array(spread_rule(restriction.permitted, restriction.seen, rule.seen, cards))
    fine = np.take_along_axis(permitted, rule.codes[..., None], axis=-1)[..., 0]
    return np.where(fine, rule.codes, permitted.argmax(axis=-1))
