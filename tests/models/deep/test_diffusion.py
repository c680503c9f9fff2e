"""The preset of diffusions, and diffusions as nodes: priors of other nodes, classes, chains written out."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.networks.diffusion_laws import noise_levels

X = np.random.default_rng(0).normal(size=(200, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
SMALL = {"steps": 6, "hidden": 16, "layers": 1, "random_state": 0, "progress": False}


@pytest.fixture(scope="module")
def linear():
    """A chain whose network is linear, so that its density is known: trained a little, in odd units."""
    rows = X * [3.0, 1e-3] + [5.0, 0.0]
    return mk.deep.Diffusion(
        5, variance="fixed small", layers=0, epochs=30, batch=50, random_state=0, progress=False
    ).fit(rows), rows


@pytest.mark.slow
def test_a_node_with_a_network_is_trained_by_its_bound_and_fills_gaps():
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(mk.networks.denoiser(2, hidden=16, layers=1)))
    m.add("x", lambda net: mk.deep.Diffusion.distribution(net, steps=10), plate="row")
    m.fit({"x": X}, ema=0.995, epochs=60, batch=50, learning_rate=0.01, seed=0)
    assert m.fit_.method == "evidence lower bound"
    assert np.mean(m.fit_.history[-10:]) > m.fit_.history[0]
    gaps = np.array([[0.5, np.nan], [np.nan, 1.0]])
    engine = mk.engines.TwistedSMC(particles=200, draws=100)
    post = m.query("x", given={"x": gaps}, missing="impute", engine=engine)
    assert post.mean("x").shape == (2, 2)
    assert post.mean("x")[0, 0] == 0.5
    with pytest.raises(UnsupportedModel, match="no density but a lower bound"):
        m.query("x", given={"row": 2}, engine="nuts")


@pytest.mark.slow
def test_plates_are_mapped():
    m = mk.BayesianNetwork()
    m.add("net", mk.Parameter(mk.networks.denoiser(2, hidden=4, layers=1).build(0)))
    m.add("x", lambda net: mk.deep.Diffusion.distribution(net, steps=4), plate=["row", "t"])
    assert m.sample(3, given={"row": 2, "t": 5}, seed=0)["x"].shape == (3, 2, 5, 2)
    whole = m.log_evidence({"x": np.zeros((2, 5, 2))}, by="row")
    assert whole.shape == (2,)
    fitted = m.fit({"x": np.zeros((4, 5, 2))}, method="denoising", epochs=1)
    assert np.isfinite(fitted.fit_.history[-1])


@pytest.mark.slow
def test_a_chain_written_out_has_the_density_that_the_bound_is_below(linear):
    model, rows = linear
    chain = model.unroll()
    assert chain.variables == ["x5", "x4", "x3", "x2", "x1", "x0"]
    assert chain.parents("x0") == ["x1"]
    some = rows[:3]
    exact = np.array([chain.log_evidence({"x0": row[None]}) for row in some])
    bounds = model.score_samples(some)
    assert (bounds < exact + 0.05).all()  # draws of a bound are averaged
    assert (bounds > exact - 3.0).all()
    post = chain.query("x1", given={"x0": some})
    assert post.info.exact
    drawn = np.asarray(chain.sample(4000, given={"row": 1}, seed=0)["x0"])[:, 0]
    np.testing.assert_allclose(drawn.std(0), model.sample(4000, seed=1).std(0), rtol=0.06)
    # particles on the chain estimate the same densities: of one entry, its row, and nothing
    gaps = np.array([[some[0, 0], np.nan], some[1]])
    engine = mk.engines.TwistedSMC(particles=2000, draws=10)
    found = model.network().query("x", given={"x": gaps}, missing="impute", engine=engine).info.details
    one = np.log(np.mean(np.exp(-0.5 * ((gaps[0, 0] - drawn[:, 0]) / 0.3) ** 2)) / 0.3 / np.sqrt(2 * np.pi))
    assert abs(found.log_evidence[0] - one) < 0.15
    assert abs(found.log_evidence[1] - exact[1]) < 0.15


@pytest.mark.slow
def test_a_bound_is_the_expectation_over_the_way_there_of_the_written_out_chain(linear):
    model, rows = linear
    at, rng, row = noise_levels("cosine", 5), np.random.default_rng(0), rows[7]
    law = model.network_.parameters["law"]
    location, scale = np.asarray(law.location), np.asarray(law.scale)
    n = 4000
    x = [np.repeat(((row - location) / scale)[None], n, axis=0)]
    forward = np.zeros(n)
    for i in range(1, 6):  # the way there, step by step, and its density
        noise = rng.normal(size=(n, 2))
        x.append(at.keep[i] * x[-1] + at.large[i] ** 0.5 * noise)
        forward += -0.5 * (noise**2 + np.log(2 * np.pi * at.large[i])).sum(1)
    step = jax.jit(jax.vmap(lambda x, i: jnp.stack(law(x, step=i)), (0, None)), static_argnums=1)
    backward = -0.5 * (x[5] ** 2 + np.log(2 * np.pi)).sum(1)
    for i in range(5, 0, -1):
        mean, sd = np.moveaxis(np.asarray(step(x[i], i)), 1, 0)
        target = row if i == 1 else x[i - 1]
        backward += (-0.5 * ((target - mean) / sd) ** 2 - np.log(sd) - 0.5 * np.log(2 * np.pi)).sum(1)
    wanted, error = (backward - forward).mean(), (backward - forward).std() / np.sqrt(n)
    engine = mk.engines.Amortised(proposals=50_000, seed=0)
    found = model.network().log_evidence({"x": row[None]}, by="row", engine=engine)[0]
    assert abs(found - wanted) < 5 * error + 0.1


@pytest.mark.slow
def test_the_preset_and_its_network_agree(linear, tmp_path):
    model, rows = linear
    network = model.network()
    np.testing.assert_array_equal(
        model.score_samples(rows[:4]), network.log_evidence({"x": rows[:4]}, by="row")
    )
    drawn = np.asarray(network.sample(1, given={"row": 3}, seed=4)["x"])[0]
    np.testing.assert_array_equal(model.sample(3, seed=4), drawn)
    network.save(tmp_path / "diffusion.json")
    again = mk.load(tmp_path / "diffusion.json")
    np.testing.assert_allclose(np.asarray(again.sample(1, given={"row": 3}, seed=4)["x"])[0], drawn)
    filled = model.impute(np.array([[5.0, np.nan], rows[0]]), particles=50)
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[1], rows[0])
    assert filled[0, 0] == 5.0
    before = model.score_samples(rows[:1])
    fresh = mk.deep.Diffusion(**model.get_params()).fit(rows)
    assert fresh.partial_fit(rows[:50]).score_samples(rows[:1]) != before


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_units_change_nothing_but_the_volume(unit):
    plain = mk.deep.Diffusion(**SMALL, epochs=3).fit(X)
    other = mk.deep.Diffusion(**SMALL, epochs=3).fit(X * unit)
    np.testing.assert_allclose(other.sample(5, seed=0), unit * plain.sample(5, seed=0), rtol=2e-3)
    many = mk.engines.Amortised(proposals=50_000, seed=0)  # other numbers draw other times of the bound
    logs = [
        m.network().log_evidence(m._data(x), by="row", engine=many)
        for m, x in ((plain, X[:3]), (other, X[:3] * unit))
    ]
    np.testing.assert_allclose(logs[1] + 2 * np.log(unit), logs[0], atol=0.05)


@pytest.mark.slow
def test_classes():
    y = np.where(X[:, 0] > 0, "right", "left")
    model = mk.deep.Diffusion(**SMALL, epochs=60, batch=50, learning_rate=0.01).fit(X, y)
    assert model.classes_.tolist() == ["left", "right"]
    right, left = model.sample(200, 0, y="right"), model.sample(200, 0, y="left")
    assert right[:, 0].mean() > 0.3
    assert left[:, 0].mean() < -0.3
    assert model.sample(200, 0, y="right", guidance=3.0)[:, 0].mean() > right[:, 0].mean()
    both = model.score_samples(X[:2])
    each = [model.score_samples(X[:2], [label] * 2) for label in model.classes_]
    np.testing.assert_allclose(both, np.logaddexp(*each))
    assert model.impute(np.array([[np.nan, 0.5]]), ["right"], particles=50).shape == (1, 2)
    with pytest.raises(InvalidArgument, match="say y="):
        model.impute(np.array([[np.nan, 0.5]]))
    assert model.unroll().parents("x0") == ["x1", "y"]
    pulled = model.sample(200, 0, classifier=lambda x, t: 2.0 * x[1], y="right")
    assert pulled[:, 1].mean() > right[:, 1].mean() + 0.2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["flow-matching", "score-sde"])
def test_paths_in_continuous_time_have_densities(kind):
    settings = {**SMALL, "steps": 20}
    model = mk.deep.Diffusion(kind=kind, **settings, epochs=150, batch=50, learning_rate=0.01).fit(X)
    cov = np.cov(X.T)
    normal = -0.5 * (
        np.einsum("ni,ij,nj->n", X, np.linalg.inv(cov), X) + np.log(np.linalg.det(2 * np.pi * cov))
    )
    assert abs(model.score_samples(X[:50]).mean() - normal[:50].mean()) < 0.25
    assert abs(model.sample(400, seed=0).std(0) / X.std(0) - 1).max() < 0.2
    filled = model.impute(np.array([[1.0, np.nan]]), draws=200, particles=400)
    assert abs(filled[:, 0, 1].mean() - 0.8) < 0.4
    with pytest.raises(InvalidArgument, match="kind='ddpm'"):
        model.unroll()


class StandardNoise(eqx.Module):
    """The noise that is expected in a standard normal element."""

    one: np.ndarray
    steps: int = eqx.field(static=True)
    shape: tuple = eqx.field(static=True, default=(2,))

    def __call__(self, x, t):
        noise = jnp.asarray(noise_levels("linear", self.steps).noise)
        return self.one * noise[jnp.round(t * self.steps).astype(int)] * x


@pytest.mark.slow
def test_a_diffusion_is_the_prior_of_a_latent_node():
    """The prior of z is a standard normal by an exact network, so that the evidence of x is known; the guide is exact."""
    weights = np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])
    cov = np.linalg.inv(np.eye(2) + weights @ weights.T / 0.36)

    how = {"schedule": "linear", "prediction": "noise"}

    def network(steps, variance):
        m = mk.BayesianNetwork()
        m.add("net", mk.Parameter(StandardNoise(np.ones(()), steps)))
        m.add(
            "z",
            lambda net: mk.deep.Diffusion.distribution(net, steps=steps, variance=variance, **how),
            plate="row",
        )
        m.add("x", lambda z: dist.Normal(z @ weights, 0.6), plate="row")
        gain, root = weights.T @ cov / 0.36, np.linalg.cholesky(cov)
        m.guide("z", lambda x: dist.MultivariateNormal(x @ gain, scale_tril=root))
        return m

    rows = np.random.default_rng(1).normal(size=(4, 3))
    wide = weights.T @ weights + 0.36 * np.eye(3)
    exact = -0.5 * (
        np.einsum("ni,ij,nj->n", rows, np.linalg.inv(wide), rows) + np.log(np.linalg.det(2 * np.pi * wide))
    )
    few, many = (network(steps, "fixed small").log_evidence({"x": rows}, by="row") for steps in (5, 40))
    assert (few < many).all()
    assert (many < exact).all()
    # with this variance the bound of a standard normal is exact
    np.testing.assert_allclose(network(5, "fixed large").log_evidence({"x": rows}, by="row"), exact, atol=0.3)
    with pytest.raises(UnsupportedModel, match="one diffusion that stands alone"):
        network(5, "fixed large").fit({"x": rows}, method="denoising", epochs=1)


def test_what_is_refused():
    with pytest.raises(NotFittedError):
        mk.deep.Diffusion().sample(2)
    with pytest.raises(InvalidArgument, match="NaN"):
        mk.deep.Diffusion(**SMALL).fit(np.where(X > 1, np.nan, X))
    with pytest.raises(InvalidArgument, match="does not go with kind"):
        mk.deep.Diffusion(**SMALL, schedule="ve").fit(X)
    m = mk.BayesianNetwork()
    m.add("loc", mk.Parameter(0.0))
    m.add("x", lambda loc: dist.Normal(loc, 1.0), plate="row")
    with pytest.raises(UnsupportedModel, match="the denoising loss is for diffusions"):
        m.fit({"x": np.zeros(4)}, method=mk.objectives.Denoising(weighting="x0"), epochs=1)


@pytest.mark.slow
def test_edges():
    one = mk.deep.Diffusion(**SMALL, epochs=2).fit(X[:1])
    assert one.sample(2, seed=0).shape == (2, 2)
    flat = np.column_stack([X[:, 0], np.full(200, 7.0)])
    assert np.isfinite(mk.deep.Diffusion(**SMALL, epochs=2).fit(flat).score_samples(flat[:2])).all()
    with pytest.raises(InvalidArgument, match="rows of 2 numbers"):
        one.impute(np.zeros((1, 3)))
    with pytest.raises(InvalidArgument, match="there is neither"):
        one.sample(1, guidance=2.0)
