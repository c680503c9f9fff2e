"""Cluster moves for Ising and Potts models: whole clusters of equal neighbours change state at once.

References: Swendsen and Wang (1987); Wolff (1989). Equal neighbours are bonded at random, strong couplings more often; each
cluster of bonded variables takes a new state in proportion to the product of its fields. Cost of a sweep: linear in the
variables and couplings. Use it for attractive couplings near or below the critical temperature, where single-variable
updates need very long to turn a region over. Fields are allowed, but where strong fields oppose each other inside
clusters the gain is lost. Repulsive couplings and other tables are refused.
"""

from dataclasses import dataclass, replace
from math import ceil
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from markovia.errors import Unanswered
from markovia.inference.flat_graphs.flat_graph import FlatGraph
from markovia.inference.markov_chains.chain_runs import ChainDetails, ChainSetUp, Stepper
from markovia.inference.markov_chains.device_chains import DeviceChainEngine, DeviceClusters
from markovia.kernels.sampling.sampler_records import DrawPlan, PottsBonds
from markovia.runtime.array_types import Array, Ints

if TYPE_CHECKING:
    from markovia.kernels.sampling.chains import Chain

TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class SwendsenWang(DeviceChainEngine):
    """Draw from an attractive Ising or Potts model cluster by cluster.

    Parameters
    ----------
    clusters
        "all" gives every cluster a new state each sweep (Swendsen-Wang); "one" only the cluster of a random variable
        (Wolff), as often a sweep as it takes to reach every variable once on average, measured in the burn-in.
    draws, burn_in, thin, chains, rao_blackwell, seed, time_limit, progress, threads
        As in `Gibbs`.
    device
        "cpu", "gpu", or None: the GPU where there is one and the model has 20,000 variables or more. It has random
        numbers of its own, so the same seed gives other draws there. Single clusters stay on the processor.

    Raises
    ------
    Unanswered
        If some table is not that of an attractive Ising or Potts coupling.

    Examples
    --------
    >>> import markovia as mk
    >>> model = mk.generators.ising_grid(4, 4, coupling=0.6, field=0.05)
    >>> found = model.query("x0_0", engine=mk.engines.SwendsenWang(draws=2000, seed=1))
    >>> abs(found[1] - model.query("x0_0")[1]) < 4 * found.info.error
    True
    """

    name: ClassVar[str] = "swendsen-wang"

    clusters: Literal["all", "one"] = "all"

    def _stepper(self, run: ChainSetUp) -> Stepper:
        model, wolff = potts_form(run.graph), self.clusters == "one"
        if self._on_gpu(run, "clusters='one' moves one after the other" if wolff else ""):
            return DeviceClusters(run, model)
        return ClusterStepper(run, model, wolff)

    def _details(self, run: ChainDetails, stepper: Stepper, chains: "list[Chain]") -> ChainDetails:
        if isinstance(stepper, DeviceClusters):
            return replace(super()._details(run, stepper, chains), mean_cluster=stepper.mean_cluster)
        assert isinstance(stepper, ClusterStepper)
        tally = np.sum(stepper.tallies, axis=0)
        n, mean = len(stepper.arrays.cards), float(tally[0] / max(tally[1], 1.0))
        return replace(run, mean_cluster=mean if stepper.wolff else n / max(mean, 1.0))


@dataclass(frozen=True)
class Potts:
    """A Potts model: couplings as bond probabilities, and log fields of every state of every variable."""

    first: Ints
    second: Ints
    bond: Array
    field: Array
    states: int


def potts_form(graph: FlatGraph) -> Potts:
    """Return a graph's tables as Potts couplings and fields.

    A table over two binary variables always splits into fields and a coupling; with more states it has to be one number
    on the diagonal and another elsewhere.

    Raises
    ------
    Unanswered
        If that is not possible, or a coupling is repulsive.
    """
    said = "engine 'swendsen-wang' is for attractive Ising and Potts models"
    n = len(graph.variables)
    used = np.flatnonzero(np.bincount(graph.scope, minlength=n)) if len(graph.scope) else np.arange(min(1, n))
    q = int(graph.cards[used].max(initial=1))
    if (graph.arity != 2).any():
        f = int(np.argmax(graph.arity != 2))
        names = ", ".join(graph.names[i] for i in graph.members(f))
        raise Unanswered(f"{said}, and there is a table over {names}; use engine='gibbs'")
    if (graph.cards[used] != q).any():
        raise Unanswered(f"{said}, whose coupled variables all have equally many states; use engine='gibbs'")
    width = int(graph.cards.max(initial=1))
    field = np.full((n, width), -np.inf)
    field[np.arange(width) < graph.cards[:, None]] = graph.log_unary
    logs = graph.log_values.reshape(-1, q, q) if graph.n_factors else np.zeros((0, q, q))
    first, second = graph.scope[0::2], graph.scope[1::2]
    with np.errstate(invalid="ignore"):
        if q == 2:
            a, b, c, d = logs[:, 0, 0], logs[:, 0, 1], logs[:, 1, 0], logs[:, 1, 1]
            skew = np.where(np.isneginf(b) & np.isneginf(c), 0.0, c - b)
            field[:, 1] += np.bincount(first, (d - a + skew) / 2, n)
            field[:, 1] += np.bincount(second, (d - a - skew) / 2, n)
            ratio = (b + c - a - d) / 2
            odd = ~np.isfinite(d - a) | ~np.isfinite(skew)
        else:
            diagonal = logs[:, np.arange(q), np.arange(q)]
            rest = logs[:, ~np.eye(q, dtype=bool)]
            low = rest[:, :1] if rest.shape[1] else diagonal[:, :1]
            same = np.abs(np.exp(rest) - np.exp(low)).max(axis=1, initial=0.0) <= TOLERANCE
            even = np.abs(np.exp(diagonal) - np.exp(diagonal[:, :1])).max(axis=1, initial=0.0) <= TOLERANCE
            ratio = low[:, 0] - diagonal[:, 0]
            odd = ~same | ~even | ~np.isfinite(diagonal[:, 0])
    wrong = odd | (ratio > TOLERANCE)
    if wrong.any():
        f = int(np.argmax(wrong))
        i, j = graph.members(f)
        why = "is not one number on the diagonal and one elsewhere" if odd[f] else "is repulsive"
        raise Unanswered(
            f"{said}, but the table over {graph.names[i]!r} and {graph.names[j]!r} {why}; use engine='gibbs' or "
            "'parallel-tempering'"
        )
    return Potts(first.copy(), second.copy(), -np.expm1(np.minimum(ratio, 0.0)), field.ravel(), width)


class ClusterStepper(Stepper):
    """Cluster moves."""

    def __init__(self, run: ChainSetUp, model: Potts, wolff: bool) -> None:
        super().__init__(run)
        n, n_chains = len(run.arrays.cards), len(run.chains)
        self.model, self.wolff = model, wolff
        ends = np.concatenate([model.first, model.second])
        order = np.argsort(ends, kind="stable")
        self.ptr = np.searchsorted(ends[order], np.arange(n + 1)).astype(np.int64)
        self.other = np.concatenate([model.second, model.first])[order].astype(np.int64)
        self.bond_at = np.concatenate([model.bond, model.bond])[order]
        self.steps = [0] * n_chains
        self.tallies = [np.zeros(3) for _ in range(n_chains)]
        self.rooms = [
            (np.zeros(n, dtype=np.int64), np.zeros(n * model.states), np.zeros(n, dtype=np.int64))
            for _ in range(n_chains)
        ]

    def advance(self, number: int, chain: "Chain", plan: DrawPlan) -> None:
        """Make draws; see `Stepper`."""
        from markovia.kernels.sampling.swendsen_wang import run_clusters

        m, tally = self.model, self.tallies[number]
        warming = bool(len(plan.warm))
        # fixed from the first draw on: a rule that looks at the states would bias
        if not warming and not self.steps[number]:
            size = tally[0] / tally[1] if self.wolff and tally[1] else len(self.arrays.cards)
            self.steps[number] = max(1, ceil(len(self.arrays.cards) / max(size, 1.0)))
        steps = self.steps[number] if self.wolff and not warming else 1
        model = PottsBonds(m.first, m.second, m.bond, self.ptr, self.other, self.bond_at, m.field, m.states)
        run_clusters(self.arrays, chain, self.wolff, steps, model, self.rooms[number], tally, plan)
