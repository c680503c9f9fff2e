"""A report: a model, its findings and the answers as one HTML file that needs nothing else and asks nobody.

The file carries the studio's drawing. A discrete model that is small enough by its elimination cost is answered in the
page for any findings; otherwise the answers to single findings come along as far as they fit, and the page says so.
Its content-security policy admits only the script and style that it was written with, and no request at all.
"""

import hashlib
import os
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Any

import msgspec

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.runtime.whole_files import write_whole
from markovia.studio.documents import answers, messages
from markovia.studio.documents.decision_answers import is_diagram
from markovia.studio.documents.document import Document
from markovia.studio.documents.endpoints import Call, File, endpoint
from markovia.studio.documents.findings import findings, told_findings, told_interventions
from markovia.studio.documents.views import view_of
from markovia.studio.documents.workspace import Workspace
from markovia.studio.sharing import report_text
from markovia.studio.sharing.bundle import bundled, static_text
from markovia.studio.sharing.in_page import elimination_cells, page_tables

MOST_NUMBERS = 200_000
"""Probabilities of single findings that a report of a large model carries, about two megabytes."""


@dataclass(frozen=True)
class WrittenReport:
    """A report and what its page can answer."""

    text: str
    """The HTML file."""
    answering: str
    """`"computed"` in the page, `"looked up"` for single findings, or `"fixed"`: only its own findings."""
    cells: float
    """Table cells that elimination needs; infinite with numbers among the variables."""
    answers: int
    """Answers that came along."""


def write_report(
    model: Any,
    path: str | os.PathLike[str],
    *,
    given: Mapping[str, Any] | None = None,
    do: Mapping[str, Any] | None = None,
    title: str | None = None,
    engine: str = "auto",
) -> None:
    """Write a model, findings and answers as one HTML file; see `model.report`."""
    made = report(model, given=given, do=do, title=title, engine=engine)
    save_text(made.text, path)


def report(
    model: Any,
    *,
    given: Mapping[str, Any] | None = None,
    do: Mapping[str, Any] | None = None,
    title: str | None = None,
    engine: str = "auto",
    source: str | None = None,
) -> WrittenReport:
    """Return a model, findings and answers as one HTML page.

    Examples
    --------
    >>> import markovia as mk
    >>> made = report(mk.examples.asia(), given={"xray": "yes"})
    >>> made.answering, made.text[:15]
    ('computed', '<!doctype html>')
    """
    workspace = Workspace()
    document = workspace.add(model, title or getattr(model, "name", "") or "network")
    held = document.now.model
    findings, interventions = told_findings(held, given), told_interventions(held, do)
    return report_of(workspace, document, findings, interventions, engine=engine, source=source)


def report_of(
    workspace: Workspace,
    document: Document,
    given: Mapping[str, Any],
    do: Mapping[str, Any],
    *,
    engine: str = "auto",
    source: str | None = None,
) -> WrittenReport:
    """Return an open document as a report; findings and interventions are as the page says them."""
    model = document.now.model
    answer = ask(workspace, document, given, do, engine)
    prior = ask(workspace, document, {}, {}, engine) if given or do else answer
    answers.networked(model)
    cells = elimination_cells(model)
    tables = page_tables(model)
    known = [{"given": given, "do": do, "answer": answer}]
    if tables is None:
        known += single_findings(workspace, document, engine, prior) if prior.info.exact else []
    answering = "computed" if tables else "looked up" if len(known) > 2 else "fixed"
    view = view_of(document)
    content = {
        "view": view,
        "given": given,
        "do": do,
        "prior": prior.marginals,
        "tables": tables,
        "answers": [] if tables else known,
    }
    body = report_text.body(
        view, model, given, do, prior, answer, said_of(answering, len(known), model), source, _now()
    )
    return WrittenReport(page(view.name, content, body), answering, cells, len(known))


def ask(
    workspace: Workspace, document: Document, given: Mapping[str, Any], do: Mapping[str, Any], engine: str
) -> messages.Marginals:
    """Return the posterior of every variable of a document."""
    body = msgspec.convert({"given": given, "do": do, "engine": engine}, messages.AskMarginals)
    return answers.marginals(Call(workspace, {"id": document.id}, body=body))


def single_findings(
    workspace: Workspace, document: Document, engine: str, prior: messages.Marginals
) -> list[dict[str, Any]]:
    """Return the answers to no finding and to each state of a variable, variable by variable as long as they fit."""
    known: list[dict[str, Any]] = [{"given": {}, "do": {}, "answer": _rounded(prior)}]
    numbers = sum(len(m.p or ()) or 200 for m in prior.marginals.values())
    for node in view_of(document).nodes:
        states = node.states or []
        if (len(known) + len(states)) * numbers > MOST_NUMBERS:
            break
        for state in states:
            given = {node.name: {"state": state}}
            with suppress(MarkoviaError):  # a state of probability zero has no answer
                found = ask(workspace, document, given, {}, engine)
                known.append({"given": given, "do": {}, "answer": _rounded(found)})
    return known


def said_of(answering: str, known: int, model: Any) -> str:
    """Say what the page can answer, in a sentence for its reader."""
    if answering == "computed":
        return "Click a bar to observe a state, and again to retract it; every answer is computed exactly in this page."
    if answering == "looked up":
        return (
            "This model is too large to compute with in a page. It holds the answers to its own findings and to "
            f"{known - 2:,} single findings, which a click on a bar shows; the studio answers all others."
        )
    why = "numbers among its variables" if model.has_quantities else "a cost beyond what a page can compute"
    if is_diagram(model):
        why = "decisions or utilities"
    return f"This page shows the answer to its own findings only, because the model has {why}; the studio answers others."


def page(title: str, content: Mapping[str, Any], body: str) -> str:
    """Return the whole file: policy, style, text, content and script."""
    style = static_text("studio.css") + static_text("report.css")
    script = bundled("report.js", "entry.begin();")
    data = msgspec.json.encode(content).decode("utf-8").replace("<", "\\u003c")
    if "</" in style or "</script" in script or "<!--" in script:
        raise AssertionError("a style or script of the page would end its element")
    policy = (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:,">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body class="mk mk-report">
{body}
<script type="application/json" id="mk-content">{data}</script>
<script type="module">{script}</script>
</body>
</html>
"""


def save_text(text: str, path: str | os.PathLike[str]) -> int:
    """Write a file whole or not at all, and return its bytes."""
    try:
        data = text.encode("utf-8")
    except UnicodeEncodeError:
        raise InvalidArgument(
            "a name or state holds half a character (a lone surrogate), which no file can"
        ) from None
    write_whole(Path(path), data)
    return len(data)


def _rounded(answer: messages.Marginals) -> messages.Marginals:
    """Return an answer with probabilities of six digits: it is looked at, not computed with."""
    short = {
        name: messages.Marginal(p=[float(f"{x:.6g}") for x in m.p]) if m.p is not None else m
        for name, m in answer.marginals.items()
    }
    return messages.Marginals(short, answer.log_evidence, answer.info)


def _hash(text: str) -> str:
    return f"sha256-{b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}"


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"


def answer_report(call: Call[messages.Question]) -> File:
    """Answer the model with these findings as one HTML file that stays interactive without a server."""
    document = call.document
    model = document.now.model
    given = told_findings(model, findings(model, call.body.given))  # as the page says them, plain cells too
    made = report_of(
        call.workspace, document, given, call.body.do, engine=call.body.engine, source=document.file
    )
    return File(made.text.encode("utf-8", "replace"), f"{document.now.name}.html", "text/html")


ENDPOINTS = [endpoint("POST", "/api/models/{id}/report", answer_report)]
