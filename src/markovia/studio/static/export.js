// The network as a picture of its own: an SVG that carries its styles, or a PNG drawn from it.
import { h } from "./dom.js";
import { mountGraph } from "./graph.js";
import { frameOf } from "./layout_view.js";

/** @typedef {{store: import("./store.js").Store, actions: import("./session.js").Actions}} Context */

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin", "opacity",
  "font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline", "visibility"];
const MARGIN = 20;

/**
 * The whole network as an SVG file, every node in full, in the colours of now.
 * @param {Context} context
 */
export async function svgPicture(context) {
  const frame = frameOf(context.store.state.view?.nodes ?? []);
  if (!frame) throw new Error("there is nothing to draw yet");
  const box = { x: frame.left - MARGIN, y: frame.top - MARGIN, width: frame.right - frame.left + 2 * MARGIN, height: frame.bottom - frame.top + 2 * MARGIN };
  const { world, ground } = await drawn(context, box);
  const picture = part("svg", { xmlns: "http://www.w3.org/2000/svg", viewBox: [box.x, box.y, box.width, box.height].map(round).join(" "),
    width: round(box.width), height: round(box.height) });
  picture.append(part("rect", { ...box, fill: ground }), world);
  return new Blob([new XMLSerializer().serializeToString(picture)], { type: "image/svg+xml" });
}

/**
 * The picture as a PNG of twice its size, at most 8,000 pixels wide or high.
 * @param {Context} context
 * @returns {Promise<Blob>}
 */
export async function pngPicture(context) {
  const text = await (await svgPicture(context)).text();
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, 8000 / Math.max(image.width, image.height));
  const sheet = document.createElement("canvas");
  sheet.width = Math.round(image.width * scale);
  sheet.height = Math.round(image.height * scale);
  sheet.getContext("2d")?.drawImage(image, 0, 0, sheet.width, sheet.height);
  return new Promise((resolve, reject) => sheet.toBlob((blob) => (blob ? resolve(blob)
    : reject(new Error("the browser could not draw the picture as PNG; take SVG instead")))));
}

/** A file name for something made of a model. @param {string | undefined} name @param {string} suffix */
export function fileName(name, suffix) {
  return `${(name ?? "").replace(/[^\p{L}\p{N}_-]+/gu, "-").replace(/^-+|-+$/g, "") || "network"}.${suffix}`;
}

/**
 * Draw the network out of sight at full size and copy it, with the styles it has.
 * @param {Context} context
 * @param {{x: number, y: number, width: number, height: number}} box
 */
async function drawn({ store, actions }, box) {
  const host = h("div", { "aria-hidden": "true", inert: true });
  Object.assign(host.style, { position: "fixed", left: "-100000px", top: "0", width: `${box.width}px`, height: `${box.height}px` });
  (document.querySelector(".mk") ?? document.body).append(host);
  const camera = { x: box.x + box.width / 2, y: box.y + box.height / 2, k: 1 };
  const state = { ...store.state, camera, selected: [], focus: null };
  const graph = mountGraph(host, { store: { state, set: () => {}, subscribe: () => () => {} }, actions });
  try {
    const wanted = state.view?.nodes.length ?? 0;
    for (let frame = 0; frame < 120 && graph.canvas.querySelectorAll(".mk-node").length < wanted; frame += 1)
      await new Promise((done) => requestAnimationFrame(done));
    const world = /** @type {SVGGElement} */ (graph.canvas.querySelector(".mk-world"));
    const copy = /** @type {SVGGElement} */ (world.cloneNode(true));
    for (const attribute of ["class", "transform"]) copy.removeAttribute(attribute);
    const copies = [...copy.querySelectorAll("*")];
    for (const [place, element] of [...world.querySelectorAll("*")].entries()) {
      if (element.matches(".mk-handle, .mk-lasso, .mk-rope, .mk-edges-far")) copies[place].remove();
      else if (element.tagName !== "title") dress(copies[place], element);
    }
    return { world: copy, ground: getComputedStyle(host).backgroundColor };
  } finally {
    graph.destroy();
    host.remove();
  }
}

/** @param {Element} copy @param {Element} element */
function dress(copy, element) {
  const style = getComputedStyle(element);
  for (const key of STYLES) copy.setAttribute(key, style.getPropertyValue(key));
  const own = /** @type {SVGElement} */ (element).style; // the length of a bar, say, which is still growing there
  for (const key of own) copy.setAttribute(key, own.getPropertyValue(key).replace(/px$/, ""));
  for (const attribute of ["style", "class", "tabindex", "role", "aria-label", "aria-roledescription"]) copy.removeAttribute(attribute);
}

/** @param {string} tag @param {Record<string, any>} attributes */
function part(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  return made;
}

/** @param {number} x */
function round(x) {
  return Math.round(100 * x) / 100;
}
