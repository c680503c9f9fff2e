// Questions to the graph alone: independence with its reasons, and the Markov blanket.
import { button, field, h, namePicker, select } from "./dom.js";
import { edgeKey } from "./store.js";
import { askButton, pathEdges } from "./ask_probability.js";

/** @typedef {import("./panel_ask.js").AskQuestion} AskQuestion */

/** @type {AskQuestion} */
export const independenceQuestion = {
  title: "Are they independent?",
  hint: "d-separation",
  build(form, answer, { store, api }) {
    const names = (store.state.view?.nodes ?? []).filter((node) => node.kind !== "factor").map((node) => node.name);
    const [first, second] = store.state.selected;
    const a = namePicker(names, first ? [first] : [], () => {}, "the first side");
    const b = namePicker(names, second ? [second] : [], () => {}, "the second side");
    const given = namePicker(names, Object.keys(store.state.findings), () => {}, "what is given");
    const run = () => answer(async () => {
      if (!a.value().length || !b.value().length) throw new Error("name at least one variable on each side");
      const found = await api.separation(store.state.view?.id, { a: a.value(), b: b.value(), given: given.value() });
      const show = (/** @type {string[][]} */ trails) => store.set({ marks: {
        label: found.independent ? "Independent: no open trail" : `Open trails between ${a.value().join(", ")} and ${b.value().join(", ")}`,
        nodes: Object.fromEntries([...trails.flat().map((name) => [name, "trail"]), ...given.value().map((name) => [name, "given"]),
          ...a.value().map((name) => [name, "end"]), ...b.value().map((name) => [name, "end"])]),
        edges: trails.flatMap(pathEdges) } });
      show(found.trails);
      return [h("p", { class: "mk-verdict" }, found.independent ? "Independent" : "Dependent"),
        h("p", { class: "mk-hint" }, found.why[0]),
        h("ul", { class: "mk-trails" }, found.why.slice(1).map((/** @type {string} */ sentence, /** @type {number} */ place) => h("li", { class: "mk-trail" },
          h("span", null, sentence.replaceAll("<->", "↔").replaceAll("<-", "←").replaceAll("->", "→")),
          found.trails[place] ? button("Show", () => show([found.trails[place]]), { class: "mk-quiet", label: `Show the trail ${found.trails[place].join(" – ")}` }) : null)))];
    });
    form.append(field("Is", a), field("independent of", b), field("given (the findings, unless you change it)", given), askButton(run));
    return { run };
  },
};

/** @type {AskQuestion} */
export const blanketQuestion = {
  title: "Markov blanket",
  hint: "what shields a node",
  build(form, answer, { store, api }) {
    const names = (store.state.view?.nodes ?? []).filter((node) => node.kind !== "factor").map((node) => node.name);
    let name = store.state.selected[0] ?? names[0] ?? "";
    const box = select(names, name, (next) => { name = next; });
    const run = () => answer(async () => {
      const found = await api.blanket(store.state.view?.id, { name });
      /** @type {[string, string[]][]} */
      const groups = [["Parents", found.parents], ["Children", found.children], ["Other parents of its children", found.spouses], ["Neighbours", found.neighbours ?? []]];
      const roles = Object.fromEntries([...groups.flatMap(([title, members]) => members.map((member) => [member, title.toLowerCase()])), [name, "end"]]);
      const inside = new Set(Object.keys(roles));
      const edges = (store.state.view?.edges ?? []).filter((edge) => inside.has(edge.from) && inside.has(edge.to)
        && (edge.from === name || edge.to === name || found.children.includes(edge.to))).map((edge) => edgeKey(edge.from, edge.to));
      store.set({ marks: { label: `Markov blanket of ${name}`, nodes: roles, edges } });
      return [h("p", { class: "mk-hint" }, `Once these are known, nothing else in the model tells anything about ${name}.`),
        groups.filter(([, members]) => members.length).map(([title, members]) => h("p", null, h("strong", null, `${title}: `), members.join(", "))),
        inside.size === 1 ? h("p", null, `${name} stands alone.`) : null];
    });
    form.append(field("Node", box), askButton(run, "Show"));
    return { run, refresh: () => {
      const chosen = store.state.selected[0];
      if (chosen && names.includes(chosen)) box.value = name = chosen;
    } };
  },
};
