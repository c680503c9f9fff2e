"""Bounds whose guide proposes states: gradients of log q, weighed by how much better a proposal was than expected.

References: Williams (1992) for the estimator; Mnih and Gregor (2014) for NVIL, which learns what to expect; Mnih and Rezende
(2016) for VIMCO, where the other proposals of a row say it. No gradient goes through a draw of states,
so log q of what was drawn, times the signal, takes its place; numbers that the same guide proposes are reparametrised. Both
gradients are unbiased. One pass through guide and model a proposal; noisier than wake and sleep, but of a bound.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np

from markovia.errors import InvalidArgument, UnsupportedModel
from markovia.factors.functions.parameter import Parameter
from markovia.factors.networks.recipes import mlp
from markovia.inference.densities.program.layout import SEEN
from markovia.inference.densities.program.rowwise_model import RowwiseModel
from markovia.learning.neural.objective import ObjectiveSetup, Values, weighted_mean
from markovia.optimise.players import Player
from markovia.runtime.checks import DAMPING, Whole, check_options
from markovia.runtime.libraries import jax, jnp

BASELINE = "baseline of nvil"


@dataclass(frozen=True, kw_only=True)
class NVIL:
    """The evidence lower bound, of guides that propose states: neural variational inference and learning.

    Parameters
    ----------
    hidden
        Units of the baseline, a network that learns which bound to expect of a row; 0 for the running mean alone.
    decay
        How much of the past the running mean and variance of the signal keep a step.
    normalise
        Whether the signal is divided by its running standard deviation where that is above 1.

    Examples
    --------
    >>> import numpy as np
    >>> import markovia as mk
    >>> import markovia.distributions as dist
    >>> m = mk.BayesianNetwork()
    >>> m.add("down", mk.Parameter(np.array([[1.0, -1.0]])))
    >>> m.add("up", mk.Parameter(np.zeros((2, 1))))
    >>> m.add("h", dist.Bernoulli(0.5), size=1, plate="row")
    >>> m.add("x", lambda h, down: dist.Bernoulli(logits=h @ down), plate="row")
    >>> m.guide("h", lambda x, up: dist.Bernoulli(logits=x @ up))
    >>> m = m.fit({"x": np.eye(2)[[0, 1, 0]]}, method=mk.objectives.NVIL(hidden=0), epochs=2, seed=0)
    >>> m.fit_.method
    'evidence lower bound, score gradient'
    """

    hidden: Annotated[int, Whole(0)] = 32
    decay: Annotated[float, DAMPING] = 0.8
    normalise: bool = True
    kind: ClassVar[str] = "evidence lower bound, score gradient"
    is_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player, which moves the baseline along."""
        states = proposed_states(program)
        # units of the columns are data: code that is compiled for these rows serves others
        columns = np.asarray(features(program.rows), np.float64)
        spread = columns.std(axis=0)
        memory = {
            "mean": np.zeros(()),
            "variance": np.ones(()),
            "centre": columns.mean(axis=0),
            "scale": np.where(spread > 0, spread, 1.0),
        }
        extra = {}
        if self.hidden:
            extra[BASELINE] = Parameter(mlp(columns.shape[1], "scalar", hidden=self.hidden, layers=1))

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values({n: v for n, v in free.items() if n not in extra})
            _, logs, log_q = program.scored_proposals(parameters, batch.rows, key)
            error = jax.lax.stop_gradient(logs) - memory["mean"]
            if self.hidden:
                rows = (features(batch.rows) - memory["centre"]) / memory["scale"]
                error = error - jax.vmap(free[BASELINE])(rows)
            signal = jax.lax.stop_gradient(error)
            unit = jnp.maximum(1.0, jnp.sqrt(memory["variance"])) if self.normalise else 1.0
            found = logs + scored((1.0 + signal / unit) * _total(log_q, states, logs))
            loss = -weighted_mean(found, batch.weight)
            if self.hidden:
                loss = loss + scored(weighted_mean(error**2, batch.weight))
            return loss, memory | self._moved(memory, signal, batch.weight)

        return ObjectiveSetup([Player(loss, (*names, *extra))], extra, memory)

    def _moved(self, memory: Any, signal: Any, weight: Any) -> dict[str, Any]:
        """Return the running mean and variance after a step, whose own signal they did not enter: so it has no bias."""
        shift = weighted_mean(signal, weight)
        variance = weighted_mean((signal - shift) ** 2, weight)
        return {
            "mean": memory["mean"] + (1 - self.decay) * shift,
            "variance": self.decay * memory["variance"] + (1 - self.decay) * variance,
        }


@dataclass(frozen=True, kw_only=True)
class VIMCO:
    """The bound of several proposals together, of guides that propose states.

    Parameters
    ----------
    draws
        Proposals a row; each is judged by the bound that the others alone would have.

    Examples
    --------
    >>> import markovia as mk
    >>> mk.objectives.VIMCO(draws=20).kind
    'importance weighted bound, score gradient'
    """

    draws: Annotated[int, Whole(2)] = 5
    kind: ClassVar[str] = "importance weighted bound, score gradient"
    is_bound: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_options(self)

    def setup(self, program: RowwiseModel, values: Values, names: tuple[str, ...]) -> ObjectiveSetup:
        """Return one player."""
        states = proposed_states(program)

        def loss(free: Any, memory: Any, key: Any, batch: Any) -> Any:
            parameters = values(free)

            def one(key: Any) -> Any:
                _, logs, log_q = program.scored_proposals(parameters, batch.rows, key)
                return logs, _total(log_q, states, logs)

            logs, log_q = jax.vmap(one)(jax.random.split(key, self.draws))
            return -weighted_mean(several(logs, log_q), batch.weight), memory

        return ObjectiveSetup([Player(loss, names)])


def several(logs: Any, log_q: Any) -> Any:
    """Return the bound of each row, proposals in front, with VIMCO's gradient.

    In the bound that a proposal is compared with, the geometric mean of the others' weights stands in its place.
    """
    k = len(logs)
    bound = jax.nn.logsumexp(logs, axis=0) - jnp.log(k)
    others = (jnp.sum(logs, axis=0) - logs) / (k - 1)
    own = jnp.eye(k, dtype=bool)[..., None]
    without = jax.nn.logsumexp(jnp.where(own, others[:, None], logs[None]), axis=1) - jnp.log(k)
    signal = jax.lax.stop_gradient(bound - without)
    return bound + scored(jnp.sum(signal * log_q, axis=0))


def scored(term: Any) -> Any:
    """Return zeros that have the gradient of a term."""
    return term - jax.lax.stop_gradient(term)


def proposed_states(program: RowwiseModel) -> tuple[str, ...]:
    """Return the discrete nodes that a guide proposes; refuse guides for which the gradient would be none, or wrong."""
    if program.guide is None:
        raise InvalidArgument("the guide proposes nothing; say what latent nodes are proposed from: m.guide")
    if program.around:
        raise UnsupportedModel(
            f"a guide looks at {next(iter(program.around))!r}, which is summed out around it, so that proposals of its "
            "states hang together; give it a guide of its own"
        )
    sites = program.program.layout.sites
    supports = {n: sites[n].support for n in program.guide.names}
    return tuple(n for n, support in supports.items() if support is not None and support.is_discrete)


def features(rows: Any) -> Any:
    """Return all that is known of each row as numbers, one row a line, what was not seen 0."""
    found = []
    for name in sorted(rows):
        value = rows[name]
        if SEEN + name in rows:
            value = value * rows[SEEN + name]
        found.append(jnp.reshape(jnp.asarray(value, jnp.result_type(float)), (len(value), -1)))
    return jnp.concatenate(found, axis=1)


def _total(log_q: Any, states: tuple[str, ...], like: Any) -> Any:
    """Return log q of what was drawn without a gradient, by row."""
    return sum((log_q[n] for n in states), jnp.zeros_like(like))
