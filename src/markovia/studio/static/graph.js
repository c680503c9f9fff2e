// The network as a drawing: monitors in every node, zoom, pan, drag, box selection, keys. It asks nothing of the server
// itself; what a reader does goes through `actions`, so a report or a notebook mounts it with an api of its own.
import { button, fill, h, icon, iconPath, select, svg } from "./dom.js";
import { edgeKey } from "./store.js";
import { cameraOn, edgePath, frameOf, inside, neighbour, seen, zoomed } from "./layout_view.js";
import { FAR, FULL, NAMED, NodeDrawing } from "./graph_node.js";

/**
 * @typedef {import("./store.js").ViewNode} ViewNode
 * @typedef {import("./layout_view.js").Camera} Camera
 * @typedef {{store: import("./store.js").Store, actions: import("./session.js").Actions}} GraphContext
 */

const MARGIN = 240;

/**
 * @param {HTMLElement} element
 * @param {GraphContext} context
 */
export function mountGraph(element, { store, actions }) {
  const { state } = store;
  const world = svg("g", { class: "mk-world" });
  const farEdges = svg("path", { class: "mk-edges-far" });
  const edgeLayer = svg("g", { class: "mk-edges", "aria-hidden": "true" });
  const nodeLayer = svg("g", { class: "mk-nodes" });
  const lasso = svg("rect", { class: "mk-lasso" });
  const rope = svg("path", { class: "mk-rope" });
  world.append(farEdges, edgeLayer, nodeLayer, lasso, rope);
  const canvas = svg("svg", { class: "mk-canvas", role: "group", "aria-label": "The network" }, world);
  const spoken = h("div", { class: "mk-sr", role: "status", "aria-live": "polite" });
  const tools = toolbar();
  const notice = h("div", { class: "mk-notice", hidden: true });
  element.classList.add("mk-graph");
  element.append(canvas, tools.element, notice, spoken);

  /** @type {Map<string, ViewNode>} */
  let boxes = new Map();
  /** @type {{from: ViewNode, to: ViewNode, key: string, kind: string}[]} */
  let edges = [];
  /** @type {Map<string, NodeDrawing>} */
  const drawings = new Map();
  /** @type {Map<string, SVGGElement>} */
  const edgeElements = new Map();
  /** @type {Camera} */
  let camera = { x: 0, y: 0, k: 1 };
  let size = { width: 800, height: 600 };
  let level = FULL;
  /** @type {import("./layout_view.js").Frame | null} */
  let drawnFrame = null;
  let frameAsked = 0;
  let refreshAll = true;
  let laidOut = "";
  let still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // ------------------------------------------------------------------ drawing

  function request() {
    frameAsked ||= requestAnimationFrame(paint);
  }

  function paint() {
    frameAsked = 0;
    const { x, y, k } = camera;
    world.setAttribute("transform", `translate(${size.width / 2 - x * k} ${size.height / 2 - y * k}) scale(${k})`);
    const now = seen(camera, size);
    const wanted = detail(now);
    const left = !drawnFrame || now.left < drawnFrame.left || now.right > drawnFrame.right || now.top < drawnFrame.top
      || now.bottom > drawnFrame.bottom || wanted !== level || (wanted === NAMED && nameStep() !== drawnStep);
    if (left || refreshAll) {
      if (left) drawnFrame = seen(camera, size, MARGIN);
      level = wanted;
      drawnStep = nameStep();
      arrange();
    }
    refreshAll = false;
  }

  let drawnStep = 0;
  const nameStep = () => Math.round(4 * Math.min(26, 10.5 / camera.k));

  /** @param {import("./layout_view.js").Frame} frame */
  function detail(frame) {
    if (camera.k >= 0.5) return FULL;
    let there = 0;
    for (const box of boxes.values()) there += Number(inside(box, frame));
    if (camera.k >= 0.3 && there <= 100) return FULL;
    return there <= 320 && camera.k >= 0.12 ? NAMED : FAR;
  }

  /** Draw what is in view and let go of what is not. */
  function arrange() {
    const frame = /** @type {import("./layout_view.js").Frame} */ (drawnFrame);
    const focused = document.activeElement?.closest?.(".mk-node")?.getAttribute("data-name");
    const reference = state.scenarios.find((kept) => kept.name === state.reference)?.marginals ?? state.prior;
    for (const [name, node] of boxes) {
      let drawing = drawings.get(name);
      if (!inside(node, frame) && name !== focused) {
        if (drawing) {
          drawing.group.remove();
          drawings.delete(name);
        }
        continue;
      }
      if (!drawing) {
        drawings.set(name, (drawing = new NodeDrawing(node)));
        drawing.place();
        nodeLayer.append(drawing.group);
      } else if (drawing.node !== node) {
        drawing.node = node;
        drawing.level = -1;
        drawing.place();
      }
      drawing.draw(level, camera.k);
      drawing.update(state, reference);
    }
    for (const [name, drawing] of drawings) {
      if (boxes.has(name)) continue;
      drawing.group.remove();
      drawings.delete(name);
    }
    rove();
    drawEdges(frame);
    canvas.classList.toggle("mk-shaded", Boolean(state.shading));
    canvas.classList.toggle("mk-marking", Boolean(state.marks));
  }

  /** @param {import("./layout_view.js").Frame} frame */
  function drawEdges(frame) {
    const hot = new Set(state.marks?.edges ?? []);
    const kept = new Set();
    let far = "";
    for (const edge of edges) {
      const marked = hot.has(edge.key);
      if (level === FAR && !marked && !edge.kind.startsWith("overlay")) {
        if (laidOutPath) continue;
        far += edgePath(edge.from, edge.to).line;
        continue;
      }
      const span = frameOf([edge.from, edge.to]);
      if (!span || span.right < frame.left || span.left > frame.right || span.bottom < frame.top || span.top > frame.bottom) continue;
      kept.add(edge.key);
      const cut = edge.to.name in state.interventions;
      const classes = ["mk-edge", `mk-edge-${edge.kind}`];
      if (cut) classes.push("mk-cut");
      if (marked) classes.push("mk-hot");
      else if (state.marks) classes.push("mk-dim");
      let made = edgeElements.get(edge.key);
      if (!made) {
        made = svg("g", null, svg("path", { class: "mk-line" }), svg("path", { class: "mk-head" }), svg("path", { class: "mk-scissors" }));
        edgeElements.set(edge.key, made);
        edgeLayer.append(made);
      }
      const { line, head, middle } = edgePath(edge.from, edge.to);
      made.setAttribute("class", classes.join(" "));
      made.children[0].setAttribute("d", line);
      const back = edge.kind === "both" ? edgePath(edge.to, edge.from).head : "";
      made.children[1].setAttribute("d", edge.kind === "line" || edge.kind === "circle" ? "" : head + back);
      made.children[2].setAttribute("d", cut ? iconPath("scissors") : "");
      made.children[2].setAttribute("transform", `translate(${middle.x - 8} ${middle.y - 8})`);
      const weight = state.edgeWeights[edge.key];
      /** @type {SVGElement} */ (made.children[0]).style.strokeWidth = weight === undefined ? "" : String(0.8 + 4.2 * weight);
    }
    for (const [key, made] of edgeElements) {
      if (kept.has(key)) continue;
      made.remove();
      edgeElements.delete(key);
    }
    if (level === FAR) {
      if (!laidOutPath) farEdges.setAttribute("d", (laidOutPath = far || "M0 0"));
      farEdges.removeAttribute("visibility");
    } else farEdges.setAttribute("visibility", "hidden");
  }

  /** The merged path of all edges, made anew when nodes move. */
  let laidOutPath = "";

  /** One node is in the order of Tab; arrow keys move on. */
  function rove() {
    const there = state.focus !== null && drawings.has(state.focus) ? state.focus : drawings.keys().next().value;
    for (const [name, drawing] of drawings) drawing.group.setAttribute("tabindex", name === there ? "0" : "-1");
  }

  function takeView() {
    const view = state.view;
    laidOutPath = "";
    boxes = new Map((view?.nodes ?? []).map((node) => [node.name, { ...node }]));
    edges = [];
    for (const { from, to, kind } of view?.edges ?? []) addEdge(from, to, kind, edgeKey(from, to));
    for (const { from, to, kind } of state.overlays) addEdge(from, to, `overlay mk-overlay-${kind}`, `${kind}:${edgeKey(from, to)}`);
    canvas.setAttribute("aria-label", view ? `${view.name}: a network of ${view.nodes.length} nodes and ${view.edges.length} edges` : "No model");
    const id = view?.id ?? "";
    if (id !== laidOut) {
      laidOut = id;
      drawnFrame = null;
      if (state.camera) camera = { ...state.camera };
      else fit(false);
    }
    refreshAll = true;
    request();
  }

  /** @param {string} from @param {string} to @param {string} kind @param {string} key */
  function addEdge(from, to, kind, key) {
    const [a, b] = [boxes.get(from), boxes.get(to)];
    if (a && b) edges.push({ from: a, to: b, key, kind });
  }

  // ------------------------------------------------------------------ camera

  /** @param {Camera} next @param {boolean} [smooth] */
  function move(next, smooth = false) {
    cancelAnimationFrame(flight);
    if (!smooth || still) {
      camera = next;
      remember();
      request();
      return;
    }
    const start = camera;
    const began = performance.now();
    const fly = (/** @type {number} */ now) => {
      const t = Math.min(1, (now - began) / 220);
      const ease = 1 - (1 - t) ** 3;
      const k = start.k * (next.k / start.k) ** ease;
      camera = { x: start.x + (next.x - start.x) * ease, y: start.y + (next.y - start.y) * ease, k };
      request();
      if (t < 1) flight = requestAnimationFrame(fly);
      else remember();
    };
    flight = requestAnimationFrame(fly);
  }

  let flight = 0;
  let saving = 0;
  function remember() {
    clearTimeout(saving);
    saving = window.setTimeout(() => store.set({ camera: { ...camera } }), 250);
  }

  /** @param {boolean} [smooth] */
  function fit(smooth = true) {
    const frame = frameOf(boxes.values());
    if (frame) move(cameraOn(frame, size), smooth);
  }

  /** Show a node and put the keyboard on it. @param {string} name @param {boolean} [near] */
  function reveal(name, near = true) {
    const box = boxes.get(name);
    if (!box) return;
    const frame = seen(camera, size, -60);
    if (near && camera.k < 0.5) move({ x: box.x, y: box.y, k: 0.9 }, true);
    else if (!inside(box, frame)) move({ x: box.x, y: box.y, k: camera.k }, true);
    store.set({ focus: name, selected: [name] });
    refreshAll = true;
    paint();
    const focus = () => drawings.get(name)?.group.focus({ preventScroll: true });
    if (drawings.has(name)) focus();
    else setTimeout(focus, 260);
  }

  // ------------------------------------------------------------------ pointer

  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  /** @type {null | {kind: string, name: string, target: Element | null, x: number, y: number, moved: boolean, camera: Camera,
   *   starts: Map<string, {x: number, y: number}>, alt: boolean, shift: boolean}} */
  let gesture = null;
  let pinch = 0;

  /** @param {{clientX: number, clientY: number}} event */
  function point(event) {
    const rect = canvas.getBoundingClientRect();
    const at = { x: event.clientX - rect.left - size.width / 2, y: event.clientY - rect.top - size.height / 2 };
    return { at, x: camera.x + at.x / camera.k, y: camera.y + at.y / camera.k };
  }

  canvas.addEventListener("pointerdown", (event) => {
    if (event.button > 1) return;
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    try {
      canvas.setPointerCapture(event.pointerId);
    } catch { /* a pointer that is gone already needs no capture */ }
    if (pointers.size === 2) {
      gesture = null;
      pinch = spread();
      return;
    }
    const target = /** @type {Element} */ (event.target);
    const name = target.closest(".mk-node")?.getAttribute("data-name") ?? "";
    const shift = event.shiftKey || event.ctrlKey || event.metaKey;
    let kind = name ? "node" : event.shiftKey || tools.boxing() ? "box" : "pan";
    if (target.classList.contains("mk-handle") && !state.readOnly) kind = "connect";
    gesture = { kind, name, target, x: event.clientX, y: event.clientY, moved: false, camera, alt: event.altKey, shift,
      starts: new Map() };
    if (kind === "node") {
      const group = state.selected.includes(name) ? state.selected : [name];
      for (const each of group) {
        const box = boxes.get(each);
        if (box) gesture.starts.set(each, { x: box.x, y: box.y });
      }
    }
  });

  canvas.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 2 && pinch) {
      const [a, b] = [...pointers.values()];
      const next = spread();
      move(zoomed(camera, next / pinch, point({ clientX: (a.x + b.x) / 2, clientY: (a.y + b.y) / 2 }).at));
      pinch = next;
      return;
    }
    if (!gesture) return;
    const dx = event.clientX - gesture.x;
    const dy = event.clientY - gesture.y;
    if (!gesture.moved && Math.hypot(dx, dy) < 4) return;
    gesture.moved = true;
    if (gesture.kind === "pan") {
      canvas.classList.add("mk-panning");
      move({ ...gesture.camera, x: gesture.camera.x - dx / camera.k, y: gesture.camera.y - dy / camera.k });
    } else if (gesture.kind === "node") drag(dx / camera.k, dy / camera.k);
    else if (gesture.kind === "box") drawLasso(event);
    else drawRope(event);
  });

  const release = (/** @type {PointerEvent} */ event) => {
    pointers.delete(event.pointerId);
    if (pointers.size < 2) pinch = 0;
    canvas.classList.remove("mk-panning");
    const done = gesture;
    gesture = null;
    lasso.setAttribute("width", "0");
    rope.setAttribute("d", "");
    if (!done || event.type === "pointercancel") return;
    if (done.moved) finish(done, event);
    else click(done, event);
  };
  canvas.addEventListener("pointerup", release);
  canvas.addEventListener("pointercancel", release);

  /** @param {NonNullable<typeof gesture>} done @param {PointerEvent} event */
  function finish(done, event) {
    const here = point(event);
    if (done.kind === "node" && !state.readOnly) {
      /** @type {Record<string, [number, number]>} */
      const positions = {};
      for (const name of done.starts.keys()) {
        const box = boxes.get(name);
        if (box) positions[name] = [box.x, box.y];
      }
      actions.edit({ op: "move", positions });
    } else if (done.kind === "box") {
      const start = point({ clientX: done.x, clientY: done.y });
      const frame = { left: Math.min(start.x, here.x), right: Math.max(start.x, here.x), top: Math.min(start.y, here.y), bottom: Math.max(start.y, here.y) };
      const caught = [...boxes.values()].filter((box) => inside(box, frame)).map((box) => box.name);
      store.set({ selected: caught });
    } else if (done.kind === "connect") {
      const to = [...boxes.values()].find((box) => inside({ x: here.x, y: here.y, width: 1, height: 1 }, /** @type {any} */ (frameOf([box]))));
      if (to && to.name !== done.name) {
        if (state.onConnect) state.onConnect(done.name, to.name);
        else actions.edit({ op: "connect", parent: done.name, child: to.name });
      }
    }
  }

  /** @param {NonNullable<typeof gesture>} done @param {PointerEvent} event */
  function click(done, event) {
    if (!done.name) {
      if (!done.shift) store.set({ selected: [], marks: null });
      return;
    }
    const text = done.target?.closest(".mk-row-state")?.getAttribute("data-state");
    const means = done.alt ? (state.clickMeans === "do" ? "observe" : "do") : state.clickMeans;
    drawings.get(done.name)?.group.focus({ preventScroll: true });
    if (text !== null && text !== undefined && !done.shift) {
      store.set({ focus: done.name, selected: [done.name] });
      actions.toggleState(done.name, text, means);
    } else if (done.target?.classList.contains("mk-curve-area") || done.target?.classList.contains("mk-curve")) {
      store.set({ focus: done.name, selected: [done.name] });
      number(done.name, event, means);
    } else {
      const chosen = state.selected.includes(done.name);
      const selected = !done.shift ? [done.name] : chosen ? state.selected.filter((name) => name !== done.name) : [...state.selected, done.name];
      store.set({ focus: done.name, selected });
    }
  }

  /** @param {string} name @param {PointerEvent} event @param {"observe" | "do"} means */
  function number(name, event, means) {
    const box = boxes.get(name);
    const drawing = drawings.get(name);
    if (!box || !drawing) return;
    if (name in state.findings || name in state.interventions) {
      actions.retract(name);
      return;
    }
    const value = drawing.valueAt(point(event).x - (box.x - box.width / 2));
    if (means === "do") actions.intervene(name, value);
    else actions.observe(name, { value });
  }

  /** @param {number} dx @param {number} dy */
  function drag(dx, dy) {
    for (const [name, start] of gesture?.starts ?? []) {
      const box = boxes.get(name);
      if (!box) continue;
      box.x = start.x + dx;
      box.y = start.y + dy;
      drawings.get(name)?.place();
    }
    laidOutPath = "";
    if (drawnFrame) drawEdges(drawnFrame);
  }

  /** @param {PointerEvent} event */
  function drawLasso(event) {
    if (!gesture) return;
    const a = point({ clientX: gesture.x, clientY: gesture.y });
    const b = point(event);
    for (const [key, value] of Object.entries({ x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) }))
      lasso.setAttribute(key, String(value));
  }

  /** @param {PointerEvent} event */
  function drawRope(event) {
    const box = boxes.get(gesture?.name ?? "");
    if (!box) return;
    const to = point(event);
    rope.setAttribute("d", `M${box.x} ${box.y + box.height / 2}L${to.x} ${to.y}`);
  }

  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey && !event.ctrlKey) {
      move({ ...camera, x: camera.x + (event.deltaX || event.deltaY) / camera.k });
      return;
    }
    const step = event.deltaMode === 1 ? 18 : 1;
    move(zoomed(camera, Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.008 : 0.0016)), point(event).at));
  }, { passive: false });

  canvas.addEventListener("dblclick", (event) => {
    const name = /** @type {Element} */ (event.target).closest(".mk-node")?.getAttribute("data-name");
    if (!name) move(zoomed(camera, 1.6, point(event).at), true);
    else if (!(/** @type {Element} */ (event.target).closest(".mk-row-state")) && !state.readOnly) store.set({ selected: [name], panel: "edit" });
  });

  // ------------------------------------------------------------------ keys

  /** @type {Record<string, [number, number]>} */
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    const row = document.activeElement?.closest(".mk-row-state");
    const name = document.activeElement?.closest(".mk-node")?.getAttribute("data-name") ?? "";
    const node = boxes.get(name);
    const handled = row && node ? keyInNode(event, row, node) : node ? keyOnNode(event, node) : false;
    if (handled || keyOnGraph(event)) event.preventDefault();
  });

  /** @param {KeyboardEvent} event @param {Element} row @param {ViewNode} node */
  function keyInNode(event, row, node) {
    const rows = drawings.get(node.name)?.rows ?? [];
    const place = rows.findIndex((each) => each.row === row);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      rows[(place + (event.key === "ArrowDown" ? 1 : rows.length - 1)) % rows.length]?.row.focus();
      return true;
    }
    if (event.key === "Enter" || event.key === " ") {
      actions.toggleState(node.name, rows[place].state, event.altKey ? "do" : undefined);
      return true;
    }
    if (event.key === "Escape") {
      drawings.get(node.name)?.group.focus();
      return true;
    }
    return keyOnNode(event, node);
  }

  /** @param {KeyboardEvent} event @param {ViewNode} node */
  function keyOnNode(event, node) {
    const way = ARROWS[event.key];
    if (way) {
      const next = neighbour(node, [...boxes.values()], way[0], way[1]);
      if (next) reveal(next.name, false);
      return true;
    }
    if (event.key === "Enter") {
      const first = drawings.get(node.name)?.rows[0]?.row;
      if (first) first.focus();
      else store.set({ selected: [node.name], panel: "findings" });
      return true;
    }
    if (event.key === " ") {
      store.set({ focus: node.name, selected: [node.name] });
      return true;
    }
    if (/^[1-9]$/.test(event.key) && node.states && node.states.length >= Number(event.key)) {
      actions.toggleState(node.name, node.states[Number(event.key) - 1], event.altKey ? "do" : undefined);
      return true;
    }
    if (event.key === "Delete" || event.key === "Backspace") {
      actions.retract(node.name);
      return true;
    }
    return false;
  }

  /** @param {KeyboardEvent} event */
  function keyOnGraph(event) {
    if (/** @type {Element} */ (event.target).closest("select, input, button")) return false;
    if (event.key === "+" || event.key === "=") move(zoomed(camera, 1.25, { x: 0, y: 0 }), true);
    else if (event.key === "-") move(zoomed(camera, 0.8, { x: 0, y: 0 }), true);
    else if (event.key === "f") fit();
    else if (event.key === "Escape") store.set({ selected: [], marks: null });
    else return false;
    return true;
  }

  canvas.addEventListener("focusin", (event) => {
    const name = /** @type {Element} */ (event.target).closest(".mk-node")?.getAttribute("data-name");
    if (name && name !== state.focus) store.set({ focus: name });
  });

  // ------------------------------------------------------------------ tools

  function toolbar() {
    const boxTool = button(null, () => boxTool.setAttribute("aria-pressed", String(boxTool.getAttribute("aria-pressed") !== "true")),
      { icon: "box", label: "Select with a box (or hold Shift)", "aria-pressed": "false" });
    const means = h("div", { class: "mk-segments", role: "group", "aria-label": "A click on a state means" });
    const shade = select([["", "no shading"], ["entropy", "shade by uncertainty"], ["information", "shade by information"]], "", (measure) => {
      const target = state.selected[0] ?? state.view?.nodes[0]?.name;
      actions.shade(/** @type {any} */ (measure || null), measure === "information" ? target : undefined);
    }, { "aria-label": "Shading of nodes" });
    const bar = h("div", { class: "mk-tools", role: "toolbar", "aria-label": "Drawing" },
      h("div", { class: "mk-segments" },
        button(null, () => move(zoomed(camera, 1.25, { x: 0, y: 0 }), true), { icon: "plus", label: "Zoom in (+)" }),
        button(null, () => move(zoomed(camera, 0.8, { x: 0, y: 0 }), true), { icon: "minus", label: "Zoom out (−)" }),
        button(null, () => fit(), { icon: "fit", label: "Show everything (f)" }), boxTool),
      means, shade);
    const draw = () => {
      fill(means, ...[["observe", "eye", "Observe"], ["do", "hammer", "do( )"]].map(([key, drawn, text]) =>
        h("button", { type: "button", class: "mk-button", "aria-pressed": String(state.clickMeans === key),
          title: key === "do" ? "Clicks set a node from outside and cut its incoming edges" : "Clicks say what was seen",
          onclick: () => store.set({ clickMeans: key === "do" ? "do" : "observe" }) }, icon(drawn), h("span", null, text))));
      shade.value = state.shading?.measure ?? "";
    };
    draw();
    return { element: bar, draw, boxing: () => boxTool.getAttribute("aria-pressed") === "true" };
  }

  function drawNotice() {
    const words = state.marks?.label ?? (state.shading?.measure === "information" ? `Shaded by what each node tells about ${state.shading.target}` : "");
    notice.hidden = !words;
    if (words) fill(notice, h("span", null, words), button(null, () => store.set({ marks: null, shading: state.marks ? state.shading : null }), { icon: "close", label: "Stop highlighting" }));
  }

  // ------------------------------------------------------------------ life

  const watch = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    if (!width || !height) return;
    const first = !size.width || laidOut === "" || !drawnFrame;
    size = { width, height };
    drawnFrame = null;
    if (first && state.view && !state.camera) fit(false);
    request();
  });
  watch.observe(canvas);

  const off = store.subscribe((_, changed) => {
    if (changed.has("view") || changed.has("overlays")) takeView();
    if (changed.has("clickMeans") || changed.has("shading")) tools.draw();
    if (changed.has("marks") || changed.has("shading")) drawNotice();
    if (changed.has("marginals")) speak();
    for (const key of ["marginals", "prior", "findings", "interventions", "selected", "shading", "marks", "scenarios", "reference", "edgeWeights", "focus"])
      if (changed.has(key)) {
        refreshAll = true;
        request();
        break;
      }
  });

  function speak() {
    const count = Object.keys(state.findings).length + Object.keys(state.interventions).length;
    spoken.textContent = `${count} ${count === 1 ? "finding" : "findings"}; ${Object.keys(state.marginals).length} nodes updated`;
  }

  takeView();
  return {
    canvas, fit, reveal, move,
    camera: () => camera,
    destroy: () => { off(); watch.disconnect(); element.replaceChildren(); },
  };
}
