"""The same question to independent engines, and whether they agree.

Method: ask each, take the largest difference of any probability, of any mean and standard deviation of a number relative to
its standard deviation, and that of the log evidence relative to its size.
Cost: that of the engines. Use it where an answer matters, and to check a new engine.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from markovia.errors import TooLarge, Unanswered, UnsupportedModel
from markovia.inference.engine import engine_names, get_engine
from markovia.inference.posterior import Posterior
from markovia.runtime.shown import InNotebooks

PREFERENCE = ("variable-elimination", "junction-tree", "enumeration", "conditioning")


class Agreement(InNotebooks):
    """Answers of independent engines to one question.

    Attributes
    ----------
    answers
        One posterior an engine.
    difference
        The largest difference from the first answer, over all probabilities; of numbers, of their means and standard
        deviations in units of the standard deviation.
    log_evidence_difference
        The largest difference of the log evidence, relative to its size where that is above one.
    tolerance
        What counts as agreement.
    """

    def __init__(self, answers: Sequence[Posterior], tolerance: float) -> None:
        self.answers = tuple(answers)
        self.tolerance = tolerance
        self.difference = max(_difference(answers[0], a) for a in answers)
        logs = [a.info.log_evidence for a in answers if a.info.log_evidence is not None]
        self.log_evidence_difference = (max(logs) - min(logs)) / max(1.0, *map(abs, logs)) if logs else 0.0

    @property
    def agree(self) -> bool:
        """Whether both differences are within the tolerance."""
        return self.difference <= self.tolerance and self.log_evidence_difference <= self.tolerance

    @property
    def engines(self) -> tuple[str, ...]:
        """The names of the engines that answered."""
        return tuple(a.info.engine for a in self.answers)

    def __bool__(self) -> bool:
        return self.agree

    def __str__(self) -> str:
        verdict = "agree" if self.agree else "DISAGREE"
        lines = [
            f"{' and '.join(self.engines)} {verdict}: largest difference {self.difference:.3g}, "
            f"log evidence {self.log_evidence_difference:.3g}, tolerance {self.tolerance:.3g}"
        ]
        for answer in self.answers:
            lines += [f"{answer.info.engine}:", str(answer)]
        return "\n".join(lines)

    __repr__ = __str__


def _difference(first: Any, other: Any) -> float:
    """Return how far two posteriors of the same variables are apart: tables, draws or closed forms."""
    if hasattr(first, "factor"):
        return float(np.abs(other.factor().transpose(first.names).values - first.values).max())
    if hasattr(first, "probabilities"):  # states on plates
        return float(np.abs(other.probabilities - first.probabilities).max())
    worst = 0.0
    for name in first.names:
        one, two = (post[name] if len(post.names) > 1 else post for post in (first, other))
        if hasattr(one, "factor") or hasattr(one, "probabilities"):
            worst = max(worst, _difference(one, two))
            continue
        scale = np.where(np.asarray(one.sd()) > 0.0, one.sd(), 1.0)  # of a number that is certain, itself
        gaps = [np.abs(np.subtract(one.mean(), two.mean())), np.abs(np.subtract(one.sd(), two.sd()))]
        worst = max(worst, *(float(np.max(gap / scale)) for gap in gaps))
    return worst


def second_opinion(ask: Callable[[str], Posterior], first: str) -> Posterior:
    """Return the answer of another exact engine than the first, the first in order of preference that can.

    Raises
    ------
    TooLarge, Unanswered
        If no other exact engine can, because of its cost (the message says why for each) or at all.
    """
    known = [n for n in engine_names() if n != "auto"]
    ranked = [*(n for n in PREFERENCE if n in known), *(n for n in known if n not in PREFERENCE)]
    reasons = []
    for name in ranked:
        if name == first or not get_engine(name).exact:
            continue
        try:
            return ask(name)
        except TooLarge as error:
            reasons.append(f"{name}: {error}")
        except (UnsupportedModel, Unanswered):  # this model is not for that engine
            continue
    if reasons:
        raise TooLarge(
            f"{first} answered, but no second exact engine fits the budget, so there is nothing to compare with. "
            + "; ".join(reasons)
        )
    raise Unanswered(
        f"{first} answered, and no second exact engine treats this model; name others, and how far they may be apart: "
        "engines=[...], tolerance=0.1"
    )
