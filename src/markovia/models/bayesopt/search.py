"""A search of an estimator's settings by cross-validation, point by point, with the face of scikit-learn's searches.

What a grid or a random search spends on settings that earlier ones show to be bad, this one spends near the good ones: each
point is the next of a `Study` of the mean test score. Folds run side by side; points follow each other. Cost: `calls` times
the folds, and the final fit.
"""

from collections.abc import Callable, Mapping
from typing import Any

from sklearn.base import clone
from sklearn.model_selection._search import BaseSearchCV

from markovia.errors import InvalidArgument
from markovia.models.bayesopt.study import Study


class Search(BaseSearchCV):  # type: ignore[misc]  # scikit-learn has no types
    """A search of an estimator's settings with few fits; scikit-learn's attributes and verbs.

    Parameters
    ----------
    estimator
        What is fitted; it, or `scoring`, says how good it is.
    space
        From names of settings to what they may be, as for `Study`; a setting of a step of a pipeline is `step__setting`.
    calls
        Points that are tried, each on all folds.
    scoring, cv, refit, error_score, return_train_score, verbose, n_jobs, pre_dispatch
        As in scikit-learn's `GridSearchCV`. Settings that fail are recorded, and the search goes on, unless `error_score` is
        "raise"; with several scorers, `refit` names the one to search by.
    time_limit, target, patience
        When to stop earlier, as in `minimize`; the target is a score.
    study
        Settings of `Study`, such as {"initial": 8, "start": [{"C": 1.0}]}.
    random_state
        The same seed gives the same points.

    Attributes
    ----------
    best_params_, best_score_, best_index_, best_estimator_, cv_results_
        As in scikit-learn.
    study_
        All points that were tried, to plot; values are scores with the sign turned.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> X, y = load_iris(return_X_y=True)
    >>> space = {"kernel": {"linear": {}, "rbf": {"gamma": (1e-3, 1e1, "log")}}, "C": (1e-2, 1e2, "log")}
    >>> search = Search(SVC(), space, calls=12, random_state=0).fit(X, y)
    >>> bool(search.best_score_ > 0.97), "C" in search.best_params_, len(search.cv_results_["params"])
    (True, True, 12)
    """

    def __init__(
        self,
        estimator: Any,
        space: Mapping[str, Any],
        *,
        calls: int = 30,
        scoring: Any = None,
        n_jobs: int | None = None,
        refit: Any = True,
        cv: Any = None,
        verbose: int = 0,
        pre_dispatch: Any = "2*n_jobs",
        error_score: Any = float("nan"),
        return_train_score: bool = False,
        time_limit: float | None = None,
        target: float | None = None,
        patience: int | None = None,
        study: Mapping[str, Any] | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            estimator, scoring=scoring, n_jobs=n_jobs, refit=refit, cv=cv, verbose=verbose, pre_dispatch=pre_dispatch,
            error_score=error_score, return_train_score=return_train_score,
        )  # fmt: skip
        self.space, self.calls, self.random_state = space, calls, random_state
        self.time_limit, self.target, self.patience, self.study = time_limit, target, patience, study

    def _run_search(self, evaluate_candidates: Callable[[list[dict[str, Any]]], Mapping[str, Any]]) -> None:
        study = Study(self.space, **{"seed": self.random_state, **(self.study or {})})
        metric = self.refit if isinstance(self.refit, str) else "score"
        problems: list[Exception] = []

        def loss(point: dict[str, Any]) -> float:
            try:
                clone(self.estimator).set_params(**point)  # a name that is no setting is no failed trial
            except Exception as problem:
                raise _SearchStopped(problem) from problem
            try:
                found = evaluate_candidates([point])
            except Exception as problem:
                if self.error_score == "raise":
                    raise _SearchStopped(problem) from problem
                problems.append(problem)
                raise
            if f"mean_test_{metric}" not in found:
                raise _SearchStopped(
                    InvalidArgument("with several scorers, refit= is the name of the one to search by")
                )
            return -float(found[f"mean_test_{metric}"][-1])

        try:
            study.run(
                loss, self.calls, time_limit=self.time_limit, patience=self.patience, progress=False,
                target=None if self.target is None else -self.target,
            )  # fmt: skip
        except _SearchStopped as stopped:
            raise stopped.problem from None
        if len(problems) == len(study.trials) and problems:
            raise problems[-1]
        self.study_ = study


class _SearchStopped(BaseException):
    """What is wrong with the search itself, on its way past the trials' own handler."""

    def __init__(self, problem: Exception) -> None:
        super().__init__(str(problem))
        self.problem = problem
