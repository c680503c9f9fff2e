// Findings kept under a name, and their answers side by side.
import { bar, button, fill, h, table } from "./dom.js";
import { findingText, nodeNamed } from "./store.js";

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {import("./store.js").Marginal} Marginal
 */

/**
 * @param {HTMLElement} element
 * @param {Context} context
 */
export function scenarioSection(element, context) {
  const { store, actions } = context;
  const { state } = store;
  return () => {
    const kept = state.scenarios;
    fill(element,
      h("div", { class: "mk-section-head" }, h("h2", null, "Scenarios"),
        button("Keep these findings", () => actions.keepScenario(freeName(kept.map((each) => each.name))), { icon: "pin", class: "mk-quiet", disabled: !state.view })),
      kept.length ? null : h("p", { class: "mk-hint" }, "Keep the findings of now as a scenario, change them, and compare the answers."),
      kept.length ? h("ul", { class: "mk-findings" }, kept.map((scenario) => h("li", null,
        h("span", { class: "mk-tag" }, scenario.name),
        h("span", { class: "mk-finding-text mk-clip" }, words(scenario) || "no findings"),
        button("Use", () => actions.restore(scenario), { class: "mk-quiet", label: `Use the findings of scenario ${scenario.name}` }),
        button(null, () => store.set({ reference: state.reference === scenario.name ? null : scenario.name }),
          { icon: "pin", class: "mk-quiet", label: `Show scenario ${scenario.name} as the line in every bar`, "aria-pressed": String(state.reference === scenario.name) }),
        button(null, () => store.set({ scenarios: kept.filter((other) => other !== scenario) }), { icon: "close", label: `Forget scenario ${scenario.name}` })))) : null,
      kept.length ? comparison(context) : null);
  };
}

/** @param {import("./store.js").Scenario} scenario */
function words({ findings, interventions }) {
  return [...Object.entries(findings).map(([name, finding]) => `${name} ${findingText(finding)}`),
    ...Object.entries(interventions).map(([name, value]) => `do(${name} = ${value})`)].join(", ");
}

/** @param {string[]} taken */
function freeName(taken) {
  for (const letter of "ABCDEFGHIJKLMNOPQRSTUVWXYZ") if (!taken.includes(letter)) return letter;
  return `scenario ${taken.length + 1}`;
}

/** Rows for the selected nodes or, with none, for the nodes that differ most. @param {Context} context */
function comparison({ store, graph }) {
  const { state } = store;
  const columns = [...state.scenarios.map(({ name, marginals, findings, interventions }) => ({ name, marginals, findings, interventions })),
    { name: "now", marginals: state.marginals, findings: state.findings, interventions: state.interventions }];
  const nodes = (state.view?.nodes ?? []).filter((node) => node.states);
  /** @param {typeof columns[0]} column @param {string} name @param {string[]} states */
  const distribution = (column, name, states) => {
    const fixed = column.interventions[name] ?? column.findings[name]?.state;
    return fixed !== undefined ? states.map((text) => Number(text === String(fixed))) : column.marginals[name]?.p;
  };
  const spread = (/** @type {import("./store.js").ViewNode} */ node) => {
    const all = columns.map((column) => distribution(column, node.name, node.states ?? [])).filter((p) => p !== undefined);
    return Math.max(0, ...(node.states ?? []).map((_, place) => Math.max(...all.map((p) => p[place])) - Math.min(...all.map((p) => p[place]))));
  };
  const chosen = state.selected.map((name) => nodeNamed(state, name)).filter((node) => node?.states);
  const shown = chosen.length ? chosen : nodes.map((node) => ({ node, far: spread(node) })).filter(({ far }) => far > 1e-6)
    .sort((a, b) => b.far - a.far).slice(0, 8).map(({ node }) => node);
  const rows = shown.flatMap((node) => (node?.states ?? []).slice(0, 12).map((text, place) => [
    h("button", { type: "button", class: "mk-link", onclick: () => node && graph?.reveal(node.name) }, `${node?.name} = ${text}`),
    ...columns.map((column) => {
      const p = distribution(column, node?.name ?? "", node?.states ?? []);
      return p ? bar(p[place]) : "–";
    })]));
  if (!rows.length) return h("p", { class: "mk-hint" }, "No node differs between the scenarios.");
  return [h("p", { class: "mk-hint" }, chosen.length ? "The selected nodes:" : "The nodes that differ most (select nodes to choose your own):"),
    table(["", ...columns.map((column) => column.name)], rows, "Scenarios side by side")];
}
