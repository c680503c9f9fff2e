"""How many variable updates a second Gibbs sampling makes, side by side with pyAgrum, in one process.

Run: python benchmarks/approximate_gibbs.py [--repeats R] [--grid N] [--network NAME ...]

An update draws one variable from its full conditional. For networks, both libraries answer all marginals without evidence
from a fixed number of sweeps and the time of the whole call is divided by sweeps times variables; markovia runs four chains
in as many threads as there are processors, pyAgrum's GibbsSampling one sampler with a fixed number of iterations and no
stopping rule (once with one thread, once as it comes). For the grid (Ising, N by N) markovia's sweeps alone are timed too,
since reading a million factors takes longer than a few sweeps. Best of the repeats. The goals: 20 times pyAgrum's updates
a second on alarm and munin1, and 50 million a second on the grid with two cores.

The networks are looked for in MARKOVIA_BENCHMARKS/bif, else in ../shared/benchmarks/bif. Without pyAgrum its cells are 0.
"""

import argparse
import gzip
import os
import tempfile
import warnings
from pathlib import Path
from time import perf_counter

import numpy as np

import markovia as mk
from markovia.factors.tables.factor import Factor
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.flat_graph import from_factors
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Wanted, graph_arrays, make_chain
from markovia.inference.problem import Problem
from markovia.runtime.threads import in_parallel, thread_count

SWEEPS = 5_000
PEER_SWEEPS = 300


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--grid", type=int, default=1000)
    parser.add_argument("--network", nargs="*", default=["alarm", "munin1"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    folder = Path(
        os.environ.get("MARKOVIA_BENCHMARKS") or Path(__file__).parents[2] / "shared" / "benchmarks"
    )
    print(f"updates a second, best of {options.repeats}, {thread_count()} threads")
    print(
        f"{'network':<10}{'variables':>10}{'markovia':>12}{'pyAgrum 1 thread':>18}{'pyAgrum':>12}{'ratio':>8}"
    )
    for name in options.network:
        file = folder / "bif" / f"{name}.bif.gz"
        if not file.exists():
            print(f"no network {file}; set MARKOVIA_BENCHMARKS to the folder that holds bif/")
            continue
        _network(name, file, options.repeats)
    _grid(options.grid, options.repeats)
    return 0


def _network(name: str, file: Path, repeats: int) -> None:
    model = mk.load(file)
    engine = mk.engines.Gibbs(draws=SWEEPS, burn_in=0, seed=1, blocks=None)
    model.marginals(engine=engine)
    ours = 0.0
    for _ in range(repeats):
        begun = perf_counter()
        model.marginals(engine=engine)
        ours = max(ours, SWEEPS * 4 * len(model) / (perf_counter() - begun))
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{name}.bif"
        path.write_bytes(gzip.decompress(file.read_bytes()))
        single, plain = (max((_pyagrum(path, t) for _ in range(repeats)), default=0.0) for t in (1, 0))
    best = max(single, plain)
    ratio = f"{ours / best:.1f}" if best else "no pyAgrum"
    print(f"{name:<10}{len(model):>10}{ours:>12.3g}{single:>18.3g}{plain:>12.3g}{ratio:>8}")


def _pyagrum(path: Path, threads: int) -> float:
    try:
        import pyagrum as gum
    except ImportError:
        try:
            import pyAgrum as gum  # noqa: N813 - the name before version 2
        except ImportError:
            return 0.0
    network = gum.loadBN(str(path))
    sampler = gum.GibbsSampling(network)
    if threads and hasattr(sampler, "setNumberOfThreads"):
        sampler.setNumberOfThreads(threads)
    sampler.setBurnIn(0)
    sampler.setDrawnAtRandom(False)
    sampler.setNbrDrawnVar(network.size())
    sampler.setEpsilon(1e-300)
    sampler.setMinEpsilonRate(1e-300)
    sampler.setMaxTime(1e6)
    sampler.setMaxIter(PEER_SWEEPS)
    sampler.setPeriodSize(PEER_SWEEPS)
    begun = perf_counter()
    sampler.makeInference()
    took = perf_counter() - begun
    return sampler.nbrIterations() * network.size() / took


def _grid(n: int, repeats: int) -> None:
    rng = np.random.default_rng(0)
    variables = [Variable(f"x{i}", (0, 1)) for i in range(n * n)]
    number = np.arange(n * n).reshape(n, n)
    pairs = np.concatenate(
        [
            np.stack([number[:, :-1].ravel(), number[:, 1:].ravel()], axis=1),
            np.stack([number[:-1].ravel(), number[1:].ravel()], axis=1),
        ]
    )
    table = np.exp([[0.4, -0.4], [-0.4, 0.4]])
    graph = from_factors(variables, [Factor.of((variables[i], variables[j]), table) for i, j in pairs])
    arrays = graph_arrays(graph)
    problem = Problem({v.name: v for v in variables}, [], {})
    for label, settings in (
        ("systematic", {}),
        ("chromatic", {"scan": "chromatic"}),
        ("states, not conditionals", {"rao_blackwell": False}),
    ):
        engine = mk.engines.Gibbs(**settings)
        sweeps, n_chains = 10, max(2, thread_count())
        seeds = np.random.SeedSequence(1).spawn(n_chains)
        chains = [
            make_chain(graph, arrays, rng.integers(2, size=n * n), s, sweeps, Wanted(), n_chains)
            for s in seeds
        ]
        run = ChainSetUp(problem, graph, arrays, Wanted(), chains, seeds, 1, engine.rao_blackwell)
        stepper = engine._stepper(run)
        best = 0.0
        for _ in range(repeats + 1):
            begun = perf_counter()

            def work(
                c: int, _: None, chains: list = chains, stepper: object = stepper, sweeps: int = sweeps
            ) -> None:
                stepper.advance(c, chains[c], stepper.plan(0, sweeps, sweeps, np.zeros(0)))

            in_parallel(work, range(n_chains), lambda: None, 1 if stepper.inside else None)
            best = max(best, sweeps * n_chains * n * n / (perf_counter() - begun))
        print(f"Ising {n} x {n}, {label}: {best / 1e6:.1f} million updates a second, {n_chains} chains")


if __name__ == "__main__":
    raise SystemExit(main())
