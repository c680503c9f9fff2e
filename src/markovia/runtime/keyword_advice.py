"""A wrong keyword gets an answer that names the right one.

Other libraries say `evidence=`, `evs=`, `n_samples=`; a bare `TypeError` does not help a newcomer.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from markovia.errors import UnknownArgument, did_you_mean

P = ParamSpec("P")
R = TypeVar("R")
C = TypeVar("C")

ELSEWHERE = {
    "given": (
        "evidence",
        "evs",
        "hard_evidence",
        "observed",
        "obs",
        "observations",
        "data",
        "virtual_evidence",
        "knowing",
    ),
    "targets": ("variables", "target", "query", "query_variables", "nodes", "node", "on", "names"),
    "target": ("variables", "variable", "targets", "nodes"),
    "n": ("n_samples", "size", "num_samples", "samples", "draws", "nsamples"),
    "seed": ("random_state", "rng", "random_seed"),
    "p": ("cpd", "cpt", "values", "probabilities", "table", "probs"),
    "parents": ("evidence", "parent"),
    "states": ("state_names", "labels", "domain", "cardinality", "card", "n_states", "variable_card"),
    "engine": ("method", "algorithm", "inference", "solver"),
    "frame": ("df", "X", "data", "rows", "dataframe"),
    "sequences": ("X", "y", "Y", "data", "emissions", "observations", "endog"),
    "steps": ("n_samples", "n_timesteps", "num_timesteps", "n_periods", "periods"),
    "n_states": ("n_components", "num_states", "n_dim_state", "k_regimes"),
    "n_mixtures": ("n_mix",),
    "method": ("algorithm",),
    "max_iter": ("n_iter", "num_iters", "maxiter", "em_iter"),
    "tol": ("tolerance", "threshold"),
    "progress": ("verbose", "disp"),
    "init": ("init_params",),
    "emission": ("emission_distribution", "distributions"),
    "start": ("startprob", "starts", "initial_probs"),
    "start_prior": ("startprob_prior", "initial_probs_concentration"),
    "transition_prior": ("transmat_prior", "transition_matrix_concentration"),
    "emission_prior": (
        "means_prior",
        "means_weight",
        "covars_prior",
        "covars_weight",
        "weights_prior",
        "emissionprob_prior",
        "lambdas_prior",
        "lambdas_weight",
    ),
    "transition": ("transition_matrices", "transition_matrix", "transmat", "edges"),
    "transition_cov": ("transition_covariance", "state_cov"),
    "transition_offset": ("transition_offsets",),
    "observation": ("observation_matrices", "observation_matrix", "design"),
    "observation_cov": ("observation_covariance", "obs_cov"),
    "observation_offset": ("observation_offsets",),
    "initial_mean": ("initial_state_mean",),
    "initial_cov": ("initial_state_covariance",),
    "learn": ("em_vars",),
    "trend": ("level",),
    "inputs": ("exog",),
}

METHODS = {
    "map_query": "map",
    "mpe": "map",
    "posterior": "query",
    "predict_probability": "predict_proba",
    "simulate": "sample",
    "get_cpds": "bn['name'] (a node's table)",
    "cpt": "bn['name'] (a node's table)",
    "add_cpds": "add",
    "nodes": "variables",
    "names": "variables",
    "is_dconnected": "independent",
    "isIndependent": "independent",
    "active_trail_nodes": "open_trails",
    "check_model": "validate",
    "log_probability": "log_prob",
    "get_state_probability": "log_prob",
    "evidenceProbability": "log_evidence",
    "add_node": "add",
    "remove_node": "remove",
    "get_markov_blanket": "markov_blanket",
    "moralize": "to_markov_network",
    "to_markov_model": "to_markov_network",
    "get_independencies": "independencies",
    "get_partition_function": "log_partition",
    "evidenceImpact": "information",
    "value_of_information": "information",
    "sensitivity_analysis": "sensitivity",
    "to_junction_tree": "junction_tree",
    "junctionTree": "junction_tree",
    "triangulate": "junction_tree",
    "get_elimination_order": "elimination_order",
    "eliminationOrder": "elimination_order",
    "tree_width": "treewidth",
}


def guided(function: Callable[P, R]) -> Callable[P, R]:
    """Make a method answer an unknown keyword with the keyword that was probably meant."""
    known = [n for n in inspect.signature(function).parameters if n != "self"]
    owner, _, said = function.__qualname__.rpartition(".")
    said = owner if said == "__init__" else said

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        for word in kwargs:
            if word not in known:
                raise UnknownArgument(_advice(said, word, known))
        return function(*args, **kwargs)

    return call


def guided_settings(settings: type[C]) -> type[C]:
    """Make the constructor of a dataclass of settings answer likewise."""
    settings.__init__ = guided(settings.__init__)  # type: ignore[method-assign]
    return settings


def _advice(name: str, word: str, known: list[str]) -> str:
    for right in known:
        if word in ELSEWHERE.get(right, ()):
            return f"{name}() has no argument {word!r}; it is {right}= here"
    listed = ", ".join(f"{k}=" for k in known)
    return f"{name}() has no argument {word!r}{did_you_mean(word, known)}; its arguments are {listed}"


def missing_attribute(owner: Any, name: str, words: Mapping[str, str] = METHODS) -> AttributeError:
    """Return the error for an attribute that is not there, with markovia's word for it where known."""
    kind = type(owner).__name__
    if name in words:
        return AttributeError(f"{kind} has no attribute {name!r}; here it is {words[name]}")
    public = [n for n in dir(type(owner)) if not n.startswith("_")]
    return AttributeError(f"{kind} has no attribute {name!r}{did_you_mean(name, public)}")
