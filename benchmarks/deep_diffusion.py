"""A diffusion on two moons: time of an epoch against the same training by hand, and how good draws and conditionals are.

Run `python benchmarks/deep_diffusion.py [epochs]`. Epochs of both programs alternate in one run, after each is compiled.
"""

import sys
from time import perf_counter

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from scipy.spatial.distance import cdist

import markovia as mk
from markovia.factors.networks.diffusion_laws import noise_levels

STEPS, BATCH, ROWS = 100, 128, 2000
PLACES = (-0.5, 0.25, 0.5, 1.0, 1.5)


def moons(n: int, seed: int) -> np.ndarray:
    """Return rows of two moons."""
    rng = np.random.default_rng(seed)
    angle, upper = rng.uniform(0, np.pi, n), rng.random(n) < 0.5
    rows = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.where(upper[:, None], rows, [1.0, 0.5] - rows) + rng.normal(0, 0.05, (n, 2))


def energy_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the energy distance of two samples."""
    return float(2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean())


def by_hand(rows: np.ndarray, epochs: int):
    """Return a function that trains the same network by the same loss for some epochs, in JAX and Optax."""
    at = noise_levels("cosine", STEPS)
    a, s = jnp.asarray(at.signal, jnp.float32), jnp.asarray(at.noise, jnp.float32)
    u = jnp.asarray((rows - rows.mean(0)) / rows.std(0), jnp.float32)
    recipe = mk.networks.denoiser(2, hidden=128, layers=3)
    net, static = eqx.partition(recipe.build(0), eqx.is_inexact_array)
    steps = -(-len(rows) // BATCH)
    rule = optax.adam(optax.cosine_decay_schedule(5e-3, epochs * steps, 0.01))

    def loss(net, key):
        keys = jax.random.split(key, 3)
        x0 = u[jax.random.randint(keys[0], (BATCH,), 0, len(u))]
        i = jax.random.randint(keys[1], (BATCH,), 1, STEPS + 1)
        noise = jax.random.normal(keys[2], x0.shape)
        x = a[i][:, None] * x0 + s[i][:, None] * noise
        said = jax.vmap(eqx.combine(net, static))(x, i / STEPS)
        return jnp.mean((noise - (s[i][:, None] * x + a[i][:, None] * said)) ** 2)

    def step(carry, key):
        net, state, mean = carry
        change, state = rule.update(jax.grad(loss)(net, key), state)
        net = optax.apply_updates(net, change)
        return (net, state, jax.tree.map(lambda m, p: m + 1e-3 * (p - m), mean, net)), None

    @jax.jit
    def train(carry, key):
        return jax.lax.scan(step, carry, jax.random.split(key, epochs * steps))[0]

    begin = (net, rule.init(net), net)
    jax.block_until_ready(train(begin, jax.random.PRNGKey(0)))
    return lambda: jax.block_until_ready(train(begin, jax.random.PRNGKey(1)))


def epoch_times(rows: np.ndarray) -> None:
    """Print seconds an epoch of both, interleaved."""
    epochs = 20
    hand, ours, learned = by_hand(rows, epochs), [], []
    settings = {"steps": STEPS, "random_state": 0, "epochs": epochs, "progress": False}
    theirs = []
    for turn in range(6):
        for variance, times in (("fixed small", ours), ("learned", learned)):
            fit = mk.deep.Diffusion(variance=variance, **settings).fit(rows)
            if turn:
                times.append(fit.network_.fit_.details["training"].seconds / epochs)
        start = perf_counter()
        hand()
        theirs.append((perf_counter() - start) / epochs)
    hand_time = np.min(theirs)
    print(f"epoch of {ROWS} rows: by hand {hand_time:.4f} s, markovia {np.min(ours):.4f} s "
          f"({np.min(ours) / hand_time:.2f} times), with a learned variance {np.min(learned):.4f} s")  # fmt: skip


def quality(rows: np.ndarray, epochs: int) -> None:
    """Print the energy distance of draws, and conditional standard deviations by twisted SMC, against the truth."""
    fresh = moons(400_000, 1)
    model = mk.deep.Diffusion(STEPS, epochs=epochs, random_state=0).fit(rows)
    drawn = model.sample(ROWS, seed=0)
    floor = np.mean([energy_distance(fresh[k : k + ROWS], fresh[-k - ROWS :][:ROWS]) for k in (2000, 8000)])
    print(f"energy distance {energy_distance(drawn, fresh[:ROWS]):.5f}, floor {floor:.5f}")
    known = np.array([[place, np.nan] for place in PLACES])
    filled = model.impute(known, draws=2000, particles=8000)[..., 1]
    for place, column in zip(PLACES, filled.T, strict=True):
        near = fresh[np.abs(fresh[:, 0] - place) < 0.01, 1]
        print(
            f"second given {place:5}: sd {column.std():.4f}, true {near.std():.4f} ({column.std() / near.std():.3f})"
        )


if __name__ == "__main__":
    data = moons(ROWS, 0)
    epoch_times(data)
    quality(data, int(sys.argv[1]) if len(sys.argv) > 1 else 1500)
