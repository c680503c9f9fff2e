"""Parameters and guides of a network in the native format.

    "learned": {"slope": {"numbers": [1.7], "shape": [], "support": "positive"},
                "decoder": {"recipe": "mlp", "arguments": [8, 64], "settings": {"hidden": 128},
                            "leaves": {".layers[0].weight": [[...], ...], ...}}},
    "guides": {"z": {"form": {"function": "my_models:guide_of_z"}, "arguments": {"x": "x"}}},
    "potentials": {"energy": {"weight": {"form": {"function": "my_models:f"}, "arguments": {"x": "x"}},
                              "plates": {"row": null}}}

A module is stored as the recipe it was made from and its arrays by their paths; a recipe that nobody has trained has none.
Of a module of a user's own class ("module" in place of "recipe") a file holds the arrays alone: `load(path,
parts={"decoder": module})` brings the class along.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError, ParseError, UnsupportedModel
from markovia.factors.functions.parameter import ModuleSkeleton, Parameter, named_leaves
from markovia.factors.functions.potential_node import PotentialNode
from markovia.factors.networks.recipes import MAKERS, ModuleRecipe
from markovia.factors.quantities.quantity import Quantity
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_functions import read_form, read_function, write_function, written_form
from markovia.models.graphical.bayesian_network import BayesianNetwork

_PARTS: ContextVar[dict[str, Any]] = ContextVar("parts of the model that is read")


@contextmanager
def with_parts(parts: Mapping[str, Any]) -> Iterator[None]:
    """Bring modules by name along while a file is read; complain of those that it does not ask for."""
    left = dict(parts)
    token = _PARTS.set(left)
    try:
        yield
    finally:
        _PARTS.reset(token)
    if left:
        raise InvalidArgument(f"parts= names {', '.join(map(repr, left))}, of which the file holds no module")


def write_parameters(model: BayesianNetwork) -> dict[str, Any]:
    """Return what a network has learned, and its guides, as plain values and arrays; nothing where it has neither."""
    found: dict[str, Any] = {}
    if model._parameters:
        found["learned"] = {name: _written(name, p) for name, p in model._parameters.items()}
    if model._guides:
        found["guides"] = {name: write_function(guide) for name, guide in model._guides.items()}
    if model._potentials:
        found["potentials"] = {
            name: {
                "weight": write_function(p),
                "plates": {q: p.variable.lengths.get(q) for q in p.variable.plates},
            }
            for name, p in model._potentials.items()
        }
    return found


def _written(name: str, parameter: Parameter) -> dict[str, Any]:
    said: dict[str, Any] = {"fixed": True} if parameter.fixed else {}
    if parameter.prior is not None:
        said["prior"] = written_form(name, parameter.prior)
    if isinstance(parameter.value, np.ndarray):
        said |= {"numbers": parameter.value.ravel(), "shape": list(parameter.value.shape)}
        if parameter.plates:
            said["plates"] = list(parameter.plates)
        if parameter.support is not None:
            if not isinstance(parameter.support, str):
                raise UnsupportedModel(
                    f"the support of the parameter {name!r} is a constraint; a file holds those with a name ('positive')"
                )
            said["support"] = parameter.support
        return said
    if parameter.recipe is not None:
        said |= written_recipe(parameter.recipe)
    else:
        said["module"] = type(parameter.value).__name__
    if parameter.value is not None:
        said["leaves"] = {path: np.asarray(leaf) for path, leaf in named_leaves(parameter.value)}
    return said


def written_recipe(recipe: ModuleRecipe) -> dict[str, Any]:
    """Return a recipe, and those among its settings, as plain values."""

    def plain(value: Any) -> Any:
        if isinstance(value, tuple | list):
            return [plain(v) for v in value]
        return written_recipe(value) if isinstance(value, ModuleRecipe) else value

    settings = {k: plain(v) for k, v in recipe.settings}
    return {"recipe": recipe.name, "arguments": plain(recipe.arguments), "settings": settings}


def read_recipe(own: JsonNode) -> ModuleRecipe:
    """Return the recipe that was written; lists are tuples, as recipes have them."""

    def value(node: JsonNode) -> Any:
        if isinstance(node.value, list):
            return tuple(value(v) for v in node.items())
        return read_recipe(node) if isinstance(node.value, dict) else node.value

    name = own.get("recipe").text()
    if name not in MAKERS:
        own.get("recipe").fail(f"expected one of {', '.join(sorted(MAKERS))}")
    settings = tuple((k, value(v)) for k, v in own.get("settings").fields())
    own.get("arguments").need(list, "a list")
    return ModuleRecipe(name, value(own.get("arguments")), settings)


def read_parameters(root: JsonNode, network: BayesianNetwork) -> None:
    """Give a network the parameters and guides of a file."""
    if "learned" in root:
        network._parameters = {name: _read(name, own) for name, own in root.get("learned").fields()}
    if "guides" in root:
        guides = {}
        for name, own in root.get("guides").fields():
            try:
                variable = network.variable(name)
            except MarkoviaError as error:
                own.fail(str(error))
            parents = tuple(
                network.variable(a.text()) for _, a in own.get("arguments").fields() if a.text() in network
            )
            guides[name] = read_function(own, variable, parents)
        network._guides = guides
    if "potentials" in root:
        network._potentials = {n: _potential(n, own, network) for n, own in root.get("potentials").fields()}


def _potential(name: str, own: JsonNode, network: BayesianNetwork) -> PotentialNode:
    own.only("weight", "plates")
    lengths = {plate: n.value for plate, n in own.get("plates").fields()}
    known = {plate: n for plate, n in lengths.items() if n is not None}
    variable = Quantity(name, "potential", tuple(lengths), known)
    weight = read_function(own.get("weight"), variable, ())
    return PotentialNode.over(variable, weight.form, weight.arguments, network._variables)


def _read(name: str, own: JsonNode) -> Parameter:
    own.only("numbers", "shape", "support", "plates", "recipe", "arguments", "settings", "module", "leaves", "prior",
             "fixed")  # fmt: skip
    prior = read_form(own.get("prior")) if "prior" in own else None
    fixed = "fixed" in own and own.get("fixed").need(bool, "true or false")
    try:
        if "numbers" in own:
            shape = [int(n) for n in own.get("shape").need(list, "a list of lengths")]
            support = own.get("support").text() if "support" in own else None
            plates = tuple(p.text() for p in own.get("plates").items()) if "plates" in own else ()
            numbers = as_numbers(own.get("numbers")).reshape(shape)
            return Parameter(numbers, support=support, prior=prior, fixed=fixed).on(plates)
        if "module" in own:
            parts = _PARTS.get({})
            if name not in parts:
                own.get("module").fail(
                    f"expected the module {name!r} of class {own.get('module').text()}, of which the file holds the numbers "
                    f"alone; bring it along: mk.load(path, parts={{{name!r}: module}})"
                )
            module = parts.pop(name)
            parameter = Parameter(module, prior=prior, fixed=fixed)
        elif "recipe" in own:
            recipe = read_recipe(own)
            parameter, module = Parameter(recipe, prior=prior), recipe.build(0)
            parameter.fixed = fixed
        else:
            own.fail("expected numbers, a recipe or a module")
        return parameter.with_value(_filled(module, own.get("leaves"))) if "leaves" in own else parameter
    except ParseError:
        raise
    except (MarkoviaError, ValueError, TypeError) as error:
        own.fail(f"expected a parameter; {error}")


def _filled(module: Any, own: JsonNode) -> Any:
    """Return a module with the arrays of a file."""
    found, kind = {path: as_numbers(node) for path, node in own.fields()}, type(module).__name__
    leaves = []
    for path, leaf in named_leaves(module):
        leaves.append(found.pop(path, None))
        if np.shape(leaves[-1]) != leaf.shape or leaves[-1] is None:
            own.fail(f"expected {path} of {kind} of shape {leaf.shape}, found {np.shape(leaves[-1])}")
    if found:
        own.fail(f"expected the arrays of a {kind}, which has no {min(found)}")
    return ModuleSkeleton.of(module).filled(leaves)


def as_numbers(node: JsonNode) -> Any:
    """Return an array that stands in the file beside the text, or a list of numbers, as an array of fractions."""
    return node.value if isinstance(node.value, np.ndarray) else np.array(node.value, dtype=np.float64)
