"""The numbers of `markovia demo`: one walk through the library on the chest-clinic network, all computed live."""

import tempfile
from math import exp
from pathlib import Path
from typing import Any

from markovia import io
from markovia.cli.independent import explain_separation
from markovia.cli.info import describe
from markovia.cli.terminal.output import heading
from markovia.errors import ImpossibleEvidence
from markovia.models.gallery.examples import asia
from markovia.models.graphical.bayesian_network import BayesianNetwork

EVIDENCE = {"xray": "yes", "dysp": "yes"}
IMPOSSIBLE = {"lung": "yes", "either": "no"}


def tour() -> dict[str, Any]:
    """Ask everything that the demo shows and return the answers.

    Examples
    --------
    >>> answers = tour()
    >>> round(answers["posteriors"]["before"]["lung"], 3), round(answers["posteriors"]["after"]["lung"], 3)
    (0.055, 0.621)
    """
    bn = asia()
    return {
        **heading("asia", bn),
        "facts": describe(bn),
        "posteriors": _posteriors(bn),
        "explanation": _explanation(bn),
        "independence": _independence(bn),
        "intervention": _intervention(bn),
        "joint": _joint(bn),
        "files": _files(bn),
        "impossible": _impossible(bn),
    }


def _posteriors(bn: BayesianNetwork) -> dict[str, Any]:
    after = bn.marginals(given=EVIDENCE)
    before = bn.marginals(targets=list(after))
    return {
        "given": EVIDENCE,
        "before": {name: p["yes"] for name, p in before.items()},
        "after": {name: p["yes"] for name, p in after.items()},
        "log_evidence": bn.log_evidence(given=EVIDENCE),
    }


def _explanation(bn: BayesianNetwork) -> dict[str, Any]:
    best = bn.map(given=EVIDENCE, m=3)
    return {
        "given": EVIDENCE,
        "best": [{"states": e.to_dict(), "p": exp(e.log_posterior)} for e in best],
        "lung_and_bronc": bn.map(given=EVIDENCE, targets=["lung", "bronc"]).to_dict(),
    }


def _independence(bn: BayesianNetwork) -> list[dict[str, Any]]:
    asked = []
    for given in ([], ["smoke"], ["smoke", "dysp"]):
        answer = bn.independent("lung", "bronc", given=given)
        why = explain_separation(bn, ["lung"], ["bronc"], given, answer)
        asked.append({"x": "lung", "y": "bronc", "given": given, "independent": answer, **why})
    return asked


def _intervention(bn: BayesianNetwork) -> dict[str, float]:
    return {
        "lung": bn.query("lung")["yes"],
        "lung_seeing_bronc": bn.query("lung", given={"bronc": "yes"})["yes"],
        "lung_doing_bronc": bn.do(bronc="yes").query("lung")["yes"],
    }


def _joint(bn: BayesianNetwork) -> dict[str, Any]:
    given = {"dysp": "yes"}
    posterior = bn.query(["lung", "bronc"], given=given)
    check = bn.query(["lung", "bronc"], given=given, engine="enumeration")
    return {
        "given": given,
        "table": {f"{a},{b}": p for (a, b), p in posterior.to_dict().items()},
        "info": str(posterior.info),
        "check": str(check.info),
        "difference": _difference(posterior, check),
    }


def _files(bn: BayesianNetwork) -> list[dict[str, Any]]:
    asked = bn.query("lung", given=EVIDENCE)
    told = []
    with tempfile.TemporaryDirectory() as folder:
        for suffix in (".bif", ".json"):
            path = Path(folder) / f"asia{suffix}"
            bn.save(path)
            again = io.load(path).query("lung", given=EVIDENCE)
            told.append(
                {
                    "file": path.name,
                    "bytes": path.stat().st_size,
                    "lung": again["yes"],
                    "difference": _difference(asked, again),
                }
            )
    return told


def _impossible(bn: BayesianNetwork) -> dict[str, Any]:
    try:
        bn.query("smoke", given={**IMPOSSIBLE, "dysp": "yes"})
    except ImpossibleEvidence as error:
        return {"given": {**IMPOSSIBLE, "dysp": "yes"}, "message": str(error), "conflict": error.evidence}
    raise AssertionError("evidence of probability zero was accepted")


def _difference(one: Any, two: Any) -> float:
    return float(abs(one.values - two.factor().transpose(one.names).values).max())
