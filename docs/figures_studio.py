"""Pictures of the studio, a report and the notebook widget, taken in Chromium: `python docs/figures_studio.py`.

They are kept in `docs/images`, so that the documentation is built without a browser. Run this after the page changed
and look at every picture; it needs Chromium and the packages of the `test` extra.
"""

import io
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import markovia as mk

IMAGES = Path(__file__).parent / "images"
COLOURS = 96
"""Of a palette; drawings need no more, and files stay small."""


def draw_all(folder: Path, only: str = "") -> None:
    """Take all pictures, or those whose name holds a word."""
    folder.mkdir(exist_ok=True)
    with chromium() as browser, tempfile.TemporaryDirectory() as place:
        for scene in (tour, trails, intervention, editor, learning, small_screen, report, widget):
            if only in scene.__name__:
                scene(browser, folder, Path(place))


def tour(browser: Any, folder: Path, place: Path) -> None:
    """Draw asia with two findings: the picture of the README."""
    with studio(place, "asia") as address, window(browser, address) as page:
        observe(page, "xray", "yes")
        observe(page, "smoke", "no")
        page.click('[data-name="lung"] .mk-title')
        keep(page, folder / "studio.png")


def trails(browser: Any, folder: Path, place: Path) -> None:
    """Draw why two nodes depend on each other."""
    with studio(place, "asia") as address, window(browser, address) as page:
        observe(page, "dysp", "yes")
        page.click('[data-name="tub"] .mk-title')
        page.click('[data-name="bronc"] .mk-title', modifiers=["Shift"])
        page.click("[role=tab]:has-text('Ask')")
        page.click("text=Are they independent?")
        page.click(".mk-fold[open] .mk-primary")
        page.wait_for_selector(".mk-verdict")
        keep(page, folder / "studio_ask.png")


def intervention(browser: Any, folder: Path, place: Path) -> None:
    """Draw doing beside seeing, as scenarios."""
    with studio(place, "asia") as address, window(browser, address) as page:
        observe(page, "bronc", "yes")
        page.click("text=Keep these findings")
        observe(page, "bronc", "yes")
        page.click('[data-name="bronc"] [data-state="yes"]', modifiers=["Alt"])
        page.wait_for_selector('[data-name="bronc"].mk-done')
        page.mouse.click(60, 690)
        keep(page, folder / "studio_do.png")


def editor(browser: Any, folder: Path, place: Path) -> None:
    """Draw the table of a node."""
    with studio(place, "asia") as address, window(browser, address) as page:
        page.click('[data-name="dysp"] .mk-title')
        page.click("[role=tab]:has-text('Edit')")
        page.wait_for_timeout(300)
        keep(page, folder / "studio_edit.png")


def learning(browser: Any, folder: Path, place: Path) -> None:
    """Draw a graph learned from a table, with the bootstrap's confidence as widths."""
    mk.examples.asia().sample(3000, seed=0).to_csv(place / "clinic.csv", index=False)
    with studio(place, "asia") as address, window(browser, address) as page:
        page.click("[role=tab]:has-text('Learn')")
        page.set_input_files(".mk-choice input[type=file]", place / "clinic.csv")
        page.wait_for_selector("text=Learn the graph >> visible=true")
        page.fill("label:has-text('Resamplings') input", "20")
        page.click("text=Learn the graph")
        page.wait_for_selector(".mk-job table, .mk-job .mk-why, .mk-job .mk-table", timeout=90_000)
        page.wait_for_timeout(800)
        keep(page, folder / "studio_learn.png")


def small_screen(browser: Any, folder: Path, place: Path) -> None:
    """Draw the page on a telephone."""
    with studio(place, "asia") as address, window(browser, address, width=400, height=760) as page:
        observe(page, "xray", "yes")
        keep(page, folder / "studio_small.png")


def report(browser: Any, folder: Path, place: Path) -> None:
    """Draw a report, opened from its file."""
    file = place / "report.html"
    mk.examples.asia().report(file, given={"xray": "yes", "smoke": "yes"}, title="Chest clinic")
    with window(browser, file.as_uri(), height=1000) as page:
        keep(page, folder / "report.png")


def widget(browser: Any, folder: Path, place: Path) -> None:
    """Draw the widget by itself."""
    shown = mk.examples.asia().show(given={"xray": "yes"}, height=420)
    page = browser.new_page(viewport={"width": 1000, "height": 440})
    model = "{get: (n) => state[n], set() {}, save_changes() {}, on() {}, off() {}}"
    page.evaluate(
        """async ({ esm, css, state }) => {
          document.head.append(Object.assign(document.createElement("style"), { textContent: css }));
          const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
          module.default.render({ model: MODEL, el: document.body });
        }""".replace("MODEL", model),
        {"esm": shown._esm, "css": shown._css, "state": shown.get_state()},
    )
    page.wait_for_selector("[data-ready=true]")
    keep(page, folder / "widget.png")


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        browser.close()


@contextmanager
def studio(place: Path, model: str) -> Iterator[str]:
    """Run the studio on a model and give its address."""
    command = [
        sys.executable,
        "-m",
        "markovia",
        "studio",
        model,
        "--no-browser",
        "--state",
        str(place / "state"),
    ]
    with subprocess.Popen(command, cwd=place, stdout=subprocess.PIPE, text=True) as running:
        try:
            assert running.stdout is not None
            found = re.search(r"http://\S+", running.stdout.readline())
            assert found
            yield found[0]
        finally:
            running.terminate()


@contextmanager
def window(
    browser: Any, address: str, *, width: int = 1280, height: int = 800, dark: bool = False
) -> Iterator[Any]:
    """Open a page and wait until it has answers."""
    inside = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme="dark" if dark else "light",
        reduced_motion="reduce",
    )
    page = inside.new_page()
    page.goto(address)
    page.wait_for_selector("body[data-ready]")
    page.wait_for_selector(".mk-node")
    yield page
    inside.close()


def observe(page: Any, name: str, state: str) -> None:
    """Click a bar and wait for the answer."""
    page.click(f'[data-name="{name}"] [data-state="{state}"]')
    page.wait_for_timeout(500)


def keep(page: Any, path: Path) -> None:
    """Save what the window shows with a palette."""
    from PIL import Image

    page.wait_for_timeout(300)
    taken = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
    taken.quantize(COLOURS, dither=Image.Dither.NONE).save(path, optimize=True)
    print(f"{path.name}: {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    draw_all(IMAGES, *sys.argv[1:])
