// Causes: is the effect identified, with which sets, how large is it in a table, and what would have been for one row.
import { bar, button, field, fill, h, icon, namePicker, number, percent, select, table } from "./dom.js";
import { bars } from "./chart.js";
import { runJob } from "./job_view.js";
import { currentTable, nameSelect, onTable, tableChoice } from "./table_choice.js";
import { edgeKey } from "./store.js";

/** @typedef {import("./main.js").Context} Context */

export const causalPanel = {
  id: "causes",
  title: "Causes",
  /** @param {HTMLElement} element @param {Context} context */
  mount(element, context) {
    const question = { treatment: "", outcome: "", hidden: /** @type {string[]} */ ([]) };
    const ask = h("section", { class: "mk-section" });
    const effect = h("section", { class: "mk-section" });
    const row = h("section", { class: "mk-section" });
    element.append(ask, effect, row);
    const drawn = [identifySection(ask, context, question), effectSection(effect, context, question), rowSection(row, context, question)];
    let key = "";
    const draw = () => {
      const names = (context.store.state.view?.nodes ?? []).map((node) => node.name);
      const now = JSON.stringify([context.store.state.view?.id, names, context.store.state.view?.edges]);
      if (now === key) return;
      key = now;
      for (const part of ["treatment", "outcome"]) if (!names.includes(/** @type {any} */ (question)[part])) /** @type {any} */ (question)[part] = "";
      question.hidden = question.hidden.filter((name) => names.includes(name));
      for (const each of drawn) each();
    };
    context.store.subscribe((_, changed) => { if (changed.has("view")) draw(); });
    draw();
  },
};

/** A sentence with its first letter large. @param {string} text */
const capital = (text) => text.charAt(0).toUpperCase() + text.slice(1);

/**
 * @param {HTMLElement} element
 * @param {Context} context
 * @param {{treatment: string, outcome: string, hidden: string[]}} question
 */
function identifySection(element, context, question) {
  const { store, api, actions } = context;
  const result = h("div", { class: "mk-form" });
  const fields = h("div", { class: "mk-form" });
  element.append(h("h2", null, "Can the effect be known?"), fields, result);

  function draw() {
    const names = (store.state.view?.nodes ?? []).map((node) => node.name);
    fill(fields, h("div", { class: "mk-pair" },
      field("Treatment", nameSelect("Treatment", names, question.treatment, (value) => { question.treatment = value; changed(); })),
      field("Outcome", nameSelect("Outcome", names, question.outcome, (value) => { question.outcome = value; changed(); }))),
    field("Hidden, never observed", namePicker(names, question.hidden, (picked) => { question.hidden = picked; changed(); }, "Hidden variables")),
    store.state.view?.notes ? h("p", { class: "mk-note" }, store.state.view.notes) : null);
    fill(result);
    changed();
  }

  async function changed() {
    const view = store.state.view;
    const { treatment, outcome, hidden } = question;
    if (!view || !treatment || !outcome) return fill(result, h("p", { class: "mk-hint" }, "Choose what is done and what follows."));
    try {
      const found = await api.post(`/api/models/${view.id}/identify`, { treatment: [treatment], outcome: [outcome], latent: hidden });
      if (question.treatment === treatment && question.outcome === outcome) show(found);
    } catch (error) {
      store.set({ marks: null });
      fill(result, h("p", { class: "mk-job-failed", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {any} found */
  function show(found) {
    const sets = (/** @type {string} */ title, /** @type {string[][]} */ listed, /** @type {string} */ role) => (listed.length
      ? h("div", { class: "mk-form" }, h("h3", null, title), h("div", { class: "mk-sets" }, listed.map((names) =>
        button(names.length ? `{ ${names.join(", ")} }` : "nothing", () => mark(names, role), { class: "mk-set" })))) : null);
    fill(result,
      h("p", { class: `mk-verdict ${found.identified ? "mk-yes" : "mk-no"}` }, found.identified ? "Identified" : "Not identified",
        h("span", { class: "mk-verdict-why" }, found.why)),
      found.formula ? h("p", { class: "mk-formula" }, found.formula) : null,
      found.hedge ? h("p", { class: "mk-note" }, `The obstacle is a hedge: ${found.hedge.map((/** @type {string[]} */ part) => `{${part.join(", ")}}`).join(" and ")}.`) : null,
      sets("Adjust for", found.adjustment_sets, "adjust for it"),
      sets("Front-door sets", found.front_door_sets, "mediator"),
      found.instruments.length ? sets("Instruments (for linear models)", found.instruments.map((/** @type {any} */ i) => [i.name, ...i.given]), "instrument") : null,
      found.derivation.length ? h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), "Derivation", h("small", null, `${found.derivation.length} steps`)),
        h("ol", { class: "mk-fold-body mk-steps" }, found.derivation.map((/** @type {any} */ step) => h("li", null, h("span", { class: "mk-formula" }, step.equation),
          [step.reason, ...step.separations].filter(Boolean).map((text) => h("span", { class: "mk-hint" }, text)))))) : null,
      found.assumptions.length ? h("details", { class: "mk-fold" }, h("summary", null, icon("chevron"), "What it rests on"),
        h("ul", { class: "mk-fold-body" }, found.assumptions.map((/** @type {string} */ text) => h("li", { class: "mk-hint" }, text)))) : null);
    if (found.mediators.length) mark(found.mediators, "mediator");
    else mark(found.adjustment ?? found.adjustment_sets[0] ?? [], "adjust for it");
  }

  /** Show the question on the graph. @param {string[]} names @param {string} role */
  function mark(names, role) {
    const { treatment, outcome, hidden } = question;
    /** @type {Record<string, string>} */
    const nodes = { ...Object.fromEntries(hidden.map((name) => [name, "hidden"])), ...Object.fromEntries(names.map((name) => [name, role])), [treatment]: "treatment", [outcome]: "outcome" };
    store.set({ marks: { label: `${treatment} → ${outcome}${names.length ? `: ${names.join(", ")} highlighted (${role})` : ""}`, nodes, edges: causalEdges(treatment, outcome) } });
  }

  /** The edges on directed paths from one node to another. @param {string} from @param {string} to */
  function causalEdges(from, to) {
    const edges = (store.state.view?.edges ?? []).filter((edge) => edge.kind === "arrow");
    const reach = (/** @type {string} */ start, /** @type {"from" | "to"} */ out, /** @type {"from" | "to"} */ into) => {
      const seen = new Set([start]);
      const todo = [start];
      for (let name = todo.pop(); name !== undefined; name = todo.pop())
        for (const edge of edges) if (edge[out] === name && !seen.has(edge[into])) { seen.add(edge[into]); todo.push(edge[into]); }
      return seen;
    };
    const after = reach(from, "from", "to");
    const before = reach(to, "to", "from");
    return edges.filter((edge) => after.has(edge.from) && before.has(edge.to)).map((edge) => edgeKey(edge.from, edge.to));
  }
  return draw;
}

/**
 * @param {HTMLElement} element
 * @param {Context} context
 * @param {{treatment: string, outcome: string, hidden: string[]}} question
 */
function effectSection(element, context, question) {
  const { store } = context;
  const data = h("div", { class: "mk-choice" });
  const settings = { method: "auto", estimand: "ate", measure: "difference" };
  const methods = ["auto", "regression", "matching", "stratification", "ipw", "aipw", "tmle", "double-ml", "front-door", "2sls", "wald", "late", "plug-in"];
  const go = h("button", { class: "mk-button mk-primary" }, "Estimate the effect");
  const result = h("div", { class: "mk-job" });
  element.append(h("h2", null, "How large is it?"), data, h("form", { class: "mk-form", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); estimate(); } },
    h("div", { class: "mk-pair" },
      field("Method", select(methods, settings.method, (value) => { settings.method = value; })),
      field("Over whom", select([["ate", "everyone"], ["att", "the treated"], ["atc", "the untreated"]], settings.estimand, (value) => { settings.estimand = value; })),
      field("Measure", select(["difference", "ratio", "odds ratio"], settings.measure, (value) => { settings.measure = value; }))),
    h("div", { class: "mk-row" }, go)), result);
  tableChoice(data, context, "A table with the treatment, the outcome and what to adjust for.");
  onTable(() => { go.disabled = !currentTable(); });
  go.disabled = !currentTable();

  async function estimate() {
    const now = currentTable();
    const view = store.state.view;
    if (!now || !view) return;
    if (!question.treatment || !question.outcome) return context.dom.toast("Choose a treatment and an outcome first", "error");
    const absent = view.nodes.map((node) => node.name).filter((name) => !now.columns.some((column) => column.name === name));
    await runJob(context, result, { kind: "effect", model: view.id, data: now.id, treatment: question.treatment, outcome: question.outcome,
      latent: [...new Set([...question.hidden, ...absent])], ...settings,
      missing: now.columns.some((column) => column.missing) ? "drop" : "error" }, report);
  }

  /** @param {any} found */
  function report(found) {
    const [low, high] = found.interval;
    const rows = [["Compared", `${found.treatment} = ${found.treated} with ${found.control}`], ["Interval", `${number(low)} to ${number(high)} (${Math.round(100 * found.level)} %)`],
      ["p-value", found.p_value < 0.001 ? "< 0.001" : number(found.p_value)], ["Rows", found.rows.toLocaleString("en")], ["Method", found.method],
      ["Adjusted for", found.adjustment.join(", ") || "nothing"], ...(found.mediators.length ? [["Mediators", found.mediators.join(", ")]] : []),
      ...(found.instruments.length ? [["Instruments", found.instruments.join(", ")]] : []), ...(found.overlap ? [["Overlap", found.overlap]] : [])];
    return [h("p", { class: "mk-effect" }, h("strong", null, number(found.value)), h("span", null, `${found.measure}, ${{ ate: "over everyone", att: "among the treated", atc: "among the untreated" }[/** @type {"ate"} */ (found.estimand)]}`)),
      found.verdict ? h("p", { class: "mk-verdict" }, capital(found.verdict.replace(/^Verdict: /, ""))) : null,
      h("p", { class: "mk-hint" }, capital(found.why)), h("dl", { class: "mk-facts-list" }, rows.map(([name, text]) => [h("dt", null, name), h("dd", null, text)])),
      found.balance.length ? [h("h3", null, "Balance: standardised differences, before and after"), table(["Covariate", "Before", "After"],
        found.balance.map((/** @type {any} */ each) => [each.name, number(each.before), number(each.after)]), "Balance")] : null,
      found.refutations?.length ? [h("h3", null, "Attempts to refute it"), h("ul", { class: "mk-refutations" }, found.refutations.map((/** @type {any} */ each) =>
        h("li", { class: each.passed ? "mk-passed" : "mk-failed" }, h("strong", null, each.passed ? "passed" : "failed"), h("span", null, `${each.kind}: ${each.why}`))))] : null,
      found.sensitivity ? [h("h3", null, "Hidden confounding"), h("p", { class: "mk-note" }, found.sensitivity)] : null,
      found.graph ? [h("h3", null, "The graph"), h("p", { class: "mk-note" }, found.graph)] : null];
  }
  return () => {};
}

/**
 * @param {HTMLElement} element
 * @param {Context} context
 * @param {{treatment: string, outcome: string, hidden: string[]}} question
 */
function rowSection(element, context, question) {
  const { store, api } = context;
  const form = h("div", { class: "mk-form" });
  const result = h("div", { class: "mk-form" });
  let mechanism = "";
  let other = "";
  element.append(h("h2", null, "What would have been, for one row?"), form, result);

  function draw() {
    const { state } = store;
    const node = state.view?.nodes.find((each) => each.name === question.treatment);
    const facts = Object.entries(state.findings);
    const told = facts.length ? `Facts: ${facts.map(([name, finding]) => `${name} ${finding.state ?? finding.value ?? "…"}`).join(", ")}.`
      : "The findings are the facts of the row: observe some, on the graph.";
    if (node?.states && (!node.states.includes(other) || other === state.findings[question.treatment]?.state))
      other = node.states.find((each) => each !== state.findings[question.treatment]?.state) ?? node.states[0];
    fill(form, h("p", { class: "mk-hint" }, told), firstRow(),
      question.treatment ? h("div", { class: "mk-pair" },
        field(`Had ${question.treatment} been`, node?.states ? select(node.states, other, (value) => { other = value; })
          : h("input", { class: "mk-input", type: "number", step: "any", value: other, oninput: (/** @type {Event} */ event) => { other = /** @type {HTMLInputElement} */ (event.target).value; } })),
        field("Functions behind the tables", select([["", "any: bounds"], ["monotone", "monotone"], ["gumbel", "Gumbel"], ["independent", "independent"]], mechanism, (value) => { mechanism = value; }))) : null,
      h("div", { class: "mk-row" }, button(question.outcome ? `Ask about ${question.outcome}` : "Ask", askRow, { class: "mk-primary", disabled: !question.treatment || !question.outcome })));
  }

  /** A row of the table as facts. */
  function firstRow() {
    const now = currentTable();
    if (!now || !store.state.view) return null;
    const names = new Set(store.state.view.nodes.map((node) => node.name));
    return h("div", { class: "mk-row" }, select([["", "take a row of the table…"], ...now.preview.map((_, i) => /** @type {[string, string]} */ ([String(i), `row ${i + 1}`]))], "", (value) => {
      if (value === "") return;
      const findings = Object.fromEntries(now.columns.map((column, i) => [column.name, now.preview[Number(value)][i]])
        .filter(([name, cell]) => names.has(name) && cell !== null).map(([name, cell]) => [name, store.state.view?.nodes.find((node) => node.name === name)?.states ? { state: String(cell) } : { value: Number(cell) }]));
      context.actions.restore({ findings, interventions: {} });
    }, { "aria-label": "A row of the table as facts" }));
  }

  async function askRow() {
    const view = store.state.view;
    if (!view) return;
    const node = view.nodes.find((each) => each.name === question.treatment);
    try {
      const found = await api.post(`/api/models/${view.id}/counterfactual`, { targets: [question.outcome], given: store.state.findings,
        do: { [question.treatment]: node?.states ? other : Number(other) }, mechanism: mechanism || null });
      fill(result, found.answers.map(world), found.note ? h("p", { class: "mk-hint" }, found.note) : null);
    } catch (error) {
      fill(result, h("p", { class: "mk-job-failed", role: "alert" }, error instanceof Error ? error.message : String(error)));
    }
  }

  /** @param {any} answer */
  function world(answer) {
    const head = h("h3", null, `${answer.name}, had ${question.treatment} been ${other}`);
    if (answer.p) return [head, table(["State", "Probability"], answer.states.map((/** @type {string} */ state, /** @type {number} */ i) => [state, bar(answer.p[i])]), "Counterfactual probabilities")];
    if (answer.low) return [head, table(["State", "At least", "At most"], answer.states.map((/** @type {string} */ state, /** @type {number} */ i) => [state, percent(answer.low[i]), percent(answer.high[i])]), "Counterfactual bounds")];
    return [head, bars("Counterfactual mean", [{ name: "mean", value: answer.mean, text: `${number(answer.mean)} ± ${number(answer.sd)}` }])];
  }

  onTable(draw);
  store.subscribe((_, changed) => { if (changed.has("findings") || (changed.has("marks") && store.state.panel === "causes")) draw(); });
  return draw;
}
