"""Many chains of a hierarchical logistic regression at once, on a GPU where JAX sees one and on the processor.

    python benchmarks/many_chains.py [--rows 100000] [--chains 256] [--warmup 200] [--draws 100] [--seconds 120]

Ten coefficients and fifty group effects; NUTS on vectorised chains in 64 bits. The first device warms the chains up; every
device, in a process of its own, goes on from that checkpoint, so all draw with the same steps. Compiling and warming up are
not counted; timed draws end after `--seconds`.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

COLUMNS, GROUPS = 10, 50


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--rows", type=int, default=100_000)
    options.add_argument("--chains", type=int, default=256)
    options.add_argument("--warmup", type=int, default=200)
    options.add_argument("--draws", type=int, default=100)
    options.add_argument("--seconds", type=float, default=120.0)
    options.add_argument("--devices", nargs="*", default=["cuda", "cpu"])
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.child:
        print(json.dumps(run(chosen)))
        return
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for device in chosen.devices:
            command = [sys.executable, "-W", "ignore", __file__, *sys.argv[1:], "--child", folder]
            env = {**os.environ, "JAX_PLATFORMS": device, "MARKOVIA_CACHE": "off"}
            done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
            if done.returncode:
                print(f"{device:5} not measured: {done.stderr.splitlines()[-1]}")
                continue
            figures = json.loads(done.stdout.splitlines()[-1])
            rates[device] = figures["draws_a_second"]
            print(
                f"{device:5}",
                ", ".join(f"{name} {value:,.3g}" for name, value in figures.items()),
                flush=True,
            )
    if {"cuda", "cpu"} <= set(rates):
        print(f"draws a second, GPU over processor: {rates['cuda'] / rates['cpu']:.1f}")


def run(chosen):
    import numpy as np

    import markovia as mk
    import markovia.distributions as dist

    rng = np.random.default_rng(0)
    x = rng.normal(size=(chosen.rows, COLUMNS))
    group = rng.integers(0, GROUPS, chosen.rows)
    weights, effects = rng.normal(size=COLUMNS), rng.normal(0.5, 0.7, GROUPS)
    y = (rng.random(chosen.rows) < 1 / (1 + np.exp(-(x @ weights + effects[group])))).astype(int)
    m = mk.BayesianNetwork()
    m.add("mu", dist.Normal(0, 2))
    m.add("tau", dist.HalfNormal(1))
    m.add("effect", lambda mu, tau: dist.Normal(mu, tau), plate={"group": GROUPS})
    m.add("beta", dist.Normal(0, 2), plate={"column": COLUMNS})
    m.add("of", mk.Input(), plate="row")
    m.add("y", lambda x, beta, effect, of: dist.Bernoulli(logits=x @ beta + effect[of]), plate="row")
    given = {"x": x, "y": y, "of": group}
    kept, own = chosen.child / "warm", chosen.child / "going_on"
    engine = mk.engines.NUTS(
        warmup=chosen.warmup, draws=1, chains=chosen.chains, checkpoint=kept, progress=False
    )
    began = time.perf_counter()
    m.query(["beta", "mu"], given=given, engine=engine)
    first = time.perf_counter() - began
    shutil.copy(kept, own)
    engine = replace(engine, draws=chosen.draws, checkpoint=own, time_limit=chosen.seconds)
    m.query(
        ["beta", "mu"], given=given, engine=replace(engine, draws=2)
    )  # compiles what a resumed run has not yet
    began = time.perf_counter()
    post = m.query(["beta", "mu"], given=given, engine=engine)
    seconds = time.perf_counter() - began
    draws = (post.draws["mu"].shape[1] - 2) * chosen.chains
    steps = float(np.asarray(post.stats.steps)[:, 2:].sum())
    return {
        "warm_up_and_compile_s": first,
        "timed_s": seconds,
        "draws": draws,
        "draws_a_second": draws / seconds,
        "gradients_a_second": steps / seconds,
        "gradients_a_draw": steps / draws,
    }


if __name__ == "__main__":
    main()
