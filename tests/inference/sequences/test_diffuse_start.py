"""Diffuse starts with gaps against dense linear algebra on all steps at once, and against statsmodels."""

import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from statsmodels.tsa.statespace.sarimax import SARIMAX

import markovia as mk
from markovia.inference.sequences.kalman_filter import KalmanFilter, root
from markovia.inference.sequences.state_space import state_space


def dense(space, y):
    """The log likelihood of one sequence, and its states' means and covariances (None where they are not all told).

    Observations are X delta + B w + mean, w standard normal, delta flat on the start: what X does not reach is a normal
    density, what it does reach has the density 1 / |det| of a flat one.
    """
    at = lambda m, t: m[t if len(m) > 1 else 0]  # noqa: E731
    (steps, p), n = y.shape, space.n_states
    size = n + steps * (n + p)
    flat, loads, mean = np.eye(n)[:, space.diffuse], np.zeros((n, size)), space.initial_mean
    loads[:, :n] = root(space.initial_cov)
    states, seen, rows = [], [], []
    for t in range(steps):
        states.append((flat, loads, mean))
        z, own = at(space.observation, t), np.zeros((p, size))
        own[:, n + steps * n + t * p :][:, :p] = root(at(space.observation_cov, t))
        rows.append((z @ flat, z @ loads + own, z @ mean + at(space.observation_offset, t)))
        seen.append(~np.isnan(y[t]))
        T = at(space.transition, t)
        flat, loads, mean = T @ flat, T @ loads, T @ mean + at(space.transition_offset, t)
        loads[:, n + t * n :][:, :n] = root(at(space.transition_cov, t))
    seen = np.concatenate(seen)
    X, B, mu = (np.concatenate([row[i] for row in rows])[seen] for i in range(3))
    r = y.ravel()[seen] - mu
    left, sizes, right = np.linalg.svd(X)
    rank = int((sizes > 1e-9 * sizes.max(initial=1e-300)).sum())
    reached, rest = left[:, :rank], left[:, rank:]
    W = rest.T @ B
    cov = W @ W.T
    log_prob = -0.5 * (
        len(r) * np.log(2 * np.pi)
        + 2 * np.log(sizes[:rank]).sum()
        + np.linalg.slogdet(cov)[1]
        + (rest.T @ r) @ np.linalg.solve(cov, rest.T @ r)
    )
    if rank < flat.shape[1]:
        return log_prob, None, None
    gain = np.linalg.solve(cov, W).T
    w, spread = gain @ (rest.T @ r), np.eye(size) - gain @ W
    back = right.T[:, :rank] / sizes[:rank] @ reached.T
    means = [m + b @ w + f @ back @ (r - B @ w) for f, b, m in states]
    ways = [b - f @ back @ B for f, b, _ in states]
    return log_prob, np.array(means), np.array([way @ spread @ way.T for way in ways])


def assert_as_dense(space, sequences):
    """Likelihoods, and smoothed states where they are told, of sequences run together are those of each one alone."""
    offsets = np.concatenate([[0], np.cumsum([len(y) for y in sequences])])
    run = KalmanFilter(space, np.concatenate(sequences), offsets)
    answers = [dense(space, y) for y in sequences]
    np.testing.assert_allclose(run.log_prob, [a[0] for a in answers], rtol=1e-7, atol=1e-6)
    if all(a[1] is not None for a in answers):
        for i, (_, mean, cov) in enumerate(answers):
            np.testing.assert_allclose(run.smoothed.mean[i], mean, atol=1e-6 * max(1, np.abs(mean).max()))
            np.testing.assert_allclose(run.smoothed.cov[i], cov, atol=1e-6 * max(1, np.abs(cov).max()))


def gaps_of(kind, rng, steps, season):
    """Rows without observations: at the start, in the middle, at the end, here and there, a season, every other one."""
    start = int(rng.integers(1, steps - 2))
    long = int(rng.integers(1, season + 3))
    every = np.arange(steps)
    return {
        "none": every[:0],
        "start": every[: min(long, steps - 1)],
        "middle": every[start : start + long],
        "end": every[-long:],
        "scattered": np.flatnonzero(rng.random(steps) < 0.3),
        "season": every[start : start + season],
        "every other": every[int(rng.integers(2)) :: 2],
        "one of each season": every[start % season :: season],
    }[kind]


KINDS = ["none", "start", "middle", "end", "scattered", "season", "every other", "one of each season"]
gaps = st.lists(st.sampled_from(KINDS), min_size=1, max_size=3)


def walk_with_gaps(rng, steps, kinds, season, columns=1):
    y = np.cumsum(rng.normal(0.1, 1.3, (steps, columns)), axis=0) + 3.0
    for j in range(columns):
        for kind in kinds:
            y[gaps_of(kind, rng, steps, season), j] = np.nan
    return y


SHARPEST = [[], [0], [12], [10, 50], [*range(12)], [*range(3, 31)]]
OTHERS = [[13], [20], [50], [10], [5, 6], [59]]


@pytest.mark.parametrize(
    "gap", [*SHARPEST, *(pytest.param(g, marks=pytest.mark.slow) for g in OTHERS)], ids=str
)
def test_gaps_in_the_start_of_a_seasonal_arima_are_those_of_statsmodels_and_of_a_dense_integral(gap):
    y = np.cumsum(np.random.default_rng(7).normal(size=60))
    y[gap] = np.nan
    model = mk.ARIMA((0, 1, 1), seasonal_order=(0, 1, 1, 12), params=[-0.5, -0.5, 1])
    peer = SARIMAX(y, order=(0, 1, 1), seasonal_order=(0, 1, 1, 12), use_exact_diffuse=True)
    assert model.score(y) == pytest.approx(peer.loglike(np.array([-0.5, -0.5, 1])), abs=1e-8)
    assert model.score(y) == pytest.approx(dense(model.space, y[:, None])[0], abs=1e-8)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    order=st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 2)),
    seasonal=st.tuples(st.integers(0, 1), st.integers(0, 1), st.integers(0, 1), st.sampled_from([3, 4, 7])),
    kinds=st.tuples(gaps, gaps),
)
@example(seed=7, order=(0, 1, 1), seasonal=(0, 1, 1, 7), kinds=(["every other"], ["season", "end"]))
def test_any_arima_with_any_gaps_is_the_dense_integral(seed, order, seasonal, kinds):
    rng = np.random.default_rng(seed)
    ours = mk.ARIMA(order, seasonal_order=seasonal, constant=bool(seed % 2))
    values = {n: 0.7 if n == "variance" else float(rng.uniform(-0.45, 0.45)) for n in ours.parameter_names}
    space = ours.set_params(params=values).space
    sequences = [
        walk_with_gaps(rng, steps, kind, seasonal[3]) for steps, kind in zip((29, 25), kinds, strict=True)
    ]
    assert_as_dense(space, sequences)


@settings(max_examples=25, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    trend=st.sampled_from(["local level", "local linear trend", "smooth trend", "random walk"]),
    season=st.sampled_from([None, 3, 5, 12]),
    cycle=st.booleans(),
    kinds=st.tuples(gaps, gaps),
)
def test_any_structural_series_with_any_gaps_is_the_dense_integral(seed, trend, season, cycle, kinds):
    rng = np.random.default_rng(seed)
    ours = mk.series.StructuralSeries(trend, seasonal=season, cycle=cycle)
    values = {name: float(rng.uniform(0.2, 0.8)) for name in ours.parameter_names}
    space = ours.set_params(params=values).space
    sequences = [
        walk_with_gaps(rng, steps, kind, season or 4) for steps, kind in zip((31, 27), kinds, strict=True)
    ]
    assert_as_dense(space, sequences)


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 5), p=st.integers(1, 3), kinds=st.tuples(gaps, gaps))
def test_whole_numbered_models_of_several_series_are_the_dense_integral(seed, n, p, kinds):
    """Transitions and observations of -1, 0 and 1, where zeros come about by cancelling, some of them singular."""
    rng = np.random.default_rng(seed)
    T = rng.choice([-1.0, 0.0, 0.0, 1.0], size=(n, n))
    T /= max(1.0, np.abs(np.linalg.eigvals(T)).max())
    z = rng.choice([-1.0, 0.0, 1.0], size=(p, n))
    noise = rng.normal(size=(2, 1, max(n, p), max(n, p)))
    noise = noise @ noise.swapaxes(-1, -2) + 0.1 * np.eye(max(n, p))
    start = np.diag(np.where(rng.random(n) < 0.8, np.inf, 0.7))
    space = state_space(
        T, noise[0, 0, :n, :n], z, noise[1, 0, :p, :p], rng.normal(size=n), start,
        rng.normal(size=n), rng.normal(size=p),
    )  # fmt: skip
    sequences = [walk_with_gaps(rng, steps, kind, 4, p) for steps, kind in zip((17, 14), kinds, strict=True)]
    assert_as_dense(space, sequences)


@pytest.mark.parametrize("form", ["covariance", "square-root", "information"])
def test_every_form_has_the_likelihood_of_a_gap_in_the_start(form):
    season = np.eye(5, k=-1)
    season[0] = -1.0
    T = np.block([[np.ones((1, 1)), np.zeros((1, 5))], [np.zeros((5, 1)), season]])
    space = state_space(T, np.diag([0.4, 0.3, 0, 0, 0, 0]), [[1.0, 1, 0, 0, 0, 0]], 0.6)
    rng = np.random.default_rng(3)
    y = [walk_with_gaps(rng, 30, [], 6) for _ in range(2)]
    y[0][[2, 3]], y[1][[0, 4, 5, 6, 7, 8, 9, 10]] = np.nan, np.nan
    model = mk.LinearStateSpace(T, space.transition_cov[0], space.observation[0], 0.6, form=form)
    np.testing.assert_allclose(model.log_prob(y), [dense(space, one)[0] for one in y], atol=1e-8)


def test_a_start_is_told_after_a_gap_of_a_hundred_seasons_steps():
    rng = np.random.default_rng(5)
    y = walk_with_gaps(rng, 150, [], 12)
    y[1:121] = np.nan
    model = mk.series.StructuralSeries("local linear trend", seasonal=12, params=[0.5, 0.2, 0.01, 0.05])
    assert model.score(y) == pytest.approx(dense(model.space, y)[0], rel=1e-7)


def test_states_that_die_out_unseen_stay_without_bound():
    """A flat density of a state is flat after forty steps that halve it, and 2^40 times as high."""
    model = mk.LinearStateSpace(np.diag([0.5, 1.0]), np.diag([0.3, 0.2]), [[1.0, 1.0]], 0.4)
    y = np.array([1.3, 0.4, -0.2, 0.9])
    for gap in (12, 40):
        late = np.r_[np.full(gap, np.nan), y]
        assert model.score(late) == pytest.approx(model.score(y) + gap * np.log(2), abs=1e-8)
        assert np.isinf(np.diag(model.filter(late).predicted_cov[0][gap])).all()
    late = np.r_[np.full(12, np.nan), y]
    np.testing.assert_allclose(model.smooth(late).mean[0][12:], model.smooth(y).mean[0], atol=1e-6)


def test_the_covariance_of_an_untold_start_is_infinite_only_where_it_is():
    y = np.cumsum(np.random.default_rng(2).normal(size=30))
    y[[4, 5]] = np.nan
    run = mk.ARIMA((0, 1, 0), seasonal_order=(0, 1, 0, 7), params=[1.0]).filter(y)
    infinite = [int(np.isinf(np.diag(cov)).sum()) for cov in run.cov[0]]
    # row t keeps y[t - 1] to y[t - 8]: y[7] tells y[-1], and y[11] and y[12] tell y[4] and y[5]
    assert infinite == [8, 7, 6, 5, 4, 4, 4, 2, 2, 2, 2, 1, 0] + 17 * [0]
    expected = [row for row in range(30) if np.isinf(run.innovation_cov[0][row, 0, 0])]
    assert expected == [*range(8), 11, 12]


def test_fits_with_a_gap_in_the_start_end_where_those_of_statsmodels_do():
    rng = np.random.default_rng(7)
    y = np.cumsum(rng.normal(size=72)) + np.tile(rng.normal(0, 3, 12), 6)
    y[[5, 6, 30]] = np.nan
    ours = mk.ARIMA((0, 1, 1), seasonal_order=(0, 1, 1, 12)).fit(y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        peer = SARIMAX(y, order=(0, 1, 1), seasonal_order=(0, 1, 1, 12), use_exact_diffuse=True)
        best = peer.fit(disp=False, maxiter=500)
    assert ours.converged_
    assert ours.log_likelihood_ > best.llf - 1e-4
    assert ours.log_likelihood_ == pytest.approx(
        peer.loglike(np.array(list(ours.params_.values()))), abs=1e-6
    )
