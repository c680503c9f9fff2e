"""Filters that take one observation at a time against filters of whole sequences."""

import json
import pickle

import jax.numpy as jnp
import numpy as np
import pytest

import markovia as mk
import markovia.distributions as dist
from markovia.errors import ImpossibleEvidence, InvalidArgument, UnsupportedModel

RNG = np.random.default_rng(0)
Y = np.cumsum(RNG.normal(size=9))
Y[4] = np.nan
WIDE = np.column_stack([Y, RNG.normal(size=9)])
WIDE[2, 1] = np.nan
U = RNG.normal(size=(9, 1))


@pytest.mark.parametrize(
    ("model", "y", "inputs"),
    [
        (mk.LinearStateSpace(0.9, 0.5, 2.0, 1.0, 1.0, 2.0, observation_offset=3.0), Y, None),
        (mk.LinearStateSpace(1, 1, 1, 1, transition_input=0.5, observation_input=2.0), Y, U),
        (mk.LinearStateSpace(np.eye(2), np.eye(2), [[1, 0], [1, 1]], [[1, 0.3], [0.3, 2]]), WIDE, None),
        (mk.LinearStateSpace(1, np.arange(1.0, 10)[:, None, None], 1, 1), Y, None),
        (mk.ARIMA((1, 1, 1), params=[0.5, 0.2, 1.0]), Y, None),
        (mk.series.StructuralSeries("lltrend", params=[1.0, 0.5, 0.1]), Y, None),
    ],
    ids=["offset", "inputs", "two numbers", "changing", "arima", "trend"],
)
def test_updates_are_the_filter_step_by_step(model, y, inputs):
    whole, stream = model.filter(y, inputs=inputs), model.stream()
    for t in range(9):
        mean, cov = stream.update(y[t], None if inputs is None else inputs[t])
        np.testing.assert_allclose(cov, whole.cov[0][t], atol=1e-8)
        told = np.isfinite(np.diag(cov))
        np.testing.assert_allclose(mean[told], whole.mean[0][t][told], atol=1e-8)
        if t == 5:
            stream = pickle.loads(pickle.dumps(stream))
        if t == 6:  # plain data that a new stream takes up
            held, stream = json.loads(json.dumps(stream.state)), model.stream()
            stream.state = held
    assert stream.step == 9
    assert stream.log_prob == pytest.approx(whole.log_prob[0])


def test_beliefs_are_those_of_the_hidden_chain():
    model = mk.HMM(
        2, start=[0.6, 0.4], transition=[[0.9, 0.1], [0.4, 0.6]], symbols=["a", "b", "c"],
        emission_params={"probs": [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]},
    )  # fmt: skip
    seen = ["a", None, "c", "b"]
    stream = model.stream()
    found = [stream.update(x) for x in seen]
    np.testing.assert_allclose(found, model.filter(seen)[0], atol=1e-12)
    assert stream.log_prob == pytest.approx(model.log_prob(seen)[0])
    again = model.stream()
    again.state = json.loads(json.dumps(stream.state))
    np.testing.assert_array_equal(again.update("a"), stream.update("a"))
    with pytest.raises(InvalidArgument, match=r"^step 5 has 'd', which is none of the symbols"):
        stream.update("d")
    assert stream.step == 5


def test_inputs_and_densities_of_any_size_stream_too():
    weights = RNG.normal(size=(2, 2, 2))
    params = {"means": [[0.0], [5e9]], "covariances": [[[1.0]], [[1e-18]]]}
    model = mk.HMM(2, emission="gaussian", start=[0.6, 0.4], transition=weights, emission_params=params)
    y, stream = np.array([[0.3], [5e9], [0.1]]), model.stream()
    found = [stream.update(a, u) for a, u in zip(y, U[:3], strict=True)]
    np.testing.assert_allclose(found, model.filter(y, inputs=U[:3])[0], atol=1e-9)
    assert stream.log_prob == pytest.approx(model.log_prob(y, inputs=U[:3])[0])


def nonlinear(method):
    return mk.series.NonlinearStateSpace(
        _swing, lambda x, u: x[:1] ** 2 + x[1:], 0.1 * np.eye(2), 0.3, [0.5, 1.0], np.eye(2), method=method
    )


def _swing(x, u):
    return jnp.stack([x[0] + 0.1 * x[1] + u[0], x[1] - jnp.sin(x[0])])


@pytest.mark.parametrize(
    ("model", "inputs"),
    [
        (mk.SwitchingStateSpace(0.9, [[[0.01]], [[4.0]]], 1.0, 0.1, [[0.0], [1.0]]), None),
        (mk.SwitchingStateSpace([[[0.9]], [[-0.5]]], observation_cov=0.1, method="imm"), None),
        (nonlinear("unscented"), U),
    ],
    ids=["gpb2", "imm", "unscented"],
)
def test_a_filter_begun_anew_at_each_step_is_the_filter(model, inputs):
    whole, stream = model.filter(Y, **({} if inputs is None else {"inputs": inputs})), model.stream()
    for t in range(9):
        shown = stream.update(None if np.isnan(Y[t]) else Y[t], None if inputs is None else inputs[t])
        np.testing.assert_allclose(shown[0], whole.mean[0][t], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(shown[1], whole.cov[0][t], rtol=1e-9, atol=1e-9)
        if inputs is None:
            np.testing.assert_allclose(shown[2], whole.regimes[0][t], rtol=1e-9, atol=1e-12)
        if t == 5:  # plain data that a new stream takes up
            held, stream = json.loads(json.dumps(stream.state)), model.stream()
            stream.state = held
    assert (stream.step, stream.log_prob) == (9, pytest.approx(whole.log_prob[0]))
    with pytest.raises(InvalidArgument, match="step 9 has 2 numbers"):
        stream.update([1.0, 2.0])


def test_particles_stream_without_touching_the_filter_and_go_on_elsewhere():
    level = mk.ParticleFilter(
        dist.Normal(0, 3), _walk, _walk, n_particles=4000, parameters={"sd": 1.0}, random_state=0
    )
    exact, stream = mk.LinearStateSpace(1, 1, 1, 1, 0, 9).filter(Y[:4]), level.stream()
    first = [stream.update(y) for y in Y[:2]]
    other = level.stream()
    other.state = stream.state
    assert other.step == 2
    assert other.update(Y[2]).mean == stream.update(Y[2]).mean
    last = stream.update(Y[3])
    assert float(last.mean) == pytest.approx(exact.mean[0][3, 0], abs=0.1)
    assert stream.log_prob == pytest.approx(exact.log_prob[0], abs=0.1)
    assert (first[0].t, stream.step, level.state) == (0, 4, None)


def _walk(x, sd):
    return dist.Normal(x, sd)


def test_models_of_functions_are_saved_where_the_functions_have_a_name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "walks.py").write_text(
        "import markovia.distributions as dist\ndef walk(x): return dist.Normal(x, 1)\ndef same(x): return x\n"
    )
    walks = __import__("walks")
    level = mk.ParticleFilter(dist.Normal(0, 3), walks.walk, walks.walk, n_particles=50, random_state=3)
    plain = mk.series.NonlinearStateSpace(walks.same, walks.same, observation_cov=2.0)
    for model in (level, plain):
        model.save(tmp_path / "model.json")
        again = mk.load(tmp_path / "model.json")
        assert np.array_equal(again.filter([1.0, 2.0]).mean[0], model.filter([1.0, 2.0]).mean[0])
    level.transition = lambda x: dist.Normal(x, 1)
    with pytest.raises(UnsupportedModel, match=r"ParticleFilter\.transition.*Define it with def in a module"):
        level.save(tmp_path / "model.json")


def test_models_without_a_stream_say_what_answers():
    with pytest.raises(UnsupportedModel, match=r"FactorialHMM .*filter\(\) of all steps"):
        mk.series.FactorialHMM([2, 2]).stream()
    with pytest.raises(UnsupportedModel, match=r"MarkovChain .*log_prob\(\) of all steps"):
        mk.MarkovChain().stream()
    with pytest.raises(UnsupportedModel, match="method='gpb2'"):
        mk.SwitchingStateSpace(method="rao-blackwell").stream()
    with pytest.raises(UnsupportedModel, match="method='extended'"):
        nonlinear("ensemble").stream()


def test_what_a_stream_cannot_be_is_said_and_changes_nothing():
    sure = mk.HMM(2, start=[1, 0], transition=[[1, 0], [0, 1]], emission_params={"probs": np.eye(2)})
    stream = sure.stream()
    stream.update(0)
    with pytest.raises(ImpossibleEvidence, match="step 1"):
        stream.update(1)
    assert stream.step == 1
    assert stream.update(0).tolist() == [1.0, 0.0]
    with pytest.raises(UnsupportedModel, match=r"filter\(\)"):
        mk.HMM(2, order=2, random_state=0, tol=9).fit([[0, 1, 0, 0]]).stream()
    level = mk.LinearStateSpace(1, 1, 1, 1).stream()
    with pytest.raises(InvalidArgument, match="not told yet"):
        level.state  # noqa: B018
    with pytest.raises(InvalidArgument, match="step 0 has 2 numbers"):
        level.update([1.0, 2.0])
    with pytest.raises(InvalidArgument, match="another model"):
        level.state = {"step": 1, "log_prob": 0.0, "mean": [0.0, 0.0], "cov": [[1.0]], "push": [0.0]}
