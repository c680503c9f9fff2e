"""Networks over sequences: recurrent ones (Elman, LSTM, GRU) and transformers.

References: Elman (1990); Hochreiter and Schmidhuber (1997); Cho et al. (2014); Vaswani et al. (2017), with norms before the
sublayers (Xiong et al. 2020). A sequence is (steps, features), or (steps,) of single numbers; further arguments join its
features, vectors without steps at every step.
"""

from functools import partial
from math import pi
from typing import Any

from markovia.factors.networks.modules import (
    Perceptron,
    filled,
    gaussian_maker,
    misfit,
    numbers_of,
    perceptron,
)
from markovia.factors.networks.recipes import activation_of
from markovia.runtime.libraries import eqx, jax, jnp


class ElmanCell(eqx.Module):
    """One step of a plain recurrent network: tanh of a linear map of input and state."""

    map: Any

    def __call__(self, x: Any, state: Any) -> Any:
        """Return the next state."""
        return jnp.tanh(self.map(jnp.concatenate([x, state])))


class Recurrent(eqx.Module):
    """Layers of cells along a sequence, forwards, backwards or both, and a linear map of each step's states."""

    cells: tuple[tuple[Any, ...], ...]
    head: Any
    inputs: int = eqx.field(static=True)
    hidden: int = eqx.field(static=True)
    direction: str = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Return an output for every step."""
        x = steps_of(self, self.inputs, arguments)
        backwards = {"forward": (False,), "backward": (True,), "both": (False, True)}[self.direction]
        for layer in self.cells:
            ways = [self._along(cell, x, back) for cell, back in zip(layer, backwards, strict=True)]
            x = jnp.concatenate(ways, axis=-1)
        return jax.vmap(self.head)(x)

    def _along(self, cell: Any, x: Any, back: bool) -> Any:
        zero = jnp.zeros(
            self.hidden, jnp.result_type(x, *jax.tree.leaves(eqx.filter(cell, eqx.is_array_like)))
        )
        double = isinstance(cell, eqx.nn.LSTMCell)

        def step(state: Any, now: Any) -> Any:
            state = cell(now, state)
            return state, state[0] if double else state

        return jax.lax.scan(step, (zero, zero) if double else zero, x, reverse=back)[1]


class Attention(eqx.Module):
    """A transformer encoder: blocks of attention and perceptrons over all steps; a causal one looks back only."""

    embedding: Any
    norms: tuple[tuple[Any, Any], ...]
    heads: tuple[Any, ...]
    perceptrons: tuple[Perceptron, ...]
    last: Any
    head: Any
    inputs: int = eqx.field(static=True)
    causal: bool = eqx.field(static=True)
    positions: bool = eqx.field(static=True)

    def __call__(self, *arguments: Any) -> Any:
        """Return an output for every step."""
        x = jax.vmap(self.embedding)(steps_of(self, self.inputs, arguments))
        n, width = x.shape
        if self.positions:
            x = x + position_waves(n, width)
        mask = jnp.tril(jnp.ones((n, n), bool)) if self.causal else None
        for norms, heads, behind in zip(self.norms, self.heads, self.perceptrons, strict=True):
            y = jax.vmap(norms[0])(x)
            x = x + heads(y, y, y, mask=mask)
            x = x + jax.vmap(behind)(jax.vmap(norms[1])(x))
        return jax.vmap(self.head)(jax.vmap(self.last)(x))


def steps_of(module: Any, inputs: int, arguments: tuple[Any, ...]) -> Any:
    """Return arguments as one sequence of vectors; the first has the steps, and vectors are repeated at each."""
    arrays = [jnp.asarray(a) for a in arguments]
    wanted = f"a sequence of shape (steps, {inputs})"
    misfit(module, wanted, arguments, bool(arrays) and arrays[0].ndim in (1, 2) and len(arrays[0]) > 0)
    if arrays[0].ndim == 1:  # a sequence of numbers
        arrays[0] = arrays[0][:, None]
    n = len(arrays[0])
    rest = [a if a.ndim == 2 else jnp.broadcast_to(jnp.ravel(a), (n, a.size)) for a in arrays[1:]]
    fits = all(len(a) == n for a in rest) and sum(a.shape[1] for a in (arrays[0], *rest)) == inputs
    misfit(module, wanted, arguments, fits)
    return jnp.concatenate([arrays[0], *rest], axis=-1)


def position_waves(n: int, width: int) -> Any:
    """Return for each of n positions waves from short ones (two steps) to long ones (thousands)."""
    rates = pi * 4096.0 ** -jnp.linspace(0.0, 1.0, (width + 1) // 2)
    angles = jnp.arange(n)[:, None] * rates
    return jnp.concatenate([jnp.sin(angles), jnp.cos(angles)], axis=1)[:, :width]


def make_recurrent(
    key: Any, inputs: int, outputs: Any, *, kind: str, hidden: int, layers: int, direction: str
) -> Any:
    """Return a recurrent network of a kind of cell."""
    ways = 2 if direction == "both" else 1
    rng = numbers_of(key)

    def cell(width: int) -> Any:
        if kind == "rnn":
            return ElmanCell(filled(rng, eqx.nn.Linear, width + hidden, hidden))
        gated = {"lstm": eqx.nn.LSTMCell, "gru": eqx.nn.GRUCell}[kind]
        return filled(rng, gated, width, hidden, limit=hidden**-0.5)

    widths = [inputs, *[ways * hidden] * (layers - 1)]
    cells = tuple(tuple(cell(w) for _ in range(ways)) for w in widths)
    head = filled(rng, eqx.nn.Linear, ways * hidden, outputs)
    return Recurrent(cells, head, inputs, hidden, direction)


def make_attention(
    key: Any, inputs: int, outputs: Any, *, width: int, heads: int, layers: int, causal: bool, positions: bool,
    activation: str,
) -> Any:  # fmt: skip
    """Return a transformer encoder."""
    rng, act = numbers_of(key), activation_of(activation)
    return Attention(
        embedding=filled(rng, eqx.nn.Linear, inputs, width),
        norms=tuple((eqx.nn.LayerNorm(width), eqx.nn.LayerNorm(width)) for _ in range(layers)),
        heads=tuple(filled(rng, eqx.nn.MultiheadAttention, heads, width) for _ in range(layers)),
        perceptrons=tuple(perceptron(rng, width, width, 4 * width, 1, act) for _ in range(layers)),
        last=eqx.nn.LayerNorm(width),
        head=filled(rng, eqx.nn.Linear, width, outputs),
        inputs=inputs, causal=causal, positions=positions,
    )  # fmt: skip


make_rnn = partial(make_recurrent, kind="rnn")
make_lstm = partial(make_recurrent, kind="lstm")
make_gru = partial(make_recurrent, kind="gru")
make_gaussian_rnn, make_gaussian_lstm = gaussian_maker(make_rnn), gaussian_maker(make_lstm)
make_gaussian_gru, make_gaussian_attention = gaussian_maker(make_gru), gaussian_maker(make_attention)
