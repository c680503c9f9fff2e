"""Where an on-line particle filter stands: particles and weights, to be stored and taken up again."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np

from markovia.data.sequences.sequences import read_sequences
from markovia.errors import InvalidArgument
from markovia.inference.particles.filtering import Cloud, Filter, fresh_seeds, step_keys
from markovia.inference.particles.laws import ALONE, by_name, value_of
from markovia.inference.particles.model import Shape
from markovia.inference.particles.moves import SeenSteps
from markovia.inference.particles.results import ParticleStep, check_trouble, one_step
from markovia.models.temporal.particle_data import particle_data
from markovia.runtime.array_types import Array
from markovia.runtime.machine_code import compiled
from markovia.runtime.seeds import Seed


@dataclass(frozen=True, repr=False)
class ParticleState:
    """Particles after some observations; all arrays are NumPy's, so it can be pickled.

    Attributes
    ----------
    seed
        What the random numbers of further steps are made from.
    t
        How many observations there were.
    particles
        The states, one row a particle; a mapping where they have names.
    log_weights
        Logs of weights that sum to one.
    log_evidence
        The log likelihood of the observations so far.
    """

    seed: Any
    t: int
    particles: Any
    log_weights: Array
    log_evidence: float

    def save(self, path: str | PathLike[str]) -> None:
        """Write it as an `.npz` file."""
        named = {f"particles {name}": x for name, x in by_name(self.particles).items()}
        numbers = {"seed": self.seed, "t": self.t, "log_weights": self.log_weights}
        with open(path, "wb") as out:
            np.savez(out, **numbers, log_evidence=self.log_evidence, **named)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "ParticleState":
        """Read it from an `.npz` file."""
        with np.load(path, allow_pickle=False) as held:
            named = {
                n.removeprefix("particles ").strip() or ALONE: held[n]
                for n in held
                if n.startswith("particles")
            }
            return cls(
                held["seed"],
                int(held["t"]),
                value_of(named),
                held["log_weights"],
                float(held["log_evidence"]),
            )

    def __repr__(self) -> str:
        return f"ParticleState(t={self.t}, particles={len(self.log_weights)})"


def after(
    filter_: Filter,
    parameters: dict[str, Any],
    state: ParticleState | None,
    y: Any,
    u: Any,
    random_state: Seed,
) -> tuple[ParticleState, ParticleStep]:
    """Return the state after one more observation, and what is known then; call inside `x64()`."""
    import jax

    t = 0 if state is None else state.t
    seed = fresh_seeds(random_state, 1)[0] if state is None else state.seed
    now = _seen(y, u, filter_.moves.shape, t)
    keys = step_keys(seed, t, t + 1)[0]
    model = filter_.moves.model
    if state is None:
        args: tuple[Any, ...] = (keys, now, parameters)
        cloud, record = compiled(model, "first particles", filter_.settings, filter_.begin, *args)(*args)
    else:
        cloud = Cloud(state.particles, state.log_weights, np.float64(state.log_evidence))
        args = (keys, cloud, np.asarray(t), now, parameters)
        cloud, record = compiled(model, "next particles", filter_.settings, filter_.go_on, *args)(*args)
    check_trouble(np.atleast_1d(record.trouble), np.atleast_1d(record.log_evidence), lambda _: f"step {t}")
    particles = jax.tree.map(np.asarray, cloud.states)
    found = ParticleState(seed, t + 1, particles, np.asarray(cloud.log_weights), float(cloud.log_evidence))
    return found, one_step(t, cloud, record)


def _seen(y: Any, u: Any, shape: Shape, t: int) -> SeenSteps:
    """Return the observation of step t, given as a number, a vector, or a mapping by name."""
    if isinstance(y, Mapping):
        gone = [n for n in shape.observed if n not in y]
        if gone:
            raise InvalidArgument(
                f"the observation of step {t} has no {gone[0]!r}; give NaN where it is missing"
            )
        y = np.concatenate([np.ravel(y[n]) for n in shape.observed])
    cells = np.asarray(y)
    row = np.reshape(cells if cells.dtype.kind in "biuf" else cells.astype(object), (1, -1))
    data = particle_data(replace(read_sequences(row), first=t), shape, None)
    given = None if u is None else np.asarray(u, dtype=np.float64)
    return SeenSteps(
        value_of({n: x[0] for n, x in data.y.items()}),
        value_of({n: x[0] for n, x in data.missing.items()}),
        given,
    )
