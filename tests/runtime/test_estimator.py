"""What every estimator's `fit` runs in, and what it says of its rows."""

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.metadata_routing import get_routing_for_object

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


def test_a_sequence_model_is_touched_and_fitted_without_loading_scikit_learn():
    code = (
        "import sys, markovia as mk; hmm = mk.HMM(2, emission='categorical', random_state=0).fit([0, 1, 0, 0, 1, 1]); "
        "print(hmm, hmm.get_params()['n_states'], 'sklearn' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-2:] == ["2", "False"], ran.stdout


def test_settings_of_a_setting_are_reached_and_unknown_ones_named():
    mixture = mk.series.SequenceMixture(mk.HMM(2), 3)
    name = next(n for n, value in mixture.get_params(deep=False).items() if isinstance(value, mk.HMM))
    assert mixture.set_params(**{f"{name}__n_states": 4}).get_params()[f"{name}__n_states"] == 4
    with pytest.raises(ValueError, match="Invalid parameter 'n_stats' for estimator HMM"):
        mk.HMM(2).set_params(n_stats=3)


def test_arguments_of_fit_are_routed_on_request():
    with sklearn.config_context(enable_metadata_routing=True):
        asking = mk.HMM(2).set_fit_request(lengths=True)
        routing = get_routing_for_object(clone(asking))
        assert routing.consumes("fit", ["lengths", "X"]) == {"lengths"}
        assert get_routing_for_object(mk.HMM(2)).consumes("fit", ["lengths"]) == set()


def test_long_settings_are_printed_over_several_lines():
    text = repr(mk.HMM(2, emission="gaussian", random_state=123456, max_iter=77, n_init=12, tol=0.00123))
    assert len(text.splitlines()) > 1
    assert max(map(len, text.splitlines())) <= 80
    assert "".join(text.split()).startswith("HMM(emission='gaussian',max_iter=77")
    assert text.endswith(")")
