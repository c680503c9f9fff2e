"""The studio's server: every endpoint answers what the library answers, and refuses with one sentence."""

import pytest
from starlette.testclient import TestClient

import markovia as mk
from markovia.studio.app import create

TOKEN = "secret"
JSON = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


@pytest.fixture
def client(tmp_path):
    with TestClient(create(token=TOKEN, folder=tmp_path), headers=JSON) as found:
        yield found


@pytest.fixture
def asia(client):
    return client.post("/api/models", json={"example": "asia"}).json()["id"]


def test_the_page_and_its_health_are_there(client):
    assert client.get("/").status_code == 200
    assert client.get("/api/health").json() == {"status": "ok", "version": mk.__version__}


def test_marginals_are_those_of_the_library(client, asia):
    body = {"given": {"xray": {"state": "yes"}}, "do": {"smoke": "no"}}
    said = client.post(f"/api/models/{asia}/marginals", json=body).json()
    expected = mk.examples.asia().do(smoke="no").marginals(given={"xray": "yes"})
    for name, posterior in expected.items():
        assert said["marginals"][name]["p"] == pytest.approx(posterior.values.tolist(), abs=1e-12)
    assert said["marginals"]["xray"]["p"] == [1.0, 0.0]
    assert said["log_evidence"] == pytest.approx(expected["lung"].info.log_evidence)
    assert said["info"]["exact"]
