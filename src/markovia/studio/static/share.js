// Handing on what is on the screen: a link, a report, a picture.
import { button, dialog, download, h, toast } from "./dom.js";
import { fileName, pngPicture, svgPicture } from "./export.js";
import { sessionLink } from "./memory.js";

/** @param {import("./main.js").Context} context */
export function shareDialog(context) {
  const { api, store, actions } = context;
  const { view } = store.state;
  const link = sessionLink(context);
  /** @param {string} suffix @param {() => Promise<Blob>} make @param {(value: any) => void} close */
  const keep = async (suffix, make, close) => {
    try {
      store.set({ busy: true });
      download(fileName(view?.name, suffix), await make());
      close(null);
    } catch (error) {
      actions.complain(error);
    } finally {
      store.set({ busy: false });
    }
  };
  /** @param {string} what @param {string} says @param {...any} buttons */
  const row = (what, says, ...buttons) => h("div", { class: "mk-field" }, h("span", { class: "mk-field-name" }, what),
    h("span", { class: "mk-hint" }, says), h("div", { class: "mk-row" }, ...buttons));
  return dialog("Share", (close) => h("div", { class: "mk-form" },
    view ? row("Report", "One file with the network, these findings and the tables; small models stay interactive in it.",
      button("Download report", () => keep("html", () => api.report(view.id, actions.question()), close), { icon: "save", class: "mk-primary" })) : null,
    view ? row("Picture", "The whole network as it is drawn now.",
      button("SVG", () => keep("svg", () => svgPicture(context), close), { icon: "save", label: "Download as SVG" }),
      button("PNG", () => keep("png", () => pngPicture(context), close), { icon: "save", label: "Download as PNG" })) : null,
    row("Link", "Restores the model, findings and view in a studio on this machine.",
      h("input", { class: "mk-input", value: link, readonly: true, "aria-label": "Link to this session", onfocus: (/** @type {FocusEvent} */ event) =>
        /** @type {HTMLInputElement} */ (event.target).select() }),
      button("Copy", () => navigator.clipboard?.writeText(link).then(() => { toast("Copied"); close(null); },
        () => toast("The browser does not let the page copy; the link is selected when you click it", "error")), { icon: "link" }))));
}
