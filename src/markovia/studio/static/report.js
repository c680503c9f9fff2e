// A report: the network and its findings, live where the page can compute, and the table of beliefs kept up to date.
import * as dom from "./dom.js";
import { createStore, findingText } from "./store.js";
import { createActions } from "./session.js";
import { mountGraph } from "./graph.js";
import { frameOf } from "./layout_view.js";
import { findingsPanel } from "./panel_findings.js";
import { localApi } from "./local_api.js";
import { fileName, pngPicture, svgPicture } from "./export.js";

const { button, h } = dom;

/** Bring the page to life from the content that it carries. */
export async function begin() {
  const element = document.getElementById("mk-content");
  const content = JSON.parse(element?.textContent ?? "null");
  const api = localApi(content);
  const store = createStore({ readOnly: true });
  const actions = createActions(store, api);
  const stage = /** @type {HTMLElement} */ (document.getElementById("mk-stage"));
  const side = /** @type {HTMLElement} */ (document.getElementById("mk-side"));
  /** @type {any} */
  const context = { store, api, dom, actions, graph: null };
  /** @type {HTMLElement} */ (document.getElementById("mk-live")).hidden = false;
  context.graph = mountGraph(stage, context);
  findingsPanel.mount(side, context);
  tools(context, content);
  keepTable(store);
  await actions.show(content.view, { findings: content.given, interventions: content.do, prior: content.prior });
  addEventListener("beforeprint", () => preparePaper(stage, content.view));
  addEventListener("afterprint", () => document.getElementById("mk-paper")?.replaceChildren());
  document.body.dataset.ready = "true";
}

/**
 * Paper has another size, and no script runs once it is laid out: a copy of the drawing takes whatever room there is.
 * @param {HTMLElement} stage
 * @param {import("./store.js").View} view
 */
function preparePaper(stage, view) {
  for (const folded of document.querySelectorAll("details")) folded.open = true;
  const world = /** @type {SVGGElement} */ (stage.querySelector(".mk-world"));
  const copy = /** @type {Element} */ (world.cloneNode(true));
  copy.removeAttribute("transform");
  const drawn = new Set([...copy.querySelectorAll(".mk-node")].map((node) => node.getAttribute("data-name")));
  const frame = frameOf(view.nodes.filter((node) => drawn.has(node.name)));
  const paper = document.getElementById("mk-paper");
  if (paper && frame) dom.fill(paper, dom.svg("svg", { viewBox: [frame.left - 8, frame.top - 8, frame.right - frame.left + 16, frame.bottom - frame.top + 16].join(" "), role: "img", "aria-label": "The network" }, copy));
}

/** @param {any} context @param {any} content */
function tools(context, content) {
  const { api, actions } = context;
  const save = (/** @type {string} */ suffix, /** @type {(context: any) => Promise<Blob>} */ draw) =>
    button(suffix.toUpperCase(), () => draw(context).then((blob) => dom.download(fileName(content.view.name, suffix), blob), actions.complain),
      { icon: "save", label: `Save the picture as ${suffix.toUpperCase()}` });
  const explain = button("Most probable explanation", async () => {
    try {
      const { best: [{ states, p }] } = await api.map("", actions.question());
      dom.dialog("Most probable explanation", () => h("div", { class: "mk-form" },
        h("p", null, `All nodes together, with probability ${dom.percent(p)} given the findings:`),
        dom.table(["node", "state"], Object.entries(states), "Most probable explanation")));
    } catch (error) {
      actions.complain(error);
    }
  });
  document.getElementById("mk-report-tools")?.append(
    button("As asked", () => actions.restore({ findings: content.given, interventions: content.do }),
      { icon: "undo", label: "Back to the findings of this report" }),
    content.tables ? explain : "",
    save("svg", svgPicture), save("png", pngPicture),
    button("Print", () => window.print()),
    button(null, () => {
      const { dataset } = document.body;
      dataset.theme = dataset.theme === "dark" || (!dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) ? "light" : "dark";
    }, { icon: "moon", label: "Light or dark" }));
}

/** Write the beliefs of now into the table that came with the page. @param {import("./store.js").Store} store */
function keepTable(store) {
  const rows = [...document.querySelectorAll("#mk-beliefs tr[data-node]")].map((row) => {
    const { node = "", state = "" } = /** @type {HTMLElement} */ (row).dataset;
    return { row, node, state: Number(state), cell: row.querySelector(".mk-now") };
  });
  const asked = document.getElementById("mk-asked");
  store.subscribe(({ marginals, findings, interventions }, changed) => {
    if (!changed.has("marginals") && !changed.has("findings") && !changed.has("interventions")) return;
    for (const { row, node, state, cell } of rows) {
      const p = marginals[node]?.p?.[state];
      if (cell && p !== undefined) dom.fill(cell, dom.bar(p));
      row.classList.toggle("mk-is-seen", node in findings);
      row.classList.toggle("mk-is-done", node in interventions);
    }
    const words = [...Object.entries(findings).map(([name, finding]) => `${name} ${findingText(finding)}`),
      ...Object.entries(interventions).map(([name, value]) => `do(${name} = ${value})`)];
    if (asked) asked.textContent = words.length ? words.join(", ") : "nothing observed";
  });
}
