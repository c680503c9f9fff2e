"""Visible edges: directed edges of a partial ancestral graph that no hidden common cause accompanies.

a --> b says that a causes b, and still allows a hidden common cause of the two. It is excluded where some c that is
separated from b has an edge into a, or a path into a on which every inner node is a collider and a parent of b. For
such an edge, the effect of a on b is the dependence that is seen, given the right adjustment. The rule is for data that
were not selected.

Paper: Zhang, *Causal reasoning with ancestral graphs*, JMLR 9 (2008), definition 8. Cost: one search among the parents
of b for each directed edge.
"""

import numpy as np

from markovia.structure.constraint.ancestral_rules import ARROW, TAIL, Ancestral


def visible_edges(pag: Ancestral) -> list[tuple[int, int]]:
    """List the edges a --> b that are visible, as (a, b).

    Examples
    --------
    >>> import markovia as mk
    >>> found = mk.learn_structure(method="fci", test=mk.graphs.DAG([("a", "c"), ("b", "c"), ("c", "d")]))
    >>> found.details.visible
    [('c', 'd')]
    """
    marks = pag.marks
    tails, heads = np.nonzero((marks == ARROW) & (marks.T == TAIL))
    return [(a, b) for a, b in zip(tails.tolist(), heads.tolist(), strict=True) if _visible(pag, a, b)]


def _visible(pag: Ancestral, a: int, b: int) -> bool:
    marks = pag.marks
    parents = (marks[:, b] == ARROW) & (marks[b] == TAIL)
    seen = {a}
    queue = [a]
    for at in queue:
        into = marks[:, at] == ARROW
        if (into & pag.apart[b]).any():
            return True
        for onward in np.flatnonzero(into & parents & (marks[at] == ARROW)).tolist():
            if onward not in seen:
                seen.add(onward)
                queue.append(onward)
    return False
