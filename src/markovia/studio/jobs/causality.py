"""Causal questions in the studio: identification, adjustment sets, effects from a table, counterfactuals of one row."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument, NotIdentifiable, check_known
from markovia.runtime import ports
from markovia.studio.jobs.orders import (
    AskCounterfactual,
    AskIdentify,
    EstimateEffect,
    Identified,
    Instrument,
    Step,
    World,
    Worlds,
)  # fmt: skip

if TYPE_CHECKING:
    from markovia.studio.jobs.worker import JobReport

MOST_SETS = 8
"""Sets of a kind that are shown."""


def identified(graph: Any, asked: AskIdentify) -> Identified:
    """Say whether an effect can be had from what is observed: formula and derivation, or why not; and the sets."""
    from markovia.causal.identification.adjustment import adjustment_sets
    from markovia.causal.identification.front_door import front_door_sets
    from markovia.causal.identification.identify import identify
    from markovia.causal.identification.instruments import instruments
    from markovia.causal.problem import Problem

    x, y, hidden = asked.treatment, asked.outcome, asked.latent
    problem = Problem.of(graph, x, y, asked.given, hidden)
    try:
        formula = identify(graph, treatment=x, outcome=y, given=asked.given, latent=hidden)
    except NotIdentifiable as error:
        hedge = None if error.hedge is None else [sorted(names) for names in error.hedge]
        found = Identified(identified=False, why=str(error), hedge=hedge)
    else:
        found = Identified(
            identified=True,
            rule=formula.rule,
            formula=f"{formula.question} = {formula.expression}",
            latex=formula.latex(),
            why=formula.because(),
            adjustment=None if formula.adjustment is None else list(formula.adjustment),
            mediators=list(formula.mediators),
            assumptions=list(formula.assumptions),
            derivation=[
                Step(f"{step.left} = {step.right}", step.reason, [str(s) for s in step.separations])
                for step in formula.derivation().steps
            ],
        )
    if not asked.given and found.rule != "no effect":
        sets = adjustment_sets(graph, x, y, latent=hidden, limit=MOST_SETS)
        found.adjustment_sets = [list(names) for names in sets]
    if not asked.given and found.rule != "no effect" and not problem.is_class:  # these two are of one graph
        doors = front_door_sets(graph, x, y, latent=hidden, limit=MOST_SETS)
        found.front_door_sets = [list(names) for names in doors]
        if len(x) == len(y) == 1:
            ways = instruments(graph, x[0], y[0], latent=hidden)[:MOST_SETS]
            found.instruments = [Instrument(i.name, list(i.given)) for i in ways]
    return found


def effect(report: "JobReport", *, folder: Path, **order: Any) -> dict[str, Any]:
    """Estimate an effect from a table and the graph of a model, and put it to all tests; see `EstimateEffect`."""
    from markovia.causal.estimation.effect import effect as estimate
    from markovia.data.tables.frames import as_frame

    asked = EstimateEffect(**order)
    report.note("reading the table")
    table = as_frame(asked.data)
    network = ports.call("loads", asked.model, "json")
    report.note("estimating the effect")
    levels = {name: _cell(table, asked.treatment, getattr(asked, name)) for name in ("control", "treated")}
    found = estimate(
        table, network, asked.treatment, asked.outcome, method=asked.method, estimand=asked.estimand,
        measure=asked.measure, latent=asked.latent, missing=asked.missing, random_state=asked.seed, **levels,
    )  # fmt: skip
    if not asked.judge:
        return _told(found)
    report.show(_told(found))
    report.note("trying to refute it")
    return _told(found, found.report(random_state=asked.seed))


def _told(found: Any, judged: Any = None) -> dict[str, Any]:
    # the page shows values of the treatment and the overlap as they print
    told: dict[str, Any] = found.to_dict() | {
        "control": str(found.control),
        "treated": str(found.treated),
        "rows": found.n,
        "overlap": None if found.overlap is None else str(found.overlap),
        "balance": [],
        "text": str(found),
    }
    if found.balanced is not None and found.balanced.after is not None:
        both = zip(found.balanced.columns, found.balanced.before, found.balanced.after, strict=True)
        told["balance"] = [{"name": str(n), "before": float(b), "after": float(a)} for n, b, a in both]
    if judged is not None:
        told |= {
            "refutations": [
                {"kind": r.kind, "passed": bool(r.passed), "value": float(r.value), "why": r.sentence}
                for r in judged.refutations
            ],
            "sensitivity": None if judged.sensitivity is None else str(judged.sensitivity),
            "graph": str(judged.graph),
            "doubts": list(judged.doubts),
            "verdict": judged.verdict,
            "text": str(judged),
        }
    return told


def _cell(table: Any, name: str, word: str | None) -> Any:
    """Return the value of a column that is written like this."""
    if word is None or name not in table.columns:
        return None
    same = [v for v in table[name].dropna().unique().tolist() if str(v) == word]
    if same:
        return same[0]
    try:
        return float(word)
    except ValueError:
        raise InvalidArgument(f"the column {name!r} has no value {word!r}") from None


def counterfactual(
    model: Any, asked: AskCounterfactual, facts: Mapping[str, Any], do: Mapping[str, Any]
) -> Worlds:
    """Return each target had `do` been the case, for a unit with these facts: probabilities, bounds, or mean and spread."""
    found = Worlds([], "")
    for target in asked.targets:
        check_known([target], list(model.variables), "the model")
        answer = model.counterfactual(target, given=dict(facts), do=dict(do), mechanism=asked.mechanism)
        found.note = answer.info.note or found.note
        found.answers.append(_world(target, answer))
    return found


def _world(target: str, answer: Any) -> World:
    if hasattr(answer, "lower"):
        states = [str(s) for s in answer.variables[0].states]
        low, high = answer.lower.ravel().tolist(), answer.upper.ravel().tolist()
        return World(target, states, low=low, high=high, sharp=bool(answer.sharp))
    if hasattr(answer, "to_dict"):
        p = answer.to_dict()
        return World(target, [str(s) for s in p], [float(x) for x in p.values()])
    return World(target, mean=float(answer.mean(target)), sd=float(answer.sd(target)))
