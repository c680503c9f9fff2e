"""Learning and causal questions in a real browser: from a table to a graph with knowledge, cancel, effects, one row."""

import pandas as pd
import pytest

import markovia as mk
from studio_page import bring, choose, drag, opened

PATIENCE = 120_000
"""Milliseconds that a job may take on a busy machine."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    made = tmp_path_factory.mktemp("tables")
    rows = mk.examples.asia().sample(800, seed=4)
    rows.to_csv(made / "asia.csv", index=False)
    rows.drop(columns=["either", "lung"]).to_csv(made / "hidden.csv", index=False)
    (made / "broken.csv").write_text("a,b\n1,2,3\n4\n")
    return made


def edges_become(page, many):
    """Wait until so many edges of the model are drawn; those of knowledge do not count."""
    from playwright.sync_api import expect

    expect(page.locator(".mk-edge:not([class*=overlay])")).to_have_count(many, timeout=PATIENCE)


@pytest.mark.slow
def test_a_table_becomes_a_graph_with_knowledge_drawn_by_hand(browser, address, tables):
    with opened(browser, address) as page:
        bring(page, tables / "asia.csv")
        page.wait_for_selector(".mk-node[data-name='lung']", timeout=PATIENCE)
        assert page.locator(".mk-node").count() == 8
        edges_become(page, 0)
        page.get_by_role("button", name="Draw required edges").click()
        drag(page, "asia", "tub")
        assert page.locator(".mk-known-required").inner_text().split("\n")[0] == "asia → tub"
        assert page.locator(".mk-overlay-required").count() == 1
        page.get_by_role("button", name="Learn the graph").click()
        page.get_by_text("done in").wait_for(timeout=PATIENCE)
        direct = mk.learn_structure(str(tables / "asia.csv"), required=[("asia", "tub")], seed=0)
        edges_become(page, direct.n_edges)
        assert page.locator(".mk-verdict").first.inner_text().startswith(f"{direct.n_edges} edges")
        page.get_by_role("button", name="Undo (Ctrl+Z)").click()
        edges_become(page, 0)


@pytest.mark.slow
def test_a_job_shows_its_progress_and_is_cancelled(browser, address, tables):
    with opened(browser, address) as page:
        bring(page, tables / "asia.csv")
        page.get_by_text("800 rows, 8 columns").first.wait_for(timeout=PATIENCE)
        page.get_by_label("Resamplings").fill("10000")
        page.get_by_role("button", name="Learn the graph").click()
        page.get_by_text("of 10,000 replicates").wait_for(timeout=PATIENCE)
        assert 0 < page.locator(".mk-job-meter").evaluate("meter => meter.value") < 1
        page.get_by_role("button", name="Cancel").click()
        page.locator(".mk-job-note", has_text="cancelled").wait_for()
        assert page.locator(".mk-job-meter").count() == 0
        page.set_input_files("#mk-panel-learn input[type=file]", tables / "broken.csv")
        assert "broken.csv" in page.locator(".mk-toast-error").inner_text()


@pytest.mark.slow
def test_the_curve_of_em_moves_while_it_runs(browser, address, tables):
    with opened(browser, address) as page:
        choose(page, "Asia")
        page.get_by_role("tab", name="Learn").click()
        page.set_input_files("#mk-panel-learn input[type=file]", tables / "hidden.csv")
        page.get_by_text("Not in the table, so hidden: lung, either.").wait_for(timeout=PATIENCE)
        page.get_by_label("Starts of EM").fill("100")
        page.get_by_role("button", name="Learn the parameters").click()
        curve = page.locator("#mk-panel-learn .mk-chart-line")
        curve.wait_for(timeout=PATIENCE)
        first = curve.get_attribute("d")
        page.wait_for_function(
            "first => document.querySelector('#mk-panel-learn .mk-chart-line')?.getAttribute('d') !== first",
            arg=first,
        )
        assert page.get_by_role("button", name="Cancel").is_enabled()  # it is still at work
        page.get_by_role("button", name="Cancel").click()
        page.locator(".mk-job-note", has_text="cancelled").wait_for()


@pytest.mark.slow
def test_the_causal_panel_on_a_back_door_graph(browser, address, folder, tmp_path):
    mk.load(folder / "drug.json").sample(1500, seed=1).to_csv(tmp_path / "drug.csv", index=False)
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
        page.set_input_files("#mk-panel-causes input[type=file]", tmp_path / "drug.csv")
        page.get_by_role("button", name="Estimate the effect").click()
        page.get_by_text("Attempts to refute it").wait_for(timeout=PATIENCE)
        direct = mk.causal.effect(str(tmp_path / "drug.csv"), mk.load(folder / "drug.json"), "drug", "cured")
        said = float(page.locator(".mk-effect strong").inner_text().replace("−", "-"))
        assert said == pytest.approx(direct.value, rel=1e-3)
        page.locator("select[aria-label='A row of the table as facts']").select_option("0")
        page.locator(".mk-node.mk-seen").first.wait_for(timeout=PATIENCE)
        facts = pd.read_csv(tmp_path / "drug.csv").iloc[0].to_dict()
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
