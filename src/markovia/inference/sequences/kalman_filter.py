"""Kalman filtering and smoothing of many sequences, and draws of their states.

Method: observations one number at a time with the exact diffuse start of Koopman and Durbin (2000), smoothing by the
backward recursions of de Jong (1989), draws by the mean correction of Durbin and Koopman (2002). Cost: steps times states
cubed, until the covariances of a time-invariant model have come to rest, then steps times states squared.
"""

# ruff: noqa: N806 (letters of the literature)

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any, Literal, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.sequences.kalman_results import Filtered, Smoothed, of_rows
from markovia.inference.sequences.state_space import StateSpace
from markovia.kernels.plain_code import either
from markovia.kernels.sequences.kalman_records import (
    DiffuseParts,
    DiffuseStart,
    FilteredMeans,
    KalmanGains,
    KalmanSteps,
    SmoothedCovariances,
)
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.threads import in_parallel, thread_count

Form: TypeAlias = Literal["covariance", "square-root", "information"]
FORMS: tuple[Form, ...] = ("covariance", "square-root", "information")
_HOME = "markovia.kernels.sequences.kalman"
_HOMES = {"diffuse": f"{_HOME}_diffuse", "root": f"{_HOME}_root"}


class KalmanFilter:
    """A model run over sequences: everything that is known about their states.

    Parameters
    ----------
    space
        The matrices.
    y
        The observations, one row a step, sequences after each other; NaN is missing.
    offsets
        Sequence i has the rows `offsets[i]` to `offsets[i + 1]`.
    form
        "covariance", or "square-root", which carries roots of covariances: slower, and never negative by rounding;
        "information" is as "covariance" here (`information_filter` has its own).
    transition_push, observation_push
        What known inputs add to states and observations, one row a step, if anything.
    at
        Says where a row is, for messages.
    single
        Whether results are those of one array, and not of a list.
    times
        How many such runs are to come, which says whether compiled code is worth its while.

    Examples
    --------
    >>> from markovia.inference.sequences.state_space import state_space
    >>> run = KalmanFilter(state_space(1, 0, 1, 1), np.array([[1.0], [2.0], [np.nan], [6.0]]), np.array([0, 4]))
    >>> run.smoothed.mean[0][:, 0].round(6).tolist()
    [3.0, 3.0, 3.0, 3.0]
    """

    def __init__(
        self,
        space: StateSpace,
        y: Array,
        offsets: Ints,
        *,
        form: Form = "covariance",
        transition_push: Array | None = None,
        observation_push: Array | None = None,
        at: Callable[[int], str] = "row {}".format,
        single: bool = False,
        times: int = 1,
    ) -> None:
        check_steps(space, y, offsets, at)
        rows, (n, p) = len(y), (space.n_states, space.n_observed)
        self.space, self.y, self.offsets, self.at, self.form = space, y, offsets, at, form
        self.single, self.times = single, times
        self.c = offsets_by_row(space.transition_offset, transition_push, offsets)
        self.d = offsets_by_row(space.observation_offset, observation_push, offsets)
        self.steps = steps = KalmanSteps(
            space.transition, space.transition_cov, space.observation, space.observation_cov, ~np.isnan(y), offsets,
            offsets[:-1].copy(),
        )  # fmt: skip
        # memory that no step comes to need is never touched
        self.gains = gains = KalmanGains(
            np.empty(rows, dtype=np.int64), np.empty((rows, n, n)), np.empty((rows, n, n)), np.empty((rows, p, n)),
            np.empty((rows, p, n)), np.empty((rows, p)), np.empty((rows, p, p)), np.empty(rows),
        )  # fmt: skip
        self.vague: DiffuseParts | None = None
        P = np.repeat(space.initial_cov[None], len(offsets) - 1, axis=0)
        wrong = [-1]
        if space.diffuse.any():
            self.vague = vague = DiffuseParts(
                np.zeros(rows, dtype=np.int64), np.empty((rows, n, n)), np.empty((rows, n, n)), np.empty((rows, p)),
                np.empty((rows, p)), np.empty((rows, p, n)),
            )  # fmt: skip
            unknown = np.eye(n)[:, space.diffuse]
            A, slack = np.repeat(unknown[None], len(P), axis=0), np.empty((len(P), n))
            start = self._kernel("diffuse_covariances", 2 * n * n * (n + p))
            told = DiffuseStart(P, A, slack)
            wrong = self._each(lambda a, b: start(steps, gains, vague, a, b, told, self._room()))
        if max(wrong) < 0 and form == "square-root":
            S, run = root(P), self._kernel("root_covariances", n * n * (3 * n + p))
            rooted = steps._replace(Q=root(space.transition_cov))
            wrong = self._each(lambda a, b: run(rooted, gains, a, b, P, S, self._room()))
        elif max(wrong) < 0:
            run = self._kernel("covariances", n * n * (n + p))
            wrong = self._each(lambda a, b: run(steps, gains, a, b, P, self._room()))
        if max(wrong) >= 0:
            row = min(r for r in wrong if r >= 0)
            raise InvalidArgument(
                f"{at(row)} has an observation that is known exactly beforehand, so its covariance is singular; "
                "give observation_cov= some noise there, or leave the observation out"
            )

    def _kernel(self, name: str, steps: float) -> Any:
        home, rows = next((h for word, h in _HOMES.items() if name.startswith(word)), _HOME), len(self.y)
        if name.startswith("diffuse"):
            rows = min(rows, (len(self.offsets) - 1) * self.space.n_states)
        return either(f"{home}:{name}", steps * rows * self.times)

    def _room(self) -> Array:
        return np.empty((3, self.space.n_states, 2 * self.space.n_states))

    def _each(self, work: Callable[[int, int], Any]) -> list[Any]:
        """Run a kernel over the sequences, in some parts of about equally many rows."""
        return in_parallel(lambda task, _: work(*task), sequence_ranges(self.offsets), lambda: None)

    def filter_means(self, y: Array, d: Array, c: Array, start: Array) -> FilteredMeans:
        """Return means before and after each step, innovations and log likelihoods, for observations missing as here."""
        (rows, p), n = y.shape, self.space.n_states
        made = np.empty((rows, n)), np.empty((rows, n)), np.empty(y.shape), np.empty(len(self.offsets) - 1)
        means, run = FilteredMeans(*made), self._kernel("filter_means", n * (n + 2 * p))
        steps, gains = self.steps, self.gains
        self._each(lambda a, b: run(steps, gains, (c, d), start, y, a, b, means, np.empty((1, p))))
        return means

    def smooth_means(self, means: FilteredMeans) -> Array:
        """Return the means of the states given their whole sequences."""
        n = self.space.n_states
        vague = self.vague
        if vague is not None:
            for end in self.offsets[1:] - 1:
                at = self.gains.slot[end]
                if vague.rank[at] and vague.after[at].any():
                    raise InvalidArgument(
                        f"the observations up to {self.at(int(end))} do not tell all states that start diffuse; give "
                        "those an initial_cov="
                    )
        steps, gains = self.steps, self.gains
        out, r = np.empty_like(means.before), np.zeros((2 * len(steps.begin), n))
        run = self._kernel("smooth_means", n * (2 * n + 2 * self.y.shape[1]))
        self._each(lambda a, b: run(steps, gains, a, b, means, r, out, np.empty((1, n))))
        if vague is not None:
            start = self._kernel("diffuse_means", n * (3 * n + 4 * self.y.shape[1]))
            self._each(lambda a, b: start(steps, gains, vague, a, b, means, r, out, np.empty((1, n))))
        return out

    @cached_property
    def _means(self) -> FilteredMeans:
        return self.filter_means(self.y, self.d, self.c, self.space.initial_mean)

    @property
    def log_prob(self) -> Array:
        """The log likelihood of each sequence."""
        return self._means.log_prob

    @cached_property
    def filtered(self) -> Filtered:
        """The states given what was observed up to each step."""
        before, after, _, log_prob = self._means
        vague = self.vague[:3] if self.vague is not None else None
        covariances = self.gains[:3]
        return Filtered(
            self.space,
            self.y,
            self.d,
            self.offsets,
            before,
            after,
            *covariances,
            vague,
            log_prob,
            self.single,
        )

    @cached_property
    def smoothed(self) -> Smoothed:
        """The states given whole sequences."""
        rows, n = len(self.y), self.space.n_states
        means = self.smooth_means(self._means)
        gains, vague = self.gains, self.vague
        place, cov, entering = np.empty(rows, dtype=np.int64), np.empty((rows, n, n)), np.empty((rows, n, n))
        vague_entering = np.empty((0, n, n) if vague is None else (rows, n, n))
        found = SmoothedCovariances(place, cov, entering, vague_entering)
        each = 1 if vague is None else 3
        N = np.zeros((each * len(self.steps.begin), n, n))
        turned = self.steps._replace(T=np.ascontiguousarray(self.space.transition.swapaxes(1, 2)))
        run = self._kernel("smooth_covariances", n * n * (4 * n + self.y.shape[1]))
        self._each(lambda a, b: run(turned, gains, a, b, N, found, self._room()))
        if vague is not None:
            start = self._kernel("diffuse_smooth_covariances", n * n * (12 * n + 6 * self.y.shape[1]))
            self._each(lambda a, b: start(turned, gains, vague, a, b, N, found, self._room()))

        def lagged() -> Array:
            """Return the covariances of next states with these: T V - Q N T P, P after the step."""
            used = np.flatnonzero(np.bincount(place))
            s = gains.slot[used]
            t = used - self.offsets[np.searchsorted(self.offsets, used, side="right") - 1]
            T, Q = (m if len(m) == 1 else m[t] for m in (self.space.transition, self.space.transition_cov))
            part = entering[used] @ T @ gains.after[s]
            if vague is not None:
                some = np.flatnonzero(vague.rank[s] > 0)
                moved = (T if len(T) == 1 else T[some]) @ vague.after[s[some]]
                part[some] += vague_entering[used[some]] @ moved
            found = np.empty((rows, n, n))
            found[used] = T @ cov[used] - Q @ part
            return found

        return Smoothed(self.offsets, means, place, cov, lagged, self.log_prob, self.single)

    def draw(self, generator: np.random.Generator, draws: int) -> list[Array]:
        """Return draws of the states given whole sequences: for each sequence an array (draws, steps, states)."""
        found = np.empty((draws, len(self.y), self.space.n_states))
        none = np.zeros((1, self.space.n_states))
        for one in found:
            x, y = simulate(self.space, self.offsets, generator, none, np.zeros((1, self.y.shape[1])))
            means = self.filter_means(self.y - y, self.d, self.c, self.space.initial_mean)
            one[:] = x + self.smooth_means(means)
        return [found[:, a:b] for a, b in zip(self.offsets[:-1], self.offsets[1:], strict=True)]


def simulate(
    space: StateSpace,
    offsets: Ints,
    generator: np.random.Generator,
    c: Array,
    d: Array,
    start: Array | None = None,
) -> tuple[Array, Array]:
    """Draw states and observations with the given offsets; diffuse parts start at `start`, zero by default."""
    rows, n, p = int(offsets[-1]), space.n_states, space.n_observed
    t = np.arange(rows) - np.repeat(offsets[:-1], np.diff(offsets))
    at = partial(of_rows, t=t)
    push = at(root(space.transition_cov), generator.standard_normal((rows, n))) + c
    first = generator.standard_normal((len(offsets) - 1, n)) @ root(space.initial_cov).T
    first += np.zeros(n) if start is None else start
    x = np.empty((rows, n))
    either(f"{_HOME}:propagate", rows * n * n)(space.transition, push, first, offsets, 0, len(offsets) - 1, x)
    noise = at(root(space.observation_cov), generator.standard_normal((rows, p)))
    return x, at(space.observation, x) + noise + d


def check_steps(space: StateSpace, y: Array, offsets: Ints, at: Callable[[int], str]) -> None:
    """Check that a model has matrices for all that is observed, and for all steps."""
    if y.shape[1] != space.n_observed:
        raise InvalidArgument(
            f"the sequences have {y.shape[1]} numbers a step, but the model observes {space.n_observed}"
        )
    if space.steps is not None and np.diff(offsets).max() > space.steps:
        row = int(offsets[np.argmax(np.diff(offsets))]) + space.steps
        raise InvalidArgument(f"the model has matrices for {space.steps} steps, and none for {at(row)}")


def sequence_ranges(offsets: Ints) -> list[tuple[int, int]]:
    """Return some ranges of sequences with about equally many rows, for threads."""
    rows, parts = int(offsets[-1]), 1 if offsets[-1] < 2_000 else 4 * thread_count()
    cuts = np.unique(np.searchsorted(offsets, np.linspace(0, rows, min(parts, len(offsets) - 1) + 1)))
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def root(cov: Array) -> Array:
    """Return matrices that times their transposes are covariances, which may be singular."""
    values, vectors = np.linalg.eigh(cov)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0))[..., None, :])


def offsets_by_row(offset: Array, push: Array | None, offsets: Ints) -> Array:
    """Return offsets as one for all rows or one a row."""
    if len(offset) > 1:
        t = np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))
        offset = offset[t]
    found = offset if push is None else offset + push
    return np.ascontiguousarray(found)
