"""Searching an estimator's settings: scikit-learn's attributes and verbs, what fails, what is said to bad input."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.utils.estimator_checks import check_estimator

from markovia.errors import InvalidArgument
from markovia.models.bayesopt.search import Search

SPACE = {"kernel": {"linear": {}, "rbf": {"gamma": (1e-4, 1e2, "log")}}, "C": (1e-3, 1e3, "log")}


@pytest.fixture(scope="module")
def rows():
    return make_classification(90, 5, flip_y=0.1, random_state=0)


@pytest.fixture(scope="module")
def fitted(rows):
    return Search(SVC(), SPACE, calls=14, cv=KFold(3), random_state=0).fit(*rows)


def test_the_best_score_is_that_of_cross_validation(rows, fitted):
    X, y = rows
    again = cross_val_score(SVC(**fitted.best_params_), X, y, cv=KFold(3)).mean()
    assert fitted.best_score_ == pytest.approx(again)
    assert fitted.best_score_ == max(fitted.cv_results_["mean_test_score"])
    assert fitted.best_score_ == -fitted.study_.best_value


def test_it_finds_what_a_fine_grid_finds(rows, fitted):
    grid = {"C": np.logspace(-3, 3, 7), "gamma": np.logspace(-4, 2, 7)}
    assert fitted.best_score_ >= GridSearchCV(SVC(), grid, cv=KFold(3)).fit(*rows).best_score_ - 0.02


def test_the_best_settings_are_fitted_to_all_rows(rows, fitted):
    X, y = rows
    np.testing.assert_array_equal(fitted.predict(X), SVC(**fitted.best_params_).fit(X, y).predict(X))
    assert fitted.score(X, y) == fitted.best_estimator_.score(X, y)
    assert fitted.classes_.tolist() == [0, 1]


def test_results_have_a_row_for_each_point_and_mask_what_is_not_active(fitted):
    results = fitted.cv_results_
    assert len(results["params"]) == len(fitted.study_.trials) == 14
    linear = [p["kernel"] == "linear" for p in results["params"]]
    assert np.ma.getmaskarray(results["param_gamma"]).tolist() == linear
    assert any(linear)
    assert not all(linear)
    assert {"split2_test_score", "rank_test_score", "mean_fit_time"} <= set(results)


def test_the_same_seed_gives_the_same_points(rows):
    a, b = (
        Search(GaussianNB(), {"var_smoothing": (1e-12, 1.0, "log")}, calls=7, random_state=2).fit(*rows)
        for _ in range(2)
    )
    assert a.cv_results_["params"] == b.cv_results_["params"]


def test_clones_have_the_same_settings(fitted):
    copy = clone(fitted)
    assert copy.get_params()["calls"] == 14
    assert copy.get_params()["space"] == SPACE
    with pytest.raises(NotFittedError):
        copy.predict([[0.0] * 5])
    assert "SVC" in repr(fitted)


def test_settings_of_steps_of_a_pipeline_are_searched(rows):
    space = {"svc__C": (1e-2, 1e2, "log"), "standardscaler": ["passthrough", StandardScaler()]}
    search = Search(make_pipeline(StandardScaler(), SVC()), space, calls=5, cv=2, random_state=0)
    assert set(search.fit(*rows).best_params_) == {"svc__C", "standardscaler"}


def test_settings_that_fail_are_recorded_and_the_search_goes_on(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = Search(SVC(), {"C": (-1.0, 2.0)}, calls=10, cv=2, random_state=0).fit(*rows)
        assert found.best_params_["C"] > 0
        failed = [t for t in found.study_.trials if t.error]
        assert failed
        assert all(t.point["C"] <= 0 for t in failed)
        with pytest.raises(ValueError, match="All the 2 fits failed"):
            Search(SVC(), {"C": (-2.0, -1.0)}, calls=3, cv=2).fit(*rows)
    with pytest.raises(ValueError, match="C"):
        Search(SVC(), {"C": (-2.0, -1.0)}, calls=3, cv=2, error_score="raise").fit(*rows)


def test_a_name_that_is_no_setting_is_said_at_once(rows):
    with pytest.raises(ValueError, match="Invalid parameter 'c'"):
        Search(SVC(), {"c": (0.1, 1.0)}, calls=500).fit(*rows)


def test_of_several_scorers_refit_names_the_one_to_search_by(rows):
    search = Search(SVC(), SPACE, calls=5, cv=2, scoring=["accuracy", "f1"], refit="accuracy", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(*rows)
    assert search.best_score_ == -search.study_.best_value
    assert "mean_test_f1" in search.cv_results_
    with pytest.raises(InvalidArgument, match="refit= is the name of the one to search by"):
        Search(SVC(), SPACE, calls=5, cv=2, scoring=["accuracy", "f1"], refit=False).fit(*rows)


def test_a_score_that_is_enough_ends_the_search(rows):
    found = Search(SVC(), SPACE, calls=50, cv=2, target=0.5, random_state=0).fit(*rows)
    assert found.study_.reason == "target"
    assert found.best_score_ >= 0.5
    given = Search(SVC(), SPACE, calls=3, cv=2, study={"start": [{"kernel": "linear", "C": 1.0}]}).fit(*rows)
    assert given.cv_results_["params"][0] == {"kernel": "linear", "C": 1.0}


def test_scikit_learn_finds_an_estimator():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search = Search(Ridge(), {"alpha": (0.1, 10.0)}, calls=2, cv=2, random_state=0)
        results = check_estimator(search, on_skip=None, on_fail=None)
    # a target in a column is handed on to the estimator, as scikit-learn's own searches do
    assert [r["check_name"] for r in results if r["status"] == "failed"] == ["check_supervised_y_2d"]
