"""The posterior over graphs: probabilities of edges, graphs drawn from it, and answers averaged over them.

Three ways: "exact" sums over all orders (`order_posterior.py`), "order-mcmc" draws orders (`order_mcmc.py`), "mcmc" draws
graphs (`structure_mcmc.py`). The score is taken as the log of the data's probability given the graph: exactly so for BDeu
and K2, asymptotically for BIC.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import (
    ConvergenceWarning,
    InvalidArgument,
    TooLarge,
    Unanswered,
    UnknownArgument,
    did_you_mean,
    warn_user,
)
from markovia.graphs.kinds.directed import DAG
from markovia.runtime import ports
from markovia.runtime.array_types import Array
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator
from markovia.structure.confidence.model_averaging import EdgeConfidence
from markovia.structure.confidence.order_mcmc import OrderChain, run_order_chain
from markovia.structure.confidence.order_posterior import FamilyLists, OrderPosterior, family_lists
from markovia.structure.confidence.structure_mcmc import GraphChain, edge_shares, run_chain
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.scores.scores import bind_score
from markovia.structure.task.knowledge import Rules
from markovia.structure.task.settings import KNOWN, READING, sorted_settings

METHODS = ("exact", "order-mcmc", "mcmc")
OWN = ("prior", "steps", "warmup", "chains", "seed", "time_limit", "progress")
"""The keywords of `edge_posterior` besides those it shares."""
MIXED = 1.1
"""Chains whose R-hat is larger warn."""
MOST_EXACT = 20
"""The largest number of variables for the exact sums."""
ALL_SETS = 10
"""Up to so many variables, parent sets of every size are summed by default; beyond, up to `FEW_PARENTS` parents."""
FEW_PARENTS = {"exact": 4, "order-mcmc": 3}
PRIORS = {
    "orders": "a graph weighs as much as it has topological orders",
    "orders-by-size": "a graph weighs as much as it has topological orders; numbers of parents weigh the same",
    "graphs": "all graphs weigh the same",
}


@dataclass(frozen=True, repr=False)
class EdgePosterior(EdgeConfidence):
    """Probabilities of edges, and graphs drawn from their posterior.

    `posterior["a", "b"]` is the probability of a -> b; everything of `EdgeConfidence` is here too.

    Attributes
    ----------
    exact
        Whether the probabilities are exact up to rounding.
    prior
        The prior over graphs, in words.
    score_name
        The score.
    max_parents
        The largest parent sets that were looked at.
    log_evidence
        The log of the weight of all graphs, for the exact sums; else None.
    r_hat, ess
        Of the chains' scores; None for the exact sums.
    accepted
        The share of accepted moves of each chain.
    """

    exact: bool = False
    prior: str = ""
    score_name: str = ""
    max_parents: int = 0
    log_evidence: float | None = None
    r_hat: float | None = None
    ess: float | None = None
    accepted: tuple[float, ...] = ()
    _sums: OrderPosterior | None = field(default=None, compare=False)
    _graphs: tuple[tuple[int, ...], ...] = field(default=(), compare=False)

    def sample(self, n: int = 1, seed: Seed = None) -> list[DAG]:
        """Return graphs drawn from the posterior: independent ones from exact sums, kept ones from chains.

        Parameters
        ----------
        n
            How many.
        seed
            Seed of the draws.
        """
        rng = generator(seed)
        check_count("n", n, 1)
        if self._sums is not None:
            drawn = [self._sums.draw(rng) for _ in range(n)]
            return [self._dag(parents) for parents in drawn]
        picked = rng.integers(0, len(self._graphs), n)
        places = range(len(self.names))
        return [self._dag([[p for p in places if m >> p & 1] for m in self._graphs[k]]) for k in picked]

    def query(
        self,
        targets: str | Sequence[str],
        given: Any = None,
        *,
        n: int = 200,
        prior: Any = "bdeu",
        seed: Seed = 0,
        **options: Any,
    ) -> Any:
        """Return P(targets | given, data), averaged over graphs and their parameters.

        Parameters
        ----------
        targets, given
            As for a network's `query`.
        n
            How many graphs are drawn. Each counts as much as it makes the evidence probable.
        prior
            The prior of the tables, as for a network's `fit`.
        seed
            Seed of the draws.
        **options
            Passed on to the networks' `query`.

        Returns
        -------
        SampledPosterior
            `draws` has the answer of each graph, and `interval()` their spread.
        """
        if not isinstance(self.data, MixedTable) or not self.data.discrete:
            raise InvalidArgument(
                "answers are averaged over networks of tables, and these data are not discrete"
            )
        graphs = self.sample(n, seed)
        return ports.call("query-averaged", graphs, self.data.table, targets, given, prior=prior, **options)

    def _dag(self, parents: Sequence[Sequence[int]]) -> DAG:
        names = self.names
        return DAG.from_parents({names[i]: [names[p] for p in own] for i, own in enumerate(parents)})

    def _heading(self) -> str:
        how = "exact sums" if self.exact else f"{self.method}, {self.n_graphs:,} draws"
        short = f", stopped early: {self.stopped}" if self.stopped else ""
        mixed = "" if self.r_hat is None else f", R-hat {self.r_hat:.3f}"
        return f"probabilities of edges by {how} ({self.score_name}; {self.prior}{mixed}{short})"


def edge_posterior(
    data: Any,
    score: Any = "bdeu",
    method: str = "exact",
    *,
    prior: str | None = None,
    steps: int | None = None,
    warmup: int | None = None,
    chains: int = 4,
    seed: Seed = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> EdgePosterior:
    """Return the probability of every edge given the data, averaged over all graphs.

    Parameters
    ----------
    data
        As for `learn_structure`.
    score
        The log of the data's probability given a graph: "bdeu" or "k2", for measurements "gaussian-bic"; or a score with its
        settings.
    method
        "exact" for up to 20 variables, "order-mcmc" for more, "mcmc" for a uniform prior over graphs.
    prior
        "orders" (a graph weighs as much as it has topological orders; the default of exact and order-mcmc),
        "orders-by-size" (the same, and each number of parents weighs the same whatever the number of such sets), or "graphs"
        (uniform over directed graphs; mcmc only, and its default).
    steps, warmup, chains
        Of Markov chains: steps to keep from (every 10th graph is), steps before that, and how many chains. By default
        100,000 steps over graphs or 4,000 over orders, after half as many.
    seed
        Seed of the chains.
    time_limit
        Seconds; chains return what they have, exact sums raise `Unanswered`.
    progress
        Whether to show a bar.
    **settings
        As for `learn_structure`: knowledge, or required, forbidden, tiers and max_parents; names, continuous, states,
        weights, missing and in_memory. Without `max_parents`, parent sets of every size are summed up to 10 variables, and
        of at most 4 (exact) or 3 (order-mcmc) beyond.

    Returns
    -------
    EdgePosterior

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(500, seed=1)
    >>> posterior = mk.edge_posterior(rows, score="bic")
    >>> posterior.adjacent("rain", "wet") > 0.99
    True
    >>> round(posterior["rain", "wet"] + posterior["wet", "rain"], 6) == round(posterior.adjacent("rain", "wet"), 6)
    True
    """
    check_choice("method", method, METHODS)
    prior = prior or ("graphs" if method == "mcmc" else "orders")
    if prior not in PRIORS or (prior == "graphs") != (method == "mcmc"):
        fit = "'graphs'" if method == "mcmc" else "'orders' or 'orders-by-size'"
        raise InvalidArgument(f"prior= of {method} is {fit}, not {prior!r}")
    steps, warmup = _lengths(method, steps, warmup, chains)
    known, reading, rest = sorted_settings(settings)
    for word in rest:
        raise UnknownArgument(
            f"edge_posterior takes no {word}={did_you_mean(word, (*OWN, *KNOWN, *READING))}"
        )
    mixed = reading.complete(data)
    rules = known.rules(mixed.names)
    n = len(mixed.names)
    if method == "exact" and n > MOST_EXACT:
        raise TooLarge(
            f"exact sums take up to {MOST_EXACT} variables, these are {n}; use method='order-mcmc'"
        )
    if method == "order-mcmc" and n > 62:
        raise TooLarge(f"order-mcmc takes up to 62 variables, these are {n}; use method='mcmc'")
    bound = bind_score(score, mixed)
    most = min(n - 1, rules.max_parents)
    if known.max_parents is None and n > ALL_SETS and method in FEW_PARENTS:
        most = min(most, FEW_PARENTS[method])
        most = max(most, int(rules.required.sum(axis=0).max(initial=0)))
    rng = generator(seed)
    with Clock(time_limit, progress) as clock:
        found = _run(method, bound, rules, most, prior, rng, clock, steps, warmup, chains)
        return EdgePosterior(
            names=mixed.names,
            lines=np.zeros((n, n)),
            method=method,
            level="dag",
            stopped=clock.reason,
            seconds=clock.seconds,
            rules=rules,
            data=mixed,
            exact=method == "exact",
            prior=PRIORS[prior],
            score_name=bound.name,
            max_parents=most,
            **found,
        )


def _lengths(method: str, steps: int | None, warmup: int | None, chains: int) -> tuple[int, int]:
    check_count("steps", steps, 1, none=True)
    check_count("warmup", warmup, none=True)
    check_count("chains", chains, 1)
    if method == "exact" and (steps is not None or warmup is not None):
        raise InvalidArgument("steps= and warmup= are for Markov chains; the exact sums have none")
    long = int(steps) if steps is not None else 4_000 if method == "order-mcmc" else 100_000
    return long, int(warmup) if warmup is not None else long // 2


def _run(
    method: str,
    score: LocalScore,
    rules: Rules,
    most: int,
    prior: str,
    rng: np.random.Generator,
    clock: Clock,
    steps: int,
    warmup: int,
    chains: int,
) -> dict[str, Any]:
    families: FamilyLists | None = None
    if method != "mcmc":
        families = family_lists(score, rules, most, clock, prior == "orders-by-size")
    if method == "exact":
        assert families is not None
        sums = OrderPosterior(families, clock)
        return {"arrows": sums.edges, "log_evidence": sums.log_evidence, "_sums": sums}
    runs: list[GraphChain | OrderChain] = []
    for stream in rng.spawn(chains):
        run: GraphChain | OrderChain
        if families is None:
            run = run_chain(score, rules, stream, clock, steps=steps, warmup=warmup, thin=10)
        else:
            run = run_order_chain(families, stream, clock, steps=steps, warmup=warmup, thin=10)
        if run.graphs:
            runs.append(run)
        if clock.over():
            break
    if not runs:
        raise Unanswered(
            f"stopped ({clock.reason}) before the first draw; allow more time or a shorter warmup"
        )
    return _merged(runs, score.n)


def _merged(runs: Sequence[GraphChain | OrderChain], n: int) -> dict[str, Any]:
    from markovia.inference.markov_chains.diagnostics import ess, rhat

    sizes = np.array([len(run.graphs) for run in runs], dtype=np.float64)
    shares: list[Array] = [
        run.edges if isinstance(run, OrderChain) else edge_shares(run.graphs, n) for run in runs
    ]
    arrows = sum(w * s for w, s in zip(sizes / sizes.sum(), shares, strict=True))
    least = int(sizes.min())
    traces = np.stack([run.scores[:least] for run in runs])
    measured = least >= 8 and bool(traces.std() > 0)
    r_hat = float(rhat(traces)) if measured else None
    if r_hat is not None and r_hat > MIXED:
        advice = "raise steps= and warmup=, or use method='order-mcmc'"
        warn_user(f"the chains have not mixed (R-hat {r_hat:.2f}); {advice}", ConvergenceWarning)
    graphs = tuple(g for run in runs for g in run.graphs)
    return {
        "arrows": arrows,
        "n_graphs": len(graphs),
        "asked": len(graphs),
        "r_hat": r_hat,
        "ess": float(ess(traces)) if measured else None,
        "accepted": tuple(run.accepted for run in runs),
        "_graphs": graphs,
    }
