"""Guides that fit makes: encoders of what is observed, and a mean field for what all rows share."""

import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia import guides
from markovia.errors import IncompleteModel, InvalidArgument, UnsupportedModel

RNG = np.random.default_rng(0)
Z = RNG.normal(size=400)
X = np.stack([2.0 * Z, -1.0 * Z], axis=1) + 0.5 * RNG.normal(size=(400, 2))
SETTINGS = {"batch": 100, "learning_rate": 0.01, "seed": 0}


def seen(z, loading):
    return dist.Normal(z[:, None] * loading, 0.5)


def factor_model(unit=1.0, guide=None):
    m = mk.BayesianNetwork()
    m.add("loading", mk.Parameter(np.array([1.0, -0.5]) * unit))
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("x", lambda z, loading: dist.Normal(z[:, None] * loading, 0.5 * unit), plate="row")
    m.guide("z", guide or guides.Amortised(hidden=16, layers=1))
    return m


def exact_evidence(x, loading, noise=0.5):
    cov = np.outer(loading, loading) + noise**2 * np.eye(2)
    return -0.5 * (np.einsum("ij,jk,ik->i", x, np.linalg.inv(cov), x) + np.linalg.slogdet(2 * np.pi * cov)[1])


@pytest.mark.slow
@pytest.mark.parametrize("unit", [1.0, 1e9])
def test_an_encoder_learns_the_posterior_in_any_unit(unit):
    m = factor_model(unit).fit({"x": X * unit}, epochs=60, **SETTINGS)
    loading = np.asarray(m.parameters["loading"]) / unit
    bound = m.fit_.history[-1] + 2 * np.log(unit)  # densities have units, too
    wanted = exact_evidence(X, loading).mean()
    assert wanted - 0.1 < bound < wanted + 0.1
    if unit == 1.0:
        post = m.query("z", given={"x": X[:5]}, engine=mk.engines.Amortised(seed=0))
        precision = 1 + loading @ loading / 0.25
        np.testing.assert_allclose(post.mean("z"), X[:5] @ loading / 0.25 / precision, atol=0.06)
        assert post.info.details.effective_draws.min() > 500
        part = np.where([False, True], np.nan, X[:5])  # entries that are not seen
        post = m.query("z", given={"x": part}, missing="impute", engine=mk.engines.Amortised(seed=0))
        wanted = X[:5, 0] * loading[0] / 0.25 / (1 + loading[0] ** 2 / 0.25)
        np.testing.assert_allclose(post.mean("z"), wanted, atol=0.1)


def positive(z, w):
    return dist.Normal(w * z, 0.3)


FAMILIES = {
    "positive": (lambda: dist.Exponential(1.0), lambda z, w: dist.Normal(w * z, 0.3), lambda z: z > 0, "elbo"),
    "unit interval": (lambda: dist.Beta(2.0, 2.0), lambda z, w: dist.Normal(w * z, 0.3),
                      lambda z: (z > 0) & (z < 1), "iwae"),
    "simplex": (lambda: dist.Dirichlet(np.ones(3)), lambda z, w: dist.Normal(w * z[:, 0], 0.3),
                lambda z: np.isclose(z.sum(-1), 1), "elbo"),
    "bits": (lambda: dist.Bernoulli(0.3), lambda z, w: dist.Normal(w * z, 0.3),
             lambda z: np.isin(z, (0, 1)), "reweighted-wake-sleep"),
    "states": (lambda: dist.Categorical(np.ones(3) / 3), lambda z, w: dist.Normal(w * z, 0.3),
               lambda z: np.isin(z, (0, 1, 2)), "reweighted-wake-sleep"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAMILIES)
def test_proposals_have_the_support_of_their_node(kind):
    prior, below, inside, method = FAMILIES[kind]
    m = mk.BayesianNetwork()
    m.add("w", mk.Parameter(1.0))
    m.add("z", prior(), plate="row")
    m.add("y", below, plate="row")
    m.guide("z", guides.Amortised(hidden=8, layers=1))
    y = np.random.default_rng(1).normal(0.5, 0.4, size=60)
    m.fit({"y": y}, epochs=100, batch=20, learning_rate=0.02, method=method, seed=0)
    post = m.query("z", given={"y": y[:4]}, engine=mk.engines.Amortised(proposals=400, draws=200, seed=0))
    assert inside(np.asarray(post.draws("z") if callable(post.draws) else post.draws["z"])).all()
    # weighed proposals estimate the evidence, whatever they were: against a sum over draws of the prior
    found = m.log_evidence(
        given={"y": y[:4]}, by="row", engine=mk.engines.Amortised(proposals=20_000, seed=0)
    )
    w = float(m.parameters["w"])
    drawn = m.sample(20_000, given={"row": 1}, seed=1)["z"]
    z = np.asarray(drawn)[:, 0] if kind != "simplex" else np.asarray(drawn)[:, 0, 0]
    logs = -0.5 * ((y[:4, None] - w * z) / 0.3) ** 2 - np.log(0.3 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(found, np.log(np.exp(logs).mean(axis=1)), atol=0.1)


@pytest.mark.slow
def test_other_parents_are_read_and_what_is_set_is_not():
    m = mk.BayesianNetwork()
    m.add("w", mk.Parameter(1.0))
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("u", mk.Input(), plate="row")
    m.add("a", lambda z, u, w: dist.Normal(w * z + u, 0.5), plate="row")
    m.add("b", lambda z: dist.Normal(z, 0.5), plate="row")
    m.guide("z", guides.Amortised(hidden=16, layers=1))
    rng = np.random.default_rng(0)
    z, u = rng.normal(size=300), 3 * rng.normal(size=300)
    data = {"a": z + u + 0.5 * rng.normal(size=300), "b": z + 0.5 * rng.normal(size=300), "u": u}
    m.fit(data, epochs=20, **SETTINGS)
    encoder = m.parameters["guide of z"]
    assert dict(encoder.inputs) == {"u": 1, "a": 1, "b": 1}
    w = float(m.parameters["w"])
    some = {"a": data["a"][:3], "u": u[:3]}
    cut = m.do(b=0.0)  # which is then no news of z, and the encoder does not see it
    post = cut.query("z", given=some, engine=mk.engines.Amortised(proposals=4000, seed=0))
    np.testing.assert_allclose(post.mean("z"), w * (some["a"] - some["u"]) / (0.25 + w**2), atol=0.2)


def test_mistakes_are_named(tmp_path):
    m = factor_model()
    with pytest.raises(IncompleteModel, match="the guide of 'z' is made by fit"):
        m.query("z", given={"x": X[:3]}, engine="amortised")
    with pytest.raises(InvalidArgument, match="hidden= is"):
        guides.Amortised(hidden=0)
    m = mk.BayesianNetwork()
    m.add("w", mk.Parameter(1.0))
    m.add("z", dist.Poisson(2.0), plate="row")
    m.add("y", lambda z, w: dist.Normal(w * z, 1), plate="row")
    m.guide("z", guides.Amortised())
    with pytest.raises(UnsupportedModel, match=r"no family of proposals fits 'z' \(Poisson\)"):
        m.fit({"y": np.zeros(5)}, epochs=1, method="wake-sleep", seed=0)


@pytest.mark.slow
def test_made_guides_are_kept_refitted_and_trained_further(tmp_path):
    m = mk.BayesianNetwork()
    m.add("loading", mk.Parameter(np.array([1.0, -0.5])))
    m.add("z", dist.Normal(0, 1), plate="row")
    m.add("x", seen, plate="row")
    m.guide("z", guides.Amortised(hidden=4, layers=1))
    m.fit({"x": X[:50]}, epochs=2, **SETTINGS)
    m.save(tmp_path / "m.mkz")
    twin = mk.load(tmp_path / "m.mkz")
    one, other = (n.log_evidence(given={"x": X[:4]}, by="row") for n in (m, twin))
    np.testing.assert_allclose(one, other, atol=1e-12)
    before = np.asarray(m.parameters["guide of z"].centre)
    m.partial_fit({"x": X[50:150] + 5.0}, **SETTINGS)  # units stay, the rest goes on
    np.testing.assert_array_equal(m.parameters["guide of z"].centre, before)
    m.fit({"x": X[:50] + 5.0}, epochs=1, **SETTINGS)
    np.testing.assert_allclose(m.parameters["guide of z"].centre, before + 5.0, atol=1e-5)


# -- what all rows share ------------------------------------------------------------------------------------------------


def shared_mean():
    m = mk.BayesianNetwork()
    m.add("noise", mk.Parameter(1.0, support="positive"))
    m.add("mu", dist.Normal(0, 10))
    m.add("y", lambda mu, noise: dist.Normal(mu, noise), plate="row")
    return m


@pytest.mark.slow
@pytest.mark.parametrize("method", ["elbo", "iwae"])
def test_a_shared_mean_gets_its_posterior_and_the_bound_is_the_evidence(method):
    y = 3.0 + 0.5 * np.random.default_rng(1).normal(size=60)
    m = shared_mean().fit({"y": y}, epochs=400, batch=20, learning_rate=0.02, seed=0, method=method)
    noise = float(m.parameters["noise"])
    variance = 1 / (60 / noise**2 + 0.01)
    drawn = m.fit_.details["latent"]["mu"]
    assert drawn.shape == (1000,)
    assert drawn.mean() == pytest.approx(variance * y.sum() / noise**2, abs=0.05)
    assert drawn.std() == pytest.approx(np.sqrt(variance), rel=0.35)
    cov = noise**2 * np.eye(60) + 100.0
    exact = -0.5 * (y @ np.linalg.solve(cov, y) + np.linalg.slogdet(2 * np.pi * cov)[1])
    assert m.fit_.history[-1] * 60 == pytest.approx(exact, abs=4.0)
    assert noise == pytest.approx(y.std(), abs=0.05)


@pytest.mark.slow
def test_a_vae_with_a_shared_scale_and_bayesian_weights_trains():
    m = mk.BayesianNetwork()
    m.add("decoder", mk.Parameter(mk.networks.mlp(1, 2, hidden=1, layers=0), prior=dist.Normal(0, 3)))
    m.add("scale", dist.HalfNormal(1.0))
    m.add("z", dist.Normal(0, 1), size=1, plate="row")
    m.add("x", lambda z, decoder, scale: dist.Normal(decoder(z), scale), plate="row")
    m.guide("z", guides.Amortised(hidden=8, layers=1))
    m.fit({"x": X}, epochs=120, **SETTINGS)
    latent = m.fit_.details["latent"]
    assert latent["decoder"].shape == (1000, 4)
    assert latent["scale"].mean() == pytest.approx(0.5, abs=0.1)
    assert (latent["scale"] > 0).all()
    weights = latent["decoder"].mean(axis=0)[:2]
    assert abs(weights[0] / weights[1] + 2.0) < 0.3
    assert "scale" not in m.parameters


def test_other_objectives_refuse_what_rows_share():
    m = factor_model(guide=lambda x: dist.Normal(x[:, 0], 1.0))
    m.add("own", mk.Parameter(1.0))
    m.guide("z", lambda x, own: dist.Normal(own * x[:, 0], 1.0))
    m.add("s", dist.HalfNormal(1.0))
    m.replace("x", lambda z, loading, s: dist.Normal(z[:, None] * loading, s))
    with pytest.raises(UnsupportedModel, match="'s' is latent and shared by all rows"):
        m.fit({"x": X}, epochs=1, method="wake-sleep", seed=0)
