// A conditional table as a grid: rows are checked while they are typed, a block can be pasted from a spreadsheet.
import { button, fill, h } from "./dom.js";

const PAGE = 64;

/**
 * @typedef {{states: string[], parents: {name: string}[], rowLabels: string[][], rows: number[][], amounts?: boolean}} TableShape
 *   `amounts` may be any numbers; other rows are probabilities.
 */

/**
 * @param {HTMLElement} element
 * @param {TableShape} shape
 * @param {(rows: number[][], normalise: boolean) => Promise<boolean>} save
 * @param {boolean} readOnly
 */
export function tableEditor(element, shape, save, readOnly) {
  const original = shape.rows.map((row) => [...row]);
  let rows = shape.rows.map((row) => row.map(String));
  let page = 0;
  /** @type {HTMLInputElement[][]} */
  let cells = [];
  /** @type {HTMLElement[]} */
  let checks = [];
  const status = h("p", { class: "mk-hint", role: "status" });
  const grid = h("div", { class: "mk-scroll mk-grid", tabindex: "0", role: "region", "aria-label": "Table" });
  const apply = button("Apply", () => commit(false), { class: "mk-primary" });
  const normalise = button("Normalise rows", () => commit(true), { label: "Normalise rows: divide each by its sum and apply" });
  const reset = button("Reset", () => { rows = original.map((row) => row.map(String)); draw(); }, { class: "mk-quiet" });
  const pages = Math.ceil(rows.length / PAGE);
  const pager = h("div", { class: "mk-row" });

  const values = () => rows.map((row) => row.map((text) => (text.trim() === "" ? NaN : Number(text.replace(",", ".")))));
  /** @param {number[]} row */
  function problem(row) {
    if (row.some((x) => !Number.isFinite(x))) return "not a number";
    if (shape.amounts) return "";
    if (row.some((x) => x < 0)) return "negative";
    const sum = row.reduce((total, x) => total + x, 0);
    return Math.abs(sum - 1) > 1e-6 ? `sums to ${Number(sum.toPrecision(6))}` : "";
  }

  function check() {
    const found = values().map(problem);
    const wrong = found.filter(Boolean).length;
    const start = page * PAGE;
    checks.forEach((mark, place) => {
      const words = found[start + place];
      mark.textContent = words || "✓";
      mark.classList.toggle("mk-wrong", Boolean(words));
      cells[place].forEach((input) => input.setAttribute("aria-invalid", String(Boolean(words))));
    });
    const changed = JSON.stringify(values()) !== JSON.stringify(original);
    status.textContent = wrong ? `${wrong} of ${rows.length} ${rows.length === 1 ? "row" : "rows"} must still be put right.` : !changed ? "" : shape.amounts ? "Every amount is a number." : "Every row sums to one.";
    apply.disabled = readOnly || wrong > 0 || !changed;
    reset.disabled = !changed;
    normalise.disabled = readOnly || found.every((words) => !words) || found.some((words) => words && !words.startsWith("sums"))
      || values().some((row) => !row.some((x) => x > 0));
  }

  /** @param {boolean} divide */
  async function commit(divide) {
    await save(values(), divide);
  }

  /**
   * Put a block of cells in, from where the cursor is.
   * @param {string} text
   * @param {number} row
   * @param {number} column
   */
  function paste(text, row, column) {
    const block = text.replace(/\r/g, "").replace(/\n$/, "").split("\n").map((line) => line.split(/\t|;/));
    if (block.length === 1 && block[0].length === 1) return false;
    block.forEach((line, down) => line.forEach((cell, right) => {
      if (rows[row + down]?.[column + right] !== undefined) rows[row + down][column + right] = cell.trim().replace(",", ".");
    }));
    draw();
    return true;
  }

  function draw() {
    const start = page * PAGE;
    checks = [];
    cells = rows.slice(start, start + PAGE).map((row, down) => row.map((text, column) => {
      const where = [...(shape.rowLabels[start + down] ?? []).map((state, place) => `${shape.parents[place]?.name} = ${state}`)].join(", ");
      const input = h("input", { class: "mk-cell", value: text, inputmode: "decimal", readonly: readOnly,
        "aria-label": shape.amounts ? `What ${where || "it"} is worth` : `P(${shape.states[column]}${where ? ` | ${where}` : ""})`,
        oninput: () => { rows[start + down][column] = input.value; check(); },
        onfocus: () => input.select(),
        onpaste: (/** @type {ClipboardEvent} */ event) => {
          if (paste(event.clipboardData?.getData("text/plain") ?? "", start + down, column)) event.preventDefault();
        },
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          const step = event.key === "ArrowDown" || event.key === "Enter" ? 1 : event.key === "ArrowUp" ? -1 : 0;
          if (!step) return;
          event.preventDefault();
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) apply.click();
          else cells[down + step]?.[column].focus();
        } });
      return input;
    }));
    const body = cells.map((inputs, down) => {
      const mark = h("td", { class: "mk-check" });
      checks.push(mark);
      return h("tr", null, (shape.rowLabels[start + down] ?? []).map((state) => h("th", { scope: "row" }, state)), inputs.map((input) => h("td", null, input)), mark);
    });
    fill(grid, h("table", { class: "mk-table" }, h("caption", { class: "mk-sr" }, shape.amounts ? "Amounts" : "Conditional table"),
      h("thead", null, h("tr", null, shape.parents.map(({ name }) => h("th", { scope: "col" }, name)),
        shape.states.map((state) => h("th", { scope: "col", class: "mk-own-state" }, state)), h("th", { scope: "col" }, "row"))),
      h("tbody", null, body)));
    fill(pager, pages > 1 ? [button("Earlier rows", () => { page -= 1; draw(); }, { disabled: page === 0 }),
      h("span", { class: "mk-hint" }, `rows ${start + 1} to ${Math.min(rows.length, start + PAGE)} of ${rows.length}`),
      button("Later rows", () => { page += 1; draw(); }, { disabled: page === pages - 1 })] : null);
    check();
  }

  fill(element, grid, pager, status, readOnly ? null : h("div", { class: "mk-row" }, apply, shape.amounts ? null : normalise, reset),
    readOnly ? null : h("p", { class: "mk-hint" }, "Copy cells in a spreadsheet and paste them into a cell to fill a whole block."));
  draw();
}
