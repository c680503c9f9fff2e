"""What a user writes for a variable of a structural model, as an equation."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from markovia.causal.counterfactuals.equations import Equation, FunctionEquation
from markovia.causal.counterfactuals.model_network import as_equation, table_equation
from markovia.causal.counterfactuals.noises import Noise, as_noise
from markovia.errors import InvalidArgument, check_known
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import function_arguments
from markovia.factors.gaussian.linear_gaussian import LinearGaussian
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.table_forms import as_conditional
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.editing_verbs import variable_of
from markovia.runtime.libraries import laws

Known = Mapping[str, Equation]


def read_equation(
    known: Known, name: str, form: Any, noise: Any, states: Any, parents: Any, p: Any, mechanism: str
) -> Equation:
    """Return the equation of a new variable; `known` has those before it. See `StructuralModel.add`."""
    if form is not None and p is not None:
        raise InvalidArgument(f"{name!r} has either an equation or a table p=, not both")
    if is_distribution(form) or isinstance(form, Noise):
        return _root(name, as_noise(form, repr(name)), states)
    if isinstance(form, LinearGaussian):
        return as_equation(form.bind(Quantity(name, "real"), _variables(known, form.weights)), mechanism)
    if hasattr(form, "inverse") and hasattr(form, "event_shape"):
        return _flow(known, name, form, [parents] if isinstance(parents, str) else list(parents or ()))
    if callable(form) and parents is None:
        return _function(known, name, form, noise, states)
    if form is None and p is None:
        raise InvalidArgument(f"{name!r} needs an equation, a distribution or a table p=")
    given = _variables(known, [parents] if isinstance(parents, str) else list(parents or ()))
    table = form if form is not None else p
    return table_equation(as_conditional(variable_of(name, table, states, given), given, table), mechanism)


def changed_equation(known: Known, old: Equation, value: Any) -> Equation:
    """Return the equation of a variable that is intervened on. See `StructuralModel.do`."""
    variable = old.variable
    name, numeric = variable.name, isinstance(variable, Quantity)
    states = None if numeric else variable.states
    if is_distribution(value) or isinstance(value, Noise):
        return _root(name, as_noise(value, repr(name)), states)
    if callable(value):
        noises = old.noises if isinstance(old, FunctionEquation) else {}
        laws = {a: noises[a] for a in function_arguments(name, value) if a in noises}
        return _function(known, name, value, laws, states)
    if numeric:
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise InvalidArgument(f"{name!r} is a number; it cannot be set to {value!r}") from None
        return FunctionEquation(variable, (), lambda: np.float64(number))
    if isinstance(value, list | tuple | Mapping | np.ndarray):
        return table_equation(as_conditional(variable, (), value), "monotone")
    code = variable.index(value)
    return FunctionEquation(variable, (), lambda: np.int64(code), by_code=True)


def _root(name: str, law: Noise, states: Any) -> Equation:
    """Return a variable without parents: a table where it has finitely many values, otherwise its noise itself."""
    finite = law.finite()
    if finite is None:
        return FunctionEquation(Quantity(name, "real"), (), lambda e: e, {"e": law}, root=True)
    variable = Variable(name, states if states is not None else finite[0].tolist())
    return table_equation(as_conditional(variable, (), finite[1]), "monotone")


def _function(
    known: Known, name: str, function: Callable[..., Any], noise: Any, states: Any
) -> FunctionEquation:
    """Return a function of variables that are known and of noises, told apart by the names of its arguments."""
    arguments = function_arguments(name, function)
    rest = [a for a in arguments if a not in known]
    laws = noise if isinstance(noise, Mapping) else {a: noise for a in rest if noise is not None}
    if not isinstance(noise, Mapping) and noise is not None and len(rest) != 1:
        raise InvalidArgument(
            f"the function of {name!r} has {len(rest)} arguments that are no variables ({', '.join(rest) or 'none'}) "
            "for one noise; name its one noise argument, or give noise={argument: distribution}"
        )
    for argument in rest:
        if argument not in laws:
            raise InvalidArgument(
                f"{argument!r} in the function of {name!r} is neither a variable that was added nor a noise; add it "
                "first, or say noise="
            )
    for argument in laws:
        if argument not in rest:
            raise InvalidArgument(
                f"noise= names {argument!r}, which is no free argument of the function of {name!r}"
            )
    variable = Quantity(name, "real") if states is None else Variable(name, states)
    noises = {a: as_noise(law, f"{a!r} of {name!r}") for a, law in laws.items()}
    return FunctionEquation(
        variable, _variables(known, [a for a in arguments if a in known]), function, noises
    )


def _flow(known: Known, name: str, flow: Any, parents: list[str]) -> FunctionEquation:
    """Return a trained flow of one number, given its parents: normal noise, which facts are inverted to."""
    if flow.event_shape != (1,) or flow.context_size != len(parents):
        raise InvalidArgument(
            f"the flow of {name!r} has elements of shape {flow.event_shape} given {flow.context_size} numbers; a variable "
            f"is one number, shape (1,), given its parents=, which are {len(parents)}"
        )

    def carried(values: Any, given: Mapping[str, Any], back: bool) -> tuple[Any, Any]:
        from markovia.factors.networks.flow_modules import carried_rows  # loads JAX

        n = len(values)
        told = [np.broadcast_to(np.asarray(given[p], dtype=np.float64), n)[:, None] for p in parents]
        found, log_slope = carried_rows(flow, np.asarray(values, dtype=np.float64)[:, None], told, back)
        return found[:, 0], log_slope

    return FunctionEquation(
        Quantity(name, "real"),
        _variables(known, parents),
        lambda e, **given: carried(e, given, False)[0],
        {"e": as_noise(laws.Normal(0.0, 1.0), f"the noise of {name!r}")},
        inverse=lambda seen, **given: carried(seen, given, True),
    )


def _variables(known: Known, names: Any) -> tuple[Variable, ...]:
    check_known(names, known, "the model")
    return tuple(known[name].variable for name in names)
