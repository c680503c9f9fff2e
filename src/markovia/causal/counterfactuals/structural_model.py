"""Structural causal models: every variable is a function of its parents and of a noise of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from markovia.causal.counterfactuals import model_network
from markovia.causal.counterfactuals.counterfactual import counterfactual as twin_counterfactual
from markovia.causal.counterfactuals.equation_reading import changed_equation, read_equation
from markovia.causal.counterfactuals.equations import Equation, FunctionEquation, TableEquation
from markovia.causal.counterfactuals.unit_draws import answer_by_draws, explained_draws, run
from markovia.errors import DuplicateName, IncompleteModel, InvalidArgument, UnknownVariable, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional
from markovia.factors.tables.variable import State, Variable
from markovia.graphs.kinds.directed import DAG
from markovia.inference.engine import Engine
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.models.graphical.one_line import parse_one_line
from markovia.runtime.keyword_advice import guided
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import html_picture

if TYPE_CHECKING:
    import pandas as pd

DRAWS = 10_000


class StructuralModel:
    """Equations with exogenous noise, which answer what is, what would be if, and what would have been if.

    Parameters
    ----------
    structure
        Nothing (add equations by hand), or a graph whose equations `fit` learns: a one-line text, a `DAG` or a mapping from
        name to parents.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia.distributions as dist
    >>> m = StructuralModel()
    >>> m.add("x", dist.Normal(0, 1))
    >>> m.add("y", lambda x, e: np.log(x + e + 3), noise=dist.Normal(0, 1))
    >>> round(float(m.noises({"x": -1, "y": 0.4})["y"]), 6)
    -0.508175
    >>> round(m.counterfactual("y", given={"x": -1, "y": 0.4}, do={"x": 0}).mean(), 6)
    0.913015
    """

    def __init__(self, structure: str | DAG | Mapping[str, Sequence[str]] | None = None) -> None:
        self._equations: dict[str, Equation] = {}
        self._waiting: dict[str, tuple[str, ...]] = {}
        if structure is not None:
            parents: Mapping[str, Sequence[str]]
            if isinstance(structure, str):
                parents = parse_one_line(structure).parents
            elif isinstance(structure, DAG):
                parents = {n: structure.parents(n) for n in structure.nodes}
            else:
                parents = {**{q: () for ps in structure.values() for q in ps}, **structure}
            order = DAG.from_parents(parents).topological_order()
            self._waiting = {n: tuple(parents[n]) for n in order}

    # -- building ------------------------------------------------------------------------------------------------

    @guided
    def add(
        self,
        name: str,
        equation: Any = None,
        *,
        noise: Any = None,
        states: int | Sequence[State] | None = None,
        parents: Sequence[str] | str | None = None,
        p: Any = None,
        mechanism: str = "monotone",
    ) -> None:
        """Add a variable after its parents.

        Parameters
        ----------
        name
            A new name.
        equation
            A distribution (a variable without parents), `LinearGaussian(...)`, or a function whose arguments are parents
            and noises. It is called with whole arrays: `lambda x, e: 2 * x + e` is linear, `lambda x, e: f(x) + e` has
            additive noise, `lambda x, e: g(f(x) + e)` is post-nonlinear, and with `states=` it is a response function.
            Or a trained flow of one number (`mk.flows`) whose context are the `parents`: its noise is found by inversion.
        noise
            The distribution of the one argument that is no parent, or a mapping for several; a list of probabilities is a
            noise 0, 1, 2, ...
        states
            The states of a discrete variable.
        parents, p
            A table instead of an equation, in any form that `BayesianNetwork.add` takes.
        mechanism
            For a table, the function that it comes from: "monotone", "gumbel" or "independent".
        """
        if name in self._equations:
            raise DuplicateName(f"the model already has a variable {name!r}; use do() for another equation")
        self._equations[name] = read_equation(
            self._equations, name, equation, noise, states, parents, p, mechanism
        )

    @classmethod
    def from_network(cls, network: BayesianNetwork, mechanism: str | Mapping[str, str] = "monotone") -> Self:
        """Return a structural model with the distribution of a network.

        Parameters
        ----------
        network
            Tables, local models, linear Gaussians, or functions that return a distribution of numbers with quantiles.
        mechanism
            What functions tables come from, for all or by name. A distribution of numbers is taken by its quantiles.

        Examples
        --------
        >>> import markovia as mk
        >>> m = mk.StructuralModel.from_network(mk.examples.sprinkler(), mechanism="gumbel")
        >>> m
        StructuralModel(4 variables, 4 edges)
        """
        network.require_one_graph("its equations are those of one graph")
        made = cls()
        for name in network.graph.topological_order():
            kind = mechanism if isinstance(mechanism, str) else mechanism.get(name, "monotone")
            made._equations[name] = model_network.as_equation(network[name], kind)
        return made

    # -- looking -------------------------------------------------------------------------------------------------

    @property
    def variables(self) -> list[str]:
        """The names of the variables, parents before children."""
        return list(self._equations or self._waiting)

    def _repr_html_(self) -> str:
        return html_picture(self.graph, len(self.graph.nodes), repr(self))

    @property
    def graph(self) -> DAG:
        """The directed acyclic graph of the variables."""
        return DAG.from_parents({n: self.parents(n) for n in self.variables})

    @property
    def edges(self) -> list[tuple[str, str]]:
        """All edges (parent, child)."""
        return [(q, n) for n in self.variables for q in self.parents(n)]

    def parents(self, name: str) -> list[str]:
        """Return the parents of a variable."""
        if not self._equations and name in self._waiting:
            return list(self._waiting[name])
        return [p.name for p in self[name].parents]

    def variable(self, name: str) -> Variable:
        """Return a variable by name."""
        return self[name].variable

    def states(self, name: str) -> list[State]:
        """Return a variable's states in order."""
        return list(self.variable(name).states)

    def __getitem__(self, name: str) -> Equation:
        try:
            return self._equations[name]
        except (KeyError, TypeError):
            if name in self._waiting:
                raise IncompleteModel(f"{name!r} has no equation yet; call fit(frame)") from None
            raise UnknownVariable(name, self.variables) from None

    def __contains__(self, name: object) -> bool:
        return name in self._equations

    def __len__(self) -> int:
        return len(self.variables)

    def __repr__(self) -> str:
        return f"StructuralModel({len(self)} variables, {len(self.edges)} edges)"

    def copy(self) -> Self:
        """Return an independent copy."""
        made = type(self)()
        made._equations, made._waiting = dict(self._equations), dict(self._waiting)
        return made

    def network(self) -> BayesianNetwork:
        """Return the `BayesianNetwork` that the model stands for, with its noises as variables of their own.

        Equations with finitely many noises become tables, linear ones linear Gaussians, all others functions (which the
        engines for densities take if they are written with `jax.numpy`). Every variable is then a function of its parents.

        Examples
        --------
        >>> m = StructuralModel()
        >>> m.add("x", p=[0.5, 0.5])
        >>> m.add("y", lambda x, e: x ^ e, noise=[0.9, 0.1], states=2)
        >>> bn = m.network()
        >>> bn.variables, round(bn.query("y", given={"x": 1})[1], 6)
        (['x', 'e_y', 'y'], 0.9)
        """
        return model_network.explicit_network(self._all())

    # -- interventions -------------------------------------------------------------------------------------------

    def do(
        self,
        interventions: Mapping[str, Any] | None = None,
        /,
        *,
        shift: Mapping[str, float] | None = None,
        **more: Any,
    ) -> Self:
        """Return the model after an intervention.

        Parameters
        ----------
        interventions, more
            By name a value or state (a hard intervention), a distribution (a new noise of its own), or a function of parents
            and of the noise arguments of the old equation (a soft intervention, which keeps the unit's noise).
        shift
            By name, a number that is added to what the equation says.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> m = StructuralModel()
        >>> m.add("x", dist.Normal(0, 1))
        >>> m.add("y", lambda x, e: 2 * x + e, noise=dist.Normal(0, 1))
        >>> m.do(x=3).query("y").mean(), m.do(shift={"y": 10}).query("y", given={"x": 1}).mean()
        (6.0, 12.0)
        """
        said = {**(interventions or {}), **more}
        made = self.copy()
        for name, value in said.items():
            made._equations[name] = changed_equation(self._equations, self[name], value)
        for name, by in (shift or {}).items():
            equation = self[name]
            if name in said:
                raise InvalidArgument(f"{name!r} is both set and shifted; say one of them")
            if not isinstance(equation, FunctionEquation) or not equation.numeric:
                raise InvalidArgument(
                    f"{name!r} has states, and a shift is for numbers; give it a new function"
                )
            made._equations[name] = equation.shifted(float(by))
        made._equations = {n: made._equations[n] for n in made.graph.topological_order()}
        return made

    # -- questions -----------------------------------------------------------------------------------------------

    @guided
    def sample(self, n: int, seed: Seed = None) -> "pd.DataFrame":
        """Draw n units as a frame.

        Examples
        --------
        >>> m = StructuralModel()
        >>> m.add("x", p=[0.5, 0.5])
        >>> m.add("y", lambda x, e: x + e, noise=[0.5, 0.5], states=3)
        >>> m.sample(3, seed=0).shape
        (3, 2)
        """
        import pandas as pd

        from markovia.data.tables.frames import decode_column

        rng = generator(seed)
        values = run(self._all(), {}, n, rng).values
        columns = {}
        for name, equation in self._equations.items():
            number = isinstance(equation.variable, Quantity)
            columns[name] = values[name] if number else decode_column(values[name], equation.variable.states)
        return pd.DataFrame(columns, index=pd.RangeIndex(n))

    @guided
    def query(
        self,
        targets: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        engine: str | Engine = "auto",
        draws: int = DRAWS,
        seed: Seed = None,
    ) -> Any:
        """Return the posterior of the targets given evidence; after `do(...)` it is the effect of the intervention."""
        return self.counterfactual(targets, given, None, engine=engine, draws=draws, seed=seed)

    @guided
    def counterfactual(
        self,
        targets: str | Sequence[str],
        given: Mapping[str, Any] | None = None,
        do: Mapping[str, Any] | None = None,
        shift: Mapping[str, float] | None = None,
        engine: str | Engine = "auto",
        draws: int = DRAWS,
        seed: Seed = None,
    ) -> Any:
        """Return the posterior of the targets had `do` been the case, for a unit of which the facts `given` are known.

        Parameters
        ----------
        targets
            A name, or several for their joint distribution, in the other world.
        given
            Facts: a value or state by name.
        do, shift
            The intervention, as in `do`.
        engine
            For models of finitely many noises and linear Gaussians, which are answered exactly by their twin network.
        draws, seed
            For all others: how many noises to draw from their joint posterior. Facts are inverted where they can be; where
            they determine all noises that matter the answer is one certain value.

        Returns
        -------
        Posterior, GaussianPosterior or DrawnPosterior
            With `info.note` on how the noises were found.

        Examples
        --------
        >>> import markovia.distributions as dist
        >>> m = StructuralModel()
        >>> m.add("dose", dist.Uniform(0, 1))
        >>> m.add("effect", lambda dose, e: (dose + e) ** 3, noise=dist.Normal(0, 1))
        >>> facts = {"dose": 0.2, "effect": 0.343}
        >>> round(m.counterfactual("effect", given=facts, do={"dose": 0.7}).mean(), 6)
        1.728
        """
        names = [targets] if isinstance(targets, str) else list(targets)
        facts = dict(given or {})
        for name in [*names, *facts, *(do or {}), *(shift or {})]:
            self.variable(name)
        if not names or len(set(names)) < len(names):
            raise InvalidArgument(f"targets are one or several different names, not {names}")
        changed = self.do(do, shift=shift) if do or shift else self
        exact = self._exactly(names, facts, do or {}, shift or {}, changed, engine)
        if exact is not None:
            return exact
        differ = {*(do or {}), *(shift or {})}
        return answer_by_draws(self._all(), changed._all(), differ, names, facts, draws, generator(seed))

    def noises(self, given: Mapping[str, Any], draws: int = DRAWS, seed: Seed = None) -> dict[str, Any]:
        """Return the noises behind observed values by variable: a number where they are certain, draws otherwise."""
        unit = explained_draws(self._all(), dict(given), draws, generator(seed))
        return {n: unit.noise_of(n) for n, e in self._equations.items() if e.random and n in unit.noises}

    def _exactly(
        self,
        names: Sequence[str],
        facts: Mapping[str, Any],
        do: Mapping[str, Any],
        shift: Mapping[str, float],
        changed: "StructuralModel",
        engine: str | Engine,
    ) -> Any:
        """Return the answer of the twin network, or None where some equation that matters is neither finite nor linear."""
        needed = self.graph.ancestors([*names, *facts], include_self=True)
        needed |= changed.graph.ancestors([*names, *facts], include_self=True)
        needed = self.graph.ancestors(list(needed), include_self=True)
        soft = {n for n in {*do, *shift} & needed if n in shift or callable(do[n]) or is_distribution(do[n])}
        # a new function works on the unit's own noise, a new distribution brings its own
        split = {n for n in soft if n in shift or not is_distribution(do[n])}
        try:
            was = {n: e for n, e in self._all().items() if n in needed}
            network, kinds = model_network.exact_network(was, split)
            new: dict[str, Conditional] = {}
            if soft:
                now = {n: e for n, e in changed._all().items() if n in needed}
                other, _ = model_network.exact_network(now, split)
                new = {n: other[n] for n in soft}
        except UnsupportedModel:
            return None
        hard = {n: v for n, v in do.items() if n in needed and n not in soft}
        return twin_counterfactual(network, names, facts, hard, kinds, engine, new)

    def _all(self) -> dict[str, Equation]:
        if not self._equations:
            raise IncompleteModel(
                "the model has no equations yet; add() some, or fit(frame) a structure"
                if not self._waiting
                else "the model has only a structure; call fit(frame)"
            )
        return self._equations

    # -- learning ------------------------------------------------------------------------------------------------

    @guided
    def fit(
        self, frame: Any, *, regressor: Any = None, classifier: Any = None, mechanism: str = "monotone"
    ) -> Self:
        """Learn the equation of every variable from rows without missing cells.

        A number is `regressor(parents) + residual`: additive noise, kept as the residuals themselves. A variable with states
        (text, truth values, categories) has the probabilities of the classifier, made a function by the mechanism.

        Parameters
        ----------
        frame
            Rows of any library, with a column for every variable.
        regressor, classifier
            Any of scikit-learn's, or a mapping by variable; linear and logistic regression by default. They are cloned.
        mechanism
            "monotone", "gumbel" or "independent", for variables with states.

        Examples
        --------
        >>> import numpy as np
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=500)
        >>> m = StructuralModel("x->y").fit({"x": x, "y": 2 * x + rng.uniform(-1, 1, size=500)})
        >>> round(m.counterfactual("y", given={"x": 1.0, "y": 2.5}, do={"x": 2.0}).mean(), 1)
        4.5
        """
        from markovia.causal.counterfactuals.fitted_equations import fitted_equations

        parents = {n: tuple(self.parents(n)) for n in self.variables}
        if not parents:
            raise IncompleteModel("fit() needs a structure; write StructuralModel('x->y')")
        self._equations = fitted_equations(parents, frame, regressor, classifier, mechanism)
        return self


def network_counterfactual(
    network: BayesianNetwork,
    targets: str | Sequence[str],
    given: Mapping[str, Any] | None = None,
    do: Mapping[str, Any] | None = None,
    mechanism: str | Mapping[str, str] | None = None,
    engine: str | Engine = "auto",
) -> Any:
    """Answer `BayesianNetwork.counterfactual`; a network with functions of numbers does so by its equations."""
    if not any(isinstance(network[n], FunctionNode) for n in network.variables):
        return twin_counterfactual(network, targets, given, do, mechanism, engine)
    equations = StructuralModel.from_network(network, mechanism or "monotone")
    answer = equations.counterfactual(targets, given, do, engine=engine, seed=0)
    tables = any(isinstance(e, TableEquation) for e in equations._equations.values())
    taken = f", tables as {mechanism or 'monotone'}" if tables else ""
    answer.info = replace(
        answer.info, note=f"{answer.info.note}; distributions taken by their quantiles{taken}"
    )
    return answer
