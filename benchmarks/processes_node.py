"""How long a Gaussian process summed out inside NUTS takes, side by side with NumPyro by hand, in one process each.

Run: python benchmarks/processes_node.py [--quick] [--rows N ...] [--draws D] [--repeats R]

Three hyper-parameters (length, scale, noise) with the same priors, a Matern 5/2 covariance, four chains. By hand it is
NumPyro's MultivariateNormal with the covariance matrix by its formula. "first" is the first answer of a fresh process (a
`cold` one has an empty cache of compiled code, which NumPyro always has), "again" the answer to other data of the same shape
in the same process. Processor and wall-clock seconds; draws worth as many independent ones (the least of the three) a second
of the processor; means of the length, which agree within Monte Carlo error.
"""

# ruff: noqa: N806 (letters of the literature)

import argparse
import os
import subprocess
import sys
import tempfile
from time import perf_counter, process_time
from typing import Any

import numpy as np

CHAINS = 4


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[200])
    parser.add_argument("--draws", type=int, default=150)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--one", help="internal: who to run in this process")
    parser.add_argument("--quick", action="store_true", help="forty rows")
    options = parser.parse_args()
    if options.one:
        alone(options.one, options.rows[0], options.draws)
        return 0
    print(f"{'rows':>5} {'who':>14}" + "".join(f"{t:>12}" for t in TITLES))
    for n in [40] if options.quick else options.rows:
        for _ in range(options.repeats):
            with tempfile.TemporaryDirectory() as empty:
                for who, more in (
                    ("cold", {"MARKOVIA_CACHE": empty}),
                    ("kept code", {"MARKOVIA_CACHE": empty}),
                    ("numpyro", {}),
                ):
                    own = "numpyro" if who == "numpyro" else "markovia"
                    command = [
                        sys.executable,
                        __file__,
                        "--one",
                        own,
                        "--rows",
                        str(n),
                        "--draws",
                        str(options.draws),
                    ]
                    found = subprocess.run(
                        command, env={**os.environ, **more}, check=True, capture_output=True, text=True
                    )
                    print(
                        f"{n:5} {own if own == who else f'{own}, {who}':>14}{found.stdout.rstrip()}",
                        flush=True,
                    )
    return 0


TITLES = ("first cpu", "first wall", "again cpu", "again wall", "ess/cpu s", "mean")


def rows(n: int, seed: int) -> tuple[Any, Any]:
    """Return inputs and noisy values of a smooth function."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 10.0, n))
    return x, np.sin(x) + 0.3 * x + 0.3 * rng.normal(size=n)


def alone(who: str, n: int, draws: int) -> None:
    """Print one line of the table: the first answer and the next."""
    ask = {"markovia": by_markovia, "numpyro": by_numpyro}[who]
    numbers = []
    for seed in (0, 1):
        cpu, wall = process_time(), perf_counter()
        found = ask(*rows(n, seed), draws)
        cpu, wall = process_time() - cpu, perf_counter() - wall
        numbers += [cpu, wall]
    from markovia.inference.markov_chains.diagnostics import ess

    worth = min(float(ess(v)) for v in found.values())
    numbers += [worth / numbers[2], float(found["length"].mean())]
    print("".join(f"{v:12.3g}" for v in numbers))


def by_markovia(x: Any, y: Any, draws: int) -> dict[str, Any]:
    """Return draws of the hyper-parameters of the node `mk.GP`."""
    import markovia as mk
    import markovia.distributions as dist

    k = mk.covariances
    m = mk.BayesianNetwork()
    m.add("length", dist.LogNormal(0.0, 1.0))
    m.add("scale", dist.HalfNormal(2.0))
    m.add("noise", dist.HalfNormal(1.0))
    m.add("f", lambda length, scale: mk.GP(scale**2 * k.Matern52(length)))
    m.add("y", lambda f, x, noise: dist.Normal(f(x), noise), plate="row")
    engine = mk.engines.NUTS(chains=CHAINS, draws=draws, warmup=draws, seed=0, progress=False)
    post = m.query(["length", "scale", "noise"], given={"x": x, "y": y}, engine=engine)
    return {name: np.asarray(post.draws[name]) for name in ("length", "scale", "noise")}


def by_numpyro(x: Any, y: Any, draws: int) -> dict[str, Any]:
    """Return draws of the hyper-parameters from NumPyro, the covariance matrix written out."""
    import jax
    import numpyro

    jax.config.update("jax_enable_x64", True)
    import jax.numpy as jnp
    import numpyro.distributions as dist
    from numpyro.infer import MCMC, NUTS

    def model(x: Any, y: Any) -> None:
        length = numpyro.sample("length", dist.LogNormal(0.0, 1.0))
        scale = numpyro.sample("scale", dist.HalfNormal(2.0))
        noise = numpyro.sample("noise", dist.HalfNormal(1.0))
        r = jnp.abs(x[:, None] - x[None]) * jnp.sqrt(5.0) / length
        K = scale**2 * (1.0 + r + r**2 / 3.0) * jnp.exp(-r) + noise**2 * jnp.eye(len(x))
        numpyro.sample("y", dist.MultivariateNormal(jnp.zeros(len(x)), K), obs=y)

    kernel = NUTS(model)
    settings = {"num_warmup": draws, "num_samples": draws, "num_chains": CHAINS}
    mcmc = MCMC(kernel, chain_method="vectorized", progress_bar=False, **settings)
    mcmc.run(jax.random.PRNGKey(0), x, y)
    return {name: np.asarray(v) for name, v in mcmc.get_samples(group_by_chain=True).items()}


if __name__ == "__main__":
    sys.exit(main())
