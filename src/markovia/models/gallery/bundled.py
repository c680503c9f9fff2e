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
BUNDLED = {
    "asia": ("BayesianNetwork", 8), "cancer": ("BayesianNetwork", 5), "chain-crf": ("MarkovNetwork", 3),
    "cycle-with-tail": ("MarkovNetwork", 5), "dishonest-casino": ("BayesianNetwork", 20),
    "earthquake": ("BayesianNetwork", 5), "eight-nodes": ("BayesianNetwork", 8), "misconception": ("MarkovNetwork", 4),
    "monty-hall": ("BayesianNetwork", 3), "pixel-grid": ("MarkovNetwork", 9), "rain-chain": ("MarkovNetwork", 28),
    "six-spins": ("MarkovNetwork", 6), "sprinkler": ("BayesianNetwork", 4), "student": ("BayesianNetwork", 5),
    "three-chain": ("MarkovNetwork", 3), "three-step-hmm": ("BayesianNetwork", 6), "wet-grass": ("BayesianNetwork", 3),
}  # fmt: skip
"""What is bundled, by name: class and number of variables, so that a list of them builds and imports nothing."""


def bundled_names() -> list[str]:
    """Return the names of the bundled models, with dashes.

    Examples
    --------
    >>> bundled_names()[:2]
    ['asia', 'cancer']
    """
    return list(BUNDLED)


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
    if name in BUNDLED:
        return examples.get(word)
    if name in CLASSICS:
        raise UnknownFormat(
            f"{word!r} is not bundled; download {name}.bif.gz from the Bayesian network repository ({REPOSITORY}) and load "
            "that file"
        )
    raise UnknownFormat(
        f"{word!r} is neither a file nor a bundled model{did_you_mean(word, BUNDLED)}; mk.examples.names() lists "
        "the bundled ones, and the name of a file ends in the suffix of its format"
    )
