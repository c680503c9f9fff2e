"""`markovia query`: posteriors of some or all variables, after seeing and after doing."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from markovia.cli.evidence import intervened, read_given, read_names, said
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import complete_variable, open_model, require_tables
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import (
    bar,
    console,
    heading,
    info_document,
    number,
    posterior_document,
    print_json,
    provenance,
    say,
    show_table,
)
from markovia.errors import InvalidArgument
from markovia.inference.posterior import Posterior

if TYPE_CHECKING:
    from rich.text import Text

MOST_ROWS = 64
"""A joint table longer than this shows its most probable rows only."""


@command(
    "markovia query asia lung --given smoke=yes",
    "markovia query asia lung bronc --joint --given dysp=yes --given xray=no",
    "markovia query asia --all --soft xray=0.9,0.2 --not asia=yes",
    "markovia query asia lung --do bronc=yes",
    "markovia query grid.uai --all --engine loopy-bp",
    "markovia query grid.uai --all --time-limit 10",
    "markovia query pedigree.uai --all --device gpu",
    "markovia query model.bif disease -g test=positive --json | jq .posteriors.disease",
)
def query(
    model: options.Model,
    targets: Annotated[
        list[str] | None, argument("TARGET", "The variables to ask for.", complete=complete_variable)
    ] = None,
    given: options.Given = None,
    soft: options.Soft = None,
    ruled_out: options.RuledOut = None,
    do: options.Do = None,
    joint: Annotated[
        bool, option("--joint -j", "One table over all targets together, not one for each.")
    ] = False,
    every: Annotated[bool, option("--all -a", "Ask for every variable without evidence.")] = False,
    engine: options.Engine = "auto",
    time_limit: options.TimeLimit = None,
    device: options.Device = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Compute the probabilities of variables, given what is known about others."""
    loaded = open_model(model, format)
    require_tables(loaded, model)
    names = _wanted(read_names(loaded, targets or []), joint, every)
    limit, where = options.seconds(time_limit), options.device(device)
    asked, done = intervened(loaded, do or [])
    evidence = read_given(loaded, given or [], soft or [], ruled_out or [])
    document: dict[str, Any] = {**heading(model, loaded), "given": evidence, "do": done}
    if joint:
        posterior = asked.query(names, given=evidence, engine=engine, time_limit=limit, device=where)
        if as_json:
            print_json(
                {**document, "joint": _joint_document(posterior), "info": info_document(posterior.info)}
            )
        else:
            _show_joint(posterior, evidence, done)
        return
    posteriors = asked.marginals(
        given=evidence, targets=names or None, engine=engine, time_limit=limit, device=where
    )
    if as_json:
        tables = {
            name: posterior_document(p.variables[0], p.values.tolist()) for name, p in posteriors.items()
        }
        found = next((info_document(p.info) for p in posteriors.values()), None)
        print_json({**document, "posteriors": tables, "info": found})
        return
    for posterior in posteriors.values():
        _show_posterior(posterior, evidence, done)
    if posteriors:
        say(provenance(next(iter(posteriors.values())).info, evidence), style="dim")
    elif len(loaded):
        say("every variable has evidence; nothing is left to ask")
    else:
        say("the model has no variables; there is nothing to ask")


def title(names: tuple[str, ...], given: Mapping[str, Any], done: Mapping[str, Any]) -> str:
    """Write a question the way a book does.

    Examples
    --------
    >>> title(("lung",), {"xray": "yes"}, {"smoke": "no"})
    'P(lung | xray=yes, do(smoke=no))'
    """
    known = [said(name, value) for name, value in given.items()]
    known += [f"do({name}={value})" for name, value in done.items()]
    return f"P({', '.join(names)}{' | ' if known else ''}{', '.join(known)})"


def _wanted(names: list[str], joint: bool, every: bool) -> list[str]:
    if every and (names or joint):
        raise InvalidArgument("--all asks for each variable by itself; leave out the targets and --joint")
    if not every and not names:
        raise InvalidArgument("name at least one variable to ask for, or say --all")
    return names


def _show_posterior(posterior: Posterior, given: Mapping[str, Any], done: Mapping[str, Any]) -> None:
    say(title(posterior.names, given, done), style="bold")
    rows = [
        (str(state), number(p), _bar(p))
        for state, p in zip(posterior.states, posterior.values.tolist(), strict=True)
    ]
    show_table(["", "", ""], rows, numbers=[1], indent=2)


def _show_joint(posterior: Posterior, given: Mapping[str, Any], done: Mapping[str, Any]) -> None:
    say(title(posterior.names, given, done), style="bold")
    flat = posterior.values.reshape(-1)
    chosen = np.arange(len(flat)) if len(flat) <= MOST_ROWS else np.argsort(-flat, kind="stable")[:MOST_ROWS]
    rows = []
    for k in chosen:
        index = np.unravel_index(k, posterior.values.shape)
        states = [str(v.states[i]) for v, i in zip(posterior.variables, index, strict=True)]
        rows.append((*states, number(float(flat[k])), _bar(float(flat[k]))))
    show_table([*posterior.names, "p", ""], rows, numbers=[len(posterior.names)], indent=2)
    if len(flat) > MOST_ROWS:
        say(f"  the {MOST_ROWS} most probable of {len(flat):,} rows; --json has all of them")
    say(provenance(posterior.info, given), style="dim")


def _bar(p: float) -> "str | Text":
    """Draw a bar for people; a pipe gets numbers only."""
    return bar(p) if console().is_terminal else ""


def _joint_document(posterior: Posterior) -> dict[str, Any]:
    return {
        "variables": list(posterior.names),
        "states": {v.name: list(v.states) for v in posterior.variables},
        "table": [
            {
                "states": dict(zip(posterior.names, key if isinstance(key, tuple) else (key,), strict=True)),
                "p": p,
            }
            for key, p in posterior.to_dict().items()
        ],
    }
