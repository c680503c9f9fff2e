"""Dynamic networks of hidden states and hidden numbers: against the unrolled network, the Kalman filter and particles."""

import numpy as np
import pytest

import markovia as mk

L = mk.LinearGaussian


def drifting():
    """A number that moves as a hidden mode says, a noisy reading of it, and a lamp that tells of the mode."""
    p = mk.DynamicBayesianNetwork()
    p.add("mode", states=["a", "b"], parents=["mode@-1"], p=[[0.9, 0.1], [0.2, 0.8]], initial=[0.6, 0.4])
    p.add("lamp", states=["off", "on"], parents=["mode"], p=[[0.8, 0.2], [0.3, 0.7]])
    moves = {"a": L(0, {"x@-1": 1}, 0.1), "b": L(0.5, {"x@-1": 0.8}, 1.0)}
    p.add("x", moves, parents=["mode", "x@-1"], initial={"a": L(0, {}, 1), "b": L(1, {}, 2)})
    p.add("y", {"a": L(0, {"x": 1}, 0.3), "b": L(0.1, {"x": 1}, 0.6)}, parents=["mode", "x"])
    return p


def looking_back():
    """Two steps back, the mode before among the causes of a number, and a static scale."""
    p = mk.DynamicBayesianNetwork()
    p.add("kind", states=["thin", "thick"], p=[0.3, 0.7], static=True)
    p.add(
        "mode", states=["a", "b"], parents=["mode@-1", "kind"],
        p=[[[0.9, 0.1], [0.4, 0.6]], [[0.2, 0.8], [0.5, 0.5]]], initial=[[0.6, 0.4], [0.1, 0.9]],
    )  # fmt: skip
    later = {"a": L(0, {"x@-1": 0.9, "x@-2": -0.3}, 0.5), "b": L(1, {"x@-1": 0.2, "x@-2": 0.1}, 1.0)}
    p.add(
        "x", later, parents=["mode@-1", "x@-1", "x@-2"],
        initial=[L(0, {}, 1), {"a": L(0.3, {"x@-1": 0.5}, 1), "b": L(1, {"x@-1": 0.1}, 0.2)}],
    )  # fmt: skip
    p.add("y", L(0.2, {"x": 1}, 0.4))
    return p


def wearing():
    """A mode that is never left, so that paths have different numbers of continuations."""
    p = mk.DynamicBayesianNetwork()
    p.add("mode", states=["a", "b"], parents=["mode@-1"], p=[[0.7, 0.3], [0, 1]], initial=[0.9, 0.1])
    p.add("lamp", states=["off", "on"], parents=["mode"], p=[[0.8, 0.2], [0, 1]])
    moves = {"a": L(0, {"x@-1": 1}, 0.1), "b": L(0.5, {"x@-1": 0.8}, 1.0)}
    p.add("x", moves, parents=["mode", "x@-1"], initial=L(0, {}, 1))
    p.add("y", L(0, {"x": 1}, 0.3))
    return p


SEEN = {
    wearing: {"y": [0.1, 0.4, None, 2.0], "lamp": [None, None, "off", None]},
    drifting: {"y": [0.1, 0.4, None, 2.0], "lamp": ["off", None, "on", [0.2, 0.9]]},
    looking_back: {"y": [0.1, None, 1.5, 2.0], "mode": [None, None, None, "b"]},
}


def told(seen, upto):
    """Return evidence about the unrolled network, and which cells are soft."""
    return {
        f"{n}@{t}": v for n, column in seen.items() for t, v in enumerate(column[: upto + 1]) if v is not None
    }


@pytest.mark.parametrize("made", SEEN)
def test_states_and_numbers_are_those_of_the_unrolled_network(made):
    process, seen = made(), SEEN[made]
    network = process.unroll(4)
    shorter = {n: column[:2] for n, column in seen.items()}
    smoothed, filtered = process.smooth([seen, shorter]), process.filter([seen, shorter])
    assert smoothed.info.engine == "all-paths"
    assert smoothed.info.exact
    logs = process.log_prob([seen, shorter])
    for i, (found, upto) in enumerate(((smoothed, None), (filtered, None), (smoothed, 1))):
        which = int(upto == 1)
        for t in range(2 if which else 4):
            given = told(seen, upto if which else (3 if i == 0 else t))
            for name in smoothed:
                if f"{name}@{t}" not in given:
                    law = network.query(f"{name}@{t}", given=given)
                    ours = found[name][which][t]
                    assert [law[s] for s in process.states(name)] == pytest.approx(ours.tolist(), abs=1e-9)
            law = network.query(f"x@{t}", given=given)
            assert law.mean() == pytest.approx(found.mean["x"][which][t], abs=1e-8)
            assert law.sd() ** 2 == pytest.approx(found.var["x"][which][t], abs=1e-8)
    for which, upto in enumerate((3, 1)):
        truth = network.log_evidence(given=told(seen, upto))
        assert logs[which] == pytest.approx(truth, abs=1e-8)
        assert smoothed.log_prob[which] == pytest.approx(truth, abs=1e-8)


def test_forecasts_are_those_of_the_unrolled_network():
    process, seen = drifting(), SEEN[drifting]
    ahead = process.forecast(seen, 2)
    network = process.unroll(6)
    for k, t in enumerate((4, 5)):
        for name in ("x", "y"):
            law = network.query(f"{name}@{t}", given=told(seen, 3))
            assert ahead.mean[name][0][k] == pytest.approx(law.mean(), abs=1e-8)
            assert ahead.var[name][0][k] == pytest.approx(law.sd() ** 2, abs=1e-8)
        lamp = network.query(f"lamp@{t}", given=told(seen, 3))
        assert ahead["lamp"][0][k, 1] == pytest.approx(lamp["on"], abs=1e-9)


@pytest.mark.parametrize(("engine", "most"), [("gpb2", 0.1), ("imm", 0.15), ("rao-blackwell", 0.15)])
def test_approximations_measure_their_error(engine, most):
    process, seen = drifting(), SEEN[drifting]
    for ask in (process.filter, process.smooth):
        exact, rough = ask(seen), ask(seen, engine=engine, **{"seed": 0} if engine == "rao-blackwell" else {})
        gaps = [np.abs(rough[n][0] - exact[n][0]).max() for n in exact]
        gaps += [
            (np.abs(rough.mean[n][0] - exact.mean[n][0]) / np.sqrt(exact.var[n][0] + 1e-300)).max()
            for n in ["x"]
        ]
        assert not rough.info.exact
        assert rough.info.engine == engine
        assert 0 < rough.info.error < most
        assert rough.info.error >= max(gaps) - 1e-9


def test_long_series_are_merged_and_near_what_particles_say():
    process = drifting()
    drawn = process.sample(1, steps=40, seed=3)
    seen = {n: [drawn[f"{n}@{t}"][0] for t in range(40)] for n in ("y", "lamp")}
    found = process.filter(seen)
    assert found.info.engine == "gpb2"
    assert not found.info.exact
    assert found.info.error < 0.05
    drawn = process.filter(seen, engine="particles", particles=20_000, seed=0, targets=["mode", "x"])
    np.testing.assert_allclose(found["mode"][0], drawn["mode"][0], atol=0.03)
    np.testing.assert_allclose(found.mean["x"][0], drawn.mean["x"][0], atol=0.05)
    assert found.log_prob == pytest.approx(drawn.log_prob, abs=0.1)


def test_seen_states_leave_one_path_which_is_exact_however_long():
    process = drifting()
    modes = ["a", "b", "b", "a"] * 15
    seen = {"y": np.sin(np.arange(60)).tolist(), "mode": modes}
    found = process.smooth(seen, targets=["x"])
    assert found.info.exact
    first = [k == "b" for k in modes]
    line = mk.LinearStateSpace(
        transition=[[[0.8 if k else 1.0]] for k in first[1:] + first[:1]],
        transition_offset=[[0.5 if k else 0.0] for k in first[1:] + first[:1]],
        transition_cov=[[[1.0 if k else 0.1]] for k in first[1:] + first[:1]],
        observation=np.ones((60, 1, 1)),
        observation_offset=[[0.1 if k else 0.0] for k in first],
        observation_cov=[[[0.6 if k else 0.3]] for k in first],
        initial_mean=0.0,
        initial_cov=1.0,
    )
    truth = line.smooth(np.array(seen["y"]))
    np.testing.assert_allclose(found.mean["x"][0], truth.mean[0][:, 0], atol=1e-8)
    np.testing.assert_allclose(found.var["x"][0], truth.cov[0][:, 0, 0], atol=1e-8)


def test_the_switching_model_answers_identically():
    process = drifting()
    model = process.state_space()
    assert isinstance(model, mk.SwitchingStateSpace)
    y = [0.1, 0.4, None, 2.0]
    rows = np.array([[np.nan, v if v is not None else np.nan] for v in y])
    found = model.set_params(method="exact").smooth(rows)
    own = process.smooth({"y": y})
    np.testing.assert_allclose(found.mean[0][:, 0], own.mean["x"][0], atol=1e-9)
    np.testing.assert_allclose(found.regimes[0], own["mode"][0], atol=1e-9)
    assert isinstance(_line().state_space(), mk.LinearStateSpace)


def _line():
    p = mk.DynamicBayesianNetwork()
    p.add("x", L(0, {"x@-1": 0.9}, 0.5), initial=L(0, {}, 1))
    p.add("y", L(0, {"x": 1}, 1))
    return p


def test_states_that_change_nothing_leave_the_kalman_filter():
    seen = {"y": np.cos(np.arange(30)).tolist()}
    plain, mixed = _line(), _line()
    mixed.add("coin", states=2, parents=["coin@-1"], p=[[0.5, 0.5], [0.1, 0.9]], initial=[0.5, 0.5])
    mixed.add("z", {0: L(0, {"x": 1}, 1), 1: L(0, {"x": 1}, 2)}, parents=["coin", "x"])
    a, b = plain.smooth(seen), mixed.smooth(seen)
    assert (a.info.engine, b.info.engine) == ("kalman", "gpb2")
    np.testing.assert_allclose(a.mean["x"][0], b.mean["x"][0], atol=1e-9)
    np.testing.assert_allclose(a.var["x"][0], b.var["x"][0], atol=1e-9)
    assert a.log_prob == pytest.approx(b.log_prob, abs=1e-9)


def test_a_state_that_depends_on_a_hidden_number_is_refused_with_a_cure():
    import numpyro.distributions as dist

    p = _line()
    p.add("alarm", lambda x: dist.Bernoulli(logits=x), parents=["x"], states=2)
    with pytest.raises(mk.MarkoviaError, match=r"'x' is a number that was not seen.*particles"):
        p.filter({"alarm": [0, 1, 1]})
    with pytest.raises(mk.MarkoviaError, match="all variables are numbers"):
        _line().filter({"y": [0.0]}, engine="gpb2")


def test_impossible_sequences_are_told_from_others():
    q = mk.DynamicBayesianNetwork()
    q.add("mode", states=["a", "b"], parents=["mode@-1"], p=[[1, 0], [0, 1]], initial=[0.5, 0.5])
    q.add("lamp", states=["off", "on"], parents=["mode"], p=[[1, 0], [0, 1]])
    q.add(
        "x",
        {"a": L(0, {"x@-1": 1}, 1), "b": L(1, {"x@-1": 1}, 1)},
        parents=["mode", "x@-1"],
        initial=L(0, {}, 1),
    )
    q.add("y", L(0, {"x": 1}, 1))
    good, bad = {"y": [0.0, 1.0], "lamp": ["off", "off"]}, {"y": [0.0, 1.0], "lamp": ["off", "on"]}
    logs = q.log_prob([good, bad])
    assert np.isfinite(logs[0])
    assert logs[1] == -np.inf
    with pytest.raises(mk.errors.ImpossibleEvidence, match="sequence 1"):
        q.smooth([good, bad])
