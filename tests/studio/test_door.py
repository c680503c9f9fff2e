"""Who is let in: the token, the address, the page a request comes from; and what no upload may do."""

import gzip
import json
import os
import socket
import threading

import pytest
from starlette.testclient import TestClient

import markovia as mk
from markovia.studio.app import create
from markovia.studio.documents import model_files

TOKEN = "secret"
BEARER = {"authorization": f"Bearer {TOKEN}"}
JSON = {**BEARER, "content-type": "application/json"}
OCTETS = {**BEARER, "content-type": "application/octet-stream"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("work") / "inside"
    folder.mkdir()
    (folder.parent / "outside.bif").write_text(mk.io.dumps(mk.examples.cancer(), "bif"))
    (folder / "inside.bif").write_text(mk.io.dumps(mk.examples.cancer(), "bif"))
    (folder / "link.bif").symlink_to(folder.parent / "outside.bif")
    return create(token=TOKEN, folder=folder, port=8000, max_body=2**20, patience=0.3)


@pytest.fixture(scope="module")
def client(app):
    with TestClient(app) as found:
        yield found


@pytest.mark.parametrize(
    "headers",
    [{}, {"authorization": "Bearer wrong"}, {"cookie": "markovia-8000=wrong"}, {"cookie": f"other={TOKEN}"}],
)
def test_without_the_token_nothing_is_answered(client, headers):
    for path in ("/api/health", "/api/start", "/", "/static/main.js", "/api/none"):
        answer = client.get(path, headers=headers)
        assert answer.status_code == 401
        assert "token" in answer.text
    assert "?token=" in client.get("/", headers={"accept": "text/html"}).text


def test_the_address_with_the_token_becomes_a_cookie(app):
    with TestClient(app, follow_redirects=False) as fresh:
        answer = fresh.get(f"/?token={TOKEN}")
        assert (answer.status_code, answer.headers["location"]) == (303, "/")
        cookie = answer.headers["set-cookie"]
        assert all(word in cookie for word in ("markovia-8000=", "HttpOnly", "SameSite=Strict"))
        assert fresh.get("/api/health").status_code == 200
        assert fresh.get("/?token=wrong").status_code == 401


def test_other_hosts_and_other_pages_are_refused(client):
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:8000", ""):
        assert client.get("/api/health", headers={**BEARER, "host": host}).status_code == 403
    for host in ("127.0.0.1:8000", "localhost:8000"):
        assert client.get("/api/health", headers={**BEARER, "host": host}).status_code == 200
    for origin in ("http://evil.example", "null", "http://localhost:9"):
        answer = client.get("/api/health", headers={**BEARER, "origin": origin})
        assert (answer.status_code, answer.json()["kind"]) == (403, "WrongOrigin")
    assert client.get("/api/health", headers={**BEARER, "origin": "http://testserver"}).status_code == 200
    assert client.get("/api/health", headers={**BEARER, "sec-fetch-site": "cross-site"}).status_code == 403


def test_a_form_of_another_page_cannot_post(client):
    for media in ("application/x-www-form-urlencoded", "text/plain", "multipart/form-data", None):
        headers = {**BEARER, **({"content-type": media} if media else {})}
        assert client.post("/api/models", content=b"{}", headers=headers).status_code == 415


def test_every_answer_carries_the_policy(client):
    for path in ("/", "/api/health", "/api/none", "/static/none"):
        for headers in ({}, BEARER):
            said = client.get(path, headers=headers).headers
            assert "default-src 'none'" in said["content-security-policy"]
            assert "unsafe" not in said["content-security-policy"]
            assert said["x-content-type-options"] == "nosniff"
            assert said["referrer-policy"] == "no-referrer"
            assert said["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "name",
    [
        "../outside.bif", "link.bif", "/etc/passwd", "..", ".", "inside/../../outside.bif", "a\0b.bif", "x" * 1000,
        "..\\outside.bif", "none.bif",
    ],
)  # fmt: skip
def test_no_file_outside_the_folder_is_opened_or_written(client, app, name):
    answer = client.post("/api/models", json={"file": name}, headers=JSON)
    assert answer.status_code in (400, 404), answer.text
    model = client.post("/api/models", json={"example": "asia"}, headers=JSON).json()["id"]
    before = (app.workspace.folder.parent / "outside.bif").read_bytes()
    if name not in ("..\\outside.bif", "none.bif"):
        saved = client.post(f"/api/models/{model}/save", json={"file": name, "format": "bif"}, headers=JSON)
        assert saved.status_code in (400, 404), saved.text
    assert (app.workspace.folder.parent / "outside.bif").read_bytes() == before


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd"]
)
def test_static_files_are_those_of_the_page_only(client, path):
    assert client.get(path, headers=BEARER).status_code == 404


def test_bodies_over_the_limit_are_refused_announced_or_not(client):
    answer = client.post("/api/models/upload?name=a.bif", content=b"x" * (2**20 + 1), headers=OCTETS)
    assert (answer.status_code, answer.json()["kind"]) == (413, "TooBig")

    def pieces():
        for _ in range(40):
            yield b"x" * 2**15

    assert client.post("/api/models/upload?name=a.bif", content=pieces(), headers=OCTETS).status_code == 413


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(client, monkeypatch):
    monkeypatch.setattr(model_files, "MAX_UNPACKED", 2**20)
    bomb = gzip.compress(b"\0" * 2**24)
    for data in (bomb, gzip.compress(bomb)):
        answer = client.post("/api/models/upload?name=a.bif.gz", content=data, headers=OCTETS)
        assert answer.status_code in (400, 413), answer.text
    assert client.post("/api/models/upload?name=a.bif.gz", content=bomb, headers=OCTETS).status_code == 413
    assert client.post("/api/data?name=a.csv.gz", content=bomb, headers=OCTETS).status_code == 413
    assert (
        client.post("/api/models/upload?name=a.bif.gz", content=bomb[:40], headers=OCTETS).status_code == 400
    )


def test_a_file_cannot_make_the_server_import_anything(client):
    text = mk.io.dumps(mk.examples.cancer(), "json")
    hostile = json.loads(text)
    hostile["properties"] = {"function": "os:system"}
    answer = client.post(
        "/api/models/upload?name=a.json", content=json.dumps(hostile).encode(), headers=OCTETS
    )
    assert answer.status_code == 400
    assert "runs no code" in answer.json()["error"]


def test_entities_that_unfold_are_refused(client):
    laughs = "".join(f'<!ENTITY l{k + 1} "{f"&l{k};" * 10}">' for k in range(9))
    text = f'<?xml version="1.0"?><!DOCTYPE smile [<!ENTITY l0 "ha">{laughs}]><smile version="1.0" id="&l9;"></smile>'
    answer = client.post("/api/models/upload?name=a.xdsl", content=text.encode(), headers=OCTETS)
    assert answer.status_code == 400
    outside = (
        '<?xml version="1.0"?><!DOCTYPE s [<!ENTITY f SYSTEM "file:///etc/passwd">]><smile id="m">&f;</smile>'
    )
    answer = client.post("/api/models/upload?name=a.xdsl", content=outside.encode(), headers=OCTETS)
    assert answer.status_code == 400
    assert "root:" not in answer.text


def test_hostile_names_stay_text(client):
    script = "<script>alert(1)</script>"
    bn = mk.BayesianNetwork(name=f'"; {script}')
    bn.add(script, states=[script, "</style>", "'\"&"], p=[0.5, 0.25, 0.25])
    data = mk.io.dumps(bn, "json").encode()
    answer = client.post(
        "/api/models/upload", params={"name": f"{script}.json"}, content=data, headers=OCTETS
    )
    assert answer.headers["content-type"] == "application/json"
    view = answer.json()
    assert view["nodes"][0]["states"] == [script, "</style>", "'\"&"]
    said = client.post(
        f"/api/models/{view['id']}/marginals", json={"given": {script: {"state": script}}}, headers=JSON
    )
    assert said.json()["marginals"][script]["p"] == [1.0, 0.0, 0.0]
    node = client.get(f"/api/models/{view['id']}/nodes/{script.replace('/', '%2F')}", headers=BEARER)
    assert node.json()["name"] == script
    file = client.get(f"/api/models/{view['id']}/file?format=json", headers=BEARER)
    assert "\n" not in file.headers["content-disposition"]
    assert "<" not in file.headers["content-disposition"]
    assert file.headers["content-disposition"].startswith("attachment")


def test_slow_clients_are_let_go_and_block_nobody(app, monkeypatch):
    import uvicorn

    from markovia.studio.http import patience
    from markovia.studio.running import listening

    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    bound = listening("127.0.0.1", 0)
    port = bound.getsockname()[1]
    own = create(token=TOKEN, port=port, patience=0.3)
    server = uvicorn.Server(uvicorn.Config(own, http=patience.PROTOCOL, log_level="error", ws="none"))
    thread = threading.Thread(target=server.run, args=([bound],), daemon=True)
    thread.start()
    try:
        head = f"POST /api/models HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n"
        silent = socket.create_connection(("127.0.0.1", port), timeout=120)
        slow = socket.create_connection(("127.0.0.1", port), timeout=120)
        slow.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{".encode())
        lively = socket.create_connection(("127.0.0.1", port), timeout=120)
        lively.sendall(
            f"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
        )
        assert b" 200 " in lively.recv(4096)
        assert b" 408 " in slow.recv(4096)
        assert silent.recv(4096) == b""
    finally:
        for one in (silent, slow, lively):
            one.close()
        server.should_exit = True
        thread.join(20)
    assert not thread.is_alive()


def test_a_long_question_blocks_nobody_else(client, monkeypatch):
    from markovia.studio.documents import answers

    model = client.post("/api/models", json={"example": "asia"}, headers=JSON).json()["id"]
    begun, ended = threading.Event(), threading.Event()

    def long(found):
        begun.set()
        assert ended.wait(30)
        return found

    monkeypatch.setattr(answers, "told", long)
    waiting = threading.Thread(
        target=lambda: client.post(f"/api/models/{model}/marginals", json={}, headers=JSON)
    )
    waiting.start()
    assert begun.wait(30)
    assert client.get("/api/health", headers=BEARER).status_code == 200
    edit = {"op": "rename", "name": "xray", "to": "x-ray"}
    assert client.post(f"/api/models/{model}/edit", json=edit, headers=JSON).status_code == 200
    assert waiting.is_alive()  # both were answered before it
    ended.set()
    waiting.join(30)


def test_more_requests_than_fit_are_told_to_come_back():
    import anyio

    from markovia.studio.documents.endpoints import Busy
    from markovia.studio.http.requests import RequestGate

    async def crowd():
        gate = RequestGate(max_body=1, patience=1.0, threads=1, waiting=1)
        hold = threading.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(gate.run, hold.wait)
            group.start_soon(gate.run, hold.wait)
            await anyio.sleep(0.05)
            with pytest.raises(Busy):
                await gate.run(os.getpid)
            hold.set()
        assert await gate.run(os.getpid) == os.getpid()

    anyio.run(crowd)
