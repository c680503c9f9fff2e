"""`markovia serve`: predictions are the library's, limits hold, metrics count, workers answer."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from functools import partial

import numpy as np
import pytest
from starlette.testclient import TestClient

import markovia as mk
from command_line import complaint, run
from markovia.studio.running import run_serving
from markovia.studio.serving import ENDPOINTS, Settings, create


@pytest.fixture(scope="module")
def client():
    with TestClient(create(Settings(model="asia", max_rows=100, max_body=2**16))) as found:
        yield found


def test_a_single_row_and_a_batch_agree_with_the_library(client):
    rows = [{"xray": "yes"}, {"xray": None, "smoke": "no"}, {}, {"dysp": "yes", "asia": "no"}]
    said = client.post("/predict", json={"targets": ["lung", "bronc"], "rows": rows}).json()
    asia = mk.examples.asia()
    for k, row in enumerate(rows):
        given = {n: s for n, s in row.items() if s is not None}
        alone = client.post("/predict", json={"targets": ["lung", "bronc"], "row": row}).json()
        for name in ("lung", "bronc"):
            expected = asia.query(name, given=given)
            np.testing.assert_allclose(said["p"][name][k], expected.values, atol=1e-12)
            np.testing.assert_allclose(alone["p"][name][0], expected.values, atol=1e-12)
            assert said["best"][name][k] == alone["best"][name][0] == expected.argmax()
            assert said["states"][name] == asia.states(name)


def test_states_that_are_no_text_are_read_alike_in_single_rows_and_batches(tmp_path):
    model = mk.BayesianNetwork()
    model.add("a", states=[0, 1, 2], p=[0.2, 0.3, 0.5])
    model.add("b", states=[True, False], p=[0.6, 0.4])
    model.add(
        "c", states=["x", "1"], parents=["a", "b"], p=np.random.default_rng(0).dirichlet([1, 1], (3, 2))
    )
    model.save(tmp_path / "model.json")
    rows = [
        {"a": 1, "b": True},
        {"a": "1", "b": "False"},
        {"a": 1.0, "b": None},
        {"a": 2, "b": False},
        {"b": "True"},
    ]
    with TestClient(create(Settings(model=str(tmp_path / "model.json")))) as client:
        said = client.post("/predict", json={"targets": ["c"], "rows": rows}).json()
        for k, row in enumerate(rows):
            one = client.post("/predict", json={"targets": ["c"], "row": row}).json()
            assert said["p"]["c"][k] == pytest.approx(one["p"]["c"][0], abs=1e-12)
    direct = model.query("c", given={"a": 1, "b": False}).values
    assert said["p"]["c"][1] == pytest.approx(direct, abs=1e-12)


def test_rows_that_cannot_be_are_null_and_harm_no_other(client):
    rows = [{"either": "no", "tub": "yes"}, {"xray": "yes"}]
    said = client.post("/predict", json={"targets": ["lung"], "rows": rows}).json()
    assert said["p"]["lung"][0] is None
    assert said["best"]["lung"] == [None, "no"]
    assert client.post("/predict", json={"targets": ["lung"], "row": rows[0]}).json()["p"]["lung"] == [None]


def test_questions_are_those_of_the_studio(client):
    said = client.post("/marginals", json={"given": {"xray": {"state": "yes"}}}).json()
    expected = mk.examples.asia().marginals(given={"xray": "yes"})
    assert said["marginals"]["lung"]["p"] == pytest.approx(expected["lung"].values.tolist())
    best = client.post("/map", json={"given": {"xray": {"state": "yes"}}}).json()["best"][0]
    assert best["states"] == mk.examples.asia().map(given={"xray": "yes"}).to_dict()
    assert client.get("/model").json()["variables"][0] == {"name": "asia", "states": ["yes", "no"]}


@pytest.mark.parametrize(
    ("body", "status", "word"),
    [
        ({"targets": ["lung"]}, 400, "row"),
        ({"targets": ["lung"], "row": {}, "rows": []}, 400, "row"),
        ({"targets": [], "row": {}}, 400, "body"),
        ({"targets": ["nobody"], "row": {}}, 400, "nobody"),
        ({"targets": ["lung"], "row": {"nobody": 1}}, 400, "nobody"),
        ({"targets": ["lung"], "row": {"xray": "maybe"}}, 400, "unknown state"),
        ({"targets": ["lung"], "rows": [{"xray": 3.5}, {"xray": "yes"}]}, 400, "unknown state"),
        ({"targets": ["lung"], "rows": [{}] * 101}, 413, "100"),
        ({"targets": ["lung"], "row": {"x" * 2**17: "yes"}}, 413, "bytes"),
    ],
)
def test_bad_rows_are_refused_with_one_sentence(client, body, status, word):
    answer = client.post("/predict", json=body)
    assert answer.status_code == status, answer.text
    assert word in answer.json()["error"]


def test_numbers_are_predicted_with_their_deviation(tmp_path):
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(0, {}, 1))
    bn.add("y", mk.LinearGaussian(1, {"x": 2}, 1))
    mk.save(bn, tmp_path / "numbers.json")
    with TestClient(create(Settings(model=str(tmp_path / "numbers.json")))) as client:
        said = client.post("/predict", json={"targets": ["x"], "rows": [{"y": 3.0}, {"y": None}]}).json()
        alone = client.post("/predict", json={"targets": ["x"], "row": {"y": 3.0}}).json()
        expected = bn.query("x", given={"y": 3.0})
        assert said["best"]["x"] == pytest.approx([expected.mean(), 0.0])
        assert said["sd"]["x"] == pytest.approx([expected.sd(), 1.0])
        assert (alone["best"]["x"], alone["sd"]["x"]) == (
            pytest.approx([expected.mean()]),
            pytest.approx([expected.sd()]),
        )
        assert client.post("/predict", json={"targets": ["x"], "row": {"y": "three"}}).status_code == 400


def test_metrics_count_requests_and_rows():
    with TestClient(create(Settings(model="asia"))) as client:
        client.post("/predict", json={"targets": ["lung"], "rows": [{"xray": "yes"}] * 3})
        client.post("/predict", json={"targets": ["nobody"], "row": {}})
        client.get("/nowhere")
        text = client.get("/metrics").text
    assert re.search(r'markovia_requests_total\{path="/predict",status="200",worker="\d+"\} 1\n', text)
    assert re.search(r'markovia_requests_total\{path="/predict",status="400",worker="\d+"\} 1\n', text)
    assert re.search(r'markovia_requests_total\{path="other",status="404",worker="\d+"\} 1\n', text)
    assert re.search(r'markovia_request_seconds_bucket\{path="/predict",le="\+Inf",worker="\d+"\} 2\n', text)
    assert re.search(r"markovia_rows_total\{worker=\"\d+\"\} 4\n", text)


def test_a_token_is_asked_for_where_there_is_one():
    with TestClient(create(Settings(model="asia", token="secret"))) as client:
        assert client.get("/health").status_code == 401
        assert client.get("/health", headers={"authorization": "Bearer secret"}).json()["status"] == "ok"


def test_health_is_open_where_that_was_chosen_and_nothing_else_is():
    with TestClient(create(Settings(model="asia", token="secret", open_health=True))) as client:
        assert client.get("/health").json()["status"] == "ok"
        assert client.get("/health/").status_code == 401
        for path in ("/model", "/metrics", "/openapi.json"):
            assert client.get(path).status_code == 401


def test_evidence_is_spelled_alike_in_all_endpoints(client):
    """One case, in the words of each endpoint: plain cells and findings mean the same everywhere."""
    expected = mk.examples.asia().query("lung", given={"xray": "yes", "smoke": "no"}).values
    for given in (
        {"xray": "yes", "smoke": "no", "dysp": None},
        {"xray": {"state": "yes"}, "smoke": {"not": ["yes"]}},
    ):
        predicted = client.post("/predict", json={"targets": ["lung"], "given": given}).json()
        assert predicted["p"]["lung"][0] == pytest.approx(expected.tolist())
        marginals = client.post("/marginals", json={"targets": ["lung"], "given": given}).json()
        assert marginals["marginals"]["lung"]["p"] == pytest.approx(expected.tolist())
        best = client.post("/map", json={"given": given}).json()["best"][0]["states"]
        likely = dict(mk.examples.asia().map(given={"xray": "yes", "smoke": "no"}))
        assert likely == {name: best[name] for name in likely}


def test_findings_and_plain_cells_stand_side_by_side_in_a_batch(client):
    asia = mk.examples.asia()
    soft = {"dysp": {"weights": {"yes": 0.8, "no": 0.2}}}
    cases = [{"xray": "yes"}, soft, {"either": "no", "tub": "yes"}, {}, {**soft, "smoke": "no"}]
    said = client.post("/predict", json={"targets": ["lung"], "given": cases}).json()
    wanted = [{"xray": "yes"}, {"dysp": [0.8, 0.2]}, None, {}, {"dysp": [0.8, 0.2], "smoke": "no"}]
    for got, given in zip(said["p"]["lung"], wanted, strict=True):
        assert (
            got is None
            if given is None
            else got == pytest.approx(asia.query("lung", given=given).values.tolist())
        )
    assert said["best"]["lung"][2] is None
    assert said["states"] == {"lung": ["yes", "no"]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"targets": ["lung"]}, "say given once"),
        ({"targets": ["lung"], "given": {}, "row": {}}, "2 of given"),
        ({"targets": ["lung"], "given": {"xray": "maybe"}}, "unknown state 'maybe'"),
        ({"targets": ["lung"], "given": [{"xray": 3}, {}]}, "xray"),
        ({"targets": ["lung"], "given": {"xry": "yes"}}, "did you mean 'xray'"),
        ({"targets": ["lung"], "given": {"xray": {"interval": [0, 1]}}}, "has states"),
    ],
)
def test_evidence_that_says_nothing_is_refused(client, body, words):
    answer = client.post("/predict", json=body)
    assert answer.status_code == 400
    assert words in answer.json()["error"]


def test_the_token_is_read_from_the_environment_or_from_a_file(tmp_path, monkeypatch, capsys):
    started = []

    def stand_in(settings, **where):
        started.append(settings)

    monkeypatch.setattr("markovia.studio.running.run_serving", stand_in)
    (tmp_path / "token").write_text("from-file\nmore\n")
    (tmp_path / "empty").write_text("\n")
    assert run("serve", "asia", "--token-file", str(tmp_path / "token"), "--open-health").exit_code == 0
    monkeypatch.setenv("MARKOVIA_TOKEN", "from-environment")
    assert run("serve", "asia").exit_code == 0
    assert [(s.token, s.open_health) for s in started] == [("from-file", True), ("from-environment", False)]
    assert "told twice" in complaint("serve", "asia", "--token-file", str(tmp_path / "token"))
    monkeypatch.delenv("MARKOVIA_TOKEN")
    assert "is empty" in complaint("serve", "asia", "--token", "")
    assert "has none" in complaint("serve", "asia", "--token-file", str(tmp_path / "empty"))
    assert "no such file" in complaint("serve", "asia", "--token-file", str(tmp_path / "nowhere"))


def test_a_line_is_said_while_the_model_is_loaded(monkeypatch, capsys):
    class Stopped(Exception):
        pass

    def stop(settings):
        assert "loading and compiling asia" in capsys.readouterr().err  # before the work, not after it
        raise Stopped

    monkeypatch.setattr("markovia.studio.serving.create", stop)
    with pytest.raises(Stopped):
        run_serving(Settings(model="asia"), host="127.0.0.1", port=0, workers=1)


def test_the_description_names_every_endpoint(client):
    said = client.get("/openapi.json").json()
    assert {(m.upper(), p) for p, ms in said["paths"].items() for m in ms} == {
        (e.method, e.path) for e in ENDPOINTS
    }


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_nothing_is_lost():
    command = [sys.executable, "-m", "markovia", "serve", "asia", "--port", "0", "--workers", "2"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        base = re.search(r"http://\S+", process.stdout.readline())[0]
        worker = _answering(base)
        os.kill(worker, signal.SIGKILL)
        body = json.dumps({"targets": ["lung"], "row": {"xray": "yes"}}).encode()
        assert _answering(base)
        request = urllib.request.Request(f"{base}/predict", body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=300) as answer:
            assert json.load(answer)["best"] == {"lung": ["no"]}
    finally:
        process.terminate()
        process.wait(60)


def _answering(base):
    """Return the process of a worker that answers, waiting for one."""
    for _ in range(300):
        try:
            with urllib.request.urlopen(f"{base}/metrics", timeout=60) as answer:
                return int(re.search(r'worker="(\d+)"', answer.read().decode())[1])
        except OSError:
            time.sleep(0.2)
    raise AssertionError("no worker answers")


@pytest.mark.slow
def test_fifty_clients_at_once_see_no_error(tmp_path):
    command = [
        sys.executable,
        "-m",
        "markovia",
        "studio",
        str(tmp_path),
        "--no-browser",
        "--state",
        str(tmp_path / "s"),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ)
    try:
        _, host, port, token = re.search(
            r"(http)://([\d.]+):(\d+)/\?token=(\S+)", process.stdout.readline()
        ).groups()
        headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
        ask = partial(_asked, host, int(port), headers)
        model = json.loads(ask("/api/models", {"example": "asia"})[1])["id"]
        expected = mk.examples.asia().query("lung", given={"xray": "yes"})["yes"]
        end = time.monotonic() + 3.0
        wrong, right = [], []

        def client():
            while time.monotonic() < end:
                status, data = ask(f"/api/models/{model}/marginals", {"given": {"xray": {"state": "yes"}}})
                p = json.loads(data)["marginals"]["lung"]["p"][0] if status == 200 else None
                (right if p == pytest.approx(expected) else wrong).append(status)

        clients = [threading.Thread(target=client) for _ in range(50)]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
        assert not wrong
        assert len(right) >= 50
    finally:
        process.terminate()
        process.wait(60)


def _asked(host, port, headers, path, body):
    connection = http.client.HTTPConnection(host, port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()
