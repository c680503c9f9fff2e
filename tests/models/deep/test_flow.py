"""Flows and autoregressive laws in networks: engines, guides, causes, presets."""

import jax
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.runtime.double_precision import x64

TINY = {"layers": 2, "hidden": 8, "depth": 1, "epochs": 3, "batch": 50, "random_state": 0}


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    first = rng.normal(size=200)
    return np.c_[first, np.tanh(2 * first) + 0.3 * rng.normal(size=200)] + [3.0, 1e6]


@pytest.fixture(scope="module")
def fitted(rows):
    return mk.deep.Flow(**TINY, bend="affine").fit(rows)


def trained(recipe, by=0.3):
    rng = np.random.default_rng(1)
    made = recipe.build(0)
    return jax.tree.map(
        lambda a: np.asarray(a + by * rng.normal(size=a.shape)) if hasattr(a, "dtype") else a, made
    )


@pytest.mark.slow
def test_preset_is_its_network(fitted, rows):
    score = fitted.score_samples(rows[:7])
    np.testing.assert_array_equal(score, fitted.network().log_evidence({"x": rows[:7]}, by="row"))
    noise = fitted.transform(rows[:7])
    np.testing.assert_allclose(fitted.inverse_transform(noise), rows[:7], rtol=1e-12)
    # the change of variables by hand: normal noise, and the Jacobian by differences
    step = 1e-4
    for i in range(2):
        moves = [
            (fitted.transform(rows[[i]] + step * e) - fitted.transform(rows[[i]] - step * e))[0]
            for e in np.eye(2)
        ]
        log_det = np.linalg.slogdet(np.array(moves) / (2 * step))[1]
        exact = -0.5 * (noise[i] ** 2).sum() - np.log(2 * np.pi) + log_det
        np.testing.assert_allclose(score[i], exact, rtol=1e-5)
    np.testing.assert_array_equal(fitted.sample(3, seed=1), fitted.sample(3, seed=1))
    assert abs(fitted.network_.fit_.log_likelihood / 200 - fitted.score(rows)) < 0.2


@pytest.mark.slow
def test_units_shift_scores_by_their_logs(fitted, rows):
    units = np.array([1e-9, 1e9])
    other = mk.deep.Flow(**TINY, bend="affine").fit(rows * units)
    shift = other.score_samples(rows[:9] * units) - fitted.score_samples(rows[:9])
    np.testing.assert_allclose(shift, -np.log(units).sum(), atol=1e-6)
    np.testing.assert_allclose(other.sample(5, seed=0) / units, fitted.sample(5, seed=0), rtol=1e-6)


@pytest.mark.slow
def test_one_row_order_and_going_on(fitted, rows):
    np.testing.assert_allclose(
        fitted.score_samples(rows[[3]]), fitted.score_samples(rows[:5])[3:4], rtol=1e-12
    )
    np.testing.assert_allclose(
        fitted.score_samples(rows[4::-1]), fitted.score_samples(rows[:5])[::-1], rtol=1e-12
    )
    before = fitted.score_samples(rows[:3])
    other = mk.deep.Flow(**TINY, bend="affine").fit(rows)
    other.partial_fit(rows)
    assert not np.allclose(other.score_samples(rows[:3]), before)
    assert other.score(rows) > -10


@pytest.mark.slow
def test_conditional_on_classes_and_numbers(rows):
    y = np.where(rows[:, 0] > 3, "high", "low")
    flow = mk.deep.Flow(**{**TINY, "epochs": 40}, bend="affine").fit(rows, y)
    high, low = (flow.sample(300, seed=0, y=label)[:, 0].mean() for label in ("high", "low"))
    assert high > low + 0.8
    np.testing.assert_allclose(flow.inverse_transform(flow.transform(rows[:4], y[:4]), y[:4]), rows[:4])
    assert flow.score_samples(rows[:4], y[:4]).mean() > flow.score_samples(rows[:4], y[:4][::-1]).mean() - 5
    with pytest.raises(InvalidArgument, match="fitted with y="):
        flow.score_samples(rows)
    with pytest.raises(InvalidArgument, match="y= is a class or finite numbers for each of 4 rows"):
        flow.score_samples(rows[:4], y[:3])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "columns"),
    [
        ({"kind": "glow", "shape": (4, 4), "layers": 1, "hidden": 4}, 16),
        ({"kind": "continuous", "hidden": 8}, 2),
    ],
)
def test_pictures_and_differential_equations(how, columns):
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(60, columns)) * np.arange(1, columns + 1) + 5
    flow = mk.deep.Flow(**how, epochs=2, batch=20, random_state=0).fit(rows)
    assert flow.sample(3, seed=0).shape == (3, columns)
    back = flow.inverse_transform(flow.transform(rows[:4]))
    np.testing.assert_allclose(
        back, rows[:4], atol=1e-3
    )  # a differential equation goes back but for its steps
    # the density by the change of variables: that of the noise times the volume, by differences
    noise, step = flow.transform(rows[:1]), 1e-4
    slopes = [
        (flow.transform(rows[:1] + step * e) - flow.transform(rows[:1] - step * e))[0] / (2 * step)
        for e in np.eye(columns)
    ]
    log_det = np.linalg.slogdet(np.array(slopes))[1]
    known = -0.5 * (noise**2).sum() - 0.5 * columns * np.log(2 * np.pi) + log_det
    assert flow.score_samples(rows[:1])[0] == pytest.approx(known, abs=1e-2)


def test_what_is_refused(rows, fitted):
    with pytest.raises(InvalidArgument, match="column 1 is the same in all 200 rows"):
        mk.deep.Flow().fit(np.c_[rows[:, 0], np.ones(200)])
    with pytest.raises(InvalidArgument, match="whole rows"):
        mk.deep.Flow().fit(np.where(np.arange(400).reshape(200, 2) == 3, np.nan, rows))
    with pytest.raises(InvalidArgument, match="needs the shape="):
        mk.deep.Flow("glow").fit(rows)
    with pytest.raises(
        mk.errors.NotFittedError if hasattr(mk.errors, "NotFittedError") else Exception, match="fit"
    ):
        mk.deep.Flow().sample(2)
    with pytest.raises(InvalidArgument, match="without y="):
        fitted.sample(2, y=1)
    with pytest.raises(InvalidArgument, match="whole numbers from 0 to 1"):
        mk.deep.Autoregressive().fit(rows)
    with pytest.raises(InvalidArgument, match="no pictures"):
        mk.deep.Autoregressive("pixel-cnn").fit(np.zeros((4, 6)))


def test_saved_and_read(fitted, rows, tmp_path):
    fitted.save(tmp_path / "flow.json")
    again = mk.load(tmp_path / "flow.json")
    np.testing.assert_allclose(again.score_samples(rows[:3]), fitted.score_samples(rows[:3]), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["made", "nade", "pixel-cnn"])
def test_autoregressive_presets_learn(kind):
    """Two patterns: both are learned, and nothing else is drawn often."""
    bits = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 40)
    law = mk.deep.Autoregressive(
        kind, hidden=12, depth=1, epochs=80, batch=40, learning_rate=0.03, random_state=0
    )
    law.fit(bits)
    np.testing.assert_array_equal(
        law.score_samples(bits[:2]), law.network().log_evidence(law._data(bits[:2] * 1.0), by="row")
    )
    assert np.all(np.abs(law.score_samples(bits[:2]) - np.log(0.5)) < 0.1)
    drawn = law.sample(200, seed=0)
    assert np.mean([r.tolist() in bits[:2].tolist() for r in drawn]) > 0.9


@pytest.mark.slow
def test_nuts_on_the_context_of_a_flow():
    """The parent of a trained affine flow is normal given it: mean and spread against quadrature."""
    flow = trained(mk.flows.autoregressive(1, layers=1, hidden=4, depth=1, context=1))
    m = mk.BayesianNetwork()
    m.add("flow", mk.Parameter(flow))
    m.add("c", dist.Normal(0, 1))
    m.add("x", lambda c, flow: flow.distribution(c[..., None]))
    grid = np.linspace(-6, 6, 801)
    with x64():
        logs = jax.jit(jax.vmap(lambda c: flow.log_prob(np.array([1.5]), c[None])))(grid) - grid**2 / 2
    weights = np.exp(logs - logs.max())
    weights = weights / weights.sum()
    mean = (weights * grid).sum()
    sd = np.sqrt((weights * (grid - mean) ** 2).sum())
    post = m.query("c", given={"x": [1.5]}, engine="nuts")
    assert abs(float(post.mean("c")) - mean) < 0.15 * sd
    assert abs(float(post.sd("c")) - sd) < 0.15 * sd


@pytest.mark.slow
def test_a_class_is_asked_from_a_flow_below_it():
    """A table above a flow: Bayes by hand."""
    flow = trained(mk.flows.coupling(2, layers=2, hidden=4, depth=1, context=1), by=0.6)
    m = mk.BayesianNetwork()
    m.add("flow", mk.Parameter(flow))
    m.add("c", [0.3, 0.7])
    m.add("x", lambda c, flow: flow.distribution(1.0 * jax.numpy.asarray(c)[..., None]))
    x = np.array([0.7, -0.4])
    with x64():
        logs = np.array([float(flow.log_prob(x, np.array([c]))) for c in (0.0, 1.0)])
    expected = np.array([0.3, 0.7]) * np.exp(logs)
    post = m.query("c", given={"x": x})
    np.testing.assert_allclose(post[1], expected[1] / expected.sum(), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("inverse", [True, False])
def test_guides_that_are_flows(inverse):
    """A flow as guide: with enough draws the importance-weighted bound is the evidence, and gradients reach the flow."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 1)) * np.sqrt(2)
    recipe = mk.flows.autoregressive(1, layers=1, hidden=8, depth=1, context=1, inverse=inverse)
    m = mk.BayesianNetwork()
    m.add("flow", mk.Parameter(recipe))
    m.add("z", dist.Normal(0, 1), size=1, plate="row")
    m.add("x", lambda z: dist.Normal(z, 1), plate="row")
    m.guide("z", lambda x, flow: flow.distribution(x))
    m = m.fit({"x": x}, epochs=300, batch=None, learning_rate=0.02, seed=0)
    exact = dist.Normal(0.0, np.sqrt(2.0)).log_prob(x[:, 0]).mean()
    # a normal posterior with a linear mean is in the family: the bound is all but tight, and not above
    assert exact - 0.05 < m.fit_.history[-1] < exact + 0.02


@pytest.mark.slow
def test_counterfactuals_by_inverting_a_flow():
    """An affine flow of one number is mean + scale * noise: the other world in closed form, and by draws."""
    flow = trained(mk.flows.autoregressive(1, layers=1, hidden=4, depth=1, context=1))
    m = mk.StructuralModel()
    m.add("t", dist.Normal(0, 1))
    m.add("y", flow, parents=["t"])
    m.add("z", lambda y, e: 2 * y + e, noise=dist.Normal(0, 1))

    def ends(t):
        with x64():
            low, high = (float(flow.forward(np.array([u]), np.array([t]))[0][0]) for u in (0.0, 1.0))
        return low, high - low

    mean, scale = ends(0.5)
    noise = (1.2 - mean) / scale
    np.testing.assert_allclose(m.noises({"t": 0.5, "y": 1.2})["y"], noise, rtol=1e-9)
    answer = m.counterfactual("y", given={"t": 0.5, "y": 1.2}, do={"t": -1.0})
    mean, scale = ends(-1.0)
    np.testing.assert_allclose(answer.mean(), mean + scale * noise, rtol=1e-9)
    assert answer.info.exact
    np.testing.assert_allclose(
        m.do(shift={"y": 2.0}).noises({"t": -1.0, "y": mean + 2.0})["y"], 0.0, atol=1e-9
    )
    # a deep node below a treatment: the effect of setting it
    drawn = m.do(t=-1.0).sample(4000, seed=0)["y"]
    assert abs(drawn.mean() - mean) < 5 * scale / np.sqrt(4000)
    with pytest.raises(InvalidArgument, match="a variable is one number"):
        m.add("w", mk.flows.coupling(2, layers=1).build(0), parents=[])


def test_a_treatment_above_a_flow_in_a_network(rows):
    """A confounder, a treatment and a flow: do is sampled through the network, and is not conditioning."""
    flow = trained(mk.flows.coupling(1, layers=1, hidden=4, depth=1, context=2), by=0.5)
    m = mk.BayesianNetwork()
    m.add("flow", mk.Parameter(flow))
    m.add("u", dist.Normal(0, 1), plate="row")
    m.add("t", lambda u: dist.Normal(2 * u, 0.1), plate="row")
    m.add("y", lambda u, t, flow: flow.distribution(jax.numpy.stack([u, t], -1)), plate="row")
    drawn = m.do(t=np.full(4000, 1.0)).sample(1, given={"row": 4000}, seed=0)
    y = np.asarray(drawn["y"])[0][:, 0]
    rng = np.random.default_rng(1)
    with x64():
        told = np.c_[rng.normal(size=4000), np.ones(4000)]
        by_hand = np.asarray(
            jax.jit(jax.vmap(lambda u, c: flow.forward(u, c)[0]))(rng.normal(size=(4000, 1)), told)
        )
    assert abs(y.mean() - by_hand.mean()) < 5 * by_hand.std() / np.sqrt(2000)


@pytest.mark.slow
def test_different_settings_do_not_share_compiled_code():
    """Flows with the same shapes and other settings: each gets its own density."""
    x = np.array([[0.5, -1.0]])
    for reach in (3.0, 6.0):
        flow = trained(mk.flows.coupling(2, layers=1, hidden=4, depth=1, kind="spline", reach=reach))
        m = mk.BayesianNetwork()
        m.add("flow", mk.Parameter(flow))
        m.add("x", lambda flow: flow.distribution(), plate="row")
        with x64():
            exact = float(flow.log_prob(x[0]))
        np.testing.assert_allclose(m.log_evidence({"x": x}, by="row"), exact, rtol=1e-10)


@pytest.mark.slow
def test_estimated_continuous_flows_learn():
    rng = np.random.default_rng(0)
    m = mk.BayesianNetwork()
    m.add("flow", mk.Parameter(mk.flows.continuous(2, hidden=8, depth=1, steps=4, trace="estimate")))
    m.add("x", lambda flow: flow.distribution(), plate="row")
    m = m.fit({"x": 0.5 + 0.5 * rng.normal(size=(100, 2))}, epochs=60, learning_rate=0.02, seed=0)
    assert m.fit_.history[-1] > m.fit_.history[0] + 0.3
