// Distributions with few parameters: noisy-or and noisy-and, and linear Gaussians.
import { button, field, fill, h, select } from "./dom.js";

/**
 * @typedef {{name: string, kind: string, states: string[] | null, parents: {name: string, states: string[] | null}[], rows: number[][] | null,
 *   row_labels: string[][] | null, form: any, text: string, editable: boolean, note: string}} NodeDetail
 */

/** @param {string} label @param {any} value @param {Record<string, any>} [more] */
function numberBox(label, value, more) {
  return h("input", { class: "mk-input", type: "number", step: "any", value: String(value), "aria-label": label, ...more });
}

/**
 * @param {HTMLElement} element
 * @param {NodeDetail} node
 * @param {string} kind  "noisy-or" or "noisy-and"
 * @param {(form: any) => Promise<boolean>} save
 */
export function noisyForm(element, node, kind, save) {
  const effect = `${node.name} = ${node.states?.at(-1)}`;
  const old = node.form?.strengths ? node.form : { strengths: {}, leak: 0, on: {} };
  const parts = node.parents.map((parent) => {
    const states = parent.states ?? [];
    let on = old.on[parent.name] ?? states[states.length - 1];
    const strength = numberBox(`Strength of ${parent.name}`, old.strengths[parent.name] ?? 0.8, { min: "0", max: "1" });
    const row = h("tr", null, h("th", { scope: "row" }, parent.name),
      h("td", null, select(states, on, (next) => { on = next; }, { "aria-label": `The state of ${parent.name} that acts` })), h("td", null, strength));
    return { name: parent.name, row, read: () => ({ on, strength: Number(strength.value) }) };
  });
  const leak = numberBox("Leak", old.leak, { min: "0", max: "1" });
  const apply = () => {
    const read = parts.map((part) => ({ name: part.name, ...part.read() }));
    return save({ kind, strengths: Object.fromEntries(read.map((part) => [part.name, part.strength])), leak: Number(leak.value),
      on: Object.fromEntries(read.map((part) => [part.name, part.on])) });
  };
  fill(element, h("p", { class: "mk-hint" }, kind === "noisy-or"
    ? `Each parent that acts brings ${effect} about on its own with its strength; the leak is its probability without any cause.`
    : `Every parent is needed for ${effect}; each that is absent prevents it with its strength.`),
  h("div", { class: "mk-scroll", tabindex: "0", role: "region", "aria-label": "Strengths" }, h("table", { class: "mk-table" }, h("caption", { class: "mk-sr" }, "Strengths"),
    h("thead", null, h("tr", null, ["parent", "acts when", "strength"].map((text) => h("th", { scope: "col" }, text)))),
    h("tbody", null, parts.map((part) => part.row)))),
  field("Leak", leak), h("div", { class: "mk-row" }, button("Apply", apply, { class: "mk-primary" })));
}

/**
 * @param {HTMLElement} element
 * @param {NodeDetail} node
 * @param {(form: any) => Promise<boolean>} save
 */
export function gaussianForm(element, node, save) {
  const continuous = node.parents.filter((parent) => !parent.states).map((parent) => parent.name);
  const discrete = node.parents.filter((parent) => parent.states);
  const labels = node.row_labels?.length ? node.row_labels : [[]];
  const rows = labels.map((label, place) => {
    const old = node.form?.rows?.[place] ?? { bias: 0, weights: {}, variance: 1 };
    const where = label.map((state, at) => `${discrete[at].name} = ${state}`).join(", ");
    const suffix = where ? ` when ${where}` : "";
    const bias = numberBox(`Constant${suffix}`, old.bias);
    const weights = continuous.map((name) => numberBox(`Weight of ${name}${suffix}`, old.weights[name] ?? 0));
    const variance = numberBox(`Variance${suffix}`, old.variance, { min: "0" });
    return { row: h("tr", null, label.map((state) => h("th", { scope: "row" }, state)), [bias, ...weights, variance].map((input) => h("td", null, input))),
      read: () => ({ bias: Number(bias.value), weights: Object.fromEntries(continuous.map((name, at) => [name, Number(weights[at].value)])), variance: Number(variance.value) }) };
  });
  fill(element, h("p", { class: "mk-hint" }, `${node.name} = constant${continuous.map((name) => ` + weight × ${name}`).join("")} + noise of the given variance`),
    h("div", { class: "mk-scroll mk-grid", tabindex: "0", role: "region", "aria-label": "Regression" }, h("table", { class: "mk-table" }, h("caption", { class: "mk-sr" }, "Regression"),
      h("thead", null, h("tr", null, [...discrete.map((parent) => parent.name), "constant", ...continuous, "variance"].map((text) => h("th", { scope: "col" }, text)))),
      h("tbody", null, rows.map((row) => row.row)))),
    h("div", { class: "mk-row" }, button("Apply", () => save({ kind: "linear-gaussian", rows: rows.map((row) => row.read()) }), { class: "mk-primary" })));
}
