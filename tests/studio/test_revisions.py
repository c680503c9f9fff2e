"""Changes from several windows: revisions and their conflicts, layouts as steps, names, and errors in the page's words."""

import threading
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

import markovia as mk
from markovia.studio.app import create
from markovia.studio.documents.document import Document, Snapshot
from markovia.studio.documents.endpoints import StaleRevision
from markovia.studio.documents.wording import in_page_words
from markovia.studio.documents.workspace import Workspace
from markovia.studio.jobs.endpoints import _opening


@pytest.fixture
def client():
    with TestClient(create(token="t"), headers={"authorization": "Bearer t"}) as found:
        yield found


def opened(client, **source):
    return client.post("/api/models", json=source).json()


def edit(client, view, op, **seen):
    return client.post(f"/api/models/{view['id']}/edit", json=op, params=seen)


def test_every_change_has_a_revision_and_an_old_one_is_refused(client):
    view = opened(client, example="asia")
    after = edit(client, view, {"op": "name", "to": "mine"}, revision=view["revision"]).json()
    assert after["revision"] == view["revision"] + 1
    late = edit(client, view, {"op": "name", "to": "theirs"}, revision=view["revision"])
    assert late.status_code == 409
    assert late.json()["kind"] == "StaleRevision"
    assert "reload it" in late.json()["error"]
    assert client.get(f"/api/models/{view['id']}").json()["name"] == "mine"  # nothing was changed
    assert (
        edit(client, view, {"op": "name", "to": "theirs"}).json()["name"] == "theirs"
    )  # said without a revision
    place = f"/api/models/{view['id']}"
    assert client.post(f"{place}/undo", json={}, params={"revision": 0}).status_code == 409
    undone = client.post(f"{place}/undo", json={}, params={"revision": 2}).json()
    assert (undone["name"], undone["revision"]) == ("mine", 3)  # undoing is a change for others, too
    assert client.post(f"{place}/redo", json={}, params={"revision": 2}).status_code == 409
    assert [m["revision"] for m in client.get("/api/models").json() if m["id"] == view["id"]] == [3]
    for bad in ("x", "-1", "1.5", "9" * 40):
        assert edit(client, view, {"op": "name", "to": "a"}, revision=bad).status_code == 400


def test_of_many_changes_on_one_revision_exactly_one_is_made():
    document = Document("d", Snapshot(mk.BayesianNetwork(), "m"))
    gate, refused = threading.Barrier(8), []

    def change():
        gate.wait()
        try:
            document.change(lambda snapshot: snapshot, 0)
        except StaleRevision:
            refused.append(1)

    threads = [threading.Thread(target=change) for _ in range(8)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert (len(refused), document.revision) == (7, 1)


def test_tidying_lays_all_nodes_out_anew_and_is_undone(client):
    view = opened(client, example="asia")
    first = {n["name"]: (n["x"], n["y"]) for n in view["nodes"]}
    far = edit(client, view, {"op": "move", "positions": {"xray": [5000, 5000]}}).json()
    assert next(n["x"] for n in far["nodes"] if n["name"] == "xray") == 5000
    tidy = edit(client, view, {"op": "tidy"}).json()
    assert {n["name"]: (n["x"], n["y"]) for n in tidy["nodes"]} == first
    back = client.post(f"/api/models/{view['id']}/undo", json={}).json()
    assert next(n["x"] for n in back["nodes"] if n["name"] == "xray") == 5000


def test_new_models_have_names_of_their_own(client):
    names = [opened(client, new="model")["name"] for _ in range(3)]
    assert names == ["model", "model 2", "model 3"]


@pytest.mark.parametrize(
    "op",
    [
        {"op": "add_node", "name": "lung", "states": ["a", "b"]},
        {"op": "add_number_node", "name": "lung"},
        {"op": "rename", "name": "xray", "to": "lung"},
    ],
)
def test_a_name_that_is_taken_is_said_without_python(client, op):
    said = edit(client, opened(client, example="asia"), op).json()
    assert said["error"] == "the model already has a node 'lung'; give the new one another name"


def test_advice_of_the_library_is_said_in_the_words_of_the_page(client):
    view = opened(client, example="asia")
    rows = {"op": "set_table", "name": "smoke", "rows": [[0.5, 0.6]]}
    assert edit(client, view, rows).json()["error"].endswith("or normalise the rows")
    headers = {"content-type": "application/octet-stream"}
    graph = client.post(
        "/api/models/upload", params={"name": "g.dot"}, content=b"digraph {a -> b}", headers=headers
    )
    said = client.post(f"/api/models/{graph.json()['id']}/marginals", json={}).json()["error"]
    assert said.endswith("give each a table, or learn the parameters from data")
    assert "=" not in in_page_words("the column 'a' is constant; leave it out with names=")


def test_what_is_learned_again_is_named_anew_unless_somebody_named_it():
    work = Workspace()
    text = mk.io.dumps(mk.examples.sprinkler(), "json")

    def learned(method, into=None):
        found = _opening(work, into)({"document": {"name": f"trial ({method})", "text": text}})
        return work.document(found["model"])

    first = learned("pc")
    assert (first.now.name, learned("pc").now.name) == ("trial (pc)", "trial (pc) 2")
    into = work.add(mk.examples.sprinkler(), "trial")
    assert (learned("ges", into).now.name, learned("hill-climb", into).now.name) == (
        "trial (ges)",
        "trial (hill-climb)",
    )
    assert learned("hill-climb", into).now.name == "trial (hill-climb)"
    into.step(-1)
    into.step(-1)
    assert into.now.name == "trial (ges)"  # a step of the document, undone with it
    into.change(lambda snapshot: replace(snapshot, name="trial of mine"))
    assert learned("pc", into).now.name == "trial of mine"
