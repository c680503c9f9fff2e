"""How many components, factors, topics or states: one number for each model, in one call, with a plot.

Criteria penalise parameters (`bic`, `aic`) and, in `icl`, also components that overlap; held-out likelihoods and
cross-validation ask how probable rows are that were not learned from; a Dirichlet process has a posterior over the number.
References: Schwarz (1978), Biernacki, Celeux and Govaert (2000), Celeux and Durand (2008). Cost: a fit for each number, and
for each fold.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import clone

from markovia.errors import InvalidArgument
from markovia.runtime import ports
from markovia.runtime.array_types import Ints
from markovia.runtime.checks import LEVEL, Choice, Whole, check
from markovia.runtime.parallel_tasks import task_results
from markovia.runtime.seeds import generator
from markovia.runtime.shown import InNotebooks, aligned

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Criterion = Literal["bic", "aic", "icl", "held-out", "cross-validation", "dirichlet-process"]
SMALLER = ("bic", "aic", "icl")
"""The criteria of which a smaller number is better."""


@dataclass(frozen=True)
class ComponentChoice(InNotebooks):
    """What each number of components was worth.

    Attributes
    ----------
    numbers, scores
        The numbers of components and what each scored: an information criterion (smaller is better), or the log likelihood
        a row (a step of sequences, a word of texts) that was not learned from, or a probability (larger is better).
    criterion
        Which it is.
    best
        The model with the best number of components, learned from everything.
    parameter
        What the number is called: "n_components", "n_states".
    """

    numbers: tuple[int, ...]
    scores: tuple[float, ...]
    criterion: Criterion
    best: Any
    parameter: str = "n_components"

    @property
    def n_components(self) -> int:
        """The best number."""
        return self.numbers[best_of(self.scores, self.criterion)]

    n_states = n_components

    def to_pandas(self) -> "pd.DataFrame":
        """Return the table of numbers and scores."""
        import pandas as pd

        return pd.DataFrame({self.parameter: self.numbers, self.criterion: self.scores})

    def plot(self, *, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
        """Draw the scores; see `markovia.plotting.groups.choosing_components.plot_component_choice`."""
        return ports.draw("plot-component-choice", self, ax=ax, title=title)

    def __str__(self) -> str:
        rows = [[str(n), f"{s:.6g}"] for n, s in zip(self.numbers, self.scores, strict=True)]
        return aligned([self.parameter, self.criterion], rows)


def best_of(scores: Sequence[float], criterion: str) -> int:
    """Return where the best score stands."""
    return int(np.argmin(scores) if criterion in SMALLER else np.argmax(scores))


def choose_components(
    model: Any,
    X: Any,  # noqa: N803
    numbers: Iterable[int],
    *,
    y: Any = None,
    criterion: Criterion = "bic",
    folds: int = 5,
    held_out: float = 0.3,
    n_jobs: int | None = None,
    seed: Any = None,
    progress: bool | None = None,
) -> ComponentChoice:
    """Learn a mixture, a factor model or topics with each of some numbers of components, and say which is best.

    Parameters
    ----------
    model
        The settings of all models, which have `n_components` among them; it stays as it is.
    X, y
        The rows, or documents, and targets for mixtures of regressions.
    numbers
        The numbers of components to try.
    criterion
        "bic", "aic", "icl" (BIC that also asks for clusters that do not overlap), "held-out" (a share of the rows is not
        learned from), "cross-validation", or "dirichlet-process", for a model whose posterior says how many clusters there
        are; its scores are their probabilities.
    folds, held_out
        Parts of the rows, for cross-validation; the share that is held out.
    n_jobs
        Processes, as joblib understands it.
    seed
        The seed of the split, and of models whose settings have none.
    progress
        Whether to show a progress bar; None for long runs on a terminal.

    Examples
    --------
    >>> import markovia as mk
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.normal(size=(400, 2)) @ rng.normal(size=(2, 5)) + 0.3 * rng.normal(size=(400, 5))
    >>> found = choose_components(mk.mixtures.FactorAnalysis(), rows, [1, 2, 3])
    >>> found.n_components
    2
    """
    allowed = ("bic", "aic", "icl", "held-out", "cross-validation", "dirichlet-process")
    check("criterion", criterion, Choice(allowed))
    if criterion == "dirichlet-process":
        return _by_process(model, X, _checked_numbers(numbers, "clusters"), seed)
    if "n_components" not in getattr(model, "get_params", dict)():
        raise InvalidArgument(f"choose_components needs a model with n_components, not {model!r}")
    if not hasattr(model, criterion) and criterion in SMALLER:
        raise InvalidArgument(f"{type(model).__name__} has no {criterion}; try criterion='held-out'")
    return chosen(
        model, (X,) if y is None else (X, y), numbers, parameter="n_components", worth=row_worth,
        kind="rows", criterion=criterion, folds=folds, held_out=held_out, n_jobs=n_jobs, seed=seed, progress=progress,
    )  # fmt: skip


def chosen(
    model: Any,
    data: tuple[Any, ...],
    numbers: Iterable[int],
    *,
    parameter: str,
    worth: Callable[..., tuple[float, float]],
    kind: str,
    criterion: Criterion,
    folds: int,
    held_out: float,
    n_jobs: int | None,
    seed: Any,
    progress: bool | None,
    fixed: dict[str, Any] | None = None,
) -> ComponentChoice:
    """Fit and score every number; `worth` says the log likelihood a row and how much it counts."""
    check("folds", folds, Whole(2))
    check("held_out", held_out, LEVEL)
    tried = _checked_numbers(numbers, "states" if parameter == "n_states" else "components")
    rng, n = generator(seed), n_rows(data[0])
    splits: list[Ints] = []
    if criterion in ("held-out", "cross-validation"):
        count = folds if criterion == "cross-validation" else 2
        if n < count:
            cure = "; cut long ones into pieces" if kind == "sequences" else ""
            raise InvalidArgument(f"{criterion} needs {count} {kind} or more, and there are {n}{cure}")
        order = rng.permutation(n)
        if criterion == "held-out":
            splits = [order[: min(max(round(held_out * n), 1), n - 1)]]
        else:
            splits = [np.asarray(s) for s in np.array_split(order, folds)]
    settings = dict(fixed or {})
    if "random_state" in model.get_params():
        own = model.get_params()["random_state"]
        settings["random_state"] = int(rng.integers(2**31)) if own is None else own
    work = partial(
        _scored, model=model, data=data, splits=splits, criterion=criterion, parameter=parameter, worth=worth,
        settings=settings,
    )  # fmt: skip
    found = list(task_results(work, tried, n_jobs=n_jobs, progress=progress, unit="model"))
    scores = tuple(score for score, _ in found)
    place = best_of(scores, criterion)
    best = found[place][1]
    if best is None:
        best = clone(model).set_params(**{parameter: tried[place]}, **settings).fit(*data)
    return ComponentChoice(tried[: len(scores)], scores, criterion, best, parameter)


def _checked_numbers(numbers: Iterable[int], what: str) -> tuple[int, ...]:
    tried = tuple(numbers)
    if not tried:
        raise InvalidArgument(f"numbers= has at least one number of {what} to try")
    for k in tried:
        check("numbers", k, Whole(1))
    return tried


def _scored(
    k: int, model: Any, data: Any, splits: list[Ints], criterion: Criterion, parameter: str, worth: Any,
    settings: dict[str, Any],
) -> tuple[float, Any]:  # fmt: skip
    made = clone(model).set_params(**{parameter: k}, **settings)
    if not splits:
        made.fit(*data)
        return float(getattr(made, criterion)(*data)), made
    total = size = 0.0
    for out in splits:
        own = np.setdiff1d(np.arange(n_rows(data[0])), out)
        made = clone(made).fit(*(_taken(part, own) for part in data))
        value, weight = worth(made, *(_taken(part, out) for part in data))
        total, size = total + value * weight, size + weight
    return total / size, None


def n_rows(data: Any) -> int:
    """Return how many rows there are."""
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _taken(data: Any, places: Ints) -> Any:
    """Return some rows of a table, a frame, a sparse matrix or a list of documents."""
    if hasattr(data, "iloc"):
        return data.iloc[places]
    if isinstance(data, list | tuple):
        return [data[i] for i in places.tolist()]
    return data[places]


def row_worth(model: Any, data: Any, *target: Any) -> tuple[float, float]:
    """Return the log likelihood a row of some rows, or a word of documents, and how much that counts."""
    if hasattr(model, "perplexity"):
        return -float(np.log(model.perplexity(data))), float(n_rows(data))
    if target:
        return float(model.log_likelihoods(data, *target).mean()), float(n_rows(data))
    return float(model.score(data)), float(n_rows(data))


def _by_process(model: Any, data: Any, tried: tuple[int, ...], seed: Any) -> ComponentChoice:
    """Return the posterior of the number of clusters, from a model that draws partitions."""
    if "n_components" in getattr(model, "get_params", dict)():
        raise InvalidArgument(
            "criterion='dirichlet-process' takes a mixture without a number of components, as mk.DirichletProcessMixture, "
            f"not {type(model).__name__}"
        )
    made = clone(model)
    if seed is not None:
        made.set_params(random_state=seed)
    found = made.fit(data).posterior_.n_clusters().to_dict()
    scores = tuple(float(found.get(k, 0.0)) for k in tried)
    if not any(scores):
        likely = max(found, key=lambda k: found[k])
        raise InvalidArgument(f"the posterior has no clusters among numbers=; most probable are {likely}")
    return ComponentChoice(tried, scores, "dirichlet-process", made, "n_clusters")
