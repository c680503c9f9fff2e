"""A user's script: it builds, loads, asks, fits, learns and plots; a strict type checker finds nothing to say about it."""

from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from numpy.typing import NDArray

import markovia as mk


def built() -> mk.BayesianNetwork:
    bn = mk.BayesianNetwork(name="garden")
    bn.add("rain", states=["no", "yes"], p=[0.8, 0.2])
    bn.add("sprinkler", states=["no", "yes"], p=[0.6, 0.4])
    bn.add("wet", mk.local.NoisyOr({"rain": 0.9, "sprinkler": 0.8}, leak=0.01), states=["no", "yes"])
    return bn


def asked(bn: mk.BayesianNetwork) -> float:
    posterior: mk.results.Posterior = bn.query(
        "rain", given={"wet": "yes"}, engine=mk.engines.VariableElimination()
    )
    joint = bn.query(["rain", "sprinkler"], given={"wet": mk.Not("no")}, device="cpu")
    everything: dict[str, mk.results.Posterior] = bn.marginals(given={"wet": [0.1, 0.9]})
    two = [{"wet": "yes"}, {"wet": "no"}]
    rows: dict[str, pd.DataFrame] = bn.marginals(given=two, targets=["rain"], device="cpu")
    best: mk.results.Explanation = bn.map(given={"wet": "yes"})
    five: list[mk.results.Explanation] = bn.map(given={"wet": "yes"}, m=5, device="cpu")
    evidence: float = bn.log_evidence(given={"wet": "yes"}, device="cpu")
    if not posterior.info.exact or best["rain"] not in bn.states("rain"):
        raise mk.errors.InvalidArgument("unexpected")
    found = posterior["yes"] + joint["yes", "no"] + everything["rain"].entropy() + five[0].log_prob
    return found + evidence + float(rows["rain"].to_numpy().sum()) + bn.do(rain="yes").query("wet")["yes"]


def stored(bn: mk.BayesianNetwork, folder: Path) -> mk.BayesianNetwork:
    bn.save(folder / "garden.json")
    mk.save(bn, folder / "garden.bif")
    anything = mk.load(folder / "garden.bif")
    print(anything.query("rain"), anything.variables, anything.map().to_dict())
    return mk.load(folder / "garden.json", kind=mk.BayesianNetwork)


def learned(bn: mk.BayesianNetwork) -> mk.BayesianNetwork:
    rows: pd.DataFrame = bn.sample(500, seed=0)
    scores: NDArray[np.float64] = bn.log_prob(rows)
    modes: pd.Series[str] = bn.predict(rows[["wet"]], "rain", device="cpu")
    several: pd.DataFrame = bn.predict(rows[["wet"]], ["rain", "sprinkler"])
    table: pd.DataFrame = bn.predict_proba(rows[["wet"]], "rain")
    structure: mk.results.LearnedStructure = mk.learn_structure(
        rows, method="hill-climb", score=mk.scores.BIC()
    )
    distance: int = mk.graphs.shd(structure.graph, bn.graph)
    print(scores.sum(), modes.head(), several.shape, table.shape, distance, structure.dag.edges)
    fitted = mk.BayesianNetwork("rain->wet<-sprinkler").fit(rows, prior="laplace", missing=mk.EM(restarts=2))
    total: float = fitted.log_likelihood(rows)
    by_node: pd.Series[float] = fitted.log_likelihood(rows, by="family")
    print(total, by_node, fitted.fit_)
    return fitted


def bounded(bn: mk.BayesianNetwork) -> float:
    bounds: mk.results.LogBounds = bn.log_partition(bounds=True, device="cpu")
    return bounds.lower - bn.log_partition()


def drawn(bn: mk.BayesianNetwork) -> Axes:
    bn.junction_tree().plot(title="cliques")
    bn.query("rain").plot()
    mk.graphs.compare_graphs(bn.graph, bn.graph).plot(legend=False)
    return bn.plot(given={"wet": "yes"}, posteriors=True, layout="layered", title="garden")


def undirected() -> mk.MarkovNetwork:
    mn = mk.MarkovNetwork({"a": 2, "b": 2}, [mk.Factor(["a", "b"], [[30, 5], [1, 10]])])
    print(mn.query("a")[0], mn.log_partition(), mn.condition({"a": 1}).variables)
    return mn.fit({"a": [0, 1, 1], "b": [0, 1, 0]}, l2=0.1)
