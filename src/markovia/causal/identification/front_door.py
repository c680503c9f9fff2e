"""The front door: an effect found through what carries it, though treatment and outcome share hidden causes.

A set of mediators Z meets the front-door criterion for the effect of x on y if it intercepts every directed path from
x to y, no back-door path from x to Z is open, and x blocks every back-door path from Z to y. Then

    P(y | do(x)) = sum over z of P(z | x) sum over x' of P(y | x', z) P(x').

The second and third condition are kept by unions, so that among any candidates there is a largest set that meets
them; a front-door set exists if and only if that one intercepts all directed paths. Each further question is a
handful of such searches.

References: Pearl, *Causal diagrams for empirical research*, Biometrika 82 (1995); Jeong, Tian and Bareinboim,
*Finding and listing front-door adjustment sets*, NeurIPS (2022); Wienöbst, van der Zander and Liskiewicz,
*Linear-time algorithms for front-door adjustment in causal graphs*, AAAI (2024).
"""

from collections.abc import Iterator
from itertools import islice
from typing import Literal

from markovia.causal.identification.adjustment import sets_between
from markovia.causal.problem import Problem
from markovia.errors import InvalidArgument
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import closed, members
from markovia.graphs.kinds.named import Names, as_names


def front_door_sets(
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    kind: Literal["minimal", "all"] = "minimal",
    latent: Names = (),
    required: Names = (),
    forbidden: Names = (),
    limit: int | None = None,
) -> list[tuple[str, ...]]:
    """List the sets of mediators that meet the front-door criterion, smallest first.

    Parameters
    ----------
    graph
        A DAG, a graph with bidirected edges, a text or a model.
    treatment, outcome
        One name or several.
    kind
        "minimal" sets, of which no member can be left out, or "all", which come with polynomial delay.
    latent
        Variables that are not observed.
    required, forbidden
        Variables that every set has, or that none may have.
    limit
        At most so many sets; one is always found in polynomial time.

    Returns
    -------
    list of tuple of str
        Empty if there is none; the empty set alone if the treatment has no effect on the outcome.

    Examples
    --------
    >>> front_door_sets("smoke -> tar -> cancer; smoke <-> cancer", "smoke", "cancer")
    [('tar',)]
    >>> front_door_sets("x -> a -> y; x -> b -> y; x <-> y; b <-> y", "x", "y")
    []
    """
    problem = Problem.of(graph, treatment, outcome, latent=latent)
    door = _FrontDoor(problem)
    must, never = door.mask(problem, required, "required"), door.mask(problem, forbidden, "forbidden")
    if kind not in ("minimal", "all"):
        raise InvalidArgument(f"kind is 'minimal' or 'all', got {kind!r}")
    allowed = door.graph.everything & ~(never | door.x | door.y)
    found = (door.minimal if kind == "minimal" else door.all)(allowed, must)
    sets = sorted((members(mask) for mask in islice(found, limit)), key=lambda s: (len(s), s))
    return [tuple(door.graph.names[i] for i in numbers) for numbers in sets]


def is_front_door_set(
    graph: object, treatment: Names, outcome: Names, mediators: Names, *, latent: Names = ()
) -> bool:
    """Say whether a set of mediators meets the front-door criterion.

    Parameters
    ----------
    graph, treatment, outcome, latent
        As for `front_door_sets`.
    mediators
        The set in question.

    Examples
    --------
    >>> is_front_door_set("x -> z -> y; x <-> y", "x", "y", "z")
    True
    >>> is_front_door_set("x -> z -> y; x <-> y; x <-> z", "x", "y", "z")
    False
    """
    problem = Problem.of(graph, treatment, outcome, latent=latent)
    door = _FrontDoor(problem)
    asked = door.mask(problem, mediators, "a mediator")
    return door.largest(asked) == asked and door.intercepts(asked)


class _FrontDoor:
    """The criterion over masks of nodes."""

    def __init__(self, problem: Problem) -> None:
        self.graph: Admg = problem.admg
        self.x, self.y = self.graph.mask(problem.treatment), self.graph.mask(problem.outcome)
        self.behind = self.graph.reached(self.x, out_of=self.x)  # back-door paths from x are open to these

    def mask(self, problem: Problem, names: Names, role: str) -> int:
        found = self.graph.mask(problem.graph._named(problem.graph._numbers(as_names(names))))
        if taken := self.graph.named(found & (self.x | self.y)):
            raise InvalidArgument(f"{taken[0]!r} is {role} and also treatment or outcome; leave it out there")
        return found

    def largest(self, candidates: int) -> int:
        """Return the largest subset of the candidates with no open back-door path from x or, given x, to y."""
        found = candidates & ~self.behind
        while spoilt := found & self.graph.reached(self.y, self.x, out_of=found):
            found &= ~spoilt
        return found

    def intercepts(self, mask: int) -> bool:
        return not closed(self.x, self.graph.children, ~mask) & self.y

    def within(self, candidates: int, required: int) -> int | None:
        """Return the largest front-door set among the candidates, or None if none has what is required."""
        found = self.largest(candidates)
        return None if required & ~found or not self.intercepts(found) else found

    def all(self, allowed: int, required: int) -> Iterator[int]:
        """Branch on each node, without it first; a branch is entered only if it holds a front-door set."""
        return sets_between(allowed, required, lambda free, chosen: self.within(free | chosen, chosen))

    def minimal(self, allowed: int, required: int) -> Iterator[int]:
        """Yield the minimal sets: of each that is found, any other lacks a member, which is left out in turn."""
        known: list[int] = []
        stack, seen = [0], {0}
        while stack:
            without = stack.pop()
            found = next((mask for mask in known if not mask & without), None)
            if found is None:
                found = self._one_minimal(allowed & ~without, required)
                if found is None:
                    continue
                known.append(found)
                yield found
            for node in members(found & ~required):
                more = without | 1 << node
                if more not in seen:
                    seen.add(more)
                    stack.append(more)

    def _one_minimal(self, allowed: int, required: int) -> int | None:
        on_paths = closed(self.x, self.graph.children) & closed(self.y, self.graph.parents)
        few = self.within(allowed & on_paths | required, required)
        found = self.within(allowed, required) if few is None else few
        for node in members(found & ~required) if found is not None else ():
            assert found is not None
            if found >> node & 1 and (fewer := self.within(found & ~(1 << node), required)) is not None:
                found = fewer
        return found
