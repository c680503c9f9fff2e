"""How soon the studio is seen: from the command to the first paint and to the first page, in a Chromium that already runs.

Each run starts `markovia studio` and opens its address in a fresh profile, whose cache is empty. Measured from the start of
the command: the printed address, the first contentful paint, the first frame with the content of the start page (or, for a
model, with its bars), and the seconds of processor time that the server had taken by then. `--cold` gives each server empty
caches of compiled kernels and of Python's bytecode. Needs playwright and Chromium.

Run: python benchmarks/studio_start.py [MODEL] [--runs 7] [--cold]
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

WATCH = """
const seen = (selector, name) => {
  if (!(name in window) && document.querySelector(selector)) {
    window[name] = 0;
    requestAnimationFrame(() => setTimeout(() => { window[name] = performance.timeOrigin + performance.now(); }));
  }
};
new MutationObserver(() => { seen('.mk-welcome', 'startSeen'); seen('.mk-fill', 'barsSeen'); })
  .observe(document, { childList: true, subtree: true });
"""
PAINT = """() => {
  const entry = performance.getEntriesByName('first-contentful-paint')[0];
  return entry ? performance.timeOrigin + entry.startTime : 0;
}"""
COLUMNS = ("address", "first paint", "content", "processor")


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", nargs="?")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cold", action="store_true")
    given = parser.parse_args()
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        browser.new_context().new_page().goto("about:blank")
        rows = [measured(browser, given.model, cold=given.cold) for _ in range(given.runs)]
        browser.close()
    for place, what in enumerate(COLUMNS):
        values = [row[place] for row in rows]
        print(
            f"{what:>12}: median {statistics.median(values):.2f} s, least {min(values):.2f}, most {max(values):.2f}"
        )


def measured(browser: Any, model: str | None, *, cold: bool) -> tuple[float, ...]:
    """Return the seconds of one start."""
    with tempfile.TemporaryDirectory() as state:
        own = {"NUMBA_CACHE_DIR": f"{state}/kernels", "PYTHONPYCACHEPREFIX": f"{state}/bytecode"}
        command = [sys.executable, "-m", "markovia", "studio", *([model] if model else [])]
        command += ["--no-browser", "--state", f"{state}/state"]
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        page = context.new_page()
        page.add_init_script(WATCH)
        began = time.time()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**os.environ, **(own if cold else {})}
        ) as server:
            assert server.stdout is not None
            found = re.search(r"http://\S+", server.stdout.readline())
            assert found
            address = time.time()
            page.goto(found[0], wait_until="commit")
            name = "barsSeen" if model else "startSeen"
            page.wait_for_selector(".mk-fill" if model else ".mk-welcome", timeout=60_000)
            taken = processor(server.pid)
            while not (content := page.evaluate(f"window.{name}")):
                page.wait_for_timeout(20)
            paint = page.evaluate(PAINT)
            server.terminate()
        context.close()
        return address - began, paint / 1e3 - began, content / 1e3 - began, taken


def processor(pid: int) -> float:
    """Return the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
