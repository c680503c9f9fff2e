// The first screen, and the ways to bring a model in and out: drop, examples, folder, recent, recovered, save.
import { button, dialog, download, field, fill, h, icon, select, toast } from "./dom.js";
import { isTable, openTable } from "./table_choice.js";
import { switchTo } from "./memory.js";
import { nameTheModel } from "./panel_edit.js";

/** @typedef {import("./main.js").Context} Context */

/**
 * What can be opened, as a list of choices; used by the first screen and by the Open dialog.
 * @param {Context} context
 * @param {any} start
 * @param {() => void} close
 */
export function sources(context, start, close) {
  const { actions } = context;
  const pick = h("input", { type: "file", class: "mk-sr", "aria-label": "A model file from this computer", onchange: () => {
    const file = pick.files?.[0];
    if (file) { close(); bring(context, file); }
  } });
  /** @param {string} title @param {any[]} entries */
  const group = (title, entries) => (entries.length ? h("section", { class: "mk-sources" }, h("h3", null, title), h("div", { class: "mk-cards" }, entries)) : null);
  /** @param {string} title @param {string} detail @param {Record<string, string>} source */
  const card = (title, detail, source) => h("button", { type: "button", class: "mk-source", onclick: () => { close(); actions.open(source); } },
    h("strong", null, title), h("span", null, detail));
  const suffixes = (start.formats?.read ?? []).map((/** @type {any} */ format) => format.suffix).join(" ");
  return h("div", { class: "mk-open" },
    h("label", { class: "mk-drop", onclick: (/** @type {MouseEvent} */ event) => { if (event.target !== pick) { event.preventDefault(); pick.click(); } } },
      icon("open"), h("strong", null, "Drop a model or a table here, or choose a file"), h("span", null, `${suffixes}; to learn from: .csv .tsv .parquet .txt`), pick),
    group("Open now", context.store.state.models.map((each) => h("button", { type: "button", class: "mk-source", onclick: () => { close(); switchTo(context, each.id); } },
      h("strong", null, each.name), h("span", null, `${each.nodes} nodes${each.changed ? " · not saved" : ""}`)))),
    group("Recovered", (start.recovered ?? []).map((/** @type {any} */ each) => card(each.name, `not saved · ${when(each.when)}`, { recover: each.id }))),
    group("In this folder", (start.folder ?? []).map((/** @type {string} */ name) => card(name, "file", { file: name }))),
    group("Recent", (start.recent ?? []).map((/** @type {any} */ each) => card(each.name ?? each, "file", { file: each.file ?? each }))),
    group("Classics", (start.examples ?? []).map((/** @type {any} */ each) => card(each.title ?? each.name, `${each.nodes} nodes`, { example: each.name }))),
    h("div", { class: "mk-row" }, button("New model", async () => {
      close();
      await actions.open({ new: "model" });
      nameTheModel(context);
    }, { icon: "plus", class: "mk-primary" })));
}

/** Open a file: a model, or a table to learn from. @param {Context} context @param {File} file */
function bring(context, file) {
  return isTable(file.name) ? openTable(context, file) : context.actions.upload(file);
}

/** @param {string | number} moment */
function when(moment) {
  const date = new Date(typeof moment === "number" ? moment * 1000 : moment);
  return Number.isNaN(date.getTime()) ? String(moment) : date.toLocaleString();
}

/** @param {HTMLElement} element @param {Context} context @param {any} start */
export function mountStart(element, context, start) {
  fill(element, h("div", { class: "mk-welcome" },
    h("h1", null, "Open a model"),
    h("p", { class: "mk-lead" }, "See every probability, say what you know, and watch the rest follow."),
    sources(context, start, () => {})));
}

/** @param {Context} context */
export async function openDialog(context) {
  const start = await context.api.start().catch(context.actions.complain);
  if (start) dialog("Open", (close) => sources(context, start, () => close(null)), "mk-wide");
}

/** @param {Context} context */
export async function saveDialog({ api, actions, store }) {
  const view = store.state.view;
  const start = await api.start().catch(actions.complain);
  if (!view || !start) return;
  const written = /** @type {{suffix: string, name: string, title: string}[]} */ (start.formats.write);
  const formats = written.filter((each, place) => written.findIndex((other) => other.name === each.name) === place);
  let format = formats.find((each) => view.file?.endsWith(each.suffix)) ?? formats[formats.length - 1];
  const stem = (view.file ?? view.name).replace(/\.[A-Za-z0-9.]+$/, "");
  const name = h("input", { class: "mk-input", value: stem + format.suffix, spellcheck: "false" });
  await dialog("Save", (close) => h("form", { class: "mk-form", onsubmit: async (/** @type {Event} */ event) => {
    event.preventDefault();
    try {
      const saved = await api.save(view.id, { file: name.value, format: format.name });
      toast(`Saved as ${saved.file}`);
      close(null);
      await actions.show(await api.view(view.id));
    } catch (error) {
      actions.complain(error);
    }
  } },
  field("Format", select(formats.map((each) => [each.name, `${each.title} (${each.suffix})`]), format.name, (chosen) => {
    const next = formats.find((each) => each.name === chosen) ?? format;
    if (name.value.endsWith(format.suffix)) name.value = name.value.slice(0, -format.suffix.length) + next.suffix;
    format = next;
  })),
  field("File name", name),
  h("div", { class: "mk-row" }, h("button", { class: "mk-button mk-primary" }, "Save in the folder"),
    button("Download", async () => {
      try {
        download(name.value, await api.file(view.id, format.name));
        close(null);
      } catch (error) {
        actions.complain(error);
      }
    }, { icon: "save" }))));
}

/**
 * Files dropped anywhere on the page are opened.
 * @param {HTMLElement} element
 * @param {Context} context
 */
export function acceptDrops(element, context) {
  const carries = (/** @type {DragEvent} */ event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  let depth = 0;
  const mark = () => element.classList.toggle("mk-dropping", depth > 0);
  element.addEventListener("dragenter", (event) => { if (carries(event)) { depth += 1; mark(); } });
  element.addEventListener("dragleave", (event) => { if (carries(event)) { depth -= 1; mark(); } });
  element.addEventListener("dragover", (event) => { if (carries(event)) event.preventDefault(); });
  element.addEventListener("drop", (event) => {
    depth = 0;
    mark();
    const file = event.dataTransfer?.files[0];
    if (!file || event.defaultPrevented) return;
    event.preventDefault();
    bring(context, file);
  });
}
