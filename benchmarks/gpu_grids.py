"""Large grids on the GPU and on the processor: updates a second of Gibbs, Swendsen-Wang and loopy belief propagation.

Run: python benchmarks/gpu_grids.py [--sizes N ...] [--potts N ...] [--seconds S] [--chains C] [--no-agreement]
     [--no-processor]

The grids are N by N: Ising at the critical coupling without field (for belief propagation a random field, half the
coupling), and Potts with three states. Graphs are made from arrays and sweeps timed alone, since reading millions of tables
takes longer than many sweeps. An update is one variable drawn in one chain, or one message; of Gibbs and Swendsen-Wang,
`recorded` adds up full conditionals after every sweep, as an answer does. The processor runs with one thread (one chain)
and with all (a chain a thread, at most four on the largest grids; flooding). Before that the answers are compared: with
exact marginals on 8 x 12 grids, with the processor on 64 x 64, and the energy of the two-dimensional Ising model on a
1024 x 1024 torus with Onsager's (1944).
"""

import argparse
import os
import warnings
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import replace
from math import cosh, pi, sinh, sqrt, tanh
from time import perf_counter
from typing import Any

import numpy as np
from scipy.special import ellipk

import markovia as mk
from markovia.factors.tables.variable import Variable
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.flat_graphs.padded_links import padded_links
from markovia.inference.markov_chains.chain_runs import ChainSetUp, Wanted, graph_arrays, make_chain
from markovia.inference.message_passing.device_messages import MOST_ROUNDS, DeviceRun
from markovia.inference.message_passing.message_graph import MessageGraph
from markovia.inference.message_passing.schedules import SUM, ScheduleSettings, first_messages, propagate
from markovia.inference.problem import Problem
from markovia.runtime import devices
from markovia.runtime.threads import in_parallel, thread_count

CRITICAL = 0.5 * np.log(1.0 + sqrt(2.0))
"""Coupling of two neighbours (spins of -1 and 1) at which the square lattice orders."""
FEW = 5_000_000
"""Variables from which on four chains do on the processor."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="*", default=[256, 1024, 4096])
    parser.add_argument("--potts", type=int, nargs="*", default=[1024])
    parser.add_argument("--seconds", type=float, default=1.0, help="how long each measurement runs, about")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--no-agreement", action="store_true")
    parser.add_argument("--no-processor", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore", mk.errors.ConvergenceWarning)
    found = devices.gpu()
    print(f"GPU: {found or devices.why_not()}; {thread_count()} threads")
    if found is not None and not options.no_agreement:
        against_exact()
        against_onsager()
        against_processor()
    print(f"{'millions of updates a second':<42}{'GPU':>12}{'1 thread':>12}{'all threads':>12}{'ratio':>8}")
    for states, n in [*((2, n) for n in options.sizes), *((3, n) for n in options.potts)]:
        speeds(states, n, options, found is not None)
    return 0


# -- agreement ---------------------------------------------------------------------------------------------------


def engines(device: str, draws: int, seed: int = 1) -> dict[str, Any]:
    """Return the engines under test."""
    return {
        "gibbs": mk.engines.Gibbs(draws=draws, seed=seed, device=device),
        "gibbs, states": mk.engines.Gibbs(draws=draws, seed=seed, device=device, rao_blackwell=False),
        "swendsen-wang": mk.engines.SwendsenWang(draws=draws, seed=seed, device=device),
        "loopy-bp": mk.engines.LoopyBP(device=device),
        "loopy-bp, flooding": mk.engines.LoopyBP(device=device, schedule="flooding", damping=0.2),
    }


def grids(rows: int, cols: int) -> dict[str, Any]:
    """Return models in which exact inference is still possible, or nearly."""
    g = mk.generators
    return {
        "Ising": g.ising_grid(rows, cols, coupling=0.35, field="random", seed=3),
        "Potts": g.potts_grid(rows, cols, 3, coupling=0.7, field="random", seed=3),
    }


def against_exact() -> None:
    """Print how many standard errors the samplers are off on 8 x 12 grids, and the Bethe error as the processor has it."""
    for name, model in grids(8, 12).items():
        exact = model.marginals(engine="junction-tree")
        for label, engine in engines("gpu", 20_000).items():
            found = model.marginals(engine=engine)
            info = next(iter(found.values())).info
            if label.startswith("loopy"):
                other = model.marginals(engine=replace(engine, device="cpu"))
                gap = max(float(np.abs(found[v].values - other[v].values).max()) for v in exact)
                said = f"{gap:.1e} from the processor's, {info.iterations} rounds"
            else:
                off = np.concatenate([found[v].values - exact[v].values for v in exact])
                # the largest of some hundred errors may be four of the error that is told, which is the largest one's
                said = f"{np.abs(off).max() / info.error:.2f} standard errors, R-hat {info.diagnostics.r_hat:.3f}"
            print(f"8 x 12 {name}, {label}: {said}; by {info.details.device}")
            assert info.details.device == "gpu"


def against_processor() -> None:
    """Print how far the GPU and the processor are apart on 64 x 64 grids, in standard errors of the difference."""
    for name, model in grids(64, 64).items():
        for label, engine in engines("gpu", 4_000).items():
            one, two = (model.marginals(engine=e) for e in (engine, engines("cpu", 4_000, seed=2)[label]))
            off = np.array([np.abs(one[v].values - two[v].values).max() for v in one])
            error = sqrt(sum((next(iter(m.values())).info.error or 0.0) ** 2 for m in (one, two)))
            said = f"{off.max():.1e}" + (
                "" if "bp" in label else f", {off.max() / error:.2f} standard errors"
            )
            print(f"64 x 64 {name}, {label}: at most {said}")


def against_onsager(n: int = 1024, draws: int = 2000, burn: int = 500) -> None:
    """Print the energy a site of the Ising model on a torus beside Onsager's."""
    for coupling in (0.3, 0.4, 0.5):
        graph = grid_graph(n, n, np.exp(coupling * np.array([[1.0, -1.0], [-1.0, 1.0]])), periodic=True)
        for engine in (mk.engines.Gibbs(device="gpu"), mk.engines.SwendsenWang(device="gpu")):
            # from the ordered state Gibbs sampling has no walls between regions to wait for
            run, stepper = set_up(
                engine, graph, 4, draws + burn, start="ordered" if coupling > CRITICAL else "random"
            )
            warm = np.zeros((4, draws + burn))
            move(run, stepper, burn, warm)
            move(run, stepper, draws)
            energy = -2.0 - np.stack([c.trace[:draws, 0] for c in run.chains]) / (coupling * n * n)
            mean, spread = energy.mean(axis=1), mk.diagnostics.mcse(energy)
            print(
                f"{n} x {n} torus, coupling {coupling}, {engine.name}: energy a site {mean.mean():.6f}, Onsager "
                f"{onsager(coupling):.6f}, {abs(mean.mean() - onsager(coupling)) / spread:.2f} standard errors"
            )


def onsager(k: float) -> float:
    """Return the energy a site of the infinite square lattice in units of the coupling (Onsager 1944)."""
    modulus = 2.0 * sinh(2 * k) / cosh(2 * k) ** 2
    inner = (2.0 * tanh(2 * k) ** 2 - 1.0) * float(ellipk(modulus**2))
    return -(1.0 / tanh(2 * k)) * (1.0 + 2.0 / pi * inner)


# -- speed -------------------------------------------------------------------------------------------------------


def speeds(states: int, n: int, options: argparse.Namespace, with_gpu: bool) -> None:
    """Print a line for each engine on one grid."""
    same = np.eye(states)
    coupling = 2.0 * CRITICAL if states == 2 else np.log(1.0 + sqrt(states))
    name = f"{'Ising' if states == 2 else f'Potts {states}'} {n} x {n}"
    graph = grid_graph(n, n, np.exp(coupling * same))
    gibbs, clusters = mk.engines.Gibbs, mk.engines.SwendsenWang
    threads = min(thread_count(), 4) if n * n >= FEW else thread_count()
    for label, make in (("Gibbs", gibbs), ("Swendsen-Wang", clusters)):
        found = np.zeros((2, 3))
        if with_gpu:
            found[:, 0] = sampled(make(device="gpu"), graph, options.chains, options.seconds)
        if not options.no_processor:
            found[:, 1] = sampled(make(device="cpu"), graph, 1, options.seconds)
            found[:, 2] = sampled(make(device="cpu"), graph, threads, options.seconds)
        line(f"{name}, {label}", found[0])
        line(f"{name}, {label}, recorded", found[1])
    unary = np.random.default_rng(0).uniform(0.5, 1.0, n * n * states)
    graph = replace(graph, unary=unary, values=np.sqrt(graph.values))
    messages = MessageGraph(
        graph, n * n, graph.n_factors, graph.scope_ptr, graph.scope, graph.edge_ptr, graph.edges, graph.edge_factor,
        np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64), np.zeros(0), 0.0,
    )  # fmt: skip
    for schedule in ("flooding", "sequential"):
        found = [0.0, 0.0, 0.0]
        if with_gpu:
            found[0] = passed_there(messages, schedule, options.seconds)
        if not options.no_processor:
            with only_threads(1):
                found[1] = passed(messages, schedule, options.seconds)
            # in sequence takes one thread
            found[2] = found[1] if schedule == "sequential" else passed(messages, schedule, options.seconds)
        line(f"{name}, loopy-bp, {schedule}", found)


def line(label: str, found: Sequence[float]) -> None:
    """Print speeds and how the GPU's compares with the better of the others."""
    ratio = found[0] / max(found[1:]) if max(found[1:]) else 0.0
    cells = "".join(f"{f / 1e6:>12,.1f}" for f in found)
    print(f"{label:<42}{cells}{ratio:>8,.0f}", flush=True)


def sampled(engine: Any, graph: FlatGraph, chains: int, seconds: float) -> tuple[float, float]:
    """Return how many updates a second an engine makes, and how many where every sweep is recorded."""
    draws = 4096
    run, stepper = set_up(engine, graph, chains, draws)
    move(run, stepper, 1, np.zeros((chains, draws)))  # what is compiled is compiled here
    move(run, stepper, 1)
    found = []
    for warm in (np.zeros((chains, draws)), None):
        at, count, best, begun = 0, 1, 0.0, perf_counter()
        while at + count <= draws and (not best or perf_counter() - begun < 2 * seconds):
            since = perf_counter()
            move(run, stepper, count, warm, at)
            took = perf_counter() - since
            best = max(best, count * chains * len(graph.cards) / took)
            at += count
            count = max(1, min(2 * count, int(count * seconds / took)))
        found.append(best)
    return found[0], found[1]


def set_up(
    engine: Any, graph: FlatGraph, chains: int, draws: int, start: str = "random"
) -> tuple[ChainSetUp, Any]:
    """Return chains at random states (or all in state 0), and what moves them."""
    rng, n, states = np.random.default_rng(0), len(graph.cards), int(graph.cards[0])
    seeds = np.random.SeedSequence(1).spawn(chains)
    arrays = graph_arrays(graph)
    made = [
        make_chain(
            graph, arrays, rng.integers(states, size=n) if start == "random" else np.zeros(n, np.int64), s, draws,
            Wanted(), chains,
        )
        for s in seeds
    ]  # fmt: skip
    run = ChainSetUp(Problem({}, [], {}), graph, arrays, Wanted(), made, seeds, 1, True)
    return run, engine._stepper(run)


def move(run: ChainSetUp, stepper: Any, count: int, warm: Any = None, first: int = 0) -> None:
    """Make draws of all chains; with `warm`, of log weights alone."""
    chains, draws = run.chains, len(run.chains[0].trace)

    def work(c: int, _: None) -> None:
        into = np.zeros(0) if warm is None else warm[c]
        stepper.advance(c, chains[c], stepper.plan(first, count, draws, into))

    in_parallel(work, range(len(chains)), lambda: None, 1 if stepper.inside else None)


def passed(graph: MessageGraph, schedule: Any, seconds: float) -> float:
    """Return how many messages a second the processor sends: by the time that more rounds take than one."""
    rounds, took = [1], []
    while len(took) < 2 or (took[-1] - took[0] < seconds / 2 and rounds[-1] < 4000):
        since = perf_counter()
        propagate(graph, SUM, ScheduleSettings(schedule, 0.0, 1e-300, rounds[-1], None, "uniform", None))
        took.append(perf_counter() - since)
        rounds.append(4 * rounds[-1])
    each = len(graph.scope) * (1 if schedule == "flooding" else 2)  # there and back
    return each * (rounds[-2] - rounds[0]) / (took[-1] - took[0])


def passed_there(graph: MessageGraph, schedule: Any, seconds: float) -> float:
    """Return how many messages a second the GPU sends, without bringing them there and back."""
    settings = ScheduleSettings(schedule, 0.0, 1e-300, 1, None, "uniform", None)
    run = DeviceRun(graph, padded_links(graph.flat), first_messages(graph, SUM, settings), settings)
    run.rounds(2)
    best, begun = 0.0, perf_counter()
    while not best or perf_counter() - begun < seconds:
        since = perf_counter()
        run.rounds(MOST_ROUNDS)
        best = max(best, len(graph.scope) * MOST_ROUNDS / (perf_counter() - since))
    return best


@contextmanager
def only_threads(number: int) -> Any:
    """Let compiled work use so many threads."""
    os.environ["MARKOVIA_THREADS"] = str(number)
    try:
        yield
    finally:
        del os.environ["MARKOVIA_THREADS"]


def grid_graph(rows: int, cols: int, table: Any, *, unary: Any = None, periodic: bool = False) -> FlatGraph:
    """Return a grid whose neighbours all share one table, made of arrays."""
    states, n = len(table), rows * cols
    place = np.arange(n).reshape(rows, cols)
    if periodic:
        pairs = [(place, np.roll(place, -1, axis=1)), (place, np.roll(place, -1, axis=0))]
    else:
        pairs = [(place[:, :-1], place[:, 1:]), (place[:-1], place[1:])]
    scope = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]).ravel()
    m = len(scope) // 2
    edges = np.argsort(scope.astype(np.int32), kind="stable")
    return FlatGraph(
        variables=(Variable("x", tuple(range(states))),) * n,
        cards=np.full(n, states),
        starts=np.arange(n + 1) * states,
        unary=np.ones(n * states) if unary is None else unary,
        scope_ptr=2 * np.arange(m + 1),
        scope=scope,
        strides=np.tile([states, 1], m),
        table_ptr=states * states * np.arange(m + 1),
        values=np.tile((table / table.max()).ravel(), m),
        edge_ptr=np.concatenate([[0], np.cumsum(np.bincount(scope, minlength=n))]),
        edges=edges,
        edge_factor=np.repeat(np.arange(m), 2),
        log_scale=0.0,
    )


if __name__ == "__main__":
    raise SystemExit(main())
