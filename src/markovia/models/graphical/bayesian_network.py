"""Bayesian networks: a directed acyclic graph and a conditional distribution for every node."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from markovia.errors import (
    DuplicateName,
    InvalidArgument,
    InvalidGraph,
    InvalidTable,
    NotIdentifiable,
    check_known,
)
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.trails import Trail, open_trails
from markovia.graphs.separation.independencies import Independence
from markovia.graphs.separation.separation import d_separated
from markovia.inference.engine import Engine
from markovia.inference.problem import Problem
from markovia.models.graphical.arguments import list_of_names
from markovia.models.graphical.decisions.decision_verbs import (
    OF_LEARNING,
    OF_PROBABILITIES,
    DecisionVerbs,
    without_decisions,
    without_utilities,
)
from markovia.models.graphical.differences import (
    Difference,
    independencies_of_kind,
    network_differences,
    require_kind,
)
from markovia.models.graphical.directed_model import without_direction
from markovia.models.graphical.editing_verbs import EditingVerbs, parent_list
from markovia.models.graphical.fit_verbs import FitVerbs
from markovia.models.graphical.guide_verbs import GuideVerbs
from markovia.models.graphical.model import Model
from markovia.models.graphical.one_line import parse_one_line
from markovia.models.graphical.score_verbs import ScoreVerbs
from markovia.models.graphical.steps_graph import steps_graph
from markovia.runtime import ports
from markovia.runtime.checks import Kind, check
from markovia.runtime.keyword_advice import guided

Structure = str | DAG | Mapping[str, Sequence[str]] | Iterable[tuple[str, str]]


class BayesianNetwork(EditingVerbs, GuideVerbs, FitVerbs, ScoreVerbs, DecisionVerbs, Model):
    """A directed model: `P(x) = prod_i P(x_i | parents_i)`.

    Parameters
    ----------
    structure
        Nothing (add nodes by hand), a one-line text such as `"rain->wet{no|yes}<-sprinkler; wet->slip[3]"`, a
        `DAG`, a mapping from name to parents, or a list of edges.
    states
        States of some or all variables of the structure: a list, or a number for `0 ... k-1`. Two by default.
    tables
        "uniform" or "random" to fill every table at once; without it the network is only a structure until
        tables are set.
    seed
        Seed of random tables.
    name
        A name that files keep.

    Examples
    --------
    >>> bn = BayesianNetwork()
    >>> bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    >>> bn.add("wet", states=["no", "yes"], parents=["rain"], p=[[0.9, 0.1], [0.2, 0.8]])
    >>> round(bn.query("rain", given={"wet": "yes"})["yes"], 4)
    0.6667
    >>> BayesianNetwork("a->b{lo|mid|hi}<-c").states("b")
    ['lo', 'mid', 'hi']
    """

    @guided
    def __init__(
        self,
        structure: Structure | None = None,
        *,
        states: Mapping[str, int | Sequence[State]] | None = None,
        tables: str | None = None,
        seed: Any = None,
        name: str = "",
    ) -> None:
        self._variables: dict[str, Variable] = {}
        self._parents: dict[str, tuple[str, ...]] = {}
        self._tables: dict[str, Conditional | None] = {}
        self._graph: DAG | None = None
        self._removed: set[str] = set()
        self._assumed: set[str] = set()
        self.name = name
        self.properties: dict[str, str] = {}
        self.node_properties: dict[str, dict[str, str]] = {}
        check("states", states, Kind((Mapping,), "a mapping from name to states", none=True))
        if structure is not None:
            self._build(structure, states or {})
        elif states is not None:
            raise InvalidArgument(
                "states= describes the variables of a structure, and there is none; give one, or use add()"
            )
        if tables is not None:
            self.fill(tables, seed=seed)

    @classmethod
    def from_conditionals(cls, conditionals: Iterable[Conditional], name: str = "") -> Self:
        """Build from ready conditional distributions, in any order.

        Raises
        ------
        UnknownVariable, InvalidTable, CycleError
            If a parent is missing, has other states elsewhere, or the edges close a cycle.
        """
        network = cls(name=name)
        if not isinstance(conditionals, Iterable):
            raise InvalidArgument(f"conditionals are a list of distributions, not {conditionals!r}")
        items = list(conditionals)
        for c in items:
            if not isinstance(c, Conditional):
                raise InvalidArgument(f"a conditional is a ConditionalTable or such, not {c!r}")
            if c.variable.name in network._variables:
                raise DuplicateName(f"two distributions for {c.variable.name!r}")
            network._variables[c.variable.name] = c.variable
            network._tables[c.variable.name] = c
            network._parents[c.variable.name] = c.parent_names
        for c in items:
            for parent in c.parents:
                known = network.variable(parent.name)
                if known is not parent and known != parent:
                    raise InvalidTable(
                        f"{c.variable.name!r} thinks {parent.name!r} has states {list(parent.states)}, "
                        f"but they are {list(known.states)}"
                    )
        network._graph = DAG.from_parents(network._parents)
        return network

    # -- looking -------------------------------------------------------------------------------------------------

    def count_parameters(self) -> int:
        """Return the number of free parameters of all tables."""
        total = 0
        for name, table in self._tables.items():
            if table is not None:
                total += table.n_parameters
            else:
                rows = int(np.prod([len(self._variables[q]) for q in self._parents[name]], dtype=object))
                total += rows * (len(self._variables[name]) - 1)
        return total

    def validate(self) -> None:
        """Check the whole network: acyclic, every node has a table whose rows sum to one over known parents.

        Raises
        ------
        MarkoviaError
            Naming the first thing that is wrong.
        """
        DAG.from_parents(self._parents)
        for piece in self.pieces():
            if isinstance(piece, ConditionalTable):
                ConditionalTable(piece.variable, piece.parents, piece.values)
            for parent in getattr(piece, "parents", ()):
                if self.variable(parent.name) != parent:
                    raise InvalidTable(
                        f"the table of {piece.names[-1]!r} has another idea of {parent.name!r}'s states"
                    )

    # -- independence --------------------------------------------------------------------------------------------

    @guided
    def independent(
        self, x: str | Iterable[str], y: str | Iterable[str], given: str | Iterable[str] = ()
    ) -> bool:
        """Say whether the graph makes x and y independent given the observed variables (d-separation).

        For nodes on plates it means any element of x and any of y, given all elements of the observed ones.

        Examples
        --------
        >>> bn = BayesianNetwork("smoke->lung->xray; smoke->bronc")
        >>> bn.independent("smoke", "xray"), bn.independent("smoke", "xray", given="lung")
        (False, True)
        """
        steps = None
        if self.has_quantities:
            steps = steps_graph({**self._tables, **self._potentials}, self._weighed_parents())
        if steps is None:
            seen = [*list_of_names(given, "given="), *self._potentials] if self._potentials else given
            return d_separated(self._weighed_dag(), x, y, seen)
        graph, copies = steps
        sets = []
        for what, names in (("x", x), ("y", y), ("given=", given)):
            listed = list_of_names(names, what)
            sets.append([c for n in listed for c in copies[self.variable(n).name]])
        return d_separated(
            graph, sets[0], sets[1], sets[2] + [c for n in self._potentials for c in copies[n]]
        )

    @guided
    def open_trails(self, x: str, y: str, given: str | Iterable[str] = ()) -> list[Trail]:
        """Return the trails along which x and y are dependent given the observed variables; empty if none."""
        seen = [*list_of_names(given, "given="), *self._potentials] if self._potentials else given
        return open_trails(self._weighed_dag(), x, y, seen)

    def markov_blanket(self, name: str) -> set[str]:
        """Return parents, children and the children's other parents."""
        self.variable(name)
        return self._weighed_dag().markov_blanket(name) - self._potentials.keys()

    def independencies(self, kind: str = "local") -> list[Independence]:
        """Return the independencies the graph promises: "local" (one a node), "pairwise" or "all" (small graphs)."""
        self._refuse_potentials(
            "independencies are listed of graphs without potentials (independent(x, y) asks for one)"
        )
        return independencies_of_kind(self._dag(), kind)

    # -- other models from this one ------------------------------------------------------------------------------

    def copy(self) -> Self:
        """Return an independent copy (tables are immutable and shared)."""
        twin = type(self)(name=self.name)
        twin._variables = dict(self._variables)
        twin._parents = dict(self._parents)
        twin._tables = dict(self._tables)
        twin._parameters, twin._guides = dict(self._parameters), dict(self._guides)
        twin._potentials = dict(self._potentials)
        twin._assumed, twin._fit, twin._learned = set(self._assumed), self._fit, self._learned
        twin._unsettled = self._unsettled
        twin.properties = dict(self.properties)
        twin.node_properties = {n: dict(q) for n, q in self.node_properties.items()}
        return twin

    def do(self, interventions: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Return the network after setting variables from outside, which cuts them off from their parents.

        Parameters
        ----------
        interventions, more
            Name and state or value, as a mapping or as keywords; a list or dict of probabilities sets a variable with
            states to a random one instead.

        Raises
        ------
        NotIdentifiable
            If the network is one member of an `equivalence_class` whose members differ in what depends on these variables:
            if an edge without a direction joins one of them to a variable that is not set.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> seen = bn.query("rain", given={"sprinkler": "yes"})["yes"]
        >>> done = bn.do(sprinkler="yes").query("rain")["yes"]
        >>> round(seen, 3), round(done, 3)
        (0.3, 0.5)
        """
        if not isinstance(interventions or {}, Mapping):
            raise InvalidArgument(f"do() takes a mapping from name to state, not {interventions!r}")
        settings = {**(interventions or {}), **more}
        unsettled = self._unsettled_pairs()
        # what is set keeps or loses all its undirected edges at once: then every member has the same parents left to cut
        if crossing := [
            edge
            for edge in self.edges
            if frozenset(edge) in unsettled and len({*edge} & settings.keys()) == 1
        ]:
            raise NotIdentifiable(
                without_direction(crossing, "what setting a variable changes depends on it")
            )
        twin = self.copy()
        for name, value in settings.items():
            if isinstance(self.variable(name), Quantity):
                twin._tables[name] = self[name].fixed_at(value)
                twin._parents[name] = ()
                continue
            finding = read_evidence(self._variables, {name: value})[name]
            weights = finding.weights()
            if abs(weights.sum() - 1.0) > 1e-6:
                raise InvalidArgument(
                    f"the probabilities to set {name!r} to must sum to one, not {weights.sum():.6g}"
                )
            twin._tables[name] = ConditionalTable.of(self._variables[name], (), weights)
            twin._parents[name] = ()
        twin._leave_unsettled(pair for pair in unsettled if not pair & settings.keys())
        return twin

    @guided
    def counterfactual(
        self,
        targets: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        do: Mapping[str, Any] | None = None,
        mechanism: str | Mapping[str, str] | None = None,
        engine: str | Engine = "auto",
    ) -> Any:
        """Return the posterior of the targets had `do` been the case, for a unit of which the facts `given` are known.

        The facts speak about all causes jointly, and these stay as they are in the world that is asked about (abduction,
        action, prediction). Functions of parents, gates, noisy-or and linear Gaussians determine the answer.
        A table alone does not: without `mechanism` it is a `BoundedPosterior`, sharp where the functions behind the
        tables can be listed.

        Parameters
        ----------
        targets
            A name, or several for their joint distribution, in the other world.
        given
            Facts of the actual world: evidence as in `query`.
        do
            What is set in the other world, as in `do`.
        mechanism
            The functions that tables come from, for all of them or by name: "monotone" (one quantile a unit, by the order of
            the states), "gumbel" (independent utilities of states) or "independent" (another throw for other parents).
        engine
            As in `query`.

        Returns
        -------
        Posterior, GaussianPosterior, DrawnPosterior or BoundedPosterior
            `info.note` says whether a mechanism was chosen, and which.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("gene", p=[0.5, 0.5])
        >>> bn.add("drug", p=[0.5, 0.5])
        >>> bn.add("cured", lambda gene, drug: gene & drug)
        >>> bn.counterfactual("cured", given={"drug": 1, "cured": 1}, do={"drug": 0})[1]
        0.0
        """
        return ports.call("counterfactual", self, targets, given, do, mechanism, engine)

    def relevant(self, targets: str | Sequence[str], given: str | Iterable[str] = ()) -> Self:
        """Return the sub-network that the posterior of the targets given the observed names depends on.

        The given names stand for hard evidence: each is seen in one state. Likelihoods (soft evidence) do not
        block a path: name variables with such evidence among the targets instead. Observed variables that are
        d-separated from the targets by the others go first, then everything that is not an ancestor of what is left.
        """
        self._refuse_potentials("parts of a network are cut out where the rest sums to one")
        names = self._names(targets)
        observed = list_of_names(given, "given=")
        for name in observed:
            self.variable(name)
        dag = self._dag()
        kept = list(observed)
        for name in observed:
            others = [n for n in kept if n != name]
            if name not in names and d_separated(dag, [n for n in names if n not in others], [name], others):
                kept = others
        wanted = dag.ancestors([*names, *kept], include_self=True)
        return self.subnetwork([n for n in self._variables if n in wanted])

    def subnetwork(self, names: Iterable[str]) -> Self:
        """Return the network of the named variables, which must include their parents."""
        keep = [self.variable(n).name for n in list_of_names(names, "the variables of a sub-network")]
        inside = set(keep)
        self._refuse_potentials("parts of a network are cut out where the rest sums to one")
        twin = self.copy()
        for name in keep:
            outside = [q for q in self._parents[name] if q not in inside]
            if outside:
                raise InvalidGraph(f"{name!r} needs its parents {outside} in the sub-network too")
        twin._variables = {n: v for n, v in self._variables.items() if n in inside}
        twin._parents = {n: self._parents[n] for n in twin._variables}
        twin._tables = {n: self._tables[n] for n in twin._variables}
        twin.node_properties = {n: dict(q) for n, q in self.node_properties.items() if n in inside}
        return twin

    def allclose(self, other: "BayesianNetwork", *, atol: float = 1e-9) -> bool:
        """Say whether two networks have the same variables, edges and (up to `atol`) tables."""
        require_kind(other, BayesianNetwork, "allclose")
        return not self.compare(other, atol=atol)

    def compare(self, other: "BayesianNetwork", *, atol: float = 1e-9) -> list[Difference]:
        """Return what differs between two networks; the empty list if nothing does."""
        require_kind(other, BayesianNetwork, "compare")
        return network_differences(self, other, atol)

    def __repr__(self) -> str:
        title = f"{self.name!r}, " if self.name else ""
        missing = sum(t is None for t in self._tables.values())
        tail = f", {missing} without tables" if missing else f", {self.count_parameters():,} parameters"
        return f"BayesianNetwork({title}{len(self)} variables, {len(self.edges)} edges{tail})"

    # -- inside --------------------------------------------------------------------------------------------------

    def _build(self, structure: Structure, states: Mapping[str, int | Sequence[State]]) -> None:
        written: Mapping[str, Sequence[State]] = {}
        if isinstance(structure, str):
            parsed = parse_one_line(structure)
            parents: dict[str, Sequence[str]] = dict(parsed.parents)
            written = parsed.states
        elif isinstance(structure, DAG):
            parents = {n: structure.parents(n) for n in structure.nodes}
        elif isinstance(structure, Mapping):
            named = {n: parent_list(q) for n, q in structure.items()}
            parents = {**{q: () for ps in named.values() for q in ps if q not in named}, **named}
        elif not isinstance(structure, Iterable):
            raise InvalidArgument(
                f"a structure is a one-line text, a DAG, a mapping to parents or a list of edges, not {structure!r}"
            )
        else:
            dag = DAG(structure)
            parents = {n: dag.parents(n) for n in dag.nodes}
        check_known(states, parents, "the structure")
        self._graph = DAG.from_parents(parents)
        self._parents = {n: tuple(q) for n, q in parents.items()}
        self._variables = {n: Variable(n, states.get(n, written.get(n, 2))) for n in parents}
        self._tables = dict.fromkeys(parents)
        self._assumed = {n for n in parents if n not in states and n not in written}

    def _draw(
        self, problem: Problem, n: int, rng: np.random.Generator, engine: Engine
    ) -> dict[str, NDArray[np.int64]]:
        if problem.findings or self._potentials:
            return super()._draw(problem, n, rng, engine)
        self.pieces()
        codes: dict[str, NDArray[np.int64]] = {}
        for name in self._dag().topological_order():
            codes[name] = self[name].sample([codes[q] for q in self._parents[name]], n, rng)
        return codes


for _verb in OF_PROBABILITIES:
    setattr(BayesianNetwork, _verb, without_utilities(getattr(BayesianNetwork, _verb)))
for _verb in OF_LEARNING:
    setattr(BayesianNetwork, _verb, without_decisions(getattr(BayesianNetwork, _verb)))
