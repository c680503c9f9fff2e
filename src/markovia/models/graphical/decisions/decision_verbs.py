"""Deciding: what to choose, what that is worth, and what more knowledge would be worth; see `BayesianNetwork`."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Literal, Self, cast

import numpy as np

from markovia.errors import InvalidArgument, UnknownVariable, check_known
from markovia.factors.decisions.decision import DecisionNode
from markovia.factors.decisions.utility import UtilityNode, Worth
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable, uniform_table
from markovia.factors.tables.table_forms import argument_names, as_conditional
from markovia.factors.tables.variable import State
from markovia.graphs.kinds.directed import DAG
from markovia.inference.result import Record, provenance
from markovia.models.graphical.arguments import Given
from markovia.models.graphical.directed_model import DirectedModel
from markovia.models.graphical.given_values import read_given
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import SECONDS, Choice, NumberRange, Whole, check
from markovia.runtime.clock import Stopwatch
from markovia.runtime.keyword_advice import guided

if TYPE_CHECKING:
    from markovia.inference.decisions.diagrams.deciding import DiagramSolution, Structure
    from markovia.inference.decisions.diagrams.diagram import Diagram
    from markovia.inference.decisions.diagrams.information_value import InformationValue
    from markovia.inference.decisions.diagrams.policy import Policy
    from markovia.inference.decisions.diagrams.utility_distribution import TotalUtility

MEMORY = Choice(("drawn", "perfect"))
RISK = NumberRange(said="a number: above 0 seeks risk, below avoids it")
Choices = Mapping[str, Any]


class DecisionVerbs(DirectedModel):
    """Decisions and utilities of a directed network; see `BayesianNetwork`."""

    @guided
    def decide(
        self,
        given: Given = None,
        *,
        memory: Literal["drawn", "perfect"] = "drawn",
        order: Sequence[str] | None = None,
        risk: float = 0.0,
        nodes: int | None = None,
        time_limit: float | None = None,
    ) -> "Policy":
        """Return the best rule for every decision that is open.

        Parameters
        ----------
        given
            What is known before: evidence as in `query`, on nodes that do not depend on an open decision. A decision whose
            state is given is made.
        memory
            "drawn": each decision sees its parents and nothing else. "perfect": also all that earlier ones saw and chose.
        order
            The decisions in time, where no path of the graph tells which comes first and memory is perfect.
        risk
            Decide by exponential utility: the largest certainty equivalent `log(E exp(risk * total)) / risk`. Below zero
            avoids risk; zero is the expected total.
        nodes, time_limit
            How long to search for the best policy where memory is limited and no order of solution exists: nodes of the
            search, and seconds.

        Returns
        -------
        Policy
            A table for each decision, with `value`, `bound` (what perfect recall would be worth) and `info`, which is exact
            only where the policy is proved to be best.

        Raises
        ------
        InvalidEvidence
            For evidence that descends from an open decision.
        TooLarge
            If no method fits into memory.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
        >>> bn.add("drill", mk.Decision(["yes", "no"]))
        >>> bn.add("cost", mk.Utility({"yes": -70, "no": 0}), parents=["drill"])
        >>> bn.add("gain", mk.Utility(lambda oil, drill: {"dry": 0, "wet": 120, "soaking": 270}[oil] * (drill == "yes")))
        >>> print(bn.decide())
        expected utility 20, exact
        drill, seeing nothing
          drill
          yes
        """
        from markovia.inference.decisions.diagrams.deciding import NODES, solve, structure_of

        check("memory", memory, MEMORY)
        check("risk", risk, RISK)
        check("nodes", nodes, Whole(1, none=True))
        check("time_limit", time_limit, SECONDS)
        if order is not None and memory == "drawn":
            raise InvalidArgument(
                "order= says what perfect recall remembers; say memory='perfect' too, or leave it out"
            )
        if self._decides_numbers():
            policy: Policy = ports.call("decide-numbers", self, given, memory, order, risk)
            return policy
        watch = Stopwatch()
        diagram = self._diagram(given)
        structure = self._remembered(
            ("decide", memory, *(order or ())), diagram, lambda: structure_of(diagram, memory, order)
        )
        solution = solve(diagram, structure, float(risk), nodes or NODES, time_limit)
        return self._policy(diagram, structure, solution, memory, float(risk), watch, given)

    @guided
    def follow(self, policy: Choices) -> Self:
        """Return the network in which decisions are made by a policy: an ordinary one, with its utilities.

        Parameters
        ----------
        policy
            A `Policy`, or for each decision a state, probabilities, a function of what it sees that returns a state, or a
            table. Decisions that are not named stay open.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("rain", [0.7, 0.3], states=["no", "yes"])
        >>> bn.add("bag", mk.Decision(["light", "heavy"]), parents=["rain"])
        >>> bn.add("joy", mk.Utility([[10, 4], [0, 8]]), parents=["rain", "bag"])
        >>> wise = bn.follow({"bag": lambda rain: "heavy" if rain == "yes" else "light"})
        >>> round(wise.query("bag")["heavy"], 6), round(wise.expected_utility(), 6)
        (0.3, 9.4)
        """
        if not isinstance(policy, Mapping):
            raise InvalidArgument(f"a policy is a mapping from decision to rule, not {type(policy).__name__}")
        twin = self.copy()
        for name, form in policy.items():
            node = self._decision(name)
            rule = form if isinstance(form, Conditional) else self._rule(node, form)
            _refuse_forbidden(node, rule)
            twin._tables[name], twin._parents[name] = rule, rule.parent_names
        twin._graph, twin._removed = DAG.from_parents(twin._parents), set()
        return twin

    @guided
    def expected_utility(
        self, policy: Choices | None = None, given: Given = None, *, risk: float = 0.0
    ) -> float:
        """Return what a policy is worth on average; under `risk=` its certainty equivalent.

        Parameters
        ----------
        policy
            As in `follow`; may be left out where no decision is open.
        given
            Evidence, as in `query`.
        risk
            As in `decide`.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("coin", [0.5, 0.5])
        >>> bn.add("bet", mk.Decision(["no", "yes"]))
        >>> bn.add("pay", mk.Utility([[0, -1], [0, 2]]), parents=["coin", "bet"])
        >>> bn.expected_utility({"bet": "yes"})
        0.5
        """
        from markovia.factors.decisions.decision import undecided
        from markovia.inference.decisions.diagrams.deciding import evaluate

        check("risk", risk, RISK)
        made = self.follow(policy) if policy is not None else self
        if made._decides_numbers():
            value: float = ports.call("expected-utility-of-numbers", made, given, risk)
            return value
        diagram = made._diagram(given)
        if diagram.decisions:
            raise undecided(next(iter(diagram.decisions)))
        return evaluate(diagram, float(risk)).value

    @guided
    def utility(self, names: str | Sequence[str] | None = None, given: Given = None) -> "TotalUtility":
        """Return the distribution of the total utility, or of some utilities, where no decision is open.

        Parameters
        ----------
        names
            Which utilities to add up; all by default.
        given
            Evidence, as in `query`.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("coin", [0.5, 0.5])
        >>> bn.add("die", [0.5, 0.25, 0.25])
        >>> bn.add("a", mk.Utility([0, 10]), parents=["coin"])
        >>> bn.add("b", mk.Utility([0, 0, -10]), parents=["die"])
        >>> total = bn.utility()
        >>> total.values.tolist(), total.probabilities.tolist()
        ([-10.0, 0.0, 10.0], [0.125, 0.5, 0.375])
        >>> total.mean(), total.cvar(0.125)
        (2.5, -10.0)
        """
        from markovia.factors.decisions.decision import undecided
        from markovia.inference.decisions.diagrams.utility_distribution import total_utility

        diagram = self._diagram(given)
        if diagram.decisions:
            raise undecided(next(iter(diagram.decisions)))
        wanted = None if names is None else [names] if isinstance(names, str) else list(names)
        return total_utility(diagram, wanted)

    @guided
    def value_of_information(
        self,
        names: str | Sequence[str],
        before: str,
        *,
        given: Given = None,
        cost: float = 0.0,
        memory: Literal["drawn", "perfect"] = "drawn",
        order: Sequence[str] | None = None,
    ) -> "InformationValue":
        """Return how much it is worth to see nodes before a decision, less what that costs.

        Parameters
        ----------
        names
            What would be seen: one node, or several together.
        before
            The decision that would see it.
        given, memory, order
            As in `decide`.
        cost
            What the observation costs.

        Returns
        -------
        InformationValue
            A number, with the values `informed` and `uninformed` that it is the difference of.

        Raises
        ------
        InvalidArgument
            If something of it depends on the decision.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
        >>> bn.add("drill", mk.Decision(["yes", "no"]))
        >>> bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
        >>> bn.value_of_information("oil", before="drill")
        35 = 55 - 20
        """
        from markovia.inference.decisions.diagrams.information_value import InformationValue

        node = self._decision(before)
        listed = [names] if isinstance(names, str) else list(names)
        below = self._dag().descendants([before])
        for name in listed:
            if isinstance(self.variable(name), Worth):
                raise InvalidArgument(f"{name!r} is a utility, which nobody sees; name what it depends on")
            if name == before or name in below:
                raise InvalidArgument(f"{name!r} depends on {before!r}, so it cannot be seen before")
        twin = self.copy()
        fresh = [n for n in listed if n not in node.parent_names]
        parents = (*node.parents, *(self.variable(n) for n in fresh))
        allowed = node.allowed
        if allowed is not None:
            shape = [*(len(p) for p in node.parents), *(1 for _ in fresh), len(node.variable)]
            allowed = np.broadcast_to(
                allowed.reshape(shape), [*(len(p) for p in parents), len(node.variable)]
            )
        twin._tables[before] = DecisionNode(node.variable, parents, allowed)
        twin._parents[before] = tuple(p.name for p in parents)
        twin._graph, twin._removed = DAG.from_parents(twin._parents), set()
        options: dict[str, Any] = {"given": given, "memory": memory, "order": order}
        return InformationValue.of(twin.decide(**options), self.decide(**options), float(cost))

    def troubleshoot(
        self,
        fault: str,
        repairs: Mapping[str, float],
        tests: Mapping[str, float] | None = None,
        given: Given = None,
    ) -> Any:
        """Return the sequence of repairs and tests that finds and mends a fault at the least expected cost.

        Parameters
        ----------
        fault
            The node whose states are the possible faults.
        repairs
            What it costs to mend each of them, by state.
        tests
            What it costs to observe nodes, by name.
        given
            What is known already.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("cause", {"a": 0.1, "b": 0.4, "c": 0.3, "d": 0.2})
        >>> plan = bn.troubleshoot("cause", repairs={"a": 5, "b": 30, "c": 10, "d": 8})
        >>> round(plan.cost, 6)
        30.1
        """
        return ports.call("troubleshoot", self, fault, repairs, tests, given)

    def free(
        self,
        treatments: Mapping[str, Sequence[str]],
        *,
        latent: Sequence[str] = (),
        outcome: str | None = None,
    ) -> Self:
        """Return the network in which observed treatments are decisions, seeing what is named for each.

        Parameters
        ----------
        treatments
            For each treatment the nodes that a regime may look at.
        latent
            Nodes that were not observed.
        outcome
            What the treatments are for; the parents of the utilities by default.

        Raises
        ------
        NotIdentifiable
            If what a regime would do is not determined by what was observed; the error names an open path.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("severe", [0.6, 0.4])
        >>> bn.add("drug", [[0.8, 0.2], [0.3, 0.7]], parents=["severe"])
        >>> bn.add("well", [[[0.2, 0.8], [0.3, 0.7]], [[0.8, 0.2], [0.4, 0.6]]], parents=["severe", "drug"])
        >>> bn.add("worth", mk.Utility([0, 1]), parents=["well"])
        >>> bn.free({"drug": ["severe"]}).decide().act("drug", severe=1)
        1
        """
        from markovia.models.graphical.decisions.freeing import freed

        return cast("Self", freed(cast("Any", self), treatments, latent=latent, outcome=outcome))

    def decision_sensitivity(
        self, parameter: Any, low: float | None = None, high: float | None = None, **options: Any
    ) -> Any:
        """Return how value and advice change with one number of the network; see `markovia.control.sensitivity`.

        Parameters
        ----------
        parameter
            A utility's entry, `("gain", {"oil": "wet", "drill": "yes"})`, or a probability,
            `("oil", "wet")` or `("result", "open", {"oil": "dry"})`; the others of its row keep their proportions.
        low, high
            The range; for a probability from 0 to 1 by default, for an amount from half to twice of it.
        options
            Those of `decide`.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
        >>> bn.add("drill", mk.Decision(["yes", "no"]))
        >>> bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
        >>> bn.decision_sensitivity(("oil", "dry")).thresholds.round(4).tolist()
        [0.6111]
        """
        return ports.call("decision-sensitivity", self, parameter, low, high, options)

    # -- parts ---------------------------------------------------------------------------------------------------

    @property
    def decisions(self) -> list[str]:
        """The names of the open decisions, in the order in which they were added."""
        return [n for n, table in self._tables.items() if isinstance(table, DecisionNode)]

    @property
    def utilities(self) -> list[str]:
        """The names of the utilities."""
        return [n for n, table in self._tables.items() if isinstance(table, UtilityNode)]

    def chance_network(self) -> Self:
        """Return the network without its utilities: what it says of probabilities, with open decisions in it."""
        if not self.utilities:
            return self
        if None in self._tables.values():
            return self._chance_part()
        return cast("Self", self._remembered(("chance network",), None, self._chance_part))

    def learnable(self) -> Self:
        """Return the network to learn: without utilities; what was chosen is data, but has no law to learn."""
        twin = self._chance_part()
        for name in self.decisions:
            node = self._tables[name]
            assert node is not None
            twin._tables[name] = uniform_table(node.variable, node.parents)
        return twin

    def take_learned(self, twin: "DecisionVerbs") -> None:
        """Take over the distributions of a learned twin; decisions and utilities stay."""
        kept = {*self.decisions, *self.utilities}
        self._variables = {n: v if n in kept else twin._variables[n] for n, v in self._variables.items()}
        self._tables = {n: t if n in kept else twin._tables[n] for n, t in self._tables.items()}
        self._parents = {n: q if n in kept else twin._parents[n] for n, q in self._parents.items()}
        if twin._fit is not None:
            self._fit = (twin._fit[0], dict(self._tables))

    # -- inside --------------------------------------------------------------------------------------------------

    def _chance_part(self) -> Self:
        twin, amounts = self.copy(), set(self.utilities)
        for store in (twin._variables, twin._parents, twin._tables, twin.node_properties):
            for name in amounts & store.keys():
                del store[name]
        twin._graph, twin._removed = None, set()
        return twin

    def _decision(self, name: str) -> DecisionNode:
        self.variable(name)
        node = self._tables[name]
        if not isinstance(node, DecisionNode):
            raise UnknownVariable(name, self.decisions, "the decisions")
        return node

    def _decides_numbers(self) -> bool:
        """Say whether numbers are chosen, or what is chosen is worth depends on numbers."""
        return any(type(v) is Quantity for v in self._variables.values())

    def _diagram(self, given: Given) -> "Diagram":
        from markovia.inference.decisions.diagrams.diagram import read_diagram

        pieces = self.pieces()
        findings, _ = read_given(self._variables, pieces, given)
        check_known(
            findings, [n for n, v in self._variables.items() if not isinstance(v, Worth)], "the network"
        )
        if findings:
            return read_diagram(pieces, findings)
        diagram: Diagram = self._remembered(("diagram",), None, lambda: read_diagram(pieces, {}))
        return diagram

    def _remembered(self, key: tuple[Any, ...], diagram: "Diagram | None", make: Callable[[], Any]) -> Any:
        """Return what was made of the same pieces before, or make it; with evidence nothing is kept."""
        if diagram is not None and diagram.findings:
            return make()
        memory: dict[Any, Any] = self.__dict__.setdefault("_memory", {})
        held = self._held_pieces(memory)
        kept = memory.get("diagrams")
        if kept is None or kept[0] is not held:
            fresh: dict[tuple[Any, ...], Any] = {}
            kept = memory["diagrams"] = (held, fresh)
        answers = kept[1]
        if key not in answers:
            answers[key] = make()
        return answers[key]

    def _rule(self, node: DecisionNode, form: Any) -> Conditional:
        """Read what a user says about one decision."""
        name = node.variable.name
        if isinstance(node.variable, Quantity):
            return node.fixed_at(form)
        if isinstance(form, str | int | bool | np.integer):
            return node.fixed_at(form)
        if callable(form):
            named = argument_names(form)
            seen = {p.name: p for p in node.parents}
            check_known(named, seen, f"what {name!r} sees")
            return as_conditional(node.variable, tuple(seen[n] for n in named), form)
        sees_nothing = isinstance(form, Mapping) and {*form} <= {*node.variable.states}
        return as_conditional(
            node.variable,
            () if sees_nothing or (np.ndim(form) == 1 and not isinstance(form, Mapping)) else node.parents,
            form,
        )

    def _policy(
        self,
        diagram: "Diagram",
        structure: "Structure",
        solution: "DiagramSolution",
        memory: str,
        risk: float,
        watch: Stopwatch,
        given: Given,
    ) -> "Policy":
        from markovia.inference.decisions.diagrams.policy import Policy
        from markovia.inference.decisions.diagrams.policy_tables import rule_tables

        rules, tied = rule_tables(diagram, solution.rules, None if memory == "perfect" else self._parents)
        record = Record(
            engine=solution.method, exact=solution.exact, details=solution.details, note=solution.note,
            error=solution.gap if np.isfinite(solution.gap) else 0.0,
        )  # fmt: skip
        info = provenance(
            record, engine=solution.method, exact=solution.exact, log_evidence=solution.log_evidence,
            seconds=watch.seconds, given={n: f.said for n, f in diagram.findings.items()},
        )  # fmt: skip
        return Policy(
            rules, solution.value, solution.bound, solution.gap, info, tied, self._reach(given), risk
        )

    def _reach(self, given: Given) -> Callable[["Policy"], dict[str, Array]]:
        """Return a function that says how probable each row of each rule is; asked when the rows are looked at."""
        return partial(_reached_rows, self, given)


OF_PROBABILITIES = (
    "condition", "conditional_modes", "conflict", "correlation", "elimination_order", "expectation", "hsic", "impute",
    "information", "joint", "junction_tree", "log_evidence", "log_likelihood", "log_partition", "log_prob", "marginals",
    "mutual_information", "partial_correlation", "predict", "predict_proba", "sample", "score", "sensitivity",
    "to_factor_graph", "to_markov_network", "treewidth",
)  # fmt: skip
"""Verbs that speak of probabilities alone: a network with utilities answers them without these."""
OF_LEARNING = ("fit", "partial_fit")
"""Verbs that learn distributions: of a network with decisions, all others."""


def without_utilities(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a verb of probabilities be answered by the part of a network that has any."""
    answer = guided(method)  # unknown keywords are those of the verb

    @wraps(answer)
    def verb(self: Any, *args: Any, **kwargs: Any) -> Any:
        part = getattr(self, "chance_network", None)  # what is no network is told so by the verb itself
        return answer(self if part is None else part(), *args, **kwargs)

    return verb


def without_decisions(method: Callable[..., Any]) -> Callable[..., Any]:
    """Let a fit learn the distributions of a network, and leave decisions and utilities as they are."""
    learn = guided(method)

    @wraps(learn)
    def verb(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(self, "decisions", ()) and not getattr(self, "utilities", ()):
            return learn(self, *args, **kwargs)
        twin = self.learnable()
        learn(twin, *args, **kwargs)
        self.take_learned(twin)
        return self

    return verb


def _reached_rows(network: Any, given: Given, policy: "Policy") -> dict[str, Array]:
    """Return how probable each row of each rule is when the policy is followed."""
    made = network.follow(policy)
    found = {}
    for name, rule in policy.items():
        seen = list(rule.parent_names)
        found[name] = made.query(seen, given).values if seen else np.array(1.0)
    return found


def _refuse_forbidden(node: DecisionNode, rule: Conditional) -> None:
    """Refuse a rule that chooses what is not allowed."""
    if node.allowed is None or not isinstance(rule, ConditionalTable):
        return
    names = [p.name for p in node.parents]
    states: dict[str, State] = {}
    for at in np.argwhere(~node.allowed):
        states = {p.name: p.states[int(i)] for p, i in zip(node.parents, at[:-1], strict=True)}
        own = {n: s for n, s in states.items() if n in rule.parent_names}
        if len(own) == len(rule.parents) and rule.row(**own)[at[-1]] > 0:
            where = ", ".join(f"{n}={states[n]!r}" for n in names)
            raise InvalidArgument(
                f"{node.variable.states[int(at[-1])]!r} is not allowed for {node.variable.name!r} where {where}"
            )
