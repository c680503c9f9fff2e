// The studio's page: top bar, graph, panels; keys that work everywhere; what is remembered.
import * as dom from "./dom.js";
import { createApi } from "./api.js";
import { createStore } from "./store.js";
import { createActions } from "./session.js";
import { mountGraph } from "./graph.js";
import { acceptDrops, mountStart, openDialog, saveDialog } from "./start.js";
import { keepMemory, recall } from "./memory.js";
import { shareDialog } from "./share.js";
import { modelSwitcher, mountElsewhere, watchModels } from "./open_models.js";
import { PANELS } from "./panels.js";
import { splitter } from "./splitter.js";

/**
 * @typedef {{store: import("./store.js").Store, api: any, dom: typeof dom, actions: import("./session.js").Actions,
 *   graph: ReturnType<typeof mountGraph> | null}} Context
 */

const { button, fill, h } = dom;

async function begin() {
  const api = createApi();
  const store = createStore();
  const actions = createActions(store, api);
  /** @type {Context} */
  const context = { store, api, dom, actions, graph: null };
  const { state } = store;
  const root = document.body;

  const top = h("header", { class: "mk-top" });
  const stage = h("main", { class: "mk-stage", "aria-label": "Graph" });
  const welcome = h("div", { class: "mk-start" });
  const drawing = h("div", { class: "mk-drawing" });
  const side = h("aside", { class: "mk-side", "aria-label": "Panels" });
  const progress = h("div", { class: "mk-progress", "aria-hidden": "true" });
  stage.append(drawing, welcome);
  root.append(top, progress, stage, side);
  side.append(splitter(root));
  mountTop(top, context);
  mountPanels(side, context);
  context.graph = mountGraph(drawing, context);
  mountElsewhere(drawing, context);
  acceptDrops(root, context);
  keys(context);
  theme(localStorage.getItem("markovia:theme") ?? "");

  const layout = () => {
    root.classList.toggle("mk-empty", !state.view);
    welcome.hidden = Boolean(state.view);
    progress.classList.toggle("mk-running", state.busy);
    document.title = state.view ? `${state.view.changed ? "• " : ""}${state.view.name} – markovia` : "markovia studio";
  };
  store.subscribe((_, changed) => { if (changed.has("view") || changed.has("busy")) layout(); });
  store.subscribe((_, changed) => {
    if (changed.has("view") && !state.view) api.start().then((start) => mountStart(welcome, context, start)).catch(actions.complain);
  });
  layout();

  try {
    const start = await api.start();
    mountStart(welcome, context, start);
    await recall(context, start);
  } catch (error) {
    fill(welcome, h("p", { class: "mk-lead" }, error instanceof Error ? error.message : String(error)));
  }
  keepMemory(context);
  watchModels(context);
  root.dataset.ready = "true";
}

/** @param {HTMLElement} element @param {Context} context */
function mountTop(element, context) {
  const { store, actions } = context;
  const { state } = store;
  const title = h("button", { type: "button", class: "mk-model-name", title: "Rename the model", onclick: async () => {
    const to = await dom.ask("Rename the model", "Name", state.view?.name ?? "");
    if (to) actions.edit({ op: "name", to });
  } });
  const undo = button(null, () => actions.undo(), { icon: "undo", label: "Undo (Ctrl+Z)" });
  const redo = button(null, () => actions.redo(), { icon: "redo", label: "Redo (Ctrl+Y)" });
  const names = h("datalist", { id: "mk-search-names" });
  const search = h("input", { class: "mk-input mk-search", type: "search", list: names.id, placeholder: "Find  /", "aria-label": "Find a node",
    autocomplete: "off", spellcheck: "false",
    oninput: () => found(true), onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") found(false);
      if (event.key === "Escape") search.blur();
    } });
  /** @param {boolean} whole */
  function found(whole) {
    const wanted = search.value.toLowerCase();
    const all = state.view?.nodes ?? [];
    const match = all.find((node) => node.name === search.value) ?? (whole || !wanted ? undefined
      : all.find((node) => node.name.toLowerCase().startsWith(wanted)) ?? all.find((node) => node.name.toLowerCase().includes(wanted)));
    if (match) context.graph?.reveal(match.name);
    else if (!whole && wanted) dom.toast(`no node has “${search.value}” in its name`, "error");
  }
  const whenOpen = [title, modelSwitcher(context), h("div", { class: "mk-segments" }, undo, redo), search, names];
  element.append(
    h("a", { class: "mk-brand", href: "#", "aria-label": "markovia studio, start page", onclick: (/** @type {Event} */ event) => { event.preventDefault(); openDialog(context); } },
      h("img", { src: "static/icon.svg", alt: "", width: 24, height: 24 }), h("span", null, "markovia")),
    ...whenOpen,
    h("span", { class: "mk-spring" }),
    button("Open", () => openDialog(context), { icon: "open" }),
    button("Save", () => saveDialog(context), { icon: "save" }),
    h("div", { class: "mk-segments" },
      button(null, () => shareDialog(context), { icon: "link", label: "Share: report, picture, link" }),
      button(null, () => theme(document.body.dataset.theme === "dark" || (!document.body.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) ? "light" : "dark"),
        { icon: "moon", label: "Light or dark", class: "mk-theme" }),
      button(null, help, { icon: "help", label: "Help (?)" })));
  let listed = "";
  const draw = () => {
    title.textContent = state.view ? state.view.name : "";
    for (const part of whenOpen) part.toggleAttribute("hidden", !state.view);
    undo.disabled = !(state.past || state.view?.undo);
    redo.disabled = !(state.future || state.view?.redo);
    const key = (state.view?.nodes ?? []).map((node) => node.name).join("\n");
    if (key !== listed) fill(names, (state.view?.nodes ?? []).map((node) => h("option", { value: node.name })));
    listed = key;
  };
  store.subscribe((_, changed) => { if (changed.has("view") || changed.has("past") || changed.has("future")) draw(); });
  draw();
}

/** @param {HTMLElement} element @param {Context} context */
function mountPanels(element, context) {
  const { store } = context;
  const tabs = h("div", { class: "mk-tabs", role: "tablist", "aria-label": "Panels" });
  element.append(tabs);
  const pages = PANELS.map((panel) => {
    const page = h("div", { class: "mk-panel", role: "tabpanel", id: `mk-panel-${panel.id}`, "aria-labelledby": `mk-tab-${panel.id}`, hidden: true });
    const tab = h("button", { type: "button", role: "tab", class: "mk-tab", id: `mk-tab-${panel.id}`, "aria-controls": page.id,
      onclick: () => store.set({ panel: panel.id }) }, panel.title);
    tabs.append(tab);
    element.append(page);
    return { panel, page, tab, mounted: false };
  });
  tabs.addEventListener("keydown", (event) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    const at = pages.findIndex(({ panel }) => panel.id === store.state.panel);
    const next = pages[(at + step + pages.length) % pages.length];
    store.set({ panel: next.panel.id });
    next.tab.focus();
  });
  const draw = () => {
    if (!pages.some(({ panel }) => panel.id === store.state.panel)) store.state.panel = pages[0].panel.id;
    for (const entry of pages) {
      const on = entry.panel.id === store.state.panel;
      entry.page.hidden = !on;
      entry.tab.setAttribute("aria-selected", String(on));
      entry.tab.setAttribute("tabindex", on ? "0" : "-1");
      if (on && !entry.mounted) {
        entry.mounted = true;
        entry.panel.mount(entry.page, context);
      }
    }
  };
  store.subscribe((_, changed) => {
    if (!changed.has("panel")) return;
    store.set({ marks: null });
    draw();
  });
  draw();
}

/** @param {Context} context */
function keys({ actions }) {
  document.addEventListener("keydown", (event) => {
    const typing = /** @type {Element} */ (event.target).closest("input, textarea, select, [contenteditable]");
    const key = event.key.toLowerCase();
    if ((event.ctrlKey || event.metaKey) && !typing && (key === "z" || key === "y")) {
      event.preventDefault();
      if (key === "y" || event.shiftKey) actions.redo();
      else actions.undo();
    } else if (event.key === "/" && !typing) {
      event.preventDefault();
      /** @type {HTMLElement | null} */ (document.querySelector(".mk-search"))?.focus();
    } else if (event.key === "?" && !typing) help();
  });
}

/** @param {string} choice */
function theme(choice) {
  if (choice) {
    document.body.dataset.theme = choice;
    localStorage.setItem("markovia:theme", choice);
  }
}

function help() {
  const rows = [
    ["Click a bar", "observe that state; again to retract"],
    ["Alt + click", "do( ): set the node from outside"],
    ["Drag, wheel, pinch", "move the view, zoom"],
    ["Shift + drag", "select several nodes"],
    ["Drag the dot under a node", "draw an edge"],
    ["Tab, arrow keys", "go from node to node"],
    ["Enter", "go into a node; Enter again observes"],
    ["1 … 9", "observe the first … ninth state"],
    ["Delete", "retract the node's finding"],
    ["+  −  f", "zoom in, zoom out, show everything"],
    ["/", "find a node"],
    ["Ctrl+Z, Ctrl+Y", "undo, redo"],
    ["Escape", "leave, stop highlighting"],
  ];
  dom.dialog("Help", () => h("dl", { class: "mk-keys" }, rows.map(([what, does]) => [h("dt", null, what), h("dd", null, does)])));
}

begin();
