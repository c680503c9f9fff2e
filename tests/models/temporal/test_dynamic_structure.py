import numpy as np
import pandas as pd
import pytest

import markovia as mk


def series(process, n, steps, seed=0):
    wide = process.sample(n, steps=steps, seed=seed)
    return [
        {m: [row[f"{m}@{t}"] for t in range(steps)] for m in process.variables} for _, row in wide.iterrows()
    ]


def true_process():
    process = mk.DynamicBayesianNetwork()
    process.add("a", states=2, parents=["a@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.5, 0.5])
    process.add("b", states=2, parents=["a@-2"], p=[[0.9, 0.1], [0.1, 0.9]], initial=[[0.5, 0.5], [0.5, 0.5]])
    process.add("c", states=2, parents=["b"], p=[[0.8, 0.2], [0.15, 0.85]])
    return process


@pytest.mark.parametrize("options", [{"score": "bic"}, {"method": "pc", "test": "g2", "alpha": 0.001}])
def test_parents_in_earlier_steps_are_found_by_scores_and_tests(options):
    data = series(true_process(), 80, 25)
    found = mk.learn_dynamic_structure(data, order=2, **options)
    skeleton = {frozenset(edge) for edge in found.edges}
    assert skeleton == {frozenset(e) for e in [("a@-1", "a"), ("a@-2", "b"), ("b", "c")]}
    process = found.fit()
    assert process.order == 2
    np.testing.assert_allclose(process.transition["a"].values, [[0.9, 0.1], [0.2, 0.8]], atol=0.05)
    assert found.found.method == options.get("method", "hill-climb")


def test_edges_inside_a_step_can_be_left_out():
    found = mk.learn_dynamic_structure(series(true_process(), 40, 20), order=1, intra=False, score="bic")
    assert all("@-" in parent for parent, _ in found.edges)


def test_numbers_are_learned_as_linear_gaussians():
    rng = np.random.default_rng(1)
    x, y = np.zeros(800), np.zeros(800)
    for t in range(1, 800):
        x[t] = 0.8 * x[t - 1] + rng.normal()
        y[t] = 0.7 * x[t - 1] + rng.normal()
    found = mk.learn_dynamic_structure(pd.DataFrame({"x": x, "y": y}), score="bic")
    assert found.edges == [("x@-1", "x"), ("x@-1", "y")]
    process = found.fit()
    assert process.transition["y"].weights[0] == pytest.approx(0.7, abs=0.1)
    assert np.isfinite(process.log_prob({"x": x[:50], "y": y[:50]})[0])


def test_sequences_that_cannot_be_learned_from_are_refused():
    with pytest.raises(mk.errors.InvalidArgument, match="1 cells are missing"):
        mk.learn_dynamic_structure({"a": [0, 1, None], "b": [0, 1, 1]})
    with pytest.raises(mk.errors.InvalidArgument, match="order= is too large"):
        mk.learn_dynamic_structure([{"a": [0, 1], "b": [1, 1]}], order=2)
