// Pointer and keys on the drawing: pan, pinch, drag, box selection, drawing edges, and walking from node to node.
import { svg } from "./dom.js";
import { frameOf, inside, neighbour, zoomed } from "./layout_view.js";

/**
 * @typedef {import("./store.js").ViewNode} ViewNode
 * @typedef {import("./layout_view.js").Camera} Camera
 * @typedef {{element: HTMLElement, canvas: SVGSVGElement, world: SVGGElement, store: import("./store.js").Store,
 *   actions: import("./session.js").Actions, drawings: Map<string, import("./graph_node.js").NodeDrawing>,
 *   boxes: () => Map<string, ViewNode>, camera: () => Camera, move: (camera: Camera, smooth?: boolean) => void,
 *   fit: (smooth?: boolean) => void, reveal: (name: string, near?: boolean) => void, redrawEdges: () => void, boxing: () => boolean,
 *   point: (event: {clientX: number, clientY: number}) => {at: {x: number, y: number}, x: number, y: number}}} Surface
 */

/** @param {Surface} surface */
export function attachPointer(surface) {
  const { canvas, world, store, actions } = surface;
  const { state } = store;
  const lasso = svg("rect", { class: "mk-lasso" });
  const rope = svg("path", { class: "mk-rope" });
  world.append(lasso, rope);

  /** @type {Map<number, {x: number, y: number}>} */
  const pointers = new Map();
  /** @type {null | {kind: string, name: string, target: Element | null, x: number, y: number, moved: boolean, camera: Camera,
   *   starts: Map<string, {x: number, y: number}>, alt: boolean, shift: boolean}} */
  let gesture = null;
  let pinch = 0;

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
    let kind = name ? "node" : event.shiftKey || surface.boxing() ? "box" : "pan";
    if (target.classList.contains("mk-handle") && !state.readOnly) kind = "connect";
    gesture = { kind, name, target, x: event.clientX, y: event.clientY, moved: false, camera: surface.camera(), alt: event.altKey, shift,
      starts: new Map() };
    if (kind === "node") {
      const group = state.selected.includes(name) ? state.selected : [name];
      for (const each of group) {
        const box = surface.boxes().get(each);
        if (box) gesture.starts.set(each, { x: box.x, y: box.y });
      }
    }
  });

  canvas.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 2 && pinch) {
      const [a, b] = [...pointers.values()];
      const next = spread();
      surface.move(zoomed(surface.camera(), next / pinch, surface.point({ clientX: (a.x + b.x) / 2, clientY: (a.y + b.y) / 2 }).at));
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
      surface.move({ ...gesture.camera, x: gesture.camera.x - dx / surface.camera().k, y: gesture.camera.y - dy / surface.camera().k });
    } else if (gesture.kind === "node") drag(dx / surface.camera().k, dy / surface.camera().k);
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
    const here = surface.point(event);
    if (done.kind === "node" && !state.readOnly) {
      /** @type {Record<string, [number, number]>} */
      const positions = {};
      for (const name of done.starts.keys()) {
        const box = surface.boxes().get(name);
        if (box) positions[name] = [box.x, box.y];
      }
      actions.edit({ op: "move", positions });
    } else if (done.kind === "box") {
      const start = surface.point({ clientX: done.x, clientY: done.y });
      const frame = { left: Math.min(start.x, here.x), right: Math.max(start.x, here.x), top: Math.min(start.y, here.y), bottom: Math.max(start.y, here.y) };
      const caught = [...surface.boxes().values()].filter((box) => inside(box, frame)).map((box) => box.name);
      store.set({ selected: caught });
    } else if (done.kind === "connect") {
      const to = [...surface.boxes().values()].find((box) => inside({ x: here.x, y: here.y, width: 1, height: 1 }, /** @type {any} */ (frameOf([box]))));
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
    surface.drawings.get(done.name)?.group.focus({ preventScroll: true });
    if (text !== null && text !== undefined && !done.shift) {
      store.set({ focus: done.name, selected: [done.name] });
      actions.toggleState(done.name, text, means);
    } else if (done.target?.classList.contains("mk-curve-area")) {
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
    const box = surface.boxes().get(name);
    const drawing = surface.drawings.get(name);
    if (!box || !drawing) return;
    if (name in state.findings || name in state.interventions) {
      actions.retract(name);
      return;
    }
    const value = drawing.valueAt(surface.point(event).x - (box.x - box.width / 2));
    if (means === "do") actions.intervene(name, value);
    else actions.observe(name, { value });
  }

  /** @param {number} dx @param {number} dy */
  function drag(dx, dy) {
    for (const [name, start] of gesture?.starts ?? []) {
      const box = surface.boxes().get(name);
      if (!box) continue;
      box.x = start.x + dx;
      box.y = start.y + dy;
      surface.drawings.get(name)?.place();
    }
    surface.redrawEdges();
  }

  /** @param {PointerEvent} event */
  function drawLasso(event) {
    if (!gesture) return;
    const a = surface.point({ clientX: gesture.x, clientY: gesture.y });
    const b = surface.point(event);
    for (const [key, value] of Object.entries({ x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) }))
      lasso.setAttribute(key, String(value));
  }

  /** @param {PointerEvent} event */
  function drawRope(event) {
    const box = surface.boxes().get(gesture?.name ?? "");
    if (!box) return;
    const to = surface.point(event);
    rope.setAttribute("d", `M${box.x} ${box.y + box.height / 2}L${to.x} ${to.y}`);
  }

  const spread = () => {
    const [a, b] = [...pointers.values()];
    return Math.max(1, Math.hypot(a.x - b.x, a.y - b.y));
  };

  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    if (event.shiftKey && !event.ctrlKey) {
      surface.move({ ...surface.camera(), x: surface.camera().x + (event.deltaX || event.deltaY) / surface.camera().k });
      return;
    }
    const step = event.deltaMode === 1 ? 18 : 1;
    surface.move(zoomed(surface.camera(), Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.008 : 0.0016)), surface.point(event).at));
  }, { passive: false });

  canvas.addEventListener("dblclick", (event) => {
    const name = /** @type {Element} */ (event.target).closest(".mk-node")?.getAttribute("data-name");
    if (!name) surface.move(zoomed(surface.camera(), 1.6, surface.point(event).at), true);
    else if (!(/** @type {Element} */ (event.target).closest(".mk-row-state")) && !state.readOnly) store.set({ selected: [name], panel: "edit" });
  });
}

/** @param {Surface} surface */
export function attachKeys(surface) {
  const { element, store, actions } = surface;
  const { state } = store;

  /** @type {Record<string, [number, number]>} */
  const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

  element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey) return;
    const row = document.activeElement?.closest(".mk-row-state");
    const name = document.activeElement?.closest(".mk-node")?.getAttribute("data-name") ?? "";
    const node = surface.boxes().get(name);
    const handled = row && node ? keyInNode(event, row, node) : node ? keyOnNode(event, node) : false;
    if (handled || keyOnGraph(event)) event.preventDefault();
  });

  /** @param {KeyboardEvent} event @param {Element} row @param {ViewNode} node */
  function keyInNode(event, row, node) {
    const rows = surface.drawings.get(node.name)?.rows ?? [];
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
      surface.drawings.get(node.name)?.group.focus();
      return true;
    }
    return keyOnNode(event, node);
  }

  /** @param {KeyboardEvent} event @param {ViewNode} node */
  function keyOnNode(event, node) {
    const way = ARROWS[event.key];
    if (way) {
      const next = neighbour(node, [...surface.boxes().values()], way[0], way[1]);
      if (next) surface.reveal(next.name, false);
      return true;
    }
    if (event.key === "Enter") {
      const first = surface.drawings.get(node.name)?.rows[0]?.row;
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
    if (event.key === "+" || event.key === "=") surface.move(zoomed(surface.camera(), 1.25, { x: 0, y: 0 }), true);
    else if (event.key === "-") surface.move(zoomed(surface.camera(), 0.8, { x: 0, y: 0 }), true);
    else if (event.key === "f") surface.fit();
    else if (event.key === "Escape") store.set({ selected: [], marks: null });
    else return false;
    return true;
  }

  // not on the drawing itself: Chromium would make it a stop of Tab
  element.addEventListener("focusin", (event) => {
    const name = /** @type {Element} */ (event.target).closest(".mk-node")?.getAttribute("data-name");
    if (name && name !== state.focus) store.set({ focus: name });
  });
}
