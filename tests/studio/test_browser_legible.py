"""Every panel and dialog of the studio, wide and narrow, light and dark: nothing pale, unnamed, clipped or overlapping."""

import json

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from studio_page import ask, bring, choose, opened, problems, settled, state

PATIENCE = 120_000
"""Milliseconds that a job may take on a busy machine."""
TALL = 3200
"""Pixels of height at which every panel is seen whole."""
SIZES = [
    pytest.param(1280, False, id="wide-light"),
    pytest.param(1280, True, id="wide-dark"),
    pytest.param(400, False, id="narrow-light"),
    pytest.param(400, True, id="narrow-dark"),
]


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("tables"))


def filled(place):
    """Put the tables of all scenes into a folder."""
    rows = mk.examples.asia().sample(400, seed=4)
    rows.mask(np.random.default_rng(0).random(rows.shape) < 0.05).to_csv(place / "gaps.csv", index=False)
    rng = np.random.default_rng(0)
    age = rng.random(500) < 0.5
    drug = rng.random(500) < 0.2 + 0.5 * age
    cured = rng.random(500) < 0.3 + 0.3 * drug + 0.2 * age
    words = {"age": ("young", "old"), "drug": ("no", "yes"), "cured": ("no", "yes")}
    cells = {
        name: np.where(x, words[name][1], words[name][0])
        for name, x in (("age", age), ("drug", drug), ("cured", cured))
    }
    pd.DataFrame(cells).to_csv(place / "drug.csv", index=False)
    level = np.concatenate([rng.normal(0, 1, 40), rng.normal(5, 1, 40)])
    pd.DataFrame({"y": level, "z": 2 * level + rng.normal(0, 1, 80)}).to_csv(
        place / "series.csv", index=False
    )
    topics = [["river", "rain", "flood", "bank"], ["court", "judge", "law", "appeal"]]
    (place / "texts.txt").write_text("\n".join(" ".join(rng.choice(topics[k % 2], 8)) for k in range(30)))
    return place


def legible(page, scene):
    """Audit the window as it is, and tall enough that the panel is seen whole."""
    settled(page)
    found = problems(page)
    size = page.viewport_size
    page.set_viewport_size({"width": size["width"], "height": TALL})
    found += problems(page)
    page.set_viewport_size(size)
    assert found == [], scene


def tab(page, name):
    page.get_by_role("tab", name=name, exact=True).click()


def unfold(page, place):
    """Open every fold of a panel."""
    page.evaluate(
        f"() => document.querySelectorAll('{place} details').forEach((fold) => {{ fold.open = true; }})"
    )


def finished(page, press, place):
    """Press a button that starts a job, and wait for its end."""
    page.get_by_role("button", name=press, exact=True).click()
    page.locator(f"{place} .mk-job-note", has_text="done in").last.wait_for(timeout=PATIENCE)


def findings(page, tables, look):
    """First screen, dialogs, findings of all kinds, scenarios."""
    page.evaluate("""async () => {
        for (const { id } of await (await fetch('/api/models')).json())
            await fetch(`/api/models/${id}`, { method: 'DELETE', headers: { 'Content-Type': 'application/json' } });
    }""")
    page.goto("about:blank")
    page.go_back()
    page.locator(".mk-welcome .mk-source").first.wait_for()
    look(page, "first screen")
    choose(page, "Asia")
    look(page, "bare")
    for name in ("Open", "Save", "Share: report, picture, link", "Help (?)"):
        page.get_by_role("button", name=name, exact=True).click()
        page.locator("dialog[open]").wait_for()
        look(page, f"dialog {name.split(' ')[0]}")
        page.keyboard.press("Escape")
    state(page, "xray", "yes").click()
    state(page, "bronc", "yes").click(modifiers=["Alt"])
    settled(page)
    page.get_by_role("button", name="Keep these findings").click()
    page.locator('.mk-node[data-name="smoke"] .mk-title').click()
    page.get_by_role("button", name="Uncertain finding").click()
    page.get_by_label("Likelihood of the finding if smoke is no").wait_for()
    look(page, "findings")
    page.get_by_label("Shading of nodes").select_option("information")
    page.locator(".mk-notice", has_text="Shaded by").wait_for()
    look(page, "shading")
    page.get_by_label("Shading of nodes").select_option("")
    choose(page, "river.json")
    page.locator('.mk-node[data-name="river"] .mk-title').click()
    page.get_by_label("Least value of river").fill("5")
    page.get_by_role("button", name="Observe range").click()
    page.get_by_text("in [5, ∞]").wait_for()
    look(page, "numbers")


def questions(page, tables, look):
    """Every question of the panel that asks, with its answer."""
    choose(page, "Asia")
    for name, said in (("xray", "yes"), ("smoke", "no")):
        state(page, name, said).click()
    page.locator('.mk-node[data-name="lung"] .mk-title').click()
    page.locator('.mk-node[data-name="bronc"] .mk-title').click(modifiers=["Shift"])
    settled(page)
    for title, press in (
        ("Joint or conditional table", "Ask"),
        ("Most probable explanation", "Ask"),
        ("Are they independent?", "Ask"),
        ("Markov blanket", "Show"),
        ("Which test next?", "Ask"),
        ("What does the answer depend on?", "Ask"),
        ("Do the findings fit together?", "Check"),
        ("Answers for many cases", "Answer all"),
        ("Draw cases", "Draw"),
    ):
        ask(page, title, press)
        look(page, title)


def editing(page, tables, look):
    """Table, noisy-or and regression as forms, and the forms for new nodes."""
    choose(page, "Asia")
    page.locator('.mk-node[data-name="dysp"] .mk-title').click()
    tab(page, "Edit")
    page.locator(".mk-cell").nth(1).fill("0.7")
    look(page, "table")
    page.get_by_label("Kind of distribution").select_option("noisy-or")
    page.get_by_label("Strength of bronc").wait_for()
    look(page, "noisy-or")
    choose(page, "river.json")
    page.locator('.mk-node[data-name="rain"] .mk-title').click()
    page.get_by_label("Variance when season = wet").wait_for()
    look(page, "regression")


def learning(page, tables, look):
    """A graph learned with confidences, parameters by EM, a comparison."""
    bring(page, tables / "gaps.csv")
    page.get_by_text("400 rows, 8 columns").first.wait_for(timeout=PATIENCE)
    settled(page)
    unfold(page, "#mk-panel-learn")
    page.get_by_label("Missing cells").first.select_option("drop")
    look(page, "learn")
    page.get_by_label("Resamplings").fill("20")
    finished(page, "Learn the graph", "#mk-panel-learn .mk-section:nth-child(2)")
    settled(page)
    look(page, "learned")
    finished(page, "Learn the parameters", "#mk-panel-learn .mk-section:nth-child(3)")
    look(page, "fitted")
    choose(page, "Asia")
    page.get_by_label("The other graph").select_option(label="gaps")
    page.get_by_role("button", name="Compare", exact=True).click()
    page.get_by_text("structural Hamming distance").wait_for()
    look(page, "compared")


def families(page, tables, look):
    """A series with a trend and with hidden states, draws by NUTS, topics."""
    choose(page, "Asia")
    tab(page, "Families")
    page.set_input_files("#mk-panel-families input[type=file]", tables / "series.csv")
    finished(page, "Smooth and forecast", "#mk-panel-families details:nth-of-type(1)")
    look(page, "trend")
    page.locator("#mk-panel-families").get_by_label("Model").first.select_option("hmm")
    finished(page, "Smooth and forecast", "#mk-panel-families details:nth-of-type(1)")
    look(page, "hidden states")
    page.locator("#mk-panel-families summary", has_text="Bayesian model").click()
    page.get_by_label("Draws of each chain").fill("50")
    page.get_by_label("Warm-up").fill("50")
    finished(page, "Draw", "#mk-panel-families details:nth-of-type(2)")
    look(page, "draws")
    page.set_input_files("#mk-panel-families input[type=file]", tables / "texts.txt")
    page.locator("#mk-panel-families summary", has_text="Topics of texts").click()
    page.get_by_label("Topics", exact=True).fill("2")
    finished(page, "Find topics", "#mk-panel-families details:nth-of-type(3)")
    look(page, "topics")


def causes(page, tables, look):
    """A back-door question with its effect in a table and one row's other world."""
    choose(page, "drug.json")
    tab(page, "Causes")
    page.get_by_label("Treatment", exact=True).select_option("drug")
    page.get_by_label("Outcome", exact=True).select_option("cured")
    page.get_by_text("by back-door adjustment for age").wait_for()
    unfold(page, "#mk-panel-causes")
    look(page, "identified")
    page.set_input_files("#mk-panel-causes input[type=file]", tables / "drug.csv")
    finished(page, "Estimate the effect", "#mk-panel-causes")
    page.get_by_label("A row of the table as facts").select_option("0")
    page.locator(".mk-node.mk-seen").first.wait_for(timeout=PATIENCE)
    page.get_by_role("button", name="Ask about cured").click()
    page.get_by_label("Counterfactual bounds").wait_for(timeout=PATIENCE)
    look(page, "effect")


SCENES = [findings, questions, editing, learning, families, causes]


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), SIZES)
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_what_is_shown_is_legible(browser, address, tables, scene, width, dark):
    with opened(browser, address, width=width, height=860, dark=dark) as page:
        scene(page, tables, legible)


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
        add('div', 'incomprehensibilities', { left: '9px', top: '300px', width: '40px', overflow: 'hidden' });
        add('p', 'pale words', { left: '20px', top: '10px', color: '#ccc', background: '#fff' });
    }""")
    told = json.dumps(problems(asia))
    for word in ("no name", "outside the window", "contrast", "overlap", "cut off"):
        assert word in told
