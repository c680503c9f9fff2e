// The questions of api.js answered without a server: computed in the page where the model's tables came with it,
// else looked up among the answers that came with it.
import { compile } from "./exact.js";

/**
 * @typedef {import("./store.js").View} View
 * @typedef {import("./store.js").Marginal} Marginal
 * @typedef {import("./store.js").Info} Info
 * @typedef {import("./store.js").Finding} Finding
 * @typedef {{marginals: Record<string, Marginal>, log_evidence: number | null, info: Info}} Answer
 * @typedef {{given: Record<string, Finding>, do: Record<string, string | number>, answer: Answer}} Known
 * @typedef {{given?: Record<string, Finding>, do?: Record<string, string | number>}} Question
 * @typedef {{view: View, tables: import("./exact.js").TableModel | null, answers: Known[]}} Content
 *   `answers` are the questions whose answers came along; without tables there are no others.
 */

/** @param {Content} content */
export function localApi({ view, tables, answers }) {
  const known = new Map(answers.map((each) => [keyOf(each), each.answer]));
  const tree = tables && compile(tables);
  const directed = tables !== null && tables.tables.every((table) => table.child !== undefined);
  let weight = 0; // of an undirected model without findings

  /** @param {Question} question */
  function beliefs({ given = {}, do: done = {} }) {
    if (!tree) throw new Error("this page holds no tables to compute with");
    if (!directed && Object.keys(done).length)
      throw new Error("interventions need a directed network; this model has no directions");
    const loose = !directed ? [] : view.edges.filter((edge) => edge.kind === "line" && (edge.from in done) !== (edge.to in done));
    if (loose.length)
      throw new Error(`the data leave ${loose.map((edge) => `${edge.from} --- ${edge.to}`).join(", ")} without a direction, and what setting a variable changes depends on it`);
    if (!directed && !weight) weight = tree.beliefs().logEvidence;
    const found = tree.beliefs(/** @type {any} */ (given), /** @type {any} */ (done));
    return { ...found, logEvidence: found.logEvidence - weight };
  }

  /** @param {string} _ @param {Question} question @returns {Promise<Answer>} */
  async function marginals(_, question) {
    const before = performance.now();
    if (!tree || !tables) {
      const found = known.get(keyOf(question));
      if (found) return found;
      throw new Error(answers.length > 1
        ? "this page holds the answers to its own findings and to single findings only; open the model in the studio for others"
        : "this page holds the answer to its own findings only; open the model in the studio for others");
    }
    const found = beliefs(question);
    const info = { engine: "bucket-tree", exact: true, converged: true, error: null, seconds: (performance.now() - before) / 1000,
      log_evidence: found.logEvidence, note: `computed in this page on ${tree.cost.toLocaleString("en")} table cells` };
    return { marginals: Object.fromEntries(tables.variables.map(({ name }, v) => [name, { p: [...found.marginals[v]] }])),
      log_evidence: found.logEvidence, info };
  }

  /**
   * Entropy in bits, or what a node would tell about a target: I(T; X) = sum over t of p(t) KL(p(x | t) || p(x)).
   * @param {string} id
   * @param {Question & {measure: string, target?: string}} question
   */
  async function shading(id, question) {
    const { marginals: now } = await marginals(id, question);
    /** @type {Record<string, number>} */
    const values = {};
    if (question.measure === "entropy") {
      for (const [name, { p }] of Object.entries(now)) if (p) values[name] = p.reduce((sum, x) => sum + surprise(x, x), 0);
      return { values };
    }
    const target = tables?.variables.find(({ name }) => name === question.target);
    if (!target) throw new Error("what nodes tell about a target needs the model's tables; open it in the studio");
    const { given = {} } = question;
    const weights = now[target.name].p ?? [];
    for (const [k, state] of target.states.entries()) {
      if (!weights[k]) continue;
      const { marginals: then } = await marginals(id, { ...question, given: { ...given, [target.name]: { state } } });
      for (const [name, { p }] of Object.entries(then)) {
        const before = now[name].p ?? [];
        const told = (p ?? []).reduce((sum, x, i) => sum + surprise(x, before[i]) - surprise(x, x), 0);
        values[name] = Math.max(0, (values[name] ?? 0) + weights[k] * told);
      }
    }
    values[target.name] = 0;
    return { values };
  }

  /** @param {string} _ @param {Question} question */
  async function map(_, { given = {}, do: done = {} }) {
    if (!tree || !tables) throw new Error("this page holds no tables to compute with");
    const { logEvidence } = beliefs({ given, do: done });
    const { states, logWeight } = tree.explain(/** @type {any} */ (given), /** @type {any} */ (done));
    const best = Object.fromEntries(tables.variables.map(({ name, states: all }, v) => [name, all[states[v]]]));
    const log = logWeight - weight;
    return { best: [{ states: best, log_prob: log, p: Math.exp(log - logEvidence) }],
      info: { engine: "bucket-tree", exact: true } };
  }

  return { marginals, shading, map, view: async () => view };
}

/** @param {number} x @param {number} y */
function surprise(x, y) {
  return x > 0 ? -x * Math.log2(y) : 0;
}

/** A question as text: equal questions read the same. @param {Question} question */
function keyOf({ given = {}, do: done = {} }) {
  return JSON.stringify([given, done], (_, value) => (value && typeof value === "object" && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value));
}
