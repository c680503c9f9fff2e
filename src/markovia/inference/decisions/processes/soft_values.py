"""Control as inference over so many steps: the exact, optimistic answer and the variational one, side by side.

Each step has an optimality variable with p(O = 1 | s, a) = exp(r(s, a) / tau), and actions are uniform (over what is
allowed) before anything is known. Backward messages give, in units of reward,

- exact: Q = r + tau log E exp(V' / tau), V = tau log mean_a exp(Q / tau). exp(V / tau) is p(O | s), and exp((Q - V) /
  tau) times the prior is p(a | s, O). The posterior also believes that chance will be kind: it seeks risks.
- variational: Q = r + E V', with the same V: the best q(path) that keeps the process's own transitions. Its value is
  the evidence lower bound, tau log p(O) - tau KL(q | posterior), and it is what `decide(horizon=, temperature=)` finds.

Where transitions are certain and the first state is given the two agree and KL is zero. As tau goes to zero the
variational one goes to the best plan; the exact one to the best plan for whoever chooses chance's moves as well.

References: Todorov (2009), "Efficient computation of optimal actions"; Levine (2018), "Reinforcement learning and
control as probabilistic inference", sections 2 and 3. Cost: T products with the transitions; T S A numbers are kept.
"""

from dataclasses import dataclass, replace

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.decisions.processes.bellman import SoftOperator
from markovia.inference.decisions.processes.decision_process import DecisionProcess, require_room
from markovia.inference.decisions.processes.finite_horizon import finite_horizon
from markovia.inference.decisions.processes.plan import Plan
from markovia.inference.decisions.processes.value_iteration import backed_up
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_count, check_number
from markovia.runtime.clock import Stopwatch
from markovia.runtime.shown import InNotebooks, aligned


@dataclass(frozen=True, eq=False, repr=False)
class SoftValues(InNotebooks):
    """What both kinds of backward messages say.

    Attributes
    ----------
    exact, variational
        Plans; the policy of `exact` is the posterior p(a | s, O) of each step, whose `v` are tau log p(O from here on |
        s).
    log_evidence
        log p(O = 1 at all steps), with rewards as they were given.
    elbo
        The evidence lower bound of the variational policy.
    temperature
        In units of reward.

    Examples
    --------
    >>> risky = DecisionProcess.from_tables(
    ...     [[[0, .5, .5], [0, 1, 0], [0, 0, 1]], [[0, 1.0, 0], [0, 1, 0], [0, 0, 1]]], [[0, -1.0], [0, 0], [-10, -10]],
    ...     initial=0, actions=["risky", "safe"],
    ... )
    >>> both = soft_values(risky, 2, temperature=1.0)
    >>> both.exact.q[0, 0].round(4).tolist(), both.variational.q[0, 0].round(4).tolist()
    ([-0.6931, -1.0], [-5.0, -1.0])
    >>> round(both.exact.row(0, step=0)["risky"], 4), round(both.variational.row(0, step=0)["risky"], 4)
    (0.5761, 0.018)
    """

    exact: Plan
    variational: Plan
    log_evidence: float
    elbo: float
    temperature: float

    @property
    def kl(self) -> float:
        """The divergence of the variational paths from the posterior ones: log p(O) less the bound."""
        return max(0.0, self.log_evidence - self.elbo)

    def __str__(self) -> str:
        rows = [
            ["log p(O)", f"{self.log_evidence:.6g}"],
            ["ELBO", f"{self.elbo:.6g}"],
            ["KL", f"{self.kl:.6g}"],
            ["value, exact", f"{self.exact.value:.6g}"],
            ["value, variational", f"{self.variational.value:.6g}"],
        ]
        return aligned([f"temperature {self.temperature:g}", f"{self.exact.horizon} steps"], rows)

    __repr__ = __str__


def soft_values(
    process: DecisionProcess, horizon: int, *, temperature: float, shift: bool = False
) -> SoftValues:
    """Return exact and variational messages of control as inference.

    Parameters
    ----------
    process
        Its rewards are zero or less, so that exp(reward / temperature) is a probability.
    horizon
        How many steps.
    temperature
        In units of reward.
    shift
        Whether to subtract the largest reward from all, which leaves all policies as they are.

    Raises
    ------
    InvalidArgument
        For a reward above zero, unless `shift`.
    """
    check_count("horizon", horizon, 1)
    check_number("temperature", temperature, positive=True)
    watch = Stopwatch()
    process = replace(process, rewards=nonpositive(process, shift))
    n, k = process.rewards.shape
    require_room(2.0 * horizon * n * (k + 1), f"the messages of {horizon:,} steps", "ask for fewer steps")
    operator = SoftOperator(temperature)
    variational = finite_horizon(process, horizon, operator=operator)
    v, q = np.empty((horizon, n)), np.empty((horizon, n, k))
    values = np.zeros(n)
    for t in range(horizon - 1, -1, -1):
        q[t] = process.rewards + temperature * _log_mean(process, values / temperature)
        values = v[t] = backed_up(process, operator, q[t])
    first = process.first
    top = float(v[0].max())
    evidence = top / temperature + float(np.log(first @ np.exp((v[0] - top) / temperature)))
    value = temperature * evidence
    info = Info(
        "backward messages", exact=True, iterations=horizon, seconds=watch.seconds, compile_seconds=watch.compile_seconds,
        log_evidence=evidence,
    )  # fmt: skip
    exact = Plan(process, value, value, v, q, info, operator)
    return SoftValues(exact, variational, evidence, variational.value / temperature, temperature)


def nonpositive(process: DecisionProcess, shift: bool) -> Array:
    """Return rewards that are zero or less, or raise at the first that is not."""
    rewards = process.rewards if process.allowed is None else np.where(process.allowed, process.rewards, 0.0)
    top = float(rewards.max())
    if top <= 0.0:
        return rewards
    if not shift:
        s, a = np.unravel_index(int(rewards.argmax()), rewards.shape)
        raise InvalidArgument(
            f"the reward of action {process.action_name(int(a))!r} in state {process.state_name(int(s))!r} is {top:g}, and "
            f"exp(reward / temperature) is a probability only for rewards of zero or less; subtract {top:g} from all, "
            "or say shift=True"
        )
    return rewards - top


def _log_mean(process: DecisionProcess, values: Array) -> Array:
    """Return log E exp of the next value, (S, A), relative to each row's largest, so that nothing underflows."""
    rows = process.transitions
    n, k = process.rewards.shape
    lengths = np.diff(rows.indptr)
    full = np.flatnonzero(lengths > 0)
    ahead = values[rows.indices]
    tops = np.full(n * k, 0.0)
    tops[full] = np.maximum.reduceat(np.where(rows.data > 0.0, ahead, -np.inf), rows.indptr[full])
    terms = rows.data * np.exp(np.minimum(ahead - np.repeat(tops, lengths), 0.0))
    sums = np.ones(n * k)
    sums[full] = np.add.reduceat(terms, rows.indptr[full])
    return np.asarray((tops + np.log(sums)).reshape(k, n).T)
