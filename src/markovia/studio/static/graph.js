// The network as a drawing: monitors in every node, zoom, pan, drag, box selection, keys. It asks nothing of the server
// itself; what a reader does goes through `actions`, so a report or a notebook mounts it with an api of its own.
import { h, iconPath, put, svg } from "./dom.js";
import { edgeKey } from "./store.js";
import { cameraOn, detours, edgePath, frameOf, inside, seen } from "./layout_view.js";
import { FAR, FULL, NAMED, NodeDrawing } from "./graph_node.js";
import { attachKeys, attachPointer } from "./graph_gestures.js";
import { mountTools } from "./graph_tools.js";

/**
 * @typedef {import("./store.js").ViewNode} ViewNode
 * @typedef {import("./layout_view.js").Camera} Camera
 * @typedef {{store: import("./store.js").Store, actions: import("./session.js").Actions}} GraphContext
 */

/** Share of the view that is drawn beyond each of its sides. */
const OVERDRAW = 0.25;

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
  world.append(farEdges, edgeLayer, nodeLayer);
  const canvas = svg("svg", { class: "mk-canvas", role: "group", "aria-label": "The network" }, world);
  const spoken = h("div", { class: "mk-sr", role: "status", "aria-live": "polite" });
  element.classList.add("mk-graph");
  element.append(canvas, spoken);

  /** @type {Map<string, ViewNode>} */
  let boxes = new Map();
  /** @type {{from: ViewNode, to: ViewNode, key: string, kind: string, around: import("./layout_view.js").Detour[] | null}[]} */
  let edges = [];
  /** @type {Map<string, NodeDrawing>} */
  const drawings = new Map();
  /** @type {Map<string, SVGGElement>} */
  const edgeElements = new Map();
  /** @type {Camera} */
  let camera = { x: 0, y: 0, k: 1 };
  let size = { width: 800, height: 600 };
  let measured = false;
  let level = FULL;
  /** @type {import("./layout_view.js").Frame | null} */
  let drawnFrame = null;
  let frameAsked = 0;
  let refreshAll = true;
  let laidOut = "";
  /** The camera that the drawing was made for. */
  let base = camera;
  let moving = false;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;

  // ------------------------------------------------------------------ drawing

  function request() {
    frameAsked ||= requestAnimationFrame(paint);
  }

  /**
   * While the camera moves, the drawing made at `base` is only moved and scaled, which a browser does without drawing anew;
   * it is drawn sharp when the camera rests, or where it leaves what was drawn.
   */
  function paint() {
    frameAsked = 0;
    const now = seen(camera, size);
    const ratio = camera.k / base.k;
    const covered = drawnFrame && now.left >= drawnFrame.left && now.right <= drawnFrame.right && now.top >= drawnFrame.top
      && now.bottom <= drawnFrame.bottom && ratio > 0.5 && ratio < 2.2;
    if (moving && covered) {
      canvas.style.transform = `translate(${(base.x - camera.x) * camera.k}px, ${(base.y - camera.y) * camera.k}px) scale(${ratio})`;
      if (refreshAll) arrange();
    } else if (refreshAll || !covered || base !== camera) {
      base = camera;
      canvas.style.transform = "";
      const margin = { x: size.width * OVERDRAW, y: size.height * OVERDRAW };
      world.setAttribute("transform", `translate(${size.width / 2 + margin.x - base.x * base.k} ${size.height / 2 + margin.y - base.y * base.k}) scale(${base.k})`);
      drawnFrame = seen(base, { width: size.width + 2 * margin.x, height: size.height + 2 * margin.y });
      level = detail(now);
      arrange();
    }
    refreshAll = false;
  }

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
      if (drawing.draw(level, base.k) || refreshAll) drawing.update(state, reference);
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
        made = svg("g", null, svg("path", { class: "mk-line" }), svg("path", { class: "mk-head" }), svg("path", { class: "mk-scissors" }),
          svg("path", { class: "mk-ring" }));
        edgeElements.set(edge.key, made);
        edgeLayer.append(made);
      }
      const bare = edge.kind === "line" || edge.kind === "circle";
      edge.around ??= detours(edge.from, edge.to, boxes.values());
      const { line, head, ring, middle } = edgePath(edge.from, edge.to, bare, edge.around);
      put(made, "class", classes.join(" "));
      put(made.children[0], "d", line);
      const back = edge.kind === "both" ? edgePath(edge.to, edge.from).head : "";
      put(made.children[1], "d", bare ? "" : head + back);
      put(made.children[3], "d", edge.kind.startsWith("circle") ? edgePath(edge.to, edge.from).ring + (bare ? ring : "") : "");
      put(made.children[2], "d", cut ? iconPath("scissors") : "");
      put(made.children[2], "transform", `translate(${middle.x - 8} ${middle.y - 8})`);
      const weight = state.edgeWeights[edge.key];
      const thick = weight === undefined ? "" : String(0.8 + 4.2 * weight);
      const drawn = /** @type {SVGElement} */ (made.children[0]).style;
      if (drawn.strokeWidth !== thick) drawn.strokeWidth = thick;
    }
    for (const [key, made] of edgeElements) {
      if (kept.has(key)) continue;
      made.remove();
      edgeElements.delete(key);
    }
    if (level === FAR) {
      if (!laidOutPath) farEdges.setAttribute("d", (laidOutPath = far || "M0 0"));
      farEdges.removeAttribute("visibility");
    } else put(farEdges, "visibility", "hidden");
  }

  /** The merged path of all edges, made anew when nodes move. */
  let laidOutPath = "";

  /** One node is in the order of Tab; arrow keys move on. */
  function rove() {
    const there = state.focus !== null && drawings.has(state.focus) ? state.focus : drawings.keys().next().value;
    for (const [name, drawing] of drawings) put(drawing.group, "tabindex", name === there ? "0" : "-1");
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
      const kept = state.camera && !(measured && outgrown());
      if (!kept && boxes.size) fit(false);
      else if (!kept) move({ x: 0, y: 0, k: 1 });
      moving = false;
    }
    refreshAll = true;
    request();
  }

  /** @param {string} from @param {string} to @param {string} kind @param {string} key */
  function addEdge(from, to, kind, key) {
    const [a, b] = [boxes.get(from), boxes.get(to)];
    if (a && b) edges.push({ from: a, to: b, key, kind, around: null });
  }

  // ------------------------------------------------------------------ camera

  /** @param {Camera} next @param {boolean} [smooth] */
  function move(next, smooth = false) {
    cancelAnimationFrame(flight);
    if (!smooth || still) {
      camera = next;
      rest();
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
      rest();
      if (t < 1) flight = requestAnimationFrame(fly);
    };
    flight = requestAnimationFrame(fly);
  }

  let flight = 0;
  let resting = 0;
  /** Draw sharp and remember the camera once it has come to rest. */
  function rest() {
    moving = true;
    clearTimeout(resting);
    resting = window.setTimeout(() => {
      moving = false;
      request();
      store.set({ camera: { x: camera.x, y: camera.y, k: camera.k, ...size } });
    }, 150);
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
    const there = inside(box, frame);
    if (near && camera.k < 0.5) move({ x: box.x, y: box.y, k: 0.9 }, true);
    else if (!there) move({ x: box.x, y: box.y, k: camera.k }, true);
    store.set({ focus: name, selected: [name] });
    const focus = () => drawings.get(name)?.group.focus({ preventScroll: true });
    focus();
    if (!drawings.has(name)) setTimeout(focus, 300);
  }

  /** The free place for a new node that is nearest to the middle of what is seen. */
  function emptySpot(width = 150, height = 70) {
    const taken = [...boxes.values()];
    const free = (/** @type {{x: number, y: number}} */ at) => !taken.some((box) =>
      Math.abs(box.x - at.x) < (box.width + width) / 2 + 14 && Math.abs(box.y - at.y) < (box.height + height) / 2 + 20);
    const steps = [...Array(41).keys()].map((step) => step - 20);
    const places = steps.toReversed().flatMap((down) => steps.map((across) => ({ x: camera.x + across * 90, y: camera.y + down * 55 })));
    places.sort((a, b) => Math.hypot(a.x - camera.x, a.y - camera.y) - Math.hypot(b.x - camera.x, b.y - camera.y));
    const at = places.find(free) ?? camera;
    return [Math.round(at.x), Math.round(at.y)];
  }

  /** Move the view only as far as a node needs to be seen. @param {string} name */
  function bringInto(name) {
    const box = boxes.get(name);
    if (box && !inside(box, seen(camera, size, -Math.min(60, size.width / 4)))) move({ x: box.x, y: box.y, k: camera.k }, true);
  }

  /** @param {{clientX: number, clientY: number}} event */
  function point(event) {
    const rect = element.getBoundingClientRect();
    const at = { x: event.clientX - rect.left - size.width / 2, y: event.clientY - rect.top - size.height / 2 };
    return { at, x: camera.x + at.x / camera.k, y: camera.y + at.y / camera.k };
  }

  // ------------------------------------------------------------------ life

  /** Whether a window of another size needs another camera: all was seen before, and now not, or it was just fitted in. @param {{width: number, height: number}} before */
  function refits(before) {
    const frame = frameOf(boxes.values());
    if (!frame) return false;
    const whole = (/** @type {{width: number, height: number}} */ view) => {
      const there = seen(camera, view, 2);
      return frame.left >= there.left && frame.right <= there.right && frame.top >= there.top && frame.bottom <= there.bottom;
    };
    const fitted = cameraOn(frame, before);
    const same = Math.abs(fitted.k / camera.k - 1) < 0.01 && Math.hypot(fitted.x - camera.x, fitted.y - camera.y) * camera.k < 3;
    return same || (whole(before) && !whole(size));
  }

  /** Whether the camera that is remembered was for a window of another size, and shows too little here. */
  function outgrown() {
    const { width, height } = state.camera ?? {};
    return Boolean(width && height && (width !== size.width || height !== size.height) && refits({ width, height }));
  }

  const watch = new ResizeObserver(([entry]) => {
    const { width, height } = entry.contentRect;
    if (!width || !height) return;
    const first = !measured;
    const before = size;
    measured = true;
    size = { width, height };
    drawnFrame = null;
    if (first ? state.view && (!state.camera || outgrown()) : refits(before)) fit(false);
    request();
  });
  watch.observe(element);

  const off = store.subscribe((_, changed) => {
    if (changed.has("view") || changed.has("overlays")) takeView();
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

  /** @type {import("./graph_gestures.js").Surface} */
  const surface = { element, canvas, world, store, actions, drawings, boxes: () => boxes, camera: () => camera, move, fit, reveal, point,
    boxing: () => tools.boxing(),
    redrawEdges: () => {
      laidOutPath = "";
      for (const edge of edges) edge.around = null;
      if (drawnFrame) drawEdges(drawnFrame);
    } };
  const tools = mountTools(surface);
  attachPointer(surface);
  attachKeys(surface);
  takeView();
  return {
    canvas, fit, reveal, move, emptySpot, bringInto,
    camera: () => camera,
    destroy: () => { off(); watch.disconnect(); element.replaceChildren(); },
  };
}
