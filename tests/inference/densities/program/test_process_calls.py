"""What children get in place of a function: calls that are counted, noted, drawn or set."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.factors.covariances.process import GP
from markovia.inference.densities.program.process_calls import MOST_CALLS, Recorder, Sampled, Set, StandIn
from markovia.inference.densities.program.process_places import Conditioned
from markovia.runtime.double_precision import x64

X = np.array([0.5, 1.0, 1.5])


def test_calls_are_noted_by_child_and_number():
    recorder = Recorder("f")
    f = recorder.called_by("y")
    assert f(X).shape == (3,)
    assert f(2.0).shape == ()
    assert f.grad(X).shape == (3,)
    assert f.grad(np.ones((3, 2))).shape == (3, 2)
    assert f.integral(0.0, X).shape == (3,)
    assert [(key, p.kind) for key, p in recorder.places.items()] == [
        (("y", i), kind) for i, kind in enumerate(["value", "value", "grad", "grad", "integral"])
    ]
    recorder.called_by("z")(X)
    assert ("z", 0) in recorder.places


def test_a_loop_over_rows_is_refused():
    f = Recorder("f").called_by("y")
    for x in range(MOST_CALLS):
        f(float(x))
    with pytest.raises(InvalidArgument, match="not in a loop"):
        f(-1.0)


def test_members_of_a_plate_are_said():
    recorder = Recorder("f", plated=True)
    with pytest.raises(InvalidArgument, match=r"f\[g\]\(x\)"):
        recorder.called_by("y")(X)
    recorder.called_by("y")[np.array([0, 1, 1])](X)
    assert recorder.places["y", 0].member.tolist() == [0, 1, 1]


def test_stand_ins_act_row_by_row():
    f = StandIn("f").called_by("y")
    moved = X.copy()
    moved[1] += 1
    assert (f(X) != f(moved)).tolist() == [False, True, False]
    assert (f.grad(X) != f.grad(moved)).tolist() == [False, True, False]


def test_a_function_that_was_set_has_slopes_and_integrals():
    with x64():
        f = Set("f", jnp.sin).called_by("y")
        assert np.asarray(f(X)) == pytest.approx(np.sin(X))
        assert np.asarray(f.grad(X)) == pytest.approx(np.cos(X))
        assert float(f.integral(0.0, np.pi)) == pytest.approx(2.0)


@pytest.mark.slow
def test_a_function_that_is_drawn_is_one_function():
    with x64():
        process = Conditioned({"f": GP(mk.covariances.RBF(length=1.0))})
        f = Sampled("f", False, process, jax.random.PRNGKey(0)).called_by("y")
        first = np.asarray(f(X))
        assert np.asarray(f(X)) == pytest.approx(first, abs=1e-3)
        step = 1e-4
        ends = np.asarray(f(X + step))
        assert np.asarray(f.grad(X)) == pytest.approx((ends - first) / step, abs=0.7)
