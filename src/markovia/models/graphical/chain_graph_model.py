"""Chain-graph models: a field for each chain component given the component's parents.

    P(x) = prod_t P(x_t | x_pa(t)),    P(x_t | x_pa(t)) = prod_c psi_c(x_c) / Z_t(x_pa(t))

over the chain components t, with potentials on complete sets of the component and its parents: blocks of variables that
settle together, such as symptoms of one visit, under causes that came before. The normalisers Z_t are tables over parents,
found by variable elimination, so the whole is a Markov network with the moral graph, which every engine answers.
References: Lauritzen and Wermuth, *Graphical models for associations between variables*, Annals of Statistics 17 (1989);
Lauritzen and Richardson, *Chain graph models and their causal interpretations*, JRSS B 64 (2002), for `do`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from markovia.data.tables.reading import read_data
from markovia.errors import InvalidArgument, InvalidTable
from markovia.factors.tables.evidence import read_evidence
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.causal.text import causal_graph
from markovia.graphs.kinds.chain_graph import ChainGraph
from markovia.graphs.kinds.named import Names
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.inference.engine import Engine
from markovia.inference.posterior import Posterior
from markovia.learning.tables.fit_record import Fit
from markovia.models.graphical.arguments import Given
from markovia.models.graphical.markov_network import MarkovNetwork
from markovia.runtime.checks import check_choice
from markovia.runtime.ports import Savable
from markovia.runtime.seeds import Seed
from markovia.runtime.shown import InNotebooks

if TYPE_CHECKING:
    import pandas as pd


class ComponentField(NamedTuple):
    """The conditional field of a chain component: its nodes, its parents, and its potentials."""

    nodes: list[str]
    parents: list[str]
    factors: list[Factor]


class ChainGraphModel(Savable, InNotebooks):
    """A distribution that factorises over a chain graph.

    Parameters
    ----------
    graph
        A `ChainGraph`, a graph with arrows and lines, or a text such as `"a -> c; c -- d; b -> d"`.
    factors
        Potentials, each over a set that is complete in a component and its parents; a product of several over one set is
        fine, and none at all is a uniform block. Their scale does not matter.
    variables
        A mapping from name to states, as `MarkovNetwork` takes it; not needed where factors name every node, or before
        `fit`, which reads the states off the data.

    Examples
    --------
    >>> pull = [[2, 1], [1, 2]]
    >>> edges = [("a", "c"), ("c", "d"), ("b", "d")]
    >>> model = ChainGraphModel("a -> c; c -- d; b -> d", [Factor(pair, pull) for pair in edges])
    >>> model
    ChainGraphModel(4 variables in 3 components: a | b | c d)
    >>> round(model.query("c", given={"a": 1})[1], 4), round(model.query("b", given={"a": 1})[1], 4)
    (0.6648, 0.5)
    >>> model.independent("a", "d", given=["b", "c"]), model.independent("a", "b", given="c")
    (True, False)
    >>> round(model.do({"d": 1}).query("b")[1], 4), round(model.do({"d": 1}).query("c")[1], 4)
    (0.5, 0.65)
    """

    def __init__(
        self,
        graph: object,
        factors: Iterable[Factor] = (),
        *,
        variables: Mapping[str, int | Sequence[State]] | Iterable[Variable] = (),
    ) -> None:
        chain = graph if isinstance(graph, UndirectedGraph | ChainGraph) else causal_graph(graph)
        self._graph = ChainGraph.from_mixed(chain).copy()
        # the network checks factors against variables, in the words that users know
        network = MarkovNetwork(variables, factors)
        self._graph._numbers(network.variables)  # raises where one is not in the graph
        self._variables = {n: network.variable(n) for n in self._graph.nodes if n in network.variables}
        self._fields = self._sorted_into_components(network.factors)
        self._network: MarkovNetwork | None = None
        self.fits_: dict[tuple[str, ...], Fit] = {}

    @property
    def graph(self) -> ChainGraph:
        """The chain graph (a copy)."""
        return self._graph.copy()

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in the order of the graph."""
        return self._graph.nodes

    @property
    def components(self) -> list[ComponentField]:
        """The field of each chain component, parents before children."""
        return list(self._fields)

    def __repr__(self) -> str:
        parts = [" ".join(field.nodes) for field in self._fields]
        shown = " | ".join([*parts[:12], "..."] if len(parts) > 12 else parts)
        return f"ChainGraphModel({len(self._graph)} variables in {len(parts)} components: {shown})"

    def independent(self, x: Names, y: Names, given: Names = ()) -> bool:
        """Say whether the chain graph separates x from y given the others (Lauritzen, Wermuth and Frydenberg)."""
        return self._graph.lwf_separated(x, y, given)

    def to_network(self) -> MarkovNetwork:
        """Return the Markov network that the model stands for: its potentials, and a table 1 / Z for each component.

        That is an `InvalidTable` where the potentials of a component forbid all its states for some of its parents'.
        """
        if self._network is None:
            for name in (n for n in self._graph.nodes if n not in self._variables):
                raise InvalidArgument(
                    f"the states of {name!r} are not known; give variables={{{name!r}: 2}}, or fit the model"
                )
            factors = [factor for field in self._fields for factor in self._normalised(field)]
            self._network = MarkovNetwork(list(self._variables.values()), factors)
        return self._network.copy()

    def query(
        self, targets: str | Sequence[str], given: Given = None, engine: str | Engine = "auto"
    ) -> Posterior:
        """Return the posterior of one variable, or the joint one of several; as `MarkovNetwork.query`, of the network."""
        return self.to_network().query(targets, given, engine)

    def sample(self, n: int = 1, given: Given = None, seed: Seed = None) -> "pd.DataFrame":
        """Draw n rows, from the model or given evidence."""
        return self.to_network().sample(n, given, seed)

    def do(self, values: Mapping[str, State]) -> Self:
        """Return the model of the other variables after some are set from outside.

        A variable that is set no longer answers to its parents and neighbours; what is left of its component settles
        given it. With one node a component that is the truncated factorisation of a Bayesian network.
        """
        gone: dict[str, State] = {}
        for name, finding in read_evidence(self._variables, values).items():
            if finding.code is None:
                raise InvalidArgument(f"do sets {name!r} to one of its states, not to likelihoods")
            gone[name] = self._variables[name].states[finding.code]
        kept = [
            factor.reduce({n: v for n, v in gone.items() if n in factor.names})
            for field in self._fields
            for factor in field.factors
            if any(n in factor.names and n not in gone for n in field.nodes)
        ]
        rest = self._graph.copy()
        rest.remove_nodes(gone)
        return type(self)(rest, kept, variables=[self._variables[n] for n in rest.nodes])

    def fit(
        self, data: Any, *, l2: float = 0.0, method: Any = "auto", weights: Any = None, missing: str = "error"
    ) -> Self:
        """Learn the potentials from data by maximum likelihood, and return the model with a record a component in `fits_`.

        The likelihood of a component given its parents is greatest where that of the field over both is, its parents joined:
        what that field says of the parents alone is free. Each component gets a table for every maximal clique.

        Parameters
        ----------
        data
            Rows in any form; the columns are found by name.
        l2, method, weights
            As in `MarkovNetwork.fit`, for the field of each component and its parents; a positive `l2` answers for
            parents' states that the rows lack.
        missing
            "error", or "drop" for rows that miss a cell.

        Examples
        --------
        >>> rows = {"a": [0, 0, 0, 1, 1, 1], "b": [0, 0, 1, 1, 1, 1], "c": [0, 1, 1, 1, 1, 0]}
        >>> ChainGraphModel("a -> b; b -- c").fit(rows).query("b", given={"a": 0}).values.round(3).tolist()
        [0.667, 0.333]
        """
        check_choice("missing", missing, ("error", "drop"))
        source = read_data(data, self._graph.nodes, variables=self._variables, weights=weights)
        if missing == "drop":
            source = source.in_memory().without_gaps()
        variables = {name: source.variables[name] for name in self._graph.nodes}
        factors: list[Factor] = []
        fits: dict[tuple[str, ...], Fit] = {}
        for field in self._fields:
            closure = self._closure(field)
            scopes = [tuple(variables[n] for n in clique) for clique in closure.maximal_cliques()]
            tables = [Factor.of(scope, np.ones([len(v) for v in scope])) for scope in scopes]
            network = MarkovNetwork([variables[n] for n in closure.nodes], tables)
            record = network.fit(source, l2=l2, method=method).fit_
            assert record is not None
            fits[tuple(field.nodes)] = record
            factors += [f for f in network.factors if set(f.names).intersection(field.nodes)]
        learned = type(self)(self._graph, factors, variables=list(variables.values()))
        learned._network = learned.to_network()  # whatever is not defined is refused before anything changes
        learned.fits_ = fits
        self.__dict__.update(learned.__dict__)
        return self

    def _closure(self, field: ComponentField) -> UndirectedGraph:
        """Return the moral graph of a component and its parents."""
        return self._graph.subgraph(field.nodes + field.parents).moral_graph()

    def _sorted_into_components(self, factors: Sequence[Factor]) -> list[ComponentField]:
        """Give each factor to the last component that it touches; it must be complete there and among the parents."""
        graph = self._graph
        fields = [
            ComponentField(part, graph.subgraph(graph.boundary(part)).nodes, [])
            for part in graph.chain_components()
        ]
        closures = [self._closure(field) for field in fields]
        last = {name: k for k, field in enumerate(fields) for name in field.nodes}
        for factor in factors:
            if not factor.names:
                continue
            k = max(last[name] for name in factor.names)
            if not (set(factor.names) <= set(closures[k]) and closures[k].is_clique(factor.names)):
                raise InvalidArgument(
                    f"a factor over {', '.join(factor.names)} is in no component with its parents; join them in the graph"
                )
            fields[k].factors.append(factor)
        return fields

    def _normalised(self, field: ComponentField) -> list[Factor]:
        """Return the potentials of a component with one over their sum as a table over the parents."""
        scaled = [factor.apply(lambda table: table / (table.max() or 1.0)) for factor in field.factors]
        if not field.parents:
            return scaled
        nodes = [self._variables[n] for n in (*field.nodes, *field.parents)]
        sums = MarkovNetwork(nodes, scaled).query(field.parents, engine="variable-elimination").factor()
        if not (sums.values > 0).all():
            worst = zip(sums.variables, np.argwhere(sums.values <= 0)[0], strict=True)
            where = ", ".join(f"{v.name} = {v.states[k]}" for v, k in worst)
            raise InvalidTable(
                f"the potentials of {', '.join(field.nodes)} forbid all states where {where}; "
                "allow one, or fit with l2= above 0"
            )
        return [*scaled, sums.apply(lambda table: 1.0 / table)]
