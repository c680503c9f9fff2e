"""Names that are loaded without a file: the bundled models. For the classics that are not bundled, where they are."""

from typing import TYPE_CHECKING

from markovia.errors import UnknownFormat, did_you_mean

if TYPE_CHECKING:
    from markovia.models.graphical.model import Model

REPOSITORY = "https://www.bnlearn.com/bnrepository"
CLASSICS = (
    "alarm", "andes", "barley", "child", "diabetes", "hailfinder", "hepar2", "insurance", "link", "mildew", "munin",
    "munin1", "munin2", "munin3", "munin4", "pathfinder", "pigs", "sachs", "survey", "water", "win95pts",
)  # fmt: skip
"""Networks of the repository whose licence is its own, so that they are not bundled."""


def bundled_names() -> list[str]:
    """Return the names of the bundled models, with dashes.

    Examples
    --------
    >>> bundled_names()[:2]
    ['asia', 'cancer']
    """
    from markovia.models.gallery import examples

    return [name.replace("_", "-") for name in examples.names()]


def bundled_model(word: str) -> "Model":
    """Build a bundled model by its name, in any case and with dashes or underscores.

    Raises
    ------
    UnknownFormat
        If there is none of that name; with the nearest one, or the place where a classic is found.

    Examples
    --------
    >>> bundled_model("monty-hall").variables
    ['car', 'choice', 'opened']
    """
    from markovia.models.gallery import examples

    name = word.replace("_", "-").casefold()
    if name in bundled_names():
        return examples.get(word)
    if name in CLASSICS:
        raise UnknownFormat(
            f"{word!r} is not bundled; download {name}.bif.gz from the Bayesian network repository ({REPOSITORY}) and load "
            "that file"
        )
    raise UnknownFormat(
        f"{word!r} is neither a file nor a bundled model{did_you_mean(word, bundled_names())}; mk.examples.names() lists "
        "the bundled ones, and the name of a file ends in the suffix of its format"
    )
