"""Expectation-maximisation for linear Gaussian state-space models, with any entries held fixed.

E-step: Kalman smoothing with the covariances of neighbouring states. M-step: regressions of states on the states before,
and of observations on states, with the free coefficients by generalised least squares; numbers missing from a step are
replaced by what they are expected to be given the states and the step's other numbers. The log likelihood never falls.
References: Shumway and Stoffer (1982); Holmes (2013) for missing values and masks.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.kalman_filter import Form, KalmanFilter
from markovia.inference.sequences.state_space import StateSpace
from markovia.optimise.ascent import Climb, climb
from markovia.runtime.array_types import Array, Flags, Ints

LEARNED = (
    "transition", "transition_cov", "observation", "observation_cov", "initial_mean", "initial_cov",
)  # fmt: skip
"""What is learned unless something else is asked for."""
OFFSETS = ("transition_offset", "observation_offset")


def free_entries(space: StateSpace, learn: Mapping[str, object]) -> dict[str, Flags]:
    """Return which entries of each array are learned, as masks; True is all of an array, False none.

    Raises
    ------
    InvalidArgument
        For an unknown array, a mask of a wrong shape, an array that varies over time, or free entries of a covariance
        that are not blocks with zeros around them.
    """
    found = {}
    for name in (*LEARNED, *OFFSETS):
        value = getattr(space, name)
        now = value if name.startswith("initial") else value[0]
        try:
            mask = np.array(np.broadcast_to(np.asarray(learn.get(name, False), dtype=bool), now.shape))
        except ValueError:
            raise InvalidArgument(
                f"learn= has a mask for {name!r} that is not of shape {now.shape}"
            ) from None
        if mask.any() and not name.startswith("initial") and len(value) > 1:
            raise InvalidArgument(
                f"{name}= varies over time, so it cannot be learned; leave it out of learn="
            )
        if name.startswith("initial"):
            known = ~space.diffuse
            mask &= known if now.ndim == 1 else np.outer(known, known)
        elif name.endswith("_cov") and mask.any():
            ones = np.diag(mask)
            blocks = (mask == mask.T).all() and all(
                (mask[i] == mask[np.flatnonzero(mask[i])]).all() for i in np.flatnonzero(ones)
            )
            if (
                not blocks
                or (mask & ~np.outer(ones, ones)).any()
                or now[~mask & (ones[:, None] | ones[None])].any()
            ):
                raise InvalidArgument(
                    f"learn= frees entries of {name!r} that are no blocks with zeros around them; free whole blocks"
                )
        found[name] = mask
    unknown = sorted(set(learn) - set(found))
    if unknown:
        raise InvalidArgument(f"learn= names {unknown[0]!r}; a model learns {', '.join(found)}")
    return found


def fit_em(
    space: StateSpace,
    y: Array,
    offsets: Ints,
    learn: Mapping[str, object],
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    form: Form = "covariance",
    at: Callable[[int], str] = "row {}".format,
    time_limit: float | None = None,
    progress: bool | None = None,
    transition_push: Array | None = None,
    observation_push: Array | None = None,
) -> Climb[StateSpace]:
    """Learn matrices from sequences, from those given on; the climb's history has the log likelihood before each iteration.

    Parameters
    ----------
    space
        Where to start, and what is not learned.
    y, offsets, form, at, transition_push, observation_push
        As `KalmanFilter` takes them.
    learn
        For each array's name a mask of the entries to learn, or True.
    max_iter, tol
        Stop after so many iterations, or when the log likelihood rises by no more than this a number observed.
    time_limit, progress
        Seconds after which it ends; whether to show a progress bar, by default on a terminal if it takes long.
    """
    free = free_entries(space, learn)

    def step(now: StateSpace) -> tuple[StateSpace, float]:
        run = KalmanFilter(
            now, y, offsets, form=form, at=at, transition_push=transition_push, observation_push=observation_push,
            times=max_iter // 2,
        )  # fmt: skip
        return _improved(run, free), float(run.log_prob.sum())

    size = max(1, int((~np.isnan(y)).sum()))
    return climb(step, space, max_iter=max_iter, tol=tol, size=size, time_limit=time_limit, progress=progress)


def _improved(run: KalmanFilter, free: Mapping[str, Flags]) -> StateSpace:
    """Return the matrices that the expected products of states and observations ask for."""
    space, offsets = run.space, run.offsets
    n = space.n_states
    some = {name: mask.any() for name, mask in free.items()}
    dynamic = some["transition"] or some["transition_cov"] or some["transition_offset"]
    found = run.smoothed
    x, place, covs = found.means, found.place, found.covs
    changed: dict[str, Array] = {}
    if dynamic:
        ends = np.zeros(len(x), dtype=bool)
        ends[offsets[1:] - 1] = True
        now = np.flatnonzero(~ends)
        if len(now):
            push = (run.c if len(run.c) == 1 else run.c[now]) - space.transition_offset[0]
            target = x[now + 1] - push
            cross = target.T @ x[now] + _sum(found.lagged, place, now)
            changed |= _regression(
                ("transition", "transition_cov", "transition_offset"), space, free,
                len(now), x[now].T @ x[now] + _sum(covs, place, now), x[now].sum(axis=0), cross,
                target.T @ target + _sum(covs, place, now + 1), target.sum(axis=0),
            )  # fmt: skip
    if some["observation"] or some["observation_cov"] or some["observation_offset"]:
        changed |= _regression(
            ("observation", "observation_cov", "observation_offset"), space, free,
            *_observed(run, x, place, covs),
        )  # fmt: skip
    first = offsets[:-1]
    mean = np.where(free["initial_mean"], x[first].mean(axis=0), space.initial_mean)
    away = x[first] - mean
    cov = (away.T @ away + _sum(covs, place, first)) / len(first)
    changed["initial_mean"] = mean
    changed["initial_cov"] = np.where(free["initial_cov"], cov, space.initial_cov).reshape(n, n)
    return replace(space, **changed)  # type: ignore[arg-type]


def _sum(covs: Array, place: Ints, rows: Ints) -> Array:
    """Return the sum of some rows' matrices, where rows share them."""
    count = np.bincount(place[rows])
    used = np.flatnonzero(count)
    return np.asarray(np.tensordot(count[used].astype(np.float64), covs[used], 1))


def _observed(
    run: KalmanFilter, x: Array, place: Ints, covs: Array
) -> tuple[int, Array, Array, Array, Array, Array]:
    """Return the expected sums of products of states and observations, over the steps that observe anything."""
    space = run.space
    n, p = space.n_states, space.n_observed
    kinds, kind = np.unique(~np.isnan(run.y), axis=0, return_inverse=True)
    count, xx, x1, yx, yy, y1 = (
        0,
        np.zeros((n, n)),
        np.zeros(n),
        np.zeros((p, n)),
        np.zeros((p, p)),
        np.zeros(p),
    )
    for k, there in enumerate(kinds):
        rows = np.flatnonzero(kind.ravel() == k)
        if not there.any():
            continue
        Z, H = (
            _constant(space.observation, "observation"),
            _constant(space.observation_cov, "observation_cov"),
        )
        G, noise = np.zeros((p, n)), np.zeros((p, p))
        push = (run.d if len(run.d) == 1 else run.d[rows]) - space.observation_offset[0]
        y = run.y[rows] - push
        if not there.all():
            gone = ~there
            B = H[np.ix_(gone, there)] @ np.linalg.pinv(H[np.ix_(there, there)])
            G[gone] = Z[gone] - B @ Z[there]
            noise[np.ix_(gone, gone)] = H[np.ix_(gone, gone)] - B @ H[np.ix_(there, gone)]
            d = space.observation_offset[0]
            y[:, gone] = x[rows] @ G[gone].T + d[gone] + (y[:, there] - d[there]) @ B.T
        V = _sum(covs, place, rows)
        count += len(rows)
        xx += x[rows].T @ x[rows] + V
        x1 += x[rows].sum(axis=0)
        yx += y.T @ x[rows] + G @ V
        yy += y.T @ y + G @ V @ G.T + len(rows) * noise
        y1 += y.sum(axis=0)
    return count, xx, x1, yx, yy, y1


def _constant(stack: Array, name: str) -> Array:
    if len(stack) > 1:
        raise InvalidArgument(
            f"{name}= varies over time, so neither it nor what belongs to it can be learned"
        )
    return np.asarray(stack[0])


def _regression(
    names: tuple[str, str, str],
    space: StateSpace,
    free: Mapping[str, Flags],
    count: int,
    xx: Array,
    x1: Array,
    yx: Array,
    yy: Array,
    y1: Array,
) -> dict[str, Array]:
    """Return coefficients, covariance and offset of y on x from sums of products, with fixed entries as they are."""
    if not count:
        return {}
    matrix, cov, offset = (_constant(getattr(space, name), name) for name in names)
    S = np.block([[xx, x1[:, None]], [x1[None], np.array([[float(count)]])]])
    R = np.hstack([yx, y1[:, None]])
    B = np.hstack([matrix, offset[:, None]])
    mask = np.hstack([free[names[0]], free[names[2]][:, None]])
    mask &= (np.diag(cov) > 0)[:, None]  # a row without noise cannot move
    if mask.all():
        B = np.linalg.solve(S, R.T).T
    elif mask.any():
        W = np.linalg.pinv(cov, hermitian=True)
        inside = np.flatnonzero(mask.ravel())
        K = np.kron(W, S)[np.ix_(inside, inside)]
        right = (W @ (R - np.where(mask, 0.0, B) @ S)).ravel()[inside]
        B[mask] = np.linalg.solve(K, right)
    left = (yy - B @ R.T - R @ B.T + B @ S @ B.T) / count
    new = np.where(free[names[1]], (left + left.T) / 2, cov)
    return {names[0]: B[None, :, :-1].copy(), names[1]: new[None], names[2]: B[None, :, -1].copy()}
