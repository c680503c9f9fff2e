"""Plans: treatments over time that answer to what was seen before (the g-formula for dynamic regimes).

The outcome under a plan is a sum, over all that the plan may see, of the joint probability of outcome and sights when the
treatments are set to what the plan says of these sights. So a plan is identified where that joint effect is. References:
Robins, *A new approach to causal inference in mortality studies* (1986); Tian, *Identifying dynamic sequential plans*, UAI
(2008).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from markovia.causal.identification.estimand import Estimand
from markovia.causal.identification.identify import identify
from markovia.causal.problem import one_name, read_graph
from markovia.errors import InvalidArgument
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.table_forms import argument_names
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.named import Names, as_names
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.runtime.clock import now
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class PlanEstimand(InNotebooks):
    """The effect of plans on an outcome, as `identify_plan` returns it.

    Attributes
    ----------
    sees
        For each treatment, in order of time, what a plan may look at.
    outcome
        The name.
    effect
        The joint effect of the treatments on the outcome and on what is looked at.
    """

    sees: Mapping[str, tuple[str, ...]]
    outcome: str
    effect: Estimand

    def __str__(self) -> str:
        return f"the outcome {self.outcome} under a plan for {', '.join(self.sees)}, from\n{self.effect}"

    def evaluate(self, model: Any, policy: Mapping[str, Any] | None = None, /, **more: Any) -> Posterior:
        """Return the distribution of the outcome under a plan, on a model of variables with states.

        Parameters
        ----------
        model
            As for `Estimand.evaluate`.
        policy, more
            For each treatment a state, a function of what it sees that returns one (arguments are found by their names), or
            a table given what it sees; so a policy that `decide` returns will do.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("ill", [0.5, 0.5], states=["no", "yes"])
        >>> bn.add("drug", [[0.8, 0.2], [0.4, 0.6]], states=["no", "yes"], parents=["ill"])
        >>> table = [[[0.1, 0.9], [0.3, 0.7]], [[0.8, 0.2], [0.4, 0.6]]]
        >>> bn.add("well", table, states=["no", "yes"], parents=["ill", "drug"])
        >>> plan = identify_plan(bn, {"drug": ["ill"]}, "well")
        >>> round(plan.evaluate(bn, drug=lambda ill: ill)["yes"], 3)  # the drug for those who are ill
        0.75
        """
        start = now()
        said = {**(policy or {}), **more}
        if set(said) != set(self.sees):
            raise InvalidArgument(
                f"a plan says what to do for each of {', '.join(self.sees)}, not for {', '.join(said)}"
            )
        looked = [n for n in self.effect.outcome if n != self.outcome]
        outcome = model.variable(self.outcome)
        total = np.zeros(len(outcome.states))
        known: dict[tuple[Any, ...], Factor] = {}
        exact = True
        for states in product(*(model.states(n) for n in looked)):
            sights = dict(zip(looked, states, strict=True))
            at = tuple(model.variable(n).index(v) for n, v in sights.items())
            for done, chance in self._done(said, sights):
                if tuple(done.values()) not in known:
                    found = self.effect.evaluate(model, done)
                    if not isinstance(found, Posterior):
                        raise InvalidArgument("plans are evaluated on variables with states")
                    exact = exact and found.info.exact
                    known[tuple(done.values())] = found.factor().transpose([*looked, self.outcome])
                total += chance * known[tuple(done.values())].values[at]
        return Posterior(
            Factor.of((outcome,), total),
            Info("estimand", exact=exact, seconds=now() - start, note=f"g-formula: {self.effect.expression}"),
        )

    def _done(
        self, policy: Mapping[str, Any], sights: Mapping[str, Any]
    ) -> list[tuple[dict[str, Any], float]]:
        """Return what the plan may do given these sights, with the probabilities where it says tables."""
        ways: list[tuple[dict[str, Any], float]] = [({}, 1.0)]
        for name, sees in self.sees.items():
            rule = policy[name]
            longer = []
            for done, chance in ways:
                seen = {n: sights[n] if n in sights else done[n] for n in sees}
                if isinstance(rule, Conditional):
                    _check_seen(name, rule.parent_names, seen)
                    row = rule.row(**{n: seen[n] for n in rule.parent_names})
                    told = [(s, float(p)) for s, p in zip(rule.variable.states, row, strict=True) if p > 0]
                else:
                    told = [(_told(name, rule, seen) if callable(rule) else rule, 1.0)]
                longer += [({**done, name: state}, chance * p) for state, p in told]
            ways = longer
        return ways


def identify_plan(
    graph: object, sees: Mapping[str, Names], outcome: Names, *, latent: Names = ()
) -> PlanEstimand:
    """Find a formula for the outcome under plans that choose treatments by what was seen before.

    Parameters
    ----------
    graph
        What `identify` takes.
    sees
        For each treatment the names that a plan may look at, earlier treatments among them.
    outcome
        A name.
    latent
        Variables that are not observed.

    Raises
    ------
    NotIdentifiable
        If the joint effect on outcome and sights is not identified.
    InvalidArgument
        If a treatment would look at what it changes.

    Examples
    --------
    >>> graph = "l0 -> a0; l0 -> l1; a0 -> l1; l1 -> a1; a0 -> y; a1 -> y; l1 -> y"
    >>> plan = identify_plan(graph, {"a0": [], "a1": "l1"}, "y")
    >>> print(plan.effect.expression)
    P(y | a0, l1, a1) Σ_l0 P(l0) P(l1 | l0, a0)
    """
    outcome = one_name(outcome, "outcome")
    masked = Admg.of(read_graph(graph, latent))
    order = [masked.names[i] for i in masked.order]
    asked = {name: tuple(as_names(names)) for name, names in sees.items()}
    if unknown := next(
        (n for n in (*asked, *(m for names in asked.values() for m in names)) if n not in order), None
    ):
        raise InvalidArgument(f"the graph has no observed variable {unknown!r}")
    for name, names in asked.items():
        below = masked.named(masked.descendants(masked.mask([name])))
        if changed := next((n for n in names if n in below), None):
            raise InvalidArgument(f"a plan for {name!r} cannot look at {changed!r}, which comes after it")
    in_time = {name: asked[name] for name in order if name in asked}
    sights = dict.fromkeys(n for names in in_time.values() for n in names if n not in in_time)
    if outcome in sights:
        raise InvalidArgument(f"a plan cannot look at the outcome {outcome!r}")
    effect = identify(graph, treatment=list(in_time), outcome=[outcome, *sights], latent=latent)
    return PlanEstimand(in_time, outcome, effect)


def _told(name: str, rule: Callable[..., Any], seen: Mapping[str, Any]) -> Any:
    wanted = argument_names(rule)
    _check_seen(name, wanted, seen)
    return rule(**{n: seen[n] for n in wanted})


def _check_seen(name: str, wanted: Iterable[str], seen: Mapping[str, Any]) -> None:
    if unseen := next((n for n in wanted if n not in seen), None):
        listed = ", ".join(seen) or "nothing"
        raise InvalidArgument(f"the plan for {name!r} asks for {unseen!r}, but it sees {listed}")
