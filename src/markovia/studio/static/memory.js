// What is remembered: a link in the address that restores the session, and a draft in the browser.

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

/** Keep address and draft up to date. @param {Context} context */
export function keepMemory({ store }) {
  let timer = 0;
  store.subscribe((state, changed) => {
    if (!["view", "findings", "interventions", "camera", "panel", "scenarios"].some((key) => changed.has(key))) return;
    clearTimeout(timer);
    timer = window.setTimeout(() => {
      if (!state.view) return;
      const text = encode(session(state));
      history.replaceState(null, "", `#${text}`);
      try {
        localStorage.setItem("markovia:draft", text);
      } catch { /* a full or forbidden storage only costs the draft */ }
    }, 300);
  });
}

/**
 * Bring back the session of the address, else the draft's if its model is still open, else the model the command named.
 * @param {Context} context
 * @param {{open?: string[]}} start
 */
export async function recall(context, start) {
  const { api, actions, store } = context;
  const open = start.open ?? [];
  const linked = decode(location.hash.slice(1));
  const draft = decode(localStorage.getItem("markovia:draft") ?? "");
  const wanted = linked ?? (draft && open.includes(draft.model) ? draft : open.length ? { model: open[open.length - 1] } : null);
  if (!wanted || typeof wanted !== "object") return;
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
