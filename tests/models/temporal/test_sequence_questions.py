import numpy as np
import pytest
from hypothesis import given as cases
from hypothesis import settings
from hypothesis import strategies as st

from markovia.inference.sequences import interface as interface_module
from markovia.inference.sequences.interface_runs import InterfaceRun, TableRun, pick_run
from markovia.io.pyagrum_interop import to_pyagrum
from random_processes import (
    as_given,
    path_log_prob,
    random_evidence,
    random_process,
    true_belief,
)

RUNS = {"picked": pick_run, "tables": TableRun, "chain": InterfaceRun}


@pytest.fixture(params=RUNS)
def run(request, monkeypatch):
    monkeypatch.setattr(interface_module, "pick_run", RUNS[request.param])
    return request.param


def random_case(seed):
    rng = np.random.default_rng(seed)
    order = int(rng.integers(1, 4))
    process, sizes = random_process(rng, int(rng.integers(1, 4)) if order < 3 else 2, order)
    return process, sizes, random_evidence(rng, sizes, rng.integers(1, 6, size=2))


@pytest.mark.parametrize("seed", range(12))
def test_filtering_and_smoothing_agree_with_the_unrolled_network(seed, run):
    process, sizes, sequences = random_case(seed)
    if run == "chain" and process.unroll(1) and 3 ** (len(sizes) * process.order) > 800:
        pytest.skip("too many joint states for a matrix")
    names = list(sizes)
    filtered = process.filter(sequences, targets=names)
    smoothed = process.smooth(sequences, targets=names)
    for i, sequence in enumerate(sequences):
        steps = len(next(iter(sequence.values())))
        network, given = process.unroll(steps), as_given(sequence)
        evidence = network.log_evidence(given=given)
        for found in (filtered.log_prob, smoothed.log_prob, process.log_prob(sequences)):
            assert found[i] == pytest.approx(evidence, abs=1e-9)
        for m in names:
            for t in range(steps):
                past = {n: v for n, v in given.items() if int(n.rpartition("@")[2]) <= t}
                for found, known in ((smoothed, given), (filtered, past)):
                    expected = true_belief(network, sizes, m, t, known)
                    np.testing.assert_allclose(found[m][i][t], expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_the_decoded_path_is_the_most_probable_explanation_of_the_unrolled_network(seed, run):
    process, sizes, sequences = random_case(seed)
    if run == "chain" and 3 ** (len(sizes) * process.order) > 800:
        pytest.skip("too many joint states for a matrix")
    best = process.decode(sequences)
    for i, sequence in enumerate(sequences):
        network, given = process.unroll(len(best[i])), as_given(sequence)
        ours = path_log_prob(network, best[i], given)
        assert ours == pytest.approx(best.log_prob[i], abs=1e-9)
        soft = {n: v for n, v in given.items() if isinstance(v, list)}
        theirs = {**network.map(given=given), **{n: v for n, v in given.items() if n not in soft}}
        row = {n: [theirs[n]] for n in network.variables}
        weight = float(network.log_prob(row)[0]) + sum(np.log(v[theirs[n]]) for n, v in soft.items())
        assert ours >= weight - 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_smoothing_with_checkpoints_answers_the_same(seed, run):
    rng = np.random.default_rng(seed)
    process, sizes = random_process(rng, 2, 1 + seed % 2)
    sequences = random_evidence(rng, sizes, [23, 1, 40])
    expected = process.smooth(sequences, targets=list(sizes))
    tight = 8.0 * np.prod(list(sizes.values())) ** (process.order + 1)
    found = process.smooth(sequences, targets=list(sizes), memory=tight)
    assert "messages kept" in found.info.note
    np.testing.assert_allclose(found.log_prob, expected.log_prob, rtol=0, atol=1e-9)
    for m in sizes:
        for a, b in zip(found[m], expected[m], strict=True):
            np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)
    small = process.filter(sequences, targets=list(sizes), memory=tight)
    for a, b in zip(small["v0"], process.filter(sequences, targets=["v0"])["v0"], strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-9)


@settings(max_examples=20, deadline=None)
@cases(st.integers(0, 10_000))
def test_forecasts_agree_with_the_unrolled_network(seed):
    rng = np.random.default_rng(seed)
    process, sizes = random_process(rng, 2, 1 + seed % 2)
    (sequence,) = random_evidence(rng, sizes, [int(rng.integers(1, 4))])
    length = len(next(iter(sequence.values())))
    ahead = process.forecast(sequence, 3)
    network, given = process.unroll(length + 3), as_given(sequence)
    for m in sizes:
        for j in range(3):
            expected = network.query(f"{m}@{length + j}", given=given).values
            np.testing.assert_allclose(ahead[m][0][j], expected, rtol=0, atol=1e-9)
    prior = process.forecast(steps=2)["v0"][0]
    np.testing.assert_allclose(prior[1], network.query("v0@1").values, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_smoothing_agrees_with_pyagrum_on_the_unrolled_network(seed):
    gum = pytest.importorskip("pyagrum")
    rng = np.random.default_rng(seed)
    process, sizes = random_process(rng, 3, 1)
    (sequence,) = random_evidence(rng, sizes, [6], soft=False)
    theirs = gum.LazyPropagation(to_pyagrum(process.unroll(6)))
    theirs.setEvidence({n: str(v) for n, v in as_given(sequence).items()})
    theirs.makeInference()
    found = process.smooth(sequence, targets=list(sizes))
    for m in sizes:
        for t in range(6):
            np.testing.assert_allclose(found[m][0][t], theirs.posterior(f"{m}@{t}").toarray(), atol=1e-9)
