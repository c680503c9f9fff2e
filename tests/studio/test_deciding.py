"""Decisions and utilities in the studio: drawn, kept, edited, and decided with the row of the current findings."""

import numpy as np
import pytest
from starlette.testclient import TestClient

import markovia as mk
from every_picture import drilling
from markovia.studio.app import create
from markovia.studio.sharing.report import report

TOKEN = "secret"
JSON = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("folder")
    mk.save(drilling(), place / "wells.xdsl")
    number = mk.BayesianNetwork()
    number.add("x", mk.LinearGaussian(0, {}, 1))
    number.add("u", mk.Decision(), parents=["x"])
    number.add("miss", mk.Utility(mk.Quadratic({"x": -1, "u": -1, ("x", "u"): 2})))
    mk.save(number, place / "number.json")
    return place


@pytest.fixture(scope="module")
def client(folder):
    with TestClient(create(token=TOKEN, folder=folder), headers=JSON) as found:
        yield found


@pytest.fixture
def wells(client):
    return client.post("/api/models", json={"file": "wells.xdsl"}).json()["id"]


def ask(client, model, verb, **body):
    answer = client.post(f"/api/models/{model}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, *words):
    assert 400 <= answer.status_code < 500, answer.text
    sentence = answer.json()["error"]
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


def rule(told, name):
    return next(r for r in told["rules"] if r["name"] == name)


def test_a_diagram_is_shown_with_its_kinds_of_nodes_and_edges(client, wells):
    view = client.get(f"/api/models/{wells}").json()
    assert {n["name"]: n["kind"] for n in view["nodes"]} == {
        "oil": "states", "test": "decision", "result": "states", "drill": "decision", "cost": "utility", "gain": "utility"
    }  # fmt: skip
    kinds = {(e["from"], e["to"]): e["kind"] for e in view["edges"]}
    assert {pair for pair, kind in kinds.items() if kind == "information"} == {
        ("test", "drill"),
        ("result", "drill"),
    }
    assert next(n for n in view["nodes"] if n["name"] == "gain")["states"] is None


def test_nodes_are_shown_with_what_they_see_and_what_they_are_worth(client, wells):
    gain = client.get(f"/api/models/{wells}/nodes/gain").json()
    assert gain["kind"] == "utility"
    assert gain["states"] is None
    assert gain["editable"]
    assert gain["rows"] == [[-70.0], [0.0], [50.0], [0.0], [200.0], [0.0]]
    assert gain["row_labels"][3] == ["wet", "no"]
    drill = client.get(f"/api/models/{wells}/nodes/drill").json()
    assert drill["kind"] == "decision"
    assert drill["rows"] is None
    assert not drill["editable"]
    assert [p["name"] for p in drill["parents"]] == ["test", "result"]


def test_beliefs_are_those_that_no_open_decision_changes(client, wells):
    assert set(ask(client, wells, "marginals")["marginals"]) == {"oil"}
    told = ask(client, wells, "marginals", given={"test": {"state": "yes"}})["marginals"]
    assert set(told) == {"oil", "result", "test"}
    assert told["result"]["p"] == pytest.approx([0.41, 0.35, 0.24, 0])
    done = ask(client, wells, "marginals", do={"test": "yes", "drill": "yes"})["marginals"]
    assert done["cost"]["mean"] == pytest.approx(-10.0)
    assert done["gain"]["mean"] == pytest.approx(20.0)
    given = ask(client, wells, "marginals", given={"test": "yes", "drill": "yes", "oil": "wet"})["marginals"]
    assert given["gain"]["mean"] == pytest.approx(50.0)
    waiting = ask(client, wells, "marginals", given={"result": "open", "oil": "wet"})
    assert waiting["marginals"]["result"]["p"] == [0, 1, 0, 0]
    assert "once test is decided" in waiting["info"]["note"]
    assert waiting["marginals"].keys() == {"oil", "result"}
    assert ask(client, wells, "shading", measure="entropy")["values"].keys() == {"oil"}


def test_deciding_answers_values_and_tables(client, wells):
    told = ask(client, wells, "decide")
    policy = drilling().decide()
    assert told["value"] == pytest.approx(22.5)
    assert told["bound"] == pytest.approx(22.5)
    assert told["info"]["exact"]
    drill = rule(told, "drill")
    assert drill["sees"] == ["test", "result"]
    assert len(drill["rows"]) == 8
    assert drill["left_out"] == 0
    for row in drill["rows"]:
        assert row["choice"] == policy.act("drill", test=row["seen"][0], result=row["seen"][1])
        assert not row["current"]
        assert not row["tie"]
    assert [r["probability"] for r in drill["rows"]] == pytest.approx([0.41, 0.35, 0.24, 0, 0, 0, 0, 0])
    assert rule(told, "test")["rows"] == [
        {"seen": [], "choice": "yes", "probability": 1.0, "tie": False, "current": True}
    ]


def test_the_row_of_the_current_findings_is_marked(client, wells):
    told = ask(client, wells, "decide", given={"test": "yes", "result": {"state": "none"}})
    assert told["later"] == []
    (current,) = [row for row in rule(told, "drill")["rows"] if row["current"]]
    assert current["seen"] == ["yes", "none"]
    assert current["choice"] == "no"
    assert current["probability"] == 1.0
    later = ask(client, wells, "decide", given={"result": {"state": "open"}})
    assert later["later"] == ["result"]
    assert later["value"] == pytest.approx(22.5)
    assert {tuple(r["seen"]) for r in rule(later, "drill")["rows"] if r["current"]} == {
        ("yes", "open"),
        ("no", "open"),
    }
    done = ask(client, wells, "decide", do={"test": "no"})
    assert done["value"] == pytest.approx(20.0)
    assert [r["name"] for r in done["rules"]] == ["drill"]
    assert {next(iter(r["seen"])) for r in rule(done, "drill")["rows"] if r["current"]} <= {"no"}


def test_rows_stand_in_the_order_of_the_table_and_the_least_probable_are_left_out(client, wells, folder):
    told = ask(client, wells, "decide", given={"oil": "soaking", "test": "yes"})
    rows = rule(told, "drill")["rows"]
    results = ["none", "open", "closed", "untested"]
    assert [r["seen"] for r in rows] == [[t, r] for t in ("yes", "no") for r in results]
    assert [r["probability"] for r in rows[:4]] == pytest.approx([0.1, 0.4, 0.5, 0])
    bn = mk.BayesianNetwork()
    bn.add("x", np.arange(1.0, 2501.0), normalise=True)
    bn.add("d", mk.Decision(2), parents=["x"])
    bn.add("u", mk.Utility([1, 0]), parents=["d"])
    mk.save(bn, folder / "long.json")
    long = client.post("/api/models", json={"file": "long.json"}).json()["id"]
    (only,) = ask(client, long, "decide")["rules"]
    assert only["left_out"] == 500
    assert [r["seen"] for r in only["rows"]] == [[str(k)] for k in range(500, 2500)]


def test_risk_and_memory_are_those_of_the_library(client, wells):
    assert ask(client, wells, "decide", risk=0.01)["value"] == pytest.approx(79.7831581505)
    assert ask(client, wells, "decide", memory="perfect")["value"] == pytest.approx(22.5)
    assert ask(client, wells, "decide", memory="perfect", order=["test", "drill"])["value"] == pytest.approx(
        22.5
    )


def test_bad_questions_get_one_sentence(client, wells):
    post = lambda model, **body: client.post(f"/api/models/{model}/decide", json=body)  # noqa: E731
    asia = client.post("/api/models", json={"example": "asia"}).json()["id"]
    refused(post(asia), "nothing to decide")
    refused(post(wells, memory="total"), "memory")
    refused(post(wells, given={"gain": 3}), "gain")
    refused(post(wells, given={"nowhere": "x"}), "nowhere")
    refused(post(wells, order=["test"]), "order")
    refused(post(wells, given={"test": "maybe"}), "maybe")
    refused(post(wells, more=1), "more")
    number = client.post("/api/models", json={"file": "number.json"}).json()["id"]
    refused(post(number), "numbers")
    refused(client.post("/api/models/none/decide", json={}), "none")


def test_a_diagram_beyond_the_limit_is_refused_before_it_is_solved(client, folder):
    bn = mk.BayesianNetwork()
    for k in range(22):
        bn.add(f"x{k}", [0.5, 0.5])
    bn.add("d", mk.Decision(2), parents=[f"x{k}" for k in range(22)])
    for k in range(22):
        bn.add(f"u{k}", mk.Utility([[0, 1], [1, 0]]), parents=[f"x{k}", "d"])
    mk.save(bn, folder / "large.json")
    with TestClient(create(token=TOKEN, folder=folder, limit=0.05), headers=JSON) as slow:
        large = slow.post("/api/models", json={"file": "large.json"}).json()["id"]
        answer = slow.post(f"/api/models/{large}/decide", json={})
        refused(answer, "deciding needs tables of")
        assert answer.json()["estimate"]["entries"] > 2**22


def edit(client, model, **body):
    answer = client.post(f"/api/models/{model}/edit", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def amounts(client, model, name="gain"):
    return [x for (x,) in client.get(f"/api/models/{model}/nodes/{name}").json()["rows"]]


def test_amounts_are_edited_and_undone(client, wells):
    edit(client, wells, op="set_table", name="gain", rows=[[-70], [0], [50], [0], [400], [0]])
    assert ask(client, wells, "decide")["value"] > 22.5
    client.post(f"/api/models/{wells}/undo", json={})
    assert ask(client, wells, "decide")["value"] == pytest.approx(22.5)
    refused(
        client.post(f"/api/models/{wells}/edit", json={"op": "set_table", "name": "gain", "rows": [[1]]}),
        "6 amounts",
    )
    refused(
        client.post(f"/api/models/{wells}/edit", json={"op": "set_table", "name": "drill", "rows": [[1]]}),
        "decision",
    )


def test_arrows_into_decisions_and_utilities_come_and_go(client, wells):
    before = amounts(client, wells)
    edit(client, wells, op="connect", parent="oil", child="drill")
    assert ask(client, wells, "decide")["value"] == pytest.approx(55.0)
    edit(client, wells, op="disconnect", parent="result", child="drill")
    edit(client, wells, op="disconnect", parent="oil", child="drill")
    assert ask(client, wells, "decide")["value"] == pytest.approx(20.0)
    edit(client, wells, op="connect", parent="test", child="gain")
    assert amounts(client, wells) == [x for x in before for _ in range(2)]
    edit(client, wells, op="disconnect", parent="test", child="gain")
    assert amounts(client, wells) == before
    edit(client, wells, op="disconnect", parent="oil", child="gain")
    assert amounts(client, wells) == pytest.approx([-70 * 0.5 + 50 * 0.3 + 200 * 0.2, 0])
    for parent, child, word in [
        ("gain", "oil", "utility"),
        ("gain", "drill", "utility"),
        ("drill", "gain", "already"),
    ]:
        refused(
            client.post(
                f"/api/models/{wells}/edit", json={"op": "connect", "parent": parent, "child": child}
            ),
            word,
        )
    answer = client.post(
        f"/api/models/{wells}/edit", json={"op": "connect", "parent": "drill", "child": "test"}
    )
    assert answer.status_code == 400, "a cycle"


def test_states_names_and_nodes_change_without_losing_what_is_said(client, wells):
    edit(client, wells, op="set_states", name="drill", states=["deep", "no", "flat"])
    assert amounts(client, wells) == [0.0] * 9
    client.post(f"/api/models/{wells}/undo", json={})
    edit(client, wells, op="set_states", name="drill", states=["yes", "no", "later"])
    assert amounts(client, wells) == [-70, 0, 0, 50, 0, 0, 200, 0, 0]
    edit(client, wells, op="set_states", name="oil", states=["dry", "wet"])
    assert amounts(client, wells) == [-70, 0, 0, 50, 0, 0]
    edit(client, wells, op="rename", name="drill", to="bore")
    edit(client, wells, op="rename", name="gain", to="money")
    assert client.get(f"/api/models/{wells}/nodes/money").json()["row_labels"][0] == ["dry", "yes"]
    edit(client, wells, op="remove_node", name="cost")
    edit(client, wells, op="remove_node", name="test")
    assert [r["name"] for r in ask(client, wells, "decide")["rules"]] == ["bore"]


def test_a_diagram_is_built_from_nothing(client):
    model = client.post("/api/models", json={"new": "umbrella"}).json()["id"]
    edit(client, model, op="add_node", name="rain", states=["no", "yes"])
    edit(client, model, op="add_decision", name="bag", states=["take", "leave"], parents=["rain"], at=[5, 7])
    view = edit(client, model, op="add_utility", name="joy", parents=["rain", "bag"])
    assert next((n["x"], n["y"]) for n in view["nodes"] if n["name"] == "bag") == (5, 7)
    edit(client, model, op="set_table", name="joy", rows=[[20], [100], [70], [0]])
    told = ask(client, model, "decide")
    assert told["value"] == pytest.approx(85.0)
    assert [r["choice"] for r in rule(told, "bag")["rows"]] == ["leave", "take"]
    refused(client.post(f"/api/models/{model}/edit", json={"op": "add_utility", "name": "joy"}), "already")
    refused(
        client.post(
            f"/api/models/{model}/edit", json={"op": "add_utility", "name": "sum", "parents": ["joy"]}
        )
    )


def test_rules_of_what_is_allowed_follow_the_edits(client, folder):
    bn = mk.BayesianNetwork()
    bn.add("x", [0.5, 0.5], states=["a", "b"])
    bn.add("y", [0.5, 0.5])
    bn.add("d", mk.Decision(["l", "r"], allowed=lambda x: ["l"] if x == "a" else ["l", "r"]), parents=["x"])
    bn.add("u", mk.Utility([0, 1]), parents=["d"])
    mk.save(bn, folder / "ruled.json")
    model = client.post("/api/models", json={"file": "ruled.json"}).json()["id"]
    assert ask(client, model, "decide")["value"] == pytest.approx(0.5)
    edit(client, model, op="connect", parent="y", child="d")
    assert ask(client, model, "decide")["value"] == pytest.approx(0.5)
    edit(client, model, op="disconnect", parent="x", child="d")
    assert ask(client, model, "decide")["value"] == pytest.approx(0.0), "only what was always allowed"
    client.post(f"/api/models/{model}/undo", json={})
    edit(client, model, op="set_states", name="x", states=["a", "b", "c"])
    rows = {r["seen"][0]: r["choice"] for r in rule(ask(client, model, "decide"), "d")["rows"]}
    assert rows == {"a": "l", "b": "r", "c": "r"}


def test_a_diagram_survives_saving_and_opening_again(client, wells, folder):
    edit(client, wells, op="note", name="drill", text="the second choice")
    for file in ("again.xdsl", "again.net", "again.json"):
        assert client.post(f"/api/models/{wells}/save", json={"file": file}).status_code == 200
        again = client.post("/api/models", json={"file": file}).json()
        assert ask(client, again["id"], "decide")["value"] == pytest.approx(22.5)
        assert next(n for n in again["nodes"] if n["name"] == "drill")["note"] == "the second choice"
    refused(client.get(f"/api/models/{wells}/file?format=bif"), ".xdsl")


def test_a_report_of_a_diagram_holds_its_answers():
    made = report(drilling(), given={"test": "yes"})
    assert "decisions or utilities" in made.text or made.answering == "looked up"
    decided = report(drilling().follow(drilling().decide()))
    assert "32.5" in decided.text


def test_a_diagram_is_served():
    import tempfile
    from pathlib import Path

    from markovia.studio.serving import Settings
    from markovia.studio.serving import create as serve

    with tempfile.TemporaryDirectory() as place:
        path = Path(place) / "wells.net"
        mk.save(drilling(), path)
        with TestClient(serve(Settings(model=str(path)))) as server:
            told = server.post(
                "/predict", json={"targets": ["oil"], "given": {"test": "yes", "result": "closed"}}
            ).json()
            bn = drilling().follow({"test": "yes"})
            np.testing.assert_allclose(
                told["p"]["oil"][0], bn.query("oil", given={"result": "closed"}).values
            )
            refused(server.post("/predict", json={"targets": ["drill"], "given": {}}), "not decided")
