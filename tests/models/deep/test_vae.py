"""Variational autoencoders against closed forms, enumeration and each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.discrete_codes import GumbelSoftmax, VectorQuantised
from markovia.learning.neural.elbo import ELBO
from markovia.models.deep.sequence_vae import SequenceVAE
from markovia.models.deep.vae import VAE, ConditionalVAE, SemiSupervisedVAE
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

RNG = np.random.default_rng(0)
STRIPES = np.repeat(np.eye(3), 2, axis=1)
CLASS = RNG.integers(0, 3, 240)
PIXELS = np.where(RNG.random((240, 6)) < 0.05, 1 - STRIPES[CLASS], STRIPES[CLASS])
SMALL = {"hidden": 8, "batch": 60, "learning_rate": 0.02, "random_state": 0}


def program_of(m, given):
    """Return the rows of a model, and its parameters as numbers in 64 bits."""
    problem = m._problem(given, "auto", None, "impute")
    return RowwiseModel(problem, m._guides), {
        n: p.numbers for n, p in problem.inputs.items() if hasattr(p, "numbers")
    }


def log_weights(m, given, n):
    """Return n draws of the log weights of all rows."""
    rows, parameters = program_of(m, given)
    with x64():
        data = {k: jnp.asarray(v) for k, v in rows.rows.items()}
        draw = jax.jit(jax.vmap(lambda key: rows.log_weights(parameters, data, key)))
        return np.asarray(draw(jax.random.split(jax.random.PRNGKey(0), n)))


def loss_of(objective, m, given, keys=1, move=None, at=None):
    """Return draws of an objective's loss on all rows, in 64 bits; or one and its gradient by a parameter."""
    rows, parameters = program_of(m, given)
    with x64():
        batch = Batch({k: jnp.asarray(v) for k, v in rows.rows.items()}, jnp.ones(rows.n_rows))
        player = objective.setup(rows, lambda free: free, tuple(parameters)).players[0]

        def loss(value, key):
            return player.loss({**parameters, move: value} if move else parameters, None, key, batch)[0]

        every = jax.random.split(jax.random.PRNGKey(1), keys)
        if move is None:
            return np.asarray(jax.jit(jax.vmap(lambda k: loss(None, k)))(every))
        return [np.asarray(a) for a in jax.value_and_grad(loss)(jnp.asarray(at), every[0])]


@pytest.fixture(scope="module")
def states():
    """An autoencoder whose code is one of three states: everything about it can be summed up."""
    return VAE(latent_kind="states", categories=3, epochs=40, **SMALL).fit(PIXELS)


@pytest.fixture(scope="module")
def vae():
    return VAE(2, epochs=150, **SMALL).fit(PIXELS)


# -- closed forms ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_states_are_summed_out_exactly_also_with_missing_pixels(states):
    logits = states.network_.parameters["logits"]
    prior = logits - logsumexp(logits)
    ones = states.inverse_transform([[0], [1], [2]])

    def exact(x):
        seen = ~np.isnan(x)
        logs = np.where(x == 1, np.log(ones[:, None]), np.log1p(-ones[:, None]))
        return prior + (logs * seen).sum(-1).T

    some = PIXELS[:4].copy()
    np.testing.assert_allclose(states.score_samples(some), logsumexp(exact(some), axis=1), atol=1e-9)
    some[0, 1] = some[2, 3] = some[2, 4] = np.nan
    logs = exact(some)
    np.testing.assert_allclose(states.score_samples(some), logsumexp(logs, axis=1), atol=1e-9)
    shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(states.predict_proba(some), shares, atol=1e-9)
    filled = states.impute(some)
    assert filled[2, 3] == pytest.approx((shares[2] @ ones)[3], abs=1e-9)
    assert np.array_equal(filled[1], some[1])
    # and it has found the stripes
    share = PIXELS.mean(0)
    alone = (PIXELS * np.log(share) + (1 - PIXELS) * np.log1p(-share)).sum(1).mean()
    assert states.score(PIXELS) > alone + 0.5


@pytest.mark.slow
def test_a_linear_autoencoder_is_probabilistic_pca_in_any_unit():
    w = np.array([[2.0, 1.0, -1.0, 0.5], [0.0, 1.0, 1.0, -0.7]])
    x = RNG.normal(size=(300, 2)) @ w + 0.4 * RNG.normal(size=(300, 4)) + np.array([5.0, 0, 1, -3])
    how = mk.Training(epochs=400, batch=100, learning_rate=0.03, decay=0.01, seed=0)
    linear = VAE(2, likelihood="gaussian", noise="shared", layers=0, training=how, random_state=0).fit(x)
    theirs = mk.mixtures.ProbabilisticPCA(2).fit(x)
    m, some = linear.network(), x[:5]
    layer, noise = m.parameters["decoder"].layers[0], float(m.parameters["noise"])
    back, unit = np.asarray(layer.weight), m.parameters["unit"][0]
    cov = unit**2 * (back @ back.T + noise**2 * np.eye(4))
    mean = m.parameters["centre"] + unit * np.asarray(layer.bias)
    closed = multivariate_normal(mean, cov)
    assert abs(closed.logpdf(x).mean() - theirs.score_samples(x).mean()) < 0.01
    np.testing.assert_allclose(linear.score_samples(some), closed.logpdf(some), atol=0.05)
    # the posterior, by the weights and by the exact engine on what is handed over
    gain = back.T / (noise**2 * unit) @ np.eye(4)
    exact = np.linalg.solve(np.eye(2) + back.T @ back / noise**2, gain @ (some - mean).T).T
    post = m.query("z", given={"x": some})
    assert post.info.engine == "conjugate"
    np.testing.assert_allclose(post.mean("z"), exact, atol=1e-6)
    np.testing.assert_allclose(linear.transform(some), exact, atol=0.1)
    np.testing.assert_allclose(linear.inverse_transform(exact), mean + unit * exact @ back.T, atol=1e-5)
    # other units are other units only
    short = clone(linear).set_params(training=None, epochs=2)
    same = clone(short).fit(x)
    for scale in (1e-9, 1e9):
        other = clone(short).fit(scale * x)
        logs = [m.log_evidence({"x": s * some}) for m, s in ((other.network(), scale), (same.network(), 1.0))]
        assert float(logs[0]) + 20 * np.log(scale) == pytest.approx(
            float(logs[1]), abs=1e-3
        )  # exact, no proposals
        np.testing.assert_allclose(
            other.inverse_transform(exact) / scale, same.inverse_transform(exact), atol=1e-3
        )


def linear_gaussian():
    m = mk.BayesianNetwork()
    m.add("w", mk.Parameter(np.array([[1.0, -0.5, 0.3]])))
    m.add("gain", mk.Parameter(np.array([0.4, -0.2, 0.1])))
    m.add("z", dist.Normal(0, 1), size=1, plate="row")
    m.add("x", lambda z, w: dist.Normal(z @ w, 0.6), plate="row")
    m.guide("z", lambda x, gain: dist.Normal((x @ gain)[:, None], 0.7))
    return m


def test_beta_counts_the_divergence_that_often():
    m, x = linear_gaussian(), RNG.normal(size=(5, 3))
    found = [loss_of(ELBO(beta=b), m, {"x": x})[0] for b in (1.0, 3.0, 0.0)]
    loc = x @ m.parameters["gain"]
    apart = (0.5 * (loc**2 + 0.49 - 1) - np.log(0.7)).mean()
    assert found[1] - found[0] == pytest.approx(2 * apart, abs=1e-9)
    assert found[2] - found[0] == pytest.approx(-apart, abs=1e-9)
    assert ELBO(beta=2).is_bound
    assert not ELBO(beta=0.5).is_bound
    with pytest.raises(InvalidArgument, match="beta= and target="):
        ELBO(beta=2, target="y")


def coded(guide):
    """Two states for each of two codes, whose one-hot vectors make three bits."""
    m = mk.BayesianNetwork()
    m.add("prior", mk.Parameter(np.array([[0.3, -0.3], [0.0, 0.5]])))
    m.add("eye", mk.Parameter(np.eye(2), fixed=True))
    m.add("down", mk.Parameter(RNG.normal(size=(4, 3))))
    m.add("up", mk.Parameter(0.5 * np.random.default_rng(3).normal(size=(3, 4))))
    m.add("k", lambda prior: dist.Categorical(logits=prior).to_event(1), plate="row")
    m.add("hot", lambda k, eye: eye[k], plate="row")
    m.add("x", lambda hot, down: dist.Bernoulli(logits=hot.reshape(-1, 4) @ down), plate="row")
    m.guide("k", guide)
    return m


@pytest.mark.slow
def test_relaxed_states_that_are_hard_have_the_value_of_the_bound():
    m = coded(lambda x, up: dist.Categorical(logits=(x @ up).reshape(-1, 2, 2)))
    x = np.array([[1.0, 0, 1], [0, 0, 1]])
    values = m.parameters
    prior = values["prior"] - logsumexp(values["prior"], axis=1, keepdims=True)
    guess = (x @ values["up"]).reshape(-1, 2, 2)
    guess = guess - logsumexp(guess, axis=2, keepdims=True)
    bound = 0.0
    for a in (0, 1):
        for b in (0, 1):
            one = expit(np.concatenate([np.eye(2)[a], np.eye(2)[b]]) @ values["down"])
            seen = np.where(x == 1, np.log(one), np.log1p(-one)).sum(1)
            log_q = guess[:, 0, a] + guess[:, 1, b]
            bound = bound + np.exp(log_q) * (seen + prior[0, a] + prior[1, b] - log_q)
    objective = GumbelSoftmax(codes=(("k", "hot"),))
    draws = -loss_of(objective, m, {"x": x}, 4000)
    assert abs(draws.mean() - bound.mean()) < 4 * draws.std() / np.sqrt(4000)
    assert objective.is_bound
    assert not GumbelSoftmax(codes=(("k", "hot"),), hard=False).is_bound
    # the divergence is exact, and so is the gradient by the prior
    soft = GumbelSoftmax(codes=(("k", "hot"),), hard=False, draws=3)
    _, slope = loss_of(soft, m, {"x": x}, 1, "prior", values["prior"])
    shares = np.exp(guess).mean(0)
    np.testing.assert_allclose(slope, np.exp(prior) - shares, atol=1e-9)
    with pytest.raises(InvalidArgument, match="a node with states and a guide"):
        loss_of(GumbelSoftmax(codes=(("hot", "k"),)), m, {"x": x})


@pytest.mark.slow
def test_a_code_book_passes_gradients_to_what_was_encoded():
    m = mk.BayesianNetwork()
    codes = np.array([[0.0, 0.0], [1.0, 1.0], [-1.0, 2.0]])
    m.add("codes", mk.Parameter(codes))
    m.add("down", mk.Parameter(np.array([[1.0, -0.5, 0.3], [0.2, 0.8, -1.0]])))
    m.add("shift", mk.Parameter(np.array([0.9, 0.7])))
    m.add("k", dist.Categorical(np.array([0.5, 0.3, 0.2])), plate="row")
    m.add("code", lambda k, codes: codes[k], plate="row")
    m.add("x", lambda code, down: dist.Normal(code @ down, 0.5), plate="row")
    m.guide("k", lambda x, shift, codes: mk.networks.NearestCode(x[:, :2] * 0 + shift, codes))
    x = np.array([[1.0, 0.4, -0.9]])
    quantised = VectorQuantised(code="code", commitment=0.3)
    value, slope = loss_of(quantised, m, {"x": x}, 1, "shift", [0.9, 0.7])
    mean = codes[1] @ m.parameters["down"]
    log_p = np.log(0.3) - (0.5 * ((x[0] - mean) / 0.5) ** 2 + np.log(0.5 * np.sqrt(2 * np.pi))).sum()
    away = np.array([0.9, 0.7]) - codes[1]
    assert float(value) == pytest.approx(-log_p + 1.3 * (away**2).sum(), abs=1e-9)
    through = -m.parameters["down"] @ ((x[0] - mean) / 0.25)
    np.testing.assert_allclose(slope, through + 0.6 * away, atol=1e-9)
    with pytest.raises(InvalidArgument, match="has to be a function of the one node"):
        loss_of(VectorQuantised(code="x"), m, {"x": x})


# -- the verbs ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_verbs_are_questions_of_the_network(vae, tmp_path):
    m = vae.network()
    np.testing.assert_array_equal(vae.score_samples(PIXELS[:4]), m.log_evidence({"x": PIXELS[:4]}, by="row"))
    np.testing.assert_array_equal(
        vae.sample(3, seed=1), np.asarray(m.sample(1, given={"row": 3}, seed=1)["x"])[0]
    )
    codes = vae.transform(PIXELS[:4])
    assert codes.shape == (4, 2)
    assert np.abs(vae.inverse_transform(codes) - STRIPES[CLASS[:4]]).mean() < 0.25
    some = PIXELS[:4].copy()
    some[:, 1] = np.nan
    filled = vae.impute(some)
    assert np.array_equal(filled[:, [0, 2, 3, 4, 5]], PIXELS[:4][:, [0, 2, 3, 4, 5]])
    assert np.abs(filled[:, 1] - STRIPES[CLASS[:4], 1]).mean() < 0.35
    # codes are two numbers, so that a grid tells how probable rows are, whole or with gaps
    grid = np.stack(np.meshgrid(*[np.linspace(-5, 5, 81)] * 2), axis=-1).reshape(-1, 2)
    prior = multivariate_normal(np.zeros(2)).logpdf(grid) + 2 * np.log(10 / 80)
    ones = vae.inverse_transform(grid)[:, None]
    for rows in (PIXELS[:4], some):
        logs = np.where(rows == 1, np.log(ones), np.log1p(-ones)) * ~np.isnan(rows)
        short = logsumexp(prior[:, None] + logs.sum(-1), axis=0) - vae.score_samples(rows)
        # the encoder has never seen gaps, so that its proposals are worse there; weights keep the bound below
        assert short.min() > -0.05
        assert short.max() < (0.3 if np.isnan(rows).any() else 0.1)
    m.save(tmp_path / "vae.json")
    again = mk.load(tmp_path / "vae.json")
    np.testing.assert_allclose(
        again.log_evidence({"x": PIXELS[:4]}, by="row"), vae.score_samples(PIXELS[:4]), atol=1e-9
    )
    assert again._parameters["centre"].fixed
    np.testing.assert_allclose(m.parameters["centre"], PIXELS.mean(0), rtol=1e-14)  # not learned, not rounded


@pytest.mark.slow
def test_nuts_agrees_with_the_weighed_proposals(vae):
    row = PIXELS[:1]
    drawn = vae.network().query("z", given={"x": row}, engine=mk.engines.NUTS(draws=500, chains=2, seed=0))
    weighed = vae.network().query(
        "z", given={"x": row}, engine=mk.engines.Amortised(proposals=4000, draws=2000, seed=0)
    )
    np.testing.assert_allclose(drawn.mean("z"), weighed.mean("z"), atol=0.15)
    np.testing.assert_allclose(drawn.sd("z"), weighed.sd("z"), rtol=0.25)


BOUNDED = {
    "normal": lambda: VAE(2, epochs=2, **SMALL),
    "mixture": lambda: VAE(2, prior="mixture", n_clusters=3, epochs=2, **SMALL),
    "ladder": lambda: VAE((2, 1), epochs=2, **SMALL),
    "flow": lambda: VAE(2, posterior="flow", epochs=2, **SMALL),
    "gumbel": lambda: VAE(2, latent_kind="gumbel", categories=3, epochs=2, **SMALL),
    "codebook": lambda: VAE(2, latent_kind="codebook", categories=3, code_size=2, epochs=2, **SMALL),
    "iwae": lambda: VAE(2, objective="iwae", draws=3, epochs=2, **SMALL),
    "categorical": lambda: VAE(2, likelihood="categorical", epochs=2, **SMALL),
}
QUICK = {"codebook"}


@pytest.mark.parametrize(
    "kind", [k if k in QUICK else pytest.param(k, marks=pytest.mark.slow) for k in BOUNDED]
)
def test_bounds_are_in_order_on_held_out_rows(kind):
    model = BOUNDED[kind]().fit(PIXELS[:200])
    logs = log_weights(model.network(), model._data(PIXELS[200:]), 2000)
    one = logs.mean()
    ten = (logsumexp(logs.reshape(-1, 10, 40), axis=1) - np.log(10)).mean()
    many = (logsumexp(logs, axis=0) - np.log(2000)).mean()
    assert one < ten - 1e-3
    assert ten < many
    if kind in (
        "gumbel",
        "codebook",
    ):  # nine states in all: the weights are those of an evidence that can be summed up
        m = model.network()
        grid = np.array([[a, b] for a in range(3) for b in range(3)])
        prior = m.parameters["logits"] - logsumexp(m.parameters["logits"], axis=1, keepdims=True)
        ones = model.inverse_transform(grid)
        x = PIXELS[200:]
        seen = np.where(x[:, None] == 1, np.log(ones), np.log1p(-ones)).sum(-1)
        exact = logsumexp(seen + prior[0, grid[:, 0]] + prior[1, grid[:, 1]], axis=1)
        assert abs(many - exact.mean()) < 0.05


@pytest.mark.slow
def test_few_labels_are_enough_where_classes_are_clusters():
    labels = np.array([f"stripe {k}" for k in CLASS], dtype=object)
    labels[9:] = None
    model = SemiSupervisedVAE(2, epochs=60, **SMALL).fit(PIXELS[:200], labels[:200])
    right = np.array([f"stripe {k}" for k in CLASS[200:]])
    shares = model.predict_proba(PIXELS[200:])
    np.testing.assert_allclose(shares.sum(1), 1)
    assert (model.classes_[shares.argmax(1)] == right).mean() > 0.85
    drawn = model.sample(30, seed=0, y="stripe 1")
    assert np.abs(drawn.mean(0) - STRIPES[1]).max() < 0.4
    with pytest.raises(InvalidArgument, match="none of the classes"):
        model.sample(2, y="stripe 7")
    # the class is a node of the network that is handed over, so more can hang on it: a report of it, as a table
    m = model.network()
    m.add("report", says, plate="row")
    some = PIXELS[200:203]
    many = mk.engines.Amortised(proposals=20_000, seed=0)  # a row with a report has proposals of its own
    logs = np.stack(
        [m.log_evidence({"x": some, "report": np.full(3, r)}, by="row", engine=many) for r in range(3)],
        axis=1,
    )
    told = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    own = m.log_evidence({"x": some}, by="row", engine=many)
    np.testing.assert_allclose(np.exp(logs - own[:, None]), model.predict_proba(some) @ told, atol=0.03)


def says(y):
    """A report that is right four times out of five."""
    return dist.Categorical(jnp.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])[y])


@pytest.mark.slow
def test_rows_given_a_class():
    model = ConditionalVAE(1, epochs=40, **SMALL).fit(PIXELS, CLASS)
    for k in range(3):
        assert np.abs(model.sample(40, seed=0, y=k).mean(0) - STRIPES[k]).max() < 0.3
    assert (model.predict(PIXELS[:30]) == CLASS[:30]).mean() > 0.9
    # what is known of the class and what is summed out belong to one density
    shares = [model.score_samples(PIXELS[:3], np.full(3, k)) for k in range(3)]
    np.testing.assert_allclose(logsumexp(shares, axis=0), model.score_samples(PIXELS[:3]), atol=0.1)
    assert np.abs(model.inverse_transform([[0.0]], y=1) - STRIPES[1]).max() < 0.3


@pytest.mark.slow
def test_a_hidden_markov_model_as_prior_of_the_codes():
    switch = np.cumsum(RNG.random((60, 8)) < 0.2, axis=1) % 2
    x = np.stack([3.0 * switch, -3.0 * switch], axis=-1) + 0.3 * RNG.normal(size=(60, 8, 2))
    model = SequenceVAE(1, prior="hmm", n_clusters=2, likelihood="gaussian", epochs=40, **SMALL).fit(x)
    assert model.transform(x[:2]).shape == (2, 8, 1)
    assert model.sample(2, seed=0, steps=5).shape == (2, 5, 2)
    # given codes, the states are those of the forward and backward recursions
    m, z = model.network(), model.transform(x[:1])
    values = m.parameters
    for name in ("mean", "x", "decoded"):
        m.remove(name)
    found = m.query("s", given={"z": z})
    starts, moves = (
        np.exp(a - logsumexp(a, axis=-1, keepdims=True)) for a in (values["starts"], values["moves"])
    )
    sees = np.exp(-0.5 * ((z[0] - values["means"].T) / values["scales"].T) ** 2) / values["scales"].T
    paths = np.array(np.meshgrid(*[[0, 1]] * 8, indexing="ij")).reshape(8, -1)
    weight = starts[paths[0]] * np.prod(moves[paths[:-1], paths[1:]], axis=0)
    weight = weight * np.prod([sees[t, paths[t]] for t in range(8)], axis=0)
    second = (weight * (paths == 1)).sum(1) / weight.sum()
    np.testing.assert_allclose(np.asarray(found.mean("s"))[0], second, atol=0.05)


def test_what_does_not_fit_is_said(vae):
    with pytest.raises(NotFittedError):
        VAE().sample(2)
    with pytest.raises(InvalidArgument, match=r"is for 0 and 1, and X has 0\.5"):
        VAE().fit(PIXELS / 2)
    with pytest.raises(InvalidArgument, match="takes no prior="):
        VAE(latent_kind="gumbel", prior="mixture").fit(PIXELS)
    with pytest.raises(InvalidArgument, match=r"fit\(X, y\)"):
        ConditionalVAE().fit(PIXELS)
    with pytest.raises(InvalidArgument, match="fewer than two classes"):
        SemiSupervisedVAE().fit(PIXELS, [None] * 239 + [1])
    with pytest.raises(InvalidArgument, match="a node 'z'"):
        VAE(prior=mk.BayesianNetwork()).fit(PIXELS)
    assert not hasattr(vae, "predict")  # there are no clusters to tell apart
    with pytest.raises(InvalidArgument, match="three axes"):
        SequenceVAE().fit(np.zeros((2, 3, 4, 5)))
    with pytest.raises(InvalidArgument, match="fixed="):
        mk.Parameter(mk.networks.mlp(2, 2), fixed=True)
