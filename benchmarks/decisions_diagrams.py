"""Diagrams: the oil wildcatter, pigs with recall, random diagrams, long chains of limited memory; pyAgrum beside us.

    python benchmarks/decisions_diagrams.py [--quick]

pyAgrum is wrong on some random diagrams with limited memory; each of its answers is compared with ours, and ours with the
expected utility of the policy it comes with.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

import markovia as mk

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "inference" / "decisions"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))


def per_call(work: Callable[[], Any], seconds: float = 0.5) -> float:
    """Return the best milliseconds of a call after a first one."""
    work()
    best, spent = np.inf, 0.0
    while spent < seconds:
        began = perf_counter()
        work()
        took = perf_counter() - began
        best, spent = min(best, took), spent + took
    return 1e3 * best


def as_pyagrum(bn: mk.BayesianNetwork) -> Any:
    """Return the same diagram as pyAgrum has it."""
    import pyagrum

    diagram = pyagrum.InfluenceDiagram()
    for name in bn.variables:
        if name in bn.utilities:
            diagram.addUtilityNode(pyagrum.LabelizedVariable(name, name, 1))
            continue
        variable = pyagrum.LabelizedVariable(name, name, len(bn.states(name)))
        (diagram.addDecisionNode if name in bn.decisions else diagram.addChanceNode)(variable)
    for parent, child in bn.edges:
        diagram.addArc(parent, child)
    for name in bn.variables:
        if name in bn.decisions:
            continue
        parents = bn.parents(name)
        table = bn[name].worth if name in bn.utilities else bn[name].values
        tensor = diagram.utility(name) if name in bn.utilities else diagram.cpt(name)
        for at in np.ndindex(*(len(bn.states(q)) for q in parents)):
            key = dict(zip(parents, map(int, at), strict=True))
            tensor[key] = [float(table[at])] if name in bn.utilities else table[at].tolist()
    return diagram


def peer(bn: mk.BayesianNetwork, recall: bool) -> tuple[float, Callable[[], Any]]:
    """Return pyAgrum's value of a diagram, and what to time."""
    import pyagrum

    diagram = as_pyagrum(bn)

    def work() -> Any:
        inference = pyagrum.ShaferShenoyLIMIDInference(diagram)
        if recall:
            inference.addNoForgettingAssumption(bn.decisions)
        inference.makeInference()
        return inference.MEU()["mean"]

    return work(), work


def main() -> None:
    """Print the figures."""
    from test_diagrams import pigs, wildcatter

    from random_diagrams import random_diagram

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    quick = parser.parse_args().quick
    try:
        import pyagrum  # noqa: F401

        beside = True
    except ImportError:
        beside = False
    print("oil", f"{per_call(wildcatter().decide):.3f} ms", end="")
    if beside:
        print(f", pyAgrum {per_call(peer(wildcatter(), True)[1]):.3f} ms", end="")
    print()
    n = 6 if quick else 10
    bn = pigs(n)
    ours = bn.decide(memory="perfect")
    print(
        f"pigs, {n} decisions with recall: {ours.value:.6f} in {per_call(lambda: bn.decide(memory='perfect')):.1f} ms",
        end="",
    )
    if beside and quick:
        value, work = peer(bn, True)
        print(f", pyAgrum {value:.6f} in {per_call(work):.1f} ms", end="")
    print()
    times, wrong, peers, local = [], 0, [], 0
    for seed in range(20):
        diagram = random_diagram(seed, n_chance=21, n_decisions=4, n_utilities=3)
        policy = diagram.decide()
        local += not policy.info.exact
        times.append(per_call(diagram.decide, 0.1))
        assert (
            abs(diagram.follow(policy).expected_utility() - policy.value) < 1e-8 * abs(policy.value) + 1e-10
        )
        if beside:
            try:
                value, work = peer(diagram, False)
            except Exception:
                continue
            peers.append(per_call(work, 0.1))
            wrong += abs(value - policy.value) > 1e-6
    print(
        f"random diagrams of 21 chance and 4 decision nodes: {np.median(times):.2f} ms (median of 20), {local} not proved",
        end="",
    )
    if beside:
        print(
            f"; pyAgrum {np.median(peers):.2f} ms on the {len(peers)} that it solves, {wrong} other values",
            end="",
        )
    print()
    for stages in (10, 25) if quick else (25, 50, 100):
        chain = pigs(stages)
        began = perf_counter()
        policy = chain.decide()
        print(
            f"limited memory, {stages} stages: {policy.value:.6f}, {policy.info}, {perf_counter() - began:.2f} s at first"
        )


if __name__ == "__main__":
    main()
