"""Runs of samplers: what is kept, and how they go on from a file."""

import numpy as np
import pytest

from markovia.errors import InvalidArgument
from markovia.inference.collapsed.sampler_runs import run_sampler
from markovia.optimise.checkpoint import digest_of


class Walk:
    """A walk whose place is its whole state."""

    def __init__(self):
        self.place = np.zeros(2)

    def sweep(self, rng):
        self.place = self.place + rng.standard_normal(2)

    def log_prob(self):
        return float(-self.place @ self.place)

    def state(self):
        return {"place": self.place}

    def restore(self, state):
        self.place = state["place"]


def run(sweeps, path=None, digest="a", **options):
    walk = Walk()
    return run_sampler(
        walk,
        sweeps,
        np.random.default_rng(3),
        keep=lambda: {"place": walk.place},
        checkpoint=path,
        digest=digest,
        **options,
    )


def test_kept_draws_are_those_after_burn_in_at_the_said_distance():
    found = run(10, burn_in=4, thin=3)
    whole = run(10)
    assert [d["place"].tolist() for d in found.draws] == [whole.draws[i]["place"].tolist() for i in (4, 7)]
    assert found.history == whole.history


def test_a_run_that_goes_on_from_a_file_ends_where_an_uncut_one_does(tmp_path):
    path = tmp_path / "walk.npz"
    assert run(4, path).sweeps == 4
    again = run(10, path)
    whole = run(10)
    assert again.history == whole.history
    assert [d["place"].tolist() for d in again.draws] == [d["place"].tolist() for d in whole.draws]


def test_a_file_of_other_data_or_no_such_file_is_refused(tmp_path):
    path = tmp_path / "walk.npz"
    run(2, path, digest=digest_of(np.arange(3)))
    with pytest.raises(InvalidArgument, match="other data or settings"):
        run(4, path, digest=digest_of(np.arange(4)))
    path.write_text("nothing of the kind")
    with pytest.raises(InvalidArgument, match="is no checkpoint"):
        run(4, path)


def test_a_time_limit_ends_a_run_after_a_sweep():
    found = run(10**9, time_limit=0.05)
    assert found.reason == "time limit"
    assert found.sweeps == len(found.draws) > 0
