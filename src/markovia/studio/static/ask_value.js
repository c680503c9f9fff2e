// Which test to run next, what an answer depends on, and answers or draws for many cases.
import { button, download, field, h, namePicker, number, percent, select, table, why } from "./dom.js";
import { nodeNamed } from "./store.js";
import { askButton, discreteNames } from "./ask_probability.js";

/** @typedef {import("./panel_ask.js").AskQuestion} AskQuestion */

/** @type {AskQuestion} */
export const nextTestQuestion = {
  title: "Which test next?",
  hint: "value of information",
  build(form, answer, context) {
    const { store, api, actions } = context;
    const names = discreteNames(context);
    let target = store.state.selected.find((name) => names.includes(name)) ?? names[0] ?? "";
    const candidates = namePicker(names, [], () => {}, "the tests");
    /** @type {Map<string, string>} */
    const costs = new Map();
    const run = () => answer(async () => {
      const chosen = candidates.value().filter((name) => name !== target);
      const priced = Object.fromEntries([...costs].filter(([, cost]) => Number(cost) > 0).map(([name, cost]) => [name, Number(cost)]));
      const found = await api.nextTest(store.state.view?.id, { target, ...(chosen.length ? { candidates: chosen } : {}),
        ...(Object.keys(priced).length ? { costs: priced } : {}), ...actions.question() });
      const tests = [...found.tests].sort((a, b) => b.per_cost - a.per_cost).slice(0, 30);
      const most = Math.max(1e-12, ...tests.map((test) => test.per_cost));
      return [table(["test", "bits", "cost", "bits per cost"], tests.map((test) => [test.name, number(test.information < 1e-12 ? 0 : test.information),
        h("input", { class: "mk-input mk-cost", type: "number", min: "0", step: "any", value: String(test.cost), "aria-label": `Cost of testing ${test.name}`,
          onchange: (/** @type {Event} */ event) => { costs.set(test.name, /** @type {HTMLInputElement} */ (event.target).value); run(); } }),
        meter(test.per_cost / most, number(test.per_cost < 1e-12 ? 0 : test.per_cost))]), `Tests for ${target}, the most telling first`), why(found.info)];
    });
    form.append(field("To learn about", select(names, target, (next) => { target = next; })),
      field("Tests at hand (empty: all)", candidates), askButton(run));
    return { run, live: true };
  },
};

/** @param {number} share @param {string} text */
function meter(share, text) {
  const inner = h("span", { class: "mk-bar-fill" });
  inner.style.width = `${100 * Math.max(0, Math.min(1, share))}%`;
  return h("span", { class: "mk-bar" }, inner, h("span", { class: "mk-bar-text" }, text));
}

/** @type {AskQuestion} */
export const sensitivityQuestion = {
  title: "What does the answer depend on?",
  hint: "tornado",
  build(form, answer, { store, api, actions }) {
    const nodes = (store.state.view?.nodes ?? []).filter((node) => node.kind !== "factor" && node.kind !== "utility");
    const names = nodes.map((node) => node.name);
    let target = store.state.selected[0] ?? names[0] ?? "";
    let state = "";
    const states = h("span", { class: "mk-state-choice" });
    const pickStates = () => {
      const known = nodeNamed(store.state, target)?.states;
      state = known?.[0] ?? "";
      states.replaceChildren(...(known ? [field("State", select(known, state, (next) => { state = next; }))] : []));
    };
    pickStates();
    const run = () => answer(async () => {
      const found = await api.sensitivity(store.state.view?.id, { target, ...(state ? { state } : {}), top: 15, ...actions.question() });
      const shown = found.rows.filter((/** @type {any} */ row) => row.low !== null && row.high !== null && Math.abs(row.high - row.low) > 1e-12)
        .sort((/** @type {any} */ a, /** @type {any} */ b) => Math.abs(b.high - b.low) - Math.abs(a.high - a.low));
      const what = state ? `P(${target} = ${state})` : `the mean of ${target}`;
      if (!shown.length) return h("p", { class: "mk-hint" }, `No number of the model moves ${what} now.`);
      const ends = shown.flatMap((/** @type {any} */ row) => [row.low, row.high, found.probability]);
      const [low, high] = [Math.min(...ends), Math.max(...ends)];
      const say = (/** @type {number} */ x) => (state ? percent(x) : number(x));
      return [h("p", { class: "mk-hint" }, `${what} is ${say(found.probability)}; each bar shows where it goes when one number of the model is a tenth lower or higher.`),
        h("div", { class: "mk-tornado", role: "list", "aria-label": `What ${what} depends on` }, shown.map((/** @type {any} */ row) => tornadoRow(row, found.probability, low, high, say))),
        h("div", { class: "mk-tornado-axis" }, h("span", null, say(low)), h("span", null, say(high))), why(found.info)];
    });
    form.append(field("Answer", select(names, target, (next) => { target = next; pickStates(); })), states, askButton(run));
    return { run, live: true };
  },
};

/** @param {any} row @param {number} middle @param {number} low @param {number} high @param {(x: number) => string} say */
function tornadoRow(row, middle, low, high, say) {
  const span = high - low || 1;
  const part = (/** @type {number} */ to, /** @type {string} */ tone) => {
    const made = h("span", { class: `mk-tornado-part ${tone}` });
    made.style.left = `${(100 * (Math.min(to, middle) - low)) / span}%`;
    made.style.width = `${(100 * Math.abs(to - middle)) / span}%`;
    return made;
  };
  const label = row.state ? `P(${row.name} = ${row.state}${row.row_label ? ` | ${row.row_label}` : ""})` : `${row.name}: ${row.row_label}`;
  return h("div", { role: "listitem", class: "mk-tornado-row" }, h("span", { class: "mk-tornado-label" }, `${label} = ${number(row.value)}`),
    h("span", { class: "mk-tornado-track", title: `${say(row.low)} to ${say(row.high)}` }, part(row.low, "mk-lower"), part(row.high, "mk-higher")));
}

/** @type {AskQuestion} */
export const batchQuestion = {
  title: "Answers for many cases",
  hint: "a table of cases",
  build(form, answer, context) {
    const { store, api } = context;
    const names = discreteNames(context);
    const targets = namePicker(names, store.state.selected.filter((name) => names.includes(name)), () => {}, "the answers");
    const file = h("input", { type: "file", class: "mk-input", accept: ".csv,.tsv,.parquet,.txt,.gz" });
    const progress = h("progress", { max: "1", "aria-label": "Progress", hidden: true });
    const run = () => answer(async () => {
      if (!file.files?.[0]) throw new Error("choose a table of cases: one row a case, one column a variable; empty cells are unknown");
      if (!targets.value().length) throw new Error("name what to predict");
      const data = await api.data(file.files[0]);
      const job = await api.batch(store.state.view?.id, { data: data.id, targets: targets.value() });
      progress.hidden = false;
      const done = await api.follow(job.id, (/** @type {any} */ now) => { if (now.progress !== null) progress.value = now.progress; })
        .finally(() => { progress.hidden = true; });
      if (done.state !== "done") throw new Error(done.note || "the answers were not made");
      return [h("p", null, `${data.rows.toLocaleString("en")} cases answered.`),
        button("Download the answers", async () => download(data.name.replace(/\.[^.]*(\.gz)?$/, "") + "-answers.csv", await api.jobFile(job.id)), { icon: "save", class: "mk-primary" })];
    });
    form.append(field("Cases (CSV or Parquet)", file), field("Predict", targets), askButton(run, "Answer all"), progress);
    return { run };
  },
};

/** @type {AskQuestion} */
export const sampleQuestion = {
  title: "Draw cases",
  hint: "samples given the findings",
  build(form, answer, { store, api, actions }) {
    const count = h("input", { class: "mk-input", type: "number", min: "1", max: "100000", value: "100" });
    const seed = h("input", { class: "mk-input", type: "number", min: "0", value: "0" });
    const run = () => answer(async () => {
      const found = await api.sample(store.state.view?.id, { n: Number(count.value), seed: Number(seed.value), ...actions.question() });
      const quote = (/** @type {any} */ cell) => (/[",\n]/.test(String(cell)) ? `"${String(cell).replaceAll('"', '""')}"` : String(cell ?? ""));
      const text = [found.columns, ...found.rows].map((row) => row.map(quote).join(",")).join("\n") + "\n";
      return [table(found.columns, found.rows.slice(0, 10), "The first draws"),
        button(`Download ${found.rows.length} rows`, () => download("draws.csv", text), { icon: "save" })];
    });
    form.append(field("Rows", count), field("Seed", seed), askButton(run, "Draw"));
    return { run };
  },
};
