"""Metropolis-Hastings: propose a change, accept it with the probability that keeps the target distribution.

Reference: Hastings (1970). With target p and proposal q a move from x to y is accepted with probability
min(1, p(y) q(x | y) / (p(x) q(y | x))); only ratios of p are needed. Cost of a built-in proposal: one read a table that
mentions the changed variables. Variables that zeros in a table tie to each other, such as a gate and its inputs, also change
together, since no single change is possible there. Gibbs sampling, which is never rejected, is usually better for single
variables; use this for moves of your own, such as swaps that keep a count fixed. `metropolis_hastings` runs on any Python
state.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import exp, isnan
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, TypeVar

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.tables.variable import State
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.tied_variables import tied_blocks
from markovia.inference.markov_chains.chain_runs import ChainDetails, ChainEngine, ChainSetUp, Stepper
from markovia.kernels.sampling.sampler_records import BlockMoves, DrawPlan
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import Choice, check_count
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain

T = TypeVar("T")
Proposal = str | Callable[[dict[str, State], np.random.Generator], Any]
MOVES = {"flip": 0, "swap": 1}
TIED_STATES = 1024
"""Joint states up to which tied variables change together."""


@dataclass(frozen=True, kw_only=True)
class MetropolisHastings(ChainEngine):
    """Draw from the posterior by proposals that are accepted or rejected.

    Parameters
    ----------
    proposal
        "flip" moves a random variable to another of its states, or variables that zeros tie to each other to other states
        that are possible together; "swap" exchanges the states of two random variables with
        equally many states, which keeps how often each state occurs. Or a function `proposal(state, rng)` of a dict
        from name to state that returns a new dict, where proposing there and back is equally probable, or
        `(new, log_q_forward, log_q_backward)`. It must not change the dict it is given.
    draws, burn_in, thin, chains, rao_blackwell, seed, time_limit, progress, threads
        As in `Gibbs`; a sweep is one proposal a variable, and another one where it is tied, or one call of your function.

    Examples
    --------
    >>> import markovia as mk
    >>> engine = mk.engines.MetropolisHastings(draws=4000, seed=1)
    >>> posterior = mk.examples.sprinkler().query("rain", given={"wet": "yes"}, engine=engine)
    >>> abs(posterior["yes"] - 0.7079) < 4 * posterior.info.error
    True
    >>> 0 < posterior.info.diagnostics.acceptance < 1
    True
    """

    name: ClassVar[str] = "metropolis"
    continuous: ClassVar[str] = "markovia.inference.densities.engines.random_walk:RandomWalkMetropolis"

    proposal: Annotated[
        Proposal, Choice(tuple(MOVES), "a function of a state and a random generator", (Callable,))
    ] = "flip"

    def _stepper(self, run: ChainSetUp) -> Stepper:
        if isinstance(self.proposal, str):
            return MoveStepper(run, MOVES[self.proposal])
        return ProposalStepper(run, self.proposal)

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        from markovia.kernels.sampling.chains import ACCEPTED, PROPOSED

        made = sum(float(c.scalars[PROPOSED]) for c in chains)
        taken = sum(float(c.scalars[ACCEPTED]) for c in chains)
        return replace(run, acceptance=taken / made if made else 1.0)


class MoveStepper(Stepper):
    """Built-in proposals, compiled."""

    def __init__(self, run: ChainSetUp, move: int) -> None:
        super().__init__(run)
        self.move = move
        self.moves = block_moves(run.graph) if move == MOVES["flip"] else single_moves(run.graph)

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling.metropolis import run_metropolis

        run_metropolis(self.arrays, chain, self.move, len(self.moves.picks), self.moves, plan)


def single_moves(graph: FlatGraph, blocks: Sequence[tuple[Ints, Ints]] = ()) -> BlockMoves:
    """Return moves of single variables, and of blocks: their members, and their joint states, one a row."""
    sizes = [len(members) for members, _ in blocks]
    counts = [len(rows) for _, rows in blocks]
    begins = np.cumsum([0, *(a * b for a, b in zip(sizes, counts, strict=True))])[:-1]
    singles = np.arange(len(graph.cards))
    return BlockMoves(
        *(np.asarray(part, dtype=np.int64) for part in (
            np.concatenate([singles, -1 - np.repeat(np.arange(len(blocks)), sizes)]), np.cumsum([0, *sizes]),
            np.concatenate([singles[:0], *(members for members, _ in blocks)]), np.cumsum([0, *counts]), begins,
            np.concatenate([singles[:0], *(rows.ravel() for _, rows in blocks)]),
        ))
    )  # fmt: skip


def block_moves(graph: FlatGraph) -> BlockMoves:
    """Return moves of single variables, and of those that zeros tie to each other among the states that are possible."""
    found = []
    for members in tied_blocks(graph, TIED_STATES):
        rows = np.indices(tuple(graph.cards[members].tolist())).reshape(len(members), -1).T
        possible = np.all(graph.unary[graph.starts[members] + rows] > 0, axis=1)
        where = {int(v): k for k, v in enumerate(members)}
        edges = [graph.edges[graph.edge_ptr[v] : graph.edge_ptr[v + 1]] for v in members]
        for f in np.unique(graph.edge_factor[np.concatenate(edges)]).tolist():
            scope = graph.members(f).tolist()
            if where.keys() >= set(scope):
                possible &= graph.table(f)[tuple(rows[:, where[v]] for v in scope)] > 0
        found.append((members, rows[possible]))
    return single_moves(graph, found)


class ProposalStepper(Stepper):
    """Proposals by a Python function."""

    inside = True  # Python code gains nothing from threads, and a user's function need not be ready for them

    def __init__(self, run: ChainSetUp, proposal: Callable[..., Any]) -> None:
        super().__init__(run)
        self.graph, self.proposal = run.graph, proposal
        self.generators = [np.random.default_rng(s.spawn(1)[0]) for s in run.seeds]

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling import chains as kernel

        graph, rng = self.graph, self.generators[number]
        state = {v.name: v.states[k] for v, k in zip(graph.variables, chain.x.tolist(), strict=True)}
        here = graph.log_weight(chain.x) - graph.log_scale
        for t in range(plan.first, plan.first + plan.number):
            for _ in range(plan.thin):
                new, forward, backward = read_proposal(self.proposal(dict(state), rng))
                codes = self._codes(new)
                there = graph.log_weight(codes) - graph.log_scale
                chain.scalars[kernel.PROPOSED] += 1.0
                if rng.random() < acceptance(here, there, forward, backward):
                    chain.scalars[kernel.ACCEPTED] += 1.0
                    chain.x[:] = codes
                    state, here = new, there
            kernel.place(self.arrays, chain.x, chain.offset)
            self.record(chain, t, plan, here)

    def _codes(self, state: object) -> Any:
        if not isinstance(state, dict) or state.keys() != self.graph.index.keys():
            raise InvalidArgument(
                "the proposal has to return a dict with a state for each of the variables it was given, "
                f"{', '.join(map(repr, self.graph.names[:5]))}{', ...' if len(self.graph.names) > 5 else ''}"
            )
        return np.array([v.index(state[v.name]) for v in self.graph.variables], dtype=np.int64)


def read_proposal(found: Any) -> tuple[Any, float, float]:
    """Return a proposal as new state, log probability of going there, and of coming back."""
    if isinstance(found, tuple) and len(found) == 3:
        return found[0], float(found[1]), float(found[2])
    return found, 0.0, 0.0


def acceptance(here: float, there: float, forward: float = 0.0, backward: float = 0.0) -> float:
    """Return the probability of accepting a move, from log densities and log proposal probabilities.

    Examples
    --------
    >>> from math import log
    >>> round(acceptance(log(3), log(2)), 6), acceptance(log(2), log(3))
    (0.666667, 1.0)
    """
    if there == -np.inf:
        return 0.0
    if here == -np.inf:
        return 1.0
    ratio = there + backward - here - forward
    return 0.0 if isnan(ratio) else 1.0 if ratio >= 0 else exp(ratio)


@dataclass(frozen=True)
class MetropolisWalk(Generic[T]):
    """What `metropolis_hastings` returns: the states visited, their log densities, and the share of accepted moves."""

    states: list[T]
    log_densities: Array
    acceptance: float


def metropolis_hastings(
    log_density: Callable[[T], float],
    proposal: Callable[[T, np.random.Generator], Any],
    start: T,
    draws: int,
    seed: Seed = None,
) -> MetropolisWalk[T]:
    """Run one Metropolis-Hastings chain on any state: numbers, arrays, dicts, permutations.

    Parameters
    ----------
    log_density
        The log of the target, up to a constant; minus infinity where the target is zero.
    proposal
        A function `proposal(state, rng)` that returns a new state, or `(state, log_q_forward, log_q_backward)`.
    start
        Where the chain begins; its density must be positive.
    draws
        The number of steps.
    seed
        An integer or a NumPy generator.

    Returns
    -------
    Walk
        ``.states`` (one a step), ``.log_densities`` and ``.acceptance``.

    Examples
    --------
    >>> walk = metropolis_hastings(lambda x: -x * x / 2, lambda x, rng: x + rng.normal(), 0.0, 5000, seed=0)
    >>> 0.6 < walk.acceptance < 0.8
    True
    """
    check_count("draws", draws, 1)
    rng = generator(seed)
    here = float(log_density(start))
    if here == -np.inf or isnan(here):
        raise InvalidArgument(f"the chain cannot start at {start!r}, where the log density is {here}")
    state, accepted = start, 0
    states: list[T] = []
    logs = np.empty(draws)
    for t in range(draws):
        new, forward, backward = read_proposal(proposal(state, rng))
        there = float(log_density(new))
        if rng.random() < acceptance(here, there, forward, backward):
            state, here = new, there
            accepted += 1
        states.append(state)
        logs[t] = here
    return MetropolisWalk(states, logs, accepted / draws)
