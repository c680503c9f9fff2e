"""How long a particle filter takes for each particle and step, side by side with the package `particles`.

Run: python benchmarks/sequences_particles.py [--quick] [--particles N] [--steps T]

Stochastic volatility, bootstrap, systematic resampling below half of the particles: 10,000 of them, then N, over T steps on
whatever device JAX has, and the peer with 10,000 where it can be imported. Times are the best of
some runs after a first one, which is shown apart because it compiles.
"""

import argparse
from collections.abc import Callable
from time import perf_counter
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import markovia as mk
import markovia.distributions as dist

PHI, SIGMA = 0.95, 0.3


def volatility(n: int) -> mk.ParticleFilter:
    """Return the filter of the model."""
    return mk.ParticleFilter(
        initial=dist.Normal(0, SIGMA / np.sqrt(1 - PHI**2)),
        transition=lambda x: dist.Normal(PHI * x, SIGMA),
        observation=lambda x: dist.Normal(0, jnp.exp(x / 2)),
        n_particles=n,
        random_state=0,
    )


def timed(task: Callable[[], Any], runs: int) -> tuple[float, float, Any]:
    """Return the time of the first run, the best of some later ones, and the answer."""
    start = perf_counter()
    found = task()
    first, best = perf_counter() - start, np.inf
    for _ in range(runs):
        start = perf_counter()
        task()
        best = min(best, perf_counter() - start)
    return first, best, found


def line(name: str, n: int, steps: int, took: tuple[float, float, Any]) -> None:
    """Print one row."""
    first, best, found = took
    each = 1e9 * best / (n * steps)
    print(
        f"{name:10} {n:>10,} x {steps:>5,}  first {first:8.2f} s  best {best:8.3f} s  {each:8.2f} ns  {found:12.3f}"
    )


def peer(n: int, y: Any) -> Callable[[], float]:
    """Return the same filter by `particles`."""
    import particles
    from particles import distributions as theirs
    from particles import state_space_models as models

    class Volatility(models.StateSpaceModel):
        def PX0(self) -> Any:  # noqa: N802
            return theirs.Normal(loc=0.0, scale=SIGMA / np.sqrt(1 - PHI**2))

        def PX(self, t: int, xp: Any) -> Any:  # noqa: N802
            return theirs.Normal(loc=PHI * xp, scale=SIGMA)

        def PY(self, t: int, xp: Any, x: Any) -> Any:  # noqa: N802
            return theirs.Normal(loc=0.0, scale=np.exp(x / 2))

    def run() -> float:
        bootstrap = models.Bootstrap(ssm=Volatility(), data=y)
        found = particles.SMC(fk=bootstrap, N=n, resampling="systematic", ESSrmin=0.5)
        found.run()
        return float(found.logLt)

    return run


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the steps")
    parser.add_argument("--particles", type=int, default=1_000_000)
    parser.add_argument("--steps", type=int, default=1_000)
    options = parser.parse_args()
    steps = options.steps // 10 if options.quick else options.steps
    y = volatility(2).sample(steps, seed=1)[0][0]
    print(f"JAX on {jax.devices()[0].device_kind}; nanoseconds a particle and step, and the log likelihood\n")
    for n, runs in ((10_000, 3), (options.particles, 1)):
        model = volatility(n)
        line("markovia", n, steps, timed(lambda model=model: float(model.log_prob(y)[0]), runs))
    try:
        other = peer(10_000, y)
    except ImportError:
        print("particles is not installed")
        return 0
    line("particles", 10_000, steps, timed(other, 3))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
