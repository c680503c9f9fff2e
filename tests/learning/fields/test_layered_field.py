"""Layered Boltzmann machines against brute force, quadrature and finite differences."""

from itertools import pairwise, product

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp

from markovia.errors import TooLarge
from markovia.learning.fields.block_gibbs import (
    annealed_log_weights,
    estimate,
    sweep,
    tempered_sweep,
)
from markovia.learning.fields.layered_field import LayeredField
from markovia.learning.fields.layered_training import NegativePhase, given_rows, phase_loss
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.optimise.row_batches import Batch
from markovia.runtime.double_precision import x64

RBM = LayeredField((UnitLayer("binary", 4), UnitLayer("binary", 3)))
DBM = LayeredField((UnitLayer("binary", 3), UnitLayer("binary", 3), UnitLayer("binary", 2)))
FOUR = LayeredField(tuple(UnitLayer("binary", 2) for _ in range(4)))
SPINS = LayeredField((UnitLayer("spin", 3), UnitLayer("spin", 2)))
STATES = LayeredField((UnitLayer("softmax", 6, (2, 3)), UnitLayer("softmax", 3, (3,))))


@pytest.fixture(autouse=True)
def in_64_bits():
    with x64():
        yield


def parameters_of(field, seed=0, scale=1.0):
    rng = np.random.default_rng(seed)
    begun = field.begun(np.zeros(field.layers[0].size))
    return {n: jnp.asarray(scale * rng.normal(size=np.shape(v))) for n, v in begun.items()}


def unit_states(layer):
    """All vectors of a layer, written out by hand."""
    if layer.kind == "softmax":
        width = max(layer.states)
        choices = [[np.eye(width)[s] for s in range(n)] for n in layer.states]
        return np.array([np.concatenate(c) for c in product(*choices)])
    return np.array(list(product([0.0, 1.0] if layer.kind == "binary" else [-1.0, 1.0], repeat=layer.size)))


def by_brute_force(field, parameters):
    """Return all configurations of all layers, and their log weights."""
    p = {n: np.asarray(v) for n, v in parameters.items()}
    whole = [[*c] for c in product(*(unit_states(layer) for layer in field.layers))]
    logs = [
        sum(y @ p[f"bias{k}"] for k, y in enumerate(c))
        + sum(a @ p[f"weight{k}"] @ b for k, (a, b) in enumerate(pairwise(c)))
        for c in whole
    ]
    return whole, np.array(logs)


def log_likelihood(field, parameters, rows):
    """Return the mean exact log likelihood of visible rows, by brute force."""
    whole, logs = by_brute_force(field, parameters)
    seen = np.array([c[0] for c in whole])
    each = [logsumexp(logs[(seen == row).all(axis=1)]) for row in np.asarray(rows)]
    return np.mean(each) - logsumexp(logs)


@pytest.mark.parametrize("field", [RBM, DBM, FOUR, SPINS, STATES])
def test_sums_over_states_are_those_of_brute_force(field):
    p = parameters_of(field)
    given = field.given(p)
    rows = jnp.asarray(unit_states(field.layers[0])[:5])
    _, logs = by_brute_force(field, p)
    assert np.isclose(field.log_sum(p, given)[0], logsumexp(logs))
    exact = field.log_sum(p, given, rows) - field.log_sum(p, given)
    assert np.isclose(exact.mean(), log_likelihood(field, p, rows))
    # the bound of mean field is below, and the same with one hidden layer
    bound = field.bound(p, given, rows) - field.log_sum(p, given)
    assert (bound <= exact + 1e-9).all()
    assert np.allclose(bound, exact) == (len(field.layers) == 2)
    if len(field.layers) > 2:
        assert (exact - bound).max() < 1.0


@pytest.mark.parametrize("field", [RBM, DBM, pytest.param(SPINS, marks=pytest.mark.slow), STATES])
def test_the_exact_gradient_is_the_slope_of_the_log_likelihood(field):
    p = parameters_of(field, 1)
    rows = jnp.asarray(unit_states(field.layers[0])[[0, 2, 5]])
    weight = np.array([1.0, 1.0, 0.0])  # the last row only fills the batch up
    loss = phase_loss(field, NegativePhase("exact"))
    value, slope = jax.value_and_grad(
        lambda p: loss(p, None, None, Batch({"x": rows}, jnp.asarray(weight)))[0]
    )(p)
    assert np.isclose(-value, log_likelihood(field, p, rows[:2]))
    rng = np.random.default_rng(0)
    for name, at in [(n, tuple(rng.integers(s) for s in v.shape)) for n, v in p.items() for _ in range(2)]:
        up, down = ({**p, name: p[name].at[at].add(e)} for e in (1e-5, -1e-5))
        found = (log_likelihood(field, up, rows[:2]) - log_likelihood(field, down, rows[:2])) / 2e-5
        assert np.isclose(-slope[name][at], found, atol=1e-8), name


def exact_chains(field, p, count, seed=0):
    """Return even layers drawn from the model by brute force."""
    whole, logs = by_brute_force(field, p)
    at = np.random.default_rng(seed).choice(len(logs), count, p=np.exp(logs - logsumexp(logs)))
    return {k: jnp.asarray(np.array([whole[i][k] for i in at])) for k in range(0, len(field.layers), 2)}


@pytest.mark.slow
@pytest.mark.parametrize(("field", "method"), [(RBM, "pcd"), (RBM, "parallel-tempering"), (DBM, "pcd")])
def test_chains_of_the_model_give_the_gradient_of_the_likelihood(field, method):
    p = parameters_of(field, 2, 0.7)
    rows = jnp.asarray(unit_states(field.layers[0])[[1, 3, 6]])
    batch = Batch({"x": rows}, jnp.ones(3))
    chains = exact_chains(field, p, 40_000)
    if method == "parallel-tempering":  # only those at power 1 are the model's
        chains = {k: jnp.stack([v] * 3) for k, v in chains.items()}
    loss = phase_loss(field, NegativePhase(method, temperatures=3))
    key = jax.random.PRNGKey(0)
    found = jax.jit(jax.grad(lambda p: loss(p, chains, key, batch)[0]))(p)
    if len(field.layers) == 2:
        wanted = jax.grad(lambda p: phase_loss(field, NegativePhase("exact"))(p, None, None, batch)[0])(p)
    else:  # mean field's own gradient, by differences of its bound

        def bound(p):
            given = field.given(p)
            return float((field.log_sum(p, given) - field.bound(p, given, rows)).mean())

        wanted = {
            n: np.array([
                (bound({**p, n: v.at[i].add(1e-5)}) - bound({**p, n: v.at[i].add(-1e-5)})) / 2e-5
                for i in np.ndindex(v.shape)
            ]).reshape(v.shape)
            for n, v in p.items() if n in ("bias0", "bias2")
        }  # fmt: skip
    # exchanges mix in chains that are not the model's, so tempering is only close
    room = 0.02 if method == "pcd" else 0.25
    assert all(np.abs(found[n] - wanted[n]).max() < room for n in wanted)


@pytest.mark.slow
def test_contrastive_divergence_and_mean_field_begin_at_the_rows():
    p, rows = parameters_of(RBM, 3, 0.01), unit_states(RBM.layers[0])
    chosen = np.random.default_rng(0).integers(0, 8, 20_000)
    batch = Batch({"x": jnp.asarray(rows[chosen])}, jnp.ones(len(chosen)))
    p["bias0"] = jnp.asarray([3.0, -3.0, 0.0, 0.0])

    def slope(method, steps=1):
        loss = phase_loss(RBM, NegativePhase(method, steps))
        return jax.grad(lambda p: loss(p, None, jax.random.PRNGKey(0), batch)[0])(p)["bias0"]

    # with almost no weights one sweep is a draw of the model: the slope is that of the likelihood
    exact = jax.grad(lambda p: phase_loss(RBM, NegativePhase("exact"))(p, None, None, batch)[0])(p)["bias0"]
    assert np.abs(slope("cd") - exact).max() < 0.02
    assert np.abs(slope("mean-field", 3) - exact).max() < 0.02
    assert np.abs(exact).max() > 0.3


@pytest.mark.slow
@pytest.mark.parametrize("field", [RBM, DBM, STATES])
def test_a_sweep_leaves_the_model_as_it_is(field):
    p = parameters_of(field, 4)
    whole, logs = by_brute_force(field, p)
    names = [
        "".join(map(str, np.concatenate([c[k] for k in range(0, len(c), 2)]).astype(int))) for c in whole
    ]
    shares = {}
    for name, share in zip(names, np.exp(logs - logsumexp(logs)), strict=True):
        shares[name] = shares.get(name, 0.0) + share
    n = 100_000
    even = exact_chains(field, p, n)
    even = jax.jit(lambda k, s: sweep(field, p, field.given(p), k, s))(jax.random.PRNGKey(3), even)
    found = np.concatenate([np.asarray(even[k]) for k in sorted(even)], axis=1).astype(int)
    rows, counts = np.unique(found, axis=0, return_counts=True)
    seen = {"".join(map(str, row)): c for row, c in zip(rows, counts, strict=True)}
    chi = sum((seen.get(k, 0) - n * s) ** 2 / (n * s) for k, s in shares.items())
    freedom = len(shares) - 1
    assert set(seen) <= set(shares)
    assert chi < freedom + 5 * np.sqrt(2 * freedom)


@pytest.mark.slow
def test_exchanges_leave_each_temperature_as_it_is():
    p, powers, n = parameters_of(RBM, 5, 1.5), np.array([0.0, 0.5, 1.0]), 50_000
    cooled = [{k: v * (b if k.startswith("w") else 1.0) for k, v in p.items()} for b in powers]
    even = {0: jnp.stack([exact_chains(RBM, q, n, seed)[0] for seed, q in enumerate(cooled)])}
    moved = jax.jit(lambda k, s: tempered_sweep(RBM, p, RBM.given(p), powers, k, s))(
        jax.random.PRNGKey(0), even
    )[0]
    for power, q in enumerate(cooled):
        whole, logs = by_brute_force(RBM, q)
        mean = np.exp(logs - logsumexp(logs)) @ np.array([np.outer(c[0], c[0]).ravel() for c in whole])
        drawn = np.asarray(moved[power])
        found = (drawn[:, :, None] * drawn[:, None, :]).reshape(n, -1).mean(axis=0)
        assert np.abs(found - mean).max() < 5 * 0.5 / np.sqrt(n)


@pytest.mark.slow
@pytest.mark.parametrize("field", [RBM, DBM, STATES])
def test_annealing_agrees_with_the_exact_sum(field):
    p = parameters_of(field, 6)
    given = field.given(p)
    base = given._replace(biases=(0.0 * given.biases[0] + 0.3, *given.biases[1:]))  # another start
    logs = jax.jit(lambda k: annealed_log_weights(field, p, given, base, k, 200, np.linspace(0, 1, 200)))
    found = estimate(np.asarray(logs(jax.random.PRNGKey(0)))[0])
    assert abs(found.value - field.log_sum(p, given)[0]) < 5 * found.error
    assert found.error < 0.1


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["binary", "spin", "gaussian", "relu"])
def test_units_are_the_families_they_say(kind):
    """Normaliser, mean and draws of single units against sums and quadrature."""
    layer, shape = UnitLayer(kind, 1), jnp.asarray([0.4]) if kind == "gaussian" else None
    for x in (-6.0, 1.3):
        at = jnp.full((1, 1), x)

        def weight(y, x=x):
            base = layer.log_base(jnp.full((1, 1), y), shape)[0]
            return float(np.exp(x * y + base))

        if kind in ("binary", "spin"):
            states = [0.0, 1.0] if kind == "binary" else [-1.0, 1.0]
            total, first = sum(map(weight, states)), sum(y * weight(y) for y in states)
        else:
            low, high = (0.0 if kind == "relu" else -30.0), 30.0
            total = quad(weight, low, high, limit=200)[0]
            first = quad(lambda y, w=weight: y * w(y), low, high, limit=200)[0]
        assert np.isclose(layer.log_normaliser(at, shape)[0], np.log(total))
        assert np.isclose(layer.mean(at, shape)[0, 0], first / total)
        drawn = np.asarray(layer.draw(jax.random.PRNGKey(1), jnp.full((40_000, 1), x), shape))
        assert abs(drawn.mean() - first / total) < 5 * drawn.std() / 200 + 1e-9
        assert np.isclose(
            layer.log_prob(drawn[:3], at, shape), np.log([weight(y) for y in drawn[:3, 0]]) - np.log(total)
        ).all()


@pytest.mark.slow
def test_texts_are_counted_words():
    """All texts of three words, one after the other."""
    field = LayeredField((UnitLayer("replicated softmax", 3), UnitLayer("binary", 2)))
    p = {n: np.asarray(v) for n, v in parameters_of(field, 7).items()}
    hidden = np.array(list(product([0.0, 1.0], repeat=2)))
    shares = {}
    for words in product(range(3), repeat=3):
        counts = np.bincount(words, minlength=3).astype(float)
        logs = [counts @ p["bias0"] + counts @ p["weight0"] @ h + h @ p["bias1"] for h in hidden]
        shares[tuple(counts)] = shares.get(tuple(counts), 0.0) + np.exp(logsumexp(logs))
    rows = jnp.asarray(list(shares))
    given = given_rows(field, p, rows)
    assert np.allclose(field.log_sum(p, given, rows), np.log(list(shares.values())))
    assert np.allclose(field.log_sum(p, given), np.log(sum(shares.values())))
    drawn = np.asarray(
        field.layers[0].draw(jax.random.PRNGKey(0), jnp.tile(p["bias0"], (20_000, 1)), jnp.full(20_000, 3.0))
    )
    assert (drawn.sum(axis=1) == 3).all()
    assert np.abs(drawn.mean(axis=0) - 3 * jax.nn.softmax(p["bias0"])).max() < 0.04


def test_filters_are_a_matrix_with_equal_entries():
    field = LayeredField((UnitLayer("binary", 12), UnitLayer("binary", 12)), image=(4, 3, 1), filter=2)
    p = parameters_of(field, 8)
    assert p["weight0"].shape == (2, 2, 1, 2)
    v, h = jnp.asarray(np.random.default_rng(0).normal(size=(2, 5, 12)))
    up = np.asarray(field.up(p, 0, v)).reshape(5, 3, 2, 2)
    image = np.asarray(v).reshape(5, 4, 3)
    wanted = np.einsum("nij,ijk->nk", image[:, 1:3, 1:3], np.asarray(p["weight0"])[:, :, 0])
    assert np.allclose(up[:, 1, 1], wanted)
    assert np.allclose(jnp.sum(field.up(p, 0, v) * h), jnp.sum(v * field.down(p, 0, h)))


@pytest.mark.slow
def test_contexts_move_biases():
    field = LayeredField(RBM.layers, context=2)
    p = parameters_of(field, 9)
    context = jnp.asarray([[1.0, -2.0], [0.5, 0.3]])
    found = field.log_sum(p, field.given(p, context))
    for row, log_z in zip(context, found, strict=True):
        moved = {n: v for n, v in p.items() if not n.startswith("context")}
        for k in (0, 1):
            moved[f"bias{k}"] = p[f"bias{k}"] + row @ p[f"context{k}"]
        assert np.isclose(log_z, logsumexp(by_brute_force(RBM, moved)[1]))


def test_too_many_states_are_refused():
    wide = LayeredField((UnitLayer("binary", 30), UnitLayer("binary", 30)))
    with pytest.raises(TooLarge, match="ais"):
        wide.listed_parity()
    assert LayeredField((UnitLayer("binary", 30), UnitLayer("binary", 5))).listed_parity() == 1
    assert wide.listed_parity(clamped=True) == 0
