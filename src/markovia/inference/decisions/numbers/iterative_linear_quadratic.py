"""Controls of systems that are given by functions: iterated linear-quadratic regulation.

Method: around a path, dynamics are linear and rewards quadratic to first and second order (derivatives by JAX), so the
best change of the controls is that of a linear-quadratic problem; a step of it is taken as far as the rewards rise,
and where they do not, costs on the change are added (Li and Todorov 2004; Tassa, Erez and Todorov 2012). Where rewards
bend upwards, their curvature counts by its size. Controls with limits stay within them: those at a limit that their
gradient presses against are held there (Tassa, Mansard and Todorov 2014, one step of the projected Newton method). The
path is a local optimum.

Cost of a round: the derivatives of each step at once, and horizon times states cubed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from markovia.errors import InvalidArgument
from markovia.inference.result import Info
from markovia.runtime.array_types import Array
from markovia.runtime.checks import SECONDS, check, check_count, check_number, numbers
from markovia.runtime.clock import Clock, Stopwatch
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp

Dynamics: TypeAlias = Callable[[Any, Any], Any]
Reward: TypeAlias = Callable[[Any, Any], Any]
HALVINGS = 12
"""How often a step is halved until rewards rise."""
FLOOR = 1e-9
"""The least curvature in the controls, as a part of the largest."""
WEAKER, STRONGER = 0.2, 10.0
"""By how much the cost on changes falls where a step succeeds, and rises where it fails."""
STRONGEST = 1e12


@dataclass(frozen=True, eq=False, repr=False)
class ControlledPath:
    """A path of states and the controls that lead along it.

    Attributes
    ----------
    states, controls
        (T + 1, n) and (T, m).
    gains
        (T, m, n): how controls answer to being off the path, u = controls + gains (x - states).
    value
        The rewards along the path.
    info
        How it was found; `converged` says whether no change promises more than the tolerance.

    Examples
    --------
    >>> path = plan_path(lambda x, u: x + u, lambda x, u: -(x @ x) - u @ u, [1.0], 2, final=lambda x: -(x @ x))
    >>> path.controls.round(6).ravel().tolist()
    [-0.6, -0.2]
    """

    states: Array
    controls: Array
    gains: Array
    value: float
    info: Info
    limits: tuple[Array, Array] | None = None

    def act(self, state: Any, step: int = 0) -> Array:
        """Return the control at a state near the path at a step."""
        check_count("step", step)
        if step >= len(self.controls):
            raise InvalidArgument(f"the path has the steps 0 to {len(self.controls) - 1}, not {step}")
        x = np.atleast_1d(numbers(state, "a state holds numbers"))
        control = self.controls[step] + self.gains[step] @ (x - self.states[step])
        return np.asarray(control if self.limits is None else np.clip(control, *self.limits))

    def __repr__(self) -> str:
        return f"ControlledPath: {len(self.controls)} steps, value {self.value:.6g}"


class _Path(NamedTuple):
    """States (T + 1, n), controls (T, m), what the path costs, and the answers (T, m, n)."""

    xs: Any
    us: Any
    cost: Any
    gains: Any


class PathOptimiser:
    """The compiled rounds for some dynamics and rewards; shared by all paths of one length.

    Parameters
    ----------
    dynamics, reward, final
        `dynamics(x, u)` is the next state, `reward(x, u)` what a step is worth, `final(x)` what the last state is worth; all
        written in JAX.
    limits
        The least and the greatest controls, or None.

    Examples
    --------
    >>> rounds = PathOptimiser(lambda x, u: x + u, lambda x, u: -(x @ x) - u @ u)
    >>> rounds.best(np.array([1.0]), np.zeros((1, 1))).controls.round(6).tolist()
    [[0.0]]
    """

    def __init__(
        self,
        dynamics: Dynamics,
        reward: Reward,
        final: Callable[[Any], Any] | None = None,
        limits: Any = None,
    ) -> None:
        self.dynamics, self.reward, self.final = dynamics, reward, final
        self.limits = None if limits is None else _limits(limits)

    def best(
        self,
        start: Array,
        controls: Array,
        *,
        tolerance: float = 1e-10,
        max_iter: int = 200,
        time_limit: float | None = None,
        progress: bool | None = None,
    ) -> ControlledPath:
        """Return the best path near some controls."""
        watch, strength, last = Stopwatch(), 0.0, np.inf
        rounds, converged = 0, False
        with x64(), Clock(time_limit, progress, total=max_iter, unit="round", name="path") as clock:
            us = controls if self.limits is None else np.clip(controls, *self.limits)
            path: Any = self._rolled(jnp.asarray(start, dtype=float), jnp.asarray(us, dtype=float))
            self._check(path, start)
            while rounds < max_iter and not clock.over():
                rounds += 1
                after, promise = self._round(path, strength)
                last = float(promise)
                risen = float(path.cost) - float(after.cost)
                clock.advance(value=-float(after.cost))
                size = abs(float(path.cost)) + abs(risen)
                if last <= tolerance * size and strength <= 1.0:
                    path, converged = (
                        after._replace(gains=after.gains) if risen >= 0 else path._replace(gains=after.gains),
                        True,
                    )
                    break
                if risen > 0.0:
                    path, strength = after, strength * WEAKER if strength > 1e-8 else 0.0
                    continue
                path = path._replace(gains=after.gains)
                strength = max(1e-4, strength * STRONGER)
                if (
                    strength > STRONGEST
                ):  # no change at all is any better: rounding is what is left of the promise
                    converged = last <= 1e-6 * size
                    break
            xs, us, gains = (np.asarray(part, dtype=np.float64) for part in (path.xs, path.us, path.gains))
        info = Info(
            "iterated linear-quadratic", converged=converged, iterations=rounds, error=last, seconds=watch.seconds,
            compile_seconds=watch.compile_seconds, advice="" if converged else "raise max_iter=, or give other controls=",
        )  # fmt: skip
        return ControlledPath(xs, us, gains, -float(path.cost) + 0.0, info, self.limits)

    def _check(self, path: Any, start: Array) -> None:
        if path.xs.shape[1:] != np.shape(start) or np.shape(path.cost) != ():
            raise InvalidArgument(
                "dynamics(x, u) returns the next state, shaped as x, and reward(x, u) one number"
            )
        if not np.isfinite(float(path.cost)):
            raise InvalidArgument(
                "the first controls lead to rewards that are not finite; give controls= to begin with"
            )

    def _cost(self, x: Any, u: Any) -> Any:
        return -jnp.asarray(self.reward(x, u), dtype=float).reshape(())

    def _last(self, x: Any) -> Any:
        return jnp.zeros(()) if self.final is None else -jnp.asarray(self.final(x), dtype=float).reshape(())

    def _next(self, x: Any, u: Any) -> Any:
        return jnp.asarray(self.dynamics(x, u), dtype=float)

    @cached_property
    def _rolled(self) -> Any:
        def roll(start: Any, us: Any) -> _Path:
            def step(x: Any, u: Any) -> Any:
                after = self._next(x, u)
                return after, (after, self._cost(x, u))

            last, (xs, costs) = jax.lax.scan(step, start, us)
            gains = jnp.zeros((*us.shape, len(start)))
            return _Path(jnp.concatenate([start[None], xs]), us, costs.sum() + self._last(last), gains)

        return jax.jit(roll)

    @cached_property
    def _round(self) -> Any:
        """A function of a path and the cost on changes; returns the best path on the way, and what the change promised."""

        def run(path: _Path, strength: Any) -> tuple[_Path, Any]:
            pushes, gains, promise = self._changes(path, strength)
            shares = 0.5 ** jnp.arange(HALVINGS)
            found = jax.vmap(lambda share: self._followed(path, share * pushes, gains))(shares)
            costs = jnp.where(jnp.isfinite(found.cost), found.cost, jnp.inf)
            best = jnp.argmin(costs)
            chosen = jax.tree.map(lambda part: part[best], found)
            return _Path(chosen.xs, chosen.us, costs[best], gains), promise

        return jax.jit(run)

    def _followed(self, path: _Path, pushes: Any, gains: Any) -> _Path:
        """Return the path of changed controls, which answer to what the change does to the states."""

        def step(x: Any, given: Any) -> Any:
            x_old, u_old, push, gain = given
            u = u_old + push + gain @ (x - x_old)
            u = u if self.limits is None else jnp.clip(u, *self.limits)
            after = self._next(x, u)
            return after, (after, u, self._cost(x, u))

        last, (xs, us, costs) = jax.lax.scan(step, path.xs[0], (path.xs[:-1], path.us, pushes, gains))
        return _Path(jnp.concatenate([path.xs[:1], xs]), us, costs.sum() + self._last(last), gains)

    def _changes(self, path: _Path, strength: Any) -> tuple[Any, Any, Any]:
        """Return the pushes and gains of the linear-quadratic problem around a path, and what they promise."""
        xs, us = path.xs[:-1], path.us
        n = xs.shape[1]
        fx, fu = jax.vmap(jax.jacfwd(self._next, (0, 1)))(xs, us)
        joint = lambda z: self._cost(z[:n], z[n:])  # noqa: E731
        zs = jnp.concatenate([xs, us], axis=1)
        slopes, bends = jax.vmap(jax.grad(joint))(zs), jax.vmap(jax.hessian(joint))(zs)
        size = 1.0 + jnp.abs(jnp.trace(bends[:, n:, n:], axis1=1, axis2=2)).mean()

        def step(after: Any, given: Any) -> Any:
            V, v = after  # noqa: N806
            A, B, slope, bend, u = given  # noqa: N806
            Q = bend + jnp.concatenate([A, B], axis=1).T @ V @ jnp.concatenate([A, B], axis=1)  # noqa: N806
            q = slope + jnp.concatenate([A, B], axis=1).T @ v
            Quu, Qux, qu = Q[n:, n:], Q[n:, :n], q[n:]  # noqa: N806
            values, axes = jnp.linalg.eigh(Quu)
            values = jnp.maximum(jnp.abs(values), FLOOR * jnp.abs(values).max()) + strength * size
            values = jnp.where(values > 0.0, values, 1.0)
            free = self._free(u, qu)
            # what is held at its limit neither moves nor answers
            whole = (axes * values) @ axes.T
            kept = whole * jnp.outer(free, free) + jnp.diag(1.0 - free)
            push = -jnp.linalg.solve(kept, free * qu)
            gain = -jnp.linalg.solve(kept, free[:, None] * Qux)
            V = Q[:n, :n] + gain.T @ Quu @ gain + gain.T @ Qux + Qux.T @ gain  # noqa: N806
            v = q[:n] + gain.T @ Quu @ push + gain.T @ qu + Qux.T @ push
            return ((V + V.T) / 2.0, v), (push, gain, -(push @ qu))

        last = path.xs[-1]
        first = (jax.hessian(self._last)(last), jax.grad(self._last)(last))
        _, (pushes, gains, promise) = jax.lax.scan(step, first, (fx, fu, slopes, bends, us), reverse=True)
        return pushes, gains, promise.sum()

    def _free(self, u: Any, slope: Any) -> Any:
        if self.limits is None:
            return jnp.ones_like(u)
        low, high = self.limits
        return 1.0 - (((u <= low) & (slope > 0.0)) | ((u >= high) & (slope < 0.0)))


def plan_path(
    dynamics: Dynamics,
    reward: Reward,
    start: Any,
    horizon: int,
    *,
    final: Callable[[Any], Any] | None = None,
    controls: Any = 1,
    limits: Any = None,
    tolerance: float = 1e-10,
    max_iter: int = 200,
    time_limit: float | None = None,
    progress: bool | None = None,
) -> ControlledPath:
    """Return the controls that make rewards along a path locally greatest.

    Parameters
    ----------
    dynamics, reward, final
        Functions of a state and a control, written in JAX: the next state, what a step is worth; and what the last state is
        worth, by default nothing.
    start, horizon
        The first state, and how many steps there are.
    controls
        How many numbers a control has, or controls to begin with, (horizon, m).
    limits
        A pair: the least and the greatest controls, numbers or one for each.
    tolerance
        The promised gain that is small enough, as a part of the rewards.
    max_iter, time_limit, progress
        Rounds at most, seconds, and whether to show a bar.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> swing = lambda x, u: x + 0.1 * jnp.array([x[1], jnp.sin(x[0]) + u[0]])
    >>> path = plan_path(swing, lambda x, u: -0.01 * u @ u, [0.5, 0.0], 30, final=lambda x: -10.0 * x @ x, limits=(-2, 2))
    >>> path.info.converged, bool(abs(path.states[-1]).max() < 0.05)
    (True, True)
    """
    check_count("horizon", horizon, 1)
    check_number("tolerance", tolerance, positive=True)
    check_count("max_iter", max_iter, 1)
    check("time_limit", time_limit, SECONDS)
    x = np.atleast_1d(numbers(start, "start= holds the numbers of the first state"))
    us = first_controls(controls, horizon)
    optimiser = PathOptimiser(dynamics, reward, final, limits)
    return optimiser.best(
        x, us, tolerance=tolerance, max_iter=max_iter, time_limit=time_limit, progress=progress
    )


def first_controls(controls: Any, horizon: int) -> Array:
    """Return controls to begin with, (horizon, m): zeros where only their number is given.

    Examples
    --------
    >>> first_controls(1, 2).tolist()
    [[0.0], [0.0]]
    """
    if np.ndim(controls) == 0:
        check_count("controls", controls, 1)
        return np.zeros((horizon, int(controls)))
    found = numbers(controls, "controls= holds numbers")
    if found.ndim != 2 or len(found) != horizon:
        raise InvalidArgument(f"controls= has one row a step, {horizon} of them, not the shape {found.shape}")
    return found


def _limits(limits: Any) -> tuple[Array, Array]:
    try:
        low, high = (np.asarray(end, dtype=np.float64) for end in limits)
    except (TypeError, ValueError):
        raise InvalidArgument("limits= is a pair: the least and the greatest controls") from None
    if not (low < high).all():
        raise InvalidArgument("limits= gives each control a least number below its greatest")
    return low, high
