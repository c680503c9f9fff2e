"""Control as inference on the graph: utilities become variables that are observed to be optimal.

A utility r becomes a node with two states and p(yes | parents) = exp(r / tau); decisions are uniform over what is
allowed. Asked like any network, given that all steps were optimal, it answers exactly. The answer is optimistic: it
updates on chance as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.inference.decisions.processes.soft_values import SoftValues, soft_values
from markovia.inference.posterior import Posterior
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.temporal.dynamic.decision_steps import worth_of
from markovia.models.temporal.dynamic.dynamic_decisions import flat_process
from markovia.runtime.checks import check_count, check_number
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd

    from markovia.models.temporal.dynamic_network import DynamicBayesianNetwork

OPTIMAL = "yes"


class OptimalityModel(InNotebooks):
    """A process of so many steps that is known to have been optimal.

    Attributes
    ----------
    network
        The unrolled network, in which utilities are variables with the states "no" and "yes".
    optimal
        What is observed: "yes" for each of them.
    temperature
        How loosely optimal, in units of reward.

    Examples
    --------
    >>> import markovia as mk
    >>> bet = mk.DynamicBayesianNetwork()
    >>> bet.add("purse", [[[1, 0, 0]] * 2, [[0.5, 0, 0.5], [0, 1, 0]], [[0, 0, 1]] * 2],
    ...         states=["broke", "some", "rich"], parents=["purse@-1", "bet@-1"], initial=[0, 1, 0])
    >>> bet.add("bet", mk.Decision(["yes", "no"]), parents=["purse"])
    >>> bet.add("worth", mk.Utility([-10.0, -1.0, 0.0]), parents=["purse"])
    >>> model = bet.optimality(temperature=1.0, horizon=2)
    >>> round(model.query("bet@0")["yes"], 4), round(model.soft_values().variational.row("some", step=0)["yes"], 4)
    (0.5761, 0.018)
    """

    def __init__(
        self, process: "DynamicBayesianNetwork", temperature: float, horizon: int, shift: bool = False
    ) -> None:
        check_number("temperature", temperature, positive=True)
        check_count("horizon", horizon, 1)
        self.process, self.temperature, self.horizon, self.shift = process, float(temperature), horizon, shift
        unrolled = process.unroll(horizon)
        nodes: list[Conditional] = []
        optimal = []
        for name in unrolled.variables:
            node = unrolled[name]
            if isinstance(node, DecisionNode):
                node = _uniform(node)
            elif isinstance(node, UtilityNode):
                node = _optimal(node, self.temperature, shift)
                optimal.append(name)
            nodes.append(node)
        self.network = BayesianNetwork.from_conditionals(nodes)
        self.optimal: dict[str, str] = dict.fromkeys(optimal, OPTIMAL)

    def query(
        self, targets: str | Sequence[str], given: Mapping[str, Any] | None = None, **options: Any
    ) -> Posterior:
        """Return the posterior given that all steps were optimal and what else is given; as `BayesianNetwork.query`."""
        return self.network.query(targets, self._with(given), **options)

    def sample(
        self, n: int = 1, *, given: Mapping[str, Any] | None = None, seed: Any = None
    ) -> "pd.DataFrame":
        """Draw paths given that all steps were optimal."""
        return self.network.sample(n, given=self._with(given), seed=seed)

    @cached_property
    def log_evidence(self) -> float:
        """Log of the probability that all steps are optimal, if actions are uniform."""
        found = self.network.query(
            _any_other(self.network.variables, self.optimal), self.optimal
        ).info.log_evidence
        assert found is not None
        return found

    def soft_values(self) -> SoftValues:
        """Return the backward messages, exact and variational, where the decisions see the state."""
        return soft_values(
            flat_process(self.process), self.horizon, temperature=self.temperature, shift=self.shift
        )

    def _with(self, given: Mapping[str, Any] | None) -> dict[str, Any]:
        if known := next((n for n in given or {} if n in self.optimal), None):
            raise InvalidArgument(f"{known!r} is known to be optimal already; leave it out of given=")
        return {**(given or {}), **self.optimal}

    def __repr__(self) -> str:
        return f"OptimalityModel({self.horizon} steps, temperature {self.temperature:g})"


def _uniform(node: DecisionNode) -> Conditional:
    shape = tuple(len(v) for v in (*node.parents, node.variable))
    weights = np.ones(shape) if node.allowed is None else node.allowed.astype(np.float64)
    return ConditionalTable(node.variable, node.parents, weights, normalise=True)


def _optimal(node: UtilityNode, temperature: float, shift: bool) -> Conditional:
    worth = worth_of(node)
    top = float(worth.max())
    if top > 0.0 and not shift:
        raise InvalidArgument(
            f"{node.variable.name!r} is worth up to {top:g}, and exp(worth / temperature) is a probability only for "
            f"utilities of zero or less; subtract {top:g} from it, or say shift=True"
        )
    yes = np.exp((worth - max(0.0, top)) / temperature)
    return ConditionalTable(
        Variable(node.variable.name, ["no", OPTIMAL]), node.parents, np.stack([1.0 - yes, yes], axis=-1)
    )


def _any_other(names: Iterable[str], known: Mapping[str, Any]) -> str:
    return next(n for n in names if n not in known)
