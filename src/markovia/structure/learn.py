"""`learn_structure`: one door to every structure-learning method."""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from difflib import get_close_matches
from typing import Any

import numpy as np

from markovia.data.tables.reading_mixed import MixedTable
from markovia.errors import InvalidArgument, UnknownArgument
from markovia.factors.tables.variable import State
from markovia.runtime.clock import Clock
from markovia.runtime.seeds import Seed, generator
from markovia.structure.ci_tests.ci_tests import CITest, Oracle, is_truth
from markovia.structure.methods import StructureMethod, method_named
from markovia.structure.task.knowledge import Knowledge, Rules, as_knowledge
from markovia.structure.task.result import FoundGraph, LearnedStructure
from markovia.structure.task.settings import Reading
from markovia.structure.task.task import Task


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
    in_memory: bool | None = None,
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
        The algorithm. By score: "hill-climb", "tabu", "k2" (order known), "exact" (proven best), over classes and orders
        "ges", "boss", "grasp", "order-search". By tests: "pc"; "fci", "rfci" (hidden causes); both: "mmhc". Trees:
        "chow-liu", "tan". Functional models: "direct-lingam", "ica-lingam", "anm", "pnl", "notears", "notears-mlp".
        Undirected: "partial-correlation", "neighbourhood", "graphical-lasso", "ising", "l1-pseudo-likelihood",
        "mixed-pseudo-likelihood"; changing over time: "kernel-weighted", "tesla". Incomplete data: "structural-em".
    score
        For methods that search: a name such as "bic" or "bdeu", or `mk.scores.BDeu(10)`. By default BIC.
    test
        For methods that test: a name such as "g2" or "fisher-z", or `mk.ci_tests.G2()`; or a graph, a model or
        `mk.ci_tests.Oracle`, which then answers instead of data. By default the test for the kind of data.
    alpha
        The level of a test that is given by name; 0.05 by default. Methods without tests that name a level or a penalty
        `alpha` take it too.
    knowledge
        A `Knowledge`. Instead of it the next four.
    required, forbidden
        Edges (parent, child).
    tiers
        Groups of names in the order of time.
    max_parents
        The largest number of parents.
    names
        The columns that are wanted, in the order that the graph's nodes shall have; all by default.
    continuous
        The columns that are measurements; True for all. By default those with fractions.
    states
        States of discrete columns.
    weights
        The name of a column of weights; or one number a row.
    missing
        "error", or "drop": rows that miss a cell are left out, and a note says how many. Methods for incomplete data
        (structural EM) take them.
    in_memory
        For discrete rows in files, data bases, lazy and distributed frames: False counts them where they are, again for each
        batch of counts; True fetches them once as small codes, equal rows only once; None fetches those that take up to
        1 GiB.
    seed
        For methods that draw.
    n_jobs
        Processes for independent pieces of work, as joblib understands it.
    time_limit
        Seconds after which the best so far is returned.
    progress
        Whether to show a bar; None shows one on a terminal once it takes long.
    **options
        What the method itself takes; an unknown one is answered with a list.

    Returns
    -------
    LearnedStructure

    Raises
    ------
    InvalidArgument
        Where data, knowledge or a setting do not fit the method.
    UnknownArgument
        Where the method has no such option.

    Examples
    --------
    >>> import markovia as mk
    >>> rows = mk.examples.sprinkler().sample(2000, seed=1)
    >>> found = mk.learn_structure(rows, method="hill-climb", score="bic")
    >>> sorted(found.skeleton.edges)[:2]
    [('cloudy', 'rain'), ('cloudy', 'sprinkler')]
    >>> mk.learn_structure(rows, method="pc", test="g2", alpha=0.01, tiers=[["cloudy"], ["rain", "sprinkler", "wet"]]).graph
    MixedGraph(['cloudy --> sprinkler', 'cloudy --> rain', 'sprinkler --> wet', 'rain --> wet'])
    """
    known = as_knowledge(
        knowledge, required=required, forbidden=forbidden, tiers=tiers, max_parents=max_parents
    )
    reading = Reading(names, continuous, states, weights, missing, in_memory)
    search = plan_search(data, method, known, reading, score=score, test=test, alpha=alpha, options=options)
    rng = generator(seed)
    check_jobs(n_jobs)
    with Clock(time_limit, progress) as clock:
        return search.run(search.mixed, rng, clock, n_jobs)


@dataclass(frozen=True)
class StructureSearch:
    """A call of `learn_structure` that was checked and whose data were read, ready to run on these or on resampled rows.

    Attributes
    ----------
    how
        The method.
    order
        The variables.
    rules
        What is known beforehand.
    mixed
        The rows; None where an oracle answers.
    score, test, options
        As they were given.
    """

    how: StructureMethod
    order: tuple[str, ...]
    rules: Rules
    mixed: MixedTable | None
    score: Any = None
    test: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def run(
        self,
        mixed: MixedTable | None,
        rng: np.random.Generator,
        clock: Clock,
        n_jobs: int | None = None,
        score: Any = None,
    ) -> LearnedStructure:
        """Run the method on rows over the same variables; `score` takes the place of the one that was asked for."""
        started = clock.seconds
        task = Task(
            self.order,
            mixed,
            self.rules,
            clock,
            rng,
            self.score if score is None else score,
            self.test,
            n_jobs,
        )
        found: FoundGraph = self.how.function(task, **_gathered(self.how.function, self.options))
        return LearnedStructure(
            graph=found.graph,
            method=self.how.name,
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
            stopped=clock.reason,
            seconds=clock.seconds - started,
            notes=[*self.notes, *found.notes],
            details=found.details,
            data=mixed,
        )


def plan_search(
    data: Any,
    method: str,
    known: Knowledge,
    reading: Reading,
    *,
    score: Any = None,
    test: Any = None,
    alpha: float | None = None,
    options: Mapping[str, Any],
) -> StructureSearch:
    """Check what `learn_structure` is given and read the data."""
    how = method_named(method)
    takes = _takes(how.function)
    if alpha is not None and how.takes not in ("test", "both") and "alpha" in takes:
        options, alpha = {**options, "alpha": alpha}, None  # the level, or the penalty, of the method itself
    _check_asked(how, score, test, alpha)
    _check_options(how, takes, options)
    if alpha is not None:
        test = with_alpha(test, alpha)
    if _answers_itself(test) and data is None:
        order = _observed(test, reading.names)
        return StructureSearch(how, order, known.rules(order), None, score, test, options)
    if data is None:
        oracle = "" if how.takes in ("score", "neither") else ", or an oracle as test="
        raise InvalidArgument(f"{how.name} needs data{oracle}")
    mixed = reading.open(data, True if how.numbers else None)
    notes: tuple[str, ...] = ()
    if not how.gaps:
        whole = reading.without_gaps(mixed, ", method='structural-em' learns from them")
        if whole is not mixed:
            lost = mixed.total - whole.total
            notes = (f"{lost:,.10g} of {mixed.total:,.10g} rows miss a cell and were left out",)
        mixed = whole
    if not counts_do(how, test):
        mixed = mixed.spread()
    return StructureSearch(how, mixed.names, known.rules(mixed.names), mixed, score, test, options, notes)


def check_jobs(n_jobs: Any) -> None:
    """Refuse a number of processes that joblib does not understand."""
    whole = isinstance(n_jobs, int | np.integer) and not isinstance(n_jobs, bool)
    if n_jobs is not None and (not whole or n_jobs == 0):
        raise InvalidArgument(f"n_jobs= is a number of processes, or -1 for one a processor, not {n_jobs!r}")


def counts_do(how: StructureMethod, test: Any) -> bool:
    """Say whether a method only counts discrete rows, so that equal ones may be held once with their number."""
    if how.takes == "score":
        return True
    word = test[0] if isinstance(test, tuple) else test
    return how.takes in ("test", "both") and (
        word is None or (isinstance(word, str) and word.lower() in ("auto", "g2", "chi2"))
    )


def _check_asked(how: StructureMethod, score: Any, test: Any, alpha: float | None) -> None:
    if score is not None and how.takes not in ("score", "both"):
        raise InvalidArgument(f"{how.name} takes no score=")
    if (test is not None or alpha is not None) and how.takes not in ("test", "both"):
        raise InvalidArgument(f"{how.name} takes no {'test' if test is not None else 'alpha'}=")


def _check_options(how: StructureMethod, takes: Sequence[str], options: Mapping[str, Any]) -> None:
    for name in options:
        if name not in takes:
            doors = [p for p in inspect.signature(learn_structure).parameters if p not in ("data", "options")]
            near = get_close_matches(name, [*takes, *doors], n=1, cutoff=0.7)
            meant = f"; did you mean {near[0]}=?" if near else ""
            raise UnknownArgument(
                f"{how.name} takes no {name}={meant or f'; it takes {_listed(takes)} besides what every method takes'}"
            )


def _takes(function: Any) -> list[str]:
    """Return the keywords of a method: its own, and the fields of what it takes as one object of settings."""
    found: list[str] = []
    for p in inspect.signature(function).parameters.values():
        if p.kind is p.KEYWORD_ONLY:
            found += [f.name for f in fields(p.default)] if is_dataclass(p.default) else [p.name]
    return found


def _gathered(function: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options as a method takes them: those that are fields of one object of settings in that object."""
    found = dict(options)
    for p in inspect.signature(function).parameters.values():
        if is_dataclass(p.default) and not isinstance(p.default, type):
            own = {f.name: found.pop(f.name) for f in fields(p.default) if f.name in found}
            found[p.name] = replace(p.default, **own)
    return found


def _listed(takes: Sequence[str]) -> str:
    return ", ".join(f"{t}=" for t in takes) or "no options"


def with_alpha(test: Any, alpha: float) -> Any:
    """Return a test that is given by name, or by default, with its level."""
    if test is None or isinstance(test, str):
        return (test or "auto", alpha)
    raise InvalidArgument(
        "alpha= is for tests given by name; put it into the test, as in mk.ci_tests.G2(alpha=0.01)"
    )


def _answers_itself(test: Any) -> bool:
    return isinstance(test, Oracle | CITest) or is_truth(test)


def _observed(test: Any, names: Sequence[str] | None) -> tuple[str, ...]:
    if names is not None:
        return tuple(names)
    if isinstance(test, CITest):
        return test.names
    return tuple((test if isinstance(test, Oracle) else Oracle(test)).observed)
