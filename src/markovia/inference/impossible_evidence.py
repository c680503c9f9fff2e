"""Which findings contradict each other when the evidence has probability zero.

Method: QuickXplain (Junker 2004). Halves of the findings are tried with what is already known to be needed; what
remains is minimal: without any one of its findings the evidence is possible. Cost: for a conflict of k findings out of
n, about `2 k log2(n / k) + 2 k` computations of a mass.
"""

from collections.abc import Callable

import numpy as np

from markovia.errors import ImpossibleEvidence
from markovia.inference.problem import Problem


def impossible(
    problem: Problem, log_mass: Callable[[Problem], float], row: object = None
) -> ImpossibleEvidence:
    """Return the error that names a minimal set of findings which together have probability zero."""

    def contradicts(names: list[str]) -> bool:
        chosen = {n: problem.findings[n] for n in names}
        return bool(np.isneginf(log_mass(problem.with_findings(chosen))))

    def needed(base: list[str], just_added: bool, names: list[str]) -> list[str]:
        if just_added and contradicts(base):
            return []
        if len(names) == 1:
            return names
        half = len(names) // 2
        first, second = names[:half], names[half:]
        from_second = needed([*base, *first], bool(first), second)
        return needed([*base, *from_second], bool(from_second), first) + from_second

    names = list(problem.findings)
    conflict = [] if not names or contradicts([]) else needed([], False, names)
    return ImpossibleEvidence({n: problem.findings[n].said for n in names if n in set(conflict)}, row)
