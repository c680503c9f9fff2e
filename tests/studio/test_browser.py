"""The studio as its readers meet it: one browser, one server, each test a window of its own."""

import pytest

import markovia as mk
from places import BENCHMARKS
from studio_page import ask, bars, choose, opened, problems, settled, state, studio

ASIA = mk.examples.asia()
BARS = 0.06
"""Percent that a bar's text may differ from the library by: it has one decimal."""


def test_a_click_observes_and_another_retracts(asia):
    bars(asia, ASIA)
    state(asia, "xray", "yes").click()
    asia.get_by_role("button", name="Retract xray").wait_for()
    bars(asia, ASIA, {"xray": "yes"})
    state(asia, "smoke", "yes").click()
    bars(asia, ASIA, {"xray": "yes", "smoke": "yes"})
    state(asia, "xray", "yes").click()
    bars(asia, ASIA, {"smoke": "yes"})
    asia.get_by_role("button", name="Clear all").click()
    bars(asia, ASIA)


def test_an_intervention_is_shown_as_a_cut(asia):
    state(asia, "dysp", "yes").click(modifiers=["Alt"])
    asia.locator(".mk-edge.mk-cut").first.wait_for()
    assert asia.locator(".mk-edge.mk-cut").count() == 2  # from bronc and from either
    bars(asia, ASIA.do(dysp="yes"))
    assert asia.get_by_text("Probability of these findings").count() == 0  # nothing was observed
    asia.get_by_role("button", name="do( )").first.click()
    state(asia, "dysp", "yes").click()
    asia.wait_for_selector(".mk-edge.mk-cut", state="detached")
    bars(asia, ASIA)


def test_the_most_probable_explanation_is_the_library_s(asia):
    state(asia, "xray", "yes").click()
    settled(asia)
    answer = ask(asia, "Most probable explanation")
    best = ASIA.map(given={"xray": "yes"}).to_dict()
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
    joint = ASIA.query(["lung", "bronc"])
    assert first == pytest.approx(100 * joint["yes", "yes"], abs=BARS)
    blanket = ask(asia, "Markov blanket", "Show")
    assert "Other parents of its children: tub" in blanket.inner_text()
    tests = ask(asia, "Which test next?")
    information = ASIA.information("lung", base=2)
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
    assert told == pytest.approx(
        [100 * ASIA.query("lung", given={"smoke": s})["yes"] for s in ("yes", "no")], abs=BARS
    )
    asia.get_by_role("button", name="Use the findings of scenario A").click()
    bars(asia, ASIA, {"smoke": "yes"})


def test_a_broken_file_is_refused_in_a_sentence(asia, tmp_path):
    broken = tmp_path / "broken.bif"
    broken.write_text(
        "network x {}\nvariable a { type discrete [2] { yes, no }; }\nprobability ( a ) { table 0.5, 0.6; }\n"
    )
    asia.get_by_role("button", name="Open", exact=True).click()
    asia.get_by_label("A model file from this computer").last.set_input_files(broken)
    said = asia.locator(".mk-toast-error").inner_text()
    assert "broken.bif" in said or "sum" in said
    bars(asia, ASIA)  # what was open still is


def test_names_that_look_like_markup_stay_text(page):
    choose(page, "hostile.json")
    page.locator(".mk-node .mk-title").first.click()
    page.get_by_role("tab", name="Edit").click()
    page.get_by_label("State 1").wait_for()
    assert page.get_by_label("State 1").input_value() == "<b>yes</b>"
    ask(page, "Most probable explanation")
    assert page.evaluate("() => window.bad") is None
    assert page.locator("b, body script").count() == 0


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (400, True)])
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
