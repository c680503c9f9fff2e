"""How results look: aligned text, and in a notebook one kind of table and one kind of picture for all of them."""

from collections.abc import Iterable, Sequence
from html import escape

from markovia.runtime import ports

SHOWN = 200
"""Rows of a table that are shown."""
MOST_DRAWN = 100
"""Nodes of a graph above which it is not drawn unasked."""


def aligned(header: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return aligned lines; the first `left` columns are text, the others numbers.

    Examples
    --------
    >>> print(aligned(["test", "nats"], [["xray", "0.2"], ["dysp", "0.05"]]))
    test  nats
    xray   0.2
    dysp  0.05
    """
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[c]) for line in lines) for c in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if c < left else cell.rjust(w)
            for c, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", note: str = ""
) -> str:
    """Return a table as HTML, shortened after 200 rows.

    Examples
    --------
    >>> html_table(["x"], [["<1"]], note="exact")
    '<table><thead><tr><th>x</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table><small>exact</small>'
    """
    listed = list(rows)
    body = ["".join(f"<td>{escape(str(cell))}</td>" for cell in row) for row in listed[:SHOWN]]
    if len(listed) > SHOWN:
        body.append(f'<td colspan="{len(header) or 1}">... and {len(listed) - SHOWN:,} more</td>')
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    return "".join(
        [
            f"<b>{escape(title)}</b>" if title else "",
            "<table>",
            f"<thead><tr>{head}</tr></thead>" if head else "",
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>",
            f"<small>{escape(note)}</small>" if note else "",
        ]
    )


def html_picture(drawn: object, nodes: int, note: str) -> str:
    """Return the picture of a graph or model as SVG, with a line below it; only the line if it is empty or large."""
    picture = ports.call("picture", drawn) if 0 < nodes <= MOST_DRAWN else ""
    return f"{picture}<div><small>{escape(note)}</small></div>"
