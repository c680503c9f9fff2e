"""Verbs that models of sequences share: saving, unrolling, decoding with a probability, interventions, names."""

import warnings

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import InvalidArgument, UnknownArgument, UnknownVariable

SYMBOLS = [[0, 1, 1, 0, 0, 1, 0, 1], [1, 1, 0, 0, 1, 0, 1, 1]]
Y = np.cumsum(np.random.default_rng(0).normal(size=30))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "data"),
    [
        (mk.ARIMA((1, 1, 0)), Y),
        (mk.series.StructuralSeries("lltrend", autoregressive=1, max_iter=3), Y),
        (mk.SwitchingStateSpace(transition_cov=[[[0.01]], [[4.0]]], max_iter=1), Y),
        (mk.series.HiddenSemiMarkov(2, max_duration=4, max_iter=2, random_state=0), SYMBOLS),
        (mk.HMM(2, tied=[[0, 1]], max_iter=2, random_state=0), SYMBOLS),
        (mk.HMM(3, structure="left-right", max_iter=2, random_state=0), SYMBOLS),
        (mk.HMM(2, emission="gmm", order=2, max_iter=2, random_state=0), Y),
        (mk.series.FactorialHMM([2, 2], emission="categorical", max_iter=2, random_state=0), SYMBOLS),
        (mk.series.CoupledHMM([2, 2], max_iter=2, random_state=0), [np.array(SYMBOLS).T]),
        (mk.series.SequenceMixture(mk.MarkovChain(), 2, max_iter=2, random_state=0), SYMBOLS),
    ],
    ids=lambda x: type(x).__name__ if hasattr(x, "fit") else "",
)
def test_a_saved_model_answers_as_before(model, data, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(data)
    model.save(tmp_path / "model.json")
    again = mk.load(tmp_path / "model.json")
    ours, theirs = model.summary(), again.summary()
    assert type(again) is type(model)
    assert theirs.values == ours.values
    assert theirs.facts == ours.facts
    np.testing.assert_allclose(again.log_prob(data), model.log_prob(data), rtol=1e-12)


def test_chains_side_by_side_unroll_to_a_network_with_their_answers():
    rng = np.random.default_rng(0)
    model = mk.series.FactorialHMM(
        [2, 3], emission="categorical", start=[[0.3, 0.7], [0.2, 0.3, 0.5]],
        transition=[rng.dirichlet(np.ones(2), 2), rng.dirichlet(np.ones(3), 3)],
        emission_params={"probs": rng.dirichlet(np.ones(2), (2, 3))},
    )  # fmt: skip
    x = [0, 1, 1]
    net, seen = model.unroll(3), {f"x@{t}": s for t, s in enumerate(x)}
    assert net.log_evidence(seen) == pytest.approx(model.log_prob(x)[0])
    decoded = model.decode(x)
    path = {f"z_{i}@{t}": int(s) for t, row in enumerate(decoded[0]) for i, s in enumerate(row)}
    assert decoded.log_prob[0] == pytest.approx(net.log_evidence({**seen, **path}))


def test_decoding_gives_the_log_probability_of_the_path():
    model = mk.HMM(
        2,
        start=[0.8, 0.2],
        transition=[[0.6, 0.4], [0.5, 0.5]],
        emission_params={"probs": [[0.2, 0.8], [0.5, 0.5]]},
    )
    found = model.decode([[1, 0, 1], [0]])
    assert [p.tolist() for p in found] == [p.tolist() for p in model.decode([[1, 0, 1], [0]])]
    for (paths, scores), path, score in zip(
        model.k_best([[1, 0, 1], [0]], 1), found, found.log_prob, strict=True
    ):
        assert paths[0].tolist() == path.tolist()
        assert scores[0] == pytest.approx(score)
    assert model.decode([1, 0], method="max-marginal").log_prob is None


def garden():
    process = mk.DynamicBayesianNetwork()
    process.add(
        "rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5]
    )
    process.add("wet", states=["no", "yes"], parents=["rain", "wet@-1"],
        p=[[[0.9, 0.1], [0.6, 0.4]], [[0.2, 0.8], [0.1, 0.9]]], initial=[[0.9, 0.1], [0.2, 0.8]])  # fmt: skip
    return process


def test_setting_a_variable_at_every_step_is_setting_it_in_the_unrolled_network():
    process, steps = garden(), 3
    for settings in ({"wet": "yes"}, {"rain": "no"}, {"rain": [0.2, 0.8]}):
        done = process.do(settings)
        wide = process.unroll(steps).do({f"{n}@{t}": v for n, v in settings.items() for t in range(steps)})
        for name in ("rain@2", "wet@2"):
            np.testing.assert_allclose(done.query(name).values, wide.query(name).values, atol=1e-12)
    assert done.filter({"wet": ["yes", "no"]})["rain"][0].shape == (2, 2)
    assert (
        process.query("rain@1", given={"wet@1": "yes"})["yes"]
        > 0.6
        == process.do(wet="yes").query("rain@1")["yes"] + 0.1
    )
    with pytest.raises(UnknownVariable, match="snow"):
        process.do(snow="yes")


def test_numbers_are_set_too():
    process = mk.DynamicBayesianNetwork()
    process.add("level", mk.LinearGaussian(0, {"level@-1": 1}, 0.5), initial=mk.LinearGaussian(0, {}, 10))
    process.add("seen", mk.LinearGaussian(1, {"level": 2}, 1))
    assert process.do(level=3.0).query("seen@2").mean() == pytest.approx(7.0)


def test_names_of_symbols_have_one_word_in_chains_and_hidden_chains():
    assert (
        mk.MarkovChain(np.eye(2), symbols=["a", "b"]).symbols == mk.MarkovChain(np.eye(2), ["a", "b"]).symbols
    )
    with pytest.raises(InvalidArgument, match="give one of them"):
        mk.MarkovChain(np.eye(2), ["a", "b"], symbols=["a", "b"])
    with pytest.raises(UnknownArgument, match="it is durations= here"):
        mk.series.HiddenSemiMarkov(2, duration="poisson")


def test_a_concentration_of_two_is_one_move_of_each_kind_more():
    told = {"labels": [[0, 0, 1]], "sequences": [[0, 0, 1]]}
    counted = mk.HMM(2, transition_prior=2).fit(**told).transmat_
    np.testing.assert_allclose(counted[0], [2 / 4, 2 / 4])  # one stay and one leave seen, one of each added
    np.testing.assert_allclose(
        mk.HMM(2).fit([[0, 0, 0, 1]], labels=[[0, 0, 0, 1]]).transmat_[0], [2 / 3, 1 / 3]
    )
    np.testing.assert_allclose(
        mk.HMM(2, transition_prior=2).fit([[0, 0, 0, 1]], labels=[[0, 0, 0, 1]]).transmat_[0], [3 / 5, 2 / 5]
    )


def test_forecasts_of_a_network_are_tables_with_dates():
    frame = pd.DataFrame(
        {"month": pd.date_range("2024-10-01", periods=3, freq="MS"), "wet": ["yes", "no", "yes"]}
    )
    ahead = garden().forecast(frame, 2)
    table = ahead.to_pandas()
    assert sorted(set(table.index.astype(str))) == ["2025-01-01", "2025-02-01"]
    rain = table[(table["variable"] == "rain") & (table["number"] == "yes")]
    net, seen = garden().unroll(5), {f"wet@{t}": s for t, s in enumerate(frame["wet"])}
    np.testing.assert_allclose(rain["mean"], [net.query(f"rain@{t}", given=seen)["yes"] for t in (3, 4)])
    numbers = mk.DynamicBayesianNetwork()
    numbers.add("level", mk.LinearGaussian(0, {"level@-1": 1}, 0.5), initial=mk.LinearGaussian(0, {}, 10))
    level = numbers.forecast({"level": [1.0, 2.0]}, 2).forecast("level")
    np.testing.assert_allclose(level.upper[0][:, 0], 2.0 + 1.959964 * np.sqrt([0.5, 1.0]), rtol=1e-6)
