"""Which counterfactual probabilities the observed distribution determines: what would have been, given what was.

`identify_counterfactual` covers conjunctions of events in any worlds (ID*), given others (IDC*), and nested ones, so that
effects of treatment on the treated, natural direct and indirect effects and path-specific effects are special events.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count, pairwise
from typing import Any

import numpy as np

from markovia.causal.identification.counterfactual_sums import CounterfactualSum, Written, ways_to_write
from markovia.causal.identification.evaluation import FormulaTables, ModelAnswers, contracted
from markovia.causal.identification.events import Event
from markovia.causal.identification.expressions import Expression
from markovia.causal.identification.id_algorithm import Hedge, Identifier
from markovia.causal.identification.worlds import Clash, OpenValue, State, Term
from markovia.causal.problem import one_name, read_graph
from markovia.errors import InvalidArgument, NotIdentifiable, check_known
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.named import Names, as_names
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.runtime.clock import now
from markovia.runtime.shown import InNotebooks


def identify_counterfactual(
    graph: object, events: Event | Iterable[Event], given: Event | Iterable[Event] = (), *, latent: Names = ()
) -> "CounterfactualEstimand":
    """Find a formula for the probability of counterfactual events, given others, over the observed distribution.

    Parameters
    ----------
    graph
        What `identify` takes.
    events
        One or several; they may be in different worlds. Those without a value become axes of the answer.
    given
        What is known, with values, in any worlds; a fact is an event without `do`.
    latent
        Variables that are not observed.

    Raises
    ------
    NotIdentifiable
        If a group of variables with common hidden causes would need two values of one of them, or one of its effects is
        not identified.

    Examples
    --------
    The effect of treatment on those who were treated, where z is all that confounds:

    >>> print(identify_counterfactual("z -> x -> y; z -> y", Event("y", do={"x": 0}), given=Event("x", 1)))
    P(y[x=0] | x = 1) = Σ_z P(z) P(x=1 | z) P(y | z, x=0) / [Σ_{y,z} the same]
    """
    masked = Admg.of(read_graph(graph, latent))
    asked = (events,) if isinstance(events, Event) else tuple(events)
    known = (given,) if isinstance(given, Event) else tuple(given)
    if not asked or not all(isinstance(e, Event) for e in (*asked, *known)):
        raise InvalidArgument("a counterfactual question is about events, such as Event('y', do={'x': 1})")
    failure: NotIdentifiable | None = None
    for way in ways_to_write(masked, asked, known):
        try:
            written = way()
            return CounterfactualEstimand(
                asked,
                known,
                masked,
                written,
                _formulas(masked, written.above),
                _formulas(masked, written.below),
            )
        except Clash as clash:
            failure = failure or NotIdentifiable(_two_values(masked, clash, asked, known))
        except Hedge as hedge:
            sets = tuple(frozenset(masked.named(part)) for part in (hedge.larger, hedge.smaller))
            failure = failure or NotIdentifiable(
                f"{_question(asked, known)} is not identified: the observed distribution does not determine the effect "
                f"on {', '.join(masked.named(hedge.smaller))}",
                (sets[0], sets[1]),
            )
    assert failure is not None
    raise failure


@dataclass(frozen=True)
class CounterfactualEstimand(InNotebooks):
    """A counterfactual probability that is identified, as `identify_counterfactual` returns it.

    Attributes
    ----------
    events, given
        The question.
    """

    events: tuple[Event, ...]
    given: tuple[Event, ...]
    _graph: Admg = field(repr=False)
    _written: Written = field(repr=False)
    _above: tuple[Expression, ...] = field(repr=False)
    _below: tuple[Expression, ...] = field(repr=False)

    def __str__(self) -> str:
        top = self._text(self._written.above, self._above)
        if self._written.normalised:
            slots = [t for _, t in self._written.above.outputs if isinstance(t, OpenValue)]
            if not slots:
                return f"{_question(self.events, self.given)} = 1"
            every = _listed_sum(self._labels(self._written.above), [*slots, *_summed(self._written.above)])
            return f"{_question(self.events, self.given)} = {top} / [{every} the same]"
        if self._written.below is not None:
            top = f"[{top}] / [{self._text(self._written.below, self._below)}]"
        return f"{_question(self.events, self.given)} = {top}"

    def evaluate(self, model: Any) -> Posterior:
        """Return the distribution of the events without a value, or the probability of those with one, as a table.

        Parameters
        ----------
        model
            A model with states that has all variables; its hidden ones are only summed out.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> had = identify_counterfactual(bn, Event("wet", do={"sprinkler": "no"}), given=Event("sprinkler", "yes"))
        >>> round(had.evaluate(bn)["yes"], 4)
        0.27
        """
        start, known = now(), ModelAnswers()
        table = self._table(model, self._written.above, self._above, known)
        if self._written.normalised:
            table = table / table.sum()
        elif self._written.below is not None:
            table = table / self._table(model, self._written.below, self._below, known).sum()
        asked = [*self.events, *(self.given if self._written.below is not None else ())]
        for axis in reversed(range(len(asked))):
            if asked[axis].value is not None:
                every = self._written.normalised  # then the axis has all states, else the one asked for
                place = model.variable(asked[axis].variable).index(asked[axis].value) if every else 0
                table = np.take(table, place, axis=axis)
        opened = [e for e in self.events if e.value is None]
        names = [e.variable for e in opened]
        labels = [n if names.count(n) == 1 else str(e) for n, e in zip(names, opened, strict=True)]
        variables = tuple(
            Variable(n, model.variable(e.variable).states) for n, e in zip(labels, opened, strict=True)
        )
        return Posterior(
            Factor.of(variables, table),
            Info("counterfactual estimand", exact=known.exact, seconds=now() - start, note=str(self)),
        )

    def probability(self, model: Any) -> float:
        """Return the probability of events that all have a value."""
        if opened := next((e for e in self.events if e.value is None), None):
            raise InvalidArgument(f"{opened} has no value, so the answer is a table; call evaluate()")
        return float(self.evaluate(model).values)

    def _table(
        self, model: Any, summed: CounterfactualSum, formulas: Sequence[Expression], known: ModelAnswers
    ) -> Any:
        """Return an array with an axis for each event: all states of those left open, and one entry for the others."""
        names = self._graph.names
        states = {i: model.variable(names[i]).states for i, _ in summed.outputs}
        if summed.factors is None:
            return np.zeros(
                [1 if e.value is not None else len(model.states(e.variable)) for e in self._events_of(summed)]
            )
        tables = []
        for factor, formula in zip(summed.factors, formulas, strict=True):
            fixed = {names[i]: t.value for i, t in factor.terms.items() if isinstance(t, State)}
            table = FormulaTables(model, known).distribution(formula, fixed)
            slots = {
                names[i]: _axis(t)
                for i, t in factor.terms.items()
                if isinstance(t, OpenValue) and names[i] in table.names
            }
            tables.append(table.rename(slots))
        held = list(dict.fromkeys(t for _, t in summed.outputs if isinstance(t, OpenValue)))
        whole = (
            contracted(tables, [_axis(t) for t in _summed(summed)]).transpose([_axis(t) for t in held]).values
        )
        return _spread(whole, held, summed.outputs, states, self._events_of(summed), model, names)

    def _events_of(self, summed: CounterfactualSum) -> tuple[Event, ...]:
        if summed is self._written.below:
            return self.given
        if self._written.normalised:
            return tuple(Event(e.variable, do=e.do) for e in self.events)
        return (*self.events, *self.given) if self._written.below is not None else self.events

    def _text(self, summed: CounterfactualSum, formulas: Sequence[Expression]) -> str:
        if summed.factors is None:
            return "0"
        labels = self._labels(summed)
        parts = [
            formula.written({self._graph.names[i]: labels[t] if isinstance(t, OpenValue) else
            f"{self._graph.names[i]}={t.value}" for i, t in factor.terms.items()})
            for factor, formula in zip(summed.factors, formulas, strict=True)
        ]  # fmt: skip
        over = _listed_sum(labels, _summed(summed))
        wrapped = [f"({p})" if "Σ" in p and len(parts) > 1 else p for p in parts]
        return f"{over} {' '.join(wrapped)}" if over else " ".join(wrapped)

    def _labels(self, summed: CounterfactualSum) -> dict[OpenValue, str]:
        taken: dict[str, int] = {}
        labels: dict[OpenValue, str] = {}
        outputs = [t for _, t in summed.outputs if isinstance(t, OpenValue)]
        for slot in dict.fromkeys([*outputs, *_summed(summed)]):
            name = self._graph.names[summed.slots[slot.number]]
            labels[slot] = name + "'" * taken.get(name, 0)
            taken[name] = taken.get(name, 0) + 1
        return labels


def _spread(
    whole: Any, held: list[OpenValue], outputs: Sequence[tuple[int, Term]], states: Mapping[int, Any], events:
    Sequence[Event], model: Any, names: Sequence[str],
) -> Any:  # fmt: skip
    """Return a table over the slots as one over the events: equal slots on the diagonal, a known value at its place."""
    shape = [len(states[i]) if e.value is None else 1 for (i, _), e in zip(outputs, events, strict=True)]
    grid = np.indices(shape)
    right = np.ones(shape, bool)
    at: dict[OpenValue, Any] = {}
    for axis, ((i, term), event) in enumerate(zip(outputs, events, strict=True)):
        variable = model.variable(names[i])
        here = grid[axis] if event.value is None else np.full(shape, variable.index(event.value))
        if isinstance(term, State):
            right &= here == variable.index(term.value)
        elif term in at:
            right &= here == at[term]
        else:
            at[term] = here
    values = whole[tuple(at[slot] for slot in held)] if held else np.broadcast_to(whole, shape)
    return np.where(right, values, 0.0)


def _formulas(graph: Admg, summed: CounterfactualSum | None) -> tuple[Expression, ...]:
    if summed is None or summed.factors is None:
        return ()
    identifier = Identifier(graph)
    return tuple(identifier.effect(graph.pillow(f.members), f.members) for f in summed.factors)


def _summed(summed: CounterfactualSum) -> list[OpenValue]:
    outputs = {t for _, t in summed.outputs}
    slots = {
        t
        for f in summed.factors or ()
        for t in f.terms.values()
        if isinstance(t, OpenValue) and t not in outputs
    }
    return sorted(slots, key=lambda t: t.number)


def _listed_sum(labels: Mapping[OpenValue, str], slots: Iterable[OpenValue]) -> str:
    listed = sorted(labels[t] for t in slots)
    return "" if not listed else f"Σ_{listed[0]}" if len(listed) == 1 else f"Σ_{{{','.join(listed)}}}"


def _axis(slot: OpenValue) -> str:
    return f"#{slot.number}"


def _question(events: Sequence[Event], given: Sequence[Event]) -> str:
    bar = f" | {', '.join(map(str, given))}" if given else ""
    return f"P({', '.join(map(str, events))}{bar})"


def _two_values(graph: Admg, clash: Clash, events: Sequence[Event], given: Sequence[Event]) -> str:
    inside = graph.named(clash.members)
    group = (
        f"{', '.join(inside)} share hidden causes"
        if len(inside) > 1
        else f"{inside[0]} has its own hidden causes"
    )
    return (
        f"{_question(events, given)} is not identified by any experiment: {group}, and {graph.names[clash.variable]} would "
        "have two values at once among them"
    )


# -- questions with names -----------------------------------------------------------------------------------------


def effect_on_treated(
    graph: object, treatment: Names, outcome: Names, *, had: Any, instead: Any, latent: Names = ()
) -> CounterfactualEstimand:
    """Find what the outcome of those who had one treatment would have been with another.

    Examples
    --------
    >>> print(effect_on_treated("z -> x -> y; z -> y", "x", "y", had=1, instead=0).events)
    (Event('y[x=0]'),)
    """
    x, y = one_name(treatment, "treatment"), one_name(outcome, "outcome")
    return identify_counterfactual(graph, Event(y, do={x: instead}), Event(x, had), latent=latent)


@dataclass(frozen=True)
class NaturalEffects(InNotebooks):
    """Natural direct and indirect effects, as formulas of the outcome's distribution in four worlds.

    Attributes
    ----------
    treated, control
        The outcome with and without treatment.
    direct
        The outcome with treatment and the mediators as they would be without.
    indirect
        The outcome without treatment and the mediators as they would be with it.
    """

    treated: CounterfactualEstimand
    control: CounterfactualEstimand
    direct: CounterfactualEstimand
    indirect: CounterfactualEstimand

    def evaluate(self, model: Any, state: Any = None) -> dict[str, float]:
        """Return the total, direct and indirect effect: on the mean of an outcome with numbers as states, or on a state.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.BayesianNetwork()
        >>> bn.add("x", [0.5, 0.5], states=[0, 1])
        >>> bn.add("m", [[0.8, 0.2], [0.3, 0.7]], states=[0, 1], parents=["x"])
        >>> bn.add("y", [[[0.9, 0.1], [0.6, 0.4]], [[0.7, 0.3], [0.2, 0.8]]], states=[0, 1], parents=["x", "m"])
        >>> {k: round(v, 3) for k, v in natural_effects(bn, "x", "y", "m", treated=1, control=0).evaluate(bn).items()}
        {'total': 0.49, 'direct': 0.24, 'indirect': 0.15}
        """

        def value(estimand: CounterfactualEstimand) -> float:
            found = estimand.evaluate(model)
            return float(found[state]) if state is not None else float(found.mean())

        base = value(self.control)
        return {
            "total": value(self.treated) - base, "direct": value(self.direct) - base,
            "indirect": value(self.indirect) - base,
        }  # fmt: skip


def natural_effects(
    graph: object,
    treatment: Names,
    outcome: Names,
    mediators: Names,
    *,
    treated: Any,
    control: Any,
    latent: Names = (),
) -> NaturalEffects:
    """Find natural direct and indirect effects through mediators.

    Raises
    ------
    NotIdentifiable
        If a cross-world probability is not determined, as where treatment changes a common cause of mediator and outcome.

    Examples
    --------
    >>> found = natural_effects("x -> m -> y; x -> y", "x", "y", "m", treated=1, control=0)
    >>> print(found.direct)
    P(y[m=m[x=0], x=1]) = Σ_m P(m | x=0) P(y | x=1, m)
    """
    between = as_names(mediators)
    x, y = one_name(treatment, "treatment"), one_name(outcome, "outcome")
    read = read_graph(graph, latent)

    def world(own: Any, theirs: Any) -> CounterfactualEstimand:
        through = {m: Event(m, do={x: theirs}) for m in between} if own != theirs else {}
        return identify_counterfactual(read, Event(y, do={x: own, **through}))

    return NaturalEffects(
        world(treated, treated), world(control, control), world(treated, control), world(control, treated)
    )


def path_specific(
    graph: object, treatment: Names, outcome: Names, paths: Iterable[Sequence[str]], *, treated: Any, control: Any,
    latent: Names = (), limit: int = 10_000,
) -> CounterfactualEstimand:  # fmt: skip
    """Find the outcome if treatment acted along some paths only, and all others carried what they would without it.

    Parameters
    ----------
    paths
        Directed paths from treatment to outcome, as names.
    treated, control
        The treatment that acts along the paths, and the one that acts along the others.

    Examples
    --------
    >>> print(path_specific("x -> m -> y; x -> y", "x", "y", [["x", "m", "y"]], treated=1, control=0))
    P(y[m=m[x=1], x=0]) = Σ_m P(m | x=1) P(y | x=0, m)
    """
    treatment, outcome = one_name(treatment, "treatment"), one_name(outcome, "outcome")
    masked = Admg.of(read_graph(graph, latent))
    number = masked.number
    check_known((treatment, outcome), number, "the graph")
    active = {tuple(path) for path in paths}
    for path in active:
        steps = list(pairwise(path))
        edges = all(
            a in number and b in number and masked.parents[number[b]] >> number[a] & 1 for a, b in steps
        )
        if path[:1] != (treatment,) or path[-1:] != (outcome,) or not edges:
            raise InvalidArgument(f"{' -> '.join(path)} is no directed path from {treatment} to {outcome}")
    below = masked.descendants(1 << number[treatment])
    visits = count()

    def event(name: str, tail: tuple[str, ...]) -> Event:
        if next(visits) > limit:
            raise InvalidArgument(f"there are more than {limit:,} paths from {treatment!r} to {outcome!r}")
        do: dict[str, Any] = {}
        for parent in masked.named(masked.parents[number[name]] & below):
            here = (parent, *tail)
            do[parent] = (
                (treated if here in active else control) if parent == treatment else event(parent, here)
            )
        return Event(name, do=do)

    return identify_counterfactual(masked.graph(), event(outcome, (outcome,)))
