"""Rows of data about Gaussian and mixed networks: densities, predictions, moments."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

import markovia as mk
from gaussian_references import enumerated, random_network, seeds, total


def with_gaps(frame, rng, share):
    return frame.astype(object).mask(rng.random(frame.shape) < share, None)


def cells(row):
    return {n: v for n, v in row.items() if v is not None and v == v}


@settings(max_examples=25, deadline=None)
@given(seeds)
def test_rows_with_missing_cells_agree_with_enumeration(seed):
    rng = np.random.default_rng(seed)
    network = random_network(rng, int(rng.integers(1, 5)), int(rng.integers(0, 4)))
    frame = with_gaps(network.sample(6, seed=rng), rng, 0.3)
    frame = pd.concat([frame, frame], ignore_index=True)  # patterns that occur more than once
    logs = network.log_prob(frame)
    target = str(rng.choice(network.variables))
    predicted = network.predict(frame, target)
    for k, row in enumerate(frame.to_dict("records")):
        found = enumerated(network, cells(row))
        log_mass, _ = total(found)
        assert logs[k] == pytest.approx(log_mass, rel=1e-8, abs=1e-7)
        rest = cells({n: v for n, v in row.items() if n != target})
        found = enumerated(network, rest)
        _, weights = total(found)
        if target[0] == "x":
            at = found[0][2].index(target)
            mean = sum(w * f[3][at] for w, f in zip(weights, found, strict=True))
            assert predicted[k] == pytest.approx(mean, rel=1e-7, abs=1e-7)
        else:
            p = {
                s: sum(w for w, f in zip(weights, found, strict=True) if f[0][target] == s)
                for s in network.states(target)
            }
            assert p[predicted[k]] == pytest.approx(max(p.values()), abs=1e-9)
            proba = network.predict_proba(frame, target)
            np.testing.assert_allclose(proba.loc[k].to_numpy(float), list(p.values()), atol=1e-8)


def test_complete_rows_are_the_sum_of_their_nodes_and_extra_columns_are_left_aside():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    rows = pd.DataFrame({"d": ["a", "b"], "x": [1.0, 2.0], "other": [0, 0]})
    with pytest.warns(mk.errors.IgnoredColumnWarning):
        logs = m.log_prob(rows)
    expected = [np.log(0.4) - 0.5 * np.log(2 * np.pi) - 0.5, np.log(0.6) - 0.5 * np.log(4 * np.pi) - 0.25]
    np.testing.assert_allclose(logs, expected, atol=1e-12)
    np.testing.assert_allclose(m.log_evidence(rows[["d", "x"]]), expected, atol=1e-12)


def test_marginals_of_rows_are_frames_of_states_or_moments():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    found = m.marginals(given=pd.DataFrame({"d": ["a", None], "x": [None, 2.0]}, index=["p", "q"]))
    assert found["d"].loc["p"].tolist() == [1.0, 0.0]
    assert found["d"].loc["q", "a"] == pytest.approx(m.query("d", given={"x": 2.0})["a"])
    assert found["x"].loc["p"].tolist() == pytest.approx([0.0, 1.0])
    assert found["x"].loc["q"].tolist() == [2.0, 0.0]


def test_the_spread_of_a_number_counts_what_its_states_leave_open():
    m = mixed()
    found = m.marginals(pd.DataFrame({"y": [1.0, 4.0, 7.5]}), ["x"])["x"]
    for k, y in enumerate([1.0, 4.0, 7.5]):
        p = m.query("x", given={"y": y})
        assert found.loc[k].tolist() == pytest.approx([p.mean(), p.sd()], abs=1e-9)


def test_an_impossible_row_is_named_or_left_out():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 1.0, "b": 0.0})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    rows = pd.DataFrame({"d": ["a", "b"]}, index=["p", "q"])
    with pytest.raises(mk.errors.ImpossibleEvidence, match="row 'q'"):
        m.predict(rows, "x")
    assert np.isnan(m.predict(rows, "x", impossible="nan")["q"])
    assert m.predict(rows, "x", impossible="prior").tolist() == [0.0, 0.0]
    assert m.log_prob(rows).tolist() == [0.0, -np.inf]


def test_cells_that_are_no_numbers_are_refused():
    m = mk.BayesianNetwork()
    m.add("x", mk.LinearGaussian())
    with pytest.raises(mk.MarkoviaError, match="'x' has cells that are not numbers"):
        m.log_prob({"x": ["high", "low"]})
    with pytest.raises(mk.MarkoviaError, match="infinite cell"):
        m.log_prob({"x": [np.inf]})
    assert np.isfinite(m.log_prob(pd.DataFrame({"x": pd.array([1, None], dtype="Int64")}))).all()


def test_building_a_large_network_is_linear():
    m = mk.BayesianNetwork()
    for k in range(3000):
        m.add(f"x{k}", mk.LinearGaussian(0, {f"x{k - 1}": 1.0} if k else {}, 1))
    assert m._functions is False


def mixed():
    m = mk.BayesianNetwork()
    m.add("d", {"a": 0.4, "b": 0.6})
    m.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    m.add("y", mk.LinearGaussian(1, {"x": 2}, 0.5))
    return m


def test_the_likelihood_of_rows_is_a_sum_over_nodes_and_over_rows():
    m = mixed()
    rows = m.sample(20, seed=0)
    by_node = m.log_likelihood(rows, by="family")
    assert list(by_node.index) == ["d", "x", "y"]
    assert by_node.sum() == pytest.approx(m.log_likelihood(rows))
    np.testing.assert_allclose(m.log_likelihood(rows, by="row"), m.log_prob(rows))
    assert m.score(rows) == pytest.approx(m.log_prob(rows).mean())
    weighted = rows.assign(w=np.arange(20))
    assert m.log_likelihood(weighted, weights="w") == pytest.approx(m.log_prob(rows) @ np.arange(20))
    assert m.score(weighted, weights="w") == pytest.approx(m.log_prob(rows) @ np.arange(20) / 190)
    with pytest.raises(mk.MarkoviaError, match="'y' misses cells"):
        m.log_likelihood(rows[["d", "x"]], by="family")


def test_missing_cells_are_filled_with_the_best_the_mean_or_a_draw():
    m = mixed()
    rows = pd.DataFrame({"d": ["a", None, "b"], "x": [0.3, 2.9, None], "other": [1, 2, 3]})
    best = m.impute(rows)
    assert list(best.columns) == ["d", "x", "other", "y"]
    assert best["x"].tolist()[:2] == [0.3, 2.9]
    assert best["y"].tolist() == pytest.approx([1.6, 6.8, 7.0])
    assert best["d"].tolist() == ["a", "b", "b"]
    mode = m.impute(rows, "mode")
    assert mode["x"][2] == pytest.approx(m.query("x", given={"d": "b"}).mean())
    pd.testing.assert_frame_equal(m.impute(rows, "sample", seed=0), m.impute(rows, "sample", seed=0))
    many = pd.DataFrame({"d": ["b"] * 4000})
    drawn = m.impute(many, "sample", seed=1)
    assert drawn["x"].mean() == pytest.approx(3.0, abs=4 * np.sqrt(2 / 4000))
    assert np.corrcoef(drawn["x"], drawn["y"])[0, 1] == pytest.approx(2 * 2 / np.sqrt(2 * 8.5), abs=0.02)
