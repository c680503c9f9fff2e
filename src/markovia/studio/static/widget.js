// The network in a notebook: the same drawing and findings, with the evidence shared with Python.
import * as dom from "./dom.js";
import { createStore } from "./store.js";
import { createActions } from "./session.js";
import { mountGraph } from "./graph.js";
import { findingsPanel } from "./panel_findings.js";
import { localApi } from "./local_api.js";

/**
 * @typedef {{get: (name: string) => any, set: (name: string, value: any) => void, save_changes: () => void,
 *   on: (name: string, listener: () => void) => void, off: (name: string, listener: () => void) => void}} Model
 */

/**
 * Draw into a notebook's cell; returns how to take it away again.
 * @param {{model: Model, el: HTMLElement}} cell
 */
export function render({ model, el }) {
  const content = model.get("_content");
  const stage = dom.h("div", { class: "mk-widget-stage" });
  const side = dom.h("div", { class: "mk-widget-side" });
  // keys mean something to the notebook too: digits and Delete are for the network while it has the focus
  const root = dom.h("div", { class: "mk mk-widget", "data-theme": themeOf(document), "data-lm-suppress-shortcuts": "true",
    onkeydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation() },
    dom.h("div", { class: "mk-widget-parts" }, stage, side));
  root.style.setProperty("--height", `${model.get("_height")}px`);
  el.append(root);
  const api = content.tables ? localApi({ ...content, answers: [] }) : kernelApi(model);
  const store = createStore({ readOnly: true });
  const actions = createActions(store, api);
  /** @type {any} */
  const context = { store, api, dom, actions, graph: null };
  context.graph = mountGraph(stage, context);
  findingsPanel.mount(side, context);

  const said = () => ({ findings: model.get("given") ?? {}, interventions: model.get("do") ?? {} });
  const same = () => JSON.stringify(said()) === JSON.stringify({ findings: store.state.findings, interventions: store.state.interventions });
  const take = () => {
    if (!same()) actions.restore(said());
  };
  const off = store.subscribe((state, changed) => {
    if ((!changed.has("findings") && !changed.has("interventions")) || !state.view || same()) return;
    model.set("given", state.findings);
    model.set("do", state.interventions);
    model.save_changes();
  });
  model.on("change:given", take);
  model.on("change:do", take);
  const showing = actions.show(content.view, said()).then(() => (root.dataset.ready = "true"));
  return () => {
    off();
    model.off("change:given", take);
    model.off("change:do", take);
    showing.finally(() => context.graph.destroy());
    root.remove();
  };
}

/**
 * Questions that Python answers: one goes out with a number, the answer comes back with the same.
 * @param {Model} model
 */
function kernelApi(model) {
  let last = 0;
  /** @param {string} kind @param {any} question */
  const ask = (kind, question) => new Promise((resolve, reject) => {
    last += 1;
    const mine = `${last} ${Math.random()}`; // two views of one cell share the answers, so numbers alone would collide
    const listen = () => {
      const answer = model.get("_answer");
      if (answer?.number !== mine) return;
      model.off("change:_answer", listen);
      if (answer.error) reject(new Error(answer.error));
      else resolve(answer.found);
    };
    model.on("change:_answer", listen);
    model.set("_question", { number: mine, kind, ...question });
    model.save_changes();
  });
  return {
    /** @param {string} _ @param {any} question */
    marginals: (_, question) => ask("marginals", question),
    /** @param {string} _ @param {any} question */
    shading: (_, question) => ask("shading", question),
  };
}

/** Light or dark as the notebook says it, else as the reader's system does. @param {Document} page */
function themeOf({ body, documentElement }) {
  if (body.dataset.jpThemeLight) return body.dataset.jpThemeLight === "true" ? "light" : "dark";
  if (body.dataset.vscodeThemeKind) return body.dataset.vscodeThemeKind.includes("light") ? "light" : "dark";
  for (const theme of ["light", "dark"]) if (body.classList.contains(theme) || documentElement.classList.contains(theme)) return theme;
  return undefined;
}
