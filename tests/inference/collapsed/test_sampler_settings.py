"""The settings and the long run of estimators that sweep."""

from dataclasses import dataclass

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.concentrations import CONCENTRATION, concentration_of
from markovia.inference.collapsed.sampler_runs import burn_in_of
from markovia.inference.collapsed.sampler_settings import SamplerSettings


class Walk:
    """A sampler that adds a draw to a number in each sweep."""

    def __init__(self):
        self.at = 0.0

    def sweep(self, rng):
        self.at += rng.random()

    def log_prob(self):
        return -self.at

    def state(self):
        return {"at": np.array(self.at)}

    def restore(self, state):
        self.at = float(state["at"])


@dataclass(eq=False, repr=False)
class Walker(SamplerSettings):
    def fit(self, **options):
        walk = Walk()
        self.run_ = self._sweeps(
            walk, np.random.default_rng(0), walk.state, name="walk", about=(1,), **options
        )
        return self


def test_sweeps_keep_their_trace_and_draws_after_the_burn_in():
    made = Walker(max_iter=6).fit(burn_in=2, thin=2)
    steps = np.cumsum(np.random.default_rng(0).random(6))
    np.testing.assert_allclose(made.history_, -steps)
    assert made.n_iter_ == 6
    np.testing.assert_allclose([draw["at"] for draw in made.run_.draws], steps[[2, 4]])
    assert Walker(max_iter=6).fit(sweeps=3).n_iter_ == 3


def test_a_run_that_is_cut_before_a_draw_was_due_has_the_state_it_reached():
    made = Walker(max_iter=3).fit(burn_in=3)
    assert [float(draw["at"]) for draw in made.run_.draws] == [-made.history_[-1]]


def test_a_run_goes_on_from_its_file_to_the_same_draws(tmp_path):
    whole = Walker(max_iter=6).fit(burn_in=1)
    file = tmp_path / "walk.npz"
    Walker(max_iter=4, checkpoint=file).fit(burn_in=1)
    on = Walker(max_iter=6, checkpoint=file).fit(burn_in=1)
    assert on.history_ == whole.history_
    assert [float(d["at"]) for d in on.run_.draws] == [float(d["at"]) for d in whole.run_.draws]


def test_a_burn_in_leaves_draws():
    assert (burn_in_of(None, 9), burn_in_of(None, 9, one_in=3), burn_in_of(8, 9)) == (4, 3, 8)
    with pytest.raises(InvalidArgument, match="burn_in=9 leaves no draws of max_iter=9 sweeps; lower it"):
        burn_in_of(9, 9)


def test_a_concentration_is_a_number_or_shape_and_rate():
    assert concentration_of(2) == 2.0
    assert concentration_of([1, 3]) == concentration_of(np.array([1, 3])) == (1.0, 3.0)
    for right in (0.5, 2, (1.0, 2.0), [1, 2]):
        assert CONCENTRATION.admits(right)
    for wrong in (0, -1.0, np.inf, "1", (1.0,), (1.0, 0.0), (1.0, 2.0, 3.0), True):
        assert not CONCENTRATION.admits(wrong)
