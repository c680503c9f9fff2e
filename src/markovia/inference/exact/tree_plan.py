"""Compiling a model to a clique tree: structure, plan, and tables in one flat layout.

A `TreePlan` depends on the structure alone (who is in which scope, and how many states each has): an elimination order found
by search, the maximal cliques, their tree, and where every table lies in memory. Plans are cached by structure, so a
model with new numbers in its tables, or a second model of the same shape, does not search again. A `CompiledTree` is a
plan with one model's tables loaded into it; it never changes and may be shared by threads.
"""

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, chain
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.exact.cut_tables import CutFactor
from markovia.inference.exact.plan_details import PlanDetails
from markovia.inference.problem import Piece, Pieces, Problem
from markovia.inference.result import Record
from markovia.kernels.clique_trees import program_sections as at
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import thread_count

if TYPE_CHECKING:
    from markovia.inference.exact.tree_state import TreeState

T = TypeVar("T")

SEARCH_SHARE = 0.12
"""Steps of order search that a table entry of the expected run is worth."""
SEARCH_MOST = 1e8
"""Steps of order search at most: about a second."""
WORTH_ANNEALING, TABLE = 2e8, 1e3
"""Entries of a greedy order from which on a longer search pays, and what a table costs besides its entries."""
CACHED_PLANS = 64
PARALLEL = 1 << 18
"""Entries of a tree from which threads pay."""
SPLIT = 1 << 17
"""Entries from which a clique is worth splitting between threads."""
STRETCH = 1 << 25
"""Entries after which a run returns to Python, so that it can be interrupted."""


DOUBLES, DTYPE = frozenset({np.dtype(np.float64)}), attrgetter("dtype")


class lazy(Generic[T]):  # noqa: N801
    """A property computed once; unlike `functools.cached_property` it takes no lock, which a small network would feel."""

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    def __get__(self, owner: Any, kind: type) -> T:
        value = owner.__dict__[self._name] = self._function(owner)
        return value


class TreeStructure:
    """Scopes on integer ids: what a plan is made from."""

    __slots__ = ("card", "scope", "scope_start")

    card: Ints
    scope_start: Ints
    scope: Ints

    def __init__(self, card: Sequence[int], scopes: Sequence[Sequence[int]]) -> None:
        self._fill(card, [0, *accumulate(map(len, scopes))], list(chain.from_iterable(scopes)))

    @classmethod
    def over(cls, variables: Mapping[str, Variable], scopes: Sequence[Sequence[Variable]]) -> "TreeStructure":
        """Return the structure of scopes of named variables, whose ids are their places among all."""
        ids = dict(zip(variables, range(len(variables)), strict=True))
        flat: list[int] = []
        ends = [0]
        for scope in scopes:
            for v in scope:
                flat.append(ids[v.name])  # noqa: PERF401
            ends.append(len(flat))
        made = object.__new__(cls)
        made._fill([len(v.states) for v in variables.values()], ends, flat)
        return made

    def _fill(self, card: Sequence[int], ends: list[int], flat: list[int]) -> None:
        self.card = np.array(card, dtype=np.int64)
        self.scope_start = np.array(ends, dtype=np.int64)
        self.scope = np.array(flat, dtype=np.int64)

    @property
    def scopes(self) -> list[tuple[int, ...]]:
        """The variables of each scope."""
        return [tuple(ids) for ids in map(np.ndarray.tolist, np.split(self.scope, self.scope_start[1:-1]))]

    @property
    def key(self) -> tuple[bytes, bytes, bytes]:
        """What two structures of the same shape share."""
        return self.card.tobytes(), self.scope_start.tobytes(), self.scope.tobytes()


STRUCTURE = "structure of the whole model"


def structure_of(problem: Problem) -> TreeStructure:
    """Return the structure of all pieces of a problem, kept with the model until they change."""
    pieces, memory = problem.pieces, problem.memory
    if memory is not None and STRUCTURE in memory:
        known: Pieces
        made: TreeStructure
        known, made = memory[STRUCTURE]
        if len(made.card) == len(problem.variables) and known.same(pieces):
            return made
    # most pieces are conditionals, and are quicker without a call each
    scopes = [p.variables if isinstance(p, Factor) else (*p.parents, p.variable) for p in pieces]
    made = TreeStructure.over(problem.variables, scopes)
    if memory is not None:
        memory[STRUCTURE] = problem.held, made
    return made


class Schedule(NamedTuple):
    """Ranges of cliques: subtrees that run side by side, and what lies above them, in order."""

    below: list[tuple[int, int]]
    above: list[tuple[int, int]]


class TreePlan:
    """An elimination order, its clique tree, and the memory layout.

    Attributes
    ----------
    program
        Everything packed into one array; see `markovia.kernels.clique_trees.tree_program`.
    total, largest
        Entries of all clique tables and of the largest one.
    """

    def __init__(self, program: Ints, total: float, largest: float) -> None:
        self.program = program
        self.total = total
        self.largest = largest
        self.header: list[int] = program[: at.SECTIONS].tolist()
        self.n_cliques: int = self.header[at.N_CLIQUES]
        self.small = total < PARALLEL

    def section(self, i: int) -> Ints:
        """Return one section of the program; see `markovia.kernels.clique_trees.program_sections` for the numbers."""
        return at.section(self.program, i)

    @lazy
    def clique_start(self) -> Ints:
        """Where each clique begins in `clique`."""
        return self.section(at.CLIQUE_START)

    @lazy
    def clique(self) -> Ints:
        """The slots of all cliques, separator first."""
        return self.section(at.CLIQUE)

    @lazy
    def n_separator(self) -> Ints:
        """How many leading slots each clique shares with its parent."""
        return self.section(at.N_SEPARATOR)

    @lazy
    def parent(self) -> Ints:
        """The parent of each clique, -1 for a root."""
        return self.section(at.PARENT)

    @lazy
    def message_at(self) -> Ints:
        """Where each clique's upward message lies."""
        return self.section(at.MESSAGE_AT)

    @lazy
    def table_at(self) -> Ints:
        """Where each clique's table lies, -1 if it is not stored."""
        return self.section(at.TABLE_AT)

    @lazy
    def marginal_at(self) -> Ints:
        """Where each slot's posterior lies."""
        return self.section(at.MARGINAL_AT)

    @lazy
    def card(self) -> Ints:
        """The number of states of each slot."""
        return self.section(at.CARD)

    @lazy
    def order(self) -> Ints:
        """The variable at each slot: the elimination order."""
        return self.section(at.ORDER)

    @lazy
    def home(self) -> Ints:
        """The clique that removes each slot."""
        return self.section(at.HOME)

    @property
    def width(self) -> int:
        """The size of the largest clique less one."""
        return self.header[at.MOST_AXES] - 1

    @lazy
    def starts(self) -> list[int]:
        """Where each slot's posterior begins, and where the last one ends."""
        found: list[int] = self.marginal_at.tolist()
        return found

    @lazy
    def record(self) -> Record:
        """What an answer tells about the plan."""
        return Record("junction-tree", details=PlanDetails(self.width, int(self.largest), self.n_maximal))

    @lazy
    def n_maximal(self) -> int:
        """The number of maximal cliques; helper cliques, which remove nothing, are left out."""
        if self.largest < 2048:
            return self.n_cliques
        return int((np.diff(self.clique_start) > self.n_separator).sum())

    @lazy
    def lengths(self) -> tuple[int, ...]:
        """Lengths of the arrays of a state (floats, ints, flags) and of a thread's scratch space (floats, ints)."""
        return at.lengths(self.header)

    @lazy
    def bytes(self) -> float:
        """The memory that a run needs: messages both ways, stored tables and factors."""
        header = self.header
        separators = float(2 * header[at.N_VALUES] - header[at.N_FACTOR_VALUES] + header[at.N_TABLES])
        return 8.0 * separators if self.total <= 1e13 else 8.0 * self.total

    def clique_slots(self, c: int) -> Ints:
        """Return the slots of a clique, separator first."""
        return self.clique[self.clique_start[c] : self.clique_start[c + 1]]

    def entries_given(self, code: Ints) -> float:
        """Return the total of the clique tables when slots with a code of 0 or more are observed."""
        sizes = np.where(code[self.clique] < 0, self.card[self.clique], 1.0)
        return float(np.multiply.reduceat(sizes, self.clique_start[:-1]).sum()) if len(sizes) else 0.0

    @lazy
    def schedule(self) -> Schedule:
        """Which ranges of cliques run side by side, and which come after them."""
        n = self.n_cliques
        if self.total < PARALLEL:
            return Schedule([], [(0, n)] if n else [])
        threads = thread_count()
        if threads == 1 and self.total < STRETCH:
            return Schedule([], [(0, n)])
        sizes = np.multiply.reduceat(self.card[self.clique], self.clique_start[:-1])
        load: list[int] = sizes.tolist()
        first = list(range(n))
        for c, p in enumerate(self.parent.tolist()):
            if p >= 0:
                load[p] += load[c]
                first[p] = min(first[p], first[c])
        most = min(STRETCH, max(1, int(self.total / (4 * threads))))
        below: list[tuple[int, int]] = []
        above: list[tuple[int, int]] = []
        c = n - 1
        while c >= 0:
            if load[c] <= most:
                below.append((first[c], c + 1))
                c = first[c] - 1
                continue
            if sizes[c] < SPLIT and above and above[-1][0] == c + 1 and sizes[c + 1] < SPLIT:
                above[-1] = (c, above[-1][1])
            else:
                above.append((c, c + 1))
            c -= 1
        joined = _joined(below, load, most // 4)
        joined.sort(key=lambda r: -sum(load[c] for c in range(*r)))
        return Schedule(joined, above[::-1])


def _joined(ranges: list[tuple[int, int]], load: list[int], least: int) -> list[tuple[int, int]]:
    """Join neighbouring small subtrees, so that no task is smaller than its dispatch."""
    joined: list[tuple[int, int]] = []
    held = 0
    for first, last in sorted(ranges):
        if joined and joined[-1][1] == first and held + load[last - 1] <= least:
            joined[-1] = (joined[-1][0], last)
            held += load[last - 1]
        else:
            joined.append((first, last))
            held = load[last - 1]
    return joined


_plans: OrderedDict[Any, TreePlan] = OrderedDict()
_lock = Lock()


def plan_for(
    structure: TreeStructure,
    last: Sequence[int] = (),
    effort: float = 1.0,
    order: Sequence[int] | None = None,
) -> TreePlan:
    """Return the plan of a structure, from the cache if it was made before.

    Parameters
    ----------
    last
        Variables to eliminate last, so that they meet near the root.
    effort
        How much order search is worth: 1 for a single run, more for a plan that serves many.
    order
        An elimination order to use instead of a search.
    """
    key = (*structure.key, tuple(last), effort, None if order is None else tuple(order))
    with _lock:
        known = _plans.get(key)
        if known is not None:
            _plans.move_to_end(key)
            return known
    from markovia.kernels.clique_trees.tree_program import compile_program

    stage = np.zeros(len(structure.card), dtype=np.int64)
    if last:
        stage[list(last)] = 1

    def compiled(order: Sequence[int] | None) -> TreePlan:
        return TreePlan(
            *compile_program(
                structure.scope_start,
                structure.scope,
                structure.card,
                stage,
                SEARCH_SHARE * effort,
                SEARCH_MOST * max(1.0, effort),
                None if order is None else np.array(order, dtype=np.int64),
            )
        )

    made = compiled(order)
    if order is None and made.total > WORTH_ANNEALING:
        from markovia.inference.exact.long_order_search import OrderCost, long_search

        steps = min(SEARCH_SHARE * made.total, SEARCH_MOST) * effort
        cards = structure.card.tolist()
        # two searches whatever the threads, so that plans, and with them draws, are the same on every machine
        better = compiled(long_search(structure.scopes, cards, steps, OrderCost(TABLE), last, searches=2))
        made = better if better.total < made.total else made
    with _lock:
        _plans[key] = made
        while len(_plans) > CACHED_PLANS:
            _plans.popitem(last=False)
    return made


def forget_plans() -> None:
    """Empty the cache of plans."""
    with _lock:
        _plans.clear()


class CompiledTree:
    """A plan with a model's tables at hand.

    Attributes
    ----------
    raw
        The tables one after the other, as the model has them.
    states, max_states
        Idle evaluation states, for sums and for maxima, each taken by one thread while it works.
    runs
        How often the tree was run.
    cuts
        For a tree of what findings leave of a model, the factors that they change: in `raw` they are all ones, and a state
        writes them for the findings that it is given. None for others.
    supports
        The non-zero entries of large cliques that are mostly zero, listed once the tree is used again and again.
    """

    def __init__(
        self,
        plan: TreePlan,
        variables: Sequence[Variable],
        tables: Sequence[NDArray[np.float64]],
        cuts: Sequence[CutFactor] | None = None,
    ) -> None:
        self.plan = plan
        self.cuts = cuts
        self.variables = variables
        slots: list[int] = plan.section(at.SLOT).tolist()
        self.slot_of = dict(zip([v.name for v in variables], slots, strict=True))
        self.raw: Array = _one_after_the_other(tables)
        self.states: list[TreeState] = []
        self.max_states: list[TreeState] = []
        self.runs = 0
        self.supports: dict[int, NDArray[np.int32]] = {}
        self.listed: list[int] = []


def _one_after_the_other(tables: Sequence[NDArray[np.float64]]) -> Array:
    """Return the entries of all tables in one array."""
    if not tables:
        return np.empty(0)
    if DOUBLES.issuperset(map(DTYPE, tables)):
        try:
            return np.frombuffer(bytearray().join(tables))  # type: ignore[arg-type]
        except TypeError:  # a table that does not lie row by row
            pass
    return np.concatenate(tables, axis=None, dtype=np.float64)


def scope_of(piece: Piece) -> tuple[Variable, ...]:
    """Return the variables of a piece in the order of its table's axes."""
    return piece.variables if isinstance(piece, Factor) else (*piece.parents, piece.variable)
