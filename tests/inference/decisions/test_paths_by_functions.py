"""Controls of systems given by functions: against linear-quadratic control, and against a general minimiser."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize

import markovia as mk
from markovia.inference.decisions.numbers.iterative_linear_quadratic import plan_path
from markovia.inference.decisions.numbers.linear_quadratic import LinearQuadratic, regulate
from markovia.inference.decisions.numbers.predictive_control import PredictiveControl


def swing(x, u):
    return x + 0.1 * jnp.array([x[1], 2.0 * jnp.sin(x[0]) + u[0]])


def swing_worth(x, u):
    return -(1.0 - jnp.cos(x[0])) - 0.1 * x[1] ** 2 - 0.05 * u[0] ** 2


def total(controls, start, steps, final=lambda x: 0.0):
    x, worth = np.array(start), 0.0
    for u in np.reshape(controls, (steps, -1)):
        worth -= (1.0 - np.cos(x[0])) + 0.1 * x[1] ** 2 + 0.05 * u[0] ** 2
        x = np.array([x[0] + 0.1 * x[1], x[1] + 0.1 * (2.0 * np.sin(x[0]) + u[0])])
    return worth + final(x)


@pytest.mark.slow
@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_a_linear_system_with_quadratic_rewards_takes_one_round(scale):
    rng = np.random.default_rng(0)
    A, B, start = 0.5 * rng.normal(size=(3, 3)), rng.normal(size=(3, 2)), rng.normal(size=3)
    s = LinearQuadratic(A, B, np.eye(3), 0.5 * np.eye(2), final=2 * np.eye(3), initial_mean=start)
    exact = regulate(s, horizon=8)
    path = plan_path(
        lambda x, u: A @ x + B @ u, lambda x, u: -scale * (x @ x + 0.5 * u @ u), start, 8,
        final=lambda x: -2.0 * scale * x @ x, controls=2,
    )  # fmt: skip
    assert path.value == pytest.approx(scale * exact.value, rel=1e-9)
    assert path.info.converged
    assert path.info.iterations <= 3
    assert path.gains == pytest.approx(-exact.gain, abs=1e-8)
    assert path.act(start + 0.1) == pytest.approx(exact.act(start + 0.1), abs=1e-8)


def test_a_path_is_a_local_optimum_of_a_general_minimiser():
    start, steps = [1.0, 0.0], 12
    path = plan_path(swing, swing_worth, start, steps)
    assert path.info.converged
    assert path.value == pytest.approx(total(path.controls, start, steps), rel=1e-9)
    other = minimize(
        lambda z: -total(z, start, steps), path.controls.ravel() + 0.01, method="BFGS", options={"gtol": 1e-7}
    )
    assert path.value >= -other.fun - 1e-8
    assert path.controls.ravel() == pytest.approx(other.x, abs=1e-3)


def test_controls_stay_within_limits_and_are_best_there():
    start, steps, limits = [1.0, 0.0], 12, (-1.5, 2.0)
    path = plan_path(swing, swing_worth, start, steps, limits=limits)
    assert path.info.converged
    assert path.controls.min() >= -1.5
    assert path.controls.max() <= 2.0
    assert (path.controls == -1.5).any()
    bounds = [limits] * steps
    other = minimize(
        lambda z: -total(z, start, steps), path.controls.ravel(), method="L-BFGS-B", bounds=bounds
    )
    assert path.value >= -other.fun - 1e-6
    assert path.act([3.0, 3.0], 0) == pytest.approx([-1.5])


def test_rewards_that_bend_upwards_do_not_lead_away():
    path = plan_path(lambda x, u: x + u, lambda x, u: jnp.cos(x[0]) - 0.01 * u[0] ** 2, [2.5], 10)
    assert path.info.converged
    assert abs(path.states[-1, 0]) < 0.1 or abs(path.states[-1, 0] - 2 * np.pi) < 0.1


def test_predictive_control_of_a_long_view_is_the_stationary_control_and_answers_surprises():
    A, B = np.array([[1.0, 0.1], [0.0, 1.0]]), np.array([[0.0], [0.1]])
    feedback = regulate(LinearQuadratic(A, B, np.eye(2), 0.1), average=True)
    control = PredictiveControl(lambda x, u: A @ x + B @ u, lambda x, u: -(x @ x) - 0.1 * u @ u, horizon=120)
    agent, rng, x = control.stream([1.0, 0.0]), np.random.default_rng(0), np.array([1.0, 0.0])
    for _ in range(5):
        u = agent.act()
        assert u == pytest.approx(feedback.act(x), rel=1e-5)
        assert u == pytest.approx(agent.act())
        x = A @ x + B @ u + 0.1 * rng.normal(size=2)
        agent.update(x)
    assert agent.step == 5


def test_predictive_control_swings_up_within_its_limits():
    control = PredictiveControl(
        lambda x, u: x + 0.1 * jnp.array([x[1], -2.0 * jnp.sin(x[0]) + u[0]]),
        lambda x, u: -((x[0] - jnp.pi) ** 2) - 0.1 * x[1] ** 2 - 0.01 * u[0] ** 2,
        horizon=25, limits=(-3.0, 3.0), max_iter=20,
    )  # fmt: skip
    agent, x = control.stream([0.0, 0.0]), np.zeros(2)
    for _ in range(60):
        u = agent.act()
        assert abs(u[0]) <= 3.0
        x = x + 0.1 * np.array([x[1], -2.0 * np.sin(x[0]) + u[0]])
        agent.update(x)
    assert x == pytest.approx([np.pi, 0.0], abs=0.1)


def test_functions_of_a_wrong_shape_are_refused():
    with pytest.raises((mk.errors.InvalidArgument, TypeError)):
        plan_path(lambda x, u: jnp.concatenate([x, u]), lambda x, u: -x[0], [1.0], 3)
    with pytest.raises(mk.errors.InvalidArgument, match="not finite"):
        plan_path(lambda x, u: x, lambda x, u: -jnp.log(x[0] - 5.0), [1.0], 3)
    with pytest.raises(mk.errors.InvalidArgument, match="least number below"):
        plan_path(lambda x, u: x, lambda x, u: -x[0], [1.0], 3, limits=(1.0, 0.0))
    with pytest.raises(mk.errors.InvalidArgument, match="one row a step"):
        plan_path(lambda x, u: x, lambda x, u: -x[0], [1.0], 3, controls=np.zeros((2, 1)))
