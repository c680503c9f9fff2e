"""An effect with its diagnostics: overlap by the treatment model that was used, balance by its weights, the first stage."""

from dataclasses import replace

import numpy as np

from markovia.causal.estimation.adjustment.diagnostics import balance, overlap
from markovia.causal.estimation.adjustment.instrumental_variables import first_stage
from markovia.causal.estimation.effect_result import Effect
from markovia.causal.estimation.methods import EffectSettings, dose
from markovia.causal.estimation.propensity_score import treatment_model
from markovia.causal.estimation.study import Study
from markovia.learning.regression.nuisance import learner_for
from markovia.runtime.array_types import Array


def diagnosed(found: Effect) -> Effect:
    """Add overlap, balance and the first stage where they have a meaning."""
    study = found.study
    assert study is not None
    low, high = found.settings.control, found.settings.treated
    if found.instruments:
        assert study.instruments is not None
        return replace(found, first_stage=first_stage(dose(study), study.covariates, study.instruments))
    if study.levels is None or found.method in ("front-door", "plug-in") or not study.covariates.shape[1]:
        return found
    p, model = found.estimate.probabilities, ""
    if p is None:
        p, model = _treatment_model(study, found.settings)
    elif len(p) < study.n:  # conditional effects are learned from the two arms that are compared
        study = study.take(np.isin(study.codes, [low, high]))
        study = replace(
            study, treatment=(study.codes == high).astype(float), levels=(found.control, found.treated)
        )
        low, high = 0, 1
    weights = found.estimate.weights
    if weights is None:
        among = {"ate": None, "att": high, "atc": low}[found.target]
        tilt = 1.0 if among is None else p[:, among]
        weights = tilt / np.maximum(p[np.arange(study.n), study.codes], 1e-3)
    return replace(
        found,
        overlap=overlap(study.codes, p, weights, high, model),
        balanced=balance(study.codes, study.covariates, study.columns, weights, high, low),
    )


def _treatment_model(study: Study, settings: EffectSettings) -> tuple[Array, str]:
    """Return probabilities of the arms for a method that needs none, by the learner given or else logistic; its name."""
    found, name = treatment_model(study, learner_for(settings.learner, "treatment"), 5, settings.seed)
    return found.probabilities, f"of {name}"
