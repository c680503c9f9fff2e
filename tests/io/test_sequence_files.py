"""Hidden Markov models and Markov chains in native files: their numbers survive, and bad files are refused."""

import numpy as np
import pytest

import markovia as mk
from markovia.errors import ParseError, UnsupportedModel


@pytest.mark.parametrize(
    "emission", ["categorical", "gaussian", "gmm", "student-t", "poisson", "bernoulli", "multinomial"]
)
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_a_fitted_hmm_is_the_same_after_a_file(emission, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, size=(80, 1 if emission == "categorical" else 2)) + (
        rng.normal(size=(80, 2)) if emission in ("gaussian", "gmm", "student-t") else 0
    )
    hmm = mk.HMM(2, emission=emission, max_iter=5, random_state=0).fit(x)
    hmm.save(tmp_path / "m.json")
    again = mk.load(tmp_path / "m.json", kind=mk.HMM)
    assert again.log_prob([x]) == pytest.approx(hmm.log_prob([x]), rel=1e-13)
    assert again.transmat_ == pytest.approx(hmm.transmat_, rel=1e-13)
    assert again.decode(x)[0].tolist() == hmm.decode(x)[0].tolist()


@pytest.mark.parametrize("order", [1, 2])
def test_a_chain_is_the_same_after_a_file(order, tmp_path):
    chain = mk.MarkovChain(order=order, smoothing=0.5).fit([list("abcabba"), list("cab")])
    chain.save(tmp_path / "c.json")
    again = mk.load(tmp_path / "c.json", kind=mk.MarkovChain)
    assert again.symbols == chain.symbols
    assert (again.table == chain.table).all()
    assert (again.start == chain.start).all()
    assert (again.order, again.smoothing) == (order, 0.5)


@pytest.mark.parametrize("settings", [{"structure": "left-right"}, {"order": 2}, {"lags": 1}], ids=str)
def test_hidden_chains_of_any_shape_come_back_from_their_file(settings, tmp_path):
    y = np.arange(12.0) % 5
    hmm = mk.HMM(2, emission="gaussian", random_state=0, max_iter=2, tol=0.0, **settings).fit(y)
    hmm.save(tmp_path / "m.json")
    assert mk.load(tmp_path / "m.json").log_prob(y) == pytest.approx(hmm.log_prob(y), abs=1e-12)


def test_what_a_file_cannot_hold_is_refused(tmp_path):
    with pytest.raises(UnsupportedModel, match="strings or numbers"):
        mk.MarkovChain([[0, 1], [1, 0]], [(0,), (1,)]).save(tmp_path / "m.json")
    text = mk.io.dumps(mk.MarkovChain([[0.5, 0.5], [1, 0]]), "json")
    with pytest.raises(ParseError, match="table of a Markov chain"):
        mk.io.loads(text.replace("[1.0, 0.0]", "[1.0, 0.5]"), "json")
    text = mk.io.dumps(
        mk.HMM(1, start=[1], transition=[[1]], emission_params={"probs": [[0.5, 0.5]]}), "json"
    )
    with pytest.raises(ParseError, match="values of a hidden Markov model"):
        mk.io.loads(text.replace("[[0.5, 0.5]]", "[[0.5, 0.9]]"), "json")


Y = np.sin(np.arange(40.0)) + 0.1 * np.arange(40.0)


@pytest.mark.parametrize(
    "model",
    [
        mk.LinearStateSpace(1, 0.5, 1, 1, learn=["transition_cov"], method="gradient"),
        mk.LinearStateSpace([[1, 1], [0, 1]], np.eye(2), [[1, 0]], 1, [1, 2], np.diag([np.inf, 2.0]), max_iter=1),
        mk.LinearStateSpace(1, np.linspace(0.1, 2, 42)[:, None, None], 1, 1, form="square-root", learn=[], max_iter=1),
        mk.series.StructuralSeries("local linear trend", cycle=True, cycle_bounds=(3.0, 12.0), max_iter=3),
        mk.ARIMA((1, 1, 1), constant=True, max_iter=3),
    ],
)  # fmt: skip
@pytest.mark.parametrize("fitted", [True, False])
@pytest.mark.filterwarnings("ignore::markovia.errors.ConvergenceWarning")
def test_a_state_space_model_is_the_same_after_a_file(model, fitted, tmp_path):
    if fitted:
        model = model.fit(Y)
    elif hasattr(model, "params"):
        model.set_params(params=dict.fromkeys(model.parameter_names, 0.3))
    model.save(tmp_path / "m.json")
    again = mk.load(tmp_path / "m.json", kind=mk.LinearStateSpace)
    assert type(again) is type(model)
    assert again.log_prob(Y) == pytest.approx(model.log_prob(Y), rel=1e-12)
    assert again.forecast(Y, 2).mean[0] == pytest.approx(model.forecast(Y, 2).mean[0], rel=1e-12)
    assert hasattr(again, "standard_errors_") == hasattr(model, "standard_errors_")
    for name, errors in getattr(model, "standard_errors_", {}).items():
        np.testing.assert_array_equal(again.standard_errors_[name], errors)
    if hasattr(model, "aic_"):
        assert (again.aic_, again.params_, again.converged_) == (model.aic_, model.params_, model.converged_)
    assert again.get_params().get("form") == model.get_params().get("form")


def test_factors_and_inputs_survive_a_file(tmp_path):
    rng = np.random.default_rng(0)
    model = mk.series.DynamicFactor(2, max_iter=2).fit(rng.normal(size=(30, 2)))
    model.save(tmp_path / "f.json")
    assert mk.load(tmp_path / "f.json").params_ == model.params_
    driven = mk.LinearStateSpace(1, 1, 1, 1, observation_input=[[2.0]])
    driven.save(tmp_path / "d.json")
    assert mk.load(tmp_path / "d.json").log_prob(Y, inputs=Y) == pytest.approx(driven.log_prob(Y, inputs=Y))
    text = (tmp_path / "f.json").read_text()
    with pytest.raises(ParseError, match="state-space model"):
        mk.io.loads(text.replace('"variance0"', '"variance7"'), "json")
    with pytest.raises(ParseError, match="state-space model"):
        mk.io.loads((tmp_path / "d.json").read_text().replace('"form": "covariance"', '"fern": 1'), "json")
