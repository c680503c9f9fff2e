"""Boltzmann machines of layers: a visible layer, and layers of hidden units, each connected to the next.

    log weight(y) = sum_l [ log base(y_l) + b_l y_l ] + sum_l y_l W_l y_(l+1)

One hidden layer is a restricted Boltzmann machine (Smolensky 1986; Hinton 2002; Welling, Rosen-Zvi and Hinton 2005 for other
units), more are a deep Boltzmann machine (Salakhutdinov and Hinton 2009). Layers with even numbers are independent given
those with odd numbers, and the other way round, so that one half can always be summed out in closed form: `collapsed` is the
log weight of the other half, and of an RBM minus its free energy. From it follow log Z and log Z(v) by listing the states of
the smaller half (exact), mean field's bound on log Z(v), and gradients by differentiation. Weights are matrices, or filters
that slide over an image (Lee, Grosse, Ranganath and Ng 2009); biases may be functions of other numbers of the row, which are
given (Taylor, Hinton and Roweis 2007). Cost: a product with each matrix; exact sums times the states of half the layers.
"""

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.runtime.array_types import Array
from markovia.runtime.libraries import jax, jnp

MOST_STATES = 2**20
"""States of half the layers that are listed at most."""
LISTED = 2**11
"""States that are looked at together."""
SWEEPS = 30
"""Mean-field sweeps over the hidden layers of a row."""


class Given(NamedTuple):
    """What rows fix: the biases of each layer, one row each or one for all, and the shapes of their units."""

    biases: tuple[Any, ...]
    shapes: tuple[Any, ...]

    def rows(self, texts: bool) -> int:
        """Return how many rows differ; shapes do where they are the lengths of texts."""
        return max(len(x) for x in (*self.biases, *self.shapes[:texts]))


@dataclass(frozen=True)
class LayeredField:
    """The form of a layered Boltzmann machine; its parameters are arrays by name: `bias0`, `weight0`, `bias1`, ...

    Parameters
    ----------
    layers
        The visible layer, then the hidden ones.
    context
        Numbers that come with each row and move the biases.
    image, filter
        Of a convolutional machine: height, width and channels of the visible layer, and the side of the filters.

    Examples
    --------
    >>> field = LayeredField((UnitLayer("binary", 3), UnitLayer("binary", 2)))
    >>> {name: value.shape for name, value in field.begun(np.zeros(3)).items()}
    {'bias0': (3,), 'bias1': (2,), 'weight0': (3, 2)}
    """

    layers: tuple[UnitLayer, ...]
    context: int = 0
    image: tuple[int, int, int] | None = None
    filter: int = 0

    def begun(self, visible_bias: Array, seed: int | None = None, spread: float = 0.01) -> dict[str, Array]:
        """Return parameters to start from: small random weights, and the given biases of the visible layer."""
        rng = np.random.default_rng(seed)
        found: dict[str, Array] = {"bias0": np.asarray(visible_bias, np.float64)}
        sizes = [layer.size for layer in self.layers]
        for k, (low, high) in enumerate(pairwise(sizes)):
            shape: tuple[int, ...] = (low, high)
            if self.image is not None:  # all places of a map have the same filter
                places = prod(n - self.filter + 1 for n in self.image[:2])
                shape = (self.filter, self.filter, self.image[2], high // places)
            found[f"bias{k + 1}"] = np.zeros(shape[-1])
            found[f"weight{k}"] = spread * rng.standard_normal(shape)
        if self.layers[0].kind == "gaussian":
            found["log_precision"] = np.zeros(sizes[0])
        for k in range(2 * bool(self.context)):
            found[f"context{k}"] = spread * rng.standard_normal((self.context, sizes[k]))
        return found

    def given(self, parameters: Any, context: Any = None, lengths: Any = None) -> Given:
        """Return what rows fix; without context and lengths one row stands for all."""
        biases = [parameters[f"bias{k}"] for k in range(len(self.layers))]
        if self.image is not None:
            biases = [jnp.tile(b, u.size // len(b)) for b, u in zip(biases, self.layers, strict=True)]
        biases = [b[None] for b in biases]
        if self.context:
            biases[:2] = [b + context @ parameters[f"context{k}"] for k, b in enumerate(biases[:2])]
        first = parameters.get("log_precision") if lengths is None else lengths
        return Given(tuple(biases), (first, *[None] * (len(self.layers) - 1)))

    def up(self, parameters: Any, k: int, values: Any) -> Any:
        """Return what layer k adds to the inputs of the next."""
        weight = parameters[f"weight{k}"]
        if self.image is None:
            return values @ weight
        rows = values.reshape(-1, *self.image)
        maps = jax.lax.conv_general_dilated(
            rows, weight, (1, 1), "VALID", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return maps.reshape(*values.shape[:-1], -1)

    def down(self, parameters: Any, k: int, values: Any) -> Any:
        """Return what layer k + 1 adds to the inputs of layer k."""
        if self.image is None:
            return values @ parameters[f"weight{k}"].T
        shape = jnp.zeros((*values.shape[:-1], self.layers[0].size), values.dtype)
        return jax.linear_transpose(lambda v: self.up(parameters, k, v), shape)(values)[0]

    def inputs(self, parameters: Any, given: Given, state: Any, parity: int) -> dict[int, Any]:
        """Return the inputs of the layers of one parity, given those of the other; `state` has layers by number."""
        found = {}
        for k in range(parity, len(self.layers), 2):
            x = given.biases[k]
            if k:
                x = x + self.up(parameters, k - 1, state[k - 1])
            if k + 1 < len(self.layers):
                x = x + self.down(parameters, k, state[k + 1])
            found[k] = x
        return found

    def collapsed(self, parameters: Any, given: Given, state: Any, parity: int = 1) -> Any:
        """Return the log weight of the layers of the other parity, those of this one being summed out."""
        inputs = self.inputs(parameters, given, state, parity)
        total = sum(self.layers[k].log_normaliser(x, given.shapes[k]) for k, x in inputs.items())
        for k in range(1 - parity, len(self.layers), 2):
            layer, y = self.layers[k], state[k]
            total = total + layer.log_base(y, given.shapes[k]) + jnp.sum(given.biases[k] * y, axis=-1)
        return total

    def log_weight(self, parameters: Any, given: Given, even: Any) -> Any:
        """Return the log weight with odd layers at their means, held fixed: its slope in the parameters is `collapsed`'s."""
        inputs = self.inputs(parameters, given, even, 1)
        state = {**even, **{k: jax.lax.stop_gradient(self.layers[k].mean(x)) for k, x in inputs.items()}}
        total = sum(jnp.sum(inputs[k] * state[k], axis=-1) for k in inputs)
        for k in range(0, len(self.layers), 2):
            base = self.layers[k].log_base(state[k], given.shapes[k])
            total = total + base + jnp.sum(given.biases[k] * state[k], axis=-1)
        return total

    def mean_field(
        self, parameters: Any, given: Given, visible: Any, sweeps: int = SWEEPS
    ) -> tuple[Any, Any]:
        """Return the means of all layers given the visible one, and the entropies of the even hidden ones.

        Odd layers have the best distribution given the others, so that `collapsed` plus the entropies bounds log Z(v); with
        one hidden layer it is log Z(v).
        """
        even = range(2, len(self.layers), 2)
        means = {
            k: self.layers[k].mean(jnp.broadcast_to(given.biases[k], (len(visible), self.layers[k].size)))
            for k in even
        }

        def odd(state: Any) -> Any:
            inputs = self.inputs(parameters, given, state, 1)
            return {**state, **{k: self.layers[k].mean(x) for k, x in inputs.items()}}

        def sweep(_: Any, state: Any) -> Any:
            state = odd({**state, 0: visible})
            inputs = self.inputs(parameters, given, state, 0)
            return {k: self.layers[k].mean(inputs[k]) for k in even}

        if len(means):
            means = jax.lax.fori_loop(0, sweeps, sweep, means)
        state = odd({**means, 0: visible})
        entropy = jnp.zeros(len(visible))
        if len(means):  # one last update, whose inputs say the entropy of what it leads to
            inputs = self.inputs(parameters, given, state, 0)
            for k in even:
                state[k] = self.layers[k].mean(inputs[k])
                entropy += self.layers[k].log_normaliser(inputs[k]) - jnp.sum(inputs[k] * state[k], axis=-1)
                entropy -= self.layers[k].log_base(state[k])  # which `collapsed` adds
            state = odd(state)
        return state, entropy

    def bound(self, parameters: Any, given: Given, visible: Any) -> Any:
        """Return log Z(v) of rows with one hidden layer, else mean field's lower bound on it."""
        state, entropy = self.mean_field(parameters, given, visible)
        return self.collapsed(parameters, given, state) + entropy

    def listed_parity(self, clamped: bool = False, most: int = MOST_STATES) -> int:
        """Return which half of the layers has fewer states; too many are refused. Clamped: the visible layer is given."""
        counts: list[float] = []
        for parity in (0, 1):
            cards = [self.layers[k].cards for k in self._listed(parity, clamped)]
            counts.append(np.inf if None in cards else float(prod(c for card in cards for c in card or ())))
        if min(counts) > most:
            raise TooLarge(
                f"exact sums go through the states of every other layer, here {min(counts):.3g} and at most "
                f"{most:,}; use method='ais'"
            )
        return int(np.argmin(counts))

    def log_sum(self, parameters: Any, given: Given, visible: Any = None, keep: bool = False) -> Any:
        """Return log Z of each row of `given`, or log Z(v) of each visible row, by listing states; `keep`: all terms."""
        clamped = visible is not None
        parity = self.listed_parity(clamped)
        texts = self.layers[0].kind == "replicated softmax"
        rows = len(visible) if clamped else given.rows(texts)
        total = prod(c for k in self._listed(parity, clamped) for c in self.layers[k].cards or ())
        step = min(total, max(16, LISTED // rows))
        shapes = [s[:, None] if texts and s is not None else s for s in given.shapes]
        given = Given(tuple(b[:, None] for b in given.biases), tuple(shapes))

        def some(start: Any) -> Any:
            number = start + jnp.arange(step)
            state = {k: v[None] for k, v in self.listed(parity, number, clamped).items()}
            if not clamped:
                logs = self.collapsed(parameters, given, state, 1 - parity)
            else:
                logs = self._clamped(parameters, given, {**state, 0: visible[:, None]}, parity)
            return jnp.broadcast_to(jnp.where(number < total, logs, -jnp.inf), (rows, step))

        if keep:
            return jnp.concatenate(jax.lax.map(some, jnp.arange(0, total, step)), axis=-1)[:, :total]
        if total <= step:
            return jax.nn.logsumexp(some(0), axis=-1)
        part = jax.checkpoint(lambda start: jax.nn.logsumexp(some(start), axis=-1))
        return jax.nn.logsumexp(jax.lax.map(part, jnp.arange(0, total, step)), axis=0)

    def listed(self, parity: int, numbers: Any, clamped: bool = False) -> dict[int, Any]:
        """Return the layers of one parity in the states with some numbers."""
        found = {}
        for k in self._listed(parity, clamped):
            cards = np.array(self.layers[k].cards, int)
            found[k] = self.layers[k].values(numbers[:, None] // np.cumprod([1, *cards[:-1]]) % cards)
            numbers = numbers // int(np.prod(cards))
        return found

    def _listed(self, parity: int, clamped: bool) -> list[int]:
        return [k for k in range(parity, len(self.layers), 2) if k or not clamped]

    def _clamped(self, parameters: Any, given: Given, state: Any, parity: int) -> Any:
        """Return log weights with the visible layer given, hidden layers of the other parity being summed out."""
        if parity == 0:
            return self.collapsed(parameters, given, state, 1)
        layer, x = self.layers[0], self.inputs(parameters, given, state, 0)[0]
        free = self.collapsed(parameters, given, state, 0) - layer.log_normaliser(x, given.shapes[0])
        return free + layer.log_base(state[0], given.shapes[0]) + jnp.sum(x * state[0], axis=-1)
