"""Learning and causal questions in a real browser: from a table to a graph with knowledge, cancel, effects, one row."""

import numpy as np
import pandas as pd
import pytest

import markovia as mk
from studio_page import chromium, opened, problems, studio

PATIENCE = 120_000
"""Milliseconds that a job may take on a busy machine."""


@pytest.fixture(scope="module")
def browser():
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("studio")
    mk.examples.asia().sample(800, seed=4).to_csv(made / "asia.csv", index=False)
    (made / "broken.csv").write_text("a,b\n1,2,3\n4\n")
    drug = mk.BayesianNetwork()
    drug.add("age", states=["young", "old"], p=[0.5, 0.5])
    drug.add("drug", states=["no", "yes"], parents=["age"], p=[[0.8, 0.2], [0.3, 0.7]])
    drug.add(
        "cured",
        states=["no", "yes"],
        parents=["drug", "age"],
        p=[[[0.3, 0.7], [0.7, 0.3]], [[0.1, 0.9], [0.5, 0.5]]],
    )
    drug.save(made / "drug.json")
    drug.sample(1500, seed=1).to_csv(made / "drug.csv", index=False)
    rng = np.random.default_rng(0)
    level = np.concatenate([rng.normal(0, 1, 40), rng.normal(5, 1, 40)])
    pd.DataFrame({"y": level}).to_csv(made / "series.csv", index=False)
    return made


@pytest.fixture(scope="module")
def address(folder):
    with studio(folder) as found:
        yield found


def edges_become(page, many):
    """Wait until so many edges of the model are drawn; those of knowledge do not count."""
    from playwright.sync_api import expect

    expect(page.locator(".mk-edge:not([class*=overlay])")).to_have_count(many, timeout=PATIENCE)


def drag(page, source, target):
    """Draw an edge from the dot under a node to another node."""
    node = page.locator(f'.mk-node[data-name="{source}"]')
    node.hover()
    dot = node.locator(".mk-handle").bounding_box()
    end = page.locator(f'.mk-node[data-name="{target}"] .mk-box').bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 12, steps=8)
    page.mouse.up()


def bring(page, path):
    """Open a file from the first screen, or from the dialog where something is open."""
    place = ".mk-welcome"
    if not page.locator(place).is_visible():
        page.get_by_role("button", name="Open", exact=True).click()
        place = "dialog"
    page.locator(f"{place} input[aria-label='A model file from this computer']").set_input_files(path)


def test_a_table_becomes_a_graph_with_knowledge_drawn_by_hand(browser, address, folder):
    with opened(browser, address) as page:
        bring(page, folder / "asia.csv")
        page.wait_for_selector(".mk-node[data-name='lung']", timeout=PATIENCE)
        assert page.locator(".mk-node").count() == 8
        edges_become(page, 0)
        page.get_by_role("button", name="Draw required edges").click()
        drag(page, "asia", "tub")
        assert page.locator(".mk-known-required").inner_text().split("\n")[0] == "asia → tub"
        assert page.locator(".mk-overlay-required").count() == 1
        page.get_by_role("button", name="Learn the graph").click()
        page.get_by_text("done in").wait_for(timeout=PATIENCE)
        direct = mk.learn_structure(str(folder / "asia.csv"), required=[("asia", "tub")], seed=0)
        edges_become(page, direct.n_edges)
        assert page.locator(".mk-verdict").first.inner_text().startswith(f"{direct.n_edges} edges")
        page.get_by_role("button", name="Undo (Ctrl+Z)").click()
        edges_become(page, 0)


@pytest.mark.slow
def test_a_job_shows_its_progress_and_is_cancelled(browser, address, folder):
    with opened(browser, address) as page:
        bring(page, folder / "asia.csv")
        page.get_by_text("800 rows, 8 columns").first.wait_for(timeout=PATIENCE)
        page.get_by_label("Resamplings").fill("10000")
        page.get_by_role("button", name="Learn the graph").click()
        page.get_by_text("of 10,000 replicates").wait_for(timeout=PATIENCE)
        assert 0 < page.locator(".mk-job-meter").evaluate("meter => meter.value") < 1
        page.get_by_role("button", name="Cancel").click()
        page.locator(".mk-job-note", has_text="cancelled").wait_for()
        assert page.locator(".mk-job-meter").count() == 0
        page.set_input_files("#mk-panel-learn input[type=file]", folder / "broken.csv")
        assert "broken.csv" in page.locator(".mk-toast-error").inner_text()


@pytest.mark.slow
def test_the_causal_panel_on_a_back_door_graph(browser, address, folder):
    with opened(browser, address) as page:
        bring(page, folder / "drug.json")
        page.wait_for_selector(".mk-node[data-name='drug']", timeout=PATIENCE)
        page.get_by_role("tab", name="Causes").click()
        page.locator("select[aria-label=Treatment]").select_option("drug")
        page.locator("select[aria-label=Outcome]").select_option("cured")
        page.get_by_text("by back-door adjustment for age").wait_for()
        formula = page.locator(".mk-formula").first.inner_text()
        assert formula == "P(cured | do(drug)) = Σ_age P(age) P(cured | drug, age)"
        assert page.locator(".mk-node.mk-marked").count() == 3
        hidden = page.get_by_label("Add to Hidden variables")
        hidden.fill("age")
        hidden.press("Enter")
        page.get_by_text("Not identified").wait_for()
        page.get_by_role("button", name="Remove age").click()
        page.get_by_text("by back-door adjustment for age").wait_for()
        page.set_input_files("#mk-panel-causes input[type=file]", folder / "drug.csv")
        page.get_by_role("button", name="Estimate the effect").click()
        page.get_by_text("Attempts to refute it").wait_for(timeout=PATIENCE)
        direct = mk.causal.effect(str(folder / "drug.csv"), mk.load(folder / "drug.json"), "drug", "cured")
        said = float(page.locator(".mk-effect strong").inner_text().replace("−", "-"))
        assert said == pytest.approx(direct.value, rel=1e-3)
        page.locator("select[aria-label='A row of the table as facts']").select_option("0")
        page.locator(".mk-node.mk-seen").first.wait_for(timeout=PATIENCE)
        facts = pd.read_csv(folder / "drug.csv").iloc[0].to_dict()
        other = {"yes": "no", "no": "yes"}[facts["drug"]]
        page.get_by_role("button", name="Ask about cured").click()
        page.get_by_text(f"cured, had drug been {other}").wait_for(timeout=PATIENCE)
        bounds = mk.load(folder / "drug.json").counterfactual("cured", given=facts, do={"drug": other})["no"]
        cells = (
            page.locator("[aria-label='Counterfactual bounds'] tbody tr")
            .first.locator("td")
            .all_inner_texts()
        )
        assert [float(cell.removesuffix(" %")) / 100 for cell in cells] == pytest.approx(bounds, abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (1280, True), (400, False), (400, True)])
def test_panels_are_legible_and_labelled(browser, address, folder, width, dark):
    with opened(browser, address, width=width, height=860, dark=dark) as page:
        bring(page, folder / "drug.json")
        page.wait_for_selector(".mk-node[data-name='drug']", timeout=PATIENCE)
        for name in ("Learn", "Causes", "Families"):
            page.get_by_role("tab", name=name).click()
            page.wait_for_timeout(300)
            assert problems(page) == []
        page.set_input_files("#mk-panel-families input[type=file]", folder / "series.csv")
        page.get_by_role("button", name="Smooth and forecast").click()
        page.get_by_text("done in").wait_for(timeout=PATIENCE)
        assert page.locator("#mk-panel-families svg.mk-chart").count() == 1
        assert problems(page) == []
