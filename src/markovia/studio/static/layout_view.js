// Where things are: the camera over the drawing, the paths of edges, what is in view, and widths of texts.

/**
 * @typedef {{x: number, y: number, k: number, width?: number, height?: number}} Camera  a point of the drawing at the view's
 *   middle, and the zoom; where it is remembered also the size of the view
 * @typedef {{x: number, y: number, width: number, height: number, kind?: string}} Box  centre and size; a utility is a diamond
 * @typedef {{left: number, top: number, right: number, bottom: number}} Frame
 */

export const LEAST_ZOOM = 0.02;
export const MOST_ZOOM = 4;

/** @param {Iterable<Box>} boxes @returns {Frame | null} */
export function frameOf(boxes) {
  let frame = null;
  for (const { x, y, width, height } of boxes) {
    const [left, right, top, bottom] = [x - width / 2, x + width / 2, y - height / 2, y + height / 2];
    frame = frame ? { left: Math.min(frame.left, left), right: Math.max(frame.right, right), top: Math.min(frame.top, top),
      bottom: Math.max(frame.bottom, bottom) } : { left, right, top, bottom };
  }
  return frame;
}

/**
 * The camera that shows a frame whole, with room above for a notice and below for the tools.
 * @param {Frame} frame
 * @param {{width: number, height: number}} view
 * @param {number} [most]
 * @returns {Camera}
 */
export function cameraOn(frame, view, most = 1.25) {
  const [margin, notice, tools] = [26, 48, 56];
  const k = Math.max(LEAST_ZOOM, Math.min((view.width - 2 * margin) / Math.max(1, frame.right - frame.left),
    (view.height - notice - tools) / Math.max(1, frame.bottom - frame.top), most));
  return { x: (frame.left + frame.right) / 2, y: (frame.top + frame.bottom + (tools - notice) / k) / 2, k };
}

/**
 * Zoom by a factor with the point under the pointer held still.
 * @param {Camera} camera
 * @param {number} factor
 * @param {{x: number, y: number}} at  from the view's middle, in screen pixels
 * @returns {Camera}
 */
export function zoomed(camera, factor, at) {
  const k = Math.max(LEAST_ZOOM, Math.min(MOST_ZOOM, camera.k * factor));
  const shift = 1 / camera.k - 1 / k;
  return { x: camera.x + at.x * shift, y: camera.y + at.y * shift, k };
}

/** What the camera sees, with some of the surroundings. @param {Camera} camera @param {{width: number, height: number}} view @param {number} [margin] */
export function seen(camera, view, margin = 0) {
  const across = (view.width / 2 + margin) / camera.k;
  const down = (view.height / 2 + margin) / camera.k;
  return { left: camera.x - across, right: camera.x + across, top: camera.y - down, bottom: camera.y + down };
}

/** @param {Box} box @param {Frame} frame */
export function inside(box, frame) {
  return box.x + box.width / 2 >= frame.left && box.x - box.width / 2 <= frame.right
    && box.y + box.height / 2 >= frame.top && box.y - box.height / 2 <= frame.bottom;
}

/** Where the ray from a box's centre to a point leaves the box. @param {Box} box @param {number} x @param {number} y */
function border(box, x, y) {
  const dx = x - box.x;
  const dy = y - box.y;
  if (box.kind === "utility") {
    const share = Math.max(1, Math.abs(dx) / (box.width / 2) + Math.abs(dy) / (box.height / 2));
    return { x: box.x + dx / share, y: box.y + dy / share };
  }
  const scale = Math.min(box.width / 2 / Math.max(1e-9, Math.abs(dx)), box.height / 2 / Math.max(1e-9, Math.abs(dy)), 1);
  return { x: box.x + dx * scale, y: box.y + dy * scale };
}

/** @param {number} value @param {number} reach */
const clamp = (value, reach) => Math.max(-reach, Math.min(reach, value));
const r = (/** @type {number} */ x) => Math.round(10 * x) / 10;

/** @typedef {{x: number, near: number, far: number}} Detour  a stretch beside a box, from one height to another */

/** How high the border of a box is at a distance from its middle. @param {Box} box @param {number} aside */
const rise = (box, aside) => (box.height / 2) * (box.kind === "utility" ? 1 - Math.abs(aside) / (box.width / 2) : 1);

/** Where an edge between rows begins and ends, and which way it goes. @param {Box} from @param {Box} to */
function ends(from, to) {
  const dx = to.x - from.x;
  const down = Math.sign(to.y - from.y);
  const [out, into] = [from, to].map((box) => clamp(dx * 0.18, box.kind === "utility" ? box.width / 5 : box.width / 2 - 20));
  return { down, start: { x: from.x + out, y: from.y + down * rise(from, out) },
    tip: { x: to.x - into, y: to.y - down * rise(to, into) - down } };
}

/** The points of a curve that leaves and arrives upright. @param {number} x @param {number} y @param {number} u @param {number} v */
function upright(x, y, u, v) {
  const bend = Math.sign(v - y) * Math.max(10, Math.min(90, Math.abs(v - y) * 0.42));
  return [[x, y], [x, y + bend], [u, v - bend], [u, v]];
}

/** The curves of an edge between rows. @param {{x: number, y: number}} start @param {{x: number, y: number}} end @param {Detour[]} around */
function curves(start, end, around) {
  const stops = [...around, { x: end.x, near: end.y, far: end.y }];
  return stops.map(({ x, near }, place) => upright(stops[place - 1]?.x ?? start.x, stops[place - 1]?.far ?? start.y, x, near));
}

/**
 * How an edge goes around the boxes that it would pass behind.
 * @param {Box} from
 * @param {Box} to
 * @param {Iterable<Box>} boxes
 * @returns {Detour[]}
 */
export function detours(from, to, boxes) {
  const { down, start, tip } = ends(from, to);
  const [upper, lower] = start.y < tip.y ? [start.y, tip.y] : [tip.y, start.y];
  const between = [...boxes].filter(({ y, height }) => y - height / 2 > upper && y + height / 2 < lower);
  const holds = (/** @type {Box} */ box, /** @type {number} */ x, /** @type {number} */ y, room = 0) =>
    Math.abs(x - box.x) < box.width / 2 + room && Math.abs(y - box.y) < box.height / 2 + room;
  /** @type {Detour[]} */
  let around = [];
  for (let rounds = 0; rounds < 8 && between.length; rounds += 1) {
    const points = curves(start, tip, around).flatMap(([a, b, c, d]) => [...Array(13).keys()].map((step) => {
      const [t, u] = [step / 12, 1 - step / 12];
      return [0, 1].map((i) => u * u * u * a[i] + 3 * u * u * t * b[i] + 3 * u * t * t * c[i] + t * t * t * d[i]);
    }));
    const hit = between.find((box) => points.some(([x, y]) => holds(box, x, y, 3))
      && !around.some(({ near, far }) => Math.abs((near + far) / 2 - box.y) < box.height / 2));
    if (!hit) break;
    const straight = start.x + ((tip.x - start.x) * (hit.y - start.y)) / (tip.y - start.y);
    const sides = [hit.x - hit.width / 2 - 12, hit.x + hit.width / 2 + 12].sort((a, b) => Math.abs(a - straight) - Math.abs(b - straight));
    const x = sides.find((side) => !between.some((box) => holds(box, side, hit.y))) ?? sides[0];
    const half = (down * hit.height) / 2;
    around = [...around, { x, near: hit.y - half, far: hit.y + half }].sort((a, b) => down * (a.near - b.near));
  }
  return around;
}

/**
 * The line of an edge, its arrow head, a ring in its place (for an end that nothing settles), and its middle.
 * @param {Box} from
 * @param {Box} to
 * @param {boolean} [bare]  without a head, so that the line goes all the way
 * @param {Detour[]} [around]
 * @returns {{line: string, head: string, ring: string, middle: {x: number, y: number}}}
 */
export function edgePath(from, to, bare = false, around = []) {
  const gap = Math.abs(to.y - from.y) - (from.height + to.height) / 2;
  const length = bare ? 0 : 8;
  if (gap > 14) {
    const { down, start, tip } = ends(from, to);
    const drawn = curves(start, { x: tip.x, y: tip.y - down * (length - 1) }, around)
      .map((each, place) => `C${each.slice(1).map(([x, y]) => `${r(x)} ${r(y)}`).join(" ")}${around[place] ? `V${r(around[place].far)}` : ""}`);
    const half = around[around.length >> 1];
    return {
      line: `M${r(start.x)} ${r(start.y)}${drawn.join("")}`,
      head: `M${r(tip.x)} ${r(tip.y)}l-4 ${-down * length}h8Z`,
      ring: ringAt(tip.x, tip.y - 4 * down),
      middle: half ? { x: half.x, y: (half.near + half.far) / 2 } : { x: (start.x + tip.x) / 2, y: (start.y + tip.y) / 2 },
    };
  }
  const start = border(from, to.x, to.y);
  const tip = border(to, from.x, from.y);
  const angle = Math.atan2(tip.y - start.y, tip.x - start.x);
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  const end = { x: tip.x - length * cos, y: tip.y - length * sin };
  return {
    line: `M${r(start.x)} ${r(start.y)}L${r(end.x)} ${r(end.y)}`,
    head: `M${r(tip.x)} ${r(tip.y)}L${r(end.x - 4 * sin)} ${r(end.y + 4 * cos)}L${r(end.x + 4 * sin)} ${r(end.y - 4 * cos)}Z`,
    ring: ringAt(tip.x - 4 * cos, tip.y - 4 * sin),
    middle: { x: (start.x + tip.x) / 2, y: (start.y + tip.y) / 2 },
  };
}

/** @param {number} x @param {number} y */
function ringAt(x, y) {
  return `M${r(x - 3.5)} ${r(y)}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0Z`;
}

/** @type {Map<string, string>} */
const cut = new Map();
/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/**
 * A text shortened with an ellipsis to a width in pixels.
 * @param {string} text
 * @param {number} width
 * @param {string} font  as canvas understands it, e.g. "600 12px system-ui"
 */
export function shortened(text, width, font) {
  const key = `${font}|${width}|${text}`;
  const known = cut.get(key);
  if (known !== undefined) return known;
  ruler ??= document.createElement("canvas").getContext("2d");
  if (!ruler) return text;
  ruler.font = font;
  let kept = text;
  if (ruler.measureText(kept).width > width) {
    let low = 0;
    let high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ruler.measureText(text.slice(0, middle) + "…").width <= width) low = middle;
      else high = middle - 1;
    }
    kept = text.slice(0, low) + "…";
  }
  if (cut.size > 20_000) cut.clear();
  cut.set(key, kept);
  return kept;
}

/**
 * The nearest box in a direction, for arrow keys.
 * @template {Box} B
 * @param {B} from
 * @param {B[]} boxes
 * @param {number} dx
 * @param {number} dy
 * @returns {B | null}
 */
export function neighbour(from, boxes, dx, dy) {
  let best = null;
  let least = Infinity;
  for (const box of boxes) {
    const along = (box.x - from.x) * dx + (box.y - from.y) * dy;
    const aside = Math.abs((box.x - from.x) * dy) + Math.abs((box.y - from.y) * dx);
    if (box === from || along < 8) continue;
    const far = along + 2 * aside;
    if (far < least) [best, least] = [box, far];
  }
  return best;
}
