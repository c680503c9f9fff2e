"""Observed treatments turned into decisions, where the data say what other decisions would have led to.

A network that is fitted to what was observed answers for a policy only if nothing hidden joins a treatment to what follows
it. So what the utilities depend on has to be identified under plans for these treatments (the g-formula), with the variables
called latent taken as not observed; of a learned class of graphs no edge at a treatment may lack a direction.

Cost: that of identifying one plan for each variable that a utility depends on.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from markovia.errors import InvalidArgument, NotIdentifiable, UnsupportedModel, check_known
from markovia.factors.decisions.decision import Decision
from markovia.factors.quantities.quantity import Quantity
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.kinds.named import Names, as_names
from markovia.graphs.kinds.trails import open_trails
from markovia.models.graphical.directed_model import without_direction
from markovia.runtime import ports

if TYPE_CHECKING:
    from markovia.models.graphical.bayesian_network import BayesianNetwork

FEW_TRAILS = 100
"""How many open trails are looked through for one that starts with an arrow into the treatment."""


def freed(
    network: "BayesianNetwork", sees: Mapping[str, Names], *, latent: Names = (), outcome: Names | None = None
) -> "BayesianNetwork":
    """Return a network in which observed treatments are decisions that see what is listed.

    Parameters
    ----------
    network
        A network of what was observed.
    sees
        For each treatment what its decision sees.
    latent
        Variables of the network that were not observed, though it has tables for them.
    outcome
        What has to be identified: by default what the utilities depend on or, without a utility, all that was observed.

    Raises
    ------
    NotIdentifiable
        If the data do not determine what follows from other decisions, with a path that stays open.
    InvalidArgument
        If a treatment would see what it changes, or what is not observed.

    Examples
    --------
    >>> import markovia as mk
    >>> bn = mk.BayesianNetwork()
    >>> bn.add("ill", [0.5, 0.5], states=["no", "yes"])
    >>> bn.add("drug", [[0.8, 0.2], [0.4, 0.6]], states=["no", "yes"], parents=["ill"])
    >>> table = [[[0.1, 0.9], [0.3, 0.7]], [[0.8, 0.2], [0.4, 0.6]]]
    >>> bn.add("well", table, states=["no", "yes"], parents=["ill", "drug"])
    >>> bn.add("gain", mk.Utility([0, 1]), parents=["well"])
    >>> freed(bn, {"drug": "ill"})["drug"]
    DecisionNode drug: ['no', 'yes'], seeing ill
    """
    hidden = as_names(latent)
    asked = {name: tuple(as_names(names)) for name, names in sees.items()}
    _check_names(network, asked, hidden)
    graph = network.graph
    for name, names in asked.items():
        below = graph.descendants(name)
        if changed := next((n for n in names if n in below), None):
            raise InvalidArgument(
                f"the decision {name!r} cannot see {changed!r}, which comes after it: {_directed(graph, name, changed)}"
            )
        if unseen := next((n for n in names if n in hidden), None):
            raise InvalidArgument(f"the decision {name!r} cannot see {unseen!r}, which is latent")
    _check_directions(network, asked)
    wanted = as_names(outcome) if outcome is not None else _outcomes(network, asked, hidden)
    check_known(wanted, network.variables, "the network")
    seen_by_some = {n for names in asked.values() for n in names}
    observed = _chances(network, graph)
    for name in wanted:
        if name in asked or name in seen_by_some or name not in graph.descendants(list(asked)):
            continue  # what is seen is identified with every outcome, and what does not follow needs no plan
        try:
            ports.call("identify-plan", observed, asked, name, latent=hidden)
        except NotIdentifiable as error:
            raise NotIdentifiable(_open_path(graph, asked, name, hidden, str(error)), error.hedge) from None
    twin = network.copy()
    for name, names in asked.items():
        twin.replace(name, Decision(network.variable(name).states), parents=list(names))
    return twin


def _check_names(
    network: "BayesianNetwork", asked: Mapping[str, Iterable[str]], hidden: Iterable[str]
) -> None:
    if not asked:
        raise InvalidArgument(
            "free() takes a mapping from treatment to what its decision sees; it names none"
        )
    check_known(
        [*asked, *(n for names in asked.values() for n in names), *hidden], network.variables, "the network"
    )
    for name, names in asked.items():
        if name in hidden:
            raise InvalidArgument(
                f"{name!r} is latent: nobody saw what was done, so no decision can be learned for it"
            )
        if network.has_table(name) and network[name].kind in ("decision", "utility"):
            raise InvalidArgument(
                f"{name!r} is a {network[name].kind} already; free() is for observed treatments"
            )
        if isinstance(network.variable(name), Quantity):
            raise UnsupportedModel(
                f"{name!r} is a number; only treatments with states are turned into decisions"
            )
        if valued := next((n for n in names if _kind(network, n) == "utility"), None):
            raise InvalidArgument(f"the decision {name!r} cannot see {valued!r}, a utility")


def _kind(network: "BayesianNetwork", name: str) -> str:
    return network[name].kind if network.has_table(name) else "table"


def _check_directions(network: "BayesianNetwork", asked: Mapping[str, Iterable[str]]) -> None:
    """Refuse edges without a direction between a treatment and what is no treatment."""
    known = network.equivalence_class
    if known is None:
        return
    crossing = [edge for edge in known.undirected_edges() if len({*edge} & asked.keys()) == 1]
    if crossing:
        raise NotIdentifiable(without_direction(crossing, "what a treatment changes depends on it"))


def _outcomes(network: "BayesianNetwork", asked: Mapping[str, object], hidden: Iterable[str]) -> list[str]:
    """Return what the utilities depend on; all that is observed where there is none."""
    utilities = {n for n in network.variables if _kind(network, n) == "utility"}
    if not utilities:
        return [n for n in network.variables if n not in hidden and n not in asked]
    above = dict.fromkeys(p for n in network.variables if n in utilities for p in network.parents(n))
    if unseen := next((n for n in above if n in hidden), None):
        raise NotIdentifiable(
            f"a utility depends on {unseen!r}, which is latent, so no data say what it becomes"
        )
    return [n for n in above if n not in utilities]


def _chances(network: "BayesianNetwork", graph: DAG) -> MixedGraph:
    """Return the graph without utilities, as one of directed edges, whatever the class it came from."""
    utilities = {n for n in network.variables if _kind(network, n) == "utility"}
    kept = [n for n in graph.nodes if n not in utilities]
    return MixedGraph.from_dag(DAG.from_parents({n: graph.parents(n) for n in kept}))


def _open_path(
    graph: DAG, asked: Mapping[str, Iterable[str]], outcome: str, hidden: Iterable[str], why: str
) -> str:
    """Say which way a treatment and the outcome depend on each other besides by what the treatment changes."""
    order = [n for n in graph.topological_order() if n in asked]
    out_of_sight = {*hidden}
    for name in order:
        below = graph.descendants(name)
        seen = [
            n for n in graph.nodes if n not in below and n != name and n not in out_of_sight and n != outcome
        ]
        for end in [outcome, *sorted(graph.children(name))]:
            if end in out_of_sight:
                continue
            for trail in open_trails(graph, name, end, given=[n for n in seen if n != end], limit=FEW_TRAILS):
                if trail.arrows[0] == "<-":
                    return f"a plan for {', '.join(map(repr, asked))} is not identified: {trail} stays open ({why})"
    return f"a plan for {', '.join(map(repr, asked))} is not identified: {why}"


def _directed(graph: DAG, source: str, target: str) -> str:
    """Return a shortest directed path as text."""
    before = {source: ""}
    front = [source]
    while target not in before:
        front = [
            child
            for node in front
            for child in graph.children(node)
            if before.setdefault(child, node) == node
        ]
    path = [target]
    while path[-1] != source:
        path.append(before[path[-1]])
    return " -> ".join(reversed(path))
