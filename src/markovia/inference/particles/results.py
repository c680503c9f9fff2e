"""What particles say of the states of sequences: lists with one array a sequence, or one mapping where states have names."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.particles.filtering import Cloud, FilterRecord
from markovia.inference.particles.laws import ALONE, value_of
from markovia.inference.particles.moves import FINE, NAN_MOVED, NAN_SEEN, UNSEEN
from markovia.inference.sequences.drawn_paths import DrawnPath
from markovia.inference.sequences.forecast import DrawnSteps, Forecast
from markovia.inference.sequences.padded import PerSequence
from markovia.runtime.array_types import Array, Flags, Ints
from markovia.runtime.libraries import jax

CURES = {
    UNSEEN: "the observation has probability zero for every particle; the value is wrong or outside the range of "
    "observation=, or else more particles, method='guided' or a distribution with wider tails help",
    NAN_SEEN: "that of observation=, for some particles; its parameters leave their range there",
    NAN_MOVED: "that of transition= or proposal=, for some particles; parameters leave their range there",
}
UNREACHED_CURE = (
    "proposal= draws only states that the transition cannot reach; it must cover what the transition covers"
)


@dataclass(frozen=True, repr=False)
class ParticleFiltered(DrawnPath):
    """The states given what was observed up to each step, by particles; lists have one entry a sequence.

    An entry is an array with one row a step, or a mapping of such by name where states have names.

    Attributes
    ----------
    mean, sd
        Of each number of the state.
    cov
        Covariance matrices where the state is a vector, variances otherwise.
    probs
        For quantities that are one of some states, the probability of each; empty mappings where there is none.
    quantiles
        One entry a step and quantile that was asked for.
    ess
        The effective number of particles after each step.
    log_evidence
        The log likelihood of each sequence; its exponential is an unbiased estimate.
    increments
        The log of each step's likelihood given those before.
    resampled
        Before which steps the particles were resampled.
    particles, weights
        After the last step, or of all steps where they were kept.
    ancestors
        Where each particle came from in the step before; None where particles were not kept.
    """

    mean: list[Any]
    sd: list[Any]
    cov: list[Any]
    probs: list[Any]
    quantiles: list[Any]
    ess: list[Array]
    log_evidence: Array
    increments: list[Array]
    resampled: list[Flags]
    particles: list[Any]
    weights: list[Array]
    ancestors: list[Ints] | None

    @property
    def log_prob(self) -> Array:
        """The log likelihood of each sequence, by the name that other models use."""
        return self.log_evidence

    def __repr__(self) -> str:
        least = min(float(one.min()) for one in self.ess)
        total = float(self.log_evidence.sum())
        return f"ParticleFiltered(sequences={len(self.ess)}, log_evidence={total:.6g}, least ess={least:.0f})"


@dataclass(frozen=True, repr=False)
class ParticleSmoothed(DrawnPath):
    """The states given whole sequences, by particles; lists have one entry a sequence.

    Attributes
    ----------
    mean, sd, cov, probs
        As in `ParticleFiltered`.
    paths
        Drawn paths of states (draws, steps, ...), by the backward method; None otherwise.
    log_evidence
        The log likelihood of each sequence.
    """

    mean: list[Any]
    sd: list[Any]
    cov: list[Any]
    probs: list[Any]
    paths: list[Any] | None
    log_evidence: Array

    def __repr__(self) -> str:
        return (
            f"ParticleSmoothed(sequences={len(self.mean)}, log_evidence={float(self.log_evidence.sum()):.6g})"
        )


@dataclass(frozen=True, repr=False)
class ParticleStep:
    """The state after one more observation.

    Attributes
    ----------
    t
        The step's number, from 0.
    mean, sd, cov, probs
        As in `ParticleFiltered`, for this step.
    ess
        The effective number of particles.
    increment, log_evidence
        The log likelihood of this observation given those before, and of all so far.
    """

    t: int
    mean: Any
    sd: Any
    cov: Any
    probs: Any
    ess: float
    increment: float
    log_evidence: float

    def __repr__(self) -> str:
        return f"ParticleStep(t={self.t}, mean={self.mean}, ess={self.ess:.0f})"


def deviations(spread: dict[str, Any], mean: dict[str, Any], steps: int) -> dict[str, Any]:
    """Return standard deviations from variances or covariance matrices; `steps` axes come first in both."""
    found = {}
    for name, cov in spread.items():
        vector = np.ndim(mean[name]) == steps + 1
        found[name] = np.sqrt(np.maximum(np.einsum("...ii->...i", cov) if vector else cov, 0.0))
    return found


def plain(found: dict[str, Any]) -> Any:
    """Return what there is by name as a user meets it: numbers are plain, a state without names is itself."""
    named = {name: x.item() if np.ndim(x) == 0 else x for name, x in found.items()}
    return value_of(named) if named else {}


def check_trouble(trouble: Array, evidence: Array, at: Callable[[int], str]) -> None:
    """Raise for the first step at which the weights are of no use; `at` says where a step is."""
    wrong = np.flatnonzero((trouble != FINE) | ~np.isfinite(evidence))
    if len(wrong):
        i = int(wrong[0])
        cure = CURES.get(int(trouble[i]), UNREACHED_CURE)
        said = (
            "a density is NaN"
            if int(trouble[i]) in (NAN_SEEN, NAN_MOVED)
            else "all particles have weight zero"
        )
        raise InvalidArgument(f"{said} at {at(i)}: {cure}")


def filtered(
    runs: Sequence[tuple[Cloud, FilterRecord]], lengths: Sequence[int], *, single: bool = False
) -> ParticleFiltered:
    """Return what runs over sequences found, as a user meets it; arrays are NumPy's."""
    each = partial(PerSequence, single=single)
    records = [_cut(record, n) for (_, record), n in zip(runs, lengths, strict=True)]
    kept = [r.kept for r in records if r.kept is not None]
    clouds = [cloud for cloud, _ in runs]
    return ParticleFiltered(
        mean=each(plain(r.mean) for r in records),
        sd=each(plain(deviations(r.spread, r.mean, 1)) for r in records),
        cov=each(plain(r.spread) for r in records),
        probs=each(plain(r.shares) for r in records),
        quantiles=each(plain(r.quantiles) for r in records),
        ess=each(r.ess for r in records),
        log_evidence=np.array([float(c.log_evidence) for c in clouds]),
        increments=each(r.log_evidence for r in records),
        resampled=[r.resampled for r in records],
        particles=[k.states for k in kept] if kept else [_numpy(c.states) for c in clouds],
        weights=[np.exp(k.log_weights) for k in kept] if kept else [np.exp(c.log_weights) for c in clouds],
        ancestors=[k.ancestors.astype(np.int64) for k in kept] if kept else None,
    )


def _cut(tree: Any, n: int) -> Any:
    return jax.tree.map(lambda x: np.asarray(x)[:n], tree)


def _numpy(tree: Any) -> Any:
    return jax.tree.map(np.asarray, tree)


def one_step(t: int, cloud: Cloud, record: FilterRecord) -> ParticleStep:
    """Return one step as a user meets it."""
    mean, spread = _numpy(record.mean), _numpy(record.spread)
    return ParticleStep(
        t=t,
        mean=plain(mean),
        sd=plain(deviations(spread, mean, 0)),
        cov=plain(spread),
        probs=plain(_numpy(record.shares)),
        ess=float(record.ess),
        increment=float(record.log_evidence),
        log_evidence=float(cloud.log_evidence),
    )


def weighted(values: Any, weights: Array, states: dict[str, int]) -> tuple[Any, Any, Any, Any]:
    """Return mean, sd, spread and shares of weighted states (steps, particles, ...); weights (steps, particles) sum to 1."""
    named = dict(values) if isinstance(values, dict) else {ALONE: values}
    mean, spread, shares = {}, {}, {}
    for name, x in named.items():
        mean[name] = np.einsum("tn,tn...->t...", weights, x)
        gaps = x - mean[name][:, None]
        if x.ndim == 3:
            spread[name] = np.einsum("tn,tni,tnj->tij", weights, gaps, gaps, optimize=True)
        else:
            spread[name] = np.einsum("tn,tn...->t...", weights, gaps**2)
        if name in states:
            shares[name] = np.stack([(weights * (x == k)).sum(axis=1) for k in range(states[name])], axis=1)
    return plain(mean), plain(deviations(spread, mean, 1)), plain(spread), plain(shares)


def forecast(
    found: Sequence[tuple[dict[str, Any], dict[str, Any]]], level: float, *, single: bool = False
) -> Forecast:
    """Return simulated states and observations (steps, draws, ...) of each sequence, by name, as a forecast."""

    def laws(part: dict[str, Any]) -> DrawnSteps:
        return DrawnSteps(plain({name: np.moveaxis(np.asarray(x), 0, 1) for name, x in part.items()}))

    return Forecast([laws(seen) for _, seen in found], [laws(states) for states, _ in found], level, single)
