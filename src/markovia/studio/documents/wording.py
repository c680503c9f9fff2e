"""Advice of the library in the words of the page: who clicks, or sends JSON, writes no Python."""

import re

ADVICE = (
    (r"; use replace\(\), fill\('uniform'\) or fill\('random'\)", "; give each a table, or learn the parameters from data"),
    (r"; use replace\(\) to change it", "; choose another name"),
    (r", or say normalise=True", ", or normalise the rows"),
    (r"; say it with format=", "; give the file a suffix that says its format"),
    (r", or say format=", ", or give the file a suffix that says its format"),
    (r"(?:leave it|leave one of them) out with names=", "leave it out under Columns"),
    (r"name it in continuous=", "read it as numbers under Columns"),
    (r"choose them with names=", "choose them under Columns"),
    (r", or use method='([\w-]+)'", r", or use the method \1"),
    (r"leave the others out with missing='drop'", "leave such rows out"),
    (r"; (?:if it is never observed|if it was not recorded), say latent=\['[^']*'\]", "; give the table that column"),
    (r"; say latent=\['[^']*'\] if it is never observed", "; leave it out of the graph if it is never observed"),
)  # fmt: skip
"""Pairs of a pattern in an error and what stands for it."""


def in_page_words(sentence: str) -> str:
    """Return an error as one line that names no function and no keyword of Python.

    Examples
    --------
    >>> in_page_words("the row sums to 1.1; it must sum to 1, or say normalise=True")
    'the row sums to 1.1; it must sum to 1, or normalise the rows'
    """
    said = " ".join(sentence.split())
    for pattern, words in ADVICE:
        said = re.sub(pattern, words, said)
    return said
