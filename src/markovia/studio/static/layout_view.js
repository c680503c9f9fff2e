// Where things are: the camera over the drawing, the paths of edges, what is in view, and widths of texts.

/**
 * @typedef {{x: number, y: number, k: number}} Camera  a point of the drawing at the view's middle, and the zoom
 * @typedef {{x: number, y: number, width: number, height: number}} Box  centre and size
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
 * The camera that shows a frame whole, with room below for the tools.
 * @param {Frame} frame
 * @param {{width: number, height: number}} view
 * @param {number} [most]
 * @returns {Camera}
 */
export function cameraOn(frame, view, most = 1.25) {
  const [margin, tools] = [26, 56];
  const k = Math.max(LEAST_ZOOM, Math.min((view.width - 2 * margin) / Math.max(1, frame.right - frame.left),
    (view.height - margin - tools) / Math.max(1, frame.bottom - frame.top), most));
  return { x: (frame.left + frame.right) / 2, y: (frame.top + frame.bottom + (tools - margin) / k) / 2, k };
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
  const scale = Math.min(box.width / 2 / Math.max(1e-9, Math.abs(dx)), box.height / 2 / Math.max(1e-9, Math.abs(dy)), 1);
  return { x: box.x + dx * scale, y: box.y + dy * scale };
}

/** @param {number} value @param {number} reach */
const clamp = (value, reach) => Math.max(-reach, Math.min(reach, value));
const r = (/** @type {number} */ x) => Math.round(10 * x) / 10;

/**
 * The line of an edge, its arrow head and its middle.
 * @param {Box} from
 * @param {Box} to
 * @param {boolean} [bare]  without a head, so that the line goes all the way
 * @returns {{line: string, head: string, middle: {x: number, y: number}}}
 */
export function edgePath(from, to, bare = false) {
  const dx = to.x - from.x;
  const gap = Math.abs(to.y - from.y) - (from.height + to.height) / 2;
  const length = bare ? 0 : 8;
  if (gap > 14) {
    const down = Math.sign(to.y - from.y);
    const start = { x: from.x + clamp(dx * 0.18, from.width / 2 - 20), y: from.y + (down * from.height) / 2 };
    const tip = { x: to.x - clamp(dx * 0.18, to.width / 2 - 20), y: to.y - (down * to.height) / 2 - down };
    const end = tip.y - down * (length - 1);
    const bend = down * Math.max(10, Math.min(90, gap * 0.42));
    return {
      line: `M${r(start.x)} ${r(start.y)}C${r(start.x)} ${r(start.y + bend)} ${r(tip.x)} ${r(end - bend)} ${r(tip.x)} ${r(end)}`,
      head: `M${r(tip.x)} ${r(tip.y)}l-4 ${-down * length}h8Z`,
      middle: { x: (start.x + tip.x) / 2, y: (start.y + tip.y) / 2 },
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
    middle: { x: (start.x + tip.x) / 2, y: (start.y + tip.y) / 2 },
  };
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
