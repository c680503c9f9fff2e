// Questions to the model, each in its own fold; answers follow the findings while their fold is open.
import { fill, h, icon } from "./dom.js";
import { decideQuestion } from "./ask_decide.js";
import { conflictQuestion, explanationQuestion, tableQuestion } from "./ask_probability.js";
import { blanketQuestion, independenceQuestion } from "./ask_structure.js";
import { batchQuestion, nextTestQuestion, sampleQuestion, sensitivityQuestion } from "./ask_value.js";

/**
 * @typedef {import("./main.js").Context} Context
 * @typedef {{run?: () => Promise<any>, live?: boolean, refresh?: () => void}} Asked
 * @typedef {{title: string, hint: string, build: (form: HTMLElement, answer: (make: () => Promise<any>) => Promise<void>, context: Context) => Asked}} AskQuestion
 */

/** @type {AskQuestion[]} */
const QUESTIONS = [tableQuestion, explanationQuestion, independenceQuestion, blanketQuestion, nextTestQuestion, decideQuestion, sensitivityQuestion, conflictQuestion, batchQuestion, sampleQuestion];

export const askPanel = {
  id: "ask",
  title: "Ask",
  /** @param {HTMLElement} element @param {Context} context */
  mount(element, context) {
    const list = h("div", { class: "mk-section" }, h("div", { class: "mk-section-head" }, h("h2", null, "What do you want to know?")),
      h("div", null, QUESTIONS.map((question, place) => fold(question, context, place))));
    element.append(list);
  },
};

/**
 * @param {AskQuestion} question
 * @param {Context} context
 * @param {number} place
 */
function fold(question, context, place) {
  const { store } = context;
  const form = h("div", { class: "mk-form" });
  const result = h("div", { class: "mk-result", "aria-live": "polite" });
  /** @type {Asked | null} */
  let asked = null;
  let shown = "";
  let answered = false;
  let turn = 0;
  let timer = 0;
  const box = h("details", { class: "mk-fold", name: "mk-ask", ontoggle: () => {
    if (!box.open) return;
    store.set({ marks: null });
    show();
  } },
    h("summary", null, icon("chevron"), h("span", null, question.title), h("small", null, question.hint)),
    h("div", { class: "mk-fold-body" }, form, result));
  box.dataset.question = String(place);

  /** @param {() => Promise<any>} make */
  async function answer(make) {
    const mine = ++turn;
    result.classList.add("mk-waiting");
    try {
      const content = await make();
      if (mine !== turn) return;
      answered = true;
      fill(result, content);
    } catch (error) {
      if (mine === turn) fill(result, h("p", { class: "mk-problem", role: "alert" }, error instanceof Error ? error.message : String(error)));
    } finally {
      if (mine === turn) result.classList.remove("mk-waiting");
    }
  }

  function show() {
    const { view } = store.state;
    const key = view ? JSON.stringify([view.id, view.nodes.map((node) => [node.name, node.states])]) : "";
    if (key === shown) return asked?.refresh?.();
    shown = key;
    answered = false;
    turn += 1;
    fill(form);
    fill(result);
    asked = view ? question.build(form, answer, context) : null;
  }

  store.subscribe((_, changed) => {
    if (!box.open) return;
    if (changed.has("view")) show();
    else if (changed.has("selected")) asked?.refresh?.();
    if (answered && asked?.live && asked.run && (changed.has("findings") || changed.has("interventions") || changed.has("view"))) {
      clearTimeout(timer);
      timer = window.setTimeout(() => asked?.run?.(), 120);
    }
  });
  return box;
}
