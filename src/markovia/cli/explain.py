"""`markovia map`: the most probable explanations of the evidence."""

from math import exp, isfinite, isnan
from typing import Annotated, Any

from markovia.cli.evidence import intervened, read_given, read_names, said
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
from markovia.inference.posterior import Explanation


@command(
    "markovia map asia --given dysp=yes",
    "markovia map asia --given dysp=yes --targets lung,bronc",
    "markovia map asia --given xray=yes -m 5 --json",
    "markovia map grid.uai --time-limit 30",
    name="map",
)
def explain(
    model: options.Model,
    given: options.Given = None,
    soft: options.Soft = None,
    ruled_out: options.RuledOut = None,
    do: options.Do = None,
    targets: Annotated[
        list[str] | None,
        option(
            "--targets -t VAR,VAR,..",
            "Explain only these and sum out the rest (marginal MAP); all unobserved variables by default.",
            complete=complete_variable,
        ),
    ] = None,
    m: Annotated[int, option("-m --best", "How many explanations, best first.", min=1)] = 1,
    engine: options.Engine = "auto",
    time_limit: options.TimeLimit = None,
    device: options.Device = None,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Find the most probable states of all other variables together, given what is known."""
    loaded = open_model(model, format)
    require_tables(loaded, model)
    names = read_names(loaded, targets or []) or None
    asked, done = intervened(loaded, do or [])
    evidence = read_given(loaded, given or [], soft or [], ruled_out or [])
    found: list[Explanation] = asked.map(
        given=evidence, targets=names, m=m, engine=engine,
        time_limit=options.seconds(time_limit), device=options.device(device),
    )  # fmt: skip
    if as_json:
        print_json(
            {
                **heading(model, loaded),
                "given": evidence,
                "do": done,
                "explanations": [_document(e) for e in found],
                "info": info_document(found[0].info) if found else None,
            }
        )
        return
    known = [said(n, v) for n, v in evidence.items()] + [f"do({n}={v})" for n, v in done.items()]
    say(f"most probable explanation{' given ' + ', '.join(known) if known else ''}", style="bold")
    best = found[0]
    show_table(["", ""], [(name, str(state)) for name, state in best.items()], indent=2)
    say(_value(best, bool(evidence)))
    if len(found) > 1:
        say("", "the next best, where they differ from it")
        rows = [
            (str(rank), _probability(other), _changes(best, other))
            for rank, other in enumerate(found[1:], start=2)
        ]
        show_table(["rank", "p", "changes"], rows, numbers=[0, 1], indent=2)
    say(provenance(best.info, evidence), style="dim")


def _value(best: Explanation, evidence: bool) -> str:
    """Say how probable an explanation is, as far as that is known, and how far it could be from the best."""
    parts = [f"p = {_probability(best)}{' given the evidence' if evidence else ''}"]
    if isnan(best.log_posterior):
        parts = []
    parts.append(f"{'log P' if best.normalised else 'log weight'} = {best.log_prob:.6g}")
    if best.gap <= 1e-9:
        parts.append("proved best")
    else:
        parts.append(f"within {best.gap:.3g} of the best in log" if isfinite(best.gap) else "without a bound")
    return ", ".join(parts)


def _probability(explanation: Explanation) -> str:
    """Write the probability given the evidence; nothing where no one computed it."""
    return "" if isnan(explanation.log_posterior) else number(exp(explanation.log_posterior))


def _changes(best: Explanation, other: Explanation) -> str:
    return ", ".join(f"{name}={other[name]}" for name in best if other[name] != best[name])


def _document(explanation: Explanation) -> dict[str, Any]:
    return {
        "states": explanation.to_dict(),
        "p": exp(explanation.log_posterior),
        "log_prob": explanation.log_prob,
        "log_posterior": explanation.log_posterior,
        "bound": explanation.bound,
        "normalised": explanation.normalised,
    }
