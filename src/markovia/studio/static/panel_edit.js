// Changing the model: nodes, edges, states, notes, and the distribution of the selected node.
import { button, field, fill, h, namePicker, select } from "./dom.js";
import { nodeNamed } from "./store.js";
import { tableEditor } from "./table_editor.js";
import { gaussianForm, noisyForm } from "./local_forms.js";

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {import("./local_forms.js").NodeDetail} NodeDetail
 */

export const editPanel = {
  id: "edit",
  title: "Edit",
  /** @param {HTMLElement} element @param {Context} context */
  mount(element, context) {
    const { store, api, actions } = context;
    const { state } = store;
    const chosen = h("div");
    const build = h("div");
    const model = h("div");
    element.append(model, chosen, build);
    let shown = "-";
    let turn = 0;

    async function showNode(again = false) {
      const node = nodeNamed(state, state.selected[0]);
      const key = node && state.view ? `${state.view.id} ${node.name}` : "";
      if (key === shown && !again) return;
      shown = key;
      const mine = ++turn;
      if (!node || !state.view || node.kind === "factor") {
        fill(chosen, h("section", { class: "mk-section" }, h("h2", null, "No node selected"), h("p", { class: "mk-hint" }, "Select a node to change its name, states, parents, table and note.")));
        return;
      }
      try {
        const detail = await api.node(state.view.id, node.name);
        if (mine === turn) nodeEditor(chosen, detail, context);
      } catch (error) {
        if (mine === turn) fill(chosen);
        actions.complain(error);
      }
    }
    let drawn = Promise.resolve(); // of the selected node
    const showBuild = () => builder(build, context, () => drawn);
    const showModel = () => modelEditor(model, build, context);
    let names = "";
    store.subscribe((_, changed) => {
      if (changed.has("view")) {
        showModel();
        const now = JSON.stringify([state.view?.id, state.view?.nodes.map((node) => node.name)]);
        if (now !== names) showBuild();
        names = now;
        drawn = showNode(true);
      } else if (changed.has("selected")) drawn = showNode();
    });
    showModel();
    showNode();
    showBuild();
  },
};

/**
 * The name of the model; where it has no node yet, that is where one begins.
 * @param {HTMLElement} element
 * @param {HTMLElement} build  the forms that come next
 * @param {Context} context
 */
function modelEditor(element, build, { store, actions }) {
  const { view } = store.state;
  const typing = element.contains(document.activeElement);
  const name = h("input", { class: "mk-input", value: view?.name ?? "", spellcheck: "false", required: true });
  fill(element, h("section", { class: "mk-section", "aria-label": "Model" }, h("form", { class: "mk-form", onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.value !== view?.name && !(await actions.edit({ op: "name", to: name.value }))) return;
    build.querySelector("input")?.focus();
  } }, field("Name of the model", h("span", { class: "mk-row" }, name, h("button", { class: "mk-button" }, "Rename the model"))))));
  if (typing) name.focus();
}

/** Put the cursor into the name of the model, to be typed over. @param {Context} context */
export function nameTheModel({ store }) {
  store.set({ panel: "edit" });
  const input = /** @type {HTMLInputElement | null} */ (document.querySelector('#mk-panel-edit [aria-label="Model"] input'));
  input?.focus();
  input?.select();
}

/**
 * @param {HTMLElement} element
 * @param {NodeDetail} node
 * @param {Context} context
 */
function nodeEditor(element, node, context) {
  const { store, actions } = context;
  const name = h("input", { class: "mk-input", value: node.name, spellcheck: "false" });
  const rename = (/** @type {Event} */ event) => {
    event.preventDefault();
    if (name.value && name.value !== node.name) actions.edit({ op: "rename", name: node.name, to: name.value });
  };
  const note = h("textarea", { class: "mk-textarea", value: node.note, onchange: () => actions.edit({ op: "note", name: node.name, text: note.value }) });
  const others = (store.state.view?.nodes ?? []).map((each) => each.name).filter((each) => each !== node.name && !node.parents.some((parent) => parent.name === each));
  const distribution = h("div", { class: "mk-form" });
  fill(element,
    h("section", { class: "mk-section", "aria-label": "Node" },
      h("div", { class: "mk-section-head" }, h("h2", { class: "mk-clip", title: node.name }, node.name),
        button("Delete", () => actions.edit({ op: "remove_node", name: node.name }), { icon: "trash", class: "mk-quiet mk-danger", label: `Delete ${node.name}` })),
      h("form", { class: "mk-form", onsubmit: rename }, field("Name", h("span", { class: "mk-row" }, name, h("button", { class: "mk-button" }, "Rename")))),
      node.states ? statesEditor(node, node.states, context) : null,
      h("div", { class: "mk-field" }, h("span", { class: "mk-field-name" }, "Parents"),
        node.parents.length ? h("span", { class: "mk-chips" }, node.parents.map((parent) => h("span", { class: "mk-chip" }, h("span", null, parent.name),
          button(null, () => actions.edit({ op: "disconnect", parent: parent.name, child: node.name }), { icon: "close", label: `Remove the edge from ${parent.name}` })))) : h("span", { class: "mk-hint" }, "none"),
        others.length ? select([["", "add a parent…"], .../** @type {[string, string][]} */ (others.map((each) => [each, each]))], "", (parent) => parent && actions.edit({ op: "connect", parent, child: node.name }),
          { "aria-label": `Add a parent of ${node.name}` }) : null),
      field("Note", note)),
    h("section", { class: "mk-section", "aria-label": "Distribution" },
      h("div", { class: "mk-section-head" }, h("h2", null, node.kind === "utility" ? "What it is worth" : node.kind === "decision" ? "What it sees" : "Distribution"), kindChoice(node, distribution, context)), distribution));
  showDistribution(distribution, node, node.kind, context);
}

/** @param {NodeDetail} node @param {HTMLElement} place @param {Context} context */
function kindChoice(node, place, context) {
  const binary = node.states?.length === 2 && node.parents.length > 0 && node.parents.every((parent) => parent.states);
  if (!node.states || !binary || !["table", "noisy-or", "noisy-and", "none"].includes(node.kind)) return h("span", { class: "mk-tag" }, node.kind);
  return select([["table", "table"], ["noisy-or", "noisy-or"], ["noisy-and", "noisy-and"]], node.kind === "none" ? "table" : node.kind,
    (kind) => showDistribution(place, node, kind, context), { "aria-label": "Kind of distribution" });
}

/** @param {HTMLElement} place @param {NodeDetail} node @param {string} kind @param {Context} context */
function showDistribution(place, node, kind, { actions }) {
  const setLocal = (/** @type {any} */ form) => actions.edit({ op: "set_local", name: node.name, form });
  if (kind === "noisy-or" || kind === "noisy-and") return noisyForm(place, node, kind, setLocal);
  if (kind === "linear-gaussian") return gaussianForm(place, node, setLocal);
  const labels = node.row_labels?.length ? node.row_labels : [[]];
  const rows = node.rows ?? (node.kind === "none" && node.states ? labels.map(() => /** @type {string[]} */ (node.states).map((_, __, all) => 1 / all.length)) : null);
  const amounts = kind === "utility";
  if (!rows || !(node.states || amounts)) return fill(place, h("p", { class: "mk-hint" }, node.text));
  tableEditor(place, { states: node.states ?? ["worth"], parents: node.parents, rowLabels: labels, rows, amounts },
    (values, normalise) => actions.edit({ op: "set_table", name: node.name, rows: values, ...(normalise ? { normalise } : {}) }), !node.editable);
}

/** @param {NodeDetail} node @param {string[]} states @param {Context} context */
function statesEditor(node, states, { actions }) {
  const list = h("div", { class: "mk-state-list" });
  let texts = [...states];
  const apply = button("Apply states", () => actions.edit({ op: "set_states", name: node.name, states: texts.map((text) => text.trim()) }), { disabled: true });
  const check = () => {
    const clean = texts.map((text) => text.trim());
    apply.disabled = clean.some((text) => !text) || new Set(clean).size !== clean.length || JSON.stringify(clean) === JSON.stringify(states);
  };
  function draw() {
    fill(list, texts.map((text, place) => h("span", { class: "mk-row" },
      h("input", { class: "mk-input", value: text, "aria-label": `State ${place + 1}`, spellcheck: "false", oninput: (/** @type {Event} */ event) => {
        texts[place] = /** @type {HTMLInputElement} */ (event.target).value;
        check();
      } }),
      button(null, () => { texts = texts.filter((_, other) => other !== place); draw(); }, { icon: "close", class: "mk-quiet", label: `Remove the state ${text}`, disabled: texts.length < 2 }))));
    check();
  }
  draw();
  return h("div", { class: "mk-field", role: "group", "aria-label": "States" }, h("span", { class: "mk-field-name" }, "States"), list,
    h("div", { class: "mk-row" }, button("Add a state", () => { texts = [...texts, `state ${texts.length + 1}`]; draw(); }, { icon: "plus", class: "mk-quiet" }), apply));
}

/** Forms for a new node and a new edge. @param {HTMLElement} element @param {Context} context @param {() => Promise<void>} drawn */
function builder(element, context, drawn) {
  const { store, actions } = context;
  const names = (store.state.view?.nodes ?? []).filter((node) => node.kind !== "factor").map((node) => node.name);
  const name = h("input", { class: "mk-input", placeholder: "name", spellcheck: "false", required: true });
  const states = h("input", { class: "mk-input", value: "no, yes", spellcheck: "false" });
  const statesField = field("States, with commas between them", states);
  let kind = "states";
  const parents = namePicker(names, [], () => {}, "its parents");
  const add = async (/** @type {Event} */ event) => {
    event.preventDefault();
    const at = context.graph?.emptySpot();
    const among = { states: states.value.split(",").map((text) => text.trim()).filter(Boolean), parents: parents.value() };
    const op = { at, name: name.value, .../** @type {Record<string, any>} */ ({ states: { op: "add_node", ...among }, decision: { op: "add_decision", ...among },
      utility: { op: "add_utility", parents: parents.value() }, number: { op: "add_number_node" } })[kind] };
    if (!(await actions.edit(op))) return;
    if (kind === "number") for (const parent of parents.value()) await actions.edit({ op: "connect", parent, child: name.value });
    store.set({ selected: [op.name] });
    context.graph?.bringInto(op.name);
    await drawn(); // it pushes this form down
    element.querySelector("input")?.focus({ preventScroll: true }); // for the next one
    element.firstElementChild?.scrollIntoView({ block: "nearest" });
  };
  const from = select(names, names[0] ?? "", () => {});
  const to = select(names, names[1] ?? names[0] ?? "", () => {});
  fill(element,
    h("section", { class: "mk-section", "aria-label": "New node" }, h("h2", null, "New node"),
      h("form", { class: "mk-form", onsubmit: add },
        field("Name of the new node", name),
        field("Kind", select([["states", "one of some states"], ["number", "a number (Gaussian)"], ["decision", "a decision"], ["utility", "a utility"]], kind, (next) => {
          kind = next;
          statesField.hidden = kind !== "states" && kind !== "decision";
        })),
        statesField, field("Parents", parents),
        h("div", { class: "mk-row" }, h("button", { class: "mk-button mk-primary" }, "Add node")))),
    names.length > 1 ? h("section", { class: "mk-section", "aria-label": "New edge" }, h("h2", null, "New edge"),
      h("div", { class: "mk-form" }, field("From", from), field("To", to),
        h("div", { class: "mk-row" }, button("Connect", () => actions.edit({ op: "connect", parent: from.value, child: to.value })),
          button("Disconnect", () => actions.edit({ op: "disconnect", parent: from.value, child: to.value }), { class: "mk-quiet" })),
        h("p", { class: "mk-hint" }, "Or drag from the dot under a node to another node."))) : null);
}
