"""The page's own modules on decisions and utilities, run by node on a stand-in for a document: shapes, tables, edges."""

# ruff: noqa: E501 (lines of JavaScript)

import json
import shutil
import subprocess
from pathlib import Path

import pytest

import markovia as mk

STATIC = Path(mk.__file__).parent / "studio" / "static"
NODE = shutil.which("node")
pytestmark = pytest.mark.skipif(
    NODE is None, reason="node, which runs the page's modules here, is not installed"
)
DOCUMENT = """
class Node {
  constructor(tag, text = "") {
    Object.assign(this, { tag, text, attributes: {}, children: [], listeners: {}, style: {}, dataset: {}, value: "" });
    this.classList = { toggle() {}, add() {}, remove() {} };
  }
  append(...parts) { this.children.push(...parts.map((part) => (part instanceof Node ? part : new Node("#", String(part))))); }
  replaceChildren(...parts) { this.children = []; this.append(...parts); }
  setAttribute(name, value) { this.attributes[name] = String(value); }
  getAttribute(name) { return this.attributes[name] ?? null; }
  addEventListener(name, act) { this.listeners[name] = act; }
  getContext() { return null; }
  get firstChild() { return this.children[0]; }
  get textContent() { return this.text + this.children.map((child) => child.textContent).join(""); }
  set textContent(text) { this.children = []; this.text = text; }
  all(tag) { return this.children.flatMap((child) => [...(child.tag === tag ? [child] : []), ...child.all(tag)]); }
}
class HTMLSelectElement extends Node {}
Object.assign(globalThis, { Node, HTMLSelectElement, document: {
  createElement: (tag) => (tag === "select" ? new HTMLSelectElement(tag) : new Node(tag)),
  createElementNS: (_, tag) => new Node(tag), activeElement: null } });
"""


def in_node(body):
    """Run lines of a module of the page's, which put their answer in `answer`."""
    at = json.dumps(STATIC.as_uri())
    program = f"{DOCUMENT}const load = (file) => import({at} + '/' + file);\nlet answer;\n{body}\nconsole.log(JSON.stringify(answer));"
    done = subprocess.run(
        [NODE, "--input-type=module", "-e", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_policies_are_tables_with_the_row_of_the_findings():
    found = {
        "value": 22.5,
        "bound": 25.0,
        "gap": 0.0,
        "later": ["result"],
        "rules": [
            {
                "name": "drill",
                "sees": ["test", "result"],
                "left_out": 3,
                "rows": [
                    {
                        "seen": ["yes", "none"],
                        "choice": "no",
                        "probability": 0.41,
                        "tie": False,
                        "current": True,
                    },
                    {
                        "seen": ["yes", "open"],
                        "choice": "yes",
                        "probability": 0.35,
                        "tie": True,
                        "current": False,
                    },
                    {
                        "seen": ["no", "open"],
                        "choice": "yes",
                        "probability": 0,
                        "tie": False,
                        "current": False,
                    },
                ],
            }
        ],
        "info": {"engine": "strong-elimination", "exact": True},
    }
    said = in_node(f"""
const {{ decideQuestion }} = await load("ask_decide.js");
let asked;
const context = {{ store: {{ state: {{ view: {{ id: "m", nodes: [{{ name: "drill", kind: "decision" }}] }} }} }},
  api: {{ decide: async (id, body) => {{ asked = body; return {json.dumps(found)}; }} }}, actions: {{ question: () => ({{ given: {{}}, do: {{}} }}) }} }};
const form = new Node("div"), result = new Node("div");
const question = decideQuestion.build(form, async (make) => result.append(...(await make()).flat(9).filter(Boolean)), context);
await question.run();
const rows = result.all("tr");
answer = {{ asked, text: result.textContent, rows: rows.map((row) => row.children.map((cell) => cell.textContent)),
  marks: rows.map((row) => [row.attributes.class ?? "", row.attributes["aria-current"] ?? ""]) }};
""")
    assert said["asked"] == {"memory": "drawn", "risk": 0, "given": {}, "do": {}}
    assert said["rows"][0] == ["test", "result", "drill", "p"]
    assert said["rows"][1:] == [
        ["yes", "none", "no", "41.0 %"], ["yes", "open", "yes (tie)", "35.0 %"], ["no", "open", "yes", "never"]
    ]  # fmt: skip
    assert [m[0].split() for m in said["marks"][1:]] == [["mk-current"], [], ["mk-never"]]
    assert [m[1] for m in said["marks"][1:]] == ["true", "", ""]
    for words in (
        "Expected utility 22.5", "No other policy is better", "would be worth 25", "known of result", "3 less probable"
    ):  # fmt: skip
        assert words in said["text"]


def test_a_model_without_decisions_says_where_they_are_added():
    said = in_node("""
const { decideQuestion } = await load("ask_decide.js");
const form = new Node("div");
const asked = decideQuestion.build(form, async () => {}, { store: { state: { view: { nodes: [{ name: "a", kind: "states" }] } } } });
answer = [form.textContent, Object.keys(asked)];
""")
    assert "Nothing is decided" in said[0]
    assert said[1] == []


def test_decisions_have_corners_and_utilities_are_diamonds_with_what_they_are_worth():
    said = in_node("""
const { NodeDrawing, FULL } = await load("graph_node.js");
const state = { findings: {}, interventions: {}, marginals: { gain: { mean: 32.5 } }, selected: [], marks: null, shading: null };
const drawn = (node) => {
  const made = new NodeDrawing({ x: 0, y: 0, width: 150, height: 84, ...node });
  made.draw(FULL, 1);
  made.update(state, {});
  const [box] = [...made.group.all("rect"), ...made.group.all("path")].filter((part) => part.attributes.class === "mk-box");
  return { tag: box.tag, rx: box.attributes.rx, d: box.attributes.d, class: made.group.attributes.class, text: made.group.textContent,
    label: made.group.attributes["aria-label"] };
};
answer = [drawn({ name: "gain", kind: "utility", states: null }), drawn({ name: "drill", kind: "decision", states: ["yes", "no"] }),
  drawn({ name: "oil", kind: "states", states: ["dry", "wet"] }), drawn({ name: "cost", kind: "utility", states: null })];
""")
    gain, drill, oil, cost = said
    assert gain["tag"] == "path"
    assert gain["d"] == "M75 0L150 42L75 84L0 42Z"
    assert "32.5" in gain["text"]
    assert "worth 32.5 on average" in gain["label"]
    assert "mk-utility" in gain["class"]
    assert drill["rx"] == "0"
    assert "mk-decision" in drill["class"]
    assert "yes" in drill["text"]
    assert oil["rx"] == "8"
    assert oil["class"].split() == ["mk-node"]
    assert cost["label"] == "cost, a utility"


def test_edges_end_on_the_outline_of_a_diamond():
    tips = in_node("""
const { edgePath } = await load("layout_view.js");
const gain = { x: 0, y: 0, width: 150, height: 84, kind: "utility" };
answer = [[-120, -200], [0, -200], [300, -200], [-300, 10], [200, 60], [-50, 240]].map(([x, y]) =>
  edgePath({ x, y, width: 150, height: 60 }, gain).head.match(/^M(-?[\\d.]+) (-?[\\d.]+)/).slice(1).map(Number));
""")
    for x, y in tips:
        assert abs(x) / 75 + abs(y) / 42 == pytest.approx(1.0, abs=0.06)


def test_amounts_may_be_any_numbers_and_are_not_normalised():
    said = in_node("""
const { tableEditor } = await load("table_editor.js");
const place = new Node("div");
let saved;
tableEditor(place, { states: ["worth"], parents: [{ name: "oil" }], rowLabels: [["dry"], ["wet"]], rows: [[-70], [50]], amounts: true },
  async (rows) => { saved = rows; return true; }, false);
const cells = place.all("input");
cells[0].value = "-80.5";
cells[0].listeners.input();
const buttons = place.all("button");
const status = place.all("p")[0].textContent;
await buttons[0].listeners.click();
cells[1].value = "much";
cells[1].listeners.input();
answer = { saved, status, buttons: buttons.map((each) => each.textContent), label: cells[0].attributes["aria-label"], after: place.all("p")[0].textContent };
""")
    assert said["saved"] == [[-80.5], [50]]
    assert said["status"] == "Every amount is a number."
    assert said["label"] == "What oil = dry is worth"
    assert "Normalise rows" not in said["buttons"]
    assert said["after"].startswith("1 of 2 rows must")
