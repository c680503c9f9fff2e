"""The studio as its readers meet it: one browser, one server, each test a window of its own."""

import json
import re

import pytest

import markovia as mk
from places import BENCHMARKS
from studio_page import chromium, opened, problems, shown, state, studio

BARS = 0.06
"""Percent that a bar's text may differ from the library by: it has one decimal."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("models")
    bn = mk.BayesianNetwork()
    bn.add("season", states=["dry", "wet"], p=[0.6, 0.4])
    bn.add(
        "rain", {"dry": mk.LinearGaussian(2, {}, 1), "wet": mk.LinearGaussian(8, {}, 4)}, parents=["season"]
    )
    bn.add("river", mk.LinearGaussian(1, {"rain": 0.5}, 0.5))
    bn.save(place / "river.json")
    hostile = mk.BayesianNetwork()
    hostile.add("<script>window.bad=1</script>", states=["<b>yes</b>", "no \"&' so"], p=[0.3, 0.7])
    hostile.add(
        "a\"b'c", states=["x", "y"], parents=["<script>window.bad=1</script>"], p=[[0.1, 0.9], [0.8, 0.2]]
    )
    hostile.save(place / "hostile.json")
    return place


@pytest.fixture(scope="module")
def address(folder, browser):
    with studio(folder) as where:
        yield where


@pytest.fixture
def page(browser, address):
    with opened(browser, address) as shown_page:
        yield shown_page


@pytest.fixture
def asia(page):
    choose(page, "Asia")
    return page


def choose(page, name):
    """Open a model from the first screen or, once one is open, from the dialog."""
    if page.locator(".mk-start").is_hidden():
        page.get_by_role("button", name="Open", exact=True).click()
    page.locator(".mk-source:visible", has_text=re.compile(f"^{re.escape(name)}")).first.click()
    named = re.compile(f"^{name.removesuffix('.json')}$", re.IGNORECASE)
    page.locator(".mk-model-name", has_text=named).wait_for(
        timeout=60_000
    )  # what numbers need is imported on first use
    settled(page)


def bars(page, given=None, model=None):
    """Check every bar of the drawing against the library."""
    settled(page)
    model = model or mk.examples.asia()
    for name, posterior in model.marginals(given=given or {}).items():
        for text in posterior.states:
            assert shown(page, name, text) == pytest.approx(100 * posterior[text], abs=BARS), (name, text)


def settled(page):
    page.wait_for_selector(".mk-progress:not(.mk-running)", state="attached")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def ask(page, title, press="Ask"):
    """Open a fold of the Ask panel, send its question and return the answer."""
    page.get_by_role("tab", name="Ask").click()
    fold = page.locator("details.mk-fold", has=page.get_by_text(title, exact=True))
    if not fold.evaluate("e => e.open"):
        fold.locator("summary").click()
    fold.get_by_role("button", name=press, exact=True).click()
    result = fold.locator(".mk-result:not(.mk-waiting)")
    result.locator("> *").first.wait_for()
    return result


def test_a_click_observes_and_another_retracts(asia):
    bars(asia)
    state(asia, "xray", "yes").click()
    asia.get_by_role("button", name="Retract xray").wait_for()
    bars(asia, {"xray": "yes"})
    state(asia, "smoke", "yes").click()
    bars(asia, {"xray": "yes", "smoke": "yes"})
    state(asia, "xray", "yes").click()
    bars(asia, {"smoke": "yes"})
    asia.get_by_role("button", name="Clear all").click()
    bars(asia)


def test_an_intervention_is_shown_as_a_cut(asia):
    state(asia, "dysp", "yes").click(modifiers=["Alt"])
    asia.locator(".mk-edge.mk-cut").first.wait_for()
    assert asia.locator(".mk-edge.mk-cut").count() == 2  # from bronc and from either
    bars(asia, model=mk.examples.asia().do(dysp="yes"))
    asia.get_by_role("button", name="do( )").first.click()
    state(asia, "dysp", "yes").click()
    asia.wait_for_selector(".mk-edge.mk-cut", state="detached")
    bars(asia)


@pytest.mark.slow
def test_findings_that_cannot_be_are_refused_and_taken_back(asia):
    state(asia, "tub", "yes").click()
    asia.get_by_role("button", name="Retract tub").wait_for()
    bars(asia, {"tub": "yes"})
    state(asia, "either", "no").click()
    assert "probability zero" in asia.locator(".mk-toast-error").inner_text()
    asia.wait_for_selector('.mk-node[data-name="either"]:not(.mk-seen)')
    bars(asia, {"tub": "yes"})


@pytest.mark.slow
def test_uncertain_findings_have_sliders(asia):
    asia.locator('.mk-node[data-name="xray"] .mk-title').click()
    asia.get_by_role("button", name="Uncertain finding").click()
    slider = asia.get_by_label("Likelihood of the finding if xray is no")
    slider.fill("0.25")
    asia.get_by_text("likely yes 1 : no 0.25").wait_for()
    bars(asia, {"xray": [1.0, 0.25]})


@pytest.mark.slow
def test_numbers_have_curves_values_and_intervals(page, folder):
    choose(page, "river.json")
    bn = mk.load(folder / "river.json")
    assert len(page.locator('.mk-node[data-name="rain"] .mk-curve').get_attribute("d")) > 200
    page.locator('.mk-node[data-name="river"] .mk-title').click()
    page.get_by_label("Value of river", exact=True).fill("4")
    page.get_by_role("button", name="Observe", exact=True).last.click()
    page.locator('.mk-node[data-name="river"].mk-seen').wait_for()
    settled(page)
    mean = float(page.locator('.mk-node[data-name="rain"] .mk-moments').text_content().split(" ")[0])
    assert mean == pytest.approx(bn.query("rain", given={"river": 4.0}).mean("rain"), rel=1e-3)
    page.get_by_label("Least value of river").fill("5")
    page.get_by_role("button", name="Observe range").click()
    page.get_by_text("in [5, ∞]").wait_for()
    settled(page)
    assert shown(page, "season", "wet") > 90


def test_the_most_probable_explanation_is_the_library_s(asia):
    state(asia, "xray", "yes").click()
    settled(asia)
    answer = ask(asia, "Most probable explanation")
    best = mk.examples.asia().map(given={"xray": "yes"}).to_dict()
    rows = answer.locator("tbody tr").all()
    told = {row.locator("th").inner_text(): row.locator("td").first.inner_text() for row in rows}
    assert told == best


def test_open_trails_are_marked_with_the_reason_in_words(asia):
    asia.locator('.mk-node[data-name="smoke"] .mk-title').click()
    asia.locator('.mk-node[data-name="xray"] .mk-title').click(modifiers=["Shift"])
    answer = ask(asia, "Are they independent?")
    assert answer.locator(".mk-verdict").inner_text() == "Dependent"
    assert "smoke → lung → either → xray" in answer.inner_text()
    assert asia.locator(".mk-edge.mk-hot").count() == 3
    asia.keyboard.press("Escape")


@pytest.mark.slow
def test_tables_blankets_tests_and_tornado_answer(asia):
    for name in ("lung", "bronc"):
        asia.locator(f'.mk-node[data-name="{name}"] .mk-title').click(modifiers=["Shift"])
    table = ask(asia, "Joint or conditional table")
    first = float(table.locator("tbody tr .mk-bar-text").first.inner_text().removesuffix(" %"))
    joint = mk.examples.asia().query(["lung", "bronc"])
    assert first == pytest.approx(100 * joint["yes", "yes"], abs=BARS)
    blanket = ask(asia, "Markov blanket", "Show")
    assert "Other parents of its children: tub" in blanket.inner_text()
    tests = ask(asia, "Which test next?")
    information = mk.examples.asia().information("lung", base=2)
    assert tests.locator("tbody th").first.inner_text() == max(information, key=information.get)
    tornado = ask(asia, "What does the answer depend on?")
    assert tornado.locator(".mk-tornado-row").count() > 3


def test_scenarios_stand_side_by_side(asia):
    state(asia, "smoke", "yes").click()
    settled(asia)
    asia.get_by_role("button", name="Keep these findings").click()
    state(asia, "smoke", "no").click()
    settled(asia)
    asia.locator('.mk-node[data-name="lung"] .mk-title').click()
    row = asia.locator("tr", has_text="lung = yes")
    told = [float(t.removesuffix(" %")) for t in row.locator(".mk-bar-text").all_inner_texts()]
    bn = mk.examples.asia()
    assert told == pytest.approx(
        [100 * bn.query("lung", given={"smoke": s})["yes"] for s in ("yes", "no")], abs=BARS
    )
    asia.get_by_role("button", name="Use the findings of scenario A").click()
    bars(asia, {"smoke": "yes"})


def test_a_table_is_edited_checked_undone_and_redone(asia):
    asia.locator('.mk-node[data-name="smoke"] .mk-title').click()
    asia.get_by_role("tab", name="Edit").click()
    cell = asia.get_by_label("P(yes)", exact=True)
    cell.fill("0.9")
    asia.get_by_text("sums to 1.4").wait_for()
    assert asia.get_by_role("button", name="Apply", exact=True).is_disabled()
    asia.get_by_label("P(no)", exact=True).fill("0.1")
    asia.get_by_role("button", name="Apply", exact=True).click()
    asia.locator('.mk-row-state[aria-label="smoke yes 90.0 %"]').wait_for()
    asia.locator(".mk-canvas").click(position={"x": 400, "y": 300})
    asia.keyboard.press("Control+z")
    asia.locator('.mk-row-state[aria-label="smoke yes 50.0 %"]').wait_for()
    asia.keyboard.press("Control+y")
    asia.locator('.mk-row-state[aria-label="smoke yes 90.0 %"]').wait_for()


@pytest.mark.slow
def test_a_block_of_a_spreadsheet_fills_the_table(asia):
    asia.locator('.mk-node[data-name="dysp"] .mk-title').click()
    asia.get_by_role("tab", name="Edit").click()
    cell = asia.locator(".mk-cell").first
    cell.wait_for()
    cell.evaluate(
        "(e) => { const d = new DataTransfer(); d.setData('text/plain', '0,2\\t0,8\\n0.3\\t0.7\\n');"
        " e.dispatchEvent(new ClipboardEvent('paste', { clipboardData: d, bubbles: true, cancelable: true })); }"
    )
    told = [asia.locator(".mk-cell").nth(k).input_value() for k in range(4)]
    assert told == ["0.2", "0.8", "0.3", "0.7"]


def test_nodes_and_edges_are_added_and_a_cycle_is_refused_and_shown(asia):
    asia.get_by_role("tab", name="Edit").click()
    asia.get_by_label("Name of the new node").fill("fever")
    asia.get_by_role("button", name="Add node").click()
    asia.locator('.mk-node[data-name="fever"]').wait_for()
    asia.get_by_label("Add a parent of fever").select_option("tub")
    asia.get_by_role("button", name="Remove the edge from tub").wait_for()
    asia.locator('.mk-node[data-name="asia"] .mk-title').click()
    asia.get_by_label("Add a parent of asia").select_option("xray")
    asia.locator(".mk-notice", has_text="cycle").wait_for()
    assert (
        asia.locator(".mk-edge.mk-hot").count() == 3
    )  # asia, tub, either, xray: all but the edge that was refused
    assert "cycle" in asia.locator(".mk-toast-error").inner_text()


def test_save_reload_and_a_link_restore_the_session(asia, folder):
    state(asia, "xray", "yes").click()
    settled(asia)
    asia.get_by_role("button", name="Save", exact=True).click()
    asia.get_by_label("Format").select_option("bif")
    asia.get_by_label("File name").fill("kept.bif")
    asia.get_by_role("button", name="Save in the folder").click()
    asia.get_by_text("Saved as kept.bif").wait_for()
    assert mk.load(folder / "kept.bif").query("lung")["yes"] == pytest.approx(0.055)
    asia.wait_for_timeout(500)
    asia.reload()
    asia.wait_for_selector("body[data-ready]")
    bars(asia, {"xray": "yes"})
    link = asia.url
    asia.evaluate("() => localStorage.clear()")
    asia.goto("about:blank")
    asia.goto(link)
    asia.wait_for_selector("body[data-ready]")
    bars(asia, {"xray": "yes"})


def test_a_broken_file_is_refused_in_a_sentence(asia, tmp_path):
    broken = tmp_path / "broken.bif"
    broken.write_text(
        "network x {}\nvariable a { type discrete [2] { yes, no }; }\nprobability ( a ) { table 0.5, 0.6; }\n"
    )
    asia.get_by_role("button", name="Open", exact=True).click()
    asia.get_by_label("A model file from this computer").last.set_input_files(broken)
    said = asia.locator(".mk-toast-error").inner_text()
    assert "broken.bif" in said or "sum" in said
    bars(asia)  # what was open still is


def test_the_keyboard_is_enough(asia):
    asia.locator('.mk-node[data-name="smoke"]').focus()
    asia.keyboard.press("1")
    asia.get_by_role("button", name="Retract smoke").wait_for()
    bars(asia, {"smoke": "yes"})
    asia.keyboard.press("ArrowDown")
    below = asia.evaluate("() => document.activeElement.dataset.name")
    assert below in ("lung", "bronc")
    asia.keyboard.press("Enter")
    asia.keyboard.press("ArrowDown")
    asia.keyboard.press("Enter")
    asia.get_by_role("button", name=f"Retract {below}").wait_for()
    bars(asia, {"smoke": "yes", below: "no"})
    asia.keyboard.press("Escape")
    asia.keyboard.press("Delete")
    bars(asia, {"smoke": "yes"})
    asia.keyboard.press("/")
    asia.keyboard.type("xra")
    asia.keyboard.press("Enter")
    assert asia.evaluate("() => document.activeElement.dataset.name") == "xray"


def test_names_that_look_like_markup_stay_text(page):
    choose(page, "hostile.json")
    page.locator(".mk-node .mk-title").first.click()
    page.get_by_role("tab", name="Edit").click()
    page.get_by_label("State 1").wait_for()
    assert page.get_by_label("State 1").input_value() == "<b>yes</b>"
    ask(page, "Most probable explanation")
    assert page.evaluate("() => window.bad") is None
    assert page.locator("b, body script").count() == 0


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (1280, False),
        (400, True),
        pytest.param(1280, True, marks=pytest.mark.slow),
        pytest.param(400, False, marks=pytest.mark.slow),
    ],
)
def test_names_contrast_and_room(browser, address, width, dark):
    with opened(browser, address, width=width, dark=dark) as page:
        assert problems(page) == []
        choose(page, "Asia")
        state(page, "xray", "yes").click()
        state(page, "bronc", "yes").click(modifiers=["Alt"])
        settled(page)
        page.get_by_role("button", name="Keep these findings").click()
        assert problems(page) == []
        ask(page, "Which test next?")
        assert problems(page) == []
        page.locator('.mk-node[data-name="dysp"] .mk-title').click()
        page.get_by_role("tab", name="Edit").click()
        page.locator(".mk-cell").first.wait_for()
        assert problems(page) == []


@pytest.mark.slow
def test_the_audit_sees_what_is_wrong(asia):
    asia.evaluate("""() => {
        const add = (tag, text, style) => {
            const made = document.createElement(tag);
            made.textContent = text;
            Object.assign(made.style, { position: 'fixed', ...style });
            document.body.append(made);
        };
        add('button', '', { left: '1270px', top: '100px', width: '40px' });
        add('p', 'pale words', { left: '20px', top: '10px', color: '#ccc', background: '#fff' });
    }""")
    told = json.dumps(problems(asia))
    for word in ("no name", "outside the window", "contrast", "overlap"):
        assert word in told


@pytest.mark.slow
def test_a_thousand_nodes_are_drawn_as_far_as_they_are_seen(browser, tmp_path):
    file = BENCHMARKS / "bif" / "munin.bif.gz"
    if not file.exists():
        pytest.skip("the network munin is not on this machine")
    with studio(tmp_path, str(file)) as where, opened(browser, where) as page:
        page.locator(".mk-node").first.wait_for(timeout=60_000)
        assert page.locator(".mk-node").count() == 1041
        assert page.locator(".mk-world *").count() < 3000  # boxes alone
        page.get_by_label("Find a node").fill("L_MED_LAT_WA")
        page.locator('.mk-node[data-name="L_MED_LAT_WA"] .mk-row-state').first.wait_for()
        assert page.locator(".mk-node").count() < 300  # what is out of sight is not there
        assert page.evaluate("() => document.activeElement.dataset.name") == "L_MED_LAT_WA"
