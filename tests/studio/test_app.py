"""The studio's API: every endpoint answers what the library answers, and refuses bad input with one sentence."""

import re
import subprocess
import sys
from time import perf_counter, sleep

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

import markovia as mk
from markovia.inference.choosing import auto
from markovia.kernels.compiled_code import is_awaited
from markovia.studio import app, routes
from markovia.studio.app import create, endpoints
from markovia.studio.http.openapi import described

TOKEN = "secret"
JSON = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}


@pytest.fixture(scope="module")
def client(tmp_path_factory):
    with TestClient(create(token=TOKEN, folder=tmp_path_factory.mktemp("folder")), headers=JSON) as found:
        yield found


@pytest.fixture(scope="module")
def asia(client):
    return client.post("/api/models", json={"example": "asia"}).json()["id"]


def ask(client, model, verb, **body):
    answer = client.post(f"/api/models/{model}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def refused(answer, status, *words):
    assert answer.status_code == status, answer.text
    sentence = answer.json()["error"]
    assert "\n" not in sentence
    for word in words:
        assert word in sentence
    return answer.json()


def test_the_page_and_its_health_are_there(client):
    assert "<!doctype html>" in client.get("/").text
    assert client.get("/api/health").json() == {"status": "ok", "version": mk.__version__}


def test_the_start_offers_examples_and_formats(client):
    said = client.get("/api/start").json()
    assert {"asia", "monty-hall"} <= {e["name"] for e in said["examples"]}
    assert {".bif", ".xdsl", ".json"} <= {f["suffix"] for f in said["formats"]["read"]}


def test_the_page_names_every_module_that_it_loads_and_they_are_sent_once(client):
    named = re.findall(r'<link rel="modulepreload" href="static/([\w.]+)">', client.get("/").text)
    todo, loaded = ["main.js"], set()
    while todo:
        file = todo.pop()
        loaded.add(file)
        sent = client.get(f"/static/{file}")
        assert sent.headers["content-type"] == "text/javascript; charset=utf-8"
        todo += [
            f for f in re.findall(r'^import .* from "\./(.*)";$', sent.text, re.MULTILINE) if f not in loaded
        ]
        again = client.get(f"/static/{file}", headers={"if-none-match": sent.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
    assert sorted(named) == sorted(loaded)
    assert client.get("/static/main.js", headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.slow
def test_the_first_page_is_answered_before_the_library_is_loaded():
    code = """if True:
        import sys
        from starlette.testclient import TestClient
        from markovia.studio.app import create

        with TestClient(create(token="t"), headers={"authorization": "Bearer t"}) as client:
            for path in ("/", "/static/main.js", "/api/health", "/api/start"):
                assert client.get(path).status_code == 200, path
            print("numpy" in sys.modules)
            client.get("/api/models")
            print("numpy" in sys.modules)
    """
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.split() == ["False", "True"], said.stderr


def test_kernels_are_compiled_by_another_process_that_ends_with_the_server(monkeypatch, tmp_path):
    started = tmp_path / "started"
    monkeypatch.setattr(app, "COMPILING", f"import time; open({str(started)!r}, 'w'); time.sleep(600)")
    monkeypatch.setattr(app, "UNSEEN", 0.0)
    monkeypatch.setattr(app, "DRAWN", 0.0)
    monkeypatch.setattr(auto, "tree_kernels_on_disk", lambda: False)
    began = perf_counter()
    with TestClient(create(token=TOKEN, compiling=True), headers=JSON) as client:
        while not started.exists() and perf_counter() - began < 300:
            sleep(0.02)
        assert is_awaited()
        assert client.get("/api/models").json() == []
    assert started.exists()
    assert not is_awaited()
    assert perf_counter() - began < 300


def test_a_view_has_boxes_that_do_not_overlap_and_all_edges(client, asia):
    view = client.get(f"/api/models/{asia}").json()
    assert {(e["from"], e["to"]) for e in view["edges"]} == set(mk.examples.asia().edges)
    boxes = view["nodes"]
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = abs(a["x"] - b["x"]) >= (a["width"] + b["width"]) / 2
            assert apart or abs(a["y"] - b["y"]) >= (a["height"] + b["height"]) / 2
    place = {n["name"]: n["y"] for n in boxes}
    assert all(place[e["from"]] < place[e["to"]] for e in view["edges"])


def test_unknown_addresses_methods_and_models_are_said(client):
    refused(client.get("/api/nothing"), 404, "nothing at this address")
    refused(client.delete("/api/health"), 405, "method")
    refused(client.get("/api/models/none"), 404, "'none'")


@pytest.mark.parametrize(
    ("verb", "body", "status", "word"),
    [
        ("marginals", {"given": {"xray": {"state": "maybe"}}}, 400, "unknown state"),
        ("marginals", {"given": {"xry": {"state": "yes"}}}, 400, "xray"),
        ("marginals", {"given": {"xray": {}}}, 400, "one of state"),
        ("marginals", {"given": {"xray": {"state": "yes", "not": ["no"]}}}, 400, "one of state"),
        ("marginals", {"given": {"xray": {"interval": [0, 1]}}}, 400, "has states"),
        (
            "marginals",
            {"given": {"either": {"state": "no"}, "lung": {"state": "yes"}}},
            400,
            "probability zero",
        ),
        ("marginals", {"do": {"smoke": "perhaps"}}, 400, "unknown state"),
        ("marginals", {"engine": "magic"}, 400, "magic"),
        ("marginals", {"unknown": 1}, 400, "unknown"),
        ("query", {"targets": []}, 400, "body"),
        ("query", {"targets": ["nobody"]}, 400, "nobody"),
        ("map", {"m": 0}, 400, "body"),
        ("separation", {"a": ["tub"], "b": ["nobody"]}, 400, "nobody"),
        ("blanket", {"name": "nobody"}, 400, "nobody"),
        ("next_test", {"target": "lung", "given": {"lung": {"state": "yes"}}}, 400, "observed already"),
        ("sensitivity", {"target": "lung"}, 400, "which state"),
        ("shading", {"measure": "information"}, 400, "target"),
        ("sample", {"n": 10**9}, 400, "body"),
        ("compare", {"other": "none"}, 404, "none"),
        ("undo", {}, 400, "nothing to undo"),
    ],
)
def test_bad_questions_are_refused_with_one_sentence(client, asia, verb, body, status, word):
    refused(client.post(f"/api/models/{asia}/{verb}", json=body), status, word)


def test_a_body_that_is_no_json_is_refused(client, asia):
    refused(client.post(f"/api/models/{asia}/query", content=b"{not json"), 400, "body")
    refused(client.post(f"/api/models/{asia}/query", content=b"[" * 100_000), 400, "body")


def test_marginals_are_those_of_the_library(client, asia):
    said = ask(client, asia, "marginals", given={"xray": {"state": "yes"}}, do={"smoke": "no"})
    expected = mk.examples.asia().do(smoke="no").marginals(given={"xray": "yes"})
    for name, posterior in expected.items():
        assert said["marginals"][name]["p"] == pytest.approx(posterior.values.tolist(), abs=1e-12)
    assert said["marginals"]["xray"]["p"] == [1.0, 0.0]
    assert said["log_evidence"] == pytest.approx(expected["lung"].info.log_evidence)
    assert said["info"]["exact"]


def test_soft_and_negative_findings_are_those_of_the_library(client, asia):
    given = {"xray": {"weights": {"yes": 0.8, "no": 0.2}}, "dysp": {"not": ["no"]}}
    said = ask(client, asia, "marginals", given=given, targets=["lung"])
    expected = mk.examples.asia().query("lung", given={"xray": [0.8, 0.2], "dysp": mk.Not("no")})
    assert said["marginals"] == {"lung": {"p": pytest.approx(expected.values.tolist())}}


def test_joint_posteriors_are_flat_with_the_last_target_fastest(client, asia):
    said = ask(client, asia, "query", targets=["lung", "bronc"], given={"dysp": {"state": "yes"}})
    expected = mk.examples.asia().query(["lung", "bronc"], given={"dysp": "yes"})
    assert said["states"] == [["yes", "no"], ["yes", "no"]]
    np.testing.assert_allclose(np.reshape(said["p"], (2, 2)), expected.values, atol=1e-12)


def test_the_best_explanations_are_those_of_the_library(client, asia):
    said = ask(client, asia, "map", given={"xray": {"state": "yes"}}, m=3)["best"]
    for one, other in zip(said, mk.examples.asia().map(given={"xray": "yes"}, m=3), strict=True):
        assert one["states"] == other.to_dict()
        assert one["log_prob"] == pytest.approx(other.log_prob)
        assert one["p"] == pytest.approx(np.exp(other.log_posterior))


def test_separation_comes_with_trails_and_reasons(client, asia):
    open_ = ask(client, asia, "separation", a=["tub"], b=["smoke"], given=["dysp"])
    assert not open_["independent"]
    assert open_["trails"] == [
        list(t.nodes) for t in mk.examples.asia().open_trails("tub", "smoke", given="dysp")
    ]
    assert any("collider and above the observed dysp" in w for w in open_["why"])
    closed = ask(client, asia, "separation", a=["tub"], b=["smoke"])
    assert closed["independent"]
    assert not closed["trails"]
    assert any("blocked" in w for w in closed["why"])


def test_separation_of_an_undirected_model_shows_paths(client):
    model = client.post("/api/models", json={"example": "misconception"}).json()
    names = [n["name"] for n in model["nodes"]]
    assert {e["kind"] for e in model["edges"]} == {"line"}
    mn = mk.examples.misconception()
    far = next(n for n in names if n != names[0] and n not in mn.neighbors(names[0]))
    said = ask(client, model["id"], "separation", a=[names[0]], b=[far])
    assert not said["independent"]
    assert len(said["trails"]) == 2
    assert ask(client, model["id"], "separation", a=[names[0]], b=[far], given=mn.neighbors(far))[
        "independent"
    ]
    assert sorted(ask(client, model["id"], "blanket", name=far)["neighbours"]) == sorted(mn.neighbors(far))


def test_a_blanket_has_its_roles(client, asia):
    said = ask(client, asia, "blanket", name="either")
    assert (sorted(said["parents"]), sorted(said["children"]), said["spouses"]) == (
        ["lung", "tub"],
        ["dysp", "xray"],
        ["bronc"],
    )


def test_the_next_test_is_ranked_by_information_per_cost(client, asia):
    given = {"dysp": {"state": "yes"}}
    said = ask(client, asia, "next_test", target="lung", given=given, costs={"xray": 20.0, "smoke": 1.0})
    expected = mk.examples.asia().information("lung", given={"dysp": "yes"}, base=2)
    ranks = [t["per_cost"] for t in said["tests"]]
    assert ranks == sorted(ranks, reverse=True)
    by_name = {t["name"]: t for t in said["tests"]}
    assert by_name["xray"]["information"] == pytest.approx(expected["xray"])
    assert by_name["xray"]["per_cost"] == pytest.approx(expected["xray"] / 20)
    assert by_name["asia"]["cost"] == 1.0


def test_the_tornado_is_that_of_the_library(client, asia):
    said = ask(
        client, asia, "sensitivity", target="lung", state="yes", given={"xray": {"state": "yes"}}, top=4
    )
    found = mk.examples.asia().sensitivity("lung=yes", given={"xray": "yes"})
    assert said["probability"] == pytest.approx(found.probability)
    for row, entry in zip(said["rows"], found.largest(4), strict=True):
        curve = found.function(entry.piece, entry.states)
        assert (row["name"], row["value"]) == (entry.piece, pytest.approx(entry.value))
        assert row["derivative"] == pytest.approx(entry.derivative)
        assert row["low"] == pytest.approx(curve(0.9 * entry.value))
        assert row["high"] == pytest.approx(curve(min(1.0, 1.1 * entry.value)))


def test_the_tornado_of_a_mean_moves_each_parameter_a_tenth_either_way():
    def river(rain=8.0, weight=-0.5):
        bn = mk.BayesianNetwork()
        bn.add("rain", mk.LinearGaussian(rain, {}, 4))
        bn.add("river", mk.LinearGaussian(1, {"rain": weight}, 0.5))
        return bn

    with TestClient(create(token=TOKEN, models=[("river", river())]), headers=JSON) as client:
        (model,) = (s["id"] for s in client.get("/api/models").json())
        said = ask(client, model, "sensitivity", target="river", top=10)
    assert said["probability"] == pytest.approx(-3.0)
    for name, value, ends in (
        ("rain", 8.0, [river(rain=7.2).query("river").mean(), river(rain=8.8).query("river").mean()]),
        (
            "river",
            -0.5,
            [river(weight=-0.55).query("river").mean(), river(weight=-0.45).query("river").mean()],
        ),
    ):
        row = next(r for r in said["rows"] if r["name"] == name and r["value"] == pytest.approx(value))
        assert [row["low"], row["high"]] == pytest.approx(ends)
    sizes = [abs(r["high"] - r["low"]) for r in said["rows"]]
    assert sizes[0] > 0


def test_shading_is_entropy_or_information(client, asia):
    bn = mk.examples.asia()
    entropy = ask(client, asia, "shading", measure="entropy", given={"smoke": {"state": "yes"}})["values"]
    for name, posterior in bn.marginals(given={"smoke": "yes"}).items():
        assert entropy[name] == pytest.approx(posterior.entropy(base=2))
    assert entropy["smoke"] == 0.0
    told = ask(client, asia, "shading", measure="information", target="lung")["values"]
    assert told == pytest.approx(dict(bn.information("lung", base=2)))


def test_conflicts_are_those_of_the_library(client, asia):
    given = {"lung": {"state": "yes"}, "smoke": {"state": "no"}, "xray": {"state": "no"}}
    said = ask(client, asia, "conflict", given=given)
    expected = mk.examples.asia().conflict({"lung": "yes", "smoke": "no", "xray": "no"})
    assert said["conflict"] == pytest.approx(float(expected))
    assert {f["name"]: f["part"] for f in said["findings"]} == pytest.approx(dict(expected.contributions))
    impossible = ask(client, asia, "conflict", given={"lung": {"state": "yes"}, "either": {"state": "no"}})
    assert impossible["conflict"] is None


def test_samples_are_those_of_the_library(client, asia):
    said = ask(client, asia, "sample", n=20, given={"smoke": {"state": "yes"}}, seed=3)
    expected = mk.examples.asia().sample(20, given={"smoke": "yes"}, seed=3)
    assert said["columns"] == list(expected.columns)
    assert said["rows"] == expected.astype(str).to_numpy().tolist()


def test_two_graphs_are_compared(client, asia):
    other = client.post("/api/models", json={"example": "asia"}).json()["id"]
    cut = {"op": "disconnect", "parent": "smoke", "child": "lung"}
    for edge in (cut, {"op": "connect", "parent": "asia", "child": "bronc"}):
        ask(client, other, "edit", **edge)
    said = ask(client, asia, "compare", other=other)
    assert (said["added"], said["missing"], said["distance"]) == ([["smoke", "lung"]], [["asia", "bronc"]], 2)


def test_files_come_back_as_they_were_put_in(client, asia):
    for name in ("bif", "xdsl", "json", "net", "uai"):
        data = client.get(f"/api/models/{asia}/file", params={"format": name})
        assert data.status_code == 200
        assert data.headers["content-disposition"].startswith('attachment; filename="asia.')
        assert len(mk.io.loads(data.content, name)) == 8
    refused(client.get(f"/api/models/{asia}/file", params={"format": "doc"}), 400, "unknown format")


def test_an_upload_is_opened_by_its_suffix_or_by_its_text(client):
    text = mk.io.dumps(mk.examples.cancer(), "bif").encode()
    octets = {**JSON, "content-type": "application/octet-stream"}
    for name in ("cancer.bif", "whatever"):
        view = client.post("/api/models/upload", params={"name": name}, content=text, headers=octets)
        assert len(view.json()["nodes"]) == 5
    refused(
        client.post("/api/models/upload", params={"name": "a.bif"}, content=b"network {", headers=octets),
        400,
        "a.bif:1:10",
    )


def test_numbers_have_means_quantiles_and_densities():
    bn = mk.BayesianNetwork()
    bn.add("d", states=["a", "b"], p=[0.4, 0.6])
    bn.add("x", {"a": mk.LinearGaussian(0, {}, 1), "b": mk.LinearGaussian(3, {}, 2)}, parents=["d"])
    bn.add("y", mk.LinearGaussian(1, {"x": 2}, 0.5))
    with TestClient(create(token=TOKEN, models=[("numbers", bn)]), headers=JSON) as client:
        (model,) = (s["id"] for s in client.get("/api/models").json())
        for finding, evidence in (
            ({"value": 4.0}, 4.0),
            ({"interval": [3.0, None]}, mk.Interval(3.0, np.inf)),
        ):
            said = ask(client, model, "marginals", given={"y": finding})
            expected = bn.marginals(given={"y": evidence})
            x = said["marginals"]["x"]
            assert x["mean"] == pytest.approx(expected["x"].mean())
            assert x["sd"] == pytest.approx(expected["x"].sd())
            for level in ("0.05", "0.25", "0.5", "0.75", "0.95"):
                assert x["quantiles"][level] == pytest.approx(expected["x"].quantile(float(level)))
            xs, ys = np.array(x["curve"]).T
            assert np.trapezoid(ys, xs) == pytest.approx(0.998, abs=0.01)
            assert said["marginals"]["d"]["p"] == pytest.approx(expected["d"].values.tolist())
        assert said["info"]["exact"] is False or said["info"]["engine"]
        node = client.get(f"/api/models/{model}/nodes/x").json()
        assert node["kind"] == "linear-gaussian"
        assert [r["bias"] for r in node["form"]["rows"]] == [0.0, 3.0]
        done = ask(client, model, "marginals", do={"x": 2.0})["marginals"]
        assert done["y"]["mean"] == pytest.approx(5.0)
        refused(
            client.post(f"/api/models/{model}/marginals", json={"given": {"y": {"state": "4"}}}),
            400,
            "number",
        )


def test_models_that_must_be_sampled_are_refused_with_a_reason():
    import markovia.distributions as dist

    bn = mk.BayesianNetwork()
    bn.add("rate", dist.HalfCauchy(5.0))
    bn.add("x", lambda rate: dist.Normal(0, rate))
    with TestClient(create(token=TOKEN, models=[("drawn", bn)]), headers=JSON) as client:
        (model,) = (s["id"] for s in client.get("/api/models").json())
        refused(
            client.post(f"/api/models/{model}/marginals", json={"given": {"x": {"value": 1.0}}}),
            422,
            "closed form",
        )


def test_a_question_beyond_the_limit_is_refused_with_its_estimate():
    grid = mk.generators.ising_grid(40, 40, seed=0)
    with TestClient(create(token=TOKEN, models=[("dense", grid)]), headers=JSON) as client:
        (model,) = (s["id"] for s in client.get("/api/models").json())
        said = refused(client.post(f"/api/models/{model}/marginals", json={}), 422)
        assert said["estimate"]["bytes"] > 2**30


def test_factor_graphs_and_sequences_are_shown(client):
    octets = {**JSON, "content-type": "application/octet-stream"}
    graph = mk.examples.sprinkler().to_factor_graph()
    view = client.post(
        "/api/models/upload",
        params={"name": "f.json"},
        content=mk.io.dumps(graph, "json").encode(),
        headers=octets,
    ).json()
    assert view["kind"] == "factor-graph"
    assert [n["kind"] for n in view["nodes"]].count("factor") == 4
    node = client.get(f"/api/models/{view['id']}/nodes/f0").json()
    assert node["kind"] == "factor"
    process = mk.DynamicBayesianNetwork()
    process.add(
        "rain", states=["no", "yes"], parents=["rain@-1"], p=[[0.7, 0.3], [0.3, 0.7]], initial=[0.5, 0.5]
    )
    text = mk.io.dumps(process, "json").encode()
    view = client.post("/api/models/upload", params={"name": "p.json"}, content=text, headers=octets).json()
    assert [n["name"] for n in view["nodes"]] == ["rain@0", "rain@1", "rain@2", "rain@3"]
    assert "unrolled over 4 steps" in view["notes"]
    said = ask(client, view["id"], "marginals", given={"rain@0": {"state": "yes"}})
    assert said["marginals"]["rain@2"]["p"] == pytest.approx([0.42, 0.58])


def test_the_description_names_every_endpoint(client):
    said = client.get("/api/openapi.json").json()
    assert said["openapi"] == "3.1.0"
    listed = {(m.upper(), p) for p, methods in said["paths"].items() for m in methods}
    assert len(listed) == len(endpoints())
    assert ("POST", "/api/models/{id}/marginals") in listed


# -- anything at all ---------------------------------------------------------------------------------------------


def fuzzed(app, description, examples, headers, known):
    """Call every operation of a description with what fits it; none may be a server's fault."""
    import schemathesis  # a second of loading, which collecting would spend in each worker

    schema = schemathesis.openapi.from_dict(description)
    few = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    with TestClient(app, headers=headers) as client:
        for found in schema.get_all_operations():
            operation = found.ok()
            few(given(case=operation.as_strategy())(checked(client, operation, headers, known)))()


def checked(client, operation, headers, known):
    octets = operation.path.endswith(("/upload", "/data"))
    headers = {**headers, "content-type": f"application/{'octet-stream' if octets else 'json'}"}

    def one(case):
        if case.path_parameters and case.method != "DELETE":
            case.path_parameters = {**case.path_parameters, **known}
        sent = case.as_transport_kwargs(base_url="http://testserver")
        answer = client.request(
            sent["method"], sent["url"], params=sent.get("params"), headers=headers, json=sent.get("json"),
            content=sent.get("data"),
        )  # fmt: skip
        assert answer.status_code < 500, (sent, answer.text)
        if answer.status_code >= 400:
            assert answer.json()["error"]

    return one


@pytest.mark.parametrize(
    ("table", "examples"), [(routes.ENDPOINTS, 2), pytest.param(endpoints(), 40, marks=pytest.mark.slow)]
)
def test_no_request_makes_the_server_fail(table, examples, tmp_path):
    app = create(token=TOKEN, models=[("asia", mk.examples.asia())], folder=tmp_path, limit=2.0)
    (model,) = app.workspace.documents
    fuzzed(app, described(table, "studio"), examples, JSON, {"id": model.id, "name": "lung"})
