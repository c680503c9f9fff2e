// What a reader can do: open, observe, intervene, edit, undo. Works with any object that has the methods of api.js.
import { button, clearErrors, dialog, h, toast } from "./dom.js";
import { edgeKey } from "./store.js";

/**
 * @typedef {import("./store.js").State} State
 * @typedef {import("./store.js").Store} Store
 * @typedef {import("./store.js").View} View
 * @typedef {import("./store.js").Finding} Finding
 * @typedef {Pick<State, "findings" | "interventions">} Evidence
 * @typedef {{kind: "evidence", before: Evidence, after: Evidence} | {kind: "model"}} Step
 */

/**
 * @param {Store} store
 * @param {any} api
 */
export function createActions(store, api) {
  const { state } = store;
  /** @type {Step[]} */
  let past = [];
  /** @type {Step[]} */
  let future = [];
  let running = false;
  let stale = false;
  /** @type {Evidence} */
  let answered = { findings: {}, interventions: {} };
  /** @type {{measure: "entropy" | "information", target?: string} | null} what shading was asked for last and is not there yet */
  let shadeAsked = null;
  /** @type {Promise<void>} */
  let current = Promise.resolve();
  /** What was done and undone in each model, for when it is shown again. @type {Map<string, {past: Step[], future: Step[]}>} */
  const histories = new Map();
  /** Changes go one after another, for each says which revision it was made on. @type {Promise<any>} */
  let line = Promise.resolve();
  let waiting = 0;

  const evidence = () => ({ findings: state.findings, interventions: state.interventions });
  const question = () => ({ given: state.findings, do: state.interventions });
  /** @param {unknown} error */
  const complain = (error) => toast(error instanceof Error ? error.message : String(error), "error");
  const count = () => store.set({ past: past.length, future: future.length });

  /** Ask for all marginals; while one question is under way the latest evidence waits its turn. */
  function refresh() {
    stale = true;
    if (!running) current = pump();
    return current;
  }

  async function pump() {
    running = true;
    store.set({ busy: true });
    while (stale && state.view) {
      stale = false;
      const asked = evidence();
      const id = state.view.id;
      try {
        const answer = await api.marginals(id, { given: asked.findings, do: asked.interventions });
        if (state.view?.id !== id) continue;
        answered = asked;
        const bare = !Object.keys(asked.findings).length && !Object.keys(asked.interventions).length;
        store.set({ marginals: answer.marginals, info: answer.info, logEvidence: answer.log_evidence ?? null,
          ...(bare ? { prior: answer.marginals } : {}) });
        const shown = shadeAsked ?? state.shading;
        if (shown && !stale) await shade(shown.measure, shown.target);
      } catch (error) {
        if (stale || state.view?.id !== id) continue;
        complain(error);
        if (answered.findings !== asked.findings || answered.interventions !== asked.interventions) {
          past = past.filter((step) => step.kind !== "evidence" || step.after.findings !== asked.findings
            || step.after.interventions !== asked.interventions);
          store.set({ ...answered });
          count();
        }
      }
    }
    running = false;
    store.set({ busy: false });
  }

  /** @param {Partial<Evidence>} next */
  function changeEvidence(next) {
    const before = evidence();
    const after = { ...before, ...next };
    past.push({ kind: "evidence", before, after });
    future = [];
    store.set(after);
    count();
    return refresh();
  }

  /** @param {Record<string, any>} record @param {string} name */
  const without = (record, name) => Object.fromEntries(Object.entries(record).filter(([key]) => key !== name));

  /**
   * Set or, with null, retract a finding.
   * @param {string} name
   * @param {Finding | null} finding
   */
  function observe(name, finding) {
    const findings = without(state.findings, name);
    if (finding) findings[name] = finding;
    return changeEvidence({ findings, interventions: without(state.interventions, name) });
  }

  /**
   * Set a node from outside or, with null, leave it to its parents again.
   * @param {string} name
   * @param {string | number | null} value
   */
  function intervene(name, value) {
    const interventions = without(state.interventions, name);
    if (value !== null) interventions[name] = value;
    return changeEvidence({ interventions, findings: without(state.findings, name) });
  }

  /**
   * What a click on a state does: observe it, or take the finding back.
   * @param {string} name
   * @param {string} text
   * @param {"observe" | "do"} [means]
   */
  function toggleState(name, text, means = state.clickMeans) {
    if (means === "do") return intervene(name, state.interventions[name] === text ? null : text);
    return observe(name, state.findings[name]?.state === text ? null : { state: text });
  }

  /** @param {string} name */
  function retract(name) {
    if (name in state.findings) return observe(name, null);
    if (name in state.interventions) return intervene(name, null);
    return current;
  }

  /**
   * Show a model; findings about nodes it does not have are dropped.
   * @param {View} view
   * @param {Partial<State>} [more]
   */
  async function show(view, more = {}) {
    const fresh = state.view?.id !== view.id;
    if (fresh) {
      if (state.view) histories.set(state.view.id, { past, future });
      ({ past, future } = histories.get(view.id) ?? { past: [], future: [] });
      answered = { findings: {}, interventions: {} };
    }
    const names = new Set(view.nodes.map((node) => node.name));
    const kept = (/** @type {Record<string, any>} */ record) =>
      Object.fromEntries(Object.entries(record).filter(([name]) => names.has(name)));
    const findings = kept(more.findings ?? (fresh ? {} : state.findings));
    const interventions = kept(more.interventions ?? (fresh ? {} : state.interventions));
    const cleared = fresh ? { marginals: {}, prior: {}, info: null, logEvidence: null, scenarios: [], reference: null,
      selected: [], focus: null, shading: null, camera: null, edgeWeights: {}, overlays: [], onConnect: null, origin: null } : {};
    store.set({ ...cleared, marks: null, selected: fresh ? [] : state.selected.filter((name) => names.has(name)), ...more,
      view, findings, interventions });
    count();
    if (fresh && Object.keys(findings).length + Object.keys(interventions).length) {
      api.marginals(view.id, { given: {}, do: {} })
        .then((/** @type {any} */ answer) => state.view?.id === view.id && store.set({ prior: answer.marginals }))
        .catch(() => {});
    }
    await refresh();
  }

  /** @param {Record<string, string>} source @param {Partial<State>} [more] */
  async function open(source, more = {}) {
    try {
      store.set({ busy: true });
      await show(await api.open(source), { origin: source, ...more });
    } catch (error) {
      complain(error);
    } finally {
      store.set({ busy: running });
    }
  }

  /** @param {File} file */
  async function upload(file) {
    try {
      store.set({ busy: true });
      await show(await api.upload(file), { origin: null });
    } catch (error) {
      complain(error);
    } finally {
      store.set({ busy: running });
    }
  }

  /**
   * Change the model; resolves with whether it was changed.
   * @param {Record<string, any>} op
   */
  async function edit(op) {
    if (!state.view) return false;
    try {
      const view = await change((id, revision) => api.edit(id, op, revision));
      if (!view) return false;
      clearErrors();
      past.push({ kind: "model" });
      future = [];
      const more = op.op === "rename" ? renamed(op.name, op.to) : {};
      if (op.op === "move") {
        store.set({ view });
        count();
      } else await show(view, more);
      return true;
    } catch (error) {
      complain(error);
      const cycle = /** @type {any} */ (error).cycle;
      if (cycle) showCycle(cycle);
      else if (op.op === "move") store.set({ view: { ...state.view } });
      return false;
    }
  }

  /**
   * Send a change of the model; where somebody else has changed it since, the reader says what becomes of it.
   * @param {(id: string, revision: number | null) => Promise<View>} send
   * @returns {Promise<View | null>}
   */
  function change(send) {
    const id = state.view?.id ?? "";
    waiting += 1;
    const mine = line.then(async () => {
      const seen = state.view?.id === id ? state.view.revision ?? null : null;
      try {
        return await send(id, seen);
      } catch (error) {
        if (/** @type {any} */ (error).status !== 409) throw error;
        const choice = await changedElsewhere();
        if (choice === "mine") return send(id, null);
        await reload(id);
        return null;
      }
    }).finally(() => { waiting -= 1; });
    line = mine.catch(() => {});
    return mine;
  }

  /** Show the model as the server has it. */
  async function reload(id = state.view?.id) {
    try {
      if (id) await show(await api.view(id));
    } catch (error) {
      complain(error);
    }
  }

  /** Nothing is open any more. */
  function leave() {
    store.set({ view: null, findings: {}, interventions: {}, marginals: {}, prior: {}, scenarios: [], selected: [], camera: null, origin: null });
  }

  /** @param {string[]} cycle */
  function showCycle(cycle) {
    const ring = cycle[0] === cycle[cycle.length - 1] ? cycle : [...cycle, cycle[0]];
    store.set({ marks: { label: `This would be a cycle: ${ring.join(" → ")}`, nodes: Object.fromEntries(cycle.map((name) => [name, "cycle"])),
      edges: ring.slice(1).map((to, place) => edgeKey(ring[place], to)) } });
  }

  /** @param {string} from @param {string} to */
  function renamed(from, to) {
    const swap = (/** @type {Record<string, any>} */ record) =>
      Object.fromEntries(Object.entries(record).map(([name, value]) => [name === from ? to : name, value]));
    return { findings: swap(state.findings), interventions: swap(state.interventions),
      selected: state.selected.map((name) => (name === from ? to : name)), focus: state.focus === from ? to : state.focus };
  }

  /** @param {Step[]} source @param {Step[]} target @param {"undo" | "redo"} way */
  async function travel(source, target, way) {
    const step = source.at(-1) ?? (state.view?.[way] ? /** @type {Step} */ ({ kind: "model" }) : null);
    if (!step || !state.view) return;
    try {
      if (step.kind === "evidence") {
        source.pop();
        target.push(step);
        store.set(way === "undo" ? step.before : step.after);
        count();
        await refresh();
      } else {
        const view = await change((id, revision) => api[way](id, revision));
        if (!view) return;
        source.pop();
        target.push(step);
        await show(view);
      }
    } catch (error) {
      complain(error);
    }
  }

  /**
   * Colour nodes by how uncertain they are, or by what they tell about a target.
   * @param {"entropy" | "information" | null} measure
   * @param {string} [target]
   */
  async function shade(measure, target) {
    const mine = shadeAsked = measure && state.view ? { measure, target } : null;
    if (!mine || !measure || !state.view) return store.set({ shading: null });
    try {
      const answer = await api.shading(state.view.id, { measure, target, ...question() });
      if (shadeAsked !== mine) return; // a later choice is what the user wants to see
      const most = Math.max(1e-9, .../** @type {number[]} */ (Object.values(answer.values)));
      const values = Object.fromEntries(Object.entries(answer.values).map(([name, bits]) => [name, Math.max(0, Number(bits)) / most]));
      store.set({ shading: { measure, target, values } });
    } catch (error) {
      if (shadeAsked !== mine) return;
      store.set({ shading: null });
      complain(error);
    } finally {
      if (shadeAsked === mine) shadeAsked = null;
    }
  }

  /** Keep the findings of now, once they are answered, under a name. @param {string} name */
  async function keepScenario(name) {
    await current;
    const kept = { name, ...evidence(), marginals: state.marginals, logEvidence: state.logEvidence };
    store.set({ scenarios: [...state.scenarios.filter((other) => other.name !== name), kept] });
  }

  return {
    refresh, observe, intervene, toggleState, retract, show, open, upload, edit, shade, keepScenario, complain, question, reload, leave,
    /** Whether a change is under way. */
    changing: () => waiting > 0,
    clear: () => changeEvidence({ findings: {}, interventions: {} }),
    /** @param {Evidence} kept */
    restore: (kept) => changeEvidence({ findings: kept.findings, interventions: kept.interventions }),
    undo: () => travel(past, future, "undo"),
    redo: () => travel(future, past, "redo"),
  };
}

/** @returns {Promise<"mine" | "reload" | null>} */
function changedElsewhere() {
  return dialog("Changed elsewhere", (close) => h("div", { class: "mk-form" },
    h("p", null, "Somebody else, or another window, has changed this model since it was drawn here, so your change was not made."),
    h("div", { class: "mk-row" }, button("Reload", () => close("reload"), { class: "mk-primary", label: "Reload: see theirs, leave out mine" }),
      button("Keep mine", () => close("mine"), { label: "Keep mine: make my change to the model as it is now" }))));
}

/** @typedef {ReturnType<typeof createActions>} Actions */
