"""The bootstrap of structure learning: learn again from resampled rows, and count how often each edge comes back.

Friedman, Goldszmidt and Wyner, *Data analysis with Bayesian networks: a bootstrap approach*, UAI (1999). An edge that
depends on a few rows is missing in many replicates; one that the data insist on is in all of them. Discrete rows that repeat
are held once and get new weights in each replicate, which is faster than copies. Cost: as many searches as replicates, in
processes side by side. Use it with any method to see which edges to believe.
"""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import replace
from time import time
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument
from markovia.graphs.kinds.undirected import UndirectedGraph
from markovia.runtime.checks import check_choice, check_count
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator
from markovia.structure.ci_tests.ci_tests import CITest
from markovia.structure.confidence.model_averaging import LEVELS, EdgeConfidence, edge_flags, is_ancestral
from markovia.structure.learn import StructureSearch, counts_do, plan_search
from markovia.structure.scores.local_score import LocalScore
from markovia.structure.task.settings import sorted_settings


def bootstrap_structure(
    data: Any,
    method: str = "hill-climb",
    *,
    replicates: int = 100,
    level: str = "cpdag",
    seed: Seed = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    **settings: Any,
) -> EdgeConfidence:
    """Say how sure each edge is, by learning again from resampled rows.

    Parameters
    ----------
    data, method
        As for `learn_structure`.
    replicates
        How often rows are drawn, as many as there are, with replacement.
    level
        "cpdag": a direction counts where all equivalent graphs have it, other edges count as lines. "dag": directions count
        as the method returned them.
    seed
        The same seed gives the same answer whatever `n_jobs` is.
    n_jobs
        Replicates side by side, as joblib understands it.
    time_limit
        Seconds after which the replicates that are finished are counted; Ctrl-C does the same.
    progress
        Whether to show a bar over the replicates.
    **settings
        What else `learn_structure` takes: score, test, knowledge, columns and the method's own options.

    Returns
    -------
    EdgeConfidence

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(500, seed=1)
    >>> sure = mk.bootstrap_structure(rows, replicates=20, seed=0)
    >>> sure.adjacent("rain", "wet")
    1.0
    >>> sure.consensus().dag.has_edge("cloudy", "wet")
    False
    """
    check_count("replicates", replicates, 1)
    check_choice("level", level, LEVELS)
    if isinstance(settings.get("score"), LocalScore) or isinstance(settings.get("test"), CITest):
        raise InvalidArgument(
            "a score or test that is bound to data cannot see resampled rows; give its name"
        )
    known, reading, rest = sorted_settings(settings)
    asked = {name: rest.pop(name, None) for name in ("score", "test", "alpha")}
    search = plan_search(data, method, known, reading, **asked, options=rest)
    if search.mixed is None:
        raise InvalidArgument("an oracle has no rows to resample; give data")
    mixed = _compact(search.mixed) if counts_do(search.how, search.test) else search.mixed
    bare = replace(search, mixed=None)
    rng = generator(seed)
    streams = (rng.spawn(1)[0] for _ in range(int(replicates)))
    n = len(search.order)
    arrows, lines = np.zeros((n, n)), np.zeros((n, n))
    done, undirected, ancestral = 0, True, False
    with Clock(time_limit, progress, total=int(replicates), unit="replicate") as clock:
        deadline = None if time_limit is None else time() + clock.left
        for found in _results(bare, mixed, streams, level, deadline, n_jobs, clock):
            arrows += found["arrows"]
            lines += found["lines"]
            undirected &= found["undirected"]
            ancestral |= found["ancestral"]
            done += 1
            clock.advance()
        clock.over()
        if not done:
            raise InvalidArgument(f"no replicate was finished ({clock.reason}); allow more time")
        seconds, stopped = clock.seconds, clock.reason if done < replicates else None
    return EdgeConfidence(
        names=search.order,
        arrows=arrows / done,
        lines=lines / done,
        method=search.how.name,
        level=level,
        n_graphs=done,
        asked=int(replicates),
        stopped=stopped,
        undirected=undirected,
        ancestral=ancestral,
        seconds=seconds,
        rules=search.rules,
        data=search.mixed,
    )


def _compact(mixed: MixedTable) -> MixedTable:
    """Hold equal rows once where that saves at least half of them."""
    if mixed.matrix is not None or mixed.repeats or mixed.codes().weights is not None:
        return mixed
    groups = mixed.grouped()
    return groups if groups.n_rows * 2 <= mixed.n_rows else mixed


def _results(
    search: StructureSearch,
    mixed: MixedTable,
    streams: Iterator[np.random.Generator],
    level: str,
    deadline: float | None,
    n_jobs: int | None,
    clock: Clock,
) -> Any:
    """Yield what each replicate found, in order, until the clock says stop; unfinished replicates are left out."""
    from joblib import Parallel, delayed

    if n_jobs is None or n_jobs == 1:
        for rng in streams:
            if clock.over():
                return
            found = _replicate(search, mixed, rng, level, deadline)
            if found is not None:
                yield found
        return
    # what comes back is added up, so the order in which replicates end does not matter
    work = Parallel(n_jobs=n_jobs, return_as="generator_unordered", pre_dispatch="2*n_jobs")
    results = work(delayed(_replicate)(search, mixed, rng, level, deadline) for rng in streams)
    try:
        for found in results:
            if found is not None:
                yield found
            if clock.over():
                break
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # joblib's advice about work that was stopped on purpose
            results.close()


def _replicate(
    search: StructureSearch, mixed: MixedTable, rng: np.random.Generator, level: str, deadline: float | None
) -> Mapping[str, Any] | None:
    """Learn from one sample; None where time was up before the end."""
    left = None if deadline is None else max(1e-9, deadline - time())
    with Clock(left, progress=False) as clock:
        learned = search.run(mixed.resampled(rng), rng, clock, 1)
        if clock.over():
            return None
    arrows, lines = edge_flags(learned.graph, search.order, level, search.rules)
    return {
        "arrows": arrows,
        "lines": lines,
        "undirected": isinstance(learned.graph, UndirectedGraph),
        "ancestral": is_ancestral(learned.graph),
    }
