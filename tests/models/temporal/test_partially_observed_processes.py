"""Dynamic networks whose decisions see something of the state, read as what solvers take."""

import numpy as np
import pytest

import markovia as mk
from markovia.inference.decisions.beliefs.belief_plan import solve
from markovia.inference.decisions.numbers.linear_quadratic import regulate
from markovia.models.temporal.dynamic.linear_quadratic_reading import linear_quadratic_of
from markovia.models.temporal.dynamic.partially_observed_reading import partially_observed_of
from markovia.models.temporal.dynamic.pomdp import POMDP

DOOR = np.full((2, 2), 0.5)
SOUND = np.array([[0.85, 0.15], [0.15, 0.85]])


def tiger(first=None, **more):
    """Return the tiger as a network; what is heard first says nothing unless given."""
    p = mk.DynamicBayesianNetwork()
    moves = np.stack([np.eye(2), DOOR, DOOR], axis=1)
    p.add("tiger", moves, states=["left", "right"], parents=["tiger@-1", "act@-1"], initial=[0.5, 0.5])
    told = np.stack([SOUND, DOOR, DOOR], axis=1)
    p.add(
        "heard",
        told,
        states=["left", "right"],
        parents=["tiger", "act@-1"],
        initial=[0.5, 0.5] if first is None else first,
    )
    p.add("act", mk.Decision(["listen", "left", "right"], **more), parents=["heard"])
    p.add("r", mk.Utility([[-1, -100, 10], [-1, 10, -100]]), parents=["tiger", "act"])
    return p


def test_the_tiger_reads_as_itself():
    flat = partially_observed_of(tiger())
    assert dict(flat.heard) == {"heard": ("left", "right")}
    assert flat.process.actions == ["listen", "left", "right"]
    for steps, value in enumerate([-1, -2, 2.72, 2.42125, 3.60915, 5.61881875], 1):
        assert solve(flat, horizon=steps).value == pytest.approx(value, abs=1e-9)
    agent = solve(flat, discount=0.95).stream()
    assert agent.act() == "listen"
    assert agent.update(heard="left") == pytest.approx([0.85, 0.15])


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, pytest.param(6, marks=pytest.mark.slow)])
def test_a_plan_is_the_diagram_with_perfect_recall(steps):
    p = tiger(SOUND)
    diagram = p.unroll(steps).decide(memory="perfect")
    assert solve(partially_observed_of(p), horizon=steps).value == pytest.approx(diagram.value, abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_random_networks_of_several_variables_are_their_diagrams(seed):
    """A hidden pair, a sensor of one through a variable between, and one part of the state that is seen itself."""
    rng = np.random.default_rng(seed)
    law = lambda *shape: rng.dirichlet(np.ones(2), shape)  # noqa: E731
    p = mk.DynamicBayesianNetwork()
    p.add("a", law(2, 2), states=2, parents=["a@-1", "d@-1"], initial=law(1)[0])
    p.add("b", law(2, 2), states=2, parents=["b@-1", "a"], initial=law(2))
    p.add("between", law(2, 2), states=2, parents=["b", "d@-1"], initial=law(2))
    p.add("seen", law(2), states=2, parents=["between"])
    p.add("d", mk.Decision(2), parents=["seen", "a"])
    p.add("r", mk.Utility(rng.normal(size=(2, 2, 2)).round(2)), parents=["a", "b", "d"])
    p.add("price", mk.Utility(rng.normal(size=2).round(2)), parents=["d"])
    flat = partially_observed_of(p)
    assert (flat.process.n_states, flat.n_observations) == (4, 4)
    for steps in (1, 2, 3):
        diagram = p.unroll(steps).decide(memory="perfect")
        for method in ("exact", "point-based"):
            assert solve(flat, horizon=steps, method=method).value == pytest.approx(diagram.value, abs=1e-8)


def test_rules_for_decisions_are_those_of_all_sights():
    fewer = partially_observed_of(tiger(allowed=lambda heard: ["listen", "left"]))
    assert solve(fewer, horizon=1).value == pytest.approx(-1.0)
    assert fewer.open_actions.tolist() == [0, 1]
    with pytest.raises(mk.errors.UnsupportedModel, match="depends on what it sees"):
        partially_observed_of(tiger(allowed=lambda heard: ["listen"] if heard == "left" else ["left"]))


def test_a_network_that_is_none_of_this_is_refused():
    p = mk.DynamicBayesianNetwork()
    p.add("s", DOOR, states=2, parents=["s@-1"], initial=[0.5, 0.5])
    with pytest.raises(mk.errors.UnsupportedModel, match="a decision and a utility"):
        partially_observed_of(p)
    p.add("d", mk.Decision(2), parents=["s"])
    p.add("late", np.full((2, 2), 0.5), states=2, parents=["d"])
    p.add("u", mk.Utility([1.0, 0.0]), parents=["late"])
    with pytest.raises(mk.errors.UnsupportedModel, match="its own step"):
        partially_observed_of(p)


def test_the_preset_is_its_network():
    model = POMDP(
        np.array([np.eye(2), DOOR, DOOR]), [SOUND, DOOR, DOOR], [[-1, -100, 10], [-1, 10, -100]], discount=0.95,
        observations=["l", "r"],
    )  # fmt: skip
    again = partially_observed_of(model.process())
    assert solve(again, horizon=4).value == pytest.approx(model.decide(horizon=4).value)
    assert model.decide().value == pytest.approx(19.37136837, abs=2e-6)
    assert model.controller(3).n_nodes <= 3


def linear(seen=True):
    q = mk.DynamicBayesianNetwork()
    q.add("x", mk.LinearGaussian(0.1, {"x@-1": 1, "u@-1": 0.1}, 0.01), initial=mk.LinearGaussian(1, {}, 2.0))
    q.add("v", mk.LinearGaussian(0, {"v@-1": 0.5, "x": 0.2}, 0.03), initial=mk.LinearGaussian(0, {}, 1.0))
    q.add("seen", mk.LinearGaussian(0.5, {"x": 2.0}, 0.1))
    q.add("u", mk.Decision(), parents=["seen"] if seen else ["x", "v"])
    q.add(
        "cost",
        mk.Utility(
            mk.Quadratic({"x": -1, "u": -0.01, ("x", "v"): 0.1, "v": -0.2}, linear={"x": 0.4}, constant=2.0)
        ),
    )
    return q


def test_a_linear_network_reads_as_its_matrices():
    s = linear_quadratic_of(linear())
    assert s.states == ("x", "v")
    assert pytest.approx(np.array([[1.0, 0.0], [0.2, 0.5]])) == s.A
    assert pytest.approx(np.array([[0.1], [0.02]])) == s.B
    assert s.noise == pytest.approx(np.array([[0.01, 0.002], [0.002, 0.0304]]))
    assert (s.C.tolist(), s.observation_offset.tolist()) == ([[2.0, 0.0]], [0.5])
    assert s.observation_noise == pytest.approx(np.array([[0.1]]))
    assert pytest.approx(np.array([[1.0, -0.05], [-0.05, 0.2]])) == s.Q
    assert (s.q.tolist(), s.constant, s.R.tolist()) == ([-0.2, 0.0], -2.0, [[0.01]])
    assert s.initial_mean == pytest.approx([1.0, 0.0])
    agent = regulate(s, discount=0.9).stream()
    agent.update(seen=2.0)
    assert agent.act().shape == (1,)
    whole = linear_quadratic_of(linear(seen=False))
    assert whole.C is None
    assert regulate(whole, discount=0.9).value > regulate(s, discount=0.9).value


def test_linear_networks_that_reward_size_or_know_functions_are_refused():
    for form, match in (
        (mk.Quadratic({"x": 1, "u": -1}), "grow with the square"),
        (lambda x, u: -abs(x) - u * u, "no mk.Quadratic"),
    ):
        q = mk.DynamicBayesianNetwork()
        q.add(
            "x", mk.LinearGaussian(0, {"x@-1": 1, "u@-1": 0.1}, 0.01), initial=mk.LinearGaussian(0, {}, 1.0)
        )
        q.add("u", mk.Decision(), parents=["x"])
        q.add("cost", mk.Utility(form))
        with pytest.raises(mk.errors.MarkoviaError, match=match):
            linear_quadratic_of(q)
