"""Adversarial objectives where the best critic is known: discrete worlds, f-divergences, and models with closed forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, InvalidEvidence, UnsupportedModel
from markovia.factors.networks.adversarial_modules import grown, largest_singular_value
from markovia.learning.neural.adversarial import CRITIC, LOSSES, RowView, discrepancy, slopes

RNG = np.random.default_rng(0)
P, Q = RNG.dirichlet(np.ones(5)), RNG.dirichlet(np.ones(5))
ROWS = RNG.normal([2.0, -1.0], [1.0, 0.5], (200, 2))


def value(loss, scores, p=P, q=Q):
    """Return minus the critic's loss on a discrete space."""
    return -float(p @ LOSSES[loss].data(jnp.asarray(scores)) + q @ LOSSES[loss].draws(jnp.asarray(scores)))


def best_value(loss, p=P, q=Q):
    found = minimize(lambda s: -value(loss, s, p, q), np.full(5, 0.5), method="BFGS", options={"gtol": 1e-7})
    return -found.fun, found.x


def kl(p, q):
    return float(np.sum(p * np.log(p / q)))


# -- the value of the game ---------------------------------------------------------------------------------------------


def test_the_best_critic_knows_the_ratio_and_its_value_is_the_jensen_shannon_divergence():
    with jax.enable_x64(True):
        best, scores = best_value("vanilla")
        np.testing.assert_allclose(1 / (1 + np.exp(-scores)), P / (P + Q), atol=1e-4)
        js = mk.learning.jensen_shannon(P, Q)
        assert best == pytest.approx(2 * js - np.log(4), abs=1e-8)
        exact = np.log(P) - np.log(Q)
        assert value("vanilla", exact) == pytest.approx(best, abs=1e-9)
        # where the model is right the critic knows nothing
        even, scores = best_value("vanilla", P, P)
        assert even == pytest.approx(-np.log(4), abs=1e-9)
        np.testing.assert_allclose(scores, 0, atol=1e-4)


@pytest.mark.parametrize(
    ("loss", "divergence"),
    [("kl", kl(P, Q)), ("reverse-kl", kl(Q, P)), ("pearson", float(np.sum((P - Q) ** 2 / Q))),
     ("least-squares", None), ("hinge", None)],
)  # fmt: skip
def test_duals_of_divergences_reach_them_at_the_best_critic_and_not_before(loss, divergence):
    with jax.enable_x64(True):
        if loss == "hinge":  # the sign of p - q: 2 min(p, q)
            scores = np.sign(P - Q)
            assert value(loss, scores) == pytest.approx(-2 * np.minimum(P, Q).sum())
            assert all(value(loss, RNG.normal(size=5)) <= value(loss, scores) for _ in range(50))
            return
        best, scores = best_value(loss)
        if loss == "least-squares":
            np.testing.assert_allclose(scores, P / (P + Q), atol=1e-4)
            divergence = -0.5 * float(np.sum(P * Q / (P + Q)))
        assert best == pytest.approx(divergence, abs=1e-6)


def test_wasserstein_of_a_small_space_is_the_best_value_of_critics_of_slope_one():
    p, q = np.array([0.5, 0.5, 0]), np.array([0, 0.25, 0.75])
    assert mk.learning.jensen_shannon(p, q) == pytest.approx(0.454454, abs=1e-6)
    primal = mk.learning.wasserstein(p, q)
    steps = [value("wasserstein", np.array([0.0, a, a + b]), p, q) for a in (-1, 1) for b in (-1, 1)]
    assert primal == pytest.approx(1.25) == pytest.approx(max(steps), abs=1e-6)


def test_on_parallel_lines_only_wasserstein_has_a_slope():
    for theta in (0.25, 0.75):
        far = np.eye(2)  # all of each on its own line
        assert mk.learning.jensen_shannon(*far) == pytest.approx(np.log(2))
        assert mk.learning.wasserstein(*far, [0, theta]) == pytest.approx(theta)
        assert value("wasserstein", np.array([0.0, theta]), far[1], far[0]) == pytest.approx(theta)


def test_the_model_of_a_strong_critic_has_a_gradient_only_if_it_does_not_saturate():
    score = jnp.asarray(np.log(1e-4 / (1 - 1e-4)))
    slope = {n: float(jax.grad(lambda s, n=n: LOSSES[n].of_model(None, s))(score)) for n in LOSSES}
    assert slope["vanilla"] == pytest.approx(-1e-4, rel=1e-3)
    assert slope["non-saturating"] == pytest.approx(-(1 - 1e-4), rel=1e-3)
    assert slope["wasserstein"] == -1.0
    assert all(s < 0 for n, s in slope.items() if n != "pearson")  # draws are to look more like data


def test_a_step_of_the_generator_goes_down_a_divergence_from_the_posterior_less_jensen_shannon():
    """The gradient of E log q(not y | x) is that of KL(p(x|y) || q^r(x|y)) - JS, at the parameters q^r was made with."""
    theta0, scores = RNG.normal(size=5), RNG.normal(size=5)
    log_p = np.log(P)

    def log_g(theta):
        return theta - logsumexp(theta)

    def objective(theta):  # half of the non-saturating loss of the model: p(y) = 1/2, and y = 1 does not move
        return (
            0.5
            * np.exp(log_g(theta))
            @ np.asarray(LOSSES["non-saturating"].of_model(None, jnp.asarray(scores)))
        )

    mixed = 0.5 * (np.exp(log_g(theta0)) + P)
    real = 1 / (1 + np.exp(-scores))  # q(y = 1 | x); q^r swaps the labels
    reverse = {0: real * mixed, 1: (1 - real) * mixed}

    def identity(theta):
        g, total = np.exp(log_g(theta)), 0.0
        for y, p in ((0, g), (1, P)):
            total += 0.5 * np.sum(p * (np.log(p) - np.log(reverse[y] / reverse[y].sum())))
        half = 0.5 * (g + P)
        return total - 0.5 * (np.sum(g * np.log(g / half)) + np.sum(P * (log_p - np.log(half))))

    def slope(f):
        steps = np.eye(5) * 1e-5
        return np.array([(f(theta0 + s) - f(theta0 - s)) / 2e-5 for s in steps])

    with jax.enable_x64(True):
        np.testing.assert_allclose(slope(objective), slope(identity), atol=1e-7)


def test_the_bound_on_information_is_tight_at_the_posterior():
    joint = np.array([[0.4, 0.1], [0.1, 0.4]])  # code by row
    entropy = np.log(2)
    posterior = joint / joint.sum(0)
    bound = entropy + np.sum(joint * np.log(posterior))
    assert bound == pytest.approx(0.192745, abs=1e-6)
    assert bound == pytest.approx(mk.learning.mutual_information_of_table(joint), abs=1e-9)
    assert entropy + np.sum(joint * np.log(0.5)) == pytest.approx(0)


# -- what players compute ------------------------------------------------------------------------------------------------


def test_slopes_are_those_of_the_critic_between_the_sides():
    normal = jnp.array([3.0, 4.0])
    found = slopes(lambda x: x @ normal, jnp.zeros((6, 2)), jnp.ones((6, 2)), jax.random.PRNGKey(0))
    np.testing.assert_allclose(found, 5.0, rtol=1e-6)
    # at |x| the slope of |x|^2 / 2, which is below 1 between 0 and 1 and different at each point
    found = slopes(
        lambda x: x @ x / 2, jnp.zeros((6, 2)), jnp.eye(2)[jnp.zeros(6, int)], jax.random.PRNGKey(0)
    )
    assert len(set(np.round(np.asarray(found), 6))) == 6
    assert found.min() > 0
    assert found.max() < 1


def test_discrepancy_is_the_unbiased_mmd_and_rows_that_fill_up_do_not_count():
    x, y = RNG.normal(size=(7, 2)), RNG.normal(1, 1, (7, 2))
    brute = sum(mk.learning.mmd(x, y, bandwidth=w, estimator="unbiased", squared=True) for w in (0.5, 2.0))
    order = RNG.permutation(7)
    with jax.enable_x64(True):
        widths = jnp.array([0.5, 2.0])
        assert float(discrepancy(x, y, jnp.ones(7), widths)) == pytest.approx(brute, abs=1e-12)
        assert float(discrepancy(x[order], y, jnp.ones(7), widths)) == pytest.approx(brute, abs=1e-12)
        more = [np.concatenate([v, v[:2]]) for v in (x, y)]
        weight = jnp.array([1.0] * 7 + [0.0] * 2)
        assert float(discrepancy(*more, weight, widths)) == pytest.approx(brute, abs=1e-12)
        assert np.isfinite(float(discrepancy(x[:1], y[:1], jnp.ones(1), widths)))


@pytest.mark.slow
def test_spectral_networks_have_slopes_of_at_most_one_and_sums_of_pyramids_begin_where_they_were():
    matrix = jnp.asarray(RNG.normal(size=(6, 4)))
    exact = np.linalg.svd(matrix, compute_uv=False)[0]
    assert float(largest_singular_value(matrix)) == pytest.approx(exact, rel=1e-3)
    left, _, right = np.linalg.svd(matrix)
    slope = jax.grad(largest_singular_value)(matrix)
    np.testing.assert_allclose(slope, np.outer(left[:, 0], right[0]), atol=0.05)
    critic = mk.networks.spectral(mk.networks.mlp(2, "scalar", hidden=16, activation="relu")).build(0)
    big = jax.tree.map(lambda x: 50 * x if eqx_array(x) else x, critic)
    steep = jnp.linalg.norm(jax.vmap(jax.grad(big))(jnp.asarray(RNG.normal(size=(64, 2)))), axis=1)
    assert 0.01 < steep.max() <= 1.02
    row = RNG.normal(size=3 + 16)
    coarse = np.r_[row[:3], row[3:].reshape(2, 2, 2, 2).mean((1, 3)).ravel()]
    old = mk.networks.pyramid_critic(3, (2,), hidden=4).build(0)
    new = grown(mk.networks.pyramid_critic(3, (2, 4), hidden=4).build(1), old)
    assert float(new(row)) == pytest.approx(float(old(coarse)), abs=1e-6)
    old = mk.networks.pyramid_generator(3, (2,), hidden=4).build(0)
    new = grown(mk.networks.pyramid_generator(3, (2, 4), hidden=4).build(1), old)
    doubled = np.kron(np.asarray(old(row[:3])).reshape(2, 2), np.ones((2, 2))).ravel()
    np.testing.assert_allclose(new(row[:3]), doubled, atol=1e-6)
    with pytest.raises(InvalidArgument, match="double from one"):
        mk.networks.pyramid_critic(0, (4, 7))
    with pytest.raises(InvalidArgument, match="recipe"):
        mk.networks.spectral(critic)


def eqx_array(x):
    return hasattr(x, "ndim")


# -- models --------------------------------------------------------------------------------------------------------------


def affine(labels=False):
    """Return a model whose rows are an affine function of noise: the best one is known."""
    m = mk.BayesianNetwork()
    m.add("shift", mk.Parameter(np.zeros(2)))
    m.add("scale", mk.Parameter(np.ones(2)))
    m.add("z", dist.Normal(0, 1), size=2, plate="row")
    if labels:
        m.add("logit", mk.Parameter(0.0))
        m.add("y", lambda logit: dist.Bernoulli(logits=logit), plate="row")
        m.add("x", lambda z, y, shift, scale: shift * y[:, None] + scale * z, plate="row")
    else:
        m.add("x", lambda z, shift, scale: shift + scale * z, plate="row")
    return m


@pytest.mark.slow
def test_a_function_is_learned_from_data_that_only_a_comparison_may_give_it():
    m = affine().fit({"x": ROWS}, method="mmd", epochs=150, batch=100, learning_rate=0.05, seed=0)
    np.testing.assert_allclose(m.parameters["shift"], ROWS.mean(0), atol=0.15)
    np.testing.assert_allclose(np.abs(m.parameters["scale"]), ROWS.std(0), atol=0.2)
    assert m.fit_.method == "maximum mean discrepancy"
    assert np.isnan(m.fit_.log_likelihood)
    # what led to a row is asked with noise: a linear Gaussian, whose posterior is known, on a plate of rows
    rows, noise = ROWS[:3], 0.2
    with pytest.raises(InvalidEvidence, match="add noise"):
        m.query("z", given={"x": rows})
    with pytest.raises(InvalidEvidence, match="add noise"):
        affine().fit({"x": ROWS}, epochs=1)
    shift, scale = m.parameters["shift"], m.parameters["scale"]
    exact = (rows - shift) * scale / (scale**2 + noise**2)
    for engine in ("laplace", "nuts"):
        post = m.query("z", given={"x": mk.Soft(dist.Normal(rows, noise))}, engine=engine)
        np.testing.assert_allclose(post.mean("z"), exact, atol=0.06)
    spread = np.asarray(post.summary()["sd"], float).reshape(3, 2)
    np.testing.assert_allclose(
        spread, np.broadcast_to(1 / np.sqrt(1 + (scale / noise) ** 2), (3, 2)), rtol=0.2
    )


@pytest.mark.slow
def test_soft_evidence_on_a_function_of_states_sums_them_out():
    m = mk.BayesianNetwork()
    m.add("y", lambda: dist.Categorical(jnp.array([0.5, 0.3, 0.2])), plate="row")
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("x", lambda y, z: y + 0.5 * z, plate="row")
    seen = np.array([0.1, 1.7])
    post = m.query(["y", "z"], given={"x": mk.Soft(dist.Normal(seen, 0.3))}, engine="nuts")
    logs = np.log([0.5, 0.3, 0.2]) - 0.5 * (seen[:, None] - np.arange(3)) ** 2 / (0.5**2 + 0.3**2)
    np.testing.assert_allclose(post.mean("y"), softmax(logs, axis=1) @ np.arange(3), atol=0.07)


@pytest.mark.slow
def test_the_critic_plays_for_the_distance_and_the_model_comes_near():
    method = mk.objectives.WassersteinGAN(critic=mk.networks.mlp(2, "scalar", hidden=16), critic_steps=2)
    training = {"epochs": 40, "batch": 64, "learning_rate": 0.02, "seed": 0}
    m = affine().fit({"x": ROWS}, method=method, **training)
    assert np.abs(m.parameters["shift"] - ROWS.mean(0)).max() < 0.4
    assert m.fit_.history[0] > 5 * abs(m.fit_.history[-1])  # the distance, in units of the data
    critic = m.fit_.details["extra"][CRITIC].value
    assert np.isfinite(float(critic(np.zeros(2))))
    # the same seed, the same numbers; another unit and another order of columns, the same model in that unit
    again = affine().fit({"x": ROWS}, method=method, **training)
    np.testing.assert_array_equal(again.parameters["shift"], m.parameters["shift"])


@pytest.mark.slow
def test_clipping_keeps_the_critics_weights_within_bounds():
    method = mk.objectives.WassersteinGAN(critic=mk.networks.mlp(2, "scalar", hidden=8), clip=0.05)
    m = affine().fit({"x": ROWS}, method=method, epochs=2, learning_rate=0.1, seed=0)
    leaves = [np.abs(x).max() for x in jax.tree.leaves(m.fit_.details["extra"][CRITIC].value) if eqx_array(x)]
    assert 0.0499 < max(leaves) <= 0.05 + 1e-6


@pytest.mark.slow
def test_given_nodes_are_taken_from_the_data_and_their_likelihood_is_learned():
    y = (RNG.random(200) < 0.8).astype(int)
    x = 3.0 * y[:, None] + RNG.normal(0, 1, (200, 2))
    m = affine(labels=True).fit({"x": x, "y": y}, method="mmd", epochs=150, learning_rate=0.05, seed=0)
    assert m.parameters["logit"] == pytest.approx(np.log(y.mean() / (1 - y.mean())), abs=0.15)
    np.testing.assert_allclose(m.parameters["shift"], x[y == 1].mean(0) - x[y == 0].mean(0), atol=0.5)
    method = mk.objectives.MMD(given=("x",))
    with pytest.raises(InvalidArgument, match="given= names 'x'"):
        affine(labels=True).fit({"x": x, "y": y}, method=method, epochs=1)


def autoencoder(noise=True, states=False):
    m = mk.BayesianNetwork()
    m.add("slope", mk.Parameter(np.array([1.0, 0.5])))
    m.add("back", mk.Parameter(np.array([0.1, 0.1])))
    if states:
        m.add("z", lambda: dist.Bernoulli(0.5), plate="row")
        m.guide("z", lambda x, back: dist.Bernoulli(logits=x @ back))
    else:
        m.add("z", dist.Normal(0, 1), plate="row")
        m.guide("z", lambda x, back: dist.Normal(x @ back, 0.3))
    if noise:
        m.add("x", lambda z, slope: dist.Normal(slope * z[:, None], 0.3).to_event(1), plate="row")
    else:
        m.add("x", lambda z, slope: slope * z[:, None], plate="row")
    return m


CODE = RNG.normal(0, 1, 300)
LINE = CODE[:, None] * [2.0, 1.0] + 0.3 * RNG.normal(size=(300, 2))


@pytest.mark.slow
def test_an_autoencoder_matches_codes_with_their_prior():
    method = mk.objectives.Adversarial(
        critic=mk.networks.mlp(1, "scalar", hidden=16), sees="z", reconstruction=0.05
    )
    m = autoencoder().fit({"x": LINE}, method=method, epochs=120, batch=100, learning_rate=0.02, seed=0)
    codes = LINE @ m.parameters["back"]
    assert abs(np.corrcoef(codes, CODE)[0, 1]) > 0.95
    assert 0.6 < np.sqrt(codes.var() + 0.09) < 1.4
    np.testing.assert_allclose(np.abs(m.parameters["slope"]), [2, 1], atol=0.6)


@pytest.mark.slow
def test_information_teaches_the_guide_to_read_the_code():
    method = mk.objectives.Adversarial(critic=mk.networks.mlp(2, "scalar", hidden=8), information=1.0)
    clusters = np.sign(CODE)[:, None] * [2.0, 1.0] + 0.1
    m = autoencoder(noise=False, states=True)
    m = m.fit({"x": clusters}, method=method, epochs=60, batch=100, learning_rate=0.02, seed=0)
    drawn = m.sample(1, given={"row": 200}, seed=0)
    z, x = np.asarray(drawn["z"])[0], np.asarray(drawn["x"])[0]
    told = x @ m.parameters["back"]
    log_q = np.where(z == 1, -np.logaddexp(0, -told), -np.logaddexp(0, told)).mean()
    bound = np.log(2) + log_q
    assert 0 < bound <= mk.learning.mutual_information(z, (x[:, 0] > 1e-9).astype(int)) + 0.02


@pytest.mark.parametrize(
    ("model", "method", "message"),
    [
        (lambda: autoencoder(False), mk.objectives.Adversarial(), "nothing here trains the guide"),
        (affine, mk.objectives.Adversarial(information=1.0), "the model has none"),
        (lambda: autoencoder(False), mk.objectives.Adversarial(reconstruction=1.0), "add noise to it"),
        (lambda: autoencoder(True, True), mk.objectives.Adversarial(reconstruction=1.0), "no gradient goes"),
        (lambda: autoencoder(False), mk.objectives.MMD(), "trains no guide"),
        (affine, mk.objectives.Adversarial(sees=("w",)), "sees= names 'w'"),
        (affine, mk.objectives.Adversarial(critic=mk.networks.mlp(3, "scalar")), r"\(3,\).*\(2,\)"),
        (affine, mk.objectives.Adversarial(critic=mk.networks.mlp(2, 4)), r"\(4,\) of a row"),
    ],
)
def test_what_cannot_be_learned_is_refused(model, method, message):
    with pytest.raises((InvalidArgument, UnsupportedModel), match=message):
        model().fit({"x": LINE}, method=method, epochs=1, seed=0)


def test_data_that_cannot_be_compared_are_refused():
    gaps = np.where(np.arange(400).reshape(200, 2) == 7, np.nan, ROWS)
    with pytest.raises(InvalidEvidence, match="missing entries"):
        affine().fit({"x": gaps}, method="mmd", epochs=1)
    with pytest.raises(InvalidEvidence, match=r"shape \(6, 3\)"):
        affine().fit({"x": np.ones((9, 3))}, method="mmd", epochs=1)
    with pytest.raises(InvalidArgument, match="validation="):
        affine().fit({"x": ROWS}, method="mmd", epochs=1, validation=0.2)
    for wrong in ({"loss": "gan"}, {"penalty": -1}, {"critic_steps": 0}, {"standardise": "columns"}):
        with pytest.raises(InvalidArgument, match=next(iter(wrong))):
            mk.objectives.Adversarial(**wrong)


def test_rows_are_seen_in_their_own_units_states_as_indicators():
    class Program:
        guide, rows = None, {"x": np.array([[1e9, 5.0], [3e9, 5.0]]), "y": np.array([0, 1])}

        class program:
            class layout:
                sites = None

    class Site:
        def __init__(self, shape, support=None):
            self.shape, self.support, self.states = shape, support, 0

    Program.program.layout.sites = {
        "y": Site((2,), dist.constraints.integer_interval(0, 2)), "x": Site((2, 2)),
    }  # fmt: skip
    view = RowView(Program, None, True)
    np.testing.assert_allclose(view(Program.rows, view.units), [[1, 0, 0, -1, 0], [0, 1, 0, 1, 0]], atol=1e-6)
    whole = RowView(Program, ("x",), "whole")
    found = np.asarray(whole(Program.rows, whole.units))
    assert found.shape == (2, 2)
    assert found.mean() == pytest.approx(0, abs=1e-6)
    assert found.std() == pytest.approx(1)
