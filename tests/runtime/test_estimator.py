"""What every estimator's `fit` runs in, and what it says of its rows."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.utils import get_tags

import markovia as mk
from markovia.runtime.checks import Count
from markovia.runtime.estimator import Estimator, fitting
from markovia.runtime.seeds import generator


@dataclass(eq=False, repr=False)
class Counting(Estimator):
    n: Count = 1

    @property
    def _input_tags(self):
        return {"sparse": self.n > 1}

    def fit(self, X):
        with fitting(self):
            self.seen_ = len(X)
            self.first_ = X[0]
        return self


def test_a_fit_that_fails_leaves_the_estimator_as_it_was():
    fitted = Counting().fit([7, 8])
    with pytest.raises(IndexError):
        fitted.fit([])
    assert (fitted.seen_, fitted.first_) == (2, 7)
    fresh = Counting()
    with pytest.raises(IndexError):
        fresh.fit([])
    assert vars(fresh) == {"n": 1}


def test_a_bad_setting_is_refused_before_anything_is_learned():
    fitted = Counting().fit([7, 8]).set_params(n=0)
    with pytest.raises(mk.errors.InvalidArgument, match="n= is a whole number, 1 or more, not 0"):
        fitted.fit([9])
    assert (fitted.n, fitted.seen_) == (0, 2)


def test_tags_of_inputs_follow_the_settings():
    assert [get_tags(Counting(n)).input_tags.sparse for n in (1, 2)] == [False, True]
    assert get_tags(mk.mixtures.BernoulliMixture(binarize=0.5)).input_tags.positive_only is False
    assert get_tags(mk.mixtures.BernoulliMixture()).input_tags.positive_only is True


def test_a_random_state_seeds_a_generator_by_one_draw():
    state, twin = np.random.RandomState(3), np.random.RandomState(3)
    drawn = [generator(state).random() for _ in range(2)]
    assert drawn == [np.random.default_rng(twin.randint(2**31)).random() for _ in range(2)]
    assert drawn[0] != drawn[1]
