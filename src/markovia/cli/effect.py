"""`markovia effect`: how large a causal effect is, from a data file and a graph, with its report."""

from typing import Annotated, Any

from markovia.causal.estimation.adjustment.estimates import MEASURES
from markovia.causal.estimation.effect import TARGETS
from markovia.causal.estimation.effect import effect as estimate_effect
from markovia.causal.estimation.methods import METHODS
from markovia.cli.identify import graph_of, names_of
from markovia.cli.rows import data_file
from markovia.cli.terminal import options
from markovia.cli.terminal.options import command, option
from markovia.cli.terminal.output import print_json, say
from markovia.data.tables.frames import as_frame
from markovia.errors import InvalidArgument


@command(
    'markovia effect data.csv --graph "age -> drug -> cured; age -> cured" --treatment drug --outcome cured',
    'markovia effect data.csv --graph "z -> t -> y; t <-> y" -t t -y y --report --plot report.png',
    'markovia effect data.csv --graph model.dagitty -t t -y y --measure "odds ratio" --estimand att --json',
    notes=[f"Methods: auto, {', '.join(METHODS)}, plug-in."],
)
def effect(
    data: options.Data,
    graph: Annotated[
        str, option("--graph GRAPH", 'A text such as "x -> y; x <-> y", a file, or a bundled name.')
    ],
    treatment: Annotated[str, option("--treatment -t COLUMN", "What is done.")],
    outcome: Annotated[str, option("--outcome -y COLUMN", "What follows.")],
    method: Annotated[str, option("--method -m NAME", "See below.")] = "auto",
    estimand: Annotated[str, option("--estimand NAME", f"Over whom: {', '.join(TARGETS)}.")] = "ate",
    measure: Annotated[str, option("--measure NAME", f"{', '.join(MEASURES)}.")] = "difference",
    control: Annotated[str | None, option("--control VALUE", "The level to compare with.")] = None,
    treated: Annotated[str | None, option("--treated VALUE", "The level compared.")] = None,
    given: Annotated[
        list[str] | None, option("--given -g COLUMN=VALUE", "Only rows with this value.")
    ] = None,
    latent: Annotated[
        list[str] | None, option("--latent VAR", "A variable of the graph that is no column.")
    ] = None,
    learner: Annotated[str | None, option("--learner NAME", "linear, boosting or forest.")] = None,
    errors: Annotated[str, option("--errors NAME", "influence or bootstrap.")] = "influence",
    level: Annotated[float, option("--level P", "The level of intervals.")] = 0.95,
    missing: Annotated[str, option("--missing NAME", "error, drop or indicator.")] = "error",
    report: Annotated[bool, option("--report", "Also try to refute it, and judge.")] = False,
    plot: Annotated[str | None, option("--plot FILE", "Draw it, .png or .svg.")] = None,
    seed: options.Seed = None,
    as_json: options.Json = False,
) -> None:
    """Estimate a causal effect, with its interval, how it was found and why so."""
    table = as_frame(str(data_file(data)))
    found = estimate_effect(
        table,
        graph_of(graph, None),
        treatment,
        outcome,
        method=method,
        estimand=estimand,
        measure=measure,
        control=_cell(table, treatment, control),
        treated=_cell(table, treatment, treated),
        given=dict(_equation(table, word) for word in given or []) or None,
        latent=names_of(latent),
        learner=learner,
        errors=errors,
        level=level,
        missing=missing,
        random_state=0 if seed is None else seed,
    )
    judged = found.report() if report else None
    if plot is not None:
        axes: Any = found.plot() if judged is None else judged.plot().flat[0]
        axes.figure.savefig(plot)
    if not as_json:
        say(str(found if judged is None else judged))
        return
    document = {"data": data, **found.to_dict()}
    if judged is not None:
        tried = [
            {"kind": r.kind, "passed": r.passed, "value": r.value, "why": r.sentence}
            for r in judged.refutations
        ]
        document |= {"refutations": tried, "doubts": judged.doubts, "verdict": judged.verdict}
    print_json(document)


def _equation(table: Any, word: str) -> tuple[str, Any]:
    name, equals, value = word.partition("=")
    if not equals:
        raise InvalidArgument(f"--given {word!r} is written COLUMN=VALUE, such as --given sex=f")
    return name, _cell(table, name, value)


def _cell(table: Any, name: str, word: str | None) -> Any:
    """Return the value of a column that a word means; the word itself where the column has none such."""
    if word is None or name not in table.columns:
        return word
    known = table[name].dropna().unique().tolist()
    same = [
        v for v in known if str(v) == word or (isinstance(v, float) and _is_number(word) and v == float(word))
    ]
    return same[0] if same else float(word) if _is_number(word) else word


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
