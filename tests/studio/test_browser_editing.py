"""Changing a model in the page: tables, blocks of a spreadsheet, noisy-or and linear Gaussians, nodes and edges."""

import numpy as np
import pytest

import markovia as mk
from studio_page import bars, choose, settled

ASIA = mk.examples.asia()


def editor(page, name):
    """Open the editor of a node."""
    page.locator(f'.mk-node[data-name="{name}"] .mk-title').click()
    page.get_by_role("tab", name="Edit").click()
    page.locator("#mk-panel-edit h2", has_text=name).wait_for()


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


def test_a_block_of_a_spreadsheet_fills_the_table(asia):
    editor(asia, "dysp")
    asia.locator(".mk-cell").first.wait_for()
    paste(asia, 0, "0,2\\t0,8\\r\\n0.3\\t0.7\\r\\n")
    assert numbers(asia)[:4] == [0.2, 0.8, 0.3, 0.7]  # with commas or points, as spreadsheets write them
    paste(asia, 4, "0.6\\t0.4\\t9\\n0.5\\t0.5\\n7\\t7")  # what does not fit is left out
    assert numbers(asia) == [0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.5, 0.5]
    asia.get_by_role("button", name="Apply", exact=True).click()
    changed = ASIA.copy()
    changed.replace("dysp", p=np.reshape([0.2, 0.8, 0.3, 0.7, 0.6, 0.4, 0.5, 0.5], (2, 2, 2)))
    asia.get_by_role("button", name="Undo (Ctrl+Z)").and_(asia.locator(":enabled")).wait_for()
    bars(asia, changed)
    paste(asia, 0, "2\\t6\\n1\\tx")
    asia.get_by_text("not a number").wait_for()
    assert asia.get_by_role("button", name="Normalise rows").is_disabled()
    paste(asia, 2, "1\\t3\\n6\\t4")
    asia.get_by_role("button", name="Normalise rows").click()
    changed.replace("dysp", p=np.reshape([0.25, 0.75, 0.25, 0.75, 0.6, 0.4, 0.5, 0.5], (2, 2, 2)))
    asia.locator('.mk-row-state[aria-label^="dysp yes"]').wait_for()
    asia.wait_for_function(
        "() => [...document.querySelectorAll('.mk-cell')].slice(0, 2).map((c) => c.value).join() === '0.25,0.75'"
    )
    bars(asia, changed)


def numbers(page):
    return [float(cell.input_value()) for cell in page.locator(".mk-cell").all()]


def paste(page, place, text):
    """Paste into a cell of the table, as a browser does."""
    page.locator(".mk-cell").nth(place).evaluate(
        f"""(e) => {{ const d = new DataTransfer(); d.setData('text/plain', '{text}');
            e.dispatchEvent(new ClipboardEvent('paste', {{ clipboardData: d, bubbles: true, cancelable: true }})); }}"""
    )


@pytest.mark.slow
def test_a_noisy_or_has_a_strength_for_each_cause(asia):
    editor(asia, "dysp")
    asia.get_by_label("Kind of distribution").select_option("noisy-or")
    assert "brings dysp = no about" in asia.locator("#mk-panel-edit").inner_text()
    for name, strength in (("bronc", "0.9"), ("either", "0.6")):
        asia.get_by_label(f"The state of {name} that acts").select_option("no")
        asia.get_by_label(f"Strength of {name}").fill(strength)
    asia.get_by_label("Leak", exact=True).last.fill("0.05")
    asia.get_by_role("button", name="Apply", exact=True).click()
    asia.get_by_role("button", name="Undo (Ctrl+Z)").and_(asia.locator(":enabled")).wait_for()
    noisy = ASIA.copy()
    noisy.replace("dysp", mk.local.NoisyOr({"bronc": 0.9, "either": 0.6}, 0.05), parents=["bronc", "either"])
    bars(asia, noisy)
    assert asia.get_by_label("Kind of distribution").input_value() == "noisy-or"
    assert asia.get_by_label("Strength of bronc").input_value() == "0.9"
    asia.get_by_label("Strength of bronc").fill("1.5")
    asia.get_by_role("button", name="Apply", exact=True).click()
    assert "1.5" in asia.locator(".mk-toast-error").inner_text()
    bars(asia, noisy)


@pytest.mark.slow
def test_a_linear_gaussian_is_a_regression(page, folder):
    choose(page, "river.json")
    bn = mk.load(folder / "river.json")
    editor(page, "river")
    page.get_by_label("Constant", exact=True).fill("2")
    page.get_by_label("Weight of rain", exact=True).fill("-0.25")
    page.get_by_label("Variance", exact=True).fill("0.09")
    page.get_by_role("button", name="Apply", exact=True).click()
    bn.replace("river", mk.LinearGaussian(2, {"rain": -0.25}, 0.09))
    told(page, bn, "river")
    editor(page, "rain")
    page.get_by_label("Constant when season = wet").fill("12")
    page.get_by_label("Variance when season = wet").fill("2.25")
    page.get_by_role("button", name="Apply", exact=True).click()
    bn.replace(
        "rain",
        {"dry": mk.LinearGaussian(2, {}, 1), "wet": mk.LinearGaussian(12, {}, 2.25)},
        parents=["season"],
    )
    told(page, bn, "rain")
    told(page, bn, "river")
    page.get_by_label("Variance when season = dry").fill("-1")
    page.get_by_role("button", name="Apply", exact=True).click()
    assert "-1" in page.locator(".mk-toast-error").inner_text()
    told(page, bn, "rain")


def told(page, bn, name):
    """Wait until a node of the drawing shows the library's mean and spread."""
    answer = bn.query(name)
    wanted = f"{answer.mean(name):.4g} ± {answer.sd(name):.4g}".replace("-", "−")
    page.locator(f'.mk-node[data-name="{name}"] .mk-moments', has_text=wanted).wait_for()
    settled(page)


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
    settled(asia)
    assert asia.locator(".mk-edge.mk-hot").count() == 3  # asia, tub, either, xray: all but the refused edge
    assert "cycle" in asia.locator(".mk-toast-error").inner_text()
