import jax
import jax.numpy as jnp
import numpy as np
from scipy import stats

from markovia.learning.control.deep_q import arrays_of, with_arrays
from markovia.learning.control.soft_actor_critic import SoftActorCriticLoss, said, squashed
from markovia.networks import mlp
from markovia.optimise.row_batches import Batch

KEY = jax.random.PRNGKey(0)
RNG = np.random.default_rng(0)
INPUTS = RNG.standard_normal((50, 2)).astype(np.float32)
POLICY = mlp(2, 2, hidden=4, layers=1, activation="tanh").build(1)
CRITICS = [mlp(3, 1, hidden=4, layers=1).build(seed) for seed in (2, 3)]
SLOW = [mlp(3, 1, hidden=4, layers=1).build(seed) for seed in (4, 5)]
ROWS = {
    "input": INPUTS, "after": INPUTS[::-1], "action": RNG.uniform(1, 3, (50, 1)).astype(np.float32),
    "reward": RNG.standard_normal(50).astype(np.float32), "going": (RNG.random(50) < 0.7).astype(np.float32),
    "unit": np.float32(1.0),
}  # fmt: skip
"""Transitions with actions from 1 to 3."""


def parts_and_slopes(entropy, log_temperature=-0.5):
    parameters = {
        "policy": POLICY, "first": CRITICS[0], "second": CRITICS[1], "log_temperature": jnp.float32(log_temperature),
    }  # fmt: skip
    loss = SoftActorCriticLoss(np.array([2.0]), np.array([1.0]), 0.9, 0.25, entropy)
    memory = {"move": np.int32(0), "slow": [arrays_of(c) for c in SLOW]}
    batch = Batch(jax.tree.map(lambda x: np.asarray(x)[None], ROWS), None)
    own = {n: arrays_of(p) for n, p in parameters.items()}

    def value(arrays):
        whole = {n: with_arrays(p, arrays[n]) for n, p in parameters.items()}
        return loss(whole, memory, KEY, batch)

    (total, after), slope = jax.jit(jax.value_and_grad(value, has_aux=True))(own)
    return float(total), after, slope


def test_squashed_actions_have_the_density_of_a_normal_number_through_tanh():
    actions, logs = squashed(POLICY, INPUTS, KEY)
    said_of = np.asarray(jax.vmap(POLICY)(INPUTS), np.float64)
    raw = np.arctanh(np.asarray(actions, np.float64)[:, 0])
    expected = stats.norm.logpdf(raw, said_of[:, 0], np.exp(said_of[:, 1])) - np.log(1 - np.tanh(raw) ** 2)
    assert np.allclose(logs, expected, atol=1e-3)


def test_the_temperature_rises_where_the_entropy_is_too_low():
    log_probs = squashed(POLICY, INPUTS, jax.random.split(KEY)[1])[1]
    missing = float(jnp.mean(log_probs))
    for entropy in (-1.0, 3.0):
        slope = parts_and_slopes(entropy)[2]["log_temperature"]
        assert np.isclose(float(slope), -(missing + entropy), atol=1e-5)


def test_critics_learn_rewards_plus_what_the_smaller_slow_copy_says_less_the_price_of_the_action():
    ahead, _ = jax.random.split(KEY)
    after, log_after = squashed(POLICY, ROWS["after"], ahead)
    slow = np.minimum(*(np.asarray(said(c, ROWS["after"], after)) for c in SLOW))
    target = ROWS["reward"] + 0.9 * ROWS["going"] * (slow - np.exp(-0.5) * np.asarray(log_after))
    slopes = parts_and_slopes(-1.0)[2]
    for name, critic in zip(("first", "second"), CRITICS, strict=True):
        # the last bias moves what a critic says of every row by as much
        error = np.asarray(said(critic, ROWS["input"], ROWS["action"] - 2.0)) - target
        assert np.allclose(slopes[name].layers[1].bias, error.mean(), atol=1e-4)


def test_slow_copies_take_on_their_share():
    after = parts_and_slopes(-1.0)[1]["slow"]
    for moved, slow, online in zip(after, SLOW, CRITICS, strict=True):
        expected = 0.75 * slow.layers[0].weight + 0.25 * online.layers[0].weight
        assert np.allclose(moved.layers[0].weight, expected, atol=1e-6)
