"""Flows on two moons: mean log-likelihood of test rows, seconds, energy distance and conditional spreads.

    python benchmarks/deep_flows.py [--rows 4000] [--peer /path/to/python]

Rows are scikit-learn's two moons with noise 0.05, as they are: 4,000 to learn from (seed 0) and 2,000 to judge by (seed
1). Since the noise is known, so is the true density, whose mean log-likelihood is printed as a bound. `--peer` names a
Python that has flowjax, which is then trained on the same rows (its defaults with 8 layers of width 64, learning rate
1e-3, patience 20).
"""

import argparse
import subprocess
import tempfile
from time import perf_counter

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

import markovia as mk

NOISE = 0.05
LONG = {"epochs": 100, "batch": 128, "decay": 0.01, "clip": 1.0, "ema": 0.998, "seed": 0}
SETTINGS = {
    "RealNVP": ({"bend": "affine", "layers": 24, "hidden": 32}, {**LONG, "learning_rate": 3e-3}),
    "spline": ({"bend": "spline", "layers": 4, "hidden": 32}, {**LONG, "learning_rate": 5e-3}),
}
"""Settings of flows and of training, chosen by rows of another seed (7) than those that are judged here."""
PEER = """
import sys, time, numpy as np, jax.numpy as jnp, jax.random as jr
from flowjax.bijections import RationalQuadraticSpline
from flowjax.distributions import Normal
from flowjax.flows import coupling_flow
from flowjax.train import fit_to_data
rows, test = (jnp.asarray(np.load(p)) for p in sys.argv[1:3])
for name, more in {"RealNVP": {}, "spline": {"transformer": RationalQuadraticSpline(knots=8, interval=4)}}.items():
    began = time.perf_counter()
    flow = coupling_flow(jr.key(0), base_dist=Normal(jnp.zeros(2)), nn_width=64, flow_layers=8, **more)
    flow, losses = fit_to_data(jr.key(0), flow, data=rows, learning_rate=1e-3, max_epochs=200, max_patience=20,
                               show_progress=False)
    print(f"flowjax {name:8s} {time.perf_counter() - began:7.1f} s, {len(losses['train'])} epochs, "
          f"test {float(flow.log_prob(test).mean()):.4f}", flush=True)
"""


def truth(rows):
    """Return the exact log density of two moons with noise."""
    t = (np.arange(2000) + 0.5) / 2000 * np.pi
    arcs = np.concatenate([np.c_[np.cos(t), np.sin(t)], np.c_[1 - np.cos(t), 0.5 - np.sin(t)]])
    logs = -cdist(rows, arcs, "sqeuclidean") / (2 * NOISE**2)
    return np.logaddexp.reduce(logs, axis=1) - np.log(len(arcs)) - np.log(2 * np.pi * NOISE**2)


def energy_distance(a, b):
    """Return the energy distance of two samples."""
    return 2 * cdist(a, b).mean() - cdist(a, a).mean() - cdist(b, b).mean()


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=4000)
    options.add_argument("--peer", default=None)
    said = options.parse_args()
    rows, test = (make_moons(n, noise=NOISE, random_state=s)[0] for n, s in ((said.rows, 0), (2000, 1)))
    other = make_moons(2000, noise=NOISE, random_state=2)[0]
    floor = energy_distance(test, other)
    print(f"true density: test {truth(test).mean():.4f}; energy distance of two true samples {floor:.5f}")
    for name, (settings, training) in SETTINGS.items():
        began = perf_counter()
        flow = mk.deep.Flow(**settings, training=mk.Training(**training), random_state=0).fit(rows)
        seconds = perf_counter() - began
        how = flow.network_.fit_.details["training"]
        drawn = flow.sample(2000, seed=0)
        # the spread across the top of the upper moon, where it lies along the first axis
        ends = [s[(np.abs(s[:, 0]) < 0.2) & (s[:, 1] > 0.5), 1].std() for s in (drawn, test)]
        print(
            f"markovia {name:8s} {seconds:6.1f} s ({how.seconds:.1f} running, {how.compile_seconds:.1f} compiling), "
            f"train {flow.score(rows):.4f}, test {flow.score(test):.4f}, energy distance "
            f"{energy_distance(drawn, test):.5f}, conditional spread {ends[0]:.4f} (true rows {ends[1]:.4f})",
            flush=True,
        )
    if said.peer is not None:
        with tempfile.TemporaryDirectory() as folder:
            paths = [f"{folder}/rows.npy", f"{folder}/test.npy"]
            np.save(paths[0], rows)
            np.save(paths[1], test)
            subprocess.run([said.peer, "-c", PEER, *paths], check=True)


if __name__ == "__main__":
    main()
