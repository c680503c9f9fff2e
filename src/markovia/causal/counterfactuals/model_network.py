"""Structural equations as nodes of a Bayesian network, and back.

`explicit_network` keeps every noise as a variable of its own; `exact_network` is what exact counterfactuals are asked of:
the same for functions, while tables stay tables with a mechanism, which the twin network couples without listing functions.
"""

from collections.abc import Collection, Mapping
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from markovia.causal.counterfactuals.affine import affine
from markovia.causal.counterfactuals.couplings import is_function
from markovia.causal.counterfactuals.equations import Equation, FunctionEquation, TableEquation, Values
from markovia.causal.counterfactuals.noises import Distributed, GaussianNoise, Noise
from markovia.errors import UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.functions.function_node import FunctionNode
from markovia.factors.gaussian.linear_gaussian import GaussianConditional
from markovia.factors.quantities.quantity import Quantity
from markovia.factors.tables.conditional import Conditional, ConditionalTable
from markovia.factors.tables.variable import Variable
from markovia.models.graphical.bayesian_network import BayesianNetwork
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64

MOST_ENTRIES = 2**20
MOST_RESPONSES = 4096


def exact_network(
    equations: Mapping[str, Equation], split: Collection[str] = ()
) -> tuple[BayesianNetwork, dict[str, str]]:
    """Return a network of tables and linear Gaussians, and the mechanisms of its tables.

    Roots named in `split` get their noise as a variable too.

    Raises
    ------
    UnsupportedModel
        If an equation is neither finite nor linear with a Gaussian noise.
    """
    pieces: list[Conditional] = []
    for name, equation in equations.items():
        if isinstance(equation, FunctionEquation):
            pieces += _function_pieces(equation, _noise_variables(equation, equations), name in split)
        elif isinstance(equation, TableEquation):
            pieces.append(_plain_table(equation))
    kinds = {n: e.mechanism for n, e in equations.items() if isinstance(e, TableEquation)}
    return BayesianNetwork.from_conditionals(pieces), kinds


def explicit_network(equations: Mapping[str, Equation]) -> BayesianNetwork:
    """Return the network with all noises explicit."""
    pieces: list[Conditional] = []
    for equation in equations.values():
        noises = _noise_variables(equation, equations)
        if isinstance(equation, TableEquation):
            pieces += _explicit_table(equation, noises["u"])
            continue
        assert isinstance(equation, FunctionEquation)
        try:
            pieces += _function_pieces(equation, noises, False)
        except UnsupportedModel:
            pieces += _function_nodes(equation, noises)
    return BayesianNetwork.from_conditionals(pieces)


def _noise_variables(equation: Equation, equations: Mapping[str, Equation]) -> dict[str, Variable]:
    """Return a variable for each noise, named like `e_y`."""
    found: dict[str, Variable] = {}
    laws: Mapping[str, Noise | None] = (
        equation.noises if isinstance(equation, FunctionEquation) else {"u": None}
    )
    for argument, law in laws.items():
        name = f"{argument}_{equation.variable.name}"
        while name in equations:
            name += "_"
        finite = None if law is None else law.finite()
        found[argument] = (
            Quantity(name, "real") if finite is None else Variable(name, [int(v) for v in finite[0]])
        )
    return found


def _function_pieces(
    equation: FunctionEquation, noises: Mapping[str, Variable], split: bool
) -> list[Conditional]:
    variable = equation.variable
    if isinstance(variable, Quantity):
        return _linear_pieces(equation, noises, split)
    laws = {a: law.finite() for a, law in equation.noises.items()}
    if any(f is None for f in laws.values()) or any(isinstance(p, Quantity) for p in equation.parents):
        raise UnsupportedModel(
            f"{variable.name!r} has states and is a function of numbers, which no table is"
        )
    given = (*equation.parents, *noises.values())
    sizes = [len(v) for v in given]
    if prod(sizes) * len(variable) > MOST_ENTRIES:
        raise UnsupportedModel(f"the function of {variable.name!r} has too many arguments for a table")
    codes = _configurations(sizes)
    parents = {p.name: codes[i] for i, p in enumerate(equation.parents)}
    shift = len(equation.parents)
    drawn = {a: np.asarray(f[0])[codes[shift + i]] for i, (a, f) in enumerate(laws.items()) if f is not None}
    values = np.eye(len(variable))[equation.value(parents, drawn, prod(sizes))]
    roots = [ConditionalTable.of(noises[a], (), np.array(f[1])) for a, f in laws.items() if f is not None]
    return [*roots, ConditionalTable.of(variable, given, values.reshape(*sizes, len(variable)))]


def _linear_pieces(
    equation: FunctionEquation, noises: Mapping[str, Variable], split: bool
) -> list[Conditional]:
    """Return the noises and a linear Gaussian without variance, one regression a configuration of discrete parents."""
    variable = equation.variable
    assert isinstance(variable, Quantity)
    laws = {a: law.gaussian() for a, law in equation.noises.items()}
    if any(g is None for g in laws.values()):
        raise UnsupportedModel(f"the noise of {variable.name!r} is not Gaussian")
    if equation.root and not split:
        mean, sd = next(iter(laws.values())) or (0.0, 1.0)
        return [_gaussian_root(variable, mean, sd)]
    discrete = tuple(p for p in equation.parents if not isinstance(p, Quantity))
    numbers = tuple(p for p in equation.parents if isinstance(p, Quantity))
    symbols = [*(p.name for p in numbers), *noises]
    shape = tuple(len(p) for p in discrete)
    bias, weights = np.zeros(shape), np.zeros((*shape, len(symbols)))
    for at in np.ndindex(*shape):
        fixed = {p.name: np.int64(c) for p, c in zip(discrete, at, strict=True)}
        every = equation.arguments({**fixed, **{p.name: 0.0 for p in numbers}})
        line = affine(equation.function, {p.name: every[p.name] for p in discrete}, symbols)
        if line is None:
            raise UnsupportedModel(f"the equation of {variable.name!r} is not linear")
        bias[at] = float(line.constant)
        weights[at] = [float(line.terms.get(s, 0.0)) for s in symbols]
    continuous = (*numbers, *(v for v in noises.values() if isinstance(v, Quantity)))
    roots: list[Conditional] = [
        _gaussian_root(v, *g)
        for (a, g), v in zip(laws.items(), noises.values(), strict=True)
        if isinstance(v, Quantity) and g
    ]
    return [*roots, GaussianConditional(variable, discrete, continuous, bias, weights, np.zeros(shape))]


def _gaussian_root(variable: Quantity, mean: float, sd: float) -> GaussianConditional:
    return GaussianConditional(variable, (), (), np.array(mean), np.zeros(0), np.array(sd**2))


def _plain_table(equation: TableEquation) -> Conditional:
    if equation.conditional is not None:
        table: Conditional = equation.conditional
        return table
    if any(isinstance(p, Quantity) for p in equation.parents):
        raise UnsupportedModel(f"{equation.variable.name!r} depends on numbers, and is no table")
    sizes = [len(p) for p in equation.parents]
    if prod(sizes) * len(equation.variable) > MOST_ENTRIES:
        raise UnsupportedModel(f"{equation.variable.name!r} has too many parents for a table")
    codes = _configurations(sizes)
    rows = equation.rows({p.name: codes[i] for i, p in enumerate(equation.parents)}, prod(sizes))
    return ConditionalTable.of(
        equation.variable, equation.parents, np.array(rows).reshape(*sizes, len(equation.variable))
    )


def _configurations(sizes: list[int]) -> Any:
    """Return the codes of every configuration, (variables, configurations)."""
    return np.array(np.unravel_index(np.arange(prod(sizes)), sizes)) if sizes else np.zeros((0, 1), np.int64)


def _explicit_table(equation: TableEquation, noise: Variable) -> list[Conditional]:
    """Return a table as a response variable and a function of it."""
    table = _plain_table(equation)
    if not table.parents or is_function(table):
        return [table]
    k = len(table.variable)
    values = np.asarray(table.values)
    rows = values.reshape(-1, k)
    if equation.mechanism == "monotone":
        edges = np.unique(np.concatenate([[0.0, 1.0], np.cumsum(rows, axis=1)[:, :-1].ravel()]))
        edges = edges[np.concatenate([[True], np.diff(edges) > 1e-14])]
        weights, middles = np.diff(edges), (edges[1:] + edges[:-1]) / 2
        answers = (middles[:, None, None] >= np.cumsum(rows, axis=1)[None, :, :-1]).sum(axis=-1)
    elif equation.mechanism == "independent" and k ** len(rows) <= MOST_RESPONSES:
        answers = np.array(list(product(range(k), repeat=len(rows))))
        weights = rows[np.arange(len(rows)), answers].prod(axis=1)
    else:
        raise UnsupportedModel(
            f"the {equation.mechanism} mechanism of {table.variable.name!r} has no finite noise that could be a variable; "
            "use mechanism='monotone', or ask the model itself"
        )
    response = Variable(noise.name, len(weights))
    explicit = np.eye(k)[answers.T].reshape(*values.shape[:-1], len(weights), k)
    root = ConditionalTable.of(response, (), weights / weights.sum())
    return [root, ConditionalTable.of(table.variable, (*table.parents, response), explicit)]


def _function_nodes(equation: FunctionEquation, noises: Mapping[str, Variable]) -> list[Conditional]:
    """Return an equation that is neither a table nor linear as a node that is a function, after its noises."""
    from numpyro.distributions import Normal

    variable = equation.variable
    if not isinstance(variable, Quantity):
        raise UnsupportedModel(
            f"{variable.name!r} has states and depends on numbers, and no node of a network does"
        )
    pieces: list[Conditional] = []
    for argument, law in equation.noises.items():
        known, finite, noise = law.gaussian(), law.finite(), noises[argument]
        if finite is not None:
            pieces.append(ConditionalTable.of(noise, (), np.array(finite[1])))
            continue
        form: Any = Normal(*known) if known else law.distribution if isinstance(law, Distributed) else None
        if form is None:
            raise UnsupportedModel(
                f"the noise of {variable.name!r} is kept as residuals, and no node of a network is"
            )
        if equation.root:
            return [FunctionNode(variable, form)]
        assert isinstance(noise, Quantity)
        pieces.append(FunctionNode(noise, form))
    given = {**{p.name: p for p in equation.parents}, **noises}
    arguments = {a: v.name for a, v in given.items()}
    for v in given.values():
        if not equation.by_code and not isinstance(v, Quantity) and v.states != tuple(range(len(v))):
            raise UnsupportedModel(
                f"{variable.name!r} is a function of the states of {v.name!r}, and a node of a network gets positions; "
                "call the states 0, 1, ..."
            )
    node = FunctionNode(variable, equation.function, arguments, tuple(given.values()))
    return [*pieces, node]


# -- from a network ------------------------------------------------------------------------------------------------


def table_equation(table: Conditional, mechanism: str) -> TableEquation:
    """Return the equation of a table, its probabilities looked up by code."""

    def rows(parents: Values, n: int) -> Array:
        at = tuple(np.asarray(parents[p.name], dtype=np.int64) for p in table.parents)
        return np.asarray(table.values[at])

    return TableEquation(table.variable, table.parents, rows, mechanism, table)


def as_equation(node: Conditional, mechanism: str) -> Equation:
    """Return a node of a network as an equation."""
    if isinstance(node, GaussianConditional):
        return _from_gaussian(node)
    if isinstance(node, FunctionNode):
        return _from_function(node)
    return table_equation(node, mechanism)


def _from_gaussian(node: GaussianConditional) -> FunctionEquation:
    deviation = np.sqrt(node.variance)

    def regression(**arguments: Any) -> Any:
        at = tuple(np.asarray(arguments[p.name], dtype=np.int64) for p in node.discrete)
        total: Any = node.bias[at]
        for k, p in enumerate(node.continuous):
            total = total + node.weights[(*at, k) if not at else (*at, np.int64(k))] * arguments[p.name]
        return total + deviation[at] * arguments["e"] if "e" in arguments else total

    noises: dict[str, Noise] = {"e": GaussianNoise()} if node.variance.any() else {}
    return FunctionEquation(node.variable, node.parents, regression, noises, by_code=True)


def _from_function(node: FunctionNode) -> FunctionEquation:
    """Return a function that returns a distribution by its quantiles: `quantile(Phi(e))` of a standard normal noise."""
    name = node.variable.name
    if node.variable.plates or node.previous or node.observed_only:
        raise UnsupportedModel(f"{name!r} is on a plate, a chain or an input, and no equation of a unit")
    if is_distribution(node.form):
        noise: Noise = Distributed(node.form)
        return FunctionEquation(Quantity(name, "real"), (), lambda e: e, {"e": noise}, root=True)
    if not callable(node.form):
        return FunctionEquation(Quantity(name, "real"), (), partial(np.asarray, node.form))
    if set(node.arguments.values()) - {p.name for p in node.parents}:
        raise UnsupportedModel(
            f"{name!r} depends on constants that come with the data; write them into its function"
        )

    def quantile(**arguments: Any) -> Any:
        from scipy.special import ndtr

        noise = arguments.pop("e")
        with x64():
            law = node.form(**{a: arguments[outer] for a, outer in node.arguments.items()})
            if not is_distribution(law):
                return law
            if type(law).__name__ == "Normal":
                return np.asarray(law.loc) + np.asarray(law.scale) * noise
            try:
                return np.asarray(law.icdf(ndtr(noise)))
            except NotImplementedError:
                kind = type(law).__name__
                raise UnsupportedModel(
                    f"{name!r} is {kind}, which has no quantiles; write its equation"
                ) from None

    return FunctionEquation(
        Quantity(name, "real"), node.parents, quantile, {"e": GaussianNoise()}, by_code=not node.by_state
    )
