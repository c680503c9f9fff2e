"""Block Gibbs sampling of layered Boltzmann machines: all odd layers together, then all even ones.

Given one half of the layers the units of the other are independent, so that a sweep is two rounds of products with the
weights, however many units there are. The same sweeps make chains that are tempered (weights times a number from 0 to 1,
with exchanges between neighbours: Desjardins and others 2010), and particles of annealed importance sampling (Neal 2001;
Salakhutdinov and Murray 2008), whose weights are those of one half of the layers, the other being summed out. The engine
`AnnealedImportance` does the same for tables, one variable after the other.
"""

from typing import Any, NamedTuple

import numpy as np

from markovia.inference.weighted_draws.weight_diagnostics import summed
from markovia.learning.fields.layered_field import Given, LayeredField
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp


class PartitionEstimate(NamedTuple):
    """log Z: its value, how it was found ("exact" or "ais"), its standard error, and what the particles are worth."""

    value: float
    method: str
    error: float = 0.0
    effective: float = np.inf


def sweep(field: LayeredField, parameters: Any, given: Given, key: Any, even: Any) -> dict[int, Any]:
    """Draw odd layers given even ones, and even ones given those; return the even layers, by number."""
    up, down = jax.random.split(key)
    return half(field, parameters, given, down, half(field, parameters, given, up, even, 1), 0)


def half(
    field: LayeredField, parameters: Any, given: Given, key: Any, others: Any, parity: int
) -> dict[int, Any]:
    """Draw the layers of one parity given the others."""
    inputs = field.inputs(parameters, given, others, parity)
    return {
        k: field.layers[k].draw(jax.random.fold_in(key, k), x, given.shapes[k]) for k, x in inputs.items()
    }


def sweeps(
    field: LayeredField, parameters: Any, given: Given, key: Any, even: Any, count: int
) -> dict[int, Any]:
    """Make some sweeps."""
    if count == 1:
        return sweep(field, parameters, given, key, even)

    def step(i: Any, even: Any) -> Any:
        return sweep(field, parameters, given, jax.random.fold_in(key, i), even)

    found: dict[int, Any] = jax.lax.fori_loop(0, count, step, even)
    return found


def independent_draws(field: LayeredField, given: Given, key: Any, rows: int) -> dict[int, Any]:
    """Return even layers drawn from their biases alone."""
    found = {}
    for k in range(0, len(field.layers), 2):
        x = jnp.broadcast_to(given.biases[k], (rows, field.layers[k].size))
        found[k] = field.layers[k].draw(jax.random.fold_in(key, k), x, given.shapes[k])
    return found


def warm(parameters: Any, power: Any) -> dict[str, Any]:
    """Return parameters with weights between layers times a number from 0 to 1."""
    return {n: power * v if n.startswith("weight") else v for n, v in parameters.items()}


def tempered_sweep(
    field: LayeredField, parameters: Any, given: Given, powers: Array, key: Any, even: Any
) -> dict[int, Any]:
    """Sweep chains at each power, then offer exchanges to neighbours: even pairs or odd ones, by the toss of a coin.

    Layers have an axis for the powers first, then one for the chains.
    """
    moving, coin, tossed = jax.random.split(key, 3)
    keys = jax.random.split(moving, len(powers))
    moved: Any = jax.vmap(lambda p, k, s: sweep(field, warm(parameters, p), given, k, s))
    even = moved(jnp.asarray(powers), keys, even)

    def logs(power: Any) -> Any:
        return jax.vmap(lambda s: field.collapsed(warm(parameters, power), given, s))(even)

    table = jax.vmap(logs)(jnp.asarray(powers))  # [power, where the chain is, chain]
    place = jnp.arange(len(powers))
    # the partner of each place: the next one or the one before
    first = jax.random.bernoulli(coin).astype(int)
    partner = jnp.clip(jnp.where((place + first) % 2 == 0, place + 1, place - 1), 0, len(powers) - 1)
    here = table[place, place] + table[partner, partner]
    there = table[place, partner] + table[partner, place]
    chance = jnp.log(jax.random.uniform(tossed, here.shape))
    low = jnp.minimum(place, partner)
    taken = (chance[low] < there - here)[..., None]
    return {k: jnp.where(taken, v[partner], v) for k, v in even.items()}


def annealed_log_weights(
    field: LayeredField, parameters: Any, given: Given, base: Given, key: Any, chains: int, powers: Any
) -> Any:
    """Return log weights of particles whose mean estimates Z without bias: one column for each row of `given`.

    Parameters
    ----------
    base
        Biases of the independent units at the start of the path.
    powers
        Rising from 0 to 1.
    """
    texts = field.layers[0].kind == "replicated softmax"
    rows = given.rows(texts)
    total = rows * chains

    def wide(what: Given) -> Given:
        each = [jnp.repeat(b, chains, axis=0) if len(b) > 1 else b for b in what.biases]
        return Given(
            tuple(each), tuple(jnp.repeat(s, chains) if texts and s is not None else s for s in what.shapes)
        )

    end, begin = wide(given), wide(base)

    def at(power: Any) -> tuple[Any, Given]:
        mixed = [(1 - power) * a + power * b for a, b in zip(begin.biases, end.biases, strict=True)]
        return warm(parameters, power), Given(tuple(mixed), end.shapes)

    def step(carry: Any, power: Any) -> Any:
        even, logs, before, key = carry
        key, own = jax.random.split(key)
        logs = logs + field.collapsed(*at(power), even) - field.collapsed(*at(before), even)
        return (sweep(field, *at(power), own, even), logs, power, key), None

    first, rest = jax.random.split(key)
    start = (independent_draws(field, begin, first, total), jnp.zeros(total), powers[0], rest)
    logs = jax.lax.scan(step, start, powers[1:])[0][1]
    known = sum(
        layer.log_normaliser(jnp.broadcast_to(b, (rows, layer.size)), s)
        for layer, b, s in zip(field.layers, base.biases, base.shapes, strict=True)
    )
    return known[:, None] + logs.reshape(rows, chains)


def estimate(log_weights: Array) -> PartitionEstimate:
    """Return log Z and what is known of its error, from the log weights of particles."""
    none = np.zeros(0)
    sums = summed(log_weights, none, none, none, float(np.max(log_weights)))
    return PartitionEstimate(sums.log_mean, "ais", sums.log_mean_error, sums.effective)
