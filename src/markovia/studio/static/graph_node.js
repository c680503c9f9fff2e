// One node of the drawing: a title and a bar a state, or the curve of a density; from afar only its box.
import { fill, iconPath, number, percent, put, svg } from "./dom.js";
import { findingText } from "./store.js";
import { shortened } from "./layout_view.js";

/**
 * @typedef {import("./store.js").State} State
 * @typedef {import("./store.js").ViewNode} ViewNode
 * @typedef {import("./store.js").Marginal} Marginal
 */

export const TITLE = 22;
export const ROW = 16;
const MOST_ROWS = 6;
const SIDE = 6;
const FONT = '-apple-system, BlinkMacSystemFont, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", "Liberation Sans", Arial, sans-serif';

/** How much of a node is drawn. */
export const FAR = 0, NAMED = 1, FULL = 2;

/** What a click on a state or curve means is known to the graph, not to the node. */
export class NodeDrawing {
  /** @param {ViewNode} node */
  constructor(node) {
    this.node = node;
    this.level = -1;
    this.zoom = 1;
    /** @type {{row: SVGGElement, bar: SVGRectElement, tick: SVGPathElement, text: SVGTextElement, state: string}[]} */
    this.rows = [];
    this.group = svg("g", { class: "mk-node", tabindex: "-1", role: "group", "data-name": node.name });
    this.group.setAttribute("aria-roledescription", "node");
  }

  /** Put the node where its box is. */
  place() {
    const { x, y, width, height } = this.node;
    this.group.setAttribute("transform", `translate(${x - width / 2} ${y - height / 2})`);
  }

  /**
   * Draw the parts for a level of detail.
   * @param {number} level
   * @param {number} zoom
   */
  draw(level, zoom) {
    const size = level === NAMED ? Math.round(4 * Math.min(26, 10.5 / zoom)) / 4 : 0;
    if (level === this.level && size === this.zoom) return false;
    this.level = level;
    this.zoom = size;
    const { name, width, height, states, kind } = this.node;
    const outline = (/** @type {string} */ role) => (kind === "utility"
      ? svg("path", { class: role, d: `M${width / 2} 0L${width} ${height / 2}L${width / 2} ${height}L0 ${height / 2}Z` })
      : svg("rect", { class: role, width, height, rx: kind === "decision" ? 0 : 8 }));
    const box = outline("mk-box");
    this.rows = [];
    if (level === FAR || this.node.kind === "factor") {
      fill(this.group, box, level === FAR ? null : svg("title", null, name));
      this.level = FAR;
      return true;
    }
    this.shade = outline("mk-shade");
    if (kind === "utility" && level === FULL) return this.drawWorth(box, width, height);
    const label = level === NAMED
      ? svg("text", { class: "mk-name", x: width / 2, y: height / 2, "font-size": size }, shortened(name, (kind === "utility" ? 0.7 : 1) * width - 10, `600 ${size}px ${FONT}`))
      : svg("text", { class: "mk-title", x: SIDE + 4, y: 15 }, shortened(name, width - 36, `600 12px ${FONT}`));
    fill(this.group, svg("title", null, name), box, this.shade, label);
    if (level === NAMED) return true;
    this.badge = svg("path", { class: "mk-badge" });
    this.badge.setAttribute("transform", `translate(${width - 20} 4) scale(0.85)`);
    this.group.append(this.badge);
    if (states) this.drawRows(states, width);
    else if (this.node.kind === "number") this.drawCurve(width, height);
    this.group.append(svg("circle", { class: "mk-handle", cx: width / 2, cy: height + 3.5, r: 5.5 },
      svg("title", null, `Drag to another node to draw an edge from ${name}`)));
    return true;
  }

  /** A diamond with its name, and what it is worth on average. @param {SVGElement} box @param {number} width @param {number} height */
  drawWorth(box, width, height) {
    const { name } = this.node;
    this.badge = this.curve = undefined;
    this.words = svg("text", { class: "mk-name mk-worth", x: width / 2, y: height / 2 + 11, "font-size": 11 });
    fill(this.group, svg("title", null, name), box, /** @type {SVGElement} */ (this.shade),
      svg("text", { class: "mk-name", x: width / 2, y: height / 2 - 7, "font-size": 12 }, shortened(name, 0.66 * width, `600 12px ${FONT}`)), this.words);
    return true;
  }

  /** @param {string[]} states @param {number} width */
  drawRows(states, width) {
    const shown = states.length > MOST_ROWS ? MOST_ROWS : states.length;
    const long = width - 2 * SIDE;
    for (let place = 0; place < shown; place += 1) {
      const y = TITLE + ROW * place;
      const bar = svg("rect", { class: "mk-fill", x: SIDE, y: y + 1, width: long, height: ROW - 2, rx: 3 });
      // what was believed before: a mark on the upper edge, above the letters, which it must not strike
      const tick = svg("path", { class: "mk-tick", d: "M-3.5 -0.6h7L0 2.7Z" });
      const text = svg("text", { class: "mk-value", x: width - SIDE - 4, y: y + 11.5 });
      const row = svg("g", { class: "mk-row-state", role: "button", tabindex: "-1", "data-state": states[place] },
        svg("rect", { class: "mk-track", x: SIDE, y: y + 1, width: long, height: ROW - 2, rx: 3 }), bar, tick,
        svg("text", { class: "mk-state", x: SIDE + 5, y: y + 11.5 }, shortened(states[place], long - 56, `11px ${FONT}`)), text);
      this.rows.push({ row, bar, tick, text, state: states[place] });
      this.group.append(row);
    }
    if (states.length > shown)
      this.group.append(svg("text", { class: "mk-more", x: SIDE + 5, y: TITLE + ROW * shown + 11.5 }, `+ ${states.length - shown} more`));
  }

  /** @param {number} width @param {number} height */
  drawCurve(width, height) {
    const area = { class: "mk-curve-area", x: SIDE, y: TITLE + 1, width: width - 2 * SIDE, height: height - TITLE - 19, rx: 3 };
    this.area = svg("rect", area);
    this.before = svg("path", { class: "mk-curve-before" });
    this.curve = svg("path", { class: "mk-curve" });
    this.mark = svg("path", { class: "mk-curve-mark" });
    this.words = svg("text", { class: "mk-value mk-moments", x: SIDE + 4, y: height - 6 });
    this.group.append(this.area, this.before, this.curve, this.mark, this.words);
  }

  /**
   * Show what is known now.
   * @param {State} state
   * @param {Record<string, Marginal>} reference
   */
  update(state, reference) {
    const { name, states } = this.node;
    const finding = state.findings[name];
    const done = state.interventions[name];
    const marginal = state.marginals[name];
    const role = state.marks?.nodes[name];
    const classes = ["mk-node"];
    if (finding) classes.push("mk-seen");
    if (done !== undefined) classes.push("mk-done");
    if (state.selected.includes(name)) classes.push("mk-selected");
    if (role) classes.push("mk-marked", `mk-role-${role}`);
    else if (state.marks) classes.push("mk-dim");
    if (this.node.note) classes.push("mk-noted");
    if (this.node.kind === "factor") classes.push("mk-factor");
    if (this.node.kind === "decision" || this.node.kind === "utility") classes.push(`mk-${this.node.kind}`);
    put(this.group, "class", classes.join(" "));
    const shade = state.shading ? Math.max(0, Math.min(1, state.shading.values[name] ?? 0)) : 0;
    if (this.shade && this.shade.style.opacity !== String(shade)) this.shade.style.opacity = String(shade);
    if (this.level === FAR) {
      const box = /** @type {SVGElement} */ (this.group.firstChild);
      box.style.fillOpacity = state.shading ? String(0.15 + 0.85 * shade) : "";
      return;
    }
    put(this.group, "aria-label", this.describe(state, marginal));
    if (this.level !== FULL) return;
    const mark = done !== undefined ? "hammer" : finding?.weights ? "slider" : finding?.interval ? "range" : finding ? "eye" : "";
    if (this.badge) put(this.badge, "d", mark ? iconPath(mark) : "");
    if (this.node.kind === "utility" && this.words) {
      const words = marginal?.mean === undefined ? "" : number(marginal.mean, 6);
      if (this.words.textContent !== words) this.words.textContent = words;
    } else if (states) this.updateRows(states, marginal, reference[name], finding, done);
    else if (this.curve) this.updateCurve(marginal, reference[name], finding, done);
  }

  /**
   * @param {string[]} states
   * @param {Marginal | undefined} marginal
   * @param {Marginal | undefined} reference
   * @param {import("./store.js").Finding | undefined} finding
   * @param {string | number | undefined} done
   */
  updateRows(states, marginal, reference, finding, done) {
    const long = this.node.width - 2 * SIDE;
    const fixed = done ?? finding?.state;
    for (let place = 0; place < this.rows.length; place += 1) {
      const { row, bar, tick, text, state } = this.rows[place];
      const p = fixed !== undefined ? Number(fixed === state) : marginal?.p?.[place];
      const wide = `${(long * (p ?? 0)).toFixed(1)}px`;
      if (bar.dataset.wide !== wide) bar.style.width = bar.dataset.wide = wide;
      const words = p === undefined ? "" : percent(p);
      if (text.textContent !== words) text.textContent = words;
      const was = reference?.p?.[place];
      const shown = was !== undefined && p !== undefined && Math.abs(was - p) > 0.004;
      const opacity = shown ? "1" : "0";
      if (tick.style.opacity !== opacity) tick.style.opacity = opacity;
      if (was !== undefined) put(tick, "transform", `translate(${(SIDE + Math.max(3.5, Math.min(long - 3.5, long * was))).toFixed(1)} ${TITLE + ROW * place})`);
      put(row, "aria-pressed", String(fixed === state));
      put(row, "aria-label", `${this.node.name} ${state} ${words}`);
    }
  }

  /**
   * @param {Marginal | undefined} marginal
   * @param {Marginal | undefined} reference
   * @param {import("./store.js").Finding | undefined} finding
   * @param {string | number | undefined} done
   */
  updateCurve(marginal, reference, finding, done) {
    const value = done !== undefined ? Number(done) : finding?.value;
    const curve = value === undefined ? marginal?.curve : undefined;
    const range = this.range = spanOf([curve, reference?.curve], value);
    const { width, height } = this.node;
    const base = height - 18;
    const tall = height - TITLE - 23;
    const x = (/** @type {number} */ at) => SIDE + (width - 2 * SIDE) * ((at - range[0]) / (range[1] - range[0] || 1));
    const highest = Math.max(1e-300, ...(curve ?? reference?.curve ?? []).map(([, density]) => density));
    const path = (/** @type {[number, number][] | undefined} */ points, /** @type {boolean} */ closed) => {
      const there = (points ?? []).filter(([at, density]) => at >= range[0] && at <= range[1] && density !== null);
      if (!there.length) return "";
      const line = there.map(([at, density]) => `${x(at).toFixed(1)} ${(base - tall * Math.min(1, density / highest)).toFixed(1)}`).join("L");
      return closed ? `M${x(there[0][0]).toFixed(1)} ${base}L${line}L${x(there[there.length - 1][0]).toFixed(1)} ${base}Z` : `M${line}`;
    };
    if (!this.curve || !this.before || !this.mark) return;
    put(this.curve, "d", path(curve, true));
    put(this.before, "d", reference?.curve && reference !== marginal ? path(reference.curve, false) : "");
    let mark = "";
    if (value !== undefined) mark = `M${x(value)} ${TITLE + 3}V${base}`;
    else if (finding?.interval) {
      for (const end of finding.interval)
        if (end !== null) mark += `M${x(Math.max(range[0], Math.min(range[1], end)))} ${TITLE + 3}V${base}`;
    }
    put(this.mark, "d", mark);
    const words = value !== undefined ? `= ${number(value)}`
      : marginal?.mean !== undefined ? `${number(marginal.mean)} ± ${number(marginal.sd)}` : "";
    if (this.words && this.words.textContent !== words) this.words.textContent = words;
  }

  /** The value of the number line under a point of the box. @param {number} offset  pixels from the box's left */
  valueAt(offset) {
    const [low, high] = this.range ?? [0, 1];
    const share = Math.max(0, Math.min(1, (offset - SIDE) / (this.node.width - 2 * SIDE)));
    return Number((low + share * (high - low)).toPrecision(3));
  }

  /** @param {State} state @param {Marginal | undefined} marginal */
  describe(state, marginal) {
    const { name, states } = this.node;
    const finding = state.findings[name];
    const done = state.interventions[name];
    if (done !== undefined) return `${name}, set to ${done} by intervention`;
    const said = finding ? `, finding ${findingText(finding)}` : "";
    const role = state.marks?.nodes[name] ? `, ${state.marks.nodes[name]}` : "";
    if (states && marginal?.p)
      return `${name}${role}${said}: ${states.slice(0, MOST_ROWS).map((text, place) => `${text} ${percent(marginal.p?.[place] ?? 0)}`).join(", ")}`;
    if (this.node.kind === "utility") return `${name}${role}, a utility${marginal?.mean === undefined ? "" : `, worth ${number(marginal.mean, 6)} on average`}`;
    if (this.node.kind === "decision") return `${name}${role}${said}, a decision`;
    if (marginal?.mean !== undefined) return `${name}${role}${said}: mean ${number(marginal.mean)}, standard deviation ${number(marginal.sd)}`;
    return `${name}${role}${said}`;
  }
}

/**
 * The number line that shows curves whole, and a value where it lies near them.
 * @param {([number, number][] | undefined)[]} curves
 * @param {number | undefined} value
 * @returns {[number, number]}
 */
function spanOf(curves, value) {
  const points = curves.flatMap((curve) => (curve?.length ? [curve[0][0], curve[curve.length - 1][0]] : []));
  if (value !== undefined) points.push(value);
  if (!points.length) return [0, 1];
  const low = Math.min(...points);
  const high = Math.max(...points);
  return low === high ? [low - 1, high + 1] : [low, high];
}
