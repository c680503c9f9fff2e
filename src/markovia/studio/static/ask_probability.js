// Joint and conditional tables, the most probable explanations, and whether findings fit together.
import { bar, field, h, namePicker, number, percent, table, why } from "./dom.js";
import { edgeKey } from "./store.js";

/**
 * @typedef {import("./panel_ask.js").AskQuestion} AskQuestion
 * @typedef {import("./main.js").Context} Context
 */

/** A button that sends a form's question. @param {() => void} run @param {string} [text] */
export function askButton(run, text = "Ask") {
  return h("div", { class: "mk-row" }, h("button", { type: "button", class: "mk-button mk-primary", onclick: run }, text));
}

/** @param {Context} context */
export function discreteNames({ store }) {
  return (store.state.view?.nodes ?? []).filter((node) => node.states).map((node) => node.name);
}

/** All combinations of lists, the last fastest. @param {string[][]} lists @returns {string[][]} */
export function combinations(lists) {
  return lists.reduce((/** @type {string[][]} */ rows, list) => rows.flatMap((row) => list.map((item) => [...row, item])), [[]]);
}

const MOST_SHOWN = 500;

/** @type {AskQuestion} */
export const tableQuestion = {
  title: "Joint or conditional table",
  hint: "P(A, B | C)",
  build(form, answer, context) {
    const { store, api, actions } = context;
    const names = discreteNames(context);
    const targets = namePicker(names, store.state.selected.filter((name) => names.includes(name)).slice(0, 3), () => {}, "the table");
    const rows = namePicker(names, [], () => {}, "the rows");
    const run = () => answer(async () => {
      const [wanted, given] = [targets.value(), rows.value().filter((name) => !targets.value().includes(name))];
      if (!wanted.length) throw new Error("name at least one variable");
      const found = await api.query(store.state.view?.id, { targets: [...given, ...wanted], ...actions.question() });
      return [given.length ? conditional(found, given.length) : joint(found), why(found.info)];
    });
    form.append(field("Probability of", targets, "One variable or several together; select nodes in the graph to start with them."),
      field("For each state of (optional)", rows, "One row a state: a conditional table."), askButton(run));
    return { run, live: true };
  },
};

/** @param {{targets: string[], states: string[][], p: number[]}} found */
function joint({ targets, states, p }) {
  const order = combinations(states).map((row, place) => ({ row, p: p[place] }));
  const shown = order.length > 24 ? [...order].sort((a, b) => b.p - a.p) : order;
  return [table([...targets, "p"], shown.slice(0, MOST_SHOWN).map(({ row, p: value }) => [...row, bar(value)]), `Probability of ${targets.join(", ")}`),
    shown.length > MOST_SHOWN ? h("p", { class: "mk-hint" }, `the ${MOST_SHOWN} most probable of ${shown.length.toLocaleString("en")} rows`) : null];
}

/** @param {{targets: string[], states: string[][], p: number[]}} found @param {number} split */
function conditional({ targets, states, p }, split) {
  const rows = combinations(states.slice(0, split));
  const columns = combinations(states.slice(split));
  return table([...targets.slice(0, split), ...columns.map((column) => column.join(", "))],
    rows.slice(0, MOST_SHOWN).map((row, place) => {
      const part = p.slice(place * columns.length, (place + 1) * columns.length);
      const total = part.reduce((sum, x) => sum + x, 0);
      return [...row, ...part.map((x) => (total > 0 ? bar(x / total) : "impossible"))];
    }), `${targets.slice(split).join(", ")} for each state of ${targets.slice(0, split).join(", ")}`);
}

/** @type {AskQuestion} */
export const explanationQuestion = {
  title: "Most probable explanation",
  hint: "and the m best",
  build(form, answer, context) {
    const { store, api, actions } = context;
    const targets = namePicker(discreteNames(context), [], () => {}, "the explanation");
    const count = h("input", { class: "mk-input", type: "number", min: "1", max: "50", value: "3" });
    const run = () => answer(async () => {
      const wanted = targets.value();
      const m = Math.max(1, Math.min(50, Number(count.value) || 1));
      const found = await api.map(store.state.view?.id, { m, ...(wanted.length ? { targets: wanted } : {}), ...actions.question() });
      return [explanations(found.best), why(found.info)];
    });
    form.append(field("Explain (empty: everything)", targets), field("How many", count), askButton(run));
    return { run, live: true };
  },
};

/** @param {{states: Record<string, string | number>, log_prob: number | null, p: number | null}[]} best */
function explanations(best) {
  if (!best.length) return h("p", { class: "mk-hint" }, "Nothing is left to explain.");
  const names = Object.keys(best[0].states);
  const head = ["", ...best.map((one, place) => h("span", null, `${place + 1}.`, h("br"), one.p === null ? number(one.log_prob) : percent(one.p)))];
  return table(head, names.map((name) => [name, ...best.map((one) => {
    const differs = one.states[name] !== best[0].states[name];
    const text = typeof one.states[name] === "number" ? number(Number(one.states[name])) : String(one.states[name]);
    return differs ? h("mark", { class: "mk-differs" }, text) : text;
  })]), "Most probable explanations, best first");
}

/** @type {AskQuestion} */
export const conflictQuestion = {
  title: "Do the findings fit together?",
  hint: "conflict",
  build(form, answer, { store, api, actions }) {
    const run = () => answer(async () => {
      const found = await api.conflict(store.state.view?.id, actions.question());
      const value = found.conflict === null ? "impossible together" : `${number(found.conflict)} nats`;
      return [h("p", { class: "mk-verdict" }, found.note),
        h("p", { class: "mk-hint" }, `Conflict: ${value}. Above zero, the findings are less probable together than apart: one may be wrong, or something rare happened.`),
        found.findings.length > 1 ? table(["finding", "adds"], found.findings.map((/** @type {any} */ each) => [each.name, each.part === null ? "∞" : number(each.part)]), "What each finding adds to the conflict") : null];
    });
    form.append(askButton(run, "Check"));
    return { run, live: true };
  },
};

/** Edges along a path of names, in either direction. @param {string[]} path */
export function pathEdges(path) {
  return path.slice(1).flatMap((name, place) => [edgeKey(path[place], name), edgeKey(name, path[place])]);
}
