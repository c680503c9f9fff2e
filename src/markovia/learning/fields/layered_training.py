"""Learning layered Boltzmann machines: the two phases of the gradient as one loss, on the shared loop.

The gradient of the log likelihood is that of log Z(v), the positive phase, less that of log Z, the negative one. Both are
slopes of the log weight with odd layers at their means: at the rows (mean field fills in even hidden layers), and at states
of the model, which are held fixed. Where these come from is the method: k sweeps from the rows (contrastive divergence,
Hinton 2002), chains that go on from step to step (Younes 1989; Tieleman 2008), also at several temperatures with exchanges
(Desjardins and others 2010), k mean-field updates from the rows (Welling and Hinton 2002), or all states ("exact": the loss
is minus the log likelihood).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.learning.fields.block_gibbs import independent_draws, sweeps, tempered_sweep
from markovia.learning.fields.layered_field import Given, LayeredField
from markovia.optimise.players import Player
from markovia.optimise.training import Trained, Training
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.seeds import random_keys


@dataclass(frozen=True)
class NegativePhase:
    """Where the states of the negative phase come from.

    Parameters
    ----------
    method, steps
        "pcd", "cd", "parallel-tempering", "mean-field" or "exact"; and sweeps a step of training.
    chains, temperatures
        Chains that go on from step to step, and at how many powers of the weights, evenly from 0 to 1.
    """

    method: str = "pcd"
    steps: int = 1
    chains: int = 100
    temperatures: int = 5


def learn_field(
    field: LayeredField,
    parameters: dict[str, Any],
    rows: dict[str, Any],
    phase: NegativePhase,
    training: Training,
    memory: Any = None,
) -> Trained:
    """Return trained parameters, and the chains as memory.

    Parameters
    ----------
    rows
        Rows of the visible layer as `x`, and what comes with them as `context`.
    memory
        Chains to go on with; by default they begin at independent units.
    """
    if memory is None and phase.method in ("pcd", "parallel-tempering"):
        memory = first_chains(field, parameters, rows, phase, training.seed)
    player = Player(phase_loss(field, phase), tuple(parameters))
    return training.run([player], parameters, rows, memory=memory, code=repr((field, phase)))


def phase_loss(field: LayeredField, phase: NegativePhase) -> Any:
    """Return the loss of a step, whose slope is the negative phase less the positive one."""

    def loss(parameters: Any, memory: Any, key: Any, batch: Any) -> Any:
        visible = batch.rows["x"]
        share = batch.weight / jnp.sum(batch.weight)
        given = given_rows(field, parameters, visible, batch.rows.get("context"))
        if phase.method == "exact":
            clamped = field.log_sum(parameters, given, visible)
            log_z = field.log_sum(parameters, given)
            return jnp.sum(share * (log_z - clamped)), memory
        fixed, known = jax.lax.stop_gradient((parameters, given))
        clamped = even_layers(field.mean_field(fixed, known, visible)[0])
        positive = jnp.sum(share * field.log_weight(parameters, given, clamped))
        if phase.method in ("cd", "mean-field"):
            even = _from_rows(field, phase, fixed, known, key, clamped)
            return jnp.sum(share * field.log_weight(parameters, given, even)) - positive, memory
        memory = _advanced(field, phase, fixed, key, memory)
        even = memory if phase.method == "pcd" else {k: v[-1] for k, v in memory.items()}
        given = given_rows(field, parameters, even[0])
        return jnp.mean(field.log_weight(parameters, given, even)) - positive, memory

    return loss


def given_rows(field: LayeredField, parameters: Any, visible: Any, context: Any = None) -> Given:
    """Return what rows fix: the length of a text is the sum of its counts."""
    counted = field.layers[0].kind == "replicated softmax"
    return field.given(parameters, context, jnp.sum(visible, axis=-1) if counted else None)


def even_layers(state: Any) -> dict[int, Any]:
    """Return the layers with even numbers."""
    return {k: v for k, v in state.items() if k % 2 == 0}


def _from_rows(
    field: LayeredField, phase: NegativePhase, parameters: Any, given: Given, key: Any, even: Any
) -> Any:
    """Return the even layers after some sweeps, or mean-field updates, from those of rows."""
    if phase.method == "cd":
        return sweeps(field, parameters, given, key, even, phase.steps)

    def update(_: Any, even: Any) -> Any:
        for parity in (1, 0):
            inputs = field.inputs(parameters, given, even, parity)
            even = {k: field.layers[k].mean(x, given.shapes[k]) for k, x in inputs.items()}
        return even

    return jax.lax.fori_loop(0, phase.steps, update, even)


def _advanced(field: LayeredField, phase: NegativePhase, parameters: Any, key: Any, even: Any) -> Any:
    """Return chains after the sweeps of a step."""
    if phase.method == "pcd":
        return sweeps(field, parameters, given_rows(field, parameters, even[0]), key, even, phase.steps)
    powers = np.linspace(0.0, 1.0, phase.temperatures)

    def step(i: Any, even: Any) -> Any:
        # exchanges keep the lengths of texts where they are: all chains of a column have the same one
        given = given_rows(field, parameters, even[0][-1])
        return tempered_sweep(field, parameters, given, powers, jax.random.fold_in(key, i), even)

    return jax.lax.fori_loop(0, phase.steps, step, even)


def first_chains(
    field: LayeredField, parameters: Any, rows: Any, phase: NegativePhase, seed: int | None
) -> Any:
    """Return chains of independent units; texts have the lengths of some rows."""
    lengths = None
    if field.layers[0].kind == "replicated softmax":
        lengths = np.resize(rows["x"].sum(axis=-1), phase.chains)
    given = field.given({n: jnp.asarray(v) for n, v in parameters.items()}, lengths=lengths)
    key = random_keys(seed, 2)[1]
    if phase.method == "pcd":
        return independent_draws(field, given, key, phase.chains)
    each = [
        independent_draws(field, given, k, phase.chains) for k in jax.random.split(key, phase.temperatures)
    ]
    return {k: jnp.stack([one[k] for one in each]) for k in each[0]}
