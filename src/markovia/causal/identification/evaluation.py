"""The value of a formula on a model, from the distributions of its observed variables alone.

Every term P(of | given) of the formula is asked of the model's exact engine (or read off its own table, where the
parents are all given); sums are made one variable at a time, each time the one whose table is smallest, so that no
table over all variables arises. Terms over numbers are Gaussians in canonical form. A condition of probability zero
leaves a term undefined: that is an error if the undefined part has any weight in the answer.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product as every_pair
from math import prod
from typing import Any

import numpy as np

from markovia.causal.identification.expressions import (
    Expression,
    P,
    ProductExpression,
    Quotient,
    SumExpression,
)
from markovia.errors import ImpossibleEvidence, InvalidArgument, NoOverlap, TooLarge, Unanswered
from markovia.factors.gaussian.canonical_form import GaussianFactor
from markovia.factors.gaussian.canonical_form import product as gaussian_product
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.factor import Factor, product
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.directed import DAG
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior, MixtureOfGaussians
from markovia.inference.posterior import Posterior
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.clock import now

LARGEST_TABLE = 2**26
Values = Mapping[str, Any]


def evaluated(
    formula: Expression, model: Any, outcome: Sequence[str], values: Values, note: str
) -> Posterior | GaussianPosterior:
    """Return the distribution of the outcomes that a formula describes, with treatments and conditions at some values.

    Raises
    ------
    NoOverlap
        If a condition that matters has probability zero.
    Unanswered
        If no exact way is known for this formula on this model.
    """
    variables = {
        n: of_population(model, term.population).variable(n) for term in formula.terms() for n in term.free
    }
    numbers = {
        n for n, v in variables.items() if isinstance(v, Quantity) and (n not in values or _bound(formula, n))
    }
    start, asked = now(), ModelAnswers()

    def info() -> Info:
        return Info("estimand", exact=asked.exact, seconds=now() - start, given=dict(values), note=note)

    if not numbers:
        table = FormulaTables(model, asked).distribution(formula, values)
        return Posterior(table.transpose(list(outcome)).normalize(), info())
    if numbers <= set(outcome) and any(n not in values and n not in numbers for n in variables):
        mixture = _mixture(formula, model, outcome, values, numbers, asked)
    else:
        mean, covariance = _moments(Gaussians(model, asked).value(formula, values), outcome)
        mixture = _components(outcome, np.ones(1), mean[None], covariance[None])
    return GaussianPosterior(outcome, mixture, info())


def of_population(model: Any, population: str) -> Any:
    """Return the model of a population, where there are several.

    Raises
    ------
    InvalidArgument
        If there is none for it.
    """
    if not isinstance(model, Mapping):
        return model
    if population not in model:
        raise InvalidArgument(
            f"the formula needs a model of the population {population!r}; pass {{{population!r}: model}}"
        )
    return model[population]


class ModelAnswers:
    """What was asked of models on the way: a formula's value is exact where all these answers are."""

    def __init__(self) -> None:
        self.exact = True

    def __call__(self, model: Any, targets: Sequence[str], given: Mapping[str, Any]) -> Any:
        """Return the model's answer."""
        answer = model.query(targets, given=given or None)
        self.exact = self.exact and bool(answer.info.exact)
        return answer


class FormulaTables:
    """Values of formulas as tables over the variables that are not fixed."""

    def __init__(self, model: Any, asked: ModelAnswers | None = None) -> None:
        self.model, self.asked = model, asked or ModelAnswers()
        self.undefined: list[tuple[P, dict[str, Any]]] = []
        self.fill = 0.0
        self._done: dict[Any, Factor] = {}
        self._graphs: dict[str, Admg | None] = {}

    def distribution(self, formula: Expression, values: Values) -> Factor:
        """Return the value of a formula, after a check that nothing undefined has weight in it."""
        found = self.value(formula, values)
        if self.undefined:
            missing = self.undefined
            again = FormulaTables(self.model, self.asked)
            again.fill = 1.0
            changed = again.value(formula, values).transpose(found.names).values - found.values
            if np.any(changed > 1e-12):
                term, event = missing[0]
                raise _no_overlap(term, event)
        return found

    def value(self, node: Expression, values: Values) -> Factor:
        """Return a table over the names in a formula that are not fixed; names bound by a sum never are."""
        key = (id(node), node.free.intersection(values))  # a name is fixed to one value, or not at all
        if key not in self._done:
            self._done[key] = self._value(node, values)
        return self._done[key]

    def _value(self, node: Expression, values: Values) -> Factor:
        if isinstance(node, P):
            return self._term(node, values)
        if isinstance(node, SumExpression):
            inner = {n: v for n, v in values.items() if n not in node.over}
            body = node.body.factors if isinstance(node.body, ProductExpression) else (node.body,)
            return contracted([self.value(part, inner) for part in body], node.over)
        if isinstance(node, ProductExpression):
            return contracted([self.value(part, values) for part in node.factors], ())
        assert isinstance(node, Quotient)
        top, fill = self.value(node.top, values), self.fill
        self.fill, kept, self._done = 0.0, self._done, self._done if fill == 0 else {}
        bottom = self.value(node.bottom, values)
        self.fill, self._done = fill, kept
        both = product([top, bottom.apply(np.ones_like)])
        below = product([bottom, top.apply(np.ones_like)]).transpose(both.names).values
        if np.any(below == 0) and not fill:
            self.undefined.append((next(node.bottom.terms()), {}))
        return Factor.of(
            both.variables, np.divide(both.values, below, out=np.full(both.shape, fill), where=below > 0)
        )

    def _term(self, term: P, values: Values) -> Factor:
        if not term.of:
            return Factor.scalar()
        if table := self._own_table(term):
            return table.reduce(values)
        if term.do and any(n not in values for n in term.do):
            return self._for_every_setting(term, values)
        model = of_population(self.model, term.population)
        model = model.do({n: values[n] for n in term.do}) if term.do else model
        fixed = {n: values[n] for n in term.given if n in values}
        opened = [n for n in term.given if n not in values]
        try:
            joint: Factor = self.asked(model, [*opened, *term.of], fixed).factor()
        except ImpossibleEvidence as error:
            raise _no_overlap(term, error.evidence) from None
        if not opened:
            return joint.reduce(values)
        weight = joint.sum_out(term.of).transpose(opened)
        empty = weight.values == 0
        if empty.any():
            at = np.argwhere(empty)[0]
            event = {v.name: v.states[i] for v, i in zip(weight.variables, at, strict=True)}
            self.undefined.append((term, {**fixed, **event}))
        shape = [*weight.shape, *[1] * len(term.of)]
        mass, table = weight.values.reshape(shape), joint.transpose([*opened, *term.of])
        rows = np.divide(table.values, mass, out=np.full(table.shape, self.fill), where=mass > 0)
        return Factor.of(table.variables, rows).reduce(values)

    def _own_table(self, term: P) -> Factor | None:
        """Return a node's own table where a term is nothing else: its parents are given, and nothing below it is."""
        model = of_population(self.model, term.population)
        if term.population not in self._graphs:
            dag = getattr(model, "graph", None)
            tabular = isinstance(dag, DAG) and not getattr(model, "has_quantities", True)
            self._graphs[term.population] = Admg.of(dag) if tabular and dag is not None else None
        graph = self._graphs[term.population]
        if graph is None or len(term.of) > 1 or term.do:
            return None
        node, given = graph.number[term.of[0]], graph.mask(term.given)
        if graph.parents[node] & ~given or graph.descendants(1 << node) & given:
            return None
        table: Factor = model[term.of[0]].factor()
        return table

    def _for_every_setting(self, term: P, values: Values) -> Factor:
        model = of_population(self.model, term.population)
        opened = [model.variable(n) for n in term.do if n not in values]
        rows = [
            self._term(term, {**values, **dict(zip((v.name for v in opened), states, strict=True))})
            for states in every_pair(*(v.states for v in opened))
        ]
        table = np.stack([row.transpose(rows[0].names).values for row in rows])
        shape = [*(len(v) for v in opened), *rows[0].shape]
        return Factor.of((*opened, *rows[0].variables), table.reshape(shape))


def contracted(factors: Iterable[Factor], over: Iterable[str]) -> Factor:
    """Multiply tables and sum some variables out, one at a time, each time the one with the smallest table.

    Raises
    ------
    TooLarge
        If a table would have more than 2**26 entries.

    Examples
    --------
    >>> chain = [Factor(["a"], [0.4, 0.6]), Factor(["a", "b"], [[0.9, 0.1], [0.2, 0.8]])]
    >>> contracted(chain, ["a"]).values.round(6).tolist()
    [0.48, 0.52]
    """
    left = dict(enumerate(factors))
    sizes = {v.name: len(v) for f in left.values() for v in f.variables}
    away = {n: {k for k, f in left.items() if n in f.names} for n in over if n in sizes}

    def cost(name: str) -> int:
        return prod(sizes[n] for n in {n for k in away[name] for n in left[k].names})

    costs = {name: cost(name) for name in away}
    while away:
        name = min(costs, key=lambda n: (costs[n], n))
        if costs.pop(name) > LARGEST_TABLE:
            raise TooLarge(
                f"summing over {name!r} needs a table of more than {LARGEST_TABLE:,} entries; the formula is too wide for "
                "exact evaluation, so draw rows with model.sample() and estimate the effect from them"
            )
        gone = away.pop(name)
        new = max(left) + 1
        left[new] = product(left.pop(k) for k in sorted(gone)).sum_out(name)
        for other in left[new].names:
            if other in away:
                away[other] = (away[other] - gone) | {new}
                costs[other] = cost(other)
    return product(left.values())


class Gaussians:
    """Values of formulas over numbers, as Gaussians in canonical form."""

    def __init__(self, model: Any, asked: ModelAnswers) -> None:
        self.model, self.asked = model, asked

    def value(self, node: Expression, values: Values) -> GaussianFactor:
        """Return the value of a formula as a function of the names that are not fixed."""
        if isinstance(node, P):
            return self._term(node, values)
        if isinstance(node, ProductExpression):
            return gaussian_product(self.value(part, values) for part in node.factors)
        if isinstance(node, SumExpression):
            body = self.value(node.body, {n: v for n, v in values.items() if n not in node.over})
            return body.marginal([n for n in body.names if n not in node.over])
        assert isinstance(node, Quotient)
        return self.value(node.top, values) / self.value(node.bottom, values)

    def _term(self, term: P, values: Values) -> GaussianFactor:
        if not term.of:
            return GaussianFactor.one()
        if any(n not in values for n in term.do):
            raise Unanswered(
                f"{term} with a number set to all values has no closed form here; fix it with given="
            )
        model = of_population(self.model, term.population)
        model = model.do({n: values[n] for n in term.do}) if term.do else model
        fixed = {n: values[n] for n in term.given if n in values}
        opened = [n for n in term.given if n not in values]
        names = [*opened, *term.of]
        if any(not isinstance(model.variable(n), Quantity) for n in names):
            raise _not_exact(term)
        joint = self.asked(model, names, fixed)
        if not isinstance(joint, GaussianPosterior) or len(joint.weights) > 1:
            raise _not_exact(term)
        covariance = joint.covariance(names)
        try:
            found = GaussianFactor.from_moments(names, [joint.mean(n) for n in names], covariance)
        except ValueError:
            raise Unanswered(
                f"{term} is singular: some of {', '.join(names)} follow from others; give them a small variance"
            ) from None
        below = found.marginal(opened)
        return (found / below).reduce({n: values[n] for n in term.of if n in values})


def _mixture(
    formula: Expression,
    model: Any,
    outcome: Sequence[str],
    values: Values,
    numbers: set[str],
    asked: ModelAnswers,
) -> MixtureOfGaussians:
    """Return the outcome's mixture where it is a number and all that is summed over has states."""
    with_numbers = [term for term in formula.terms() if not term.free.isdisjoint(numbers)]
    if len(with_numbers) != 1 or set(outcome) != numbers or not numbers.issubset(with_numbers[0].of):
        raise _not_exact(with_numbers[0])
    term = with_numbers[0]
    own = of_population(model, term.population)
    opened = [n for n in term.given if n not in values]
    weights = FormulaTables(model, asked).distribution(_with_outcome_replaced(formula, term, opened), values)
    weights = weights.marginal(opened)
    fixed = {n: values[n] for n in term.given if n in values}
    parts = []
    for states, weight in zip(
        every_pair(*(own.states(n) for n in opened)), weights.values.ravel(), strict=True
    ):
        if weight > 0:
            event = {**fixed, **dict(zip(opened, states, strict=True))}
            try:
                parts.append((weight, asked(own, list(outcome), event).mixture))
            except ImpossibleEvidence as error:
                raise _no_overlap(term, error.evidence) from None
    total = np.concatenate([w * m.weights for w, m in parts])
    means, covariances = (np.concatenate([getattr(m, k) for _, m in parts]) for k in ("means", "covariances"))
    return _components(outcome, total / total.sum(), means, covariances)


def _components(
    outcome: Sequence[str], weights: Array, means: Array, covariances: Array
) -> MixtureOfGaussians:
    return MixtureOfGaussians(
        tuple(outcome), (), weights, np.zeros((len(weights), 0), np.int64), means, covariances
    )


def _with_outcome_replaced(node: Expression, term: P, opened: Sequence[str]) -> Expression:
    """Return the weights of a term's conditions: the formula without the term, and not summed over its conditions."""
    if node is term:
        return P(())
    if isinstance(node, ProductExpression):
        return ProductExpression(tuple(_with_outcome_replaced(part, term, opened) for part in node.factors))
    if isinstance(node, SumExpression) and any(part is term for part in node.terms()):
        kept = tuple(n for n in node.over if n not in opened)
        body = _with_outcome_replaced(node.body, term, opened)
        return SumExpression(kept, body) if kept else body
    if isinstance(node, Quotient) and any(part is term for part in node.terms()):
        raise _not_exact(term)
    return node


def _moments(factor: GaussianFactor, outcome: Sequence[str]) -> tuple[Array, Array]:
    at = [factor.names.index(n) for n in outcome]
    return factor.mean()[at], factor.covariance()[np.ix_(at, at)]


def _bound(formula: Expression, name: str) -> bool:
    """Say whether some sum in a formula is over a name."""
    stack, seen = [formula], set()
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, SumExpression):
            if name in node.over:
                return True
            stack.append(node.body)
        elif isinstance(node, ProductExpression):
            stack += node.factors
        elif isinstance(node, Quotient):
            stack += [node.top, node.bottom]
    return False


def _no_overlap(term: P, event: Mapping[str, Any]) -> NoOverlap:
    said = ", ".join(f"{name}={value!r}" for name, value in event.items()) or "its condition"
    return NoOverlap(
        f"{term} is needed where {said}, which has probability zero: without overlap the effect is not determined there"
    )


def _not_exact(term: P) -> Unanswered:
    return Unanswered(
        f"{term} is no table and no Gaussian in this model, so the formula has no exact value here; draw rows with "
        "model.sample() and estimate the effect from them, or discretise the numbers"
    )
