"""`markovia decide`: the best rule for every decision of an influence diagram, and what it is worth."""

from math import isfinite
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import numpy as np

from markovia.cli.evidence import read_given, read_names, said
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import complete_variable, open_model, require_tables
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import (
    heading,
    info_document,
    number,
    print_json,
    provenance,
    say,
    show_table,
)
from markovia.errors import InvalidArgument
from markovia.inference.decisions.diagrams.policy import Policy
from markovia.models.graphical.bayesian_network import BayesianNetwork

if TYPE_CHECKING:
    from collections.abc import Iterator

MOST_ROWS = 64
"""A longer rule shows its most probable rows only."""


@command(
    "markovia decide wildcatter.xdsl",
    "markovia decide wildcatter.xdsl --given test=yes",
    "markovia decide pigs.net --memory perfect",
    "markovia decide wildcatter.xdsl --risk -0.01 --json | jq .value",
)
def decide(
    model: options.Model,
    given: options.Given = None,
    memory: Annotated[
        str,
        option(
            "--memory WHAT",
            "drawn: each decision sees its parents. perfect: also all that earlier ones saw and chose.",
            complete=lambda incomplete: [w for w in ("drawn", "perfect") if w.startswith(incomplete)],
        ),
    ] = "drawn",
    order: Annotated[
        list[str] | None,
        option(
            "--order VAR,VAR,..",
            "The decisions in time, where memory is perfect and the arrows do not tell.",
            complete=complete_variable,
        ),
    ] = None,
    risk: Annotated[
        float, option("--risk NUMBER", "Exponential utility: below 0 avoids risk, above 0 seeks it.")
    ] = 0.0,
    time_limit: Annotated[
        float | None,
        option("--time-limit SECONDS", "How long to search where memory is limited and no order solves it."),
    ] = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Find the best rule for every decision, and what that is worth."""
    if memory not in ("drawn", "perfect"):
        raise InvalidArgument(f"--memory is drawn or perfect, not {memory!r}")
    loaded = open_model(model, format)
    if not isinstance(loaded, BayesianNetwork) or not (loaded.decisions or loaded.utilities):
        raise InvalidArgument(
            f"{model!r} has no decisions and utilities; .xdsl, .net, .dne, .xmlbif and .json files can say them"
        )
    require_tables(loaded, model)
    evidence = read_given(loaded, given or [])
    policy = loaded.decide(
        evidence,
        memory=cast("Literal['drawn', 'perfect']", memory),
        order=read_names(loaded, order or []) or None,
        risk=risk,
        time_limit=options.seconds(time_limit),
    )
    if as_json:
        print_json(
            {**heading(model, loaded), "given": evidence, "memory": memory, "risk": risk, **_document(policy)}
        )
        return
    say(_value(policy, risk), style="bold")
    for name in policy:
        _show_rule(policy, name)
    known = ", ".join(said(n, v) for n, v in evidence.items())
    say(
        f"given {known}; {provenance(policy.info, {})}" if known else provenance(policy.info, {}), style="dim"
    )


def _value(policy: Policy, risk: float) -> str:
    """Say what a policy is worth, how sure it is that none is better, and what forgetting costs."""
    parts = [f"{'certainty equivalent' if risk else 'expected utility'} {number(policy.value)}"]
    parts.append("proved best" if policy.info.exact else f"at most {number(policy.gap)} below the best")
    if isfinite(policy.bound) and policy.bound > policy.value + 1e-9 * max(1.0, abs(policy.value)):
        parts.append(f"perfect recall {number(policy.bound)}")
    return ", ".join(parts)


def _show_rule(policy: Policy, name: str) -> None:
    if not isinstance(policy, Policy):
        say(str(policy[name]))
        return
    rule = policy[name]
    say(f"{name}, seeing {', '.join(rule.parent_names) or 'nothing'}", style="bold")
    rows = [row for row in _rows(policy, name) if row["probability"] > 0]
    shown = sorted(rows, key=lambda row: -row["probability"])[:MOST_ROWS] if len(rows) > MOST_ROWS else rows
    cells = [
        (
            *map(str, row["seen"].values()),
            f"{row['choice']}{' (tie)' if row['tie'] else ''}",
            number(row["probability"]),
        )
        for row in shown
    ]
    show_table([*rule.parent_names, name, "p"], cells, numbers=[len(rule.parents) + 1], indent=2)
    if len(rows) > MOST_ROWS:
        say(f"  the {MOST_ROWS} most probable of {len(rows):,} rows; --json has all of them")


def _rows(policy: Policy, name: str) -> "Iterator[dict[str, Any]]":
    """Return the rows of a rule: what is seen, what is chosen, how probable that is, and whether it is a tie."""
    rule, reached, ties = policy[name], policy.reached[name], policy.ties[name]
    for at in np.ndindex(*map(len, rule.parents)):
        seen = {p.name: p.states[i] for p, i in zip(rule.parents, at, strict=True)}
        yield {
            "seen": seen,
            "choice": rule.variable.states[int(rule.values[at].argmax())],
            "probability": float(reached[at]),
            "tie": seen in ties,
        }


def _document(policy: Policy) -> dict[str, Any]:
    tables = isinstance(policy, Policy)
    return {
        "value": policy.value,
        "bound": policy.bound,
        "gap": policy.gap,
        "policy": {name: list(_rows(policy, name)) if tables else str(policy[name]) for name in policy},
        "info": info_document(policy.info),
    }
