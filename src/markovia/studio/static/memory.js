// What is remembered: a link in the address that restores the session, and in the browser a draft of every model that was shown.

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {import("./store.js").State} State
 */

/** @param {any} value */
function encode(value) {
  const bytes = new TextEncoder().encode(JSON.stringify(value));
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}

/** @param {string} text */
function decode(text) {
  try {
    const bytes = Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (letter) => letter.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch {
    return null;
  }
}

/** @param {State} state */
function session(state) {
  const { view, origin, findings, interventions, camera, panel } = state;
  const kept = state.scenarios.map(({ name, findings: f, interventions: d }) => ({ name, findings: f, interventions: d }));
  return { model: view?.id, origin, findings, do: interventions, camera, panel, scenarios: kept };
}

/** @param {Context} context */
export function sessionLink({ store }) {
  return `${location.origin}${location.pathname}#${encode(session(store.state))}`;
}

/** Sessions of models that were shown, the latest last. @returns {any[]} */
function drafts() {
  try {
    const kept = JSON.parse(localStorage.getItem(DRAFTS) ?? "[]");
    return Array.isArray(kept) ? kept : [];
  } catch {
    return [];
  }
}

const DRAFTS = "markovia:drafts";
/** Sessions that are kept. */
const MOST = 20;

/** @param {any} now */
function keepDraft(now) {
  try {
    localStorage.setItem(DRAFTS, JSON.stringify([...drafts().filter((each) => each.model !== now.model), now].slice(-MOST)));
  } catch { /* a full or forbidden storage only costs the draft */ }
}

/** Keep address and drafts up to date. @param {Context} context */
export function keepMemory({ store }) {
  let timer = 0;
  /** @type {any} */
  let waiting = null; // the session that is not written yet
  const write = () => {
    if (waiting) keepDraft(waiting);
    waiting = null;
  };
  store.subscribe((state, changed) => {
    if (!["view", "findings", "interventions", "camera", "panel", "scenarios"].some((key) => changed.has(key))) return;
    const now = state.view ? session(state) : null;
    if (waiting && waiting.model !== now?.model) write(); // another model is shown: what was done in the last one stays
    waiting = now;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      history.replaceState(null, "", waiting ? `#${encode(waiting)}` : location.pathname);
      write();
    }, 300);
  });
}

/**
 * Bring back the session of the address, else the latest whose model is still open, else the model the command named.
 * @param {Context} context
 * @param {{open?: string[]}} start
 */
export async function recall(context, start) {
  const open = start.open ?? [];
  const linked = decode(location.hash.slice(1));
  const wanted = linked ?? drafts().findLast((each) => open.includes(each.model)) ?? (open.length ? { model: open[open.length - 1] } : null);
  if (wanted && typeof wanted === "object") await bringBack(context, wanted, open);
}

/** Show another open model, with the findings and the view that it had. @param {Context} context @param {string} id */
export async function switchTo(context, id) {
  if (context.store.state.view?.id === id) return;
  await bringBack(context, drafts().find((each) => each.model === id) ?? { model: id, panel: context.store.state.panel }, [id]);
}

/**
 * @param {Context} context
 * @param {any} wanted  a session
 * @param {string[]} open  ids of open models
 */
async function bringBack(context, wanted, open) {
  const { api, actions, store } = context;
  const more = { findings: wanted.findings ?? {}, interventions: wanted.do ?? {}, camera: wanted.camera ?? null, panel: wanted.panel ?? "findings",
    origin: wanted.origin ?? null };
  try {
    if (open.includes(wanted.model)) await actions.show(await api.view(wanted.model), more);
    else if (wanted.origin) await actions.open(wanted.origin, more);
  } catch (error) {
    actions.complain(error);
    return;
  }
  const id = store.state.view?.id;
  for (const kept of wanted.scenarios ?? []) {
    try {
      const answer = await api.marginals(id, { given: kept.findings, do: kept.interventions });
      store.set({ scenarios: [...store.state.scenarios, { ...kept, marginals: answer.marginals, logEvidence: answer.log_evidence ?? null }] });
    } catch (error) {
      actions.complain(error);
    }
  }
}
