import jax
import numpy as np
import pytest

from markovia.factors.networks.recipes import ACTIVATIONS
from markovia.learning.control.acting import ForwardPass, InputScale, forward_pass
from markovia.learning.control.policy_laws import CountedActions, NormalNumbers
from markovia.learning.control.trajectories import RunningScale
from markovia.learning.control.worlds import WorldSpaces
from markovia.networks import mlp

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_forward_pass_in_numpy_is_the_module(activation):
    module = mlp(3, 2, hidden=8, activation=activation).build(1)
    rows = 3 * RNG.standard_normal((50, 3)).astype(np.float32)
    found = forward_pass(module)
    assert isinstance(found, ForwardPass)
    assert np.allclose(found(rows), jax.vmap(module)(rows), atol=1e-5)


def test_a_scale_of_parts_is_the_scale_of_the_whole():
    rows = RNG.standard_normal((100, 3)) * [1.0, 1e-9, 1e9] + [5.0, 0.0, 1e9]
    scale = RunningScale(3)
    for part in np.split(rows, [1, 10, 60]):
        scale.add(part)
    assert np.allclose(scale.mean, rows.mean(axis=0))
    assert np.allclose(scale.spread, rows.std(axis=0))


def test_a_constant_column_keeps_its_unit_and_far_numbers_are_cut():
    inputs = InputScale(WorldSpaces(2, None, 2))
    inputs.add(np.c_[np.full(10, 7.0), np.arange(10.0)])
    found = inputs(np.array([[7.0, 4.5], [8.0, 1e9]]))
    assert np.allclose(found, [[0.0, 0.0], [1.0, 10.0]])


def test_laws_in_numpy_are_laws_in_jax_and_their_draws_follow_them():
    rng = np.random.default_rng(1)
    rows = rng.standard_normal((4000, 2)).astype(np.float32)
    numbers = NormalNumbers(np.array([2.0, 0.0]), np.array([0.5, 3.0]))
    for law, size in ((CountedActions(3), 3), (numbers, 2)):
        parameters = law.begin(mlp(2, size, hidden=4), 2, 0, 8)
        said, extra = forward_pass(parameters["policy"])(rows), parameters.get("log_scale")
        actions = law.draw(said, extra, rng)
        logs = law.log_probs_said(said, extra, actions)
        assert np.allclose(logs, law.log_probs(parameters, rows, actions), atol=1e-4)
        # the mean of minus log probabilities of draws is the entropy
        entropy = np.asarray(law.entropy(parameters, rows))
        assert abs(np.mean(-logs - entropy)) < 4 * np.std(-logs - entropy) / np.sqrt(len(rows))
        other = law.begin(None, 2, 5, 8) | ({} if extra is None else {"log_scale": extra + 0.3})
        gap = logs - np.asarray(law.log_probs(other, rows, actions))
        expected = np.asarray(law.divergence(parameters, other, rows))
        assert abs(np.mean(gap - expected)) < 4 * np.std(gap - expected) / np.sqrt(len(rows))
