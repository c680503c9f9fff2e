"""Greedy equivalence search: the best of the neighbouring classes, again and again.

Method: GES searches over classes of directed graphs that state the same independencies. The forward phase inserts edges, the
backward phase deletes them (Chickering, *Optimal structure identification with greedy search*, JMLR 3, 2002), the turning
phase turns them round (Hauser and Buehlmann, JMLR 13, 2012). With a consistent score it finds the true class as the
rows become many. Cost: one row of scores for each node whose surroundings a move changes, times the cliques among its
undirected neighbours. Use it where the class of the graph is wanted, and where hill climbing sticks.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from markovia.errors import InvalidArgument
from markovia.graphs.kinds.masks import masks_of
from markovia.structure.classes_and_orders.cpdag_search import ClassSearch
from markovia.structure.scores.family_rows import FamilyRows
from markovia.structure.scores.scores import score_for
from markovia.structure.task.result import FoundGraph, SearchStep
from markovia.structure.task.task import Task

PHASES = ("forward", "backward", "turning")


@dataclass(frozen=True)
class ClassDetails:
    """The moves of each phase, how often the phases were gone through, and the families that were scored."""

    moves: dict[str, int]
    rounds: int
    families: int


def ges(task: Task, *, phases: Sequence[str] = PHASES, repeat: bool = True) -> FoundGraph:
    """Search greedily over equivalence classes.

    Knowledge is obeyed by the class as a whole: a move is made only if some member of the class it leads to has every
    required edge and no forbidden one. A pair with both directions forbidden is never joined, a required one never
    parted. The graph that is returned has the edges directed that knowledge settles, and those that follow by Meek's
    rules; it is then a part of a class rather than the whole. `max_parents` holds in every member: the largest number
    of parents is the same in all.

    Parameters
    ----------
    task
        Data, knowledge and limits.
    phases
        Which phases, in which order: "forward", "backward", "turning".
    repeat
        Whether the phases are gone through again until none of them gains.

    Returns
    -------
    Found
        A CPDAG, and the score of its members.

    Examples
    --------
    >>> import markovia as mk
    >>> data = mk.examples.sprinkler().sample(5000, seed=3)
    >>> found = mk.learn_structure(data, method="ges", required=[("cloudy", "rain")])
    >>> found.graph
    MixedGraph(['cloudy --- sprinkler', 'cloudy --> rain', 'sprinkler --> wet', 'rain --> wet'])
    """
    chosen = [phases] if isinstance(phases, str) else list(phases)
    for phase in chosen:
        if phase not in PHASES:
            raise InvalidArgument(f"phases= lists 'forward', 'backward' and 'turning', not {phase!r}")
    score = score_for(task)
    rules = task.rules
    rows = FamilyRows(score, rules.pairs)
    start = masks_of(rules.required.T)
    path: list[SearchStep] = []
    search = ClassSearch(task, rows, start, path)
    path.append(SearchStep("start", search.value, task.clock.seconds))
    moves = dict.fromkeys(chosen, 0)
    rounds = 0
    while True:
        made = 0
        for phase in chosen:
            k = getattr(search, phase)()
            moves[phase] += k
            made += k
        rounds += 1
        if not made or not repeat or task.clock.over():
            break
    graph, value = search.answer()
    return FoundGraph(graph, score=value, path=path, details=ClassDetails(moves, rounds, score.n_computed))
