"""Moving particles one step: where new states are drawn from, and what weight they get.

*bootstrap* draws from the transition and weighs by the observation (Gordon, Salmond and Smith 1993). *guided* draws from a
proposal that has seen the observation, the user's or the best one known: exactly that for a discrete state, whose states are
all tried, a Gaussian at the mode of transition times observation otherwise, which is exact where both are linear Gaussian
(Doucet, Godsill and Andrieu 2000). *auxiliary* resamples by how well a state explains the next observation (Pitt and
Shephard 1999, in the form of Johansen and Doucet 2008). *twisted* resamples by how well it explains all of them, by a
function of the user (Guarniero, Johansen and Lee 2017). All leave the likelihood estimate unbiased.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from markovia.errors import InvalidArgument
from markovia.inference.particles.laws import (
    ALONE,
    draw_all,
    log_density,
    log_density_of_seen,
    mean,
)
from markovia.inference.particles.model import ParticleModel, Shape, Where
from markovia.runtime.libraries import jax, jnp

NEWTON_STEPS = 3
FINE, UNSEEN, UNREACHED, NAN_SEEN, NAN_MOVED = range(5)
"""What may be wrong with a step: all observation densities zero, all transition densities zero, or one of them NaN."""


class SeenSteps(NamedTuple):
    """One step's observation, which of its numbers are missing, and the step's inputs."""

    y: Any
    missing: Any
    u: Any


@dataclass(frozen=True)
class Moves:
    """How the particles of a model move, by one of the methods."""

    model: ParticleModel
    shape: Shape
    method: str

    def __post_init__(self) -> None:
        alone = not isinstance(self.shape.state, Mapping)
        if self.automatic and not (alone and (self.shape.real or self.shape.states)):
            raise InvalidArgument(
                f"method={self.method!r} makes its own proposal only for a state that is a number or vector without bounds, "
                "or one categorical quantity; give proposal=, a function of the state and y that returns a distribution"
            )
        if self.method == "twisted" and self.model.twist is None:
            raise InvalidArgument("method='twisted' needs twist=, a function of the state and t")

    @property
    def automatic(self) -> bool:
        """Whether the proposal is made here."""
        return self.method in ("guided", "twisted") and self.model.proposal is None

    def lookahead(self, states: Any, now: SeenSteps, where: Where) -> Any | None:
        """Return log weights by which states are resampled for the observation to come; None for no such.

        `where` is that of the step to come.
        """
        model = self.model
        if self.method == "twisted":
            before = where._replace(t=where.t - 1)
            return jax.vmap(lambda x: model.log_weight("twist", x, before))(states)
        if self.method != "auxiliary":
            return None
        if model.lookahead is not None:
            found = jax.vmap(lambda x: model.log_weight("lookahead", x, where._replace(y=now.y)))(states)
            return jnp.where(_incomplete(now), 0.0, found)

        def expected(x: Any) -> Any:
            law = model.moved(x, where)
            if ALONE in self.shape.states:
                return jax.nn.logsumexp(self._of_states(law, where, now))
            return self.seen(mean(law, "transition="), where, now)

        return jax.vmap(expected)(states)

    def begin(self, key: Any, n: int, now: SeenSteps, where: Where) -> tuple[Any, Any, Any]:
        """Return n first states, their log weights, and what is wrong with them."""
        own = self.model.initial_proposal is not None and self.method != "bootstrap"
        offered = (lambda _: self.model.proposed(None, where._replace(y=now.y))) if own else None
        return self._move(key, lambda _: self.model.first(where), offered, jnp.zeros(n), now, where)

    def go_on(self, key: Any, states: Any, now: SeenSteps, where: Where) -> tuple[Any, Any, Any]:
        """Return the next states, what their log weights change by, and what is wrong with them."""
        own = self.model.proposal is not None and self.method != "bootstrap"
        offered = (lambda x: self.model.proposed(x, where._replace(y=now.y))) if own else None
        return self._move(key, lambda x: self.model.moved(x, where), offered, states, now, where)

    def _move(
        self, key: Any, moved: Callable[[Any], Any], offered: Any, states: Any, now: SeenSteps, where: Where
    ) -> tuple[Any, Any, Any]:
        from numpyro.distributions.batch_util import promote_batch_shape

        def weigh(x: Any) -> Any:
            return jax.vmap(lambda x: self.seen(x, where, now))(x)

        def plainly(key: Any) -> Any:
            x = self._as_state(draw_all(moved, states, key, "transition="))
            return x, *_checked(weigh(x), jnp.zeros(()))

        def guided(key: Any) -> Any:
            if offered is None:
                best = promote_batch_shape(jax.vmap(lambda x: self._best(moved(x), where, now))(states))
                x = best.sample(key)
                q = best.log_prob(x)
            else:
                x = self._as_state(draw_all(offered, states, key, "proposal="))
                q = jax.vmap(lambda x, before: log_density(offered(before), x, "proposal="))(x, states)
            f = jax.vmap(lambda x, before: log_density(moved(before), x, "transition="))(x, states)
            return self._as_state(x), *_checked(weigh(x), f - q)

        if offered is None and not self.automatic:
            x, change, trouble = plainly(key)
            return x, change, trouble
        x, change, trouble = jax.lax.cond(_incomplete(now), plainly, guided, key)
        return x, change, trouble

    def _as_state(self, x: Any) -> Any:
        return jax.tree.map(lambda x, like: x.astype(like.dtype), x, self.shape.state)

    def seen(self, x: Any, where: Where, now: SeenSteps) -> Any:
        """Return the log density of a step's observation given the state."""
        return log_density_of_seen(self.model.seen(x, where), now.y, now.missing, "observation=")

    def _future(self, x: Any, where: Where, now: SeenSteps) -> Any:
        """Return the log weight of a state by its observation and, where twisted, those after it."""
        found = self.seen(x, where, now)
        return found + self.model.log_weight("twist", x, where) if self.method == "twisted" else found

    def _of_states(self, law: Any, where: Where, now: SeenSteps) -> Any:
        """Return the log weight of each state of a discrete quantity: transition times observation (and twist)."""
        every = jnp.arange(self.shape.states[ALONE], dtype=self.shape.state.dtype)
        return jax.vmap(lambda k: log_density(law, k, "transition=") + self._future(k, where, now))(every)

    def _best(self, law: Any, where: Where, now: SeenSteps) -> Any:
        """Return the proposal that makes weights even, or comes near."""
        import numpyro.distributions as theirs

        if ALONE in self.shape.states:
            return theirs.CategoricalLogits(self._of_states(law, where, now))
        return self._gaussian(law, where, now)

    def _gaussian(self, law: Any, where: Where, now: SeenSteps) -> Any:
        """Return a Gaussian at the mode of transition times observation, by Newton steps from the transition's mean.

        The transition's curvature is taken at its mean; of the observation's only what narrows.
        """
        import numpyro.distributions as theirs
        from jax.flatten_util import ravel_pytree

        start, unravel = ravel_pytree(self._as_state(mean(law, "transition=")))

        def f(v: Any) -> Any:
            return log_density(law, unravel(v), "transition=")

        def g(v: Any) -> Any:
            return self._future(unravel(v), where, now)

        own = _narrowing(-jax.hessian(f)(start))

        def newton(v: Any, _: Any) -> Any:
            precision = own + _narrowing(-jax.hessian(g)(v))
            return v + _solve(precision, jax.grad(f)(v) + jax.grad(g)(v)), None

        at, _ = jax.lax.scan(newton, start, None, length=NEWTON_STEPS)
        precision = own + _narrowing(-jax.hessian(g)(at))
        if len(start) > 1:
            return theirs.MultivariateNormal(at, precision_matrix=precision)
        spread = theirs.Normal(unravel(at), precision[0, 0] ** -0.5)
        return spread.to_event(len(spread.batch_shape))


def _checked(seen: Any, ratio: Any) -> tuple[Any, Any]:
    """Return log weights with NaN as nothing, and what is wrong."""
    total = seen + ratio
    trouble = jnp.where(jnp.isneginf(jnp.broadcast_to(ratio, seen.shape)).all(), UNREACHED, FINE)
    trouble = jnp.where(jnp.isneginf(seen).all(), UNSEEN, trouble)
    trouble = jnp.where(jnp.isneginf(total).all() & (trouble == FINE), UNREACHED, trouble)
    trouble = jnp.where(jnp.isnan(ratio).any(), NAN_MOVED, trouble)
    trouble = jnp.where(jnp.isnan(seen).any(), NAN_SEEN, trouble)
    return jnp.where(jnp.isnan(total), -jnp.inf, total), trouble


def _incomplete(now: SeenSteps) -> Any:
    """Whether some number of the observation is missing, so that no proposal can look at it."""
    return jnp.stack([h.any() for h in jax.tree.leaves(now.missing)]).any()


def _narrowing(matrix: Any) -> Any:
    """Return the part of a symmetric matrix that is not negative."""
    if matrix.shape[0] == 1:
        return jnp.maximum(matrix, 0.0)
    values, vectors = jnp.linalg.eigh(matrix)
    return (vectors * jnp.maximum(values, 0.0)) @ vectors.T


def _solve(matrix: Any, vector: Any) -> Any:
    return vector / matrix[0] if matrix.shape[0] == 1 else jnp.linalg.solve(matrix, vector)
