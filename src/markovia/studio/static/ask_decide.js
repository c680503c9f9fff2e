// What to decide: a table of choices for every open decision, with the rows that the findings choose.
import { field, h, number, percent, select, table, why } from "./dom.js";
import { askButton } from "./ask_probability.js";

/**
 * @typedef {import("./panel_ask.js").AskQuestion} AskQuestion
 * @typedef {{seen: string[], choice: string, probability: number, tie: boolean, current: boolean}} RuleRow
 * @typedef {{name: string, sees: string[], rows: RuleRow[], left_out: number}} Rule
 */

const MOST_SHOWN = 200;

/** @type {AskQuestion} */
export const decideQuestion = {
  title: "What to decide?",
  hint: "policy, expected utility",
  build(form, answer, { store, api, actions }) {
    if (!store.state.view?.nodes.some((node) => node.kind === "decision")) {
      form.append(h("p", { class: "mk-hint" }, "Nothing is decided in this model. The panel Edit adds decisions and utilities."));
      return {};
    }
    let memory = "drawn";
    const risk = h("input", { class: "mk-input", type: "number", step: "any", value: "0" });
    const run = () => answer(async () => {
      const found = await api.decide(store.state.view?.id, { memory, risk: Number(risk.value) || 0, ...actions.question() });
      const what = Number(risk.value) ? "Certainty equivalent" : "Expected utility";
      return [h("p", { class: "mk-verdict" }, `${what} ${number(found.value, 6)}`), h("p", { class: "mk-hint" }, surety(found)),
        found.later.length ? h("p", { class: "mk-hint" }, `What is known of ${found.later.join(", ")} depends on an open decision: it chooses the rows below and is no evidence yet.`) : null,
        found.rules.length ? found.rules.map(policyTable) : h("p", { class: "mk-hint" }, "Every decision is made."), why(found.info)];
    });
    form.append(field("Each decision knows", select([["drawn", "what its arrows show"], ["perfect", "also all that was seen and chosen before"]], memory,
      (next) => { memory = next; })), field("Risk (below 0 avoids it, 0 is indifferent)", risk), askButton(run, "Decide"));
    return { run, live: true };
  },
};

/** @param {{value: number, bound: number | null, gap: number | null, info: any}} found */
function surety({ value, bound, gap, info }) {
  const sure = info.exact ? "No other policy is better." : gap === null ? "A better policy may exist." : `At most ${number(gap)} below the best policy.`;
  const more = bound !== null && bound - value > 1e-9 * Math.max(1, Math.abs(value)) ? ` Forgetting nothing would be worth ${number(bound, 6)}.` : "";
  return sure + more;
}

/** @param {Rule} rule */
function policyTable({ name, sees, rows, left_out: hidden }) {
  const shown = rows.length > MOST_SHOWN ? [...rows].sort((a, b) => Number(b.current) - Number(a.current) || b.probability - a.probability).slice(0, MOST_SHOWN) : rows;
  const missing = hidden + rows.length - shown.length;
  return [h("h3", null, sees.length ? `${name}, seeing ${sees.join(", ")}` : name),
    table([...sees, name, "p"], shown.map((row) => [...row.seen, h("strong", null, row.tie ? `${row.choice} (tie)` : row.choice), row.probability > 0 ? percent(row.probability) : "never"]),
      `What to choose for ${name}`, (place) => ({
        class: `${shown[place].current && sees.length ? "mk-current" : ""} ${shown[place].probability > 0 ? "" : "mk-never"}`,
        ...(shown[place].current && sees.length ? { "aria-current": "true" } : {}) })),
    missing ? h("p", { class: "mk-hint" }, `and ${missing.toLocaleString("en")} less probable rows`) : null];
}
