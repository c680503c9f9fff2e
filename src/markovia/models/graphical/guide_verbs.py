"""Parameters of a directed network, guides (a second network over the same names that proposes latent values), potentials.

A potential couples the nodes that it takes as a common child does that is always observed: that is how independence is read
off the graph, and what an engine sees.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from markovia.errors import DuplicateName, InvalidArgument, UnknownVariable, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.amortised_guide import AmortisedGuide
from markovia.factors.functions.function_node import FunctionNode, Input
from markovia.factors.functions.potential_node import PotentialNode
from markovia.factors.functions.reading import as_function_node
from markovia.factors.quantities.quantity import Quantity
from markovia.graphs.kinds.directed import DAG
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.inference.engine import Engine, engine_for
from markovia.inference.problem import Problem
from markovia.inference.result import LogMass
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.keyword_advice import guided


class GuideVerbs(DirectedModel):
    """Parameters and guides of a directed network; see `BayesianNetwork`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters by name: arrays, modules, or the recipe where nothing is trained yet."""
        learned = {n: p for n, p in self._parameters.items() if p.prior is None}
        return {n: p.recipe if p.value is None else p.value for n, p in learned.items()}

    @guided
    def guide(
        self,
        name: str,
        distribution: Any,
        *,
        parents: Sequence[str] | str | None = None,
        previous: Mapping[str, str | tuple[str, int]] | None = None,
        first: Any = None,
    ) -> None:
        """Say from what a latent node is proposed: q(node | what is observed), which `fit` learns beside the model.

        Parameters
        ----------
        name
            A node that is not observed.
        distribution
            A distribution, or a function that returns one. Its arguments are observed nodes, inputs, parameters, and nodes
            that have a guide themselves. A module in it sees a whole row. `mk.guides.Amortised()` lets `fit` make one.
        parents, previous, first
            As in `add`.

        Examples
        --------
        >>> import markovia as mk
        >>> import markovia.distributions as dist
        >>> m = mk.BayesianNetwork()
        >>> m.add("z", dist.Normal(0, 1), plate="row")
        >>> m.add("x", lambda z: dist.Normal(2 * z, 1), plate="row")
        >>> m.add("slope", mk.Parameter(0.0))
        >>> m.guide("z", lambda x, slope: dist.Normal(slope * x, 0.5))
        """
        variable = self.variable(name)
        node = self._tables.get(name)
        if (
            not isinstance(node, FunctionNode)
            or isinstance(node.form, Input)
            or not isinstance(variable, Quantity)
        ):
            raise InvalidArgument(
                f"a guide proposes a latent quantity, and {name!r} is none; a table is summed out, an input is given"
            )
        if isinstance(distribution, AmortisedGuide):
            self._guides = {**self._guides, name: FunctionNode(variable, distribution)}
            return
        if not (callable(distribution) or is_distribution(distribution)):
            raise InvalidArgument(f"the guide of {name!r} is a distribution or a function that returns one")
        others = {n: v for n, v in self._variables.items() if n != name}
        lengths = {p: variable.lengths[p] for p in variable.plates if p in variable.lengths}
        plate: Any = variable.plates
        found = as_function_node(others, name, distribution, None, parents, plate or ("_",), previous, first)
        assert found is not None
        fresh = FunctionNode(
            Quantity(name, "number", variable.plates, lengths, variable.labels),
            found.form, found.arguments, found.parents, found.previous, found.first,
        )  # fmt: skip
        known = {*self._variables, *self._parameters, *variable.plates}
        for source in fresh.arguments.values():
            if source not in known and source in self._variables:
                raise UnknownVariable(source, known, f"the arguments of the guide of {name!r}")
        self._guides = {**self._guides, name: fresh}

    @guided
    def potential(
        self,
        function: Any,
        plate: str | Sequence[str] | Mapping[str, int] | None = None,
        name: str | None = None,
    ) -> None:
        """Weigh what the nodes' distributions say: the model is proportional to their product times exp(function).

        The distributions are then the base measure. `log_partition` estimates log Z, by a population that goes from the base
        to the weighed model; `query` and `sample` draw from the weighed model; `fit` learns the parameters in the function
        by "pcd", "score-matching" or "nce". `do` keeps the weights: what is set stays set, and others are weighed as before.

        Parameters
        ----------
        function
            Returns log weights. Its arguments are nodes, parameters, inputs and plates, by name as in `add`.
        plate
            The plates that there is one weight for each element of. Further axes are summed over.
        name
            What it is called in messages; made of its nodes if left out.

        Examples
        --------
        >>> import markovia as mk
        >>> import markovia.distributions as dist
        >>> m = mk.BayesianNetwork()
        >>> m.add("x", dist.Normal(0, 1))
        >>> m.add("y", dist.Normal(0, 1))
        >>> m.potential(lambda x, y: -0.5 * (x - y) ** 2)
        >>> m.independent("x", "y")
        False
        >>> round(m.log_partition(engine="laplace"), 3)  # a Gaussian: -log(3) / 2
        -0.549
        """
        taken = {*self._variables, *self._parameters, *self._potentials}
        if name is None:
            made = PotentialNode.reading(self._variables, "the potential", function, plate)
            name = "potential of " + " and ".join(made.parent_names)
            while name in taken:
                name += "'"
        if name in taken:
            raise DuplicateName(f"{name!r} is there already; call the potential something else")
        fresh = PotentialNode.reading(self._variables, name, function, plate)
        self._potentials = {**self._potentials, name: fresh}

    @property
    def potentials(self) -> list[str]:
        """The names of the potentials."""
        return list(self._potentials)

    # -- independence and log Z with potentials -----------------------------------------------------------------------

    def _weighed_parents(self) -> dict[str, tuple[str, ...]]:
        """Return the parents of all nodes, and of the potentials as children that are always observed."""
        return {**self._parents, **{n: p.parent_names for n, p in self._potentials.items()}}

    def _weighed_dag(self) -> DAG:
        return DAG.from_parents(self._weighed_parents()) if self._potentials else self._dag()

    def _moral(self) -> UndirectedGraph:
        graph = self._weighed_dag().moral_graph()
        graph.remove_nodes(self._potentials)
        return graph

    def _refuse_potentials(self, question: str) -> None:
        if self._potentials:
            raise UnsupportedModel(f"{question}, and this one is weighed by {next(iter(self._potentials))!r}")

    def _normaliser(self, problem: Problem, engine: Engine) -> float:
        if not self._potentials:
            return super()._normaliser(problem, engine)
        from markovia.inference.densities.program.unconditioned import unconditioned

        free, rows = unconditioned(problem)
        knows = "log_mass" in getattr(engine, "answers", ())
        found = self._mass(engine_for(engine if knows else "auto", free, question="log_mass"), free)
        return LogMass(rows * found, replace(found.record, error=rows * (found.record.error or 0.0)))

    def _row_normaliser(self, problem: Problem) -> float:
        if not self._potentials:
            return 0.0
        from markovia.inference.densities.program.unconditioned import unconditioned

        free, _ = unconditioned(problem, by_row=True)
        memory = self.__dict__.setdefault("_memory", {})
        others = {n: v for n, v in free.inputs.items() if n not in self._parameters}
        held = memory.get("log Z of a row")
        same = held is not None and held[0] is problem.pieces and held[1] is self._parameters
        if not (same and all(isinstance(v, int) for v in others.values()) and held[2] == others):
            found = self._mass(engine_for("auto", free, question="log_mass"), free)
            held = memory["log Z of a row"] = (problem.pieces, self._parameters, others, found)
        total: LogMass = held[3]
        return total
