"""Boltzmann machines and deep belief networks as estimators: what they say is what their networks say."""

import pickle
from itertools import product

import jax
import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import norm
from sklearn.exceptions import NotFittedError
from sklearn.utils.estimator_checks import check_estimator

import markovia as mk
from markovia.errors import ApproximateWarning, InvalidArgument, TooLarge, UnsupportedModel
from markovia.learning.fields.belief_layers import BeliefLayers, up_down_loss
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

RNG = np.random.default_rng(0)
BITS = np.array(list(product([0.0, 1.0], repeat=4)))
STRIPES = np.array([[1, 1, 0, 0], [0, 0, 1, 1]] * 20, float)


def made(model, X, y=None, seed=0, scale=1.0):
    """Return a machine with random parameters in place of learned ones."""
    model._begun(X, y)
    rng = np.random.default_rng(seed)
    model.parameters_ = {n: scale * rng.normal(size=np.shape(v)) for n, v in model.parameters_.items()}
    return model


def with_ways_up(dbn, seed=1):
    """Give a deep belief network random ways up as well."""
    rng = np.random.default_rng(seed)
    sizes = [dbn.n_features_in_, *dbn.layers]
    for k in range(len(dbn.layers) - 1):
        dbn.parameters_ |= {
            f"up{k}": rng.normal(size=(sizes[k], sizes[k + 1])),
            f"up_bias{k + 1}": rng.normal(size=sizes[k + 1]),
        }
    return dbn


def evidence(network, row, head="v"):
    return network.log_evidence({f"{head}{i}": int(s) for i, s in enumerate(row)})


@pytest.fixture(scope="module")
def rbm():
    return made(mk.deep.RBM(3), BITS)


def test_a_score_is_the_evidence_of_the_network(rbm):
    mn = rbm.network()
    scores = rbm.score_samples(BITS)
    assert np.isclose(logsumexp(scores), 0.0)
    assert np.isclose(rbm.log_partition().value, mn.log_partition())
    assert np.allclose(scores[[0, 5, 9]], [evidence(mn, BITS[i]) for i in (0, 5, 9)])
    assert rbm.score(BITS) == pytest.approx(scores.mean())


def test_hidden_means_and_back(rbm):
    p = rbm.parameters_
    hidden = expit(BITS @ p["weight0"] + p["bias1"])
    assert np.allclose(rbm.transform(BITS), hidden)
    query = rbm.network().query("h1", given={f"v{i}": int(s) for i, s in enumerate(BITS[5])})
    assert np.isclose(query[1], hidden[5, 1])
    assert np.allclose(rbm.inverse_transform(hidden), expit(hidden @ p["weight0"].T + p["bias0"]))
    with pytest.raises(InvalidArgument, match="3 columns"):
        rbm.inverse_transform(BITS)


def test_annealing_agrees_with_the_exact_sum_and_with_the_engine_for_tables(rbm):
    exact, ais = rbm.log_partition("exact"), rbm.log_partition("ais", temperatures=300)
    assert (exact.method, ais.method) == ("exact", "ais")
    assert abs(exact.value - ais.value) < 5 * ais.error < 0.2
    engine = mk.engines.AnnealedImportance(particles=300, temperatures=200)
    assert abs(rbm.network().log_partition(engine=engine) - ais.value) < 0.15
    with pytest.raises(InvalidArgument, match="method="):
        rbm.log_partition("guess")


def test_draws_have_the_model_s_distribution_and_follow_the_seed(rbm):
    drawn = rbm.sample(20_000, seed=1)
    counts = np.bincount((drawn @ [8, 4, 2, 1]).astype(int), minlength=16)
    expected = 20_000 * np.exp(rbm.score_samples(BITS))
    assert ((counts - expected) ** 2 / expected).sum() < 15 + 5 * np.sqrt(30)
    assert np.array_equal(rbm.sample(50, seed=3), rbm.sample(50, seed=3))
    assert not np.array_equal(rbm.sample(50, seed=3), rbm.sample(50, seed=4))


def test_an_rbm_is_an_infinite_belief_net_with_tied_weights(rbm):
    """A sigmoid layer with the same weights above it, turned round, changes nothing."""
    p = rbm.parameters_
    dbn = made(mk.deep.DBN((3, 4)), BITS)
    dbn.parameters_ = {
        "bias0": p["bias0"], "weight0": p["weight0"], "bias1": p["bias1"], "weight1": p["weight0"].T, "bias2": p["bias0"],
    }  # fmt: skip
    assert np.allclose(dbn.score_samples(BITS), rbm.score_samples(BITS))
    deeper = made(mk.deep.DBN((3, 4, 3)), BITS)
    deeper.parameters_ = {**dbn.parameters_, "weight2": p["weight0"], "bias3": p["bias1"]}
    assert np.allclose(deeper.score_samples(BITS), rbm.score_samples(BITS))


def test_a_softmax_hidden_layer_is_a_mixture():
    model = made(mk.deep.RBM(3, hidden="softmax"), BITS)
    p = model.parameters_
    weights = p["bias1"] + np.logaddexp(0, p["bias0"][:, None] + p["weight0"]).sum(axis=0)
    rates = expit(p["bias0"][:, None] + p["weight0"])
    logs = BITS @ np.log(rates) + (1 - BITS) @ np.log1p(-rates) + weights - logsumexp(weights)
    assert np.allclose(model.score_samples(BITS), logsumexp(logs, axis=1))
    assert np.allclose(model.transform(BITS).sum(axis=1), 1.0)
    assert model.network().variables[-1] == "h0"


def test_gaussian_rows_are_a_mixture_of_normals_in_their_own_units():
    X = np.random.default_rng(1).normal([5.0, -2.0], [3.0, 0.1], (50, 2))
    model = made(mk.deep.RBM(2, visible="gaussian"), X)
    p = model.parameters_
    spread = np.exp(-0.5 * p["log_precision"])
    logs, weights = [], []
    for h in product([0.0, 1.0], repeat=2):
        x = p["bias0"] + p["weight0"] @ h
        weights.append(p["bias1"] @ h + (0.5 * x * x * spread**2 + np.log(spread)).sum())
        mean = model.center_ + model.scale_ * x * spread**2
        logs.append(norm(mean, spread * model.scale_).logpdf(X).sum(axis=1))
    wanted = logsumexp(np.array(logs).T + weights - logsumexp(weights), axis=1)
    assert np.allclose(model.score_samples(X), wanted)
    for unit in (1e-9, 1e9):
        other = made(mk.deep.RBM(2, visible="gaussian"), X * unit)
        assert np.allclose(other.score_samples(X * unit) + 2 * np.log(unit), wanted)
    with pytest.raises(UnsupportedModel, match="no states"):
        model.network()
    constant = np.column_stack([X, np.full(50, 7.0)])
    assert np.isfinite(made(mk.deep.RBM(2, visible="gaussian"), constant).score_samples(constant)).all()


@pytest.mark.slow
def test_softmax_and_spin_columns_are_tables():
    X = np.array([[0, 2], [1, 0], [1, 1]], float)
    model = made(mk.deep.RBM(2, visible="softmax"), X)
    rows = np.array(list(product(range(2), range(3))), float)
    mn = model.network()
    assert np.isclose(logsumexp(model.score_samples(rows)), 0.0)
    assert np.isclose(model.score_samples(X)[0], evidence(mn, X[0]))
    assert set(map(tuple, model.sample(200, seed=0))) <= set(map(tuple, rows))
    with pytest.raises(InvalidArgument, match=r"row 0 has 3 in column 1"):
        model.score_samples([[0, 3]])
    spins = made(mk.deep.RBM(2, visible="spin", hidden="spin"), 2 * BITS - 1)
    p = spins.parameters_
    cosh = (
        np.log(2 * np.cosh(p["bias1"] + (2 * BITS - 1) @ p["weight0"])).sum(axis=1)
        + (2 * BITS - 1) @ p["bias0"]
    )
    assert np.allclose(spins.score_samples(2 * BITS - 1), cosh - logsumexp(cosh))
    assert np.isclose(spins.network().log_partition(), logsumexp(cosh))


@pytest.mark.slow
def test_texts_are_words_with_one_table():
    X = np.array([[2, 1, 0], [0, 1, 2], [1, 0, 1]], float)
    model = made(mk.deep.RBM(2, visible="replicated softmax"), X)
    mn = model.network(of=3)
    each = evidence(mn, [0, 0, 1])  # a text; three orders have these counts
    assert np.isclose(model.score_samples(X)[0], each + np.log(3))
    assert np.isclose(model.log_partition(of=3).value, mn.log_partition())
    assert abs(model.log_partition("ais", of=3).value - mn.log_partition()) < 0.1
    assert set(model.sample(20, seed=0).sum(axis=1)) <= {2.0, 3.0}


@pytest.mark.slow
def test_a_deep_machine_says_what_its_network_says():
    dbm = made(mk.deep.DBM((3, 2)), BITS)
    mn = dbm.network()
    scores = dbm.score_samples(BITS)
    assert np.isclose(logsumexp(scores), 0.0)
    assert np.isclose(scores[6], evidence(mn, BITS[6]))
    assert abs(dbm.log_partition("ais").value - mn.log_partition()) < 0.2
    assert dbm.transform(BITS).shape == (16, 2)
    drawn = dbm.sample(20_000, seed=0)
    assert np.abs(drawn.mean(axis=0) - np.exp(scores) @ BITS).max() < 0.02


@pytest.mark.slow
def test_a_deep_belief_network_is_a_chain_graph():
    dbn = made(mk.deep.DBN((2, 3, 2)), BITS, seed=3)
    scores, model = dbn.score_samples(BITS), dbn.network()
    assert np.isclose(logsumexp(scores), 0.0)
    mn = model.to_network()
    assert np.allclose([scores[i] for i in (0, 7)], [evidence(mn, BITS[i]) for i in (0, 7)])
    assert [len(c.nodes) for c in model.components] == [5, 1, 1, 1, 1, 1, 1]
    drawn = dbn.sample(20_000, seed=0)
    assert np.abs(drawn.mean(axis=0) - np.exp(scores) @ BITS).max() < 0.02
    with pytest.raises(TooLarge, match="table"):
        made(mk.deep.DBN((30, 5)), BITS).network()


@pytest.mark.slow
def test_the_gradient_of_a_deep_belief_network():
    """Against differences of the exact likelihood; and wake's, on all hidden states weighed by their posterior."""
    net = BeliefLayers(tuple(UnitLayer("binary", n) for n in (4, 2, 2, 2)))
    dbn = with_ways_up(made(mk.deep.DBN((2, 2, 2)), BITS, seed=5))
    rows = BITS[[1, 6]]
    with x64():
        p = {n: np.asarray(v) for n, v in dbn.parameters_.items()}
        likelihood = jax.jit(net.log_likelihood)
        slope = jax.jit(jax.grad(lambda p: net.log_likelihood(p, rows).mean()))(p)
        for name in ("weight0", "bias0", "weight1", "bias1", "weight2", "bias3"):
            at = (1,) * p[name].ndim
            shift = np.zeros_like(p[name])
            shift[at] = 1e-5
            up, down = ({**p, name: p[name] + e * shift} for e in (1, -1))
            by_hand = (likelihood(up, rows).mean() - likelihood(down, rows).mean()) / 2e-5
            assert np.isclose(slope[name][at], by_hand, atol=1e-8), name
        # proposals weighed by the model average to the likelihood
        many = jax.jit(lambda k: net.log_weights(p, k, rows, 20_000))(jax.random.PRNGKey(0))
        log_z = net.top.log_sum(net.of_top(p), net.top.given(net.of_top(p)))
        assert np.allclose(many - log_z, likelihood(p, rows), atol=0.1)


def test_wake_learns_the_layers_below_and_sleep_the_way_up():
    net = BeliefLayers(tuple(UnitLayer("binary", n) for n in (4, 2, 2)))
    p = with_ways_up(made(mk.deep.DBN((2, 2)), BITS, seed=6)).parameters_
    p["up0"], p["up_bias1"] = 50.0 * np.eye(4, 2), np.array([-25.0, -25.0])  # the way up copies two pixels
    batch = Batch({"x": BITS.repeat(500, axis=0)}, np.ones(8000))
    slope = jax.jit(jax.grad(lambda p: up_down_loss(net, 1)(p, None, jax.random.PRNGKey(0), batch)[0]))(p)
    h = BITS[:, :2]
    error = BITS - expit(p["bias0"] + h @ p["weight0"].T)
    assert np.abs(slope["weight0"] + (error[:, :, None] * h[:, None, :]).mean(axis=0)).max() < 0.01
    assert np.abs(slope["bias0"] + error.mean(axis=0)).max() < 0.01
    # sleep: of the dreams, the units are predicted from pixels that say little, so it pulls the steep way up back
    assert slope["up0"][0, 0] > 0.0


def test_a_convolutional_machine_is_a_network_with_equal_weights():
    model = made(mk.deep.ConvolutionalRBM(1, image=(2, 2), filter=1, visible="binary"), BITS)
    mn = model.network()
    assert len(mn.edges) == 4  # each pixel and its unit
    assert np.isclose(model.score_samples(BITS)[5], evidence(mn, BITS[5]))
    wide = made(mk.deep.ConvolutionalRBM(2, image=(2, 3), filter=2), np.eye(6))
    assert np.isclose(wide.score_samples(np.eye(6))[2], evidence(wide.network(), np.eye(6)[2]))
    with pytest.raises(InvalidArgument, match="9 cells"):
        mk.deep.ConvolutionalRBM(1, image=(3, 3)).fit(BITS)


@pytest.mark.slow
def test_a_conditional_machine_has_a_network_for_each_row():
    X, y = np.random.default_rng(2).normal(size=(16, 2)), BITS
    model = made(mk.deep.ConditionalRBM(2), X, y)
    scores = model.score_samples(X[[3] * 16], y)
    mn = model.network(X[3])
    assert np.isclose(logsumexp(scores), 0.0)
    assert np.isclose(scores[5], evidence(mn, y[5]))
    assert np.isclose(model.log_partition(of=X[3]).value, mn.log_partition())
    drawn = model.sample(X[[3] * 5000], seed=0, steps=20)
    assert np.abs(drawn.mean(axis=0) - np.exp(scores) @ y).max() < 0.04
    with pytest.raises(InvalidArgument, match="takes X and y"):
        model.fit(X)


SLOW = pytest.mark.slow


@pytest.mark.slow
@pytest.mark.parametrize(
    "method",
    ["pcd", "exact", *(pytest.param(m, marks=SLOW) for m in ("cd", "parallel-tempering", "mean-field"))],
)
def test_every_method_learns(method):
    model = mk.deep.RBM(2, method=method, epochs=60, batch=10, learning_rate=0.05, random_state=0).fit(
        STRIPES
    )
    assert model.score(STRIPES) > (-2.2 if method == "mean-field" else -1.3)  # independent units: -2.77
    if method == "exact":
        assert np.isclose(-model.fit_.curve[-1], model.score(STRIPES), atol=0.05)
    if method == "pcd":
        again = mk.deep.RBM(2, method=method, epochs=60, batch=10, learning_rate=0.05, random_state=0).fit(
            STRIPES
        )
        assert np.array_equal(again.parameters_["weight0"], model.parameters_["weight0"])
        before = model._memory[0]
        model.partial_fit(STRIPES)
        assert not np.array_equal(before, model._memory[0])


@pytest.mark.slow
def test_deep_machines_learn():
    kinds = {"epochs": 40, "batch": 10, "learning_rate": 0.05, "random_state": 0}
    dbm = mk.deep.DBM((3, 2), pretrain=20, **kinds).fit(STRIPES)
    assert dbm.score(STRIPES) > -1.6
    plain = mk.deep.DBN((3, 2), fine_tune=None, **kinds).fit(STRIPES)
    coder = mk.deep.DBN((3, 2), fine_tune="autoencoder", **kinds).fit(STRIPES)

    def error(model):
        return np.mean((model.inverse_transform(model.transform(STRIPES)) - STRIPES) ** 2)

    assert error(coder) < error(plain)
    assert np.allclose(coder.score_samples(BITS), plain.score_samples(BITS))  # the network itself stays
    kept = dict(coder.parameters_)
    coder.partial_fit(STRIPES)  # goes on, and does not begin again
    assert all(np.array_equal(kept[n], v) for n, v in coder.parameters_.items())


@pytest.mark.slow
@pytest.mark.parametrize("how", ["likelihood", "wake-sleep"])
def test_fine_tuning_makes_rows_more_probable(how):
    kinds = {"epochs": 40, "batch": 10, "learning_rate": 0.05, "random_state": 0, "tune_epochs": 100}
    plain = mk.deep.DBN((3, 2), fine_tune=None, **kinds).fit(STRIPES)
    assert mk.deep.DBN((3, 2), fine_tune=how, **kinds).fit(STRIPES).score(STRIPES) > plain.score(STRIPES)


@pytest.mark.slow
def test_scores_that_are_no_exact_ones_say_so():
    X = RNG.integers(0, 2, (8, 25)).astype(float)
    wide = made(mk.deep.RBM(25), X, scale=0.1)
    with pytest.warns(ApproximateWarning, match="annealing"):
        found = wide.score_samples(X)
    narrow = made(mk.deep.RBM(25), X, scale=0.1)
    for model in (wide, narrow):
        for name in ("weight0", "bias1"):  # all but ten units are off on their own
            model.parameters_[name][..., 10:] = 0.0
    assert len(found) == 8
    wide._partition = None
    with pytest.warns(ApproximateWarning):
        estimated = wide.score_samples(X)
    small = made(mk.deep.RBM(10), X)
    small.parameters_ = {n: v[..., :10] if n != "bias0" else v for n, v in wide.parameters_.items()}
    assert np.allclose(estimated, small.score_samples(X), atol=0.1)
    deep = with_ways_up(made(mk.deep.DBN((25, 3)), X, scale=0.1))
    with pytest.warns(ApproximateWarning, match="draws of the way up"):
        assert np.isfinite(deep.score_samples(X)).all()


def test_files_and_bad_input(tmp_path, rbm):
    rbm.save(tmp_path / "rbm.json")
    assert np.array_equal(mk.load(tmp_path / "rbm.json").score_samples(BITS), rbm.score_samples(BITS))
    assert np.array_equal(pickle.loads(pickle.dumps(rbm)).transform(BITS), rbm.transform(BITS))
    with pytest.raises(NotFittedError):
        mk.deep.RBM(2).sample()
    with pytest.raises(NotFittedError):
        mk.deep.DBN((2,)).score_samples(BITS)
    with pytest.raises(InvalidArgument, match="binarize"):
        mk.deep.RBM(2).fit(BITS + 0.5)
    with pytest.raises(InvalidArgument, match="unbounded"):
        mk.deep.RBM(2, visible="gaussian", hidden="relu").fit(BITS)
    with pytest.raises(InvalidArgument, match="misses"):
        mk.deep.RBM(2).fit(np.where(BITS == 1, np.nan, BITS))
    assert np.array_equal(made(mk.deep.RBM(2, binarize=0.3), BITS * 0.5)._coded(BITS * 0.5, False), BITS)


@pytest.mark.slow
def test_scikit_learn_s_checks():
    check_estimator(mk.deep.RBM(2, visible="gaussian", epochs=2, random_state=0))
