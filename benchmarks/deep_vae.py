"""Variational autoencoders on scikit-learn's digits against one that is written by hand in JAX and Optax.

Run `python benchmarks/deep_vae.py [bounds|cold|labels] [seeds]`; without a word, all three. Both autoencoders are 64-128-8
with the same numbers of steps, batches and draws, interleaved in one process, compiled code aside (`bounds`): seconds of a
gradient and of an epoch, and the difference of the bounds on held-out rows over seeds. `cold` times the first fit of fresh
processes: by hand, with an empty cache of compiled code, and with a filled one. `labels` is the share of held-out digits
that are told right after 100 labels, beside logistic regression on these.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from time import perf_counter

import numpy as np
from sklearn.datasets import load_digits

LATENT, HIDDEN, BATCH, RATE, EPOCHS = 8, 128, 64, 1e-3, 60
FRESH = 10
"""The first split that settings of the semi-supervised autoencoder were not chosen with."""


def digits(seed: int = 0):
    """Return binary digits and their labels, shuffled: the first 1,347 to learn from."""
    data = load_digits()
    order = np.random.default_rng(seed).permutation(len(data.data))
    return (data.data[order] > 7.5).astype(float), data.target[order]


# -- by hand -------------------------------------------------------------------------------------------------------------


def by_hand(rows: int, centre):
    """Return functions: parameters of a seed, minus the bound of rows, and one epoch of Adam."""
    import jax
    import jax.numpy as jnp
    import optax

    optimiser = optax.adam(RATE)

    def layer(key, n, m):
        a, b = jax.random.split(key)
        most = 1 / np.sqrt(n)
        return jax.random.uniform(a, (n, m), minval=-most, maxval=most), jax.random.uniform(
            b, (m,), minval=-most, maxval=most
        )

    def begin(seed):
        sizes = [(64, HIDDEN), (HIDDEN, 2 * LATENT), (LATENT, HIDDEN), (HIDDEN, 64)]
        keys = jax.random.split(jax.random.PRNGKey(seed), 4)
        parameters = [layer(k, n, m) for k, (n, m) in zip(keys, sizes, strict=True)]
        return parameters, optimiser.init(parameters)

    def loss(parameters, key, x):
        (a, b), (c, d), (e, f), (g, h) = parameters
        loc, raw = jnp.split(jax.nn.silu((x - centre) @ a + b) @ c + d, 2, axis=-1)
        scale = jax.nn.softplus(raw) + 1e-5
        z = loc + scale * jax.random.normal(key, loc.shape)
        logits = jax.nn.silu(z @ e + f) @ g + h
        seen = jnp.sum(x * logits - jax.nn.softplus(logits), axis=-1)
        apart = 0.5 * jnp.sum(loc**2 + scale**2 - 1, axis=-1) - jnp.sum(jnp.log(scale), axis=-1)
        return -jnp.mean(seen - apart)

    def epoch(state, key, x):
        shuffle, own = jax.random.split(key)
        order = jax.random.permutation(shuffle, rows)[: rows - rows % BATCH].reshape(-1, BATCH)

        def step(state, at):
            parameters, moments, k = state
            value, slope = jax.value_and_grad(loss)(parameters, jax.random.fold_in(own, k), x[at])
            change, moments = optimiser.update(slope, moments)
            return (optax.apply_updates(parameters, change), moments, k + 1), value

        (parameters, moments, _), values = jax.lax.scan(step, (*state, 0), order)
        return (parameters, moments), values.mean()

    return begin, jax.jit(loss), jax.jit(epoch), jax.jit(jax.value_and_grad(loss))


def weights_of(network):
    """Return what the library learned in the form of the one by hand."""
    found = []
    for module in (network.parameters["encoder"].network, network.parameters["decoder"]):
        found += [(np.asarray(layer.weight).T, np.asarray(layer.bias)) for layer in module.layers]
    return found


def preset(seed: int, epochs: int = EPOCHS):
    """Return the library's autoencoder."""
    import markovia as mk

    how = {"epochs": epochs, "batch": BATCH, "learning_rate": RATE, "random_state": seed}
    return mk.deep.VAE(LATENT, hidden=HIDDEN, layers=1, **how)


def fit_by_hand(x, seed: int, epochs: int = EPOCHS, made=None):
    """Return parameters after some epochs, and seconds of each."""
    import jax
    import jax.numpy as jnp

    begin, _, epoch, _ = made or by_hand(len(x), x.mean(axis=0))
    state, data = begin(seed), jnp.asarray(x, jnp.float32)
    key, seconds = jax.random.PRNGKey(seed + 1000), []
    for i in range(epochs):
        start = perf_counter()
        state, value = epoch(state, jax.random.fold_in(key, i), data)
        value.block_until_ready()
        seconds.append(perf_counter() - start)
    return state[0], seconds


def bounds(seeds: int) -> dict:
    """Compare seconds and held-out bounds over seeds."""
    import jax
    import jax.numpy as jnp

    rows, _ = digits()
    train, test = rows[:1344], jnp.asarray(rows[1347:], jnp.float32)  # whole batches for both
    made = by_hand(len(train), train.mean(axis=0))
    _, loss, _, slope = made
    many = jax.jit(lambda p, keys: -jax.vmap(lambda k: loss(p, k, test))(keys).mean())
    keys = jax.random.split(jax.random.PRNGKey(7), 200)
    differences, ours, theirs = [], [], []
    fit_by_hand(train, 0, 2, made)
    preset(0, 2).fit(train)  # both are compiled now
    for seed in range(seeds):
        vae = preset(seed).fit(train)
        hand, seconds = fit_by_hand(train, seed, EPOCHS, made)
        ours.append(vae.network_.fit_.details["training"].seconds / EPOCHS)
        theirs.append(float(np.sum(seconds)) / EPOCHS)
        got = [
            (jnp.asarray(a, jnp.float32), jnp.asarray(b, jnp.float32)) for a, b in weights_of(vae.network_)
        ]
        differences.append(float(many(got, keys)) - float(many(hand, keys)))
    error = np.std(differences, ddof=1) / np.sqrt(seeds) if seeds > 1 else np.nan
    return {
        "gradient_ratio": gradient_ratio(preset(0, 1).fit(train), slope, made[0](0)[0], train),
        "epoch_ms": [1e3 * float(np.median(ours)), 1e3 * float(np.median(theirs))],
        "epoch_ratio": float(np.median(np.divide(ours, theirs))),
        "bound_difference": [float(np.mean(differences)), float(error)],
        "bound": float(many(hand, keys)),
        "seeds": seeds,
    }


def gradient_ratio(vae, slope, hand, train) -> float:
    """Return how much longer the gradient of one batch takes, the two by turns."""
    import jax
    import jax.numpy as jnp

    from markovia.factors.functions.parameter import is_fraction
    from markovia.inference.densities.program.rowwise_model import RowwiseModel
    from markovia.runtime.libraries import eqx

    m = vae.network()
    program = RowwiseModel(m._problem({"x": train[:BATCH]}, "auto", None, "impute"), m._guides)
    small = {n: eqx.filter(p.value, is_fraction) for n, p in m._parameters.items()}
    small = jax.tree.map(lambda a: jnp.asarray(a, jnp.float32), small)
    x, key, weight = jnp.asarray(train[:BATCH], jnp.float32), jax.random.PRNGKey(0), jnp.ones(BATCH)
    still = {n: small.pop(n) for n, p in m._parameters.items() if p.fixed}
    own = jax.jit(
        jax.value_and_grad(lambda p, k: -program.bound({**p, **still}, {"x": x}, weight, k) / BATCH)
    )
    seconds = []
    for i in range(400):
        start = perf_counter()
        jax.block_until_ready(own(small, jax.random.fold_in(key, i)))
        middle = perf_counter()
        jax.block_until_ready(slope(hand, jax.random.fold_in(key, i), x))
        seconds.append((middle - start, perf_counter() - middle))
    return float(np.divide(*np.median(seconds[50:], axis=0)))


# -- fresh processes -----------------------------------------------------------------------------------------------------


def first_fit(who: str) -> float:
    """Return seconds of a first fit of five epochs, libraries loaded before."""
    import jax
    import optax

    import markovia as mk

    del optax, mk
    rows, _ = digits()
    jax.numpy.zeros(3).block_until_ready()
    start = perf_counter()
    if who == "hand":
        fit_by_hand(rows[:1344], 0, 5)
    else:
        preset(0, 5).fit(rows[:1344])
    return perf_counter() - start


def cold(repeats: int = 3) -> dict:
    """Return seconds of first fits, medians over processes that take turns."""
    found: dict[str, list[float]] = {"hand": [], "first": [], "second": []}
    around = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as kept:  # Python's own byte code is there for all, after a first turn
        for turn in range(repeats + 1):
            with tempfile.TemporaryDirectory() as folder:
                env = {**around, "MARKOVIA_CACHE": folder, "PYTHONPYCACHEPREFIX": kept}
                for name in found:
                    who = "hand" if name == "hand" else "ours"
                    command = [sys.executable, "-W", "ignore", __file__, "first", who]
                    run = subprocess.run(command, env=env, capture_output=True, check=True)
                    if turn:
                        found[name].append(float(run.stdout.split()[-1]))
    return {name: float(np.median(v)) for name, v in found.items()}


# -- few labels ----------------------------------------------------------------------------------------------------------


def labels(seeds: int) -> dict:
    """Return the share of held-out rows told right after 100 labels, by seed."""
    from sklearn.linear_model import LogisticRegression

    import markovia as mk

    found: dict[str, list[float]] = {"autoencoder": [], "logistic": []}
    for seed in range(FRESH, FRESH + seeds):
        rows, y = digits(seed)
        some = np.where(np.arange(1347) < 100, y[:1347], np.nan)
        vae = mk.deep.SemiSupervisedVAE(random_state=seed).fit(rows[:1347], some)
        found["autoencoder"].append(float((vae.predict(rows[1347:]) == y[1347:]).mean()))
        line = LogisticRegression(max_iter=2000).fit(rows[:100], y[:100])
        found["logistic"].append(float(line.score(rows[1347:], y[1347:])))
        print(seed, {k: round(v[-1], 4) for k, v in found.items()}, flush=True)
    return {name: [float(np.mean(v)), v] for name, v in found.items()}


def main(words: list[str]) -> None:
    """Run what is asked for."""
    warnings.simplefilter("ignore")
    if words[:1] == ["first"]:
        print(first_fit(words[1]))
        return
    seeds = int(words[1]) if len(words) > 1 else 0
    for name, task in (
        ("bounds", lambda: bounds(seeds or 20)),
        ("cold", cold),
        ("labels", lambda: labels(seeds or 5)),
    ):
        if not words or words[0] == name:
            print(name, json.dumps(task()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
