from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from random_processes import random_process


def laid_out(sequences, steps, names):
    return pd.DataFrame(
        [{f"{n}@{t}": s.get(n, [None] * steps)[t] for n in names for t in range(steps)} for s in sequences]
    )


def draw(process, n, steps, hide, seed):
    rng = np.random.default_rng(seed)
    wide = process.sample(n, steps=steps, seed=seed)
    return [
        {
            m: [None if rng.random() < hide.get(m, 0.0) else int(row[f"{m}@{t}"]) for t in range(steps)]
            for m in process.variables
        }
        for _, row in wide.iterrows()
    ]


@pytest.mark.parametrize(("seed", "order"), [(0, 1), (1, 1), (3, 2)])
def test_em_with_hidden_cells_reaches_what_the_unrolled_network_with_shared_tables_reaches(seed, order):
    rng = np.random.default_rng(seed)
    process, sizes = random_process(rng, 2, order)
    sequences = draw(process, 30, 5, {"v0": 0.3, "v1": 0.2}, seed)
    start, _ = random_process(np.random.default_rng(seed), 2, order)
    settings = mk.EM(start="current", tolerance=1e-11, max_iterations=3000)
    network = start.unroll(5)
    shared = [[f"{m}@{t}" for t in range(order, 5)] for m in sizes]
    table = laid_out(sequences, 5, sizes)
    network.fit(table, tied=shared, missing=settings)
    ours = start.copy().fit(sequences, missing=settings)
    assert ours.fit_.log_likelihood == pytest.approx(network.fit_.log_likelihood, abs=1e-4)
    assert ours.log_prob(sequences).sum() == pytest.approx(ours.fit_.log_likelihood, abs=1e-8)
    for m in sizes:
        np.testing.assert_allclose(ours.transition[m].values, network[f"{m}@4"].values, atol=2e-3)
    history = ours.fit_.history
    assert all(b >= a - 1e-8 for a, b in pairwise(history))


def test_a_hidden_chain_is_learned_as_baum_welch_learns_it():
    start = np.array([0.6, 0.4])
    move, emit = np.array([[0.7, 0.3], [0.2, 0.8]]), np.array([[0.6, 0.3, 0.1], [0.1, 0.3, 0.6]])
    true = mk.HMM(2, emission="categorical", start=start, transition=move, emission_params={"probs": emit})
    process = true.network()
    sequences = [{"x": s["x"]} for s in draw(process, 8, 40, {}, 0)]
    hmm = mk.HMM(
        2, emission="categorical", start=start, transition=move, emission_params={"probs": emit},
        init="keep", max_iter=2000, tol=1e-9,
    ).fit([np.array(s["x"]) for s in sequences])  # fmt: skip
    em = mk.EM(start="current", tolerance=1e-12, max_iterations=4000)
    learned = process.fit(sequences, tied="x", missing=em)
    assert learned.fit_.details["hidden"] == ["z"]
    assert learned.fit_.log_likelihood == pytest.approx(
        hmm.log_prob([np.array(s["x"]) for s in sequences]).sum(), abs=1e-3
    )
    np.testing.assert_allclose(learned.transition["z"].values, hmm.transmat_, atol=5e-3)


def test_an_hmm_with_gaussian_emissions_and_its_dynamic_network_answer_alike():
    hmm = mk.HMM(
        2, emission="gaussian", start=[0.6, 0.4], transition=[[0.9, 0.1], [0.3, 0.7]],
        emission_params={"means": [[0, 1], [2, -1]], "covariances": [[[1, 0.3], [0.3, 1]], [[0.5, 0], [0, 2]]]},
    )  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(12, 2))
    process = hmm.network()
    seen = {"x_0": rows[:, 0], "x_1": rows[:, 1]}
    assert process.log_prob(seen)[0] == pytest.approx(hmm.log_prob([rows])[0], abs=1e-9)
    np.testing.assert_allclose(process.smooth(seen)["z"][0], hmm.smooth([rows])[0], atol=1e-9)
    assert process.decode(seen)[0]["z"].tolist() == hmm.decode([rows])[0].tolist()


def test_the_record_names_what_the_data_had_nothing_to_say_about():
    process = mk.DynamicBayesianNetwork()
    process.add("x", states=["a", "b", "c"], parents=["x@-1"])
    process.add("y", states=2, parents=["x"])
    process.fit([{"x": ["a", "b", "a"], "y": [0, None, 1]}, {"x": ["b", "b"], "y": [None, None]}])
    record = process.fit_
    assert record.method == "em"
    assert record.details["missing_steps"] == {"y": 3}
    assert record.unseen_rows == {"x": 1, "y@0": 2, "y": 2}
    assert record.missing_cells == 3


def test_hidden_variables_are_learned_with_priors_and_restarts():
    true = mk.HMM(
        2, emission="categorical", start=[0.5, 0.5], transition=[[0.95, 0.05], [0.1, 0.9]],
        emission_params={"probs": [[0.9, 0.1], [0.2, 0.8]]},
    ).network()  # fmt: skip
    sequences = [{"x": s["x"]} for s in draw(true, 10, 60, {}, 1)]
    process = mk.DynamicBayesianNetwork()
    process.add("z", states=2, parents=["z@-1"])
    process.add("x", states=2, parents=["z"])
    process.fit(sequences, tied="x", prior="laplace", missing=mk.EM(restarts=4, seed=0))
    truth = true.log_prob(sequences).sum()
    assert process.log_prob(sequences).sum() > truth - 3
    assert len(process.fit_.details["restarts"]) == 4


def test_fixed_tables_stay_and_a_failed_fit_changes_nothing():
    process, sizes = random_process(np.random.default_rng(5), 2, 1)
    sequences = draw(process, 10, 4, {"v0": 0.3}, 0)
    before = process.transition["v0"]
    process.fit(sequences, fixed="v0")
    assert process.transition["v0"] is before
    values = process.transition["v1"].values.copy()
    with pytest.raises(mk.errors.InvalidArgument, match="cells of the sequences are missing"):
        process.fit(sequences, missing="error")
    with pytest.raises(mk.errors.UnknownVariable):
        process.fit(sequences, fixed="nobody")
    np.testing.assert_array_equal(process.transition["v1"].values, values)
    assert len(sizes) == 2


def test_linear_gaussians_are_learned_from_complete_sequences():
    process = mk.DynamicBayesianNetwork()
    process.add("x", mk.LinearGaussian(0.5, {"x@-1": 0.8}, 0.3), initial=mk.LinearGaussian(1, {}, 2))
    wide = process.sample(200, steps=6, seed=0)
    sequences = [{"x": row.tolist()} for row in wide.to_numpy()]
    fitted = process.copy().fit(sequences)
    assert fitted.transition["x"].weights[0] == pytest.approx(0.8, abs=0.05)
    assert float(fitted.initial["x"].bias) == pytest.approx(wide["x@0"].mean())
    assert fitted.fit_.log_likelihood == pytest.approx(fitted.log_prob(sequences).sum(), rel=1e-9)
    one = process.copy().fit(sequences[:1])
    assert one.fit_.details["kept"] == ["step 0"]
    with pytest.raises(mk.errors.UnsupportedModel, match="'x' is hidden at 1 steps"):
        process.fit([{"x": [1.0, None, 2.0]}])


@pytest.mark.parametrize("order", [1, 2])
def test_linear_gaussian_processes_answer_as_their_unrolled_networks(order):
    process = mk.DynamicBayesianNetwork()
    if order == 1:
        process.add("a", mk.LinearGaussian(0.3, {"a@-1": 0.6}, 0.5), initial=mk.LinearGaussian(1, {}, 2))
    else:
        first = [mk.LinearGaussian(1, {}, 2), mk.LinearGaussian(0.1, {"a@-1": 0.9}, 1.0)]
        process.add("a", mk.LinearGaussian(0.3, {"a@-1": 0.6, "a@-2": 0.2}, 0.5), initial=first)
    process.add(
        "b",
        mk.LinearGaussian(-0.2, {"a": 1.5, "b@-1": 0.3}, 0.7),
        initial=mk.LinearGaussian(0, {"a": 1.0}, 1),
    )
    rows = {"b": [1.0, None, 2.0, 0.5, None], "a": [None, None, 0.4, None, None]}
    network = process.unroll(5)
    given = {f"{n}@{t}": v for n, column in rows.items() for t, v in enumerate(column) if v is not None}
    smoothed, filtered = process.smooth(rows), process.filter(rows)
    assert process.log_prob(rows)[0] == pytest.approx(network.log_evidence(given=given), abs=1e-9)
    for t in (0, 1, 3, 4):
        past = {n: v for n, v in given.items() if int(n[-1]) <= t}
        for found, known in ((smoothed, given), (filtered, past)):
            truth = network.query(f"a@{t}", given=known)
            assert found.mean["a"][0][t] == pytest.approx(truth.mean(), abs=1e-9)
            assert found.var["a"][0][t] == pytest.approx(truth.sd() ** 2, abs=1e-9)
    ahead = process.forecast(rows, 2)
    longer = process.unroll(7).query("b@6", given=given)
    assert ahead.mean["b"][0][1] == pytest.approx(longer.mean(), abs=1e-9)
    if order == 1:
        assert process.state_space().log_prob(
            [np.array([[v if v is not None else np.nan for v in rows[n]] for n in ("a", "b")]).T]
        )[0] == pytest.approx(process.log_prob(rows)[0])
    with pytest.raises(mk.errors.InvalidArgument, match="use smooth"):
        process.decode(rows)
