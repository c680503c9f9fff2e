"""Causal questions in the studio: identification, adjustment sets, effects from a table, counterfactuals of one row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markovia.errors import InvalidArgument, NotIdentifiable, UnknownVariable
from markovia.runtime import ports

if TYPE_CHECKING:
    from markovia.studio.jobs.worker import Report

MOST_SETS = 8
"""Sets of a kind that are shown."""


def identified(
    graph: Any, treatment: Sequence[str], outcome: Sequence[str], given: Sequence[str], latent: Sequence[str]
) -> dict[str, Any]:
    """Say whether an effect can be had from what is observed: formula and derivation, or why not; and the sets."""
    from markovia.causal.identification.adjustment import adjustment_sets
    from markovia.causal.identification.front_door import front_door_sets
    from markovia.causal.identification.identify import identify
    from markovia.causal.identification.instruments import instruments

    x, y, hidden = list(treatment), list(outcome), list(latent)
    found: dict[str, Any] = {"adjustment_sets": [], "front_door_sets": [], "instruments": []}
    try:
        formula = identify(graph, treatment=x, outcome=y, given=list(given), latent=hidden)
    except NotIdentifiable as error:
        hedge = None if error.hedge is None else [sorted(names) for names in error.hedge]
        found |= {
            "identified": False,
            "rule": None,
            "formula": None,
            "latex": None,
            "why": str(error),
            "hedge": hedge,
        }
        found |= {"assumptions": [], "derivation": [], "adjustment": None, "mediators": []}  # fmt: skip
    else:
        found |= {
            "identified": True,
            "rule": formula.rule,
            "formula": f"{formula.question} = {formula.expression}",
            "latex": formula.latex(),
            "why": formula.because(),
            "hedge": None,
            "adjustment": None if formula.adjustment is None else list(formula.adjustment),
            "mediators": list(formula.mediators),
            "assumptions": list(formula.assumptions),
            "derivation": [
                {
                    "equation": f"{step.left} = {step.right}",
                    "reason": step.reason,
                    "separations": [str(s) for s in step.separations],
                }
                for step in formula.derivation().steps
            ],
        }
    if not given and found["rule"] != "no effect":
        sets = adjustment_sets(graph, x, y, latent=hidden, limit=MOST_SETS)
        found["adjustment_sets"] = [list(names) for names in sets]
        doors = front_door_sets(graph, x, y, latent=hidden, limit=MOST_SETS)
        found["front_door_sets"] = [list(names) for names in doors]
        if len(x) == len(y) == 1:
            found["instruments"] = [
                {"name": i.name, "given": list(i.given)}
                for i in instruments(graph, x[0], y[0], latent=hidden)[:MOST_SETS]
            ]
    return found


def effect(
    report: "Report",
    *,
    folder: Path,
    model: str,
    data: str,
    treatment: str,
    outcome: str,
    latent: Sequence[str] = (),
    method: str = "auto",
    estimand: str = "ate",
    measure: str = "difference",
    control: str | None = None,
    treated: str | None = None,
    missing: str = "error",
    judge: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    """Estimate an effect from a table and the graph of a model, and put it to all tests that apply; work for a job."""
    from markovia.causal.estimation.effect import effect as estimate
    from markovia.data.frames import as_frame

    report.note("reading the table")
    table = as_frame(data)
    network = ports.call("loads", model, "json")
    report.note("estimating the effect")
    found = estimate(
        table, network, treatment, outcome, method=method, estimand=estimand, measure=measure, latent=list(latent),
        control=_cell(table, treatment, control), treated=_cell(table, treatment, treated), missing=missing,
        random_state=seed,
    )  # fmt: skip
    if judge:
        report.show(_told(found))
        report.note("trying to refute it")
    return _told(found, found.report(random_state=seed) if judge else None)


def _told(found: Any, judged: Any = None) -> dict[str, Any]:
    told: dict[str, Any] = {
        "treatment": found.treatment,
        "outcome": found.outcome,
        "control": str(found.control),
        "treated": str(found.treated),
        "estimand": found.target,
        "measure": found.measure,
        "value": found.value,
        "standard_error": found.standard_error,
        "interval": list(found.interval),
        "p_value": found.p_value,
        "level": found.level,
        "rows": found.n,
        "method": found.method,
        "why": found.why,
        "adjustment": list(found.adjustment),
        "mediators": list(found.mediators),
        "instruments": list(found.instruments),
        "notes": list(found.notes),
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
    model: Any,
    targets: Sequence[str],
    facts: Mapping[str, Any],
    do: Mapping[str, Any],
    mechanism: str | None = None,
) -> dict[str, Any]:
    """Return each target had `do` been the case, for a unit with these facts: probabilities, bounds, or mean and spread."""
    found = []
    note = ""
    for target in targets:
        if target not in model.variables:
            raise UnknownVariable(target, list(model.variables), "the model")
        answer = model.counterfactual(target, given=dict(facts), do=dict(do), mechanism=mechanism)
        note = answer.info.note or note
        found.append(_world(target, answer))
    return {"answers": found, "note": note}


def _world(target: str, answer: Any) -> dict[str, Any]:
    if hasattr(answer, "lower"):
        states = [str(s) for s in answer.variables[0].states]
        low, high = answer.lower.ravel().tolist(), answer.upper.ravel().tolist()
        return {"name": target, "states": states, "low": low, "high": high, "sharp": bool(answer.sharp)}
    if hasattr(answer, "to_dict"):
        p = answer.to_dict()
        return {"name": target, "states": [str(s) for s in p], "p": [float(x) for x in p.values()]}
    return {"name": target, "mean": float(answer.mean(target)), "sd": float(answer.sd(target))}
