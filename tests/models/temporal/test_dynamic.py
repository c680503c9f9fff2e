import numpy as np
import pandas as pd
import pytest

import markovia as mk


def umbrella():
    first = mk.BayesianNetwork()
    first.add("rain", states=["no", "yes"], p=[0.5, 0.5])
    first.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    later = mk.BayesianNetwork()
    later.add("rain@-1", states=["no", "yes"])
    later.add("rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]])
    later.add("umbrella", states=["no", "yes"], parents=["rain"], p=[[0.8, 0.2], [0.1, 0.9]])
    return mk.DynamicBayesianNetwork(first, later)


def test_unrolling_gives_the_explicit_graph():
    network = umbrella().unroll(4)
    expected = [(f"rain@{t}", f"rain@{t + 1}") for t in range(3)] + [
        (f"rain@{t}", f"umbrella@{t}") for t in range(4)
    ]
    assert set(network.edges) == set(expected)


def test_filtering_agrees_with_the_forward_recursion():
    network = umbrella().unroll(6)
    transition, emission = np.array([[0.7, 0.3], [0.3, 0.7]]), np.array([[0.8, 0.2], [0.1, 0.9]])
    seen = [1, 1, 0, 1, 1]
    belief = np.array([0.5, 0.5])
    for t, u in enumerate(seen):
        if t:
            belief = belief @ transition
        belief = belief * emission[:, u]
        belief /= belief.sum()
    given = {f"umbrella@{t}": ["no", "yes"][u] for t, u in enumerate(seen)}
    np.testing.assert_allclose(network.query("rain@4", given=given).values, belief, atol=1e-12)
    np.testing.assert_allclose(network.query("rain@5", given=given).values, belief @ transition, atol=1e-12)


def test_draws_from_the_unrolled_network_follow_the_chain():
    rows = umbrella().unroll(3).sample(40_000, seed=0)
    stay = (rows["rain@1"] == rows["rain@2"]).mean()
    assert abs(stay - 0.7) < 4.5 * np.sqrt(0.21 / 40_000)


def test_mismatched_networks_are_refused():
    process = umbrella()
    other = process.transition.copy()
    other.rename("umbrella", "coat")
    with pytest.raises(mk.errors.InvalidGraph, match="same variables"):
        mk.DynamicBayesianNetwork(process.initial, other)
    with pytest.raises(mk.errors.InvalidArgument, match="steps= is a whole number, 1 or more, not 0"):
        process.unroll(0)
    states = process.transition.copy()
    states.rename_states("rain@-1", ["dry", "wet"])
    with pytest.raises(mk.errors.InvalidTable, match="step 0"):
        mk.DynamicBayesianNetwork(process.initial, states)


def weather():
    first = mk.BayesianNetwork("rain->wet", states={"rain": ["no", "yes"], "wet": [False, True]})
    first.replace("rain", p=[0.6, 0.4])
    first.replace("wet", p=[[0.9, 0.1], [0.2, 0.8]])
    later = mk.BayesianNetwork(
        "rain@-1->rain->wet", states={n: ["no", "yes"] for n in ("rain@-1", "rain")} | {"wet": [False, True]}
    )
    later.replace("rain", p=[[0.8, 0.2], [0.3, 0.7]])
    later.replace("wet", p=[[0.95, 0.05], [0.25, 0.75]])
    return mk.DynamicBayesianNetwork(first, later)


def test_a_question_about_steps_is_answered_by_the_unrolled_network():
    process = weather()
    seen = {"wet@0": True, "wet@2": False}
    for targets in ("rain@1", "rain@4", ["rain@0", "rain@2"]):
        ours = process.query(targets, given=seen)
        theirs = process.unroll(5).query(targets, given=seen)
        assert np.allclose(ours.values, theirs.values, rtol=0, atol=1e-12)
    forward = np.array([0.6, 0.4]) @ np.array([[0.8, 0.2], [0.3, 0.7]])
    assert np.allclose(process.query("rain@1").values, forward, rtol=0, atol=1e-12)
    with pytest.raises(mk.errors.InvalidArgument, match="say at which step: 'rain@0'"):
        process.query("rain")
    with pytest.raises(mk.errors.UnknownVariable, match="did you mean 'rain@0'"):
        process.query("ran@1")
    with pytest.raises(mk.errors.UnknownVariable):
        process.query("rain@-1")


def test_sequences_are_drawn_a_row_each():
    process = weather()
    frame = process.sample(4000, steps=3, seed=1)
    assert list(frame) == [f"{n}@{t}" for t in range(3) for n in ("rain", "wet")]
    share = (frame["rain@2"] == "yes").mean()
    assert abs(share - process.query("rain@2")["yes"]) < 4 * np.sqrt(0.25 / 4000)
    assert (process.sample(20, steps=2, given={"rain@1": "yes"}, seed=1)["rain@1"] == "yes").all()
    with pytest.raises(mk.errors.InvalidArgument, match="say steps=5"):
        process.sample(2, steps=2, given={"rain@4": "yes"})


def test_a_process_is_saved_and_loaded(tmp_path):
    process = weather()
    process.save(tmp_path / "weather.json.gz")
    again = mk.load(tmp_path / "weather.json.gz", kind=mk.DynamicBayesianNetwork)
    assert again.initial.allclose(process.initial)
    assert again.unroll(3).allclose(process.unroll(3))
    assert again.transition.states("wet") == [False, True]
    with pytest.raises(
        mk.errors.UnsupportedModel, match=r"save it as \.json, or what its unroll\(steps\) returns"
    ):
        process.save(tmp_path / "weather.bif")
    text = mk.io.dumps(process, "json").replace('"rain@-1"', '"snow@-1"')
    with pytest.raises(mk.errors.ParseError, match=r"\$\.transition"):
        mk.io.loads(text, "json")


def test_a_process_is_drawn_over_its_steps():
    axes = weather().plot(3, title="weather")
    shown = [text.get_text() for text in axes.texts]
    assert shown.count("rain") == shown.count("wet") == 3
    assert {"step 0", "step 2"} <= set(shown)
    assert axes.get_title() == "weather"


def test_an_edit_of_either_network_drops_the_record_of_the_fit():
    process = weather()
    assert process.fit_ is None
    process.fit([{"rain": ["no", "yes", "yes"], "wet": [False, True, True]}], prior="laplace")
    assert process.fit_ is not None
    process.transition.fill("uniform")
    assert process.fit_ is None


def test_frames_in_the_order_of_their_dates_are_sequences_with_ids_or_in_a_list():
    process, seen = umbrella(), [["yes", "yes", "no"], ["no", "yes"]]
    plain = [{"umbrella": one} for one in seen]
    frames = [
        pd.DataFrame({"umbrella": one, "day": pd.date_range("2024-01-01", periods=len(one))})[::-1]
        for one in seen
    ]
    whole = pd.concat([frame.assign(who=i) for i, frame in enumerate(frames)])
    wanted = process.log_prob(plain)
    np.testing.assert_allclose(process.log_prob(frames), wanted)
    np.testing.assert_allclose(process.log_prob(whole, by="who"), wanted)
    for one, other in zip(process.filter(frames)["rain"], process.filter(plain)["rain"], strict=True):
        np.testing.assert_allclose(one, other)
