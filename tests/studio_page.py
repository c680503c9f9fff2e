"""A studio that runs beside a test, a browser that looks at it, and an audit of what it shows."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
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
def studio(folder: Path, *words: str) -> Iterator[str]:
    """Run `markovia studio` on a folder and give its address."""
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
            yield found[0]
        finally:
            running.terminate()


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
    page.set_default_timeout(10_000)
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
