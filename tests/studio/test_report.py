"""Reports: one file that asks nobody, holds what it says, and cannot be broken by names."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

import markovia as mk
from command_line import answer, complaint, run
from hostile_names import HOSTILE, hostile_network
from markovia.studio.sharing import report as reports


class Elements(HTMLParser):
    """The elements of a page with their attributes and text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.found = []
        self.inside = False
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append([tag, dict(attrs), ""])
        self.inside = True

    def handle_endtag(self, tag):
        self.inside = False

    def handle_data(self, data):
        if self.inside:
            self.found[-1][2] += data

    def of(self, tag):
        return [(attrs, text) for name, attrs, text in self.found if name == tag]


def content_of(text):
    return next(json.loads(t) for a, t in Elements(text).of("script") if a.get("id") == "mk-content")


def test_a_report_holds_tables_findings_and_beliefs():
    made = reports.report(mk.examples.asia(), given={"xray": "yes"}, do={"smoke": "no"}, title="Clinic")
    content = content_of(made.text)
    assert (made.answering, content["view"]["name"]) == ("computed", "Clinic")
    assert content["given"] == {"xray": {"state": "yes"}}
    assert content["do"] == {"smoke": "no"}
    assert len(content["tables"]["tables"]) == 8
    page = Elements(made.text)
    rows = [a for a, _ in page.of("tr") if a.get("data-node") == "lung"]
    assert [r["data-state"] for r in rows] == ["0", "1"]
    expected = mk.examples.asia().do(smoke="no").query("lung", given={"xray": "yes"})["yes"]
    assert f'<td class="mk-now">{100 * expected:.1f} %</td>' in made.text
    assert "xray = yes, do(smoke = no)" in made.text


def test_names_cannot_break_out_of_the_page():
    made = reports.report(hostile_network(), given={HOSTILE: HOSTILE})
    page = Elements(made.text)
    assert len(page.of("script")) == 2
    assert not page.of("img")
    assert content_of(made.text)["view"]["nodes"][0]["name"] == HOSTILE
    assert made.text.count("</script") == 2
    assert page.of("title")[0][1] == HOSTILE


def test_the_policy_admits_only_what_the_page_was_written_with():
    text = reports.report(mk.examples.sprinkler()).text
    page = Elements(text)
    policy = next(
        a["content"] for a, _ in page.of("meta") if a.get("http-equiv") == "Content-Security-Policy"
    )
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed["default-src"] == allowed["form-action"] == "'none'"
    assert "unsafe" not in policy
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        inline = next(t for a, t in page.of(tag) if a.get("type") != "application/json")
        digest = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
        assert allowed[rule] == f"'sha256-{digest}'"
    assert set(re.findall(r"https?://[^\s\"'`]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(
        r" style=| on[a-z]+=", re.sub(r"<script.*?</script>|<style.*?</style>", "", text, flags=re.S)
    )


def test_a_large_model_carries_single_findings_and_says_so(monkeypatch):
    monkeypatch.setattr(reports, "page_tables", lambda model: None)
    bn = mk.examples.asia()
    made = reports.report(bn, given={"xray": "yes", "smoke": "no"})
    known = content_of(made.text)["answers"]
    assert (made.answering, content_of(made.text)["tables"]) == ("looked up", None)
    assert [k["given"] for k in known[:3]] == [
        {"xray": {"state": "yes"}, "smoke": {"state": "no"}}, {}, {"asia": {"state": "yes"}},
    ]  # fmt: skip
    assert len(known) == 2 + 16
    told = next(k["answer"]["marginals"] for k in known if k["given"] == {"dysp": {"state": "no"}})
    assert told["bronc"]["p"][0] == pytest.approx(bn.query("bronc", given={"dysp": "no"})["yes"], abs=1e-6)
    assert "16 single findings" in made.text
    monkeypatch.setattr(reports, "MOST_NUMBERS", 100)
    assert len(content_of(reports.report(bn).text)["answers"]) == 1 + 1 + 4


def test_numbers_are_shown_with_their_density():
    bn = mk.BayesianNetwork()
    bn.add("x", mk.LinearGaussian(1.0, {}, 4.0))
    bn.add("y", mk.LinearGaussian(0.0, {"x": 2.0}, 1.0))
    made = reports.report(bn, given={"y": 3.0})
    content = content_of(made.text)
    assert made.answering == "fixed"
    assert content["given"] == {"y": {"value": 3.0}}
    assert len(content["answers"][0]["answer"]["marginals"]["x"]["curve"]) > 20
    assert "numbers among its variables" in made.text
    assert "Normal(0 + 2 x, variance 1)" in made.text


def test_undirected_models_have_reports_too():
    mn = mk.generators.random_markov_network(6, seed=0)
    made = reports.report(mn, given={"x0": 1})
    assert made.answering == "computed"
    assert "child" not in content_of(made.text)["tables"]["tables"][0]
    assert "factor 1: x0" in made.text
    with pytest.raises(mk.errors.UnsupportedModel, match="no directions"):
        reports.report(mn, do={"x0": 1})


def test_the_command_writes_a_file_and_says_what_it_can(tmp_path):
    target = tmp_path / "r.html"
    told = answer("report", "asia", "--given", "xray=yes", "--soft", "dysp=0.9,0.2", "-o", str(target))
    assert (told["output"], told["bytes"], told["answering"]) == (
        str(target),
        target.stat().st_size,
        "computed",
    )
    content = content_of(target.read_text(encoding="utf-8"))
    assert content["given"]["dysp"] == {"weights": {"yes": 0.9, "no": 0.2}}
    said = run("report", "asia", "-o", str(target)).stdout
    assert "answers any findings by itself" in said
    assert run("report", "asia", "-o", "-").stdout.startswith("<!doctype html>")
    assert "unknown state" in complaint("report", "asia", "--given", "xray=maybe", "-o", str(target))
    assert "probability zero" in complaint("report", "asia", "-g", "lung=yes,either=no", "-o", str(target))
    assert "nowhere" in complaint("report", "asia", "-o", str(tmp_path / "nowhere" / "r.html"))
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]


def test_the_server_makes_the_same_report():
    from starlette.testclient import TestClient

    from markovia.studio.app import create

    with TestClient(create(token="secret"), headers={"authorization": "Bearer secret"}) as client:
        name = client.post("/api/models", json={"example": "asia"}).json()["id"]
        made = client.post(f"/api/models/{name}/report", json={"given": {"xray": {"state": "yes"}}})
        assert made.headers["content-type"].startswith("text/html")
        assert 'filename="asia.html"' in made.headers["content-disposition"]
        assert content_of(made.text)["given"] == {"xray": {"state": "yes"}}
        assert (
            client.post(
                f"/api/models/{name}/report", json={"given": {"xray": {"state": "maybe"}}}
            ).status_code
            == 400
        )
        both = {"lung": {"state": "yes"}, "either": {"state": "no"}}
        assert (
            "probability zero"
            in client.post(f"/api/models/{name}/report", json={"given": both}).json()["error"]
        )
