// Families: hidden states behind a series, Bayesian models drawn live by NUTS, topics of texts, codes of rows.
import { button, field, fill, h, icon, namePicker, number, percent, select, table } from "./dom.js";
import { bars, chart, pictures, stack, strips } from "./chart.js";
import { runJob } from "./job_view.js";
import { currentTable, nameSelect, onTable, tableChoice } from "./table_choice.js";

/** @typedef {import("./main.js").Context} Context */

export const familiesPanel = {
  id: "families",
  title: "Families",
  /** @param {HTMLElement} element @param {Context} context */
  async mount(element, context) {
    const data = h("div", { class: "mk-choice" });
    element.append(h("section", { class: "mk-section" }, h("h2", null, "Data"), data));
    tableChoice(data, context, "A table with a series or columns to regress; or a text file with a document a line.");
    const fold = (/** @type {string} */ title, /** @type {string} */ hint, /** @type {boolean} */ open, /** @type {(body: HTMLElement, context: Context) => any} */ mount) => {
      const body = h("div", { class: "mk-fold-body" });
      element.append(h("details", { class: "mk-fold", open }, h("summary", null, icon("chevron"), title, h("small", null, hint)), body));
      mount(body, context);
    };
    fold("States behind a series", "HMM, Kalman", true, seriesForm);
    fold("Bayesian model", "NUTS, live", false, posteriorForm);
    fold("Topics of texts", "LDA", false, topicsForm);
    fold("Codes of rows", "VAE", false, codesForm);
  },
};

/** A form whose submit runs. @param {() => void} run @param {...any} children */
function form(run, ...children) {
  return h("form", { class: "mk-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); run(); } }, ...children);
}

/**
 * A box for a whole number that writes into an object.
 * @param {Record<string, any>} settings
 * @param {string} key
 * @param {Record<string, any>} [props]
 */
function whole(settings, key, props = {}) {
  const input = h("input", { class: "mk-input", type: "number", value: settings[key] ?? "", ...props, oninput: () => { settings[key] = input.value === "" ? null : Number(input.value); } });
  return input;
}

/** @param {HTMLElement} element @param {Context} context */
function seriesForm(element, context) {
  /** @type {Record<string, any>} */
  const settings = { column: "", model: "trend", states: 2, trend: "local linear trend", seasonal: null, cycle: false, steps: 12 };
  const fields = h("div", { class: "mk-form" });
  const go = h("button", { class: "mk-button mk-primary" }, "Smooth and forecast");
  const result = h("div", { class: "mk-job" });
  element.append(form(run, fields, h("div", { class: "mk-row" }, go)), result);

  function draw() {
    const numbers = (currentTable()?.columns ?? []).filter((column) => column.kind !== "text" && !column.states.some((state) => Number.isNaN(Number(state)))).map((column) => column.name);
    if (!numbers.includes(settings.column)) settings.column = numbers.find((name) => currentTable()?.columns.some((c) => c.name === name && c.kind === "number")) ?? numbers[0] ?? "";
    go.disabled = !settings.column;
    const seasonal = whole(settings, "seasonal", { min: "2", max: "366", placeholder: "none" });
    fill(fields, h("div", { class: "mk-pair" },
      field("Column", nameSelect("Column", numbers, settings.column, (value) => { settings.column = value; go.disabled = !value; })),
      field("Model", select([["trend", "trend (Kalman)"], ["hmm", "hidden Markov"]], settings.model, (value) => { settings.model = value; draw(); })),
      settings.model === "hmm" ? field("Hidden states", whole(settings, "states", { min: "1", max: "20" }))
        : [field("Trend", select(["local level", "local linear trend", "smooth trend", "random walk"], settings.trend, (value) => { settings.trend = value; })),
          field("Seasons", seasonal),
          field("Cycle", select([["", "no"], ["yes", "yes"]], settings.cycle ? "yes" : "", (value) => { settings.cycle = value === "yes"; }))],
      field("Steps ahead", whole(settings, "steps", { min: "1", max: "500" }))));
  }

  function run() {
    const now = currentTable();
    if (!now || !settings.column) return;
    const { states, trend, seasonal, cycle, ...both } = settings;
    runJob(context, result, { kind: "series", data: now.id, ...both, ...(settings.model === "hmm" ? { states } : { trend, seasonal, cycle }) }, show);
  }

  /** @param {any} found */
  function show(found) {
    const n = found.observed.length;
    const ahead = found.forecast.mean.map((/** @type {number} */ _, /** @type {number} */ i) => n + i);
    const level = `${Math.round(100 * found.level)} %`;
    const hidden = found.model === "hmm";
    return [
      chart({ label: `${found.column}: ${n} steps, smoothed, and ${ahead.length} steps ahead with ${level} bands`, xLabel: "step", height: 220, at: n - 0.5, layers: [
        { kind: "band", name: `${level} band`, low: found.smoothed.low, high: found.smoothed.high, tone: 0 },
        { kind: "band", name: "forecast", x: ahead, low: found.forecast.low, high: found.forecast.high, tone: 1, quiet: true },
        { kind: "points", name: found.column, y: found.observed, tone: 7 },
        { kind: "line", name: hidden ? "mean of the states" : "smoothed", y: found.smoothed.mean, tone: 0 },
        { kind: "line", name: "forecast", x: ahead, y: found.forecast.mean, tone: 1 }] }),
      hidden ? [
        strips(`Probability of each of ${found.states.length} hidden states over time, and the most probable path`, found.states.map((/** @type {number[]} */ p, /** @type {number} */ k) => [...p, ...found.ahead[k]]), found.path, ahead.length),
        table(["State", "Mean", "Sd", ...found.means.map((/** @type {number} */ _, /** @type {number} */ k) => `to ${k + 1}`)], found.means.map((/** @type {number} */ mean, /** @type {number} */ k) =>
          [`state ${k + 1}`, number(mean), number(found.sds[k]), ...found.transitions[k].map((/** @type {number} */ p) => percent(p))]), "States and their moves")]
        : table(["Variance of", "Estimate"], Object.entries(found.parameters).map(([name, value]) => [name, number(/** @type {number} */ (value))]), "Parameters"),
      h("p", { class: "mk-facts" }, `log likelihood ${number(found.log_likelihood)} · BIC ${number(found.bic)}${found.converged ? "" : " · not converged"}`)];
  }
  onTable(draw);
  draw();
}

/** @param {HTMLElement} element @param {Context} context */
async function posteriorForm(element, context) {
  const { store, api } = context;
  /** @type {Record<string, any>} */
  const settings = { source: "", outcome: "", predictors: [], family: "normal", draws: 1000, warmup: 1000, chains: 4 };
  const fields = h("div", { class: "mk-form" });
  const go = h("button", { class: "mk-button mk-primary" }, "Draw");
  const result = h("div", { class: "mk-job" });
  element.append(form(run, fields, h("div", { class: "mk-row" }, go)), result);
  /** @type {{name: string, title: string}[]} */
  const examples = await api.get("/api/bayesian").catch(() => []);
  settings.source = examples[0]?.name ?? "regression";

  function draw() {
    const now = currentTable();
    const names = (now?.columns ?? []).filter((column) => column.kind !== "text").map((column) => column.name);
    const numbers = store.state.view?.nodes.some((node) => !node.states);
    /** @type {[string, string][]} */
    const sources = [...examples.map((each) => /** @type {[string, string]} */ ([each.name, each.title])), ["regression", "Regression of the table"], ...(numbers ? [/** @type {[string, string]} */ (["model", `The open model, given its findings`])] : [])];
    if (settings.source === "model" && !numbers) settings.source = sources[0][0];
    if (!names.includes(settings.outcome)) settings.outcome = "";
    settings.predictors = settings.predictors.filter((/** @type {string} */ name) => names.includes(name));
    fill(fields, field("Model", select(sources, settings.source, (value) => { settings.source = value; draw(); })),
      settings.source !== "regression" ? null : !now ? h("p", { class: "mk-hint" }, "Choose a table above.") : [
        h("div", { class: "mk-pair" }, field("Outcome", nameSelect("Outcome", names, settings.outcome, (value) => { settings.outcome = value; })),
          field("Family", select([["normal", "normal"], ["logistic", "logistic (two states)"], ["poisson", "Poisson (counts)"]], settings.family, (value) => { settings.family = value; }))),
        field("Predictors", namePicker(names, settings.predictors, (picked) => { settings.predictors = picked; }, "Predictors"))],
      h("div", { class: "mk-pair" }, field("Draws of each chain", whole(settings, "draws", { min: "10", max: "100000" })),
        field("Warm-up", whole(settings, "warmup", { min: "10", max: "100000" })), field("Chains", whole(settings, "chains", { min: "1", max: "16" }))));
  }

  function run() {
    const { source, outcome, predictors, family, draws, warmup, chains } = settings;
    const what = source === "regression" ? { regression: { data: currentTable()?.id ?? "", outcome, predictors, family } }
      : source === "model" ? { model: store.state.view?.id, given: store.state.findings } : { example: source };
    if (source === "regression" && (!currentTable() || !outcome || !predictors.length)) return context.dom.toast("Choose a table, an outcome and predictors first", "error");
    let shown = 0;
    runJob(context, result, { kind: "posterior", ...what, draws, warmup, chains }, (found) => {
      const choice = select(found.quantities.map((/** @type {any} */ each, /** @type {number} */ i) => [String(i), each.name]), String(shown), (value) => { shown = Number(value); pictures(); }, { "aria-label": "Quantity" });
      const drawn = h("div", { class: "mk-form" });
      const pictures = () => fill(drawn, quantity(found.quantities[shown]));
      pictures();
      const columns = ["mean", "sd", found.columns[2], found.columns[3], "ess_bulk", "r_hat"];
      return [h("p", { class: "mk-facts" }, `${found.draws} draws of ${found.chains} chains · ${found.divergences} divergences · largest R̂ ${number(found.r_hat)} · worth ${number(found.effective)} independent draws`),
        field("Quantity", choice), drawn,
        table(["", ...columns], found.summary.map((/** @type {any} */ row) => [row.name, ...columns.map((column) => number(row[column]))]), "Summary of the posterior")];
    });
  }

  /** @param {any} one */
  function quantity(one) {
    const bins = one.ranks[0]?.length ?? 0;
    return [
      chart({ label: `Trace of ${one.name} in ${one.traces.length} chains`, xLabel: "draw", yLabel: one.name, height: 150,
        layers: one.traces.map((/** @type {number[]} */ y, /** @type {number} */ k) => ({ kind: "line", name: `chain ${k + 1}`, x: one.at, y, tone: k })) }),
      chart({ label: `Ranks of the draws of ${one.name} in each chain; flat is good`, xLabel: "rank", yLabel: "draws in each bin", height: 130, from: 0, legend: false,
        layers: one.ranks.map((/** @type {number[]} */ y, /** @type {number} */ k) => ({ kind: "steps", name: `chain ${k + 1}`, x: y.map((_, i) => (i + 0.5) / bins), y, tone: k })) })];
  }
  onTable(draw);
  store.subscribe((_, changed) => { if (changed.has("view")) draw(); });
  draw();
}

/** @param {HTMLElement} element @param {Context} context */
function topicsForm(element, context) {
  /** @type {Record<string, any>} */
  const settings = { column: "", components: 8, stop_words: "english", min_documents: 1 };
  const fields = h("div", { class: "mk-form" });
  const go = h("button", { class: "mk-button mk-primary" }, "Find topics");
  const result = h("div", { class: "mk-job" });
  element.append(form(run, fields, h("div", { class: "mk-row" }, go)), result);

  function draw() {
    const now = currentTable();
    const texts = (now?.columns ?? []).map((column) => column.name);
    if (!texts.includes(settings.column)) settings.column = now?.columns.find((column) => column.kind === "text")?.name ?? "";
    go.disabled = !now;
    fill(fields, now ? null : h("p", { class: "mk-hint" }, "Choose a text file above, a document a line, or a table with a column of texts."), h("div", { class: "mk-pair" },
      texts.length > 1 ? field("Column of texts", nameSelect("Column of texts", texts, settings.column, (value) => { settings.column = value; })) : null,
      field("Topics", whole(settings, "components", { min: "1", max: "200" })),
      field("Left out", select([["english", "common English words"], ["", "nothing"]], settings.stop_words ?? "", (value) => { settings.stop_words = value || null; })),
      field("Words in fewer documents leave", whole(settings, "min_documents", { min: "1", max: "1000" }))));
  }

  function run() {
    const now = currentTable();
    if (!now) return;
    const { column, ...rest } = settings;
    runJob(context, result, { kind: "topics", data: now.id, ...rest, column: now.columns.length > 1 ? column || null : null }, show);
  }

  /** @param {any} found */
  function show(found) {
    const name = (/** @type {number} */ k) => `topic ${k + 1} (${found.topics[k].words.slice(0, 2).map((/** @type {[string, number]} */ word) => word[0]).join(", ")})`;
    const documents = h("div", { class: "mk-form" });
    const open = (/** @type {number} */ k) => fill(documents, h("h3", null, `Documents most about ${name(k)}`), found.topics[k].documents.filter((/** @type {number} */ d) => d < found.documents.length)
      .map((/** @type {number} */ d) => h("article", { class: "mk-document" }, stack(`Topics of document ${d + 1}`, found.documents[d].shares, name), h("p", null, found.documents[d].text))));
    open(0);
    return [h("p", { class: "mk-facts" }, `${found.count.toLocaleString("en")} documents · ${found.words.toLocaleString("en")} words · vocabulary ${found.vocabulary.toLocaleString("en")} · perplexity ${number(found.perplexity)}`),
      h("div", { class: "mk-topics" }, found.topics.map((/** @type {any} */ topic, /** @type {number} */ k) => h("section", { class: "mk-topic" },
        h("div", { class: "mk-section-head" }, h("h3", null, h("span", { class: `mk-dot mk-tone-${k % 8}`, "aria-hidden": "true" }), `Topic ${k + 1}`), h("span", { class: "mk-tag" }, percent(topic.share)),
          button("Documents", () => open(k), { class: "mk-quiet", label: `Documents of topic ${k + 1}` })),
        bars(`Words of topic ${k + 1}`, topic.words.slice(0, 8).map((/** @type {[string, number]} */ word) => ({ name: word[0], value: word[1], text: percent(word[1]) })), k % 8)))),
      documents];
  }
  onTable(draw);
  draw();
}

/** @param {HTMLElement} element @param {Context} context */
function codesForm(element, context) {
  /** @type {Record<string, any>} */
  const settings = { source: "digits", latent: 8, epochs: 60 };
  const fields = h("div", { class: "mk-form" });
  const result = h("div", { class: "mk-job" });
  element.append(form(run, fields, h("div", { class: "mk-row" }, h("button", { class: "mk-button mk-primary" }, "Train and ask"))), result);

  function draw() {
    const now = currentTable();
    if (!now && settings.source === "table") settings.source = "digits";
    /** @type {[string, string][]} */
    const sources = [["digits", "Handwritten digits"], ...(now ? [/** @type {[string, string]} */ (["table", "The table's numbers"])] : [])];
    fill(fields, h("div", { class: "mk-pair" }, field("Rows", select(sources, settings.source, (value) => { settings.source = value; })),
      field("Numbers of a code", whole(settings, "latent", { min: "1", max: "64" })), field("Epochs", whole(settings, "epochs", { min: "1", max: "10000" }))));
  }

  function run() {
    const now = currentTable();
    runJob(context, result, { kind: "codes", latent: settings.latent, epochs: settings.epochs, ...(settings.source === "table" && now ? { data: now.id } : {}) }, show);
  }

  /** @param {any} found */
  function show(found) {
    const grid = (/** @type {string} */ label, /** @type {number[][][]} */ lines, /** @type {string[]} */ names = []) => (found.side
      ? pictures(label, lines, found.side, found.low, found.high, names)
      : table(found.names, lines.flat().map((row) => row.map((value) => (value === null ? "" : number(value)))), label));
    return [
      h("p", { class: "mk-facts" }, `${found.count.toLocaleString("en")} rows · mean log evidence of rows held out at least ${number(found.score)}`),
      chart({ label: "The evidence lower bound of a row, by epoch", xLabel: "epoch", yLabel: "nats", height: 130, legend: false, layers: [{ kind: "line", name: "bound", y: found.curve, tone: 0 }] }),
      h("h3", null, "What is missing"),
      grid("Rows, what was shown of them, and the rest as the model expects it", [found.rows, found.gaps, found.filled], ["rows", "shown", "filled"]),
      h("h3", null, "From one row to another"),
      grid("Means of rows along straight ways between the codes of two rows", found.ways),
      h("h3", null, "Rows that never were"),
      grid("Rows drawn from the model", [found.drawn])];
  }
  onTable(draw);
  draw();
}
