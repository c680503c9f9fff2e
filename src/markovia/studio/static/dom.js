// Elements, icons, toasts and dialogs. Text only ever enters the page as text nodes, so no name can become markup.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {Element} element
 * @param {Record<string, any> | null | undefined} props
 * @param {any[]} children
 */
function dress(element, props, children) {
  for (const [key, value] of Object.entries(props ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2).toLowerCase(), value);
    else if (key === "class") element.setAttribute("class", value);
    else if (key === "dataset") Object.assign(/** @type {HTMLElement} */ (element).dataset, value);
    else if (key === "value" || key === "checked" || key === "indeterminate" || key === "selected")
      /** @type {any} */ (element)[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  if (props && "value" in props && element instanceof HTMLSelectElement) element.value = props.value;
  return element;
}

/**
 * @param {Element} element
 * @param {any[]} children
 */
function append(element, children) {
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    if (Array.isArray(child)) append(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

/**
 * An HTML element with attributes, listeners (`onclick`) and children.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function h(tag, props, ...children) {
  return /** @type {any} */ (dress(document.createElement(tag), props, children));
}

/**
 * An SVG element, as `h`.
 * @template {keyof SVGElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any> | null} [props]
 * @param {...any} children
 * @returns {SVGElementTagNameMap[K]}
 */
export function svg(tag, props, ...children) {
  return /** @type {any} */ (dress(document.createElementNS(SVG, tag), props, children));
}

/**
 * Set an attribute where it differs: a browser draws anew whatever is set, changed or not.
 * @param {Element} element
 * @param {string} name
 * @param {string} value
 */
export function put(element, name, value) {
  if (element.getAttribute(name) !== value) element.setAttribute(name, value);
}

/**
 * Replace what an element holds.
 * @param {Element} element
 * @param {...any} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/** Outlines on a 16 x 16 grid. @type {Record<string, string>} */
const ICONS = {
  eye: "M1.5 8S4 3.5 8 3.5 14.5 8 14.5 8 12 12.5 8 12.5 1.5 8 1.5 8ZM8 6a2 2 0 1 0 0 4 2 2 0 0 0 0-4",
  hammer: "M2 3h7.5v3.5H2ZM9.5 3.5c2.2 0 3.7 1 4.5 3-1.3-.9-2.7-1-4.5-.7M5.75 6.5V14",
  slider: "M2 5h6M12 5h2M10 3v4M2 11h2M8 11h6M6 9v4",
  scissors: "M5 5.5 13 12M5 10.5 13 4M3.5 6.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3M3.5 12.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3",
  range: "M3 3.5v9M13 3.5v9M3 8h10M5.5 6 3.5 8l2 2M10.5 6l2 2-2 2",
  undo: "M6 3 3 6l3 3M3 6h6a4 4 0 0 1 0 8H6",
  redo: "M10 3l3 3-3 3M13 6H7a4 4 0 0 0 0 8h3",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.5 10.5 14 14",
  close: "M4 4l8 8M12 4l-8 8",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3 5.5 5.5 0 1 0 13 9.5Z",
  help: "M6 6a2 2 0 1 1 2.5 2c-.5.2-.5.6-.5 1.200M8 11.5v.5M8 1.5a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13",
  link: "M6.5 9.5l3-3M7 4.5l1.5-1.5a3 3 0 0 1 4.5 4.5L11.5 9M9 11.5 7.5 13A3 3 0 0 1 3 8.5L4.5 7",
  open: "M2 12.5v-9h4l1.5 2H14v7Z",
  save: "M8 2v8M4.5 6.5 8 10l3.5-3.5M2.5 11.5v2h11v-2",
  box: "M3 3h2M7 3h2M11 3h2v2M13 7v2M13 11v2h-2M9 13H7M5 13H3v-2M3 9V7M3 5V3",
  trash: "M3 4.5h10M6 4.5v-2h4v2M4.5 4.5l.5 9h6l.5-9",
  pin: "M8 10v4M4.5 10h7L10 7V2.5H6V7Z",
  chevron: "M6 4l4 4-4 4",
  tidy: "M6 2h4v3H6ZM2 11h4v3H2ZM10 11h4v3h-4ZM8 5v3M4 11V8h8v3",
};

/**
 * @param {string} name
 * @param {Record<string, any>} [props]
 */
export function icon(name, props) {
  return svg("svg", { viewBox: "0 0 16 16", class: "mk-icon", "aria-hidden": "true", ...props },
    svg("path", { d: ICONS[name] }));
}

/** The outline of an icon, for drawings that hold their own `path`. @param {string} name */
export function iconPath(name) {
  return ICONS[name];
}

/**
 * A button. With `icon` and no text, `label` is its accessible name and its tooltip.
 * @param {string | null} text
 * @param {(event: MouseEvent) => void} onclick
 * @param {Record<string, any> & {icon?: string, label?: string}} [props]
 */
export function button(text, onclick, props = {}) {
  const { icon: drawn, label, class: extra, ...rest } = props;
  const names = label ? { "aria-label": label, title: label } : {};
  return h("button", { type: "button", class: `mk-button ${extra ?? ""}`, onclick, ...names, ...rest },
    drawn ? icon(drawn) : null, text ? h("span", null, text) : null);
}

/**
 * A labelled control.
 * @param {string} text
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(text, control, hint) {
  return h("label", { class: "mk-field" }, h("span", { class: "mk-field-name" }, text), control,
    hint ? h("span", { class: "mk-hint" }, hint) : null);
}

/**
 * A select with options given as texts or [value, text] pairs.
 * @param {(string | [string, string])[]} options
 * @param {string} value
 * @param {(value: string) => void} onchange
 * @param {Record<string, any>} [props]
 */
export function select(options, value, onchange, props) {
  const made = h("select", { class: "mk-select", ...props, onchange: () => onchange(made.value) },
    options.map((option) => {
      const [key, text] = typeof option === "string" ? [option, option] : option;
      return h("option", { value: key, selected: key === value }, text);
    }));
  return made;
}

/**
 * Several names picked from a list: chips, and a box that completes.
 * @param {string[]} choices
 * @param {string[]} picked
 * @param {(picked: string[]) => void} onchange
 * @param {string} label
 */
export function namePicker(choices, picked, onchange, label) {
  let chosen = [...picked];
  const known = new Set(choices);
  const list = h("datalist", { id: `mk-names-${++pickers}` }, choices.map((name) => h("option", { value: name })));
  const input = h("input", { class: "mk-input", list: list.id, "aria-label": `Add to ${label}`,
    placeholder: "add a name…", autocomplete: "off", spellcheck: "false",
    onchange: () => take(), onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") { event.preventDefault(); take(); }
      if (event.key === "Backspace" && !input.value && chosen.length) change(chosen.slice(0, -1));
    } });
  const chips = h("span", { class: "mk-chips" });
  const element = h("div", { class: "mk-picker", role: "group", "aria-label": label }, chips, input, list);
  function take() {
    const name = input.value;
    if (!known.has(name)) return;
    input.value = "";
    if (!chosen.includes(name)) change([...chosen, name]);
  }
  /** @param {string[]} next */
  function change(next) {
    chosen = next;
    draw();
    onchange(chosen);
  }
  function draw() {
    fill(chips, chosen.map((name) => h("span", { class: "mk-chip" }, h("span", null, name),
      button(null, () => change(chosen.filter((other) => other !== name)), { icon: "close", label: `Remove ${name}`,
        class: "mk-chip-close" }))));
  }
  draw();
  return Object.assign(element, { value: () => chosen,
    /** @param {string[]} next */ set: (next) => { chosen = [...next]; draw(); } });
}

let pickers = 0;

/**
 * A short message that goes away by itself; errors stay longer and are read out.
 * @param {string} text
 * @param {"info" | "error"} [kind]
 */
export function toast(text, kind = "info") {
  const shelf = shelved();
  const note = h("div", { class: `mk-toast mk-toast-${kind}`, role: kind === "error" ? "alert" : undefined },
    h("span", null, text), button(null, () => note.remove(), { icon: "close", label: "Dismiss" }));
  for (const other of [...shelf.children]) if (other.textContent === text) other.remove(); // said already
  shelf.append(note);
  while (shelf.children.length > 3) shelf.firstElementChild?.remove();
  setTimeout(() => note.remove(), kind === "error" ? 8_000 : 4_000);
}

/** Where messages stand: in the dialog that is open, which covers the page, else on the page. */
function shelved() {
  const page = document.querySelector(".mk") ?? document.body;
  const shelf = document.querySelector(".mk-toasts") ?? h("div", { class: "mk-toasts", role: "status", "aria-live": "polite" });
  const place = [...document.querySelectorAll("dialog[open]")].at(-1) ?? page;
  if (shelf.parentElement !== place) place.append(shelf);
  return shelf;
}

/** Errors are gone once what they were about was done. */
export function clearErrors() {
  for (const note of document.querySelectorAll(".mk-toast-error")) note.remove();
}

/**
 * A modal dialog; resolves with what `close(value)` was given, or null.
 * @param {string} title
 * @param {(close: (value: any) => void) => any} body
 * @param {string} [extra]
 * @returns {Promise<any>}
 */
export function dialog(title, body, extra = "") {
  return new Promise((resolve) => {
    /** @type {any} */
    let result = null;
    const close = (/** @type {any} */ value) => { result = value; box.close(); };
    const box = h("dialog", { class: `mk-dialog ${extra}`, "aria-label": title, onclose: () => {
      if (box.querySelector(".mk-toasts")) shelved(); // the dialog goes, what was said stays its time
      box.remove();
      resolve(result);
    } },
      h("header", { class: "mk-dialog-head" }, h("h2", null, title),
        button(null, () => close(null), { icon: "close", label: "Close" })),
      body(close));
    (document.querySelector(".mk") ?? document.body).append(box);
    box.showModal();
  });
}

/**
 * Ask for a line of text.
 * @param {string} title
 * @param {string} label
 * @param {string} value
 * @returns {Promise<string | null>}
 */
export function ask(title, label, value) {
  return dialog(title, (close) => {
    const input = h("input", { class: "mk-input", value });
    return h("form", { class: "mk-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); close(input.value); } },
      field(label, input), h("div", { class: "mk-row" }, h("button", { class: "mk-button mk-primary" }, "OK"),
        button("Cancel", () => close(null))));
  });
}

/**
 * Hand a file to the reader.
 * @param {string} name
 * @param {Blob | string} content
 */
export function download(name, content) {
  const url = URL.createObjectURL(typeof content === "string" ? new Blob([content], { type: "text/plain" }) : content);
  const anchor = h("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** A probability as people read it: 5.5 %, 0.02 %, 100 %. @param {number} p */
export function percent(p) {
  const value = 100 * p;
  if (value === 0 || value === 100) return `${value} %`;
  if (value < 0.001) return "≈0 %";
  if (value > 99.995) return "≈100 %";
  const digits = value < 0.095 ? 3 : value < 0.995 || value > 99.05 ? 2 : 1;
  return `${value.toFixed(digits)} %`;
}

/** A number in at most so many significant digits. @param {number | null | undefined} x @param {number} [digits] */
export function number(x, digits = 4) {
  if (x === null || x === undefined || Number.isNaN(x)) return "–";
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "−∞";
  const size = Math.abs(x);
  const text = size !== 0 && (size < 1e-3 || size >= 1e6) ? x.toExponential(digits - 2) : String(Number(x.toPrecision(digits)));
  return text.replace("-", "−");
}

/** Seconds as people read them. @param {number} s */
export function duration(s) {
  return s < 0.001 ? "under 1 ms" : s < 1 ? `${(1000 * s).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(s < 10 ? 1 : 0)} s`;
}

/**
 * A bar of a probability with its text.
 * @param {number} p
 * @param {string} [tone]
 */
export function bar(p, tone = "") {
  const inner = h("span", { class: "mk-bar-fill" });
  inner.style.width = `${100 * Math.max(0, Math.min(1, p))}%`;
  return h("span", { class: `mk-bar ${tone}` }, inner, h("span", { class: "mk-bar-text" }, percent(p)));
}

/**
 * A table with a head; cells are texts or nodes.
 * @param {any[]} head
 * @param {any[][]} rows
 * @param {string} caption
 * @param {(place: number) => Record<string, any>} [props]  of a row, by its place
 */
export function table(head, rows, caption, props) {
  return h("div", { class: "mk-scroll", tabindex: "0", role: "region", "aria-label": caption },
    h("table", { class: "mk-table" }, h("caption", { class: "mk-sr" }, caption),
      h("thead", null, h("tr", null, head.map((cell) => h("th", { scope: "col" }, cell)))),
      h("tbody", null, rows.map((row, line) => h("tr", props?.(line) ?? null, row.map((cell, place) =>
        place ? h("td", null, cell) : h("th", { scope: "row" }, cell)))))));
}

/**
 * How an answer was made.
 * @param {import("./store.js").Info | null | undefined} info
 */
export function why(info) {
  if (!info) return null;
  const words = [info.engine, info.exact ? "exact" : "approximate"];
  if (!info.exact && info.converged === false) words.push("not converged");
  if (info.error) words.push(`error ${number(info.error)}`);
  if (info.seconds !== null && info.seconds !== undefined) words.push(duration(info.seconds));
  return h("p", { class: `mk-why ${info.exact ? "" : "mk-approximate"}` }, h("span", { class: "mk-why-mark" }, info.exact ? "✓" : "≈"),
    h("span", null, words.filter(Boolean).join(" · ")),
    info.log_evidence !== null && info.log_evidence !== undefined
      ? h("span", null, `ln P(findings) = ${number(info.log_evidence)}`) : null,
    info.note ? h("span", { class: "mk-why-note" }, info.note) : null);
}
