// Uploaded tables, shared by the panels that learn from data: choose one, upload one, look at its columns.
import { fill, h, icon, select, table } from "./dom.js";

/**
 * @typedef {{name: string, kind: "states" | "number" | "text", distinct: number, missing: number, states: string[]}} Column
 * @typedef {{id: string, name: string, rows: number, columns: Column[], preview: any[][]}} Table
 * @typedef {import("./main.js").Context} Context
 */

/** @type {Table[]} */
let tables = [];
/** @type {string | null} */
let chosen = null;
/** @type {Set<() => void>} */
const listeners = new Set();

/** The table that is chosen. */
export function currentTable() {
  return tables.find((each) => each.id === chosen) ?? null;
}

/** Hear when another table is chosen. @param {() => void} listener */
export function onTable(listener) {
  listeners.add(listener);
}

/** Whether a file is a table or a text rather than a model. @param {string} name */
export function isTable(name) {
  return /\.(csv|tsv|parquet|pq|txt|text|md)(\.gz)?$/i.test(name);
}

/**
 * Upload a table and choose it.
 * @param {Context} context
 * @param {File} file
 * @returns {Promise<Table | null>}
 */
export async function takeTable({ api, actions }, file) {
  try {
    const taken = /** @type {Table} */ (await api.data(file));
    tables = [...tables, taken];
    choose(taken.id);
    return taken;
  } catch (error) {
    actions.complain(error);
    return null;
  }
}

/** Models that were made of tables; they may take what is learned next as an undoable step. @type {Set<string>} */
export const made = new Set();

/**
 * Show columns as nodes without edges.
 * @param {Context} context
 * @param {Table} now
 * @param {string[]} columns
 * @param {string[]} numbers
 */
export async function showColumns({ api, actions }, now, columns, numbers) {
  try {
    const view = await api.post(`/api/data/${now.id}/columns`, { columns, continuous: numbers });
    made.add(view.id);
    await actions.show(view);
  } catch (error) {
    actions.complain(error);
  }
}

/**
 * Begin with a table: its columns on the graph and the panel that learns, or the families for texts.
 * @param {Context} context
 * @param {File} file
 */
export async function openTable(context, file) {
  const now = await takeTable(context, file);
  if (!now) return;
  const columns = now.columns.filter((column) => column.kind !== "text");
  if (columns.length && columns.length <= MOST) {
    await showColumns(context, now, columns.map((column) => column.name), columns.filter((column) => column.kind === "number").map((column) => column.name));
    context.store.set({ panel: "learn" });
  } else {
    await context.actions.open({ new: now.name.replace(/\.[^.]*(\.gz)?$/, "") });
    context.store.set({ panel: "families" });
  }
}

/** Columns that are shown at once. */
const MOST = 300;

/** @param {string} id */
function choose(id) {
  chosen = id;
  for (const listener of listeners) listener();
}

/**
 * The choice of a table with a look into it.
 * @param {HTMLElement} element
 * @param {Context} context
 * @param {string} hint
 */
export function tableChoice(element, context, hint) {
  const pick = h("input", { type: "file", class: "mk-sr", accept: ".csv,.tsv,.parquet,.pq,.txt,.md,.gz", "aria-label": "A table from this computer",
    onchange: async () => {
      const file = pick.files?.[0];
      pick.value = "";
      if (file) await takeTable(context, file);
    } });
  const draw = () => {
    const now = currentTable();
    fill(element, h("div", { class: "mk-row" },
      tables.length ? select(tables.map((each) => [each.id, each.name]), chosen ?? "", choose, { "aria-label": "Table" }) : null,
      h("label", { class: "mk-button mk-upload" }, icon("open"), h("span", null, tables.length ? "Another…" : "Choose a table…"), pick)),
    now ? look(now) : h("p", { class: "mk-hint" }, hint));
  };
  listeners.add(draw);
  draw();
}

/** So many of a thing, in words. @param {number} n @param {string} thing */
export const count = (n, thing) => `${n.toLocaleString("en")} ${thing}${n === 1 ? "" : "s"}`;

/** @param {Table} now */
function look(now) {
  const gaps = now.columns.reduce((sum, column) => sum + column.missing, 0);
  return h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), `${count(now.rows, "row")}, ${count(now.columns.length, "column")}`,
    h("small", null, gaps ? `${gaps.toLocaleString("en")} cells are missing` : "no cell is missing")),
  h("div", { class: "mk-fold-body" },
    table(["Column", "Kind", "Values", "Missing"], now.columns.map((c) => [c.name, c.kind, c.states.length ? c.states.join(", ") : String(c.distinct), String(c.missing)]), "Columns"),
    table(now.columns.map((c) => c.name), now.preview.map((row) => row.map((cell) => (cell === null ? "–" : String(cell)))), "The first rows")));
}

/**
 * A field that completes names.
 * @param {string} label
 * @param {string[]} names
 * @param {string} value
 * @param {(value: string) => void} onchange
 */
export function nameSelect(label, names, value, onchange) {
  return select([["", "–"], ...names.map((name) => /** @type {[string, string]} */ ([name, name]))], value, onchange, { "aria-label": label });
}

