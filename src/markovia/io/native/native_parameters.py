"""Parameters and guides of a network in the native format.

    "learned": {"slope": {"numbers": [1.7], "shape": [], "support": "positive"},
                "decoder": {"recipe": "mlp", "arguments": [8, 64], "settings": {"hidden": 128}, "numbers": [...]}},
    "guides": {"z": {"form": {"function": "my_models:guide_of_z"}, "arguments": {"x": "x"}}}

A module is stored as the recipe it was made from and all its numbers in one list; a recipe that nobody has trained has none.
"""

from typing import Any

import numpy as np

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.factors.functions.parameter import ModuleSkeleton, Parameter
from markovia.factors.networks.recipes import MAKERS, ModuleRecipe
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_functions import read_function, write_function
from markovia.models.graphical.bayesian_network import BayesianNetwork


def write_parameters(model: BayesianNetwork) -> dict[str, Any]:
    """Return what a network has learned, and its guides, as plain values; nothing where it has neither."""
    found: dict[str, Any] = {}
    if model._parameters:
        found["learned"] = {name: _written(name, p) for name, p in model._parameters.items()}
    if model._guides:
        found["guides"] = {name: write_function(guide) for name, guide in model._guides.items()}
    return found


def _written(name: str, parameter: Parameter) -> dict[str, Any]:
    if isinstance(parameter.value, np.ndarray):
        said: dict[str, Any] = {
            "numbers": parameter.value.ravel().tolist(),
            "shape": list(parameter.value.shape),
        }
        if parameter.plates:
            said["plates"] = list(parameter.plates)
        if parameter.support is not None:
            if not isinstance(parameter.support, str):
                raise UnsupportedModel(
                    f"the support of the parameter {name!r} is a constraint; a file holds those with a name ('positive')"
                )
            said["support"] = parameter.support
        return said
    recipe = parameter.recipe
    if recipe is None:
        raise UnsupportedModel(
            f"the parameter {name!r} is a module of class {type(parameter.value).__name__}, of which a file would hold the "
            "numbers and not the class; make it by a recipe of mk.networks, or pickle the model"
        )
    found = {"recipe": recipe.name, "arguments": list(recipe.arguments), "settings": dict(recipe.settings)}
    if parameter.value is not None:
        found["numbers"] = ModuleSkeleton.of(parameter.value).vector(parameter.value).tolist()
    return found


def read_parameters(root: JsonNode, network: BayesianNetwork) -> None:
    """Give a network the parameters and guides of a file."""
    if "learned" in root:
        network._parameters = {name: _read(own) for name, own in root.get("learned").fields()}
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


def _read(own: JsonNode) -> Parameter:
    own.only("numbers", "shape", "support", "plates", "recipe", "arguments", "settings")
    numbers = None
    if "numbers" in own:
        listed = own.get("numbers").need(list, "a list of numbers")
        numbers = np.array([float(x) for x in listed])
    try:
        if "recipe" not in own:
            if numbers is None:
                own.fail("expected numbers, or a recipe")
            shape = [int(n) for n in own.get("shape").need(list, "a list of lengths")]
            support = own.get("support").text() if "support" in own else None
            plates = tuple(p.text() for p in own.get("plates").items()) if "plates" in own else ()
            return Parameter(numbers.reshape(shape), support=support).on(plates)
        name = own.get("recipe").text()
        if name not in MAKERS:
            own.get("recipe").fail(f"expected one of {', '.join(sorted(MAKERS))}")
        settings = {k: v.value for k, v in own.get("settings").fields()}
        recipe = ModuleRecipe(
            name, tuple(v.value for v in own.get("arguments").items()), tuple(settings.items())
        )
        parameter = Parameter(recipe)
        if numbers is None:
            return parameter
        skeleton = ModuleSkeleton.of(recipe.build(0))
        if skeleton.size != numbers.size:
            own.get("numbers").fail(f"expected {skeleton.size:,} numbers, found {numbers.size:,}")
        return parameter.with_value(skeleton.numpy_module(numbers))
    except (MarkoviaError, ValueError, TypeError) as error:
        own.fail(f"expected a parameter; {error}")
