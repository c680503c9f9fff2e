// One method an endpoint; each resolves with the answer and rejects with an Error that holds the server's sentence.

/**
 * @typedef {import("./store.js").View} View
 * @typedef {import("./store.js").Finding} Finding
 * @typedef {{given?: Record<string, Finding>, do?: Record<string, string | number>, [more: string]: any}} Question
 */

/** An error with the kind the server gave it. */
export class ApiError extends Error {
  /** @param {string} message @param {string} kind @param {number} status @param {string[] | null} [cycle] */
  constructor(message, kind, status, cycle = null) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.cycle = cycle;
  }
}

/** @param {string} [base] */
export function createApi(base = "") {
  /**
   * @param {string} method
   * @param {string} path
   * @param {any} [body]
   * @param {boolean} [raw]
   */
  async function call(method, path, body, raw = false) {
    /** @type {RequestInit} */
    const request = { method, credentials: "same-origin" };
    if (method !== "GET") {
      request.headers = { "Content-Type": raw ? "application/octet-stream" : "application/json" };
      request.body = raw ? body : JSON.stringify(body ?? {});
    }
    let response;
    try {
      response = await fetch(base + path, request);
    } catch {
      throw new ApiError("the studio's server does not answer; is the command still running?", "Offline", 0);
    }
    if (response.ok) return response;
    const said = await response.json().catch(() => ({}));
    throw new ApiError(said.error ?? `the server answered ${response.status}`, said.kind ?? "Error", response.status, said.cycle ?? null);
  }
  const get = async (/** @type {string} */ path) => (await call("GET", path)).json();
  const post = async (/** @type {string} */ path, /** @type {any} */ body) => (await call("POST", path, body)).json();
  const remove = async (/** @type {string} */ path) => (await call("DELETE", path)).json();
  const model = (/** @type {string} */ id, tail = "") => `/api/models/${encodeURIComponent(id)}${tail}`;
  const seen = (/** @type {number | null} */ revision) => (revision === null ? "" : `?revision=${revision}`);
  const on = (/** @type {string} */ verb) => (/** @type {string} */ id, /** @type {Question} */ question) => post(model(id, "/" + verb), question);

  return {
    get, post, remove, call,
    start: () => get("/api/start"),
    models: () => get("/api/models"),
    /** @param {Record<string, string>} source @returns {Promise<View>} */
    open: (source) => post("/api/models", source),
    /** @param {File} file @returns {Promise<View>} */
    upload: async (file) => (await call("POST", `/api/models/upload?name=${encodeURIComponent(file.name)}`, file, true)).json(),
    /** @param {string} id @returns {Promise<View>} */
    view: (id) => get(model(id)),
    /** @param {string} id */
    close: (id) => remove(model(id)),
    /** @param {string} id @param {string} format */
    file: async (id, format) => (await call("GET", model(id, `/file?format=${encodeURIComponent(format)}`))).blob(),
    /** @param {string} id @param {{file: string, format?: string}} body */
    save: (id, body) => post(model(id, "/save"), body),
    /** A change says which revision it was made on; null makes it on whatever there is. @param {string} id @param {number | null} [revision] @returns {Promise<View>} */
    undo: (id, revision = null) => post(model(id, `/undo${seen(revision)}`), {}),
    /** @param {string} id @param {number | null} [revision] @returns {Promise<View>} */
    redo: (id, revision = null) => post(model(id, `/redo${seen(revision)}`), {}),
    /** @param {string} id @param {Record<string, any>} op @param {number | null} [revision] @returns {Promise<View>} */
    edit: (id, op, revision = null) => post(model(id, `/edit${seen(revision)}`), op),
    /** @param {string} id @param {string} name */
    node: (id, name) => get(model(id, `/nodes/${encodeURIComponent(name)}`)),
    marginals: on("marginals"),
    query: on("query"),
    map: on("map"),
    separation: on("separation"),
    blanket: on("blanket"),
    nextTest: on("next_test"),
    sensitivity: on("sensitivity"),
    shading: on("shading"),
    conflict: on("conflict"),
    sample: on("sample"),
    decide: on("decide"),
    batch: on("batch"),
    compare: on("compare"),
    /** @param {string} id @param {Question} body */
    report: async (id, body) => (await call("POST", model(id, "/report"), body)).blob(),
    /** @param {File} file */
    data: async (file) => (await call("POST", `/api/data?name=${encodeURIComponent(file.name)}`, file, true)).json(),
    /** @param {Record<string, any>} body */
    startJob: (body) => post("/api/jobs", body),
    /** @param {string} id */
    job: (id) => get(`/api/jobs/${encodeURIComponent(id)}`),
    /** @param {string} id */
    cancelJob: (id) => remove(`/api/jobs/${encodeURIComponent(id)}`),
    /** @param {string} id */
    jobFile: async (id) => (await call("GET", `/api/jobs/${encodeURIComponent(id)}/file`)).blob(),
    /**
     * Follow a job until it ends; `progress` hears every message.
     * @param {string} id
     * @param {(job: any) => void} progress
     * @returns {Promise<any>}
     */
    follow: (id, progress) => new Promise((resolve, reject) => {
      const events = new EventSource(`${base}/api/jobs/${encodeURIComponent(id)}/events`);
      events.addEventListener("job", (event) => {
        const job = JSON.parse(/** @type {MessageEvent} */ (event).data);
        progress(job);
        if (job.state === "running") return;
        events.close();
        resolve(job);
      });
      events.onerror = () => {
        if (events.readyState === EventSource.CLOSED) reject(new ApiError("the job's progress was lost", "Offline", 0));
      };
    }),
  };
}

/** @typedef {ReturnType<typeof createApi>} Api */
