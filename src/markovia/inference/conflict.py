"""Which findings contradict each other when the evidence has probability zero.

Method: a deletion filter. Drop a finding; if the rest is still impossible it was not needed. What remains is
minimal: without any one of its findings the evidence is possible. Cost: one mass computation a finding.
"""

from collections.abc import Callable

import numpy as np

from markovia.errors import ImpossibleEvidence
from markovia.inference.problem import Problem


def impossible(problem: Problem, log_mass: Callable[[Problem], float]) -> ImpossibleEvidence:
    """Return the error that names a minimal set of findings which together have probability zero."""
    needed = dict(problem.findings)
    for name in list(needed):
        without = {k: f for k, f in needed.items() if k != name}
        if np.isneginf(log_mass(problem.with_findings(without))):
            needed = without
    return ImpossibleEvidence({name: finding.said for name, finding in needed.items()})
