"""A wrong keyword gets an answer that names the right one.

Other libraries say `evidence=`, `evs=`, `n_samples=`; a bare `TypeError` does not help a newcomer. Whatever comes through a
front door (see `lazy_names`) answers like this: `guide` goes over a class with all its verbs, or a function.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from functools import wraps
from types import FunctionType
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
    "seed": ("random_state", "rng", "random_seed", "rng_key", "key"),
    "random_state": ("seed", "rng", "random_seed", "rng_key", "key"),
    "draws": ("num_samples", "n_samples", "samples", "nsamples", "n_draws", "num_draws", "iter"),
    "samples": ("num_particles", "n_samples", "num_samples"),
    "warmup": ("tune", "num_warmup", "burn_in", "burnin", "burn", "n_burn", "warmup_steps"),
    "burn_in": ("tune", "num_warmup", "warmup", "burnin", "burn", "n_burn"),
    "chains": ("num_chains", "n_chains", "cores", "nchains"),
    "thin": ("thinning", "lag"),
    "target_accept": ("target_accept_prob", "adapt_delta", "delta"),
    "max_tree_depth": ("max_treedepth", "treedepth"),
    "dense_mass": ("dense",),
    "step_size": ("lr", "learning_rate", "stepsize"),
    "learning_rate": ("lr", "step_size", "eta0"),
    "n_particles": ("num_particles", "particles", "n_samples"),
    "particles": ("num_particles", "n_particles"),
    "n_factors": ("k_factors", "n_components", "num_factors"),
    "n_components": ("n_topics", "num_topics", "k", "K", "n_clusters", "nclass", "n_classes"),
    "n_clusters": ("n_components", "k", "K"),
    "symbols": ("vocabulary", "alphabet"),
    "l1": ("c1", "l1_penalty"),
    "l2": ("l2_penalty", "reg_lambda"),
    "loc": ("mu", "mean", "location"),
    "scale": ("sigma", "sd", "std", "stddev"),
    "rate": ("lam", "lambda_", "mu", "beta"),
    "concentration": ("alpha", "a", "shape"),
    "concentration1": ("alpha", "a"),
    "concentration0": ("beta", "b"),
    "df": ("nu",),
    "probs": ("p", "prob"),
    "total_count": ("n",),
    "covariance_matrix": ("cov", "covariance", "Sigma"),
    "precision_matrix": ("tau", "precision", "prec"),
    "low": ("lower", "a"),
    "high": ("upper", "b"),
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
    "max_iter": ("n_iter", "num_iters", "maxiter", "em_iter", "max_iterations", "iterations", "passes"),
    "max_iterations": ("n_iter", "num_iters", "maxiter", "max_iter", "iterations"),
    "tol": ("tolerance", "threshold", "eps"),
    "tolerance": ("tol", "threshold", "eps"),
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
    "constant": ("trend", "intercept", "with_intercept", "include_mean"),
    "autoregressive": ("ar",),
    "durations": ("duration", "duration_distribution", "sojourn"),
    "duration_params": ("durations_params", "duration_parameters"),
    "n_series": ("k_endog",),
    "inputs": ("exog",),
}

CONVERTED = {
    ("C", "c2"): "its inverse is C= here: C=1/c2",
    ("l2", "C"): "l2= is the strength of the penalty here, and C its inverse elsewhere",
    ("l2", "alpha"): "the strength of the penalty is l2= (and l1=) here",
    ("scale", "tau"): "scale= is the standard deviation here: 1/sqrt(tau)",
    ("rate", "scale"): "rate= is the inverse of the scale here",
}
"""Words for something that is here in another unit: (the argument here, the word elsewhere)."""

LEFT_OUT = {
    (
        "forecast",
        "steps",
    ): "forecast(series, steps) starts from the series up to now, which a fitted model does not keep: "
    "forecast(y, 12)",
}
"""What to say where an argument is left out that other libraries do not ask for: (the verb, the argument)."""

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
    "sensitivity_analysis": "sensitivity",
    "addDecisionNode": "add",
    "addUtilityNode": "add",
    "optimalDecision": "decide",
    "to_junction_tree": "junction_tree",
    "junctionTree": "junction_tree",
    "triangulate": "junction_tree",
    "get_elimination_order": "elimination_order",
    "eliminationOrder": "elimination_order",
    "tree_width": "treewidth",
}


def guided(function: Callable[P, R]) -> Callable[P, R]:
    """Make a function answer an unknown keyword with the keyword that was probably meant."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except TypeError as problem:
            # a call whose arguments do not fit never gets into the function, so there is no deeper frame
            trace = problem.__traceback__
            if trace is None or trace.tb_next is not None:
                raise
            advice = unknown_argument(function, kwargs, _spoken(function, args), args)
            if advice is None:
                raise
            raise advice from None

    call.__dict__["is_guided"] = True
    return call


def unknown_argument(
    function: Callable[..., Any], kwargs: Mapping[str, Any], said: str, args: Sequence[Any] = ()
) -> UnknownArgument | None:
    """Return the error for a keyword that a function does not take, or takes twice; None if all is well."""
    from inspect import signature  # which takes longer to load than the rest of this package's door

    parameters = signature(function).parameters.values()
    if any(q.kind is q.VAR_KEYWORD for q in parameters):
        return None
    hidden = ("self", "cls", "_cls", "validate_args")
    known = [q.name for q in parameters if q.kind is not q.VAR_POSITIONAL and q.name not in hidden]
    wrong = next((word for word in kwargs if word not in known and word not in hidden), None)
    if wrong is not None:
        return UnknownArgument(_advice(said, wrong, known))
    # several names one after the other reach into the next argument: query("a", "b", given=...)
    by_place = [q.name for q in parameters if q.kind in (q.POSITIONAL_ONLY, q.POSITIONAL_OR_KEYWORD)]
    twice = next((word for word in by_place[: len(args)] if word in kwargs), None)
    if twice is None:
        absent = [word for word in by_place[len(args) :] if word not in kwargs]
        return next(
            (UnknownArgument(LEFT_OUT[said, word]) for word in absent if (said, word) in LEFT_OUT), None
        )
    first = by_place[0] if by_place[0] not in hidden else by_place[1]
    return UnknownArgument(
        f"{said}() is given {twice}= twice, by place and by name; several values of {first}= go in a list: "
        f"{said}([first, second], {twice}=...)"
    )


def _spoken(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """Return what a user calls a function: a constructor by the class that is made."""
    owner, _, name = function.__qualname__.rpartition(".")
    if name == "__init__" and args:
        return type(args[0]).__name__
    if name == "__new__" and args:
        return str(args[0].__name__)
    return owner if name == "__init__" else name


_guided_classes: set[type] = set()


def guide(value: Any) -> Any:
    """Make a public class with all its verbs, or a function, answer unknown keywords; anything else is left alone.

    A class is changed where it stands. A function is replaced in its own module, too, so that it is one and the same
    wherever it is looked up, by `pickle` as well.
    """
    if isinstance(value, type):
        if not issubclass(value, BaseException | Enum):
            for kind in value.__mro__:
                # a protocol stays as it is: what it has is what `isinstance` looks for
                own = kind.__module__.startswith("markovia.") and not getattr(kind, "_is_protocol", False)
                if own and kind not in _guided_classes:
                    _guide_verbs(kind)
        return value
    if not isinstance(value, FunctionType) or getattr(value, "is_guided", False):
        return value
    home = sys.modules.get(value.__module__)
    if home is None or not home.__name__.startswith("markovia."):
        return value
    name: str = value.__name__
    if name not in vars(home) or vars(home)[name] is not value:
        return value
    wrapped = guided(value)
    setattr(home, name, wrapped)
    return wrapped


def _guide_verbs(kind: type) -> None:
    for name, member in list(vars(kind).items()):
        if name.startswith("_") and name not in ("__init__", "__new__"):
            continue
        inner = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(inner, FunctionType) and not getattr(inner, "is_guided", False):
            wrapped = guided(inner)
            setattr(kind, name, wrapped if inner is member else type(member)(wrapped))
    _guided_classes.add(kind)


def guided_settings(settings: type[C]) -> type[C]:
    """Make the constructor of a dataclass of settings answer likewise."""
    settings.__init__ = guided(settings.__init__)  # type: ignore[method-assign]
    return settings


def _advice(name: str, word: str, known: list[str]) -> str:
    for right in known:
        if (right, word) in CONVERTED:
            return f"{name}() has no argument {word!r}; {CONVERTED[right, word]}"
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
