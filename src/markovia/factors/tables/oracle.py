"""A joint table as an oracle of conditional independence.

Graph algorithms that look for I-maps ask yes-or-no questions (`markovia.graphs.separation.imaps`); here a distribution
answers them by its numbers. Cost of a question: linear in the table.
"""

from markovia.errors import InvalidArgument
from markovia.factors.tables.factor import Factor
from markovia.graphs.separation.imaps import Oracle


def joint_oracle(joint: Factor, tolerance: float = 1e-9) -> Oracle:
    """Return a function that says whether x and y are independent given z in a joint distribution.

    Parameters
    ----------
    joint
        The distribution, normalised or not.
    tolerance
        By which share `P(x,y,z) P(z)` and `P(x,z) P(y,z)` may differ in any entry.

    Returns
    -------
    Oracle
        Called as `oracle(x, y, given)` with frozensets of names. Repeated questions are answered from memory.

    Raises
    ------
    InvalidTable
        If the joint has no mass.
    InvalidArgument
        If the tolerance is negative.

    Examples
    --------
    >>> xor = Factor(["a", "b", "c"], [[[1, 0], [0, 1]], [[0, 1], [1, 0]]])
    >>> oracle = joint_oracle(xor)
    >>> oracle(frozenset("a"), frozenset("b"), frozenset()), oracle(frozenset("a"), frozenset("b"), frozenset("c"))
    (True, False)
    """
    if not tolerance >= 0:
        raise InvalidArgument(f"the tolerance is not negative, got {tolerance}")
    p = joint.normalize()
    known: dict[tuple[frozenset[frozenset[str]], frozenset[str]], bool] = {}

    def oracle(x: frozenset[str], y: frozenset[str], given: frozenset[str]) -> bool:
        question = (frozenset([x, y]), given)
        if question not in known:
            known[question] = p.independent(sorted(x), sorted(y), sorted(given), tolerance=tolerance)
        return known[question]

    return oracle
