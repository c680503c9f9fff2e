"""Maximum likelihood for the free entries of state-space matrices by gradients, with standard errors."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from markovia.errors import InvalidArgument, MarkoviaError
from markovia.inference.sequences.kalman_filter import KalmanFilter
from markovia.inference.sequences.state_space import StateSpace
from markovia.learning.sequences.state_space_em import free_entries
from markovia.learning.sequences.state_space_likelihood import LikelihoodParameter, fit_likelihood
from markovia.runtime.array_types import Array, Flags, Ints


@dataclass(frozen=True)
class StateSpaceGradientFit:
    """What gradients found: the matrices, the log likelihood before and after, whether it is the greatest, standard errors.

    The errors of entries are NaN where they are fixed, or the data do not tell them.
    """

    space: StateSpace
    log_likelihoods: list[float]
    converged: bool
    standard_errors: dict[str, Array]
    iterations: int


def fit_gradient(
    space: StateSpace,
    y: Array,
    offsets: Ints,
    learn: Mapping[str, object],
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    **how: Any,
) -> StateSpaceGradientFit:
    """Learn matrices from sequences, from those given on; arguments are those of `fit_em`, the others `KalmanFilter`'s.

    Examples
    --------
    >>> from markovia.inference.sequences.state_space import state_space
    >>> y = np.array([[1.0], [2.0], [4.0], [5.0]])  # four independent numbers
    >>> space = state_space(0, 1, 1, 0, 0, 1, observation_offset=1.0)
    >>> learn = {"observation_offset": True, "transition_cov": True, "initial_cov": False}
    >>> found = fit_gradient(space, y, np.array([0, 4]), learn, tol=1e-9)
    >>> found.standard_errors["observation_offset"].shape
    (1,)
    """
    free = free_entries(space, learn)
    parts = _parts(space, free, y)
    if not parts:
        raise InvalidArgument("learn= frees no entry of any matrix, so there is nothing to fit")
    start = np.concatenate([_now(space, name)[at] for name, at, _ in parts])
    noise = np.concatenate([np.full(len(p.names), p.domain != "real") for _, _, p in parts])
    cuts = np.cumsum([len(p.names) for _, _, p in parts])[:-1]

    def made(params: Array) -> StateSpace:
        changed: dict[str, Array] = {}
        for (name, at, _), values in zip(parts, np.split(params, cuts), strict=True):
            now = changed.setdefault(name, _now(space, name).copy())
            now[at] = values
            if name.endswith("_cov"):
                now[at[::-1]] = values
        return replace(space, **{k: v if k.startswith("initial") else v[None] for k, v in changed.items()})  # type: ignore[arg-type]

    def log_likelihood(params: Array) -> float:
        return float(KalmanFilter(made(params), y, offsets, times=100, **how).log_prob.sum())

    first = log_likelihood(start)  # says what is wrong with the data
    start = _in_unit(log_likelihood, start, noise)
    parameters = [p for _, _, p in parts]
    seen = int((~np.isnan(y)).sum())
    found = fit_likelihood(log_likelihood, parameters, start, count=seen, max_iter=max_iter, tol=tol)
    errors: dict[str, Array] = {}
    for (name, at, _), values in zip(parts, np.split(found.standard_errors, cuts), strict=True):
        now = errors.setdefault(name, np.full(_now(space, name).shape, np.nan))
        now[at] = values
        if name.endswith("_cov"):
            now[at[::-1]] = values
    logs = [first, found.log_likelihood]
    return StateSpaceGradientFit(made(found.params), logs, found.converged, errors, found.iterations)


def _in_unit(log_likelihood: Callable[[Array], float], start: Array, noise: Flags) -> Array:
    """Return a start whose free covariances are of the data's order: the likeliest power of ten times those given."""

    def tried(decade: float) -> float:
        try:
            return log_likelihood(np.where(noise, start * 10.0**decade, start))
        except (MarkoviaError, np.linalg.LinAlgError):
            return -np.inf

    best, step = 0.0, 8.0
    here = tried(best)
    while noise.any() and step >= 1.0:
        side = max(best - step, best + step, key=tried)
        if (there := tried(side)) > here and abs(side) < 100.0:
            best, here = side, there
        else:
            step /= 2.0
    return np.where(noise, start * 10.0**best, start)


def _units(space: StateSpace, y: Array) -> dict[str, Array]:
    """Return about how large the entries of matrices that are no covariances are, from the spread of states and data."""
    shown = np.nanstd(y, axis=0)
    shown = np.where(shown > 0, shown, 1.0)
    spread = np.sqrt(np.diag(space.transition_cov[0]) + np.diag(space.initial_cov))
    reach = np.abs(space.observation[0]) / shown[:, None]
    far = np.where(reach.max(axis=0) > 0, reach.max(axis=0), 1.0)
    states = np.where(spread > 0, spread, 1.0 / far)
    return {
        "transition": states[:, None] / states,
        "observation": shown[:, None] / states,
        "transition_offset": states,
        "observation_offset": shown,
        "initial_mean": states,
    }


def _now(space: StateSpace, name: str) -> Array:
    value = getattr(space, name)
    return np.asarray(value if name.startswith("initial") else value[0])


def _parts(
    space: StateSpace, free: Mapping[str, Flags], y: Array
) -> list[tuple[str, tuple[Ints, ...], LikelihoodParameter]]:
    """Return the free entries of each matrix, covariances block by block, as parameters."""
    found: list[tuple[str, tuple[Ints, ...], LikelihoodParameter]] = []
    units = _units(space, y)
    for name, mask in free.items():
        now = _now(space, name)
        places = [np.nonzero(mask)] if mask.any() else []
        if name.endswith("_cov"):
            blocks = sorted({tuple(np.flatnonzero(row).tolist()) for row in mask if row.any()})
            whole = [np.isin(np.arange(len(mask)), b) for b in blocks]
            if (
                not np.array_equal(sum(np.outer(w, w).astype(int) for w in whole), mask.astype(int))
                and blocks
            ):
                raise InvalidArgument(
                    f"learn= frees entries of {name!r} that are no blocks; free whole blocks"
                )
            lower = [np.tril_indices(len(b)) for b in blocks]
            places = [(np.array(b)[i], np.array(b)[j]) for b, (i, j) in zip(blocks, lower, strict=True)]
        for at in places:
            names = tuple(
                f"{name}[{','.join(map(str, entry))}]"
                for entry in zip(*(i.tolist() for i in at), strict=True)
            )
            domain: Any = (
                "real" if not name.endswith("_cov") else "positive" if len(names) == 1 else "covariance"
            )
            sizes = tuple(units[name][at].tolist()) if name in units else ()
            found.append((name, at, LikelihoodParameter(names, tuple(now[at].tolist()), domain, sizes=sizes)))
    return found
