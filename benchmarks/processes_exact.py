"""How long exact Gaussian process regression takes, side by side with scikit-learn and, where it is installed, tinygp.

Run: python benchmarks/processes_exact.py [--quick] [--runs N]

- `regression`: a scaled RBF with five lengths, and noise, from the same start to the same top, 500 and 2,000 rows; one BLAS
  thread for both, then two for ours;
- `one value`: the log evidence with its gradient, once;
- `first fit`: a fresh process, imports included, 500 rows;
- `5,000 rows`: ours alone, with the most memory it held;
- `CO2`: monthly means on Mauna Loa up to 1990 by a composite covariance (four parts and noise, ten numbers), and the mean
  negative log density of the months after; the same start.

Processor and wall seconds are the least of the runs, which take turns.
"""

# ruff: noqa: N803, N806 (letters of the literature)

import argparse
import resource
import subprocess
import sys
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor, kernels
from threadpoolctl import threadpool_limits

import markovia as mk
from markovia.learning.processes.exact_evidence import ExactEvidence

k = mk.covariances
WIDE = (1e-9, 1e9)
FIRST = {
    "markovia": "import markovia as mk; mk.GaussianProcess().fit(X, y).predict(X[:5], return_std=True)",
    "scikit-learn": (
        "from sklearn.gaussian_process import GaussianProcessRegressor as G, kernels as K; "
        "G(1.0 * K.RBF([1.0] * 5) + K.WhiteKernel(0.1), alpha=0.0).fit(X, y).predict(X[:5], return_std=True)"
    ),
}
ROWS = "import numpy as np; r = np.random.default_rng(0); X = r.uniform(0, 1, (500, 5)); y = np.sin(6 * X[:, 0]) + X[:, 1:] @ [1, 2, 1, 1] + .1 * r.normal(size=500); y -= y.mean(); "  # noqa: E501


def main(quick: bool = False, runs: int = 3) -> int:
    """Print the tables."""
    warnings.simplefilter("ignore")
    print(f"{'':<26}{'markovia':>22}{'peer':>22}{'ratio':>8}   top: ours, theirs")
    for n in (500,) if quick else (500, 2000):
        regression(n, runs if n < 1000 else 1)
    first_fit(runs)
    if not quick:
        large(5000)
    carbon_dioxide(runs)
    return 0


def regression(n: int, runs: int) -> None:
    """Fit the same rows from the same start."""
    X, y = rows(n)
    P = lambda value: mk.Parameter(np.asarray(value, dtype=float))  # noqa: E731
    ours = mk.GaussianProcess(k.Scaled(P(1.0), k.RBF(P(np.ones(5)))) + k.White(P(0.1)), mean=0.0)
    kernel = kernels.ConstantKernel(1.0, WIDE) * kernels.RBF(np.ones(5), WIDE) + kernels.WhiteKernel(
        0.1, WIDE
    )
    theirs = GaussianProcessRegressor(kernel, alpha=0.0)
    with threadpool_limits(1, user_api="blas"):
        (one, mine), (peer, its) = in_turns(runs, lambda: ours.fit(X, y), lambda: theirs.fit(X, y))
        line(
            f"regression, n = {n:,}",
            one,
            peer,
            mine.log_marginal_likelihood(),
            its.log_marginal_likelihood_value_,
        )
        method, start = ExactEvidence(X, y), ours.covariance
        value = lambda: method.evidence(start)  # noqa: E731
        gradient = lambda: theirs.log_marginal_likelihood(kernel.theta, eval_gradient=True)  # noqa: E731
        (once, _), (twice, _) = in_turns(runs + 2, value, gradient)
        line("  one value", once, twice, mine.fit_.evaluations, np.nan)
    with threadpool_limits(2, user_api="blas"):
        ((two, _),) = in_turns(runs, lambda: ours.fit(X, y))
    line("  two threads (wall)", two, one, np.nan, np.nan, wall=True)


def first_fit(runs: int) -> None:
    """Fit in a fresh process."""
    each = [
        lambda code=code: subprocess.run([sys.executable, "-c", ROWS + code], check=True)
        for code in FIRST.values()
    ]
    (ours, _), (theirs, _) = in_turns(runs, *each)
    line("first fit, n = 500", ours, theirs, np.nan, np.nan, wall=True)


def large(n: int) -> None:
    """Fit many rows, and say how much memory the process held at most."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    ((taken, found),) = in_turns(1, lambda: mk.GaussianProcess(max_iter=5).fit(*rows(n)))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"n = {n:,}, 5 steps: {taken[1]:.1f} s, {found.fit_.evaluations} values; up to {most:,.0f} MiB (from {before:,.0f})"
    )


def carbon_dioxide(runs: int) -> None:
    """Fit the CO2 series, and forecast it."""
    from statsmodels.datasets import co2

    monthly = co2.load_pandas().data.co2.resample("MS").mean().dropna()
    year, ppm = np.asarray(monthly.index.year + (monthly.index.month - 1) / 12)[:, None], monthly.to_numpy()
    past = year[:, 0] < 1990
    X, y = year[past], ppm[past] - ppm[past].mean()
    later = ppm[~past] - ppm[past].mean()
    P = lambda value: mk.Parameter(float(value))  # noqa: E731
    covariance = (
        k.Scaled(P(2500), k.RBF(P(50))) + k.Scaled(P(4), k.RBF(P(100)) * k.Periodic(P(1), 1.0))
        + k.Scaled(P(0.25), k.RationalQuadratic(P(1), P(1))) + k.Scaled(P(0.01), k.RBF(P(0.1))) + k.White(P(0.01))
    )  # fmt: skip
    C, R = kernels.ConstantKernel, kernels.RBF
    kernel = (
        C(2500.0, WIDE) * R(50.0, WIDE) + C(4.0, WIDE) * R(100.0, WIDE) * kernels.ExpSineSquared(1.0, 1.0, WIDE, "fixed")
        + C(0.25, WIDE) * kernels.RationalQuadratic(1.0, 1.0, WIDE, WIDE) + C(0.01, WIDE) * R(0.1, WIDE)
        + kernels.WhiteKernel(0.01, WIDE)
    )  # fmt: skip
    ours, theirs = mk.GaussianProcess(covariance, mean=0.0), GaussianProcessRegressor(kernel, alpha=0.0)
    with threadpool_limits(1, user_api="blas"):
        (one, mine), (peer, its) = in_turns(runs, lambda: ours.fit(X, y), lambda: theirs.fit(X, y))
    line("CO2", one, peer, mine.log_marginal_likelihood(), its.log_marginal_likelihood_value_)
    mean, sd = its.predict(year[~past], return_std=True)
    score = 0.5 * np.mean(((later - mean) / sd) ** 2 + np.log(2.0 * np.pi * sd**2))
    print(
        f"  negative log density of the months after: {-mine.log_density(year[~past], later).mean():.3f}, theirs {score:.3f}"
    )
    try:
        peer, top, score = by_tinygp(X, y, year[~past], later)
    except ImportError:
        print("  tinygp is not installed")
    else:
        line("  tinygp", one, peer, mine.log_marginal_likelihood(), top)
        print(f"  negative log density: tinygp {score:.3f}")


def by_tinygp(X: Any, y: Any, new: Any, later: Any) -> tuple[tuple[float, float], float, float]:
    """Fit the CO2 series by tinygp and SciPy's L-BFGS, after compiling."""
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize
    from tinygp import GaussianProcess
    from tinygp import kernels as parts

    jax.config.update("jax_enable_x64", True)
    first = np.log([2500.0, 50.0, 4.0, 100.0, 1.0, 0.25, 1.0, 1.0, 0.01, 0.1, 0.01])

    def process(theta: Any) -> Any:
        v = jnp.exp(theta)
        # gamma of tinygp is 2 / length^2 of ours
        season = parts.ExpSquared(v[3]) * parts.ExpSineSquared(scale=1.0, gamma=2.0 / v[4] ** 2)
        whole = (
            v[0] * parts.ExpSquared(v[1]) + v[2] * season + v[5] * parts.RationalQuadratic(scale=v[6], alpha=v[7])
            + v[8] * parts.ExpSquared(v[9])
        )  # fmt: skip
        return GaussianProcess(whole, X[:, 0], diag=v[10])

    objective = jax.jit(jax.value_and_grad(lambda theta: -process(theta).log_probability(y)))
    objective(first)
    began, worked = perf_counter(), process_time()
    found = minimize(
        lambda theta: tuple(map(np.asarray, objective(theta))), first, jac=True, method="L-BFGS-B"
    )
    taken = process_time() - worked, perf_counter() - began
    there = process(found.x).condition(y, new[:, 0]).gp
    variance = np.asarray(there.variance) + float(np.exp(found.x[10]))
    score = 0.5 * np.mean((later - np.asarray(there.loc)) ** 2 / variance + np.log(2.0 * np.pi * variance))
    return taken, -float(found.fun), float(score)


def rows(n: int) -> tuple[Any, Any]:
    """Return rows of five columns, all of which count."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0.0, 1.0, (n, 5))
    y = (
        np.sin(6.0 * X[:, 0])
        + X[:, 1] ** 2
        + np.cos(4.0 * X[:, 2] * X[:, 3])
        + X[:, 4]
        + 0.1 * rng.normal(size=n)
    )
    return X, y - y.mean()


def in_turns(runs: int, *tasks: Callable[[], Any]) -> list[tuple[tuple[float, float], Any]]:
    """Run tasks in turns; return the least processor and wall seconds of each, and what it found."""
    best = [(np.inf, np.inf)] * len(tasks)
    found: list[Any] = [None] * len(tasks)
    for _ in range(runs):
        for i, task in enumerate(tasks):
            began, worked = perf_counter(), process_time()
            found[i] = task()
            taken = process_time() - worked, perf_counter() - began
            best[i] = min(best[i][0], taken[0]), min(best[i][1], taken[1])
    return list(zip(best, found, strict=True))


def line(
    what: str,
    ours: tuple[float, float],
    theirs: tuple[float, float],
    mine: float,
    its: float,
    *,
    wall: bool = False,
) -> None:
    """Print one comparison: processor seconds and, in brackets, wall seconds."""
    shown = "".join(f"{f'{cpu:.3f} ({clock:.3f}) s':>22}" for cpu, clock in (ours, theirs))
    ratio = ours[wall] / theirs[wall]
    tops = "   " + ", ".join(f"{top:.6g}" for top in (mine, its) if np.isfinite(top))
    print(f"{what:<26}{shown}{ratio:>8.2f}{tops.rstrip()}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--runs", type=int, default=3)
    options = parser.parse_args()
    sys.exit(main(options.quick, options.runs))
