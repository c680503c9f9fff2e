"""Parameters of a directed network, and guides: a second network over the same names that proposes latent values."""

from collections.abc import Mapping, Sequence
from typing import Any

from markovia.errors import InvalidArgument, UnknownVariable
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode, Input
from markovia.factors.functions.reading import as_function_node
from markovia.factors.quantities.quantity import Quantity
from markovia.models.graphical.directed_model import DirectedModel
from markovia.runtime.keyword_advice import guided


class GuideVerbs(DirectedModel):
    """Parameters and guides of a directed network; see `BayesianNetwork`."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of the parameters by name: arrays, modules, or the recipe where nothing is trained yet."""
        return {n: p.recipe if p.value is None else p.value for n, p in self._parameters.items()}

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
            that have a guide themselves. A module in it sees a whole row.
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
