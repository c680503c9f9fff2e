"""A studio that runs beside a test, a browser that looks at it, and an audit of what it shows."""

import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
AUDIT = Path(__file__).parent / "studio" / "audit.js"
QUIET = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def studio_process(folder: Path, *words: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Run `markovia studio` on a folder and give its address and its process."""
    command = [
        sys.executable,
        "-m",
        "markovia",
        "studio",
        *words,
        "--no-browser",
        "--state",
        str(folder / "state"),
    ]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            said = running.stdout.readline()
            found = re.search(r"http://\S+", said)
            assert found, said
            yield found[0], running
        finally:
            running.terminate()


@contextmanager
def studio(folder: Path, *words: str) -> Iterator[str]:
    """Run `markovia studio` on a folder and give its address."""
    with studio_process(folder, *words) as (where, _):
        yield where


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser, or skip with a sentence."""
    if CHROMIUM is None:
        pytest.skip("Chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=CHROMIUM, args=list(QUIET))
        yield browser
        browser.close()


@contextmanager
def opened(
    browser: Any, address: str, *, width: int = 1280, height: int = 800, dark: bool = False
) -> Iterator[Any]:
    """Open the studio in a window of its own; nothing on the page may fail."""
    window = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
        accept_downloads=True,
    )
    page = window.new_page()
    page.set_default_timeout(60_000)  # so that a test that hangs ends
    complaints: list[str] = []
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    yield page
    assert complaints == []
    window.close()


def state(page: Any, node: str, text: str) -> Any:
    """Return the row of a state in the drawing."""
    return page.locator(f'.mk-node[data-name="{node}"] .mk-row-state[data-state="{text}"]')


def shown(page: Any, node: str, text: str) -> float:
    """Return the percentage that a row of the drawing shows."""
    said: str = state(page, node, text).locator(".mk-value").text_content()
    return float(said.removesuffix(" %").lstrip("≈"))


def problems(page: Any) -> list[str]:
    """Return what the audit finds wrong with the page as it stands."""
    found: list[str] = page.evaluate(AUDIT.read_text())
    return found


def settled(page: Any) -> None:
    """Wait until every answer is drawn."""
    page.wait_for_selector(".mk-progress:not(.mk-running)", state="attached")
    page.evaluate("() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def eventually(page: Any, read: Callable[[], Any], expected: Any = None) -> Any:
    """Read what the page shows until it is as expected, or is there at all: drawing comes some frames after its answer."""
    found = read()
    for _ in range(200):
        if found is not None and (expected is None or found == expected):
            break
        page.wait_for_timeout(50)
        found = read()
    return found


def choose(page: Any, name: str) -> None:
    """Open a model from the first screen or, once one is open, from the dialog."""
    if page.locator(".mk-start").is_hidden():
        page.get_by_role("button", name="Open", exact=True).click()
    page.locator(".mk-source:visible", has_text=re.compile(f"^{re.escape(name)}")).first.click()
    named = re.compile(f"^{name.removesuffix('.json')}$", re.IGNORECASE)
    page.locator(".mk-model-name", has_text=named).wait_for(
        timeout=60_000
    )  # what numbers need is imported on first use
    settled(page)


def bring(page: Any, path: Path) -> None:
    """Open a file from the first screen, or from the dialog where something is open."""
    place = ".mk-welcome"
    if not page.locator(place).is_visible():
        page.get_by_role("button", name="Open", exact=True).click()
        place = "dialog"
    page.locator(f"{place} input[aria-label='A model file from this computer']").set_input_files(path)


def bars(page: Any, model: Any, given: Any = None) -> None:
    """Check every bar of the drawing against the library; its text has one decimal of a percentage."""
    settled(page)
    for name, posterior in model.marginals(given=given or {}).items():
        for text in posterior.states:
            assert shown(page, name, text) == pytest.approx(100 * posterior[text], abs=0.06), (name, text)


def ask(page: Any, title: str, press: str = "Ask") -> Any:
    """Open a fold of the Ask panel, send its question and return the answer."""
    page.get_by_role("tab", name="Ask").click()
    fold = page.locator("details.mk-fold", has=page.get_by_text(title, exact=True))
    if not fold.evaluate("e => e.open"):
        fold.locator("summary").click()
    fold.get_by_role("button", name=press, exact=True).click()
    result = fold.locator(".mk-result:not(.mk-waiting)")
    result.locator("> *").first.wait_for()
    return result


def drag(page: Any, source: str, target: str) -> None:
    """Draw an edge from the dot under a node to another node."""
    node = page.locator(f'.mk-node[data-name="{source}"]')
    node.hover()
    dot = node.locator(".mk-handle").bounding_box()
    end = page.locator(f'.mk-node[data-name="{target}"] .mk-box').bounding_box()
    page.mouse.move(dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2)
    page.mouse.down()
    page.mouse.move(end["x"] + end["width"] / 2, end["y"] + 12, steps=8)
    page.mouse.up()
