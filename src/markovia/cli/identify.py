"""`markovia identify`: the formula of an effect and the sets behind it, or the hedge that shows there is none."""

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from markovia.causal.identification.adjustment import adjustment_sets
from markovia.causal.identification.front_door import front_door_sets
from markovia.causal.identification.identify import identify as find_formula
from markovia.causal.identification.instruments import instruments
from markovia.causal.problem import Problem
from markovia.cli.terminal import options
from markovia.cli.terminal.loading import open_anything
from markovia.cli.terminal.options import argument, command, option
from markovia.cli.terminal.output import print_json, say
from markovia.errors import NotIdentifiable

_EDGE = re.compile(r"->|<-|--|o-o|@-|\{")
_Several = Annotated[str, argument(None, "A variable, or several separated by commas.")]


@command(
    'markovia identify "x -> y; x <-> y" x y',
    'markovia identify "smoke -> tar -> cancer; smoke <-> cancer" smoke cancer --latex',
    "markovia identify asia bronc dysp --latent smoke --json",
)
def identify(
    graph: Annotated[
        str,
        argument(
            "GRAPH",
            'A text such as "x -> y; x <-> y" or dagitty\'s, a model or graph file, or a bundled name such as asia.',
        ),
    ],
    treatment: _Several,
    outcome: _Several,
    given: Annotated[
        list[str] | None, option("--given -g VAR", "Ask for the effect where this is known.")
    ] = None,
    latent: Annotated[list[str] | None, option("--latent VAR", "A variable that is not observed.")] = None,
    limit: Annotated[int, option("--limit -l", "Show at most so many sets of a kind.", min=1)] = 10,
    latex: Annotated[bool, option("--latex", "Print only the formula, in LaTeX.")] = False,
    format: options.Format = None,  # noqa: A002
    as_json: options.Json = False,
) -> None:
    """Ask whether an effect can be had from what is observed, by which rule and formula, and with which sets."""
    read = graph_of(graph, format)
    x, y, known, hidden = (names_of(words) for words in ([treatment], [outcome], given, latent))
    problem = Problem.of(read, x, y, known, hidden)
    answer = _answer(read, x, y, known, hidden)
    found: dict[str, Any] = {
        "graph": graph,
        "treatment": list(problem.treatment),
        "outcome": list(problem.outcome),
        "given": list(problem.given),
        "latent": hidden,
        **answer,
    }
    if not known and answer["rule"] != "no effect":
        found |= _sets(problem, read, x, y, hidden, limit)
    if as_json:
        print_json(found)
    elif latex and found["identified"]:
        typer.echo(found["latex"])
    else:
        say(found["formula"] or found["why"], style="green" if found["identified"] else "yellow")
        for line in _lines(found):
            say(f"  {line}")


def graph_of(word: str, format: str | None) -> Any:  # noqa: A002
    """Return the graph that a word means: a text of edges, a file, or a bundled name."""
    if _EDGE.search(word):
        return word
    if format in (None, "dagitty") and word.endswith(".dagitty") and Path(word).is_file():
        return Path(word).read_text(encoding="utf-8")  # which also says what is latent
    return open_anything(word, format)


def names_of(words: list[str] | None) -> list[str]:
    """Return names from words that may hold several, separated by commas."""
    return [name.strip() for word in words or [] for name in word.split(",")]


def _answer(graph: Any, x: list[str], y: list[str], given: list[str], latent: list[str]) -> dict[str, Any]:
    try:
        effect = find_formula(graph, treatment=x, outcome=y, given=given, latent=latent)
    except NotIdentifiable as error:
        hedge = None if error.hedge is None else [sorted(names) for names in error.hedge]
        return {
            "identified": False,
            "rule": None,
            "formula": None,
            "latex": None,
            "why": str(error),
            "hedge": hedge,
        }
    return {
        "identified": True,
        "rule": effect.rule,
        "formula": f"{effect.question} = {effect.expression}",
        "latex": effect.latex(),
        "why": effect.because(),
        "assumptions": list(effect.assumptions),
    }


def _sets(
    problem: Problem, graph: Any, x: list[str], y: list[str], latent: list[str], limit: int
) -> dict[str, Any]:
    sets: dict[str, Any] = {"adjustment_sets": adjustment_sets(graph, x, y, latent=latent, limit=limit)}
    if not problem.is_class:
        sets["front_door_sets"] = front_door_sets(graph, x, y, latent=latent, limit=limit)
        if len(x) == len(y) == 1:
            sets["instruments"] = [i._asdict() for i in instruments(graph, x[0], y[0], latent=latent)[:limit]]
    return sets


def _lines(found: dict[str, Any]) -> list[str]:
    lines = [found["why"]] if found["identified"] else []
    for key in ("adjustment_sets", "front_door_sets"):
        if sets := found.get(key):
            shown = ", ".join(f"{{{', '.join(names)}}}" for names in sets)
            lines.append(f"{key.replace('_', ' ').replace('front door', 'front-door')}: {shown}")
    if named := found.get("instruments"):
        shown = ", ".join(
            i["name"] + (f" given {', '.join(i['given'])}" if i["given"] else "") for i in named
        )
        lines.append(f"instruments (for linear models): {shown}")
    return lines + [f"assumes: {sentence}" for sentence in found.get("assumptions", ())]
