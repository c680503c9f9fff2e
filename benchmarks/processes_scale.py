"""Gaussian processes of many rows: Markov covariances and inducing points, beside peers that are there.

Run: python benchmarks/processes_scale.py [--quick] [--markov N] [--sparse N] [--million]

`--markov`: a Matern 3/2 with noise at irregular inputs; a value of the log evidence, a value with its gradient, and a whole
fit from the same start (tinygp, by its quasi-separable solver, fitted by SciPy's L-BFGS-B on the same logs). `--sparse`: 5
columns, 200 inducing points, noise .2; error and log density at 2,000 new rows, and beside it one value with gradient of
the same bound written down in JAX. `--million`: the same function, a million rows in batches. Times are interleaved, the
least of several; processor and wall-clock seconds. What a GPU is for is measured by `processes_gpu.py`.
"""

# ruff: noqa: N803, N806 (letters of the literature)

import argparse
import warnings
from collections.abc import Callable
from time import perf_counter, process_time
from typing import Any

import numpy as np

import markovia as mk
from markovia.learning.processes.evidence_ascent import maximise_evidence
from markovia.learning.processes.inducing_points import SGPR
from markovia.learning.processes.state_space_evidence import StateSpaceEvidence
from markovia.learning.processes.stochastic_inducing import SVGP

k = mk.covariances


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--markov", type=int, default=100_000)
    parser.add_argument("--sparse", type=int, default=100_000)
    parser.add_argument("--million", action="store_true")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    share = 10 if options.quick else 1
    if options.markov:
        markov(options.markov // share)
    if options.sparse:
        sparse(options.sparse // share)
    if options.million:
        batches(1_000_000 // share)
    return 0


def line(name: str, *columns: Any) -> None:
    print(
        f"  {name:<42}" + "".join(f"{c if isinstance(c, str) else f'{c:.4g}':>13}" for c in columns),
        flush=True,
    )


def least(tasks: dict[str, Callable[[], Any]], times: int = 5) -> dict[str, tuple[float, float, Any]]:
    """Return the least processor and wall-clock seconds of tasks that take turns, and what each returned."""
    found: dict[str, Any] = {}
    for task in tasks.values():
        task()
    for _ in range(times):
        for name, task in tasks.items():
            cpu, wall = process_time(), perf_counter()
            result = task()
            cpu, wall = process_time() - cpu, perf_counter() - wall
            before = found.get(name, (np.inf, np.inf, None))
            found[name] = min(cpu, before[0]), min(wall, before[1]), result
    return found


# -- Markov covariances -------------------------------------------------------------------------------------------------


def markov(n: int) -> None:
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0.0, n / 10.0, n))
    y = np.sin(x) + 0.3 * rng.standard_normal(n)
    start = {"scaled.variance": 1.0, "matern32.length": 1.0, "white.variance": 0.2}
    whole = (k.Scaled(None, k.Matern32()) + k.White()).started(x, y).with_values(start, keep=True)
    fixed, method = whole.with_values(start), StateSpaceEvidence(x[:, None], y)
    tasks: dict[str, Callable[[], Any]] = {
        "value": lambda: method.evidence(fixed)[0],
        "value and gradient": lambda: method.evidence(whole)[0],
    }
    fits: dict[str, Callable[[], Any]] = {"fit": lambda: maximise_evidence(method, whole).log_evidence}
    peer = tinygp_tasks(x, y, list(start.values()))
    tasks |= {f"tinygp {name}": peer[name] for name in ("value", "value and gradient") if name in peer}
    fits |= {"tinygp fit": peer["fit"]} if peer else {}
    print(f"Markov covariance, {n:,} rows" + ("" if peer else " (tinygp is absent)"))
    line("", "processor s", "wall s", "log evidence")
    for name, numbers in least(tasks).items():
        line(name, *numbers)
    for name, numbers in least(fits, 1).items():
        line(name, *numbers)


def tinygp_tasks(x: Any, y: Any, start: list[float]) -> dict[str, Callable[[], Any]]:
    """Return the same value, gradient and fit by tinygp; nothing where it is not installed."""
    try:
        import jax
        import tinygp
    except ImportError:
        return {}
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)

    def loss(logs: Any) -> Any:
        variance, length, noise = jax.numpy.exp(logs)
        kernel = variance * tinygp.kernels.quasisep.Matern32(scale=length)
        return -tinygp.GaussianProcess(kernel, jax.numpy.asarray(x), diag=noise).log_probability(
            jax.numpy.asarray(y)
        )

    value, both, at = jax.jit(loss), jax.jit(jax.value_and_grad(loss)), np.log(start)

    def numbers(logs: Any) -> tuple[float, Any]:
        found, slope = both(logs)
        return float(found), np.asarray(slope)

    return {
        "value": lambda: -float(value(at)),
        "value and gradient": lambda: -numbers(at)[0],
        "fit": lambda: -float(minimize(numbers, at, jac=True, method="L-BFGS-B").fun),
    }


# -- inducing points ------------------------------------------------------------------------------------------------------


def rows(n: int) -> tuple[Any, Any]:
    """Return rows of five columns, and a smooth function of them with noise of .2."""
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-2.0, 2.0, (n, 5)), 0.6 * rng.standard_normal((5, 3))
    f = np.sin(X @ w[:, 0]) + 0.5 * np.cos(X @ w[:, 1]) + 0.3 * np.sin(X[:, 0] * X[:, 1])
    return X, f + 0.2 * rng.standard_normal(n)


def quality(post: Any, noise: float, X: Any, y: Any) -> tuple[float, float]:
    """Return the root mean squared error and the mean negative log density of new targets."""
    at = post.at(X)
    variance, away = at.sd() ** 2 + noise, at.mean() - y
    nlpd = 0.5 * np.log(2.0 * np.pi * variance) + 0.5 * away**2 / variance
    return float(np.sqrt(np.mean(away**2))), float(nlpd.mean())


def fitted(kind: Any, n: int, **settings: Any) -> None:
    X, y = rows(n + 2_000)
    X, y, new, told = X[:n], y[:n], X[n:], y[n:]
    start = (k.Scaled(None, k.RBF(ard=True)) + k.White()).started(X, y)
    cpu, wall = process_time(), perf_counter()
    method = kind(X, y, **settings)
    found = method.fit(start) if hasattr(method, "fit") else maximise_evidence(method, start)
    post = method.posterior(found.covariance)
    cpu, wall = process_time() - cpu, perf_counter() - wall
    noise = float(found.covariance.hypers()["white.variance"].value)
    line(f"{method.name}, {n:,} rows", cpu, wall, *quality(post, noise, new, told), found.evaluations)


def sparse(n: int) -> None:
    print("inducing points, 5 columns, 200 points, noise .2")
    line("", "processor s", "wall s", "RMSE", "NLPD", "evaluations")
    fitted(SGPR, n, inducing=200)
    X, y = rows(n)
    start = (k.Scaled(None, k.RBF(ard=True)) + k.White()).started(X, y)
    ours = SGPR(X, y, inducing=200)
    ours.evidence(start)
    theirs = sgpr_in_jax(X, y, ours.places)
    for name, numbers in least(
        {"a value with gradient": lambda: ours.evidence(start)[0], "the same in JAX": theirs}, 2
    ).items():
        line(name, *numbers[:2])


def sgpr_in_jax(X: Any, y: Any, places: Any) -> Callable[[], Any]:
    """Return a value with gradient of the bound of Titsias, written down in JAX."""
    import jax

    jax.config.update("jax_enable_x64", True)
    np_ = jax.numpy
    X, y, Z = map(np_.asarray, (X, y, places))

    def cross(A: Any, B: Any, logs: Any) -> Any:
        A, B = A / np_.exp(logs[1:6]), B / np_.exp(logs[1:6])
        D = (A**2).sum(1)[:, None] + (B**2).sum(1)[None] - 2.0 * A @ B.T
        return np_.exp(logs[0] - 0.5 * np_.maximum(D, 0.0))

    def bound(logs: Any) -> Any:
        n, m, noise = len(y), len(Z), np_.exp(logs[6])
        L = np_.linalg.cholesky(cross(Z, Z, logs) + 1e-8 * np_.exp(logs[0]) * np_.eye(m))
        V = jax.scipy.linalg.solve_triangular(L, cross(Z, X, logs), lower=True) / np_.sqrt(noise)
        B = np_.linalg.cholesky(np_.eye(m) + V @ V.T)
        c = jax.scipy.linalg.solve_triangular(B, V @ y, lower=True) / np_.sqrt(noise)
        left = n * np_.exp(logs[0]) / noise - (V**2).sum()
        value = -0.5 * n * np_.log(2.0 * np_.pi * noise) - np_.log(np_.diag(B)).sum()
        return value - 0.5 * (y @ y / noise - c @ c + left)

    both = jax.jit(jax.value_and_grad(bound))
    return lambda: jax.block_until_ready(both(np_.zeros(7).at[6].set(-2.0)))


def batches(n: int) -> None:
    print("inducing points in batches")
    line("", "processor s", "wall s", "RMSE", "NLPD", "steps")
    fitted(SVGP, n, inducing=200)


if __name__ == "__main__":
    raise SystemExit(main())
