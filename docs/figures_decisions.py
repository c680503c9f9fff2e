"""Pictures of the pages on decisions; everything is drawn from fixed seeds while the pages are built."""

from collections.abc import Callable
from typing import Any

import matplotlib.pyplot as plt

import markovia as mk

FIRST = "#1f6f8b"


def wildcatter() -> mk.BayesianNetwork:
    """Return the decision to drill, with a seismic test before it."""
    bn = mk.BayesianNetwork()
    bn.add("oil", [0.5, 0.3, 0.2], states=["dry", "wet", "soaking"])
    bn.add("test", mk.Decision(["yes", "no"]))
    seismic = {"dry": [0.6, 0.3, 0.1, 0], "wet": [0.3, 0.4, 0.3, 0], "soaking": [0.1, 0.4, 0.5, 0]}
    bn.add(
        "result", lambda oil, test: seismic[oil] if test == "yes" else [0, 0, 0, 1],
        states=["none", "open", "closed", "untested"],
    )  # fmt: skip
    bn.add("drill", mk.Decision(["yes", "no"]), parents=["test", "result"])
    bn.add("cost", mk.Utility({"yes": -10, "no": 0}), parents=["test"])
    bn.add("gain", mk.Utility([[-70, 0], [50, 0], [200, 0]]), parents=["oil", "drill"])
    return bn


def pigs(months: int) -> mk.BayesianNetwork:
    """Return the decisions to treat a pig that is tested each month."""
    bn = mk.BayesianNetwork()
    bn.add("ill0", [0.9, 0.1])
    for t in range(months):
        bn.add(f"test{t}", [[0.9, 0.1], [0.2, 0.8]], parents=[f"ill{t}"])
        bn.add(f"treat{t}", mk.Decision(2), parents=[f"test{t}"])
        bn.add(f"cost{t}", mk.Utility([0, -100]), parents=[f"treat{t}"])
        rows = [[[0.8, 0.2], [0.9, 0.1]], [[0.1, 0.9], [0.5, 0.5]]]
        bn.add(f"ill{t + 1}", rows, parents=[f"ill{t}", f"treat{t}"])
    bn.add("sale", mk.Utility([1000, 300]), parents=[f"ill{months}"])
    return bn


def drilling() -> Any:
    """Show the diagram of the drill, and what the total may come to when the best policy is followed."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10.4, 4.0), layout="constrained")
    bn = wildcatter()
    bn.plot(ax=left, title="what is seen, chosen and worth something")
    bn.follow(bn.decide()).utility().plot(ax=right, title="the total under the best policy")
    return figure


def limited_memory() -> Any:
    """Show what it costs that rules see one test instead of remembering all of them."""
    figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
    months = range(1, 9)
    solved = [pigs(n).decide() for n in months]
    axes.bar(list(months), [p.bound - p.value for p in solved], color=FIRST, width=0.6)
    axes.set(xlabel="months", ylabel="worth of remembering", xticks=list(months))
    return figure


FIGURES: list[Callable[[], Any]] = [drilling, limited_memory]
