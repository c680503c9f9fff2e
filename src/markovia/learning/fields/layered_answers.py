"""Questions to layered Boltzmann machines: log weights of rows, log Z, means and draws of units; in 64 bits."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.learning.fields.block_gibbs import (
    PartitionEstimate,
    annealed_log_weights,
    estimate,
    half,
    independent_draws,
    sweeps,
)
from markovia.learning.fields.layered_field import LayeredField
from markovia.learning.fields.layered_training import NegativePhase, given_rows, learn_field
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.optimise.training import Training
from markovia.runtime.array_types import Array
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import MachineCodeKey, compiled
from markovia.runtime.seeds import Seed, generator, random_keys

BLOCKS = (64, 1024)
"""Rows of a compiled call: few, or many."""
MOST_LISTED = 2**16
"""States that are drawn from by their probabilities; with more of them, chains are run."""


class LayeredAnswers(NamedTuple):
    """A trained machine that is asked.

    Attributes
    ----------
    field, parameters
        Its form and its numbers.
    base
        The bias of the visible layer that independent units would have: where annealing begins.
    """

    field: LayeredField
    parameters: dict[str, Array]
    base: Array

    def log_weights(self, rows: Array, context: Array | None = None) -> tuple[Array, bool]:
        """Return log Z(v) of rows, and True; with too many states of hidden layers a lower bound, and False."""
        try:
            self.field.listed_parity(clamped=True)
        except TooLarge:
            return self._by_rows("bound", lambda f, p, g, k, v: f.bound(p, g, v), rows, context), False
        return self._by_rows("log Z(v)", lambda f, p, g, k, v: f.log_sum(p, g, v), rows, context), True

    def log_partition(
        self, method: str, rows: Array, context: Array | None, chains: int, temperatures: int, seed: Seed
    ) -> list[PartitionEstimate]:
        """Return log Z for each row: of its context, and of texts as long as it is; with neither, give one row."""

        def wide(f: LayeredField, p: Any, g: Any, k: Any, v: Any) -> Any:
            return jnp.broadcast_to(f.log_sum(p, g), len(v))

        if method != "ais":
            try:
                self.field.listed_parity()
                found = self._by_rows("log Z", wide, rows, context)
                return [PartitionEstimate(float(x), "exact") for x in found]
            except TooLarge:
                if method == "exact":
                    raise

        f = self.field

        def anneal(p: Any, k: Any, v: Any, c: Any, powers: Any, base: Any) -> Any:
            g = given_rows(f, p, v, c)
            return annealed_log_weights(
                f, p, g, g._replace(biases=(base[None], *g.biases[1:])), k, chains, powers
            )

        key = random_keys(int(generator(seed).integers(2**32)), 1)[0]
        powers = np.linspace(0.0, 1.0, temperatures + 1)
        logs = run(repr((f, "ais", chains)), anneal, self.parameters, key, rows, context, powers, self.base)
        return [estimate(np.asarray(row)) for row in logs]

    def means(self, rows: Array, context: Array | None = None) -> Array:
        """Return the means of the last layer given rows; exact with one hidden layer, else by mean field."""
        last = len(self.field.layers) - 1
        return self._by_rows("means", lambda f, p, g, k, v: f.mean_field(p, g, v)[0][last], rows, context)

    def below(self, hidden: Array, context: Array | None = None) -> Array:
        """Return the means of the visible layer given the last one, through the means of those between."""

        def down(f: LayeredField, p: Any, g: Any, k: Any, y: Any) -> Any:
            for layer in range(len(f.layers) - 2, -1, -1):
                x = g.biases[layer] + f.down(p, layer, y)
                texts = f.layers[layer].kind == "replicated softmax"  # of one word
                y = f.layers[layer].mean(x, jnp.ones(len(y)) if texts else g.shapes[layer])
            return y

        return self._by_rows("below", down, hidden, context)

    def draws(self, rows: Array, steps: int, seed: Seed, context: Array | None = None) -> Array:
        """Return a draw for each row, which says how long a text is and else nothing: exact, or the end of a chain."""
        rng = generator(seed)
        f = self.field
        try:
            parity = f.listed_parity(most=MOST_LISTED)
        except TooLarge:
            parity = -1
        if parity < 0 or context is not None or f.layers[0].kind == "replicated softmax":

            def chains(f: LayeredField, p: Any, g: Any, k: Any, v: Any) -> Any:
                first = independent_draws(f, g, jax.random.fold_in(k, 2**31), len(v))
                return sweeps(f, p, g, k, first, steps)[0]

            return self._by_rows(f"draws {steps}", chains, rows, context, rng)
        logs = self._by_rows("logs", lambda f, p, g, k, v: f.log_sum(p, g, keep=True), rows[:1], None)[0]
        shares = np.exp(logs - logs.max()).cumsum()
        chosen = np.searchsorted(shares, rng.random(len(rows)) * shares[-1])

        def others(f: LayeredField, p: Any, g: Any, k: Any, v: Any) -> Any:
            state = f.listed(parity, v[:, 0].astype(int))
            return state[0] if parity == 0 else half(f, p, g, k, state, 0)[0]

        return self._by_rows("others", others, chosen[:, None].astype(np.float64), context, rng)

    def dense(self, context: Array | None = None) -> tuple[list[Array], list[Array]]:
        """Return the biases of each layer and the matrices between them, those of filters written out."""
        with x64():
            parameters = {n: jnp.asarray(v) for n, v in self.parameters.items()}
            biases = self.field.given(parameters, context).biases
            sizes = [layer.size for layer in self.field.layers]
            weights = [self.field.up(parameters, k, jnp.eye(n)) for k, n in enumerate(sizes[:-1])]
            return [np.asarray(b[0]) for b in biases], [np.asarray(w) for w in weights]

    def _by_rows(
        self, name: str, function: Callable[..., Any], rows: Array, context: Array | None, seed: Seed = 0
    ) -> Array:
        """Apply a function of (field, parameters, given, key, rows) to blocks of rows."""
        f = self.field

        def one(p: Any, k: Any, v: Any, c: Any) -> Any:
            return function(f, p, given_rows(f, p, v, c), k, v)

        return by_rows(repr((f, name)), one, self.parameters, rows, context, seed)


def by_rows(
    code: str,
    function: Callable[..., Any],
    parameters: Any,
    rows: Array,
    context: Array | None = None,
    seed: Seed = 0,
) -> Array:
    """Apply a function of (parameters, key, rows, context) to blocks of rows, the last one filled up, in 64 bits.

    Compiled code is kept under `code`, which says what the function computes.
    """
    size = BLOCKS[len(rows) > BLOCKS[0]]
    entropy, found = int(generator(seed).integers(2**32)), []
    for i, start in enumerate(range(0, len(rows), size)):
        block = rows[start : start + size]
        fill = np.arange(size) % len(block)
        own = None if context is None else context[start : start + size][fill]
        key = random_keys(entropy, i + 1)[-1]
        found.append(np.asarray(run(code, function, parameters, key, block[fill], own))[: len(block)])
    return np.concatenate(found)


def run(code: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a function in 64 bits, compiled."""
    with x64():
        args = tuple(jax.tree.map(jnp.asarray, x) for x in args)
        return compiled(MachineCodeKey(code), "layered", "", function, *args)(*args)


def greedy(
    layers: tuple[UnitLayer, ...],
    bias: Array,
    rows: Array,
    phase: NegativePhase,
    training: Training,
    seed: int | None,
) -> list[dict[str, Array]]:
    """Return the parameters of restricted machines, each learned from what the one below makes of the rows."""
    found = []
    for k, pair in enumerate(pairwise(layers)):
        field = LayeredField(pair)
        begun = field.begun(bias, None if seed is None else seed + k)
        found.append(learn_field(field, begun, {"x": rows}, phase, training).parameters)
        rows, bias = LayeredAnswers(field, found[-1], bias).means(rows), found[-1]["bias1"]
    return found
