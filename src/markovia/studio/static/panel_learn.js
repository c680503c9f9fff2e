// Learning: a graph or parameters from a table, with knowledge drawn on the graph, confidences as widths, and a comparison.
import { button, field, fill, h, icon, number, percent, select, table } from "./dom.js";
import { edgeKey } from "./store.js";
import { chart } from "./chart.js";
import { runJob } from "./job_view.js";
import { count, currentTable, made, nameSelect, onTable, showColumns, tableChoice } from "./table_choice.js";

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {{from: string, to: string, kind: "required" | "forbidden"}} Known
 * @typedef {{methods: {name: string, group: string, takes: string, numbers: boolean, gaps: boolean}[], scores: string[],
 *   tests: string[], priors: string[]}} Methods
 */

export const learnPanel = {
  id: "learn",
  title: "Learn",
  /** @param {HTMLElement} element @param {Context} context */
  async mount(element, context) {
    const data = h("div", { class: "mk-choice" });
    const structure = h("section", { class: "mk-section" });
    const parameters = h("section", { class: "mk-section" });
    const comparison = h("section", { class: "mk-section" });
    element.append(h("section", { class: "mk-section" }, h("h2", null, "Data"), data), structure, parameters, comparison);
    tableChoice(data, context, "CSV, TSV or Parquet: one row a case, one column a variable.");
    try {
      structureSection(structure, context, await context.api.get("/api/learning"));
    } catch (error) {
      context.actions.complain(error);
    }
    parameterSection(parameters, context);
    comparisonSection(comparison, context);
  },
};

/** @param {HTMLElement} element @param {Context} context @param {Methods} known */
function structureSection(element, context, known) {
  const { store, api, actions } = context;
  /** @type {Known[]} */
  let knowledge = [];
  let drawing = "";
  const settings = { method: "hill-climb", score: "", test: "", alpha: "0.05", parents: "", bootstrap: "", prior: "none", missing: "error", options: "" };
  /** @type {Record<string, string>} */
  let kinds = {};
  const result = h("div", { class: "mk-job" });
  const form = h("form", { class: "mk-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); learn(); } });
  const details = h("div", { class: "mk-form" });
  const columns = h("div");
  const known_ = h("div", { class: "mk-form" });
  const go = h("button", { class: "mk-button mk-primary" }, "Learn the graph");
  form.append(details, columns, known_, h("div", { class: "mk-row" }, go));
  element.append(h("h2", null, "Graph"), form, result);

  /** @param {keyof typeof settings} key @param {Record<string, any>} props */
  const box = (key, props) => {
    const input = h("input", { class: "mk-input", value: settings[key], oninput: () => { settings[key] = input.value; }, ...props });
    return input;
  };

  function drawDetails() {
    const method = known.methods.find((each) => each.name === settings.method);
    const takes = method?.takes ?? "neither";
    const groups = [...new Set(known.methods.map((each) => each.group))];
    const choice = h("select", { class: "mk-select", "aria-label": "Method", onchange: () => { settings.method = choice.value; drawDetails(); } },
      groups.map((group) => h("optgroup", { label: group }, known.methods.filter((each) => each.group === group)
        .map((each) => h("option", { value: each.name, selected: each.name === settings.method }, each.name)))));
    const scored = takes === "score" || takes === "both";
    const tested = takes === "test" || takes === "both";
    const gaps = currentTable()?.columns.some((column) => column.missing) && !method?.gaps;
    fill(details,
      field("Method", choice, method?.numbers ? "All columns are read as numbers." : undefined),
      h("div", { class: "mk-pair" },
        scored ? field("Score", select([["", "BIC for these data"], ...known.scores], settings.score, (value) => { settings.score = value; })) : null,
        tested ? field("Test", select([["", "for these data"], ...known.tests], settings.test, (value) => { settings.test = value; })) : null,
        tested ? field("Level of the test", box("alpha", { type: "number", min: "0.0001", max: "0.5", step: "any" })) : null,
        scored ? field("Parents at most", box("parents", { type: "number", min: "0", max: "20", placeholder: "any" })) : null,
        field("Resamplings", box("bootstrap", { type: "number", min: "1", max: "10000", placeholder: "none" }), "How sure each edge is, by the bootstrap."),
        field("Prior of tables", select(known.priors, settings.prior, (value) => { settings.prior = value; })),
        gaps ? field("Missing cells", select([["error", "refuse"], ["drop", "leave such rows out"]], settings.missing, (value) => { settings.missing = value; }),
          "structural-em uses every cell.") : null),
      h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), "Options of the method"), h("div", { class: "mk-fold-body" },
        field("One a line, name=value", h("textarea", { class: "mk-textarea", rows: 3, placeholder: "restarts=5", spellcheck: "false",
          oninput: (/** @type {Event} */ event) => { settings.options = /** @type {HTMLTextAreaElement} */ (event.target).value; } }, settings.options)))));
  }

  function drawColumns() {
    const now = currentTable();
    kinds = Object.fromEntries((now?.columns ?? []).map((column) => [column.name, column.kind === "text" ? "out" : column.kind]));
    go.disabled = !now;
    fill(columns, now ? h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), "Columns", h("small", null, "what takes part, and as what")),
      h("div", { class: "mk-fold-body" }, table(["Column", "Read as"], now.columns.map((column) => [column.name,
        select([["states", "states"], ["number", "numbers"], ["out", "leave out"]], kinds[column.name], (value) => { kinds[column.name] = value; drawKnown(); }, { "aria-label": `How ${column.name} is read` })]), "Columns that take part"))) : null);
    drawDetails();
    drawKnown();
  }

  const taken = () => (currentTable()?.columns ?? []).map((column) => column.name).filter((name) => kinds[name] !== "out");
  const numbers = () => taken().filter((name) => kinds[name] === "number");

  /** Whether the graph shows the columns, so that edges can be drawn on it. */
  function drawable() {
    const there = new Set((store.state.view?.nodes ?? []).map((node) => node.name));
    return taken().length > 0 && taken().every((name) => there.has(name));
  }

  function drawKnown() {
    const names = taken();
    const wanted = { from: "", to: "", kind: "required" };
    const pen = (/** @type {"required" | "forbidden"} */ kind, /** @type {string} */ text) =>
      button(text, () => setPen(drawing === kind ? "" : kind), { "aria-pressed": String(drawing === kind), class: `mk-pen-${kind}` });
    fill(known_, h("h3", null, "What is known beforehand"),
      !names.length ? h("p", { class: "mk-hint" }, "Choose a table first.") : drawable()
        ? [h("div", { class: "mk-row" }, pen("required", "Draw required edges"), pen("forbidden", "Draw forbidden edges")),
          drawing ? h("p", { class: "mk-hint" }, `Drag from the dot under a node to another node: that edge is ${drawing}.`) : null]
        : h("div", { class: "mk-row" }, button("Show the columns, to draw on them", showAll)),
      names.length ? h("details", { class: "mk-fold", open: known_.querySelector("details")?.open }, h("summary", null, icon("chevron"), "Or choose from lists"), h("div", { class: "mk-fold-body" },
        h("div", { class: "mk-row" }, nameSelect("From", names, "", (value) => { wanted.from = value; }), "→", nameSelect("To", names, "", (value) => { wanted.to = value; })),
        h("div", { class: "mk-row" }, select(["required", "forbidden"], wanted.kind, (value) => { wanted.kind = value; }, { "aria-label": "Kind of knowledge" }),
          button("Add", () => add(wanted.from, wanted.to, /** @type {any} */ (wanted.kind)))))) : null,
      knowledge.length ? h("ul", { class: "mk-known" }, knowledge.map((edge) => h("li", { class: `mk-known-${edge.kind}` },
        h("span", null, `${edge.from} → ${edge.to}`), h("span", { class: "mk-tag" }, edge.kind),
        button(null, () => { knowledge = knowledge.filter((other) => other !== edge); shareKnowledge(); }, { icon: "close", label: `Remove ${edge.from} to ${edge.to}`, class: "mk-quiet" })))) : null);
  }

  /** @param {string} kind */
  function setPen(kind) {
    drawing = kind;
    store.set({ onConnect: kind ? (from, to) => add(from, to, /** @type {any} */ (kind)) : null });
    drawKnown();
  }

  /** @param {string} from @param {string} to @param {"required" | "forbidden"} kind */
  function add(from, to, kind) {
    if (!from || !to || from === to) return;
    const turned = (/** @type {Known} */ other) => other.from === to && other.to === from && kind === "required" && other.kind === "required";
    knowledge = [...knowledge.filter((other) => !(other.from === from && other.to === to) && !turned(other)), { from, to, kind }];
    shareKnowledge();
  }

  function shareKnowledge() {
    const there = new Set((store.state.view?.nodes ?? []).map((node) => node.name));
    store.set({ overlays: knowledge.filter((edge) => there.has(edge.from) && there.has(edge.to)) });
    drawKnown();
  }

  async function showAll() {
    const now = currentTable();
    if (!now) return;
    await showColumns(context, now, taken(), numbers());
    shareKnowledge();
  }

  /** The options as typed: JSON where that can be read, else text. @returns {Record<string, any>} */
  function typed() {
    return Object.fromEntries(settings.options.split("\n").map((line) => line.split("=")).filter((parts) => parts.length > 1).map(([name, ...rest]) => {
      const text = rest.join("=").trim();
      try {
        return [name.trim(), JSON.parse(text)];
      } catch {
        return [name.trim(), text];
      }
    }));
  }

  async function learn() {
    const now = currentTable();
    if (!now) return;
    setPen("");
    go.disabled = true;
    const method = known.methods.find((each) => each.name === settings.method);
    const scored = method?.takes === "score" || method?.takes === "both";
    const tested = method?.takes === "test" || method?.takes === "both";
    const pairs = (/** @type {string} */ kind) => knowledge.filter((edge) => edge.kind === kind && kinds[edge.from] !== "out" && kinds[edge.to] !== "out").map((edge) => [edge.from, edge.to]);
    const open = store.state.view;
    await runJob(context, result, {
      kind: "structure", data: now.id, method: settings.method,
      score: scored && settings.score ? settings.score : null, test: tested && settings.test ? settings.test : null,
      alpha: tested ? Number(settings.alpha) || 0.05 : null, max_parents: scored && settings.parents !== "" ? Number(settings.parents) : null,
      required: pairs("required"), forbidden: pairs("forbidden"), columns: taken(),
      continuous: method?.numbers ? null : numbers(), missing: settings.missing, prior: settings.prior,
      bootstrap: settings.bootstrap ? Number(settings.bootstrap) : null, options: typed(),
      into: open && made.has(open.id) && drawable() ? open.id : null,
    }, async (found) => {
      await openLearned(found);
      return learned(found);
    });
    go.disabled = !currentTable();
  }

  /** @param {any} found */
  async function openLearned(found) {
    made.add(found.model);
    await actions.show(await api.view(found.model), { camera: null });
    const weights = Object.fromEntries((found.confidence ?? []).flatMap((/** @type {any} */ row) =>
      [[edgeKey(row.from, row.to), row.strength], [edgeKey(row.to, row.from), row.strength]]));
    store.set({ edgeWeights: weights });
    context.graph?.fit?.();
    shareKnowledge();
  }

  /** @param {any} found */
  function learned(found) {
    const facts = [count(found.edges.length, "edge"), found.kind, found.score === null ? null : `${found.score_name} ${number(found.score)}`,
      found.tests ? `${found.tests} tests (${found.test})` : null, found.optimal ? "proven best" : null, found.stopped ? `stopped: ${found.stopped}` : null];
    return [h("p", { class: "mk-verdict" }, facts.filter(Boolean).join(" · ")),
      found.notes.map((/** @type {string} */ note) => h("p", { class: "mk-note" }, note)),
      found.confidence ? [h("h3", null, `How sure each edge is, in ${found.replicates} resamplings; significant above ${percent(found.threshold)}`),
        table(["Edge", "There", found.undirected ? "" : "This way"], found.confidence.map((/** @type {any} */ row) =>
          [h("span", { class: row.strength > found.threshold ? "mk-sure" : "" }, `${row.from} ${found.undirected ? "–" : "→"} ${row.to}`), percent(row.strength), found.undirected ? "" : percent(row.direction)]), "Confidence of edges")]
        : h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), "Edges"), h("div", { class: "mk-fold-body" },
          h("ul", { class: "mk-edge-list" }, found.edges.map((/** @type {any} */ edge) => h("li", null, edge.text)))))];
  }

  onTable(drawColumns);
  store.subscribe((_, changed) => { if (changed.has("view")) drawKnown(); });
  drawColumns();
}

/** @param {HTMLElement} element @param {Context} context */
function parameterSection(element, context) {
  const { store, api, actions } = context;
  const settings = { prior: "none", missing: "em", restarts: "1" };
  const result = h("div", { class: "mk-job" });
  const go = h("button", { class: "mk-button mk-primary" }, "Learn the parameters");
  const about = h("p", { class: "mk-hint" });
  const restarts = h("input", { class: "mk-input", type: "number", min: "1", max: "100", value: "1", oninput: () => { settings.restarts = restarts.value; } });
  element.append(h("h2", null, "Parameters"), h("form", { class: "mk-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); learn(); } },
    about, h("div", { class: "mk-pair" },
      field("Prior", select([["none", "maximum likelihood"], ["bdeu", "BDeu"], ["k2", "K2"], ["laplace", "Laplace"]], settings.prior, (value) => { settings.prior = value; })),
      field("Missing cells", select([["em", "use all (EM)"], ["drop", "leave such rows out"], ["error", "refuse"]], settings.missing, (value) => { settings.missing = value; })),
      field("Starts of EM", restarts)),
    h("div", { class: "mk-row" }, go)), result);

  const draw = () => {
    const now = currentTable();
    const names = (store.state.view?.nodes ?? []).map((node) => node.name);
    const absent = names.filter((name) => !now?.columns.some((column) => column.name === name));
    go.disabled = !now || !names.length;
    about.textContent = !store.state.view ? "Open a network first." : !now ? "Choose a table above."
      : absent.length ? `Not in the table, so hidden: ${absent.join(", ")}.` : "Every variable of the open network is a column; the change can be undone.";
    return absent;
  };

  async function learn() {
    const now = currentTable();
    const view = store.state.view;
    if (!now || !view) return;
    await runJob(context, result, { kind: "parameters", model: view.id, data: now.id, prior: settings.prior, missing: settings.missing,
      restarts: Number(settings.restarts) || 1, latent: draw() }, (found, job) => (job.state === "running" ? curve(found.history) : fitted(found)));
  }

  /** @param {any} found */
  async function fitted(found) {
    if (store.state.view?.id === found.model) await actions.show(await api.view(found.model));
    const unseen = Object.values(found.unseen_rows).reduce((/** @type {number} */ sum, n) => sum + Number(n), 0);
    return [h("p", { class: "mk-verdict" }, `log likelihood ${number(found.log_likelihood)} · BIC ${number(found.bic)} · ${found.parameters} parameters`),
      h("p", { class: "mk-facts" }, [count(found.rows, "row"), found.missing_cells ? count(found.missing_cells, "missing cell") : null,
        found.method, found.iterations > 1 ? `${found.iterations} iterations` : null, found.converged ? null : "not converged",
        unseen ? `${count(unseen, "row")} of tables without a case` : null].filter(Boolean).join(" · ")),
      curve(found.history)];
  }

  /** What EM has reached after each iteration. @param {number[]} history */
  const curve = (history) => (history.length > 1 ? chart({ label: `Log likelihood over ${history.length} iterations`, xLabel: "iteration", yLabel: "log likelihood",
    height: 150, legend: false, layers: [{ kind: "line", name: "log likelihood", y: history, x: history.map((_, i) => i + 1) }] }) : null);

  onTable(draw);
  store.subscribe((_, changed) => { if (changed.has("view")) draw(); });
  draw();
}

/** @param {HTMLElement} element @param {Context} context */
function comparisonSection(element, context) {
  const { store, api, actions } = context;
  const choice = h("div", { class: "mk-row" });
  const result = h("div", { class: "mk-form" });
  element.append(h("h2", null, "Compare with another graph"), choice, result);
  let other = "";

  async function offer() {
    const open = await api.models().catch(() => []);
    const others = open.filter((/** @type {any} */ each) => each.id !== store.state.view?.id);
    if (!others.some((/** @type {any} */ each) => each.id === other)) other = others[0]?.id ?? "";
    fill(choice, others.length && store.state.view
      ? [select(others.map((/** @type {any} */ each) => [each.id, each.name]), other, (value) => { other = value; }, { "aria-label": "The other graph" }), button("Compare", compare),
        store.state.overlays.some((edge) => edge.kind === "missing" || edge.kind === "added") ? button("Clear", () => { store.set({ overlays: [] }); fill(result); }, { class: "mk-quiet" }) : null]
      : h("p", { class: "mk-hint" }, "Open another model, the true one for example; then where they differ is drawn here."));
  }

  async function compare() {
    const view = store.state.view;
    if (!view || !other) return;
    try {
      const found = await api.compare(view.id, { other });
      const edges = (/** @type {[string, string][]} */ list, /** @type {string} */ kind) => list.map(([from, to]) => ({ from, to, kind }));
      store.set({ overlays: [...edges(found.missing, "missing"), ...edges(found.added, "added")] });
      const line = (/** @type {string} */ name, /** @type {[string, string][]} */ list, /** @type {string} */ tone) => (list.length
        ? h("div", { class: tone }, h("h3", null, `${name} (${list.length})`), h("ul", { class: "mk-edge-list" }, list.map(([from, to]) => h("li", null, `${from} → ${to}`)))) : null);
      fill(result, h("p", { class: "mk-verdict" }, found.distance ? `structural Hamming distance ${found.distance}` : "The graphs are the same."),
        h("p", { class: "mk-facts" }, `${found.shared.length} edges in both`),
        line("Only in the other graph, drawn dotted", found.missing, "mk-diff-missing"), line("Only here", found.added, "mk-diff-added"),
        line("The other way round", found.reversed, "mk-diff-reversed"));
      offer();
    } catch (error) {
      actions.complain(error);
    }
  }
  store.subscribe((_, changed) => { if (changed.has("view") || (changed.has("panel") && store.state.panel === "learn")) offer(); });
  offer();
}
