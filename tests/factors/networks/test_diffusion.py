"""Laws of diffusions whose network is known exactly: elements that are normal, or mixtures of normal distributions."""

from math import log, pi

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.networks.diffusion_laws import diffusion_law, noise_levels, path_levels
from markovia.runtime.double_precision import x64

PATHS = ("vp", "ve", "flow")


class ExactMixture(eqx.Module):
    """What is expected of an element, or its noise, where elements are a mixture of normal distributions."""

    means: np.ndarray
    width: float
    schedule: object = eqx.field(static=True)
    steps: int = eqx.field(static=True)
    prediction: str = eqx.field(static=True)
    shape: tuple = eqx.field(static=True)

    def __call__(self, x, t, *context):
        if self.schedule in PATHS:
            a, s = path_levels(self.schedule, jnp.asarray(t, float), jnp)
            x = x * jnp.sqrt(a**2 + s**2) if self.schedule == "ve" else x
        else:
            at = noise_levels(self.schedule, self.steps)
            i = jnp.round(t * self.steps).astype(int)
            a, s = jnp.asarray(at.signal)[i], jnp.asarray(at.noise)[i]
        wide = a**2 * self.width + s**2
        off = x - a * self.means
        logs = -0.5 * jnp.sum(off**2, axis=-1) / wide
        if context:  # a vector with a one for the component; zeros for none
            logs = jnp.where(jnp.any(context[0] > 0) & (context[0] == 0), -jnp.inf, logs)
        share = jax.nn.softmax(logs)
        element = share @ (self.means + a * self.width * off / wide)
        noise = share @ (s * off / wide)
        if self.prediction == "mean":
            before, keep = (
                jnp.asarray(v)[i - 1] for v in (at.noise**2, np.concatenate([at.keep[1:], [0.0]]))
            )
            return keep * before / s**2 * x + jnp.asarray(at.pull)[i] * element
        speed = noise - element if self.schedule == "flow" else a * noise - s * element
        return {"noise": noise, "x0": element, "velocity": speed}[self.prediction]


def exact_law(means=((0.0,),), width=4.0, schedule="cosine", steps=12, prediction="noise", **settings):
    means = np.asarray(means, float)
    net = ExactMixture(means, width, schedule, steps, prediction, means.shape[1:])
    return diffusion_law(net, schedule=schedule, steps=steps, prediction=prediction, **settings)


def draws(law, n, *context, seed=0):
    with x64():
        return np.asarray(
            jax.jit(lambda key: law.distribution(*context).sample(key, (n,)))(jax.random.PRNGKey(seed))
        )


def mean_bound(law, x, n=20_000, *context):
    with x64():
        one = jax.jit(jax.vmap(lambda key: law.bound(key, jnp.asarray(x), *context)))
        found = np.asarray(one(jax.random.split(jax.random.PRNGKey(1), n)))
    return found.mean(), found.std() / np.sqrt(n)


def chain_moments(law):
    """Return the variance of what a chain with linear steps of one number draws, step by step."""
    with x64():
        back = jax.jit(lambda i: law.reverse(jnp.ones(1), i))
        variance = 1.0
        for i in range(law.steps, 0, -1):
            mean, own, _ = back(i)
            variance = float(mean[0]) ** 2 * variance + float(own[0])
    return variance


def exact_bound(law, x, variance=4.0):
    """Return the bound of one number with the exact network in closed form: expected divergences of normal steps."""
    at = noise_levels(law.schedule, law.steps)
    fixed = at.large.copy() if law.variance == "fixed large" else at.small.copy()
    fixed[1] = at.large[1]
    a, s = at.signal, at.noise
    total = 0.5 * (a[-1] ** 2 * x**2 + s[-1] ** 2 - 1 - log(s[-1] ** 2))
    for i in range(1, law.steps + 1):
        gain = a[i] * variance / (a[i] ** 2 * variance + s[i] ** 2)
        bias, spread = x - gain * a[i] * x, gain * s[i]
        square = at.pull[i] ** 2 * (bias**2 + spread**2) / fixed[i]
        if i == 1:
            total += 0.5 * (square + log(2 * pi * fixed[1]))
        else:
            total += 0.5 * (square + at.small[i] / fixed[i] - 1 + log(fixed[i] / at.small[i]))
    return -total


def test_levels_of_two_steps():
    at = noise_levels((0.1, 0.2), 2)
    np.testing.assert_allclose(at.signal**2, [1.0, 0.9, 0.72])
    np.testing.assert_allclose(at.keep[2] * at.noise[1] ** 2 / at.noise[2] ** 2, 0.319438, atol=1e-6)
    np.testing.assert_allclose([at.pull[2], at.small[2]], [0.677631, 0.0714286], atol=1e-6)
    # the weight of the error of the noise in the bound: that of the element times (s / a)^2
    weight = at.pull[2] ** 2 / (2 * at.small[2]) * at.noise[2] ** 2 / at.signal[2] ** 2
    np.testing.assert_allclose(weight, 1.25, atol=1e-6)
    last = 0.5 * (0.72 + 0.28 - 1 - log(0.28))
    assert abs(last - 0.636483) < 1e-6


def test_a_thousand_steps_and_the_exact_network_draw_the_right_variance():
    assert abs(noise_levels("linear", 1000).signal[-1] ** 2 - 4.0358e-5) < 1e-8
    for variance, wanted in (("fixed large", 3.9906), ("fixed small", 3.9748)):
        law = exact_law(schedule="linear", steps=1000, variance=variance)
        assert abs(chain_moments(law) - wanted) < 2e-4  # noise in the last step adds 1e-4


@pytest.mark.parametrize("schedule", ["linear", "cosine", "sigmoid", (0.1, 0.2, 0.4)])
def test_levels_are_those_of_a_chain(schedule):
    at = noise_levels(schedule, 3)
    np.testing.assert_allclose(at.signal**2 + at.noise**2, 1.0)
    assert (np.diff(at.signal) < 0).all()
    # a step forward after a step forward is what the levels say
    np.testing.assert_allclose(at.keep[1:] ** 2 * at.noise[:-1] ** 2 + at.large[1:], at.noise[1:] ** 2)
    assert abs(at.share.sum() - 1) < 1e-12
    assert at.share[0] == 0


@pytest.mark.slow
@pytest.mark.parametrize("variance", ["fixed small", "fixed large"])
def test_the_bound_is_the_sum_of_divergences(variance):
    law = exact_law(variance=variance)
    wanted = exact_bound(law, 1.3)
    found, error = mean_bound(law, [1.3], 1_000_000)
    assert abs(found - wanted) < 4 * error
    assert error < 0.01  # an error of a fiftieth in its terms shows
    assert wanted < norm(0, chain_moments(law) ** 0.5).logpdf(1.3)


def test_the_bound_is_below_the_density_of_the_chain_and_near_it_with_many_steps():
    gaps = []
    for steps in (4, 16, 64):
        law = exact_law(steps=steps, variance="fixed large")
        gaps.append(norm(0, chain_moments(law) ** 0.5).logpdf(0.7) - exact_bound(law, 0.7))
    assert gaps[0] > gaps[1] > gaps[2] > 0
    assert gaps[2] < 0.25 * gaps[0]


def test_what_the_network_says_is_one_thing_in_four_forms():
    x = jnp.array([0.3, -1.2])
    steps = {}
    with x64():
        for prediction in ("noise", "x0", "mean", "velocity"):
            law = exact_law([[1.0, 0.0], [-1.0, 2.0]], 0.3, prediction=prediction)
            steps[prediction] = np.concatenate([law.reverse(x, 5)[0], law.score(x, 5)])
            np.testing.assert_allclose(steps[prediction], steps["noise"], rtol=1e-9)


def test_the_score_is_the_gradient_of_the_noisy_density_in_the_elements_units():
    law = exact_law([[1.0], [-1.0]], 0.3, location=(2.0,), scale=(10.0,))
    at = noise_levels("cosine", 12)
    a, s = at.signal[5], at.noise[5]

    def log_density(z):
        sd = 10 * (a**2 * 0.3 + s**2) ** 0.5
        return np.log(0.5 * norm(2 + 10 * a, sd).pdf(z) + 0.5 * norm(2 - 10 * a, sd).pdf(z))

    with x64():
        found = float(law.score(jnp.array([5.0]), 5)[0])
    assert abs(found - (log_density(5 + 1e-4) - log_density(5 - 1e-4)) / 2e-4) < 1e-6


@pytest.mark.slow
def test_a_unit_is_a_change_of_variables():
    plain, scaled = exact_law(), exact_law(location=(7.0,), scale=(1e-9,))
    with x64():
        key = jax.random.PRNGKey(0)
        a, b = plain.bound(key, jnp.array([1.3])), scaled.bound(key, jnp.array([7.0 + 1.3e-9]))
        np.testing.assert_allclose(float(b), float(a) - log(1e-9), rtol=1e-5)
    np.testing.assert_allclose(draws(scaled, 5), 7 + 1e-9 * draws(plain, 5), rtol=1e-12)


@pytest.mark.slow
def test_fewer_steps_without_noise_are_linear_for_a_normal_element():
    law = exact_law(steps=60, sampler="ddim", sampling_steps=6)
    at = noise_levels("cosine", 60)
    factor = 1.0
    for i, j in zip(range(60, 0, -10), range(50, -10, -10), strict=True):
        wide = at.signal[i] ** 2 * 4 + at.noise[i] ** 2
        factor *= (at.signal[j] * at.signal[i] * 4 + at.noise[j] * at.noise[i]) / wide
    found = draws(law, 2000)
    assert abs(found.std() / abs(factor) - 1) < 0.06
    many = draws(exact_law(steps=400, sampler="ddim"), 4000)
    assert abs(many.std() - 2.0) < 0.08
    # with all steps and all their noise it is the chain
    noisy = exact_law(sampler="ddim", eta=1.0)
    assert abs(draws(noisy, 4000).std() / chain_moments(exact_law(variance="fixed small")) ** 0.5 - 1) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("path", PATHS)
def test_the_flow_of_a_path_has_the_density_of_the_elements(path):
    prediction = "velocity" if path == "flow" else "noise"
    means = [[1.0, 0.0], [-1.0, 0.5]]
    law = exact_law(
        means, 0.25, schedule=path, steps=40, prediction=prediction, sampler="ode", scale=(3.0, 1.0)
    )
    x = np.array([1.5, 0.7])
    u, means = x / [3.0, 1.0], np.array(means)
    # what the path starts with has next to no noise: that of "vp" and "ve" widens it a little
    exact = np.log(np.mean([norm(m, 0.5).pdf(u).prod() for m in means])) - log(3.0)
    with x64():
        found = float(jax.jit(lambda x: law.log_prob(x))(jnp.asarray(x)))
    assert abs(found - exact) < (1e-5 if path == "flow" else 5e-3)
    drawn = draws(law, 2000)
    np.testing.assert_allclose(drawn.std(0), np.array([3.0, 1.0]) * np.sqrt(means.var(0) + 0.25), rtol=0.05)


@pytest.mark.slow
def test_an_estimated_divergence_is_right_on_average():
    settings = {"schedule": "flow", "steps": 20, "prediction": "velocity"}
    means = [[1.0, 0.0], [-1.0, 0.5]]
    exact, law = exact_law(means, 0.25, **settings), exact_law(means, 0.25, trace="hutchinson", **settings)
    x = jnp.array([0.4, 0.1])
    found, error = mean_bound(law, x, 1000)
    with x64():
        assert abs(found - float(exact.log_prob(x))) < 4 * error + 1e-6
    assert error > 0
    assert not hasattr(law, "log_prob")


@pytest.mark.slow
def test_guidance_by_an_exact_classifier_draws_that_component():
    means, variance = np.array([[2.0], [-1.0]]), 0.2
    at = noise_levels("cosine", 40)

    def chosen(x, t):  # log p(first component | x with noise)
        i = jnp.round(t * 40).astype(int)
        a, s = jnp.asarray(at.signal)[i], jnp.asarray(at.noise)[i]
        logs = -0.5 * jnp.sum((x - a * means) ** 2, axis=-1) / (a**2 * variance + s**2)
        return logs[0] - jax.nn.logsumexp(logs)

    plain = draws(exact_law(means, variance, steps=40), 2000)
    assert 0.45 < (plain > 0.5).mean() < 0.55
    found = draws(exact_law(means, variance, steps=40, classifier=chosen), 2000)
    alone = draws(exact_law(means[:1], variance, steps=40), 2000)
    assert abs(found.mean() - alone.mean()) < 0.05
    assert abs(found.std() / alone.std() - 1) < 0.06


@pytest.mark.slow
def test_guidance_without_a_classifier_exaggerates_the_context():
    means = np.array([[1.0], [-1.0]])
    code = jnp.asarray(0)
    plain = draws(exact_law(means, 0.5, steps=40, classes=2), 2000, code)
    assert abs(plain.mean() - 1.0) < 0.05
    law = exact_law(means, 0.5, steps=40, classes=2, guidance=1.5)
    with x64():
        x, one, none = jnp.array([0.2]), jnp.array([1.0, 0.0]), jnp.zeros(2)
        own = exact_law(means, 0.5, steps=40)
        time, a, s, before = own._level(9)
        told, free = (own.denoised(x, time, a, s, (c,), before)[1] for c in (one, none))
        guided = law.denoised(x, time, a, s, (one,), before)[1]
        np.testing.assert_allclose(guided, told + 1.5 * (told - free))
    assert draws(law, 2000, code).mean() > plain.mean() + 0.1


@pytest.mark.slow
def test_a_learned_variance_is_between_the_two_and_in_the_bound():
    recipe = mk.networks.denoiser(2, hidden=8, layers=1, learned_variance=True)
    net = recipe.build(0)
    x = jnp.array([0.5, -0.3])

    class Says(eqx.Module):
        share: float
        shape: tuple = eqx.field(static=True, default=(2,))

        def __call__(self, x, t):
            return net(x, t)[0], jnp.full(2, self.share)

    with x64():
        for share, variance in ((0.0, "fixed small"), (1.0, "fixed large")):
            learned = diffusion_law(Says(share), steps=6, variance="learned")
            fixed = diffusion_law(Says(share), steps=6, variance=variance)
            for i in (2, 5):
                np.testing.assert_allclose(learned.reverse(x, i)[1], fixed.reverse(x, i)[1])
        a, b = mean_bound(learned, x), mean_bound(fixed, x)
    assert abs(a[0] - b[0]) < 4 * np.hypot(a[1], b[1])


@pytest.mark.slow
def test_bad_settings_say_what_is_right():
    net = mk.networks.denoiser(2, hidden=4, layers=1).build(0)
    with pytest.raises(InvalidArgument, match="schedule= is one of"):
        diffusion_law(net, schedule="square")
    with pytest.raises(InvalidArgument, match="3 numbers between 0 and 1"):
        diffusion_law(net, steps=3, schedule=[0.1, 0.2])
    with pytest.raises(InvalidArgument, match="prediction= is one of"):
        diffusion_law(net, prediction="score")
    with pytest.raises(InvalidArgument, match="takes two such"):
        diffusion_law(net, variance="learned").reverse(jnp.zeros(2), 2)
    with pytest.raises(UnsupportedModel, match="a chain has 'ddim'"):
        diffusion_law(net, sampler="ode")
    with pytest.raises(UnsupportedModel, match="prediction='velocity'"):
        diffusion_law(net, schedule="flow", prediction="noise")
    with pytest.raises(InvalidArgument, match="say shape="):
        diffusion_law(eqx.nn.Linear(2, 2, key=jax.random.PRNGKey(0)))
    with pytest.raises(
        InvalidArgument, match=r"Denoiser returns an array of shape \(2,\) for elements of shape \(3,\)"
    ):
        diffusion_law(net, shape=3).reverse(jnp.zeros(2), 2)
    with pytest.raises(InvalidArgument, match="takes a recipe"):
        mk.networks.diffusion(net)
