"""`decode` of hidden Markov models and dynamic networks by beam search: paths, gaps, and what is refused."""

import numpy as np
import pytest

import markovia as mk


def hidden_chain(seed=0, k=5):
    rng = np.random.default_rng(seed)
    return mk.HMM(
        k, start=rng.dirichlet(np.ones(k)), transition=rng.dirichlet(np.full(k, 0.4), k),
        emission_params={"probs": rng.dirichlet(np.ones(3), k)},
    )  # fmt: skip


def test_a_beam_of_all_states_is_viterbi_and_a_narrow_one_says_how_far_it_can_be():
    model = hidden_chain()
    sequences = [model.sample(n, seed=n)[0] for n in (1, 9, 30)]
    best = model.decode(sequences)
    assert best.gap.tolist() == [0.0] * 3
    for beam in (1, 2, 5, 50):
        found = model.decode(sequences, beam=beam)
        assert np.all(found.log_prob <= best.log_prob + 1e-9)
        assert np.all(best.log_prob <= found.log_prob + found.gap + 1e-9)
        if beam >= 5:
            assert found.gap.tolist() == [0.0] * 3
            assert found.log_prob == pytest.approx(
                best.log_prob, abs=1e-9
            )  # of paths that may differ where two are best


def test_a_beam_that_loses_every_path_is_refused_with_a_cure_and_so_are_other_ways_to_decode():
    # state 0 looks better and leads nowhere
    trap = mk.HMM(3, start=[0.6, 0.4, 0.0], transition=[[1, 0, 0], [0, 0, 1], [0, 0, 1]],
                  emission_params={"probs": [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]})  # fmt: skip
    assert trap.decode([0, 1])[0].tolist() == [1, 2]
    with pytest.raises(mk.errors.Unanswered, match="larger beam="):
        trap.decode([0, 1], beam=1)
    assert trap.decode([0, 1], beam=2).gap.tolist() == [0.0]
    with pytest.raises(mk.errors.MarkoviaError, match="beam="):
        trap.decode([0, 1], beam=0)
    with pytest.raises(mk.errors.InvalidArgument, match="leave out method="):
        trap.decode([0, 1], beam=1, method="max-marginal")


def weather():
    rng = np.random.default_rng(2)
    process = mk.DynamicBayesianNetwork()
    process.add(
        "rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.8, 0.2], [0.3, 0.7]], initial=[0.6, 0.4]
    )
    process.add("wind", states=3, parents=["wind@-1", "rain"], p=rng.dirichlet(np.ones(3), (3, 2)),
                initial=rng.dirichlet(np.ones(3), 2))  # fmt: skip
    process.add(
        "umbrella", states=["no", "yes"], parents=["rain", "wind"], p=rng.dirichlet(np.ones(2), (2, 3))
    )
    return process


def test_dynamic_networks_decode_by_beam_with_gaps_and_likelihoods():
    process = weather()
    seen = {
        "umbrella": ["yes", "no", None, [0.3, 0.9], "no", "no"],
        "rain": [None, "yes", None, None, None, None],
    }
    best = process.decode(seen, lengths=[4, 2])
    found = process.decode(seen, lengths=[4, 2], beam=100)
    assert found.log_prob == pytest.approx(best.log_prob, abs=1e-9)
    assert found.gap.tolist() == [0.0, 0.0] == best.gap.tolist()
    assert found.info.engine == "beam"
    assert found.info.exact
    assert all(a.equals(b) for a, b in zip(found, best, strict=True))


def test_a_process_too_wide_for_joint_states_is_decoded_with_a_bound():
    rng = np.random.default_rng(0)
    wide = mk.DynamicBayesianNetwork()
    for i in range(8):
        parents = [f"x{i}@-1", f"x{(i + 1) % 8}@-1"]
        wide.add(
            f"x{i}",
            states=3,
            parents=parents,
            p=rng.dirichlet(np.ones(3), (3, 3)),
            initial=rng.dirichlet(np.ones(3)),
        )
        wide.add(f"y{i}", states=2, parents=[f"x{i}"], p=rng.dirichlet(np.ones(2), 3))
    seen = {f"y{i}": rng.integers(0, 2, size=4).tolist() for i in range(8)}
    found = wide.decode(seen, beam=20)
    unrolled = wide.unroll(4)
    given = {f"{n}@{t}": s for n, column in seen.items() for t, s in enumerate(column)}
    full = {**given, **{f"x{i}@{t}": int(found[0][f"x{i}"].iloc[t]) for i in range(8) for t in range(4)}}
    assert found.log_prob[0] == pytest.approx(unrolled.log_prob([full])[0], abs=1e-9)
    assert found.log_prob[0] + found.gap[0] >= unrolled.map(given=given, engine="trw-s").log_prob - 1e-9


def test_numbers_are_refused_by_a_beam():
    process = mk.DynamicBayesianNetwork()
    process.add("s", states=2, parents=["s@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.5, 0.5])
    process.add("y", {0: mk.LinearGaussian(0, {}, 1), 1: mk.LinearGaussian(2, {}, 1)}, parents=["s"])
    with pytest.raises(mk.errors.UnsupportedModel, match="leave beam= out"):
        process.decode({"y": [0.1, 2.2]}, beam=3)
