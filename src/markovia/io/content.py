"""Which format a text is in, by how it begins; for streams, which have no name with a suffix."""

import re

_BLANK = re.compile(r"(?:\s++|//[^\n]*+|/\*.*?\*/|[%#][^\n]*+|<\?.*?\?>|<!--.*?-->|<![^\[>]*+>)*", re.DOTALL)
_BEGINNINGS = (
    ("json", re.compile(r"\{")),
    ("xdsl", re.compile(r"<\s*smile\b", re.IGNORECASE)),
    ("xmlbif", re.compile(r"<\s*bif\b", re.IGNORECASE)),
    ("uai", re.compile(r"(?:MARKOV|BAYES)\b")),
    ("dsc", re.compile(r"(?:belief|diagnostic)\s+network\b")),
    ("dne", re.compile(r"bnet\b")),
    ("net", re.compile(r"(?:net\s*\{|class\b|node\b)")),
    ("bif", re.compile(r"(?:network|variable|probability)\b")),
    ("dagitty", re.compile(r"(?:dag|pdag|mag|pag|graph|digraph)\s*(?:\w+\s*)?\{")),
    ("pomdp", re.compile(r"(?:discount|values|states|actions|observations)\s*:")),
    ("lavaan", re.compile(r"[\w.]+\s*(?:=~|~~|~)")),
)


def format_of(text: str) -> str | None:
    r"""Return the name of the format that a text begins like, or None.

    Examples
    --------
    >>> format_of("// a comment\nnetwork asia { }"), format_of("MARKOV 1  2"), format_of("hello")
    ('bif', 'uai', None)
    """
    blank = _BLANK.match(text)
    start = blank.end() if blank else 0
    return next((name for name, begins in _BEGINNINGS if begins.match(text, start)), None)
