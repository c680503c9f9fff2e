"""Objectives by the names that `fit(method=...)` takes."""

from typing import Any

from markovia.runtime.registry import resolve

_HOME = "markovia.learning.neural."
OBJECTIVES = {
    "denoising": _HOME + "denoising:Denoising",
    "elbo": _HOME + "elbo:ELBO",
    "likelihood": _HOME + "elbo:ELBO",
    "iwae": _HOME + "elbo:ImportanceWeighted",
    "wake-sleep": _HOME + "wake_sleep:WakeSleep",
    "reweighted-wake-sleep": _HOME + "wake_sleep:ReweightedWakeSleep",
    "nvil": _HOME + "score_gradients:NVIL",
    "vimco": _HOME + "score_gradients:VIMCO",
    "gibbs": _HOME + "hidden_units:GibbsLearning",
    "gan": _HOME + "adversarial:Adversarial",
    "wasserstein": _HOME + "adversarial:WassersteinGAN",
    "mmd": _HOME + "adversarial:MMD",
    "pcd": _HOME + "persistent_chains:PersistentChains",
    "score-matching": _HOME + "score_matching:ScoreMatching",
    "sliced-score-matching": _HOME + "score_matching:sliced",
    "denoising-score-matching": _HOME + "score_matching:denoising",
    "nce": _HOME + "noise_contrastive:NoiseContrastive",
}


def objective_named(name: str) -> Any:
    """Return an objective with its usual settings."""
    return resolve(OBJECTIVES[name])()
