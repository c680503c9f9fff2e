"""One loop for all ascents: what `tol` means, why it ends, and what it keeps when it is cut."""

import signal
import warnings
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from markovia.errors import ConvergenceWarning
from markovia.optimise.ascent import Climb, best_climb, climb, every_climb
from markovia.optimise.checkpoint import Checkpoint
from markovia.runtime import clock as clocks
from markovia.runtime.clock import Clock


def halving(n=1.0, constant=0.0):
    """Return a step towards zero whose objective is that of n numbers."""
    return lambda x: (x / 2.0, constant - n * x * x)


def test_an_ascent_ends_when_a_step_gains_no_more_than_tol_a_number():
    found = climb(halving(), 1.0, max_iter=100, tol=1e-6)
    gains = np.diff(found.history)
    assert found.reason == "converged"
    assert found.converged
    assert found.stopped is None
    assert gains[-1] <= 1e-6 < gains[-2]
    assert found.objective == found.history[-1] == max(found.history)
    assert found.state == 0.5 ** len(found.history)


@pytest.mark.parametrize("n", [2.0, 1000.0])
def test_more_numbers_of_the_same_kind_and_a_constant_do_not_move_the_end(n):
    few = climb(halving(), 1.0, max_iter=100, tol=1e-6)
    many = climb(halving(n, constant=-1e4), 1.0, max_iter=100, tol=1e-6, size=n)
    assert len(many.history) == len(few.history)
    assert len(climb(halving(n), 1.0, max_iter=100, tol=1e-6).history) > len(few.history)


def test_max_iter_ends_an_ascent_and_counts_its_steps():
    found = climb(halving(), 1.0, max_iter=3, tol=0.0)
    assert (found.reason, found.history, found.state) == ("max_iter", [-1.0, -0.25, -0.0625], 0.125)


def test_a_known_first_objective_lets_one_step_settle_and_is_no_step():
    found = climb(halving(), 1.0, max_iter=10, tol=0.5, first=-1.2)
    assert (found.reason, found.history) == ("converged", [-1.0])
    assert len(climb(halving(), 1.0, max_iter=3, tol=0.0, first=-4.0).history) == 3


def test_a_loss_is_an_end_only_where_steps_cannot_lose():
    values = iter([0.0, 1.0, 0.5, 2.0, 2.0])
    found = climb(lambda _: (None, next(values)), None, max_iter=9, tol=1e-3, may_fall=True)
    assert found.history == [0.0, 1.0, 0.5, 2.0, 2.0]
    values = iter([0.0, 1.0, 0.5, 2.0])
    assert climb(lambda _: (None, next(values)), None, max_iter=9, tol=1e-3).history == [0.0, 1.0, 0.5]


def test_gains_may_be_taken_over_several_steps_together():
    values = iter([0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    found = climb(lambda _: (None, next(values)), None, max_iter=9, tol=1e-3, span=2)
    assert found.history == [0.0, 1.0, 1.0, 2.0, 2.0, 2.0]


def test_states_may_say_themselves_that_they_are_settled_even_without_an_objective():
    found = climb(
        lambda x: (x / 2.0, float("nan")), 1.0, max_iter=99, tol=1.0, settled=lambda a, b: a - b < 0.1
    )
    assert (found.reason, found.state, found.objective) == ("converged", 0.0625, -np.inf)


@pytest.mark.parametrize("at", [2, 4])
def test_an_interrupt_inside_a_step_keeps_the_steps_before(at):
    done = []

    def step(x):
        done.append(x)
        if len(done) == at:
            raise KeyboardInterrupt
        return x / 2.0, -x * x

    found = climb(step, 1.0, max_iter=50, tol=0.0)
    assert (found.reason, found.stopped, found.converged) == ("interrupted", "interrupted", False)
    assert len(found.history) == at - 1
    assert found.state == 0.5 ** (at - 1)


def test_an_interrupt_before_anything_was_learned_passes_through():
    def step(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        climb(step, 1.0, max_iter=50, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        climb(step, 1.0, max_iter=50, tol=0.0, first=-3.0)


def test_ctrl_c_lets_the_step_finish():
    def step(x):
        if x == 0.25:
            signal.raise_signal(signal.SIGINT)
        return x / 2.0, -x * x

    found = climb(step, 1.0, max_iter=50, tol=0.0)
    assert (found.reason, found.state, len(found.history)) == ("interrupted", 0.125, 3)


def test_time_ends_an_ascent_after_the_step_it_is_in(monkeypatch):
    time = [0.0]
    monkeypatch.setattr(clocks, "now", lambda: time[0])

    def step(x):
        time[0] += 1.0
        return x / 2.0, -x * x

    found = climb(step, 1.0, max_iter=50, tol=0.0, time_limit=2.5)
    assert (found.reason, found.stopped, len(found.history)) == ("time limit", "time limit", 3)
    assert len(climb(step, 1.0, max_iter=50, tol=0.0, time_limit=0.5).history) == 1
    with Clock(1.5, False):
        assert climb(step, 1.0, max_iter=50, tol=0.0).reason == "time limit"


def test_progress_hears_the_objective():
    from markovia.runtime.progress import listening

    heard = []
    with listening(lambda done, total, unit, note, value: heard.append((done, total, value))):
        climb(halving(), 1.0, max_iter=2, tol=0.0, progress=None)
    assert heard == [(0, 2, None), (1, 2, -1.0), (2, 2, -0.25)]


class Inner(NamedTuple):
    rate: float
    name: str
    table: dict


@dataclass(frozen=True)
class State:
    place: np.ndarray
    inner: Inner
    count: int


def learned(state):
    """Take a step of gradient ascent whose rate changes."""
    place = state.place * (1.0 - state.inner.rate)
    table = {"seen": state.inner.table["seen"] + state.place.sum()}
    after = State(place, Inner(state.inner.rate * 0.9, state.inner.name, table), state.count + 1)
    return after, -float(place @ place)


def test_an_ascent_that_goes_on_from_a_file_ends_with_the_numbers_of_one_that_was_not_cut(tmp_path):
    start = State(np.array([3.0, -1.0]), Inner(0.1, "slow", {"seen": np.zeros(())}), 0)
    whole = climb(learned, start, max_iter=9, tol=0.0)
    file = tmp_path / "climb.npz"
    cut = climb(learned, start, max_iter=4, tol=0.0, checkpoint=Checkpoint(file, "a"))
    on = climb(learned, start, max_iter=9, tol=0.0, checkpoint=Checkpoint(file, "a"))
    assert len(cut.history) == 4
    assert on.history == whole.history
    assert np.array_equal(on.state.place, whole.state.place)
    assert on.state.inner[:2] == whole.state.inner[:2]
    assert on.state.inner.table["seen"] == whole.state.inner.table["seen"]
    assert on.state.count == 9
    again = climb(learned, start, max_iter=9, tol=0.0, checkpoint=Checkpoint(file, "a"))
    assert again.history == whole.history  # there is nothing left to do
    by_hand = climb(learned, cut.state, max_iter=5, tol=0.0)
    assert cut.history + by_hand.history == whole.history


def test_the_best_of_several_starts_is_kept():
    def run(top, progress):
        return climb(lambda x: (x / 2.0, top - x * x), 1.0, max_iter=20, tol=1e-6)

    assert best_climb(run, [1.0, 3.0, 2.0]).objective == pytest.approx(3.0, abs=1e-5)
    assert best_climb(run, [float("nan"), -7.0]).objective == pytest.approx(-7.0, abs=1e-5)


def test_starts_after_an_interrupted_one_are_left_out_and_the_best_has_not_settled():
    def run(start, progress):
        reason = "interrupted" if start == 2 else "converged"
        return Climb(start, [-float(start)], reason)

    found = every_climb(run, [1, 2, 3])
    assert [one.state for one in found] == [1, 2]
    best = best_climb(run, [1, 2, 3])
    assert (best.state, best.reason) == (1, "interrupted")

    def raised(start, progress):
        if start == 2:
            raise KeyboardInterrupt
        return Climb(start, [0.0], "converged")

    assert best_climb(raised, [1, 2, 3]).reason == "interrupted"
    with pytest.raises(KeyboardInterrupt):
        best_climb(raised, [2, 1])


def test_one_sentence_says_that_learning_has_not_settled():
    with pytest.warns(
        ConvergenceWarning, match=r"^learning still gained after 2 steps; raise max_iter= or tol=$"
    ):
        Climb(None, [0.0, 1.0], "max_iter").warn(1e-3)
    with pytest.warns(ConvergenceWarning, match="raise max_iterations= or tolerance=$"):
        Climb(None, [0.0], "max_iter").warn(1e-3, ("max_iterations", "tolerance"))
    with pytest.warns(
        ConvergenceWarning, match="interrupted after 1 step, before it settled; what was learned is kept"
    ):
        Climb(None, [0.0], "interrupted").warn(0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Climb(None, [0.0], "max_iter").warn(0.0)
        Climb(None, [0.0], "time limit").warn(1e-3)
        Climb(None, [0.0], "converged").warn(1e-3)
