// What is known: the list of findings, one node in full with every kind of finding, and scenarios side by side.
import { button, fill, h, icon, number, percent, why } from "./dom.js";
import { findingText, nodeNamed } from "./store.js";
import { scenarioSection } from "./scenarios.js";

/**
 * @typedef {import("./store.js").ViewNode} ViewNode
 * @typedef {import("./main.js").Context} Context
 */

export const findingsPanel = {
  id: "findings",
  title: "Findings",
  /** @param {HTMLElement} element @param {Context} context */
  mount(element, context) {
    const { store } = context;
    const list = h("section", { class: "mk-section", "aria-label": "Findings" });
    const card = h("section", { class: "mk-section", "aria-label": "Node" });
    const scenarios = h("section", { class: "mk-section", "aria-label": "Scenarios" });
    element.append(list, card, scenarios);
    const showScenarios = scenarioSection(scenarios, context);
    let shown = "-";
    let update = () => {};
    const showCard = () => {
      const node = nodeNamed(store.state, store.state.selected[0]);
      const finding = node ? store.state.findings[node.name] : undefined;
      const key = node ? JSON.stringify([store.state.view?.id, node.name, node.states, node.kind, node.note, Boolean(finding?.weights)]) : "";
      if (key !== shown) {
        shown = key;
        update = node ? nodeCard(card, node, context) : emptyCard(card);
      }
      update();
    };
    const showList = () => findingsList(list, context);
    store.subscribe((_, changed) => {
      const has = (/** @type {string[]} */ ...keys) => keys.some((key) => changed.has(key));
      if (has("view", "findings", "interventions", "info", "logEvidence", "busy")) showList();
      if (has("view", "selected", "findings", "interventions", "marginals")) showCard();
      if (has("view", "selected", "scenarios", "reference", "marginals")) showScenarios();
    });
    showList();
    showCard();
    showScenarios();
  },
};

/** @param {HTMLElement} element @param {Context} context */
function findingsList(element, { store, actions, graph }) {
  const { state } = store;
  const seen = Object.keys(state.findings).length > 0;
  const items = [
    ...Object.entries(state.findings).map(([name, finding]) => ({ name, text: findingText(finding), kind: finding.weights ? "slider" : finding.interval ? "range" : "eye" })),
    ...Object.entries(state.interventions).map(([name, value]) => ({ name, text: `do = ${value}`, kind: "hammer" })),
  ];
  fill(element,
    h("div", { class: "mk-section-head" }, h("h2", null, "Findings"),
      items.length ? button("Clear all", () => actions.clear(), { class: "mk-quiet" }) : null),
    items.length
      ? h("ul", { class: "mk-findings" }, items.map(({ name, text, kind }) => h("li", { class: kind === "hammer" ? "mk-is-done" : "mk-is-seen" },
        icon(kind), h("button", { type: "button", class: "mk-link", onclick: () => graph?.reveal(name) }, name),
        h("span", { class: "mk-finding-text" }, text),
        button(null, () => actions.retract(name), { icon: "close", label: `Retract ${name}` }))))
      : h("p", { class: "mk-hint" }, "Nothing observed yet. Click a bar in a node to say what you saw; click it again to take it back."),
    state.info ? why({ ...state.info, log_evidence: seen ? state.logEvidence : null }) : null,
    seen && state.logEvidence !== null && Number.isFinite(state.logEvidence)
      ? h("p", { class: "mk-hint" }, `Probability of these findings: ${percent(Math.exp(state.logEvidence))}`) : null,
    state.view?.cost && !state.view.cost.exact ? h("p", { class: "mk-hint" }, "This model is too large for exact answers; they are approximate.") : null);
}

/** @param {HTMLElement} element */
function emptyCard(element) {
  fill(element, h("div", { class: "mk-section-head" }, h("h2", null, "Node")),
    h("p", { class: "mk-hint" }, "Select a node to see all its states and to enter uncertain findings, intervals or interventions."));
  return () => {};
}

/**
 * @param {HTMLElement} element
 * @param {ViewNode} node
 * @param {Context} context
 */
function nodeCard(element, node, context) {
  const { store, actions } = context;
  const parents = (store.state.view?.edges ?? []).filter((edge) => edge.to === node.name).length;
  const head = h("div", { class: "mk-section-head" }, h("h2", { class: "mk-clip", title: node.name }, node.name),
    node.kind === "states" ? null : h("span", { class: "mk-tag" }, node.kind));
  const body = h("div", { class: "mk-card" });
  fill(element, head, node.note ? h("p", { class: "mk-note" }, node.note) : null, body);
  const update = node.kind === "utility" ? worthCard(body, node, context)
    : node.states ? statesCard(body, node, node.states, context) : numberCard(body, node, context);
  const retract = button("Retract", () => actions.retract(node.name), { class: "mk-quiet" });
  body.append(h("div", { class: "mk-row" }, retract,
    store.state.readOnly ? null : button(parents ? "Edit its table" : "Edit", () => store.set({ panel: "edit" }), { class: "mk-quiet" })));
  return () => {
    retract.disabled = !(node.name in store.state.findings || node.name in store.state.interventions);
    update();
  };
}

/**
 * @param {HTMLElement} body
 * @param {ViewNode} node
 * @param {string[]} states
 * @param {Context} context
 */
function statesCard(body, node, states, { store, actions }) {
  const { state } = store;
  const soft = Boolean(state.findings[node.name]?.weights);
  const rows = states.map((text, place) => {
    const inner = h("span", { class: "mk-bar-fill" });
    const words = h("span", { class: "mk-bar-text" });
    const observe = h("button", { type: "button", class: "mk-state-bar", onclick: (/** @type {MouseEvent} */ event) =>
      actions.toggleState(node.name, text, event.altKey ? "do" : undefined) },
    inner, h("span", { class: "mk-state-name" }, text), words);
    const exclude = button(null, () => toggleExcluded(text), { icon: "close", label: `Exclude ${text}`, class: "mk-quiet" });
    const cut = button(null, () => actions.toggleState(node.name, text, "do"), { icon: "hammer", label: `Set ${node.name} to ${text} by intervention`, class: "mk-quiet" });
    const slide = soft ? h("input", { type: "range", class: "mk-range", min: "0", max: "1", step: "0.01", value: state.findings[node.name]?.weights?.[text] ?? 0,
      "aria-label": `Likelihood of the finding if ${node.name} is ${text}`, oninput: () => softened() }) : null;
    return { text, place, inner, words, observe, exclude, cut, slide, row: h("div", { class: "mk-state-line" }, observe, states.length > 2 ? exclude : null, cut, slide) };
  });
  function softened() {
    const weights = Object.fromEntries(rows.map((row) => [row.text, Number(row.slide?.value ?? 1)]));
    if (Object.values(weights).some((w) => w > 0)) actions.observe(node.name, { weights });
  }
  /** @param {string} text */
  function toggleExcluded(text) {
    const finding = state.findings[node.name];
    const out = new Set(finding?.not ?? []);
    if (!out.delete(text)) out.add(text);
    actions.observe(node.name, out.size ? { not: [...out] } : null);
  }
  fill(body, rows.map((row) => row.row),
    h("div", { class: "mk-row" }, soft
      ? button("Equal likelihoods", () => { for (const { slide } of rows) if (slide) slide.value = "0.5"; softened(); }, { class: "mk-quiet" })
      : button("Uncertain finding…", () => actions.observe(node.name, { weights: Object.fromEntries(states.map((text, place) => [text, place ? 0.5 : 1])) }),
        { icon: "slider", class: "mk-quiet", label: "Uncertain finding: how likely the report is under each state" })));
  return () => {
    const finding = state.findings[node.name];
    const fixed = state.interventions[node.name] ?? finding?.state;
    const p = state.marginals[node.name]?.p;
    for (const row of rows) {
      const value = fixed !== undefined ? Number(String(fixed) === row.text) : p?.[row.place];
      row.inner.style.width = `${100 * (value ?? 0)}%`;
      row.words.textContent = value === undefined ? "" : percent(value);
      row.observe.setAttribute("aria-pressed", String(finding?.state === row.text));
      row.observe.setAttribute("class", `mk-state-bar ${finding?.state === row.text ? "mk-seen" : ""} ${String(state.interventions[node.name]) === row.text ? "mk-done" : ""}`);
      row.cut.setAttribute("aria-pressed", String(String(state.interventions[node.name]) === row.text));
      row.exclude.setAttribute("aria-pressed", String(Boolean(finding?.not?.includes(row.text))));
    }
  };
}

/** What a utility is worth on average: known once every decision is made. @param {HTMLElement} body @param {ViewNode} node @param {Context} context */
function worthCard(body, node, { store }) {
  const facts = h("p", { class: "mk-facts" });
  fill(body, facts);
  return () => {
    const mean = store.state.marginals[node.name]?.mean;
    facts.textContent = mean === undefined ? "What this is worth depends on decisions that are not made yet." : `worth ${number(mean, 6)} on average`;
  };
}

/**
 * @param {HTMLElement} body
 * @param {ViewNode} node
 * @param {Context} context
 */
function numberCard(body, node, { store, actions }) {
  const { state } = store;
  const facts = h("p", { class: "mk-facts" });
  const box = (/** @type {string} */ label, /** @type {string} */ placeholder) => h("input", { class: "mk-input", type: "number", step: "any", placeholder, "aria-label": label });
  const value = box(`Value of ${node.name}`, "value");
  const low = box(`Least value of ${node.name}`, "least");
  const high = box(`Greatest value of ${node.name}`, "greatest");
  const form = (/** @type {() => void} */ act, /** @type {any[]} */ ...children) =>
    h("form", { class: "mk-row", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); act(); } }, ...children);
  const end = (/** @type {HTMLInputElement} */ input) => (input.value === "" ? null : Number(input.value));
  fill(body, facts,
    form(() => value.value !== "" && actions.observe(node.name, { value: Number(value.value) }), value,
      h("button", { class: "mk-button" }, "Observe"),
      button("do( )", () => value.value !== "" && actions.intervene(node.name, Number(value.value)), { icon: "hammer" })),
    form(() => (low.value !== "" || high.value !== "") && actions.observe(node.name, { interval: [end(low), end(high)] }), low, h("span", null, "to"), high,
      h("button", { class: "mk-button" }, "Observe range")));
  return () => {
    const marginal = state.marginals[node.name];
    const finding = state.findings[node.name];
    const range = ["0.05", "0.5", "0.95"].map((q) => marginal?.quantiles?.[q]);
    facts.textContent = finding?.value !== undefined ? `observed at ${finding.value}`
      : marginal?.mean === undefined ? "" : `mean ${number(marginal.mean)}, sd ${number(marginal.sd)}`
        + (range[0] !== undefined && range[2] !== undefined ? `, 90 % between ${number(range[0])} and ${number(range[2])}` : "");
  };
}
