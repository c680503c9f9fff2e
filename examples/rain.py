"""Five models of rainy days, among them mixtures with a hidden class learned by EM.

The data are drawn from a chain of 28 days in which a dry day weighs exp(0.16) and two neighbouring days that are alike
weigh exp(0.85): numbers that were once fitted to the rain of Vancouver. The mixtures have 10 classes, so EM runs from
five starts. All models are also judged by months that they have not seen.

Run: python examples/rain.py [picture.png]
Prints the average negative log likelihood of a month under each model, and draws how EM went.
"""

import sys
from itertools import pairwise
from time import perf_counter
from typing import Any

import matplotlib

matplotlib.use("agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import markovia as mk

DAYS = 28
MONTHS = 1059
DRY, ALIKE = 0.16, 0.85
CLASSES = 10
NAMES = [f"day{i}" for i in range(1, DAYS + 1)]
STATES = ["dry", "rain"]


def weather() -> mk.MarkovNetwork:
    """Return the chain that the months are drawn from."""
    factors = [mk.Factor([mk.Variable(n, STATES)], [np.exp(DRY), 1.0]) for n in NAMES]
    same = np.exp([[ALIKE, 0.0], [0.0, ALIKE]])
    for one, two in pairwise(NAMES):
        factors.append(mk.Factor([mk.Variable(one, STATES), mk.Variable(two, STATES)], same))
    return mk.MarkovNetwork(factors=factors)


def months(n: int = MONTHS, seed: int = 0) -> pd.DataFrame:
    """Draw months of 28 days, one row each."""
    return weather().sample(n, seed=seed)


def network(*edges: tuple[str, str]) -> mk.BayesianNetwork:
    """Return a graph over the days, and the class if an edge mentions it; it has no tables yet."""
    hidden = {"class": CLASSES} if any("class" in edge for edge in edges) else {}
    bn = mk.BayesianNetwork()
    for name, states in {**hidden, **dict.fromkeys(NAMES, STATES)}.items():
        bn.add(name, states=states, parents=[a for a, b in edges if b == name])
    return bn


def models() -> dict[str, tuple[mk.BayesianNetwork, dict[str, Any]]]:
    """Return each model's graph, and what `fit` is told about it."""
    chain = list(pairwise(NAMES))
    classes = [("class", n) for n in NAMES]
    later = [NAMES[1:]]
    em = mk.EM(restarts=5, seed=0)
    return {
        "one Bernoulli for all days": (network(), {"tied": [NAMES]}),
        "a Bernoulli for each day": (network(), {}),
        "mixture of Bernoullis": (network(*classes), {"latent": "class", "missing": em}),
        "Markov chain": (network(*chain), {"tied": later}),
        "mixture of Markov chains": (
            network(*classes, *chain),
            {"tied": later, "latent": "class", "missing": em},
        ),
    }


def compare(n: int = MONTHS) -> None:
    """Fit every model and print how well it does on its own months and on new ones."""
    seen, new = months(n), months(n, seed=1)
    print(f"{n} months of {DAYS} days; average negative log likelihood of a month, in nats")
    print(f"{'':28}{'parameters':>10}{'fitted':>9}{'new':>9}{'seconds':>9}")
    for name, (bn, how) in models().items():
        start = perf_counter()
        bn.fit(seen, **how)
        seconds = perf_counter() - start
        parameters = bn.fit_.n_parameters
        print(f"{name:28}{parameters:>10}{-bn.score(seen):>9.2f}{-bn.score(new):>9.2f}{seconds:>9.2f}")
    truth = weather()
    print(f"{'the truth':28}{2:>10}{-truth.log_prob(seen).mean():>9.2f}{-truth.log_prob(new).mean():>9.2f}")


def rain_figure(n: int = MONTHS) -> "plt.Figure":
    """Draw how EM fits the mixture of Bernoullis, with extrapolated and with plain steps."""
    seen = months(n)
    figure, axis = plt.subplots(figsize=(6.5, 3.0), layout="constrained")
    for label, accelerate in (("extrapolated steps (default)", True), ("plain steps", False)):
        bn, how = models()["mixture of Bernoullis"]
        bn.fit(seen, latent=how["latent"], missing=mk.EM(seed=0, accelerate=accelerate))
        loss = -np.array(bn.fit_.history) / n
        axis.plot(range(1, len(loss) + 1), loss, label=label)
    for name in ("a Bernoulli for each day", "Markov chain"):
        bn, how = models()[name]
        level = -bn.fit(seen, **how).fit_.log_likelihood / n
        axis.axhline(level, color="0.6", linewidth=1)
        axis.annotate(name, (1, level - 0.03), fontsize=8, va="top", color="0.4")
    axis.set(xlabel="iterations of EM", ylabel="nats a month", xscale="log", ylim=(16.5, None))
    axis.legend(frameon=False, loc="upper right", bbox_to_anchor=(1.0, 0.92))
    axis.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    path = sys.argv[1] if len(sys.argv) > 1 else "rain.png"
    compare()
    rain_figure().savefig(path, dpi=110)
    print(f"wrote {path}")
