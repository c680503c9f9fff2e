"""Finite-state controllers: plans for partially observed processes that need no belief, only one of a few nodes.

A node draws an action; what is heard then draws the next node. What a controller is worth in each state is a linear
system, so its value is exact. It comes from the vectors of a plan, followed from the first belief on, or from bounded
policy iteration, which replaces a node wherever a linear program finds a mixture of one-step plans that is better in
every state, and adds a node where none is (Poupart and Boutilier 2003, after Hansen 1998). Values never fall.

Cost: an evaluation is a sparse system of nodes times states; an improvement a program of actions times observations times
nodes for each node.
"""

from collections.abc import Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import ImpossibleEvidence, InvalidArgument, UnsupportedModel
from markovia.inference.decisions.beliefs.belief_bounds import blind
from markovia.inference.decisions.beliefs.belief_plan import BeliefPlan
from markovia.inference.decisions.beliefs.belief_steps import BeliefSteps
from markovia.inference.decisions.beliefs.partially_observed import PartiallyObserved
from markovia.inference.decisions.processes.decision_process import require_room
from markovia.inference.decisions.processes.value_bounds import DISCOUNT
from markovia.runtime.array_types import Array
from markovia.runtime.checks import SECONDS, check, check_count
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator

if TYPE_CHECKING:
    from scipy import sparse

BETTER = 1e-9
"""An improvement below this part of the values is none."""


@dataclass(frozen=True, eq=False, repr=False)
class FiniteController:
    """A plan of a few nodes.

    Attributes
    ----------
    choices
        (nodes, A), the probability of each action that may be taken.
    moves
        (nodes * A * O, nodes), sparse: the law of the next node after a node, an action and an observation.
    process, discount
        What it controls, and what a reward a step later is worth.

    Examples
    --------
    >>> from markovia.inference.decisions.beliefs.belief_plan import solve
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> door = np.full((2, 2), 0.5)
    >>> tiger = DecisionProcess.from_tables([np.eye(2), door, door], [[-1, -100, 10], [-1, 10, -100]])
    >>> heard = np.array([[[0.85, 0.15], [0.15, 0.85]], door, door])
    >>> controller = controller_of(solve(PartiallyObserved(tiger, heard), discount=0.95))
    >>> controller
    FiniteController: 5 nodes, value 19.3714
    """

    process: PartiallyObserved
    discount: float
    choices: Array
    moves: "sparse.csr_array"

    @cached_property
    def vectors(self) -> Array:
        """What nodes are worth in each state, (nodes, S): exact."""
        from scipy import sparse
        from scipy.sparse.linalg import spsolve

        steps, n = self.process.steps, len(self.choices)
        k, S, O = steps.n_actions, steps.n_states, steps.n_observations  # noqa: N806, E741
        require_room(
            float(self.moves.nnz) * steps.transitions.nnz / max(1, k),
            "the controller's steps",
            "take fewer nodes",
        )
        whole: Any = sparse.csr_array((n * S, n * S))
        for row in np.unique(steps.rows):
            a = int(row) // O
            low, high = np.searchsorted(steps.rows, row + np.arange(2))
            chance = np.zeros(S)
            chance[steps.states[low:high]] = steps.chances[low:high]
            state = steps.transitions[a * S : (a + 1) * S] @ sparse.diags_array(chance)
            node = sparse.diags_array(self.choices[:, a]) @ self.moves[np.arange(n) * k * O + row]
            whole = whole + sparse.kron(node, state, format="csr")
        rewards = (self.choices @ steps.rewards.T).reshape(-1)
        unit = sparse.eye_array(n * S, format="csc")
        return np.asarray(spsolve((unit - self.discount * whole).tocsc(), rewards)).reshape(n, S)

    @property
    def value(self) -> float:
        """What the controller is worth from the first belief on, begun in the best node."""
        return float((self.process.starts @ self.vectors.T).max(axis=1).sum())

    @property
    def n_nodes(self) -> int:
        """How many nodes there are."""
        return len(self.choices)

    def stream(self, seed: Seed = None) -> "ControllerAgent":
        """Return an agent that follows the controller; the seed is for what is drawn."""
        return ControllerAgent(self, seed)

    def __repr__(self) -> str:
        return f"FiniteController: {self.n_nodes} node{'s' * (self.n_nodes != 1)}, value {self.value:.6g}"


class ControllerAgent:
    """An agent that follows a controller; made by `stream`.

    Attributes
    ----------
    node
        Where it is.
    """

    def __init__(self, controller: FiniteController, seed: Seed) -> None:
        self.controller, self._rng = controller, generator(seed)
        self.node = int((controller.vectors @ controller.process.first).argmax())
        self._done: int | None = None
        self._begun = False

    def act(self) -> Hashable:
        """Return what to do now; asked again before anything is heard, the same."""
        process = self.controller.process
        if self._done is None:
            self._done, self._begun = _drawn(self._rng, self.controller.choices[self.node]), True
        return process.process.action_name(int(process.open_actions[self._done]))

    def update(self, **heard: Any) -> int:
        """Take what was heard after the action, or before the first one, and return the node."""
        controller, process = self.controller, self.controller.process
        if self._done is None:
            if self._begun:
                raise InvalidArgument("this step has been heard already; act() before the next one")
            self.node = int((controller.vectors @ process.first_heard(**heard)).argmax())
            self._begun = True
            return self.node
        (said, *more) = np.flatnonzero(process.heard_flags(heard)).tolist()
        if more:
            raise InvalidArgument(f"a controller needs all that is heard: {', '.join(process.heard)}")
        row = (self.node * len(process.open_actions) + self._done) * process.n_observations + said
        law = controller.moves[[row]].toarray()[0]
        if not law.any():
            raise ImpossibleEvidence.because(
                f"{heard} cannot be heard after {self.act()!r}, as far as is known", dict(heard)
            )
        self.node, self._done = _drawn(self._rng, law), None
        return self.node


def _drawn(rng: np.random.Generator, law: Array) -> int:
    best = int(law.argmax())
    return best if law[best] >= 1.0 - 1e-12 else int(rng.choice(len(law), p=law / law.sum()))


def controller_of(plan: BeliefPlan) -> FiniteController:
    """Return the controller whose nodes are the vectors that a plan comes to from its first beliefs.

    Each node goes where the belief goes that it was first met at. Its own value is exact, and may be below the plan's.

    Raises
    ------
    UnsupportedModel
        For a plan with a horizon, whose vectors change from step to step.
    """
    if plan.horizon is not None:
        raise UnsupportedModel("a controller goes on for ever; plan with discount=, without a horizon")
    from scipy import sparse

    steps, process = plan.process.steps, plan.process
    place = {int(a): i for i, a in enumerate(process.open_actions)}
    nodes: dict[int, int] = {}
    beliefs: list[Array] = []

    def node_at(belief: Array) -> int:
        vector = int((plan.vectors @ belief).argmax())
        if vector not in nodes:
            nodes[vector] = len(nodes)
            beliefs.append(belief)
        return nodes[vector]

    for start in process.starts:
        node_at(start / start.sum())
    links: list[tuple[int, int, int]] = []
    at = 0
    while at < len(beliefs):  # `beliefs` grows on the way
        action = place[int(plan.actions[list(nodes)[at]])]
        futures = steps.futures(beliefs[at])
        for a, o, weights in zip(futures.actions, futures.observations, futures.weights, strict=True):
            if a == action:
                links.append((at, int(o), node_at(weights / weights.sum())))
        at += 1
    n, k, O = len(nodes), steps.n_actions, steps.n_observations  # noqa: N806, E741
    actions = np.array([place[int(plan.actions[v])] for v in nodes])
    # what the belief a node was met at rules out may be heard at other ones: it begins anew there
    after = np.full(
        (n, O), nodes[int((plan.vectors @ process.first).argmax())] if len(process.starts) == 1 else 0
    )
    for node, o, then in links:
        after[node, o] = then
    rows = ((np.arange(n) * k + actions)[:, None] * O + np.arange(O)).reshape(-1)
    moves = sparse.csr_array((np.ones(n * O), (rows, after.reshape(-1))), shape=(n * k * O, n))
    return FiniteController(process, plan.discount, np.eye(k)[actions], moves)


def bounded_controller(
    process: PartiallyObserved,
    *,
    discount: float,
    nodes: int = 10,
    start: FiniteController | None = None,
    time_limit: float | None = 60.0,
    progress: bool | None = None,
) -> FiniteController:
    """Return a controller of at most some number of nodes, by bounded policy iteration: a local optimum.

    Parameters
    ----------
    process, discount
        What is controlled, and what a reward a step later is worth, below 1.
    nodes
        The most nodes.
    start
        A controller to begin with; by default the best action for ever.
    time_limit, progress
        Seconds, and whether to show a bar; what is found so far is kept.

    Examples
    --------
    >>> from markovia.inference.decisions.processes.decision_process import DecisionProcess
    >>> door = np.full((2, 2), 0.5)
    >>> tiger = DecisionProcess.from_tables([np.eye(2), door, door], [[-1, -100, 10], [-1, 10, -100]])
    >>> heard = np.array([[[0.85, 0.15], [0.15, 0.85]], door, door])
    >>> bounded_controller(PartiallyObserved(tiger, heard), discount=0.95, nodes=1)
    FiniteController: 1 node, value -20
    """
    check_count("nodes", nodes, 1)
    check("discount", discount, DISCOUNT)
    check("time_limit", time_limit, SECONDS)
    steps = process.steps
    controller = _blind_controller(process, discount) if start is None else start
    with Clock(time_limit, progress, unit="round", name="controller") as clock:
        while not clock.over():
            better, tangents = _improved(controller, steps, clock)
            if better is None:
                better = _extended(controller, steps, tangents, nodes)
            if better is None:
                break
            controller = better
            clock.advance(value=controller.value)
    return controller


def _blind_controller(process: PartiallyObserved, discount: float) -> FiniteController:
    """Return the best action for ever."""
    from scipy import sparse

    steps = process.steps
    best = int((blind(steps, discount) @ process.first).argmax())
    rows = best * steps.n_observations + np.arange(steps.n_observations)
    shape = (steps.n_actions * steps.n_observations, 1)
    moves = sparse.csr_array((np.ones(len(rows)), (rows, np.zeros(len(rows), dtype=np.int64))), shape=shape)
    return FiniteController(process, discount, np.eye(1, steps.n_actions, best), moves)


def _ahead(controller: FiniteController, steps: BeliefSteps) -> Array:
    """Return what each state is worth where an action is followed by an observation and a node: (A, O, nodes, S)."""
    k, O, S = steps.n_actions, steps.n_observations, steps.n_states  # noqa: N806, E741
    found = np.zeros((k, O, controller.n_nodes, S))
    for action in range(k):
        span = steps.rows // O == action
        heard = np.unique(steps.rows[span]) - action * O
        found[action, heard] = np.array(steps.projected(action, controller.vectors))
    return controller.discount * found


def _improved(
    controller: FiniteController, steps: BeliefSteps, clock: Clock
) -> tuple[FiniteController | None, list[Array]]:
    """Improve the first node that can be; return None and the beliefs where each node is best if none can."""
    ahead = _ahead(controller, steps)
    k, O, n, _ = ahead.shape  # noqa: N806, E741
    from scipy import sparse

    scale = float(np.abs(controller.vectors).max()) or 1.0
    tangents = []
    best: tuple[float, int, Array] = (BETTER, -1, np.empty(0))
    for node in range(n):
        if clock.over():
            break
        gain, weights, tangent = _better_mixture(
            controller.vectors[node] / scale, steps.rewards / scale, ahead / scale
        )
        tangents.append(tangent)
        if gain > best[0]:
            best = (gain, node, weights)
    if best[1] < 0:
        return None, tangents
    _, node, weights = best
    choices = controller.choices.copy()
    choices[node] = weights[:k] / weights[:k].sum()
    mixed = weights[k:].reshape(k * O, n)
    shares = mixed.sum(axis=1, keepdims=True)
    laws = np.divide(mixed, shares, out=np.zeros_like(mixed), where=shares > 0.0)
    rows: Any = controller.moves.tolil()
    rows[node * k * O : (node + 1) * k * O] = laws
    return replace(controller, choices=choices, moves=sparse.csr_array(rows)), tangents


def _better_mixture(vector: Array, rewards: Array, ahead: Array) -> tuple[float, Array, Array]:
    """Return by how much a mixture of one-step plans exceeds a vector in every state, its weights, and where it is least."""
    from scipy.optimize import linprog

    k, O, n, S = ahead.shape  # noqa: N806, E741
    above = np.hstack([-rewards, -ahead.reshape(-1, S).T, np.ones((S, 1))])
    equal = np.zeros((1 + k * O, k + k * O * n + 1))
    equal[0, :k] = 1.0
    equal[1:, :k] = -np.repeat(np.eye(k), O, axis=0)
    equal[1:, k:-1] = np.repeat(np.eye(k * O), n, axis=1)
    limits = [(0.0, None)] * (k + k * O * n) + [(None, None)]
    solved = linprog(
        np.append(np.zeros(k + k * O * n), -1.0), A_ub=above, b_ub=-vector, A_eq=equal, b_eq=np.eye(1, 1 + k * O)[0],
        bounds=limits, method="highs",
    )  # fmt: skip
    if solved.x is None:
        return 0.0, np.empty(0), np.full(S, 1.0 / S)
    weights = np.where(solved.x[:-1] > 1e-12, solved.x[:-1], 0.0)
    tangent = np.maximum(-solved.ineqlin.marginals, 0.0)
    return float(-solved.fun), weights, tangent / (tangent.sum() or 1.0)


def _extended(
    controller: FiniteController, steps: BeliefSteps, tangents: list[Array], most: int
) -> FiniteController | None:
    """Add the one-step plan that gains the most at a belief that follows one where a node is best; None where none gains."""
    if controller.n_nodes >= most:
        return None
    from scipy import sparse

    scale = float(np.abs(controller.vectors).max()) or 1.0
    k, O, n = steps.n_actions, steps.n_observations, controller.n_nodes  # noqa: N806, E741
    best: tuple[float, int, Array] = (BETTER * scale, -1, np.empty(0))
    starts = controller.process.starts
    beliefs = [*(starts / starts.sum(axis=1, keepdims=True)), *tangents]
    for tangent in tangents:
        futures = steps.futures(tangent)
        beliefs += [w / w.sum() for w in futures.weights]
    for belief in beliefs:
        futures = steps.futures(belief)
        worth = futures.weights @ controller.vectors.T
        q = belief @ steps.rewards
        q = q + controller.discount * np.bincount(futures.actions, worth.max(axis=1), minlength=k)
        gain = float(q.max() - (controller.vectors @ belief).max())
        if gain > best[0]:
            action = int(q.argmax())
            then = np.full(O, int((controller.vectors @ belief).argmax()))
            taken = futures.actions == action
            then[futures.observations[taken]] = worth[taken].argmax(axis=1)
            best = (gain, action, then)
    if best[1] < 0:
        return None
    _, action, then = best
    rows = (n * k + action) * O + np.arange(O)
    old = controller.moves.tocoo()
    entries = np.concatenate([old.data, np.ones(O)])
    places = np.concatenate([old.coords[0], rows]), np.concatenate([old.coords[1], then])
    moves = sparse.csr_array((entries, places), shape=((n + 1) * k * O, n + 1))
    return replace(controller, choices=np.vstack([controller.choices, np.eye(1, k, action)]), moves=moves)
