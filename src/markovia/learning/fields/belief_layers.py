"""Deep belief networks: directed layers below, a restricted Boltzmann machine at the top.

    P(v, h1, ..., hL) = P(v | h1) P(h1 | h2) ... P(h(L-1), hL)

References: Hinton, Osindero and Teh (2006) for greedy learning, in which each layer is a restricted machine of what the last
one makes of the rows, and for the up-down algorithm, wake and sleep with contrastive divergence at the top; Hinton and
Salakhutdinov (2006) for the autoencoder that the layers unroll into. Parameters are those of a layered field (`bias0`,
`weight0`, ...), with the way up as `up0`, `up_bias1`, ... Exact likelihoods go through the states of two layers at a time.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from markovia.errors import TooLarge
from markovia.learning.fields.block_gibbs import sweeps
from markovia.learning.fields.layered_field import MOST_STATES, LayeredField
from markovia.learning.fields.unit_layers import UnitLayer
from markovia.runtime.libraries import jax, jnp


class BeliefLayers(NamedTuple):
    """The form of a deep belief network: its layers, the visible one first."""

    layers: tuple[UnitLayer, ...]

    @property
    def top(self) -> LayeredField:
        """The restricted machine of the last two layers."""
        return LayeredField(self.layers[-2:])

    def of_top(self, parameters: Any) -> dict[str, Any]:
        """Return the parameters of the top machine, by its own names."""
        k = len(self.layers) - 2
        found = {
            "bias0": parameters[f"bias{k}"],
            "bias1": parameters[f"bias{k + 1}"],
            "weight0": parameters[f"weight{k}"],
        }
        return (
            found
            if k or "log_precision" not in parameters
            else found | {"log_precision": parameters["log_precision"]}
        )

    def below(self, parameters: Any, k: int, above: Any) -> Any:
        """Return the inputs of layer k given the next, on the way down."""
        return parameters[f"bias{k}"] + above @ parameters[f"weight{k}"].T

    def above(self, parameters: Any, k: int, below: Any) -> Any:
        """Return the inputs of layer k + 1 given layer k, on the way up."""
        return parameters[f"up_bias{k + 1}"] + below @ parameters[f"up{k}"]

    def log_below(self, parameters: Any, k: int, layer: Any, above: Any) -> Any:
        """Return log P of layer k given the next."""
        shape = parameters.get("log_precision") if k == 0 else None
        return self.layers[k].log_prob(layer, self.below(parameters, k, above), shape)

    def log_weights(self, parameters: Any, key: Any, rows: Any, draws: int) -> Any:
        """Return logs of mean weights of draws of the way up, which estimate P of rows times Z without bias."""

        def one(key: Any) -> Any:
            states, logs = self.proposed(parameters, key, rows)
            own = self.of_top(parameters)
            total = self.top.collapsed(own, self.top.given(own), {0: states[-1]}) - logs
            return total + sum(
                self.log_below(parameters, k, *states[k : k + 2]) for k in range(len(states) - 1)
            )

        return jax.nn.logsumexp(jax.lax.map(one, jax.random.split(key, draws)), axis=0) - np.log(draws)

    def proposed(self, parameters: Any, key: Any, rows: Any) -> tuple[list[Any], Any]:
        """Return draws of the layers up to the visible one of the top machine, and their log probabilities."""
        states, logs = [rows], jnp.zeros(len(rows))
        for k in range(len(self.layers) - 2):
            x, layer = self.above(parameters, k, states[k]), self.layers[k + 1]
            states.append(layer.draw(jax.random.fold_in(key, k), x))
            logs += layer.log_prob(states[-1], x)
        return states, logs

    def dreamt(self, parameters: Any, key: Any, layer: Any) -> list[Any]:
        """Return draws of the layers below the visible one of the top machine, and it itself, from the rows up."""
        states = [layer]
        for k in range(len(self.layers) - 3, -1, -1):
            shape = parameters.get("log_precision") if k == 0 else None
            x = self.below(parameters, k, states[0])
            states.insert(0, self.layers[k].draw(jax.random.fold_in(key, k), x, shape))
        return states

    def check_listed(self) -> None:
        """Refuse exact sums over too many states."""
        counts = [2.0**layer.size for layer in self.layers[1:-1]]
        most = max(counts[:1] + [a * b for a, b in pairwise(counts)], default=1.0)
        if most > MOST_STATES:
            raise TooLarge(
                f"exact scores go through {most:.3g} states of hidden layers, and at most {MOST_STATES:,}"
            )
        self.top.listed_parity()

    def log_likelihood(self, parameters: Any, rows: Any) -> Any:
        """Return log P of rows, by going through the states of hidden layers from the top down."""
        self.check_listed()
        own = self.of_top(parameters)
        given = self.top.given(own)
        log_z = self.top.log_sum(own, given)
        listed = [layer.values(_codes(layer.size)) for layer in self.layers[1:-1]]
        if not listed:
            return self.top.collapsed(own, given, {0: rows}) - log_z
        found = self.top.collapsed(own, given, {0: listed[-1]}) - log_z
        for k in range(len(listed) - 1, -1, -1):
            layer = listed[k - 1] if k else rows
            each = self.log_below(parameters, k, layer[:, None], listed[k][None])
            found = jax.nn.logsumexp(each + found, axis=-1)
        return found


def _codes(size: int) -> Any:
    return (jnp.arange(2**size)[:, None] >> np.arange(size)) & 1


def likelihood_loss(net: BeliefLayers) -> Any:
    """Return the loss that is minus the exact log likelihood."""

    def loss(parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        share = batch.weight / jnp.sum(batch.weight)
        return -jnp.sum(share * net.log_likelihood(parameters, batch.rows["x"])), memory

    return loss


def up_down_loss(net: BeliefLayers, steps: int) -> Any:
    """Return the loss of the up-down algorithm: wake, contrastive divergence at the top, and sleep from where it ends."""

    def loss(parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        share = batch.weight / jnp.sum(batch.weight)
        fixed = jax.lax.stop_gradient(parameters)
        up, top, down = jax.random.split(key, 3)
        states, _ = net.proposed(fixed, up, batch.rows["x"])
        own, still = net.of_top(parameters), net.of_top(fixed)
        dream = sweeps(net.top, still, net.top.given(still), top, {0: states[-1]}, steps)[0]
        given = net.top.given(own)
        wake = net.top.log_weight(own, given, {0: states[-1]}) - net.top.log_weight(own, given, {0: dream})
        for k in range(len(states) - 1):
            wake += net.log_below(parameters, k, states[k], states[k + 1])
        slept = net.dreamt(fixed, down, dream)
        for k in range(len(slept) - 1):
            wake += net.layers[k + 1].log_prob(slept[k + 1], net.above(parameters, k, slept[k]))
        return -jnp.sum(share * wake), memory

    return loss


def unrolled(parameters: Any, depth: int) -> dict[str, Any]:
    """Return the autoencoder of a deep belief network: the way up goes through the top machine, too."""
    last = {f"up{depth - 1}": parameters[f"weight{depth - 1}"], f"up_bias{depth}": parameters[f"bias{depth}"]}
    return {**{n: v for n, v in parameters.items() if n != f"bias{depth}"}, **last}


def coded(net: BeliefLayers, parameters: Any, rows: Any) -> Any:
    """Return the last layer of an autoencoder, means all the way up."""
    for k in range(len(net.layers) - 1):
        rows = net.layers[k + 1].mean(net.above(parameters, k, rows))
    return rows


def decoded(net: BeliefLayers, parameters: Any, code: Any) -> Any:
    """Return the inputs of the visible layer given the last one, through means."""
    for k in range(len(net.layers) - 2, 0, -1):
        code = net.layers[k].mean(net.below(parameters, k, code))
    return net.below(parameters, 0, code)


def reconstruction_loss(net: BeliefLayers) -> Any:
    """Return minus the log probability of rows given their codes."""

    def loss(parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        rows, share = batch.rows["x"], batch.weight / jnp.sum(batch.weight)
        x = decoded(net, parameters, coded(net, parameters, rows))
        return -jnp.sum(share * net.layers[0].log_prob(rows, x, parameters.get("log_precision"))), memory

    return loss
