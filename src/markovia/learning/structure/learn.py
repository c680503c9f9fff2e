"""`learn_structure`: one door to every structure-learning method."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from markovia.errors import InvalidArgument, UnknownArgument
from markovia.factors.variable import State
from markovia.graphs.directed import DAG
from markovia.graphs.mixed import MixedGraph
from markovia.learning.structure.ci_tests import CITest, Oracle
from markovia.learning.structure.knowledge import Knowledge, as_knowledge
from markovia.learning.structure.methods import Method, method_named
from markovia.learning.structure.result import Found, LearnedStructure
from markovia.learning.structure.study import StructureData, read_study
from markovia.learning.structure.task import Task
from markovia.learning.structure.watch import Watch
from markovia.seeds import Seed, generator


def learn_structure(
    data: Any = None,
    method: str = "hill-climb",
    *,
    score: Any = None,
    test: Any = None,
    alpha: float | None = None,
    knowledge: Knowledge | None = None,
    required: Iterable[tuple[str, str]] | None = None,
    forbidden: Iterable[tuple[str, str]] | None = None,
    tiers: Sequence[Iterable[str]] | Mapping[str, int] | None = None,
    max_parents: int | None = None,
    names: Sequence[str] | None = None,
    continuous: bool | Sequence[str] | None = None,
    states: Mapping[str, int | Sequence[State]] | None = None,
    weights: Any = None,
    missing: str = "error",
    seed: Seed = None,
    n_jobs: int | None = None,
    time_limit: float | None = None,
    progress: bool | None = None,
    **options: Any,
) -> LearnedStructure:
    """Learn a graph from data.

    Parameters
    ----------
    data
        A pandas, Polars, Dask or Spark frame, a PyArrow table, a DuckDB relation, a mapping of columns, a matrix, or CSV and
        Parquet files by their paths. None where `test` is an oracle.
    method
        The algorithm; `mk.structure_methods()` lists them.
    score
        For methods that search: a name such as "bic" or "bdeu", or `mk.scores.BDeu(10)`. By default BIC.
    test
        For methods that test: a name such as "g2" or "fisher-z", or `mk.ci_tests.G2()`; or a graph, a model or
        `mk.ci_tests.Oracle`, which then answers instead of data. By default the test for the kind of data.
    alpha
        The level of a test that is given by name; 0.05 by default.
    knowledge
        A `Knowledge`. Instead of it the next four.
    required, forbidden
        Edges (parent, child).
    tiers
        Groups of names in the order of time.
    max_parents
        The largest number of parents.
    names
        The columns that are wanted; all by default.
    continuous
        The columns that are measurements; True for all. By default those with fractions.
    states
        States of discrete columns.
    weights
        The name of a column of weights; or one number a row.
    missing
        "error", or "drop": rows that miss a cell are left out. Methods for incomplete data (structural EM) take them.
    seed
        For methods that draw.
    n_jobs
        Processes for independent pieces of work, as joblib understands it.
    time_limit
        Seconds after which the best so far is returned.
    progress
        Whether to show a bar; None shows one on a terminal once it takes long.
    **options
        What the method itself takes.

    Returns
    -------
    LearnedStructure

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> found = mk.learn_structure(rows, method="hill-climb", score="bic")
    >>> sorted(found.skeleton.edges)[:2]
    [('cloudy', 'rain'), ('cloudy', 'sprinkler')]
    """
    how = method_named(method)
    known = as_knowledge(
        knowledge,
        {"required": required, "forbidden": forbidden, "tiers": tiers, "max_parents": max_parents},
    )
    _check_asked(how, score, test, alpha, missing)
    function = how.function
    _check_options(how, function, options)
    if alpha is not None:
        test = _with_alpha(test, alpha)
    study: StructureData | None = None
    if _answers_itself(test) and data is None:
        order = _observed(test, names)
    else:
        if data is None:
            raise InvalidArgument(
                f"{how.name} needs data" + (", or an oracle as test=" if how.takes != "score" else "")
            )
        measured = True if how.numbers and continuous is None else continuous
        study = read_study(data, names=names, continuous=measured, states=states, weights=weights)
        if not how.gaps:
            study = _complete(study, missing)
        order = study.names
    rules = known.rules(order)
    with Watch(time_limit, progress) as watch:
        task = Task(tuple(order), study, rules, watch, generator(seed), score, test, n_jobs)
        found: Found = function(task, **options)
        seconds = watch.seconds
    return LearnedStructure(
        graph=found.graph,
        method=how.name,
        score=found.score,
        score_name=task.score_name,
        test_name=task.test_name,
        path=found.path,
        tests=found.tests,
        n_tests=found.n_tests,
        separating_sets=found.separating_sets,
        weights=found.weights,
        optimal=found.optimal,
        bound=found.bound,
        stopped=watch.reason,
        seconds=seconds,
        notes=found.notes,
        details=found.details,
        data=study,
    )


def _check_asked(how: Method, score: Any, test: Any, alpha: float | None, missing: str) -> None:
    if score is not None and how.takes not in ("score", "both"):
        raise InvalidArgument(f"{how.name} takes no score=")
    if (test is not None or alpha is not None) and how.takes not in ("test", "both"):
        raise InvalidArgument(f"{how.name} takes no {'test' if test is not None else 'alpha'}=")
    if missing not in ("error", "drop"):
        raise InvalidArgument(f"missing= is 'error' or 'drop', not {missing!r}")


def _check_options(how: Method, function: Any, options: Mapping[str, Any]) -> None:
    takes = [p.name for p in inspect.signature(function).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for name in options:
        if name not in takes:
            raise UnknownArgument(f"{how.name} takes no {name}=; it takes {', '.join(takes) or 'no options'}")


def _with_alpha(test: Any, alpha: float) -> Any:
    if test is None or isinstance(test, str):
        return (test or "auto", alpha)
    raise InvalidArgument(
        "alpha= is for tests given by name; put it into the test, as in mk.ci_tests.G2(alpha=0.01)"
    )


def _answers_itself(test: Any) -> bool:
    return isinstance(test, Oracle | CITest | DAG | MixedGraph) or isinstance(
        getattr(test, "graph", None), DAG | MixedGraph
    )


def _observed(test: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        return tuple(names)
    if isinstance(test, CITest):
        return test.names
    return tuple((test if isinstance(test, Oracle) else Oracle(test)).observed)


def _complete(study: StructureData, missing: str) -> StructureData:
    gaps = {name: n for name, n in study.missing().items() if n}
    if not gaps:
        return study
    if missing == "drop":
        return study.without_gaps()
    name = max(gaps, key=lambda n: gaps[n])
    raise InvalidArgument(
        f"cells are missing ({gaps[name]:,} in {name!r}); missing='drop' leaves such rows out, "
        "method='structural-em' learns from them"
    )
