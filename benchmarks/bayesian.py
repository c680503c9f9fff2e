"""Twelve reference posteriors with markovia and with NumPyro by hand, in one run: accuracy, draws worth a second, waiting.

    python benchmarks/bayesian.py [--posteriors FOLDER] [--only NAME] [--output FILE] [--variational]

For each model and library a fresh process with empty caches measures the time to the first result (imports, building,
compiling, sampling), then another question with new data of the same shape, then a second process with the caches that the
first one left. Draws worth a second are the smallest effective sample size of the reference's parameters over the sampling
time alone, compiled beforehand. 4 x 1,000 draws after 1,000 of warm-up, 64 bits, vectorised chains in both.

`--variational` fits normal distributions instead (ADVI, with independent numbers and with all correlations) and prints how
far the worst mean is from the reference's, in its standard deviations, and the Pareto k that tells whether to believe it.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
POSTERIORS = HERE.parents[1] / "shared" / "benchmarks" / "posteriors"


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument(
        "--posteriors", default=POSTERIORS, type=Path, help="folder of the reference posteriors"
    )
    options.add_argument("--only", default="", help="a part of the name")
    options.add_argument("--output", type=Path, help="write the figures to this JSON file")
    options.add_argument("--variational", action="store_true", help="how far ADVI's means are off")
    options.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.child:
        print(json.dumps(run(chosen.posteriors, *chosen.child)))
        return
    sys.path.insert(0, str(HERE))
    import numpy as np
    from reference_posteriors import MODELS

    if chosen.variational:
        for name in [n for n in MODELS if chosen.only in n]:
            variational(chosen.posteriors, name)
        return
    figures = {}
    print(
        f"{'posterior':42} {'library':9} {'first':>6} {'again':>6} {'2nd proc':>8} {'ESS/s':>8} {'means':>6} {'sd':>6} R-hat"
    )
    for name in MODELS:
        if chosen.only not in name:
            continue
        figures[name] = {}
        for library in ("markovia", "numpyro"):
            with tempfile.TemporaryDirectory() as cache:
                first = child(chosen.posteriors, name, library, cache)
                second = child(chosen.posteriors, name, library, cache)
            row = {**first, "second_process": second["first"]}
            figures[name][library] = row
            print(
                f"{name[:42]:42} {library:9} {row['first']:6.1f} {row['again']:6.1f} {row['second_process']:8.1f} "
                f"{row['ess_per_second']:8.0f} {row['means']:6.2f} {row['sds']:6.3f} {row['r_hat']:.3f}",
                flush=True,
            )
    ratios = [f["markovia"]["ess_per_second"] / f["numpyro"]["ess_per_second"] for f in figures.values()]
    print(f"draws worth a second, markovia over NumPyro: {np.exp(np.mean(np.log(ratios))):.2f} in geometric mean, "
          f"{min(ratios):.2f} at least")  # fmt: skip
    if chosen.output:
        chosen.output.write_text(json.dumps(figures, indent=1))


def child(folder, name, library, cache):
    places = {"MARKOVIA_CACHE": cache, "JAX_COMPILATION_CACHE_DIR": cache}
    quick = {
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "0",
    }
    env = {**os.environ, **places, **(quick if library == "numpyro" else {})}
    command = [sys.executable, __file__, "--posteriors", str(folder), "--child", name, library]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def run(folder, name, library):
    """Measure one model in this process."""
    import warnings

    warnings.simplefilter("ignore")
    sys.path.insert(0, str(HERE))
    start = time.perf_counter()
    import numpyro  # noqa: F401

    imports = time.perf_counter() - start
    start = time.perf_counter()
    import reference_posteriors as ours

    data, reference = ours.read(folder, name)
    model, given = ours.MODELS[name](data)
    nodes = sorted({ours.place(r)[0] for r in reference})
    asked = {"markovia": markovia_draws, "numpyro": numpyro_draws}[library]
    if library == "numpyro":  # which needs neither our imports nor our model
        start = time.perf_counter()
    ask = asked(model, given, nodes, ours.MODELS[name].__name__)
    draws, _ = ask(given, 0)
    first = imports + time.perf_counter() - start
    start = time.perf_counter()
    ask(shaken(given), 1)
    again = time.perf_counter() - start
    draws, seconds = ask(given, 2)
    return {"first": first, "again": again, **accuracy(ours, draws, reference, seconds)}


def variational(folder, name):
    """Print the worst mean of a fit with each family, in standard deviations, its Pareto k and the seconds."""
    import warnings

    import numpy as np
    import reference_posteriors as ours

    import markovia as mk

    warnings.simplefilter("ignore")
    data, reference = ours.read(folder, name)
    model, given = ours.MODELS[name](data)
    nodes = sorted({ours.place(r)[0] for r in reference})
    said = []
    for family in ("mean-field", "full-rank"):
        start = time.perf_counter()
        post = model.query(nodes, given=given, engine=mk.engines.ADVI(family=family, progress=False))
        seconds = time.perf_counter() - start
        off = [
            abs(float(np.asarray(post.mean(node))[index]) - row["mean"]) / row["sd"]
            for (node, index), row in ((ours.place(r), row) for r, row in reference.items())
        ]
        said.append(f"{family} {max(off):5.2f} sd, k {post.info.details.pareto_k:5.2f}, {seconds:5.1f} s")
    print(f"{name[:42]:42}", "   ".join(said), flush=True)


def shaken(given):
    """Return data of the same shape with other numbers."""
    import numpy as np

    return {
        k: v * 1.001 if isinstance(v, np.ndarray) and v.dtype.kind == "f" and k in ("y", "u", "v") else v
        for k, v in given.items()
    }


def markovia_draws(model, given, nodes, _):
    import markovia as mk

    def ask(given, seed):
        post = model.query(nodes, given=given, engine=mk.engines.NUTS(seed=seed, progress=False))
        return post.draws, post.info.details.seconds

    return ask


def numpyro_draws(model, given, nodes, name):
    import jax
    import numpyro_models
    from numpyro.infer import MCMC, NUTS

    jax.config.update("jax_enable_x64", True)

    def ask(given, seed):
        mcmc = MCMC(
            NUTS(getattr(numpyro_models, name)), num_warmup=1000, num_samples=1000, num_chains=4,
            chain_method="vectorized", progress_bar=False,
        )  # fmt: skip
        data = {k: jax.numpy.asarray(v) if hasattr(v, "dtype") else v for k, v in given.items()}
        mcmc.run(jax.random.PRNGKey(seed), **data)
        draws = {k: v for k, v in mcmc.get_samples(group_by_chain=True).items() if k in nodes}
        draws = {k: jax.device_get(v) for k, v in draws.items()}
        seconds = 0.0
        if seed == 2:  # once more with what is compiled now
            start = time.perf_counter()
            mcmc.run(jax.random.PRNGKey(seed + 1), **data)
            jax.block_until_ready(mcmc.get_samples())
            seconds = time.perf_counter() - start
        return draws, seconds

    return ask


def accuracy(ours, draws, reference, seconds):
    import numpy as np

    from markovia.inference.markov_chains.diagnostics import ess, rhat

    worst = {"means": 0.0, "sds": 0.0, "r_hat": 0.0}
    least = float("inf")
    for parameter, row in reference.items():
        node, index = ours.place(parameter)
        x = np.asarray(draws[node])[(slice(None), slice(None), *index)]
        worth = ess(x)
        error = np.hypot(x.std() / np.sqrt(worth), row["sd"] / 100)
        worst["means"] = max(worst["means"], float(abs(x.mean() - row["mean"]) / error))
        worst["sds"] = max(worst["sds"], float(abs(x.std() / row["sd"] - 1)))
        worst["r_hat"] = max(worst["r_hat"], float(rhat(x)))
        least = min(least, worth)
    return {**worst, "ess_per_second": least / seconds, "seconds": seconds}


if __name__ == "__main__":
    main()
