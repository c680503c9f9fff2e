// The panels beside the graph, in the order of their tabs. Each has `{id, title, mount(element, context)}` with
// context = {store, api, dom, actions, graph}; `mount` is called once, when the tab is first shown.
import { findingsPanel } from "./panel_findings.js";
import { askPanel } from "./panel_ask.js";
import { editPanel } from "./panel_edit.js";
import { learnPanel } from "./panel_learn.js";
import { causalPanel } from "./panel_causal.js";
import { familiesPanel } from "./panel_families.js";

export const PANELS = [findingsPanel, askPanel, editPanel, learnPanel, causalPanel, familiesPanel];
