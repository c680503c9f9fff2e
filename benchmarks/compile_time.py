# ruff: noqa: E501
"""How long a first use waits for the compiler: every engine and learner in a process of its own with an empty cache.

For each use: the processor seconds spent compiling, how many functions and signatures were compiled, the first answer cold,
and, in a second process that finds the code on disk, the seconds spent loading it.

    python benchmarks/compile_time.py [name ...] [--files]
"""

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter

SETUP = """
import warnings; warnings.simplefilter("ignore")
import numpy as np, markovia as mk
rng = np.random.default_rng(0)
def grid(n=6, k=2):
    edges = [((r, c), (r + a, c + b)) for r in range(n) for c in range(n) for a, b in ((0, 1), (1, 0)) if r + a < n and c + b < n]
    name = lambda p: f"x{p[0]}_{p[1]}"
    table = np.where(np.eye(k) > 0, 2.0, 1.0)
    one = [mk.Factor([name((r, c))], rng.random(k) + .5) for r in range(n) for c in range(n)]
    return mk.MarkovNetwork({name((r, c)): k for r in range(n) for c in range(n)}, one + [mk.Factor([name(p), name(q)], table) for p, q in edges])
def bits(n=200, d=6): return (np.cumsum(rng.normal(size=(n, d)), axis=1) > 0).astype(int)
def frame(n=200, d=6):
    import pandas as pd
    return pd.DataFrame(bits(n, d), columns=[f"v{i}" for i in range(d)])
"""
MARGINALS = "grid().marginals(engine={!r})"
USES = {
    "junction-tree": "m = mk.examples.asia(); m.marginals(engine='junction-tree'); m.query('lung', given={'xray': 'yes'}, engine='junction-tree'); m.map(engine='junction-tree'); m.log_evidence({'xray': 'yes'}, engine='junction-tree')",
    "predict rows": "m = mk.examples.asia(); m.predict(m.sample(20000, seed=0).drop(columns='lung'), 'lung')",
    "conditioning": "mk.examples.asia().marginals(engine='conditioning')",
    **{name: MARGINALS.format(name) for name in (
        "loopy-bp", "generalized-bp", "join-graph", "tree-reweighted", "mean-field", "structured-mean-field",
        "gibbs", "metropolis", "parallel-tempering", "annealed-importance", "importance")},
    "swendsen-wang": "mk.MarkovNetwork.ising({('a', 'b'): .5, ('b', 'c'): .5, ('a', 'c'): .3}).marginals(engine='swendsen-wang')",
    "likelihood-weighting": "mk.examples.asia().query('lung', given={'xray': 'yes'}, engine='likelihood-weighting')",
    "rejection": "mk.examples.asia().query('lung', given={'xray': 'yes'}, engine='rejection')",
    "sir": "mk.examples.asia().query('lung', given={'xray': 'yes'}, engine='sir')",
    "forward": "mk.examples.asia().query('lung', engine='forward')",
    **{name: f"grid().map(engine={name!r})" for name in (
        "max-product", "dual-decomposition", "trw-s", "graph-cut", "alpha-expansion", "alpha-beta-swap",
        "expansion-shrink", "beam", "a-star", "quadratic-program", "relaxation-labelling",
        "linear-program", "map-search", "icm", "block-icm", "simulated-annealing", "tabu", "guided-local-search",
        "large-neighbourhood")},
    "marginal-map": "m = grid(); m.map(targets=m.variables[:4], engine='marginal-map')",
    "fit tables": "mk.BayesianNetwork('v0->v1; v1->v2').fit(frame(200000)[['v0', 'v1', 'v2']])",
    "fit em": "f = frame().astype(object); f.iloc[::3, 1] = None; mk.BayesianNetwork('v0->v1; v1->v2; v0->v2').fit(f[['v0', 'v1', 'v2']])",
    "fit pseudo-likelihood": "grid(3).fit(bits(200, 9), method='pseudo-likelihood') if False else mk.MarkovNetwork(factors=[mk.Factor(['v0', 'v1'], np.ones((2, 2))), mk.Factor(['v1', 'v2'], np.ones((2, 2)))]).fit(frame()[['v0', 'v1', 'v2']], method='pseudo-likelihood')",
    "fit contrastive-divergence": "mk.MarkovNetwork(factors=[mk.Factor(['v0', 'v1'], np.ones((2, 2))), mk.Factor(['v1', 'v2'], np.ones((2, 2)))]).fit(frame()[['v0', 'v1', 'v2']], method='cd')",
    "crf": "x = [rng.normal(size=(4, 2)) for _ in range(5)]; y = [rng.integers(0, 2, 4) for _ in x]; mk.crf.CRF().fit(x, y).predict(x)",
    "chain-crf": "x = [[{'a': 1.0, 'b': float(i)} for i in range(4)] for _ in range(5)]; y = [['p', 'q', 'p', 'q'] for _ in x]; mk.ChainCRF().fit(x, y).predict(x)",
    "crf loopy": "e = [(0, 1), (1, 2), (2, 3), (0, 3)]; x = [(rng.normal(size=(4, 2)), e) for _ in range(5)]; y = [rng.integers(0, 2, 4) for _ in x]; mk.crf.CRF(None, inference='loopy-bp', max_iter=5).fit(x, y)",
    "crf exact loops": "e = [(0, 1), (1, 2), (2, 3), (0, 3)]; x = [(rng.normal(size=(4, 2)), e) for _ in range(5)]; y = [rng.integers(0, 2, 4) for _ in x]; mk.crf.CRF(None, inference='exact', max_iter=5).fit(x, y)",
    **{name: f"mk.learn_structure(frame(20000, 12), {name!r}, seed=0)" for name in ("hill-climb", "tabu search", "ges", "boss", "grasp", "order-search", "exact", "pc", "fci", "mmhc", "chow-liu", "ising")},
    "k2": "f = frame(20000, 12); mk.learn_structure(f, 'k2', order=list(f.columns))",
    "l1-pseudo-likelihood": "mk.learn_structure(frame(), 'l1-pseudo-likelihood')",
    "tesla": "mk.learn_structure(frame(), 'tesla', times=np.arange(200) // 100, tolerance=1e-2)",
    "kernel-weighted": "mk.learn_structure(frame(), 'kernel-weighted', times=np.arange(200.))",
    **{name: f"mk.learn_structure(np.cumsum(rng.uniform(-1, 1, (3000, 8)), axis=1), {name!r})" for name in ("direct-lingam", "graphical-lasso", "neighbourhood")},
    "edge-posterior": "mk.edge_posterior(frame(300, 6))",
}  # fmt: skip
CHILD = """
import json, os, sys, time
from collections import Counter
import numba.core.event as event
inside, started, compiling, functions = 0, 0.0, 0.0, Counter()
class Listener(event.Listener):
    def on_start(self, e):
        global inside, started
        if not inside: started = time.process_time()
        inside += 1
    def on_end(self, e):
        global inside, compiling
        inside -= 1
        if not inside: compiling += time.process_time() - started
class Names(event.Listener):
    def __init__(self): self.stack = []
    def on_start(self, e):
        self.stack.append([time.process_time(), 0.0, e.data["dispatcher"].py_func])
    def on_end(self, e):
        began, within, f = self.stack.pop()
        took = time.process_time() - began
        if self.stack: self.stack[-1][1] += took
        functions[f.__module__ + "." + f.__name__] += took - within
        counts[f.__module__ + "." + f.__name__] += 1
counts = Counter()
event.register("numba:compiler_lock", Listener()); event.register("numba:compile", Names())
exec(SETUP)
a, c = time.perf_counter(), time.process_time()
error = None
try: exec(USE)
except Exception as e: error = repr(e)[:150]
print("@@" + json.dumps(dict(wall=time.perf_counter() - a, cpu=time.process_time() - c, compiling=compiling, functions=functions, counts=counts, error=error)))
"""


def run(use: str, cache: str) -> dict:
    code = f"SETUP = {SETUP!r}\nUSE = {use!r}\n{CHILD}"
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    found = [line for line in done.stdout.splitlines() if line.startswith("@@")]
    if not found:
        raise SystemExit(done.stderr)
    return json.loads(found[0][2:])


def main() -> None:
    names = [a for a in sys.argv[1:] if not a.startswith("-")] or list(USES)
    by_file: Counter = Counter()
    seen: set = set()
    total = 0.0
    print(
        f"{'use':28s} {'compile':>8s} {'functions':>9s} {'compiled':>8s} {'cold':>7s} {'load':>6s} {'warm':>7s}"
    )
    with tempfile.TemporaryDirectory() as everything:
        for name in names:
            with tempfile.TemporaryDirectory() as cache:
                cold = run(USES[name], cache)
                warm = run(USES[name], cache)
            shared = run(USES[name], everything)
            total += shared["compiling"] if shared["counts"] else 0.0
            for f, seconds in shared["functions"].items():
                by_file[f.rpartition(".")[0]] += seconds
                seen.add(f)
            counts = cold["counts"]
            print(
                f"{name:28s} {cold['compiling']:8.1f} {len(counts):9d} {sum(counts.values()):8d} {cold['wall']:7.1f} "
                f"{warm['compiling']:6.2f} {warm['wall']:7.2f} {cold['error'] or ''}",
                flush=True,
            )
    print(f"everything once: {total:.0f} processor seconds, {len(seen)} functions")
    if "--files" in sys.argv:
        for file, seconds in by_file.most_common():
            print(f"  {seconds:6.1f}  {file}")


if __name__ == "__main__":
    main()
