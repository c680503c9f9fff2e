"""What outlives a window: saved files, links, reports, pictures, and what a killed server leaves behind."""

import os
import re
import signal

import pytest

import markovia as mk
from studio_page import bars, choose, opened, settled, state, studio_process

ASIA = mk.examples.asia()


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
    bars(asia, ASIA, {"xray": "yes"})
    link = asia.url
    asia.evaluate("() => localStorage.clear()")
    asia.goto("about:blank")
    asia.goto(link)
    asia.wait_for_selector("body[data-ready]")
    bars(asia, ASIA, {"xray": "yes"})


@pytest.mark.slow
def test_a_shared_link_opens_the_same_session(asia, browser, address):
    state(asia, "xray", "yes").click()
    state(asia, "smoke", "no").click(modifiers=["Alt"])
    settled(asia)
    asia.get_by_role("button", name="Keep these findings").click()
    asia.get_by_role("tab", name="Ask").click()
    asia.get_by_role("button", name="Share: report, picture, link").click()
    link = asia.get_by_label("Link to this session").input_value()
    assert link.startswith(address.split("?")[0] + "#")
    asia.keyboard.press("Escape")
    with opened(browser, address) as other:  # another window, which the token let in
        other.evaluate("() => localStorage.clear()")
        other.goto("about:blank")
        other.goto(link)
        other.wait_for_selector("body[data-ready]")
        bars(other, ASIA.do(smoke="no"), {"xray": "yes"})
        assert other.get_by_role("tab", name="Ask").get_attribute("aria-selected") == "true"
        other.get_by_role("tab", name="Findings").click()
        assert "xray = yes, do(smoke = no)" in other.locator(".mk-findings").last.inner_text()


@pytest.mark.slow
def test_the_link_is_copied(asia, address):
    asia.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address.split("/?")[0])
    asia.get_by_role("button", name="Share: report, picture, link").click()
    link = asia.get_by_label("Link to this session").input_value()
    asia.get_by_role("button", name="Copy").click()
    asia.get_by_text("Copied").wait_for()
    assert asia.evaluate("() => navigator.clipboard.readText()") == link
    assert asia.locator("dialog").count() == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("press", "ending", "start"),
    [
        ("Download report", "html", b"<!doctype html>"),
        ("Download as SVG", "svg", b"<svg"),
        ("Download as PNG", "png", b"\x89PNG"),
    ],
)
def test_reports_and_pictures_are_downloaded(asia, press, ending, start):
    state(asia, "xray", "yes").click()
    settled(asia)
    asia.get_by_role("button", name="Share: report, picture, link").click()
    with asia.expect_download() as coming:
        asia.get_by_role("button", name=press).click()
    assert coming.value.suggested_filename == f"asia.{ending}"
    data = coming.value.path().read_bytes()
    assert start in data[:200]
    assert ending == "png" or b"xray" in data


@pytest.mark.slow
def test_a_killed_server_loses_nothing(browser, tmp_path):
    with studio_process(tmp_path) as (where, running), opened(browser, where) as page:
        choose(page, "Asia")
        page.locator('.mk-node[data-name="smoke"] .mk-title').click()
        page.get_by_role("tab", name="Edit").click()
        page.get_by_label("P(yes)", exact=True).fill("0.9")
        page.get_by_label("P(no)", exact=True).fill("0.1")
        page.get_by_role("button", name="Apply", exact=True).click()
        page.locator('.mk-row-state[aria-label="smoke yes 90.0 %"]').wait_for()
        page.locator(".mk-textarea").fill("asked at the door")
        page.get_by_role("button", name="Rename", exact=True).focus()
        page.wait_for_function("() => document.title.startsWith('•')")
        while not any(
            "asked at the door" in file.read_text() for file in (tmp_path / "state").glob("*.json")
        ):
            page.wait_for_timeout(50)
        os.kill(running.pid, signal.SIGKILL)
        running.wait()
        state(page, "xray", "yes").click()
        page.locator(".mk-toast-error", has_text="does not answer").wait_for()  # once, whatever failed
    with studio_process(tmp_path) as (where, running), opened(browser, where) as page:
        card = page.locator(".mk-source", has_text="not saved")
        assert re.match(r"asia\s+not saved · ", card.inner_text())
        card.click()
        changed = ASIA.copy()
        changed.replace("smoke", p=[0.9, 0.1])
        page.locator(".mk-model-name", has_text="asia").wait_for(
            timeout=60_000
        )  # a new server imports on first use
        bars(page, changed)
        page.locator('.mk-node[data-name="smoke"] .mk-title').click()
        page.get_by_text("asked at the door").first.wait_for()
        assert page.title().startswith("•")  # it still is not saved
        page.get_by_role("button", name="Undo (Ctrl+Z)").click()  # the note
        page.get_by_role("button", name="Undo (Ctrl+Z)").click()  # the table
        page.locator('.mk-row-state[aria-label="smoke yes 50.0 %"]').wait_for()
        bars(page, ASIA)
