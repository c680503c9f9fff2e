// The bar under the drawing, and the notice of what is highlighted.
import { button, fill, h, icon, select } from "./dom.js";
import { zoomed } from "./layout_view.js";

/** @param {import("./graph_gestures.js").Surface} surface */
export function mountTools(surface) {
  const { element, store, actions } = surface;
  const { state } = store;
  const notice = h("div", { class: "mk-notice", hidden: true });
  const boxTool = button(null, () => boxTool.setAttribute("aria-pressed", String(boxTool.getAttribute("aria-pressed") !== "true")),
    { icon: "box", label: "Select with a box (or hold Shift)", "aria-pressed": "false" });
  const means = h("div", { class: "mk-segments", role: "group", "aria-label": "A click on a state means" });
  const shade = select([["", "no shading"], ["entropy", "shade by uncertainty"], ["information", "shade by information"]], "", (measure) => {
    const target = state.selected[0] ?? state.view?.nodes[0]?.name;
    actions.shade(/** @type {any} */ (measure || null), measure === "information" ? target : undefined);
  }, { "aria-label": "Shading of nodes" });
  const bar = h("div", { class: "mk-tools", role: "toolbar", "aria-label": "Drawing" },
    h("div", { class: "mk-segments" },
      button(null, () => surface.move(zoomed(surface.camera(), 1.25, { x: 0, y: 0 }), true), { icon: "plus", label: "Zoom in (+)" }),
      button(null, () => surface.move(zoomed(surface.camera(), 0.8, { x: 0, y: 0 }), true), { icon: "minus", label: "Zoom out (−)" }),
      button(null, () => surface.fit(), { icon: "fit", label: "Show everything (f)" }),
      state.readOnly ? null : button(null, tidy, { icon: "tidy", label: "Tidy up: lay all nodes out anew" }), boxTool),
    means, shade);
  async function tidy() {
    if (await actions.edit({ op: "tidy" })) surface.fit();
  }
  const draw = () => {
    fill(means, ...[["observe", "eye", "Observe"], ["do", "hammer", "do( )"]].map(([key, drawn, text]) =>
      h("button", { type: "button", class: "mk-button", "aria-pressed": String(state.clickMeans === key), "aria-label": text,
        title: key === "do" ? "Clicks set a node from outside and cut its incoming edges" : "Clicks say what was seen",
        onclick: () => store.set({ clickMeans: key === "do" ? "do" : "observe" }) }, icon(drawn), h("span", null, text))));
    shade.value = state.shading?.measure ?? "";
  };
  draw();
  element.append(bar, notice);

  function drawNotice() {
    const words = state.marks?.label ?? (state.shading?.measure === "information" ? `Shaded by what each node tells about ${state.shading.target}` : "");
    notice.hidden = !words;
    if (words) fill(notice, h("span", null, words), button(null, () => store.set({ marks: null, shading: state.marks ? state.shading : null }), { icon: "close", label: "Stop highlighting" }));
  }

  store.subscribe((_, changed) => {
    if (changed.has("clickMeans") || changed.has("shading")) draw();
    if (changed.has("marks") || changed.has("shading")) drawNotice();
  });
  return { boxing: () => boxTool.getAttribute("aria-pressed") === "true" };
}
