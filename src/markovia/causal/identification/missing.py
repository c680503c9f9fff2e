"""Which distributions can be recovered from rows with missing cells, by the graph of what makes them missing.

The graph holds, beside the variables, an indicator for each that has gaps: "seen" if its cell is there. A conditional
distribution is that of the complete rows if the indicators tell nothing about the target; the joint one is that of the
complete rows weighted by one over the probability of being complete, if that probability is itself recovered, indicator
by indicator. References: Mohan and Pearl, *Graphical models for recovering probabilistic and causal queries from missing
data*, NeurIPS 27 (2014), and *Graphical models for processing missing data*, JASA 116 (2021).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np

from markovia.causal.problem import read_graph
from markovia.data.tables.counting import counts
from markovia.errors import InvalidArgument, NotIdentifiable
from markovia.factors.tables.factor import Factor
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.masks import members
from markovia.graphs.kinds.named import Names, as_names
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import pd
from markovia.runtime.shown import InNotebooks

MOST_ORDERS = 5040


@dataclass(frozen=True)
class Completeness:
    """The probability that a cell is there: P(indicator | given), from the rows where `among` are seen too."""

    indicator: str
    given: tuple[str, ...]
    among: tuple[str, ...]

    def __str__(self) -> str:
        conditions = [*self.given, *(f"{name} = seen" for name in self.among)]
        return f"P({self.indicator} = seen{' | ' if conditions else ''}{', '.join(conditions)})"


@dataclass(frozen=True)
class Recovered(InNotebooks):
    """How a distribution is recovered from rows with gaps.

    Attributes
    ----------
    target, given
        What is recovered: P(target | given).
    rule
        "complete rows" or "weighted complete rows".
    needed
        The columns that have to be there in a row for it to count.
    terms
        The probabilities whose product weighs rows by its inverse; none for the first rule.
    indicators
        The indicator of each variable with gaps.
    """

    target: tuple[str, ...]
    given: tuple[str, ...]
    rule: str
    needed: tuple[str, ...]
    terms: tuple[Completeness, ...]
    indicators: Mapping[str, str]

    def __str__(self) -> str:
        bar = f" | {', '.join(self.given)}" if self.given else ""
        seen = [f"{self.indicators[n]} = seen" for n in self.needed if n in self.indicators]
        left = f"P({', '.join(self.target)}{bar})"
        if self.rule == "complete rows":
            return f"{left} = P({', '.join(self.target)} | {', '.join([*self.given, *seen])})"
        joint = f"P({', '.join([*self.needed, *seen])})"
        weighted = f"{joint} / [{' '.join(map(str, self.terms))}]"
        return f"{left} from P({', '.join(self.needed)}) = {weighted}"

    def weights(self, frame: Any, learner: Any = None) -> Array:
        """Return the weight of each row: zero if a needed cell is missing, and with mean one over all rows.

        Parameters
        ----------
        frame
            Columns by name, with NaN or None for what is missing.
        learner
            A scikit-learn classifier for the probabilities of being there; without one they are shares of rows with the
            same values, which suits columns with few of them.
        """
        table = pd.DataFrame(frame)
        if absent := [n for n in (*self.needed, *(g for t in self.terms for g in t.given)) if n not in table]:
            raise InvalidArgument(f"the data has no column {absent[0]!r}")
        of = {indicator: name for name, indicator in self.indicators.items()}
        weights = np.asarray(table[list(self.needed)].notna().all(axis=1), np.float64)
        if not weights.any():
            raise InvalidArgument(f"no row has all of {', '.join(self.needed)}")
        for term in self.terms:
            usable = table[[*term.given, *(of[r] for r in term.among)]].notna().all(axis=1).to_numpy(bool)
            seen = np.asarray(table[of[term.indicator]].notna(), np.float64)
            chance = _chances(table.loc[usable, list(term.given)], seen[usable], learner)
            weights[usable] /= np.where(weights[usable] > 0, chance, 1.0)
        return np.asarray(weights * len(weights) / weights.sum())

    def evaluate(self, frame: Any, learner: Any = None) -> Factor:
        """Return the recovered table of variables with states, from a frame with gaps."""
        weights = self.weights(frame, learner)
        table = pd.DataFrame(frame)
        kept = weights > 0
        whole = counts(table.loc[kept, list(self.needed)], list(self.needed), weights=weights[kept])
        if not self.given:
            return whole.normalize().marginal(self.target)
        return whole.conditional(self.target, self.given)


def recover(
    graph: object, missing: Mapping[str, str], target: Names = (), given: Names = (), *, latent: Names = ()
) -> Recovered:
    """Find how a distribution is recovered from data with missing cells.

    Parameters
    ----------
    graph
        What `identify` takes, with the indicators among its nodes; they have no children but other indicators.
    missing
        For each variable with gaps the name of its indicator.
    target, given
        The distribution P(target | given); without a target, the joint distribution of all variables.
    latent
        Variables that are never observed.

    Raises
    ------
    NotIdentifiable
        If no rule here recovers it, as where a value decides itself whether it is seen.

    Examples
    --------
    Older people answer less often about their income, and age is known:

    >>> print(recover("age -> income; age -> seen_income", {"income": "seen_income"}, "income", "age"))
    P(income | age) = P(income | age, seen_income = seen)
    >>> print(recover("age -> income; age -> seen_income", {"income": "seen_income"}))
    P(age, income) from P(age, income) = P(age, income, seen_income = seen) / [P(seen_income = seen | age)]
    """
    masked = Admg.of(read_graph(graph, latent))
    if unknown := next((n for n in [*missing, *missing.values()] if n not in masked.number), None):
        raise InvalidArgument(f"the graph has no node {unknown!r}")
    indicators = masked.mask(missing.values())
    variables = masked.everything & ~indicators
    for i in members(indicators):
        if masked.children[i] & variables:
            raise InvalidArgument(
                f"the indicator {masked.names[i]!r} points to a variable: whether a value is seen would change it"
            )
    wanted, known = tuple(as_names(target)), tuple(as_names(given))
    if other := next((n for n in (*wanted, *known) if n not in masked.number or n in missing.values()), None):
        raise InvalidArgument(f"{other!r} is no variable of the graph")
    if not wanted:
        if known:
            raise InvalidArgument("name the target of a distribution given others")
        wanted = masked.named(variables)
    involved = (*known, *wanted)
    needs = masked.mask(missing[n] for n in involved if n in missing)
    if masked.m_separated(masked.mask(wanted), needs, masked.mask(known)):
        return Recovered(wanted, known, "complete rows", involved, (), dict(missing))
    return _joint(masked, missing, wanted, known, variables, indicators)


def _joint(
    graph: Admg,
    missing: Mapping[str, str],
    wanted: tuple[str, ...],
    known: tuple[str, ...],
    variables: int,
    indicators: int,
) -> Recovered:
    seen = [graph.number[r] for r in missing.values()]
    of = {graph.number[r]: graph.number[n] for n, r in missing.items()}
    stuck: dict[int, None] = {}
    for count, order in enumerate(permutations(seen)):
        if count >= MOST_ORDERS:
            break
        left, terms = indicators, []
        for r in order:
            left &= ~(1 << r)
            term = _chance_of(graph, r, of, variables, left, indicators)
            if term is None:
                stuck[r] = None
                break
            terms.append(term)
        else:
            return Recovered(
                wanted, known, "weighted complete rows", graph.named(variables), tuple(terms), dict(missing)
            )
    names = ", ".join(graph.names[of[r]] for r in stuck)
    raise NotIdentifiable(
        f"the distribution is not recovered from rows with gaps: whether {names} is seen depends on what is not seen"
    )


def _chance_of(
    graph: Admg, r: int, of: Mapping[int, int], variables: int, left: int, indicators: int
) -> Completeness | None:
    """Return the probability that a cell is there, given variables and the indicators left; None if not recovered."""
    indicator_of = {v: k for k, v in of.items()}

    def enough(given: int) -> bool:
        unseen = sum(1 << indicator_of[v] for v in members(given) if v in indicator_of) & ~left & indicators
        return graph.m_separated(1 << r, variables & ~given | unseen, given | left)

    given = variables & ~(1 << of[r])
    if not graph.m_separated(1 << r, 1 << of[r], given | left):
        return None
    for v in members(given):
        smaller = given & ~(1 << v)
        if graph.m_separated(1 << r, variables & ~smaller, smaller | left):
            given = smaller
    if not enough(given):
        return None
    return Completeness(graph.names[r], graph.named(given), graph.named(left))


def _chances(given: Any, seen: Array, learner: Any) -> Array:
    """Return for each row the estimated probability of being seen."""
    if not given.shape[1]:
        return np.full(len(seen), seen.mean())
    if learner is None:
        groups = given.groupby(list(given.columns), sort=False, observed=True).ngroup().to_numpy()
        return np.asarray((np.bincount(groups, seen) / np.bincount(groups))[groups])
    from sklearn.base import clone

    features = pd.get_dummies(given, dtype=float)
    fitted = clone(learner).fit(features, seen)
    return np.asarray(fitted.predict_proba(features)[:, list(fitted.classes_).index(1.0)])
