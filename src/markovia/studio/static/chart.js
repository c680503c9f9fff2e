// Small charts as SVG: lines, bands, points, steps and bars, with axes, a legend and a readout under the pointer. Every
// chart is an image with a name for screen readers; colours come from the tones of panels.css.
import { h, number, svg } from "./dom.js";

/**
 * @typedef {(number | null)[]} Values
 * @typedef {{kind: "line" | "points" | "steps", name: string, x?: number[], y: Values, tone?: number, quiet?: boolean}
 *   | {kind: "band", name: string, x?: number[], low: Values, high: Values, tone?: number, quiet?: boolean}} Layer
 * @typedef {{label: string, layers: Layer[], xLabel?: string, yLabel?: string, height?: number, at?: number | null,
 *   from?: number, to?: number, legend?: boolean}} Plot
 */

const WIDTH = 350;
const EDGE = { left: 42, right: 8, top: 8, bottom: 30 };

/** Round steps between two numbers. @param {number} low @param {number} high @param {number} [about] */
export function ticks(low, high, about = 5) {
  const span = high - low || 1;
  const rough = span / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * (/** @type {number} */ ([1, 2, 2.5, 5, 10].find((nice) => nice * power >= rough)));
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => Number(((first + i) * step).toPrecision(12)));
}

/** Numbers as texts, with the digits that tell them apart. @param {number[]} values */
function told(values) {
  const written = (/** @type {number} */ digits) => values.map((v) => number(v, digits));
  return [4, 5, 6, 7, 8, 9].map(written).find((texts) => new Set(texts).size === values.length) ?? written(10);
}

/** The numbers of a layer. @param {Layer} layer */
const valuesOf = (layer) => (layer.kind === "band" ? [...layer.low, ...layer.high] : layer.y);
/** Where a layer's values are. @param {Layer} layer */
const placesOf = (layer) => layer.x ?? Array.from({ length: (layer.kind === "band" ? layer.low : layer.y).length }, (_, i) => i);

/** A chart of layers over one axis. @param {Plot} plot */
export function chart({ label, layers, xLabel = "", yLabel = "", height = 190, at = null, from, to, legend = true }) {
  const all = layers.flatMap(valuesOf).filter((v) => v !== null && Number.isFinite(v)).map(Number);
  const places = layers.flatMap(placesOf);
  if (!all.length) return h("p", { class: "mk-hint" }, "There is nothing to draw.");
  const lowest = from ?? Math.min(...all), highest = to ?? Math.max(...all);
  const room = (highest - lowest || Math.abs(highest) || 1) * 0.06;
  const y0 = from ?? lowest - room, y1 = to ?? highest + room;
  const x0 = Math.min(...places), x1 = Math.max(...places, x0 + 1e-9);
  const [down, across] = [ticks(y0, y1), ticks(x0, x1, 6).filter((v) => v >= x0 && v <= x1)];
  const texts = told(down);
  const left = Math.max(EDGE.left, 12 + 6 * Math.max(...texts.map((text) => text.length)));
  const top = EDGE.top + (yLabel ? 14 : 0);
  const wide = WIDTH - left - EDGE.right;
  const px = (/** @type {number} */ x) => left + ((x - x0) / (x1 - x0)) * wide;
  const py = (/** @type {number} */ y) => height - EDGE.bottom - ((y - y0) / (y1 - y0 || 1)) * (height - top - EDGE.bottom);
  const cursor = svg("line", { class: "mk-chart-cursor", y1: top, y2: height - EDGE.bottom, x1: -9, x2: -9 });
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "mk-chart", role: "img", "aria-label": label },
    down.map((v, i) => [
      svg("line", { class: "mk-chart-grid", x1: left, x2: WIDTH - EDGE.right, y1: py(v), y2: py(v) }),
      svg("text", { class: "mk-chart-text mk-chart-y", x: left - 6, y: py(v) + 3.5 }, texts[i])]),
    told(across).map((text, i) => svg("text", { class: "mk-chart-text mk-chart-x", x: Math.min(px(across[i]), WIDTH - 3.2 * text.length), y: height - EDGE.bottom + 14 }, text)),
    xLabel ? svg("text", { class: "mk-chart-text mk-chart-label", x: WIDTH - EDGE.right, y: height - 3, "text-anchor": "end" }, xLabel) : null,
    yLabel ? svg("text", { class: "mk-chart-text mk-chart-label", x: left, y: EDGE.top + 5 }, yLabel) : null,
    at === null ? null : svg("line", { class: "mk-chart-now", x1: px(at), x2: px(at), y1: top, y2: height - EDGE.bottom }),
    layers.map((layer) => drawn(layer, px, py)), cursor);
  const readout = h("span", { class: "mk-chart-readout", "aria-hidden": "true" });
  const named = layers.filter((layer) => !layer.quiet);
  drawing.addEventListener("pointermove", (event) => {
    const frame = drawing.getBoundingClientRect();
    const x = x0 + (((event.clientX - frame.left) / frame.width) * WIDTH - left) / wide * (x1 - x0);
    const nearest = places.reduce((best, place) => (Math.abs(place - x) < Math.abs(best - x) ? place : best), places[0]);
    cursor.setAttribute("x1", String(px(nearest)));
    cursor.setAttribute("x2", String(px(nearest)));
    readout.textContent = `${xLabel || "at"} ${number(nearest)}: ` + layers.filter((layer) => placesOf(layer).includes(nearest)).map((layer) => {
      const i = placesOf(layer).indexOf(nearest);
      return layer.kind === "band" ? `${number(layer.low[i])} to ${number(layer.high[i])}` : `${layer.name} ${number(layer.y[i])}`;
    }).join(", ");
  });
  drawing.addEventListener("pointerleave", () => {
    readout.textContent = "";
    cursor.setAttribute("x1", "-9");
    cursor.setAttribute("x2", "-9");
  });
  return h("figure", { class: "mk-figure" }, drawing, h("figcaption", { class: "mk-legend" },
    legend && named.length ? named.map((layer) => h("span", { class: `mk-key mk-key-${layer.kind} mk-tone-${layer.tone ?? 0}` }, layer.name)) : null, readout));
}

/** @param {Layer} layer @param {(x: number) => number} px @param {(y: number) => number} py */
function drawn(layer, px, py) {
  const at = placesOf(layer);
  const tone = `mk-tone-${layer.tone ?? 0}`;
  const there = (/** @type {Values} */ values, /** @type {number} */ i) => values[i] !== null && values[i] !== undefined && Number.isFinite(values[i]);
  const round = (/** @type {number} */ v) => Number(v.toFixed(1));
  if (layer.kind === "band") {
    const keep = at.map((_, i) => i).filter((i) => there(layer.low, i) && there(layer.high, i));
    const up = keep.map((i) => `${round(px(at[i]))} ${round(py(Number(layer.high[i])))}`);
    const down = [...keep].reverse().map((i) => `${round(px(at[i]))} ${round(py(Number(layer.low[i])))}`);
    return svg("path", { class: `mk-chart-band ${tone}`, d: up.length ? `M${[...up, ...down].join("L")}Z` : "" });
  }
  if (layer.kind === "points")
    return svg("g", { class: `mk-chart-points ${tone}` }, at.map((x, i) => (there(layer.y, i) ? svg("circle", { cx: round(px(x)), cy: round(py(Number(layer.y[i]))), r: at.length > 200 ? 1.2 : 2 }) : null)));
  let path = "";
  let pen = false;
  at.forEach((x, i) => {
    if (!there(layer.y, i)) { pen = false; return; }
    const spot = `${round(px(x))} ${round(py(Number(layer.y[i])))}`;
    path += !pen ? `M${spot}` : layer.kind === "steps" ? `H${round(px(x))}V${round(py(Number(layer.y[i])))}` : `L${spot}`;
    pen = true;
  });
  return svg("path", { class: `mk-chart-line ${tone}`, d: path });
}

/**
 * Horizontal bars with their names: words of a topic, sizes of effects.
 * @param {string} label
 * @param {{name: string, value: number, text?: string}[]} rows
 * @param {number} [tone]
 */
export function bars(label, rows, tone = 0) {
  const most = Math.max(...rows.map((row) => Math.abs(row.value)), 1e-300);
  return h("ul", { class: `mk-bars mk-tone-${tone}`, "aria-label": label }, rows.map((row) => {
    const inner = h("span", { class: "mk-bars-fill" });
    inner.style.width = `${(100 * Math.abs(row.value)) / most}%`;
    return h("li", null, h("span", { class: "mk-bars-name" }, row.name), h("span", { class: "mk-bars-track", "aria-hidden": "true" }, inner),
      h("span", { class: "mk-bars-value" }, row.text ?? number(row.value)));
  }));
}

/**
 * Shares that add up to one, stacked; one tone each.
 * @param {string} label
 * @param {number[]} shares
 * @param {(k: number) => string} name
 */
export function stack(label, shares, name) {
  return h("span", { class: "mk-stack", role: "img", "aria-label": label }, shares.map((share, k) => {
    if (share < 0.005) return null;
    const part = h("span", { class: `mk-stack-part mk-tone-${k % 8}`, title: `${name(k)} ${Math.round(100 * share)} %` });
    part.style.width = `${100 * share}%`;
    return part;
  }));
}

/**
 * States over time: one strip a state, as dark as the state is probable.
 * @param {string} label
 * @param {Values[]} states
 * @param {number[]} path
 * @param {number} ahead
 */
export function strips(label, states, path, ahead) {
  const steps = states[0]?.length ?? 0;
  const high = 16, gap = 3, height = states.length * (high + gap) + 18;
  const wide = (WIDTH - EDGE.left - EDGE.right) / Math.max(1, steps);
  return h("figure", { class: "mk-figure" }, svg("svg", { viewBox: `0 0 ${WIDTH} ${height}`, class: "mk-chart", role: "img", "aria-label": label },
    states.map((p, k) => [
      svg("text", { class: "mk-chart-text mk-chart-y", x: EDGE.left - 6, y: k * (high + gap) + 12 }, `state ${k + 1}`),
      svg("rect", { class: "mk-chart-track", x: EDGE.left, y: k * (high + gap), width: WIDTH - EDGE.left - EDGE.right, height: high }),
      svg("g", { class: `mk-chart-cells mk-tone-${k % 8}` }, p.map((value, i) => (value && value > 0.01
        ? svg("rect", { x: (EDGE.left + i * wide).toFixed(2), y: k * (high + gap), width: wide.toFixed(2), height: high, "fill-opacity": value.toFixed(2) }) : null))),
      svg("g", { class: "mk-chart-path" }, runs(path, k).map(([start, end]) => svg("line", {
        x1: (EDGE.left + start * wide).toFixed(1), x2: (EDGE.left + end * wide).toFixed(1), y1: k * (high + gap) + high - 1.5, y2: k * (high + gap) + high - 1.5 })))]),
    ahead ? svg("line", { class: "mk-chart-now", x1: EDGE.left + (steps - ahead) * wide, x2: EDGE.left + (steps - ahead) * wide, y1: 0, y2: height - 18 }) : null,
    svg("text", { class: "mk-chart-text mk-chart-label", x: WIDTH - EDGE.right, y: height - 3, "text-anchor": "end" }, "step")),
  h("figcaption", { class: "mk-legend" }, "The darker, the more probable; the line below is the most probable path."));
}

/**
 * Rows of numbers as small pictures, a row of them a line: bright is low, dark is high, unseen is struck out.
 * @param {string} label @param {(number | null)[][][]} lines @param {number} side @param {number} low @param {number} high @param {string[]} [names]
 */
export function pictures(label, lines, side, low, high, names = []) {
  const left = names.length ? EDGE.left + 24 : 0, gap = 6;
  const across = Math.max(...lines.map((line) => line.length));
  const size = Math.min(56, (WIDTH - left) / across - gap), cell = size / side;
  const height = lines.length * (size + gap);
  return h("figure", { class: "mk-figure" }, svg("svg", { viewBox: `0 0 ${WIDTH} ${height.toFixed(1)}`, class: "mk-chart", role: "img", "aria-label": label },
    lines.map((line, j) => [
      names[j] ? svg("text", { class: "mk-chart-text mk-chart-y", x: left - 6, y: (j * (size + gap) + size / 2 + 4).toFixed(1) }, names[j]) : null,
      line.map((values, i) => svg("g", { class: "mk-chart-cells mk-tone-0", transform: `translate(${(left + i * (size + gap)).toFixed(1)} ${(j * (size + gap)).toFixed(1)})` },
        svg("rect", { class: "mk-chart-track", width: size.toFixed(1), height: size.toFixed(1) }),
        values.map((value, k) => {
          const x = ((k % side) * cell).toFixed(2), y = (Math.floor(k / side) * cell).toFixed(2);
          if (value === null) return svg("rect", { class: "mk-chart-unseen", x, y, width: cell.toFixed(2), height: cell.toFixed(2) });
          const ink = high > low ? (value - low) / (high - low) : 0;
          return ink > 0.02 ? svg("rect", { x, y, width: (cell + 0.2).toFixed(2), height: (cell + 0.2).toFixed(2), "fill-opacity": Math.min(1, ink).toFixed(2) }) : null;
        })))])),
  h("figcaption", { class: "mk-legend" }, label));
}

/** Stretches of a path in one state. @param {number[]} path @param {number} k */
function runs(path, k) {
  /** @type {[number, number][]} */
  const found = [];
  path.forEach((state, i) => {
    if (state !== k) return;
    const last = found.at(-1);
    if (last && last[1] === i) last[1] = i + 1;
    else found.push([i, i + 1]);
  });
  return found;
}
