"""From a graph and a question to a formula: the simple rules first, then the complete algorithm."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markovia.causal.identification.adjustment import BackDoor, adjustment_sets
from markovia.causal.identification.equivalence_classes import GraphClass
from markovia.causal.identification.estimand import Estimand
from markovia.causal.identification.expressions import P, product, summed
from markovia.causal.identification.front_door import front_door_sets
from markovia.causal.identification.id_algorithm import Hedge, Identifier, Regime
from markovia.causal.problem import Family, Problem, one_name, read_graph
from markovia.errors import InvalidArgument, NotIdentifiable, UnknownVariable, check_known
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.named import Names, as_names

Known = Mapping[str, Names]


def identify(
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    given: Names = (),
    latent: Names = (),
    available: Sequence[Known] | None = None,
    family: Family = "auto",
) -> Estimand:
    """Find a formula for an effect, P(outcome | do(treatment), given), or prove that there is none.

    Tried in this order: no causal path, back-door adjustment, the front-door criterion, and the ID algorithm, which finds a
    formula whenever one exists.

    Parameters
    ----------
    graph
        A `DAG`, a `MixedGraph` with bidirected edges for hidden common causes, a CPDAG or PAG, dagitty text, a text such as
        `"x -> y; x <-> y"`, or a model.
    treatment, outcome, given
        One name or several.
    latent
        Variables of the graph that are not observed.
    available
        The distributions that are known, if not the observed one of all variables: for each a mapping with `"do"`, the names
        that were set in that experiment, and perhaps `"see"`, the names that were recorded. `{}` is the observed one. Where
        there are several populations, `"population"` names one, and `"differs"` the variables whose mechanisms are not
        those of the population in question; see `transport`.
    family
        What the edges mean. A `MixedGraph` of directed and bidirected edges alone is read as an ADMG, in which every hidden
        common cause is drawn; "mag" says that it is a maximal ancestral graph, in which a directed edge may hide one.
        Learned graphs, dagitty texts that begin with `mag` or `pag`, circles and undirected edges say so themselves.

    Returns
    -------
    Estimand
        The formula, with its rule and assumptions; `evaluate` computes it on a model.

    Raises
    ------
    NotIdentifiable
        If two models can agree on all that is known and differ in the effect; `hedge` holds the sets that prove it.
    UnknownVariable, InvalidArgument
        If a name is not observed in the graph or has two roles.

    Examples
    --------
    >>> print(identify("x -> z -> y; x <-> y", "x", "y").expression)
    Σ_z P(z | x) Σ_x' P(x') P(y | x', z)
    >>> identify("x -> y; x <-> y", treatment="x", outcome="y")
    Traceback (most recent call last):
    ...
    markovia.errors.NotIdentifiable: P(y | do(x)) is not identified: hidden causes join {x, y} in a hedge above {y}
    """
    problem = Problem.of(graph, treatment, outcome, given, latent, family)
    if available is not None:
        return _from_experiments(problem, available)
    if problem.is_class:
        return _in_a_class(problem)
    return _without_effect(problem) or _by_adjustment(problem) or _by_front_door(problem) or _by_id(problem)


def _without_effect(problem: Problem) -> Estimand | None:
    admg = problem.admg
    x, y, z = (admg.mask(names) for names in (problem.treatment, problem.outcome, problem.given))
    into = x & ~admg.ancestors(z)
    if not admg.m_separated(x, y, z, into=into):
        return None
    return _estimand(problem, "no effect", P(problem.outcome, problem.given))


def _by_adjustment(problem: Problem) -> Estimand | None:
    admg = problem.admg
    x, y, z = (admg.mask(names) for names in (problem.treatment, problem.outcome, problem.given))
    below = admg.descendants(x)
    door = BackDoor(GraphClass("admg", admg, admg.children, admg.children), x, y)
    allowed = (
        door.allowed & ~below if z else door.allowed
    )  # only what x does not change can be averaged given z
    if z & ~allowed:
        return None
    found = next(door.sets("minimum", allowed, z, [1.0] * len(admg.names)), None)
    if found is None:
        return None
    return _adjusted(problem, "adjustment" if below & found else "back-door", admg.named(found & ~z))


def _adjusted(problem: Problem, rule: str, chosen: tuple[str, ...]) -> Estimand:
    effect = P(problem.outcome, (*problem.treatment, *problem.given, *chosen))
    weights = [P(chosen, problem.given)] if chosen else []
    formula = summed(chosen, product([*weights, effect]))
    return _estimand(problem, rule, formula, adjustment=chosen)


def _by_front_door(problem: Problem) -> Estimand | None:
    if problem.given:
        return None
    sets = front_door_sets(problem.graph, problem.treatment, problem.outcome, limit=1)
    if not sets:
        return None
    x, z = problem.treatment, sets[0]
    inner = summed(x, product([P(x), P(problem.outcome, (*x, *z))]))
    return _estimand(problem, "front-door", summed(z, product([P(z, x), inner])), mediators=z)


def _by_id(problem: Problem) -> Estimand:
    admg = problem.admg
    x, y, z = (admg.mask(names) for names in (problem.treatment, problem.outcome, problem.given))
    try:
        formula, _ = Identifier(admg).conditional_effect(x, y, z)
    except Hedge as hedge:
        raise _not_identified(problem, admg, hedge) from None
    return _estimand(problem, "idc" if z else "id", formula)


def _from_experiments(problem: Problem, available: Iterable[Known]) -> Estimand:
    admg = problem.admg
    regimes = sorted(
        (_regime(admg, known) for known in available), key=lambda r: (r.differs > 0, r.set_.bit_count())
    )
    x, y, z = (admg.mask(names) for names in (problem.treatment, problem.outcome, problem.given))
    try:
        formula, _ = Identifier(admg, regimes).conditional_effect(x, y, z)
    except Hedge as hedge:
        raise _not_identified(problem, admg, hedge) from None
    rule = "transport" if len({r.population for r in regimes}) > 1 else "gid"
    return _estimand(problem, rule, formula, available=tuple(regimes))


def _regime(admg: Admg, known: Known) -> Regime:
    if not isinstance(known, Mapping) or not set(known) <= {"do", "see", "population", "differs"}:
        raise InvalidArgument(
            f"what is available is written {{'do': [names], 'see': [names]}}, not {known!r}"
        )
    masks = {}
    for key in ("do", "see", "differs"):
        names = as_names(known[key]) if key in known else admg.names if key == "see" else []
        if unknown := next((n for n in names if n not in admg.number), None):
            raise UnknownVariable(unknown, admg.names, where="the graph")
        masks[key] = admg.mask(names)
    return Regime(
        masks["do"], masks["see"] & ~masks["do"], str(known.get("population", "")), masks["differs"]
    )


def _in_a_class(problem: Problem) -> Estimand:
    """Answer for every graph of a class at once, by adjustment."""
    if problem.given:
        raise InvalidArgument(
            "effects given other variables need one graph, not a class; orient the edges first"
        )
    sets = adjustment_sets(
        problem.graph, problem.treatment, problem.outcome, kind="minimum", limit=1, family=problem.family
    )
    if not sets:
        raise NotIdentifiable(
            f"{P(problem.outcome, (), problem.treatment)} is not identified by adjustment: "
            "the graphs of the class disagree, or hidden causes remain"
        )
    return _adjusted(problem, "adjustment", sets[0])


def _not_identified(problem: Problem, admg: Admg, hedge: Hedge) -> NotIdentifiable:
    larger, smaller = admg.named(hedge.larger), admg.named(hedge.smaller)
    question = P(problem.outcome, problem.given, problem.treatment)
    return NotIdentifiable(
        f"{question} is not identified: hidden causes join {{{', '.join(larger)}}} "
        f"in a hedge above {{{', '.join(smaller)}}}",
        (frozenset(larger), frozenset(smaller)),
    )


def _estimand(problem: Problem, rule: str, formula: Any, **sets: Any) -> Estimand:
    sentences = ["the graph holds: what it does not draw, causes nothing"]
    if not problem.graph.bidirected_edges():
        sentences.append("no two variables have a common cause outside the graph")
    conditions = sorted(
        {n for term in formula.terms() if set(term.given) & set(problem.treatment) for n in term.given}
    )
    if conditions:
        sentences.append(
            f"every combination of {', '.join(conditions)} that matters has positive probability"
        )
    return Estimand(
        problem.treatment, problem.outcome, problem.given, rule, formula, problem.graph,
        assumptions=tuple(sentences), **sets,
    )  # fmt: skip


def transport(
    graph: object,
    treatment: Names,
    outcome: Names,
    *,
    differs: Names,
    given: Names = (),
    latent: Names = (),
    source: Sequence[Known] | None = None,
    target: Sequence[Known] = ({},),
) -> Estimand:
    """Find a formula for an effect in a target population from experiments in a source population.

    Parameters
    ----------
    graph, treatment, outcome, given, latent
        As for `identify`; the graph is the same in both populations.
    differs
        The variables whose mechanisms differ between the populations, to which selection nodes would point.
    source, target
        What is known of each, written as for `identify(available=...)`: by default an experiment on the treatments in the
        source, and what is observed in the target.

    Returns
    -------
    Estimand
        Its terms are of the populations "source" and "target"; `evaluate` takes `{"source": model, "target": model}`.

    Raises
    ------
    NotIdentifiable
        If the effect cannot be transported.

    Examples
    --------
    >>> print(transport("x -> y <- z; x <-> y", treatment="x", outcome="y", differs="z").expression)
    Σ_z P_source(y | do(x), z) P_target(z)
    """
    sources = [{"do": treatment}] if source is None else source
    known: list[Known] = [{**regime, "population": "source", "differs": differs} for regime in sources]
    known += [{**regime, "population": "target"} for regime in target]
    return identify(graph, treatment=treatment, outcome=outcome, given=given, latent=latent, available=known)


def tian_pearl(graph: object, treatment: Names, outcome: Names | None = None, *, latent: Names = ()) -> bool:
    """Say whether no hidden causes join the treatment to one of its children, by any path of bidirected edges.

    Then the effect of the treatment on all other variables is identified, and else it is not. With outcomes only their
    ancestors count, and the condition is sufficient for these.

    Examples
    --------
    >>> tian_pearl("x -> z -> y; x <-> y", "x"), tian_pearl("x -> z; z <-> x", "x")
    (True, False)
    """
    treatment = one_name(treatment, "treatment")
    read = read_graph(graph, latent)
    check_known((treatment, *as_names(outcome or ())), read.nodes, "the graph")
    admg = Admg.of(read)
    x = admg.mask([treatment])
    within = admg.everything if outcome is None else admg.ancestors(admg.mask(as_names(outcome)))
    return not admg.district(x, within=within | x) & admg.children[admg.number[treatment]] & within
