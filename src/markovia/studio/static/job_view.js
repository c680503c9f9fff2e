// A job on the page: its progress, a button to cancel it, what it has found so far, and how it ended.
import { button, duration, fill, h, toast } from "./dom.js";

/**
 * @typedef {{id: string, kind: string, state: string, progress: number | null, note: string, result: any, warnings: string[],
 *   file: string | null, seconds: number}} Job
 */

/**
 * Start a job and show it in an element; `show` draws its result, also while it grows.
 * @param {import("./main.js").Context} context
 * @param {HTMLElement} element
 * @param {Record<string, any>} body
 * @param {(result: any, job: Job) => any} show
 * @returns {Promise<Job | null>}
 */
export async function runJob({ api, actions }, element, body, show) {
  const meter = h("progress", { class: "mk-job-meter", max: 1, "aria-label": "Progress" });
  const note = h("p", { class: "mk-job-note", role: "status" }, "starting");
  const found = h("div", { class: "mk-job-result" });
  const stop = button("Cancel", () => cancel(), { class: "mk-danger" });
  const head = h("div", { class: "mk-job-head" }, meter, stop);
  fill(element, head, note, found);
  reveal(element, 90);
  /** @type {Job} */
  let job;
  try {
    job = await api.startJob(body);
  } catch (error) {
    fill(element, h("p", { class: "mk-job-failed", role: "alert" }, error instanceof Error ? error.message : String(error)));
    return null;
  }
  async function cancel() {
    stop.disabled = true;
    await api.cancelJob(job.id).catch(actions.complain);
  }
  let drawn = "";
  /** @param {Job} now */
  const draw = (now) => {
    if (now.progress === null) meter.removeAttribute("value");
    else meter.value = now.progress;
    note.textContent = now.note;
    const key = now.state === "running" ? JSON.stringify(now.result) : "";
    if (now.result && key !== drawn && now.state === "running") {
      drawn = key;
      fill(found, show(now.result, now));
    }
  };
  try {
    job = await api.follow(job.id, draw);
  } catch (error) {
    actions.complain(error);
    return null;
  }
  head.remove();
  if (job.state === "done") {
    note.textContent = `done in ${duration(job.seconds)}`;
    fill(found, job.warnings.map((text) => h("p", { class: "mk-job-warning" }, text)), await show(job.result, job));
  } else if (job.state === "cancelled") {
    note.textContent = "cancelled";
    toast("The job was cancelled");
  } else {
    note.remove();
    found.before(h("p", { class: "mk-job-failed", role: "alert" }, job.note));
  }
  reveal(element, 220);
  return job;
}

/**
 * Scroll the panel so that at least so many pixels of an element are seen, or all of it.
 * @param {HTMLElement} element
 * @param {number} least
 */
function reveal(element, least) {
  const panel = element.closest(".mk-panel");
  if (!panel) return;
  const box = element.getBoundingClientRect();
  panel.scrollTop += Math.max(0, box.top + Math.min(least, box.height) - panel.getBoundingClientRect().bottom);
}
