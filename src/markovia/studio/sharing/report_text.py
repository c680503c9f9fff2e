"""What a report says without a script: findings, beliefs before and after, tables, and where the answers came from."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import product
from typing import Any

from markovia import __version__
from markovia.models.graphical.directed_model import DirectedModel
from markovia.studio.documents import messages
from markovia.studio.documents.views import form_of, is_number, state_labels

FOLDED = 60
"""Rows of beliefs from which the table is folded away."""
MOST_ROWS = 128
"""Rows of one table that are written out."""
MOST_CELLS = 60_000
"""Cells of all tables together that are written out."""


def body(
    view: messages.View,
    model: Any,
    given: Mapping[str, Any],
    do: Mapping[str, Any],
    prior: messages.Marginals,
    answer: messages.Marginals,
    note: str,
    source: str | None,
    when: str,
) -> str:
    """Return what stands between the tags of the page's body."""
    known = sentence(given, do)
    kind = view.kind.replace("-", " ").replace("bayesian", "Bayesian").replace("markov", "Markov")
    return f"""<header class="mk-report-head">
<h1>{escape(view.name)}</h1>
<p class="mk-lead">A {escape(kind)} of {len(view.nodes):,} nodes and {len(view.edges):,} edges.
Known: <strong id="mk-asked">{escape(known or "nothing observed")}</strong>.</p>
{f'<p class="mk-note">{escape(view.notes)}</p>' if view.notes else ""}
<div class="mk-row" id="mk-report-tools"></div>
<noscript><p class="mk-note">The picture needs JavaScript, which is switched off; the tables do not.</p></noscript>
</header>
<main>
<section id="mk-live" class="mk-live" hidden aria-label="The network">
<p class="mk-hint">{escape(note)}</p>
<div class="mk-live-parts">
<div id="mk-stage" class="mk-report-stage"></div>
<div id="mk-side" class="mk-report-side"></div>
<div id="mk-paper" class="mk-paper"></div>
</div>
</section>
<section class="mk-text"><h2>Beliefs</h2>
{_beliefs(view, given, do, prior, answer)}
</section>
<section class="mk-text"><h2>The numbers of the model</h2>
{_tables(model)}
</section>
<section class="mk-text"><h2>Where this came from</h2>
{_provenance(answer, source, when)}
</section>
</main>"""


def sentence(given: Mapping[str, Any], do: Mapping[str, Any]) -> str:
    """Say findings in words.

    Examples
    --------
    >>> sentence({"xray": {"state": "yes"}, "age": {"interval": [None, 40.0]}}, {"smoke": "no"})
    'xray = yes, age in [−∞, 40.0], do(smoke = no)'
    """
    told = [f"{name} {_finding(finding)}" for name, finding in given.items()]
    return ", ".join([*told, *(f"do({name} = {value})" for name, value in do.items())])


def _finding(finding: Mapping[str, Any]) -> str:
    if "state" in finding:
        return f"= {finding['state']}"
    if "value" in finding:
        return f"= {finding['value']}"
    if "not" in finding:
        return f"≠ {', '.join(finding['not'])}"
    if "interval" in finding:
        low, high = finding["interval"]
        return f"in [{'−∞' if low is None else low}, {'∞' if high is None else high}]"
    return "likely " + " : ".join(f"{state} {weight:.4g}" for state, weight in finding["weights"].items())


def _beliefs(
    view: messages.View,
    given: Mapping[str, Any],
    do: Mapping[str, Any],
    prior: messages.Marginals,
    answer: messages.Marginals,
) -> str:
    rows = []
    for node in view.nodes:
        before, now = prior.marginals.get(node.name), answer.marginals.get(node.name)
        if now is None:
            continue
        mark = "mk-is-seen" if node.name in given else "mk-is-done" if node.name in do else ""
        if node.states is None:
            cells = f"<td></td><td>{_moments(before)}</td><td>{_moments(now)}</td>"
            rows.append(f'<tr class="mk-first {mark}"><th scope="row">{escape(node.name)}</th>{cells}</tr>')
            continue
        for k, state in enumerate(node.states):
            name = f'<th scope="row">{escape(node.name)}</th>' if k == 0 else "<td></td>"
            old = "–" if before is None or before.p is None else percent(before.p[k])
            new = "–" if now.p is None else percent(now.p[k])
            rows.append(
                f'<tr class="{"mk-first" if k == 0 else ""} {mark}" data-node="{escape(node.name)}" data-state="{k}">'
                f'{name}<td>{escape(state)}</td><td>{old}</td><td class="mk-now">{new}</td></tr>'
            )
    head = (
        '<thead><tr><th scope="col">node</th><th scope="col">state</th><th scope="col">before</th>'
        '<th scope="col">now</th></tr></thead>'
    )
    told = f'<table class="mk-table" id="mk-beliefs">{head}<tbody>{"".join(rows)}</tbody></table>'
    return told if len(rows) <= FOLDED else _folded(f"{len(view.nodes):,} nodes", told)


def percent(p: float) -> str:
    """Write a probability for people, as the page does.

    Examples
    --------
    >>> percent(0.0551), percent(1.0), percent(0.00021)
    ('5.5 %', '100 %', '0.021 %')
    """
    value = 100 * p
    if value in (0, 100):
        return f"{value:.0f} %"
    if value < 0.001:
        return "≈0 %"
    if value > 99.995:
        return "≈100 %"
    digits = 3 if value < 0.095 else 2 if value < 0.995 or value > 99.05 else 1
    return f"{value:.{digits}f} %"


def _moments(marginal: messages.Marginal | None) -> str:
    if marginal is None or marginal.mean is None:
        return "–"
    quantiles = marginal.quantiles or {}
    low, high = quantiles.get("0.05"), quantiles.get("0.95")
    spread = "" if low is None or high is None else f", 90 % in [{low:.4g}, {high:.4g}]"
    if marginal.sd is None:  # what a utility is worth on average
        return f"{marginal.mean:.6g}"
    return f"{marginal.mean:.4g} ± {marginal.sd:.4g}{spread}"


def _tables(model: Any) -> str:
    """Write every node's distribution, or every factor, folded; large ones by their size only."""
    left, parts = MOST_CELLS, []
    if isinstance(model, DirectedModel):
        for name in model.variables:
            piece = model[name]
            given = f" | {', '.join(model.parents(name))}" if model.parents(name) else ""
            table, cells = _conditional(piece, left)
            left -= cells
            parts.append(_folded(_title(piece, f"{name}{given}"), table))
        return "\n".join(parts)
    for k, factor in enumerate(model.pieces()):
        shown = hasattr(factor, "values") and factor.values.size <= min(left, 4 * MOST_ROWS)
        if shown:
            left -= factor.values.size
            labels = product(*(state_labels(v.states) for v in factor.variables))
            rows = [[*s, f"{x:.6g}"] for s, x in zip(labels, factor.values.ravel().tolist(), strict=True)]
            table = _table([*factor.names, "value"], rows, len(factor.names))
        else:
            table = f"<p>{escape(type(factor).__name__)} over {len(factor.names)} variables</p>"
        parts.append(_folded(f"factor {k + 1}: {', '.join(factor.names)}", table))
    return "\n".join(parts)


def _title(piece: Any, what: str) -> str:
    return f"{piece.kind} {what}" if piece.kind in ("decision", "utility") else f"P({what})"


def _conditional(piece: Any, left: int) -> tuple[str, int]:
    """Return one conditional distribution as HTML, and the cells it took."""
    kind, form = form_of(piece)
    if is_number(piece.variable) or piece.kind == "decision":
        return f"<pre>{escape(_numbers(kind, form) or repr(piece))}</pre>", 0
    size = piece.n_rows * len(piece.variable)
    if piece.n_rows > MOST_ROWS or size > left:
        return f"<p>{kind.capitalize()} of {piece.n_rows:,} rows and {len(piece.variable)} states.</p>", 0
    labels = product(*(state_labels(p.states) for p in piece.parents))
    rows = piece.values.reshape(-1, len(piece.variable)).tolist()
    body = [[*states, *(f"{x:.6g}" for x in row)] for states, row in zip(labels, rows, strict=True)]
    head = [*(p.name for p in piece.parents), *state_labels(piece.variable.states)]
    return _table(head, body, len(piece.parents)), size


def _numbers(kind: str, form: Mapping[str, Any] | None) -> str:
    """Write linear Gaussians as equations, one a row of the discrete parents."""
    if kind != "linear-gaussian" or form is None:
        return ""
    lines = []
    for row in form["rows"]:
        terms = [f"{row['bias']:.6g}", *(f"{w:.6g} {name}" for name, w in row["weights"].items())]
        lines.append(f"Normal({' + '.join(terms)}, variance {row['variance']:.6g})")
    return "\n".join(lines)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], labels: int) -> str:
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    told = "".join(
        "<tr>"
        + "".join(
            f'<th scope="row">{escape(c)}</th>' if k < labels else f"<td>{escape(c)}</td>"
            for k, c in enumerate(row)
        )
        + "</tr>"
        for row in rows
    )
    return f'<div class="mk-scroll"><table class="mk-table"><thead><tr>{top}</tr></thead><tbody>{told}</tbody></table></div>'


def _folded(title: str, inside: str) -> str:
    return f"<details><summary>{escape(title)}</summary>{inside}</details>"


def _provenance(answer: messages.Marginals, source: str | None, when: str) -> str:
    info = answer.info
    facts = {
        "Answered by": f"{info.engine}, {'exact' if info.exact else 'approximate'}"
        + ("" if info.converged else ", not converged")
        + (f", error about {info.error:.2g}" if info.error else ""),
        "ln P(findings)": "–" if answer.log_evidence is None else f"{answer.log_evidence:.6f}",
        "Note": info.note,
        "Model file": source or "",
        "Written": f"{when} by markovia {__version__}",
    }
    rows = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items() if v)
    return f'<dl class="mk-keys">{rows}</dl>'
