"""Boolean satisfiability as a Bayesian network: the formula is satisfiable exactly if P(s = 1) > 0.

Every variable is a fair coin, every clause a deterministic node, and `s` says whether all clauses hold; so
P(s = 1) is the share of assignments that satisfy the formula. This is why exact inference is NP-hard (and
#P-hard): Cooper, "The computational complexity of probabilistic inference using Bayesian belief networks",
Artificial Intelligence 42 (1990).
"""

from collections.abc import Iterable, Sequence
from typing import Literal

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.local_models.logical import AndGate
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.checks import check_choice
from markovia.runtime.seeds import generator


def three_sat(
    clauses: Iterable[Sequence[int]],
    encoding: Literal["single", "chain"] = "chain",
    *,
    n: int | None = None,
) -> BayesianNetwork:
    """Build the network of a formula in conjunctive normal form.

    Parameters
    ----------
    clauses
        Each clause has up to three literals: i stands for variable `x{i}` and -i for its negation, counted
        from 1 (the DIMACS convention).
    encoding
        "single": one node `s` below all K clauses, whose table would have 2^K rows; "chain": clauses are
        joined one by one through `s1, s2, ...`, and every table is small. Both give the same P(s = 1).
    n
        The number of variables, if more than the clauses mention.

    Returns
    -------
    BayesianNetwork
        Variables `x1 ... xn`, clauses `c1 ... cK` and `s`, all with states 0 and 1.

    Raises
    ------
    InvalidArgument
        If a clause is empty, longer than three, or contains 0.

    Examples
    --------
    >>> bn = three_sat([(1, -2, -3), (2, 3, -4), (4, -1, -2)])
    >>> bn.query("s")[1]
    0.625
    """
    check_choice("encoding", encoding, ("single", "chain"))
    listed = [tuple(clause) for clause in clauses]
    for clause in listed:
        if not 1 <= len(clause) <= 3 or not all(isinstance(i, int | np.integer) and i for i in clause):
            raise InvalidArgument(
                f"a clause is one to three literals i or -i with i counted from 1, not {clause!r}"
            )
    most = max((abs(i) for clause in listed for i in clause), default=0)
    if n is not None and n < most:
        raise InvalidArgument(f"the clauses mention x{most}, so n= is at least {most}, not {n}")
    x = {i: Variable(f"x{i}", 2) for i in range(1, (most if n is None else n) + 1)}
    nodes: list[Conditional] = [ConditionalTable.of(v, (), np.array([0.5, 0.5])) for v in x.values()]
    truths = [Variable(f"c{j}", 2) for j in range(1, len(listed) + 1)]
    nodes += [_clause(x, clause, c) for clause, c in zip(listed, truths, strict=True)]
    everything = Variable("s", 2)
    if encoding == "chain" and len(truths) > 2:
        so_far = truths[0]
        for j, c in enumerate(truths[1:-1], start=1):
            together = Variable(f"s{j}", 2)
            nodes.append(AndGate().bind(together, (so_far, c)))
            so_far = together
        nodes.append(AndGate().bind(everything, (so_far, truths[-1])))
    else:
        nodes.append(AndGate().bind(everything, tuple(truths)))
    return BayesianNetwork.from_conditionals(nodes, name="three_sat")


def random_clauses(
    n: int, n_clauses: int | None = None, *, seed: int | np.random.Generator | None = None
) -> list[tuple[int, int, int]]:
    """Draw a random 3-SAT formula: clauses of three different variables, each negated or not by a fair coin.

    Parameters
    ----------
    n
        The number of variables, at least three.
    n_clauses
        The number of clauses; 4.26 n by default, where half of the large formulas are satisfiable (Mitchell, Selman and
        Levesque, 1992).
    seed
        An integer or a NumPy generator.

    Examples
    --------
    >>> clauses = random_clauses(10, seed=0)
    >>> len(clauses), 0.0 <= three_sat(clauses).query("s")[1] <= 1.0
    (43, True)
    """
    if n < 3:
        raise InvalidArgument(f"a clause needs three different variables, so n= is at least 3, not {n}")
    count = round(4.26 * n) if n_clauses is None else n_clauses
    if count < 0:
        raise InvalidArgument(f"n_clauses= is a number of clauses, not {count}")
    rng = generator(seed)
    drawn = []
    for _ in range(count):
        a, b, c = (np.sort(rng.choice(n, size=3, replace=False)) + 1) * rng.choice([-1, 1], size=3)
        drawn.append((int(a), int(b), int(c)))
    return drawn


def _clause(x: dict[int, Variable], clause: Sequence[int], truth: Variable) -> ConditionalTable:
    # a literal may be repeated, a parent may not
    parents = list(dict.fromkeys(abs(i) for i in clause))
    values = np.empty([2] * len(parents) + [2])
    for states in np.ndindex(*[2] * len(parents)):
        holds = any(states[parents.index(abs(i))] == (i > 0) for i in clause)
        values[states] = [not holds, holds]
    return ConditionalTable(truth, [x[i] for i in parents], values)
