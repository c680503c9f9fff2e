"""Falsification of a graph by its implications, against graphs with its labels shuffled.

Every graph promises independencies between its observed variables; tests say which of them the data violate. A graph is
falsified if these are more, or clearer, than chance explains: if Simes' (1986) test of all of them together rejects. Its fit
is informative if few shuffles of its labels violate as little (Eulig et al., 2023). Each test is made once, whatever the
number of shuffles.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovia.causal.identification.estimand import implied_independencies
from markovia.causal.problem import read_graph
from markovia.data.tables.frames import as_frame
from markovia.errors import check_known
from markovia.graphs.causal.admg import Admg
from markovia.graphs.kinds.named import Names
from markovia.graphs.separation.independencies import Independence
from markovia.runtime.checks import check_count, check_level
from markovia.runtime.seeds import Seed, generator
from markovia.runtime.shown import InNotebooks
from markovia.structure.ci_tests.ci_tests import bind_test
from markovia.structure.learn import with_alpha
from markovia.structure.task.settings import Reading


@dataclass(frozen=True)
class Falsification(InNotebooks):
    """Whether the data speak against a graph.

    Attributes
    ----------
    implied, violated
        The independencies that the graph implies between pairs, and those that the data reject.
    p_values
        Of the tests of the implied independencies, in their order.
    p_value
        The share of shuffled graphs that violate no more of theirs.
    permutations
        How many were tried.
    """

    implied: tuple[Independence, ...]
    violated: tuple[Independence, ...]
    p_values: tuple[float, ...]
    p_value: float
    permutations: int
    alpha: float = 0.05

    @property
    def falsified(self) -> bool:
        """Whether the data reject that all of the implied independencies hold: `joint_p_value` is at most `alpha`."""
        return self.joint_p_value <= self.alpha

    @property
    def joint_p_value(self) -> float:
        """Simes' p-value of all implied independencies together; 1 where there are none."""
        ordered = np.sort(np.asarray(self.p_values, dtype=float))
        return float(np.min(ordered * len(ordered) / np.arange(1, len(ordered) + 1), initial=1.0))

    @property
    def informative(self) -> bool:
        """Whether few graphs with shuffled labels fit as well, so that the fit says something."""
        return self.p_value <= 0.05

    def __str__(self) -> str:
        if not self.implied:
            return "the graph implies no independence, so data cannot speak against it"
        verdict = {
            (False, True): "the data do not speak against the graph",
            (
                False,
                False,
            ): "the data do not speak against the graph, but would not against many others either",
            (True, True): "the data speak against parts of the graph, though it fits better than others",
            (True, False): "the data speak against the graph, and it fits no better than others",
        }[self.falsified, self.informative]
        shown = "; ".join(str(i).removeprefix("Independence(").rstrip(")") for i in self.violated[:5])
        chance = ", no more than chance explains" if self.violated and not self.falsified else ""
        verb = "is" if len(self.violated) == 1 else "are"
        return (
            f"{verdict}: {len(self.violated)} of {len(self.implied)} implied independencies {verb} rejected"
            f"{f' ({shown})' if shown else ''}{chance}, and {self.p_value:.0%} of {self.permutations} graphs with shuffled "
            "labels do as well"
        )


def falsify_graph(
    frame: Any,
    graph: object,
    *,
    latent: Names = (),
    test: Any = None,
    alpha: float = 0.05,
    permutations: int = 200,
    random_state: Seed = 0,
) -> Falsification:
    """Test a causal graph by the independencies that it implies, against graphs with its labels shuffled.

    Parameters
    ----------
    frame, graph, latent
        As for `mk.causal.effect`; the graph's observed variables are columns.
    test, alpha
        A test of conditional independence as for `mk.independence_test`, and its level.
    permutations
        How many shuffled graphs to compare with.

    Returns
    -------
    Falsification

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.asia().sample(2000, seed=0)
    >>> falsify_graph(rows, mk.examples.asia(), permutations=50).falsified
    False
    """
    check_count("permutations", permutations, 10)
    check_level("alpha", alpha)
    table = as_frame(frame)
    admg = Admg.of(read_graph(graph, latent))
    check_known(admg.names, table.columns, "the data; variables that were not recorded belong into latent=")
    mixed = Reading(list(admg.names), None, None, None, "error").complete(table)
    bound = bind_test(with_alpha(test, alpha), mixed, mixed.names)
    place = {name: k for k, name in enumerate(bound.names)}
    implied = tuple(implied_independencies(admg))
    wanted = [
        (place[next(iter(i.x))], place[next(iter(i.y))], frozenset(place[z] for z in i.given))
        for i in implied
    ]
    made: dict[tuple[frozenset[int], frozenset[int]], float] = {}

    def tested(shuffle: Any) -> list[float]:
        asked = [
            (int(shuffle[x]), int(shuffle[y]), frozenset(int(shuffle[z]) for z in given))
            for x, y, given in wanted
        ]
        new = [q for q in dict.fromkeys(asked) if (frozenset(q[:2]), q[2]) not in made]
        for (x, y, given), p in zip(
            new, bound.p_values([(x, y, tuple(sorted(g))) for x, y, g in new]), strict=True
        ):
            made[frozenset((x, y)), given] = float(p)
        return [made[frozenset((x, y)), given] for x, y, given in asked]

    own = tested(np.arange(len(admg.names)))
    violated = tuple(i for i, p in zip(implied, own, strict=True) if p <= bound.alpha)
    rng = generator(random_state)
    shuffled = [
        sum(p <= bound.alpha for p in tested(rng.permutation(len(admg.names))))
        for _ in range(permutations if implied else 0)
    ]
    share = float(np.mean([count <= len(violated) for count in shuffled])) if shuffled else 1.0
    return Falsification(implied, violated, tuple(own), share, permutations, bound.alpha)
