"""Documents: history, files of a folder, autosave and what a crash leaves behind."""

import json

import pytest
from starlette.testclient import TestClient

import markovia as mk
from markovia.studio.app import create
from markovia.studio.documents.document import MOST_STEPS, Document, Snapshot
from markovia.studio.documents.workspace import Workspace

TOKEN = "secret"
JSON = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


def started(folder, state):
    return TestClient(create(token=TOKEN, folder=folder, state=state), headers=JSON)


@pytest.fixture
def places(tmp_path):
    folder, state = tmp_path / "models", tmp_path / "state"
    folder.mkdir()
    return folder, state


def test_everything_is_undone_and_redone(places):
    with started(*places) as client:
        first = client.post("/api/models", json={"example": "asia"}).json()
        at = f"/api/models/{first['id']}"
        assert not first["undo"]
        assert not first["changed"]
        edits = [
            {"op": "rename", "name": "xray", "to": "picture"},
            {"op": "remove_node", "name": "dysp"},
            {"op": "move", "positions": {"asia": [5, 6]}},
            {"op": "note", "name": "asia", "text": "a visit"},
        ]
        views = [first, *(client.post(f"{at}/edit", json=e).json() for e in edits)]
        for view in reversed(views[:-1]):
            back = client.post(f"{at}/undo", json={}).json()
            assert (back["nodes"], back["edges"]) == (view["nodes"], view["edges"])
        assert not back["changed"]
        assert not back["undo"]
        for view in views[1:]:
            forth = client.post(f"{at}/redo", json={}).json()
            assert (forth["nodes"], forth["edges"]) == (view["nodes"], view["edges"])
        assert forth["changed"]
        assert not forth["redo"]


def test_an_edit_after_undo_forgets_what_was_undone():
    document = Document("d", Snapshot("one", "one"))
    for name in ("two", "three"):
        document.change(lambda s, name=name: Snapshot(name, name))
    document.step(-1)
    document.change(lambda s: Snapshot("four", "four"))
    assert not document.can_redo
    document.step(-1)
    assert document.now.name == "two"


def test_history_is_bounded():
    document = Document("d", Snapshot(0, "0"))
    for k in range(MOST_STEPS + 50):
        document.change(lambda s, k=k: Snapshot(k, str(k)))
    for _ in range(MOST_STEPS):
        document.step(-1)
    assert not document.can_undo


def test_a_failed_edit_leaves_the_document_as_it_was(places):
    with started(*places) as client:
        view = client.post("/api/models", json={"example": "asia"}).json()
        at = f"/api/models/{view['id']}"
        answer = client.post(f"{at}/edit", json={"op": "connect", "parent": "dysp", "child": "asia"})
        assert answer.status_code == 400
        assert answer.json()["cycle"] == ["dysp", "asia", "tub", "either", "dysp"]
        assert client.get(at).json() == view


def test_saving_and_opening_again_keeps_everything(places):
    folder, _ = places
    with started(*places) as client:
        view = client.post("/api/models", json={"example": "asia"}).json()
        at = f"/api/models/{view['id']}"
        client.post(f"{at}/edit", json={"op": "note", "name": "lung", "text": "an old note"})
        assert client.post(f"{at}/save", json={"file": "mine.json"}).json() == {"file": "mine.json"}
        assert not client.get(at).json()["changed"]
        again = client.post("/api/models", json={"file": "mine.json"}).json()
        assert next(n for n in again["nodes"] if n["name"] == "lung")["note"] == "an old note"
        for name in ("mine.bif", "mine.xdsl.gz", "mine.net"):
            assert client.post(f"{at}/save", json={"file": name}).status_code == 200
            assert mk.load(folder / name).allclose(mk.examples.asia())
        start = client.get("/api/start").json()
        assert start["folder"] == ["mine.bif", "mine.json", "mine.net", "mine.xdsl.gz"]
        assert start["recent"][0] == "mine.net"
        assert client.post(f"{at}/save", json={"file": "mine.doc"}).status_code == 400
        assert client.post(f"{at}/save", json={"file": "none/mine.bif"}).status_code == 404


def test_unsaved_changes_survive_the_end_of_a_server(places):
    with started(*places) as client:
        view = client.post("/api/models", json={"example": "asia"}).json()
        at = f"/api/models/{view['id']}"
        client.post(f"{at}/edit", json={"op": "rename", "name": "xray", "to": "picture"})
        moved = client.post(f"{at}/edit", json={"op": "move", "positions": {"asia": [11, 12]}}).json()
    with started(*places) as client:
        (offered,) = client.get("/api/start").json()["recovered"]
        assert (offered["id"], offered["name"]) == (view["id"], "asia")
        back = client.post("/api/models", json={"recover": offered["id"]}).json()
        assert back["nodes"] == moved["nodes"]
        assert back["changed"]
        undone = [
            client.post(f"{at}/undo", json={}).json() for _ in range(2)
        ]  # and so do the steps that led there
        assert undone[0]["nodes"] != moved["nodes"]
        assert undone[1]["nodes"] == view["nodes"]
        assert not undone[1]["undo"]
        for _ in range(2):
            back = client.post(f"{at}/redo", json={}).json()
        assert back["nodes"] == moved["nodes"]
        assert not back["redo"]
        client.post(f"{at}/save", json={"file": "kept.json"})
    with started(*places) as client:
        assert client.get("/api/start").json()["recovered"] == []


def test_a_broken_autosave_harms_nobody(places):
    _, state = places
    state.mkdir()
    (state / "broken.json").write_text("{")
    (state / "half.json").write_text(json.dumps({"name": "half", "when": 4e9, "model": 3}))
    with started(*places) as client:
        assert [r["id"] for r in client.get("/api/start").json()["recovered"]] == ["half"]
        for name in ("broken", "half", "../half", "none"):
            assert client.post("/api/models", json={"recover": name}).status_code == 404


def test_steps_of_large_models_are_not_kept(monkeypatch):
    from markovia.studio.documents import document as documents

    document = Document("d", Snapshot(mk.examples.asia(), "asia"))
    for name in "bcd":
        document.change(lambda now, name=name: Snapshot(now.model.copy(), name))
    document.step(-1)
    kept = document.kept()
    assert [step["name"] for step in kept["steps"]] == ["asia", "b", "c", "d"]
    assert (kept["at"], len(kept["models"])) == (2, 4)
    monkeypatch.setattr(documents, "KEPT_SIZE", 1)
    kept = document.kept()
    assert [step["name"] for step in kept["steps"]] == ["c"]
    assert (kept["at"], len(kept["models"])) == (0, 1)


def test_closing_forgets_the_autosave(places):
    _, state = places
    with started(*places) as client:
        view = client.post("/api/models", json={"example": "asia"}).json()
        client.post(f"/api/models/{view['id']}/edit", json={"op": "name", "to": "other"})
        assert client.delete(f"/api/models/{view['id']}").json() == {}
        assert client.get(f"/api/models/{view['id']}").status_code == 404
    assert not list(state.glob(f"{view['id']}*"))


def test_a_model_that_no_file_holds_is_still_edited(tmp_path):
    bn = mk.BayesianNetwork()
    bn.add("a", p=[0.5, 0.5])
    bn.add("b", lambda a: __import__("markovia.distributions").distributions.Normal(a, 1.0))
    work = Workspace(state=tmp_path)
    document = work.add(bn, "with a function")
    work.autosave(document)
    work.flush()
    assert not list(tmp_path.iterdir())
    work.shut()


def test_the_number_of_open_models_is_bounded(monkeypatch):
    from markovia.studio.documents import workspace
    from markovia.studio.documents.endpoints import Busy

    monkeypatch.setattr(workspace, "MOST_DOCUMENTS", 2)
    work = Workspace()
    for _ in range(2):
        work.new("m")
    with pytest.raises(Busy, match="close one"):
        work.new("m")
