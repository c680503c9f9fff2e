"""The semi-graphoid closure: which independencies follow from others, whatever the distribution.

The axioms, for disjoint sets (Dawid 1979; Pearl and Paz 1987):

    symmetry        x ⊥ y | z                          =>  y ⊥ x | z
    decomposition   x ⊥ y∪w | z                        =>  x ⊥ y | z
    weak union      x ⊥ y∪w | z                        =>  x ⊥ y | z∪w
    contraction     x ⊥ y | z   and  x ⊥ w | z∪y       =>  x ⊥ y∪w | z
    intersection    x ⊥ y | z∪w and  x ⊥ w | z∪y       =>  x ⊥ y∪w | z     (positive distributions)
    composition     x ⊥ y | z   and  x ⊥ w | z         =>  x ⊥ y∪w | z     (Gaussians, graphs)

The axioms are sound but not complete for probability (Studený 1992): a statement outside the closure may
still hold in every distribution that satisfies the given ones. Sets are bit masks inside; the closure can
have 4^n / 2 statements over n names, so it is for small problems.
"""

from collections.abc import Iterable, Iterator

from markovia.errors import TooLarge
from markovia.graphs.separation.independencies import Independence

LARGEST_UNIVERSE = 12

Triple = tuple[int, int, int]


def closure(
    statements: Iterable[Independence], *, intersection: bool = False, composition: bool = False
) -> set[Independence]:
    """Derive everything that follows from some independence statements.

    Parameters
    ----------
    statements
        Independence statements over at most 12 names.
    intersection
        Whether to use the intersection axiom too, which holds in positive distributions.
    composition
        Whether to use the composition axiom too, which holds in Gaussian distributions.

    Returns
    -------
    set of Independence
        The closure, with the statements themselves.

    Raises
    ------
    TooLarge
        If there are more than 12 names.

    Examples
    --------
    >>> given = [Independence("x", "y", "z"), Independence("x", "w", ["y", "z"])]
    >>> for statement in sorted(map(str, closure(given))):
    ...     print(statement)
    w ⊥ x | z
    w ⊥ x | {y, z}
    x ⊥ y | z
    x ⊥ y | {w, z}
    {w, y} ⊥ x | z
    """
    given = list(statements)
    names = sorted(frozenset().union(*(s.names for s in given)))
    if len(names) > LARGEST_UNIVERSE:
        raise TooLarge(f"the closure over {len(names)} names is over the limit of {LARGEST_UNIVERSE} names")
    bit = {name: 1 << i for i, name in enumerate(names)}

    def mask(part: frozenset[str]) -> int:
        return sum(bit[name] for name in part)

    def members(part: int) -> list[str]:
        return [name for name in names if bit[name] & part]

    known: set[Triple] = set()
    queue: list[Triple] = []

    def learn(x: int, y: int, z: int) -> None:
        for triple in ((x, y, z), (y, x, z)):
            if triple not in known:
                known.add(triple)
                queue.append(triple)

    for statement in given:
        learn(mask(statement.x), mask(statement.y), mask(statement.given))
    partners: dict[tuple[int, int], list[int]] = {}  # all y with x ⊥ y | z, for each (x, z)
    for x, y, z in queue:
        partners.setdefault((x, z), []).append(y)
        for part in _proper_subsets(y):
            learn(x, part, z)
            learn(x, part, z | (y & ~part))
        for w in partners.get((x, z | y), ()):
            learn(x, y | w, z)
        for w in _subsets(z):
            if (x, w, z & ~w) in known:
                learn(x, y | w, z & ~w)
            if intersection and (x, w, (z & ~w) | y) in known:
                learn(x, y | w, z & ~w)
        if composition:
            for w in list(partners[x, z]):
                learn(x, y | w, z)
    return {Independence(members(x), members(y), members(z)) for x, y, z in known if x < y}


def implies(
    statements: Iterable[Independence],
    query: Independence,
    *,
    intersection: bool = False,
    composition: bool = False,
) -> bool:
    """Decide whether a statement follows from others by the semi-graphoid axioms.

    Parameters
    ----------
    statements
        What is known.
    query
        What is asked.
    intersection, composition
        As for `closure`.

    Examples
    --------
    >>> implies([Independence("x", "y")], Independence("x", "y", given="z"))
    False
    >>> implies([Independence("x", ["y", "z"])], Independence("x", "y", given="z"))
    True
    """
    return query in closure(statements, intersection=intersection, composition=composition)


def _subsets(mask: int) -> Iterator[int]:
    subset = mask
    while subset:
        yield subset
        subset = (subset - 1) & mask


def _proper_subsets(mask: int) -> Iterator[int]:
    subset = (mask - 1) & mask
    while subset:
        yield subset
        subset = (subset - 1) & mask
