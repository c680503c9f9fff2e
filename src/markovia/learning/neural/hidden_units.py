"""Learning of binary hidden units that need no guide to be learned: draws by Gibbs sampling, and a bound by mean field.

References: Neal (1992) for Gibbs sampling in belief networks; Saul, Jaakkola and Jordan (1996) for the bound. Both train the
guide besides, to propose what they found, so that the trained network answers questions. A Gibbs sweep costs one density of
the model a unit, an iteration of mean field about three passes through the layers.
"""

from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, ClassVar

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.inference.densities.program.layout import SEEN
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.learning.neural.score_gradients import scored
from markovia.learning.neural.wake_sleep import sides
from markovia.optimise.players import Player
from markovia.runtime.checks import Whole, check_options
from markovia.runtime.libraries import jax, jnp

CERTAIN = 1e-6
WIDE = 12.0
"""The largest log odds of the mean of a unit, whose distance from 0 or 1 is no less than the number before."""


@dataclass(frozen=True, kw_only=True)
class GibbsLearning:
    """Train the model on draws of its hidden units given each row.

    They begin at proposals of the guide, go through sweeps of Gibbs sampling, and are what the guide learns to propose.

    Parameters
    ----------
    sweeps
        How often all units are drawn, each given all others.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.objectives.GibbsLearning(sweeps=10).kind
    'gibbs'
    """

    sweeps: Annotated[int, Whole(1)] = 3
    kind: ClassVar[str] = "gibbs"
    is_bound: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        _, guides = sides(program, names)
        for name in program.guide.names if program.guide is not None else ():
            if not program.program.layout.sites[name].family.startswith("Bernoulli"):
                raise UnsupportedModel(
                    f"method='gibbs' draws binary units one by one, and {name!r} is no Bernoulli; try "
                    "'reweighted-wake-sleep' or 'vimco'"
                )

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            start = program.proposed(parameters, batch.rows, jax.random.fold_in(key, 0))
            drawn = self.drawn(program, parameters, batch.rows, start, jax.random.fold_in(key, 1))
            log_p = program.joint_log_probs(parameters, batch.rows, drawn)
            log_q = program.guide_log_probs(only(parameters, guides), batch.rows, drawn)
            return -weighted_mean(log_p + scored(log_q), batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])

    def drawn(self, program: RowwiseModel, parameters: Any, rows: Any, start: Any, key: Any) -> Any:
        """Return the values of all nodes after the sweeps: unit after unit, in all rows at once."""
        assert program.guide is not None
        names = program.guide.names
        parameters, start = jax.lax.stop_gradient((parameters, start))

        def unit(name: str, key: Any, j: Any, state: Any) -> Any:
            now, logs = state
            flat = jnp.reshape(now[name], (len(logs), -1))
            other = {**now, name: jnp.reshape(flat.at[:, j].set(1 - flat[:, j]), now[name].shape)}
            found = program.joint_log_probs(parameters, rows, other)
            # of two values, the other one is drawn with its share of their probabilities
            moves = jax.random.uniform(jax.random.fold_in(key, j), logs.shape) < jax.nn.sigmoid(found - logs)
            along = jnp.reshape(moves, (-1, *[1] * (now[name].ndim - 1)))
            return {**now, name: jnp.where(along, other[name], now[name])}, jnp.where(moves, found, logs)

        def sweep(i: Any, state: Any) -> Any:
            for k, name in enumerate(names):
                own = jax.random.fold_in(jax.random.fold_in(key, i), k)
                state = jax.lax.fori_loop(0, start[name][0].size, partial(unit, name, own), state)
            return state

        state = (start, program.joint_log_probs(parameters, rows, start))
        return jax.lax.fori_loop(0, self.sweeps, sweep, state)[0]


@dataclass(frozen=True)
class SigmoidMeanField:
    """A bound on the log evidence of a sigmoid belief network in which all units are independent given the row.

    The means of the hidden units are found anew for each row and step, and with them a number between 0 and 1 for each unit,
    which bounds the expectation of log(1 + exp(.)); every step of that makes the bound of a row larger, or is not taken.

    Parameters
    ----------
    layers
        From the data upwards, the name of each layer's node, and those of the parameters of its log odds: the weights
        from the layer above (units above, own units; None for the top) and the bias.
    iterations
        Steps that make the bound of a row larger.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.objectives.SigmoidMeanField((("x", "down", "low"), ("h", None, "bias"))).kind
    'mean-field bound'
    """

    layers: tuple[tuple[str, str | None, str], ...]
    iterations: Annotated[int, Whole(1)] = 20
    kind: ClassVar[str] = "mean-field bound"
    is_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)
        if len(self.layers) < 2 or self.layers[-1][1] is not None:
            raise InvalidArgument(
                "layers= are (node, weights from above, bias), the data first, None for the weights of the last, such as "
                '(("x", "down", "low"), ("h", None, "bias"))'
            )

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        _, guides = sides(program, names)
        asked = {n for _, *parts in self.layers for n in parts if n is not None}
        nodes = {layer[0] for layer in self.layers}
        known = {*program.program.layout.parameters}
        if not asked <= known or nodes != {*program.program.layout.sites}:
            raise InvalidArgument(
                f"layers= names the nodes {sorted(nodes)} and the parameters {sorted(asked)}; the model has the nodes "
                f"{sorted(program.program.layout.sites)} and the parameters {sorted(known)}"
            )

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)
            point = self.found(jax.lax.stop_gradient(parameters), batch.rows)
            bound = self.bound(parameters, batch.rows, jax.lax.stop_gradient(point))
            keys = jax.random.split(key, len(self.layers))
            drawn = {
                name: jax.random.bernoulli(k, jax.nn.sigmoid(odds)).astype(int)
                for (name, *_), k, odds in zip(self.layers[1:], keys, point[0], strict=False)
            }
            log_q = program.guide_log_probs(only(parameters, guides), batch.rows, drawn)
            return -weighted_mean(bound + scored(log_q), batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])

    def found(self, parameters: Any, rows: Any) -> Any:
        """Return log odds of the hidden units' means, and the numbers of all units with parents, by row."""
        n = len(rows[self.layers[0][0]])
        widths = [parameters[bias].shape[0] for _, _, bias in self.layers]
        odds = [jnp.zeros((n, k)) for k in widths[1:]]
        slacks = [jnp.full((n, k), 0.5) for k in widths[:-1]]

        def total(odds: Any, slacks: Any) -> Any:
            return jnp.sum(self.bound(parameters, rows, (odds, slacks)))

        slopes = jax.grad(total, (0, 1))

        def step(_: Any, state: Any) -> Any:
            odds, slacks, rate, best = state

            # the bound is concave in each slack: one step of Newton; the means go along their natural gradient
            ones = [jnp.ones_like(s) for s in slacks]
            up, (_, curves) = jax.jvp(lambda s: slopes(odds, s), (slacks,), (ones,))
            means = [jnp.clip(jax.nn.sigmoid(o), CERTAIN, 1 - CERTAIN) for o in odds]
            r = rate[:, None]
            new_odds = [o + r * g / (m * (1 - m)) for o, g, m in zip(odds, up[0], means, strict=True)]
            new_odds = [jnp.clip(o, -WIDE, WIDE) for o in new_odds]
            new_slacks = [
                jnp.clip(s - r * g / jnp.minimum(c, -CERTAIN), 0.0, 1.0)
                for s, g, c in zip(slacks, up[1], curves, strict=True)
            ]
            found = self.bound(parameters, rows, (new_odds, new_slacks))
            better = (found >= best)[:, None]
            kept = jax.tree.map(
                lambda new, old: jnp.where(better, new, old), (new_odds, new_slacks), (odds, slacks)
            )
            rate = jnp.where(found >= best, jnp.minimum(1.0, 1.5 * rate), 0.5 * rate)
            return *kept, rate, jnp.maximum(found, best)

        start = (odds, slacks, jnp.full(n, 0.5), self.bound(parameters, rows, (odds, slacks)))
        return jax.lax.fori_loop(0, self.iterations, step, start)[:2]

    def bound(self, parameters: Any, rows: Any, point: Any) -> Any:
        """Return the bound of each row with means of hidden units and numbers of the others that may be any."""
        odds, slacks = point
        name = self.layers[0][0]
        own, total = rows[name], jnp.zeros(len(rows[name]))
        for i, (_, weights, bias) in enumerate(self.layers):
            b = parameters[bias]
            if i:  # the entropy of the layer
                own = jax.nn.sigmoid(odds[i - 1])
                total = total + jnp.sum(jax.nn.softplus(odds[i - 1]) - own * odds[i - 1], axis=1)
            if weights is None:
                terms = own * b - jax.nn.softplus(b)
            else:
                w, slack, above = parameters[weights], slacks[i], odds[i]
                # E log(1 + exp(z)) <= slack E[z] + log E[exp(-slack z) + exp((1 - slack) z)], z linear in units above
                mean = jax.nn.sigmoid(above) @ w + b
                low, high = (_log_mean_exp(above, w, b, c) for c in (-slack, 1 - slack))
                terms = (own - slack) * mean - jnp.logaddexp(low, high)
            if i == 0 and SEEN + name in rows:
                terms = jnp.where(rows[SEEN + name], terms, 0.0)
            total = total + jnp.sum(terms, axis=1)
        return total


def _log_mean_exp(odds: Any, w: Any, b: Any, c: Any) -> Any:
    """Return log E exp(c (h w + b)) of independent units h, rows by units below."""
    no, yes = -jax.nn.softplus(odds), -jax.nn.softplus(-odds)
    parts = jnp.logaddexp(no[:, :, None], yes[:, :, None] + c[:, None, :] * w[None])
    return c * b + jnp.sum(parts, axis=1)


def only(parameters: Any, names: tuple[str, ...]) -> Any:
    """Return parameters of which only some have a gradient."""
    return {n: v if n in names else jax.lax.stop_gradient(v) for n, v in parameters.items()}
