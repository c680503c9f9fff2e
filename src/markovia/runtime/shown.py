"""How results look: aligned text, and in a notebook one kind of table and one kind of picture for all of them."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from textwrap import shorten

from markovia.runtime import ports

SHOWN = 200
"""Rows of a table that are shown."""
FOLDED = 30
"""Lines of a table or text above which it is folded."""
LONGEST = 100
"""Letters of a setting's value that are shown."""
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


class InNotebooks:
    """What a notebook shows as its printed text, folded where that is long."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return html_text(str(self))


class Share(float):
    """A number from 0 to 1 that a table in a notebook shows as a bar."""


def html_text(text: str) -> str:
    """Return a printed text as HTML; of a long one the first line is shown and the others unfold.

    Examples
    --------
    >>> html_text("a < b")
    '<pre>a &lt; b</pre>'
    """
    lines = text.splitlines()
    if len(lines) <= FOLDED:
        return f"<pre>{escape(text)}</pre>"
    rest = "\n".join(lines[1:])
    return f"<details><summary>{escape(lines[0])}</summary><pre>{escape(rest)}</pre></details>"


def html_table(
    header: Sequence[str], rows: Iterable[Sequence[object]], *, title: str = "", note: str = ""
) -> str:
    """Return a table as HTML, folded where it is long and shortened after 200 rows; a `Share` is a bar.

    Examples
    --------
    >>> html_table(["x"], [["<1"]], note="exact")
    '<table><thead><tr><th>x</th></tr></thead><tbody><tr><td>&lt;1</td></tr></tbody></table><small>exact</small>'
    """
    listed = list(rows)
    body = ["".join(map(_cell, row)) for row in listed[:SHOWN]]
    if len(listed) > SHOWN:
        body.append(f'<td colspan="{len(header) or 1}">... and {len(listed) - SHOWN:,} more</td>')
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    table = "".join(
        [
            "<table>",
            f"<thead><tr>{head}</tr></thead>" if head else "",
            f"<tbody>{''.join(f'<tr>{row}</tr>' for row in body)}</tbody></table>",
        ]
    )
    if len(listed) > FOLDED:
        table = f"<details><summary>{len(listed):,} rows</summary>{table}</details>"
    above, below = (
        (f"<b>{escape(title)}</b>" if title else ""),
        (f"<small>{escape(note)}</small>" if note else ""),
    )
    return f"{above}{table}{below}"


def html_settings(name: str, settings: Mapping[str, object], note: str = "") -> str:
    """Return named settings as a table, values as they are printed but not longer than a line.

    Examples
    --------
    >>> html_settings("Line", {"slope": 2.0})
    '<b>Line</b><table><tbody><tr><td>slope</td><td>2.0</td></tr></tbody></table>'
    """
    rows = [[key, shorten(repr(value), LONGEST, placeholder=" ...")] for key, value in settings.items()]
    return html_table([], rows, title=name, note=note)


def _cell(cell: object) -> str:
    if isinstance(cell, Share):
        return f'<td><meter min="0" max="1" value="{float(cell):.6g}"></meter></td>'
    return f"<td>{escape(str(cell))}</td>"


def html_picture(drawn: object, nodes: int, note: str) -> str:
    """Return the picture of a graph or model as SVG, with a line below it; only the line if it is empty or large."""
    picture = ports.call("picture", drawn) if 0 < nodes <= MOST_DRAWN else ""
    below = f"<div><small>{escape(note)}</small></div>" if note else ""
    return f"{picture}{below}"
