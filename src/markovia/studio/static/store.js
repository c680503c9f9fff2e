// What the page knows, in one object; whoever subscribed hears which keys changed.

/**
 * @typedef {{name: string, states: string[] | null, kind: string, x: number, y: number, width: number, height: number,
 *   note?: string | null}} ViewNode
 * @typedef {{from: string, to: string, kind: string}} ViewEdge
 * @typedef {{id: string, name: string, kind: string, nodes: ViewNode[], edges: ViewEdge[], notes?: any, changed: boolean,
 *   undo: boolean, redo: boolean, file?: string | null, cost?: {estimate: number, exact: boolean} | null, revision?: number}} View
 * @typedef {{state?: string, not?: string[], weights?: Record<string, number>, value?: number,
 *   interval?: [number | null, number | null]}} Finding
 * @typedef {{p?: number[], mean?: number, sd?: number, quantiles?: Record<string, number>, curve?: [number, number][]}} Marginal
 * @typedef {{engine: string, exact: boolean, converged?: boolean | null, error?: number | null, seconds?: number | null,
 *   log_evidence?: number | null, note?: string | null}} Info
 * @typedef {{name: string, findings: Record<string, Finding>, interventions: Record<string, string | number>,
 *   marginals: Record<string, Marginal>, logEvidence: number | null}} Scenario
 * @typedef {{label: string, nodes: Record<string, string>, edges: string[]}} Marks
 * @typedef {{
 *   view: View | null, origin: Record<string, string> | null,
 *   findings: Record<string, Finding>, interventions: Record<string, string | number>,
 *   marginals: Record<string, Marginal>, prior: Record<string, Marginal>, info: Info | null, logEvidence: number | null,
 *   scenarios: Scenario[], reference: string | null,
 *   selected: string[], focus: string | null,
 *   shading: {measure: "entropy" | "information", target?: string, values: Record<string, number>} | null,
 *   marks: Marks | null, edgeWeights: Record<string, number>, overlays: {from: string, to: string, kind: string}[],
 *   onConnect: ((from: string, to: string) => void) | null,
 *   clickMeans: "observe" | "do", busy: boolean, past: number, future: number, panel: string, camera: import("./layout_view.js").Camera | null,
 *   models: import("./open_models.js").Summary[], elsewhere: "" | "changed" | "closed", readOnly: boolean}} State
 * @typedef {{state: State, set: (patch: Partial<State>) => void,
 *   subscribe: (listener: (state: State, changed: Set<string>) => void) => () => void}} Store
 */

/**
 * @param {Partial<State>} [initial]
 * @returns {Store}
 */
export function createStore(initial) {
  /** @type {Set<(state: State, changed: Set<string>) => void>} */
  const listeners = new Set();
  /** @type {State} */
  const state = {
    view: null, origin: null, findings: {}, interventions: {}, marginals: {}, prior: {}, info: null, logEvidence: null,
    scenarios: [], reference: null, selected: [], focus: null, shading: null, marks: null, edgeWeights: {}, overlays: [],
    onConnect: null, clickMeans: "observe", busy: false, past: 0, future: 0, panel: "findings", camera: null, models: [], elsewhere: "",
    readOnly: false, ...initial,
  };
  return {
    state,
    set(patch) {
      const changed = new Set(Object.keys(patch).filter((key) => /** @type {any} */ (state)[key] !== /** @type {any} */ (patch)[key]));
      if (!changed.size) return;
      Object.assign(state, patch);
      for (const listener of [...listeners]) listener(state, changed);
    },
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
}

/** The key of an edge in `marks.edges` and `edgeWeights`. @param {string} from @param {string} to */
export function edgeKey(from, to) {
  return JSON.stringify([from, to]);
}

/** A node of the open model by its name. @param {State} state @param {string | null | undefined} name */
export function nodeNamed(state, name) {
  return state.view?.nodes.find((node) => node.name === name) ?? null;
}

/** A finding in words. @param {Finding} finding */
export function findingText(finding) {
  if (finding.state !== undefined) return `= ${finding.state}`;
  if (finding.value !== undefined) return `= ${finding.value}`;
  if (finding.not) return `≠ ${finding.not.join(", ")}`;
  if (finding.interval) return `in [${finding.interval[0] ?? "−∞"}, ${finding.interval[1] ?? "∞"}]`;
  if (finding.weights) return "likely " + Object.entries(finding.weights).map(([state, w]) => `${state} ${Number(w.toFixed(2))}`).join(" : ");
  return "";
}
