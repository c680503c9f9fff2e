"""One forecast for all models of sequences: laws of steps, whole paths, tables with dates."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

import markovia as mk
import markovia.distributions as dist
from markovia.errors import InvalidArgument, UnsupportedModel

MOVES = np.array([[0.9, 0.1], [0.4, 0.6]])
MONTHS = pd.date_range("2024-10-01", periods=6, freq="MS")
Y = np.array([0.3, 1.1, 0.2, 4.2, 5.5, 4.4])


def symbols(**settings):
    return mk.HMM(
        2, start=[0.6, 0.4], transition=MOVES, symbols=["a", "b", "c"],
        emission_params={"probs": [[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]]}, **settings,
    )  # fmt: skip


def gaussian():
    return mk.HMM(
        2, emission="gaussian", start=[0.6, 0.4], transition=MOVES,
        emission_params={"means": [[0.0], [5.0]], "covariances": [[[1.0]], [[0.25]]]},
    )  # fmt: skip


def switching():
    return mk.SwitchingStateSpace(
        transition=1.0, transition_cov=[[[0.01]], [[4.0]]], observation=1.0, observation_cov=0.1,
        regime_transition=[[0.9, 0.1], [0.1, 0.9]],
    )  # fmt: skip


MODELS = {
    "arima": mk.ARIMA((1, 1, 1), constant=True, params=[0.2, 0.5, -0.3, 0.8]),
    "linear": mk.LinearStateSpace(0.9, 0.5, 2.0, 1.0, 0.0, 1.0, observation_offset=3.0),
    "switching": switching(),
    "nonlinear": mk.series.NonlinearStateSpace(lambda x: 0.9 * x, lambda x: 2 * x, 0.5, 1.0, 0.0, 1.0),
    "particles": mk.ParticleFilter(
        dist.Normal(0, 1), lambda x: dist.Normal(0.9 * x, 1), lambda x: dist.Normal(x, 1), n_particles=4_000,
        random_state=0,
    ),
    "hmm": gaussian(),
}  # fmt: skip

NAMES = [pytest.param(n, marks=pytest.mark.slow) if n == "nonlinear" else n for n in MODELS]


def forecast(name, y, steps=2, **more):
    return MODELS[name].forecast(y, steps, **more, **({"of": "observations"} if name == "hmm" else {}))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_paths_have_the_law_of_each_step(name):
    ahead = forecast(name, Y)
    drawn = ahead.sample(2_000, seed=1)[0].reshape(2_000, 2)
    mean, sd = np.ravel(ahead.mean[0]), np.ravel(ahead.sd[0])
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=4 * sd.max() / 2_000**0.5)
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.1)
    low, high = (np.ravel(end[0]) for end in ahead.interval(0.8))
    np.testing.assert_allclose(((drawn >= low) & (drawn <= high)).mean(axis=0), 0.8, atol=0.04)
    np.testing.assert_array_equal(ahead.sample(5, seed=3)[0], ahead.sample(5, seed=3)[0])


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_dates_come_from_a_column_or_from_the_index(name):
    steps = ["2025-04-01", "2025-05-01"]
    column = forecast(name, pd.DataFrame({"month": MONTHS, "sold": Y})).to_pandas((0.1,))
    assert column.index.astype(str).tolist() == steps
    if name != "particles":
        assert column["number"].tolist() == ["sold", "sold"]
    np.testing.assert_allclose(column["q0.1"], np.ravel(forecast(name, Y).quantile(0.1)[0]))
    for indexed in (pd.Series(Y, index=MONTHS), pd.DataFrame({"sold": Y}, index=MONTHS.to_period("M"))):
        assert forecast(name, indexed).to_pandas().index.astype(str).tolist() == steps
    assert forecast(name, pd.Series(Y, index=MONTHS[::-1])).dates is None


@pytest.mark.slow
def test_steps_of_a_path_belong_together():
    # a random walk without noise of observation: increments are independent, so the last step varies thrice as much
    walk = mk.LinearStateSpace(1.0, 1.0, 1.0, 0.0, 0.0, 1.0)
    drawn = walk.forecast([0.0, 1.0], 3).sample(4_000, seed=0)[0][:, :, 0]
    np.testing.assert_allclose(np.cov(drawn.T), [[1, 1, 1], [1, 2, 2], [1, 2, 3]], atol=0.2)


def test_observations_of_a_hidden_chain_are_those_of_its_network():
    model, seen = symbols(), ["a", "c", "c"]
    ahead = model.forecast(seen, 2, of="observations")
    net, given = model.unroll(5), {f"x{i}": s for i, s in enumerate(seen)}
    for h in range(2):
        np.testing.assert_allclose(ahead[0][h], net.query(f"x{3 + h}", given=given).values, atol=1e-12)
    drawn = ahead.sample(6_000, seed=0)[0][:, :, 0]
    both = net.query(["x3", "x4"], given=given)
    for pair in (("a", "a"), ("c", "a"), ("b", "c")):
        p = both.probability({"x3": pair[0], "x4": pair[1]}) if hasattr(both, "probability") else both[pair]
        assert np.mean((drawn == pair).all(axis=1)) == pytest.approx(p, abs=4 * (p * (1 - p) / 6_000) ** 0.5)


def test_numbers_of_a_hidden_chain_are_mixtures_by_its_states():
    model = gaussian()
    states = model.forecast(Y, 3)[0]
    ahead = model.forecast([Y, Y[:2]], 3, of="observations")
    np.testing.assert_allclose(ahead.mean[0][:, 0], states @ [0.0, 5.0])
    for q in (0.05, 0.5, 0.9):
        x = ahead.quantile(q)[0]
        below = states[:, 0] * norm.cdf(x[:, 0]) + states[:, 1] * norm.cdf(x[:, 0], 5.0, 0.5)
        np.testing.assert_allclose(below, q, atol=1e-9)
    assert len(ahead) == 2
    assert ahead.median[1].shape == (3, 1)


def test_mixtures_within_states_are_mixed_too():
    params = {
        "weights": [[0.3, 0.7], [1.0, 0.0]],
        "means": [[[0.0], [2.0]], [[5.0], [9.0]]],
        "covariances": [[[[1.0]], [[2.0]]], [[[3.0]], [[1.0]]]],
    }
    model = mk.HMM(2, emission="gmm", start=[0.6, 0.4], transition=MOVES, emission_params=params)
    ahead, p = model.forecast([0.1, 0.2], 2, of="observations"), model.forecast([0.1, 0.2], 2)[0]
    np.testing.assert_allclose(ahead.mean[0][:, 0], p @ [1.4, 5.0])
    square = p @ [0.3 * 1 + 0.7 * (2 + 4), 3 + 25]
    np.testing.assert_allclose(ahead.sd[0][:, 0] ** 2, square - (p @ [1.4, 5.0]) ** 2)


def test_emissions_without_a_form_are_drawn():
    counts = mk.HMM(
        2, emission="poisson", start=[1, 0], transition=MOVES, emission_params={"rates": [[1.0], [9.0]]}
    )
    ahead = counts.forecast([1, 0, 2], 2, of="observations")
    np.testing.assert_allclose(ahead.mean[0][:, 0], counts.forecast([1, 0, 2], 2)[0] @ [1.0, 9.0], atol=0.25)
    assert ahead.draws[0].shape == (4_000, 2, 1)


def test_observations_with_lags_go_on_from_the_last_ones():
    model = mk.HMM(
        1, emission="gaussian", lags=1, start=[1.0], transition=[[1.0]],
        emission_params={"means": [[1.0]], "covariances": [[[1e-8]]], "lags": [[[[0.5]]]]},
    )  # fmt: skip
    ahead = model.forecast([[1.0, 2.0, 6.0], [4.0]], 2, of="observations")
    np.testing.assert_allclose([m[:, 0] for m in ahead.mean], [[4.0, 3.0], [3.0, 2.5]], atol=1e-3)


def test_inputs_that_drive_a_chain_drive_its_paths():
    weights = np.zeros((2, 2, 2))
    weights[:, 1, 1] = 8.0  # an input of 1 leads to the second state, of -1 to the first
    model = mk.HMM(
        2, start=[0.5, 0.5], transition=weights, symbols=["a", "b"], emission_params={"probs": np.eye(2)}
    )
    ahead = model.forecast(["a", "b"], 2, inputs=np.zeros((2, 1)), future=[[1.0], [-1.0]], of="observations")
    drawn = ahead.sample(200, seed=0)[0][:, :, 0]
    assert (drawn[:, 0] == "b").mean() > 0.98
    assert (drawn[:, 1] == "a").mean() > 0.98


def test_states_and_symbols_are_drawn_too():
    chain = mk.MarkovChain([[0.9, 0.1], [0.5, 0.5]], states=["dry", "wet"])
    drawn = chain.forecast([["dry", "wet"], ["dry"]], 2).sample(3_000, seed=0)
    assert np.mean((drawn[0] == ["wet", "wet"]).all(axis=1)) == pytest.approx(0.25, abs=0.03)
    assert np.mean((drawn[1] == ["wet", "wet"]).all(axis=1)) == pytest.approx(0.05, abs=0.02)
    states = symbols().forecast(["a", "c"], 2).sample(3_000, seed=0)[0]
    np.testing.assert_allclose(states.mean(axis=0), symbols().forecast(["a", "c"], 2)[0][:, 1], atol=0.04)


def test_visits_with_durations_go_on_in_drawn_paths():
    model = mk.series.HiddenSemiMarkov(
        2, start=[1, 0], transition=[[0, 1], [1, 0]], max_duration=3, durations="categorical",
        duration_params={"probs": [[0, 0, 1], [1, 0, 0]]}, emission_params={"probs": np.eye(2)},
    )  # fmt: skip
    drawn = model.forecast([0, 0], 3).sample(20, seed=0)[0]
    assert (drawn == [0, 1, 0]).all()


def test_forecasts_pickle_print_and_refuse():
    ahead = MODELS["arima"].forecast([Y, Y[:3]], 2)
    again = pickle.loads(pickle.dumps(ahead))
    np.testing.assert_array_equal(again.sample(3, seed=0)[1], ahead.sample(3, seed=0)[1])
    assert "number 0" in str(ahead)
    assert "<pre>" in ahead._repr_html_()
    with pytest.raises(InvalidArgument, match="level="):
        ahead.interval(1.5)
    with pytest.raises(InvalidArgument, match="of= is 'states' or 'observations'"):
        gaussian().forecast(Y, 1, of="symbols")
    from dataclasses import replace

    with pytest.raises(UnsupportedModel, match="no paths"):
        replace(ahead, paths=None).sample(2)


def test_steps_are_drawn_at_their_dates():
    import matplotlib

    matplotlib.use("agg")
    series = pd.Series(Y, index=MONTHS)
    ahead = mk.LinearStateSpace(1, 1, 1, 1).forecast(series, 2)
    axes = ahead.plot(series)[0, 0]
    line = next(one for one in axes.lines if one.get_label() == "forecast")
    assert np.array_equal(line.get_xdata(), ahead.dates[0])
    seen = next(one for one in axes.lines if one.get_label() == "observed")
    assert np.array_equal(seen.get_xdata(), MONTHS.to_numpy())
    assert axes.get_xlabel() == "date"
    # without the dates of what came before, steps are counted
    assert ahead.plot(np.asarray(Y))[0, 0].get_xlabel() == "step"


def test_paths_of_a_dynamic_network_are_drawn_together():
    process = mk.DynamicBayesianNetwork()
    stay = [[0.9, 0.1], [0.1, 0.9]]
    process.add("rain", states=["no", "yes"], parents=["rain@-1"], p=stay, initial=[0.5, 0.5])
    process.add("wet", states=["dry", "wet"], parents=["rain"], p=[[0.8, 0.2], [0.3, 0.7]])
    data = [{"wet": ["wet", None, "dry"]}, {"wet": ["dry"]}]
    ahead = process.forecast(data, 2)
    for s, seen in enumerate(data):
        t = len(seen["wet"])
        given = {f"wet@{i}": x for i, x in enumerate(seen["wet"]) if x is not None}
        exact = process.unroll(t + 2).query([f"rain@{t}", f"wet@{t + 1}"], given=given)
        paths = ahead.sample(20_000, seed=1)[s]
        together = np.mean((paths["rain"][:, 0] == "yes") & (paths["wet"][:, 1] == "wet"))
        assert together == pytest.approx(exact["yes", "wet"], abs=0.015)
        own = ahead.forecast("rain").sample(20_000, seed=2)[s]
        assert (own == "yes").mean(axis=0) == pytest.approx(ahead["rain"][s][:, 1], abs=0.015)
    assert process.score(data) == pytest.approx(process.log_prob(data).sum())
    with pytest.raises(mk.errors.UnsupportedModel, match=r"of a forecast\(\)"):
        process.filter(data).sample(3)


def test_paths_of_numbers_have_the_covariances_of_the_process():
    process = mk.DynamicBayesianNetwork()
    process.add(
        "x", mk.LinearGaussian(0, {"x@-1": 0.5}, 1.0), parents=["x@-1"], initial=mk.LinearGaussian(0, {}, 1)
    )
    drawn = process.forecast({"x": [1.0, 2.0]}, 2).forecast("x").sample(20_000, seed=0)[0]
    assert drawn.shape == (20_000, 2, 1)
    assert drawn.mean(axis=0).ravel() == pytest.approx([1.0, 0.5], abs=0.03)
    assert np.cov(drawn[..., 0].T) == pytest.approx(np.array([[1.0, 0.5], [0.5, 1.25]]), abs=0.04)
