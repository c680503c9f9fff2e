"""Posteriors in the native format: the class, and what it keeps of itself, which is plain data.

    {"format": "markovia", "version": 1, "kind": "posterior", "class": "Posterior",
     "state": {"_factor": {"table": [["rain", ["no", "yes"]]], "values": {...}}, "info": {...}}}

The model is not in it: draws, tables, closed forms, data, log likelihoods and the provenance are. Of the provenance,
`details` of an engine are left out where they are no plain data, and evidence that is no plain value is kept as its text.
"""

from dataclasses import replace
from typing import Any

from markovia.errors import MarkoviaError, UnsupportedModel
from markovia.inference.posterior_questions import PosteriorQuestions
from markovia.inference.result import Info
from markovia.io.native.json_paths import JsonNode
from markovia.io.native.native_estimators import read_value, written_value
from markovia.runtime.registry import resolve
from markovia.runtime.source_text import brief

POSTERIORS: dict[str, str] = {
    "Posterior": "markovia.inference.posterior:Posterior",
    "SampledPosterior": "markovia.models.graphical.posterior_network:SampledPosterior",
    "GaussianPosterior": "markovia.inference.gaussian.gaussian_posterior:GaussianPosterior",
    "PlatedPosterior": "markovia.inference.densities.program.state_draws:PlatedPosterior",
    "DrawnPosterior": "markovia.inference.densities.draws.drawn_posterior:DrawnPosterior",
    "BoundedPosterior": "markovia.causal.counterfactuals.bounded_posterior:BoundedPosterior",
    "ClosedPosterior": "markovia.inference.densities.closed_forms.closed_posterior:ClosedPosterior",
}
"""Where each class of posteriors lives."""


def posterior_content(posterior: PosteriorQuestions) -> tuple[str, dict[str, Any]]:
    """Return the kind and the content of a posterior."""
    name = type(posterior).__name__
    if name not in POSTERIORS:
        raise UnsupportedModel(
            f"the native format holds no {name}; pickle keeps it, and the network's own file keeps the means"
            if name in ("NetworkPosterior", "NumberPosterior")
            else f"the native format holds no {name}; pickle keeps it"
        )
    state = {**posterior.__getstate__(), "info": plain_info(posterior.info)}
    return "posterior", {
        "class": name,
        "state": {n: written_value(v, f"{name}.{n}") for n, v in state.items()},
    }


def plain_info(info: Info) -> Info:
    """Return a provenance that a file can hold."""
    given = {n: said if _is_plain(said) else str(said) for n, said in info.given.items()}
    return replace(info, details=info.details if _is_plain(info.details) else None, given=given)


def _is_plain(value: Any) -> bool:
    try:
        written_value(value, "info")
    except UnsupportedModel:
        return False
    return True


def read_posterior(root: JsonNode) -> Any:
    """Read a posterior."""
    root.only("format", "version", "kind", "class", "state")
    name = root.get("class").text()
    if name not in POSTERIORS:
        root.get("class").fail(f"expected one of {', '.join(POSTERIORS)}")
    kind = resolve(POSTERIORS[name])
    found = object.__new__(kind)
    state = {n: read_value(v) for n, v in root.get("state").fields()}
    try:
        found.__setstate__(state)
        repr(found)
    except (MarkoviaError, AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        root.get("state").fail(f"expected the parts of a {name}; {brief(str(error))}")
    return found
