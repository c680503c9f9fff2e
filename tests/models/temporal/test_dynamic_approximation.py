from itertools import product

import numpy as np
import pytest
from scipy.stats import norm

import markovia as mk
from random_processes import random_evidence, random_process


def two_chains(coupling=0.0):
    process = mk.DynamicBayesianNetwork()
    process.add("a", states=2, parents=["a@-1"], p=[[0.9, 0.1], [0.3, 0.7]], initial=[0.5, 0.5])
    c = coupling
    process.add(
        "b",
        states=2,
        parents=["b@-1", "a@-1"],
        p=[[[0.8, 0.2], [0.8 - c, 0.2 + c]], [[0.4, 0.6], [0.4 - c, 0.6 + c]]],
        initial=[0.2, 0.8],
    )
    process.add("y", parents=["a", "b"], p=[[[0.9, 0.1], [0.5, 0.5]], [[0.4, 0.6], [0.1, 0.9]]])
    return process


SEEN = {"y": [1, 0, 1, 1, None, 0, 1]}


def test_one_cluster_of_everything_is_exact():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        process, sizes = random_process(rng, 3, 1 + seed % 2)
        sequences = random_evidence(rng, sizes, [6, 3])
        exact = process.filter(sequences, targets=list(sizes))
        found = process.filter(sequences, targets=list(sizes), engine="boyen-koller", clusters=[list(sizes)])
        np.testing.assert_allclose(found.log_prob, exact.log_prob, atol=1e-9)
        for m in sizes:
            for x, y in zip(found[m], exact[m], strict=True):
                np.testing.assert_allclose(x, y, atol=1e-9)
        assert found.info.error < 1e-9
        assert not found.info.exact


def boyen_koller_by_hand(process, seen):
    """Each step exact from a product of marginals, on two steps of the process."""
    p_a, p_b = np.array([0.5, 0.5]), np.array([0.2, 0.8])
    move_a, move_b = process.transition["a"].values, process.transition["b"].values
    rows = []
    for t, y in enumerate(seen):
        joint = np.einsum("a,b->ab", p_a, p_b)
        if t:
            joint = np.einsum("i,j,ia,jib->ab", p_a, p_b, move_a, move_b)
        if y is not None:
            joint = joint * process.transition["y"].values[:, :, y]
        joint /= joint.sum()
        p_a, p_b = joint.sum(axis=1), joint.sum(axis=0)
        rows.append((p_a, p_b))
    return rows


def test_boyen_koller_projects_onto_its_clusters_after_each_step_and_reports_its_error():
    process = two_chains(0.15)
    found = process.filter(SEEN, engine="boyen-koller", targets=["a", "b"])
    for t, (p_a, p_b) in enumerate(boyen_koller_by_hand(process, SEEN["y"])):
        np.testing.assert_allclose(found["a"][0][t], p_a, atol=1e-12)
        np.testing.assert_allclose(found["b"][0][t], p_b, atol=1e-12)
    exact = process.filter(SEEN, targets=["a", "b"])
    worst = max(np.abs(found[m][0] - exact[m][0]).max() for m in ("a", "b"))
    assert worst > 1e-3
    assert found.info.error == pytest.approx(worst)
    short = process.filter(SEEN, engine="boyen-koller", targets=["a", "b"], window=2)
    assert short.info.error < worst
    assert np.isnan(process.filter(SEEN, engine="boyen-koller", window=0).info.error)


def test_the_factored_frontier_moves_marginals_on_by_single_tables():
    process = two_chains(0.15)
    found = process.filter(SEEN, engine="factored-frontier", targets=["a", "b"])
    p_a, p_b = np.array([0.5, 0.5]), np.array([0.2, 0.8])
    for t, y in enumerate(SEEN["y"]):
        if t:
            p_a, p_b = (
                p_a @ process.transition["a"].values,
                np.einsum("j,i,jib->b", p_b, p_a, process.transition["b"].values),
            )
        if y is not None:
            joint = np.einsum("a,b,ab->ab", p_a, p_b, process.transition["y"].values[:, :, y])
            joint /= joint.sum()
            p_a, p_b = joint.sum(axis=1), joint.sum(axis=0)
        np.testing.assert_allclose(found["a"][0][t], p_a, atol=1e-12)
        np.testing.assert_allclose(found["b"][0][t], p_b, atol=1e-12)
    assert 0 < found.info.error < 0.2


def test_an_approximation_of_a_single_chain_is_exact():
    process = mk.DynamicBayesianNetwork()
    process.add("a", states=2, parents=["a@-1"], p=[[0.9, 0.1], [0.3, 0.7]], initial=[0.5, 0.5])
    process.add("y", parents=["a"], p=[[0.9, 0.1], [0.2, 0.8]])
    exact = process.filter(SEEN)
    for engine in ("boyen-koller", "factored-frontier"):
        found = process.filter(SEEN, engine=engine)
        np.testing.assert_allclose(found["a"][0], exact["a"][0], atol=1e-12)
        assert found.log_prob[0] == pytest.approx(exact.log_prob[0])


def test_particles_come_close_to_the_exact_beliefs():
    process = two_chains(0.15)
    found = process.filter(SEEN, engine="particles", particles=20_000, seed=1)
    exact = process.filter(SEEN)
    assert np.abs(found["b"][0] - exact["b"][0]).max() < 0.02
    assert found.log_prob[0] == pytest.approx(exact.log_prob[0], abs=0.03)
    assert found.info.error < 0.02
    forecast = process.forecast(SEEN, 2, engine="particles", particles=20_000, seed=1)
    assert np.abs(forecast["a"][0] - process.forecast(SEEN, 2)["a"][0]).max() < 0.02


def test_particles_filter_numbers_and_states_mixed():
    process = mk.DynamicBayesianNetwork()
    process.add("level", mk.LinearGaussian(0, {"level@-1": 0.9}, 0.5), initial=mk.LinearGaussian(0, {}, 2))
    process.add("seen", mk.LinearGaussian(0, {"level": 1.0}, 1.0))
    rows = {"seen": [1.0, 1.5, None, 3.0]}
    exact = process.filter(rows)
    found = process.filter(rows, engine="particles", particles=20_000, seed=0)
    assert np.abs(found.mean["level"][0] - exact.mean["level"][0]).max() < 0.05
    assert found.info.error < 0.05
    mixed = mk.DynamicBayesianNetwork()
    mixed.add("k", states=2, parents=["k@-1"], p=[[0.9, 0.1], [0.1, 0.9]], initial=[0.5, 0.5])
    mixed.add(
        "x",
        {0: mk.LinearGaussian(0, {"x@-1": 0.9}, 0.1), 1: mk.LinearGaussian(0, {"x@-1": -0.9}, 0.1)},
        parents=["k"],
        initial=mk.LinearGaussian(0, {}, 1),
    )
    mixed.add("y", mk.LinearGaussian(0, {"x": 1.0}, 0.1))
    drawn = mixed.filter({"y": [1.0, -1.0, 1.0]}, engine="particles", particles=5000, seed=0)
    truth = mixed.unroll(3).query("k@2", given={"y@0": 1.0, "y@1": -1.0, "y@2": 1.0})
    assert drawn["k"][0][2, 1] == pytest.approx(truth[1], abs=0.03)
    exact = mixed.filter({"y": [1.0, -1.0, 1.0]})
    gaps = [np.abs(drawn["k"][0] - exact["k"][0]).max()]
    gaps.append((np.abs(drawn.mean["x"][0] - exact.mean["x"][0]) / np.sqrt(exact.var["x"][0])).max())
    assert 0 < drawn.info.error == pytest.approx(max(gaps))


def path_weight(rows, path):
    """The log density of the next test's process at a path of k."""
    total = np.log([0.6, 0.4][path[0]]) + norm.logpdf(rows["x"][0], 0, 1)
    for t in range(1, len(path)):
        bias, weight, variance = [(0, 0.9, 0.5), (1, -0.9, 0.2)][path[t]]
        total += np.log([[0.9, 0.1], [0.2, 0.8]][path[t - 1]][path[t]])
        total += norm.logpdf(rows["x"][t], bias + weight * rows["x"][t - 1], np.sqrt(variance))
    for k, y in zip(path, rows["y"], strict=True):
        if y is not None:
            total += norm.logpdf(y, [0, 2][k], np.sqrt([1, 0.5][k]))
    return total


def test_numbers_that_were_seen_are_summed_with_exactly():
    process = mk.DynamicBayesianNetwork()
    process.add("k", states=2, parents=["k@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.6, 0.4])
    process.add(
        "x",
        {0: mk.LinearGaussian(0, {"x@-1": 0.9}, 0.5), 1: mk.LinearGaussian(1, {"x@-1": -0.9}, 0.2)},
        parents=["k"],
        initial=mk.LinearGaussian(0, {}, 1),
    )
    process.add("y", {0: mk.LinearGaussian(0, {}, 1), 1: mk.LinearGaussian(2, {}, 0.5)}, parents=["k"])
    rows = {"x": [0.3, 0.5, 1.0, -0.4], "y": [0.1, None, 2.2, 1.5]}
    network = process.unroll(4)
    given = {f"{n}@{t}": v for n, column in rows.items() for t, v in enumerate(column) if v is not None}
    found = process.smooth(rows)
    for t in range(4):
        np.testing.assert_allclose(found["k"][0][t], network.query(f"k@{t}", given=given).values, atol=1e-9)
    assert process.log_prob(rows)[0] == pytest.approx(network.log_evidence(given=given), abs=1e-9)
    scored = {z: path_weight(rows, z) for z in product([0, 1], repeat=4)}
    best = process.decode(rows)
    assert tuple(best[0]["k"]) == max(scored, key=scored.get)
    assert best.log_prob[0] == pytest.approx(max(scored.values()), abs=1e-9)


def test_readings_may_be_functions_that_return_distributions():
    import markovia.distributions as dist

    process = mk.DynamicBayesianNetwork()
    process.add("k", states=2, parents=["k@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.6, 0.4])
    process.add("calls", lambda k: dist.Poisson(3.0 if k == 0 else 8.0))
    counts = [2, 9, None, 7]
    hmm = mk.HMM(
        2, emission="poisson", start=[0.6, 0.4], transition=[[0.9, 0.1], [0.2, 0.8]],
        emission_params={"rates": [[3.0], [8.0]]},
    )  # fmt: skip
    rows = np.array([[2.0], [9.0], [np.nan], [7.0]])
    found = process.smooth({"calls": counts})
    np.testing.assert_allclose(found["k"][0], hmm.smooth([rows])[0], atol=1e-6)
    assert found.log_prob[0] == pytest.approx(hmm.log_prob([rows])[0], abs=1e-5)


def test_bad_settings_are_refused():
    process = two_chains()
    with pytest.raises(mk.errors.InvalidArgument, match="engine="):
        process.filter(SEEN, engine="loopy")
    with pytest.raises(mk.errors.UnknownArgument, match="clusters"):
        process.filter(SEEN, clusters=[["a"]])
    with pytest.raises(mk.errors.InvalidArgument, match="two clusters"):
        process.filter(SEEN, engine="boyen-koller", clusters=[["a", "b"], ["a"]])
    with pytest.raises(mk.errors.UnknownVariable, match="'z'"):
        process.filter(SEEN, engine="boyen-koller", clusters=[["z"]])
    sure = mk.DynamicBayesianNetwork()
    sure.add("a", states=2, parents=["a@-1"], p=[[1.0, 0.0], [0.0, 1.0]], initial=[1.0, 0.0])
    for engine in ("boyen-koller", "factored-frontier", "particles"):
        with pytest.raises(mk.errors.ImpossibleEvidence, match="step 1"):
            sure.filter({"a": [0, 1]}, engine=engine)


def test_smoothing_in_one_cluster_of_everything_is_exact():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        process, sizes = random_process(rng, 3, 1 + seed % 2)
        sequences = random_evidence(rng, sizes, [6, 1, 3])
        exact = process.smooth(sequences, targets=list(sizes))
        found = process.smooth(sequences, targets=list(sizes), engine="boyen-koller", clusters=[list(sizes)])
        np.testing.assert_allclose(found.log_prob, exact.log_prob, atol=1e-9)
        for m in sizes:
            for x, y in zip(found[m], exact[m], strict=True):
                np.testing.assert_allclose(x, y, atol=1e-9)
        assert found.info.error < 1e-9


def test_smoothing_apart_sends_one_factor_a_cluster_back_and_reports_its_error():
    process = two_chains(0.15)
    seen = SEEN["y"]
    forward = boyen_koller_by_hand(process, seen)
    move_a, move_b, show = (process.transition[n].values for n in ("a", "b", "y"))
    found = process.smooth(SEEN, engine="boyen-koller", targets=["a", "b"])
    ahead = np.ones(2), np.ones(2)
    for t in range(len(seen) - 1, 0, -1):
        (p_a, p_b), told = forward[t - 1], np.ones((2, 2)) if seen[t] is None else show[:, :, seen[t]]
        both = np.einsum("i,j,ia,jib,ab,a,b->ijab", p_a, p_b, move_a, move_b, told, *ahead)
        both /= both.sum()
        np.testing.assert_allclose(found["a"][0][t], both.sum(axis=(0, 1, 3)), atol=1e-12)
        np.testing.assert_allclose(found["b"][0][t], both.sum(axis=(0, 1, 2)), atol=1e-12)
        ahead = both.sum(axis=(1, 2, 3)) / p_a, both.sum(axis=(0, 2, 3)) / p_b
    exact = process.smooth(SEEN, targets=["a", "b"])
    worst = max(np.abs(found[m][0] - exact[m][0]).max() for m in ("a", "b"))
    assert 1e-4 < found.info.error == pytest.approx(worst)
    for engine, cure in (("factored-frontier", "boyen-koller"), ("particles", "from_network")):
        with pytest.raises(mk.errors.UnsupportedModel, match=f"does not smooth; .*{cure}"):
            process.smooth(SEEN, engine=engine)
