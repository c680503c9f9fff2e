"""Particle filters against exact answers: Kalman filters, hidden Markov models, closed forms."""

import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.base import clone

import markovia as mk
import markovia.distributions as dist
from markovia.errors import ConvergenceWarning
from markovia.models.temporal.particle_state import ParticleState

LINEAR = {
    "initial": dist.Normal(0, 1),
    "transition": lambda x: dist.Normal(0.9 * x, 0.4),
    "observation": lambda x: dist.Normal(x, 0.5),
}
KALMAN = mk.LinearStateSpace(0.9, 0.16, 1, 0.25, 0, 1)
Y = KALMAN.sample(30, 1, seed=3)[0][0][:, 0]
P = np.array([[0.8, 0.2, 0.0], [0.1, 0.7, 0.2], [0.3, 0.3, 0.4]])
MEANS = np.array([-1.0, 0.5, 2.0])
CHAIN = {
    "initial": dist.Categorical(np.array([0.5, 0.3, 0.2])),
    "transition": lambda x: dist.Categorical(jnp.asarray(P)[x]),
    "observation": lambda x: dist.Normal(jnp.asarray(MEANS)[x], 0.6),
}
HMM = mk.HMM(
    3, emission="gaussian", start=[0.5, 0.3, 0.2], transition=P,
    emission_params={"means": MEANS[:, None], "covariances": np.full((3, 1, 1), 0.36)},
)  # fmt: skip
SYMBOLS = np.array([-0.9, 0.2, 1.7, 2.4, 0.1, -1.2, -0.4])


def without_bias(logs, exact):
    """Whether the mean of estimated likelihoods is the exact one, within 4 standard errors."""
    ratios = np.exp(logs - exact)
    error = ratios.std() / np.sqrt(len(ratios))
    assert error < 0.1
    return abs(ratios.mean() - 1) < 4 * error


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["systematic", "stratified", "residual", "multinomial"])
def test_the_likelihood_is_unbiased_with_every_scheme(scheme):
    pf = mk.ParticleFilter(**LINEAR, n_particles=60, resampling=scheme, random_state=0)
    assert without_bias(pf.log_prob([Y[:12]] * 300), KALMAN.log_prob([Y[:12]])[0])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["guided", "auxiliary"])
def test_the_likelihood_is_unbiased_with_every_method(method):
    pf = mk.ParticleFilter(**LINEAR, n_particles=60, method=method, random_state=1)
    assert without_bias(pf.log_prob([Y[:12]] * 300), KALMAN.log_prob([Y[:12]])[0])


@pytest.mark.slow
@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_the_likelihood_is_unbiased_where_particles_are_always_or_never_resampled(threshold):
    found = mk.ParticleFilter(**LINEAR, n_particles=200, ess_threshold=threshold, random_state=2).filter(
        [Y[:6]] * 300
    )
    assert without_bias(found.log_evidence, KALMAN.log_prob([Y[:6]])[0])
    assert all((one[1:] == bool(threshold)).all() for one in found.resampled)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["bootstrap", "guided", "auxiliary"])
def test_discrete_states_agree_with_a_hidden_markov_model(method):
    found = mk.ParticleFilter(**CHAIN, n_particles=100, method=method, random_state=0).filter([SYMBOLS] * 300)
    exact = HMM.log_prob([SYMBOLS[:, None]])[0]
    assert without_bias(found.log_evidence, exact)
    # the last beliefs times the likelihood are unbiased as well, those of a single run are not
    shares = np.exp(found.log_evidence - exact)
    last = np.array([one[-1] for one in found.probs])
    np.testing.assert_allclose(
        shares @ last / shares.sum(), HMM.filter([SYMBOLS[:, None]])[0][-1], atol=0.015
    )


def plane(**more):
    """Return a linear model in two dimensions, its Kalman filter, and two series."""
    a, q, r = np.array([[0.9, 0.2], [-0.1, 0.8]]), np.array([[0.3, 0.1], [0.1, 0.2]]), 0.3
    exact = mk.LinearStateSpace(a, q, np.eye(2), r * np.eye(2), np.zeros(2), np.eye(2))
    pf = mk.ParticleFilter(
        dist.MultivariateNormal(jnp.zeros(2), jnp.eye(2)), lambda x: dist.MultivariateNormal(a @ x, q),
        lambda x: dist.Normal(x, np.sqrt(r)), random_state=0, **more,
    )  # fmt: skip
    return pf, exact, exact.sample(12, 2, seed=0)[0]


@pytest.mark.slow
def test_moments_and_quantiles_agree_with_the_kalman_filter_in_two_dimensions():
    pf, exact, ys = plane(n_particles=10_000)
    found, want = pf.filter(ys, quantiles=(0.1, 0.5)), exact.filter(ys)
    for i in range(2):
        np.testing.assert_allclose(found.mean[i], want.mean[i], atol=0.03)
        np.testing.assert_allclose(found.cov[i], want.cov[i], atol=0.02)
        sd = np.sqrt(np.einsum("tii->ti", want.cov[i]))
        np.testing.assert_allclose(found.sd[i], sd, atol=0.02)
        np.testing.assert_allclose(found.quantiles[i][:, 0], want.mean[i] - 1.2816 * sd, atol=0.04)
    np.testing.assert_allclose(found.log_evidence, exact.log_prob(ys), atol=0.15)


@pytest.mark.slow
def test_a_guided_filter_in_two_dimensions_agrees_with_the_kalman_filter():
    pf, exact, ys = plane(n_particles=2000, method="guided")
    np.testing.assert_allclose(pf.log_prob(ys), exact.log_prob(ys), atol=0.25)


@pytest.mark.slow
def test_the_automatic_proposal_is_the_optimal_one_of_a_linear_model_and_varies_less():
    def optimal(x, y):
        precision = 1 / 0.16 + 1 / 0.25
        return dist.Normal((0.9 * x / 0.16 + y / 0.25) / precision, precision**-0.5)

    made = mk.ParticleFilter(**LINEAR, n_particles=100, method="guided", random_state=0)
    given = clone(made).set_params(
        proposal=optimal, initial_proposal=lambda y: dist.Normal(y / 1.25, (1 / 5) ** 0.5)
    )
    a, b = made.log_prob([Y] * 200), given.log_prob([Y] * 200)
    np.testing.assert_allclose(a, b, atol=1e-8)
    assert a.std() < 0.75 * clone(made).set_params(method="bootstrap").log_prob([Y] * 200).std()


def backward_messages(y):
    """Return c, m, v with p(y[t+1:] | x[t]) = exp(c + log N(m[t]; x, v[t])), for the model of LINEAR."""
    a, q, r = 0.9, 0.16, 0.25
    c, m, v = np.zeros(len(y)), np.zeros(len(y)), np.full(len(y), np.inf)
    for t in range(len(y) - 2, -1, -1):
        precision = 1 / r + (0 if np.isinf(v[t + 1]) else 1 / v[t + 1])
        mean = (y[t + 1] / r + (0 if np.isinf(v[t + 1]) else m[t + 1] / v[t + 1])) / precision
        c[t] = c[t + 1] + (
            0 if np.isinf(v[t + 1])
            else -0.5 * np.log(2 * np.pi * (r + v[t + 1])) - 0.5 * (y[t + 1] - m[t + 1]) ** 2 / (r + v[t + 1])
        )  # fmt: skip
        m[t], v[t] = mean / a, (1 / precision + q) / a**2
        c[t] -= np.log(a)
    return c, m, v


@pytest.mark.slow
def test_the_exact_backward_function_as_twist_leaves_no_variance():
    c, m, v = (jnp.asarray(x) for x in backward_messages(Y))

    def twist(x, t):
        spread = jnp.where(jnp.isinf(v[t]), 1.0, v[t])
        found = c[t] - 0.5 * jnp.log(2 * jnp.pi * spread) - 0.5 * (x - m[t]) ** 2 / spread
        return jnp.where(jnp.isinf(v[t]), 0.0, found)

    pf = mk.ParticleFilter(**LINEAR, method="twisted", twist=twist, n_particles=3, random_state=0)
    np.testing.assert_allclose(pf.log_prob([Y] * 5), KALMAN.log_prob([Y])[0], atol=1e-6)


@pytest.mark.slow
def test_an_inexact_twist_is_unbiased_too():
    pf = mk.ParticleFilter(
        **LINEAR, method="twisted", twist=lambda x, t: -0.5 * (x - 0.3) ** 2, n_particles=200, random_state=0
    )
    assert without_bias(pf.log_prob([Y] * 300), KALMAN.log_prob([Y])[0])


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n"), [("backward", 1000), ("fixed-lag", 10_000), ("two-filter", 1000)])
def test_smoothing_agrees_with_the_kalman_smoother(method, n):
    y = np.where(np.arange(30) == 7, np.nan, Y)
    pf = mk.ParticleFilter(**LINEAR, n_particles=n, random_state=0)
    found, want = pf.smooth(y, method=method, draws=800, lag=8), KALMAN.smooth([y])
    np.testing.assert_allclose(found.mean[0], want.mean[0][:, 0], atol=0.06)
    np.testing.assert_allclose(found.sd[0], np.sqrt(want.cov[0][:, 0, 0]), atol=0.04)


@pytest.mark.slow
def test_backward_paths_have_the_covariance_of_neighbouring_states():
    # over filters with seeds of their own, which tell the standard error; their bias is one over the particles
    runs = []
    for seed in range(10):
        paths = mk.ParticleFilter(**LINEAR, n_particles=400, random_state=seed).smooth(Y, draws=1000).paths[0]
        runs.append([np.cov(paths[:, t], paths[:, t + 1])[0, 1] for t in range(29)])
    error = np.std(runs, axis=0, ddof=1) / np.sqrt(10)
    off = np.mean(runs, axis=0) - KALMAN.smooth([Y]).lag_cov[0][:, 0, 0]
    assert np.sqrt(np.mean(off**2)) < 2 * np.sqrt(np.mean(error**2))
    assert error.max() < 0.005


@pytest.mark.parametrize(
    ("method", "n"), [("backward", 2000), pytest.param("fixed-lag", 10_000, marks=pytest.mark.slow)]
)
def test_smoothing_discrete_states_agrees_with_a_hidden_markov_model(method, n):
    found = mk.ParticleFilter(**CHAIN, n_particles=n, random_state=0).smooth(
        SYMBOLS, method=method, draws=2000
    )
    np.testing.assert_allclose(found.probs[0], HMM.smooth([SYMBOLS[:, None]])[0], atol=0.035)


@pytest.mark.slow
def test_missing_steps_and_numbers_are_left_out():
    y = Y.copy()
    y[[0, 4, 5, 29]] = np.nan
    for method in ("bootstrap", "guided", "auxiliary"):
        pf = mk.ParticleFilter(**LINEAR, n_particles=20_000, method=method, random_state=0)
        np.testing.assert_allclose(pf.log_prob(y), KALMAN.log_prob([y]), atol=0.1)
    exact = mk.LinearStateSpace(0.9, 0.16, [[1], [2]], np.diag([0.25, 0.5]), 0, 1)
    both = exact.sample(10, 1, seed=0)[0][0]
    both[3, 0] = both[6, 1] = both[7] = np.nan
    pf = mk.ParticleFilter(
        LINEAR["initial"], LINEAR["transition"],
        lambda x: {"a": dist.Normal(x, 0.5), "b": dist.Normal(2 * x, np.sqrt(0.5))}, n_particles=20_000, random_state=0,
    )  # fmt: skip
    np.testing.assert_allclose(pf.log_prob(both), exact.log_prob([both]), atol=0.06)
    frame = {"b": both[:, 1], "a": both[:, 0]}
    np.testing.assert_allclose(pf.log_prob(frame), pf.log_prob(both), atol=1e-9)


@pytest.mark.slow
def test_forecasts_agree_with_the_kalman_filter():
    pf = mk.ParticleFilter(**LINEAR, n_particles=40_000, random_state=0)
    found, want = pf.forecast(Y, 4, level=0.8), KALMAN.forecast([Y], 4, level=0.8)
    np.testing.assert_allclose(found.mean[0], want.mean[0][:, 0], atol=0.02)
    np.testing.assert_allclose(found.upper[0], want.upper[0][:, 0], atol=0.03)
    np.testing.assert_allclose(found.state_mean[0], want.state_mean[0][:, 0], atol=0.02)
    assert found.draws[0].shape == (40_000, 4)


def test_samples_have_the_moments_of_the_process():
    ys, xs = mk.ParticleFilter(**LINEAR, random_state=0).sample(3, 20_000)
    assert np.array(xs).var(axis=0) == pytest.approx([1, 0.97, 0.9457], abs=0.03)
    assert np.array(ys).var(axis=0) == pytest.approx([1.25, 1.22, 1.1957], abs=0.04)


@pytest.mark.slow
def test_time_and_inputs_reach_the_functions_that_ask_for_them():
    u = np.random.default_rng(0).normal(size=30)
    exact = mk.LinearStateSpace(0.9, 0.16, 1, 0.25, 0, 1, transition_input=[[1.0]], observation_input=[[0.5]])
    y = exact.sample(30, 1, inputs=u, seed=0)[0][0]
    before = np.append(np.nan, u[:-1])  # the Kalman model moves on by the input of the step before

    def transition(x, t):
        return dist.Normal(0.9 * x + jnp.asarray(before)[t], 0.4)

    pf = mk.ParticleFilter(
        LINEAR["initial"],
        transition,
        lambda x, u: dist.Normal(x + 0.5 * u, 0.5),
        n_particles=10_000,
        random_state=0,
    )
    np.testing.assert_allclose(pf.log_prob(y, inputs=u), exact.log_prob([y], inputs=[u]), atol=0.15)
    with pytest.raises(mk.MarkoviaError, match="observation= takes inputs u"):
        pf.log_prob(y)


@pytest.mark.slow
def test_a_state_of_named_quantities_agrees_with_the_mixture_of_kalman_filters():
    # s stays what it was at first, so the answer is a mixture of two linear models
    stay = {
        "initial": {"s": dist.Bernoulli(0.3), "x": dist.Normal(0, 1)},
        "transition": lambda s, x: {
            "s": dist.Delta(s),
            "x": lambda s: dist.Normal(jnp.where(s == 1, 0.2, 0.9) * x, 0.4),
        },
        "observation": lambda state: dist.Normal(state["x"], 0.5),
    }
    pf = mk.ParticleFilter(**stay, n_particles=40_000, random_state=0)
    found = pf.filter(Y[:8])
    logs = [
        np.log(p) + mk.LinearStateSpace(a, 0.16, 1, 0.25, 0, 1).log_prob([Y[:8]])[0]
        for p, a in [(0.7, 0.9), (0.3, 0.2)]
    ]
    assert found.log_evidence[0] == pytest.approx(np.logaddexp(*logs), abs=0.03)
    assert found.mean[0]["s"][-1] == pytest.approx(np.exp(logs[1] - np.logaddexp(*logs)), abs=0.02)


@pytest.mark.slow
def test_one_observation_at_a_time_gives_the_numbers_of_a_whole_run(tmp_path):
    pf = mk.ParticleFilter(**LINEAR, n_particles=500, random_state=4)
    whole = pf.filter(Y)
    for y in Y[:10]:
        pf.update(y)
    pf.state.save(tmp_path / "state.npz")
    copied = pickle.loads(pickle.dumps(pf.state))
    steps = [pf.update(y) for y in Y[10:]]
    np.testing.assert_allclose([s.mean for s in steps], whole.mean[0][10:], atol=1e-10)
    assert steps[-1].log_evidence == pytest.approx(whole.log_evidence[0], abs=1e-10)
    assert steps[-1].t == 29
    for state in (ParticleState.load(tmp_path / "state.npz"), copied):
        other = clone(pf)
        other.state = state
        again = [other.update(y) for y in Y[10:]]
        assert [s.mean for s in again] == [s.mean for s in steps]
    pf.state = None
    assert pf.update(Y[0]).mean == pytest.approx(whole.mean[0][0], abs=1e-12)


@pytest.mark.slow
def test_all_particles_are_kept_with_their_ancestors():
    found = mk.ParticleFilter(**LINEAR, n_particles=300, random_state=0).filter(Y, keep=True)
    assert found.particles[0].shape == found.weights[0].shape == found.ancestors[0].shape == (30, 300)
    np.testing.assert_allclose((found.particles[0] * found.weights[0]).sum(axis=1), found.mean[0], atol=1e-12)
    unmoved = found.ancestors[0] == np.arange(300)
    assert (unmoved.all(axis=1) == ~found.resampled[0]).all()


def test_the_same_seed_gives_the_same_numbers_and_equal_shapes_compile_once(monkeypatch):
    import jax

    pf = mk.ParticleFilter(**LINEAR, n_particles=200, random_state=9)
    first = pf.log_prob(Y)
    monkeypatch.setattr(jax, "jit", lambda f: pytest.fail("compiled again"))
    assert pf.log_prob(Y) == first
    assert pf.set_params(random_state=10).log_prob(Y[:20] + 1) != first


@pytest.mark.slow
@pytest.mark.parametrize(("method", "n"), [("metropolis", 40), ("gibbs", 20)])
def test_the_posterior_of_a_parameter_is_that_on_a_grid(method, n):
    pf = mk.ParticleFilter(
        LINEAR["initial"], lambda x, phi: dist.Normal(phi * x, 0.4), LINEAR["observation"],
        parameters={"phi": dist.Uniform(-1, 1)}, n_particles=n, random_state=0,
    )  # fmt: skip
    series = [Y[:12], Y[12:20]]
    post = pf.posterior(series, method=method, draws=700, warmup=150, chains=2)
    grid = np.linspace(-1, 1, 201)
    logs = np.array([mk.LinearStateSpace(phi, 0.16, 1, 0.25, 0, 1).log_prob(series).sum() for phi in grid])
    p = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
    mean = p @ grid
    row = post.summary().loc["phi"]
    assert row["ess_bulk"] > 100
    assert row["r_hat"] < 1.05
    assert abs(row["mean"] - mean) < 4 * row["mcse"]
    assert row["sd"] == pytest.approx(np.sqrt(p @ (grid - mean) ** 2), rel=0.25)
    assert post.draws["phi"].shape == (2, 700)
    if method == "gibbs":
        assert post.draws["state"].shape == (2, 700, 20)
        states = mk.LinearStateSpace(mean, 0.16, 1, 0.25, 0, 1).smooth(series).mean
        np.testing.assert_allclose(
            post.draws["state"].mean(axis=(0, 1)), np.concatenate(states)[:, 0], atol=0.2
        )


@pytest.mark.slow
def test_gibbs_paths_of_four_particles_have_the_moments_of_the_kalman_smoother():
    # the parameter is as good as known, so that paths alone are at work; so few particles forgive no wrong weight
    pf = mk.ParticleFilter(
        LINEAR["initial"], lambda x, phi: dist.Normal(phi * x, 0.4), LINEAR["observation"],
        parameters={"phi": dist.Uniform(0.9 - 1e-6, 0.9 + 1e-6)}, n_particles=4, random_state=1,
    )  # fmt: skip
    y = Y[:8]
    paths = pf.posterior(y, method="gibbs", draws=8_000, warmup=200, chains=2).draws["state"]
    exact = KALMAN.smooth([y])
    mean, sd = exact.mean[0][:, 0], np.sqrt(exact.cov[0][:, 0, 0])
    values = [(paths - mean) / sd, ((paths - mean) / sd) ** 2 - 1]
    values.append((paths[..., 1:] - mean[1:]) * (paths[..., :-1] - mean[:-1]) - exact.lag_cov[0][:, 0, 0])
    for one in values:  # errors by the means of batches, which draws that follow each other do not shrink
        batches = one.reshape(-1, 250, one.shape[-1]).mean(axis=1)
        error = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
        assert (np.abs(batches.mean(axis=0)) < 4.5 * error).all()
        assert (error < 0.05).all()


@pytest.mark.slow
def test_chains_that_stick_warn():
    pf = mk.ParticleFilter(
        LINEAR["initial"], lambda x, phi: dist.Normal(phi * x, 0.4), lambda x: dist.Normal(x, 0.05),
        parameters={"phi": dist.Uniform(-1, 1)}, n_particles=20, random_state=0,
    )  # fmt: skip
    with pytest.warns(ConvergenceWarning, match="chains disagree"):
        assert not pf.posterior(Y, draws=30, warmup=10, chains=3).info.converged


@pytest.mark.slow
def test_unknown_parameters_are_refused_where_a_number_is_needed():
    pf = mk.ParticleFilter(
        LINEAR["initial"], lambda x, phi: dist.Normal(phi * x, 0.4), LINEAR["observation"],
        parameters={"phi": dist.Uniform(-1, 1)},
    )  # fmt: skip
    with pytest.raises(mk.MarkoviaError, match="'phi' is unknown"):
        pf.filter(Y)
    with pytest.raises(mk.MarkoviaError, match="no parameter is unknown"):
        pf.set_params(parameters={"phi": 0.9}).posterior(Y)
    np.testing.assert_allclose(
        pf.set_params(random_state=0).log_prob(Y),
        mk.ParticleFilter(**LINEAR, random_state=0).log_prob(Y),
        atol=1e-9,
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"observation": lambda x: dist.Uniform(x - 1e-3, x + 1e-3)}, "weight zero at step 0 of sequence 0"),
        ({"observation": lambda x: dist.Normal(x, jnp.where(x > 0, -1.0, 1.0))}, "density is NaN at step 0"),
        ({"observation": lambda x: x}, "observation= gives .* not a distribution"),
        ({"transition": lambda x: dist.Normal(jnp.ones(2) * x, 1)}, "first state is a number, but"),
        ({"transition": lambda x, v: dist.Normal(x, v)}, "transition= has arguments 'x', 'v'"),
        ({"observation": lambda x: dist.Normal(jnp.ones(2) * x, 1)}, "1 numbers, but observation= is about 2"),
        ({"method": "twisted"}, "needs twist="),
        ({"method": "best"}, "method= is"),
        ({"n_particles": 1}, "n_particles= is"),
        ({"ess_threshold": 1.5}, "ess_threshold= is"),
        ({"resampling": "none"}, "resampling= is"),
        ({"observation": None}, "needs observation="),
        (
            {"initial": dist.Exponential(1), "transition": lambda x: dist.Exponential(x), "method": "guided"},
            "give proposal=",
        ),
        (
            {"transition": lambda x: dist.Uniform(x, x + 1), "method": "guided",
             "proposal": lambda x, y: dist.Normal(x - 100, 1)},
            "weight zero at step 1 of sequence 0: proposal=",
        ),
    ],
)  # fmt: skip
def test_what_cannot_work_is_said_in_one_sentence(changed, said):
    with pytest.raises(mk.MarkoviaError, match=said):
        mk.ParticleFilter(**{**LINEAR, "random_state": 0, "n_particles": 50, **changed}).filter(Y[:5])


@pytest.mark.slow
def test_a_step_without_any_likely_particle_is_named_with_its_sequence():
    pf = mk.ParticleFilter(
        LINEAR["initial"], LINEAR["transition"], lambda x: dist.Uniform(x - 3, x + 3), random_state=0
    )
    with pytest.raises(mk.MarkoviaError, match="weight zero at step 2 of sequence 'b'"):
        pf.filter({"who": list("aaabbb"), "y": [0, 0, 0, 0, 0, 90.0]}, by="who")


def test_a_joint_observation_cannot_miss_a_part():
    pf = mk.ParticleFilter(
        LINEAR["initial"],
        LINEAR["transition"],
        lambda x: dist.MultivariateNormal(jnp.ones(2) * x, jnp.eye(2)),
    )
    with pytest.raises(mk.MarkoviaError, match="step 1 of sequence 0 misses a part"):
        pf.filter(np.array([[0, 0], [np.nan, 1]]))


def mixed_network():
    """Return a process of a hidden regime and a level that it moves, seen by a number and an alarm."""
    process = mk.DynamicBayesianNetwork()
    process.add(
        "regime",
        states=["calm", "wild"],
        parents=["regime@-1"],
        p=[[0.9, 0.1], [0.3, 0.7]],
        initial=[0.8, 0.2],
    )
    process.add(
        "level",
        {
            "calm": mk.LinearGaussian(0, {"level@-1": 0.9}, 0.1),
            "wild": mk.LinearGaussian(0.5, {"level@-1": 0.9}, 2.0),
        },
        parents=["regime"],
        initial={"calm": mk.LinearGaussian(0, {}, 1.0), "wild": mk.LinearGaussian(1.0, {}, 2.0)},
    )
    process.add("reading", mk.LinearGaussian(0.1, {"level": 1.0}, 0.3))
    process.add("alarm", states=["off", "on"], parents=["regime"], p=[[0.95, 0.05], [0.4, 0.6]])
    return process


@pytest.mark.slow
def test_a_network_of_discrete_and_continuous_nodes_agrees_with_the_exact_answer():
    process = mixed_network()
    data = {"reading": [0.1, 0.3, 2.5, None, 2.0], "alarm": ["off", "off", "on", None, "off"]}
    given = {f"{name}@{t}": v for name, column in data.items() for t, v in enumerate(column) if v is not None}
    pf = mk.ParticleFilter.from_network(process, ["reading", "alarm"], n_particles=40_000, random_state=0)
    found = pf.filter({**data, "reading": [np.nan if v is None else v for v in data["reading"]]})
    exact = process.unroll(5)
    assert found.log_evidence[0] == pytest.approx(exact.log_evidence(given), abs=0.03)
    assert found.probs[0]["regime"][-1, 1] == pytest.approx(exact.query("regime@4", given)["wild"], abs=0.015)
    assert found.mean[0]["level"][-1] == pytest.approx(exact.query("level@4", given).mean(), abs=0.02)


def test_a_network_that_is_no_state_space_is_refused_by_name():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=2, parents=["y@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5])
    process.add("y", states=2, parents=["x"], p=[[0.8, 0.2], [0.1, 0.9]])
    with pytest.raises(mk.MarkoviaError, match="'x' depends on 'y@-1'"):
        mk.ParticleFilter.from_network(process, "y")
    with pytest.raises(mk.MarkoviaError, match="unknown variable 'z'"):
        mk.ParticleFilter.from_network(process, "z")
    with pytest.raises(mk.MarkoviaError, match="unknown state 'loud' for 'alarm'"):
        mk.ParticleFilter.from_network(mixed_network(), ["reading", "alarm"]).filter(
            {"reading": [0.0], "alarm": ["loud"]}
        )
