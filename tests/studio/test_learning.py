"""Learning in the studio gives what the library gives: tables, graphs, parameters, comparisons, answers for rows."""

import gzip
import io

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from markovia.errors import MarkoviaError
from markovia.studio.jobs import learning
from studio_client import studio


class Heard:
    """A report that keeps what it hears, for work that is done here and not in a process of its own."""

    def __init__(self):
        self.notes, self.shown = [], []

    def note(self, text, share=None):
        self.notes.append(text)

    def heard(self, done, total, unit, note, value=None):
        self.notes.append(note)

    def show(self, result):
        self.shown.append([*result["history"]])


@pytest.fixture(scope="module")
def page():
    with studio() as made:
        yield made


@pytest.fixture(scope="module")
def rows():
    return mk.examples.asia().sample(1500, seed=3)


@pytest.fixture(scope="module")
def file(rows, tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "asia.csv"
    rows.to_csv(path, index=False)
    return str(path)


@pytest.fixture(scope="module")
def table(page, rows):
    return page.table(rows, "asia.csv")


def learned(file, **more):
    return learning.structure(
        Heard(), folder=None, data=file, name="asia", **{"method": "hill-climb", "settings": {}, **more}
    )


def network(page, name):
    return mk.io.loads(page.client.get(f"/api/models/{name}/file?format=json").text, "json")


def test_a_table_is_described_by_kinds_of_columns(page):
    frame = pd.DataFrame(
        {
            "state": ["a", "b", "a", None],
            "number": [1.5, 2.0, np.nan, 3.25],
            "count": [1, 2, 3, 4],
            "note": [f"a rather long sentence that is a text, number {i}" for i in range(4)],
        }
    )
    frame = pd.concat([frame] * 3, ignore_index=True)
    frame["note"] = [f"a rather long sentence that is a text, number {i}" for i in range(12)]
    found = page.upload("mixed.csv", frame.to_csv(index=False).encode())
    assert found["rows"] == 12
    assert [(c["name"], c["kind"], c["distinct"], c["missing"]) for c in found["columns"]] == [
        ("state", "states", 2, 3), ("number", "number", 3, 3), ("count", "states", 4, 0), ("note", "text", 12, 0),
    ]  # fmt: skip
    assert found["columns"][0]["states"] == ["a", "b"]
    assert found["preview"][2][:3] == ["a", None, 3]
    assert page.ask(f"/api/data/{found['id']}") == found


def test_parquet_is_read_as_csv_is(page, rows):
    body = io.BytesIO()
    rows.to_parquet(body)
    assert page.upload("asia.parquet", body.getvalue())["columns"] == page.upload(
        "asia.csv", rows.to_csv(index=False).encode()
    )["columns"]  # fmt: skip


def test_packed_tables_are_unpacked(page, rows):
    body = rows.to_csv(index=False).encode()
    halves = gzip.compress(body[:5000]) + gzip.compress(body[5000:])  # as bgzip and cat make them
    plain = page.upload("rows.csv", body)
    for packed in (gzip.compress(body), halves, halves + b"\0" * 100):
        found = page.upload("rows.csv.gz", packed)
        assert (found["rows"], found["columns"]) == (plain["rows"], plain["columns"])
    texts = page.upload("texts.txt.gz", gzip.compress(b"one line\nanother line\n"))
    assert texts["rows"] == 2


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("rows.csv", b"", "is empty"),
        ("rows.csv", b"a,b\n", "no rows"),
        ("rows.csv", b"a,b\n1,2,3\n4\n", "rows.csv"),
        ("rows.parquet", b"not parquet", "rows.parquet"),
        ("rows.exe", b"a,b\n1,2\n", "tables end in .csv"),
        ("rows.csv.gz", b"\x1f\x8b", "not a complete gzip file"),
        ("rows.csv.zst", b"", "unpack it first"),
        ("texts.txt", b"\xff\xfe\x00", "no text in UTF-8"),
        ("texts.txt", b"\n\n", "no lines"),
    ],
)
def test_a_file_that_is_no_table_is_refused_with_a_sentence(page, name, content, sentence):
    said = page.upload(name, content, status=400)["error"]
    assert sentence in said
    assert "markovia-tables-" not in said


@pytest.mark.slow
def test_a_learned_graph_is_that_of_the_library_and_opens_as_a_model(page, file, table):
    known = {"required": [("asia", "tub")], "forbidden": [("smoke", "bronc")]}
    result = page.done({"kind": "structure", "data": table, "score": "bdeu", "prior": "laplace", **known})
    direct = mk.learn_structure(file, score="bdeu", seed=0, **known)
    assert {(e["from"], e["to"]) for e in result["edges"]} == set(direct.graph.edges)
    assert result["score"] == pytest.approx(direct.score)
    opened, expected = network(page, result["model"]), direct.fit(prior="laplace")
    for name in expected.variables:
        assert opened[name].values == pytest.approx(expected[name].values)
    assert any(job["note"] == "reading the table" for job in page.told)
    assert (
        page.ask(f"/api/models/{result['model']}")["name"] == "asia (hill-climb)"
    )  # not the table's own name


def test_confidences_are_those_of_the_bootstrap(file):
    result = learned(file, settings={"seed": 5}, bootstrap=8)
    direct = mk.bootstrap_structure(file, replicates=8, seed=5)
    assert result["threshold"] == direct.threshold
    expected = direct.to_pandas()[["from", "to", "strength", "direction"]].to_dict("records")
    assert result["confidence"] == [pytest.approx(row) for row in expected]
    assert {(e["from"], e["to"]) for e in result["edges"]} == set(direct.consensus().graph.edges)


def test_a_class_with_hidden_causes_is_a_graph_without_parameters(page, file):
    result = learned(file, method="fci", settings={"alpha": 0.01})
    direct = mk.learn_structure(file, "fci", alpha=0.01)
    graph = mk.io.loads(result["document"]["text"], "json")
    assert graph == direct.graph
    assert {e["kind"] for e in result["edges"]} >= {"mixed"}
    assert any("without parameters" in note for note in result["notes"])


def test_columns_open_without_edges_and_take_the_learned_graph_as_an_undoable_step(page, rows, table):
    names = ["tub", "lung", "either"]
    view = page.ask(f"/api/data/{table}/columns", {"columns": names})
    assert [n["name"] for n in view["nodes"]] == names
    assert view["edges"] == []
    shares = page.ask(f"/api/models/{view['id']}/marginals", {})["marginals"]["lung"]["p"]
    assert shares[1] == pytest.approx((rows["lung"] == "yes").mean())
    result = page.done({"kind": "structure", "data": table, "columns": names, "into": view["id"]})
    assert result["model"] == view["id"]
    after = page.ask(f"/api/models/{view['id']}")
    assert len(after["edges"]) == len(result["edges"]) >= 2
    assert page.ask(f"/api/models/{view['id']}/undo", {})["edges"] == []


@pytest.mark.slow
def test_parameters_by_em_are_those_of_the_library_and_can_be_undone(page, rows):
    gaps = rows.copy()
    gaps.loc[::3, "lung"] = None
    table = page.table(gaps, "gaps.csv")
    model = page.ask("/api/models", {"example": "asia"})["id"]
    before = network(page, model)
    result = page.done({"kind": "parameters", "model": model, "data": table, "prior": "laplace"})
    direct = mk.examples.asia().fit(gaps, prior="laplace", missing=mk.EM(seed=0))
    assert result["log_likelihood"] == pytest.approx(direct.fit_.log_likelihood)
    assert result["history"] == pytest.approx(list(direct.fit_.history))
    assert result["missing_cells"] == gaps["lung"].isna().sum()
    fitted = network(page, model)
    assert fitted["lung"].values == pytest.approx(direct["lung"].values)
    page.ask(f"/api/models/{model}/undo", {})
    assert network(page, model)["lung"].values.tolist() == before["lung"].values.tolist()


def test_the_curve_of_em_is_shown_while_it_rises(rows, tmp_path, monkeypatch):
    monkeypatch.setattr(learning, "SHOWN_EVERY", -1.0)
    rows.drop(columns="lung").to_csv(tmp_path / "gaps.csv", index=False)
    text, report = mk.io.dumps(mk.examples.asia(), "json"), Heard()
    settings = {"data": str(tmp_path / "gaps.csv"), "latent": ["lung"], "restarts": 2, "seed": 1}
    found = learning.parameters(report, folder=tmp_path, model=text, name="asia", **settings)
    runs = [
        now for now, then in zip(report.shown, [*report.shown[1:], []], strict=True) if len(then) <= len(now)
    ]
    assert len(runs) == 2
    assert found["history"] in runs
    for run in runs:
        assert run == sorted(run)


def test_answers_for_a_table_come_as_a_file(rows, file, tmp_path):
    asia = mk.examples.asia()
    told = learning.batch(
        Heard(), folder=tmp_path, model=mk.io.dumps(asia, "json"), data=file, targets=["lung", "bronc"]
    )
    found = pd.read_csv(tmp_path / "answers.csv")
    assert found["P(bronc=yes)"].to_numpy() == pytest.approx(
        asia.predict_proba(rows, "bronc")["yes"].to_numpy()
    )
    assert told["columns"] == [*rows.columns, "P(lung=yes)", "P(lung=no)", "P(bronc=yes)", "P(bronc=no)"]
    assert told["rows"] == len(rows)


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"method": "no such method"}, "no structure-learning method"),
        ({"settings": {"required": [["asia", "tub"], ["tub", "asia"]]}}, "asia"),
        ({"settings": {"required": [["asia", "nobody"]]}}, "nobody"),
        ({"settings": {"restart_count": 3}}, "restart_count"),
        ({"settings": {"names": ["asia", "nobody"]}}, "nobody"),
        ({"prior": "hope"}, "a prior is one of"),
    ],
)
def test_wrong_settings_are_one_sentence(file, more, sentence):
    with pytest.raises(MarkoviaError, match=sentence) as caught:
        learned(file, **more)
    assert "\n" not in str(caught.value)


def test_a_job_with_wrong_settings_fails_with_that_sentence(page, table):
    job = page.run({"kind": "structure", "data": table, "method": "no such method"})
    assert job["state"] == "failed"
    assert job["note"].startswith("there is no structure-learning method 'no such method'")


def test_requests_that_cannot_start_are_refused(page, table):
    assert "no table" in page.ask("/api/jobs", {"kind": "structure", "data": "x"}, 404)["error"]
    assert (
        "seed"
        in page.ask("/api/jobs", {"kind": "structure", "data": table, "options": {"seed": 1}}, 400)["error"]
    )
    assert "kind" in page.ask("/api/jobs", {"data": table}, 400)["error"]
    page.ask("/api/jobs", {"kind": "parameters", "model": "x", "data": table}, 404)
    page.ask("/api/jobs/x", None, 404)
    page.ask("/api/jobs/x/events", None, 404)


def test_a_job_is_cancelled_over_http(page, table):
    job = page.ask("/api/jobs", {"kind": "structure", "data": table, "bootstrap": 10_000})
    said = page.client.delete(f"/api/jobs/{job['id']}").json()
    assert said["state"] == "cancelled"
    assert page.ask(f"/api/jobs/{job['id']}")["state"] == "cancelled"
    assert job["id"] in [each["id"] for each in page.ask("/api/jobs")]


def test_methods_are_offered_with_what_they_take(page):
    found = page.ask("/api/learning")
    names = {m["name"]: m for m in found["methods"]}
    assert names["ges"]["takes"] == "score"
    assert names["pc"]["takes"] == "test"
    assert names["structural-em"]["gaps"]
    assert set(mk.structure_methods()) - set(names) == {"kernel-weighted", "tesla"}
    assert "bdeu" in found["scores"]
    assert "g2" in found["tests"]
