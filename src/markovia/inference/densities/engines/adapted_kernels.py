"""Metropolis-corrected moves whose step and covariance adapt in the warm-up, as Hamiltonian samplers' do.

Reference: Andrieu and Thoms (2008) for adapting proposals; the schedule (dual averaging of the step, Welford's covariance in
growing windows) is NumPyro's, which is Stan's. A sampler gives its proposal only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from markovia.inference.densities.engines.density_chains import ChainKernel, ChainStep
from markovia.inference.densities.program.density import Density
from markovia.runtime.libraries import jax, jnp


class AdaptedState(NamedTuple):
    """Where a chain is, and what it has learnt of the target's scale."""

    i: Any
    point: Any
    value: Any
    slope: Any
    acceptance: Any
    adapt: Any
    key: Any


class Proposed(NamedTuple):
    """A proposal: where, the log density and its gradient there, and the log of the acceptance ratio."""

    point: Any
    value: Any
    slope: Any
    log_ratio: Any


def adapted_kernel(
    density: Density,
    propose: Callable[..., Proposed],
    *,
    warmup: int,
    dense: bool,
    target: float,
    step: float,
) -> ChainKernel:
    """Return a transition that proposes, accepts or rejects, and adapts; call inside `x64()`.

    Parameters
    ----------
    density
        The target.
    propose
        `(climb, state, spread, step, noise) -> Proposed`: `climb(u)` gives log density and gradient, `spread(x)` multiplies
        is a `CovarianceFactor` of the adapted covariance, noise is standard normal.
    warmup, dense, target, step
        Steps that adapt, whether correlations do, the acceptance that steps aim at, and the first step.
    """
    from numpyro.infer.hmc_util import IntegratorState, warmup_adapter

    prepare, update = warmup_adapter(warmup, dense_mass=dense, target_accept_prob=target)

    def begin(key: Any, point: Any, value: Any, slope: Any, data: Any) -> AdaptedState:
        first, second = jax.random.split(key)
        adapt = prepare(IntegratorState(point, None, -value, -slope), first, jnp.asarray(step))
        return AdaptedState(jnp.asarray(0), point, value, slope, jnp.zeros(()), adapt, second)

    def advance(state: AdaptedState, data: Any) -> AdaptedState:
        key, first, second = jax.random.split(state.key, 3)
        noise = jax.random.normal(first, state.point.shape)
        covariance = state.adapt.inverse_mass_matrix
        if dense:
            factor = jnp.linalg.cholesky(covariance)
            spread = CovarianceFactor(
                lambda x: factor @ x,
                lambda x: jax.scipy.linalg.solve_triangular(factor, x, lower=True),
                lambda x: factor.T @ x,
            )
        else:
            root = jnp.sqrt(covariance)
            spread = CovarianceFactor(lambda x: root * x, lambda x: x / root, lambda x: root * x)

        def climb(u: Any) -> Any:
            return jax.value_and_grad(density.log_prob)(u, data)

        new = propose(climb, state, spread, state.adapt.step_size, noise)
        ratio = jnp.where(jnp.isfinite(new.value) & ~jnp.isnan(new.log_ratio), new.log_ratio, -jnp.inf)
        acceptance = jnp.minimum(1.0, jnp.exp(ratio))
        taken = jnp.log(jax.random.uniform(second)) < ratio
        point, value, slope = (
            jnp.where(taken, there, here)
            for there, here in (
                (new.point, state.point),
                (new.value, state.value),
                (new.slope, state.slope),
            )
        )
        adapt = jax.lax.cond(
            state.i < warmup,
            lambda a: update(state.i, acceptance, IntegratorState(point, None, -value, -slope), a),
            lambda a: a,
            state.adapt,
        )
        return AdaptedState(state.i + 1, point, value, slope, acceptance, adapt, key)

    def record(state: AdaptedState) -> ChainStep:
        return ChainStep(
            state.point,
            state.value,
            state.acceptance,
            jnp.asarray(False),
            -state.value,
            jnp.ones(()),
            state.adapt.step_size,
        )

    return ChainKernel(begin, advance, record)


class CovarianceFactor(NamedTuple):
    """A factor F of the covariance F F': its product, its inverse's, and its transpose's with a vector."""

    times: Callable[[Any], Any]
    inverse: Callable[[Any], Any]
    transposed: Callable[[Any], Any]
