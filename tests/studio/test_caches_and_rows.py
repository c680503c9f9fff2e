"""What a server keeps between requests never answers for another question, and a row is the same row wherever it stands."""

import re

import numpy as np
import pytest
from starlette.testclient import TestClient

import markovia as mk
from markovia.errors import InvalidArgument
from markovia.studio.documents.document import Document, Snapshot
from markovia.studio.serving import SECONDS, Metrics, Settings, create
from studio_client import studio


@pytest.fixture(scope="module")
def page():
    with studio() as made:
        yield made


def weather():
    """Return a network whose variables all have more than two states or different tables."""
    bn = mk.BayesianNetwork()
    bn.add("sky", states=["clear", "cloud", "storm"], p=[0.5, 0.3, 0.2])
    bn.add("wind", states=["weak", "strong"], parents=["sky"], p=[[0.9, 0.1], [0.6, 0.4], [0.15, 0.85]])
    bn.add(
        "sea", states=["flat", "rough", "wild"], parents=["sky", "wind"],
        p=[[[0.8, 0.15, 0.05], [0.5, 0.4, 0.1]], [[0.6, 0.3, 0.1], [0.3, 0.45, 0.25]],
           [[0.35, 0.4, 0.25], [0.05, 0.3, 0.65]]],
    )  # fmt: skip
    bn.add("trip", states=["yes", "no"], parents=["sea"], p=[[0.95, 0.05], [0.55, 0.45], [0.1, 0.9]])
    return bn


SOFT = {"flat": 0.2, "rough": 0, "wild": 0.9}, {"flat": 0.7, "rough": 0, "wild": 0.1}
QUESTIONS = [
    ({"do": {"wind": "weak"}}, {"do": {"wind": "weak"}}),
    ({"do": {"wind": "strong"}}, {"do": {"wind": "strong"}}),
    ({}, {}),
    ({"do": {"sky": "storm"}}, {"do": {"sky": "storm"}}),
    ({"do": {"sky": "cloud"}}, {"do": {"sky": "cloud"}}),
    ({"do": {"sky": "cloud", "wind": "weak"}}, {"do": {"sky": "cloud", "wind": "weak"}}),
    ({"do": {"wind": "weak"}, "given": {"trip": {"state": "no"}}}, {"do": {"wind": "weak"}, "given": {"trip": "no"}}),
    ({"do": {"wind": "weak"}, "given": {"trip": {"state": "yes"}}}, {"do": {"wind": "weak"}, "given": {"trip": "yes"}}),
    ({"given": {"wind": {"state": "strong"}}}, {"given": {"wind": "strong"}}),
    ({"given": {"wind": {"state": "weak"}}}, {"given": {"wind": "weak"}}),
    ({"given": {"sea": {"not": ["wild"]}}}, {"given": {"sea": mk.Not("wild")}}),
    ({"given": {"sea": {"not": ["flat"]}}}, {"given": {"sea": mk.Not("flat")}}),
    ({"given": {"sea": {"weights": {"flat": 0.2, "wild": 0.9}}}}, {"given": {"sea": SOFT[0]}}),
    ({"given": {"sea": {"weights": {"flat": 0.7, "wild": 0.1}}}}, {"given": {"sea": SOFT[1]}}),
]  # fmt: skip


def answer_of(model, do=None, given=None):
    return (model.do(do) if do else model).marginals(given=given or {})


def same(told, model, question):
    for name, posterior in answer_of(model, **question).items():
        assert told["marginals"][name]["p"] == pytest.approx(posterior.values.tolist(), abs=1e-12), (
            question,
            name,
        )


@pytest.fixture
def opened(page, tmp_path):
    weather().save(tmp_path / "weather.json")
    answer = page.client.post(
        "/api/models/upload?name=weather.json",
        content=(tmp_path / "weather.json").read_bytes(),
        headers={"Content-Type": "application/octet-stream"},
    )
    return f"/api/models/{answer.json()['id']}"


def test_questions_that_differ_in_one_value_have_their_own_answers(page, opened):
    model = weather()
    for body, question in [*QUESTIONS, *reversed(QUESTIONS)]:
        same(page.ask(f"{opened}/marginals", body), model, question)


def test_targets_engines_and_numbers_of_explanations_are_kept_apart(page, opened):
    model = weather().do(sky="storm")
    for targets in (["sea"], ["trip"], ["trip", "sea"], ["sea", "trip"]):
        told = page.ask(f"{opened}/query", {"do": {"sky": "storm"}, "targets": targets})
        assert told["targets"] == targets
        assert told["p"] == pytest.approx(model.query(targets).values.ravel().tolist())
        only = page.ask(f"{opened}/marginals", {"do": {"sky": "storm"}, "targets": targets})["marginals"]
        assert set(only) == set(targets)
    for engine in ("junction-tree", "variable-elimination", "enumeration"):
        told = page.ask(f"{opened}/marginals", {"do": {"sky": "clear"}, "engine": engine})
        assert told["info"]["engine"] == engine
    for m in (3, 1, 2):
        told = page.ask(f"{opened}/map", {"do": {"wind": "strong"}, "m": m})["best"]
        expected = weather().do(wind="strong").map(m=m)
        expected = expected if isinstance(expected, list) else [expected]
        assert [one["states"] for one in told] == [one.to_dict() for one in expected]


def test_an_edit_between_two_requests_changes_the_answer_and_undo_changes_it_back(page, opened):
    model, body, question = weather(), {"do": {"wind": "strong"}}, {"do": {"wind": "strong"}}
    same(page.ask(f"{opened}/marginals", body), model, question)
    rows = [[0.3, 0.7], [0.2, 0.8], [0.6, 0.4]]
    page.ask(f"{opened}/edit", {"op": "set_table", "name": "trip", "rows": rows})
    other = weather()
    other.replace("trip", p=rows)
    same(page.ask(f"{opened}/marginals", body), other, question)
    page.ask(f"{opened}/undo", {})
    same(page.ask(f"{opened}/marginals", body), model, question)
    page.ask(f"{opened}/redo", {})
    same(page.ask(f"{opened}/marginals", body), other, question)


def test_kept_interventions_are_few_and_each_is_made_once():
    document = Document("x", Snapshot(weather(), "weather"))
    first = document.doing({"wind": "weak"})
    assert document.doing({"wind": "weak"}) is first
    assert document.doing({"sky": "cloud", "wind": "weak"}) is document.doing(
        {"wind": "weak", "sky": "cloud"}
    )
    for state in ("clear", "cloud", "storm"):
        document.doing({"sky": state})
    document.doing({"wind": "strong"})
    again = document.doing({"wind": "weak"})
    assert again is not first
    assert len(document._doing) == 4
    assert document.doing({}) is document.now.model


# -- rows -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    weather().save(place / "weather.json")
    with TestClient(create(Settings(model=str(place / "weather.json"), max_rows=5))) as client:
        yield client


@pytest.fixture(scope="module")
def river(tmp_path_factory):
    place = tmp_path_factory.mktemp("served")
    bn = mk.BayesianNetwork()
    bn.add("season", states=["dry", "wet"], p=[0.6, 0.4])
    bn.add(
        "rain", {"dry": mk.LinearGaussian(2, {}, 1), "wet": mk.LinearGaussian(8, {}, 4)}, parents=["season"]
    )
    bn.add("river", mk.LinearGaussian(1, {"rain": 0.5}, 0.5))
    bn.save(place / "river.json")
    with TestClient(create(Settings(model=str(place / "river.json")))) as client:
        yield bn, client


def predicted(client, targets, **rows):
    answer = client.post("/predict", json={"targets": targets, **rows})
    assert answer.status_code == 200, answer.text
    return answer.json()


ROWS = [
    {"trip": "no", "wind": "strong"},
    {"sea": "wild"},
    {"sky": "storm", "sea": "flat"},
    {"sky": "clear", "trip": None},
    {},
]


def test_a_row_is_answered_alike_alone_and_among_others_and_never_sees_its_target(served):
    model = weather()
    targets = ["sky", "sea"]
    together = predicted(served, targets, rows=ROWS)
    for k, row in enumerate(ROWS):
        alone = predicted(served, targets, row=row)
        single = predicted(served, targets, rows=[row])
        twice = predicted(served, targets, rows=[row, row])
        given = {n: s for n, s in row.items() if s is not None and n not in targets}
        for name in targets:
            truth = model.query(name, given=given).values.tolist()
            for found in (
                together["p"][name][k],
                alone["p"][name][0],
                single["p"][name][0],
                *twice["p"][name],
            ):
                assert found == pytest.approx(truth, abs=1e-12), (row, name)
            best = model.states(name)[int(np.argmax(truth))]
            assert together["best"][name][k] == alone["best"][name][0] == twice["best"][name][1] == best


def test_rows_that_say_nothing_have_the_answer_of_one_that_says_nothing(served, river):
    only_targets = predicted(served, ["sea"], rows=[{"sea": "wild"}, {}, {"sea": "flat"}])
    prior = weather().query("sea").values.tolist()
    assert only_targets["p"]["sea"] == [pytest.approx(prior)] * 3
    assert only_targets["best"]["sea"] == ["flat"] * 3
    bn, client = river
    told = predicted(client, ["river"], rows=[{}, {"river": 3.0}])
    assert told["best"]["river"] == pytest.approx([bn.query("river").mean()] * 2)
    assert told["sd"]["river"] == pytest.approx([bn.query("river").sd()] * 2)


def test_rows_of_numbers_are_answered_alike_alone_and_among_others(river):
    bn, client = river
    rows = [
        {"river": 3.5, "rain": 9.0},
        {"river": 1.5},
        {"season": "wet", "river": 6},
        {"rain": 2.0, "season": None},
    ]
    targets = ["rain", "season"]
    together = predicted(client, targets, rows=rows)
    for k, row in enumerate(rows):
        alone = predicted(client, targets, row=row)
        given = {n: x for n, x in row.items() if x is not None and n not in targets}
        truth = bn.query("rain", given=given)
        for found, place in ((together, k), (alone, 0)):
            assert found["best"]["rain"][place] == pytest.approx(truth.mean())
            assert found["sd"]["rain"][place] == pytest.approx(truth.sd())
            season = bn.query("season", given=given).values.tolist()
            assert found["p"]["season"][place] == pytest.approx(season)


def test_exactly_as_many_rows_as_the_limit_are_answered_and_one_more_is_not(served):
    assert len(predicted(served, ["trip"], rows=ROWS)["p"]["trip"]) == 5
    answer = served.post("/predict", json={"targets": ["trip"], "rows": [*ROWS, {}]})
    assert answer.status_code == 413
    assert answer.json()["error"] == "the body has 6 rows; the limit is 5"
    assert predicted(served, ["trip"], rows=[])["p"] == {}


def test_served_questions_that_differ_in_one_value_have_their_own_answers(served):
    model = weather()
    for body, question in [*QUESTIONS, *reversed(QUESTIONS)]:
        answer = served.post("/marginals", json=body)
        assert answer.status_code == 200, answer.text
        same(answer.json(), model, question)


def test_times_are_counted_in_every_bucket_from_their_own_on():
    metrics = Metrics()
    for seconds in (0.0005, 0.001, 0.003, 7.0, 99.0):
        metrics.note("/predict", 200, seconds)
    metrics.note("/map", 400, 0.02)
    text = metrics.text()
    counts = {
        le: int(n) for le, n in re.findall(r'bucket\{path="/predict",le="([^"]+)",worker="\d+"\} (\d+)', text)
    }
    expected = {f"{b:g}": sum(s <= b for s in (0.0005, 0.001, 0.003, 7.0, 99.0)) for b in SECONDS}
    assert counts == {**expected, "+Inf": 5}
    assert re.search(r'seconds_sum\{path="/predict",worker="\d+"\} 106\.004500\n', text)
    assert re.search(r'seconds_count\{path="/map",worker="\d+"\} 1\n', text)
    assert re.search(r'requests_total\{path="/map",status="400",worker="\d+"\} 1\n', text)


def test_a_cancelled_step_is_no_step():
    document = Document("x", Snapshot(weather(), "weather"))
    with pytest.raises(InvalidArgument, match="nothing to redo"):
        document.step(1)
