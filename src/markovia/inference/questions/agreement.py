"""The same question to independent engines, and whether they agree.

Method: ask each, take the largest difference of any probability, and that of the log evidence relative to its size.
Cost: that of the engines. Use it where an answer matters, and to check a new engine.
"""

from collections.abc import Callable, Sequence

import numpy as np

from markovia.errors import TooLarge
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
        The largest difference between two answers, over all probabilities.
    log_evidence_difference
        The largest difference of the log evidence, relative to its size where that is above one.
    tolerance
        What counts as agreement.
    """

    def __init__(self, answers: Sequence[Posterior], tolerance: float) -> None:
        self.answers = tuple(answers)
        self.tolerance = tolerance
        first = answers[0]
        self.difference = max(
            float(np.abs(a.factor().transpose(first.names).values - first.values).max()) for a in answers
        )
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


def second_opinion(ask: Callable[[str], Posterior], first: str) -> Posterior:
    """Return the answer of another exact engine than the first, the first in order of preference that can.

    Raises
    ------
    TooLarge
        If no other exact engine can; the message says why for each.
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
    raise TooLarge(
        f"{first} answered, but no second exact engine fits the budget, so there is nothing to compare with. "
        + "; ".join(reasons)
    )
