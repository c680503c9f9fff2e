"""Reports and the widget in a browser: they ask nobody, answer as the library does, and names stay names."""

import re
import shutil
from contextlib import contextmanager

import pytest

import markovia as mk
from hostile_names import HOSTILE, hostile_network
from markovia.studio.sharing.report import report, save_text

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        started = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@contextmanager
def opened(browser, address, **options):
    """Open a page that must neither complain nor ask for anything but itself."""
    page = browser.new_page(**{"viewport": {"width": 1280, "height": 1000}, **options})
    complaints, requests = [], []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    page.wait_for_selector("[data-ready=true]")
    yield page
    assert not complaints
    assert [r for r in requests if not r.startswith(("data:", "blob:"))] == [address]
    page.close()


def shown(page, node):
    """Return the percentages that a node shows."""
    return [
        float(t.split()[0].lstrip("≈"))
        for t in page.locator(f'[data-name="{node}"] .mk-value').all_text_contents()
    ]


def percentages(posterior):
    return pytest.approx([100 * p for p in posterior.values], abs=0.06)


def test_a_report_answers_clicks_from_a_file(browser, tmp_path):
    bn = mk.examples.asia()
    file = tmp_path / "report.html"
    save_text(report(bn, given={"xray": "yes"}).text, file)
    with opened(browser, file.as_uri()) as page:
        assert shown(page, "lung") == percentages(bn.query("lung", given={"xray": "yes"}))
        page.click('[data-name="smoke"] .mk-row-state >> nth=1')
        page.wait_for_function("document.querySelector('#mk-asked').textContent.includes('smoke')")
        page.wait_for_function(
            "document.querySelector('[data-name=\"smoke\"]').classList.contains('mk-seen')"
        )
        both = {"xray": "yes", "smoke": "no"}
        assert shown(page, "lung") == percentages(bn.query("lung", given=both))
        assert page.inner_text("#mk-asked") == "xray = yes, smoke = no"
        cells = page.locator("#mk-beliefs tr[data-node=lung] .mk-now").all_inner_texts()
        assert [float(c.split()[0]) for c in cells] == shown(page, "lung")
        page.click('[data-name="bronc"] .mk-row-state >> nth=0', modifiers=["Alt"])
        page.wait_for_selector('[data-name="bronc"].mk-done')
        assert shown(page, "dysp") == percentages(bn.do(bronc="yes").query("dysp", given=both))
        page.select_option(".mk-tools select", "entropy")
        page.wait_for_selector(".mk-shaded")
        page.click("text=Most probable explanation")
        assert "lung\tno" in page.inner_text("dialog").replace("\n", "\t")
        page.keyboard.press("Escape")
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("#mk-paper .mk-node").count() == 8
        assert page.locator("details:not([open])").count() == 0
        page.click("text=As asked")
        page.wait_for_function("document.querySelector('#mk-asked').textContent === 'xray = yes'")


def test_findings_that_cannot_be_are_one_sentence_and_taken_back(browser, tmp_path):
    file = tmp_path / "report.html"
    save_text(report(mk.examples.asia(), given={"lung": "yes"}).text, file)
    with opened(browser, file.as_uri()) as page:
        page.click('[data-name="either"] .mk-row-state >> nth=1')
        assert "probability zero" in page.inner_text(".mk-toast-error")
        assert page.inner_text("#mk-asked") == "lung = yes"


def test_hostile_names_stay_names(browser, tmp_path):
    file = tmp_path / "report.html"
    save_text(report(hostile_network(), given={HOSTILE: HOSTILE}).text, file)
    with opened(browser, file.as_uri()) as page:
        assert page.title() == HOSTILE
        assert page.inner_text("h1") == HOSTILE
        assert page.locator("img").count() == 0
        page.click('[data-name="child"] .mk-row-state >> nth=0')
        page.wait_for_selector('[data-name="child"].mk-seen')
        assert page.title() == HOSTILE


@pytest.mark.slow
def test_a_large_model_looks_single_findings_up(browser, tmp_path, monkeypatch):
    monkeypatch.setattr("markovia.studio.sharing.report.page_tables", lambda model: None)
    bn = mk.examples.asia()
    file = tmp_path / "report.html"
    save_text(report(bn).text, file)
    with opened(browser, file.as_uri()) as page:
        page.click('[data-name="dysp"] .mk-row-state >> nth=0')
        page.wait_for_selector('[data-name="dysp"].mk-seen')
        assert shown(page, "bronc") == percentages(bn.query("bronc", given={"dysp": "yes"}))
        page.click('[data-name="xray"] .mk-row-state >> nth=0')
        assert "open the model in the studio" in page.inner_text(".mk-toast-error")


@pytest.mark.slow
def test_pictures_are_saved_whole(browser, tmp_path):
    file = tmp_path / "report.html"
    save_text(report(mk.examples.asia(), given={"xray": "yes"}).text, file)
    with opened(browser, file.as_uri(), viewport={"width": 400, "height": 700}) as page:
        page.mouse.move(200, 400)
        page.mouse.wheel(0, -2000)  # zoomed in, most nodes are out of sight
        with page.expect_download() as saved:
            page.click("text=SVG")
        saved.value.save_as(tmp_path / "asia.svg")
        drawing = (tmp_path / "asia.svg").read_text(encoding="utf-8")
        assert all(f">{name}</text>" in drawing for name in mk.examples.asia().variables)
        assert "var(--" not in drawing
        widths = [float(w) for w in re.findall(r' width="([\d.]+)"', drawing)]
        lung = mk.examples.asia().query("lung", given={"xray": "yes"})["yes"]
        assert min(abs(w - 138 * lung) for w in widths) < 0.1  # of a bar that is 138 pixels long
        assert "class=" not in drawing
        with page.expect_download() as saved:
            page.click("text=PNG")
        saved.value.save_as(tmp_path / "asia.png")
        assert (tmp_path / "asia.png").read_bytes().startswith(b"\x89PNG")
        assert (tmp_path / "asia.png").stat().st_size > 20_000


NOTEBOOK = """async ({ esm, css, state }) => {
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  const listeners = {};
  const tell = (changes) => {
    for (const [name, value] of Object.entries(changes)) {
      if (JSON.stringify(state[name]) === JSON.stringify(value)) continue;
      state[name] = value;
      for (const listener of [...(listeners[`change:${name}`] ?? [])]) listener();
    }
  };
  let waiting = {};
  window.fromPython = tell;
  const model = {
    get: (name) => state[name],
    set: (name, value) => { state[name] = value; waiting[name] = value; },
    save_changes: async () => { const sent = waiting; waiting = {}; tell(await window.toPython(sent)); },
    on: (name, listener) => (listeners[name] ??= new Set()).add(listener),
    off: (name, listener) => listeners[name]?.delete(listener),
  };
  const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
  window.takeAway = module.default.render({ model, el: document.body });
}"""


@contextmanager
def in_a_notebook(browser, widget):
    """Show a widget in a page that stands in for a notebook: traits travel between it and Python."""
    public = ["given", "do", "_content", "_height", "_question", "_answer"]

    def to_python(sent):
        widget.set_state(sent)
        return widget.get_state(public)

    page = browser.new_page(viewport={"width": 1000, "height": 600})
    complaints = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.expose_function("toPython", to_python)
    page.evaluate(NOTEBOOK, {"esm": widget._esm, "css": widget._css, "state": widget.get_state(public)})
    page.wait_for_selector("[data-ready=true]")
    yield page
    page.evaluate("window.takeAway()")
    assert page.locator(".mk").count() == 0
    assert not complaints
    page.close()


def test_the_widget_shares_its_evidence_with_python(browser):
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    bn = mk.examples.asia()
    widget = bn.show(given={"xray": "yes"})
    with in_a_notebook(browser, widget) as page:
        assert shown(page, "lung") == percentages(widget.marginals["lung"])
        page.click('[data-name="smoke"] .mk-row-state >> nth=1')
        page.wait_for_selector('[data-name="smoke"].mk-seen')
        assert widget.given == {"xray": "yes", "smoke": "no"}
        widget.given = {"dysp": "yes"}
        page.evaluate("(state) => window.fromPython(state)", widget.get_state(["given", "do"]))
        page.wait_for_selector('[data-name="dysp"].mk-seen')
        page.wait_for_function(
            "!document.querySelector('[data-name=\"xray\"]').classList.contains('mk-seen')"
        )
        assert shown(page, "lung") == percentages(bn.query("lung", given={"dysp": "yes"}))
        page.click('[data-name="either"] .mk-row-state >> nth=0')
        page.click('[data-name="lung"] .mk-row-state >> nth=1')
        page.click('[data-name="tub"] .mk-row-state >> nth=1')
        page.wait_for_selector(".mk-toast-error")
        assert widget.given == {"dysp": "yes", "either": "yes", "lung": "no"}


@pytest.mark.slow
def test_python_answers_a_widget_of_numbers(browser):
    pytest.importorskip("anywidget", reason="anywidget is not installed")
    bn = mk.BayesianNetwork()
    bn.add("d", states=["a", "b"], p=[0.4, 0.6])
    bn.add("x", {"a": mk.LinearGaussian(0.0, {}, 1.0), "b": mk.LinearGaussian(3.0, {}, 1.0)}, parents=["d"])
    widget = bn.show()
    with in_a_notebook(browser, widget) as page:
        page.click('[data-name="d"] .mk-row-state >> nth=1')
        page.wait_for_selector('[data-name="d"].mk-seen')
        page.wait_for_function(
            "document.querySelector('[data-name=\"x\"] .mk-moments').textContent.startsWith('3')"
        )
        assert widget.given == {"d": "b"}
