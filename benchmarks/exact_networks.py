"""One network of the Bayesian Network Repository: exact inference here and by pyAgrum, in one process.

`exact.py` runs this for every network; it prints one line of JSON a finding.

Run: python benchmarks/exact_networks.py NAME [--quick] [--skip-peers] [--peak]
"""

import argparse
from collections.abc import Callable
from itertools import cycle
from typing import Any

import numpy as np
from stopwatch import benchmark_folder, limit_memory, median_time, peak_bytes, report

import markovia as mk
from markovia.inference.exact.tree_plan import forget_plans
from markovia.inference.exact.tree_state import TreeState

ENGINES = {"lazy": "LazyPropagation", "shafer": "ShaferShenoyInference"}
ASSIGNMENTS = 16
"""Assignments of the observed leaves that repeated queries go through."""

Given = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("--quick", action="store_true", help="fewer repetitions")
    parser.add_argument("--skip-peers", action="store_true")
    parser.add_argument("--peak", action="store_true", help="only the peak memory of all marginals")
    options = parser.parse_args()
    limit_memory()
    model = mk.load(benchmark_folder() / "bif" / f"{options.name}.bif.gz")
    mk.engines.load_kernels()
    if options.peak:
        report(["before"], peak_bytes())
        model.marginals()
        report(["bytes"], peak_bytes())
        return
    Measured(model, 0.1 if options.quick else 0.5).all(peers=not options.skip_peers)


class Measured:
    """A network, what is observed in it, and the measurements."""

    def __init__(self, model: mk.BayesianNetwork, enough: float) -> None:
        self.model = model
        self.enough = enough
        self.assignments = assignments(model)
        self.target = target(model, list(self.assignments[0]))

    def all(self, peers: bool) -> None:
        """Measure and report everything, own numbers first."""
        model = self.model
        report(["variables"], len(model))
        report(["observed"], self.assignments[0])
        report(["run"], tree_run(model, {}, self.enough))
        settings: dict[str, Given] = {"none": {}, "leaves": self.assignments[0]}
        for setting, given in settings.items():
            report(["all", setting, "markovia"], self._own_marginals(given))
        report(["repeated", "target"], self.target)
        report(["repeated", "assignments"], len(self.assignments))
        report(["repeated", "markovia"], self._own_repeated())
        if not peers:
            return
        network = mk.io.to_pyagrum(model)  # lives as long as anything that reads it
        for setting, given in settings.items():
            for engine in ENGINES:
                report(["all", setting, engine], self._peer_marginals(network, engine, given, setting))
        for engine in ENGINES:
            for declared in (False, True):
                key = f"{engine} declared" if declared else engine
                report(["repeated", key], self._peer_repeated(network, engine, declared))

    def _own_marginals(self, given: Given) -> dict[str, Any]:
        def fresh() -> mk.BayesianNetwork:
            forget_plans()
            return self.model.copy()

        return median_time(lambda model: model.marginals(given=given), fresh, self.enough).record

    def _own_repeated(self) -> dict[str, Any]:
        model, wanted = self.model.copy(), self.target
        model.query(wanted, given=self.assignments[-1])
        turn = cycle(self.assignments)
        timed = median_time(lambda given: model.query(wanted, given=given), lambda: next(turn), self.enough)
        return timed.record

    def _peer_marginals(self, network: Any, engine: str, given: Given, setting: str) -> dict[str, Any]:
        import pyagrum

        make = getattr(pyagrum, ENGINES[engine])
        names = [n for n in self.model.variables if n not in given]
        nodes = [network.idFromName(n) for n in names]
        evidence = self._codes(given)

        def task(_: None) -> Any:
            inference = make(network)
            if evidence:
                inference.setEvidence(evidence)
            inference.makeInference()
            return [inference.posterior(i) for i in nodes], inference

        def measure() -> dict[str, Any]:
            timed = median_time(task, lambda: None, self.enough)
            own = self.model.marginals(given=given)
            pairs = zip(names, timed.result[0], strict=True)
            difference = max(_distance(own[n], theirs) for n, theirs in pairs)
            return {**timed.record, "difference": difference}

        return _or_failure(measure)

    def _peer_repeated(self, network: Any, engine: str, declared: bool) -> dict[str, Any]:
        import pyagrum

        node = network.idFromName(self.target)
        coded = [
            {network.idFromName(n): c for n, c in self._codes(given).items()} for given in self.assignments
        ]

        def measure() -> dict[str, Any]:
            inference = getattr(pyagrum, ENGINES[engine])(network)
            if declared:
                inference.setTargets({node})
            inference.setEvidence(coded[-1])
            inference.makeInference()
            inference.posterior(node)
            turn = cycle(zip(self.assignments, coded, strict=True))

            def task(turned: tuple[Given, dict[int, int]]) -> Any:
                for i, code in turned[1].items():
                    inference.chgEvidence(i, code)
                inference.makeInference()
                return inference.posterior(node)

            timed = median_time(task, lambda: next(turn), self.enough)
            compared = [(timed.prepared[0], timed.result)]
            if timed.record["seconds"] < 0.1:
                compared = [(g, task((g, c))) for g, c in zip(self.assignments, coded, strict=True)]
            difference = max(_distance(self.model.query(self.target, given=g), p) for g, p in compared)
            return {**timed.record, "difference": difference}

        return _or_failure(measure)

    def _codes(self, given: Given) -> dict[str, int]:
        return {n: self.model.states(n).index(s) for n, s in given.items()}


def assignments(model: mk.BayesianNetwork) -> list[Given]:
    """Return states of up to three leaves, spread over the network, as different rows drawn from it show them."""
    leaves = [n for n in model.variables if not model.children(n)]
    chosen = leaves[:: max(1, len(leaves) // 3)][:3]
    rows = model.sample(1000, seed=0)[chosen].drop_duplicates().head(ASSIGNMENTS)
    return [dict(zip(chosen, row, strict=True)) for row in rows.itertuples(index=False)]


def target(model: mk.BayesianNetwork, leaves: list[str]) -> str:
    """Return the first variable that is an ancestor of as many of the leaves as any."""
    above = [set(model.graph.ancestors(n)) for n in leaves]
    candidates = [n for n in model.graph.topological_order() if n not in leaves]
    return max(candidates, key=lambda n: sum(n in a for a in above))  # the first of the largest


def tree_run(
    model: Any, given: Given, enough: float, engine: mk.engines.JunctionTree | None = None
) -> dict[str, Any]:
    """Measure one run of a compiled tree on a fresh state: tables in, messages up and down, all marginals out."""
    problem = model._problem(given, "junction-tree")
    tree, findings = (engine or mk.engines.JunctionTree()).compiled(problem, problem.free)

    def task(_: None) -> TreeState:
        state = TreeState(tree)
        state.set_evidence(findings)
        state.collect()
        state.distribute()
        return state

    entries = tree.plan.entries_given(task(None).code)
    timed = median_time(task, lambda: None, enough).record
    return {**timed, "entries": entries, "width": tree.plan.width, "cliques": tree.plan.n_cliques}


def _distance(own: mk.results.Posterior, theirs: Any) -> float:
    return float(np.abs(own.values - theirs.toarray()).max())


def _or_failure(measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    try:
        return measure()
    except Exception as error:  # pyAgrum raises plain exceptions
        memory = isinstance(error, MemoryError) or "bad_alloc" in str(error)
        return {"failed": "memory" if memory else f"{type(error).__name__}: {error}"}


if __name__ == "__main__":
    main()
