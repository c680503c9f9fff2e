"""What engines on a smooth log density share: how a question becomes a density, and how draws become an answer.

A model with distributions as functions of their parents is one log density of an unconstrained vector, discrete latent
variables summed out (`program.py`). An engine here only has to say how it draws from such a density: `draw`. The questions
of the `Engine` protocol follow: posteriors are draws, the best assignment is the mode that L-BFGS climbs to from several
starts, and the log mass is known to engines that estimate it (`smc`, `laplace`, `importance`, and variational bounds).
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import isnan
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np

from markovia.errors import Unanswered, UnsupportedModel
from markovia.inference.densities.program.compiled_functions import as_data, at_points, constrained
from markovia.inference.densities.program.density import Density
from markovia.inference.densities.program.draw_stats import DensityDraws, DrawStats
from markovia.inference.engine import ASKED_FOR, DENSITIES, without_cure
from markovia.inference.markov_chains.diagnostics import R_HAT_LIMIT
from markovia.inference.problem import Problem
from markovia.inference.result import Assignment, Draws, Info, LogMass, Ranked, Record
from markovia.optimise.minimise import minimise
from markovia.runtime.array_types import Array, Ints
from markovia.runtime.checks import TimeLimit, WholeSeed, check_options
from markovia.runtime.clock import Clock
from markovia.runtime.double_precision import x64
from markovia.runtime.libraries import jax, jnp
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import random_keys

if (
    TYPE_CHECKING
):  # what only answers need is imported with the first of them, so that naming an engine is quick
    from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior
    from markovia.inference.densities.draws.function_draws import NodeFunction
    from markovia.inference.densities.program.program import Program
    from markovia.inference.densities.program.state_draws import LateStates, PlatedPosterior
    from markovia.inference.posterior import Posterior

EngineT = TypeVar("EngineT", bound="DensityEngine")
STARTS = 100
"""Starting points that are tried until the log density and its gradient are finite."""
MODE_STARTS = 4
STATE_DRAWS = 1000
"""Joint draws of several discrete variables where there is no number to draw."""
SUMMED_OUT = "plated-elimination"
"""Who answers where no numbers are left to draw: all states are summed out exactly (`plated_elimination`)."""
PROCESS = "gaussian-process"
"""Who answers where functions are summed out, and no numbers are left to draw."""
CLIMB = 2000
"""Steps to a peak at most."""


class CannotStart(Unanswered):
    """A density that is not finite at any starting point; `point` is the last one that was tried."""

    def __init__(self, message: str, point: Array) -> None:
        super().__init__(message)
        self.point = point


class DrawnAnswer:
    """The answer of an engine to a question about a program: draws, made into posteriors of the names asked for."""

    def __init__(self, program: "Program", drawn: DensityDraws) -> None:
        self.program, self.drawn = program, drawn
        self.log_mass, self.record = float(drawn.log_mass), drawn.record

    @cached_property
    def _states(self) -> "LateStates":
        from markovia.inference.densities.program.state_draws import LateStates, StateDraws

        def recover() -> dict[str, StateDraws]:
            found = self.program.finish(self.drawn)
            return {n: v for n, v in found.items() if isinstance(v, StateDraws)}

        return LateStates(self.program.hidden, recover)

    def posterior(
        self, names: Sequence[str], info: Info
    ) -> "DrawnPosterior | Posterior | PlatedPosterior | NodeFunction":
        """Return the posterior of some quantities; its draws keep every latent one.

        One discrete variable has a table, and one function is asked for at inputs.
        """
        drawn = self.drawn
        if len(names) == 1 and names[0] in self._states:
            weights = None if drawn.log_weights is None else _shares(drawn.log_weights)
            return self._states[names[0]].posterior(info, weights)
        from markovia.inference.densities.draws.drawn_posterior import DrawnPosterior

        masked = [n for n in names if self.program.layout.sites[n].masked]
        more = self.program.filled(drawn, masked) if masked else {}
        functions = () if self.program.functions is None else self.program.functions.names
        joint = DrawnPosterior(
            tuple(n for n in names if n not in functions or n in drawn.draws),
            {**drawn.draws, **more},
            info,
            stats=drawn.stats,
            log_weights=drawn.log_weights,
            pointwise=lambda: self.program.pointwise(drawn),
            program=self.program,
            states=self._states,
        )
        return joint.function(names[0]) if len(names) == 1 and names[0] in functions else joint


@dataclass(frozen=True, kw_only=True)
class DensityEngine(ABC):
    """Base of engines that see a model as a density.

    Parameters
    ----------
    seed
        Same seed, same answer. `sample` takes its seed from the model.
    time_limit
        Seconds after which the answer is made from what there is.
    progress
        Whether to show a bar; None shows one on a terminal once it takes long.
    reparameterize
        Which hierarchies `location + scale * standard` with an unknown scale are sampled non-centred, and which vectors with
        a multivariate normal prior whitened (`location + Cholesky factor @ standard`): "all", "none", or "auto", where few
        children inform each element.
    """

    seed: WholeSeed = 0
    time_limit: TimeLimit = None
    progress: bool | None = None
    reparameterize: Literal["auto", "all", "none"] = "auto"

    name: ClassVar[str]
    exact: ClassVar[bool] = False
    kinds: ClassVar[frozenset[str]] = DENSITIES
    answers: ClassVar[frozenset[str]] = frozenset({"joint", "marginals", "best", "sample"})

    def __post_init__(self) -> None:
        check_options(self)

    @abstractmethod
    def draw(self, density: Density) -> DensityDraws:
        """Draw from a density."""

    def _drawn_from(self, density: Density, states: int = 1) -> DensityDraws:
        """Draw; a density of no numbers, in which all is summed out, is known exactly.

        Of such a density only `states`, how often the discrete variables are drawn, is of interest.
        """
        if density.size:
            return self.draw(density)
        nothing = np.zeros((1, states, 0))
        height = log_densities(density, nothing)
        functions = getattr(density.source, "functions", None)
        record = Record(engine=SUMMED_OUT if functions is None else PROCESS, exact=True)
        return DensityDraws(
            nothing,
            constrained(density, nothing),
            DrawStats(height),
            record,
            log_mass=LogMass(float(height[0, 0]), record),
        )

    def joint(self, problem: Problem, targets: Sequence[str]) -> DrawnAnswer:
        """Return draws of all targets together."""
        program = self._told(problem, targets)
        one = len(targets) == 1 and program.functions is None
        drawn = self._drawn_from(program.density, 1 if one else STATE_DRAWS)
        record = replace(drawn.record, note="; ".join(filter(None, [program.note, drawn.record.note])))
        if program.centred and not record.converged and _hard_to_explore(record):
            names = ", ".join(
                f"{s.name!r}" + (f" (plate {', '.join(s.plates)})" if s.plates else "")
                for s in program.centred
            )
            record = replace(
                record, advice=f"{record.advice}; {names} can be sampled non-centred: reparameterize='all'"
            )
        return DrawnAnswer(program, replace(drawn, record=record))

    def marginals(self, problem: Problem, targets: Sequence[str]) -> DrawnAnswer:
        """Return draws of each target."""
        return self.joint(problem, targets)

    def log_mass(self, problem: Problem) -> LogMass:
        """Return the log of the mass that agrees with the findings."""
        if "log_mass" not in self.answers:
            raise without_cure(Unanswered, f"engine {self.name!r} does not give {ASKED_FOR['log_mass']}")
        drawn = self._drawn_from(self._program(problem).density)
        return LogMass(float(drawn.log_mass), drawn.record)

    def best(self, problem: Problem, targets: Sequence[str], m: int) -> Ranked:
        """Return the highest mode found of the numbers, and the best states of all discrete variables given these."""
        if m > 1:
            raise without_cure(Unanswered, f"engine {self.name!r} finds one mode, not the m={m} best")
        program = self._program(problem)
        states = [n for n in program.hidden if n in targets]
        known = [*program.slots, *(program.hidden if states else ())]
        left_out = next((n for n in known if n not in targets), None)
        if left_out is not None:  # a coordinate of the common mode is not the mode of that quantity
            raise without_cure(
                Unanswered,
                f"engine {self.name!r} finds the mode of everything together, not that of targets=[...] with "
                f"{left_out!r} integrated out",
            )
        point, height, converged = mode(program.density, self.seed, jacobian=False)
        record = Record(
            converged=converged,
            bound=float("inf"),
            advice=""
            if converged
            else "the climb did not end at a flat point; scale the data or give stronger priors",
        )
        found = dict(constrained(program.density, point[None]))
        if states:
            best, log_share = at_points(
                program.density, "best states", lambda key, u, data: program.best_states(u, data), point[None]
            )
            found.update(best)
            height += float(log_share[0])
        codes = {n: found[n][0].item() if found[n].ndim == 1 else found[n][0] for n in targets if n in found}
        for name in program.functions.names if program.functions is not None else ():
            if name in targets:  # given the rest, its own mode is its mean
                from markovia.inference.densities.draws.function_draws import function_of

                codes[name] = function_of(program, name, found, None, Info(self.name, note=program.note))
        codes = {n: codes[n] for n in targets}
        return Ranked([Assignment(codes, height)], record)

    def sample(self, problem: Problem, n: int, rng: np.random.Generator) -> Draws:
        """Draw n configurations of the free variables given the findings."""
        program = self._program(problem)
        drawn = self._seeded(rng)._drawn_from(program.density, n)
        finished = program.finish(drawn)
        rows = pick(drawn, n, rng)
        from markovia.inference.densities.program.state_draws import StateDraws

        every: dict[str, Any] = {n: v.codes if isinstance(v, StateDraws) else v for n, v in finished.items()}
        found = {n: v.reshape(-1, *v.shape[2:])[rows] for n, v in every.items()}
        return Draws(found, drawn.record)

    def _seeded(self: EngineT, rng: np.random.Generator) -> EngineT:
        return replace(self, seed=int(rng.integers(2**31)))

    def _refuse_tables(self, problem: Problem) -> None:
        if problem.kinds <= {"table"}:
            raise without_cure(
                UnsupportedModel,
                f"engine {self.name!r} is for models with numbers, and every variable here has states",
            )

    def _program(self, problem: Problem) -> "Program":
        self._refuse_tables(problem)
        from markovia.inference.densities.program.program import program_of

        return program_of(problem, self.reparameterize)

    def _told(self, problem: Problem, targets: Sequence[str]) -> "Program":
        """Return the density of a problem; without barren nodes where these would refuse it, or keep functions in it.

        Elsewhere they are drawn along, so that a posterior has them.
        """
        try:
            program = self._program(problem)
        except UnsupportedModel:
            if (bare := problem.bare(targets)) is problem:
                raise
            return self._program(bare)
        bare = problem if program.functions is None else problem.bare(targets)
        return program if bare is problem else self._program(bare)

    def _clock(self, total: int, unit: str = "draw") -> Clock:
        return Clock(self.time_limit, self.progress, total=total, unit=unit, name=self.name)

    def _key(self) -> Any:
        """Return the random key of the seed; call inside `x64()`."""
        seed = self.seed if self.seed is not None else int(np.random.SeedSequence().generate_state(1)[0])
        return jax.random.PRNGKey(int(seed))


def _hard_to_explore(record: Record) -> bool:
    """Say whether chains went astray or disagree, as they do in funnels and along ridges."""
    details = record.details
    return bool(getattr(details, "divergences", 0)) or getattr(details, "r_hat", 1.0) > R_HAT_LIMIT


def _shares(log_weights: Array) -> Array:
    """Return weights that sum to one."""
    weights = np.exp(log_weights - log_weights.max())
    return np.asarray(weights / weights.sum())


def pick(drawn: DensityDraws, n: int, rng: np.random.Generator) -> Ints:
    """Return the positions of n draws, chains one after the other: without repetition where they weigh alike and suffice."""
    many = drawn.points.shape[0] * drawn.points.shape[1]
    if drawn.log_weights is not None:
        return np.asarray(rng.choice(many, n, p=_shares(drawn.log_weights).ravel()))
    return np.asarray(rng.permutation(many)[:n] if n <= many else rng.integers(many, size=n))


def log_densities(density: Density, points: Array) -> Array:
    """Return the log density at points, whose last axis is the vector."""
    found: Array = at_points(density, "log density", lambda key, u, data: density.log_prob(u, data), points)
    return found


def starting_points(density: Density, keys: Any, data: Any) -> tuple[Any, Any, Any, Any]:
    """Return points, log densities, gradients and whether these are finite, for each key; traceable.

    For each key starting points are drawn until the log density and its gradient are finite, `STARTS` times at most.
    """
    climb = jax.value_and_grad(density.log_prob)

    def look(key: Any) -> tuple[Any, Any, Any, Any]:
        u = jnp.asarray(density.start(key, data), dtype=jnp.float64)
        value, slope = climb(u, data)
        return u, value, slope, jnp.isfinite(value) & jnp.all(jnp.isfinite(slope))

    def one(key: Any) -> tuple[Any, Any, Any, Any]:
        def more(carry: Any) -> Any:
            return ~carry[1][3] & (carry[2] < STARTS)

        def again(carry: Any) -> Any:
            key, _, tries = carry
            key, mine = jax.random.split(key)
            return key, look(mine), tries + 1

        nothing = jnp.zeros(density.size)
        first = (nothing, jnp.asarray(jnp.nan), nothing, jnp.asarray(False))
        found: tuple[Any, Any, Any, Any] = jax.lax.while_loop(more, again, (key, first, 0))[1]
        return found

    found: tuple[Any, Any, Any, Any] = jax.vmap(one)(keys)
    return found


def check_start(density: Density, points: Any, fine: Any, who: str) -> None:
    """Raise where a chain found no starting point, and say what is not finite there."""
    fine = np.asarray(fine)
    if fine.all():
        return
    point = np.asarray(points)[int(np.argmin(fine))]
    with x64():
        data = as_data(density)
        prior, likelihood = float(density.log_prior(point, data)), float(density.log_likelihood(point, data))
    values = constrained(density, point[None])
    shown = ", ".join(f"{n}={np.array2string(v[0], precision=4, threshold=4)}" for n, v in values.items())
    part = "log prior" if not np.isfinite(prior) else "log likelihood"
    if np.isfinite(prior) and np.isfinite(likelihood):
        part = "gradient of the log density"
    raise CannotStart(
        f"engine {who!r} cannot start: at {STARTS} starting points the {part} is not finite, for instance at {shown} "
        f"(log prior {prior:g}, log likelihood {likelihood:g}); check the data against the supports of the nodes",
        point,
    )


def mode(
    density: Density, seed: int | None, *, jacobian: bool, who: str = "best"
) -> tuple[Array, float, bool]:
    """Return the highest of the modes that L-BFGS finds from several starts, its log density, and whether it is flat there.

    Parameters
    ----------
    density, seed
        Where to climb, and the seed of the starting points.
    jacobian
        Whether the density is that of the unconstrained vector (for Laplace's approximation), or that of the quantities
        themselves (for most probable values), where the density knows its Jacobian.
    who
        The engine that an error names.
    """
    with x64():
        data = as_data(density)

        def starts(keys: Any, data: Any) -> Any:
            return starting_points(density, keys, data)

        def value(u: Any, data: Any) -> Any:
            height = density.log_prob(u, data)
            if not jacobian and density.log_jacobian is not None:
                height = height - density.log_jacobian(u, data)
            return -height

        keys = random_keys(seed or 0, MODE_STARTS)
        points, _, _, fine = compiled(density, "starts", MODE_STARTS, starts, keys, data, once=True)(
            keys, data
        )
        check_start(density, points, fine, who)
        if density.size == 0:
            return np.zeros(0), -float(value(np.zeros(0), data)), True
        climb = compiled(density, "climb", jacobian, jax.value_and_grad(value), points[0], data)

        def both(u: Array) -> tuple[float, Array]:
            v, g = climb(jax.numpy.asarray(u), data)
            return float(v), np.asarray(g)

        best: Any = None
        for start in np.asarray(points):
            found = minimise(both, start, max_iter=CLIMB, tol=1e-7)
            if best is None or found.value < best.value:
                best = found
    flat = best.error < 1e-3 * max(1.0, abs(best.value))
    return best.point, -best.value, flat and not isnan(best.value)
