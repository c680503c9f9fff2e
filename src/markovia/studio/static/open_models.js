// Models that are open on the server: a menu to go from one to another, and a look whether somebody else changed one.
import { button, dialog, fill, h, icon } from "./dom.js";
import { switchTo } from "./memory.js";

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {{id: string, name: string, kind: string, nodes: number, edges: number, changed: boolean, file: string | null,
 *   revision: number}} Summary
 */

/** Milliseconds between two looks at what is open, while the page is seen. */
const LOOK = 4000;

/** The menu of open models beside the name of the one that is shown. @param {Context} context */
export function modelSwitcher(context) {
  const { store, api, actions } = context;
  const { state } = store;
  const list = h("ul", { class: "mk-open-list" });
  const menu = h("div", { class: "mk-menu", popover: "auto", id: "mk-open-models", "aria-label": "Open models" }, list);
  const opener = h("button", { type: "button", class: "mk-button mk-switch", popovertarget: menu.id });

  /** @param {Summary} each */
  const row = (each) => h("li", null,
    h("button", { type: "button", class: "mk-open-item", "aria-current": each.id === state.view?.id ? "true" : undefined,
      onclick: async () => { menu.hidePopover(); await switchTo(context, each.id); } },
    h("strong", null, each.name),
    h("span", null, [each.file, `${each.nodes} nodes`, each.changed ? "not saved" : null].filter(Boolean).join(" · "))),
    button(null, () => close(each), { icon: "close", class: "mk-quiet", label: `Close ${each.name}` }));

  /** @param {Summary} each */
  async function close(each) {
    menu.hidePopover();
    if (each.changed && !(await sure(each.name))) return;
    try {
      await api.close(each.id);
    } catch (error) {
      actions.complain(error);
    }
    const left = await look(context);
    if (each.id !== state.view?.id) return;
    const next = left.at(-1);
    if (next) await switchTo(context, next.id);
    else actions.leave();
  }

  function draw() {
    opener.setAttribute("aria-label", `Open models (${state.models.length})`);
    opener.title = "Go to another open model";
    fill(opener, h("span", { class: "mk-count" }, String(state.models.length)), icon("chevron"));
    fill(list, state.models.map(row));
  }
  menu.addEventListener("beforetoggle", (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== "open") return;
    const { left, bottom } = opener.getBoundingClientRect();
    menu.style.left = `${Math.max(8, Math.min(left, innerWidth - 328))}px`;
    menu.style.top = `${bottom + 4}px`;
    look(context);
  });
  store.subscribe((_, changed) => { if (changed.has("models") || changed.has("view")) draw(); });
  draw();
  return h("span", { class: "mk-switcher" }, opener, menu);
}

/** Ask before work is lost. @param {string} name @returns {Promise<boolean>} */
async function sure(name) {
  return Boolean(await dialog(`Close ${name}?`, (close) => h("div", { class: "mk-form" },
    h("p", null, "It has changes that are in no file. Closed, they are lost."),
    h("div", { class: "mk-row" }, button("Close it", () => close(true), { class: "mk-danger" }), button("Keep it open", () => close(false), { class: "mk-primary" })))));
}

/**
 * See what is open, and whether the model on the screen is still the one that the server has.
 * @param {Context} context
 * @returns {Promise<Summary[]>}
 */
async function look({ store, api, actions }) {
  const { state } = store;
  const before = state.view;
  /** @type {Summary[] | null} */
  const models = await api.models().catch(() => null); // a server that is away is said by the next act
  if (!models) return state.models;
  const own = models.find((each) => each.id === state.view?.id);
  // what this page changes itself arrives with its own answer
  const settled = before && before === state.view && !actions.changing();
  const elsewhere = !settled ? state.elsewhere : !own ? "closed" : own.revision === before.revision ? "" : "changed";
  store.set({ ...(JSON.stringify(models) === JSON.stringify(state.models) ? {} : { models }), elsewhere });
  return models;
}

/** Look from time to time, and when the page is seen again. @param {Context} context */
export function watchModels(context) {
  const { store } = context;
  const seen = () => { if (document.visibilityState === "visible") look(context); };
  setInterval(seen, LOOK);
  addEventListener("focus", seen);
  document.addEventListener("visibilitychange", seen);
  store.subscribe((state, changed) => {
    if (!changed.has("view")) return;
    if (state.elsewhere) store.set({ elsewhere: "" });
    const listed = state.models.find((each) => each.id === state.view?.id);
    if (state.view && (listed?.name !== state.view.name || listed.nodes !== state.view.nodes.length || listed.changed !== state.view.changed)) look(context);
  });
  seen();
}

/** What is said above the drawing where the model was changed elsewhere. @param {HTMLElement} element @param {Context} context */
export function mountElsewhere(element, { store, actions }) {
  const notice = h("div", { class: "mk-notice mk-elsewhere", role: "status", hidden: true });
  element.append(notice);
  store.subscribe((state, changed) => {
    if (!changed.has("elsewhere")) return;
    notice.hidden = !state.elsewhere;
    if (state.elsewhere === "changed")
      fill(notice, h("span", null, "This model was changed elsewhere."), button("Reload", () => actions.reload(), { class: "mk-quiet" }));
    if (state.elsewhere === "closed") fill(notice, h("span", null, "This model was closed elsewhere; what is drawn can no longer be asked or changed."));
  });
}
