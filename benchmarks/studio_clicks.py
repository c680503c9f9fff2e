"""Evidence clicks in the studio, in Chromium: from the click on a bar to the frame that shows the new bars.

Opens a network, zooms to where bars are drawn, clicks states of nodes in view (observe, then retract) and measures in the
page, from the click until the frame after the answer was drawn; the bars' glide of 0.16 s is after that. Then frame times
while the drawing is dragged, and the time from the command to the first paint. Needs playwright and Chromium.

Run: python benchmarks/studio_clicks.py [folder of .bif.gz files]
"""

import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODELS = ("alarm", "munin")
CLICKS = 40

CLICK = """(name) => new Promise((done) => {
  const rows = [...document.querySelectorAll(`.mk-node[data-name=${JSON.stringify(name)}] .mk-row-state`)];
  const wide = (row) => row.querySelector('.mk-fill').getBoundingClientRect().width;
  const row = rows.reduce((best, other) => (wide(other) > wide(best) ? other : best)); // a state that can be
  const box = row.getBoundingClientRect();
  const at = { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2, pointerId: 1, bubbles: true };
  const said = document.querySelector('.mk-graph > [role=status]');
  const start = performance.now();
  const watch = new MutationObserver(() => {
    watch.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  });
  watch.observe(said, { childList: true, characterData: true, subtree: true });
  row.dispatchEvent(new PointerEvent('pointerdown', at));
  row.dispatchEvent(new PointerEvent('pointerup', at));
})"""

NEAREST = """() => {
  const middles = [...document.querySelectorAll('.mk-node')].map((node) => {
    const box = node.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  });
  const off = ([x, y]) => Math.hypot(x - 448, y - 420);
  if (!middles.length) return [448, 420];
  return middles.reduce((best, other) => (off(other) < off(best) ? other : best));
}"""

PAN = """async () => {
  const canvas = document.querySelector('.mk-canvas');
  const box = document.querySelector('.mk-graph').getBoundingClientRect();
  const send = (kind, clientX, clientY) =>
    canvas.dispatchEvent(new PointerEvent(kind, { clientX, clientY, pointerId: 1, bubbles: true }));
  send('pointerdown', box.left + 5, box.top + 5);
  const frames = [];
  let last = performance.now();
  for (let i = 0; i < 120; i += 1) {
    send('pointermove', box.left + 5 + 220 * Math.sin(i / 14), box.top + 5 + 140 * Math.sin(i / 11));
    await new Promise(requestAnimationFrame);
    frames.push(performance.now() - last);
    last = performance.now();
  }
  send('pointerup', box.left + 5, box.top + 5);
  return frames;
}"""


def main() -> None:
    from playwright.sync_api import sync_playwright

    folder = Path(sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MARKOVIA_BENCHMARKS", ".") + "/bif")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    print(f"load of the machine at the start: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    with sync_playwright() as running, tempfile.TemporaryDirectory() as state:
        browser = running.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for model in MODELS:
            measure(browser, folder / f"{model}.bif.gz", state)
        browser.close()


def measure(browser, file: Path, state: str) -> None:  # type: ignore[no-untyped-def]
    """Print the clicks and frames of one model."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "markovia", "studio", str(file), "--no-browser", "--state", state]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        found = re.search(r"http://\S+", server.stdout.readline())
        assert found
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.goto(found[0])
        page.wait_for_selector(".mk-top")
        painted = time.perf_counter() - began
        page.wait_for_selector("body[data-ready]", timeout=180_000)
        ready = time.perf_counter() - began
        far = page.evaluate(PAN)
        for _ in range(60):  # zoom in on a node until bars are drawn
            if page.locator(".mk-row-state").count():
                break
            x, y = page.evaluate(NEAREST)
            page.locator(".mk-canvas").dispatch_event(
                "wheel", {"deltaY": -120, "clientX": x, "clientY": y, "bubbles": True, "cancelable": True}
            )
            page.wait_for_timeout(250)
        page.wait_for_timeout(400)
        near = page.evaluate(PAN)
        page.wait_for_timeout(400)
        names = page.eval_on_selector_all(
            ".mk-node:has(.mk-row-state)", "nodes => nodes.map((n) => n.dataset.name)"
        )
        times = []
        for name in names * CLICKS:
            if len(times) >= CLICKS + 2:
                break
            page.wait_for_timeout(200)
            times += [page.evaluate(CLICK, name), page.evaluate(CLICK, name)]
        times = times[2:]  # the first question compiles a plan
        print(f"{file.name}: first paint {painted:.2f} s, bars {ready:.2f} s after the command")
        print(
            f"  clicks ({len(times)}): median {statistics.median(times):.0f} ms, p95 {quantile(times):.0f} ms"
        )
        for what, frames in (("whole", far), ("near", near)):
            print(
                f"  drag, {what}: median {statistics.median(frames):.0f} ms, p95 {quantile(frames):.0f} ms a frame"
            )
        page.close()
        server.terminate()


def quantile(values: list[float]) -> float:
    """Return the 95th percentile."""
    return sorted(values)[int(0.95 * (len(values) - 1))]


if __name__ == "__main__":
    main()
