"""The numbers of the bundled causal stories, and what each is there to teach."""

import numpy as np
import pytest

import markovia as mk

EXAMPLES = mk.causal.examples


def test_kidney_stones_reverse_between_seeing_and_doing():
    bn = EXAMPLES.simpson()
    seen = [bn.query("recovered", given={"treatment": t})["yes"] for t in "AB"]
    done = [bn.do(treatment=t).query("recovered")["yes"] for t in "AB"]
    assert seen == pytest.approx([0.78, 289 / 350])
    assert [round(p, 4) for p in done] == [0.8325, 0.7789]
    for stone in ("small", "large"):
        a, b = (bn.query("recovered", given={"treatment": t, "stone": stone})["yes"] for t in "AB")
        assert a > b


def test_fame_opposes_its_independent_causes():
    bn = EXAMPLES.berkson()
    assert bn.independent("talent", "looks")
    assert bn.query("talent", given={"looks": "yes"})["yes"] == pytest.approx(0.1)
    famous = [bn.query("talent", given={"famous": "yes", "looks": s})["yes"] for s in ("no", "yes")]
    assert famous == pytest.approx([1.0, 0.08 / 0.53])


def test_adjusting_for_the_middle_of_an_m_is_a_mistake():
    bn = EXAMPLES.m_bias()
    truth = [bn.do(treatment=t).query("outcome")[1] for t in (0, 1)]
    seen = [bn.query("outcome", given={"treatment": t})[1] for t in (0, 1)]
    assert seen == pytest.approx(truth)
    assert truth[1] - truth[0] == pytest.approx(0.2)
    before = bn.query("before").values
    adjusted = [
        sum(before[b] * bn.query("outcome", given={"treatment": t, "before": b})[1] for b in (0, 1))
        for t in (0, 1)
    ]
    assert adjusted[1] - adjusted[0] < 0.2 - 0.02


def test_smoking_through_the_front_door():
    bn = EXAMPLES.front_door()
    assert [bn.do(smoking=s).query("cancer")[1] for s in (0, 1)] == pytest.approx([0.29, 0.61])
    assert [bn.query("cancer", given={"smoking": s})[1] for s in (0, 1)] == pytest.approx([0.20, 0.70])


def test_the_instrument_finds_the_slope_that_regression_misses():
    m = EXAMPLES.instrument()
    s = m.query(["tax", "price", "demand"]).covariance(["tax", "price", "demand"])
    assert s[1, 2] / s[1, 1] == pytest.approx(-0.4)
    assert s[0, 2] / s[0, 1] == pytest.approx(-2.0)
    assert m.do(price=1).query("demand").mean() - m.do(price=0).query("demand").mean() == pytest.approx(-2.0)


def test_the_bus_moves_nobody():
    bn = EXAMPLES.bus()
    assert bn.query("leaves", given={"bus": "early"})["early"] == pytest.approx(0.9 * 0.95 + 0.1 * 0.05)
    assert bn.do(bus="early").query("leaves").allclose(bn.query("leaves"))


def test_ice_cream_makes_no_weather():
    bn = EXAMPLES.ice_cream()
    assert bn.query("weather", given={"ice_cream": "much"})["hot"] == pytest.approx(0.75)
    assert bn.do(ice_cream="much").query("weather")["hot"] == pytest.approx(0.4)


def test_yellow_fingers_on_three_rungs():
    m = EXAMPLES.yellow_fingers()
    assert m.query("cough", given={"fingers": "yellow"})["yes"] == pytest.approx(0.223 / 0.34)
    assert m.do(fingers="yellow").query("cough")["yes"] == pytest.approx(0.28 + 0.03)
    george = m.counterfactual("cough", given={"fingers": "clean", "cough": "yes"}, do={"fingers": "yellow"})
    assert george["yes"] == pytest.approx(1.0)
    quit_ = m.counterfactual("cough", given={"smoking": "yes", "cough": "yes"}, do={"smoking": "no"})
    assert quit_["yes"] == pytest.approx(0.125)


def test_who_switches_doors_wins_two_of_three_games():
    bn = EXAMPLES.monty_hall()
    assert bn.query("car", given={"choice": 1, "opened": 3})[2] == pytest.approx(2 / 3)
    assert bn.independent("car", "choice")
    assert not bn.independent("car", "choice", given="opened")


def test_the_college_selects_abler_women():
    bn = EXAMPLES.college()
    assert bn.independent("gender", "ability")
    high = [bn.query("ability", given={"gender": g, "admitted": "yes"})["high"] for g in ("woman", "man")]
    assert high == pytest.approx([0.18 / 0.25, 0.24 / 0.45])


def test_lost_planes_were_hit_where_survivors_were_not():
    bn = EXAMPLES.survivorship()
    home, lost = (bn.query("hit", given={"home": s}) for s in ("yes", "no"))
    assert home["engine"] == pytest.approx(0.08 / 0.82)
    assert lost["engine"] == pytest.approx(0.12 / 0.18)
    assert min(home["fuselage"], home["wings"]) > home["engine"]


def test_exercise_lowers_cholesterol_at_any_age_and_seems_to_raise_it():
    m = EXAMPLES.cholesterol()
    s = m.query(["exercise", "cholesterol"]).covariance(["exercise", "cholesterol"])
    assert s[0, 1] / s[0, 0] == pytest.approx(0.6)
    effect = m.do(exercise=6).query("cholesterol").mean() - m.do(exercise=5).query("cholesterol").mean()
    assert effect == pytest.approx(-1.0)
    frame = m.sample(4000, seed=0)
    at_age = np.linalg.lstsq(
        np.column_stack([frame["exercise"], frame["age"], np.ones(4000)]), frame["cholesterol"]
    )[0]
    assert at_age[0] == pytest.approx(-1.0, abs=4 * 5 / np.sqrt(4000))


@pytest.mark.parametrize("name", EXAMPLES.__all__)
def test_each_story_is_a_fresh_model_with_a_graph_and_a_lesson(name):
    build = getattr(EXAMPLES, name)
    one, two = build(), build()
    assert one is not two
    assert len(one.graph.nodes) == len(one.variables) > 1
    assert len(build.__doc__) > 60
