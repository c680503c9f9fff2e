// The border between the drawing and the panels: drawn along, it gives one more room than the other, and is remembered.
import { h } from "./dom.js";

const KEY = "markovia:side";
/** The least share of the window that either part keeps. */
const LEAST = 0.18;

/**
 * A border that is dragged, or moved with the arrow keys; a double click puts it back.
 * @param {HTMLElement} root  the page, whose style has the share of the panels: --side where they are beside, --below where under
 */
export function splitter(root) {
  const narrow = matchMedia("(max-width: 860px)");
  const bar = h("div", { class: "mk-splitter", role: "separator", tabindex: "0", "aria-label": "Width of the panels" });
  /** @type {Record<string, number>} */
  let shares = {};
  try {
    shares = JSON.parse(localStorage.getItem(KEY) ?? "{}") ?? {};
  } catch { /* what was kept is no share */ }
  const way = () => (narrow.matches ? "below" : "side");

  function draw() {
    for (const each of ["side", "below"]) {
      const share = Number(shares[each]);
      if (share >= LEAST && share <= 1 - LEAST) root.style.setProperty(`--${each}`, `${(100 * share).toFixed(2)}${each === "side" ? "vw" : "dvh"}`);
      else root.style.removeProperty(`--${each}`);
    }
    bar.setAttribute("aria-orientation", narrow.matches ? "horizontal" : "vertical");
    bar.setAttribute("aria-valuenow", String(Math.round(100 * now())));
  }

  /** The share of the window that the panels have. */
  function now() {
    const side = root.querySelector(".mk-side")?.getBoundingClientRect();
    return !side ? 0.3 : narrow.matches ? side.height / innerHeight : side.width / innerWidth;
  }

  /** @param {number | null} share */
  function set(share) {
    if (share === null) delete shares[way()];
    else shares[way()] = Math.max(LEAST, Math.min(1 - LEAST, share));
    draw();
    try {
      localStorage.setItem(KEY, JSON.stringify(shares));
    } catch { /* a full or forbidden storage only forgets the width */ }
  }

  bar.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    bar.setPointerCapture(event.pointerId);
    bar.classList.add("mk-dragged");
  });
  bar.addEventListener("pointermove", (event) => {
    if (bar.hasPointerCapture(event.pointerId)) set(narrow.matches ? 1 - event.clientY / innerHeight : 1 - event.clientX / innerWidth);
  });
  bar.addEventListener("pointerup", () => bar.classList.remove("mk-dragged"));
  bar.addEventListener("dblclick", () => set(null));
  bar.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: 0.02, ArrowUp: 0.02, ArrowRight: -0.02, ArrowDown: -0.02 }[event.key];
    if (event.key === "Home") set(null);
    else if (step) set(now() + step);
    else return;
    event.preventDefault();
  });
  narrow.addEventListener("change", draw);
  draw();
  return bar;
}
