"""A log weight on values of nodes, on top of their distributions: what makes a directed model an energy-based one.

The distributions of the nodes are the base measure, and the model is proportional to it times the exponential of the
weights. To an engine a weight is an observation that is always there, whose log likelihood the function returns.
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from markovia.errors import InvalidArgument
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.closures import frozen
from markovia.factors.functions.function_node import FunctionNode, function_arguments
from markovia.factors.functions.reading import read_plates
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.variable import Variable
from markovia.runtime.libraries import jnp


class PotentialNode(FunctionNode):
    """A log weight as a function of nodes; its variable is no node of the model and stands for being there.

    Engines that do not treat pieces of its kind refuse the model.
    """

    kind: ClassVar[str] = "potential"

    @classmethod
    def reading(
        cls,
        variables: Mapping[str, Variable],
        name: str,
        function: Any,
        plate: str | Sequence[str] | Mapping[str, int] | None,
    ) -> "PotentialNode":
        """Return the potential of a function whose arguments are found by name among nodes and others."""
        if not callable(function) or is_distribution(function) or isinstance(function, type):
            raise InvalidArgument(
                f"a potential is a function of nodes that returns log weights, not {function!r}; a distribution belongs to "
                "a node: m.add(name, distribution)"
            )
        plates, lengths = read_plates(name, plate)
        arguments = {q: q for q in function_arguments(name, function)}
        if not any(q in variables for q in arguments):
            raise InvalidArgument(
                f"the function of {name!r} takes no node ({', '.join(arguments) or 'nothing'}); what does not depend on "
                "nodes changes no probability"
            )
        return cls.over(Quantity(name, "potential", plates, lengths), frozen(function), arguments, variables)

    @classmethod
    def over(
        cls,
        variable: Quantity,
        function: Any,
        arguments: Mapping[str, str],
        variables: Mapping[str, Variable],
    ) -> "PotentialNode":
        """Return the potential of a function with known arguments; states come as in `add`."""
        parents = [variables[n] for n in dict.fromkeys(arguments.values()) if n in variables]
        states = not variable.plates and len(parents) == len(arguments)
        by_state = states and not any(isinstance(v, Quantity) for v in parents)
        return cls(variable, function, arguments, parents, by_state=by_state)

    def as_distribution(self, found: Any, lengths: tuple[int, ...]) -> Any:
        """Return what the function said as a distribution of nothing, whose log density it is.

        Raises
        ------
        InvalidArgument
            If it has not one weight, or several that add up, for each element of the plates.
        """
        from numpyro.distributions import Unit

        logs = jnp.asarray(found, jnp.result_type(float))
        if logs.shape[: len(lengths)] != lengths:
            over = ", ".join(f"{p} ({n})" for p, n in zip(self.variable.plates, lengths, strict=True))
            raise InvalidArgument(
                f"the function of {self.variable.name!r} returns log weights of shape {logs.shape}, but its plates are "
                f"{over}: one weight for each element, plates in front"
            )
        return Unit(jnp.sum(logs, axis=tuple(range(len(lengths), logs.ndim))))


def with_nodes(
    potentials: Mapping[str, PotentialNode], variables: Mapping[str, Variable]
) -> Mapping[str, PotentialNode]:
    """Return potentials that take all nodes that their arguments name, also those that were no nodes before."""
    return {
        n: p
        if len(p.parents) == len({*p.arguments.values()} & variables.keys())
        else PotentialNode.over(p.variable, p.form, p.arguments, variables)
        for n, p in potentials.items()
    }
