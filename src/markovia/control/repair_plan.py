"""Plans of repairs and tests: what to do first, and what after each outcome.

Cost: a plan is a tree with all that may happen in it.
"""

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markovia.errors import InvalidArgument
from markovia.runtime.shown import InNotebooks

SHOWN = 60
"""Lines of a plan that are printed."""


@dataclass(frozen=True)
class PlanStep:
    """One step of a plan, with what follows.

    Attributes
    ----------
    kind, name
        "repair" and the fault that it mends, or "test" and the variable that it shows.
    cost
        Of this step.
    probability
        How probable it is that the plan comes here.
    expected_cost
        From here on, this step included.
    after
        What follows: for a repair after False (still broken), for a test after each result that can be; not there where
        nothing is left to do.
    """

    kind: str
    name: Hashable
    cost: float
    probability: float
    expected_cost: float
    after: Mapping[Any, "PlanStep"] = field(repr=False)


@dataclass(frozen=True)
class RepairPlan(InNotebooks):
    """Repairs and tests in order.

    Attributes
    ----------
    first
        The first step; each holds what follows. None where nothing can be broken.
    cost
        The expected cost of the whole plan.
    bound
        What no plan is cheaper than.
    exact
        Whether no plan is cheaper than this one.
    """

    first: PlanStep | None
    cost: float
    bound: float
    exact: bool

    @property
    def gap(self) -> float:
        """How much cheaper another plan could be at most."""
        return self.cost - self.bound

    @property
    def repairs(self) -> list[Hashable]:
        """The repairs, in order, along the way on which no test is made or each shows its first result."""
        found, step = [], self.first
        while step is not None:
            if step.kind == "repair":
                found.append(step.name)
            step = next(iter(step.after.values()), None)
        return found

    def next(
        self, *, repaired: Sequence[Hashable] = (), results: Mapping[str, Any] | None = None
    ) -> PlanStep | None:
        """Return the step to make after those repairs did not help and those tests showed that; None where all is done.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("cause", [0.5, 0.5], states=["disk", "fan"])
        >>> from markovia.control.troubleshooting import troubleshoot
        >>> troubleshoot(bn, "cause", {"disk": 3.0, "fan": 1.0}).next(repaired=["fan"]).name
        'disk'
        """
        left, known = list(repaired), dict(results or {})
        step = self.first
        while step is not None:
            if step.kind == "repair" and step.name in left:
                left.remove(step.name)
                step = step.after.get(False)
            elif step.kind == "test" and step.name in known:
                shown = known.pop(step.name)
                if shown not in step.after:
                    raise InvalidArgument(
                        f"the plan has no result {shown!r} of {step.name!r} here; it has {list(step.after)}"
                    )
                step = step.after[shown]
            else:
                break
        if left or known:
            raise InvalidArgument(
                f"the plan does not come to {[*left, *known]} after the steps before; give its own steps, or make a new plan"
            )
        return step

    def __str__(self) -> str:
        if self.first is None:
            return "nothing to repair"
        how = "least expected cost" if self.exact else "expected cost"
        more = "" if self.exact else f", no plan below {self.bound:.6g}"
        lines = [f"{how} {self.cost:.6g}{more}"]
        for depth, result, step in _walk(self.first):
            told = f"{result}: " if result else ""
            lines.append(
                f"{'  ' * depth}{told}{step.kind} {step.name}  (cost {step.cost:g}, reached {step.probability:.4g})"
            )
            if len(lines) > SHOWN:
                lines.append("...")
                break
        return "\n".join(lines)


def _walk(first: PlanStep) -> Iterator[tuple[int, str, PlanStep]]:
    """Yield depth, the result that leads there, and the step; repairs that follow each other stay at one depth."""
    stack = [(0, "", first)]
    while stack:
        depth, result, step = stack.pop()
        yield depth, result, step
        deeper = depth + (step.kind == "test")
        stack.extend(
            (deeper, "" if x is False and step.kind == "repair" else str(x), s)
            for x, s in [*step.after.items()][::-1]
        )
