"""Estimators of hidden groups in the native format: the class, its settings, and what it has learned.

    {"format": "markovia", "version": 1, "kind": "estimator", "class": "BernoulliMixture",
     "settings": {"n_components": 2},
     "learned": {"weights_": {"array": [0.5, 0.5], "type": "float64", "shape": [2]}, "converged_": true}}

A value is written as it stands where JSON has it, else as an object with one telling key: `array` (flat, with `type` and
`shape`), `sparse`, `number` ("nan", "inf", "-inf"), `tuple`, `set`, `pairs` (a mapping), `model` (anything the native format
holds by itself), `template` (one that has learned nothing), `variable` with `states`, `table`, `form` (a function by the
name it is imported by, or a distribution, as function nodes have them), or `object` with `fields`: a class listed in
`ESTIMATORS` or `PARTS` below. Nothing else is made when a file is read, so a file runs no code of its own. A new estimator
needs one line in `ESTIMATORS`; attributes that an estimator names in `_not_saved` are left out.
"""

import math
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from types import FunctionType
from typing import Any

import numpy as np

from markovia.errors import IncompleteModel, MarkoviaError, UnsupportedModel
from markovia.factors.distributions.finite_distributions import is_distribution
from markovia.factors.networks.recipes import ModuleRecipe
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_functions import read_form, written_form
from markovia.io.native.native_parameters import read_recipe, written_recipe
from markovia.runtime import ports
from markovia.runtime.registry import resolve
from markovia.runtime.source_text import brief

ESTIMATORS: dict[str, str] = {
    "HDP": "markovia.models.topics.hdp:HDP",
    "HierarchicalLDA": "markovia.models.topics.hierarchical_lda:HierarchicalLDA",
    "InfiniteHMM": "markovia.models.temporal.infinite_hmm:InfiniteHMM",
    "LDA": "markovia.models.topics.lda:LDA",
    "DirichletProcessMixture": "markovia.models.mixtures.dirichlet_process:DirichletProcessMixture",
    "Mixture": "markovia.models.mixtures.mixture:Mixture",
    "GaussianMixture": "markovia.models.mixtures.named_mixtures:GaussianMixture",
    "BernoulliMixture": "markovia.models.mixtures.named_mixtures:BernoulliMixture",
    "PoissonMixture": "markovia.models.mixtures.named_mixtures:PoissonMixture",
    "StudentTMixture": "markovia.models.mixtures.named_mixtures:StudentTMixture",
    "LatentFeatures": "markovia.models.mixtures.latent_features:LatentFeatures",
    "PoissonFactorisation": "markovia.models.topics.poisson_factorisation:PoissonFactorisation",
    "AuthorTopics": "markovia.models.topics.authors:AuthorTopics",
    "BigramTopics": "markovia.models.topics.bigram:BigramTopics",
    "CorrelatedTopics": "markovia.models.topics.correlated:CorrelatedTopics",
    "DynamicTopics": "markovia.models.topics.dynamic:DynamicTopics",
    "HMMLDA": "markovia.models.topics.hmm_lda:HMMLDA",
    "LabelledLDA": "markovia.models.topics.labelled:LabelledLDA",
    "LSI": "markovia.models.topics.lsi:LSI",
    "PLSI": "markovia.models.topics.plsi:PLSI",
    "SupervisedLDA": "markovia.models.topics.supervised:SupervisedLDA",
    "TiedTopics": "markovia.models.topics.tied:TiedTopics",
    "AilmentTopics": "markovia.models.topics.ailments:AilmentTopics",
    "UnigramMixture": "markovia.models.topics.unigrams:UnigramMixture",
    "KMeans": "markovia.models.mixtures.k_means:KMeans",
    "RegressionMixture": "markovia.models.mixtures.expert_mixtures:RegressionMixture",
    "MixtureOfExperts": "markovia.models.mixtures.expert_mixtures:MixtureOfExperts",
    "FactorAnalysis": "markovia.models.mixtures.factor_analysis:FactorAnalysis",
    "ProbabilisticPCA": "markovia.models.mixtures.factor_analysis:ProbabilisticPCA",
    "ICA": "markovia.models.mixtures.independent_components:ICA",
    "CategoricalMixture": "markovia.models.mixtures.named_mixtures:CategoricalMixture",
    "LatentClass": "markovia.models.mixtures.named_mixtures:LatentClass",
    "MarkovChainMixture": "markovia.models.mixtures.named_mixtures:MarkovChainMixture",
    "HMM": "markovia.models.temporal.hmm:HMM",
    "HiddenSemiMarkov": "markovia.models.temporal.hidden_semi_markov:HiddenSemiMarkov",
    "FactorialHMM": "markovia.models.temporal.factorial_hmm:FactorialHMM",
    "CoupledHMM": "markovia.models.temporal.joint_hmm:CoupledHMM",
    "SequenceMixture": "markovia.models.temporal.sequence_mixture:SequenceMixture",
    "SwitchingStateSpace": "markovia.models.temporal.switching_state_space:SwitchingStateSpace",
    "NonlinearStateSpace": "markovia.models.temporal.nonlinear_state_space:NonlinearStateSpace",
    "ParticleFilter": "markovia.models.temporal.particle_filter:ParticleFilter",
    "SumProductNetwork": "markovia.models.mixtures.sum_product_network:SumProductNetwork",
    "ContextFreeGrammar": "markovia.models.temporal.context_free_grammar:ContextFreeGrammar",
}
"""Where each estimator lives."""
PARTS: dict[str, str] = {
    "Circuit": "markovia.inference.circuits.circuit:Circuit",
    "FeaturePosterior": "markovia.models.mixtures.latent_features:FeaturePosterior",
    "Tokenizer": "markovia.data.text.document_texts:Tokenizer",
    "PartitionPosterior": "markovia.inference.collapsed.partition_posterior:PartitionPosterior",
    "Groups": "markovia.learning.latent.group_em:Groups",
    "OnlineState": "markovia.learning.latent.group_em:OnlineState",
    "LowRank": "markovia.learning.components.low_rank:LowRank",
    "CategoricalColumns": "markovia.learning.components.columns:CategoricalColumns",
    "Product": "markovia.learning.components.columns:Product",
    "Models": "markovia.models.mixtures.other_families:Models",
    "NetworkEmission": "markovia.models.temporal.hidden_states.network_emissions:NetworkEmission",
    "NestedGroups": "markovia.learning.latent.nested_groups:NestedGroups",
    "NestedRows": "markovia.models.mixtures.other_families:NestedRows",
    "Gaussian": "markovia.learning.components.gaussian:Gaussian",
    "StudentT": "markovia.learning.components.gaussian:StudentT",
    "Bernoulli": "markovia.learning.components.discrete:Bernoulli",
    "Poisson": "markovia.learning.components.discrete:Poisson",
    "Multinomial": "markovia.learning.components.discrete:Multinomial",
    "Categorical": "markovia.learning.components.discrete:Categorical",
    "GaussianMixtureComponents": "markovia.learning.components.gaussian:GaussianMixtureComponents",
    "RegressionGaussian": "markovia.learning.components.regressions:RegressionGaussian",
    "LaggedCategorical": "markovia.learning.components.regressions:LaggedCategorical",
    "Tied": "markovia.learning.components.tied:Tied",
    "AdditiveGaussian": "markovia.learning.sequences.joint_chains:AdditiveGaussian",
    "ByChain": "markovia.learning.sequences.joint_chains:ByChain",
    "JointChains": "markovia.learning.sequences.joint_chains:JointChains",
    "HigherOrder": "markovia.learning.sequences.chain_laws:HigherOrder",
    "Driven": "markovia.learning.sequences.chain_laws:Driven",
    "Regimes": "markovia.inference.sequences.switching_filter:Regimes",
    "CategoricalDurations": "markovia.learning.sequences.durations:CategoricalDurations",
    "PoissonDurations": "markovia.learning.sequences.durations:PoissonDurations",
    "NegativeBinomialDurations": "markovia.learning.sequences.durations:NegativeBinomialDurations",
    "GeometricDurations": "markovia.learning.sequences.durations:GeometricDurations",
    "Info": "markovia.inference.result:Info",
    "Diagnostics": "markovia.inference.markov_chains.diagnostics:Diagnostics",
    "DrawStats": "markovia.inference.densities.program.draw_stats:DrawStats",
    "StateDraws": "markovia.inference.densities.program.state_draws:StateDraws",
    "MixtureOfGaussians": "markovia.inference.gaussian.gaussian_posterior:MixtureOfGaussians",
    "ClosedForm": "markovia.inference.densities.closed_forms.closed_form:ClosedForm",
    "Elements": "markovia.inference.densities.closed_forms.closed_form:Elements",
    "Normals": "markovia.inference.densities.closed_forms.closed_form:Normals",
    "PlanDetails": "markovia.inference.exact.plan_details:PlanDetails",
    "CutsetDetails": "markovia.inference.exact.plan_details:CutsetDetails",
    "Details": "markovia.inference.gaussian.strong_elimination:Details",
    "LoopyDetails": "markovia.inference.message_passing.loopy_bp:LoopyDetails",
    "JoinGraphDetails": "markovia.inference.message_passing.join_graph:JoinGraphDetails",
    "RegionDetails": "markovia.inference.message_passing.generalized_bp:RegionDetails",
    "AscentDetails": "markovia.inference.variational.mean_field:AscentDetails",
    "ReweightedDetails": "markovia.inference.variational.tree_reweighted:ReweightedDetails",
    "ChainDetails": "markovia.inference.markov_chains.chain_runs:ChainDetails",
    "WeightDetails": "markovia.inference.weighted_draws.weight_diagnostics:WeightDetails",
    "AnnealedDetails": "markovia.inference.weighted_draws.annealed_importance:AnnealedDetails",
    "DensityChainDetails": "markovia.inference.densities.engines.density_chains:DensityChainDetails",
    "ApproximationDetails": "markovia.inference.densities.engines.approximation_details:ApproximationDetails",
    "LaplaceDetails": "markovia.inference.densities.engines.laplace:LaplaceDetails",
    "TemperingDetails": "markovia.inference.densities.engines.smc:TemperingDetails",
    "CAVIDetails": "markovia.inference.densities.closed_forms.cavi:CAVIDetails",
    "SVIDetails": "markovia.inference.densities.closed_forms.svi:SVIDetails",
    "Training": "markovia.optimise.training:Training",
    "NetworkDraws": "markovia.models.graphical.posterior_network:NetworkDraws",
}
"""Dataclasses and named tuples that estimators and posteriors are made of."""
FORMER = {
    "NormalFamily": "gaussian",
    "BernoulliFamily": "bernoulli",
    "PoissonFamily": "poisson",
    "DirichletFamily": "multinomial",
}
"""Classes of version 0.1 that held the prior of a conjugate component, which now stands beside it."""
TEMPLATES: dict[str, tuple[str, ...]] = {
    "HMM": ("n_states", "emission", "covariance_type", "structure", "max_iter", "tol", "n_init"),
    "MarkovChain": ("order", "smoothing", "back_off"),
}
"""Models that have learned nothing, by the settings that are kept."""
OF_FUNCTIONS = ("NonlinearStateSpace.", "ParticleFilter.")
"""Models whose functions and distributions are settings, which are kept by name; others learn what no name tells."""
LEFT_OUT = ("progress", "n_jobs", "verbose")
_TYPES = {"b": "bool", "i": "int64", "u": "int64", "f": "float64", "U": "str", "O": "object"}


class Nested:
    """A model inside another: text of its own in a text file, and an object in an `.mkz` file."""

    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root


def _class(name: str, listed: Mapping[str, str], *doors: str) -> Any:
    """Return the class of a name: one that is listed, or one that the door of presets or objectives hands out."""
    if name in listed:
        return resolve(listed[name])
    for door in doors:
        found = getattr(import_module(door), name, None) if name[:1].isupper() else None
        if isinstance(found, type) and is_dataclass(found):
            return found
    return None


def _estimator_class(name: str) -> Any:
    return _class(name, ESTIMATORS, "markovia.deep")


def _part_class(name: str) -> Any:
    return _class(name, PARTS, "markovia.objectives")


def is_estimator(model: object) -> bool:
    """Say whether a model is one that this file can write."""
    return _estimator_class(type(model).__name__) is type(model)


def estimator_content(model: Any) -> tuple[str, dict[str, Any]]:
    """Return the kind and the content of an estimator."""
    return "estimator", {"class": type(model).__name__, **_parts(model)}


def read_estimator(root: JsonNode) -> Any:
    """Read an estimator."""
    root.only("format", "version", "kind", "class", "settings", "learned")
    return _made(root)


def _parts(model: Any) -> dict[str, Any]:
    settings = {n: v for n, v in model.get_params(deep=False).items() if n not in LEFT_OUT}
    if not isinstance(settings.get("random_state"), int | None):
        settings["random_state"] = None
    hidden = {*model.get_params(deep=False), *getattr(model, "_not_saved", ())}
    learned = {n: v for n, v in vars(model).items() if n not in hidden}
    where = type(model).__name__
    return {
        "settings": {n: written_value(v, f"{where}.{n}") for n, v in settings.items()},
        "learned": {n: written_value(v, f"{where}.{n}") for n, v in learned.items()},
    }


def _made(node: JsonNode) -> Any:
    name = node.get("class").text()
    cls = _estimator_class(name)
    if cls is None:
        node.get("class").fail(f"expected one of {', '.join(ESTIMATORS)}, or a preset of mk.deep")
    settings = {n: read_value(v) for n, v in node.get("settings").fields()}
    try:
        model = cls(**settings)
    except (TypeError, MarkoviaError) as error:
        node.get("settings").fail(f"expected settings of a {name}; {brief(str(error))}")
    for key, value in node.get("learned").fields():
        vars(model)[key] = read_value(value)
    return model


def written_value(value: Any, where: str) -> Any:
    """Return what JSON can hold of a value."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, np.generic):
        return written_value(value.item(), where)
    if isinstance(value, float):
        return value if math.isfinite(value) else {"number": str(value)}
    if isinstance(value, np.ndarray):
        return _written_array(value, where)
    if isinstance(value, list):
        return [written_value(v, where) for v in value]
    if isinstance(value, tuple) and type(value).__name__ not in PARTS:
        return {"tuple": [written_value(v, where) for v in value]}
    if isinstance(value, set | frozenset):
        return {"set": [written_value(v, where) for v in sorted(value)]}
    if isinstance(value, Mapping):
        return {"pairs": [[written_value(k, where), written_value(v, where)] for k, v in value.items()]}
    if hasattr(value, "tocsr"):
        found = value.tocsr()
        parts = (found.data, found.indices, found.indptr)
        return {"sparse": [_written_array(p, where) for p in parts], "shape": list(found.shape)}
    if isinstance(value, Variable):
        return {"variable": value.name, "states": list(value.states)}
    if isinstance(value, Factor):
        scope = [[v.name, list(v.states)] for v in value.variables]
        return {"table": scope, "values": _written_array(value.values, where)}
    if where.startswith(OF_FUNCTIONS) and (isinstance(value, FunctionType) or is_distribution(value)):
        return {"form": written_form(where, value)}
    name = type(value).__name__
    if is_estimator(value):
        return {"object": name, "fields": {"class": name, **_parts(value)}}
    if _part_class(name) is type(value):
        if isinstance(value, tuple):
            held = value._asdict()  # type: ignore[attr-defined]
        else:
            held = (
                {f.name: getattr(value, f.name) for f in fields(value)}
                if is_dataclass(value)
                else vars(value)
            )
        return {"object": name, "fields": {n: written_value(v, f"{where}.{n}") for n, v in held.items()}}
    if isinstance(value, ModuleRecipe):
        return written_recipe(value)
    try:
        return {"model": Nested(ports.call("native-root", value))}
    except IncompleteModel:
        names = TEMPLATES.get(name, ())
        return {
            "template": name,
            "settings": {n: written_value(getattr(value, n), f"{where}.{n}") for n in names},
        }
    except UnsupportedModel:
        raise UnsupportedModel(
            f"the native format holds no {name}, which {where} is; pickle keeps it"
        ) from None


def _written_array(value: Any, where: str) -> dict[str, Any]:
    kind = value.dtype.kind
    if kind not in _TYPES:
        raise UnsupportedModel(f"the native format holds no arrays of {value.dtype}, which {where} is")
    flat = value.ravel()
    listed = flat
    if kind in "OU":
        listed = [written_value(x, where) for x in flat.tolist()]
    named = "float32" if value.dtype == np.float32 else "int32" if value.dtype == np.int32 else _TYPES[kind]
    return {"array": listed, "type": named, "shape": list(value.shape)}


def read_value(node: JsonNode) -> Any:
    """Return the value that was written."""
    value = node.value
    if isinstance(value, list):
        return [read_value(item) for item in node.items()]
    if not isinstance(value, dict):
        return value
    if "array" in value:
        return _read_array(node)
    if "number" in value:
        if value["number"] not in ("nan", "inf", "-inf"):
            node.get("number").fail("expected 'nan', 'inf' or '-inf'")
        return float(value["number"])
    if "tuple" in value:
        return tuple(read_value(item) for item in node.get("tuple").items())
    if "set" in value:
        return {read_value(item) for item in node.get("set").items()}
    if "pairs" in value:
        pairs = [list(pair.items()) for pair in node.get("pairs").items()]
        if any(len(pair) != 2 for pair in pairs):
            node.get("pairs").fail("expected pairs")
        return {read_value(key): read_value(item) for key, item in pairs}
    if "sparse" in value:
        from scipy.sparse import csr_array

        return csr_array(
            tuple(read_value(item) for item in node.get("sparse").items()), shape=tuple(value["shape"])
        )
    if "recipe" in value:
        return read_recipe(node)
    if "model" in value:
        inside = node.get("model")
        if isinstance(inside.value, dict):
            return ports.call("read-native-root", inside)
        return ports.call("loads", inside.text(), "json")
    if "variable" in value:
        return Variable(node.get("variable").text(), node.get("states").need(list, "a list of states"))
    if "table" in value:
        scope = [[part.value for part in pair.items()] for pair in node.get("table").items()]
        return Factor([Variable(*pair) for pair in scope], _read_array(node.get("values")))
    if "form" in value:
        return read_form(node.get("form"))
    if "template" in value:
        from markovia.models.temporal.hmm import HMM
        from markovia.models.temporal.markov_chain import MarkovChain

        kinds: dict[str, Any] = {"HMM": HMM, "MarkovChain": MarkovChain}
        if value["template"] not in kinds:
            node.get("template").fail(f"expected one of {', '.join(kinds)}")
        return kinds[value["template"]](**{n: read_value(v) for n, v in node.get("settings").fields()})
    name = node.get("object").text()
    if name not in PARTS and _estimator_class(name) is not None:
        return _made(node.get("fields"))
    if name in FORMER:
        return _former_family(FORMER[name], {n: read_value(v) for n, v in node.get("fields").fields()})
    cls = _part_class(name)
    if cls is None:
        node.get("object").fail(f"expected one of {', '.join((*ESTIMATORS, *PARTS))}")
    if issubclass(cls, tuple):
        try:
            return cls(**{key: read_value(item) for key, item in node.get("fields").fields()})
        except TypeError:
            node.get("fields").fail(f"expected the fields of a {name}")
    made = cls.__new__(cls)
    for key, item in node.get("fields").fields():
        object.__setattr__(made, key, read_value(item))
    return made


def _former_family(name: str, prior: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a conjugate component and its prior, which once were one object."""
    from markovia.learning.components.conjugate_priors import blank_component

    diagonal, levels = prior.pop("diagonal", False), prior.pop("levels", ())
    if "weights" in prior:
        name, prior = "categorical" if levels else name, {"concentration": prior["weights"]}
    width = len(next(iter(prior.values())))
    return blank_component(name, width, diagonal=diagonal, levels=levels), prior


def _read_array(node: JsonNode) -> Any:
    kind, listed = node.get("type").text(), node.get("array").value
    if not isinstance(listed, np.ndarray):
        node.get("array").need(list, "a list")
    if kind not in (*_TYPES.values(), "float32", "int32"):
        node.get("type").fail(f"expected one of {', '.join(dict.fromkeys(_TYPES.values()))}")
    try:
        if kind == "object":
            found = np.empty(len(listed), dtype=object)
            found[:] = [read_value(item) for item in node.get("array").items()]
        else:
            plain = isinstance(listed, np.ndarray) or not kind.startswith("float")
            found = np.array(listed if plain else [float(x) for x in listed], dtype=kind)
        return found.reshape(node.get("shape").value)
    except (TypeError, ValueError) as error:
        node.fail(f"expected an array; {brief(str(error))}")
