"""What a causal question comes to: a formula over the observed distribution, the rule behind it and what it assumes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from markovia.causal.identification.derivation import Derivation, derive
from markovia.causal.identification.evaluation import evaluated, of_population
from markovia.causal.identification.expressions import Expression, P
from markovia.causal.identification.id_algorithm import Regime
from markovia.errors import InvalidArgument, check_known
from markovia.factors.quantities.quantity import Quantity
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.mixed import MixedGraph
from markovia.graphs.separation.independencies import Independence
from markovia.inference.gaussian.gaussian_posterior import GaussianPosterior
from markovia.inference.posterior import Posterior
from markovia.runtime.shown import InNotebooks


@dataclass(frozen=True)
class Estimand(InNotebooks):
    """An effect that is identified, as `identify` returns it.

    Attributes
    ----------
    treatment, outcome, given
        The names in the question P(outcome | do(treatment), given).
    rule
        By what it is identified: "no effect", "back-door", "adjustment", "front-door", "id" (by c-components), "idc" (the
        same with conditions), "gid" (from experiments), "transport" (from other populations), "instrument".
    expression
        The formula; `str(expression)` and `expression.latex()` write it.
    adjustment, mediators, instruments
        The sets that the rule uses, where it has such; None for the adjustment set otherwise.
    assumptions
        What has to hold besides, in sentences.
    graph
        The graph over the observed variables.
    available
        The distributions that were taken as known, as masks over the graph's nodes.

    Examples
    --------
    >>> import markovia as mk
    >>> effect = mk.causal.identify("smoke -> tar -> cancer; smoke <-> cancer", treatment="smoke", outcome="cancer")
    >>> print(effect)
    P(cancer | do(smoke)) = Σ_tar P(tar | smoke) Σ_smoke' P(smoke') P(cancer | smoke', tar)
    by the front-door criterion with tar
    """

    treatment: tuple[str, ...]
    outcome: tuple[str, ...]
    given: tuple[str, ...]
    rule: str
    expression: Expression
    graph: MixedGraph = field(repr=False)
    adjustment: tuple[str, ...] | None = None
    mediators: tuple[str, ...] = ()
    instruments: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    available: tuple[Regime, ...] = field(default=(Regime(),), repr=False)

    @property
    def question(self) -> P:
        """What was asked, as a term."""
        return P(self.outcome, self.given, self.treatment)

    def __str__(self) -> str:
        loose = sorted(self.expression.free.difference(self.treatment, self.outcome, self.given))
        ending = f", for any value of {', '.join(loose)}" if loose else ""
        formula = self.expression.written({}, self.question.free)
        return f"{self.question} = {formula}\n{self.because()}{ending}"

    def because(self) -> str:
        """Return the rule in words."""
        listed = ", ".join(self.adjustment or ()) or "nothing"
        return {
            "no effect": f"there is no causal path from {', '.join(self.treatment)} to {', '.join(self.outcome)}",
            "back-door": f"by back-door adjustment for {listed}",
            "adjustment": f"by adjustment for {listed}",
            "front-door": f"by the front-door criterion with {', '.join(self.mediators)}",
            "id": "by c-component factorisation (ID)",
            "idc": "by c-component factorisation (IDC)",
            "gid": "by c-component factorisation of experiments (gID)",
            "transport": "by c-component factorisation over populations",
        }.get(self.rule, f"by {self.rule}")

    def latex(self) -> str:
        r"""Return the question and its formula in LaTeX.

        Examples
        --------
        >>> import markovia as mk
        >>> print(mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y").latex())
        P(y \mid \mathrm{do}(x)) = \sum_{z} P(z) \, P(y \mid x, z)
        """
        return f"{self.question.latex()} = {self.expression.latex(self.question.free)}"

    def _repr_latex_(self) -> str:
        return f"${self.latex()}$"

    def testable_implications(self) -> list[Independence]:
        """List what the graph promises of the observed variables, one statement for each pair that can be separated.

        Examples
        --------
        >>> import markovia as mk
        >>> mk.causal.identify("z -> x -> m -> y; z -> y", treatment="x", outcome="y").testable_implications()
        [Independence(m ⊥ z | x), Independence(x ⊥ y | {m, z})]
        """
        return implied_independencies(Admg.of(self.graph))

    def derivation(self) -> Derivation:
        """Return the steps from the question to the formula, each by a rule of do-calculus or of probability.

        Examples
        --------
        >>> import markovia as mk
        >>> print(mk.causal.identify("z -> x -> y; z -> y", treatment="x", outcome="y").derivation())
        1. P(y | do(x)) = Σ_z P(y | do(x), z) P(z | do(x))
           sum over z
        2. P(z | do(x)) = P(z)
           rule 3: z ⊥ x without the edges into x
        3. P(y | do(x), z) = P(y | x, z)
           rule 2: x ⊥ y | z without the edges out of x
        """
        return derive(self)

    def evaluate(
        self,
        model: Any,
        do: Mapping[str, Any] | None = None,
        /,
        *,
        given: Mapping[str, Any] | None = None,
        **values: Any,
    ) -> Posterior | GaussianPosterior:
        """Return the distribution of the outcome on a model, computed by the formula from observed variables alone.

        Parameters
        ----------
        model
            A model that has all variables of the formula: a `BayesianNetwork` fitted to what is observed, or one that also
            has hidden variables, which are then only summed out. Where the terms are of several populations, a mapping from
            their names to models.
        do, values
            The value of each treatment, as a mapping or as keywords.
        given
            The values of the variables that the question is conditional on.

        Returns
        -------
        Posterior or GaussianPosterior
            With `info`, whose note says by which rule.

        Raises
        ------
        NoOverlap
            If the formula conditions on something of probability zero, and it matters.
        Unanswered
            If a term is neither a table nor a Gaussian on this model.

        Examples
        --------
        >>> import markovia as mk
        >>> bn = mk.examples.sprinkler()
        >>> effect = mk.causal.identify(bn, treatment="sprinkler", outcome="wet")
        >>> print(effect.evaluate(bn, sprinkler="yes"))
        wet      p
        no   0.055
        yes  0.945
        """
        settings = {**(do or {}), **values}
        conditions = dict(given or {})
        for said, wanted, what in (
            (settings, self.treatment, "treatment"),
            (conditions, self.given, "condition"),
        ):
            if unknown := next((n for n in said if n not in wanted), None):
                raise InvalidArgument(f"{unknown!r} is no {what} of {self.question}")
            if missing := next((n for n in wanted if n not in said), None):
                raise InvalidArgument(f"{self.question} needs a value of {missing!r}; add {missing}=...")
        variables = {}
        for term in self.expression.terms():
            asked = of_population(model, term.population)
            for name in term.free:
                check_known([name], asked.variables)
                variables[name] = asked.variable(name)
        everything = {**settings, **conditions}
        for name in sorted(self.expression.free.difference(everything, self.outcome)):  # any value does
            everything[name] = 0.0 if isinstance(variables[name], Quantity) else variables[name].states[0]
        for name, value in everything.items():
            if name in variables and not isinstance(variables[name], Quantity):
                everything[name] = variables[name].states[variables[name].index(value)]
        return evaluated(
            self.expression, model, self.outcome, everything, f"{self.because()}: {self.expression}"
        )


def implied_independencies(graph: Admg) -> list[Independence]:
    """List, for each pair of nodes that can be separated, a set of their ancestors that separates them."""
    found = []
    place = {v: k for k, v in enumerate(graph.order)}
    for a in range(len(graph.names)):
        for b in range(a):
            pair = 1 << a | 1 << b
            if (graph.parents[a] | graph.siblings[a]) >> b & 1 or graph.parents[b] >> a & 1:
                continue
            above = graph.ancestors(pair)
            later = a if place[a] > place[b] else b
            near = graph.district(1 << later, within=above)
            given = (near | graph.parents_of(near)) & above & ~(1 << later)
            if not given & pair:
                given = _shortened(graph, 1 << a, 1 << b, given)
                found.append(Independence(graph.names[a], graph.names[b], graph.named(given)))
    return found


def _shortened(graph: Admg, a: int, b: int, given: int) -> int:
    """Drop from a separating set what no open path meets from either side."""
    for side in (a, b):
        met = 0
        for node in graph.ordered(given):
            if not graph.m_separated(side, 1 << node, given & ~(1 << node)):
                met |= 1 << node
        if graph.m_separated(a, b, met):
            given = met
    return given
