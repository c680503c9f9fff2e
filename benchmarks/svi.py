"""Stochastic variational inference on a million rows that are never in memory together, against the exact posterior.

Run `python benchmarks/svi.py [rows]`. Regression with twelve coefficients and unknown noise; the data are memory-mapped
files, and the exact posterior is computed from them in chunks. Prints the largest error of a posterior mean relative to the
exact one, the seconds, and how much memory the fit added.
"""

import resource
import sys
import tempfile
from pathlib import Path
from time import perf_counter

import numpy as np

import markovia as mk
import markovia.distributions as dist

COLUMNS, CHUNK = 12, 10_000


def write(folder: Path, rows: int) -> tuple[np.memmap, np.memmap, np.ndarray]:
    """Write covariates and responses to files, a chunk at a time."""
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, COLUMNS) * rng.choice([-1.0, 1.0], COLUMNS)
    x = np.memmap(folder / "x.bin", np.float64, "w+", shape=(rows, COLUMNS))
    y = np.memmap(folder / "y.bin", np.float64, "w+", shape=(rows,))
    for at in range(0, rows, CHUNK):
        part = rng.normal(size=(min(CHUNK, rows - at), COLUMNS))
        x[at : at + CHUNK] = part
        y[at : at + CHUNK] = part @ weights + rng.normal(size=len(part)) * 0.8
    x.flush(), y.flush()
    return x, y, weights


def exact_mean(x: np.memmap, y: np.memmap) -> np.ndarray:
    """Return the posterior mean of the coefficients; the prior scales with the noise."""
    precision, right = np.eye(COLUMNS) / 100.0, np.zeros(COLUMNS)
    for at in range(0, len(y), CHUNK):
        precision += x[at : at + CHUNK].T @ x[at : at + CHUNK]
        right += x[at : at + CHUNK].T @ y[at : at + CHUNK]
    return np.linalg.solve(precision, right)


def main(rows: int) -> None:
    """Fit, and print how far it is from the exact posterior."""
    m = mk.BayesianNetwork()
    m.add("noise", dist.InverseGamma(2.0, 1.0))
    m.add("beta", lambda noise: dist.Normal(0.0, 10.0 * noise**0.5), plate={"column": COLUMNS})
    m.add("y", lambda x, beta, noise: dist.Normal(x @ beta, noise**0.5), plate="row")
    with tempfile.TemporaryDirectory() as folder:
        x, y, _ = write(Path(folder), rows)
        exact = exact_mean(x, y)
        del x, y
        x = np.memmap(Path(folder) / "x.bin", np.float64, "r", shape=(rows, COLUMNS))
        y = np.memmap(Path(folder) / "y.bin", np.float64, "r", shape=(rows,))
        before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, perf_counter()
        engine = mk.engines.SVI(plate="row", batch_size=2000, passes=2.0)
        post = m.query(["beta", "noise"], given={"x": x, "y": y}, engine=engine)
        seconds = perf_counter() - begin
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    error = np.abs(post.mean("beta") / exact - 1.0).max()
    print(
        f"{rows:,} rows x {COLUMNS}: {seconds:.1f} s, largest relative error of a mean {error:.2%}, ", end=""
    )
    print(
        f"noise {post.mean('noise'):.4f} (0.64), memory + {grown:.0f} MB (data {rows * (COLUMNS + 1) * 8 / 2**20:.0f} MB)"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
