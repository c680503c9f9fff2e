"""Small results as text: a header and rows in aligned columns."""

from collections.abc import Sequence


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
